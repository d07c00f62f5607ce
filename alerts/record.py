"""Writes what happened, in the caller's transaction: breaches, ends, acks, buttons, quiet hours."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, select, update

from dq.alerts import incident_store, suppression
from dq.alerts.channel import Press, PressedButton
from dq.alerts.incident import (
    CREATE,
    FLAPPING,
    UPDATE,
    Ack,
    Facts,
    Incident,
    IncidentStep,
    is_digest,
    past,
    step,
)
from dq.alerts.message import duration
from dq.alerts.outbox import Lane, bring_forward, enqueue, later, over_in_silence, release, remind, told
from dq.alerts.route import AlertRoute, Wait, first_word, matching
from dq.alerts.suppression import KeyPattern
from dq.alerts.tables import OutboxStatus, outbox
from dq.alerts.tables import incident as incidents
from dq.contracts.outcome import Breach, IncidentKey, Recovery, Severity
from dq.store import Store

PAST = "(past)"
"""Instead of a contract: what was over before it could be told. No id has brackets."""

_BEGINS = ("opened", "reopened")


def record(
    tx: Connection, event: Breach | Recovery, routes: Iterable[AlertRoute], now: datetime
) -> str | None:
    """Write the event and what is to be told, and give the incident's id; None when it is no news.

    The same event twice is no news.

    `tx` is a transaction of `Store.write()`; nothing is sent before `drain`. A breach is told to the routes
    that take its severity, and all that follows to every channel that heard of the incident.
    """
    if isinstance(event, Breach):
        # Of an incident before the newest one, too: a replayed history opens nothing.
        last = incident_store.settled_at(tx, event.key, event.subject)
        if last is not None and event.at <= last:
            return None
    done = step(incident_store.newest(tx, event.key), event, now)
    if done is None:
        return None
    routes = matching(routes, event.severity) if isinstance(event, Breach) else ()
    return _write(tx, done, event.subject, routes, now)


def record_past(
    tx: Connection,
    key: IncidentKey,
    severity: Severity,
    title: str,
    facts: Facts,
    route: AlertRoute,
    now: datetime,
) -> None:
    """Write what broke and ended before anybody could be told, to be told once to one place.

    It is an incident that was never open. The same key at the same instant is the same one.
    """
    incident = past(Breach(key, severity, now.isoformat(), title, now, facts))
    if incident_store.get(tx, incident.id) is None:
        _write(tx, IncidentStep(incident, incident.state.value, ()), now.isoformat(), [route], now)


def acknowledge(tx: Connection, incident_id: str, who: str, now: datetime) -> str | None:
    """Note that `who` is on it, and give the incident's id; None when it is not there, or not open.

    Whoever takes a digest takes all that it stands for.
    """
    incident = incident_store.get(tx, incident_id)
    done = step(incident, Ack(who), now) if incident else None
    if incident is None or done is None:
        return None
    if is_digest(incident):
        for member in incident.open_subjects:
            of = incident_store.get(tx, member)
            taken = step(of, Ack(who), now) if of else None
            if taken is not None:
                # The digest's thread hears it once.
                _write(tx, replace(taken, tell=(UPDATE,)), "", (), now, who)
    return _write(tx, done, "", (), now, who)


def _write(
    tx: Connection,
    done: IncidentStep,
    subject: str,
    routes: Iterable[AlertRoute],
    now: datetime,
    detail: str = "",
) -> str:
    incident = done.incident
    if done.kind in _BEGINS:
        incident = suppression.silenced(tx, incident, now)
    incident_store.save(tx, incident, subject)
    incident_store.log(tx, incident.id, done.kind, incident.revision, now, subject, detail, after=incident)
    if done.kind in _BEGINS and incident.silenced_until is not None:
        incident_store.log(
            tx, incident.id, "silenced", incident.revision, now, detail=suppression.said(incident)
        )
    notified = told(tx, incident.id) if incident.revision > 1 else set()
    if FLAPPING in done.tell:
        incident_store.log(tx, incident.id, "flapping", incident.revision, now)
    for lane in notified:
        for operation in done.tell:
            plan = later(incident, operation, now)
            enqueue(tx, lane, operation, incident.revision, now, plan=plan)
        if done.kind == "reopened":
            remind(tx, lane, incident, now, anew=True)
    for route in routes:
        lane = Lane(incident.id, route.channel, route.target)
        plan = first_word(route.after, route.hours(incident.severity), now)
        if lane in notified:
            bring_forward(tx, lane, plan)
        else:
            enqueue(tx, lane, CREATE, incident.revision, now, plan=plan)
    suppression.follow(tx, incident, now)
    if incident.state.closed:
        release(tx, incident, now)
    return incident.id


SILENCE = timedelta(hours=2)
_CLOCKS = timedelta(minutes=1)
"""So far the channel's clock and ours may be apart."""


