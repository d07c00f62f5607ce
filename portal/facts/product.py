"""All that the page of one product says, put together; and how the product stands, in one word."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from dq.contracts import slo as promise
from dq.contracts.model import Contract, SchemaObject
from dq.contracts.shared.outcome import CycleStatus, Severity, Status
from dq.contracts.slo import NOT_IN_FORCE, Slo
from dq.contracts.subscriptions import Subscription
from dq.contracts.yaml.clause_name import namer
from dq.dataquality.checks import built_in
from dq.dataquality.clauses.coverage import accounts
from dq.dataquality.clauses.foreign_key import Neighbours
from dq.dataquality.clauses.preparation import foreseen
from dq.dataquality.delivery.cycle import Kept
from dq.dataquality.delivery.history.compliance import Standing, standing
from dq.dataquality.results.check_runs import GROUP
from dq.portal.facts.card import Card, Problem
from dq.portal.facts.clauses import ClauseFate, Fate, fates
from dq.portal.facts.incidents import IncidentFacts
from dq.portal.facts.quality import NOTHING, ObjectQuality
from dq.portal.facts.versions import NOT_ASKED, VersionHistory

Key = tuple[str, str, str]
Edge = tuple[str, str, str]


class ProductState(StrEnum):
    """How a product stands, worst first. What is not known is never fine."""

    UNREADABLE = "unreadable"
    BROKEN = "broken"
    LATE = "late"
    UNKNOWN = "unknown"
    SPENT = "spent"
    UNCHECKED = "unchecked"
    FINE = "fine"
    RESTING = "resting"


@dataclass(frozen=True, slots=True)
class ObjectFacts:
    """One object: its schema, what becomes of each of its clauses, and what is known of its data."""

    object: SchemaObject
    clauses: tuple[ClauseFate, ...]
    quality: ObjectQuality


@dataclass(frozen=True, slots=True)
class ProductFacts:
    """A product that can be read. `wrong` are the promises that cannot be understood."""

    card: Card
    contract: Contract
    now: datetime
    promises: tuple[Standing, ...]
    wrong: tuple[Problem, ...]
    objects: tuple[ObjectFacts, ...]
    incidents: tuple[IncidentFacts, ...]
    made_from: tuple[Edge, ...]
    used_by: tuple[Edge, ...]
    consumers: tuple[Subscription, ...]
    versions: VersionHistory
    tick: timedelta

    def judged_until(self, promise: Standing) -> datetime | None:
        """Until when what is judged of a promise is all there is to judge: two ticks of the watcher after the
        next cycle would be missing. It may be past, when nobody watches; None where nothing is judged."""
        last = newest_judged(promise, self.now)
        if last is None:
            return None
        following = next(iter(promise.slo.schedule.after(last.cycle.due_at)), None)
        return following.at + promise.slo.grace + 2 * self.tick if following else None

    @property
    def in_force(self) -> bool:
        """Whether what it promises is owed."""
        return self.contract.status not in NOT_IN_FORCE

    @property
    def open_incidents(self) -> tuple[IncidentFacts, ...]:
        return tuple(one for one in self.incidents if not one.incident.state.closed)

    @property
    def state(self) -> ProductState:
        return state(self)


@dataclass(frozen=True, slots=True)
class Known:
    """What is asked for many products at once, by their keys."""

    histories: Mapping[Key, list[Kept]]
    quality: Mapping[tuple[str, str], ObjectQuality]
    incidents: Mapping[str, Sequence[IncidentFacts]]


def product(
    card: Card,
    contract: Contract,
    known: Known,
    now: datetime,
    neighbours: Neighbours,
    edges: tuple[tuple[Edge, ...], tuple[Edge, ...]],
    consumers: Sequence[Subscription] = (),
    versions: VersionHistory = NOT_ASKED,
    tick: timedelta = timedelta(minutes=15),
) -> ProductFacts:
    """The facts of one product as of an instant."""
    ready: list[Slo] = []
    wrong: list[Problem] = []
    if contract.status not in NOT_IN_FORCE:
        ready, findings = promise.read(contract)
        wrong = [Problem.of(one) for one in dict.fromkeys(findings)]
    return ProductFacts(
        card,
        contract,
        now,
        tuple(standing(slo, known.histories.get(slo.key, []), now) for slo in ready),
        tuple(wrong),
        tuple(_object(contract, one, known, neighbours) for one in contract.objects),
        tuple(known.incidents.get(contract.key, ())),
        edges[0],
        edges[1],
        tuple(consumers),
        versions,
        tick,
    )


def _object(contract: Contract, one: SchemaObject, known: Known, neighbours: Neighbours) -> ObjectFacts:
    clauses = foreseen(contract, one, built_in(), neighbours)
    covered = {path: clause.path for clause in reversed(clauses) for path in clause.covers}
    quality = known.quality.get((contract.key, one.name), NOTHING)
    accounted = accounts(contract, one, clauses)
    known_of = fates(accounted, covered, quality.newest, contract.version, namer(one))
    return ObjectFacts(one, tuple(known_of), quality)


def state(facts: ProductFacts) -> ProductState:
    """The worst of what is known of its data and its deliveries."""
    if not facts.in_force:
        return ProductState.RESTING
    return next((word for word, holds in _LADDER if holds(facts)), ProductState.FINE)


def _breaks_quality(facts: ProductFacts) -> bool:
    told = any(one.incident.key.group == GROUP for one in facts.open_incidents)
    return told or _newest_has(facts, Status.FAIL)


def _newest_has(facts: ProductFacts, status: Status) -> bool:
    lines = (line for one in facts.objects for line in one.quality.newest)
    return any(line.status is status and Severity(line.severity).blocks for line in lines)


def _late(facts: ProductFacts) -> bool:
    missing = (kept for one in facts.promises for kept in one.cycles if kept.status is CycleStatus.MISSING)
    return any(missing) or any(_last(one, facts.now) is CycleStatus.NEVER for one in facts.promises)


def _unknown(facts: ProductFacts) -> bool:
    """Whether a promise cannot be understood or judged, or what was asked of the data was not answered."""
    unjudged = any(_last(one, facts.now) in _UNJUDGED for one in facts.promises)
    overdue = any(at is not None and at <= facts.now for at in map(facts.judged_until, facts.promises))
    return bool(facts.wrong) or unjudged or overdue or _newest_has(facts, Status.ERROR)


def _spent(facts: ProductFacts) -> bool:
    """Whether it misses more often than it promises, or anything else of it is open."""
    return bool(facts.open_incidents) or any(one.budget.exhausted for one in facts.promises)


def _unchecked(facts: ProductFacts) -> bool:
    """Whether clauses on the data could be enforced, and nobody checked them in this version."""
    return any(clause.fate is Fate.UNCHECKED for one in facts.objects for clause in one.clauses)


def _promises_nothing(facts: ProductFacts) -> bool:
    idle = all(clause.fate is Fate.DOCUMENTED for one in facts.objects for clause in one.clauses)
    return not facts.promises and idle


def newest_judged(one: Standing, now: datetime) -> Kept | None:
    """The newest cycle that was due and is judged; one may be excused before it is due."""
    judged = (kept for kept in reversed(one.cycles) if kept.status not in _AHEAD)
    return next((kept for kept in judged if kept.cycle.due_at <= now), None)


def _last(one: Standing, now: datetime) -> CycleStatus | None:
    kept = newest_judged(one, now)
    return kept.status if kept else None


# What was withdrawn while a contract was out of force says nothing of it in force.
_UNJUDGED = (None, CycleStatus.UNKNOWN, CycleStatus.WITHDRAWN)
_AHEAD = (CycleStatus.SCHEDULED, CycleStatus.PENDING)
_LADDER: tuple[tuple[ProductState, Callable[[ProductFacts], bool]], ...] = (
    (ProductState.BROKEN, _breaks_quality),
    (ProductState.LATE, _late),
    (ProductState.UNKNOWN, _unknown),
    (ProductState.SPENT, _spent),
    (ProductState.RESTING, _promises_nothing),
    (ProductState.UNCHECKED, _unchecked),
)
