"""Partition templates, and the cycles that expect what they mean."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

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
