"""Delivery cycles, the evidence of them, and their status as a pure function of cycle, evidence and time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from dq.contracts.extension import EvidenceSource
from dq.contracts.incident import CycleStatus
from dq.contracts.layout import HIVE, Layout
from dq.contracts.outcome import LAKEHOUSE
from dq.contracts.slo import Cycle, Partition, Slo
from dq.lake.storage import Files

# Values of the watcher: cycles, observations and evaluations.

# Evidence that a cycle's data arrived, and when.

DISAGREEMENT_TOLERANCE = timedelta(minutes=5)
"""Sources disagree if their times differ by more than this."""


@dataclass(frozen=True, slots=True)
class SourceAnswer:
    """Answer of one evidence source about a cycle: when it arrived, or None if it is not complete."""

    source: EvidenceSource
    delivered_at: datetime | None
    rows: int | None = None


@dataclass(frozen=True, slots=True)
class Evidence:
    """Evidence of one source about one cycle; instants are aware.

    `delivered_at` is the first instant at which the source's condition became true, by the source's own
    clock, or None if the source was read and shows nothing. `first_seen` is when a watcher first saw it.
    `readable` is False if the source could not be read; `problem` then gives the reason, without secrets.
    `rows` is the delivered row count if the source knows it. `names_cycle`: the source itself names the
    cycle, so that it need not be inferred from the time. `settled`: the source can never be read.
    `arriving`: the newest write time of data that is still being written. `claims` are the answers of all
    sources that gave one, including this one.
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


def disagreeing_claims(
    claims: tuple[SourceAnswer, ...], deciding_source: EvidenceSource | None
) -> list[SourceAnswer]:
    """Return the claims whose time differs from the deciding source's by more than the tolerance."""
    times = {claim.source: claim.delivered_at for claim in claims if claim.delivered_at is not None}
    decided_at = times.get(deciding_source) if deciding_source is not None else None
    if decided_at is None:
        return []
    return [
        claim
        for claim in claims
        if claim.delivered_at is not None and abs(claim.delivered_at - decided_at) > DISAGREEMENT_TOLERANCE
    ]


@dataclass(frozen=True, slots=True)
class DeliveryPlace:
    """Location of an object's data: the folder or URI of the table, its format and its marker's name.

    `other_servers` are the contract's other servers; receipts of them do not count here. `folders` are
    (label, folder) of partitions that were published outside the table's folder. `layout` names the others.
    """

    path: str
    format: str
    marker: str
    other_servers: frozenset[str] = frozenset()
    folders: frozenset[tuple[str, str]] = frozenset()
    layout: Layout = HIVE


@dataclass(frozen=True, slots=True)
class Receipt:
    """Receipt of a publish step: when it finished, and how many rows it brought, if known.

    After redeliveries, `delivered_at` is the first time, `redelivered_at` are the later ones, and the other
    fields are of the newest revision. `server` received the first delivery; "" if an older dq wrote the
    receipt.
    """

    delivered_at: datetime
    rows: int | None
    revision: int = 1
    redelivered_at: tuple[datetime, ...] = ()
    server: str = ""

    def with_redelivery(self, redelivery: Receipt) -> Receipt:
        """Return this receipt combined with a later one; the first delivery time is kept."""
        redelivered_at = (*self.redelivered_at, redelivery.delivered_at, *redelivery.redelivered_at)
        return replace(
            self, rows=redelivery.rows, revision=redelivery.revision, redelivered_at=redelivered_at
        )

    def only_after(self, instant: datetime) -> Receipt | None:
        """Return the receipt of the deliveries after an instant, or None if there are none."""
        times = [time for time in (self.delivered_at, *self.redelivered_at) if time > instant]
        return replace(self, delivered_at=times[0], redelivered_at=tuple(times[1:])) if times else None


# Receipts by partition label (see `label`), and also by `due:<instant>` if they name their cycle.
Receipts = Mapping[str, Receipt]


