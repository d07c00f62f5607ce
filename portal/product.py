"""Data of one product: state, clause evaluations, and its summary for lists."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from functools import cached_property
from typing import Any

from dq.alerts.incident import Incident
from dq.contracts import slo as slos
from dq.contracts.check_result import AnsweredBy, Status
from dq.contracts.incident import CycleStatus, DeliveryState, observed_and_expected
from dq.contracts.model import Contract, SchemaObject, clause_namer
from dq.contracts.outcome import Severity, pluralize
from dq.contracts.slo import NOT_IN_FORCE, Slo
from dq.contracts.subscriptions import Approval, Subscription
from dq.dataquality.checks import built_in
from dq.dataquality.clauses.coverage import (
    ClauseCoverage,
    EnforcementState,
    clause_coverage,
    expected_clauses,
)
from dq.dataquality.clauses.foreign_key import ContractSet
from dq.dataquality.clauses.quality_rule import partition_time
from dq.dataquality.complete_through import CompleteThrough
from dq.dataquality.delivery.compliance import SloCompliance, slo_compliance
from dq.dataquality.delivery.cycle import CycleRecord
from dq.dataquality.delivery.early_warning import WarningCounts, WarningStanding
from dq.dataquality.delivery.notify import format_duration, local_time
from dq.dataquality.results import GROUP, TABLE, AgreementStanding, PastResult, StoredResult
from dq.portal.contracts import NOT_ASKED, ContractCard, Edge, Edges, Problem, VersionHistory
from dq.portal.daily import day_start, encode_days, is_recent_miss
from dq.portal.store_queries import NO_QUALITY, IncidentFacts, ObjectQuality, PlacedElsewhere

# Evaluation of each clause of an object: passed (by which evidence), broken, unknown or not enforced.

WATCHER = "dq watch"


class ClauseStatus(StrEnum):
    """Status of one clause.

    `CACHED`: passed, with cached results for unchanged files. `PASSED`: passed, but an older dq did not
    record the evidence. `UNCHECKED`: never checked in this version. `UNANSWERED`: the check had no result.
    """

    BROKEN = "failed"
    UNANSWERED = "unanswered"
    UNCHECKED = "unchecked"
    PROVEN = "statistics"
    SCANNED = "scan"
    CACHED = "cached"
    SCHEMA = "schema"
    PASSED = "passed"
    WATCHED = "watched"
    DOCUMENTED = "documented"


@dataclass(frozen=True, slots=True)
class ClauseEvaluation:
    """One clause and its status; `explanation` says what tests it, or why nothing does."""

    account: ClauseCoverage
    status: ClauseStatus
    explanation: str


def clause_evaluations(
    accounts: Sequence[ClauseCoverage],
    answered_by: Mapping[str, str],
    lines: Sequence[StoredResult],
    version: str,
    name_at: Callable[[str], str],
) -> Iterator[ClauseEvaluation]:
    """Yield the evaluation of each clause from the results of the scope that was checked last.

    `answered_by` maps a clause to the one whose check also tests it. Paths contain positions, so a result
    counts only for its own version, and only if `name_at` returns the result's name for its path.
    """
    lines_by_clause: dict[str, list[StoredResult]] = {}
    for line in lines:
        if line.version == version and line.name in ("", name_at(line.clause)):
            lines_by_clause.setdefault(line.clause, []).append(line)
    earlier = max((line for line in lines if line.version != version), key=lambda line: line.at, default=None)
    unchecked_reason = f"last checked under version {earlier.version}" if earlier else "never checked"
    for account in accounts:
        answers = (
            lines_by_clause.get(account.path) or lines_by_clause.get(answered_by.get(account.path, "")) or []
        )
        yield _evaluate_clause(account, answers, unchecked_reason)


_WORST = (Status.FAIL, Status.ERROR, Status.SKIPPED, Status.PASS)
# Weakest evidence first: it counts if several checks test one clause.
_STATUS_BY_SOURCE = (
    (None, ClauseStatus.PASSED),
    (AnsweredBy.SCAN, ClauseStatus.SCANNED),
    (AnsweredBy.CACHE, ClauseStatus.CACHED),
    (AnsweredBy.STATISTICS, ClauseStatus.PROVEN),
    (AnsweredBy.SCHEMA, ClauseStatus.SCHEMA),
)


def _evaluate_clause(
    account: ClauseCoverage, answers: Sequence[StoredResult], unchecked_reason: str
) -> ClauseEvaluation:
    """Return the status of a clause by its newest results, or by `unchecked_reason` without any."""
    if account.state is not EnforcementState.ENFORCED:
        return ClauseEvaluation(account, ClauseStatus.DOCUMENTED, f"{account.state.value}: {account.reason}")
    if account.reason == WATCHER:
        return ClauseEvaluation(account, ClauseStatus.WATCHED, "see the deliveries above")
    match min((line.status for line in answers), key=_WORST.index, default=None):
        case Status.PASS:
            sources = {line.answered_by for line in answers}
            return ClauseEvaluation(
                account,
                next(status for source, status in _STATUS_BY_SOURCE if source in sources),
                account.reason,
            )
        case Status.FAIL:
            return ClauseEvaluation(account, ClauseStatus.BROKEN, account.reason)
        case None:
            return ClauseEvaluation(account, ClauseStatus.UNCHECKED, f"{account.reason}: {unchecked_reason}")
        case Status.SKIPPED:
            return ClauseEvaluation(account, ClauseStatus.UNANSWERED, f"{account.reason}: nothing to measure")
    return ClauseEvaluation(account, ClauseStatus.UNANSWERED, f"{account.reason}: the check had no result")


# Data of one product's page, and the product's state.

Key = tuple[str, str, str]


class ProductState(StrEnum):
    """State of a product, worst first. Unknown is never fine."""

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
    """One object: its schema, the evaluation of its clauses, its check results, and its agreements.

    `past` are the earlier results of each clause by its path, see `past_by_clause`, and `limits` are the
    values that the contract allows, also by path.
    """

    object: SchemaObject
    clauses: tuple[ClauseEvaluation, ...]
    quality: ObjectQuality
    agreements: tuple[AgreementStanding, ...] = ()
    past: Mapping[str, tuple[PastResult | None, ...]] = field(default_factory=dict)
    limits: Mapping[str, str] = field(default_factory=dict)


# Without slots, which cached properties need.
@dataclass(frozen=True)
class ProductFacts:
    """A readable product. `wrong` are the problems of invalid SLOs.

    `placed` are the partitions outside of their table's folder, by contract key and server; `tables` are the
    tables of catalogs by location. `upstream` are the last cycles of its inputs by contract key and object,
    if a delivery since yesterday was not on time.
    """

    card: ContractCard
    contract: Contract
    now: datetime
    promises: tuple[SloCompliance, ...]
    wrong: tuple[Problem, ...]
    objects: tuple[ObjectFacts, ...]
    incidents: tuple[IncidentFacts, ...]
    made_from: tuple[Edge, ...]
    used_by: tuple[Edge, ...]
    consumers: tuple[ConsumerFacts, ...]
    versions: VersionHistory
    tick: timedelta
    complete_through: tuple[CompleteThrough, ...] = ()
    placed: Mapping[tuple[str, str], PlacedElsewhere] = field(default_factory=dict)
    tables: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    upstream: Mapping[tuple[str, str], Sequence[CycleRecord]] = field(default_factory=dict)

    def evaluated_until(self, promise: SloCompliance) -> datetime | None:
        """Return until when the evaluations of an SLO are complete, or None if nothing is evaluated.

        That is two ticks of the watcher after the next cycle would be missing; it is in the past if the
        watcher does not run.
        """
        last = newest_evaluated(promise, self.now)
        if last is None:
            return None
        following = next(iter(promise.slo.schedule.after(last.cycle.due_at)), None)
        return following.at + promise.slo.grace + 2 * self.tick if following else None

    @property
    def in_force(self) -> bool:
        """True if the contract's status puts its promises in force."""
        return self.contract.status not in NOT_IN_FORCE

    @cached_property
    def open_incidents(self) -> tuple[IncidentFacts, ...]:
        return tuple(facts for facts in self.incidents if not facts.incident.state.is_closed)

    @cached_property
    def state(self) -> ProductState:
        return state(self)


