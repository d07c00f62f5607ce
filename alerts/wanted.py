"""Which rows of a lane are still wanted, by the incident as it is when they are claimed: a pure decision.

What is said later was planned when nobody could know whether it would still be wanted. So nothing is ever
taken back when an incident changes: whoever claims looks at the incident as it is then.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from dq.alerts.incident import CREATE, UPDATE, Incident, IncidentState
from dq.alerts.lane import Held, LaneEntry
from dq.alerts.noise.flapping import calm
from dq.alerts.noise.timing import Wait


@dataclass(frozen=True, slots=True)
class LaneRows:
    """The rows to choose from, and the rows that nobody needs any more, each with its reason."""

    rows: tuple[LaneEntry, ...]
    drop: tuple[tuple[LaneEntry, str], ...] = ()


def wanted(rows: Sequence[LaneEntry], incident: Incident, held: Held | None, now: datetime) -> LaneRows:
    """What may be said now, and what was planned and is not needed any more; the rest goes on waiting."""
    moot = [(row, why) for row in rows if (why := _moot(row, incident, held, now))]
    gone = {row.id for row, _ in moot}
    return LaneRows(
        tuple(row for row in rows if row.id not in gone and not _waits(row, incident, now)), tuple(moot)
    )


def _moot(row: LaneEntry, incident: Incident, held: Held | None, now: datetime) -> str:
    # A copy that may be there must not stay there as it was.
    if row.repeat:
        return ""
    if row.operation == CREATE and over_in_silence(incident):
        return "it was over before its silence was"
    if row.operation == CREATE and incident.root_id is not None and incident.state.closed:
        return "it was over with its cause"
    if row.wait in (Wait.ESCALATION, Wait.REMINDER) and incident.state is not IncidentState.OPEN:
        return "somebody is on it" if incident.state is IncidentState.ACKED else "it is over"
    if row.wait == Wait.CALM and row.not_before <= now and row.operation != UPDATE:
        ends = row.operation == "reply:resolved"
        if ends is not incident.state.closed or now - incident.changes[-1] < calm(incident.period):
            return "it changed again"
    if row.wait == Wait.REMINDER and held is not None and held.receipt.thread:
        return "it stands in a digest"
    return ""


def _waits(row: LaneEntry, incident: Incident, now: datetime) -> bool:
    if row.wait and row.not_before > now:
        return True
    # What came and went in quiet hours is a line of their summary.
    return row.wait == Wait.QUIET and row.operation == CREATE and incident.state.closed and not row.repeat


def over_in_silence(incident: Incident) -> bool:
    """Whether it ended while it was silenced."""
    ended, until = incident.resolved_at, incident.silenced_until
    return ended is not None and until is not None and ended < until
