"""Causes behind many deliveries, told to the platform team: storage out of sight, misses in masses."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from sqlalchemy import Connection

from dq.contracts.shared.outcome import Breach, CycleStatus, End, IncidentKey, Recovery, Severity
from dq.contracts.shared.wording import counted, first_of
from dq.dataquality.delivery import cycle_store
from dq.dataquality.delivery.cycle import CycleJudgement, Kept, Watched

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


@dataclass(slots=True)
class _Cause:
    """What is behind one place that cannot be seen, or can be seen again."""

    blind: list[Kept] = field(default_factory=list)
    problem: str = ""


def outage_breaches(judged: Iterable[CycleJudgement], now: datetime, settle: timedelta) -> Iterator[Breach]:
    """What of this tick the platform team has to know.

    A delivery is told as blind when it is unknown `settle` after its breach.
    """
    causes: dict[str, _Cause] = defaultdict(_Cause)
    for one in judged:
        name = outage_source(one)
        if name is None or one.evidence is None or now < one.kept.cycle.breach_at + settle:
            continue
        cause = causes[name]
        cause.blind.append(one.kept)
        cause.problem = cause.problem or one.evidence.problem
    for name, cause in sorted(causes.items()):
        yield _outage_breach(IncidentKey(PLATFORM, name, OUTAGE_GROUP), cause, now)


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


def _outage_breach(key: IncidentKey, cause: _Cause, now: datetime) -> Breach:
    named = first_of(sorted({kept.cycle.contract for kept in cause.blind}), _NAMED)
    oldest = min(kept.cycle.due_at for kept in cause.blind)
    number = len(cause.blind)
    return Breach(
        key=key,
        severity=Severity.ERROR,
        subject=_OUTAGE_SUBJECT,
        title=f"deliveries under {key.object} cannot be seen",
        at=now,
        facts=(
            ("problem", cause.problem or "no reason given"),
            ("unknown", f"{number} deliver{'y' if number == 1 else 'ies'} of {named}"),
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
        promises = {(kept.cycle.contract, kept.cycle.object, kept.cycle.slo) for kept in cycles}
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
