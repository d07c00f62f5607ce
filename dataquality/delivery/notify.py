"""Events of deliveries: status changes of cycles, and outages and correlated misses behind them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from sqlalchemy import Connection

from dq.contracts.incident import Breach, CycleStatus, IncidentKey, Recovery, Resolution
from dq.contracts.outcome import Severity, ValueProblem, join_limited, pluralize
from dq.contracts.schedule.calendar import parse_zone
from dq.contracts.slo import Cycle, Slo
from dq.dataquality.delivery import cycle_store
from dq.dataquality.delivery.budget import Budget
from dq.dataquality.delivery.cycle import (
    OPEN,
    CycleEvaluation,
    CycleRecord,
    CycleTransition,
    CycleVerdict,
    Evidence,
    UnnotifiedMiss,
    WatchTarget,
    label,
)
from dq.dataquality.delivery.cycle_store import EmitEvent, clear_inhibition, usual_delay

# Events for the platform team: outages of storage, and correlated misses.

# Outages: one breach for each unreadable source, and one recovery.
#
# They are derived from the stored unknown cycles alone, so that a kill neither loses nor repeats events.

# Not a contract id: ids have no brackets.
PLATFORM = "(platform)"
OUTAGE_GROUP = "sight"
_OUTAGE_SUBJECT = "blind"
_MAX_NAMED = 5


def outage_breaches(
    evaluations: Iterable[CycleEvaluation], now: datetime, settle: timedelta
) -> Iterator[Breach]:
    """Yield a breach for each outage in this tick, for the platform team.

    A delivery counts as affected if it is unknown `settle` after its breach.
    """
    unknown: dict[str, list[CycleEvaluation]] = defaultdict(list)
    for evaluation in evaluations:
        source = outage_source(evaluation)
        if source is not None and now >= evaluation.record.cycle.breach_at + settle:
            unknown[source].append(evaluation)
    for source, outage_evaluations in sorted(unknown.items()):
        yield _outage_breach(IncidentKey(PLATFORM, source, OUTAGE_GROUP), outage_evaluations, now)


# Ends of deliveries without reading their data.
_UNOBSERVED_ENDS = {CycleStatus.EXCUSED: Resolution.EXCUSED, CycleStatus.WITHDRAWN: Resolution.WITHDRAWN}


def outage_source(evaluation: CycleEvaluation) -> str | None:
    """Return the source of the outage that makes a delivery unknown: a storage root, or a format's commits.

    None if the delivery is known, or can never be known.
    """
    evidence, target = evaluation.evidence, evaluation.target
    if evidence is None or evidence.readable or evidence.settled:
        return None
    if evaluation.result.status is not CycleStatus.UNKNOWN:
        return None
    return f"commits of {target.place.format}" if evidence.source == "commit" else storage_root(target)


def outage_recovery(source: str, after: Collection[CycleStatus], now: datetime) -> Recovery:
    """Return the recovery of an outage without remaining unknown deliveries.

    Args:
        source: What could not be read.
        after: The new statuses of the last deliveries that were unknown because of it. Only observed
            deliveries show that the source is readable again.
        now: When it ended.
    """
    key = IncidentKey(PLATFORM, source, OUTAGE_GROUP)
    if after and all(status in _UNOBSERVED_ENDS for status in after):
        end = _UNOBSERVED_ENDS[max(after, key=list(_UNOBSERVED_ENDS).index)]
        reason = f"no remaining delivery depends on {source}; it was not read again"
        return Recovery(
            key, _OUTAGE_SUBJECT, now, ((end.value, reason),), end, f"deliveries under {source} do not count"
        )
    facts = (("found", "all affected deliveries were evaluated again"),)
    return Recovery(key, _OUTAGE_SUBJECT, now, facts, title=f"evidence under {source} readable again")


def _outage_breach(key: IncidentKey, evaluations: Sequence[CycleEvaluation], now: datetime) -> Breach:
    cycles = [evaluation.record.cycle for evaluation in evaluations]
    named = join_limited(sorted({cycle.contract for cycle in cycles}), _MAX_NAMED)
    problems = (evaluation.evidence.problem for evaluation in evaluations if evaluation.evidence is not None)
    oldest = min(cycle.due_at for cycle in cycles)
    return Breach(
        key=key,
        severity=Severity.ERROR,
        subject=_OUTAGE_SUBJECT,
        title=f"cannot read evidence under {key.object}",
        occurred_at=now,
        facts=(
            ("problem", next(filter(None, problems), "no reason given")),
            ("unknown", f"{len(cycles)} deliver{'y' if len(cycles) == 1 else 'ies'} of {named}"),
            ("since", f"{oldest:%Y-%m-%d %H:%M} UTC, when the oldest was due"),
        ),
    )


def storage_root(target: WatchTarget) -> str:
    """Return the lake root or bucket of an SLO's data."""
    if target.root:
        return target.root
    try:
        return target.files.root(target.place.path.rstrip("/"))
    except Exception:  # noqa: BLE001  # as with every probe: no storage may end a tick
        return target.place.path