@dataclass(frozen=True, slots=True)
class ConsumerFacts:
    """A subscription with its approval, or None if that is unknown."""

    subscription: Subscription
    approval: Approval | None = None


@dataclass(frozen=True, slots=True)
class ProductBatch:
    """Data loaded for many products at once, by their keys."""

    histories: Mapping[Key, list[CycleRecord]]
    quality: Mapping[tuple[str, str], ObjectQuality]
    incidents: Mapping[str, Sequence[IncidentFacts]]
    complete_through: Mapping[tuple[str, str], CompleteThrough]
    placed: Mapping[tuple[str, str], PlacedElsewhere]
    tables: Mapping[str, tuple[str, ...]]
    agreements: Mapping[tuple[str, str], Sequence[AgreementStanding]]
    warnings: Mapping[Key, WarningStanding]
    upstream: Mapping[tuple[str, str], Sequence[CycleRecord]] = field(default_factory=dict)


def product(
    card: ContractCard,
    contract: Contract,
    batch: ProductBatch,
    now: datetime,
    neighbours: ContractSet,
    edges: Edges,
    consumers: Sequence[ConsumerFacts] = (),
    versions: VersionHistory = NOT_ASKED,
    tick: timedelta = timedelta(minutes=15),
) -> ProductFacts:
    """Return the data of one product as of an instant."""
    ready: list[Slo] = []
    wrong: list[Problem] = []
    if contract.status not in NOT_IN_FORCE:
        ready, findings = slos.read_slos(contract)
        wrong = [Problem.from_finding(finding) for finding in dict.fromkeys(findings)]
    return ProductFacts(
        card,
        contract,
        now,
        tuple(
            slo_compliance(slo, batch.histories.get(slo.key, []), now, batch.warnings.get(slo.key))
            for slo in ready
        ),
        tuple(wrong),
        tuple(_object(contract, schema_object, batch, neighbours) for schema_object in contract.objects),
        tuple(batch.incidents.get(contract.key, ())),
        edges[0],
        edges[1],
        tuple(consumers),
        versions,
        tick,
        tuple(
            batch.complete_through.get(pair) or CompleteThrough(*pair, DeliveryState.UNWATCHED)
            for pair in dict.fromkeys((contract.key, slo.object.name) for slo in ready)
        ),
        batch.placed,
        batch.tables,
        batch.upstream,
    )


