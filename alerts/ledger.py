"""Incidents as rows: reads them, writes them, and appends what happened."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any

from sqlalchemy import Connection, Row, func, insert, or_, select, update

from dq.alerts.incident import Facts, Incident, IncidentState, Subject
from dq.alerts.tables import incident as incidents
from dq.alerts.tables import incident_event, incident_subject
from dq.contracts.shared.outcome import End, IncidentKey, Severity

_NONE: Mapping[str, Subject] = MappingProxyType({})
# A question names no more of them: databases have a limit.
_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class PastStep:
    """One line of an incident's history; `detail` says who did it and why, where somebody did."""

    at: datetime
    kind: str
    revision: int
    subject: str
    detail: str


def get(tx: Connection, incident_id: str) -> Incident | None:
    """The incident of this id."""
    return _read(tx, tx.execute(select(incidents).where(incidents.c.id == incident_id)).one_or_none())


def newest(tx: Connection, key: IncidentKey) -> Incident | None:
    """The open incident of a key, or else the one that was resolved last."""
    found = tx.execute(
        select(incidents)
        .where(_of(key))
        .order_by(incidents.c.resolved_at.is_(None).desc(), incidents.c.resolved_at.desc())
        .limit(1)
    )
    return _read(tx, found.one_or_none())


def unresolved(tx: Connection, contracts: Collection[str]) -> list[Incident]:
    """The incidents of these contracts that are not resolved, oldest first."""
    rows = tx.execute(
        select(incidents)
        .where(incidents.c.resolved_at.is_(None), incidents.c.contract.in_(contracts))
        .order_by(incidents.c.opened_at)
    )
    return [found for row in rows.all() if (found := _read(tx, row)) is not None]


def standing(tx: Connection) -> list[Incident]:
    """Every incident that is not resolved, oldest first."""
    rows = tx.execute(
        select(incidents)
        .where(incidents.c.resolved_at.is_(None))
        .order_by(incidents.c.opened_at, incidents.c.id)
    )
    return [found for row in rows.all() if (found := _read(tx, row)) is not None]


def newest_of_all(tx: Connection, most: int, of: str | None = None) -> list[Incident]:
    """The incidents that were opened last, open or not, newest first; only `of` a contract's key,
    contract/object or contract/object/promise."""
    columns = incidents.c
    table = columns.contract + "/" + columns.object
    named = columns.contract == of, table == of, table + "/" + columns.group_id == of
    mine = () if of is None else (or_(*named),)
    rows = tx.execute(
        select(incidents).where(*mine).order_by(columns.opened_at.desc(), columns.id).limit(most)
    )
    return [found for row in rows.all() if (found := _read(tx, row)) is not None]


def open_or_since(tx: Connection, since: datetime, without: Collection[str] = ()) -> list[Incident]:
    """The incidents that are open, or ended at this instant or later, newest first; none of what stands
    `without` in place of a contract."""
    rows = tx.execute(
        select(incidents)
        .where(
            incidents.c.contract.not_in(without),
            incidents.c.resolved_at.is_(None) | (incidents.c.resolved_at >= since),
        )
        .order_by(incidents.c.opened_at.desc(), incidents.c.id)
    )
    found = rows.all()
    subjects = _all_subjects(tx, [row.id for row in found])
    return [_made(row, subjects.get(row.id, _NONE)) for row in found]


def by_prefix(tx: Connection, prefix: str, most: int = 10) -> list[Incident]:
    """The incidents whose id begins so, the newest first."""
    rows = tx.execute(
        select(incidents)
        .where(func.substr(incidents.c.id, 1, len(prefix)) == prefix)
        .order_by(incidents.c.opened_at.desc())
        .limit(most)
    )
    return [found for row in rows.all() if (found := _read(tx, row)) is not None]


def history(tx: Connection, incident_id: str) -> list[PastStep]:
    """Everything that happened to an incident, oldest first."""
    rows = tx.execute(
        select(incident_event)
        .where(incident_event.c.incident_id == incident_id)
        .order_by(incident_event.c.id)
    )
    return [PastStep(row.at, row.kind, row.revision, row.subject, row.detail) for row in rows]


def histories(tx: Connection, incident_ids: Sequence[str]) -> dict[str, list[PastStep]]:
    """The same of many incidents, by their ids."""
    found: dict[str, list[PastStep]] = {}
    asked = select(incident_event).order_by(incident_event.c.id)
    for some in _some(incident_ids):
        for row in tx.execute(asked.where(incident_event.c.incident_id.in_(some))):
            step = PastStep(row.at, row.kind, row.revision, row.subject, row.detail)
            found.setdefault(row.incident_id, []).append(step)
    return found