def press(tx: Connection, one: Press, now: datetime) -> str:
    """Do what was pressed; what whoever pressed is told, and '' where the message shows it.

    `tx` is a transaction of `Store.write()`; nothing is sent before `drain`.
    """
    incident = incident_store.get(tx, one.incident)
    if incident is None:
        return "dq knows this incident no more."
    if incident.state.closed:
        return f"It is over: {incident.state.replace('_', ' ')}."
    if incident.open_since is not None and one.at + _CLOCKS < incident.open_since:
        return "It ended and broke again since. Press again if you mean this one."
    return (_ack if one.button is PressedButton.ACK else _silence)(tx, incident, one.who, now)


def _ack(tx: Connection, incident: Incident, who: str, now: datetime) -> str:
    if acknowledge(tx, incident.id, who, now) is None and incident.acked_by != who:
        return f"{incident.acked_by} is on it already."
    return ""


def _silence(tx: Connection, incident: Incident, who: str, now: datetime) -> str:
    if is_digest(incident):
        return "A digest cannot be silenced. Silence its incidents: dq incidents silence PATTERN --for 2h …"
    until = incident.silenced_until
    if until is not None and until > now:
        return f"It is silenced already, until {until:%Y-%m-%d %H:%M} UTC."
    suppression.begin(tx, KeyPattern.only(incident.key), "a button in the channel", who, now, now + SILENCE)
    return ""


# A message has room for twelve facts.
_MOST_LINES = 10


def tell_mornings(store: Store, now: datetime) -> None:
    """Writes the summary of every place whose quiet hours are over, and takes out what it replaces."""
    with store.read() as tx:
        if not _over(tx, now):
            return
    with store.write() as tx:
        places: dict[tuple[str, str], list[Incident]] = {}
        for row in _over(tx, now):
            incident = incident_store.get(tx, row.incident_id)
            tx.execute(
                update(outbox)
                .where(outbox.c.id == row.id)
                .values(state=OutboxStatus.DROPPED, reason="it was over in quiet hours")
            )
            if incident is not None and not over_in_silence(incident):
                detail = f"{row.channel} {row.target}".strip()
                incident_store.log(tx, incident.id, "summed up", incident.revision, now, detail=detail)
                places.setdefault((row.channel, row.target), []).append(incident)
        for (channel, target), those in places.items():
            key = IncidentKey(PAST, f"{channel}:{target}", "quiet")
            severity = max((one.severity for one in those), key=lambda one: one.rank)
            record_past(tx, key, severity, _title(those), _lines(those), AlertRoute(channel, target), now)


def _over(tx: Connection, now: datetime) -> Sequence[Any]:
    return tx.execute(
        select(outbox.c.id, outbox.c.incident_id, outbox.c.channel, outbox.c.target)
        .join(incidents, incidents.c.id == outbox.c.incident_id)
        .where(
            outbox.c.state == OutboxStatus.READY, outbox.c.operation == CREATE, outbox.c.wait == Wait.QUIET
        )
        .where(outbox.c.not_before <= now, ~outbox.c.repeat, incidents.c.resolved_at.is_not(None))
        .order_by(outbox.c.id)
    ).all()


def _title(those: Sequence[Incident]) -> str:
    count = len(those)
    return f"{count} {'incident' if count == 1 else 'incidents'} came and went in quiet hours"


def _lines(those: Sequence[Incident]) -> Facts:
    # No two lines may have one label.
    lines = [(f"{one.key} {one.opened_at:%m-%d %H:%M}Z", f"{one.title}: {_end(one)}") for one in those]
    left = len(lines) - _MOST_LINES
    more = (("and", f"{left} more; see 'dq incidents --all'"),) if left > 0 else ()
    return (*lines[:_MOST_LINES], *more)


def _end(one: Incident) -> str:
    how = one.state.replace("_", " ")
    return f"{how} after {duration(one.resolved_at - one.opened_at)}" if one.resolved_at else how
