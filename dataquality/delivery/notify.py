"""Notifications of deliveries: what moved, and the causes behind many of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from sqlalchemy import Connection

from dq.contracts.outcome import (
    Breach,
    CycleStatus,
    End,
    IncidentKey,
    Recovery,
    Severity,
    TextFault,
    counted,
    first_of,
)
from dq.contracts.schedule.calendar import zone
from dq.contracts.slo import Cycle, Slo
from dq.dataquality.delivery import cycle_store
from dq.dataquality.delivery.budget import Budget
from dq.dataquality.delivery.cycle import (
    OPEN,
    CycleJudgement,
    CycleVerdict,
    Evidence,
    Kept,
    PastMiss,
    Turn,
    Watched,
    label,
)
from dq.dataquality.delivery.cycle_store import Tell, release_held, usual_delay

# Causes behind many deliveries, told to the platform team: storage out of sight, misses in masses.

# A blind watcher tells the platform team: one event for each cause, and one when sight returns.
#
# Which deliveries are unknown stands in the store; what is told follows from it alone, so that a kill loses
# and
# doubles nothing.

# No contract is called so: an id has no brackets.
PLATFORM = "(platform)"
OUTAGE_GROUP = "sight"
_OUTAGE_SUBJECT = "blind"
_NAMED = 5


def outage_breaches(judged: Iterable[CycleJudgement], now: datetime, settle: timedelta) -> Iterator[Breach]:
    """What of this tick the platform team has to know.

    A delivery is told as blind when it is unknown `settle` after its breach.
    """
    unknown: dict[str, list[CycleJudgement]] = defaultdict(list)
    for one in judged:
        source = outage_source(one)
        if source is not None and now >= one.kept.cycle.breach_at + settle:
            unknown[source].append(one)
    for source, judgements in sorted(unknown.items()):
        yield _outage_breach(IncidentKey(PLATFORM, source, OUTAGE_GROUP), judgements, now)


# How a delivery ends without a look at it.
_UNSEEN_ENDS = {CycleStatus.EXCUSED: End.EXCUSED, CycleStatus.WITHDRAWN: End.WITHDRAWN}


def outage_source(judged: CycleJudgement) -> str | None:
    """What keeps a delivery from being seen: the root that its data lies under, or the format whose commits
    cannot be read. None for one that is known, and for one that never will be.
    """
    evidence, one = judged.evidence, judged.one
    if evidence is None or evidence.readable or evidence.settled:
        return None
    if judged.result.status is not CycleStatus.UNKNOWN:
        return None
    return f"commits of {one.place.format}" if evidence.source == "commit" else root_of(one)


def outage_recovery(cause: str, after: Collection[CycleStatus], now: datetime) -> Recovery:
    """Return the end of an incident behind which no delivery is unknown any more.

    Args:
        cause: What could not be read.
        after: The statuses of the last deliveries that were unknown for it. Only what was seen shows that
            the cause is gone.
        now: When it ended.
    """
    key = IncidentKey(PLATFORM, cause, OUTAGE_GROUP)
    if after and all(status in _UNSEEN_ENDS for status in after):
        end = _UNSEEN_ENDS[max(after, key=list(_UNSEEN_ENDS).index)]
        reason = f"no delivery that still counts needs {cause}, which was not read again"
        return Recovery(
            key, _OUTAGE_SUBJECT, now, ((end.value, reason),), end, f"deliveries under {cause} do not count"
        )
    facts = (("seen", "no delivery is unknown for it any more"),)
    return Recovery(key, _OUTAGE_SUBJECT, now, facts, title=f"deliveries under {cause} can be seen again")


def _outage_breach(key: IncidentKey, judged: Sequence[CycleJudgement], now: datetime) -> Breach:
    cycles = [one.kept.cycle for one in judged]
    named = first_of(sorted({cycle.contract for cycle in cycles}), _NAMED)
    problems = (one.evidence.problem for one in judged if one.evidence is not None)
    oldest = min(cycle.due_at for cycle in cycles)
    return Breach(
        key=key,
        severity=Severity.ERROR,
        subject=_OUTAGE_SUBJECT,
        title=f"deliveries under {key.object} cannot be seen",
        at=now,
        facts=(
            ("problem", next(filter(None, problems), "no reason given")),
            ("unknown", f"{len(cycles)} deliver{'y' if len(cycles) == 1 else 'ies'} of {named}"),
            ("since", f"{oldest:%Y-%m-%d %H:%M} UTC, when the oldest was due"),
        ),
    )


def root_of(one: Watched) -> str:
    """The lake root or bucket that an SLO's data lies under."""
    if one.root:
        return one.root
    try:
        return one.files.root(one.place.path.rstrip("/"))
    except Exception:  # noqa: BLE001  # as with every probe: no storage may end a tick
        return one.place.path


