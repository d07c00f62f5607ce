"""Due instants against an oracle that looks at every minute of a clock, around every clock change.

The oracle shares no code with the schedule: expressions are built together with the values they mean,
zones are read by `zoneinfo` from the tzdata package, and clock changes are found by looking.
"""

from __future__ import annotations

import random
from bisect import bisect_left
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import cache
from importlib import resources
from itertools import accumulate
from zoneinfo import ZoneInfo

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dq.contracts.schedule.clock import DstPolicy, Schedule, parse

MINUTE, DAY = timedelta(minutes=1), timedelta(days=1)
EIGHT_DAYS = [n * MINUTE for n in range(8 * 24 * 60)]
FIRST, LAST = datetime(2024, 1, 1, tzinfo=UTC), datetime(2031, 1, 1, tzinfo=UTC)
LOOKS = [FIRST + n * DAY / 2 for n in range(2 * (LAST - FIRST).days + 1)]
NASTY_ZONES = (
    "Africa/Cairo",
    "Africa/Casablanca",
    "America/Havana",
    "America/New_York",
    "America/Santiago",
    "America/Scoresbysund",
    "Antarctica/Troll",
    "Asia/Beirut",
    "Asia/Gaza",
    "Australia/Lord_Howe",
    "Europe/Dublin",
    "Europe/London",
    "Pacific/Chatham",
    "Pacific/Easter",
)


@dataclass(frozen=True)
class Expression:
    """A cron expression with the values that its fields were made from."""

    minute: tuple[str, frozenset[int]]
    hour: tuple[str, frozenset[int]]
    days: tuple[str, str]

    @property
    def text(self) -> str:
        day, weekday = self.days
        return f"{self.minute[0]} {self.hour[0]} {day} * {weekday}"

    @property
    def wildcard(self) -> bool:
        return self.minute[0][0] == "*" or self.hour[0][0] == "*"

    def names(self, civil: datetime) -> bool:
        return (
            civil.minute in self.minute[1]
            and civil.hour in self.hour[1]
            and civil.second == 0
            and DAY_FIELDS[self.days](civil.date())
        )


def last_of_month(day: date) -> bool:
    return (day + DAY).day == 1


DAY_FIELDS = {
    ("*", "*"): lambda day: True,
    ("*", "1-5"): lambda day: day.isoweekday() <= 5,
    ("*", "SAT,0"): lambda day: day.isoweekday() >= 6,
    ("*", "7"): lambda day: day.isoweekday() == 7,
    ("*/2", "*"): lambda day: day.day % 2 == 1,
    ("*/2", "0"): lambda day: day.day % 2 == 1 and day.isoweekday() == 7,
    ("1-7", "*/7"): lambda day: day.day <= 7 and day.isoweekday() == 7,
    ("10", "SUN"): lambda day: day.day == 10 or day.isoweekday() == 7,
    ("L", "*"): last_of_month,
    ("25-31,1", "*"): lambda day: day.day >= 25 or day.day == 1,
    ("*", "0#2"): lambda day: day.isoweekday() == 7 and 8 <= day.day <= 14,
    ("*", "0L"): lambda day: day.isoweekday() == 7 and (day + 7 * DAY).month != day.month,
}


def values(low: int, high: int, step: int = 1) -> frozenset[int]:
    return frozenset(range(low, high + 1, step))


@st.composite
def fields(draw: st.DrawFn, highest: int) -> tuple[str, frozenset[int]]:
    low = draw(st.integers(0, highest - 1))
    high = draw(st.integers(low + 1, highest))
    step = draw(st.integers(1, high - low))
    other = draw(st.integers(0, highest))
    return draw(
        st.sampled_from(
            [
                ("*", values(0, highest)),
                (f"*/{step}", values(0, highest, step)),
                (f"{low}", frozenset({low})),
                (f"{low},{other}", frozenset({low, other})),
                (f"{low}-{high}", values(low, high)),
                (f"{low}-{high}/{step}", values(low, high, step)),
                (f"{low}-{low},{other}", frozenset({low, other})),
            ]
        )
    )