@dataclass(frozen=True, slots=True)
class ObjectTimes:
    """Times of a partition's marker, or of its data objects, by the events of the storage.

    They are the first and the newest creation and the newest removal, each None if there was none.
    """

    first_at: datetime | None
    newest_at: datetime | None
    removed_at: datetime | None = None

    def present(self, after: datetime | None = None) -> ObjectTimes | None:
        """Return the times since the newest removal and since `after`, or None if nothing is known to be
        there.
        """
        begin = max((instant for instant in (self.removed_at, after) if instant is not None), default=None)
        if self.newest_at is None or (begin is not None and self.newest_at <= begin):
            return None
        is_first_removed = begin is not None and self.first_at is not None and self.first_at <= begin
        return replace(self, first_at=self.newest_at if is_first_removed else self.first_at)


StorageEvents = Mapping[tuple[str, bool], ObjectTimes]
"""Times of an object's partitions, by label and whether they are those of the marker."""


def label(partition: Partition) -> str:
    """Return a partition as text, `dt=2026-01-01/region=eu`, or "" for a table without partitions.

    Columns are in alphabetical order, so that each partition has exactly one label.
    """
    return "/".join(f"{column}={value}" for column, value in sorted(partition))


def partition_from_label(text: str) -> Partition:
    """Return the partition of a label.

    Values may contain slashes: a segment without `=` continues a value.
    """
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
    """Period in which an update without a partition value counts for a cycle: [`opens_at`, `closes_at`).

    `previous_due_at` is when the previous cycle was due. None is an open end.
    """

    previous_due_at: datetime | None
    opens_at: datetime | None
    closes_at: datetime | None

    def contains(self, instant: datetime) -> bool:
        """True if an instant lies in the window."""
        return (self.opens_at is None or self.opens_at <= instant) and (
            self.closes_at is None or instant < self.closes_at
        )


@dataclass(frozen=True, slots=True)
class PresenceResult:
    """Result of re-checking a delivery: the partition that is gone, or when it was rewritten.

    Both are empty if the data is unchanged or cannot be read.
    """

    missing_part: str = ""
    rewritten_at: datetime | None = None


# Id of a cycle, its status, whether people were notified, and until when that is inhibited.
CycleState = tuple[int, str, bool, datetime | None]


@dataclass(frozen=True, slots=True)
class MissingPartition:
    """A partition of a missing cycle, with the state of the cycle.

    `label` is the partition's name in receipts. `path` is where its files are expected, below `root`; both
    are None if only a receipt can show the delivery.
    """

    cycle_id: int
    part: int
    status: str
    notified: bool
    inhibited_until: datetime | None
    label: str
    root: str | None = None
    path: str | None = None

    @property
    def state(self) -> CycleState:
        return (self.cycle_id, self.status, self.notified, self.inhibited_until)


OPEN = (CycleStatus.SCHEDULED, CycleStatus.PENDING, CycleStatus.MISSING, CycleStatus.UNKNOWN)


# Evidence can become visible late: alerts are sent this long after the breach. The status is not affected.
SETTLE = timedelta(seconds=60)


@dataclass(frozen=True, slots=True)
class CycleRecord:
    """A delivery cycle as stored. `notified`: its breach was passed to the alerts.

    `blind` is the root or format whose outage makes it unknown. `inhibiting_root` is the root under which so
    many deliveries are missing that the owners' alerts are inhibited until `inhibited_until`. `claims` are
    the sources' answers at the last evaluation. A delivery is re-checked at `look_again_at`; its data is
    gone since `gone_since`, and was rewritten at `anew_at`. `contract_hash` is the SHA-256 of the contract
    file it came from, empty if an older dq wrote it. `recorded_at` is the tick that wrote the row, or None
    for an older dq. `excuse` is the reason why it does not count, and `counts_since` when an excuse was
    undone.
    """

    id: int
    cycle: Cycle
    status: CycleStatus
    reason: str
    delivered_at: datetime | None
    first_seen_at: datetime | None
    notified: bool
    blind: str | None = None
    inhibiting_root: str | None = None
    inhibited_until: datetime | None = None
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

    def was_recorded_by(self, instant: datetime) -> bool:
        """True if it was due and recorded by an instant; rows of an older dq count from their due instant."""
        return max(self.cycle.due_at, self.recorded_at or self.cycle.due_at) <= instant

    @property
    def notify_at(self) -> datetime:
        """Earliest instant of the alert about its breach."""
        return self.inhibited_until or self.cycle.breach_at + SETTLE

    @property
    def revoked(self) -> bool:
        """True if it was delivered and its data has disappeared since."""
        return self.gone_since is not None and not self.status.delivered


