"""Suppression of alerts: digests, inhibition by root causes, and silences."""

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
from dq.alerts.incident import (
    CLOSED_AS,
    CREATE,
    DIGEST_CONTRACT,
    UPDATE,
    Incident,
    digest_title,
    is_digest,
    is_notice,
    step,
)
from dq.alerts.message import USED_FOR, incident_title
from dq.alerts.outbox import (
    NOT_MUTED,
    NOW,
    UNPAUSED,
    NotificationStream,
    enqueue,
    flapping_deferral,
    notified_streams,
)
from dq.alerts.route import DeferralReason
from dq.alerts.tables import OutboxStatus, outbox
from dq.alerts.tables import incident as incidents
from dq.alerts.tables import silence as silences
from dq.contracts.incident import Breach, IncidentKey, Recovery

# Grouping: many new incidents for one target become one digest, with each of them in its thread.
#
# A digest is an incident whose subjects are incidents, so it grows, notifies and ends like any other.

MAX_INDIVIDUAL = 5
"""More new incidents than this for one target at once are grouped into a digest."""

DIGEST_WINDOW = timedelta(minutes=10)
"""Time in which new incidents join a digest."""


def group_into_digest(tx: Connection, channel: str, can: Capabilities, now: datetime) -> int:
    """Group the new incidents of each target with too many of them into a digest; return their number.

    If the channel supports updates and threads, later incidents join the digest within its window, and
    members are posted in its thread. Otherwise the sent list replaces the members' messages, and nothing can
    join it.
    """
    is_updatable = can.thread and can.update
    grouped = 0
    for target, rows in _new_notifications(tx, channel, now).items():
        digest = _open_digest(tx, channel, target, now) if is_updatable else None
        if digest is None and len(rows) <= MAX_INDIVIDUAL:
            continue
        # One target may have two digests in one second; their first members differ.
        group = f"{now:%Y-%m-%dT%H:%M:%SZ}-{rows[0].incident_id[:8]}"
        key = digest.key if digest else IncidentKey(DIGEST_CONTRACT, f"{channel}:{target}", group)
        existing = digest
        for row in rows:
            digest = _add_member(tx, digest, key, row.incident_id, now)
        assert digest is not None
        stream = NotificationStream(digest.id, channel, target)
        enqueue(tx, stream, UPDATE if existing else CREATE, digest.revision, now)
        incident_store.log(tx, digest.id, "joined" if existing else "opened", digest.revision, now)
        values = {} if is_updatable else {"state": OutboxStatus.DROPPED, "reason": "part of a digest"}
        tx.execute(
            update(outbox).where(outbox.c.id.in_([row.id for row in rows])).values(digest=digest.id, **values)
        )
        grouped += len(rows)
    return grouped


_NEW_NOTIFICATIONS = (
    select(outbox.c.id, outbox.c.target, outbox.c.incident_id)
    .join(incidents, incidents.c.id == outbox.c.incident_id)
    .where(
        outbox.c.channel == bindparam("of"),
        outbox.c.state == OutboxStatus.READY,
        outbox.c.operation == CREATE,
        outbox.c.attempt == 0,
        outbox.c.not_before <= NOW,
        outbox.c.digest.is_(None),
        ~outbox.c.again,
        # Escalations are not grouped.
        outbox.c.wait != DeferralReason.ESCALATION,
        UNPAUSED,
        NOT_MUTED,
        incidents.c.contract != DIGEST_CONTRACT,
        incidents.c.resolved_at.is_(None),
    )
    .order_by(outbox.c.id)
)


def _new_notifications(tx: Connection, channel: str, now: datetime) -> dict[str, list[Any]]:
    """Return the due notifications of new incidents, by target."""
    by_target: dict[str, list[Any]] = {}
    for row in tx.execute(_NEW_NOTIFICATIONS, {"now": now, "of": channel}):
        by_target.setdefault(row.target, []).append(row)
    return by_target


def _open_digest(tx: Connection, channel: str, target: str, now: datetime) -> Incident | None:
    digest_id = tx.execute(
        select(incidents.c.id)
        .where(
            incidents.c.contract == DIGEST_CONTRACT,
            incidents.c.object == f"{channel}:{target}",
            incidents.c.resolved_at.is_(None),
            incidents.c.opened_at > now - DIGEST_WINDOW,
        )
        .order_by(incidents.c.opened_at.desc(), incidents.c.id)
        .limit(1)
    ).scalar_one_or_none()
    return incident_store.get(tx, digest_id) if digest_id else None


