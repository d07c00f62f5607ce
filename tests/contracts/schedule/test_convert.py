"""Cron of unix and of EventBridge: the same days and times, or a refusal."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dq.contracts.outcome import ValueProblem
from dq.contracts.schedule import clock
from dq.contracts.schedule.clock import DstPolicy, Schedule, parse
from dq.contracts.schedule.cron import Dialect

# The long form is benchmarks/random_tests.py.
EXAMPLES = int(os.environ.get("DQ_EXAMPLES", "40"))
START = datetime(2026, 1, 1, tzinfo=UTC)


def schedule(text: str, dialect: Dialect, zone: str = "UTC", dst: DstPolicy | None = None) -> Schedule:
    found = parse(text, timezone=zone, dialect=dialect, dst=dst)
    assert isinstance(found, Schedule), (text, found)
    return found


def unix(text: str) -> Schedule:
    return schedule(text, Dialect.UNIX)


def aws(text: str) -> Schedule:
    return schedule(text, Dialect.EVENTBRIDGE)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0 6 * * *", ["cron(0 6 * * ? *)"]),
        ("*/15 * * * *", ["cron(0/15 * * * ? *)"]),
        ("0 6 * * 1-5", ["cron(0 6 ? * MON,TUE,WED,THU,FRI *)"]),
        ("0 6 * * 0,7", ["cron(0 6 ? * SUN *)"]),
        ("0 6 1 * 1", ["cron(0 6 1 * ? *)", "cron(0 6 ? * MON *)"]),
        ("0 6 L 3,6 5L", ["cron(0 6 L 3,6 ? *)", "cron(0 6 ? 3,6 6L *)"]),
        ("0 6 1-31 * 1", ["cron(0 6 * * ? *)"]),
        ("5,10,11,12 8-17/3 */2 * *", ["cron(5,10-12 8,11,14,17 1/2 * ? *)"]),
    ],
)
def test_unix_as_eventbridge(text: str, expected: list[str]) -> None:
    assert clock.to_eventbridge(unix(text)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("cron(0 6 ? * 1 *)", "0 6 * * 0"),
        ("cron(0 6 ? * 2-6 *)", "0 6 * * 1-5"),
        ("cron(0 6 ? * 3#2 *)", "0 6 * * 2#2"),
        ("cron(0 6 ? * 6L *)", "0 6 * * 5L"),
        ("cron(0/20 6 L 1/3 ? *)", "*/20 6 L */3 *"),
        ("cron(5/20 6 * * ? *)", "5-59/20 6 * * *"),
    ],
)
def test_eventbridge_as_unix(text: str, expected: str) -> None:
    assert clock.to_unix(aws(text)) == [expected]


@pytest.mark.parametrize("text", ["*/2 6 */2 * 1", "0 6 LW * *"])
def test_what_eventbridge_cannot_say_is_refused(text: str) -> None:
    assert isinstance(clock.to_eventbridge(unix(text)), ValueProblem)


def test_seconds_are_refused() -> None:
    found = clock.to_eventbridge(schedule("30 0 6 * * *", Dialect.SECONDS_FIRST))

    assert isinstance(found, ValueProblem)


@pytest.mark.parametrize("text", ["cron(0 6 15W * ? *)", "cron(0 6 * * ? 2026-2030)"])
def test_what_unix_cannot_say_is_refused(text: str) -> None:
    assert isinstance(clock.to_unix(aws(text)), ValueProblem)


def _field(low: int, high: int) -> st.SearchStrategy[str]:
    values = st.lists(st.integers(low, high), min_size=1, max_size=4).map(
        lambda found: ",".join(map(str, found))
    )
    ranges = st.tuples(st.integers(low, high), st.integers(low, high)).map(
        lambda two: f"{min(two)}-{max(two)}"
    )
    return st.one_of(st.just("*"), st.sampled_from(["*/2", "*/3"]), values, ranges)


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.tuples(_field(0, 59), _field(0, 23), _field(1, 28), _field(1, 12), _field(0, 7)))
def test_what_was_converted_is_due_at_the_same_times_there_and_back(parts: tuple[str, ...]) -> None:
    source = unix(" ".join(parts))
    made = clock.to_eventbridge(source)
    if isinstance(made, ValueProblem):
        assert source.days.requires_both
        return

    there = [aws(text) for text in made]
    back = [unix(text) for one in there for text in clock.to_unix(one)]

    end = START + timedelta(days=40)
    assert list(clock.differences([source], there, START, end)) == []
    assert list(clock.differences([source], back, START, end)) == []


def test_clock_changes_are_the_differences_in_a_zone() -> None:
    first = schedule("30 2 * * *", Dialect.UNIX, "America/New_York")
    second = schedule("cron(30 2 * * ? *)", Dialect.EVENTBRIDGE, "America/New_York")

    apart = list(clock.differences([first], [second], START, START + timedelta(days=365)))

    assert [(one.at, one.first is not None, one.second is not None) for one in apart] == [
        (datetime(2026, 3, 8, 7, tzinfo=UTC), True, False)
    ]
