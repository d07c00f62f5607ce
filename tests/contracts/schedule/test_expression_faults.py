"""What a schedule may not say: the code of each fault, and the words that help."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import islice

import pytest

from dq.contracts.outcome import ValueProblem
from dq.contracts.schedule.calendar import HolidayCalendar
from dq.contracts.schedule.clock import DstPolicy, Schedule, parse
from dq.contracts.schedule.cron import Dialect

UNIX, SECONDS, AWS = Dialect.UNIX, Dialect.SECONDS_FIRST, Dialect.EVENTBRIDGE

FAULTS = [
    # (expression, dialect, code, in the message, in the hint)
    ("", UNIX, "CRON_FIELDS", "empty", "0 6 * * *"),
    ("  ", UNIX, "CRON_FIELDS", "empty", "0 6 * * *"),
    ("0 6 * *", UNIX, "CRON_FIELDS", "4 fields", "5 fields"),
    ("0 0 6 * * *", UNIX, "CRON_FIELDS", "6 fields", "dialect: seconds_first"),
    ("0 6 * * *", SECONDS, "CRON_FIELDS", "5 fields", "second minute hour"),
    ("0 6 * * * *", AWS, "EB_FIELDS", "not of the form cron(...)", "cron(0 6 * * ? *)"),
    ("cron(0 6 * * ? * *)", AWS, "EB_FIELDS", "7 fields", "year"),
    ("rate(15 minutes)", AWS, "EB_RATE", "rate(15 minutes)", "cron("),
    ("cron(0 6 * * ? *)", UNIX, "CRON_DIALECT", "dialect is unix", "dialect: eventbridge"),
    ("CRON_TZ=UTC 0 6 * * *", UNIX, "CRON_ZONE", "CRON_TZ=UTC", "timezone"),
    ("0 6 * * * " + "," * 600, UNIX, "CRON_LONG", "610 characters", "500"),
    ("@reboot", UNIX, "CRON_MACRO", "machine boots", "@daily"),
    ("@every 15m", UNIX, "CRON_MACRO", "not a cron macro", "@hourly"),
    ("@dayly", UNIX, "CRON_MACRO", "'@dayly'", "@daily"),
    ("0 30 * * *", UNIX, "CRON_RANGE", "hour 30 is out of range (0–23) in", "Did you mean '30 0 * * *'?"),
    ("60 6 * * *", UNIX, "CRON_RANGE", "minute 60 is out of range (0–59) in '60'", "from 0 to 59"),
    ("0 24 * * *", UNIX, "CRON_RANGE", "hour 24", "from 0 to 23; midnight is 0"),
    ("30 24 * * *", UNIX, "CRON_RANGE", "hour 24", "from 0 to 23"),
    ("0 6 0 * *", UNIX, "CRON_RANGE", "day-of-month 0", "from 1 to 31"),
    ("0 6 * 13 *", UNIX, "CRON_RANGE", "month 13", "from 1 to 12"),
    ("0 6 * * 8", UNIX, "CRON_RANGE", "day-of-week 8", "from 0 to 7"),
    ("0 99999999999999999999 * * *", UNIX, "CRON_RANGE", "hour 9999", "from 0 to 23"),
    ("0 22-2 * * *", UNIX, "CRON_RANGE", "22-2", "Write 22-23,0-2."),
    ("50-10 6 * * *", UNIX, "CRON_RANGE", "50-10", "Write 50-59,0-10."),
    ("0 6 * NOV-FEB *", UNIX, "CRON_RANGE", "NOV-FEB", "Write 11-12,1-2."),
    ("0 6 * * FRI-SUN", UNIX, "CRON_RANGE", "FRI-SUN", "Write 5-7."),
    ("0 6 * * SAT-MON", UNIX, "CRON_RANGE", "SAT-MON", "Write 6-7,1."),
    ("*/0 * * * *", UNIX, "CRON_STEP", "must not be 0", "from 1 to 59"),
    ("*/90 * * * *", UNIX, "CRON_STEP", "larger than the range 0-59", "from 1 to 59"),
    ("0 8-10/5 * * *", UNIX, "CRON_STEP", "larger than the range 8-10", "the value 8 alone"),
    ("5/15 * * * *", UNIX, "CRON_STEP", "'5/15'", "Write 5-59/15."),
    ("0 6 * JANUARY *", UNIX, "CRON_NAME", "'JANUARY'", "Write JAN."),
    ("0 6 * * MOM", UNIX, "CRON_NAME", "'MOM'", "Write MON."),
    ("0 6 MON * *", UNIX, "CRON_NAME", "day-of-month", "1-31"),
    ("0 6 * * tuesday", UNIX, "CRON_NAME", "'TUESDAY'", "Write TUE."),
    ("0 6 1,,2 * *", UNIX, "CRON_VALUE", "empty entry in '1,,2'", "lists a,b"),
    ("-5 6 * * *", UNIX, "CRON_VALUE", "'-5'", "0-59"),
    ("0 6.5 * * *", UNIX, "CRON_VALUE", "'6.5'", "0-23"),
    ("0 1-2-3 * * *", UNIX, "CRON_VALUE", "'1-2-3'", "ranges a-b"),
    ("٣ 6 * * *", UNIX, "CRON_VALUE", "'٣'", "0-59"),
    ("0\N{NO-BREAK SPACE}6 * * *", UNIX, "CRON_FIELDS", r"'0\xa06 * * *' has 4 fields", "5 fields"),
    ("0 6 ? * MON", UNIX, "CRON_QUESTION", "'?'", "Write * instead of ?"),
    ("H 6 * * *", UNIX, "CRON_HASH", "minute", "consumers"),
    ("H(0-29)/10 6 * * *", UNIX, "CRON_HASH", "'H(0-29)/10'", "consumers"),
    ("R 6 * * *", UNIX, "CRON_HASH", "'R'", "consumers"),
    ("0~30 6 * * *", UNIX, "CRON_HASH", "'0~30'", "consumers"),
    ("0 6 15W * *", UNIX, "CRON_SPECIAL", "'15W'", "Write LW"),
    ("0 6 * * L", UNIX, "CRON_SPECIAL", "'L' alone", "5L is the last Friday"),
    ("0 6 * * MON#6", UNIX, "CRON_SPECIAL", "occurrence 6", "MON#5"),
    ("0 6 * * 9#1", UNIX, "CRON_RANGE", "day-of-week 9", "from 0 to 7"),
    ("0 L * * *", UNIX, "CRON_NAME", "hour", "0-23"),
    ("0 6 30 2 *", UNIX, "CRON_NEVER", "'0 6 30 2 *' never occurs", "L in the day-of-month"),
    ("0 6 31 4,6,9,11 *", UNIX, "CRON_NEVER", "never occurs", "L in the day-of-month"),
    ("*/20 * * * * *", SECONDS, "CRON_TOO_FREQUENT", "'*/20'", "a single second"),
    ("0,30 0 6 * * *", SECONDS, "CRON_TOO_FREQUENT", "'0,30'", "a single second"),
    ("60 0 6 * * *", SECONDS, "CRON_RANGE", "second 60", "from 0 to 59"),
    ("cron(0 6 * * * *)", AWS, "EB_DOM_DOW", "exactly one must be '?'", "Write ?"),
    ("cron(0 6 ? * 0 *)", AWS, "EB_DOW", "day-of-week 0", "1 is SUN"),
    ("cron(0 6 ? * 8 *)", AWS, "EB_DOW", "day-of-week 8", "7 is SAT"),
    ("cron(0 6 ? * 8L *)", AWS, "EB_DOW", "day-of-week 8", "7 is SAT"),
    ("cron(0 6 ? * 6-2 *)", AWS, "CRON_RANGE", "6-2", "Write 6-7,1-2."),
    ("cron(0 6 31W * ? *)", AWS, "CRON_SPECIAL", "'31W'", "Write LW"),
    ("cron(0 6 1W,15W * ? *)", AWS, "EB_SPECIAL", "'1W,15W'", "one schedule for each"),
    ("cron(0 6 ? * 2#1,2#3 *)", AWS, "EB_SPECIAL", "'2#1,2#3'", "one schedule for each"),
    ("cron(50/15 6 * * ? *)", AWS, "CRON_STEP", "larger than the range 50-59", "the value 50 alone"),
    ("cron(0/0 6 * * ? *)", AWS, "CRON_STEP", "must not be 0", "from 1 to 59"),
    ("cron(? 6 * * ? *)", AWS, "CRON_QUESTION", "minute", "*"),
    ("cron(0 6 * * ? 1969)", AWS, "CRON_RANGE", "year 1969", "from 1970 to 2199"),
    ("cron(0 6 29 2 ? 2026-2027)", AWS, "CRON_NEVER", "never occurs", "a date that exists"),
]


@pytest.mark.parametrize(
    ("expression", "dialect", "code", "message", "hint"),
    [pytest.param(*row, id=f"{row[2]} {row[0][:30]!a}") for row in FAULTS],
)
def test_a_faulty_schedule_is_named_quoted_and_mended(
    expression: str, dialect: Dialect, code: str, message: str, hint: str
) -> None:
    fault = parse(expression, dialect=dialect)

    assert isinstance(fault, ValueProblem), fault
    assert fault.code == code
    assert message in fault.message
    assert hint in fault.hint


def test_a_zone_that_is_none_is_the_fault_of_the_schedule() -> None:
    fault = parse("0 6 * * *", timezone="EST")

    assert isinstance(fault, ValueProblem)
    assert fault.code == "ZONE_FIXED"


def test_a_saturday_never_comes_in_a_calendar_of_working_days() -> None:
    fault = parse("0 6 * * 6", calendar=HolidayCalendar(weekdays_only=True))

    assert isinstance(fault, ValueProblem)
    assert fault.code == "CRON_NEVER"
    assert "never occurs on a day that the calendar allows" in fault.message


def test_the_mend_of_a_backward_range_means_what_was_meant() -> None:
    fault = parse("0 6 * * FRI-SUN")
    assert isinstance(fault, ValueProblem)

    mended = parse("0 6 * * " + fault.hint.removeprefix("Write ").rstrip("."))

    assert isinstance(mended, Schedule)
    assert mended.days.weekdays == {5, 6, 0}


SAME = [
    ("@hourly", "0 * * * *"),
    ("@DAILY", "0 0 * * *"),
    ("@midnight", "0 0 * * *"),
    ("@monthly", "0 0 1 * *"),
    ("@annually", "0 0 1 1 *"),
    ("0  6\t* * *", "0 6 * * *"),
    ("0 6 * * sun", "0 6 * * 7"),
    ("0 6 * * MON-FRI", "0 6 * * 1-5"),
    ("0 6 * jan,DEC *", "0 6 * 1,12 *"),
    ("0 6-6 * * *", "0 6 * * *"),
    ("0 6 5-5 * *", "0 6 5 * *"),
    ("0 6 * * 1-1", "0 6 * * 1"),
    ("0 6 * * FRI#2", "0 6 * * 5#2"),
    ("0 6 * * friL", "0 6 * * 5L"),
    ("0 6 * * 7L", "0 6 * * 0L"),
    ("0 6 * * 1-7/2", "0 6 * * 0,1,3,5"),
    ("007 06 * * *", "7 6 * * *"),
    ("0 6,6,6 * * *", "0 6 * * *"),
    ("0 0-23 * * *", "0 0-23/1 * * *"),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_two_spellings_are_one_schedule(one: str, other: str) -> None:
    start = datetime(2026, 5, 1, tzinfo=UTC)
    schedules = [parse(text) for text in (one, other)]

    found = [list(islice(s.after(start), 50)) for s in schedules if isinstance(s, Schedule)]

    assert len(found) == 2
    assert found[0] == found[1]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("cron(0/15 6 * * ? *)", "cron(0,15,30,45 6 * * ? *)"),
        ("cron(40/10 20/2 * * ? *)", "cron(40,50 20,22 * * ? *)"),
        ("cron(0 6 ? * MON-FRI *)", "cron(0 6 ? * 2-6 *)"),
        ("cron(0 6 ? * FRIL *)", "cron(0 6 ? * 6L *)"),
        ("CRON(0 6 ? JAN 1 2026/2)", "cron(0 6 ? 1 SUN 2026-2199/2)"),
    ],
)
def test_two_spellings_of_eventbridge_are_one_schedule(one: str, other: str) -> None:
    start = datetime(2026, 5, 1, tzinfo=UTC)
    schedules = [parse(text, dialect=AWS) for text in (one, other)]

    found = [list(islice(s.after(start), 50)) for s in schedules if isinstance(s, Schedule)]

    assert len(found) == 2
    assert found[0] == found[1]


def test_the_last_working_day_is_found_in_unix_too() -> None:
    schedule = parse("0 6 LW * *")
    assert isinstance(schedule, Schedule)

    found = [due.nominal.day for due in islice(schedule.after(datetime(2026, 1, 1, tzinfo=UTC)), 6)]

    assert found == [30, 27, 31, 30, 29, 30]


def test_the_nearest_working_day_of_eventbridge_stays_in_its_month() -> None:
    schedule = parse("cron(0 6 28W * ? *)", dialect=AWS)
    assert isinstance(schedule, Schedule)

    found = [
        (d.nominal.month, d.nominal.day) for d in islice(schedule.after(datetime(2027, 1, 31, tzinfo=UTC)), 2)
    ]

    # 28 February 2027 is a Sunday and the last of its month; 28 March is a Sunday with a Monday after it.
    assert found == [(2, 26), (3, 29)]


def test_the_literal_second_is_part_of_the_promise() -> None:
    schedule = parse("30 0 6 * * *", dialect=SECONDS)
    assert isinstance(schedule, Schedule)

    assert next(schedule.after(datetime(2026, 5, 1, tzinfo=UTC))).at == datetime(
        2026, 5, 1, 6, 0, 30, tzinfo=UTC
    )


@pytest.mark.parametrize(
    ("expression", "dialect", "policy"),
    [("0 6 * * *", UNIX, DstPolicy.VIXIE), ("cron(0 6 * * ? *)", AWS, DstPolicy.SKIP)],
)
def test_each_dialect_has_the_policy_of_its_scheduler(
    expression: str, dialect: Dialect, policy: DstPolicy
) -> None:
    schedule = parse(expression, dialect=dialect)

    assert isinstance(schedule, Schedule)
    assert schedule.dst is policy
