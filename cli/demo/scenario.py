"""The story of the demonstration: what is delivered when, in the ten days around 2013-11-03.

On that night the clocks of New York went back: the local hour 1 stands twice in the weather.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

FIRST, DAYS = date(2013, 10, 30), 10
ZONE = "America/New_York"
START = datetime.combine(FIRST, time(12))

# Object -> the local time of the next day at which its day usually arrives.
USUAL = {"weather": time(1, 10), "flights": time(5, 20)}
# The two deliveries of flights that go wrong: day -> when it arrives in the end.
LATE = {date(2013, 10, 31): datetime(2013, 11, 1, 9, 10)}  # noqa: DTZ001  # civil, in ZONE
MISSING = {date(2013, 11, 4): datetime(2013, 11, 6, 14, 0)}  # noqa: DTZ001  # civil, in ZONE
# When the watcher looks besides after each delivery: shortly after each deadline and its settle time.
LOOKS = (time(2, 2), time(6, 47))


@dataclass(frozen=True, slots=True)
class DemoEvent:
    """At `at` (civil, in ZONE) this object's day arrives; without an object, only the watcher looks."""

    at: datetime
    object: str = ""
    day: date | None = None
    word: str = ""


def events() -> Iterator[DemoEvent]:
    """Everything that happens, in order of time."""
    happening = [DemoEvent(START, "planes")]
    for number in range(DAYS):
        day = FIRST + timedelta(days=number)
        following = day + timedelta(days=1)
        for name, usual in USUAL.items():
            at, word = datetime.combine(following, usual), ""
            if name == "flights" and day in LATE:
                at, word = LATE[day], "late"
            elif name == "flights" and day in MISSING:
                at, word = MISSING[day], "missing until now"
            happening.append(DemoEvent(at, name, day, word))
        happening += [DemoEvent(datetime.combine(following, look)) for look in LOOKS]
    return iter(sorted(happening, key=lambda event: event.at))


def instant(civil: datetime) -> datetime:
    """Return the UTC instant of a civil time of the story. No event falls into the repeated hour."""
    return civil.replace(tzinfo=ZoneInfo(ZONE)).astimezone(UTC)
