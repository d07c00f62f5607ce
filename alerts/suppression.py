"""What keeps alerts back: silences, causes that say it already, and storms told as one."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from fnmatch import fnmatchcase
from typing import Any

from sqlalchemy import Connection, Row, bindparam, insert, select, update

from dq.alerts import incident_store
from dq.alerts.channel import Capabilities
from dq.alerts.incident import CLOSED_AS, CREATE, STORM, UPDATE, Incident, is_digest, step, title
from dq.alerts.outbox import HEARD, NOW, UNPAUSED, Lane, enqueue, later, told
from dq.alerts.route import Wait
from dq.alerts.tables import OutboxStatus, outbox
from dq.alerts.tables import incident as incidents
from dq.alerts.tables import silence as silences
from dq.contracts.outcome import Breach, IncidentKey, Recovery, Severity

# A storm: many new incidents for one place become one digest, with each of them in its thread.
#
# A digest is an incident whose subjects are incidents, so that it grows, is told, and ends as any other.

MOST = 5
"""More new incidents than these for one place at once are a storm."""

WINDOW = timedelta(minutes=10)
"""New incidents join a digest for so long; what comes later is news of its own."""


def fold(tx: Connection, channel: str, can: Capabilities, now: datetime) -> int:
    """Put the new incidents of each place that has too many of them into a digest; how many there were.

    A digest that can be changed takes in what comes within the window, and its members stand in its thread.
    Elsewhere its list, as it was sent, is all that is said of them, and nobody can join it.
    """
    grows = can.thread and can.update
    folded = 0
    for target, found in _fresh(tx, channel, now).items():
        digest = _open_digest(tx, channel, target, now) if grows else None
        if digest is None and len(found) <= MOST:
            continue
        # One place may have two digests in one second: what they tell of sets them apart.
        group = f"{now:%Y-%m-%dT%H:%M:%SZ}-{found[0].incident_id[:8]}"
        key = digest.key if digest else IncidentKey(STORM, f"{channel}:{target}", group)
        before = digest
        for row in found:
            digest = _take_in(tx, digest, key, row, now)
        assert digest is not None
        lane = Lane(digest.id, channel, target)
        enqueue(tx, lane, UPDATE if before else CREATE, digest.revision, now)
        incident_store.log(tx, digest.id, "joined" if before else "opened", digest.revision, now)
        said = {} if grows else {"state": OutboxStatus.DROPPED, "reason": "the digest says it"}
        tx.execute(
            update(outbox).where(outbox.c.id.in_([row.id for row in found])).values(digest=digest.id, **said)
        )
        folded += len(found)
    return folded


_OF_INCIDENT = (
    incidents.c.contract,
    incidents.c.object,
    incidents.c.group_id,
    incidents.c.severity,
    incidents.c.title,
)
_FRESH = (
    select(outbox.c.id, outbox.c.target, outbox.c.incident_id, *_OF_INCIDENT)
    .join(incidents, incidents.c.id == outbox.c.incident_id)
    .where(
        outbox.c.channel == bindparam("of"),
        outbox.c.state == OutboxStatus.READY,
        outbox.c.operation == CREATE,
        outbox.c.attempt == 0,
        outbox.c.not_before <= NOW,
        outbox.c.digest.is_(None),
        ~outbox.c.again,
        # Whom it is escalated to has a word of its own.
        outbox.c.wait != Wait.ESCALATION,
        UNPAUSED,
        HEARD,
        incidents.c.contract != STORM,
        incidents.c.resolved_at.is_(None),
    )
    .order_by(outbox.c.id)
)


def _fresh(tx: Connection, channel: str, now: datetime) -> dict[str, list[Any]]:
    """By target, what is to be said of incidents that nobody there has heard of."""
    places: dict[str, list[Any]] = {}
    for row in tx.execute(_FRESH, {"now": now, "of": channel}):
        places.setdefault(row.target, []).append(row)
    return places


def _open_digest(tx: Connection, channel: str, target: str, now: datetime) -> Incident | None:
    found = tx.execute(
        select(incidents.c.id)
        .where(
            incidents.c.contract == STORM,
            incidents.c.object == f"{channel}:{target}",
            incidents.c.resolved_at.is_(None),
            incidents.c.opened_at > now - WINDOW,
        )
        .order_by(incidents.c.opened_at.desc(), incidents.c.id)
        .limit(1)
    ).scalar_one_or_none()
    return incident_store.get(tx, found) if found else None


def _take_in(tx: Connection, digest: Incident | None, key: IncidentKey, row: Any, now: datetime) -> Incident:
    of = IncidentKey(row.contract, row.object, row.group_id)
    members = len(digest.subjects) + 1 if digest else 1
    facts = ((str(of), row.title),)
    event = Breach(key, Severity(row.severity), row.incident_id, title(members), now, facts)
    done = step(digest, event, now)
    assert done is not None, "a row is put into a digest once"
    incident_store.save(tx, done.incident, row.incident_id)
    return done.incident


# A digest is an incident whose subjects are incidents: it grows, is told, and ends as any other.

_ENDS = {state: end for end, state in CLOSED_AS.items()}
_DIGESTS = (
    select(outbox.c.digest, outbox.c.channel, outbox.c.target)
    .where(outbox.c.incident_id == bindparam("incident"), outbox.c.digest.is_not(None))
    .distinct()
)


def follow(tx: Connection, incident: Incident, now: datetime) -> None:
    """Let the digests of an incident know how it stands, in the transaction that changed it."""
    if is_digest(incident):
        return
    for row in tx.execute(_DIGESTS, {"incident": incident.id}).all():
        digest = incident_store.get(tx, row.digest)
        event = _news(incident, digest, now) if digest else None
        done = step(digest, event, now) if event else None
        if done is None:
            continue
        incident_store.save(tx, done.incident, incident.id)
        incident_store.log(
            tx, done.incident.id, done.kind, done.incident.revision, now, incident.id, after=done.incident
        )
        for operation in done.tell:
            lane = Lane(done.incident.id, row.channel, row.target)
            plan = later(done.incident, operation, now)
            enqueue(tx, lane, operation, done.incident.revision, now, plan=plan)


def _news(incident: Incident, digest: Incident, now: datetime) -> Breach | Recovery | None:
    if incident.id not in digest.subjects:
        return None
    facts = ((str(incident.key), incident.title),)
    if incident.state.closed:
        end = _ENDS.get(incident.state)
        return Recovery(digest.key, incident.id, now, facts, end) if end else None
    name = title(len(digest.subjects))
    return Breach(digest.key, incident.severity, incident.id, name, now, facts)


# Which of the products that are missing at once is the cause: the one whose own inputs are all there.

Product = tuple[str, str]
"""A contract by its key, and one of its objects."""

Broken = Mapping[Product, tuple[datetime, str]]
"""Of each product with an open incident, what tells which broke first: an instant, and an id."""


def causes(broken: Broken, made_from: Mapping[Product, Collection[Product]]) -> dict[Product, Product]:
    """From each broken product to the broken one that it waits for, at once or through others.

    Who has no broken input is not in it. Products that are made from each other are one: the first to break
    stands for them. Of several causes it is the one that broke first.
    """
    above = {one: _inputs(one, made_from) & broken.keys() for one in broken}
    # Who is above each other goes in a circle.
    circle = {one: {other for other in those if one in above[other]} | {one} for one, those in above.items()}
    first = {one: min(those, key=lambda other: broken[other]) for one, those in circle.items()}
    sources = {one for one, those in above.items() if those <= circle[one]}
    found = {}
    for one, those in above.items():
        among = {first[other] for other in {*those, one} & sources}
        cause = min(among, key=lambda other: broken[other]) if among else one
        if cause != one:
            found[one] = cause
    return found


def _inputs(one: Product, made_from: Mapping[Product, Collection[Product]]) -> set[Product]:
    found: set[Product] = set()
    left = [one]
    while left:
        new = {other for other in made_from.get(left.pop(), ()) if other not in found}
        found |= new
        left += new
    return found


# One cause, one message: who waits for a broken input is recorded, and told only if it stays broken.

LEAST_GRACE = timedelta(minutes=15)
"""A product is given so long after its cause has ended, or as long as it usually takes."""


@dataclass(frozen=True, slots=True)
class _Open:
    """Of an open incident what lineage is about; all of it is read only where something changes."""

    id: str
    key: IncidentKey
    revision: int
    opened_at: datetime
    root_id: str | None
    holds_up: tuple[str, ...]


def settle(
    tx: Connection,
    made_from: Mapping[Product, Collection[Product]],
    usual: Callable[[IncidentKey], timedelta | None],
    now: datetime,
) -> None:
    """Brings all open incidents of deliveries in line with what is made from what.

    Called once all events of a tick are recorded, in their transaction: so their order does not matter.
    `usual` is how long after it was due a product usually comes; None where nobody knows.
    """
    if not made_from:
        return
    open_: dict[Product, list[_Open]] = defaultdict(list)
    for one in _standing(tx):
        open_[one.key.contract, one.key.object].append(one)
    broken = {product: min((one.opened_at, one.id) for one in those) for product, those in open_.items()}
    cause_of = causes(broken, made_from)
    held: dict[str, list[str]] = defaultdict(list)
    for product, those in open_.items():
        cause = broken[cause_of[product]][1] if product in cause_of else None
        for one in those:
            if cause is not None:
                held[cause].append(f"{one.key.contract}/{one.key.object}")
                if one.root_id != cause:
                    grace = max(usual(one.key) or LEAST_GRACE, LEAST_GRACE)
                    _put_under(tx, one, cause, grace)
                    said = f"{'/'.join(cause_of[product])} is missing ({cause[:8]})"
                    incident_store.log(tx, one.id, "inhibited", one.revision, now, detail=said)
    for those in open_.values():
        for one in those:
            _show(tx, one, tuple(sorted(set(held.get(one.id, ())))), now)


def _standing(tx: Connection) -> list[_Open]:
    """The open incidents of deliveries, oldest first."""
    columns = ("contract", "object", "group_id", "id", "revision", "opened_at", "root_id", "holds_up")
    rows = tx.execute(
        select(*(incidents.c[name] for name in columns))
        .where(incidents.c.resolved_at.is_(None))
        .order_by(incidents.c.opened_at, incidents.c.id)
    )
    found = [
        _Open(
            row.id, IncidentKey(*row[:3]), row.revision, row.opened_at, row.root_id, tuple(row.holds_up or ())
        )
        for row in rows
    ]
    return [one for one in found if _is_delivery(one.key)]


def _is_delivery(key: IncidentKey) -> bool:
    return not key.contract.startswith("(") and key.group != "quality" and not key.group.endswith(":budget")


def _put_under(tx: Connection, one: _Open, cause: str, grace: timedelta) -> None:
    values = {"root_id": cause, "grace_seconds": int(grace.total_seconds())}
    tx.execute(update(incidents).where(incidents.c.id == one.id).values(values))


def _show(tx: Connection, one: _Open, names: tuple[str, ...], now: datetime) -> None:
    before = incident_store.get(tx, one.id) if names != one.holds_up else None
    if before is None:
        return
    after = replace(before, holds_up=names, revision=before.revision + 1)
    incident_store.save(tx, after, "")
    # What was put under a cause just now stays there.
    incident_store.log(tx, one.id, "holds up", after.revision, now, detail=f"{len(names)}")
    for lane in told(tx, one.id):
        enqueue(tx, lane, UPDATE, after.revision, now)


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
