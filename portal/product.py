"""All that the page of one product says, what became of its clauses, and its row in lists."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from dq.alerts.incident import Incident
from dq.contracts import slo as slos
from dq.contracts.model import Contract, SchemaObject, namer
from dq.contracts.outcome import AnsweredBy, CycleStatus, Severity, Status
from dq.contracts.slo import NOT_IN_FORCE, Slo
from dq.contracts.subscriptions import Subscription
from dq.dataquality.checks import built_in
from dq.dataquality.clauses.coverage import Account, State, accounts, foreseen
from dq.dataquality.clauses.foreign_key import Neighbours
from dq.dataquality.delivery.compliance import Standing, standing
from dq.dataquality.delivery.cycle import Kept
from dq.dataquality.results import GROUP, Line
from dq.portal.contracts import NOT_ASKED, Card, Edge, Edges, Problem, VersionHistory
from dq.portal.store_queries import NOTHING, IncidentFacts, ObjectQuality

# What became of each clause of an object: kept on which grounds, broken, not told, or enforced by nobody.

WATCHER = "dq watch"


class Fate(StrEnum):
    """What is known of one clause. `COUNTED` was read in an earlier run where its files are as they were.
    `KEPT` is without its grounds, which an older dq did not note;
    `UNCHECKED` was never asked of this version's data, and `UNTOLD` had no answer."""

    BROKEN = "broken"
    UNTOLD = "untold"
    UNCHECKED = "unchecked"
    PROVEN = "proven"
    SCANNED = "scanned"
    COUNTED = "counted"
    SCHEMA = "schema"
    KEPT = "kept"
    WATCHED = "watched"
    DOCUMENTED = "documented"


@dataclass(frozen=True, slots=True)
class ClauseFate:
    """One clause and what is known of it; `how` says what tests it, or why nothing does."""

    account: Account
    fate: Fate
    how: str


def fates(
    accounts: Sequence[Account],
    answered_by: Mapping[str, str],
    lines: Sequence[Line],
    version: str,
    named: Callable[[str], str],
) -> Iterator[ClauseFate]:
    """The fate of each clause by the results of the scope that was checked last.

    `answered_by` leads from a clause to the one whose check tests it too. A path is by positions: a result
    counts in its own version alone, and where `named` calls the clause at that path as the result does.
    """
    found: dict[str, list[Line]] = {}
    for line in lines:
        if line.version == version and line.name in ("", named(line.clause)):
            found.setdefault(line.clause, []).append(line)
    earlier = max((line for line in lines if line.version != version), key=lambda line: line.at, default=None)
    never = f"last checked under version {earlier.version}" if earlier else "never checked"
    for account in accounts:
        answers = found.get(account.path) or found.get(answered_by.get(account.path, "")) or []
        yield _fate(account, answers, never)


_WORST = (Status.FAIL, Status.ERROR, Status.SKIPPED, Status.PASS)
# Of several checks of one clause, the least of their grounds counts.
_GROUNDS = (
    (None, Fate.KEPT),
    (AnsweredBy.SCAN, Fate.SCANNED),
    (AnsweredBy.KEPT, Fate.COUNTED),
    (AnsweredBy.STATISTICS, Fate.PROVEN),
    (AnsweredBy.SCHEMA, Fate.SCHEMA),
)


def _fate(account: Account, answers: Sequence[Line], never: str) -> ClauseFate:
    if account.state is not State.ENFORCED:
        return ClauseFate(account, Fate.DOCUMENTED, f"{account.state.value}: {account.reason}")
    if account.reason == WATCHER:
        return ClauseFate(account, Fate.WATCHED, "see the deliveries above")
    match min((line.status for line in answers), key=_WORST.index, default=None):
        case Status.PASS:
            grounds = {line.answered_by for line in answers}
            return ClauseFate(account, next(fate for at, fate in _GROUNDS if at in grounds), account.reason)
        case Status.FAIL:
            return ClauseFate(account, Fate.BROKEN, account.reason)
        case None:
            return ClauseFate(account, Fate.UNCHECKED, f"{account.reason}: {never}")
        case Status.SKIPPED:
            return ClauseFate(account, Fate.UNTOLD, f"{account.reason}: there was nothing to measure")
    return ClauseFate(account, Fate.UNTOLD, f"{account.reason}: the check had no answer")