@dataclass(frozen=True, slots=True)
class VerdictInputs:
    """Inputs of a verdict in addition to the cycle and the time.

    `excused` is the reason why the cycle does not count, and `revoked` how its data disappeared, else "".
    """

    evidence: Evidence | None = None
    give_up_at: datetime | None = None
    empty_allowed: bool = True
    excused: str = ""
    revoked: str = ""

    @property
    def is_empty(self) -> bool:
        """True if the delivery has no rows and empty deliveries are forbidden."""
        return self.evidence is not None and self.evidence.rows == 0 and not self.empty_allowed


@dataclass(frozen=True, slots=True)
class CycleVerdict:
    """Status of a cycle as of an instant.

    `lateness` is delivery minus due, negative if early, and None while nothing counts as delivered.
    `inputs` are set by `evaluate_inputs`.
    """

    status: CycleStatus
    lateness: timedelta | None
    reason: str
    inputs: VerdictInputs | None = None

    def delivered_at(self, cycle: Cycle) -> datetime | None:
        """Return when the cycle was delivered, or None while nothing counts as delivered."""
        return cycle.due_at + self.lateness if self.lateness is not None else None


@dataclass(frozen=True, slots=True)
class WatchTarget:
    """A watched SLO: its data's location, the reader of it, and its lake root or bucket, "" if unknown."""

    slo: Slo
    place: DeliveryPlace
    files: Files
    root: str = ""


@dataclass(frozen=True, slots=True)
class UnnotifiedMiss:
    """A late or never delivered cycle that ended before anyone was notified of the breach."""

    slo: Slo
    record: CycleRecord
    verdict: CycleVerdict


@dataclass(frozen=True, slots=True)
class Observation:
    """Observation of one cycle. `evidence` is None if every source was read and shows nothing.

    `window` is when an update without a partition value counts for it, and `third_next_due_at` when the third
    next cycle is due; both only for unpartitioned and lakehouse tables. Good cycles have a `presence` only.
    `location_summary` is set if an alert is about to be sent: where the data was searched, and what is there.
    """

    target: WatchTarget
    record: CycleRecord
    evidence: Evidence | None
    window: CycleWindow
    third_next_due_at: datetime | None = None
    presence: PresenceResult | None = None
    location_summary: tuple[str, str] = ("", "")


@dataclass(frozen=True, slots=True)
class CycleEvaluation:
    """A stored cycle with its newly evaluated state.

    `look_again_at` is when a delivery is re-checked next. `gone_since` is since when its data is gone.
    `rewritten_at` is when it was rewritten, which changes no status. `location_summary` is set if an alert is
    about to be sent: where the data was searched, and what is there.
    """

    target: WatchTarget
    record: CycleRecord
    result: CycleVerdict
    evidence: Evidence | None
    look_again_at: datetime | None = None
    gone_since: datetime | None = None
    rewritten_at: datetime | None = None
    location_summary: tuple[str, str] = ("", "")

    @property
    def revoked(self) -> bool:
        """True if the data of a delivery has just been found to have disappeared."""
        return self.record.status.delivered and not self.result.status.delivered

    @property
    def arriving(self) -> bool:
        """True if there is data that is still being written."""
        return self.evidence is not None and self.evidence.arriving is not None

    @property
    def differs(self) -> bool:
        """True if there is anything to store apart from notifications."""
        return (
            self.result.status is not self.record.status
            or self.arriving != (self.record.arriving_since is not None)
            or self.look_again_at != self.record.look_again_at
            or self.gone_since != self.record.gone_since
        )


