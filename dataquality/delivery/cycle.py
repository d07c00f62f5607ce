"""Cycles of deliveries, what was seen of them, and their status as a pure function of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from dq.contracts.extension import EvidenceSource
from dq.contracts.outcome import LAKEHOUSE, CycleStatus
from dq.contracts.slo import Cycle, Partition, Slo
from dq.lake.storage import Files

# Cycles of deliveries, what was seen of them and what became of them: the values of the watcher.

# Evidence: what shows that a cycle's data arrived, and when.

APART = timedelta(minutes=5)
"""Sources whose times are further apart than this disagree."""


@dataclass(frozen=True, slots=True)
class SourceAnswer:
    """What one of the sources said of a cycle: when it arrived, or None where it has not wholly."""

    source: EvidenceSource
    delivered_at: datetime | None
    rows: int | None = None


@dataclass(frozen=True, slots=True)
class Evidence:
    """What one source says about one cycle; instants are aware.

    `delivered_at` is the first instant at which the source's condition became true, by the source's own
    clock; None: the source was read and nothing is there. `first_seen` is when a watcher first saw it.
    `readable` is False when the source could not be read; `problem` then says why, without secrets.
    `rows` is the delivered row count where the source knows it. `names_cycle`: the source says itself
    which cycle it is for, so that nothing has to be guessed from its time. `settled`: it could not be read,
    and never will be. `arriving`: data is there that is still being written, and this is its newest time.
    `claims` are the answers of all sources that gave one, this one among them.
    """

    source: EvidenceSource
    delivered_at: datetime | None = None
    first_seen: datetime | None = None
    readable: bool = True
    problem: str = ""
    rows: int | None = None
    detail: str = ""
    names_cycle: bool = False
    settled: bool = False
    arriving: datetime | None = None
    claims: tuple[SourceAnswer, ...] = ()


def disagreeing(claims: tuple[SourceAnswer, ...], decided: EvidenceSource | None) -> list[SourceAnswer]:
    """The claims whose time is far from that of the source that decided."""
    times = {one.source: one.delivered_at for one in claims if one.delivered_at is not None}
    at = times.get(decided) if decided is not None else None
    if at is None:
        return []
    return [one for one in claims if one.delivered_at is not None and abs(one.delivered_at - at) > APART]


@dataclass(frozen=True, slots=True)
class DeliveryPlace:
    """Where an object's data lies: the folder or URI of the table, its format and its marker's name.

    `elsewhere` are the contract's other servers: what was published there has not come here. `folders` are
    those of partitions that were published beside the table, by their labels.
    """

    path: str
    format: str
    marker: str
    elsewhere: frozenset[str] = frozenset()
    folders: frozenset[tuple[str, str]] = frozenset()


@dataclass(frozen=True, slots=True)
class Receipt:
    """What a publish step wrote down: when it was done, and how many rows it brought, if known.

    Of what was delivered again, the time is the first one and the rest is of the newest revision; `again`
    are the later times. `server` is where the first came to, "" where an older dq wrote it down.
    """

    delivered_at: datetime
    rows: int | None
    revision: int = 1
    again: tuple[datetime, ...] = ()
    server: str = ""

    def then(self, later: Receipt) -> Receipt:
        """The same with what was delivered afterwards: it came when it came first."""
        again = (*self.again, later.delivered_at, *later.again)
        return replace(self, rows=later.rows, revision=later.revision, again=again)

    def since(self, instant: datetime) -> Receipt | None:
        """What it says of deliveries after an instant alone."""
        times = [time for time in (self.delivered_at, *self.again) if time > instant]
        return replace(self, delivered_at=times[0], again=tuple(times[1:])) if times else None


# Receipts by partition label (see `label`); one that names its cycle stands under `due:<instant>` too.
Receipts = Mapping[str, Receipt]


def label(partition: Partition) -> str:
    """A partition as text, `dt=2026-01-01/region=eu`; the empty text for a table without partitions.

    Columns come in alphabetical order, so that one partition has one label whoever names it.
    """
    return "/".join(f"{column}={value}" for column, value in sorted(partition))


def partition_of(text: str) -> Partition:
    """The partition of a label. A value may hold slashes; what follows one without `=` belongs to it."""
    parts: list[str] = []
    for part in text.split("/"):
        if parts and "=" not in part:
            parts[-1] += f"/{part}"
        else:
            parts.append(part)
    pairs = (part.partition("=") for part in parts if part)
    return tuple((column, value) for column, _, value in pairs)


@dataclass(frozen=True, slots=True)
class CycleWindow:
    """When an update of a table without partitions is meant for a cycle: from `opens` until before `closes`.

    `before` is when the cycle before it was due. None is an open end.
    """

    before: datetime | None
    opens: datetime | None
    closes: datetime | None

    def holds(self, at: datetime) -> bool:
        """Whether an instant lies in it."""
        return (self.opens is None or self.opens <= at) and (self.closes is None or at < self.closes)


@dataclass(frozen=True, slots=True)
class Remains:
    """What is left of a delivery: `gone` names a part of which nothing is; `anew` is when it was written
    again. Neither where it cannot be read."""

    gone: str = ""
    anew: datetime | None = None


# The id of a cycle, its status, whether it was told, and until when that is held back.
CycleState = tuple[int, str, bool, datetime | None]


@dataclass(frozen=True, slots=True)
class MissingPart:
    """A part of a missing cycle, with the cycle as it stood.

    `label` is how receipts call the partition. `path` is where it would lie, under `root`; both None where
    nothing but a receipt shows it.
    """

    cycle_id: int
    part: int
    status: str
    told: bool
    held_until: datetime | None
    label: str
    root: str | None = None
    path: str | None = None

    @property
    def state(self) -> CycleState:
        return (self.cycle_id, self.status, self.told, self.held_until)


OPEN = (CycleStatus.SCHEDULED, CycleStatus.PENDING, CycleStatus.MISSING, CycleStatus.UNKNOWN)


# Evidence can become visible late; an alert waits this long after the breach. It changes no status.
SETTLE = timedelta(seconds=60)


@dataclass(frozen=True, slots=True)
class Kept:
    """A cycle as it stands in the store. `told`: its breach is known to the alerts room.

    `blind` is what keeps it from being seen, as the platform team is told, where it is unknown for that.
    `held` is the root under which so much is missing that its owners are told at `held_until`. `claims` are
    what the sources said when it was judged last. What is good is looked at again at `look_again_at`, and
    nothing of it is left since `gone_since`; it was delivered anew at `anew_at`.
    `contract_hash` is the SHA-256 of the contract's file that promised it; empty where an older dq wrote it.
    `recorded_at` is the tick that wrote its row; None where an older dq did.
    `excuse` is why it does not count, and `counts_since` when somebody took an excuse back.
    """

    id: int
    cycle: Cycle
    status: CycleStatus
    reason: str
    delivered_at: datetime | None
    first_seen_at: datetime | None
    told: bool
    blind: str | None = None
    held: str | None = None
    held_until: datetime | None = None
    contract_hash: str = ""
    excuse: str = ""
    counts_since: datetime | None = None
    source: EvidenceSource | None = None
    claims: tuple[SourceAnswer, ...] = ()
    arriving_since: datetime | None = None
    look_again_at: datetime | None = None
    gone_since: datetime | None = None
    anew_at: datetime | None = None
    recorded_at: datetime | None = None

    def known_at(self, at: datetime) -> bool:
        """Whether it was due and recorded by an instant; an older dq did not keep when it recorded it."""
        return max(self.cycle.due_at, self.recorded_at or self.cycle.due_at) <= at

    @property
    def tell_at(self) -> datetime:
        """When its breach is told, if it is broken then."""
        return self.held_until or self.cycle.breach_at + SETTLE

    @property
    def revoked(self) -> bool:
        """Whether it was delivered, and taken away again."""
        return self.gone_since is not None and not self.status.good


@dataclass(frozen=True, slots=True)
class Grounds:
    """What a verdict rests on besides the cycle and the time.

    `excused` is why it does not count, if so, and `revoked` how what was delivered was taken away again.
    """

    evidence: Evidence | None = None
    give_up_at: datetime | None = None
    empty_allowed: bool = True
    excused: str = ""
    revoked: str = ""

    @property
    def is_empty(self) -> bool:
        """Whether something came that is no delivery, having no rows."""
        return self.evidence is not None and self.evidence.rows == 0 and not self.empty_allowed


@dataclass(frozen=True, slots=True)
class CycleVerdict:
    """What became of a cycle as of an instant.

    `lateness` is delivery minus due, negative when early, and None while nothing counts as delivered.
    `grounds` is what it rests on, where `judge_on` gave it.
    """

    status: CycleStatus
    lateness: timedelta | None
    reason: str
    grounds: Grounds | None = None

    def delivered_at(self, cycle: Cycle) -> datetime | None:
        """When the cycle was delivered; None while nothing counts as delivered."""
        return cycle.due_at + self.lateness if self.lateness is not None else None


@dataclass(frozen=True, slots=True)
class Watched:
    """An SLO, where its data lies, what reads it, and the lake root or bucket of that, where it is known."""

    slo: Slo
    place: DeliveryPlace
    files: Files
    root: str = ""


@dataclass(frozen=True, slots=True)
class PastMiss:
    """A cycle that ended badly before anybody was told that it was broken."""

    slo: Slo
    kept: Kept
    verdict: CycleVerdict


@dataclass(frozen=True, slots=True)
class Sighting:
    """What was seen of one cycle: None where every source was read and shows nothing.

    `window` is when an update without a partition value is meant for it, and `ahead` when the third next
    cycle is due; both are known where they are needed. Of a good one, its `presence` is looked at alone.
    `there`, of one that is about to be told: where it was looked for, and what stands there.
    """

    one: Watched
    kept: Kept
    evidence: Evidence | None
    window: CycleWindow
    ahead: datetime | None = None
    presence: Remains | None = None
    there: tuple[str, str] = ("", "")


@dataclass(frozen=True, slots=True)
class CycleJudgement:
    """A cycle as it was kept, and as it stands now.

    `look_again_at`: when what was delivered is looked at again. `gone_since`: since when nothing of it is
    left. `anew`: it was written again at this time, which changes nothing. `there`, of one
    that is about to be told: where it was looked for, and what stands there.
    """

    one: Watched
    kept: Kept
    result: CycleVerdict
    evidence: Evidence | None
    look_again_at: datetime | None = None
    gone_since: datetime | None = None
    anew: datetime | None = None
    there: tuple[str, str] = ("", "")

    @property
    def revoked(self) -> bool:
        """Whether what was good has just been found to be taken away."""
        return self.kept.status.good and not self.result.status.good

    @property
    def arriving(self) -> bool:
        """Whether data is there that is still being written."""
        return self.evidence is not None and self.evidence.arriving is not None

    @property
    def differs(self) -> bool:
        """Whether there is anything to write, beside what is told of it."""
        return (
            self.result.status is not self.kept.status
            or self.arriving != (self.kept.arriving_since is not None)
            or self.look_again_at != self.kept.look_again_at
            or self.gone_since != self.kept.gone_since
        )


@dataclass(frozen=True, slots=True)
class Turn:
    """A cycle that moved from one status to another in this tick."""

    kept: Kept
    after: CycleStatus
    reason: str


# The status of a cycle as a pure function of the cycle, its evidence and an instant.

# The status of a cycle, as a pure function of the cycle, its evidence and an instant.

CLOCK_TOLERANCE = timedelta(seconds=2)
"""How far two clocks may differ before evidence counts as coming from the future."""


def judge_on(cycle: Cycle, grounds: Grounds, now: datetime) -> CycleVerdict:
    """The status of a cycle at `now` on these grounds, which it carries: who stores them can ask again."""
    verdict = judge(
        cycle,
        None if grounds.is_empty else grounds.evidence,
        now,
        give_up_at=grounds.give_up_at,
        excused=grounds.excused or None,
    )
    if grounds.is_empty and not grounds.excused:
        said = f"{verdict.reason} An empty delivery came, which is forbidden."
        verdict = replace(verdict, reason=said)
    if grounds.revoked and verdict.status in (CycleStatus.PENDING, CycleStatus.MISSING):
        verdict = replace(verdict, reason=grounds.revoked)
    return replace(verdict, grounds=grounds)


def judge(
    cycle: Cycle,
    evidence: Evidence | None,
    now: datetime,
    *,
    give_up_at: datetime | None = None,
    excused: str | None = None,
) -> CycleVerdict:
    """The status of a cycle at `now`; the same arguments give the same answer for ever.

    All instants are aware. Intervals are closed: delivered exactly at `due_at` is on time, exactly at
    `breach_at` in grace, exactly at `give_up_at` still late. `excused` is the reason of a calendar or a
    waiver. Evidence of None says that a source was read and nothing was there; say with
    `readable=False` that it could not be read: that is never `missing`.
    """
    if excused is not None:
        return CycleVerdict(CycleStatus.EXCUSED, None, excused)
    if evidence is not None and not evidence.readable:
        return _while_unreadable(cycle, evidence, now)
    if evidence is None or evidence.delivered_at is None:
        whole = "complete " if evidence is not None and evidence.arriving is not None else ""
        nothing = _without_delivery(cycle, now, give_up_at, whole)
        so_far = evidence.detail if evidence is not None else ""
        return replace(nothing, reason=f"{nothing.reason} So far: {so_far}.") if so_far else nothing
    return _delivered(cycle, evidence, evidence.delivered_at, now, give_up_at)


def _before_breach(cycle: Cycle, now: datetime) -> CycleVerdict | None:
    """What waiting looks like, or None when there is nothing to wait for any more."""
    if now < cycle.due_at:
        return CycleVerdict(CycleStatus.SCHEDULED, None, f"Due {_text(cycle.due_at)}.")
    if now <= cycle.breach_at:
        return CycleVerdict(
            CycleStatus.PENDING,
            None,
            f"Due since {_text(cycle.due_at)}, in grace until {_text(cycle.breach_at)}.",
        )
    return None


def _while_unreadable(cycle: Cycle, evidence: Evidence, now: datetime) -> CycleVerdict:
    problem = evidence.problem or "no reason given"
    said = "does not tell" if evidence.settled else "could not be read"
    return _before_breach(cycle, now) or CycleVerdict(
        CycleStatus.UNKNOWN, None, f"The {evidence.source} {said}: {problem}."
    )


def _without_delivery(cycle: Cycle, now: datetime, give_up_at: datetime | None, whole: str) -> CycleVerdict:
    if waiting := _before_breach(cycle, now):
        return waiting
    if give_up_at is not None and now > give_up_at:
        return CycleVerdict(
            CycleStatus.NEVER,
            None,
            f"Nothing {whole}arrived; given up {_text(give_up_at)}, due {_text(cycle.due_at)}.",
        )
    return CycleVerdict(
        CycleStatus.MISSING,
        None,
        f"Nothing {whole}arrived by {_text(cycle.breach_at)}, due {_text(cycle.due_at)}.",
    )


def _delivered(
    cycle: Cycle, evidence: Evidence, claimed: datetime, now: datetime, give_up_at: datetime | None
) -> CycleVerdict:
    at, seen = claimed, evidence.first_seen
    # Nobody sees a delivery before it happens: then the source's clock is wrong and ours decides.
    if seen is not None and seen + CLOCK_TOLERANCE < claimed:
        at = seen
    if at > now + CLOCK_TOLERANCE:
        return CycleVerdict(
            CycleStatus.UNKNOWN,
            None,
            f"The {evidence.source} says {_text(claimed)}, later than now, {_text(now)}: a clock is wrong.",
        )
    status = _status_of_delivery(cycle, at, give_up_at)
    reason = f"Delivered {_text(at)} by {evidence.source}, due {_text(cycle.due_at)}."
    if evidence.detail:
        reason += f" But {evidence.detail}."
    if at != claimed:
        reason += f" Its own clock says {_text(claimed)}; the time it was first seen counts."
    return CycleVerdict(status, at - cycle.due_at, reason)


def _status_of_delivery(cycle: Cycle, at: datetime, give_up_at: datetime | None) -> CycleStatus:
    if at <= cycle.due_at:
        return CycleStatus.ON_TIME
    if at <= cycle.breach_at:
        return CycleStatus.ON_TIME_IN_GRACE
    # A bad cycle that was closed stays closed; what comes afterwards is a new fact, not a late one.
    if give_up_at is not None and at > give_up_at:
        return CycleStatus.NEVER
    return CycleStatus.LATE


def _text(instant: datetime) -> str:
    return instant.isoformat(sep=" ", timespec="seconds").replace("+00:00", "Z")


# What was written anew while nobody looked: its time does not tell when it came.

WATCHED = timedelta(minutes=15)
"""A watcher whose last tick was so little before a breach was there: what came since is late."""


def of_files(
    cycle: Cycle,
    evidence: Evidence | None,
    *,
    seen_missing: bool,
    seen_blind: bool,
    looked_at: datetime | None,
) -> Evidence | None:
    """Evidence that a compaction may have moved, with what it is worth.

    Files that are newer than the breach are late where somebody saw that nothing was there, or looked
    shortly before the breach (`looked_at` is the last tick before this one, None: there was none). Else an
    older time that another source has counts, and without one nobody knows. `seen_blind`: who looked last
    could not see.
    """
    if evidence is None or evidence.delivered_at is None or evidence.delivered_at <= cycle.breach_at:
        return evidence
    if evidence.names_cycle or not _moves(cycle, evidence) or seen_missing:
        return evidence
    if not seen_blind and looked_at is not None and looked_at >= cycle.breach_at - WATCHED:
        return evidence
    older = [
        one for one in evidence.claims if one.delivered_at is not None and one.delivered_at <= cycle.breach_at
    ]
    if older:
        return replace(evidence, source=older[0].source, delivered_at=older[0].delivered_at)
    problem = (
        f"it was written {evidence.delivered_at:%F %T}Z, after the breach, and may have been there before: "
        "nobody looked in between"
    )
    return replace(evidence, delivered_at=None, readable=False, problem=problem, settled=True)


def _moves(cycle: Cycle, evidence: Evidence) -> bool:
    """Whether a source has the time of the newest write: files, and a marker that each one overwrites."""
    return evidence.source == "file" or (evidence.source == "marker" and not cycle.partitions)


# Whether what was delivered is still there.

CONFIRMED_AFTER = timedelta(minutes=10)
"""What is gone for a moment is being written anew."""

LOOKED_AT_FOR = timedelta(hours=24)
"""How long after it was due a delivery is looked at again: later on, tables may forget what is old."""

_FIRST = timedelta(minutes=15)
FILE_SOURCES = ("marker", "file")


def next_look(
    cycle: Cycle, place: DeliveryPlace, claims: tuple[SourceAnswer, ...], now: datetime
) -> datetime | None:
    """When to look again whether a delivery is still there, ever more rarely; None: not any more.

    Only where files showed it, or the commits of a table with a log: a receipt says nothing of what became
    of the data.
    """
    sources = ("commit",) if place.format in LAKEHOUSE else FILE_SOURCES
    if not any(one.source in sources and one.delivered_at is not None for one in claims):
        return None
    following = now + max(_FIRST, 2 * (now - cycle.due_at))
    return following if following <= cycle.due_at + LOOKED_AT_FOR else None


# Which updates of a table without partitions are meant for which cycle.

# A snapshot that comes in the last quarter before a due instant is meant for that one.
EARLY = 0.25


def window_of(slo: Slo, cycle: Cycle) -> tuple[CycleWindow, datetime | None]:
    """When an update without a partition value is meant for a cycle, and when the third next one is due.

    One update serves one cycle: from a quarter of the gap before it is due until a quarter before the
    next one.
    """
    due = cycle.due_at
    before = slo.schedule.latest(due - timedelta(seconds=1))
    ahead = [following.at for following, _ in zip(slo.schedule.after(due), range(3), strict=False)]
    opens = due - (due - before.at) * EARLY if before else None
    closes = ahead[0] - (ahead[0] - due) * EARLY if ahead else None
    return CycleWindow(before.at if before else None, opens, closes), ahead[-1] if ahead else None


def of_snapshot(
    seen_missing: bool, evidence: Evidence | None, window: CycleWindow, give_up_at: datetime | None
) -> tuple[Evidence | None, datetime | None]:
    """Whether an update without a partition value is meant for this cycle.

    After the third next one is due, a snapshot that never came is given up.
    """
    if evidence is None or evidence.delivered_at is None or evidence.names_cycle:
        return evidence, give_up_at
    if window.opens is not None and evidence.delivered_at < window.opens:
        return None, give_up_at
    closes = window.closes
    if closes is not None and evidence.delivered_at >= closes:
        # What is there now belongs to a later cycle, and what came for this one, if anything, is overwritten:
        # only who looked in time knows that nothing did.
        if not seen_missing:
            problem = "a later update has overwritten what may have come for it, and nobody looked before"
            return Evidence(evidence.source, readable=False, problem=problem, settled=True), give_up_at
        return None, min(give_up_at or closes, closes)
    return evidence, give_up_at


# From what was seen of a cycle to what becomes of it.


def evaluate_cycle(seen: Sighting, now: datetime, looked_at: datetime | None) -> CycleJudgement:
    """What becomes of a cycle at `now`; `looked_at` is the last tick before this one, if there was one."""
    if seen.presence is not None:
        return _again(seen, seen.presence, now)
    result, evidence = _judged(seen, now, looked_at)
    kept, look_again_at = seen.kept, None
    # A miss that was seen stays one: what cannot be read afterwards takes nothing back.
    if kept.status is CycleStatus.MISSING and result.status is CycleStatus.UNKNOWN:
        result = CycleVerdict(CycleStatus.MISSING, None, kept.reason)
    if result.status.good and evidence is not None:
        look_again_at = next_look(kept.cycle, seen.one.place, evidence.claims, now)
    gone_since = None if result.status.good else kept.gone_since
    return CycleJudgement(seen.one, kept, result, evidence, look_again_at, gone_since, there=seen.there)


def _judged(
    seen: Sighting, now: datetime, looked_at: datetime | None
) -> tuple[CycleVerdict, Evidence | None]:
    slo, kept, evidence = seen.one.slo, seen.kept, seen.evidence
    cycle, missing = kept.cycle, kept.status is CycleStatus.MISSING
    give_up_at = cycle.due_at + slo.give_up_after if slo.give_up_after else None
    if not cycle.partitions:
        evidence, give_up_at = of_snapshot(missing, evidence, seen.window, give_up_at or seen.ahead)
    blind = kept.status is CycleStatus.UNKNOWN
    evidence = of_files(cycle, evidence, seen_missing=missing, seen_blind=blind, looked_at=looked_at)
    if evidence is not None and evidence.delivered_at is not None:
        evidence = replace(evidence, first_seen=kept.first_seen_at or now)
    grounds = Grounds(
        evidence, give_up_at, slo.delivery.empty == "allowed", revoked=kept.reason if kept.revoked else ""
    )
    # What is no delivery, being empty, is no evidence of one.
    return judge_on(cycle, grounds, now), None if grounds.is_empty else evidence


def _again(seen: Sighting, found: Remains, now: datetime) -> CycleJudgement:
    """A delivery that was good, looked at again: it is taken for gone when it is so for a while."""
    kept, cycle = seen.kept, seen.kept.cycle
    lateness = kept.delivered_at - cycle.due_at if kept.delivered_at else None
    claims = kept.claims
    if found.anew is not None:
        claims = tuple(replace(one, delivered_at=found.anew) for one in claims)
    evidence = Evidence(
        kept.source or "file", kept.delivered_at, first_seen=kept.first_seen_at, claims=claims
    )
    same = CycleVerdict(kept.status, lateness, kept.reason)
    if not found.gone:
        following = next_look(cycle, seen.one.place, claims, now)
        return CycleJudgement(seen.one, kept, same, evidence, following, anew=found.anew)
    since = kept.gone_since or now
    sure_at = since + CONFIRMED_AFTER
    if now < sure_at:
        return CycleJudgement(seen.one, kept, same, evidence, sure_at, since)
    delivered = f"{kept.delivered_at:%F %T}Z" if kept.delivered_at else "before"
    reason = (
        f"Delivered {delivered}, and taken away again: nothing is left in {found.gone} since {since:%F %T}Z."
    )
    give_up = seen.one.slo.give_up_after
    grounds = Grounds(None, cycle.due_at + give_up if give_up else None, revoked=reason)
    return CycleJudgement(seen.one, kept, judge_on(cycle, grounds, now), None, None, since)
