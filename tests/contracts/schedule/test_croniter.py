"""Random schedules against two other readers of cron: cronsim agrees, and croniter where dq says so."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import islice

import pytest
from croniter import CroniterBadDateError, croniter
from cronsim import CronSim
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from dq.contracts.outcome import ValueProblem
from dq.contracts.schedule.calendar import HolidayCalendar, parse_zone, transitions
from dq.contracts.schedule.clock import CroniterDifference, DstPolicy, Schedule, croniter_difference, parse
from dq.contracts.schedule.cron import Dialect

# The long form is benchmarks/random_tests.py.
EXAMPLES = int(os.environ.get("DQ_EXAMPLES", "60"))
START = datetime(2026, 11, 1, tzinfo=UTC)
ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe")


@st.composite
def field(draw: Callable[..., int], low: int, high: int, *special: str) -> str:
    first, last = sorted((draw(st.integers(low, high)), draw(st.integers(low, high))))
    forms = ["*", str(first), f"{first},{last}", f"{first}-{last}", f"*/{draw(st.integers(1, high - low))}"]
    if first < last:
        forms.append(f"{first}-{last}/{draw(st.integers(1, last - first))}")
    return draw(st.sampled_from(["*", *forms, *special]))


def expressions(*weekdays: str, days: tuple[str, ...] = ("L", "LW", "1,L")) -> st.SearchStrategy[str]:
    return st.tuples(
        field(0, 59),
        field(0, 23),
        field(1, 31, *days),
        field(1, 12, "JAN", "FEB-MAR"),
        field(0, 7, "MON", "MON-FRI", "SUN,3", "5L", "1#2", "2#5,MON", *weekdays),
    ).map(" ".join)


def schedule(
    expression: str, timezone: str = "UTC", **more: HolidayCalendar | DstPolicy | Dialect
) -> Schedule:
    parsed = parse(expression, timezone=timezone, **more)  # type: ignore[arg-type]
    assert isinstance(parsed, Schedule), parsed
    return parsed


def dues(read: Schedule, start: datetime, end: datetime, most: int) -> list[datetime]:
    return [due.at for due in islice(read.between(start, end), most)]


def dues_by_croniter(read: Schedule, start: datetime, end: datetime, most: int) -> list[datetime]:
    local = start.astimezone(parse_zone(read.timezone))
    reader = croniter(read.expression, local, max_years_between_matches=30)
    found: list[datetime] = []
    try:
        while len(found) < most and (due := reader.get_next(datetime).astimezone(UTC)) <= end:
            found.append(due)
    except CroniterBadDateError:
        pass
    return found


@settings(max_examples=EXAMPLES, deadline=None)
@given(expression=expressions(), timezone=st.sampled_from(ZONES[:-1]))
def test_cronsim_reads_the_same_dues(expression: str, timezone: str) -> None:
    read = parse(expression, timezone=timezone)
    assume(not isinstance(read, ValueProblem))
    # Left out because cronsim 2.8 is wrong there: `5-5/1`, which it takes for the whole field, and Lord Howe,
    # where it loses the first time after a change of half an hour.
    local = START.astimezone(parse_zone(timezone))
    reader = CronSim(expression, local)

    assert [due.at for due in islice(read.after(START), 60)] == [
        due.astimezone(UTC) for due in islice(reader, 60)
    ]


@settings(max_examples=EXAMPLES, deadline=None)
@given(expression=expressions("0-7", "5-7", "6-7", "*/1"), timezone=st.sampled_from(ZONES))
def test_croniter_reads_the_same_dues_where_no_difference_is_told(expression: str, timezone: str) -> None:
    read = parse(expression, timezone=timezone)
    assume(not isinstance(read, ValueProblem) and croniter_difference(read, START) is None)
    end = START + timedelta(days=3_000)
    spans = [(START, end, 300)] + [
        (change.at - timedelta(hours=5), change.at + timedelta(hours=5), 700)
        for year in (2026, 2027, 2028)
        for change in transitions(timezone, year)
        if START + timedelta(hours=5) < change.at < START + timedelta(days=700)
    ]

    for span in spans:
        assert dues(read, *span) == dues_by_croniter(read, *span), (expression, span)


@settings(max_examples=EXAMPLES, deadline=None)
@given(expression=expressions("0-7", "*/1"), timezone=st.sampled_from(ZONES))
def test_the_due_that_differs_and_the_spelling_alike_are_as_told(expression: str, timezone: str) -> None:
    read = parse(expression, timezone=timezone)
    assume(not isinstance(read, ValueProblem))
    difference = croniter_difference(read, START)
    assume(difference is not None)

    if difference.at is not None:
        before, at = difference.at - timedelta(hours=4), difference.at
        ours, theirs = at in dues(read, before, at, 300), at in dues_by_croniter(read, before, at, 300)
        assert (ours, theirs) == (not difference.by_croniter, difference.by_croniter)
    if difference.equivalent is not None:
        alike = schedule(difference.equivalent, timezone)
        assert croniter_difference(alike, START) is None
        assert [due.at for due in islice(alike.after(START), 60)] == [
            due.at for due in islice(read.after(START), 60)
        ]


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("expression", "timezone", "expected"),
    [
        ("0 6 * * *", "UTC", None),
        ("@daily", "Europe/Berlin", None),
        ("0 0 L * *", "UTC", None),
        ("0 6 * * 1#1", "UTC", None),
        ("0 6 1 * 1", "UTC", None),
        ("*/15 * * * *", "Europe/Berlin", None),
        ("0 6 * * 5-5", "UTC", CroniterDifference(utc("2026-11-01T06:00"), True, "0 6 * * 5")),
        ("* 0-0 * * MON", "UTC", CroniterDifference(utc("2026-11-02T01:00"), True, "* 0 * * MON")),
        ("0 6 */2 * 1", "UTC", CroniterDifference(utc("2026-11-01T06:00"), True, None)),
        ("0 6 */1 * 1", "UTC", CroniterDifference(utc("2026-11-01T06:00"), True, "0 6 * * 1")),
        ("0 6 LW * *", "UTC", CroniterDifference(None, False, None)),
        ("0 6 * * 5L", "UTC", CroniterDifference(None, False, None)),
        ("0 6 15 * 1#1", "UTC", CroniterDifference(utc("2026-11-02T06:00"), False, None)),
        ("0 */2 * * *", "Europe/Berlin", CroniterDifference(utc("2027-03-28T01:00"), True, None)),
        ("30 2 * * *", "Europe/Berlin", CroniterDifference(utc("2027-10-31T01:30"), True, None)),
        ("* 0 */21 2-5 1,3", "UTC", CroniterDifference(utc("2027-02-03T00:00"), True, None)),
    ],
)
def test_the_first_due_that_differs(
    expression: str, timezone: str, expected: CroniterDifference | None
) -> None:
    assert croniter_difference(schedule(expression, timezone), START) == expected


def test_other_dialects_and_calendars_are_no_difference() -> None:
    weekdays = HolidayCalendar(weekdays_only=True)

    assert croniter_difference(schedule("0 6 * * *", calendar=weekdays), START) is None
    assert croniter_difference(schedule("cron(0 6 LW * ? *)", dialect=Dialect.EVENTBRIDGE), START) is None
    assert croniter_difference(schedule("5 0 6 LW * *", dialect=Dialect.SECONDS_FIRST), START) is None


def test_croniter_is_not_imported_for_schedules_that_it_reads_alike() -> None:
    script = """
import sys
from datetime import UTC, datetime
from dq.contracts.schedule.clock import croniter_difference, parse
start = datetime(2026, 11, 1, tzinfo=UTC)
for text in ('0 6 * * *', '0 6 * * 1-5', '0 * * * *', '*/15 8-18 * * MON-FRI', '0 0 L * *', '0 6 * * 1#1'):
    schedule = parse(text, timezone='Europe/Berlin')
    assert croniter_difference(schedule, start) is None
    next(schedule.after(start))
print('croniter' in sys.modules)
"""

    answer = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    assert answer.stdout.strip() == "False"
