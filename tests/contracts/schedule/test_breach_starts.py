"""Each breach has a start of EventBridge within a minute, as an independent reading of its cron counts."""

from __future__ import annotations

from bisect import bisect_left
from datetime import UTC, datetime, timedelta

import pytest
from fakes.aws_cron import AwsCron
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dq.contracts.schedule.breach_starts import breach_starts
from dq.contracts.schedule.calendar import DayEffect, HolidayCalendar
from dq.contracts.schedule.clock import DstPolicy, Schedule, parse
from dq.contracts.schedule.cron import Dialect

YEAR = 2026
# Each with both clock changes of its year; one changes by half an hour, two at midnight.
ZONES = {
    "Europe/Berlin": ("2026-03-29", "2026-10-25"),
    "America/New_York": ("2026-03-08", "2026-11-01"),
    "Australia/Lord_Howe": ("2026-04-05", "2026-10-04"),
    "America/Santiago": ("2026-04-05", "2026-09-06"),
    "Asia/Beirut": ("2026-03-29", "2026-10-25"),
    "Asia/Kolkata": ("2026-03-29", "2026-10-25"),
}
GRACES = ("0m", "50m", "6h", "3d")
CRONS = (
    "0 6 * * *", "30 2 * * *", "0 0 1 * *", "0 22 L * *", "0 23 28-31 * *", "45 23 * * 0", "*/30 * * * *",
    "7,52 8-18/2 * * 1-5", "0 6 1 * 1", "0 22 * * 5#2", "0 6 LW * *", "*/20 6 */2 * 1", "30 1 * * *",
    "15,45 * 1 * *", "*/20 * * * 1-5",
)  # fmt: skip
UNITS = {"m": 60, "h": 3600, "d": 86_400}


def read(cron: str, zone: str = "Europe/Berlin", **options: object) -> Schedule:
    schedule = parse(cron, timezone=zone, **options)  # type: ignore[arg-type]
    assert isinstance(schedule, Schedule), schedule
    return schedule


def length(text: str) -> timedelta:
    return timedelta(seconds=int(text[:-1]) * UNITS[text[-1]])


def unseen(schedule: Schedule, grace: timedelta, start: datetime, end: datetime) -> list[datetime]:
    """The breaches in (start, end] after which EventBridge starts nothing within 60 seconds."""
    texts = breach_starts(schedule, grace, YEAR)
    fires = sorted({at for text, zone in texts for at in AwsCron(text).fires(zone, start, end)})
    breaches = [due.at + grace for due in schedule.between(start - grace, end - grace - timedelta(minutes=1))]
    found = []
    for breach in breaches:
        at = bisect_left(fires, breach)
        if at == len(fires) or fires[at] - breach > timedelta(seconds=60):
            found.append(breach)
    return found


@pytest.mark.parametrize("zone", ZONES)
def test_over_90_days_around_both_clock_changes_each_breach_has_a_start_within_a_minute(zone: str) -> None:
    lost = {}
    for day in ZONES[zone]:
        middle = datetime.fromisoformat(f"{day}T00:00Z")
        start, end = middle - timedelta(days=45), middle + timedelta(days=45)
        for cron in CRONS:
            for grace in GRACES:
                lost[cron, grace, day] = unseen(read(cron, zone), length(grace), start, end)
    assert {key: found for key, found in lost.items() if found} == {}


@pytest.mark.parametrize("dst", list(DstPolicy))
@pytest.mark.parametrize("cron", ["30 2 * * *", "15 1,2 * * *", "0 3 * * *", "*/20 * * * *"])
@pytest.mark.parametrize("zone", ["Europe/Berlin", "Australia/Lord_Howe"])
def test_each_policy_for_clock_changes_has_its_own_starts(zone: str, cron: str, dst: DstPolicy) -> None:
    start, end = datetime(YEAR, 1, 1, tzinfo=UTC), datetime(YEAR + 1, 1, 1, tzinfo=UTC)
    for grace in ("0m", "45m", "5h"):
        assert unseen(read(cron, zone, dst=dst), length(grace), start, end) == [], grace


@st.composite
def crons(draw: st.DrawFn) -> str:
    def field(low: int, high: int) -> str:
        values = draw(st.lists(st.integers(low, high), min_size=1, max_size=4, unique=True))
        return draw(st.sampled_from(["*", ",".join(map(str, sorted(values)))]))

    return f"{field(0, 59)} {field(0, 23)} {field(1, 28)} {field(1, 12)} {field(0, 6)}"