def settled_at(tx: Connection, key: IncidentKey, subject: str) -> datetime | None:
    """The last instant known of a subject over all incidents of the key; None when it never broke."""
    rows = tx.execute(
        select(incident_subject.c.opened_at, incident_subject.c.closed_at)
        .join(incidents, incidents.c.id == incident_subject.c.incident_id)
        .where(_of(key), incident_subject.c.subject == subject)
    )
    return max((Subject(row.opened_at, row.closed_at).settled_at for row in rows), default=None)


def save(tx: Connection, incident: Incident, subject: str) -> None:
    """Write the incident, and of its subjects the one that changed ('' for none)."""
    values = {
        "contract": incident.key.contract,
        "object": incident.key.object,
        "group_id": incident.key.group,
        "severity": incident.severity.value,
        "title": incident.title,
        "state": incident.state.value,
        "revision": incident.revision,
        "breaches": incident.breaches,
        "opened_at": incident.opened_at,
        "acked_at": incident.acked_at,
        "acked_by": incident.acked_by,
        "resolved_at": incident.resolved_at,
        "open_since": incident.open_since,
        "period_seconds": int(incident.period.total_seconds()) if incident.period else None,
        "changes": [at.isoformat() for at in incident.changes],
        "flapping_since": incident.flapping_since,
        "holds_up": list(incident.holds_up),
        "silenced_until": incident.silenced_until,
        "silenced_why": incident.silenced_why or None,
    }
    if incident.revision == 1:
        tx.execute(insert(incidents), {"id": incident.id, **values})
    else:
        tx.execute(update(incidents).where(incidents.c.id == incident.id).values(values))
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
) -> None:
    """Append an event; events are never changed."""
    row = {"incident_id": incident, "at": now, "kind": kind, "revision": revision}
    tx.execute(insert(incident_event), {**row, "subject": subject, "detail": detail})


def _of(key: IncidentKey) -> Any:
    return (
        (incidents.c.contract == key.contract)
        & (incidents.c.object == key.object)
        & (incidents.c.group_id == key.group)
    )


def _read(tx: Connection, row: Row[Any] | None) -> Incident | None:
    return None if row is None else _made(row, _all_subjects(tx, [row.id]).get(row.id, _NONE))


def _made(row: Row[Any], subjects: Mapping[str, Subject]) -> Incident:
    return Incident(
        id=row.id,
        key=IncidentKey(row.contract, row.object, row.group_id),
        severity=Severity(row.severity),
        title=row.title,
        state=IncidentState(row.state),
        opened_at=row.opened_at,
        revision=row.revision,
        breaches=row.breaches,
        acked_at=row.acked_at,
        acked_by=row.acked_by,
        resolved_at=row.resolved_at,
        open_since=row.open_since,
        period=timedelta(seconds=row.period_seconds) if row.period_seconds else None,
        changes=tuple(datetime.fromisoformat(at) for at in row.changes or ()),
        flapping_since=row.flapping_since,
        root_id=row.root_id,
        holds_up=tuple(row.holds_up or ()),
        silenced_until=row.silenced_until,
        silenced_why=row.silenced_why or "",
        subjects=subjects,
    )


def _all_subjects(tx: Connection, incident_ids: Sequence[str]) -> dict[str, Mapping[str, Subject]]:
    found: dict[str, dict[str, Subject]] = {}
    for some in _some(incident_ids):
        for row in tx.execute(select(incident_subject).where(incident_subject.c.incident_id.in_(some))):
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
    same = (incident_subject.c.incident_id == incident.id) & (incident_subject.c.subject == name)
    values = {
        "opened_at": subject.opened_at,
        "closed_at": subject.closed_at,
        "facts": [list(fact) for fact in subject.facts],
        "closing_facts": [list(fact) for fact in subject.closing_facts],
        "ended": subject.end.value if subject.end else None,
    }
    if incident.revision > 1 and tx.execute(update(incident_subject).where(same).values(values)).rowcount:
        return
    tx.execute(insert(incident_subject), {"incident_id": incident.id, "subject": name, **values})


def _facts(stored: list[list[str]]) -> Facts:
    return tuple((label, value) for label, value in stored)
