"""The instant of the last tick, and plausibility checks of the clock."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import Connection, delete, func, insert, or_, select

from dq.dataquality.delivery.tables import heartbeat, past_tick

# Uptime as a second clock for databases without their own.
#
# Setting a machine's clock moves it relative to the uptime. A tick by a clock that is ahead would report
# cycles as missing that are not due yet; by a clock that is behind, late deliveries would count as early.

MAX_LEAP = timedelta(seconds=60)
"""Maximum drift between the clock and the uptime between two ticks."""

TRUST_AFTER = timedelta(hours=1)
"""After this time a changed clock is trusted: the clock of a suspended machine is corrected in this way."""

# Names have at most 16 characters, so boot ids are cut to eleven. Of the machine of the last tick: its boot
# instant by its clock; its boot instant by the changed clock; when the change was noticed.
_START_NAME, _LEAP_NAME, _NOTICED_NAME = "boot:{}", "leap:{}", "held:{}"


@dataclass(frozen=True, slots=True)
class Uptime:
    """Uptime of a machine, including suspends it knows of. `start` identifies the boot."""

    start: str
    elapsed: timedelta


def clock_problem(tx: Connection, now: datetime, uptime: Uptime) -> str | None:
    """Return why the machine's clock is implausible, or None if it is plausible or the boot is a new one."""
    stored_start = _stored_instant(tx, _START_NAME, uptime)
    leap = now - uptime.elapsed - stored_start if stored_start is not None else timedelta()
    if stored_start is None or abs(leap) <= MAX_LEAP:
        return None
    counted_time, noticed_at = stored_start + uptime.elapsed, _leap_noticed_at(tx, now, uptime)
    if noticed_at is not None and counted_time - noticed_at >= TRUST_AFTER:
        return None
    remaining = TRUST_AFTER - (counted_time - noticed_at if noticed_at is not None else timedelta())
    minutes = -(-remaining // timedelta(minutes=1))
    return (
        f"this machine's clock says {now:%Y-%m-%d %H:%M:%S}Z, but by its uptime since the last run it is "
        f"{counted_time:%Y-%m-%d %H:%M:%S}Z; the clock is trusted after {minutes} more min"
    )


def record_leap(tx: Connection, now: datetime, uptime: Uptime) -> None:
    """Record when the clock change was noticed, once."""
    stored_start = _stored_instant(tx, _START_NAME, uptime)
    if stored_start is None or _leap_noticed_at(tx, now, uptime) is not None:
        return
    names = (_LEAP_NAME.format(_short_start(uptime)), _NOTICED_NAME.format(_short_start(uptime)))
    tx.execute(delete(heartbeat).where(heartbeat.c.name.in_(names)))
    times = (now - uptime.elapsed, stored_start + uptime.elapsed)
    tx.execute(
        insert(heartbeat), [{"name": name, "at": instant} for name, instant in zip(names, times, strict=True)]
    )


def trust_clock(tx: Connection, now: datetime, uptime: Uptime) -> None:
    """Record that the clock is right at `now`, and delete the records of other machines."""
    patterns = (heartbeat.c.name.like(name.format("%")) for name in (_START_NAME, _LEAP_NAME, _NOTICED_NAME))
    tx.execute(delete(heartbeat).where(or_(*patterns)))
    tx.execute(
        insert(heartbeat).values(name=_START_NAME.format(_short_start(uptime)), at=now - uptime.elapsed)
    )


def _leap_noticed_at(tx: Connection, now: datetime, uptime: Uptime) -> datetime | None:
    """Return when this leap was noticed, by the clock before the leap, or None if it is a new one."""
    leap_start = _stored_instant(tx, _LEAP_NAME, uptime)
    if leap_start is None or abs(now - uptime.elapsed - leap_start) > MAX_LEAP:
        return None
    return _stored_instant(tx, _NOTICED_NAME, uptime)


def _stored_instant(tx: Connection, name: str, uptime: Uptime) -> datetime | None:
    return tx.scalar(select(heartbeat.c.at).where(heartbeat.c.name == name.format(_short_start(uptime))))


def _short_start(uptime: Uptime) -> str:
    return uptime.start.replace("-", "")[:11]


WATCH = "watch"
COMPLETE = "complete"
# Names have at most 16 characters.
_SCOPE_NAME = "look:{}"

MAX_BACKWARDS = timedelta(seconds=60)
"""Maximum time a tick may be before the last tick, which may be of another machine."""

MAX_SKEW = timedelta(seconds=60)
"""Maximum difference between this machine's clock and the database server's."""


def evaluation_problem(
    tx: Connection, now: datetime, *, is_current: bool, uptime: Uptime | None = None
) -> str | None:
    """Return why cycles must not be evaluated as of `now`, or None if they may.

    `is_current`: `now` is the current time, not one set by the user. Then it must agree with the clock of the
    database server, or on SQLite with the machine's uptime, if it is known.
    """
    previous = last_tick(tx)
    if previous is not None and now < previous - MAX_BACKWARDS:
        before = f"{_text(now)} is before the last run ({_text(previous)})"
        return f"clock moved backwards: {before}" if is_current else f"--as-of {before}"
    if is_current and tx.dialect.name == "postgresql":
        database_now = tx.scalar(select(func.now()))
        if database_now is not None and abs(now - database_now) > MAX_SKEW:
            return f"this machine's clock says {_text(now)}, the database's {_text(database_now)}"
    elif is_current and uptime is not None:
        return clock_problem(tx, now, uptime)
    return None


def future_problem(now: datetime, clock: datetime) -> str | None:
    """Return why cycles must not be evaluated as of `now` if it is in the future, or None if it is not."""
    if now <= clock + MAX_SKEW:
        return None
    return f"{_text(now)} is in the future; deliveries not due yet would count as missing"


def record_tick(tx: Connection, now: datetime, uptime: Uptime | None = None) -> None:
    """Record the instant of this tick, by a trusted clock."""
    _save_tick(tx, WATCH, now)
    # With PostgreSQL, the server's clock is used instead.
    if uptime is not None and tx.dialect.name != "postgresql":
        trust_clock(tx, now, uptime)


def record_complete_tick(tx: Connection, now: datetime) -> None:
    """Record that this tick evaluated everything and left nothing unsent."""
    _save_tick(tx, COMPLETE, now)


def last_tick(tx: Connection, name: str = WATCH, as_of: datetime | None = None) -> datetime | None:
    """Return the instant of the last tick (or last COMPLETE tick) by `as_of`, or None if there was none."""
    newest = tx.scalar(select(heartbeat.c.at).where(heartbeat.c.name == name))
    if as_of is None or newest is None or newest <= as_of:
        return newest
    ticks = past_tick.c
    query = select(ticks.at).where(ticks.name == name, ticks.at <= as_of).order_by(ticks.at.desc()).limit(1)
    return tx.scalar(query)


def has_later_tick(tx: Connection, as_of: datetime | None) -> bool:
    """True if there were ticks after an instant, so that the current state does not describe it."""
    newest = last_tick(tx)
    return as_of is not None and newest is not None and newest > as_of


def last_scope_tick(tx: Connection, scope: str) -> datetime | None:
    """Return the instant of the last tick of these paths, or None if there was none."""
    return tx.scalar(select(heartbeat.c.at).where(heartbeat.c.name == _SCOPE_NAME.format(scope[:10])))


def record_scope_tick(tx: Connection, scope: str, now: datetime) -> None:
    """Record a completed tick of these paths; `scope` is a hash of them."""
    _save_heartbeat(tx, _SCOPE_NAME.format(scope[:10]), now)


def _save_tick(tx: Connection, name: str, now: datetime) -> None:
    _save_heartbeat(tx, name, now)
    tx.execute(insert(past_tick).values(name=name, at=now))


def _save_heartbeat(tx: Connection, name: str, now: datetime) -> None:
    tx.execute(delete(heartbeat).where(heartbeat.c.name == name))
    tx.execute(insert(heartbeat).values(name=name, at=now))


def _text(instant: datetime) -> str:
    return f"{instant:%Y-%m-%d %H:%M:%S}Z"