# Many misses at once under one root have one cause: the platform team is told first, the owners later.

MISSES_GROUP = "misses"
INHIBIT_OWNERS_FOR = timedelta(minutes=15)
"""How long owners are not told of what is missing together with so much else."""

AT_LEAST, SHARE = 5, 0.3
_MISSES_SUBJECT, _MISSES_NAMED = "many", 5


@dataclass(frozen=True, slots=True)
class CorrelatedMisses:
    """Cycles of many promises under one root that are missing at once; `due` promises were due with them."""

    root: str
    cycles: tuple[Kept, ...]
    due: int

    @property
    def contracts(self) -> list[str]:
        """The contracts that are missing something, by name."""
        return sorted({kept.cycle.contract for kept in self.cycles})


def detect_correlated_misses(
    tx: Connection, missing: Iterable[tuple[Watched, Kept]]
) -> list[CorrelatedMisses]:
    """Where so much is missing that the root is suspect: of what is about to be told, by root.

    More than a share of the promises under the root that broke or were kept in the same time, and some at
    least. What was held before is not held again.
    """
    roots: dict[str, list[Kept]] = defaultdict(list)
    for one, kept in missing:
        if kept.held_until is None:
            roots[root_of(one)].append(kept)
    found = []
    for root, cycles in sorted(roots.items()):
        promises = {kept.cycle.key for kept in cycles}
        if len(promises) < AT_LEAST:
            continue
        breaches = [kept.cycle.breach_at for kept in cycles]
        due = max(cycle_store.promises_due(tx, root, min(breaches), max(breaches)), len(promises))
        if len(promises) > SHARE * due:
            found.append(CorrelatedMisses(root, tuple(cycles), due))
    return found


def misses_breach(mass: CorrelatedMisses, now: datetime) -> Breach:
    """What the platform team is told at once."""
    return Breach(
        key=IncidentKey(PLATFORM, mass.root, MISSES_GROUP),
        severity=Severity.ERROR,
        subject=_MISSES_SUBJECT,
        title=f"much is missing at once under {mass.root}",
        at=now,
        facts=(
            ("missing", f"{len(mass.cycles)} deliveries, where {mass.due} promises were due"),
            ("products", first_of(mass.contracts, _MISSES_NAMED)),
            ("owners", f"are told at {now + INHIBIT_OWNERS_FOR:%H:%M}Z of what has not come by then"),
        ),
    )


def root_recovery(root: str, ends: Mapping[CycleStatus, int], now: datetime) -> Recovery:
    """Return the end of the incident of a root under which no alert waits any more.

    Args:
        root: The lake root or bucket.
        ends: How many of the deliveries that were missing there have each status now.
        now: When it ended.
    """
    total = sum(ends.values())
    came = sum(ends.get(status, 0) for status in _DELIVERED)
    facts = (("now", ", ".join(f"{number} {status.replace('_', ' ')}" for status, number in ends.items())),)
    key = IncidentKey(PLATFORM, root, MISSES_GROUP)
    if came == total:
        title = f"all {counted(total, 'delivery', 'deliveries')} under {root} came"
        return Recovery(key, _MISSES_SUBJECT, now, facts, title=title)
    for status, end, state in _OTHER_ENDS:
        if number := ends.get(status, 0):
            title = f"{number} of {total} under {root} {state}"
            return Recovery(key, _MISSES_SUBJECT, now, facts, end, title)
    raise AssertionError(f"no end for {dict(ends)}")


_DELIVERED = (CycleStatus.ON_TIME, CycleStatus.ON_TIME_IN_GRACE, CycleStatus.LATE)
# The first that is there decides. Alerts of a cause upstream stand for those of the products below it, so
# that nothing here claims who was notified.
_OTHER_ENDS = (
    (CycleStatus.MISSING, End.HANDED_OVER, "still missing; incidents of their own tell of them"),
    (CycleStatus.UNKNOWN, End.HANDED_OVER, "cannot be seen; another incident tells of them"),
    (CycleStatus.PENDING, End.HANDED_OVER, "not due yet"),
    (CycleStatus.NEVER, End.GIVEN_UP, "never came"),
    (CycleStatus.WITHDRAWN, End.WITHDRAWN, "withdrawn"),
    (CycleStatus.EXCUSED, End.EXCUSED, "excused"),
)


# What is told of a cycle that moves, in words for people.

# How deliveries are told to people: civil times in the zone of the schedule, lateness in words.

# A message has room for twelve facts.
_MOST_LINES = 10