def _object(
    contract: Contract, schema_object: SchemaObject, batch: ProductBatch, neighbours: ContractSet
) -> ObjectFacts:
    clauses = expected_clauses(contract, schema_object, built_in(), neighbours)
    covered = {path: clause.path for clause in reversed(clauses) for path in clause.covers}
    quality = batch.quality.get((contract.key, schema_object.name), NO_QUALITY)
    accounted, name_at = clause_coverage(contract, schema_object, clauses), clause_namer(schema_object)
    evaluations = clause_evaluations(accounted, covered, quality.newest, contract.version, name_at)
    agreements = batch.agreements.get((contract.key, schema_object.name), ())
    past = past_by_clause(accounted, covered, quality.past, contract.version, name_at)
    limits = {path: clause.allowed for clause in reversed(clauses) for path in clause.paths}
    return ObjectFacts(schema_object, tuple(evaluations), quality, tuple(agreements), past, limits)


def past_by_clause(
    accounts: Sequence[ClauseCoverage],
    answered_by: Mapping[str, str],
    past: Sequence[PastResult],
    version: str,
    name_at: Callable[[str], str],
) -> dict[str, tuple[PastResult | None, ...]]:
    """Return the past results of each clause by its path, oldest first.

    There is one for each checked partition, and for each run of another scope.

    None where the clause was not checked. Results with a name are found by it in every version of the
    contract, others by their path in this version. Of one run, the worst result of a clause counts.
    """
    times: dict[str, datetime] = {}
    by_key: dict[str, dict[str, PastResult]] = {}
    for result in past:
        # Each run of a whole table is checked data of its own.
        scope = result.scope if result.partition else f"{result.scope} {result.at:%FT%T}"
        times[scope] = (partition_time(result.partition) if result.partition else None) or result.at
        if not result.name and result.version != version:
            continue
        of_scope = by_key.setdefault(result.name or result.clause, {})
        earlier = of_scope.get(scope)
        if (
            earlier is None
            or earlier.at != result.at
            or _WORST.index(result.status) < _WORST.index(earlier.status)
        ):
            of_scope[scope] = result
    scopes = sorted(times, key=lambda scope: times[scope])
    by_path = {}
    for account in accounts if by_key else ():
        paths = [path for path in (account.path, answered_by.get(account.path)) if path]
        names = [key for path in paths for key in (name_at(path), path)]
        of_scope = next((by_key[key] for key in names if key in by_key), {})
        if of_scope:
            by_path[account.path] = tuple(of_scope.get(scope) for scope in scopes)
    return by_path