# Correlated misses under one root: the platform team is notified first, the owners later.

MISSES_GROUP = "misses"
INHIBIT_OWNERS_FOR = timedelta(minutes=15)
"""Time for which the owners' alerts of correlated misses are inhibited."""

MIN_MISSES, MIN_SHARE = 5, 0.3
_MISSES_SUBJECT, _MAX_MISSES_NAMED = "many", 5


@dataclass(frozen=True, slots=True)
class CorrelatedMisses:
    """Cycles of many SLOs under one root that are missing at once; `due` SLOs had a breach instant in that
    time.
    """

    root: str
    cycles: tuple[CycleRecord, ...]
    due: int

    @property
    def contracts(self) -> list[str]:
        """Contracts with missing deliveries, in order."""
        return sorted({record.cycle.contract for record in self.cycles})


def detect_correlated_misses(
    tx: Connection, missing: Iterable[tuple[WatchTarget, CycleRecord]]
) -> list[CorrelatedMisses]:
    """Return the correlated misses among cycles that are about to be alerted, by root.

    At least MIN_MISSES SLOs must be affected, and more than MIN_SHARE of the SLOs under the root that had a
    breach instant in the same time. Cycles that were inhibited before are not inhibited again.
    """
    roots: dict[str, list[CycleRecord]] = defaultdict(list)
    for target, record in missing:
        if record.inhibited_until is None:
            roots[storage_root(target)].append(record)
    correlated = []
    for root, cycles in sorted(roots.items()):
        slo_keys = {record.cycle.key for record in cycles}
        if len(slo_keys) < MIN_MISSES:
            continue
        breaches = [record.cycle.breach_at for record in cycles]
        due = max(cycle_store.count_slos_due(tx, root, min(breaches), max(breaches)), len(slo_keys))
        if len(slo_keys) > MIN_SHARE * due:
            correlated.append(CorrelatedMisses(root, tuple(cycles), due))
    return correlated


def misses_breach(misses: CorrelatedMisses, now: datetime) -> Breach:
    """Return the breach for the platform team."""
    return Breach(
        key=IncidentKey(PLATFORM, misses.root, MISSES_GROUP),
        severity=Severity.ERROR,
        subject=_MISSES_SUBJECT,
        title=f"many deliveries missing under {misses.root}",
        occurred_at=now,
        facts=(
            ("missing", f"{len(misses.cycles)} deliveries; {misses.due} SLOs were due"),
            ("products", join_limited(misses.contracts, _MAX_MISSES_NAMED)),
            ("owner alerts", f"held until {now + INHIBIT_OWNERS_FOR:%H:%M} UTC"),
        ),
    )


