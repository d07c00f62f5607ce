"""Incidents as rows: reads, writes and forgets them, logs what happened, and replays it to an instant."""

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
from dq.contracts.outcome import End, IncidentKey, Severity
from dq.store.engine import Store

# Incidents as rows: reads them, writes them, and appends what happened.

_NONE: Mapping[str, Subject] = MappingProxyType({})
# A question names no more of them: databases have a limit.
_AT_ONCE = 500

# Made once, what each event asks and writes: SQLAlchemy takes longer to make a statement than to run it.
_OF = and_(
    incidents.c.contract == bindparam("contract"),
    incidents.c.object == bindparam("object"),
    incidents.c.group_id == bindparam("group"),
)
_GET = select(incidents).where(incidents.c.id == bindparam("id"))
_NEWEST = (
    select(incidents)
    .where(_OF)
    .order_by(incidents.c.resolved_at.is_(None).desc(), incidents.c.resolved_at.desc())
    .limit(1)
)
_INSTANTS = (
    select(incident_subject.c.opened_at, incident_subject.c.closed_at)
    .join(incidents, incidents.c.id == incident_subject.c.incident_id)
    .where(_OF, incident_subject.c.subject == bindparam("subject"))
)
_SUBJECTS = select(incident_subject).where(
    incident_subject.c.incident_id.in_(bindparam("ids", expanding=True))
)
# Columns are set by their names, so what is looked for has other ones.
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
    """One line of an incident's history; `detail` says who did it and why, where somebody did.

    `severity` and `title` are those that it left; None where it changed neither, or an older dq wrote it.
    """

    at: datetime
    kind: str
    revision: int
    subject: str
    detail: str
    severity: Severity | None = None
    title: str | None = None


def get(tx: Connection, incident_id: str) -> Incident | None:
    """The incident of this id."""
    return next(iter(_found(tx, _GET, {"id": incident_id})), None)


def newest(tx: Connection, key: IncidentKey) -> Incident | None:
    """The open incident of a key, or else the one that was resolved last."""
    return next(iter(_found(tx, _NEWEST, _names(key))), None)


def unresolved(tx: Connection, contracts: Collection[str]) -> list[Incident]:
    """The incidents of these contracts that are not resolved, oldest first."""
    asked = select(incidents).where(incidents.c.resolved_at.is_(None), incidents.c.contract.in_(contracts))
    return _found(tx, asked.order_by(incidents.c.opened_at))


def standing(tx: Connection) -> list[Incident]:
    """Every incident that is not resolved, oldest first."""
    asked = select(incidents).where(incidents.c.resolved_at.is_(None))
    return _found(tx, asked.order_by(incidents.c.opened_at, incidents.c.id))


def newest_of_all(tx: Connection, most: int, of: str | None = None) -> list[Incident]:
    """The incidents that were opened last, open or not, newest first; only `of` a contract's key,
    contract/object or contract/object/promise."""
    columns = incidents.c
    table = columns.contract + "/" + columns.object
    named = columns.contract == of, table == of, table + "/" + columns.group_id == of
    mine = () if of is None else (or_(*named),)
    asked = select(incidents).where(*mine).order_by(columns.opened_at.desc(), columns.id)
    return _found(tx, asked.limit(most))


def open_or_since(tx: Connection, since: datetime, without: Collection[str] = ()) -> list[Incident]:
    """The incidents that are open, or ended at this instant or later, newest first; none of what stands
    `without` in place of a contract."""
    late = incidents.c.resolved_at.is_(None) | (incidents.c.resolved_at >= since)
    asked = select(incidents).where(incidents.c.contract.not_in(without), late)
    return _found(tx, asked.order_by(incidents.c.opened_at.desc(), incidents.c.id))


def by_prefix(tx: Connection, prefix: str, most: int = 10) -> list[Incident]:
    """The incidents whose id begins so, the newest first."""
    asked = select(incidents).where(func.substr(incidents.c.id, 1, len(prefix)) == prefix)
    return _found(tx, asked.order_by(incidents.c.opened_at.desc()).limit(most))


