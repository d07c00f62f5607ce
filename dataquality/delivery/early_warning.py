"""Early warnings: the decision when a delivery is at risk before its breach, its storage and its events.

A delivery is at risk when, by its own history, it should have come and neither it nor its inputs are there.
The decision is made once for each cycle, before it is due, and stored with its reason.

The time of the warning is a conformal bound. Each earlier delivery is compared with the time that was
expected then, the median of the deliveries before it. A warning is false if the data comes later than the
warning and still before the breach. If the next delivery is exchangeable with n earlier ones, the probability
that it exceeds the (k+1)-th largest of their deviations is at most (k+1)/(n+1) (Vovk, Gammerman and Shafer,
Algorithmic Learning in a Random World, 2005, section 2.2). The largest k is taken for which this keeps the
budget. Histories change, so the budget is also a limit: no warning is sent while it is used up.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from math import floor, inf
from statistics import fmean
from typing import Any

import sqlalchemy as sa

from dq.contracts.incident import AT_RISK, Breach, CycleStatus, IncidentKey, Recovery, Resolution
from dq.contracts.model import Contract
from dq.contracts.outcome import Severity
from dq.contracts.schedule.calendar import load_zone
from dq.contracts.slo import MAX_COMPARED_CYCLES, Cycle, FalseWarnings, Slo
from dq.dataquality.delivery import cycle_store, tables
from dq.dataquality.delivery.cycle import SETTLE, CycleEvaluation, CycleRecord, CycleVerdict, WatchTarget
from dq.dataquality.delivery.cycle_store import EmitEvent
from dq.dataquality.delivery.notify import (
    arrival_text,
    closing_event,
    expected_label,
    local_and_utc,
    outcome_text,
    promise_text,
)
from dq.dataquality.delivery.tables import Key, chunks, cycle_warning, matches_key
from dq.dataquality.delivery.tables import cycle as cycles_table
from dq.store.engine import Store

# The decision, a pure function of the history.

MIN_DELIVERIES = 20
"""Minimum number of earlier deliveries; most budgets need more."""
MIN_LEAD = timedelta(minutes=5)
"""Minimum time between the warning and the breach."""
_RECENT, _MIN_RECENT = 8, 4
"""Number of deliveries whose median is the expected time, and the minimum for a season's own."""
_SEASON_GAIN = 0.8
"""A season counts if its mean deviation is below this share of that without a season."""
_MINUTE = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class PastCycle:
    """A cycle whose outcome is known. `lateness` is delivery minus due, or None if nothing came yet."""

    due_at: datetime
    lateness: timedelta | None


@dataclass(frozen=True, slots=True)
class WarningPlan:
    """Decision on one cycle: when to warn, or None for the `reason`. `deliveries` were compared."""

    warn_at: datetime | None
    reason: str
    deliveries: int = 0