def root_recovery(root: str, ends: Mapping[CycleStatus, int], now: datetime) -> Recovery:
    """Return the recovery of a root without remaining inhibited alerts.

    Args:
        root: The lake root or bucket.
        ends: How many of the deliveries that were missing there have each status now.
        now: When it ended.
    """
    total = sum(ends.values())
    delivered = sum(number for status, number in ends.items() if status.delivered)
    facts = (("now", ", ".join(f"{number} {status.replace('_', ' ')}" for status, number in ends.items())),)
    key = IncidentKey(PLATFORM, root, MISSES_GROUP)
    if delivered == total:
        title = f"all {pluralize(total, 'delivery', 'deliveries')} under {root} arrived"
        return Recovery(key, _MISSES_SUBJECT, now, facts, title=title)
    for status, end, state in _OTHER_ENDS:
        if number := ends.get(status, 0):
            title = f"{number} of {total} under {root} {state}"
            return Recovery(key, _MISSES_SUBJECT, now, facts, end, title)
    raise AssertionError(f"no end for {dict(ends)}")


# The first status with deliveries decides. An upstream alert may replace those of downstream products, so
# these texts do not claim who was notified.
_OTHER_ENDS = (
    (CycleStatus.MISSING, Resolution.HANDED_OVER, "still missing; see their own incidents"),
    (CycleStatus.UNKNOWN, Resolution.HANDED_OVER, "unknown; see the incident of the evidence source"),
    (CycleStatus.PENDING, Resolution.HANDED_OVER, "not due yet"),
    (CycleStatus.NEVER, Resolution.GIVEN_UP, "never came"),
    (CycleStatus.WITHDRAWN, Resolution.WITHDRAWN, "withdrawn"),
    (CycleStatus.EXCUSED, Resolution.EXCUSED, "excused"),
)


# Texts for people: civil times in the zone of the schedule, lateness in words.

# A message has room for twelve facts.
_MAX_LINES = 10


def local_time(slo: Slo, instant: datetime) -> str:
    """Return an instant in the schedule's zone, e.g. `2013-11-05 06:00 EST`."""
    timezone = parse_zone(slo.schedule.timezone)
    if isinstance(timezone, ValueProblem):
        return f"{instant:%Y-%m-%d %H:%M}Z"
    return f"{instant.astimezone(timezone):%Y-%m-%d %H:%M %Z}"


def local_and_utc(slo: Slo, instant: datetime) -> str:
    """Return an instant in the schedule's zone and in UTC: `2013-11-05 06:00 EST (11:00 UTC)`."""
    local, utc = local_time(slo, instant), f"{instant.astimezone(UTC):%Y-%m-%d %H:%M}"
    if local.endswith((" UTC", "Z")):
        return local
    day, _, clock = utc.partition(" ")
    return f"{local} ({clock} UTC)" if local.startswith(day) else f"{local} ({utc} UTC)"


def expected_label(cycle: Cycle) -> str:
    """Return a short label of a cycle's expected data: its partition, or an update of the table."""
    if not cycle.partitions:
        return "the update"
    remaining = len(cycle.partitions) - 1
    return label(cycle.partitions[0]) + (f" and {remaining} more" if remaining else "")