def local_time(slo: Slo, instant: datetime) -> str:
    """An instant on the clock of the schedule's zone, such as `2013-11-05 06:00 EST`."""
    found = zone(slo.schedule.timezone)
    if isinstance(found, TextFault):
        return f"{instant:%Y-%m-%d %H:%M}Z"
    return f"{instant.astimezone(found):%Y-%m-%d %H:%M %Z}"


def local_and_utc(slo: Slo, instant: datetime) -> str:
    """An instant on the clock of the schedule's zone and in UTC: `2013-11-05 06:00 EST (11:00 UTC)`."""
    here, utc = local_time(slo, instant), f"{instant.astimezone(UTC):%Y-%m-%d %H:%M}"
    if here.endswith((" UTC", "Z")):
        return here
    day, _, clock = utc.partition(" ")
    return f"{here} ({clock} UTC)" if here.startswith(day) else f"{here} ({utc} UTC)"


def expected_label(cycle: Cycle) -> str:
    """What a cycle brings, in a few words: its partition, or that it is a snapshot."""
    if not cycle.partitions:
        return "the snapshot"
    more = len(cycle.partitions) - 1
    return label(cycle.partitions[0]) + (f" and {more} more" if more else "")


def span(length: timedelta) -> str:
    """A length of time in its two largest units: `2 h 10 min`, `3 d 4 h`, `0 min`."""
    minutes = int(abs(length).total_seconds()) // 60
    parts = [(minutes // 1440, "d"), (minutes // 60 % 24, "h"), (minutes % 60, "min")]
    used = [f"{amount} {unit}" for amount, unit in parts if amount][:2]
    return " ".join(used) or "0 min"


def promise_text(slo: Slo, cycle: Cycle) -> str:
    """The promise of one cycle: what, by when, with which grace."""
    what = ", ".join(label(partition) for partition in cycle.partitions) or "an update"
    grace = f", {span(slo.grace)} grace" if slo.grace else ""
    return f"{what} by {local_time(slo, cycle.due_at)}{grace}"


def evidence_facts(
    judged: CycleVerdict, evidence: Evidence | None, there: tuple[str, str]
) -> tuple[tuple[str, str], ...]:
    """What was seen of a delivery that is missing, and where."""
    where, stands = there
    so_far = evidence.detail if evidence is not None else ""
    # What was taken away, or is no delivery, is told by the verdict; what never came, by the place.
    plain = stands and not (judged.grounds and (judged.grounds.revoked or judged.grounds.is_empty))
    said = "; ".join(part for part in (stands, so_far) if part) if plain else judged.reason
    return (*((("looked in", where),) if where else ()), ("seen", said))


def arrival_text(slo: Slo, lateness: timedelta) -> str:
    """How a delivery came that had been told as missing."""
    return "came in time, and was seen late" if lateness <= slo.grace else f"came {span(lateness)} late"


def background_facts(
    slo: Slo, lately: Sequence[Kept], budget: Budget, *, broken: bool
) -> tuple[tuple[str, str], ...]:
    """What the past adds to what is told of a delivery: `lately` are the ones that came, newest first."""
    facts = []
    if broken:
        delays = sorted(kept.delivered_at - kept.cycle.due_at for kept in lately if kept.delivered_at)
        usual = usual_delay(lately)
        if usual is not None:
            last = f"the latest of the last {len(delays)} came {_to_due(delays[-1])}"
            facts.append(("usually", f"{_to_due(usual)}; {last}"))
        facts.append(("last good", _last(slo, lately[0]) if lately else "none that is known"))
        if budget.in_a_row > 1:
            facts.append(("in a row", f"{budget.in_a_row} deliveries missed one after another"))
    return (*facts, ("budget", budget.line()))


def _to_due(delay: timedelta) -> str:
    if abs(delay) < timedelta(minutes=1):
        return "when it is due"
    return f"{span(delay)} {'after' if delay > timedelta() else 'before'} it is due"


def _last(slo: Slo, kept: Kept) -> str:
    if kept.delivered_at is None:
        return ""
    late = "" if kept.status.good else f", {span(kept.delivered_at - kept.cycle.due_at)} late"
    return f"{expected_label(kept.cycle)}, {local_time(slo, kept.delivered_at)}{late}"


def outcome_text(slo: Slo, cycle: Cycle, judged: CycleVerdict) -> str:
    """What came of a cycle that was missing."""
    if judged.lateness is None:
        return judged.reason
    when = local_time(slo, cycle.due_at + judged.lateness)
    if judged.lateness <= slo.grace:
        return f"{when}: it was in time, and we saw it late"
    return f"{when}, {span(judged.lateness)} after it was due"


def misses_summary(misses: Sequence[PastMiss]) -> str:
    """What ended badly before anybody was told, in one line."""
    never = sum(1 for one in misses if one.verdict.lateness is None)
    late = len(misses) - never
    said = [f"{late} came late"] if late else []
    said += [f"{never} never came"] if never else []
    return f"deliveries that nobody was told of: {', '.join(said)}"


def misses_digest(misses: Sequence[PastMiss]) -> tuple[tuple[str, str], ...]:
    """A line for each of them, the latest first, as far as a message holds them."""
    newest = sorted(misses, key=lambda one: one.kept.cycle.due_at, reverse=True)
    lines = [
        # No two lines may have one label.
        (
            f"{one.slo.contract.key}/{one.slo.id} {one.kept.cycle.due_at:%m-%d %H:%M}Z",
            f"{promise_text(one.slo, one.kept.cycle)}: {_came(one)}",
        )
        for one in newest[:_MOST_LINES]
    ]
    left = len(newest) - _MOST_LINES
    return (*lines, ("and", f"{left} more; see 'dq status'")) if left > 0 else tuple(lines)


def _came(miss: PastMiss) -> str:
    if miss.verdict.lateness is None:
        return "it never came"
    return f"it came {outcome_text(miss.slo, miss.kept.cycle, miss.verdict)}"


# A cycle that moves, and what is told of its end.

# How a promise that was broken ended where nothing was delivered, and how that is told.
_ENDS = {
    CycleStatus.NEVER: (End.GIVEN_UP, "never came"),
    CycleStatus.EXCUSED: (End.EXCUSED, "does not count"),
    CycleStatus.WITHDRAWN: (End.WITHDRAWN, "is promised no more"),
}


def emit_platform_recoveries(tx: Connection, turns: Iterable[Turn], now: datetime, tell: Tell) -> None:
    """Tells of every cause of blindness, and of every root of many misses, behind which nothing is left."""
    turned = list(turns)
    for cause in sorted({turn.kept.blind for turn in turned if turn.kept.blind}):
        if not cycle_store.any_blind(tx, cause):
            after = [turn.after for turn in turned if turn.kept.blind == cause]
            tell(tx, outage_recovery(cause, after, now))
    for root in sorted({turn.kept.held for turn in turned if turn.kept.held}):
        # Another watcher may have ended it meanwhile.
        if not cycle_store.any_held(tx, root) and (ends := cycle_store.held_statuses(tx, root)):
            tell(tx, root_recovery(root, ends, now))
            release_held(tx, root)


def event_of(one: CycleJudgement, now: datetime) -> Breach | Recovery | None:
    """What the alerts room has to know about this judgement, if anything."""
    slo, kept, result = one.one.slo, one.kept, one.result
    if kept.status.good and not one.revoked:
        return None
    key, subject = IncidentKey(*slo.key), kept.cycle.due_at.isoformat()
    told = kept.told and not one.revoked
    if result.status is CycleStatus.MISSING and not told and now >= kept.tell_at:
        # What was taken away, or counts again, is news whatever was told of it before.
        at = max(at for at in (kept.cycle.breach_at, kept.counts_since, one.gone_since) if at)
        how = (
            "was taken away again"
            if one.gone_since
            else "is still being written"
            if one.arriving
            else "is missing"
        )
        return Breach(
            key=key,
            severity=slo.severity,
            subject=subject,
            title=f"{slo.object.name} {how}: {expected_label(kept.cycle)}",
            at=at,
            facts=(
                ("promised", promise_text(slo, kept.cycle)),
                ("since", local_and_utc(slo, at)),
                *evidence_facts(result, one.evidence, one.there),
            ),
            period=slo.period(kept.cycle.due_at),
        )
    if told and result.status not in OPEN:
        if result.lateness is not None:
            at = kept.cycle.due_at + result.lateness
            facts = (("delivered", outcome_text(slo, kept.cycle, result)),)
            title = f"{slo.object.name} {arrival_text(slo, result.lateness)}: {expected_label(kept.cycle)}"
            return Recovery(key, subject, at, facts, title=title)
        return closing_event(key, kept, result, now)
    return None


def closing_event(key: IncidentKey, kept: Kept, judged: CycleVerdict, now: datetime) -> Recovery:
    """What is told of a cycle that was missing, and that nobody waits for any more."""
    end, told = _ENDS[judged.status]
    subject, facts = kept.cycle.due_at.isoformat(), ((end.replace("_", " "), judged.reason),)
    return Recovery(key, subject, now, facts, end, f"{key.object} {told}: {expected_label(kept.cycle)}")