@settings(max_examples=40, deadline=None)
@given(
    cron=crons(),
    zone=st.sampled_from(sorted(ZONES)),
    minutes=st.integers(0, 40 * 1440),
    day=st.integers(0, 364),
)
@example(cron="0 0 1 1 *", zone="Europe/Berlin", minutes=1440, day=0)
@example(cron="0 12 * * *", zone="Asia/Beirut", minutes=39 * 1440, day=40)
def test_whatever_the_cron_and_the_grace_no_breach_is_without_a_start(
    cron: str, zone: str, minutes: int, day: int
) -> None:
    start = datetime(YEAR, 1, 1, tzinfo=UTC) + timedelta(days=day)

    assert unseen(read(cron, zone), timedelta(minutes=minutes), start, start + timedelta(days=20)) == []


def test_seconds_of_due_time_and_grace_start_in_the_next_minute() -> None:
    schedule = read("30 59 23 31 * *", zone="UTC", dialect=Dialect.SECONDS_FIRST)
    start, end = datetime(YEAR, 1, 1, tzinfo=UTC), datetime(YEAR + 1, 1, 1, tzinfo=UTC)

    assert unseen(schedule, timedelta(seconds=45), start, end) == []
    assert breach_starts(schedule, timedelta(seconds=45), YEAR) == [("cron(1 0 1 * ? *)", "UTC")]


@pytest.mark.parametrize(
    "cron",
    ["cron(0 6 10W * ? *)", "cron(0 23 ? * 6L *)", "cron(0 6 1 * ? 2026-2027)", "cron(0 23 31 12 ? 2026)"],
)
def test_expressions_of_eventbridge_itself_have_starts_too(cron: str) -> None:
    start, end = datetime(YEAR, 1, 1, tzinfo=UTC), datetime(YEAR + 1, 2, 1, tzinfo=UTC)
    for grace in ("0m", "2h", "30h"):
        schedule = read(cron, dialect=Dialect.EVENTBRIDGE)
        assert unseen(schedule, length(grace), start, end) == []


def test_a_calendar_leaves_no_breach_without_a_start() -> None:
    calendar = HolidayCalendar(weekdays_only=True, holidays=("DE",), free_days=DayEffect.MOVE)
    start, end = datetime(YEAR, 1, 1, tzinfo=UTC), datetime(YEAR + 1, 1, 1, tzinfo=UTC)

    for cron in ("0 6 1 * *", "0 6 * * *"):
        assert unseen(read(cron, calendar=calendar), timedelta(hours=20), start, end) == []


@pytest.mark.parametrize(
    ("cron", "grace", "zone", "expected"),
    [
        ("0 6 * * *", "1h", "Europe/Berlin", ["cron(0 7 * * ? *) Europe/Berlin"]),
        ("0 6 1 * 1", "1h", "UTC", ["cron(0 7 1 * ? *) UTC", "cron(0 7 ? * MON *) UTC"]),
        ("0 23 * * 1-5", "90m", "UTC", ["cron(30 0 ? * TUE,WED,THU,FRI,SAT *) UTC"]),
        ("0 22 L * *", "1h", "UTC", ["cron(0 23 L * ? *) UTC"]),
        ("0 22 L * *", "3h", "UTC", ["cron(0 1 1 * ? *) UTC"]),
        ("0 22 31 * *", "3h", "UTC", ["cron(0 1 1 * ? *) UTC"]),
        ("0 22 30 * *", "3h", "UTC", ["cron(0 1 1,31 * ? *) UTC"]),
        ("0 22 31 12 *", "3h", "UTC", ["cron(0 1 1 1 ? *) UTC"]),
        ("*/15 8-9 * * *", "50m", "UTC", ["cron(5,20,35 9,10 * * ? *) UTC", "cron(50 8,9 * * ? *) UTC"]),
        # The local hour that occurs twice: the second time.
        (
            "0 * * * *",
            "20m",
            "Europe/Berlin",
            ["cron(20 * * * ? *) Europe/Berlin", "cron(20 1 25-31 10 ? *) UTC"],
        ),
        # An hour later on one night, an hour earlier on another: grace is real time.
        (
            "0 23 * * *",
            "6h",
            "Europe/Berlin",
            [
                "cron(0 5 * * ? *) Europe/Berlin",
                "cron(0 4 25-31 3 ? *) UTC",
                "cron(0 3 25-31 10 ? *) UTC",
            ],
        ),
    ],
)
def test_the_starts_are_as_few_as_cron_allows(cron: str, grace: str, zone: str, expected: list[str]) -> None:
    made = [f"{text} {there}" for text, there in breach_starts(read(cron, zone), length(grace), YEAR)]

    assert made == expected
