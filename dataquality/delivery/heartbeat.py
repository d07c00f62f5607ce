"""The instant of the last tick, and whether the clock may be believed."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import Connection, delete, func, insert, or_, select

from dq.dataquality.delivery.tables import heartbeat, past_tick

# A second clock where the database has none: how long the machine has been running.
#
# Whoever sets a machine's clock moves it away from the time that the machine counts since its start. A tick
# by
# a clock that is ahead would call missing what is not due yet, and by one that is behind take for early
# what is
# late.

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


def clock_doubt(tx: Connection, now: datetime, uptime: Uptime) -> str | None:
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


def trust_clock(tx: Connection, now: datetime, uptime: Uptime) -> None:
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


WATCH = "watch"
COMPLETE = "complete"
# Names have at most 16 characters.
_LOOKED = "look:{}"

BACKWARDS = timedelta(seconds=60)
"""How far before the last tick, perhaps of another machine, a tick may be."""

SKEW = timedelta(seconds=60)
"""How far this machine's clock may be from that of a database server."""


def doubt(tx: Connection, now: datetime, *, real: bool, uptime: Uptime | None = None) -> str | None:
    """Why nothing may be judged as of `now`; None when it may.

    `real` says that it is the time, and not one that somebody asked for: then a database server's clock must
    say the same. SQLite has none of its own: there, what the machine has counted since its start must, where
    that is known.
    """
    before = last_tick(tx)
    if before is not None and now < before - BACKWARDS:
        return f"it would be as of {_text(now)}, and the last tick was as of {_text(before)}"
    if real and tx.dialect.name == "postgresql":
        there = tx.scalar(select(func.now()))
        if there is not None and abs(now - there) > SKEW:
            return f"this machine's clock says {_text(now)}, and the database's {_text(there)}"
    elif real and uptime is not None:
        return clock_doubt(tx, now, uptime)
    return None


def to_come(now: datetime, clock: datetime) -> str | None:
    """Why nothing may be judged as of a time that the clock has not reached; None when it has."""
    if now <= clock + SKEW:
        return None
    return f"{_text(now)} is yet to come, and all that is not due yet would be missing"


def beat(tx: Connection, now: datetime, uptime: Uptime | None = None) -> None:
    """Keeps the instant of this tick, by a clock that is believed."""
    _keep_tick(tx, WATCH, now)
    # A database server's clock is the better one.
    if uptime is not None and tx.dialect.name != "postgresql":
        trust_clock(tx, now, uptime)


def complete(tx: Connection, now: datetime) -> None:
    """Keeps that this tick judged everything and left nothing unsent."""
    _keep_tick(tx, COMPLETE, now)


def last_tick(tx: Connection, name: str = WATCH, as_of: datetime | None = None) -> datetime | None:
    """The instant of the last tick, or of the last that was COMPLETE, by an instant; None: there was none."""
    newest = tx.scalar(select(heartbeat.c.at).where(heartbeat.c.name == name))
    if as_of is None or newest is None or newest <= as_of:
        return newest
    ticks = past_tick.c
    asked = select(ticks.at).where(ticks.name == name, ticks.at <= as_of).order_by(ticks.at.desc()).limit(1)
    return tx.scalar(asked)


def is_past(tx: Connection, as_of: datetime | None) -> bool:
    """Whether there were ticks after an instant, so that what is kept for now alone tells nothing of it."""
    newest = last_tick(tx)
    return as_of is not None and newest is not None and newest > as_of


def looked_at(tx: Connection, scope: str) -> datetime | None:
    """The instant of the last tick that was done with these paths; None: there was none."""
    return tx.scalar(select(heartbeat.c.at).where(heartbeat.c.name == _LOOKED.format(scope[:10])))


def note_look(tx: Connection, scope: str, now: datetime) -> None:
    """Keeps that a tick with these paths is done; `scope` is a hash of them."""
    _keep(tx, _LOOKED.format(scope[:10]), now)


def _keep_tick(tx: Connection, name: str, now: datetime) -> None:
    _keep(tx, name, now)
    tx.execute(insert(past_tick).values(name=name, at=now))


def _keep(tx: Connection, name: str, now: datetime) -> None:
    tx.execute(delete(heartbeat).where(heartbeat.c.name == name))
    tx.execute(insert(heartbeat).values(name=name, at=now))


def _text(instant: datetime) -> str:
    return f"{instant:%Y-%m-%d %H:%M:%S}Z"
