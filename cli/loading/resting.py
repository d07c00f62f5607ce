"""Which contracts a tick need not read: their files are as they were, and nothing of them is due or open."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path

from dq.cli.loading.contracts import NOT_IN_FORCE, Loaded
from dq.cli.world.environment import World
from dq.contracts.shared.install import NAME
from dq.contracts.shared.outcome import Finding
from dq.contracts.slo import Slo
from dq.dataquality.delivery.ledger import contracts_with_open_cycles
from dq.dataquality.delivery.state.resting import RestingContract, lay_down, resting
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

    @property
    def slos(self) -> int:
        """How many promises of this tick's files rest."""
        return sum(one.slos for name, one in self.kept.items() if self.contents.get(name) == one.content)


def at_rest(world: World, store: Store, *given: object) -> Rest:
    """What rests now under the settings of the operator and what else was `given` to the command."""
    own = world.settings
    variables = {name: world.environment.get(name) for name in own.vars}
    releases = [version(name) for name in (NAME, "tzdata", "holidays")]
    said = [*releases, str(world.folder), repr(own), repr(variables), repr(given)]
    terms = sha256("\0".join(said).encode()).hexdigest()
    with store.read() as tx:
        return Rest(
            world.folder, terms, resting(tx, terms, world.now(), contracts_with_open_cycles(tx, world.now()))
        )


def lay_to_rest(
    world: World,
    store: Store,
    rest: Rest,
    loaded: Loaded,
    watched: Sequence[Slo],
    findings: Iterable[Finding],
) -> None:
    """Keeps which of the contracts that were read rest now: all is well with them, and nothing is open."""
    now, troubled = world.now(), {finding.at.file for finding in findings}
    promises: dict[str, list[Slo]] = {}
    for slo in watched:
        promises.setdefault(slo.contract.key, []).append(slo)
    quiet = [one for one in loaded.contracts if one.status not in NOT_IN_FORCE and one.file not in troubled]
    if not quiet:
        return
    with store.read() as tx:
        awake = contracts_with_open_cycles(tx, now)
    laid = [
        RestingContract(name, rest.contents[name], rest.terms, one.key, len(promises.get(one.key, ())), until)
        for one in quiet
        if one.key not in awake
        # A name that is not UTF-8 is shown otherwise than it is: such a contract does not rest.
        if (name := str(rest.folder / one.file)) in rest.contents
        for until in (_next_due(promises.get(one.key, ()), now),)
    ]
    if laid:
        with store.write() as tx:
            lay_down(tx, laid)


def _next_due(slos: Iterable[Slo], now: datetime) -> datetime | None:
    first = (next(iter(slo.schedule.after(now)), None) for slo in slos)
    return min((due.at for due in first if due is not None), default=None)