# All that the page of one product says, put together; and how the product stands, in one word.

Key = tuple[str, str, str]


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
    edges: Edges,
    consumers: Sequence[Subscription] = (),
    versions: VersionHistory = NOT_ASKED,
    tick: timedelta = timedelta(minutes=15),
) -> ProductFacts:
    """The facts of one product as of an instant."""
    ready: list[Slo] = []
    wrong: list[Problem] = []
    if contract.status not in NOT_IN_FORCE:
        ready, findings = slos.read(contract)
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


# What lists say of a product: one row of each, kept between builds.

_NEAR = 0.8
"""A budget of which so much is used is nearly spent."""


@dataclass(frozen=True, slots=True)
class Summary:
    """One product in lists. `why` says in one line what is the matter; `good` and `bad` are cycles of all its
    promises in their windows; `spent` names each promise whose budget is nearly or wholly spent.

    `clauses` and `enforced` count what it promises of schema and data, and what of it is enforced.
    `acknowledged` and `resolved` are minutes of each incident of late. `since` is since when an open incident
    is open, or the newest miss was due. Instants are ISO 8601 in UTC.
    """

    state: str
    why: str = ""
    since: str = ""
    good: int = 0
    bad: int = 0
    exhausted: int = 0
    spent: tuple[str, ...] = ()
    clauses: int = 0
    enforced: int = 0
    acknowledged: tuple[float, ...] = ()
    resolved: tuple[float, ...] = ()
    open_incidents: int = 0
    right_until: str = ""

    def dumped(self) -> tuple[Any, ...]:
        """As JSON values, in the order of the fields."""
        return astuple(self)


def loaded_row(kept: list[Any]) -> Summary:
    """A summary from its JSON values. Raises TypeError for what is none."""
    values: list[Any] = [tuple(value) if type(value) is list else value for value in kept]
    return Summary(*values)


def summary(facts: ProductFacts) -> Summary:
    """The row of a product that can be read."""
    why, since = _why(facts)
    budgets = [one.budget for one in facts.promises]
    accounts = [clause.account for one in facts.objects for clause in one.clauses]
    ended = [one.incident for one in facts.incidents]
    return Summary(
        facts.state.value,
        why,
        since.isoformat() if since else "",
        sum(one.good for one in budgets),
        sum(one.bad for one in budgets),
        sum(one.exhausted for one in budgets),
        tuple(f"{one.slo.id}: {one.budget.line()}" for one in facts.promises if _nearly_spent(one.budget)),
        len(accounts),
        sum(account.state is State.ENFORCED for account in accounts),
        tuple(_minutes(one.acked_at - one.opened_at) for one in ended if one.acked_at),
        tuple(_minutes(one.resolved_at - one.opened_at) for one in ended if one.resolved_at),
        len(facts.open_incidents),
        right_until(facts).isoformat(),
    )


def _minutes(length: timedelta) -> float:
    return round(length.total_seconds() / 60, 1)


def _nearly_spent(budget: Any) -> bool:
    if not budget.bad or budget.first_miss_at is None:
        return bool(budget.bad)
    return bool(budget.exhausted or (budget.used is not None and budget.used >= _NEAR))