def _add_member(
    tx: Connection, digest: Incident | None, key: IncidentKey, incident_id: str, now: datetime
) -> Incident:
    member = incident_store.get(tx, incident_id)
    assert member is not None, "a notification belongs to an incident"
    title = digest_title(len(digest.subjects) + 1 if digest else 1)
    event = Breach(key, member.severity, member.id, title, now, (_member_fact(member),))
    change = step(digest, event, now)
    assert change is not None, "a row is put into a digest once"
    incident_store.save(tx, change.incident, member.id)
    return change.incident


def _member_fact(member: Incident) -> tuple[str, str]:
    """Return a member's promise and title, of a consumer's notice the product of its cause, and the use."""
    if not is_notice(member.key):
        return str(member.key), member.title
    purposes = (dict(subject.facts).get(USED_FOR, "") for subject in member.subjects.values())
    used_for = "; ".join(dict.fromkeys(filter(None, purposes)))
    return member.key.group, "; used for ".join(filter(None, (incident_title(member), used_for)))


# Updates of digests.

_ENDS = {state: end for end, state in CLOSED_AS.items()}
_DIGESTS = (
    select(outbox.c.digest, outbox.c.channel, outbox.c.target)
    .where(outbox.c.incident_id == bindparam("incident"), outbox.c.digest.is_not(None))
    .distinct()
)


def update_digests(tx: Connection, incident: Incident, now: datetime) -> None:
    """Update the digests of an incident, in the transaction that changed it."""
    if is_digest(incident):
        return
    for row in tx.execute(_DIGESTS, {"incident": incident.id}).all():
        digest = incident_store.get(tx, row.digest)
        event = _digest_event(incident, digest, now) if digest else None
        change = step(digest, event, now) if event else None
        if change is None:
            continue
        incident_store.save(tx, change.incident, incident.id)
        incident_store.log(
            tx,
            change.incident.id,
            change.kind,
            change.incident.revision,
            now,
            incident.id,
            after=change.incident,
        )
        for operation in change.operations:
            stream = NotificationStream(change.incident.id, row.channel, row.target)
            deferral = flapping_deferral(change.incident, operation, now)
            enqueue(tx, stream, operation, change.incident.revision, now, deferral=deferral)


def _digest_event(incident: Incident, digest: Incident, now: datetime) -> Breach | Recovery | None:
    if incident.id not in digest.subjects:
        return None
    facts = (_member_fact(incident),)
    if incident.state.is_closed:
        end = _ENDS.get(incident.state)
        return Recovery(digest.key, incident.id, now, facts, end) if end else None
    digest_name = digest_title(len(digest.subjects))
    return Breach(digest.key, incident.severity, incident.id, digest_name, now, facts)


# Root causes: of the products that are missing at once, the one whose inputs are all available.

Product = tuple[str, str]
"""A contract key and an object name."""

BrokenProducts = Mapping[Product, tuple[datetime, str]]
"""Opening instant and id of the first open incident, by product; ordered by first breach."""


def root_causes(
    broken: BrokenProducts, made_from: Mapping[Product, Collection[Product]]
) -> dict[Product, Product]:
    """Return the root cause of each broken product that has one, directly or through other products.

    Products without broken inputs are not included. Products that depend on each other in a cycle count as
    one, and the first to break represents them. Of several root causes the first to break is returned.
    """
    broken_inputs = {product: _all_inputs(product, made_from) & broken.keys() for product in broken}
    # Products that are inputs of each other form a cycle.
    cycles = {
        product: {upstream for upstream in inputs if product in broken_inputs[upstream]} | {product}
        for product, inputs in broken_inputs.items()
    }
    first_broken = {
        product: min(members, key=lambda other: broken[other]) for product, members in cycles.items()
    }
    sources = {product for product, inputs in broken_inputs.items() if inputs <= cycles[product]}
    result = {}
    for product, inputs in broken_inputs.items():
        candidates = {first_broken[other] for other in {*inputs, product} & sources}
        cause = min(candidates, key=lambda other: broken[other]) if candidates else product
        if cause != product:
            result[product] = cause
    return result


def _all_inputs(product: Product, made_from: Mapping[Product, Collection[Product]]) -> set[Product]:
    inputs: set[Product] = set()
    pending = [product]
    while pending:
        new = {other for other in made_from.get(pending.pop(), ()) if other not in inputs}
        inputs |= new
        pending += new
    return inputs


# Inhibition: downstream incidents of a root cause are recorded, and notified only if they outlast it.

