"""Time to enumerate a year of cycles for 2,000 mixed schedules, against croniter alone.

The mix is that of a mesh refreshed every 15 minutes to every month: mostly daily and weekday deliveries,
a tenth hourly or denser. Every schedule is enumerated on its own, with nothing shared but pure caches
that start out empty.
"""

from __future__ import annotations

import random
import sys
import time
from datetime import UTC, date, datetime, timedelta
from itertools import islice

from _report import arguments, finish
from croniter import croniter

from dq.contracts.outcome import ValueProblem
from dq.contracts.schedule.calendar import DayEffect, HolidayCalendar, parse_zone
from dq.contracts.schedule.clock import Schedule, parse

START = datetime(2026, 1, 1, tzinfo=UTC)
END = datetime(2027, 1, 1, tzinfo=UTC)
ZONES = (
    "UTC",
    "America/New_York",
    "Europe/Berlin",
    "Asia/Kolkata",
    "America/Los_Angeles",
    "Australia/Sydney",
)
LANDS = ("BB", "BE", "BW", "BY", "HB", "HE", "HH", "MV", "NI", "NW", "RP", "SH", "SL", "SN", "ST", "TH")
MIX = (
    (60, "{m} {h} * * *"),
    (15, "{m} {h} * * 1-5"),
    (7, "{m} {h} * * {w}"),
    (4, "{m} {h} {d} * *"),
    (2, "{m} {h} L * *"),
    (1, "{m} {h} * * {w}#1"),
    (1, "{m} {h} 1,15 */3 *"),
    (6, "{m} * * * *"),
    (2, "{m} */3 * * *"),
    (1, "*/15 8-18 * * 1-5"),
    (1, "*/15 * * * *"),
)


def expressions(count: int) -> list[tuple[str, str]]:
    """(expression, zone) pairs of the mix, the same ones in every run."""
    draw = random.Random(20_260_101)
    forms = draw.choices([form for _, form in MIX], [weight for weight, _ in MIX], k=count)
    return [
        (
            form.format(
                m=draw.randrange(60), h=draw.randrange(24), d=draw.randint(1, 28), w=draw.randrange(7)
            ),
            draw.choice(ZONES),
        )
        for form in forms
    ]


def _calendar(number: int) -> HolidayCalendar:
    """One that hardly another schedule has: days of its own, weekends, the holidays of a land of Germany."""
    own = date.fromordinal(START.toordinal() + number % 365)
    excused = date.fromordinal(START.toordinal() + number % 364 + 1)
    effect = (DayEffect.SKIP, DayEffect.SKIP, DayEffect.EXCUSE, DayEffect.MOVE)[number % 4]
    land = LANDS[number % len(LANDS)]
    return HolidayCalendar(
        skip=frozenset({own}),
        excuse=frozenset({excused} - {own}),
        # What is due on Sundays alone would never be.
        weekdays_only=effect is not DayEffect.SKIP,
        holidays=(f"DE-{land}",),
        free_days=effect,
    )


def seconds_of_ours(pairs: list[tuple[str, str]], *, calendar: bool = False) -> tuple[float, float, int]:
    """CPU seconds to parse, CPU seconds to enumerate, number of cycles."""
    before = time.process_time()
    calendars = [_calendar(number) if calendar else None for number in range(len(pairs))]
    schedules = [
        parse(expression, timezone=name, calendar=calendar)
        for (expression, name), calendar in zip(pairs, calendars, strict=True)
    ]
    parsed = time.process_time()
    count = 0
    for schedule in schedules:
        assert isinstance(schedule, Schedule), schedule
        count += sum(1 for _ in schedule.between(START, END))
    return parsed - before, time.process_time() - parsed, count


def croniter_microseconds(pairs: list[tuple[str, str]], limit: int) -> float:
    """CPU microseconds per due of croniter through the same zones, at most `limit` dues of each schedule."""
    count, before = 0, time.process_time()
    for expression, name in pairs:
        tz = parse_zone(name)
        assert not isinstance(tz, ValueProblem)
        for due in islice(croniter(expression, START.astimezone(tz)).all_next(datetime), limit):
            if due > END:
                break
            count += 1
    return (time.process_time() - before) / count * 1e6


def seconds_of_tick(pairs: list[tuple[str, str]]) -> float:
    """One minute's question to every schedule: is anything due?"""
    schedules = [
        schedule for pair in pairs if isinstance(schedule := parse(pair[0], timezone=pair[1]), Schedule)
    ]
    now = datetime(2026, 6, 15, 12, 7, tzinfo=UTC)
    before = time.process_time()
    for schedule in schedules:
        list(schedule.between(now - timedelta(minutes=1), now))
    return time.process_time() - before


def croniter_seconds_of_tick(pairs: list[tuple[str, str]]) -> float:
    """The same question of croniter: is the last due of an expression within the minute?"""
    now = datetime(2026, 6, 15, 12, 7, tzinfo=UTC)
    zones = {name: tz for _, name in pairs if not isinstance(tz := parse_zone(name), ValueProblem)}
    schedules = [croniter(expression, now.astimezone(zones[name])) for expression, name in pairs]
    before = time.process_time()
    for schedule in schedules:
        schedule.get_prev(datetime)
    return time.process_time() - before


def main() -> int:
    args = arguments(__doc__)
    pairs = expressions(2_000)
    parsing, enumeration, count = seconds_of_ours(pairs)
    _, with_calendars, _ = seconds_of_ours(pairs, calendar=True)
    tick, croniter_tick = seconds_of_tick(pairs), croniter_seconds_of_tick(pairs)
    peer = croniter_microseconds(pairs[:: 20 if args.quick else 4], 100 if args.quick else 2_000)
    metrics = {
        "schedules": float(len(pairs)),
        "cycles": float(count),
        "parse_seconds": parsing,
        "enumerate_year_seconds": enumeration,
        "enumerate_year_with_calendars_seconds": with_calendars,
        "microseconds_per_cycle": enumeration / count * 1e6,
        "croniter_microseconds_per_cycle": peer,
        "times_faster_than_croniter": peer / (enumeration / count * 1e6),
        # croniter knows no calendar: it has all of the cycles to make.
        "times_faster_than_croniter_with_calendars": peer * count / 1e6 / with_calendars,
        "tick_seconds": tick,
        "tick_times_faster_than_croniter": croniter_tick / tick,
    }
    goals = {
        "times_faster_than_croniter": (">", 100.0),
        "times_faster_than_croniter_with_calendars": (">", 60.0),
        "tick_times_faster_than_croniter": (">", 1.8),
    }
    return finish(metrics, goals, args)


if __name__ == "__main__":
    sys.exit(main())
