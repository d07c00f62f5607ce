"""The first tick of many days and the status after it: a line for what is on time, and the newest misses."""

from __future__ import annotations

import os
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest
from fakes.command import Place, contract

FIRST = date(2026, 4, 1)
SINCE, NOW = "2026-04-02T00:00:00Z", "2026-05-01T12:00:00Z"
"""30 deliveries, of 1 April to 30 April."""


def deliver(place: Place, name: str, day: date, at: datetime) -> None:
    marker = place.put(f"lake/{name}/day={day}/_SUCCESS", "")
    os.utime(marker, (at.timestamp(),) * 2)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """Orders came every day, twice in grace and once late, sales on the first five days, and stock never."""
    place = Place(tmp_path_factory.mktemp("summary"))
    for name in ("orders", "sales", "stock"):
        place.put(f"registry/{name}.odcs.yaml", contract(name))
        (place.folder / "lake" / name).mkdir(parents=True)
    for number in range(30):
        day = FIRST + timedelta(days=number)
        due = datetime(day.year, day.month, day.day, 6, tzinfo=UTC) + timedelta(days=1)
        hours = {3: 0.25, 4: 0.25, 9: 2}.get(number, -1)
        deliver(place, "orders", day, due + timedelta(hours=hours))
        if number < 5:
            deliver(place, "sales", day, due - timedelta(hours=1))
    return place


@pytest.fixture(scope="module")
def lines(place: Place) -> list[str]:
    ran = place.dq("watch", "registry", "--since", SINCE, "--as-of", NOW, "--channel", "file:alerts.txt")
    return ran.out.splitlines()


def of(name: str, lines: list[str]) -> list[str]:
    return [
        line.split(" Nothing arrived")[0].split(", due ")[0]
        for line in lines
        if f" {name} " in line or f" {name}/" in line
    ]


def test_deliveries_on_time_share_a_line_and_a_late_one_has_its_own(lines: list[str]) -> None:
    assert of("orders", lines) == [
        "  ✓ orders/daily: 29 deliveries on time (2 in grace), day=2026-04-01 to day=2026-04-30",
        "  ✗ orders day=2026-04-10: late. Delivered 2026-04-11 08:00:00Z by marker",
    ]


def test_five_deliveries_have_a_line_each_and_the_newest_ten_misses(lines: list[str]) -> None:
    on_time = of("sales", lines)[:5]
    misses = of("sales", lines)[5:]

    assert [line.split(":")[0] for line in on_time] == [
        f"  ✓ sales day=2026-04-0{day}" for day in range(1, 6)
    ]
    assert misses == [f"  ✗ sales day=2026-04-{day}: missing." for day in range(21, 31)]
    assert (
        lines[lines.index(next(line for line in lines if "sales day=2026-04-30" in line)) + 1]
        == "  … and 15 earlier"
    )
    assert lines[-2] == "  … and 20 earlier"


def test_the_totals_stay(lines: list[str]) -> None:
    assert lines[-1] == "2026-05-01 12:00Z, SLOs: 3, new cycles: 90, changed: 90, still open: 28"
    assert len(lines) == 2 + 5 + 11 + 11 + 1


@pytest.mark.usefixtures("lines")
def test_the_status_lists_the_newest_ten_misses_of_a_promise(place: Place) -> None:
    text = place.dq("status", "registry", "--product", "stock", "--as-of", NOW).out.splitlines()
    (stock,) = place.dq("status", "registry", "--product", "stock", "--as-of", NOW, "--format", "json").json[
        "deliveries"
    ]
    listed = [line.strip() for line in text if line.startswith("      ")]

    assert listed[2:] == [
        *(f"missing 2026-04-{day} 06:00 UTC" for day in range(22, 31)),
        "missing 2026-05-01 06:00 UTC",
        "… and 20 earlier",
    ]
    assert len(stock["cycles"]) == 30


def test_deliveries_of_several_partitions_are_summed_up_by_due_times(tmp_path: Path) -> None:
    place = Place(tmp_path)
    region = "      - {name: region, physicalType: string, partitioned: true, partitionKeyPosition: 2}\n"
    parts = {'{day: "{due - 1d:%F}"}': '{day: "{due - 1d:%F}", region: [eu, us]}'}
    text = contract("orders", **parts).replace("      - {name: id", f"{region}      - {{name: id")
    place.put("registry/orders.odcs.yaml", text)
    for number in range(6):
        for name in ("eu", "us"):
            marker = place.put(f"lake/orders/day=2026-04-0{number + 1}/region={name}/_SUCCESS", "")
            os.utime(marker, (datetime(2026, 4, 2 + number, 5, tzinfo=UTC).timestamp(),) * 2)

    ran = place.dq("watch", "registry", "--since", SINCE, "--as-of", "2026-04-07T07:00:00Z")

    assert ran.out.splitlines()[:-1] == [
        "  ✓ orders/daily: 6 deliveries on time, due 2026-04-02 06:00Z to 2026-04-07 06:00Z"
    ]
