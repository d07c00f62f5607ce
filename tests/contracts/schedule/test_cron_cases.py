"""Every row of the cron cases: what is due next, what is refused, how many cycles a local day has."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from itertools import islice
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from fakes.cases import cases

from dq.contracts.outcome import ValueProblem
from dq.contracts.schedule.calendar import parse_zone
from dq.contracts.schedule.clock import DstPolicy, Schedule, parse
from dq.contracts.schedule.cron import Dialect

CASES = cases("cron-cases.yaml")


def read(row: dict[str, Any]) -> Schedule | ValueProblem:
    return parse(
        row["expr"],
        timezone=row["tz"],
        dialect=Dialect(row.get("dialect", "unix")),
        dst=DstPolicy(row.get("dst_policy", "vixie")),
    )


def rows(*, key: str) -> list[Any]:
    return [pytest.param(row, id=row["id"]) for row in CASES["cron_cases"] if key in row]


def test_every_cron_case_expects_exactly_one_thing() -> None:
    for row in CASES["cron_cases"]:
        assert len({"next_due_utc", "error", "ended"} & row.keys()) == 1, row["id"]


@pytest.mark.parametrize("row", rows(key="next_due_utc"))
def test_the_next_due_instants_are_those_of_the_case(row: dict[str, Any]) -> None:
    schedule = read(row)
    expected = [datetime.fromisoformat(text) for text in row["next_due_utc"]]

    assert isinstance(schedule, Schedule), schedule
    found = islice(schedule.after(datetime.fromisoformat(row["now"])), len(expected))

    assert [due.at for due in found] == expected


@pytest.mark.parametrize("row", rows(key="error"))
def test_the_case_is_refused_with_its_code(row: dict[str, Any]) -> None:
    fault = read(row)

    assert isinstance(fault, ValueProblem), fault
    assert (fault.code, bool(fault.message), bool(fault.hint)) == (row["error"], True, True)


@pytest.mark.parametrize("row", rows(key="ended"))
def test_a_schedule_whose_years_are_over_ends(row: dict[str, Any]) -> None:
    schedule = read(row)

    assert isinstance(schedule, Schedule), schedule
    assert list(schedule.after(datetime.fromisoformat(row["now"]))) == []


@pytest.mark.parametrize(
    "row",
    [
        pytest.param(row, id=f"{row['expr']} {row['tz']} {row['local_date']}")
        for row in CASES["counts_per_local_day"]
    ],
)
def test_a_local_day_has_as_many_cycles_as_it_has_hours(row: dict[str, Any]) -> None:
    schedule = read(row)
    tz = parse_zone(row["tz"])
    day = date.fromisoformat(row["local_date"])

    assert isinstance(schedule, Schedule), schedule
    assert isinstance(tz, ZoneInfo)
    noon = datetime.combine(day, time(12), tz).astimezone(UTC)
    around = schedule.between(noon - timedelta(days=2), noon + timedelta(days=2))

    assert sum(due.at.astimezone(tz).date() == day for due in around) == row["cycles"]
