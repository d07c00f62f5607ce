"""When the watcher was heard, and whether what pages say may be relied on."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import Connection

from dq.dataquality.delivery import heartbeat


@dataclass(frozen=True, slots=True)
class Watcher:
    """`now` is the instant as of which pages are written, `heard` that of the watcher's last tick (None: it
    was never heard), and `tick` how often it is meant to run."""

    now: datetime
    heard: datetime | None
    tick: timedelta

    @property
    def stale(self) -> bool:
        """Whether it was not heard for longer than two ticks, or its clock and ours cannot both be right."""
        return self.heard is None or abs(self.now - self.heard) > 2 * self.tick

    @property
    def ahead(self) -> bool:
        """Whether it was heard at an instant that is still to come: then nobody can tell how old that is."""
        return self.heard is not None and self.heard - self.now > 2 * self.tick


def watcher(tx: Connection, now: datetime, tick: timedelta, as_of: datetime | None = None) -> Watcher:
    """What the store knows of it, or knew at an instant."""
    return Watcher(now, heartbeat.last_tick(tx, as_of=as_of), tick)