@dataclass(frozen=True, slots=True)
class CycleTransition:
    """A status change of a cycle in this tick."""

    record: CycleRecord
    after: CycleStatus
    reason: str


# The status of a cycle as a pure function of the cycle, its evidence and an instant.

CLOCK_TOLERANCE = timedelta(seconds=2)
"""Maximum difference of two clocks; beyond it, evidence counts as coming from the future."""


def evaluate_inputs(cycle: Cycle, inputs: VerdictInputs, now: datetime) -> CycleVerdict:
    """Return the verdict on a cycle at `now`.

    It includes its inputs, so that it can be stored and replayed.
    """
    verdict = evaluate_evidence(
        cycle,
        None if inputs.is_empty else inputs.evidence,
        now,
        give_up_at=inputs.give_up_at,
        excused=inputs.excused or None,
    )
    if inputs.is_empty and not inputs.excused:
        reason = f"{verdict.reason} An empty delivery came, which is forbidden."
        verdict = replace(verdict, reason=reason)
    if inputs.revoked and verdict.status in (CycleStatus.PENDING, CycleStatus.MISSING):
        verdict = replace(verdict, reason=inputs.revoked)
    return replace(verdict, inputs=inputs)


def evaluate_evidence(
    cycle: Cycle,
    evidence: Evidence | None,
    now: datetime,
    *,
    give_up_at: datetime | None = None,
    excused: str | None = None,
) -> CycleVerdict:
    """Return the verdict on a cycle at `now`. Deterministic.

    All instants are aware. Intervals are closed: delivered exactly at `due_at` is on time, exactly at
    `breach_at` in grace, exactly at `give_up_at` still late. `excused` is the reason of a calendar or a
    waiver. `evidence=None` means that the sources were read and show nothing; evidence with `readable=False`
    is never `missing`.
    """
    if excused is not None:
        return CycleVerdict(CycleStatus.EXCUSED, None, excused)
    if evidence is not None and not evidence.readable:
        return _verdict_unreadable(cycle, evidence, now)
    if evidence is None or evidence.delivered_at is None:
        qualifier = "complete " if evidence is not None and evidence.arriving is not None else ""
        verdict = _verdict_without_delivery(cycle, now, give_up_at, qualifier)
        partial_detail = evidence.detail if evidence is not None else ""
        return (
            replace(verdict, reason=f"{verdict.reason} So far: {partial_detail}.")
            if partial_detail
            else verdict
        )
    return _verdict_delivered(cycle, evidence, evidence.delivered_at, now, give_up_at)


def _verdict_before_breach(cycle: Cycle, now: datetime) -> CycleVerdict | None:
    """Return the verdict while the cycle is not breached, or None after the breach."""
    if now < cycle.due_at:
        return CycleVerdict(CycleStatus.SCHEDULED, None, f"Due {_text(cycle.due_at)}.")
    if now <= cycle.breach_at:
        return CycleVerdict(
            CycleStatus.PENDING,
            None,
            f"Due since {_text(cycle.due_at)}, in grace until {_text(cycle.breach_at)}.",
        )
    return None


def _verdict_unreadable(cycle: Cycle, evidence: Evidence, now: datetime) -> CycleVerdict:
    problem = evidence.problem or "no reason given"
    failure = "does not tell" if evidence.settled else "could not be read"
    return _verdict_before_breach(cycle, now) or CycleVerdict(
        CycleStatus.UNKNOWN, None, f"The {evidence.source} {failure}: {problem}."
    )


