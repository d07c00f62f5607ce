"""Quiet hours by the clock on the wall, also in the nights when it is changed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dq.contracts.access.alert_target import QuietHours, load_quiet_hours, parse_quiet_hours
from dq.contracts.outcome import ValueProblem

MINUTE = timedelta(minutes=1)
NIGHTS = ["2026-03-28", "2026-04-04", "2026-09-05", "2026-10-03", "2026-10-24", "2026-11-01"]
ZONES = [
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "Australia/Lord_Howe",
    "America/Santiago",
    "Asia/Kolkata",
]


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("hours", "zone", "now", "over"),
    [
        ("22:00-07:00", "UTC", "2026-05-01T23:00", "2026-05-02T07:00"),
        ("22:00-07:00", "UTC", "2026-05-02T06:59", "2026-05-02T07:00"),
        ("22:00-07:00", "UTC", "2026-05-02T07:00", "2026-05-02T07:00"),
        ("22:00-07:00", "UTC", "2026-05-02T21:59", "2026-05-02T21:59"),
        ("22:00-07:00", "Europe/Berlin", "2026-05-01T20:00", "2026-05-02T05:00"),
        ("12:00-13:30", "UTC", "2026-05-01T12:00", "2026-05-01T13:30"),
        # The night of 29 March has no 02:30 in Berlin: at 01:00 UTC it is 03:00 there.
        ("22:00-02:30", "Europe/Berlin", "2026-03-28T23:00", "2026-03-29T01:00"),
        ("22:00-07:00", "Europe/Berlin", "2026-03-28T23:00", "2026-03-29T05:00"),
        # 25 October has 02:30 twice: the first is the end, and the half hour after it is quiet again.
        ("22:00-02:30", "Europe/Berlin", "2026-10-24T22:00", "2026-10-25T00:30"),
        ("22:00-02:30", "Europe/Berlin", "2026-10-25T01:10", "2026-10-25T01:30"),
        ("22:00-07:00", "Europe/Berlin", "2026-10-24T22:00", "2026-10-25T06:00"),
    ],
)
def test_the_end_is_what_the_clock_shows(hours, zone, now, over):
    found = parse_quiet_hours(hours, zone)

    assert found.end_at(at(now)) == at(over)


@given(
    start=st.times(), end=st.times(), zone=st.sampled_from(ZONES),
    night=st.sampled_from(NIGHTS),
    minutes=st.integers(0, 2 * 1440),
)  # fmt: skip
def test_it_is_the_first_minute_that_is_not_quiet(start, end, zone, night, minutes):
    start, end = start.replace(second=0, microsecond=0), end.replace(second=0, microsecond=0)
    if start == end:
        return
    hours, now = QuietHours(start, end, zone), at(night) + minutes * MINUTE

    expected = now
    while hours.covers(expected):
        expected += MINUTE

    assert hours.end_at(now) == expected


@pytest.mark.parametrize(
    ("text", "zone", "code"),
    [
        ("22-7", "UTC", "QUIET_FORM"),
        ("22:00", "UTC", "QUIET_FORM"),
        ("24:00-07:00", "UTC", "QUIET_FORM"),
        ("٢٢:00-07:00", "UTC", "QUIET_FORM"),
        ("07:00-07:00", "UTC", "QUIET_ALWAYS"),
        ("22:00-07:00", "Europe/Berln", "ZONE_UNKNOWN"),
        ("22:00-07:00", "CET", "ZONE_FIXED"),
    ],
)
def test_what_cannot_be_understood_is_a_fault(text, zone, code):
    found = parse_quiet_hours(text, zone)

    assert isinstance(found, ValueProblem)
    assert found.code == code


def test_what_is_written_is_read_back():
    hours = parse_quiet_hours("22:00 - 07:00", "Europe/Berlin")

    assert load_quiet_hours(str(hours)) == hours
    assert load_quiet_hours("") is None
