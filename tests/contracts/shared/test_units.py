"""Durations as contracts write them."""

from __future__ import annotations

from datetime import timedelta

import pytest

from dq.contracts.outcome import Duration, ValueProblem, parse_duration


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("90s", timedelta(seconds=90)),
        ("45m", timedelta(minutes=45)),
        ("2h", timedelta(hours=2)),
        ("1h30m", timedelta(minutes=90)),
        ("3d", timedelta(days=3)),
        ("1w", timedelta(days=7)),
        ("0m", timedelta(0)),
        (" 15m ", timedelta(minutes=15)),
        ("PT30M", timedelta(minutes=30)),
        ("PT1H30M", timedelta(minutes=90)),
        ("P1D", timedelta(days=1)),
        ("P1DT12H", timedelta(hours=36)),
        ("P2W", timedelta(days=14)),
    ],
)
def test_elapsed_time_is_read(text: str, expected: timedelta) -> None:
    duration = parse_duration(text)

    assert duration == Duration(0, expected, text.strip())
    assert isinstance(duration, Duration)
    assert duration.timedelta() == expected


@pytest.mark.parametrize(("text", "months"), [("6mo", 6), ("1y", 12), ("1y6mo", 18), ("P6M", 6), ("P1Y", 12)])
def test_months_and_years_stay_civil_and_give_no_elapsed_time(text: str, months: int) -> None:
    duration = parse_duration(text)

    assert duration == Duration(months, timedelta(0), text)
    assert isinstance(duration, Duration)
    refused = duration.timedelta()
    assert isinstance(refused, ValueProblem)
    assert refused.code == "DURATION_CIVIL"
    assert repr(text) in refused.message


def test_a_month_and_a_minute_of_iso_are_told_apart_by_the_t() -> None:
    assert parse_duration("P1MT1M") == Duration(1, timedelta(minutes=1), "P1MT1M")


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("", "45m"),
        ("45", "45m for minutes"),
        ("2H", "'2h'"),
        ("2 h", "'2h'"),
        ("-2h", "45m"),
        ("1.5h", "45m"),
        ("2 hours", "Write 2h."),
        ("P", "45m"),
        ("PT", "45m"),
        ("P1DT", "45m"),
        ("1h 30", "45m"),
        ("٣m", "45m"),
    ],
)
def test_a_text_that_is_no_duration_is_refused_with_what_to_write(text: str, hint: str) -> None:
    fault = parse_duration(text)

    assert isinstance(fault, ValueProblem)
    assert fault.code == "DURATION_TEXT"
    assert repr(text) in fault.message
    assert hint in fault.hint


@pytest.mark.parametrize("text", ["99999999999999d", "101y", "99999999999999999999999999w"])
def test_a_duration_beyond_a_century_is_refused(text: str) -> None:
    fault = parse_duration(text)

    assert isinstance(fault, ValueProblem)
    assert fault.code == "DURATION_LONG"
