"""The status of a cycle, as a pure function of the cycle, its evidence and an instant."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from dq.contracts.schedule import Cycle
from dq.contracts.shared.outcome import CycleStatus
from dq.dataquality.delivery.cycle import CycleVerdict, Grounds
from dq.dataquality.delivery.sources.evidence import Evidence

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
