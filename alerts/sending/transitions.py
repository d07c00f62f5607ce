"""How saying it ended: writes to the outbox what became of a claim."""

from __future__ import annotations

from datetime import UTC, datetime

from sqlalchemy import Connection, case, delete, insert, literal, update

from dq.alerts import ledger
from dq.alerts.channel import MessagePlace
from dq.alerts.hush import HEARD
from dq.alerts.incident import CREATE, UPDATE
from dq.alerts.lane import Lane
from dq.alerts.outbox import IN_FLIGHT, OutboxStatus, of_lane
from dq.alerts.plans import remind
from dq.alerts.sending.claims import ClaimedRow
from dq.alerts.sending.due import UNPAUSED
from dq.alerts.tables import channel_pause, message, outbox
from dq.store.schema import UtcDateTime

NEVER = datetime(9999, 1, 1, tzinfo=UTC)


def sent(tx: Connection, claimed: ClaimedRow, receipt: MessagePlace, note: str, now: datetime) -> bool:
    """Note that it is there; False when another sender has settled the row meanwhile."""
    if not _settle(tx, claimed, state=OutboxStatus.SENT, reason=note, reference=receipt.reference):
        return False
    revision = claimed.message.revision
    if claimed.operation == CREATE:
        tx.execute(
            insert(message).values(
                incident_id=claimed.lane.incident,
                channel=claimed.lane.channel,
                target=claimed.lane.target,
                place=receipt.place,
                reference=receipt.reference,
                thread=receipt.thread,
                created_revision=revision,
                revision=revision,
            )
        )
    elif claimed.operation == UPDATE:
        tx.execute(update(message).where(of_lane(message, claimed.lane)).values(revision=revision))
    detail = f"{claimed.operation} to {claimed.lane} {note}".strip()
    ledger.log(tx, claimed.lane.incident, "sent", revision, now, detail=detail)
    incident = ledger.get(tx, claimed.lane.incident)
    if incident is not None and claimed.operation != UPDATE:
        remind(tx, claimed.lane, incident, now)
    return True


def retry(tx: Connection, claimed: ClaimedRow, at: datetime, reason: str, repeat: bool = False) -> bool:
    """Let it be sent again from `at` on; `repeat` when a copy may be there already."""
    changes = {"state": OutboxStatus.READY, "not_before": at, "reason": reason, "looks": 0}
    return _settle(tx, claimed, **changes, **({"repeat": True} if repeat else {}))


def unsure(tx: Connection, claimed: ClaimedRow, at: datetime, reason: str, looks: int) -> bool:
    """Let someone look for it from `at` on."""
    changes = {"state": OutboxStatus.AMBIGUOUS, "not_before": at, "reason": reason, "looks": looks}
    return _settle(tx, claimed, **changes)


def bury(tx: Connection, claimed: ClaimedRow, reason: str, now: datetime, again_at: datetime | None) -> None:
    """Note that it was refused; it is tried again at `again_at`, or never."""
    buried = _settle(tx, claimed, state=OutboxStatus.DEAD, reason=reason, not_before=again_at or NEVER)
    if buried and not claimed.revived:
        detail = f"{claimed.operation} to {claimed.lane}: {reason}"
        ledger.log(tx, claimed.lane.incident, "dead", claimed.message.revision, now, detail=detail)


def drop(tx: Connection, claimed: ClaimedRow, reason: str) -> bool:
    """Let it go: it is not needed any more."""
    return _settle(tx, claimed, state=OutboxStatus.DROPPED, reason=reason)


def forget(tx: Connection, lane: Lane) -> None:
    """The place does not hold the message any more."""
    tx.execute(delete(message).where(of_lane(message, lane)))


def pause(tx: Connection, channel: str, until: datetime, target: str = "") -> None:
    """Let nobody send to a target before `until`, or through the whole channel; a longer pause stays."""
    mine = (channel_pause.c.channel == channel) & (channel_pause.c.target == target)
    longer = case((channel_pause.c.until > until, channel_pause.c.until), else_=literal(until, UtcDateTime))
    if not tx.execute(update(channel_pause).where(mine).values(until=longer)).rowcount:
        tx.execute(insert(channel_pause).values(channel=channel, target=target, until=until))


def doubt(tx: Connection, channel: str, before: datetime, now: datetime) -> None:
    """Let someone look for what should have been said `before` an instant and was never tried.

    The database may have been restored from a copy that is older than the message.
    """
    forgotten = (
        (outbox.c.channel == channel)
        & (outbox.c.state == OutboxStatus.READY)
        & (outbox.c.operation == CREATE)
        & (outbox.c.attempt == 0)
        & (outbox.c.wait == "")
        & outbox.c.digest.is_(None)
        & (outbox.c.not_before < before)
        & UNPAUSED
        & HEARD
    )
    once = {"attempt": 1, "looks": 1, "tried_at": outbox.c.not_before, "rendered": outbox.c.revision}
    state = {"state": OutboxStatus.AMBIGUOUS, "not_before": now, "reason": "it waited for long"}
    tx.execute(update(outbox).where(forgotten).values(**once, **state), {"now": now})


def expire(tx: Connection, now: datetime) -> None:
    """Turn claims whose lease ran out into ambiguous ones; an update may simply be sent again."""
    over = (outbox.c.state == OutboxStatus.SENDING) & (outbox.c.lease_until <= now)
    state = case((outbox.c.operation == UPDATE, OutboxStatus.READY.value), else_=OutboxStatus.AMBIGUOUS.value)
    tx.execute(
        update(outbox).where(over).values(state=state, not_before=now, looks=0, reason="lease ran out")
    )


def _settle(tx: Connection, claimed: ClaimedRow, **values: object) -> bool:
    """Change the row if this claim still holds it, or nobody has looked for it since its lease ran out."""
    mine = (
        (outbox.c.id == claimed.id)
        & (outbox.c.attempt == claimed.attempt)
        & (outbox.c.looks == claimed.looks)
        & outbox.c.state.in_(IN_FLIGHT)
    )
    return bool(tx.execute(update(outbox).where(mine).values(lease_until=None, **values)).rowcount)