expressions = st.builds(Expression, fields(59), fields(23), st.sampled_from(sorted(DAY_FIELDS)))


@cache
def tz_of(name: str) -> ZoneInfo:
    with resources.files("tzdata").joinpath("zoneinfo", *name.split("/")).open("rb") as file:
        return ZoneInfo.from_file(file, key=name)


def civil_of(tz: ZoneInfo, instant: datetime) -> datetime:
    return instant.astimezone(tz).replace(tzinfo=None)


def civil_hour(tz: ZoneInfo, instants: list[datetime]) -> list[datetime]:
    """What the clock shows at these instants of one hour."""
    first, last = civil_of(tz, instants[0]), civil_of(tz, instants[-1])
    if last - first != instants[-1] - instants[0]:
        return [civil_of(tz, instant) for instant in instants]
    return [first + n for n in EIGHT_DAYS[: len(instants)]]


@cache
def changes(name: str) -> tuple[tuple[datetime, timedelta, timedelta], ...]:
    """Clock changes between FIRST and LAST, found by looking at the clock twice a day."""
    tz = tz_of(name)

    def offset(instant: datetime) -> timedelta:
        shown = instant.astimezone(tz).utcoffset()
        assert shown is not None
        return shown

    found, half_a_day = [], range(-12 * 60 + 1, 1)
    offsets = [instant.astimezone(tz).utcoffset() for instant in LOOKS]
    for at, before, after in zip(LOOKS[1:], offsets, offsets[1:], strict=False):
        if after != before:
            first = next(n for n in half_a_day if offset(at + n * MINUTE) == after)
            found.append((at + first * MINUTE, before, after))
    return tuple(found)


@cache
def zones_that_differ() -> dict[str, tuple[tuple[datetime, timedelta, timedelta], ...]]:
    """One zone of each set that has the same clock changes between FIRST and LAST."""
    by_bytes = {}
    for name in resources.files("tzdata").joinpath("zones").read_text("utf-8").split():
        content = resources.files("tzdata").joinpath("zoneinfo", *name.split("/")).read_bytes()
        if "/" in name and not name.startswith("Etc/"):
            by_bytes.setdefault(content, name)
    by_changes = {}
    for name in by_bytes.values():
        by_changes.setdefault(changes(name), name)
    return {name: found for found, name in by_changes.items() if found}


class Clock:
    """Every minute of some days around a clock change of a zone, as its clocks show it."""

    def __init__(self, name: str, change: datetime) -> None:
        tz = tz_of(name)
        start = change.replace(second=0) - 4 * DAY
        self.start, self.end = change - 3 * DAY, change + 3 * DAY
        self.minutes = [start + n for n in EIGHT_DAYS]
        # No clock is changed twice within an hour: what it shows at both ends, it shows in between.
        self.civil = [
            civil for n in range(0, len(EIGHT_DAYS), 60) for civil in civil_hour(tz, self.minutes[n : n + 60])
        ]
        # The first minute at which the clock shows a time, where it shows it twice.
        self.first = dict(zip(reversed(self.civil), reversed(self.minutes), strict=True))
        # Ascending, so that the first minute whose clock is past a civil time can be found.
        self.highest = list(accumulate(self.civil, max))

    def expected(self, expression: Expression, dst: DstPolicy) -> list[datetime]:
        if expression.wildcard and dst is DstPolicy.VIXIE:
            minutes = expression.minute[1]
            found = {
                instant
                for instant, civil in zip(self.minutes, self.civil, strict=True)
                if civil.minute in minutes and expression.names(civil)
            }
        else:
            found = {instant for civil in self._fixed(expression) for instant in self._moved(civil, dst)}
        return sorted(instant for instant in found if self.start < instant <= self.end)

    def _fixed(self, expression: Expression) -> list[datetime]:
        midnight = self.civil[0].replace(hour=0, minute=0) + DAY
        days = [midnight + n * DAY for n in range(9)]
        times = [
            timedelta(hours=hour, minutes=minute)
            for hour in expression.hour[1]
            for minute in expression.minute[1]
        ]
        named = [day + time for day in days if DAY_FIELDS[expression.days](day.date()) for time in times]
        return [civil for civil in named if civil <= self.highest[-1]]

    def _moved(self, civil: datetime, dst: DstPolicy) -> list[datetime]:
        if civil in self.first:
            return [self.first[civil]]
        if dst is DstPolicy.SKIP:
            return []
        past = bisect_left(self.highest, civil)
        if dst is DstPolicy.VIXIE:
            return [self.minutes[past]]
        before = self.civil[past - 1] - self.minutes[past - 1].replace(tzinfo=None)
        return [(civil - before).replace(tzinfo=UTC)]