def _why(facts: ProductFacts) -> tuple[str, datetime | None]:
    """What is the matter in one line, and since when."""
    match facts.state:
        case ProductState.BROKEN | ProductState.LATE if facts.open_incidents:
            first = _first_incident(facts)
            return first.title, first.opened_at
        case ProductState.BROKEN:
            failed = [
                line for one in facts.objects for line in one.quality.newest if line.status is Status.FAIL
            ]
            said = f"{failed[0].property} {failed[0].check}".strip()
            more = f" and {len(failed) - 1} more" if len(failed) > 1 else ""
            return f"{said} fails in {failed[0].scope}{more}", failed[0].at
        case ProductState.LATE:
            missed = _missed(facts)
            return f"{missed[0].cycle.slo} is missing", missed[0].cycle.due_at
        case ProductState.UNKNOWN:
            return _unknown_reason(facts), None
        case ProductState.SPENT if facts.open_incidents:
            first = facts.open_incidents[0].incident
            return first.title, first.opened_at
        case ProductState.SPENT:
            spent = next(one for one in facts.promises if one.budget.exhausted)
            return f"{spent.slo.id}: {spent.budget.line()}", None
        case ProductState.UNCHECKED:
            return _unchecked_reason(facts), None
        case ProductState.RESTING if not facts.in_force:
            return f"the contract is {facts.contract.status}", None
        case ProductState.RESTING:
            return "it promises nothing that could be watched or checked", None
        case ProductState.FINE:
            return _excused(facts), None
    return "", None


def _excused(facts: ProductFacts) -> str:
    """Which of its newest deliveries nobody had to make, so that the data is older than the promise."""
    newest = (newest_judged(one, facts.now) for one in facts.promises)
    found = [kept.cycle.slo for kept in newest if kept is not None and kept.status is CycleStatus.EXCUSED]
    return f"the newest delivery of {found[0]} was excused" if found else ""


def _unchecked_reason(facts: ProductFacts) -> str:
    """What of its data nobody checked in this version."""
    clauses = [clause for one in facts.objects for clause in one.clauses if clause.fate is Fate.UNCHECKED]
    if all(one.quality.at is None for one in facts.objects):
        return "its data was never checked"
    lines = (line for one in facts.objects for line in one.quality.newest)
    if not any(line.version == facts.contract.version for line in lines):
        return f"its data was not checked since version {facts.contract.version} came"
    said = "clause on its data was" if len(clauses) == 1 else "clauses on its data were"
    return f"{len(clauses):,} {said} never checked"


def _first_incident(facts: ProductFacts) -> Incident:
    """The open incident that says why: of the data where that is broken, else of a delivery."""
    wanted = facts.state is ProductState.BROKEN
    found = [one.incident for one in facts.open_incidents]
    return next((one for one in found if (one.key.group == GROUP) is wanted), found[0])


def _missed(facts: ProductFacts) -> Sequence[Any]:
    gone = (CycleStatus.MISSING, CycleStatus.NEVER)
    return [kept for one in facts.promises for kept in reversed(one.cycles) if kept.status in gone]


def _unknown_reason(facts: ProductFacts) -> str:
    if facts.wrong:
        return facts.wrong[0].message
    for one in facts.promises:
        last, until = newest_judged(one, facts.now), facts.judged_until(one)
        if last is None or last.status is CycleStatus.WITHDRAWN:
            return f"{one.slo.id} was not judged yet"
        if last.status is CycleStatus.UNKNOWN:
            return last.reason or f"{one.slo.id} could not be judged"
        if until is not None and until <= facts.now:
            return (
                f"{one.slo.id} was last judged for {last.cycle.due_at:%Y-%m-%d %H:%M} UTC, and was due since"
            )
    errors = [line for one in facts.objects for line in one.quality.newest if line.status is Status.ERROR]
    return errors[0].message if errors else "it could not be judged"


def right_until(facts: ProductFacts) -> datetime:
    """Until when what is said stays right if nothing happens: a miss leaves a window, a cycle is due."""
    now, times = facts.now, [facts.now + timedelta(days=1)]
    for one in facts.promises:
        for kept in one.cycles:
            breach = kept.cycle.breach_at
            times += [at for at in (breach, breach + one.slo.window, breach + 2 * one.slo.window) if at > now]
        following = next(iter(one.slo.schedule.after(now)), None)
        times += [following.at] if following else []
        until = facts.judged_until(one)
        times += [until] if until is not None and until > now else []
    return min(times)
