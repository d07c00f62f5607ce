"""Which rows of a lane are still wanted, by the incident as it is when they are claimed: a pure decision."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dq.alerts.incident import CREATE, Incident
from dq.alerts.lane import LaneEntry


@dataclass(frozen=True, slots=True)
class LaneRows:
    """The rows to choose from, and the rows that nobody needs any more, each with its reason."""

    rows: tuple[LaneEntry, ...]
    drop: tuple[tuple[LaneEntry, str], ...] = ()


def wanted(rows: Sequence[LaneEntry], incident: Incident) -> LaneRows:
    """What was planned and is not needed any more is dropped; all else is left to the order of the lane."""
    moot = [(row, why) for row in rows if (why := _moot(row, incident))]
    gone = {row.id for row, _ in moot}
    return LaneRows(tuple(row for row in rows if row.id not in gone), tuple(moot))


def _moot(row: LaneEntry, incident: Incident) -> str:
    if row.operation == CREATE and not row.repeat and _over_in_silence(incident):
        return "it was over before its silence was"
    return ""


def _over_in_silence(incident: Incident) -> bool:
    ended, until = incident.resolved_at, incident.silenced_until
    return ended is not None and until is not None and ended < until
