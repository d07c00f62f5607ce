"""What people should have heard and have not: by place, with its age and the last reason."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, func, select, update

from dq.alerts import ledger
from dq.alerts.digest import STORM
from dq.alerts.incident import CREATE
from dq.alerts.lane import Lane
from dq.alerts.outbox import WAITING, OutboxStatus, enqueue, told
from dq.alerts.route import AlertRoute
from dq.alerts.sending.due import SHOULD_BE_THERE
from dq.alerts.tables import incident, outbox
from dq.contracts.shared.outcome import IncidentKey, Severity
from dq.store.schema import UtcDateTime

STUCK_AFTER = timedelta(minutes=15)


@dataclass(frozen=True, slots=True)
class Outstanding:
    """Messages for one place that are not there: how many, since when, and what was said of the newest.

    `refused`: the place does not take them, so somebody has to mend it; they are tried again every hour.
    `stuck`: one was refused, or is tried in vain for longer than STUCK_AFTER.
    """

    channel: str
    target: str
    count: int
    since: datetime
    reason: str
    refused: bool
    stuck: bool

    @property
    def place(self) -> str:
        """As routes are written: `slack:#orders-alerts`."""
        return f"{self.channel}:{self.target}" if self.target else self.channel


def refused(tx: Connection) -> list[Outstanding]:
    """What places have refused, until they take it or somebody dismisses it; the oldest first."""
    return _asked(tx, _REFUSED, None)


def all_of(tx: Connection, now: datetime) -> list[Outstanding]:
    """What places have refused, then what should have been sent by `now` and is not."""
    return [*refused(tx), *_asked(tx, _WAITING, now)]


def dismiss(tx: Connection, channel: str, target: str, who: str, now: datetime) -> int:
    """Let go of what a place has refused; how many messages there were. The incidents' histories keep it."""
    mine = (outbox.c.channel == channel) & (outbox.c.target == target) & (outbox.c.state == OutboxStatus.DEAD)
    found = tx.execute(
        select(outbox.c.incident_id, outbox.c.operation, incident.c.revision)
        .join(incident, incident.c.id == outbox.c.incident_id)
        .where(mine)
    ).all()
    for row in found:
        said = f"{row.operation} to {channel} {target}".strip()
        ledger.log(tx, row.incident_id, "dismissed", row.revision, now, detail=f"{said}, by {who}")
    let_go = {"state": OutboxStatus.DROPPED, "reason": f"dismissed by {who}"}
    # What waits for a digest that never comes would wait for ever.
    place = (outbox.c.channel == channel) & (outbox.c.target == target)
    tx.execute(update(outbox).where(place, _below_a_refused_digest()).values(**let_go))
    tx.execute(update(outbox).where(mine).values(**let_go))
    return len(found)


def reroute(
    tx: Connection,
    places: Callable[[IncidentKey, Severity], Sequence[AlertRoute] | None],
    now: datetime,
) -> int:
    """Tell other places of open incidents that one refused, where it is theirs no more; how many there were.

    `places` gives those that may be told of an incident, the rightful ones first; None leaves it as it is.
    """
    found = tx.execute(
        select(outbox.c.id, outbox.c.incident_id, outbox.c.channel, outbox.c.target)
        .join(incident, incident.c.id == outbox.c.incident_id)
        .where(
            (outbox.c.state == OutboxStatus.DEAD) | _below_a_refused_digest(),
            outbox.c.operation == CREATE,
            incident.c.resolved_at.is_(None),
        )
    ).all()
    moved = 0
    for row in found:
        of = ledger.get(tx, row.incident_id)
        wanted = places(of.key, of.severity) if of else None
        old = Lane(row.incident_id, row.channel, row.target)
        lanes = [Lane(row.incident_id, one.channel, one.target) for one in wanted or ()]
        if of is None or not lanes or old in lanes:
            continue
        said = "the contract names another place now"
        tx.execute(
            update(outbox).where(outbox.c.id == row.id).values(state=OutboxStatus.DROPPED, reason=said)
        )
        if lanes[0] not in told(tx, row.incident_id):
            enqueue(tx, lanes[0], CREATE, of.revision, now)
        ledger.log(tx, of.id, "rerouted", of.revision, now, detail=f"{old} to {lanes[0]}")
        moved += 1
    if moved:
        # Nobody is left whom it would tell of.
        tx.execute(
            update(outbox)
            .where(_refused_digest(), ~_waits_below.exists())
            .values(state=OutboxStatus.DROPPED, reason="all that it told of is told elsewhere")
        )
    return moved


_digest = outbox.alias()
_waits_below = select(_digest.c.id).where(
    _digest.c.digest == outbox.c.incident_id,
    _digest.c.channel == outbox.c.channel,
    _digest.c.target == outbox.c.target,
    _digest.c.state.in_(WAITING),
)


def _refused_digest() -> ColumnElement[bool]:
    """Whether a row is the message of a digest that its place refused."""
    of = select(incident.c.id).where(incident.c.contract == STORM)
    dead = (outbox.c.state == OutboxStatus.DEAD) & (outbox.c.operation == CREATE)
    return dead & outbox.c.incident_id.in_(of)


def _below_a_refused_digest() -> ColumnElement[bool]:
    """Whether a row waits for a digest that its place refused, and was never said."""
    above = select(_digest.c.id).where(
        _digest.c.incident_id == outbox.c.digest,
        _digest.c.channel == outbox.c.channel,
        _digest.c.target == outbox.c.target,
        _digest.c.operation == CREATE,
        _digest.c.state == OutboxStatus.DEAD,
    )
    waits = (outbox.c.state == OutboxStatus.READY) & (outbox.c.operation == CREATE)
    return waits & (outbox.c.attempt == 0) & above.exists()


def _by_place(which: ColumnElement[bool]) -> Select[Any]:
    # The reason of one row of each place; a place seldom has two.
    return (
        select(
            outbox.c.channel,
            outbox.c.target,
            func.count().label("number"),
            func.min(incident.c.opened_at, type_=UtcDateTime).label("since"),
            func.max(outbox.c.reason).label("reason"),
            func.min(outbox.c.tried_at, type_=UtcDateTime).label("tried_at"),
        )
        .join(incident, incident.c.id == outbox.c.incident_id)
        .where(which)
        .group_by(outbox.c.channel, outbox.c.target)
        .order_by(func.min(incident.c.opened_at))
    )


_REFUSED = _by_place(outbox.c.state == OutboxStatus.DEAD)
_WAITING = _by_place(outbox.c.state.in_(WAITING) & SHOULD_BE_THERE)


def _asked(tx: Connection, which: Select[Any], now: datetime | None) -> list[Outstanding]:
    """By place; `now` where it waits, None where it was refused."""
    return [
        Outstanding(
            row.channel,
            row.target,
            row.number,
            row.since,
            row.reason,
            refused=now is None,
            stuck=now is None or (row.tried_at is not None and now - row.tried_at > STUCK_AFTER),
        )
        for row in tx.execute(which, {"now": now} if now else {})
    ]