def state(facts: ProductFacts) -> ProductState:
    """Return the worst state of its data and deliveries."""
    if not facts.in_force:
        return ProductState.RESTING
    return next((word for word, holds in _STATE_CONDITIONS if holds(facts)), ProductState.FINE)


def _breaks_quality(facts: ProductFacts) -> bool:
    has_incident = any(open_incident.incident.key.group == GROUP for open_incident in facts.open_incidents)
    return has_incident or _newest_has(facts, Status.FAIL)


def _newest_has(facts: ProductFacts, status: Status) -> bool:
    lines = (line for object_facts in facts.objects for line in object_facts.quality.newest)
    return any(line.status is status and Severity(line.severity).blocks for line in lines)


def _late(facts: ProductFacts) -> bool:
    missing = (
        record
        for promise in facts.promises
        for record in promise.cycles
        if record.status is CycleStatus.MISSING
    )
    return any(missing) or any(_last(promise, facts.now) is CycleStatus.NEVER for promise in facts.promises)


def _unknown(facts: ProductFacts) -> bool:
    """Return True if an SLO is invalid or not evaluated, or a check had no result."""
    unjudged = any(_last(promise, facts.now) in _UNJUDGED for promise in facts.promises)
    overdue = any(
        until is not None and until <= facts.now for until in map(facts.evaluated_until, facts.promises)
    )
    return bool(facts.wrong) or unjudged or overdue or _newest_has(facts, Status.ERROR)


def _spent(facts: ProductFacts) -> bool:
    """Return True if an error budget is exhausted, or any incident is open."""
    return bool(facts.open_incidents) or any(promise.budget.is_exhausted for promise in facts.promises)


def _unchecked(facts: ProductFacts) -> bool:
    """Return True if enforceable clauses were never checked in this version."""
    return any(
        clause.status is ClauseStatus.UNCHECKED
        for object_facts in facts.objects
        for clause in object_facts.clauses
    )


def _promises_nothing(facts: ProductFacts) -> bool:
    idle = all(
        clause.status is ClauseStatus.DOCUMENTED
        for object_facts in facts.objects
        for clause in object_facts.clauses
    )
    return not facts.promises and idle


def newest_evaluated(promise: SloCompliance, now: datetime) -> CycleRecord | None:
    """Return the newest evaluated cycle that was due, or None. A cycle may be excluded before it is due."""
    judged = (record for record in reversed(promise.cycles) if record.status not in _AHEAD)
    return next((record for record in judged if record.cycle.due_at <= now), None)