def history(tx: Connection, incident_id: str) -> list[PastStep]:
    """Everything that happened to an incident, oldest first."""
    return histories(tx, [incident_id]).get(incident_id, [])


def histories(tx: Connection, incident_ids: Sequence[str]) -> dict[str, list[PastStep]]:
    """The same of many incidents, by their ids."""
    found: dict[str, list[PastStep]] = {}
    asked = select(incident_event).order_by(incident_event.c.id)
    for some in _some(incident_ids):
        for row in tx.execute(asked.where(incident_event.c.incident_id.in_(some))):
            severity = Severity(row.severity) if row.severity else None
            step = PastStep(
                row.at, row.kind, row.revision, row.subject, row.detail, severity=severity, title=row.title
            )
            found.setdefault(row.incident_id, []).append(step)
    return found


def settled_at(tx: Connection, key: IncidentKey, subject: str) -> datetime | None:
    """The last instant known of a subject over all incidents of the key; None when it never broke."""
    rows = tx.execute(_INSTANTS, {**_names(key), "subject": subject})
    return max((Subject(row.opened_at, row.closed_at).settled_at for row in rows), default=None)


def save(tx: Connection, incident: Incident, subject: str) -> None:
    """Write the incident, and of its subjects the one that changed ('' for none)."""
    values = {
        **{name: getattr(incident, name) for name in _STORED_AS_THEY_ARE},
        "contract": incident.key.contract,
        "object": incident.key.object,
        "group_id": incident.key.group,
        "severity": incident.severity.value,
        "state": incident.state.value,
        "period_seconds": int(incident.period.total_seconds()) if incident.period else None,
        "changes": [at.isoformat() for at in incident.changes],
        "holds_up": list(incident.holds_up),
        "silenced_why": incident.silenced_why or None,
    }
    if incident.revision == 1:
        tx.execute(_ADD, {"id": incident.id, **values})
    else:
        tx.execute(_CHANGE, {"of": incident.id, **values})
    if subject:
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
    """Append an event; events are never changed. `after` is the incident that it left, if it changed it."""
    row = {"incident_id": incident, "at": now, "kind": kind, "revision": revision}
    severity, title = (after.severity.value, after.title) if after is not None else (None, None)
    tx.execute(
        _ADD_EVENT, {**row, "subject": subject, "detail": detail, "severity": severity, "title": title}
    )


def _names(key: IncidentKey) -> dict[str, str]:
    return {"contract": key.contract, "object": key.object, "group": key.group}


def _found(tx: Connection, asked: Select[Any], names: Mapping[str, str] | None = None) -> list[Incident]:
    rows = tx.execute(asked, names).all()
    subjects = _all_subjects(tx, [row.id for row in rows])
    return [_made(row, subjects.get(row.id, _NONE)) for row in rows]


def _made(row: Row[Any], subjects: Mapping[str, Subject]) -> Incident:
    return Incident(
        id=row.id,
        key=IncidentKey(row.contract, row.object, row.group_id),
        severity=Severity(row.severity),
        state=IncidentState(row.state),
        period=timedelta(seconds=row.period_seconds) if row.period_seconds else None,
        changes=tuple(datetime.fromisoformat(at) for at in row.changes or ()),
        root_id=row.root_id,
        holds_up=tuple(row.holds_up or ()),
        silenced_why=row.silenced_why or "",
        subjects=subjects,
        **{name: getattr(row, name) for name in _STORED_AS_THEY_ARE},
    )


def _all_subjects(tx: Connection, incident_ids: Sequence[str]) -> dict[str, Mapping[str, Subject]]:
    found: dict[str, dict[str, Subject]] = {}
    for some in _some(incident_ids):
        for row in tx.execute(_SUBJECTS, {"ids": some}):
            found.setdefault(row.incident_id, {})[row.subject] = Subject(
                row.opened_at,
                row.closed_at,
                _facts(row.facts),
                _facts(row.closing_facts),
                End(row.ended) if row.ended else None,
            )
    return {of: MappingProxyType(subjects) for of, subjects in found.items()}


