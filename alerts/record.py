"""Writes what happened, inside the caller's transaction: incident, event and outbox rows commit with it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime

from sqlalchemy import Connection

from dq.alerts import grouping, incident_store, silences
from dq.alerts.incident import CREATE, FLAPPING, UPDATE, Ack, Facts, IncidentStep, is_digest, past, step
from dq.alerts.outbox.rows import Lane, bring_forward, enqueue, later, release, remind, told
from dq.alerts.route import AlertRoute, first_word, matching
from dq.contracts.shared.outcome import Breach, IncidentKey, Recovery, Severity

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
        incident = silences.silenced(tx, incident, now)
    incident_store.save(tx, incident, subject)
    incident_store.log(tx, incident.id, done.kind, incident.revision, now, subject, detail, after=incident)
    if done.kind in _BEGINS and incident.silenced_until is not None:
        incident_store.log(
            tx, incident.id, "silenced", incident.revision, now, detail=silences.said(incident)
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
    grouping.follow(tx, incident, now)
    if incident.state.closed:
        release(tx, incident, now)
    return incident.id