clock_of = cache(Clock)


def found(expression: Expression, name: str, dst: DstPolicy, clock: Clock) -> list[datetime]:
    schedule = parse(expression.text, timezone=name, dst=dst)
    assert isinstance(schedule, Schedule), schedule
    return [due.at for due in schedule.between(clock.start, clock.end)]


@pytest.mark.slow
def test_this_file_looks_at_the_zones_it_means_to() -> None:
    found_zones = zones_that_differ()

    assert len(found_zones) > 35
    assert sum(len(changes_of) for changes_of in found_zones.values()) > 400
    assert all(changes(name) for name in NASTY_ZONES)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    expression=expressions,
    name=st.sampled_from(NASTY_ZONES),
    which=st.integers(0, 1),
    dst=st.sampled_from(DstPolicy),
)
def test_dues_around_a_clock_change_are_those_of_the_minute_scan(
    expression: Expression, name: str, which: int, dst: DstPolicy
) -> None:
    clock = clock_of(name, changes(name)[which][0])

    assert found(expression, name, dst, clock) == clock.expected(expression, dst)


def random_field(draw: random.Random, highest: int, near: list[int]) -> tuple[str, frozenset[int]]:
    """A field that mostly names values near those of the clock change."""
    low, high = sorted((draw.randrange(highest), draw.choice([*near, highest])))
    step = draw.randint(1, max(high - low, 1))
    one, other = draw.choice(near), draw.randrange(highest + 1)
    return draw.choice(
        [
            ("*", values(0, highest)),
            (f"*/{step}", values(0, highest, step)),
            (f"{one}", frozenset({one})),
            (f"{one},{other}", frozenset({one, other})),
            (f"{low}-{high}", values(low, high)),
        ]
    )


@pytest.mark.slow
@pytest.mark.parametrize("part", range(8))
def test_dues_around_every_clock_change_are_those_of_the_minute_scan(part: int) -> None:
    for name in sorted(zones_that_differ())[part::8]:
        draw = random.Random(name)
        for at, before, after in changes(name):
            clock = Clock(name, at)
            for dst in (*DstPolicy, DstPolicy.VIXIE):
                expression = expression_near(draw, at, before, after)

                assert found(expression, name, dst, clock) == clock.expected(expression, dst), (
                    name,
                    at,
                    expression.text,
                    dst,
                )


def expression_near(draw: random.Random, at: datetime, before: timedelta, after: timedelta) -> Expression:
    """An expression that mostly names the hours and minutes of the gap or overlap."""
    edges = [at + offset + step for offset in (before, after) for step in (-MINUTE, 0 * MINUTE, 15 * MINUTE)]
    return Expression(
        random_field(draw, 59, [edge.minute for edge in edges]),
        random_field(draw, 23, [edge.hour for edge in edges]),
        draw.choice(sorted(DAY_FIELDS)) if draw.random() < 0.3 else ("*", "*"),
    )
