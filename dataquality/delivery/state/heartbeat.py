"""The instant of the last tick, and whether the clock may be believed."""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy import Connection, delete, func, insert, select

from dq.dataquality.delivery.state import machine_clock
from dq.dataquality.delivery.state.machine_clock import Uptime
from dq.dataquality.delivery.state.tables import heartbeat, past_tick

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
    before = last(tx)
    if before is not None and now < before - BACKWARDS:
        return f"it would be as of {_text(now)}, and the last tick was as of {_text(before)}"
    if real and tx.dialect.name == "postgresql":
        there = tx.scalar(select(func.now()))
        if there is not None and abs(now - there) > SKEW:
            return f"this machine's clock says {_text(now)}, and the database's {_text(there)}"
    elif real and uptime is not None:
        return machine_clock.doubt(tx, now, uptime)
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
        machine_clock.trust(tx, now, uptime)


def complete(tx: Connection, now: datetime) -> None:
    """Keeps that this tick judged everything and left nothing unsent."""
    _keep_tick(tx, COMPLETE, now)


def last(tx: Connection, name: str = WATCH, as_of: datetime | None = None) -> datetime | None:
    """The instant of the last tick, or of the last that was COMPLETE, by an instant; None: there was none."""
    newest = tx.scalar(select(heartbeat.c.at).where(heartbeat.c.name == name))
    if as_of is None or newest is None or newest <= as_of:
        return newest
    ticks = past_tick.c
    asked = select(ticks.at).where(ticks.name == name, ticks.at <= as_of).order_by(ticks.at.desc()).limit(1)
    return tx.scalar(asked)


def is_past(tx: Connection, as_of: datetime | None) -> bool:
    """Whether there were ticks after an instant, so that what is kept for now alone tells nothing of it."""
    newest = last(tx)
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