def _last(promise: SloCompliance, now: datetime) -> CycleStatus | None:
    record = newest_evaluated(promise, now)
    return record.status if record else None


# A cycle withdrawn while the contract was not in force is no evidence once it is in force.
_UNJUDGED = (None, CycleStatus.UNKNOWN, CycleStatus.WITHDRAWN)
_AHEAD = (CycleStatus.SCHEDULED, CycleStatus.PENDING)
_STATE_CONDITIONS: tuple[tuple[ProductState, Callable[[ProductFacts], bool]], ...] = (
    (ProductState.BROKEN, _breaks_quality),
    (ProductState.LATE, _late),
    (ProductState.UNKNOWN, _unknown),
    (ProductState.SPENT, _spent),
    (ProductState.RESTING, _promises_nothing),
    (ProductState.UNCHECKED, _unchecked),
)


# One sentence that answers "may I use it now?".


@dataclass(frozen=True, slots=True)
class UseAnswer:
    """Answer to "may I use it now?".

    `word` is `Yes.`, `With care:`, `Not yet:` or `Not known:`, and `text` the reason. `incident` is the id of
    the open incident that explains it, or "".
    """

    word: str
    text: str
    incident: str = ""


def may_use_now(facts: ProductFacts) -> UseAnswer:
    """Return the answer for a consumer, from the state, the newest deliveries and the newest checks."""
    why, _ = _why(facts)
    if facts.state is ProductState.RESTING:
        return UseAnswer("Not known:", f"{why}, so nothing is monitored.")
    if facts.state is ProductState.UNKNOWN:
        return UseAnswer("Not known:", f"{why.rstrip('.')}.")
    incident = _first_incident(facts).id if facts.open_incidents else ""
    delivery, checks = _delivery_text(facts), _checks_text(facts)
    overdue = [
        promise
        for promise in facts.promises
        if _last(promise, facts.now) in (CycleStatus.MISSING, CycleStatus.NEVER)
    ]
    if overdue:
        newest = newest_evaluated(overdue[0], facts.now)
        due = local_time(overdue[0].slo, newest.cycle.due_at) if newest else ""
        broken = f"; {_broken_text(facts)}" if facts.state is ProductState.BROKEN else ""
        return UseAnswer(
            "Not yet:", f"the delivery due {due} is missing{broken}{_newest_arrival(overdue[0])}.", incident
        )
    reasons: dict[ProductState, Callable[[ProductFacts], str]] = {
        ProductState.BROKEN: _broken_text,
        ProductState.LATE: lambda facts: f"an earlier delivery is missing: {_why(facts)[0]}",
        ProductState.SPENT: lambda facts: _why(facts)[0],
        ProductState.UNCHECKED: _unchecked_reason,
        ProductState.FINE: lambda facts: _excused(facts) or _unchecked_delivery(facts),
    }
    reason = reasons[facts.state](facts).rstrip(".")
    checks = f"{checks}." if checks and facts.state in (ProductState.FINE, ProductState.SPENT) else ""
    word = "With care:" if reason else "Yes."
    sentences = (f"{reason}." if reason else "", delivery, checks)
    return UseAnswer(word, " ".join(text for text in sentences if text), incident)


def _unchecked_delivery(facts: ProductFacts) -> str:
    """Return a note if the newest delivery arrived after the last check of its object, "" otherwise."""
    checked = {object_facts.object.name: object_facts.quality.checked_at for object_facts in facts.objects}
    for promise in facts.promises:
        checked_at = checked.get(promise.slo.object.name)
        newest = newest_evaluated(promise, facts.now)
        arrived_at = newest.delivered_at if newest else None
        if checked_at is not None and arrived_at is not None and checked_at < arrived_at:
            return "the newest delivery has not been checked yet"
    return ""


