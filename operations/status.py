"""How promises stand: deliveries, error budgets, failed checks, open incidents, from the store alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from pathlib import Path

from sqlalchemy import Connection

from dq.alerts import drain
from dq.alerts.drain import Outstanding
from dq.alerts.incident import Incident, incident_as_row
from dq.alerts.incident_store import standing_at as incidents_at
from dq.contracts.model import Contract
from dq.contracts.shared.outcome import Finding, UsageError
from dq.contracts.slo import Slo
from dq.dataquality.delivery import cycle_store, heartbeat
from dq.dataquality.delivery.compliance import (
    GroupStanding,
    Standing,
    cycle_as_dict,
    group_as_dict,
    grouped,
    promise_as_dict,
    standing,
)
from dq.dataquality.delivery.cycle import Kept
from dq.dataquality.delivery.notify import PLATFORM
from dq.dataquality.delivery.replay import rewound
from dq.dataquality.delivery.skip_cache import remembered
from dq.dataquality.results import check_runs
from dq.dataquality.results import check_runs as audits
from dq.dataquality.results.check_runs import StagedRun
from dq.operations import alerting
from dq.operations.key_ownership import settled
from dq.operations.registry_files import Loaded, load, slos
from dq.operations.runtime.context import World, called
from dq.store.engine import Store

# For how long what was withdrawn is still shown.
_TOLD_FOR = timedelta(days=7)
Quality = Mapping[tuple[str, str], Sequence[check_runs.Line]]


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
    deliveries: tuple[Standing, ...]
    groups: tuple[GroupStanding, ...]
    checks: Quality
    audited: tuple[StagedRun, ...]
    incidents: tuple[Incident, ...]
    withdrawn: tuple[Kept, ...]
    outstanding: tuple[Outstanding, ...]
    findings: tuple[Finding, ...]

    def as_dict(self) -> dict[str, object]:
        """As JSON values."""
        return {
            "groups": [group_as_dict(one) for one in self.groups],
            "deliveries": [
                {**promise_as_dict(one), "cycles": [cycle_as_dict(kept) for kept in one.cycles]}
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
        **cycle_as_dict(one),
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
            standing(slo, rewound(tx, cycle_store.all_cycles(tx, slo.key), at), now) for slo in promises
        ]
        mine = {PLATFORM, *(contract.key for contract in chosen)}
        return PromisesStanding(
            at=now,
            contracts=tuple(chosen),
            deliveries=tuple(deliveries),
            groups=tuple(grouped(deliveries, _NAMED[by])) if by is not Grouping.PROMISE else (),
            checks={pair: check_runs.latest(tx, *pair, at) for pair in pairs},
            audited=tuple(audit for pair in pairs for audit in audits.newest_audits(tx, *pair, at)),
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