def _verdict_without_delivery(
    cycle: Cycle, now: datetime, give_up_at: datetime | None, qualifier: str
) -> CycleVerdict:
    if waiting_verdict := _verdict_before_breach(cycle, now):
        return waiting_verdict
    if give_up_at is not None and now > give_up_at:
        return CycleVerdict(
            CycleStatus.NEVER,
            None,
            f"Nothing {qualifier}arrived; given up {_text(give_up_at)}, due {_text(cycle.due_at)}.",
        )
    return CycleVerdict(
        CycleStatus.MISSING,
        None,
        f"Nothing {qualifier}arrived by {_text(cycle.breach_at)}, due {_text(cycle.due_at)}.",
    )


def _verdict_delivered(
    cycle: Cycle, evidence: Evidence, claimed: datetime, now: datetime, give_up_at: datetime | None
) -> CycleVerdict:
    delivered_at, first_seen = claimed, evidence.first_seen
    # A delivery cannot be seen before it happens: the source's clock is wrong, and the watcher's decides.
    if first_seen is not None and first_seen + CLOCK_TOLERANCE < claimed:
        delivered_at = first_seen
    if delivered_at > now + CLOCK_TOLERANCE:
        return CycleVerdict(
            CycleStatus.UNKNOWN,
            None,
            f"The {evidence.source} says {_text(claimed)}, later than now, {_text(now)}: a clock is wrong.",
        )
    status = _status_of_delivery(cycle, delivered_at, give_up_at)
    reason = f"Delivered {_text(delivered_at)} by {evidence.source}, due {_text(cycle.due_at)}."
    if evidence.detail:
        reason += f" But {evidence.detail}."
    if delivered_at != claimed:
        reason += f" Its own clock says {_text(claimed)}; the time it was first seen counts."
    return CycleVerdict(status, delivered_at - cycle.due_at, reason)


def _status_of_delivery(cycle: Cycle, delivered_at: datetime, give_up_at: datetime | None) -> CycleStatus:
    if delivered_at <= cycle.due_at:
        return CycleStatus.ON_TIME
    if delivered_at <= cycle.breach_at:
        return CycleStatus.ON_TIME_IN_GRACE
    # A given-up cycle stays `never`; data that arrives afterwards is not a late delivery.
    if give_up_at is not None and delivered_at > give_up_at:
        return CycleStatus.NEVER
    return CycleStatus.LATE


def _text(instant: datetime) -> str:
    return instant.isoformat(sep=" ", timespec="seconds").replace("+00:00", "Z")


# Rewritten files: if they were rewritten between ticks, their times do not show when the data arrived.

RECENT_TICK = timedelta(minutes=15)
"""If the last tick was at most this long before the breach, newer data is known to be late."""


def adjust_for_rewrites(
    cycle: Cycle,
    evidence: Evidence | None,
    *,
    was_missing: bool,
    was_unknown: bool,
    last_tick_at: datetime | None,
) -> Evidence | None:
    """Return evidence adjusted for rewritten files (e.g. compaction), whose times are not the delivery times.

    Files that are newer than the breach are late if the cycle was seen missing before, or if the last tick
    (`last_tick_at`, None if there was none) was shortly before the breach. Otherwise the older time of
    another source counts, and without one the evidence is unreadable. `was_unknown`: the last evaluation
    could not read the evidence.
    """
    if evidence is None or evidence.delivered_at is None or evidence.delivered_at <= cycle.breach_at:
        return evidence
    if evidence.names_cycle or not _has_write_time(cycle, evidence) or was_missing:
        return evidence
    if not was_unknown and last_tick_at is not None and last_tick_at >= cycle.breach_at - RECENT_TICK:
        return evidence
    older_claims = [
        claim
        for claim in evidence.claims
        if claim.delivered_at is not None and claim.delivered_at <= cycle.breach_at
    ]
    if older_claims:
        return replace(evidence, source=older_claims[0].source, delivered_at=older_claims[0].delivered_at)
    problem = (
        f"it was written {evidence.delivered_at:%F %T}Z, after the breach, and may have been there before: "
        "no run checked in between"
    )
    return replace(evidence, delivered_at=None, readable=False, problem=problem, settled=True)