def _newest_arrival(promise: SloCompliance) -> str:
    """Return the newest delivery that arrived as a part of a sentence, "" without one."""
    last = next((record for record in reversed(promise.cycles) if record.delivered_at is not None), None)
    return (
        f"; the newest data is of the delivery due {local_time(promise.slo, last.cycle.due_at)}"
        if last
        else ""
    )


def _delivery_text(facts: ProductFacts) -> str:
    """Return when the newest delivery of any SLO arrived, as a sentence, "" without one."""
    newest = [
        (record.cycle.due_at, promise, record)
        for promise in facts.promises
        if (record := newest_evaluated(promise, facts.now)) is not None and record.delivered_at is not None
    ]
    if not newest:
        return ""
    _, promise, record = max(newest, key=lambda entry: entry[0])
    assert record.delivered_at is not None
    due, arrived = (local_time(promise.slo, moment) for moment in (record.cycle.due_at, record.delivered_at))
    # On the same day, its time says enough.
    arrived = arrived[11:] if arrived[:10] == due[:10] else arrived
    gap = record.delivered_at - record.cycle.due_at
    side = "early" if gap < timedelta(0) else "after due, within grace" if record.status.good else "late"
    on_time = f"{format_duration(gap)} {side}" if gap else "on time"
    return f"The delivery due {due} arrived at {arrived}, {on_time}."


def _checks_text(facts: ProductFacts) -> str:
    """Return how many of the newest checks passed, "" without any. Skipped ones are left out."""
    lines = [line for object_facts in facts.objects for line in object_facts.quality.newest]
    counted = [line for line in lines if line.status is not Status.SKIPPED]
    if not counted:
        return ""
    passed = sum(line.status is Status.PASS for line in counted)
    scopes = dict.fromkeys("the table" if line.scope == TABLE else line.scope for line in counted)
    where = f" of {next(iter(scopes))}" if len(scopes) == 1 else ""
    if passed == len(counted):
        return "Its check passed" + where if passed == 1 else f"All {passed:,} checks{where} passed"
    return f"{passed:,} of {len(counted):,} checks{where} passed; those that did not are warnings"


def _broken_text(facts: ProductFacts) -> str:
    """Return the worst of the newest failed checks, or the title of the incident of the data."""
    failed = [
        line
        for object_facts in facts.objects
        for line in object_facts.quality.lines
        if line.status is Status.FAIL
    ]
    if not failed:
        return _first_incident(facts).title
    worst = max(failed, key=lambda line: (line.severity.blocks, line.at, line.severity.rank))
    name = f"{worst.property} {worst.check}".strip()
    suffix = f", and {pluralize(len(failed) - 1, 'more check')} failed" if len(failed) > 1 else ""
    where = "" if worst.scope == TABLE else f" in {worst.scope}"
    return f"{name} fails{where}: {observed_and_expected(worst.observed, worst.allowed)}{suffix}"


# Summary of a product for lists, cached between builds.

_NEARLY_SPENT = 0.8
"""Used share of an error budget from which it counts as nearly spent."""


