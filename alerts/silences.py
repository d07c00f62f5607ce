"""Silences: patterns over incidents of which nobody is told for a while, but of what was told, the end."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from fnmatch import fnmatchcase

from sqlalchemy import Connection, Row, insert, select, update

from dq.alerts import incident_store
from dq.alerts.incident import UPDATE, Incident
from dq.alerts.outbox import enqueue, told
from dq.alerts.tables import silence as silences
from dq.contracts.shared.outcome import IncidentKey

_SIGN = re.compile(r"([*?\[])")


@dataclass(frozen=True, slots=True)
class KeyPattern:
    """Patterns of the shell (`*`, `?`, `[ab]`) for the parts of an incident's key."""

    contract: str
    object: str = "*"
    group: str = "*"

    @classmethod
    def only(cls, key: IncidentKey) -> KeyPattern:
        """The pattern that one promise matches, whatever signs are in its name."""
        return cls(*(_SIGN.sub(r"[\1]", part) for part in (key.contract, key.object, key.group)))

    def __str__(self) -> str:
        parts = [self.contract, self.object, self.group]
        while len(parts) > 1 and parts[-1] == "*":
            parts.pop()
        return "/".join(parts)

    def matches(self, key: IncidentKey) -> bool:
        """Whether it is about this promise. What dq itself reports is only meant where it is named."""
        own = key.contract.startswith("(") and not self.contract.startswith("(")
        parts = ((key.contract, self.contract), (key.object, self.object), (key.group, self.group))
        return not own and all(fnmatchcase(part, pattern) for part, pattern in parts)


@dataclass(frozen=True, slots=True)
class AlertSilence:
    """What is silenced from `at` to before `until`, who wanted it and why."""

    id: int
    pattern: KeyPattern
    reason: str
    who: str
    at: datetime
    until: datetime

    @property
    def why(self) -> str:
        """Who and why, as the incident's history has it."""
        return f"{self.who}: {self.reason}"


def active(tx: Connection, now: datetime) -> list[AlertSilence]:
    """The silences that hold at `now`, those that last longest first."""
    rows = tx.execute(
        select(silences)
        .where(
            silences.c.at <= now,
            silences.c.until > now,
            silences.c.ended_at.is_(None) | (silences.c.ended_at > now),
        )
        .order_by(silences.c.until.desc(), silences.c.id)
    )
    return [_silence(row) for row in rows]


def silenced(tx: Connection, incident: Incident, now: datetime) -> Incident:
    """The incident under the silences that hold now; nothing is written."""
    return _under(incident, active(tx, now))


def begin(
    tx: Connection, pattern: KeyPattern, reason: str, who: str, now: datetime, until: datetime
) -> list[Incident]:
    """Silences what matches, now and until then; gives the open incidents that it concerns."""
    tx.execute(
        insert(silences).values(
            contract=pattern.contract,
            object=pattern.object,
            group_id=pattern.group,
            reason=reason,
            by=who,
            at=now,
            until=until,
        )
    )
    _refresh(tx, now)
    return [one for one in incident_store.standing(tx) if pattern.matches(one.key)]


def end(tx: Connection, ids: Collection[int], who: str, now: datetime) -> None:
    """Ends silences before their time: what they kept is told now, if it is still open."""
    tx.execute(
        update(silences)
        .where(silences.c.id.in_(ids), silences.c.ended_at.is_(None))
        .values(ended_at=now, ended_by=who)
    )
    _refresh(tx, now, f"{who} ended it")


def _refresh(tx: Connection, now: datetime, word: str = "") -> None:
    """Brings every open incident in line with the silences that hold."""
    holding = active(tx, now)
    for incident in incident_store.standing(tx):
        after = _under(incident, holding)
        was = incident.silenced_until is not None and incident.silenced_until > now
        if after == incident or not (was or after.silenced_until):
            continue
        after = replace(after, revision=incident.revision + 1)
        incident_store.save(tx, after, "")
        kind, detail = ("silenced", said(after)) if after.silenced_until else ("unsilenced", word)
        incident_store.log(tx, after.id, kind, after.revision, now, detail=detail)
        for lane in told(tx, after.id):
            enqueue(tx, lane, UPDATE, after.revision, now)


def said(incident: Incident) -> str:
    """How a silenced incident's history tells of it."""
    return f"until {incident.silenced_until:%Y-%m-%d %H:%M} UTC by {incident.silenced_why}"


def _under(incident: Incident, holding: Iterable[AlertSilence]) -> Incident:
    longest = next((one for one in holding if one.pattern.matches(incident.key)), None)
    if longest is None:
        return replace(incident, silenced_until=None, silenced_why="")
    return replace(incident, silenced_until=longest.until, silenced_why=longest.why)


def _silence(row: Row[tuple[object, ...]]) -> AlertSilence:
    pattern = KeyPattern(row.contract, row.object, row.group_id)
    return AlertSilence(row.id, pattern, row.reason, row.by, row.at, row.until)
