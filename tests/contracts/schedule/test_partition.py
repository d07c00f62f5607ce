"""Partition templates, and the cycles that expect what they mean."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from dq.contracts.outcome import ValueProblem
from dq.contracts.schedule.calendar import TZDATA_VERSION
from dq.contracts.schedule.clock import DstNote, DueTime, Schedule, parse
from dq.contracts.slo import Cycle, cycles, render, template_problem


def due(civil: str) -> DueTime:
    nominal = datetime.fromisoformat(civil)
    return DueTime(nominal.replace(tzinfo=UTC), nominal, DstNote.NORMAL)


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("template", "civil", "expected"),
    [
        ("{due:%Y-%m-%d}", "2026-05-01T06:00", "2026-05-01"),
        ("{due - 1d:%Y-%m-%d}", "2026-05-01T06:00", "2026-04-30"),
        ("{due.local - 1d:%Y-%m-%d}", "2026-05-01T06:00", "2026-04-30"),
        ("{due-1d:%F}", "2028-03-01T06:00", "2028-02-29"),
        ("{due + 1d:%F}", "2026-12-31T06:00", "2027-01-01"),
        ("{due - 15m:%Y-%m-%dT%H%M}", "2026-05-01T00:00", "2026-04-30T2345"),
        ("{due - 1h:%Y%m%d%H}", "2026-03-08T03:00", "2026030802"),
        ("{due - 1w:%G-W%V-%u}", "2026-01-04T06:00", "2025-W52-7"),
        ("{due - 1mo:%Y-%m}", "2026-03-31T06:00", "2026-02"),
        ("{due - 1mo:%F}", "2026-03-31T06:00", "2026-02-28"),
        ("{due + 13mo:%F}", "2026-12-31T06:00", "2028-01-31"),
        ("{due - 1y:%F}", "2028-02-29T06:00", "2027-02-28"),
        ("{due - 1mo - 1d:%F}", "2026-05-01T06:00", "2026-03-31"),
        ("{due:%H}", "2026-05-01T06:05", "06"),
        ("{due:%-m/%-d %-H:%-M}", "2026-05-01T06:00", "5/1 6:0"),
        ("{due:%-m/%-d %-H:%-M}", "2026-12-31T16:05", "12/31 16:5"),
        ("{due - 6h:%-H}-%-H", "2026-05-01T06:00", "0-%-H"),
        ("{due:%%-H}", "2026-05-01T06:00", "%-H"),
        ("{due:%j}", "2026-12-31T06:00", "365"),
        ("{due:%y%m%d %H:%M:%S}", "2026-05-01T06:05:07", "260501 06:05:07"),
        ("{due:100%%}", "2026-05-01T06:00", "100%"),
        ("eu", "2026-05-01T06:00", "eu"),
        ("", "2026-05-01T06:00", ""),
        ("dt={due:%F}/hour={due:%H}", "2026-05-01T06:00", "dt=2026-05-01/hour=06"),
        ("{{{due:%d}}}", "2026-05-01T06:00", "{01}"),
    ],
)
def test_a_template_gives_the_value_of_a_due(template: str, civil: str, expected: str) -> None:
    assert template_problem(template) is None
    assert render(template, due(civil)) == expected


@pytest.mark.parametrize(
    ("template", "code"),
    [
        ("{due}", "PARTITION_FORM"),
        ("{due:}", "PARTITION_FORM"),
        ("{dt:%Y}", "PARTITION_PLACE"),
        ("{due.utc:%Y}", "PARTITION_PLACE"),
        ("{due - 1:%Y}", "PARTITION_PLACE"),
        ("{due - 1x:%Y}", "PARTITION_PLACE"),
        ("{due - 1.5d:%Y}", "PARTITION_PLACE"),
        ("{due * 2:%Y}", "PARTITION_PLACE"),
        ("{}", "PARTITION_PLACE"),
        ("{due.__class__:%Y}", "PARTITION_PLACE"),
        ("{due:%A}", "PARTITION_DIRECTIVE"),
        ("{due:%Z}", "PARTITION_DIRECTIVE"),
        ("{due:%-Y}", "PARTITION_DIRECTIVE"),
        ("{due:%-}", "PARTITION_DIRECTIVE"),
        ("{due:%--d}", "PARTITION_DIRECTIVE"),
        ("{due:%}", "PARTITION_DIRECTIVE"),
        ("{due:%Y", "PARTITION_BRACE"),
        ("due:%Y}", "PARTITION_BRACE"),
        ("{due - 999999999999d:%Y}", "PARTITION_FAR"),
        ("{due - 401y:%Y}", "PARTITION_FAR"),
    ],
)
def test_a_faulty_template_is_found_without_a_due(template: str, code: str) -> None:
    fault = template_problem(template)

    assert isinstance(fault, ValueProblem)
    assert fault.code == code
    assert repr(template) in fault.message
    with pytest.raises(ValueError, match=re.escape(str(fault))):
        render(template, due("2026-05-01T06:00"))


def daily() -> Schedule:
    schedule = parse("0 6 * * *", timezone="America/New_York")
    assert isinstance(schedule, Schedule)
    return schedule


def test_a_cycle_knows_its_breach_and_the_partition_it_must_bring() -> None:
    found = cycles(
        daily(),
        utc("2026-05-01T00:00"),
        utc("2026-05-01T12:00"),
        contract="flights",
        object="departures",
        slo="daily_by_six",
        grace=timedelta(hours=2),
        partition={"flight_date": "{due - 1d:%Y-%m-%d}"},
    )

    assert list(found) == [
        Cycle(
            contract="flights",
            object="departures",
            slo="daily_by_six",
            due_at=utc("2026-05-01T10:00"),
            breach_at=utc("2026-05-01T12:00"),
            nominal=datetime.fromisoformat("2026-05-01T06:00"),
            note=DstNote.NORMAL,
            partitions=((("flight_date", "2026-04-30"),),),
            tzdata=TZDATA_VERSION,
        )
    ]


def test_lists_of_values_expect_every_combination_once() -> None:
    found = cycles(
        daily(),
        utc("2026-05-01T00:00"),
        utc("2026-05-01T12:00"),
        contract="c",
        object="o",
        slo="s",
        grace=timedelta(0),
        partition={"dt": ["{due:%F}", "{due - 0d:%F}", "{due - 1d:%F}"], "region": ["us", "eu"]},
    )

    assert next(found).partitions == (
        (("dt", "2026-05-01"), ("region", "us")),
        (("dt", "2026-05-01"), ("region", "eu")),
        (("dt", "2026-04-30"), ("region", "us")),
        (("dt", "2026-04-30"), ("region", "eu")),
    )


@pytest.mark.parametrize("partition", [None, {}])
def test_a_snapshot_expects_no_partition(partition: dict[str, str] | None) -> None:
    found = cycles(
        daily(),
        utc("2026-05-01T00:00"),
        utc("2026-05-03T00:00"),
        contract="c",
        object="o",
        slo="s",
        grace=timedelta(0),
        partition=partition,
    )

    assert [cycle.partitions for cycle in found] == [(), ()]


def test_grace_is_elapsed_time_over_a_clock_change() -> None:
    schedule = parse("30 23 * * *", timezone="America/New_York")
    assert isinstance(schedule, Schedule)

    cycle = next(
        cycles(
            schedule,
            utc("2026-03-08T00:00"),
            utc("2026-03-09T00:00"),
            contract="c",
            object="o",
            slo="s",
            grace=timedelta(hours=4),
        )
    )

    assert (cycle.due_at, cycle.breach_at) == (utc("2026-03-08T04:30"), utc("2026-03-08T08:30"))


# A zone, its clock changes, and the template whose folder ends before each due time at ten past the hour.
ZONES = {
    "Berlin": ("Europe/Berlin", "2026-03-29", "2026-10-25", "{due - 1h:%F %H}"),
    "New York": ("America/New_York", "2026-03-08", "2026-11-01", "{due - 1h:%F %H}"),
    "Lord Howe, whose clock changes by half an hour": (
        "Australia/Lord_Howe", "2026-10-04", "2026-04-05", "{due - 11m:%F %H}"
    ),
    "UTC": ("UTC", "2026-03-29", "2026-10-25", "{due - 1h:%F %H}"),
}  # fmt: skip


@pytest.mark.parametrize("night", [1, 2], ids=["the one that skips", "the one that repeats"])
@pytest.mark.parametrize(("zone", "skips", "repeats", "template"), ZONES.values(), ids=ZONES)
def test_hourly_folders_of_a_local_clock_are_those_that_are_written(
    zone: str, skips: str, repeats: str, template: str, night: int
) -> None:
    """A producer writes the hours of its clock; each is due ten minutes later, and no other is."""
    local = ZoneInfo(zone)
    day = datetime.fromisoformat((skips, repeats)[night - 1]).replace(tzinfo=local)
    start, end = day.astimezone(UTC) - timedelta(hours=12), day.astimezone(UTC) + timedelta(hours=36)
    schedule = parse("10 * * * *", timezone=zone)
    assert isinstance(schedule, Schedule)
    minutes = (end - start) // timedelta(minutes=1)
    written = {f"{(start + timedelta(minutes=m)).astimezone(local):%F %H}" for m in range(minutes)}

    names = [
        dict(part)["hour"]
        for cycle in cycles(
            schedule, start + timedelta(hours=1, minutes=9), end + timedelta(minutes=10), contract="c",
            object="o", slo="s", grace=timedelta(0), partition={"hour": template},
        )
        for part in cycle.partitions
    ]  # fmt: skip

    assert set(names) - written == set()
    # Ten past two does not exist on the island, so nothing is due for the hour before.
    unexpected = {"2026-10-04 01"} if (zone, night) == ("Australia/Lord_Howe", 1) else set()
    # The hours that are cut at the begin and the end of the range.
    assert written - set(names) <= {min(written), max(written), *unexpected}
    assert names == sorted(names)


@pytest.mark.parametrize(
    ("template", "civil", "note", "expected"),
    [
        # The night of 29 March has no hour 2, that of 25 October has it twice.
        ("{due - 1h:%H}", "2026-03-29T03:10", DstNote.NORMAL, "01"),
        ("{due - 2h:%H}", "2026-03-29T03:10", DstNote.NORMAL, "00"),
        ("{due + 1h:%H}", "2026-03-29T01:10", DstNote.NORMAL, "03"),
        ("{due - 11m:%H:%M}", "2026-03-29T03:10", DstNote.NORMAL, "01:59"),
        ("{due - 1h:%H}", "2026-10-25T02:10", DstNote.FIRST_OF_TWO, "01"),
        ("{due - 1h:%H}", "2026-10-25T02:10", DstNote.SECOND_OF_TWO, "02"),
        ("{due - 1h:%H}", "2026-10-25T03:10", DstNote.NORMAL, "02"),
        ("{due - 2h:%H}", "2026-10-25T03:10", DstNote.NORMAL, "02"),
        ("{due - 3h:%H}", "2026-10-25T03:10", DstNote.NORMAL, "01"),
        # Days are civil, whatever their length, and come before the hours.
        ("{due - 1d:%F %H}", "2026-03-30T02:30", DstNote.NORMAL, "2026-03-29 02"),
        ("{due - 1d:%F %H}", "2026-10-26T02:10", DstNote.NORMAL, "2026-10-25 02"),
        ("{due - 1h - 1d:%F %H}", "2026-03-30T03:10", DstNote.NORMAL, "2026-03-29 01"),
        ("{due - 1d - 1h:%F %H}", "2026-10-25T02:10", DstNote.SECOND_OF_TWO, "2026-10-24 01"),
        ("{due - 24h:%F %H}", "2026-03-30T00:00", DstNote.NORMAL, "2026-03-28 23"),
        ("{due - 1h:%H}", "2026-03-29T02:30", DstNote.GAP, "01"),
    ],
)
def test_hours_are_elapsed_time_and_days_are_civil(
    template: str, civil: str, note: DstNote, expected: str
) -> None:
    assert render(template, due(civil)._replace(note=note), "Europe/Berlin") == expected