def format_duration(length: timedelta) -> str:
    """Return a duration in its two largest units: `2 h 10 min`, `3 d 4 h`, `0 min`."""
    minutes = int(abs(length).total_seconds()) // 60
    parts = [(minutes // 1440, "d"), (minutes // 60 % 24, "h"), (minutes % 60, "min")]
    used = [f"{amount} {unit}" for amount, unit in parts if amount][:2]
    return " ".join(used) or "0 min"


def promise_text(slo: Slo, cycle: Cycle) -> str:
    """Return the promise of one cycle: expected data, due time and grace."""
    update = "new data" if slo.expects_new_data else "an update"
    expected = ", ".join(label(partition) for partition in cycle.partitions) or update
    grace = f", {format_duration(slo.grace)} grace" if slo.grace else ""
    return f"{expected} by {local_time(slo, cycle.due_at)}{grace}"


def evidence_facts(
    verdict: CycleVerdict, evidence: Evidence | None, location_summary: tuple[str, str]
) -> tuple[tuple[str, str], ...]:
    """Return the facts on a missing delivery: where it was searched and what was observed."""
    location, contents = location_summary
    partial_detail = evidence.detail if evidence is not None else ""
    # The verdict describes revoked and empty deliveries; the location describes those that never came.
    use_contents = contents and not (verdict.inputs and (verdict.inputs.revoked or verdict.inputs.is_empty))
    observed = (
        "; ".join(part for part in (contents, partial_detail) if part) if use_contents else verdict.reason
    )
    return (*((("location", location),) if location else ()), ("found", observed))


def arrival_text(slo: Slo, lateness: timedelta) -> str:
    """Return how a delivery arrived that had been alerted as missing."""
    return (
        "arrived on time but was detected late"
        if lateness <= slo.grace
        else f"came {format_duration(lateness)} late"
    )


def background_facts(
    slo: Slo, recent: Sequence[CycleRecord], budget: Budget, *, is_breach: bool
) -> tuple[tuple[str, str], ...]:
    """Return facts from the SLO's history. `recent` are recent deliveries, newest first."""
    facts = []
    if is_breach:
        delays = sorted(record.delivered_at - record.cycle.due_at for record in recent if record.delivered_at)
        usual = usual_delay(recent)
        if usual is not None:
            last = f"the latest of the last {len(delays)} came {_delay_text(delays[-1])}"
            facts.append(("usually", f"{_delay_text(usual)}; {last}"))
        facts.append(("last on time", _last_delivery_text(slo, recent[0]) if recent else "none known"))
        if budget.consecutive_misses > 1:
            facts.append(("in a row", f"{budget.consecutive_misses} consecutive deliveries missed"))
    return (*facts, ("budget", budget.as_text()))


def _delay_text(delay: timedelta) -> str:
    if abs(delay) < timedelta(minutes=1):
        return "at the due time"
    return f"{format_duration(delay)} {'after' if delay > timedelta() else 'before'} the due time"


def _last_delivery_text(slo: Slo, record: CycleRecord) -> str:
    if record.delivered_at is None:
        return ""
    late = (
        "" if record.status.good else f", {format_duration(record.delivered_at - record.cycle.due_at)} late"
    )
    return f"{expected_label(record.cycle)}, {local_time(slo, record.delivered_at)}{late}"


def outcome_text(slo: Slo, cycle: Cycle, verdict: CycleVerdict) -> str:
    """Return the outcome of a cycle that was missing."""
    if verdict.lateness is None:
        return verdict.reason
    arrived_at = local_time(slo, cycle.due_at + verdict.lateness)
    if verdict.lateness <= slo.grace:
        return f"{arrived_at}: on time, but detected late"
    return f"{arrived_at}, {format_duration(verdict.lateness)} after it was due"


def misses_summary(misses: Sequence[UnnotifiedMiss]) -> str:
    """Return one line about misses that ended before anyone was notified."""
    never = sum(1 for miss in misses if miss.verdict.lateness is None)
    late = len(misses) - never
    counts = [f"{late} came late"] if late else []
    counts += [f"{never} never came"] if never else []
    return f"missed deliveries without an alert: {', '.join(counts)}"


def misses_digest(misses: Sequence[UnnotifiedMiss]) -> tuple[tuple[str, str], ...]:
    """Return a line for each miss, latest first, up to the maximum of a message."""
    newest = sorted(misses, key=lambda miss: miss.record.cycle.due_at, reverse=True)
    lines = [
        # Labels must be unique.
        (
            f"{miss.slo.contract.key}/{miss.slo.id} {miss.record.cycle.due_at:%m-%d %H:%M}Z",
            f"{promise_text(miss.slo, miss.record.cycle)}: {_miss_outcome(miss)}",
        )
        for miss in newest[:_MAX_LINES]
    ]
    remaining = len(newest) - _MAX_LINES
    return (*lines, ("and", f"{remaining} more; see 'dq status'")) if remaining > 0 else tuple(lines)


def _miss_outcome(miss: UnnotifiedMiss) -> str:
    if miss.verdict.lateness is None:
        return "it never came"
    return f"it came {outcome_text(miss.slo, miss.record.cycle, miss.verdict)}"


# Events of status changes.

# Ends of breached cycles without a delivery, with their texts.
_CYCLE_ENDS = {
    CycleStatus.NEVER: (Resolution.GIVEN_UP, "never came"),
    CycleStatus.EXCUSED: (Resolution.EXCUSED, "is excluded"),
    CycleStatus.WITHDRAWN: (Resolution.WITHDRAWN, "is no longer monitored"),
}


def emit_platform_recoveries(
    tx: Connection, transitions: Iterable[CycleTransition], now: datetime, emit: EmitEvent
) -> None:
    """Emit recoveries of outages and correlated misses that have no affected delivery left."""
    changes = list(transitions)
    for source in sorted({transition.record.blind for transition in changes if transition.record.blind}):
        if not cycle_store.has_unknown_deliveries(tx, source):
            after = [transition.after for transition in changes if transition.record.blind == source]
            emit(tx, outage_recovery(source, after, now))
    for root in sorted(
        {transition.record.inhibiting_root for transition in changes if transition.record.inhibiting_root}
    ):
        # Another watcher may have emitted it meanwhile.
        if not cycle_store.has_inhibited_alerts(tx, root) and (
            ends := cycle_store.inhibited_statuses(tx, root)
        ):
            emit(tx, root_recovery(root, ends, now))
            clear_inhibition(tx, root)


def transition_event(evaluation: CycleEvaluation, now: datetime) -> Breach | Recovery | None:
    """Return the incident event that an evaluation causes, or None if it causes none."""
    slo, record, result = evaluation.target.slo, evaluation.record, evaluation.result
    if record.status.delivered and not evaluation.revoked:
        return None
    key, subject = IncidentKey(*slo.key), record.cycle.due_at.isoformat()
    notified = record.notified and not evaluation.revoked
    if result.status is CycleStatus.MISSING and not notified and now >= record.notify_at:
        # A revoked delivery, or a cycle that counts again, is alerted even if it was alerted before.
        event_at = max(
            instant
            for instant in (record.cycle.breach_at, record.counts_since, evaluation.gone_since)
            if instant
        )
        problem = (
            "was removed after delivery"
            if evaluation.gone_since
            else "is still being written"
            if evaluation.arriving
            else "is missing"
        )
        return Breach(
            key=key,
            severity=slo.severity,
            subject=subject,
            title=f"{slo.object_text} {problem}: {expected_label(record.cycle)}",
            occurred_at=event_at,
            facts=(
                ("promised", promise_text(slo, record.cycle)),
                ("since", local_and_utc(slo, event_at)),
                *evidence_facts(result, evaluation.evidence, evaluation.location_summary),
            ),
            period=slo.period(record.cycle.due_at),
        )
    if notified and result.status not in OPEN:
        if result.lateness is not None:
            event_at = record.cycle.due_at + result.lateness
            facts = (("delivered", outcome_text(slo, record.cycle, result)),)
            title = f"{slo.object_text} {arrival_text(slo, result.lateness)}: {expected_label(record.cycle)}"
            return Recovery(key, subject, event_at, facts, title=title)
        return closing_event(key, record, result, now)
    return None


def closing_event(key: IncidentKey, record: CycleRecord, verdict: CycleVerdict, now: datetime) -> Recovery:
    """Return the recovery of a missing cycle that is not waited for any longer."""
    end, ending = _CYCLE_ENDS[verdict.status]
    subject, facts = record.cycle.due_at.isoformat(), ((end.replace("_", " "), verdict.reason),)
    return Recovery(key, subject, now, facts, end, f"{key.object} {ending}: {expected_label(record.cycle)}")