LEAST_GRACE = timedelta(minutes=15)
"""Minimum grace after the end of the root cause; longer if the product usually takes longer."""


@dataclass(frozen=True, slots=True)
class _OpenIncident:
    """The fields of an open incident that inhibition needs; the full incident is read only if something
    changes.
    """

    id: str
    key: IncidentKey
    revision: int
    opened_at: datetime
    root_id: str | None
    inhibits: tuple[str, ...]


def apply_inhibition(
    tx: Connection,
    made_from: Mapping[Product, Collection[Product]],
    usual_delay: Callable[[IncidentKey], timedelta | None],
    now: datetime,
) -> None:
    """Update the root causes of all open delivery incidents from the lineage.

    Called in the transaction of a tick after all its events are recorded, so that their order does not
    matter. `usual_delay` returns a product's usual delay after its due instant, or None if unknown.
    """
    if not made_from:
        return
    by_product, broken = _broken_products(tx)
    cause_of = root_causes(broken, made_from)
    inhibited: dict[str, list[str]] = defaultdict(list)
    for product, members in by_product.items():
        cause = broken[cause_of[product]][1] if product in cause_of else None
        for incident in members:
            if cause is not None:
                inhibited[cause].append(f"{incident.key.contract}/{incident.key.object}")
                if incident.root_id != cause:
                    grace = max(usual_delay(incident.key) or LEAST_GRACE, LEAST_GRACE)
                    _set_root_cause(tx, incident, cause, grace)
                    detail = f"{'/'.join(cause_of[product])} is missing ({cause[:8]})"
                    incident_store.log(tx, incident.id, "inhibited", incident.revision, now, detail=detail)
    for members in by_product.values():
        for incident in members:
            _update_inhibits(tx, incident, tuple(sorted(set(inhibited.get(incident.id, ())))), now)


def open_root_causes(
    tx: Connection, made_from: Mapping[Product, Collection[Product]]
) -> dict[Product, Product]:
    """Return the root cause of each product with an open delivery incident that has one."""
    return root_causes(_broken_products(tx)[1], made_from) if made_from else {}


def _broken_products(tx: Connection) -> tuple[dict[Product, list[_OpenIncident]], BrokenProducts]:
    by_product: dict[Product, list[_OpenIncident]] = defaultdict(list)
    for incident in _open_deliveries(tx):
        by_product[incident.key.contract, incident.key.object].append(incident)
    return by_product, {
        product: min((member.opened_at, member.id) for member in members)
        for product, members in by_product.items()
    }


def _open_deliveries(tx: Connection) -> list[_OpenIncident]:
    """Return the open incidents of deliveries, oldest first."""
    columns = ("contract", "object", "group_id", "id", "revision", "opened_at", "root_id", "holds_up")
    rows = tx.execute(
        select(*(incidents.c[name] for name in columns))
        .where(incidents.c.resolved_at.is_(None))
        .order_by(incidents.c.opened_at, incidents.c.id)
    )
    open_incidents = [
        _OpenIncident(
            row.id, IncidentKey(*row[:3]), row.revision, row.opened_at, row.root_id, tuple(row.holds_up or ())
        )
        for row in rows
    ]
    return [incident for incident in open_incidents if is_delivery(incident.key)]


def is_delivery(key: IncidentKey) -> bool:
    """True if an incident is about the deliveries of a product."""
    return not key.contract.startswith("(") and key.group != "quality" and not key.group.endswith(":budget")


def _set_root_cause(tx: Connection, incident: _OpenIncident, cause: str, grace: timedelta) -> None:
    values = {"root_id": cause, "grace_seconds": int(grace.total_seconds())}
    tx.execute(update(incidents).where(incidents.c.id == incident.id).values(values))


def _update_inhibits(tx: Connection, incident: _OpenIncident, names: tuple[str, ...], now: datetime) -> None:
    before = incident_store.get(tx, incident.id) if names != incident.inhibits else None
    if before is None:
        return
    after = replace(before, inhibits=names, revision=before.revision + 1)
    incident_store.save(tx, after, "")
    # The root causes set before are not affected.
    incident_store.log(tx, incident.id, "holds up", after.revision, now, detail=f"{len(names)}")
    for stream in notified_streams(tx, incident.id):
        enqueue(tx, stream, UPDATE, after.revision, now)


_GLOB_CHARACTER = re.compile(r"([*?\[])")