def plan_warning(
    history: Sequence[PastCycle], due_at: datetime, breach_at: datetime, budget: FalseWarnings, zone: str
) -> WarningPlan:
    """Return when to warn of a cycle: the earliest time that keeps the budget of false warnings.

    Args:
        history: Earlier cycles with a known outcome, oldest first.
        due_at: Due instant of the cycle.
        breach_at: Breach instant of the cycle.
        budget: How many warnings may be false.
        zone: IANA zone of the schedule, for weekdays and months.
    """
    delivered = sum(past.lateness is not None for past in history)
    if delivered < MIN_DELIVERIES:
        return WarningPlan(
            None, f"{delivered} of {MIN_DELIVERIES} deliveries that a warning needs", delivered
        )
    span = history[-1].due_at - history[0].due_at
    share = budget.number * span / budget.period / (len(history) - 1)
    grace = (breach_at - due_at).total_seconds()
    timezone = load_zone(zone)
    lateness = [past.lateness.total_seconds() if past.lateness is not None else None for past in history]
    days = [past.due_at.astimezone(timezone) for past in history]
    fits = [
        _fit(lateness, grace, season, list(map(group_of, days)), group_of(due_at.astimezone(timezone)))
        for season, group_of in _SEASONS.items()
    ]
    best = min(fits[1:], key=lambda fit: fit.deviation)
    fit = best if best.deviation < _SEASON_GAIN * fits[0].deviation else fits[0]
    allowed = floor(share * (len(fit.scores) + 1)) - 1
    if allowed < 0:
        needed = floor(1 / share) + _MIN_RECENT
        reason = f"{len(history)} earlier cycles; {budget.text} needs about {needed:,}"
        if needed > MAX_COMPARED_CYCLES:
            reason += f", more than the {MAX_COMPARED_CYCLES} that are compared"
        return WarningPlan(None, reason, delivered)
    ranked = sorted(fit.scores, reverse=True)
    margin = ranked[allowed] if allowed < len(ranked) else -inf
    # Not before the usual time, also if most deliveries are late anyway; evidence can become visible late.
    offset = timedelta(seconds=fit.expected + max(margin, 0.0)) + SETTLE
    warn_at = due_at + -(-offset // _MINUTE) * _MINUTE
    if warn_at > breach_at - MIN_LEAD:
        return WarningPlan(None, f"no time before the breach keeps {budget.text}", delivered)
    return WarningPlan(warn_at, f"usual time by {len(history)} earlier cycles, {fit.season}", delivered)


@dataclass(frozen=True, slots=True)
class _Fit:
    """Deviations of the history from what was expected then, in seconds, and what is expected now.

    `scores` has the deviation of each cycle that came in time, and minus infinity for the others: a warning
    of them is not false. `deviation` is the mean absolute deviation.
    """

    season: str
    scores: list[float]
    expected: float
    deviation: float


def _fit(
    lateness: Sequence[float | None], grace: float, season: str, groups: Sequence[int], group: int
) -> _Fit:
    """Compare each cycle with the expected time of its group, from the cycles before it.

    `groups` are those of the cycles, and `group` that of the next one.
    """
    overall: deque[float] = deque(maxlen=_RECENT)
    by_group: defaultdict[int, deque[float]] = defaultdict(lambda: deque(maxlen=_RECENT))
    scores: list[float] = []
    for seconds, group_of_cycle in zip(lateness, groups, strict=True):
        same = by_group[group_of_cycle]
        if len(overall) >= _MIN_RECENT:
            is_in_time = seconds is not None and seconds <= grace
            scores.append(seconds - _expected(same, overall) if is_in_time and seconds is not None else -inf)
        if seconds is not None:
            overall.append(seconds)
            same.append(seconds)
    deviations = [abs(score) for score in scores if score != -inf]
    expected = _expected(by_group[group], overall)
    return _Fit(season, scores, expected, fmean(deviations) if deviations else inf)


def _expected(same: Collection[float], overall: Collection[float]) -> float:
    """Return the median of the group, or of all if the group has too few; the later one of two in the
    middle.
    """
    ordered = sorted(same if len(same) >= _MIN_RECENT else overall)
    return ordered[len(ordered) // 2]


def _part_of_month(local: datetime) -> int:
    """Return 0 for the first day of a month, 2 for the last and 1 for the others."""
    return 0 if local.day == 1 else 1 + ((local + timedelta(days=1)).day == 1)


_SEASONS: Mapping[str, Callable[[datetime], int]] = {
    "all days alike": lambda _: 0,
    "by weekday": datetime.weekday,
    "by first, last and other days of the month": _part_of_month,
}


# Stored decisions: one row for each cycle, written once.


@dataclass(frozen=True, slots=True)
class StoredWarning:
    """The stored decision on one cycle.

    `warned_at` is when its warning was recorded, and `closed_at` when that ended: the data came, or the
    breach took its place.
    """

    key: Key
    due_at: datetime
    breach_at: datetime
    budget: str
    planned_at: datetime
    warn_at: datetime | None
    reason: str
    warned_at: datetime | None = None
    closed_at: datetime | None = None

    @property
    def is_open(self) -> bool:
        return self.warned_at is not None and self.closed_at is None


_COLUMNS = (
    "due_at", "breach_at", "budget", "planned_at", "warn_at", "reason", "warned_at", "closed_at",
)  # fmt: skip


def _from_row(row: sa.Row[Any]) -> StoredWarning:
    key = (row.contract, row.object, row.slo)
    return StoredWarning(key, **{name: getattr(row, name) for name in _COLUMNS})


def stored_warnings(
    tx: sa.Connection, contracts: Collection[str], *conditions: sa.ColumnElement[bool]
) -> list[StoredWarning]:
    """Return the stored decisions of these contracts that meet the conditions, by due time."""
    query = sa.select(cycle_warning).where(*conditions).order_by(cycle_warning.c.due_at)
    rows = (
        row
        for chunk in chunks(sorted(set(contracts)))
        for row in tx.execute(query.where(cycle_warning.c.contract.in_(chunk)))
    )
    return [_from_row(row) for row in rows]


def is_open() -> sa.ColumnElement[bool]:
    """Return the condition that a warning was sent and has not ended."""
    return sa.and_(cycle_warning.c.warned_at.is_not(None), cycle_warning.c.closed_at.is_(None))


def past_cycles(tx: sa.Connection, key: Key, before: datetime) -> list[PastCycle]:
    """Return the newest cycles of an SLO that were due before an instant and whose outcome is known, oldest
    first.
    """
    columns = cycles_table.c
    decided_statuses = [status for status in CycleStatus if status.good or status.bad]
    query = (
        sa.select(columns.due_at, columns.delivered_at)
        .where(matches_key(cycles_table, key), columns.due_at < before, columns.status.in_(decided_statuses))
        .order_by(columns.due_at.desc())
        .limit(MAX_COMPARED_CYCLES)
    )
    rows = tx.execute(query).all()
    return [
        PastCycle(due_at, delivered_at - due_at if delivered_at is not None else None)
        for due_at, delivered_at in reversed(rows)
    ]


MAX_PLANS = 1_000
"""Number of decisions in one tick; those of the other cycles follow in the next ones."""


@dataclass(frozen=True, slots=True)
class WatchedWarning:
    """A stored decision with its SLO and its cycle."""

    target: WatchTarget
    cycle: Cycle
    stored: StoredWarning


@dataclass(frozen=True, slots=True)
class CyclesToWarn:
    """The cycles that can be warned of: those with a stored decision, and those to decide on."""

    decided: Sequence[WatchedWarning]
    undecided: Sequence[tuple[Slo, Cycle]]


def cycles_to_warn(store: Store, targets: Iterable[WatchTarget], now: datetime) -> CyclesToWarn:
    """Return the cycles that can be warned of: those that are due and before their breach, and the next one.

    Cycles with an open warning are included, whatever their SLO says now.
    """
    by_key = {target.slo.key: target for target in targets}
    columns, contracts = cycle_warning.c, {key[0] for key in by_key}
    with store.read() as tx:
        relevant = sa.or_(columns.breach_at > now, is_open())
        stored = {(entry.key, entry.due_at): entry for entry in stored_warnings(tx, contracts, relevant)}
    cycles = {
        (cycle.key, cycle.due_at): cycle
        for target in by_key.values()
        if target.slo.false_warnings
        for cycle in next_cycles(target.slo, now)
    }
    undecided = [
        (by_key[cycle.key].slo, cycle)
        for key, cycle in cycles.items()
        if not _is_decided(stored.get(key), by_key[cycle.key].slo, cycle)
    ]
    undecided.sort(key=lambda pair: pair[1].breach_at)
    # Decisions by earlier terms do not count.
    for _, cycle in undecided:
        stored.pop((cycle.key, cycle.due_at), None)
    decided = []
    for (key, due_at), entry in stored.items():
        stored_cycle = cycles.get((key, due_at))
        if stored_cycle is None and entry.is_open and key in by_key:
            stored_cycle = next(iter(by_key[key].slo.cycles(due_at - timedelta.resolution, due_at)), None)
        if stored_cycle is not None:
            decided.append(WatchedWarning(by_key[key], stored_cycle, entry))
    return CyclesToWarn(decided, undecided)


def decide(store: Store, undecided: Sequence[tuple[Slo, Cycle]], now: datetime) -> None:
    """Decide on the cycles with the earliest breaches. Called when this tick's outcomes are stored."""
    if not undecided:
        return
    with store.read() as tx:
        decisions = [_decide(tx, slo, cycle, now) for slo, cycle in undecided[:MAX_PLANS]]
    with store.write() as tx:
        _save(tx, decisions)


def next_cycles(slo: Slo, now: datetime) -> Iterator[Cycle]:
    """Yield the cycles of an SLO that are due and before their breach, and the next one that counts."""
    upcoming = next(iter(slo.schedule.after(now)), None)
    for cycle in slo.cycles(now - slo.grace - timedelta.resolution, upcoming.at if upcoming else now):
        if not cycle.excuse and cycle.breach_at > now:
            yield cycle


def _is_decided(entry: StoredWarning | None, slo: Slo, cycle: Cycle) -> bool:
    if entry is None:
        return False
    # A decision is made again if the terms have changed since, unless it has already warned.
    is_same = slo.false_warnings is not None and entry.budget == slo.false_warnings.text
    return entry.warned_at is not None or (is_same and entry.breach_at == cycle.breach_at)


def _decide(tx: sa.Connection, slo: Slo, cycle: Cycle, now: datetime) -> StoredWarning:
    budget = slo.false_warnings
    assert budget is not None
    history = past_cycles(tx, slo.key, cycle.due_at)
    plan = plan_warning(history, cycle.due_at, cycle.breach_at, budget, slo.schedule.timezone)
    return StoredWarning(slo.key, cycle.due_at, cycle.breach_at, budget.text, now, plan.warn_at, plan.reason)


def _save(tx: sa.Connection, decisions: Iterable[StoredWarning]) -> None:
    for entry in decisions:
        same = _matches(entry)
        stored = tx.execute(sa.select(cycle_warning.c.warned_at).where(same)).first()
        # Another watcher may have decided, or warned, meanwhile.
        if stored is None:
            tx.execute(sa.insert(cycle_warning).values(_values(entry)))
        elif stored.warned_at is None:
            tx.execute(sa.update(cycle_warning).where(same).values(_values(entry)))


def _values(entry: StoredWarning) -> dict[str, object]:
    return dict(zip(tables.KEY, entry.key, strict=True)) | {name: getattr(entry, name) for name in _COLUMNS}


def _matches(entry: StoredWarning) -> sa.ColumnElement[bool]:
    return sa.and_(matches_key(cycle_warning, entry.key), cycle_warning.c.due_at == entry.due_at)


def next_evaluations(
    tx: sa.Connection, contracts: Collection[str], slos: Iterable[Slo], now: datetime
) -> dict[str, list[datetime]]:
    """Return when contracts must be evaluated next because of early warnings, by contract.

    It is `now` if a decision is missing, or a warning is due or open.
    """
    relevant = sa.or_(cycle_warning.c.breach_at > now, is_open())
    stored = {(entry.key, entry.due_at): entry for entry in stored_warnings(tx, contracts, relevant)}
    times: dict[str, list[datetime]] = defaultdict(list)
    for entry in stored.values():
        if entry.is_open:
            times[entry.key[0]].append(now)
        elif entry.warn_at is not None and entry.warned_at is None:
            times[entry.key[0]].append(max(entry.warn_at, now))
    for slo in slos:
        if any(
            not _is_decided(stored.get((slo.key, cycle.due_at)), slo, cycle)
            for cycle in next_cycles(slo, now)
        ):
            times[slo.key[0]].append(now)
    return times


# Events: a warning, and its end. Each is recorded in the transaction that marks it as passed on.

Product = tuple[str, str]
"""Contract key and object name."""
InputsByProduct = Callable[[sa.Connection], Mapping[Product, Collection[Product]]]
_COMPARED = 20
"""Number of deliveries in the text of a warning."""
_UNKNOWN_FOR = timedelta(hours=24)


def is_absent(evaluation: CycleEvaluation) -> bool:
    """True if the evidence of a cycle before its breach was read and shows nothing, not even a beginning."""
    evidence = evaluation.evidence
    if evaluation.result.status not in (CycleStatus.SCHEDULED, CycleStatus.PENDING):
        return False
    return evidence is None or (
        evidence.readable and evidence.delivered_at is None and evidence.arriving is None
    )


def early_record(cycle: Cycle) -> CycleRecord:
    """Return a cycle that is not due yet, and so has no row in the store."""
    return CycleRecord(0, cycle, CycleStatus.SCHEDULED, "", None, None, notified=False, excuse=cycle.excuse)


def needs_probe(watched: WatchedWarning, now: datetime) -> bool:
    """True if a cycle that is not due yet must be observed: its warning is due, or open."""
    entry = watched.stored
    is_pending = entry.warned_at is None and entry.warn_at is not None and entry.warn_at <= now
    return watched.cycle.due_at > now and (is_pending or entry.is_open)


def emit_warnings(
    store: Store,
    watched: Sequence[WatchedWarning],
    evaluations: Iterable[CycleEvaluation],
    now: datetime,
    emit: EmitEvent,
    inputs_by_product: InputsByProduct,
    prepare: Callable[[Collection[Contract]], object],
    settle: Callable[[sa.Connection], object],
) -> tuple[WatchedWarning, ...]:
    """Emit the warnings that are due, and the ends of open ones. Returns the new warnings.

    Args:
        store: The state store.
        watched: The decisions, from `cycles_to_warn`.
        evaluations: Evaluations of this tick, of due cycles and of those for which `needs_probe` is true.
        now: The instant of the tick.
        emit: Receives the events, in the transaction that records them.
        inputs_by_product: Returns the declared inputs of each product.
        prepare: Called before the transaction if it may emit a warning.
        settle: Called in the transaction when all events are emitted.
    """
    by_cycle = {
        (evaluation.record.cycle.key, evaluation.record.cycle.due_at): evaluation
        for evaluation in evaluations
    }
    candidates = [
        (entry, evaluation)
        for entry in watched
        if entry.stored.warned_at is None
        and entry.stored.warn_at is not None
        and entry.stored.warn_at <= now < entry.cycle.breach_at
        and (evaluation := by_cycle.get((entry.cycle.key, entry.cycle.due_at))) is not None
        and is_absent(evaluation)
    ]
    open_warnings = [entry for entry in watched if entry.stored.is_open]
    if not candidates and not open_warnings:
        return ()
    if candidates:
        prepare(
            {entry.target.slo.contract.key: entry.target.slo.contract for entry, _ in candidates}.values()
        )
    with store.write() as tx:
        ended = [
            entry
            for entry in open_warnings
            if _end(tx, entry, by_cycle.get((entry.cycle.key, entry.cycle.due_at)), now, emit)
        ]
        inputs = inputs_by_product(tx) if candidates else {}
        warned = [entry for entry, _ in candidates if _warn(tx, entry, inputs, now, emit)]
        if ended or warned:
            settle(tx)
    return tuple(warned)


def _warn(
    tx: sa.Connection,
    watched: WatchedWarning,
    inputs: Mapping[Product, Collection[Product]],
    now: datetime,
    emit: EmitEvent,
) -> bool:
    """Record a warning and emit it, unless a reason against it is known only now."""
    slo, cycle, entry = watched.target.slo, watched.cycle, watched.stored
    budget = slo.false_warnings
    record = cycle_store.find_cycle(tx, cycle.key, cycle.due_at)
    if budget is None or (record is not None and record.status is not CycleStatus.PENDING):
        return False
    if _has_open_miss(tx, cycle.key):
        # The incident of the earlier delivery is open.
        return False
    states = {
        product: _is_input_there(tx, product, slo, cycle, now)
        for product in sorted(inputs.get((cycle.contract, cycle.object), ()))
    }
    input_states = [state for state in states.values() if state is not None]
    if input_states and all(input_states):
        return False
    if count_unproven(tx, cycle.key, now - budget.period) >= budget.number:
        reason = f"false warnings of {budget.text} are used up"
        tx.execute(sa.update(cycle_warning).where(_matches(entry)).values(warn_at=None, reason=reason))
        return False
    claim = sa.update(cycle_warning).where(_matches(entry), cycle_warning.c.warned_at.is_(None))
    if not tx.execute(claim.values(warned_at=now)).rowcount:
        return False
    recent = cycle_store.recent_deliveries(tx, cycle.key, cycle.due_at)
    emit(tx, _breach(slo, cycle, now, warning_text(slo, cycle, recent, states, now)))
    return True


def count_unproven(tx: sa.Connection, key: Key, since: datetime) -> int:
    """Return the number of warnings since an instant that were false or can still turn out so."""
    columns = cycles_table.c
    bad = [status for status in CycleStatus if status.bad]
    was_right = (
        sa.select(columns.id)
        .where(
            matches_key(cycles_table, tables.key_of(cycle_warning)),
            columns.due_at == cycle_warning.c.due_at,
            columns.status.in_(bad),
        )
        .exists()
    )
    query = sa.select(sa.func.count()).where(
        matches_key(cycle_warning, key), cycle_warning.c.warned_at > since, sa.not_(was_right)
    )
    return tx.scalar(query) or 0


def _has_open_miss(tx: sa.Connection, key: Key) -> bool:
    columns = cycles_table.c
    missing = sa.and_(matches_key(cycles_table, key), columns.status == CycleStatus.MISSING, columns.notified)
    return tx.execute(sa.select(columns.id).where(missing).limit(1)).first() is not None


def _is_input_there(
    tx: sa.Connection, product: Product, slo: Slo, cycle: Cycle, now: datetime
) -> bool | None:
    """Return whether the newest due deliveries of an input came, or None if none was due in this period.

    A period is the time from the previous due time of the SLO to the breach of the cycle.
    """
    previous = slo.schedule.latest(cycle.due_at - timedelta.resolution)
    columns = cycles_table.c
    in_period = sa.and_(
        matches_key(cycles_table, product),
        columns.due_at <= min(cycle.breach_at, now),
        *((columns.due_at > previous.at,) if previous else ()),
    )
    newest: dict[str, CycleStatus] = {}
    query = sa.select(columns.slo, columns.status).where(in_period).order_by(columns.due_at)
    for slo_id, status in tx.execute(query):
        newest[slo_id] = CycleStatus(status)
    counted = [status for status in newest.values() if status.good or status.bad or status == "pending"]
    return all(status.delivered for status in counted) if counted else None


def _breach(slo: Slo, cycle: Cycle, now: datetime, text: str) -> Breach:
    return Breach(
        key=IncidentKey(*slo.key),
        severity=min(Severity.WARNING, slo.severity, key=lambda severity: severity.rank),
        subject=cycle.due_at.isoformat(),
        title=f"{slo.object_text} is at risk: {expected_label(cycle)}",
        occurred_at=now,
        facts=(
            ("promised", promise_text(slo, cycle)),
            ("since", local_and_utc(slo, now)),
            (AT_RISK, text),
        ),
        period=slo.period(cycle.due_at),
    )


def warning_text(
    slo: Slo,
    cycle: Cycle,
    recent: Sequence[CycleRecord],
    inputs: Mapping[Product, bool | None],
    now: datetime,
) -> str:
    """Return why a cycle is at risk. `recent` are recent deliveries, newest first; `inputs` are those of the
    product, each with whether it is there, or None if that is unknown.
    """
    zone = load_zone(slo.schedule.timezone)
    today = now.astimezone(zone).date()

    def clock(instant: datetime) -> str:
        local = instant.astimezone(zone)
        return f"{local:%H:%M}" if local.date() == today else f"{local:%Y-%m-%d %H:%M}"

    delays = sorted(
        record.delivered_at - record.cycle.due_at for record in recent[:_COMPARED] if record.delivered_at
    )
    usual = ""
    if len(delays) > 1:
        by = clock(cycle.due_at + -(-delays[-2] // _MINUTE) * _MINUTE)
        usual = f"{len(delays) - 1} of the last {len(delays)} came by {by}; "
    return f"{usual}it is {clock(now)} and {_absence_text(inputs)}; breach at {clock(cycle.breach_at)}"


def _absence_text(inputs: Mapping[Product, bool | None]) -> str:
    def names(state: bool) -> list[str]:
        return [f"`{name}`" for (_, name), is_there in inputs.items() if is_there is state]

    absent, present = names(False), names(True)
    if not absent:
        return "the data is not there"
    text = f"neither data nor input{'s' * (len(absent) > 1)} {', '.join(absent)} {_are(absent)} there"
    return (
        f"{text}; input{'s' * (len(present) > 1)} {', '.join(present)} {_are(present)} there"
        if present
        else text
    )


def _are(names: Sequence[str]) -> str:
    return "is" if len(names) == 1 else "are"


def _end(
    tx: sa.Connection,
    watched: WatchedWarning,
    evaluation: CycleEvaluation | None,
    now: datetime,
    emit: EmitEvent,
) -> bool:
    """End an open warning if its cycle has an outcome; return True if an event was emitted."""
    slo, cycle = watched.target.slo, watched.cycle
    record = cycle_store.find_cycle(tx, cycle.key, cycle.due_at)
    # Cycles that are not due yet have no row.
    verdict = evaluation.result if record is None and evaluation is not None else None
    if record is not None:
        lateness = record.delivered_at - cycle.due_at if record.delivered_at else None
        verdict = CycleVerdict(record.status, lateness, record.reason)
    if verdict is None or not _has_ended(verdict, record, now) or not _close(tx, watched.stored, now):
        return False
    if record is not None and record.notified:
        # The breach has taken the place of the warning, and its own recovery ends the incident.
        return False
    emit(tx, _recovery(slo, cycle, verdict, now))
    return True


def _has_ended(verdict: CycleVerdict, record: CycleRecord | None, now: datetime) -> bool:
    if verdict.status in (CycleStatus.SCHEDULED, CycleStatus.PENDING):
        return False
    if verdict.status is CycleStatus.MISSING:
        return record is not None and record.notified
    # It may become known again, and then come late.
    is_unknown = verdict.status is CycleStatus.UNKNOWN
    return not is_unknown or (record is not None and now > record.cycle.breach_at + _UNKNOWN_FOR)


def _close(tx: sa.Connection, entry: StoredWarning, now: datetime) -> bool:
    same = sa.and_(_matches(entry), cycle_warning.c.closed_at.is_(None))
    return tx.execute(sa.update(cycle_warning).where(same).values(closed_at=now)).rowcount > 0


def _recovery(slo: Slo, cycle: Cycle, verdict: CycleVerdict, now: datetime) -> Recovery:
    key, subject = IncidentKey(*slo.key), cycle.due_at.isoformat()
    if verdict.lateness is not None:
        is_late = verdict.lateness > slo.grace
        ending = arrival_text(slo, verdict.lateness) if is_late else "arrived in time, no longer at risk"
        title = f"{slo.object_text} {ending}: {expected_label(cycle)}"
        facts = (("delivered", _arrival_fact(slo, cycle, verdict)),)
        return Recovery(key, subject, cycle.due_at + verdict.lateness, facts, title=title)
    if verdict.status is CycleStatus.UNKNOWN:
        title = f"{slo.object_text}: delivery unknown: {expected_label(cycle)}"
        facts = (("unknown", verdict.reason),)
        return Recovery(key, subject, now, facts, Resolution.HANDED_OVER, title)
    return closing_event(key, early_record(cycle), verdict, now)


def _arrival_fact(slo: Slo, cycle: Cycle, verdict: CycleVerdict) -> str:
    assert verdict.lateness is not None
    if verdict.lateness > slo.grace:
        return outcome_text(slo, cycle, verdict)
    return f"{local_and_utc(slo, cycle.due_at + verdict.lateness)}, before the breach"


def withdraw_warnings(tx: sa.Connection, keys: Mapping[Key, str], now: datetime, emit: EmitEvent) -> None:
    """End the open warnings of withdrawn SLOs; `keys` has the reason of each."""
    for entry in stored_warnings(tx, {key[0] for key in keys}, is_open()):
        if entry.key not in keys or not _close(tx, entry, now):
            continue
        record = cycle_store.find_cycle(tx, entry.key, entry.due_at)
        if record is None or not record.notified:
            facts = (("withdrawn", keys[entry.key]),)
            title = f"{entry.key[1]} is no longer monitored"
            key, subject = IncidentKey(*entry.key), entry.due_at.isoformat()
            emit(tx, Recovery(key, subject, now, facts, Resolution.WITHDRAWN, title))


# Reads for status, pages and metrics.


@dataclass(frozen=True, slots=True)
class WarningCounts:
    """Numbers of right and wrong early warnings, of cycles with a decision and a known outcome.

    `true` warnings were followed by a late or missing delivery, `false` ones by one in time; `missed` are
    late or missing deliveries without a warning.
    """

    true: int = 0
    false: int = 0
    missed: int = 0

    def __add__(self, other: WarningCounts) -> WarningCounts:
        return WarningCounts(self.true + other.true, self.false + other.false, self.missed + other.missed)

    def as_text(self) -> str:
        """Return the counts as text, "" without any."""
        parts = [
            (self.true, "warned and then late"),
            (self.false, "warned and then on time"),
            (self.missed, "late without a warning"),
        ]
        return ", ".join(f"{number} {text}" for number, text in parts) if any(n for n, _ in parts) else ""


@dataclass(frozen=True, slots=True)
class WarningStanding:
    """Early warnings of one SLO: its deliveries at risk, by due time, and how right warnings were.

    `silent_reason` is why the next delivery gets no warning, "" if it may get one. `warned_at` has the warned
    cycles by due time.
    """

    at_risk: tuple[StoredWarning, ...]
    counts: WarningCounts
    silent_reason: str
    warned_at: Mapping[datetime, datetime]

    @property
    def at_risk_since(self) -> datetime | None:
        """Time of the first open warning, or None if no delivery is at risk."""
        return min((entry.warned_at for entry in self.at_risk if entry.warned_at), default=None)


def warning_standings(
    tx: sa.Connection, contracts: Collection[str], as_of: datetime | None = None
) -> dict[Key, WarningStanding]:
    """Return the early warnings of the SLOs of these contracts that have decisions, as of an instant."""
    columns = cycle_warning.c
    conditions = (columns.planned_at <= as_of,) if as_of is not None else ()
    entries: dict[Key, list[StoredWarning]] = defaultdict(list)
    for entry in stored_warnings(tx, contracts, *conditions):
        entries[entry.key].append(_as_of(entry, as_of))
    outcomes = _outcomes(tx, entries, as_of)
    return {key: _standing(stored, outcomes.get(key, {})) for key, stored in entries.items()}


def _as_of(entry: StoredWarning, as_of: datetime | None) -> StoredWarning:
    def until(instant: datetime | None) -> datetime | None:
        return instant if instant is not None and (as_of is None or instant <= as_of) else None

    return replace(entry, warned_at=until(entry.warned_at), closed_at=until(entry.closed_at))


def _outcomes(
    tx: sa.Connection, keys: Collection[Key], as_of: datetime | None
) -> dict[Key, dict[datetime, bool]]:
    """Return whether each cycle with a known outcome was bad, by SLO and due time."""
    columns, outcomes = cycles_table.c, defaultdict[Key, dict[datetime, bool]](dict)
    decided_statuses = [status for status in CycleStatus if status.good or status.bad]
    query = sa.select(*tables.key_of(cycles_table), columns.due_at, columns.status).where(
        columns.status.in_(decided_statuses), *((columns.breach_at <= as_of,) if as_of is not None else ())
    )
    for chunk in chunks(sorted({key[0] for key in keys})):
        for *key, due_at, status in tx.execute(query.where(columns.contract.in_(chunk))):
            outcomes[key[0], key[1], key[2]][due_at] = CycleStatus(status).bad
    return outcomes


def _standing(stored: Sequence[StoredWarning], outcomes: Mapping[datetime, bool]) -> WarningStanding:
    pairs = Counter(
        (entry.warned_at is not None, outcomes[entry.due_at]) for entry in stored if entry.due_at in outcomes
    )
    newest = stored[-1]
    return WarningStanding(
        tuple(entry for entry in stored if entry.is_open),
        WarningCounts(pairs[True, True], pairs[True, False], pairs[False, True]),
        newest.reason if newest.warn_at is None and newest.warned_at is None else "",
        {entry.due_at: entry.warned_at for entry in stored if entry.warned_at is not None},
    )


def count_at_risk(tx: sa.Connection) -> int:
    """Return the number of open warnings."""
    return tx.scalar(sa.select(sa.func.count()).select_from(cycle_warning).where(is_open())) or 0


def count_outcomes(tx: sa.Connection) -> dict[str, int]:
    """Return how many cycles with a decision were warned and late, warned and on time, and late without."""
    cycles, columns = cycles_table.c, cycle_warning.c
    same = sa.and_(matches_key(cycles_table, tables.key_of(cycle_warning)), cycles.due_at == columns.due_at)
    bad = cycles.status.in_([status for status in CycleStatus if status.bad])
    good = cycles.status.in_([status for status in CycleStatus if status.good])
    warned = columns.warned_at.is_not(None)
    conditions = {
        "warned_late": sa.and_(warned, bad),
        "warned_on_time": sa.and_(warned, good),
        "late_without_warning": sa.and_(sa.not_(warned), bad),
    }
    counts = [sa.func.count(sa.case((condition, 1))) for condition in conditions.values()]
    row = tx.execute(sa.select(*counts).select_from(cycle_warning.join(cycles_table, same))).one()
    return dict(zip(conditions, row, strict=True))
