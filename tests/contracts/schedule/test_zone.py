"""Zones and their clock changes, as the tzdata package has them."""

from __future__ import annotations

import struct
from datetime import UTC, datetime, timedelta
from importlib import resources
from importlib.metadata import version
from zoneinfo import ZoneInfo

import pytest

from dq.contracts.outcome import ValueProblem
from dq.contracts.schedule.calendar import TZDATA_VERSION, Transition, parse_zone, transitions

FILES = resources.files("tzdata")


def test_the_version_is_that_of_the_installed_package() -> None:
    year, letter = TZDATA_VERSION[:4], TZDATA_VERSION[4]

    assert version("tzdata").split(".") == [year, str(ord(letter) - ord("a") + 1)]


@pytest.mark.parametrize("name", ["UTC", "Etc/UTC", "Europe/Paris", "America/Argentina/Ushuaia", "Japan"])
def test_a_place_or_utc_is_a_zone(name: str) -> None:
    found = parse_zone(name)

    assert isinstance(found, ZoneInfo)
    assert found.key == name


@pytest.mark.parametrize(
    ("name", "code", "hint"),
    [
        ("EST", "ZONE_FIXED", "America/New_York"),
        ("MST", "ZONE_FIXED", "America/Phoenix"),
        ("HST", "ZONE_FIXED", "Pacific/Honolulu"),
        ("CET", "ZONE_FIXED", "Europe/Paris"),
        ("PST8PDT", "ZONE_FIXED", "America/Los_Angeles"),
        ("GMT", "ZONE_FIXED", "UTC"),
        ("Etc/GMT+5", "ZONE_FIXED", "Europe/Paris"),
        ("Europe/Pari", "ZONE_UNKNOWN", "Europe/Paris"),
        ("america/new_york", "ZONE_UNKNOWN", "America/New_York"),
        ("America/New York", "ZONE_UNKNOWN", "America/New_York"),
        ("Berlin", "ZONE_UNKNOWN", "Europe/Berlin"),
        ("UTC+2", "ZONE_UNKNOWN", "Write an IANA name"),
        ("+02:00", "ZONE_UNKNOWN", "Write an IANA name"),
        ("", "ZONE_UNKNOWN", "Write an IANA name"),
        ("../../etc/passwd", "ZONE_UNKNOWN", "Write an IANA name"),
    ],
)
def test_a_name_that_is_no_place_is_refused_with_the_place_to_write(name: str, code: str, hint: str) -> None:
    found = parse_zone(name)

    assert isinstance(found, ValueProblem)
    assert found.code == code
    assert repr(name) in found.message
    assert hint in found.hint


def test_the_clock_changes_of_a_year_are_those_of_the_zone() -> None:
    assert transitions("Europe/Paris", 2026) == (
        Transition(datetime(2026, 3, 29, 1, tzinfo=UTC), timedelta(hours=1), timedelta(hours=2)),
        Transition(datetime(2026, 10, 25, 1, tzinfo=UTC), timedelta(hours=2), timedelta(hours=1)),
    )
    assert transitions("UTC", 2026) == ()


def changes_in_file(name: str) -> list[tuple[int, int, int]]:
    """(Unix time, offset before, offset after) of a TZif file (RFC 8536), version 2 block."""
    data = FILES.joinpath("zoneinfo", *name.split("/")).read_bytes()
    header = struct.Struct(">4s1s15x6l")
    isut, isstd, leap, times, types, letters = header.unpack_from(data)[2:]
    start = 44 + times * 5 + types * 6 + letters + leap * 8 + isstd + isut
    times, types = header.unpack_from(data, start)[5:7]
    at = start + 44
    instants = struct.unpack_from(f">{times}q", data, at)
    indexes = data[at + 8 * times : at + 9 * times]
    offsets = [struct.unpack_from(">lbb", data, at + 9 * times + 6 * n)[0] for n in range(types)]
    found, before = [], offsets[0]
    for instant, index in zip(instants, indexes, strict=True):
        if offsets[index] != before:
            found.append((instant, before, offsets[index]))
        before = offsets[index]
    return found


@pytest.mark.slow
def test_every_clock_change_in_every_file_since_1970_is_found() -> None:
    end = int(datetime(2100, 1, 1, tzinfo=UTC).timestamp())
    by_content = {
        FILES.joinpath("zoneinfo", *name.split("/")).read_bytes(): name
        for name in FILES.joinpath("zones").read_text("utf-8").split()
        if not isinstance(parse_zone(name), ValueProblem)
    }

    for name in by_content.values():
        expected = [change for change in changes_in_file(name) if 0 < change[0] < end]
        last = datetime.fromtimestamp(expected[-1][0], UTC).year if expected else 1970
        found = [
            (
                int(change.at.timestamp()),
                int(change.offset_before.total_seconds()),
                int(change.offset_after.total_seconds()),
            )
            for year in range(1970, last + 1)
            for change in transitions(name, year)
        ]
        # After the last change of the file a rule goes on within the same year.
        assert found[: len(expected)] == expected, name