@dataclass(frozen=True, slots=True)
class KeyPattern:
    """Shell patterns (`*`, `?`, `[ab]`) for the parts of an incident's key."""

    contract: str
    object: str = "*"
    group: str = "*"

    @classmethod
    def for_key(cls, key: IncidentKey) -> KeyPattern:
        """Return the pattern that matches exactly one key, with special characters escaped."""
        return cls(*(_GLOB_CHARACTER.sub(r"[\1]", part) for part in (key.contract, key.object, key.group)))

    def __str__(self) -> str:
        parts = [self.contract, self.object, self.group]
        while len(parts) > 1 and parts[-1] == "*":
            parts.pop()
        return "/".join(parts)

    def matches(self, key: IncidentKey) -> bool:
        """True if the key matches. Incidents of dq itself only match patterns that name them explicitly."""
        is_internal = key.contract.startswith("(") and not self.contract.startswith("(")
        parts = ((key.contract, self.contract), (key.object, self.object), (key.group, self.group))
        return not is_internal and all(fnmatchcase(part, pattern) for part, pattern in parts)


@dataclass(frozen=True, slots=True)
class AlertSilence:
    """A silence in [`starts_at`, `until`), with its user and reason."""

    id: int
    pattern: KeyPattern
    reason: str
    user: str
    starts_at: datetime
    until: datetime

    @property
    def description(self) -> str:
        """User and reason, as in the incident's history."""
        return f"{self.user}: {self.reason}"


def active(tx: Connection, now: datetime) -> list[AlertSilence]:
    """Return the silences active at `now`, longest first."""
    rows = tx.execute(
        select(silences)
        .where(
            silences.c.at <= now,
            silences.c.until > now,
            silences.c.ended_at.is_(None) | (silences.c.ended_at > now),
        )
        .order_by(silences.c.until.desc(), silences.c.id)
    )
    return [_silence_from_row(row) for row in rows]


def with_silences(tx: Connection, incident: Incident, now: datetime) -> Incident:
    """Return the incident with the active silences applied; nothing is written."""
    return _apply_silences(incident, active(tx, now))


def begin_silence(
    tx: Connection, pattern: KeyPattern, reason: str, user: str, now: datetime, until: datetime
) -> list[Incident]:
    """Silence matching incidents from `now` until `until`, and return the open ones."""
    tx.execute(
        insert(silences).values(
            contract=pattern.contract,
            object=pattern.object,
            group_id=pattern.group,
            reason=reason,
            by=user,
            at=now,
            until=until,
        )
    )
    _refresh(tx, now)
    return [incident for incident in incident_store.open_incidents(tx) if pattern.matches(incident.key)]


def end_silences(tx: Connection, ids: Collection[int], user: str, now: datetime) -> None:
    """End silences early; muted notifications of incidents that are still open are sent now."""
    tx.execute(
        update(silences)
        .where(silences.c.id.in_(ids), silences.c.ended_at.is_(None))
        .values(ended_at=now, ended_by=user)
    )
    _refresh(tx, now, f"{user} ended it")


def _refresh(tx: Connection, now: datetime, end_text: str = "") -> None:
    """Apply the active silences to every open incident."""
    active_silences = active(tx, now)
    for incident in incident_store.open_incidents(tx):
        after = _apply_silences(incident, active_silences)
        was_silenced = incident.silenced_until is not None and incident.silenced_until > now
        if after == incident or not (was_silenced or after.silenced_until):
            continue
        after = replace(after, revision=incident.revision + 1)
        incident_store.save(tx, after, "")
        kind, detail = ("silenced", silence_text(after)) if after.silenced_until else ("unsilenced", end_text)
        incident_store.log(tx, after.id, kind, after.revision, now, detail=detail)
        for stream in notified_streams(tx, after.id):
            enqueue(tx, stream, UPDATE, after.revision, now)


def silence_text(incident: Incident) -> str:
    """Return the detail of a `silenced` event in the incident's history."""
    return f"until {incident.silenced_until:%Y-%m-%d %H:%M} UTC by {incident.silence_reason}"


def _apply_silences(incident: Incident, active_silences: Iterable[AlertSilence]) -> Incident:
    longest = next((silence for silence in active_silences if silence.pattern.matches(incident.key)), None)
    if longest is None:
        return replace(incident, silenced_until=None, silence_reason="")
    return replace(incident, silenced_until=longest.until, silence_reason=longest.description)


def _silence_from_row(row: Row[tuple[object, ...]]) -> AlertSilence:
    pattern = KeyPattern(row.contract, row.object, row.group_id)
    return AlertSilence(row.id, pattern, row.reason, row.by, row.at, row.until)
