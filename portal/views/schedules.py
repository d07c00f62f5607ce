"""A schedule in plain words, for people who never saw a cron expression."""

from __future__ import annotations

from datetime import timedelta
from itertools import pairwise

from dq.contracts.schedule import Schedule, convert
from dq.contracts.schedule.clock import times_of_day

_ALL_DAYS, _MONTHS, _WEEK = frozenset(range(1, 32)), 12, frozenset(range(7))
_NAMES = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
_WORKING = frozenset(range(1, 6))
_LISTED = 4


def in_words(schedule: Schedule) -> str:
    """When deliveries are due, such as `every day at 06:00, Europe/Berlin`.

    What has no plain words is said as `dq schedule explain` says it.
    """
    when, days = _times(schedule), _days(schedule)
    if when is None or days is None:
        return convert.reading(schedule)
    return f"{days} {when}, {schedule.timezone}"


def _days(schedule: Schedule) -> str | None:
    rule = schedule.days
    plain = rule.days >= _ALL_DAYS and not rule.special_days and not rule.special_weekdays
    if not plain or len(rule.months) != _MONTHS or rule.years is not None:
        return None
    if rule.weekdays >= _WEEK:
        return "every day"
    # With the other reading of two day fields, every day would be due.
    if not rule.both or not rule.weekdays:
        return None
    if rule.weekdays == _WORKING:
        return "Monday to Friday"
    return "every " + " and ".join(_NAMES[day] for day in sorted(rule.weekdays))


def _times(schedule: Schedule) -> str | None:
    times = times_of_day(schedule.minute, schedule.hour, schedule.second)
    if 0 < len(times) <= _LISTED:
        return "at " + ", ".join(map(_clock, times))
    gaps = {later - earlier for earlier, later in pairwise(times)}
    gap = gaps.pop() if len(gaps) == 1 else None
    if gap is None or len(times) * gap != timedelta(days=1):
        return None
    minutes = int(gap.total_seconds()) // 60
    if minutes % 60:
        return f"every {minutes} minutes"
    return "every hour" if minutes == 60 else f"every {minutes // 60} hours"


def _clock(time: timedelta) -> str:
    minutes = int(time.total_seconds()) // 60
    return f"{minutes // 60:02}:{minutes % 60:02}"