def _has_write_time(cycle: Cycle, evidence: Evidence) -> bool:
    """True if a source has the time of the newest write: files, also by events, and a marker that each
    delivery overwrites.
    """
    return evidence.source in ("file", "event") or (evidence.source == "marker" and not cycle.partitions)


# Re-checks of delivered data.

CONFIRMED_AFTER = timedelta(minutes=10)
"""Data that is gone for a shorter time is being rewritten."""

RECHECK_PERIOD = timedelta(hours=24)
"""Period after the due instant in which deliveries are re-checked; later, tables may expire old data."""

_FIRST_RECHECK = timedelta(minutes=15)
FILE_SOURCES = ("marker", "file")


def next_recheck_at(
    cycle: Cycle, place: DeliveryPlace, claims: tuple[SourceAnswer, ...], now: datetime
) -> datetime | None:
    """Return when to re-check that a delivery still exists, at growing intervals, or None for never.

    Only deliveries shown by files and their events, or by the commits of a table with a log, are re-checked:
    a receipt does not show whether the data still exists.
    """
    sources = ("commit",) if place.format in LAKEHOUSE else (*FILE_SOURCES, "event")
    if not any(claim.source in sources and claim.delivered_at is not None for claim in claims):
        return None
    recheck_at = now + max(_FIRST_RECHECK, 2 * (now - cycle.due_at))
    return recheck_at if recheck_at <= cycle.due_at + RECHECK_PERIOD else None


# Assignment of updates of unpartitioned tables to cycles.

# A snapshot in the last quarter of the interval before a due instant counts for that instant.
EARLY_SHARE = 0.25


def cycle_window(slo: Slo, cycle: Cycle) -> tuple[CycleWindow, datetime | None]:
    """Return the window of updates that count for a cycle, and when the third next cycle is due.

    Each update counts for one cycle: from a quarter of the interval before it is due until a quarter of the
    interval before the next one is due. If any new data is expected, everything after the previous due time
    counts.
    """
    due_at = cycle.due_at
    previous = slo.schedule.latest(due_at - timedelta(seconds=1))
    upcoming = [occurrence.at for occurrence, _ in zip(slo.schedule.after(due_at), range(3), strict=False)]
    if slo.expects_new_data:
        opens_at = previous.at + timedelta.resolution if previous else None
        closes_at = None
    else:
        opens_at = due_at - (due_at - previous.at) * EARLY_SHARE if previous else None
        closes_at = upcoming[0] - (upcoming[0] - due_at) * EARLY_SHARE if upcoming else None
    window = CycleWindow(previous.at if previous else None, opens_at, closes_at)
    return window, upcoming[-1] if upcoming else None


def match_snapshot(
    was_missing: bool, evidence: Evidence | None, window: CycleWindow, give_up_at: datetime | None
) -> tuple[Evidence | None, datetime | None]:
    """Return the evidence if it counts for this cycle, and when the cycle is given up.

    A snapshot that never came is given up when the third next cycle is due.
    """
    if evidence is None or evidence.delivered_at is None or evidence.names_cycle:
        return evidence, give_up_at
    if window.opens_at is not None and evidence.delivered_at < window.opens_at:
        return None, give_up_at
    closes_at = window.closes_at
    if closes_at is not None and evidence.delivered_at >= closes_at:
        # The current data belongs to a later cycle and has overwritten that of this one, if there was any.
        # Only an earlier observation shows that there was none.
        if not was_missing:
            problem = "a later update has overwritten any delivery for it, and no run checked before"
            return Evidence(evidence.source, readable=False, problem=problem, settled=True), give_up_at
        return None, min(give_up_at or closes_at, closes_at)
    return evidence, give_up_at


# Evaluation of observations.


