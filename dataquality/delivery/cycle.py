"""Cycles of deliveries, what was seen of them and what became of them: the values of the watcher."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from dq.contracts.extension import EvidenceSource
from dq.contracts.schedule import Cycle
from dq.contracts.schedule.cycle import Partition
from dq.contracts.shared.outcome import CycleStatus
from dq.contracts.slo import Slo
from dq.lake.storage import Files

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
