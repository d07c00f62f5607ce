"""How one promised delivery stands, for whoever waits for it: `dq.cycle("orders.odcs.yaml", partition=…)`.

Read only: whether it is told of, and what is counted, stays the watcher's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path

from dq.contracts import slo as promise
from dq.contracts.model import Contract
from dq.contracts.shared.outcome import CycleStatus, Unreadable, UsageError
from dq.contracts.slo import Cycle, Slo
from dq.contracts.yaml.parse import TEXT, read
from dq.dataquality.delivery import cycle_store, evidence, notify
from dq.dataquality.delivery import cycle_store as excuses
from dq.dataquality.delivery import cycle_store as watermarks
from dq.dataquality.delivery.cycle import SETTLE, Kept, evaluate_cycle
from dq.dataquality.delivery.cycle_store import all_receipts
from dq.dataquality.delivery.evidence import Sight, View
from dq.dataquality.delivery.probe_pool import Lookout
from dq.lake.storage import Storages
from dq.operations.data_places import placed, resolved, with_folders
from dq.operations.runtime.context import World, aware, here
from dq.store.engine import Store

AROUND = timedelta(days=40)
"""How far from the instant that is given the cycle of a partition is looked for."""

_OVER = (CycleStatus.EXCUSED, CycleStatus.WITHDRAWN)


@dataclass(frozen=True, slots=True)
class CycleStanding:
    """How a promised delivery stands, and why. All instants are in UTC.

    `decide_at` is when it is told that it is missing: what came in time may be seen a little later.
    """

    contract: str
    object: str
    slo: str
    due_at: datetime
    breach_at: datetime
    decide_at: datetime
    status: CycleStatus
    reason: str
    delivered_at: datetime | None = None

    @property
    def delivered(self) -> bool:
        """Whether it is there, in time or late."""
        return self.status.good or self.status is CycleStatus.LATE


def cycle(
    contract: Contract | Path | str,
    object: str | None = None,
    *,
    partition: Mapping[str, object] | None = None,
    due: datetime | None = None,
    slo: str | None = None,
    server: str | None = None,
    around: datetime | None = None,
    now: datetime | None = None,
    folder: Path | str | None = None,
) -> CycleStanding:
    """How the delivery of a partition, or the one that was `due` at an instant, stands now.

    What the watcher has decided counts; else receipts, markers, commits and files are looked at as `dq watch`
    does, and nothing is written down. The cycle of a `partition` is the first that brings it, due within 40
    days `around` an instant, by default the present one. `object` and `slo` are needed where there are
    several. `folder` stands for the working folder, where settings and store are.

    Raises UsageError where no cycle or several fit, and Unreadable for a contract, a store or a place that
    cannot be read.
    """
    known = read(contract)
    due_at, middle, as_of = aware("due", due), aware("around", around), aware("now", now)
    if (partition is None) == (due is None):
        raise UsageError("which delivery is meant?", "Give partition={…} or due=…, and not both.")
    paths = [] if known.file == TEXT else [Path(known.file)]
    world = here(None, paths, Path(folder) if folder is not None else None)
    at = as_of or world.now()
    wanted = {key: str(value) for key, value in (partition or {}).items()}
    one, promised = _cycle(_slos(known, object, slo), wanted, due_at, middle or at, known.id)
    with closing(world.store()) as store:
        return _stored_or_looked(world, store, one, promised, server, at)


def _slos(contract: Contract, object: str | None, slo: str | None) -> list[Slo]:
    ready, wrong = promise.read(contract)
    if wrong:
        details = [str(finding) for finding in wrong]
        raise Unreadable(
            f"{contract.id}: its deliveries cannot be understood:", "Run 'dq validate'.", details
        )
    found = [one for one in ready if object in (None, one.object.name) and slo in (None, one.id)]
    if not found:
        names = ", ".join(f"{one.object.name}/{one.id}" for one in ready) or "none"
        raise UsageError(f"{contract.id} has no such promise; it has: {names}.", "Name one of them.")
    return found


def _cycle(
    slos: list[Slo], wanted: Mapping[str, str], due: datetime | None, around: datetime, name: str
) -> tuple[Slo, Cycle]:
    found: dict[tuple[str, str, str], tuple[Slo, Cycle]] = {}
    for one in slos:
        for each in _near(one, wanted, due, around):
            found.setdefault(one.key, (one, each))
    if not found:
        what = f"due {due.isoformat()}" if due else "/".join(f"{key}={text}" for key, text in wanted.items())
        raise UsageError(f"{name} promises no delivery of {what}.", "See 'dq schedule next', or 'dq status'.")
    if len(found) > 1:
        names = ", ".join(f"{one}/{slo}" for _, one, slo in found)
        raise UsageError(f"several promises of {name} fit: {names}.", "Name the object or the slo.")
    return next(iter(found.values()))


def _near(slo: Slo, wanted: Mapping[str, str], due: datetime | None, around: datetime) -> Iterator[Cycle]:
    if due is not None:
        yield from slo.cycles(due - timedelta(microseconds=1), due)
        return
    for one in slo.cycles(around - AROUND, around + AROUND):
        if any(wanted.items() <= dict(part).items() for part in one.partitions):
            yield one


def _stored_or_looked(
    world: World, store: Store, slo: Slo, cycle: Cycle, server: str | None, now: datetime
) -> CycleStanding:
    with store.read() as tx:
        kept = cycle_store.find_cycle(tx, slo.key, cycle.due_at)
        word = excuses.newest_excuses(tx, [slo.contract.key]).get((slo.key, cycle.due_at))
    if kept is not None and (kept.status.good or kept.status in _OVER):
        return _standing(cycle, kept.status, kept.reason, kept.delivered_at)
    excuse = "" if word is not None and word.undone else word.text if word is not None else cycle.excuse
    if excuse:
        return _standing(cycle, CycleStatus.EXCUSED, excuse)
    if now < cycle.due_at - AROUND:
        return _standing(cycle, CycleStatus.SCHEDULED, "It is not looked for yet.")
    fresh = kept or Kept(0, cycle, CycleStatus.SCHEDULED, "", None, None, told=True)
    return _looked(world, store, slo, fresh, server, now)


def _looked(
    world: World, store: Store, slo: Slo, kept: Kept, server: str | None, now: datetime
) -> CycleStanding:
    lookout = Lookout(world.settings.storage_seconds)
    reach = world.reach_by(partial(resolved, lookout))
    ready, refused = placed([slo], server, reach, Storages(reach, lookout.seconds).of, lookout)
    if not ready:
        raise Unreadable(
            f"{slo.contract.id}: its data cannot be looked at:", "Mend that.", [str(one) for one in refused]
        )
    [one] = with_folders(store, ready)
    with store.read() as tx:
        receipts = all_receipts(tx, {slo.key[0]: one.place.elsewhere})
        sight = Sight(watermarks.ever_delivered(tx))
        history = evidence.load_history(tx, {one.place.path.rstrip("/")}, now)
    view = View(now, {slo.key: notify.root_of(one)}, receipts, history, sight)
    [seen] = view.all(lookout, [(one, kept)])
    made = evaluate_cycle(seen, now, None)
    at = made.evidence.delivered_at if made.evidence is not None else None
    return _standing(kept.cycle, made.result.status, made.result.reason, at)


def _standing(cycle: Cycle, status: CycleStatus, reason: str, at: datetime | None = None) -> CycleStanding:
    return CycleStanding(
        cycle.contract,
        cycle.object,
        cycle.slo,
        cycle.due_at,
        cycle.breach_at,
        cycle.breach_at + SETTLE,
        status,
        reason,
        at,
    )
