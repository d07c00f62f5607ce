"""Properties of due instants that hold for every zone, year, expression and policy."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from datetime import UTC, date, datetime, timedelta
from functools import cache
from importlib import resources
from itertools import islice, pairwise
from pathlib import Path
from types import FrameType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dq.contracts.outcome import ValueProblem
from dq.contracts.schedule.calendar import HolidayCalendar, parse_zone
from dq.contracts.schedule.clock import (
    DstNote,
    DstPolicy,
    DueTime,
    Schedule,
    dst_hazards,
    parse,
    shortest_gap,
)
from dq.contracts.schedule.cron import Dialect

# The long form is benchmarks/random_tests.py.
EXAMPLES = int(os.environ.get("DQ_EXAMPLES", "100"))
MOMENT = timedelta(microseconds=1)

civil = datetime.fromisoformat
"""A civil time, which has no zone."""


@cache
def zones() -> list[str]:
    names = resources.files("tzdata").joinpath("zones").read_text("utf-8").split()
    return [name for name in names if not isinstance(parse_zone(name), ValueProblem)]


def schedule(
    expression: str, timezone: str = "UTC", dst: DstPolicy | None = None, **more: HolidayCalendar
) -> Schedule:
    found = parse(expression, timezone=timezone, dst=dst, **more)
    assert isinstance(found, Schedule), found
    return found


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


EXPRESSIONS = st.sampled_from(
    [
        "0 0 * * *",
        "30 2 * * *",
        "*/15 * * * *",
        "0 */3 * * *",
        "50 */3 * * *",
        "44 * * * *",
        "*/10 0-3 * * *",
        "0,30 0-4,22-23 * * *",
        "0 6 * * 1-5",
        "0 0 L * *",
        "15 1 * * 0L",
        "0 12 29 2 *",
        "0 0 LW * *",
    ]
)
INSTANTS = st.datetimes(civil("1970-01-03T00:00"), civil("2100-01-01"), timezones=st.just(UTC))
SCHEDULES = st.builds(
    schedule, EXPRESSIONS, st.deferred(lambda: st.sampled_from(zones())), st.sampled_from(DstPolicy)
)


@settings(max_examples=EXAMPLES, deadline=None)
@given(schedule=SCHEDULES, start=INSTANTS)
def test_instants_ascend_strictly_in_any_zone_and_year(schedule: Schedule, start: datetime) -> None:
    found = [start, *(due.at for due in islice(schedule.after(start), 120))]

    assert len(found) == 121
    assert all(earlier < later for earlier, later in pairwise(found))
    assert all(instant.tzinfo is UTC for instant in found)


@settings(max_examples=150, deadline=None)
@given(schedule=SCHEDULES, start=INSTANTS, first=st.floats(0, 60), second=st.floats(0, 60))
def test_a_range_split_anywhere_gives_the_same_dues(
    schedule: Schedule, start: datetime, first: float, second: float
) -> None:
    middle, end = start + timedelta(days=first), start + timedelta(days=first + second)

    halves = [*schedule.between(start, middle), *schedule.between(middle, end)]

    assert halves == list(schedule.between(start, end))


@settings(max_examples=60, deadline=None)
@given(schedule=SCHEDULES, start=INSTANTS)
def test_a_range_split_at_every_due_gives_the_same_dues(schedule: Schedule, start: datetime) -> None:
    whole = list(islice(schedule.after(start), 30))
    edges = [start, *(due.at for due in whole)]

    pieces = [list(schedule.between(low, high)) for low, high in pairwise(edges)]

    assert pieces == [[due] for due in whole]


@settings(max_examples=100, deadline=None)
@given(schedule=SCHEDULES, start=INSTANTS)
def test_the_next_after_the_previous_of_a_due_is_that_due(schedule: Schedule, start: datetime) -> None:
    due = next(schedule.after(start))

    previous = schedule.latest(due.at - MOMENT)

    assert schedule.latest(due.at) == due
    if previous is not None:
        assert next(schedule.after(previous.at)) == due


@settings(max_examples=100, deadline=None)
@given(schedule=SCHEDULES, start=INSTANTS)
def test_one_step_does_a_bounded_amount_of_work(schedule: Schedule, start: datetime) -> None:
    calls = 0

    def count(frame: FrameType, event: str, argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    found = schedule.after(start)
    sys.setprofile(count)
    next(found)
    sys.setprofile(None)

    # Some 3,000 to find the clock changes of two years, the rest for the dates until the next due.
    assert calls < 30_000


def test_a_rare_date_is_found_across_a_century_without_a_leap_day() -> None:
    leap_sundays = schedule("0 6 29 2 */7")

    found = [due.at.year for due in islice(leap_sundays.after(utc("2060-01-01")), 3)]

    assert found == [2060, 2088, 2128]


def test_a_due_carries_its_civil_time_and_how_the_clock_change_touched_it() -> None:
    daily = schedule("30 1,2 * * *", "America/New_York")

    in_spring = list(daily.between(utc("2026-03-08T05:00"), utc("2026-03-08T12:00")))
    in_autumn = list(daily.between(utc("2026-11-01T04:00"), utc("2026-11-01T12:00")))

    assert in_spring == [
        DueTime(utc("2026-03-08T06:30"), civil("2026-03-08T01:30"), DstNote.NORMAL),
        DueTime(utc("2026-03-08T07:00"), civil("2026-03-08T02:30"), DstNote.GAP),
    ]
    assert in_autumn == [
        DueTime(utc("2026-11-01T05:30"), civil("2026-11-01T01:30"), DstNote.FIRST_OF_TWO),
        DueTime(utc("2026-11-01T07:30"), civil("2026-11-01T02:30"), DstNote.NORMAL),
    ]


def test_a_wildcard_schedule_marks_both_times_of_a_repeated_hour() -> None:
    hourly = schedule("0 * * * *", "America/New_York")

    found = hourly.between(utc("2026-11-01T04:00"), utc("2026-11-01T07:00"))

    assert [due.note for due in found] == [DstNote.FIRST_OF_TWO, DstNote.SECOND_OF_TWO, DstNote.NORMAL]


def test_the_repeated_evening_before_midnight_goes_back_over_the_date() -> None:
    half_hourly = schedule("*/30 * * * *", "America/Santiago")

    found = list(half_hourly.between(utc("2026-04-05T02:00"), utc("2026-04-05T04:30")))

    assert [due.nominal for due in found] == [
        civil("2026-04-04T23:30"),
        civil("2026-04-04T23:00"),
        civil("2026-04-04T23:30"),
        civil("2026-04-05T00:00"),
        civil("2026-04-05T00:30"),
    ]


def test_two_times_on_one_instant_are_one_due_and_the_one_on_the_clock_names_it() -> None:
    twice = schedule("0 2,3 * * *", "America/New_York")

    found = list(twice.between(utc("2026-03-08T05:00"), utc("2026-03-08T12:00")))

    assert found == [DueTime(utc("2026-03-08T07:00"), civil("2026-03-08T03:00"), DstNote.NORMAL)]


@pytest.mark.parametrize(
    ("dst", "expected"),
    [
        (DstPolicy.VIXIE, ["2011-12-29T16:00", "2011-12-30T10:00", "2011-12-30T16:00"]),
        (DstPolicy.SKIP, ["2011-12-29T16:00", "2011-12-30T16:00"]),
        (DstPolicy.SHIFT, ["2011-12-29T16:00", "2011-12-30T16:00"]),
    ],
)
def test_a_date_that_a_country_leaves_out_follows_the_policy(dst: DstPolicy, expected: list[str]) -> None:
    daily = schedule("0 6 * * *", "Pacific/Apia", dst)

    found = daily.between(utc("2011-12-29T00:00"), utc("2011-12-31T00:00"))

    assert [due.at for due in found] == [utc(text) for text in expected]


def test_a_calendar_takes_dates_of_the_zone_out() -> None:
    calendar = HolidayCalendar(skip=frozenset({date(2026, 12, 25)}), weekdays_only=True)
    evening = schedule("0 22 * * *", "America/New_York", calendar=calendar)

    found = evening.between(utc("2026-12-24T00:00"), utc("2026-12-29T12:00"))

    assert [due.nominal.date() for due in found] == [
        date(2026, 12, 23),
        date(2026, 12, 24),
        date(2026, 12, 28),
    ]


def test_a_range_is_open_at_its_start_and_closed_at_its_end() -> None:
    hourly = schedule("0 * * * *")

    found = hourly.between(utc("2026-05-01T06:00"), utc("2026-05-01T08:00"))

    assert [due.at.hour for due in found] == [7, 8]
    assert list(hourly.between(utc("2026-05-01T06:00"), utc("2026-05-01T06:00"))) == []
    assert list(hourly.between(utc("2026-05-01T08:00"), utc("2026-05-01T06:00"))) == []


def test_there_is_no_latest_before_the_years_of_a_schedule() -> None:
    ended = parse("cron(0 6 * * ? 2027)", dialect=Dialect.EVENTBRIDGE)
    assert isinstance(ended, Schedule)

    assert ended.latest(utc("2026-12-31T23:59")) is None
    assert ended.latest(utc("2035-01-01")) == DueTime(
        utc("2027-12-31T06:00"), civil("2027-12-31T06:00"), DstNote.NORMAL
    )


def test_an_instant_without_a_zone_is_refused() -> None:
    with pytest.raises(ValueError, match="need a time zone"):
        next(schedule("0 6 * * *").after(civil("2026-05-01T00:00")))


def test_a_schedule_pickles_and_compares() -> None:
    original = schedule("0 6 * * 1#1", "Europe/Berlin")

    copy = pickle.loads(pickle.dumps(original))

    assert copy == original
    assert next(copy.after(utc("2026-05-01"))) == next(original.after(utc("2026-05-01")))


def test_every_hour_range_with_every_step_is_read_as_python_reads_it() -> None:
    day = (utc("2026-05-01") - MOMENT, utc("2026-05-02") - MOMENT)
    forms = [(a, b, step) for a in range(24) for b in range(a, 24) for step in range(1, b - a + 1 or 2)]

    wrong = [
        form
        for form in forms
        if [due.at.hour for due in schedule("0 {}-{}/{} * * *".format(*form)).between(*day)]
        != list(range(form[0], form[1] + 1, form[2]))
    ]

    assert len(forms) > 2_000
    assert wrong == []


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("0 6 * * *", timedelta(hours=24)),
        ("*/15 * * * *", timedelta(minutes=15)),
        ("0 9,17 * * 1-5", timedelta(hours=8)),
        ("0 6 1,31 * *", timedelta(days=1)),
        ("0 6 1 1 *", timedelta(days=365)),
        ("0 6 29 2 *", timedelta(days=1461)),
    ],
)
def test_the_shortest_gap_is_the_least_time_between_two_dues(expression: str, expected: timedelta) -> None:
    assert shortest_gap(schedule(expression), utc("2026-05-02")) == expected


def test_the_shortest_gap_of_a_daily_time_is_the_night_of_the_clock_change() -> None:
    assert shortest_gap(schedule("0 6 * * *", "Europe/Paris"), utc("2026-05-02")) == timedelta(hours=23)


def test_fixed_times_in_a_gap_or_overlap_within_two_years_are_hazards() -> None:
    found = dst_hazards(schedule("30 2 * * *", "Europe/Paris"), utc("2026-05-01"))

    assert found == [
        DueTime(utc("2026-10-25T00:30"), civil("2026-10-25T02:30"), DstNote.FIRST_OF_TWO),
        DueTime(utc("2027-03-28T01:00"), civil("2027-03-28T02:30"), DstNote.GAP),
        DueTime(utc("2027-10-31T00:30"), civil("2027-10-31T02:30"), DstNote.FIRST_OF_TWO),
        DueTime(utc("2028-03-26T01:00"), civil("2028-03-26T02:30"), DstNote.GAP),
    ]


@pytest.mark.parametrize(
    ("expression", "timezone"),
    [
        ("30 2 * * *", "UTC"),
        ("30 2 * * *", "Asia/Kolkata"),
        ("30 6 * * *", "Europe/Paris"),
        ("*/15 * * * *", "Europe/Paris"),
    ],
)
def test_times_that_no_clock_change_touches_are_no_hazards(expression: str, timezone: str) -> None:
    assert dst_hazards(schedule(expression, timezone), utc("2026-05-01")) == []


def test_the_zone_files_of_the_machine_are_not_used(tmp_path: Path) -> None:
    stale = resources.files("tzdata").joinpath("zoneinfo", "Asia", "Tokyo").read_bytes()
    (tmp_path / "Europe").mkdir()
    (tmp_path / "Europe" / "Paris").write_bytes(stale)
    script = """
from datetime import UTC, datetime
from dq.contracts.schedule.clock import parse
schedule = parse('0 6 * * *', timezone='Europe/Paris')
print(next(schedule.after(datetime(2026, 5, 1, tzinfo=UTC))).at.hour)
"""

    answer = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONTZPATH": str(tmp_path)},
    )

    assert answer.stdout.strip() == "4"
