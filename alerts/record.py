"""Recording of breaches, recoveries, acknowledgements, interactions and quiet-hours summaries."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, select, update

from dq.alerts import incident_store, suppression
from dq.alerts.channel import ANSWERS, ButtonAction, Interaction
from dq.alerts.incident import (
    CREATE,
    FLAPPING,
    PAST_CONTRACT,
    UPDATE,
    Ack,
    Facts,
    Incident,
    IncidentStep,
    is_digest,
    past_incident,
    step,
)
from dq.alerts.message import duration
from dq.alerts.outbox import (
    NotificationStream,
    advance,
    enqueue,
    flapping_deferral,
    notified_streams,
    release_inhibited,
    remind,
    resolved_while_silenced,
)
from dq.alerts.route import AlertRoute, DeferralReason, initial_deferral, matching_routes
from dq.alerts.suppression import KeyPattern
from dq.alerts.tables import OutboxStatus, outbox
from dq.alerts.tables import incident as incidents
from dq.contracts.incident import Breach, IncidentKey, Recovery
from dq.contracts.outcome import Severity
from dq.store import Store

_OPENING_KINDS = ("opened", "reopened")


def record(
    tx: Connection, event: Breach | Recovery, routes: Iterable[AlertRoute], now: datetime
) -> str | None:
    """Record an event with its notifications, and return the incident's id, or None if it changes nothing.

    Idempotent: a repeated event changes nothing.

    `tx` is a transaction of `Store.write()`; nothing is sent before `drain`. A breach is routed by its
    severity; everything that follows goes to all targets that were notified of the incident.
    """
    if isinstance(event, Breach) and _is_settled(tx, event):
        return None
    change = step(incident_store.newest(tx, event.key), event, now)
    if change is None:
        return None
    routes = matching_routes(routes, event.severity) if isinstance(event, Breach) else ()
    return _write(tx, change, event.subject, routes, now)


def record_past(
    tx: Connection,
    key: IncidentKey,
    severity: Severity,
    title: str,
    facts: Facts,
    route: AlertRoute,
    now: datetime,
) -> None:
    """Record a breach that ended before anyone was notified, for one notification to one target.

    The incident was never open. The same key at the same instant gives the same incident.
    """
    incident = past_incident(Breach(key, severity, now.isoformat(), title, now, facts))
    if incident_store.get(tx, incident.id) is None:
        _write(tx, IncidentStep(incident, incident.state.value, ()), now.isoformat(), [route], now)


def acknowledge(tx: Connection, incident_id: str, user: str, now: datetime) -> str | None:
    """Acknowledge an incident and return its id, or None if it does not exist or is not open.

    Acknowledging a digest acknowledges all its members.
    """
    incident = incident_store.get(tx, incident_id)
    change = step(incident, Ack(user), now) if incident else None
    if incident is None or change is None:
        return None
    if is_digest(incident):
        for member in incident.open_subjects:
            member_incident = incident_store.get(tx, member)
            member_change = step(member_incident, Ack(user), now) if member_incident else None
            if member_change is not None:
                # Only the digest gets a reply.
                _write(tx, replace(member_change, operations=(UPDATE,)), "", (), now, user)
    return _write(tx, change, "", (), now, user)


def record_all(
    tx: Connection, events: Sequence[Breach | Recovery], routes: Iterable[AlertRoute], now: datetime
) -> str | None:
    """Record breaches, or recoveries, of one key as one change; otherwise as `record`."""
    incident = incident_store.newest(tx, events[0].key)
    changes: list[tuple[IncidentStep, str]] = []
    for event in events:
        if isinstance(event, Breach) and _is_settled(tx, event):
            continue
        change = step(incident, event, now)
        if change is not None:
            incident = change.incident
            changes.append((change, event.subject))
    return _write_all(tx, changes, routes, now) if changes else None


def _is_settled(tx: Connection, event: Breach) -> bool:
    # Includes older incidents, so that replayed events open nothing.
    settled_at = incident_store.settled_at(tx, event.key, event.subject)
    return settled_at is not None and event.occurred_at <= settled_at


def _write(
    tx: Connection,
    change: IncidentStep,
    subject: str,
    routes: Iterable[AlertRoute],
    now: datetime,
    detail: str = "",
) -> str:
    return _write_all(tx, [(change, subject)], routes, now, detail)


def _write_all(
    tx: Connection,
    changes: Sequence[tuple[IncidentStep, str]],
    routes: Iterable[AlertRoute],
    now: datetime,
    detail: str = "",
) -> str:
    """Write successive changes of one incident, each with its subject, and notify once."""
    incident = changes[-1][0].incident
    kinds = [change.kind for change, _ in changes]
    operations = dict.fromkeys(operation for change, _ in changes for operation in change.operations)
    if kinds[0] == "opened":
        # All of them are in the first message.
        incident = replace(incident, revision=1)
    is_opening = not set(kinds).isdisjoint(_OPENING_KINDS)
    if is_opening:
        incident = suppression.with_silences(tx, incident, now)
    incident_store.save(tx, incident, *(subject for _, subject in changes))
    for change, subject in changes:
        after = incident if change is changes[-1][0] else change.incident
        revision = min(after.revision, incident.revision)
        incident_store.log(tx, incident.id, change.kind, revision, now, subject, detail, after=after)
    if is_opening and incident.silenced_until is not None:
        incident_store.log(
            tx, incident.id, "silenced", incident.revision, now, detail=suppression.silence_text(incident)
        )
    notified = notified_streams(tx, incident.id) if incident.revision > 1 else set()
    if FLAPPING in operations:
        incident_store.log(tx, incident.id, "flapping", incident.revision, now)
    for stream in notified:
        for operation in operations:
            deferral = flapping_deferral(incident, operation, now)
            enqueue(tx, stream, operation, incident.revision, now, deferral=deferral)
        if "reopened" in kinds:
            remind(tx, stream, incident, now, restart=True)
    for route in routes:
        stream = NotificationStream(incident.id, route.channel, route.target)
        deferral = initial_deferral(route.after, route.quiet_hours(incident.severity), now)
        if stream in notified:
            advance(tx, stream, deferral)
        else:
            enqueue(tx, stream, CREATE, incident.revision, now, deferral=deferral)
    suppression.update_digests(tx, incident, now)
    if incident.state.is_closed:
        release_inhibited(tx, incident, now)
    return incident.id


SILENCE = timedelta(hours=2)
_CLOCK_TOLERANCE = timedelta(minutes=1)
"""Maximum difference between the channel's clock and this machine's."""


def handle_interaction(tx: Connection, interaction: Interaction, now: datetime) -> str:
    """Handle an interaction, and return the response to the user, '' if the message shows it.

    The answer of a button in `ANSWERS` is recorded by the caller.

    `tx` is a transaction of `Store.write()`; nothing is sent before `drain`.
    """
    incident = incident_store.get(tx, interaction.incident)
    if incident is None:
        return "This incident no longer exists."
    if incident.state.is_closed:
        return f"Already closed: {incident.state.replace('_', ' ')}."
    if incident.open_since is not None and interaction.pressed_at + _CLOCK_TOLERANCE < incident.open_since:
        return "It was closed and reopened since. Press again if you mean this one."
    if interaction.button in ANSWERS:
        acknowledge(tx, incident.id, interaction.user, now)
        return ""
    return (_ack if interaction.button is ButtonAction.ACK else _silence)(tx, incident, interaction.user, now)


def _ack(tx: Connection, incident: Incident, user: str, now: datetime) -> str:
    if acknowledge(tx, incident.id, user, now) is None and incident.acked_by != user:
        return f"Already acknowledged by {incident.acked_by}."
    return ""


def _silence(tx: Connection, incident: Incident, user: str, now: datetime) -> str:
    if is_digest(incident):
        return "A digest cannot be silenced. Silence its incidents: dq incidents silence PATTERN --for 2h …"
    until = incident.silenced_until
    if until is not None and until > now:
        return f"Already silenced until {until:%Y-%m-%d %H:%M} UTC."
    suppression.begin_silence(
        tx, KeyPattern.for_key(incident.key), "a button in the channel", user, now, now + SILENCE
    )
    return ""


# A message has room for twelve facts.
_MAX_LINES = 10


def send_quiet_hours_summaries(store: Store, now: datetime) -> None:
    """Enqueue a summary for each target whose quiet hours are over, and drop the notifications it
    replaces.
    """
    with store.read() as tx:
        if not _resolved_in_quiet_hours(tx, now):
            return
    with store.write() as tx:
        by_target: dict[tuple[str, str], list[Incident]] = {}
        for row in _resolved_in_quiet_hours(tx, now):
            incident = incident_store.get(tx, row.incident_id)
            tx.execute(
                update(outbox)
                .where(outbox.c.id == row.id)
                .values(state=OutboxStatus.DROPPED, reason="resolved during quiet hours")
            )
            if incident is not None and not resolved_while_silenced(incident):
                detail = f"{row.channel} {row.target}".strip()
                incident_store.log(tx, incident.id, "summed up", incident.revision, now, detail=detail)
                by_target.setdefault((row.channel, row.target), []).append(incident)
        for (channel, target), resolved in by_target.items():
            key = IncidentKey(PAST_CONTRACT, f"{channel}:{target}", "quiet")
            severity = max((member.severity for member in resolved), key=lambda level: level.rank)
            record_past(
                tx, key, severity, _title(resolved), _lines(resolved), AlertRoute(channel, target), now
            )


def _resolved_in_quiet_hours(tx: Connection, now: datetime) -> Sequence[Any]:
    return tx.execute(
        select(outbox.c.id, outbox.c.incident_id, outbox.c.channel, outbox.c.target)
        .join(incidents, incidents.c.id == outbox.c.incident_id)
        .where(
            outbox.c.state == OutboxStatus.READY,
            outbox.c.operation == CREATE,
            outbox.c.wait == DeferralReason.QUIET,
        )
        .where(outbox.c.not_before <= now, ~outbox.c.repeat, incidents.c.resolved_at.is_not(None))
        .order_by(outbox.c.id)
    ).all()


def _title(resolved: Sequence[Incident]) -> str:
    count = len(resolved)
    return f"{count} {'incident' if count == 1 else 'incidents'} opened and resolved during quiet hours"


def _lines(resolved: Sequence[Incident]) -> Facts:
    # Labels must be unique.
    lines = [
        (f"{incident.key} {incident.opened_at:%m-%d %H:%M}Z", f"{incident.title}: {_outcome(incident)}")
        for incident in resolved
    ]
    remaining = len(lines) - _MAX_LINES
    overflow = (("and", f"{remaining} more; see 'dq incidents --all'"),) if remaining > 0 else ()
    return (*lines[:_MAX_LINES], *overflow)


def _outcome(incident: Incident) -> str:
    state = incident.state.replace("_", " ")
    return (
        f"{state} after {duration(incident.resolved_at - incident.opened_at)}"
        if incident.resolved_at
        else state
    )