def evaluate_cycle(observation: Observation, now: datetime, last_tick_at: datetime | None) -> CycleEvaluation:
    """Evaluate a cycle at `now`. `last_tick_at` is the previous tick, or None if there was none."""
    if observation.presence is not None:
        return _recheck_delivered(observation, observation.presence, now)
    result, evidence = _evaluate_observation(observation, now, last_tick_at)
    record, recheck_at = observation.record, None
    # Unreadable evidence does not revert a confirmed miss.
    if record.status is CycleStatus.MISSING and result.status is CycleStatus.UNKNOWN:
        result = CycleVerdict(CycleStatus.MISSING, None, record.reason)
    # New data in any partition is no longer looked for once it has arrived.
    if result.status.delivered and evidence is not None and not observation.target.slo.expects_new_data:
        recheck_at = next_recheck_at(record.cycle, observation.target.place, evidence.claims, now)
    gone_since = None if result.status.delivered else record.gone_since
    return CycleEvaluation(
        observation.target,
        record,
        result,
        evidence,
        recheck_at,
        gone_since,
        location_summary=observation.location_summary,
    )


def _evaluate_observation(
    observation: Observation, now: datetime, last_tick_at: datetime | None
) -> tuple[CycleVerdict, Evidence | None]:
    slo, record, evidence = observation.target.slo, observation.record, observation.evidence
    cycle, was_missing = record.cycle, record.status is CycleStatus.MISSING
    give_up_at = cycle.due_at + slo.give_up_after if slo.give_up_after else None
    if not cycle.partitions:
        evidence, give_up_at = match_snapshot(
            was_missing, evidence, observation.window, give_up_at or observation.third_next_due_at
        )
    was_unknown = record.status is CycleStatus.UNKNOWN
    evidence = adjust_for_rewrites(
        cycle, evidence, was_missing=was_missing, was_unknown=was_unknown, last_tick_at=last_tick_at
    )
    if evidence is not None and evidence.delivered_at is not None:
        evidence = replace(evidence, first_seen=record.first_seen_at or now)
    inputs = VerdictInputs(
        evidence, give_up_at, slo.delivery.empty == "allowed", revoked=record.reason if record.revoked else ""
    )
    # A forbidden empty delivery is not evidence of a delivery.
    return evaluate_inputs(cycle, inputs, now), None if inputs.is_empty else evidence


def _recheck_delivered(observation: Observation, presence: PresenceResult, now: datetime) -> CycleEvaluation:
    """Re-evaluate a delivery. It is revoked once its data has been gone for CONFIRMED_AFTER."""
    record, cycle = observation.record, observation.record.cycle
    lateness = record.delivered_at - cycle.due_at if record.delivered_at else None
    claims = record.claims
    if presence.rewritten_at is not None:
        claims = tuple(replace(claim, delivered_at=presence.rewritten_at) for claim in claims)
    evidence = Evidence(
        record.source or "file", record.delivered_at, first_seen=record.first_seen_at, claims=claims
    )
    unchanged = CycleVerdict(record.status, lateness, record.reason)
    if not presence.missing_part:
        recheck_at = next_recheck_at(cycle, observation.target.place, claims, now)
        return CycleEvaluation(
            observation.target, record, unchanged, evidence, recheck_at, rewritten_at=presence.rewritten_at
        )
    gone_since = record.gone_since or now
    confirmed_at = gone_since + CONFIRMED_AFTER
    if now < confirmed_at:
        return CycleEvaluation(observation.target, record, unchanged, evidence, confirmed_at, gone_since)
    delivered = f"{record.delivered_at:%F %T}Z" if record.delivered_at else "before"
    reason = (
        f"Delivered {delivered}, removed later: nothing is left in {presence.missing_part} since "
        f"{gone_since:%F %T}Z."
    )
    give_up_after = observation.target.slo.give_up_after
    inputs = VerdictInputs(None, cycle.due_at + give_up_after if give_up_after else None, revoked=reason)
    return CycleEvaluation(
        observation.target, record, evaluate_inputs(cycle, inputs, now), None, None, gone_since
    )
