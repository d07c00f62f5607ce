"""Contracts that a tick need not read, because nothing of theirs is due."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path

from dq.contracts.shared.install import NAME
from dq.contracts.shared.outcome import CycleStatus, Finding
from dq.contracts.slo import NOT_IN_FORCE
from dq.dataquality.delivery import cycle_store
from dq.dataquality.delivery.cycle import SETTLE, Kept, MissingPart, Watched
from dq.dataquality.delivery.notify import root_of
from dq.dataquality.delivery.probe_pool import Lookout
from dq.dataquality.delivery.skip_cache import (
    RestingContract,
    appeared,
    rest_of,
    resting_contracts,
    save_skipped,
    spoken_of,
)
from dq.lake.storage import Files, SilentFiles
from dq.operations.registry_files import Loaded
from dq.operations.runtime.context import World
from dq.store.engine import Store


@dataclass(slots=True)
class Rest:
    """What rests in this tick. Asked for each file in turn, it remembers what it was shown."""

    folder: Path
    terms: str
    kept: dict[str, RestingContract]
    contents: dict[str, str] = field(default_factory=dict)

    def of(self, file: Path, content: bytes) -> str | None:
        """The key of a contract that rests; None for one that is to be read."""
        name, found = str(self.folder / file), sha256(content).hexdigest()
        self.contents[name] = found
        before = self.kept.get(name)
        return before.contract if before is not None and before.content == found else None

    def _resting(self) -> list[RestingContract]:
        return [one for name, one in self.kept.items() if self.contents.get(name) == one.content]

    @property
    def slos(self) -> int:
        """How many promises of this tick's files rest."""
        return sum(one.slos for one in self._resting())

    @property
    def open(self) -> int:
        """How many of their cycles are still missing."""
        missing = (part for one in self._resting() for part in one.missing)
        return len({part.cycle_id for part in missing if part.status == CycleStatus.MISSING})


def at_rest(
    world: World,
    store: Store,
    paths: Iterable[Path],
    lookout: Lookout,
    files_of: Callable[[str], Files],
    *given: object,
) -> Rest:
    """What rests now under the settings of the operator and what else was `given` to the command.

    Of what is missing below the `paths` nothing has come: that is looked for here.
    """
    own = world.settings
    variables = {name: world.environment.get(name) for name in own.vars}
    releases = [version(name) for name in (NAME, "tzdata", "holidays")]
    said = [*releases, str(world.folder), repr(own), repr(variables), repr(given)]
    terms = sha256("\0".join(said).encode()).hexdigest()
    with store.read() as tx:
        laid = resting_contracts(tx, terms, world.now(), cycle_store.open_states(tx, world.now()))
        heard = spoken_of(tx) if any(one.missing for one in laid.values()) else set()
    scope = [world.folder / path for path in paths]
    # What another watcher has laid down is not looked for, and so it does not rest here.
    quiet = {
        name: one
        for name, one in laid.items()
        if not one.missing
        or (name not in heard and any(Path(name).is_relative_to(folder) for folder in scope))
    }
    owners = {part: name for name, one in quiet.items() for part in one.missing}
    woken = {owners[part] for part in appeared(lookout, list(owners), files_of)}
    return Rest(world.folder, terms, {name: one for name, one in quiet.items() if name not in woken})


def lay_to_rest(
    world: World,
    store: Store,
    rest: Rest,
    loaded: Loaded,
    watched: Sequence[Watched],
    findings: Iterable[Finding],
) -> None:
    """Keeps which of the contracts that were read rest now: all is well with them, or missing and told."""
    now, troubled = world.now(), {finding.at.file for finding in findings}
    promises: dict[str, list[Watched]] = {}
    for one in watched:
        promises.setdefault(one.slo.contract.key, []).append(one)
    # A name that is not UTF-8 is shown otherwise than it is: such a contract does not rest.
    quiet = {
        one.key: name
        for one in loaded.contracts
        if one.status not in NOT_IN_FORCE and one.file not in troubled
        if (name := str(rest.folder / one.file)) in rest.contents
    }
    if not quiet:
        return
    open_cycles: dict[str, dict[tuple[str, str, str], list[Kept]]] = {}
    with store.read() as tx:
        for key, kept in cycle_store.open_cycles(tx, now, quiet).items():
            open_cycles.setdefault(key[0], {})[key] = kept
    laid = []
    for contract, name in quiet.items():
        own = promises.get(contract, [])
        # Nobody knows whether its place may be used.
        if any(isinstance(one.files, SilentFiles) for one in own):
            continue
        missing = _missing(own, open_cycles.get(contract, {}), now)
        if missing is None:
            continue
        parts, times = missing
        until = min((*times, *_next_due(own, now)), default=None)
        laid.append(
            RestingContract(
                name, rest.contents[name], rest.terms, contract, len(own), now, until, tuple(parts)
            )
        )
    if laid:
        with store.write() as tx:
            save_skipped(tx, laid)


def _missing(
    own: Iterable[Watched], open_cycles: dict[tuple[str, str, str], list[Kept]], now: datetime
) -> tuple[list[MissingPart], list[datetime]] | None:
    """What is missing of a contract's promises, and when it is judged again; None where it may not rest."""
    parts: list[MissingPart] = []
    times: list[datetime] = []
    by_key = {one.slo.key: one for one in own}
    for key, cycles in open_cycles.items():
        one = by_key.get(key)
        root = root_of(one) if one else ""
        for kept in cycles:
            found = rest_of(one, root, kept, now, SETTLE) if one else None
            if found is None:
                return None
            parts += found.parts
            times += [found.until] if found.until is not None else []
    return parts, times


def _next_due(own: Iterable[Watched], now: datetime) -> list[datetime]:
    first = (next(iter(one.slo.schedule.after(now)), None) for one in own)
    return [due.at for due in first if due is not None]
