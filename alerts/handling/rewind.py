"""Incidents as they stood at an earlier instant, from their events until then.

Every reader with `--as-of` takes its incidents from here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from types import MappingProxyType

from sqlalchemy import Connection

from dq.alerts import ledger
from dq.alerts.incident import CLOSED_AS, Incident, IncidentState, Subject
from dq.alerts.ledger import PastStep
from dq.alerts.words.titles import TITLE

_CLOSED = {str(state): state for state in (*CLOSED_AS.values(), IncidentState.PAST)}
_BROKEN = ("opened", "joined", "reopened")


def rewound(tx: Connection, incidents: Sequence[Incident], at: datetime | None) -> list[Incident]:
    """Return those of the incidents that had been opened by an instant, as they stood then.

    Args:
        tx: A reading transaction.
        incidents: Incidents as they stand now, ended or not.
        at: The instant; None leaves the incidents as they are.
    """
    if at is None:
        return list(incidents)
    steps = ledger.histories(tx, [incident.id for incident in incidents])
    found = (_at(incident, steps.get(incident.id, ()), at) for incident in incidents)
    return [incident for incident in found if incident is not None]


def standing_at(tx: Connection, at: datetime | None) -> list[Incident]:
    """Return every incident that was not closed at an instant, oldest first; at None, that is not."""
    if at is None:
        return ledger.standing(tx)
    # Newest first, and open then means open or ended later.
    candidates = rewound(tx, ledger.open_or_since(tx, at), at)
    still = [incident for incident in candidates if not incident.state.closed]
    return sorted(still, key=lambda incident: (incident.opened_at, incident.id))


def steps_until(steps: Iterable[PastStep], at: datetime | None) -> list[PastStep]:
    """Return the steps of a history that had happened by an instant; at None, all of them."""
    return [step for step in steps if at is None or step.at <= at]


def _at(incident: Incident, history: Sequence[PastStep], at: datetime) -> Incident | None:
    steps = steps_until(history, at)
    if not any(step.kind in ("opened", "past") for step in steps):
        return None
    # What a message was told changes no incident, and is logged later than the change.
    if len(steps) == len(history):
        return incident
    subjects: dict[str, Subject] = {}
    after = replace(
        incident, state=IncidentState.OPEN, acked_at=None, acked_by=None, resolved_at=None, breaches=0,
        silenced_until=None, silenced_why="", flapping_since=None, root_id=None, holds_up=(),
    )  # fmt: skip
    for step in steps:
        after = _apply(after, incident, step, subjects)
    after = replace(after, subjects=MappingProxyType(subjects))
    titles = [step.title for step in steps if step.title is not None]
    return replace(after, title=titles[-1] if titles else _title(after, steps) or incident.title)


def _title(after: Incident, steps: Sequence[PastStep]) -> str | None:
    """Return the title of the newest subject that was open, or that of the last end, in an old store."""
    if still := after.open_subjects:
        return dict(after.subjects[still[-1]].facts).get(TITLE)
    ends = [step.subject for step in steps if step.kind in _CLOSED and step.subject in after.subjects]
    return dict(after.subjects[ends[-1]].closing_facts).get(TITLE) if ends else None


def _apply(after: Incident, now: Incident, step: PastStep, subjects: dict[str, Subject]) -> Incident:
    subject = now.subjects.get(step.subject)
    severity = step.severity or after.severity
    changed = replace(after, revision=max(after.revision, step.revision), severity=severity)
    if step.kind in _BROKEN:
        if subject is not None:
            subjects[step.subject] = replace(subject, closed_at=None, closing_facts=(), end=None)
        changed = replace(changed, breaches=after.breaches + 1)
        if step.kind == "reopened":
            # If a silence is still in force, the next step is `silenced`.
            changed = replace(
                changed, state=IncidentState.OPEN, resolved_at=None, acked_at=None, acked_by=None,
                silenced_until=None, silenced_why="",
            )  # fmt: skip
    elif step.kind == "acked":
        changed = replace(changed, state=IncidentState.ACKED, acked_at=step.at, acked_by=step.detail)
    elif step.kind == "recovered" or step.kind in _CLOSED:
        if subject is not None:
            subjects[step.subject] = replace(subject, closed_at=subject.closed_at or step.at)
        if step.kind in _CLOSED:
            changed = replace(changed, state=_CLOSED[step.kind], resolved_at=step.at)
    elif step.kind == "silenced":
        until, _, why = step.detail.removeprefix("until ").partition(" UTC by ")
        instant = datetime.strptime(until, "%Y-%m-%d %H:%M").replace(tzinfo=UTC)
        changed = replace(changed, silenced_until=instant, silenced_why=why)
    elif step.kind == "unsilenced":
        changed = replace(changed, silenced_until=None, silenced_why="")
    elif step.kind == "flapping":
        changed = replace(changed, flapping_since=step.at)
    elif step.kind == "inhibited":
        changed = replace(changed, root_id=now.root_id)
    elif step.kind == "holds up":
        changed = replace(changed, holds_up=now.holds_up)
    return changed