@dataclass(frozen=True, slots=True)
class ProductSummary:
    """Summary of one product in lists.

    `why` is the reason of its state in one line; `good` and `bad` count cycles of all its SLOs in their
    windows; `spent` names each SLO whose budget is exhausted or nearly so. `clauses` and `enforced` count
    clauses on schema and data. `warnings` are the numbers of true, false and missed early warnings, or empty
    without any. `at_risk` names each delivery with an open early warning. `since` is the start of the open
    incident, or the due time of the newest miss. `slos` are (id, objective, good, bad) of each SLO with
    counted cycles, and `days` its deliveries by day, see `encode_days`. `names_inputs`: its page may say
    which inputs were late, because a delivery since yesterday was not on time. Instants are ISO 8601 in UTC.
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
    open_incidents: int = 0
    valid_until: str = ""
    warnings: tuple[int, ...] = ()
    at_risk: tuple[str, ...] = ()
    slos: tuple[Sequence[Any], ...] = ()
    days: str = ""
    names_inputs: bool = False

    def as_json(self) -> tuple[Any, ...]:
        """As JSON values, in the order of the fields."""
        return astuple(self)


def load_summary(row: list[Any]) -> ProductSummary:
    """Return a summary from its JSON values. Raises TypeError if they are invalid."""
    values: list[Any] = [tuple(value) if type(value) is list else value for value in row]
    return ProductSummary(*values)


def summary(facts: ProductFacts) -> ProductSummary:
    """Return the summary of a readable product."""
    why, since = _why(facts)
    budgets = [promise.budget for promise in facts.promises]
    accounts = [clause.account for object_facts in facts.objects for clause in object_facts.clauses]
    return ProductSummary(
        facts.state.value,
        why,
        since.isoformat() if since else "",
        sum(budget.good for budget in budgets),
        sum(budget.bad for budget in budgets),
        sum(budget.is_exhausted for budget in budgets),
        tuple(
            f"{promise.slo.id}: {promise.budget.as_text()}"
            for promise in facts.promises
            if _nearly_spent(promise.budget)
        ),
        len(accounts),
        sum(account.state is EnforcementState.ENFORCED for account in accounts),
        len(facts.open_incidents),
        valid_until(facts).isoformat(),
        _warning_counts(facts),
        tuple(_at_risk(facts)),
        tuple(
            (promise.slo.id, float(promise.slo.objective), promise.budget.good, promise.budget.bad)
            for promise in facts.promises
            if promise.budget.attainment is not None
        ),
        encode_days((promise.cycles for promise in facts.promises), facts.now),
        any(_has_recent_miss(promise, facts.now) for promise in facts.promises),
    )


def _has_recent_miss(promise: SloCompliance, now: datetime) -> bool:
    return any(is_recent_miss(record, now) for record in promise.cycles)


def _at_risk(facts: ProductFacts) -> Iterator[str]:
    """Yield a line for each delivery with an open early warning."""
    for promise in facts.promises:
        for warning in promise.warnings.at_risk if promise.warnings is not None else ():
            assert warning.warned_at is not None
            due, since, breach = (
                local_time(promise.slo, moment)
                for moment in (warning.due_at, warning.warned_at, warning.breach_at)
            )
            yield f"{promise.slo.id}: due {due}, at risk since {since}, breach at {breach}"


def _warning_counts(facts: ProductFacts) -> tuple[int, ...]:
    counts = sum((promise.warnings.counts for promise in facts.promises if promise.warnings), WarningCounts())
    return (counts.true, counts.false, counts.missed) if counts != WarningCounts() else ()


def _nearly_spent(budget: Any) -> bool:
    if not budget.bad or budget.first_miss_at is None:
        return bool(budget.bad)
    return bool(budget.is_exhausted or (budget.used is not None and budget.used >= _NEARLY_SPENT))


def _why(facts: ProductFacts) -> tuple[str, datetime | None]:
    """Return the reason of the state in one line, and since when, or None if unknown."""
    match facts.state:
        case ProductState.BROKEN | ProductState.LATE if facts.open_incidents:
            first = _first_incident(facts)
            return first.title, first.opened_at
        case ProductState.BROKEN:
            failed = [
                line
                for object_facts in facts.objects
                for line in object_facts.quality.newest
                if line.status is Status.FAIL
            ]
            check_name = f"{failed[0].property} {failed[0].check}".strip()
            suffix = f" and {len(failed) - 1} more" if len(failed) > 1 else ""
            return f"{check_name} fails in {failed[0].scope}{suffix}", failed[0].at
        case ProductState.LATE:
            missed = _missed(facts)
            return f"{missed[0].cycle.slo} is missing", missed[0].cycle.due_at
        case ProductState.UNKNOWN:
            return _unknown_reason(facts), None
        case ProductState.SPENT if facts.open_incidents:
            first = facts.open_incidents[0].incident
            return first.title, first.opened_at
        case ProductState.SPENT:
            spent = next(promise for promise in facts.promises if promise.budget.is_exhausted)
            return f"{spent.slo.id}: {spent.budget.as_text()}", None
        case ProductState.UNCHECKED:
            return _unchecked_reason(facts), None
        case ProductState.RESTING if not facts.in_force:
            return f"the contract is {facts.contract.status}", None
        case ProductState.RESTING:
            return "no delivery SLO and no enforced clause", None
        case ProductState.FINE:
            return _excused(facts), None
    return "", None


def _excused(facts: ProductFacts) -> str:
    """Return a note if one of its newest deliveries was excluded, so that the data is older than promised."""
    newest = (newest_evaluated(promise, facts.now) for promise in facts.promises)
    excused = [
        record.cycle.slo for record in newest if record is not None and record.status is CycleStatus.EXCUSED
    ]
    return f"the newest delivery of {excused[0]} was excused" if excused else ""


def _unchecked_reason(facts: ProductFacts) -> str:
    """Return the reason for UNCHECKED."""
    clauses = [
        clause
        for object_facts in facts.objects
        for clause in object_facts.clauses
        if clause.status is ClauseStatus.UNCHECKED
    ]
    if all(object_facts.quality.checked_at is None for object_facts in facts.objects):
        return "data never checked"
    lines = (line for object_facts in facts.objects for line in object_facts.quality.newest)
    if not any(line.version == facts.contract.version for line in lines):
        return f"data not checked since version {facts.contract.version}"
    subject = "data clause" if len(clauses) == 1 else "data clauses"
    return f"{len(clauses):,} {subject} never checked"


def _first_incident(facts: ProductFacts) -> Incident:
    """Return the open incident that explains the state: of the data if it is broken, else of a delivery."""
    is_quality = facts.state is ProductState.BROKEN
    incidents = [item.incident for item in facts.open_incidents]
    return next(
        (incident for incident in incidents if (incident.key.group == GROUP) is is_quality), incidents[0]
    )


def _missed(facts: ProductFacts) -> Sequence[Any]:
    missed_statuses = (CycleStatus.MISSING, CycleStatus.NEVER)
    return [
        record
        for promise in facts.promises
        for record in reversed(promise.cycles)
        if record.status in missed_statuses
    ]


def _unknown_reason(facts: ProductFacts) -> str:
    if facts.wrong:
        return facts.wrong[0].message
    for promise in facts.promises:
        last, until = newest_evaluated(promise, facts.now), facts.evaluated_until(promise)
        if last is None or last.status is CycleStatus.WITHDRAWN:
            return f"{promise.slo.id} not evaluated yet"
        if last.status is CycleStatus.UNKNOWN:
            return last.reason or f"{promise.slo.id} could not be evaluated"
        if until is not None and until <= facts.now:
            return (
                f"{promise.slo.id} last evaluated for {last.cycle.due_at:%Y-%m-%d %H:%M} UTC; later "
                "deliveries were due"
            )
    errors = [
        line
        for object_facts in facts.objects
        for line in object_facts.quality.newest
        if line.status is Status.ERROR
    ]
    return errors[0].message if errors else "could not be evaluated"


_DAY = timedelta(days=1)


def valid_until(facts: ProductFacts) -> datetime:
    """Return until when the page stays correct without new data: a miss leaves a window, a cycle is due."""
    now, times = facts.now, [facts.now + timedelta(days=1)]
    for promise in facts.promises:
        for record in promise.cycles:
            breach = record.cycle.breach_at
            times += [
                instant
                for instant in (breach, breach + promise.slo.window, breach + 2 * promise.slo.window)
                if instant > now
            ]
        following = next(iter(promise.slo.schedule.after(now)), None)
        times += [following.at] if following else []
        if _has_recent_miss(promise, now):
            # Misses of yesterday leave the page, and those of today become those of yesterday.
            times.append(day_start(promise.slo, now + _DAY))
        until = facts.evaluated_until(promise)
        times += [until] if until is not None and until > now else []
    return min(times)
