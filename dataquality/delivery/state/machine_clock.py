"""A second clock where the database has none: how long the machine has been running.

Whoever sets a machine's clock moves it away from the time that the machine counts since its start. A tick by
a clock that is ahead would call missing what is not due yet, and by one that is behind take for early what is
late.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import Connection, delete, insert, or_, select

from dq.dataquality.delivery.state.tables import heartbeat

LEAP = timedelta(seconds=60)
"""How far a clock may move against what the machine counts, between two ticks."""

BELIEVED_AFTER = timedelta(hours=1)
"""After this long a clock that was set is believed: that of a machine which was paused is set right so."""

# Names have at most 16 characters, so that a start is known by its first eleven. Of the machine that ticked
# last: the instant of its start by its clock; the same by the clock as it was set; when that was found.
_START, _NEW, _FOUND = "boot:{}", "leap:{}", "held:{}"


@dataclass(frozen=True, slots=True)
class Uptime:
    """How long a machine has been running, pauses that it knows of included; `start` tells one start of it
    from all others."""

    start: str
    elapsed: timedelta


def doubt(tx: Connection, now: datetime, uptime: Uptime) -> str | None:
    """Why the machine's clock may not be believed; None when it may, or when its start is a new one."""
    before = _at(tx, _START, uptime)
    leap = now - uptime.elapsed - before if before is not None else timedelta()
    if before is None or abs(leap) <= LEAP:
        return None
    counted, found = before + uptime.elapsed, _found(tx, now, uptime)
    if found is not None and counted - found >= BELIEVED_AFTER:
        return None
    left = BELIEVED_AFTER - (counted - found if found is not None else timedelta())
    minutes = -(-left // timedelta(minutes=1))
    return (
        f"this machine's clock says {now:%Y-%m-%d %H:%M:%S}Z, and by how long it has been running since the "
        f"last tick it is {counted:%Y-%m-%d %H:%M:%S}Z; if it says so for {minutes} min more, it is believed"
    )


def note_doubt(tx: Connection, now: datetime, uptime: Uptime) -> None:
    """Keeps since when the clock says what it says, once."""
    before = _at(tx, _START, uptime)
    if before is None or _found(tx, now, uptime) is not None:
        return
    names = (_NEW.format(_short(uptime)), _FOUND.format(_short(uptime)))
    tx.execute(delete(heartbeat).where(heartbeat.c.name.in_(names)))
    times = (now - uptime.elapsed, before + uptime.elapsed)
    tx.execute(insert(heartbeat), [{"name": name, "at": at} for name, at in zip(names, times, strict=True)])


def trust(tx: Connection, now: datetime, uptime: Uptime) -> None:
    """Keeps that the clock is right at `now`; what other machines' clocks said is forgotten."""
    ours = (heartbeat.c.name.like(name.format("%")) for name in (_START, _NEW, _FOUND))
    tx.execute(delete(heartbeat).where(or_(*ours)))
    tx.execute(insert(heartbeat).values(name=_START.format(_short(uptime)), at=now - uptime.elapsed))


def _found(tx: Connection, now: datetime, uptime: Uptime) -> datetime | None:
    """When this leap was found, by the clock before it; None: it is a new one."""
    new = _at(tx, _NEW, uptime)
    if new is None or abs(now - uptime.elapsed - new) > LEAP:
        return None
    return _at(tx, _FOUND, uptime)


def _at(tx: Connection, name: str, uptime: Uptime) -> datetime | None:
    return tx.scalar(select(heartbeat.c.at).where(heartbeat.c.name == name.format(_short(uptime))))


def _short(uptime: Uptime) -> str:
    return uptime.start.replace("-", "")[:11]
