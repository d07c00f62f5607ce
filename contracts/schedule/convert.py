"""From unix cron to EventBridge and back: the texts that mean the same days and times, or why there are none.

EventBridge counts weekdays from SUN = 1, knows years and the nearest working day, and takes either a day of
the month or a weekday, never both. It skips times that a clock change leaves out, whatever cron does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby

from dq.contracts.schedule import cron
from dq.contracts.schedule.clock import Due, Schedule
from dq.contracts.schedule.cron import LAST, LAST_WEEKDAY, DayRule
from dq.contracts.shared.outcome import TextFault

_DAYS, _WEEK, _MONTHS = frozenset(range(1, 32)), frozenset(range(7)), frozenset(range(1, 13))
_NAMES = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
_CALENDAR = "Keep what the contract says: 'dialect: eventbridge' reads it as it is."


@dataclass(frozen=True, slots=True)
class Difference:
    """An instant, in UTC, at which one of two readings is due and the other is not (None)."""

    at: datetime
    first: Due | None
    second: Due | None


def to_eventbridge(schedule: Schedule) -> list[str] | TextFault:
    """The `cron(...)` texts that together name the days and times of a unix schedule."""
    if schedule.second:
        return _unsayable(
            f"second {schedule.second} of a minute: EventBridge counts in whole minutes.",
            "Let it be due at second 0.",
        )
    rule = schedule.days
    time = f"{_field(schedule.minute, cron.MINUTE, aws=True)} {_field(schedule.hour, cron.HOUR, aws=True)}"
    months = _numbers(frozenset(rule.months), _MONTHS, aws=True)
    if LAST_WEEKDAY in rule.special_days:
        return _unsayable("LW: AWS does not say what it is.", "Write L, or the days themselves.")
    parts = _either(rule)
    if isinstance(parts, TextFault):
        return parts
    return [f"cron({time} {day} {months} {weekday} *)" for day, weekday in parts]


def to_unix(schedule: Schedule) -> list[str] | TextFault:
    """The five fields that name the days and times of an EventBridge schedule; `L` and `#` are dq's own."""
    rule = schedule.days
    if rule.years is not None:
        return _unsayable("years, which cron does not know.", _CALENDAR)
    if any(mark > 0 for mark in rule.special_days):
        return _unsayable("the working day nearest to a date (W), which cron does not know.", _CALENDAR)
    days = [*_listed(rule.days, _DAYS, "*")]
    days += ["LW" if mark == LAST_WEEKDAY else "L" for mark in sorted(rule.special_days)]
    weekdays = [*_listed(rule.weekdays, _WEEK, "*")]
    weekdays += [_weekday(*one, sunday=0) for one in sorted(rule.special_weekdays)]
    months = _numbers(frozenset(rule.months), _MONTHS, aws=False)
    time = f"{_field(schedule.minute, cron.MINUTE)} {_field(schedule.hour, cron.HOUR)}"
    return [f"{time} {','.join(days)} {months} {','.join(weekdays)}"]


def reading(schedule: Schedule) -> str:
    """What a schedule means, in words: times, then days."""
    rule = schedule.days
    days = [*_listed(rule.days, _DAYS, "")]
    marks = {LAST: "the last day", LAST_WEEKDAY: "the last working day"}
    days += [marks.get(mark, f"the working day nearest to {mark}") for mark in sorted(rule.special_days)]
    week = [_NAMES[number] for number in sorted(rule.weekdays) if rule.weekdays != _WEEK]
    week += [
        f"the last {_NAMES[day]}" if nth == 0 else f"{_NAMES[day]} number {nth}"
        for day, nth in sorted(rule.special_weekdays)
    ]
    month_days = f"day of month {', '.join(days)}" if any(days) else ""
    weekdays = f"weekday {', '.join(week)}" if week else ""
    either = (" and " if rule.both else " or ").join(one for one in (month_days, weekdays) if one)
    months = _numbers(frozenset(rule.months), _MONTHS, aws=False)
    parts = [
        f"minute {_field(schedule.minute, cron.MINUTE)}, hour {_field(schedule.hour, cron.HOUR)}",
        either or "every day",
        f"month {months}" if months != "*" else "",
        f"year {', '.join(map(str, sorted(rule.years)))}" if rule.years else "",
    ]
    zone = f"in {schedule.timezone}, clock changes as '{schedule.dst}'"
    return f"{'; '.join(part for part in parts if part)}; {zone}"


def differences(
    first: Iterable[Schedule], second: Iterable[Schedule], start: datetime, end: datetime
) -> Iterator[Difference]:
    """The instants in (start, end] at which one group of schedules is due and the other is not, ascending."""
    left = {due.at: due for schedule in first for due in schedule.between(start, end)}
    right = {due.at: due for schedule in second for due in schedule.between(start, end)}
    for at in sorted(left.keys() ^ right.keys()):
        yield Difference(at, left.get(at), right.get(at))


def _either(rule: DayRule) -> list[tuple[str, str]] | TextFault:
    """Pairs of a day and a weekday field, one of them `?`, which together name the days of a rule."""
    every_day, every_weekday = rule.days >= _DAYS, rule.weekdays >= _WEEK
    if rule.both and not (every_day or every_weekday):
        return _unsayable(
            "days that must meet both a day of the month and a weekday; one of them is '?'.",
            "Write the days of the month, or the weekdays, alone.",
        )
    if (every_day and every_weekday) or (not rule.both and (every_day or every_weekday)):
        return [("*", "?")]
    parts: list[tuple[str, str]] = []
    if not every_day:
        plain = _numbers(rule.days, _DAYS, aws=True) if rule.days else ""
        parts += [(one, "?") for one in (plain, *("L" for _ in rule.special_days)) if one]
    if not every_weekday:
        names = ",".join(_NAMES[number] for number in sorted(rule.weekdays))
        marks = [_weekday(*one, sunday=1) for one in sorted(rule.special_weekdays)]
        # EventBridge takes no list beside a mark.
        parts += [("?", one) for one in (names, *marks) if one]
    return parts


def _weekday(day: int, nth: int, *, sunday: int) -> str:
    return f"{day + sunday}L" if nth == 0 else f"{day + sunday}#{nth}"


def _field(text: str, spec: cron.Spec, *, aws: bool = False) -> str:
    return _numbers(cron.read(text, spec).values, frozenset(range(spec.low, spec.high + 1)), aws=aws)


def _listed(values: frozenset[int], whole: frozenset[int], all_of_them: str) -> list[str]:
    if values >= whole:
        return [all_of_them]
    return [_numbers(values, whole, aws=False)] if values else []


def _numbers(values: frozenset[int], whole: frozenset[int], *, aws: bool) -> str:
    """A set of numbers as a field: `*`, a step from its least number, or a list of ranges."""
    ordered = sorted(values)
    if values >= whole:
        return "*"
    if len(ordered) > 2:
        step = ordered[1] - ordered[0]
        if step > 1 and ordered == list(range(ordered[0], max(whole) + 1, step)):
            start = ordered[0]
            if aws:
                return f"{start}/{step}"
            return f"*/{step}" if start == min(whole) else f"{start}-{max(whole)}/{step}"
    runs = [
        [value for _, value in run] for _, run in groupby(enumerate(ordered), lambda one: one[1] - one[0])
    ]
    return ",".join(f"{run[0]}-{run[-1]}" if len(run) > 2 else ",".join(map(str, run)) for run in runs)


def _unsayable(what: str, mend: str) -> TextFault:
    return TextFault("CRON_CONVERT", f"The schedule names {what}", mend)