def _some(names: Sequence[str]) -> Iterator[Sequence[str]]:
    return (names[start : start + _AT_ONCE] for start in range(0, len(names), _AT_ONCE))


def _save_subject(tx: Connection, incident: Incident, name: str) -> None:
    subject = incident.subjects[name]
    same = {"of": incident.id, "named": name}
    values = {
        "opened_at": subject.opened_at,
        "closed_at": subject.closed_at,
        "facts": [list(fact) for fact in subject.facts],
        "closing_facts": [list(fact) for fact in subject.closing_facts],
        "ended": subject.end.value if subject.end else None,
    }
    if incident.revision > 1 and tx.execute(_CHANGE_SUBJECT, {**same, **values}).rowcount:
        return
    tx.execute(_ADD_SUBJECT, {"incident_id": incident.id, "subject": name, **values})


def _facts(stored: list[list[str]]) -> Facts:
    return tuple((label, value) for label, value in stored)


# Incidents as they stood at an earlier instant, from their events until then.
#
# Every reader with `--as-of` takes its incidents from here.

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
    steps = histories(tx, [incident.id for incident in incidents])
    found = (_at(incident, steps.get(incident.id, ()), at) for incident in incidents)
    return [incident for incident in found if incident is not None]


def standing_at(tx: Connection, at: datetime | None) -> list[Incident]:
    """Return every incident that was not closed at an instant, oldest first; at None, that is not."""
    if at is None:
        return standing(tx)
    # Newest first, and open then means open or ended later.
    candidates = rewound(tx, open_or_since(tx, at), at)
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


# Databases bound how many values a statement may have.
_BATCH = 500
_PARTS = (message, incident_event, incident_subject)


@dataclass(frozen=True, slots=True)
class ForgottenAlerts:
    """How many rows are gone; `messages` are those of the outbox."""

    incidents: int
    messages: int
    silences: int


def forget(store: Store, before: datetime) -> ForgottenAlerts:
    """Removes the incidents that ended before an instant, with their messages and events, and silences that
    were over by then.

    What is open stays, and so does what has something to say yet. A transaction holds some hundred incidents,
    each with all of its rows: whenever it is stopped, no incident is left in part.
    """
    ended = messages = 0
    # Those that are looked at and stay are passed by.
    last = ""
    while True:
        with store.write() as tx:
            some = _ended(tx, before, last)
            if not some:
                break
            last = some[-1]
            gone = sorted(set(some) - _needed(tx, some))
            ended += len(gone)
            messages += _remove(tx, gone)
    with store.write() as tx:
        silences = tx.execute(delete(silence).where(silence.c.until < before)).rowcount
    return ForgottenAlerts(ended, messages, silences)


def _ended(tx: Connection, before: datetime, after: str) -> list[str]:
    old = incidents.c.resolved_at < before
    asked = select(incidents.c.id).where(old, incidents.c.id > after).order_by(incidents.c.id)
    return list(tx.scalars(asked.limit(_BATCH)))


def _needed(tx: Connection, some: Collection[str]) -> set[str]:
    """Those with something to say yet, themselves or for a member."""
    waiting = outbox.c.state.in_(WAITING)
    own = select(outbox.c.incident_id).where(outbox.c.incident_id.in_(some), waiting)
    digests = select(outbox.c.digest).where(outbox.c.digest.in_(some), waiting)
    return {str(one) for asked in (own, digests) for one in tx.scalars(asked)}


def _remove(tx: Connection, gone: Collection[str]) -> int:
    if not gone:
        return 0
    # A member that is younger than its digest keeps what was said of it.
    tx.execute(update(outbox).where(outbox.c.digest.in_(gone)).values(digest=None))
    said = tx.execute(delete(outbox).where(outbox.c.incident_id.in_(gone))).rowcount
    for table in _PARTS:
        tx.execute(delete(table).where(table.c.incident_id.in_(gone)))
    tx.execute(delete(incidents).where(incidents.c.id.in_(gone)))
    return said
