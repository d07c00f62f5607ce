"""How one promised delivery stands, for whoever waits for it: `dq.cycle("orders.odcs.yaml", partition=…)`.

Read only: whether it is told of, and what is counted, stays the watcher's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from functools import partial
from pathlib import Path

from sqlalchemy import Connection

from dq.alerts import drain
from dq.alerts.drain import Outstanding
from dq.alerts.incident import Incident, incident_as_row
from dq.alerts.incident_store import standing_at as incidents_at
from dq.contracts import slo as promise
from dq.contracts.model import Contract
from dq.contracts.outcome import CycleStatus, Finding, Unreadable, UsageError
from dq.contracts.slo import Cycle, Slo
from dq.contracts.yaml.parse import TEXT, read
from dq.dataquality import results
from dq.dataquality.delivery import compliance, cycle_store, evidence, heartbeat, notify
from dq.dataquality.delivery import cycle_store as excuses
from dq.dataquality.delivery import cycle_store as watermarks
from dq.dataquality.delivery.cycle import SETTLE, Kept, evaluate_cycle
from dq.dataquality.delivery.cycle_store import all_receipts
from dq.dataquality.delivery.evidence import Sight, View
from dq.dataquality.delivery.notify import PLATFORM
from dq.dataquality.delivery.probe_pool import Lookout
from dq.dataquality.delivery.replay import rewound
from dq.dataquality.delivery.skip_cache import remembered
from dq.dataquality.results import StagedRun
from dq.lake.storage import Storages
from dq.operations import alerting
from dq.operations.data_places import placed, resolved, with_folders
from dq.operations.key_ownership import settled
from dq.operations.registry_files import Loaded, load, slos
from dq.operations.runtime.context import World, aware, called, here
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


# For how long what was withdrawn is still shown.
_TOLD_FOR = timedelta(days=7)
Quality = Mapping[tuple[str, str], Sequence[results.Line]]


class Grouping(StrEnum):
    """What `dq status` shows one line for."""

    PROMISE = "promise"
    PRODUCT = "product"
    DOMAIN = "domain"
    ALL = "all"


_NAMED: dict[Grouping, Callable[[Slo], str]] = {
    Grouping.PRODUCT: lambda slo: slo.contract.data_product or slo.contract.key,
    Grouping.DOMAIN: lambda slo: slo.contract.domain or "(none)",
    Grouping.ALL: lambda _: "all",
}


@dataclass(frozen=True, slots=True)
class PromisesStanding:
    """How the promises of some contracts stand, as of `at`.

    `deliveries` has each promise with its cycles and its error budget, `groups` what they come to for many,
    `checks` the last lines of each check by contract and object, `audited` the newest audit of each
    partition, `withdrawn` the cycles that were taken back within seven days, `outstanding` alerts that have
    not arrived (none for a past instant: how messages stood then is not kept). `findings` are what could not
    be read. All instants are in UTC; `as_dict()` is what `dq status --format json` prints.
    """

    at: datetime
    contracts: tuple[Contract, ...]
    deliveries: tuple[compliance.Standing, ...]
    groups: tuple[compliance.GroupStanding, ...]
    checks: Quality
    audited: tuple[StagedRun, ...]
    incidents: tuple[Incident, ...]
    withdrawn: tuple[Kept, ...]
    outstanding: tuple[Outstanding, ...]
    findings: tuple[Finding, ...]

    def as_dict(self) -> dict[str, object]:
        """As JSON values."""
        return {
            "groups": [compliance.group_as_dict(one) for one in self.groups],
            "deliveries": [
                {
                    **compliance.promise_as_dict(one),
                    "cycles": [compliance.cycle_as_dict(kept) for kept in one.cycles],
                }
                for one in self.deliveries
            ],
            "checks": [line.as_dict() for lines in self.checks.values() for line in lines],
            "incidents": [incident_as_row(one) for one in self.incidents],
            "audits": [_audit(one) for one in self.audited],
            "withdrawn": [_withdrawal(one) for one in self.withdrawn],
            "outstanding": [alerting.outstanding_as_dict(one) for one in self.outstanding],
            "findings": [one.as_dict() for one in self.findings],
        }


def _audit(one: StagedRun) -> dict[str, object]:
    """An audit for machines, with what kept it back."""
    return {
        "contract": one.contract,
        "version": one.version,
        "object": one.object,
        "scope": one.scope,
        "staged": one.staged,
        "verdict": one.verdict,
        "at": one.at.isoformat(),
        "counts": {str(status): number for status, number in one.counts.items()},
        "broken": [{"what": what, "message": message} for what, message in one.broken],
    }


def _withdrawal(one: Kept) -> dict[str, object]:
    return {
        **compliance.cycle_as_dict(one),
        "contract": one.cycle.contract,
        "slo": one.cycle.slo,
        "reason": one.reason,
    }


def status(
    paths: Path | str | Sequence[Path | str] = ".",
    *,
    product: str | None = None,
    domain: str | None = None,
    by: str = "promise",
    folder: Path | str | None = None,
    now: datetime | None = None,
) -> PromisesStanding:
    """How the promises of the contracts at these files and folders stand, as `dq status` shows it.

    Only the store is asked, and nothing is written but an empty store where there is none. `product` and
    `domain` choose contracts, `by` makes `groups` of promises: `product`, `domain` or `all`. `folder` stands
    for the working folder, where settings and store are, and from which relative paths lead. `now` is an
    aware instant, by default the present one.

    Raises UsageError where nothing is of that product or domain, or something does not fit, and Unreadable
    for a path or a store that cannot be read. A contract that cannot be read is in `findings`.
    """
    if by not in list(Grouping):
        raise UsageError(f"by={by!r} is no grouping.", f"Choose one of {', '.join(Grouping)}.")
    world, places = called(paths, folder, now)
    return standings(world, places, Grouping(by), chosen_by(product, domain))


def chosen_by(product: str | None, domain: str | None) -> Callable[[Contract], bool]:
    """Whether a contract is of this product, or has this key or id, and of this domain."""

    def wanted(contract: Contract) -> bool:
        named = product is None or product in (contract.key, contract.id, contract.data_product)
        return named and domain in (None, contract.domain)

    return wanted


def standings(
    world: World,
    paths: Sequence[Path],
    by: Grouping = Grouping.PROMISE,
    wanted: Callable[[Contract], bool] = lambda _: True,
) -> PromisesStanding:
    """How the promises of the wanted contracts stand.

    Raises as `status`.
    """
    with closing(world.store()) as store:
        return _read(world, store, settled(world, store, load(paths, world.note)), by, wanted)


def _read(
    world: World, store: Store, loaded: Loaded, by: Grouping, wanted: Callable[[Contract], bool]
) -> PromisesStanding:
    chosen = [contract for contract in loaded.contracts if wanted(contract)]
    if loaded.contracts and not chosen:
        raise UsageError(
            "no contract here is of that product or domain.",
            "See 'dq status --by product' and 'dq status --by domain'.",
        )
    loaded = replace(loaded, contracts=chosen)
    promises, wrong = slos(loaded, world.note)
    now, at = world.now(), world.as_of
    pairs = [(contract.key, one.name) for contract in chosen for one in contract.objects]
    with store.read() as tx:
        deliveries = [
            compliance.standing(slo, rewound(tx, cycle_store.all_cycles(tx, slo.key), at), now)
            for slo in promises
        ]
        mine = {PLATFORM, *(contract.key for contract in chosen)}
        return PromisesStanding(
            at=now,
            contracts=tuple(chosen),
            deliveries=tuple(deliveries),
            groups=tuple(compliance.grouped(deliveries, _NAMED[by])) if by is not Grouping.PROMISE else (),
            checks={pair: results.latest(tx, *pair, at) for pair in pairs},
            audited=tuple(audit for pair in pairs for audit in results.newest_audits(tx, *pair, at)),
            incidents=tuple(one for one in incidents_at(tx, at) if one.key.contract in mine),
            withdrawn=tuple(_withdrawn(tx, loaded, now)),
            outstanding=() if heartbeat.is_past(tx, at) else tuple(drain.all_of(tx, now)),
            findings=(*loaded.findings, *wrong),
        )


def _withdrawn(tx: Connection, loaded: Loaded, now: datetime) -> list[Kept]:
    """What was withdrawn lately of these contracts, and of those that are no more."""
    here, held = {contract.key for contract in loaded.contracts}, remembered(tx)
    recent = cycle_store.withdrawn_cycles(tx, now - _TOLD_FOR, now)
    return [one for one in recent if one.cycle.contract in here or one.cycle.contract not in held]
