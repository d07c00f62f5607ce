"""Storage of incidents: reads, writes, event log, states as of an instant, and pruning."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import Any

from sqlalchemy import Connection, Row, Select, and_, bindparam, delete, func, insert, or_, select, update

from dq.alerts.incident import CLOSED_AS, TITLE, Facts, Incident, IncidentState, Subject
from dq.alerts.tables import WAITING, incident_event, incident_subject, message, outbox, silence
from dq.alerts.tables import incident as incidents
from dq.contracts.incident import IncidentKey, Resolution
from dq.contracts.outcome import Severity
from dq.store.engine import Store

# Reads and writes.

_NO_SUBJECTS: Mapping[str, Subject] = MappingProxyType({})
# Databases limit the number of values in a statement.
_CHUNK_SIZE = 500

# Built once: SQLAlchemy takes longer to build a statement than to run it.
_HAS_KEY = and_(
    incidents.c.contract == bindparam("contract"),
    incidents.c.object == bindparam("object"),
    incidents.c.group_id == bindparam("group"),
)
_GET = select(incidents).where(incidents.c.id == bindparam("id"))
_NEWEST = (
    select(incidents)
    .where(_HAS_KEY)
    .order_by(incidents.c.resolved_at.is_(None).desc(), incidents.c.resolved_at.desc())
    .limit(1)
)
_INSTANTS = (
    select(incident_subject.c.opened_at, incident_subject.c.closed_at)
    .join(incidents, incidents.c.id == incident_subject.c.incident_id)
    .where(_HAS_KEY, incident_subject.c.subject == bindparam("subject"))
)
_SUBJECTS = select(incident_subject).where(
    incident_subject.c.incident_id.in_(bindparam("ids", expanding=True))
)
# Parameters of conditions must not have the names of updated columns.
_CHANGE = update(incidents).where(incidents.c.id == bindparam("of"))
_CHANGE_SUBJECT = update(incident_subject).where(
    incident_subject.c.incident_id == bindparam("of"), incident_subject.c.subject == bindparam("named")
)
# Fields of an incident with a column of the same name and value.
_STORED_AS_THEY_ARE = (
    *("title", "revision", "breaches", "opened_at", "acked_at", "acked_by", "resolved_at"),
    *("open_since", "flapping_since", "silenced_until"),
)
_ADD, _ADD_SUBJECT, _ADD_EVENT = insert(incidents), insert(incident_subject), insert(incident_event)


@dataclass(frozen=True, slots=True)
class PastStep:
    """One event of an incident's history; `detail` contains the user and reason of user actions.

    `severity` and `title` are the incident's after the event, or None if unchanged or written by an older dq.
    """

    at: datetime
    kind: str
    revision: int
    subject: str
    detail: str
    severity: Severity | None = None
    title: str | None = None


def get(tx: Connection, incident_id: str) -> Incident | None:
    """Return the incident with this id, or None if it does not exist."""
    return next(iter(_load(tx, _GET, {"id": incident_id})), None)


def newest(tx: Connection, key: IncidentKey) -> Incident | None:
    """Return the open incident of a key, else the one that was resolved last, or None if there is none."""
    return next(iter(_load(tx, _NEWEST, _names(key))), None)


def unresolved(tx: Connection, contracts: Collection[str]) -> list[Incident]:
    """Return the unresolved incidents of these contracts, oldest first."""
    query = select(incidents).where(incidents.c.resolved_at.is_(None), incidents.c.contract.in_(contracts))
    return _load(tx, query.order_by(incidents.c.opened_at))


def open_incidents(tx: Connection) -> list[Incident]:
    """Return all unresolved incidents, oldest first."""
    query = select(incidents).where(incidents.c.resolved_at.is_(None))
    return _load(tx, query.order_by(incidents.c.opened_at, incidents.c.id))


def newest_of_all(tx: Connection, limit: int, prefix: str | None = None) -> list[Incident]:
    """Return the incidents that were opened last, newest first.

    `prefix` restricts them to a contract key, contract/object or contract/object/promise.
    """
    columns = incidents.c
    table = columns.contract + "/" + columns.object
    matches = columns.contract == prefix, table == prefix, table + "/" + columns.group_id == prefix
    conditions = () if prefix is None else (or_(*matches),)
    query = select(incidents).where(*conditions).order_by(columns.opened_at.desc(), columns.id)
    return _load(tx, query.limit(limit))


def open_or_since(
    tx: Connection, since: datetime, excluded_contracts: Collection[str] = ()
) -> list[Incident]:
    """Return the incidents that are open or ended at `since` or later, newest first, without excluded
    contracts.
    """
    open_or_ended = incidents.c.resolved_at.is_(None) | (incidents.c.resolved_at >= since)
    query = select(incidents).where(incidents.c.contract.not_in(excluded_contracts), open_or_ended)
    return _load(tx, query.order_by(incidents.c.opened_at.desc(), incidents.c.id))


def find_by_prefix(tx: Connection, prefix: str, limit: int = 10) -> list[Incident]:
    """Return the incidents whose id starts with `prefix`, newest first."""
    query = select(incidents).where(func.substr(incidents.c.id, 1, len(prefix)) == prefix)
    return _load(tx, query.order_by(incidents.c.opened_at.desc()).limit(limit))


def history(tx: Connection, incident_id: str) -> list[PastStep]:
    """Return the history of an incident, oldest first."""
    return histories(tx, [incident_id]).get(incident_id, [])


def histories(tx: Connection, incident_ids: Sequence[str]) -> dict[str, list[PastStep]]:
    """Return the histories of incidents by id."""
    steps_by_id: dict[str, list[PastStep]] = {}
    query = select(incident_event).order_by(incident_event.c.id)
    for chunk in _chunks(incident_ids):
        for row in tx.execute(query.where(incident_event.c.incident_id.in_(chunk))):
            severity = Severity(row.severity) if row.severity else None
            step = PastStep(
                row.at, row.kind, row.revision, row.subject, row.detail, severity=severity, title=row.title
            )
            steps_by_id.setdefault(row.incident_id, []).append(step)
    return steps_by_id


def settled_at(tx: Connection, key: IncidentKey, subject: str) -> datetime | None:
    """Return the last known instant of a subject over all incidents of a key, or None if it was never
    open.
    """
    rows = tx.execute(_INSTANTS, {**_names(key), "subject": subject})
    return max((Subject(row.opened_at, row.closed_at).settled_at for row in rows), default=None)


def keys_with_subject(tx: Connection, contract: str, subject: str) -> list[IncidentKey]:
    """Return the keys of the incidents of a contract key that have or had this subject, in order."""
    query = (
        select(incidents.c.contract, incidents.c.object, incidents.c.group_id)
        .join(incident_subject, incident_subject.c.incident_id == incidents.c.id)
        .where(incidents.c.contract == contract, incident_subject.c.subject == subject)
    )
    return sorted({IncidentKey(*row) for row in tx.execute(query)}, key=str)


def save(tx: Connection, incident: Incident, *subjects: str) -> None:
    """Write the incident and its changed subjects ('' for none)."""
    values = {
        **{name: getattr(incident, name) for name in _STORED_AS_THEY_ARE},
        "contract": incident.key.contract,
        "object": incident.key.object,
        "group_id": incident.key.group,
        "severity": incident.severity.value,
        "state": incident.state.value,
        "period_seconds": int(incident.period.total_seconds()) if incident.period else None,
        "changes": [instant.isoformat() for instant in incident.changes],
        "holds_up": list(incident.inhibits),
        "silenced_why": incident.silence_reason or None,
    }
    if incident.revision == 1:
        tx.execute(_ADD, {"id": incident.id, **values})
    else:
        tx.execute(_CHANGE, {"of": incident.id, **values})
    for subject in filter(None, subjects):
        _save_subject(tx, incident, subject)


def log(
    tx: Connection,
    incident: str,
    kind: str,
    revision: int,
    now: datetime,
    subject: str = "",
    detail: str = "",
    after: Incident | None = None,
) -> None:
    """Append an event to the log. `after` is the incident after the event, if it changed."""
    row = {"incident_id": incident, "at": now, "kind": kind, "revision": revision}
    severity, title = (after.severity.value, after.title) if after is not None else (None, None)
    tx.execute(
        _ADD_EVENT, {**row, "subject": subject, "detail": detail, "severity": severity, "title": title}
    )


def _names(key: IncidentKey) -> dict[str, str]:
    return {"contract": key.contract, "object": key.object, "group": key.group}


def _load(tx: Connection, query: Select[Any], parameters: Mapping[str, str] | None = None) -> list[Incident]:
    rows = tx.execute(query, parameters).all()
    subjects = _all_subjects(tx, [row.id for row in rows])
    return [_incident_from_row(row, subjects.get(row.id, _NO_SUBJECTS)) for row in rows]


def _incident_from_row(row: Row[Any], subjects: Mapping[str, Subject]) -> Incident:
    return Incident(
        id=row.id,
        key=IncidentKey(row.contract, row.object, row.group_id),
        severity=Severity(row.severity),
        state=IncidentState(row.state),
        period=timedelta(seconds=row.period_seconds) if row.period_seconds else None,
        changes=tuple(datetime.fromisoformat(instant) for instant in row.changes or ()),
        root_id=row.root_id,
        inhibits=tuple(row.holds_up or ()),
        silence_reason=row.silenced_why or "",
        subjects=subjects,
        **{name: getattr(row, name) for name in _STORED_AS_THEY_ARE},
    )


def _all_subjects(tx: Connection, incident_ids: Sequence[str]) -> dict[str, Mapping[str, Subject]]:
    subjects_by_id: dict[str, dict[str, Subject]] = {}
    for chunk in _chunks(incident_ids):
        for row in tx.execute(_SUBJECTS, {"ids": chunk}):
            subjects_by_id.setdefault(row.incident_id, {})[row.subject] = Subject(
                row.opened_at,
                row.closed_at,
                _facts(row.facts),
                _facts(row.closing_facts),
                Resolution(row.ended) if row.ended else None,
            )
    return {incident_id: MappingProxyType(subjects) for incident_id, subjects in subjects_by_id.items()}


def _chunks(names: Sequence[str]) -> Iterator[Sequence[str]]:
    return (names[start : start + _CHUNK_SIZE] for start in range(0, len(names), _CHUNK_SIZE))


def _save_subject(tx: Connection, incident: Incident, name: str) -> None:
    subject = incident.subjects[name]
    key = {"of": incident.id, "named": name}
    values = {
        "opened_at": subject.opened_at,
        "closed_at": subject.closed_at,
        "facts": [list(fact) for fact in subject.facts],
        "closing_facts": [list(fact) for fact in subject.closing_facts],
        "ended": subject.end.value if subject.end else None,
    }
    if incident.revision > 1 and tx.execute(_CHANGE_SUBJECT, {**key, **values}).rowcount:
        return
    tx.execute(_ADD_SUBJECT, {"incident_id": incident.id, "subject": name, **values})


def _facts(stored: list[list[str]]) -> Facts:
    return tuple((label, value) for label, value in stored)


# Incidents as of an earlier instant, from their events by then; used by all commands with `--as-of`.

_CLOSED = {str(state): state for state in (*CLOSED_AS.values(), IncidentState.PAST)}
_BROKEN = ("opened", "joined", "reopened")


def incidents_as_of(
    tx: Connection, incidents: Sequence[Incident], instant: datetime | None
) -> list[Incident]:
    """Return the incidents that had been opened by an instant, in their state at that instant.

    Args:
        tx: A read transaction.
        incidents: Open and closed incidents in their current state.
        instant: The instant; None returns the incidents unchanged.
    """
    steps = {} if instant is None else histories(tx, [incident.id for incident in incidents])
    return past_states(incidents, steps, instant)


def past_states(
    incidents: Iterable[Incident], steps: Mapping[str, Sequence[PastStep]], instant: datetime | None
) -> list[Incident]:
    """Return incidents as `incidents_as_of`, from their histories by id."""
    if instant is None:
        return list(incidents)
    states = (_incident_as_of(incident, steps.get(incident.id, ()), instant) for incident in incidents)
    return [incident for incident in states if incident is not None]


def open_incidents_at(tx: Connection, instant: datetime | None) -> list[Incident]:
    """Return all incidents that were open at an instant (None: now), oldest first."""
    if instant is None:
        return open_incidents(tx)
    # Incidents that were open then are open now or ended later.
    candidates = incidents_as_of(tx, open_or_since(tx, instant), instant)
    unclosed = [incident for incident in candidates if not incident.state.is_closed]
    return sorted(unclosed, key=lambda incident: (incident.opened_at, incident.id))


def steps_until(steps: Iterable[PastStep], instant: datetime | None) -> list[PastStep]:
    """Return the steps of a history up to an instant, or all of them for None."""
    return [step for step in steps if instant is None or step.at <= instant]


def _incident_as_of(incident: Incident, history: Sequence[PastStep], instant: datetime) -> Incident | None:
    steps = steps_until(history, instant)
    if not any(step.kind in ("opened", "past") for step in steps):
        return None
    # Events of sent messages follow the change and do not change the incident.
    if len(steps) == len(history):
        return incident
    subjects: dict[str, Subject] = {}
    past = replace(
        incident, state=IncidentState.OPEN, acked_at=None, acked_by=None, resolved_at=None, breaches=0,
        silenced_until=None, silence_reason="", flapping_since=None, root_id=None, inhibits=(),
    )  # fmt: skip
    for step in steps:
        past = _apply(past, incident, step, subjects)
    past = replace(past, subjects=MappingProxyType(subjects))
    titles = [step.title for step in steps if step.title is not None]
    return replace(past, title=titles[-1] if titles else _past_title(past, steps) or incident.title)


def _past_title(past: Incident, steps: Sequence[PastStep]) -> str | None:
    """Return the title of the newest open subject, or of the last end, for events of an older dq."""
    if open_subjects := past.open_subjects:
        return dict(past.subjects[open_subjects[-1]].facts).get(TITLE)
    ended_subjects = [
        step.subject for step in steps if step.kind in _CLOSED and step.subject in past.subjects
    ]
    return dict(past.subjects[ended_subjects[-1]].closing_facts).get(TITLE) if ended_subjects else None


def _apply(past: Incident, current: Incident, step: PastStep, subjects: dict[str, Subject]) -> Incident:
    subject = current.subjects.get(step.subject)
    severity = step.severity or past.severity
    changed = replace(past, revision=max(past.revision, step.revision), severity=severity)
    if step.kind in _BROKEN:
        if subject is not None:
            subjects[step.subject] = replace(subject, closed_at=None, closing_facts=(), end=None)
        changed = replace(changed, breaches=past.breaches + 1)
        if step.kind == "reopened":
            # If a silence is still in force, the next step is `silenced`.
            changed = replace(
                changed, state=IncidentState.OPEN, resolved_at=None, acked_at=None, acked_by=None,
                silenced_until=None, silence_reason="",
            )  # fmt: skip
    elif step.kind == "acked":
        changed = replace(changed, state=IncidentState.ACKED, acked_at=step.at, acked_by=step.detail)
    elif step.kind == "recovered" or step.kind in _CLOSED:
        if subject is not None:
            subjects[step.subject] = replace(subject, closed_at=subject.closed_at or step.at)
        if step.kind in _CLOSED:
            changed = replace(changed, state=_CLOSED[step.kind], resolved_at=step.at)
    elif step.kind == "silenced":
        until, _, reason = step.detail.removeprefix("until ").partition(" UTC by ")
        instant = datetime.strptime(until, "%Y-%m-%d %H:%M").replace(tzinfo=UTC)
        changed = replace(changed, silenced_until=instant, silence_reason=reason)
    elif step.kind == "unsilenced":
        changed = replace(changed, silenced_until=None, silence_reason="")
    elif step.kind == "flapping":
        changed = replace(changed, flapping_since=step.at)
    elif step.kind == "inhibited":
        changed = replace(changed, root_id=current.root_id)
    elif step.kind == "holds up":
        changed = replace(changed, inhibits=current.inhibits)
    return changed


# Databases limit the number of values in a statement.
_PRUNE_BATCH = 500
_DEPENDENT_TABLES = (message, incident_event, incident_subject)


@dataclass(frozen=True, slots=True)
class PrunedAlerts:
    """Numbers of deleted rows; `messages` are outbox rows."""

    incidents: int
    messages: int
    silences: int


def prune(store: Store, before: datetime) -> PrunedAlerts:
    """Delete incidents that ended before an instant, with their messages and events, and silences that ended
    by then.

    Open incidents and those with pending messages are kept. Each transaction deletes some hundred incidents
    completely, so an interruption leaves none in part.
    """
    pruned = messages = 0
    # Continue after the last id, because some incidents are kept.
    last = ""
    while True:
        with store.write() as tx:
            ids = _ended_ids(tx, before, last)
            if not ids:
                break
            last = ids[-1]
            removable = sorted(set(ids) - _with_pending_messages(tx, ids))
            pruned += len(removable)
            messages += _delete_incidents(tx, removable)
    with store.write() as tx:
        silences = tx.execute(delete(silence).where(silence.c.until < before)).rowcount
    return PrunedAlerts(pruned, messages, silences)


def _ended_ids(tx: Connection, before: datetime, after: str) -> list[str]:
    old = incidents.c.resolved_at < before
    query = select(incidents.c.id).where(old, incidents.c.id > after).order_by(incidents.c.id)
    return list(tx.scalars(query.limit(_PRUNE_BATCH)))


def _with_pending_messages(tx: Connection, ids: Collection[str]) -> set[str]:
    """Return the incidents with pending messages, of themselves or as a digest of members."""
    waiting = outbox.c.state.in_(WAITING)
    own = select(outbox.c.incident_id).where(outbox.c.incident_id.in_(ids), waiting)
    digests = select(outbox.c.digest).where(outbox.c.digest.in_(ids), waiting)
    return {str(incident_id) for query in (own, digests) for incident_id in tx.scalars(query)}


def _delete_incidents(tx: Connection, ids: Collection[str]) -> int:
    if not ids:
        return 0
    # Members that are kept longer than their digest keep their messages.
    tx.execute(update(outbox).where(outbox.c.digest.in_(ids)).values(digest=None))
    message_count = tx.execute(delete(outbox).where(outbox.c.incident_id.in_(ids))).rowcount
    for table in _DEPENDENT_TABLES:
        tx.execute(delete(table).where(table.c.incident_id.in_(ids)))
    tx.execute(delete(incidents).where(incidents.c.id.in_(ids)))
    return message_count
