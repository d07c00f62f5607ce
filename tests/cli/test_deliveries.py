"""dq propose --deliveries and dq backtest --deliveries: terms from the times of files and commits."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable, Iterable
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from fakes.command import DAY, HEAD, ID, SCHEMA, Place, contract, written
from jsonschema import Draft202012Validator

import dq
from dq.operations.output_schemas import json_schema

FIRST = date(2025, 9, 1)
NOW = datetime(2026, 4, 1, 12, tzinfo=UTC)
DAYS = (NOW.date() - FIRST).days
ONE = timedelta(days=1)
PLAIN = HEAD + SCHEMA + DAY + ID
NEW_YORK = ZoneInfo("America/New_York")
FILE = "registry/orders.odcs.yaml"


def put_file(path: Path, at: datetime) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("1\n")
    os.utime(path, (at.timestamp(), at.timestamp()))


def arrival(day: date, zone: str = "America/New_York", begin: time = time(6)) -> datetime:
    """When the partition of a day comes: the next morning, 2 to 24 minutes after a job began."""
    draw = random.Random(day.toordinal())
    start = datetime.combine(day + ONE, begin, ZoneInfo(zone)).astimezone(UTC)
    return start + timedelta(minutes=2 + min(22.0, draw.gammavariate(2, 3)))


def days(count: int = DAYS) -> list[date]:
    return [FIRST + ONE * number for number in range(count)]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    folder = Place(tmp_path)
    folder.put(FILE, written(PLAIN, "orders"))
    return folder


def deliver(place: Place, names: Callable[[date], Iterable[str]], **arguments: str) -> None:
    for day in days():
        for name in names(day):
            put_file(place.folder / "lake/orders" / name / "part-0.parquet", arrival(day, **arguments))


def propose(place: Place, **arguments: object) -> dq.ProposeDeliveriesOutcome:
    return dq.propose_deliveries(FILE, folder=place.folder, now=NOW, **arguments)


def entry(outcome: dq.ProposeDeliveriesOutcome) -> tuple[object, object]:
    """The schedule and the terms of the only delivery."""
    [proposal] = outcome.proposals
    [written_entry] = proposal.entries
    [custom] = written_entry["customProperties"]
    return written_entry["schedule"], custom["value"]


def test_terms_are_written_with_evidence_and_are_valid_and_kept(place: Place) -> None:
    deliver(place, lambda day: [f"day={day}"])

    ran = place.dq("propose", FILE, "--deliveries", "--zone", "America/New_York", "--output", FILE)

    assert ran.code == 0, ran.all
    text = (place.folder / FILE).read_text()
    assert "- id: daily  # came by 06:20 in 207 of 212 deliveries, 2025-09-02 to 2026-04-01;" in text
    assert 'schedule: "0 6 * * *"' in text
    assert "timezone: America/New_York" in text
    assert 'day: "{due - 1d:%Y-%m-%d}"' in text
    assert place.dq("validate", "registry").code == 0
    past = dq.backtest_deliveries("registry", last=200, folder=place.folder, now=NOW)
    assert past.exit_code == 0
    [result] = past.results
    breaches = {day: datetime.combine(day + ONE, time(6, 20), NEW_YORK) for day in days()[-200:]}
    late = sum(arrival(day) > breach for day, breach in breaches.items())
    assert (result.counted.good, result.counted.late, result.counted.missing) == (200 - late, late, 0)
    # A second run changes nothing.
    again = place.dq("propose", FILE, "--deliveries", "--output", FILE)
    assert "Not added: the contract has the delivery daily." in again.err
    assert (place.folder / FILE).read_text() == text


def test_the_zone_of_a_neighbour_is_a_candidate(place: Place) -> None:
    deliver(place, lambda day: [f"day={day}"])
    place.put("registry/items.odcs.yaml", contract("items", **{"grace: 30m": "timezone: America/New_York"}))

    schedule, terms = entry(propose(place))

    assert (schedule, terms["timezone"]) == ("0 6 * * *", "America/New_York")


def test_without_it_a_note_names_the_clocks(place: Place) -> None:
    deliver(place, lambda day: [f"day={day}"])

    [proposal] = propose(place).proposals

    assert any("--zone America/New_York" in note for note in proposal.pattern.notes)


@pytest.mark.parametrize(
    ("columns", "folder", "partition"),
    [
        (["day"], lambda day: [f"day={day:%Y%m%d}"], {"day": "{due - 1d:%Y%m%d}"}),
        (
            ["year", "month", "day"],
            lambda day: [f"year={day.year}/month={day.month}/day={day.day}"],
            {"year": "{due - 1d:%Y}", "month": "{due - 1d:%-m}", "day": "{due - 1d:%-d}"},
        ),
        (
            ["region", "day"],
            lambda day: [f"region={region}/day={day}" for region in ("eu", "us")],
            {"day": "{due - 1d:%Y-%m-%d}", "region": ["eu", "us"]},
        ),
    ],
)
def test_partitions_named_in_other_ways(
    place: Place, columns: list[str], folder: Callable[[date], list[str]], partition: dict[str, object]
) -> None:
    keys = "".join(
        f"      - {{name: {name}, logicalType: string, physicalType: string, partitioned: true, "
        f"partitionKeyPosition: {number}}}\n"
        for number, name in enumerate(columns, 1)
    )
    place.put(FILE, written(HEAD + SCHEMA + ID, "orders") + keys)
    deliver(place, folder)

    _, terms = entry(propose(place, zones=["America/New_York"], output=FILE))

    assert terms["partition"] == partition
    assert place.dq("validate", "registry").code == 0
    [result] = dq.backtest_deliveries("registry", folder=place.folder, now=NOW).results
    assert result.exit_code == 0
    assert result.counted.good >= 85


def test_partitions_that_are_not_named_after_a_time_expect_new_data(place: Place) -> None:
    place.put(
        FILE, written(PLAIN, "orders", **{"name: day, logicalType: date, physicalType: date": "name: batch"})
    )
    deliver(place, lambda day: [f"batch=b{day.toordinal()}"], zone="UTC")

    schedule, terms = entry(propose(place))

    assert schedule == "0 6 * * *"
    assert terms["expect"] == "new_data"
    assert "partition" not in terms


def test_appended_files_of_a_table_without_partitions(place: Place) -> None:
    place.put(FILE, written(HEAD + SCHEMA + ID, "orders"))
    for day in days():
        put_file(place.folder / f"lake/orders/{day}.parquet", arrival(day, zone="UTC"))

    schedule, terms = entry(propose(place, output=FILE))

    assert (schedule, terms["expect"]) == ("0 6 * * *", "new_data")
    [result] = dq.backtest_deliveries("registry", last=100, folder=place.folder, now=NOW).results
    assert (result.counted.good + result.counted.late, result.counted.missing) == (100, 0)


def test_partitions_that_are_no_dates_are_left_out(place: Place) -> None:
    deliver(place, lambda day: [f"day={day}"], zone="UTC")
    for name in ("9999-12-31", "2026-02-31", "__HIVE_DEFAULT_PARTITION__", "test"):
        put_file(place.folder / f"lake/orders/day={name}/part-0.parquet", NOW)

    outcome = propose(place)

    schedule, terms = entry(outcome)
    assert (schedule, terms["partition"]) == ("0 6 * * *", {"day": "{due - 1d:%Y-%m-%d}"})
    assert outcome.proposals[0].pattern.deliveries[0].missing == 0


def test_a_table_without_partitions_by_its_commits(place: Place) -> None:
    place.put(FILE, written(HEAD + SCHEMA + ID, "orders", **{"format: parquet": "format: delta"}))
    table = {"schemaString": '{"type":"struct","fields":[]}', "partitionColumns": []}
    for number in range(30):
        add = {"path": f"{number}.parquet", "partitionValues": {}, "size": 9, "dataChange": True}
        actions = [{"add": add}, *([{"metaData": table}] if number == 0 else [])]
        text = "".join(f"{json.dumps(action)}\n" for action in actions)
        log = place.put(f"lake/orders/_delta_log/{number:020}.json", text)
        at = arrival(NOW.date() - ONE * (32 - number), zone="UTC").timestamp()
        os.utime(log, (at, at))

    schedule, terms = entry(propose(place))

    assert schedule == "0 6 * * *"
    assert not {"partition", "expect"} & terms.keys()


def test_a_stored_delivery_is_earlier_than_the_rewritten_file(place: Place) -> None:
    place.put(FILE, contract("orders"))
    first = date(2026, 3, 20)
    for number in range(6):
        day = first + ONE * number
        came_at = datetime.combine(day + ONE, time(6, 10), UTC)
        put_file(place.folder / f"lake/orders/day={day}/part-0.parquet", came_at)
        dq.watch(
            FILE,
            since=datetime.combine(first, time(12), UTC),
            channel="console",
            folder=place.folder,
            now=came_at + timedelta(minutes=20),
        )
    table = place.folder / "lake/orders"
    put_file(table / f"day={first}/part-0.parquet", NOW - timedelta(hours=1))
    (table / f"day={first + ONE}/part-0.parquet").unlink()
    (table / f"day={first + ONE}").rmdir()
    now = datetime.combine(first + ONE * 6, time(12), UTC)

    # Other terms than those that were watched: their cycles are not stored, but the arrivals are.
    text = contract("orders", **{"grace: 30m": "grace: 5m"})
    place.put(FILE, text.replace("id: daily", "id: strict").replace('"0 6 * * *"', '"7 6 * * *"'))
    [result] = dq.backtest_deliveries("registry", last=6, folder=place.folder, now=now).results

    assert [past.status for past in result.deliveries] == ["on_time_in_grace"] * 6


def test_misses_of_a_promise_on_the_past(place: Place) -> None:
    place.put(FILE, contract("orders", **{"status: active": "status: draft"}))
    for number in range(40):
        day = date(2026, 2, 20) + ONE * number
        late = timedelta(hours=3) if number in (10, 30) else timedelta(0)
        if number != 20:
            put_file(
                place.folder / f"lake/orders/day={day}/part-0.parquet",
                datetime.combine(day + ONE, time(6, 10), UTC) + late,
            )

    outcome = dq.backtest_deliveries("registry", last=60, folder=place.folder, now=NOW)

    [result] = outcome.results
    assert [(past.due_at.date().isoformat(), past.status) for past in result.misses] == [
        ("2026-03-03", "late"),
        ("2026-03-13", "never"),
        ("2026-03-23", "late"),
    ]
    assert {month: (of.good, of.bad, result.allowed(of)) for month, of in result.months.items()} == {
        "2026-02": (8, 0, 0),
        "2026-03": (28, 3, 3),
        "2026-04": (1, 0, 0),
    }
    assert (result.skipped, outcome.exit_code) == (20, 0)


def test_json_is_that_of_the_function_and_of_the_schema(place: Place) -> None:
    today = datetime.now(UTC).date()
    for number in range(40):
        day = today - ONE * (41 - number)
        put_file(place.folder / f"lake/orders/day={day}/part-0.parquet", arrival(day, zone="UTC"))
    ran = place.dq("propose", FILE, "--deliveries", "--format", "json")
    assert ran.code == 0, ran.all
    assert ran.json == dq.propose_deliveries(FILE, folder=place.folder).as_list()
    Draft202012Validator(json_schema("propose")).validate(ran.json)
    assert place.dq("propose", FILE, "--deliveries", "--output", FILE).code == 0
    ran = place.dq("backtest", "registry", "--deliveries", "--format", "json")
    assert ran.json == dq.backtest_deliveries("registry", folder=place.folder).as_list()
    Draft202012Validator(json_schema("backtest")).validate(ran.json)
    text = place.dq("backtest", "registry", "--deliveries")
    assert "orders/orders daily: 0 6 * * * UTC, grace" in text.out
    github = place.dq("backtest", "registry", "--deliveries", "--format", "github")
    assert github.code == ran.code


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["propose", FILE, "--zone", "UTC"], "--zone needs --deliveries"),
        (["propose", FILE, "--deliveries", "--zone", "America/NewYork"], "Did you mean 'America/New_York'"),
        (["propose", FILE, "--deliveries", "--holidays", "XX"], "no public holidays available"),
        (["propose", FILE, "--deliveries", "--objective", "0%"], "objective '0%' is not a percentage"),
        (["propose", FILE, "--deliveries", "--output", "other.yaml"], "other.yaml already exists"),
        (["propose", FILE, "--deliveries", "--object", "order"], "no object 'order'"),
        (["backtest", FILE, "--deliveries", "--base", "main"], "--base cannot be used with --deliveries"),
        (["backtest", FILE, "--deliveries", "--rule", "a"], "--rule cannot be used with --deliveries"),
    ],
)
def test_mistakes_are_named(place: Place, arguments: list[str], message: str) -> None:
    place.put("other.yaml", "")

    ran = place.dq(*arguments)

    assert ran.code == 2, ran.all
    assert message in ran.err
    assert "Traceback" not in ran.all


def test_no_data_is_too_little_history(place: Place) -> None:
    ran = place.dq("propose", FILE, "--deliveries")

    assert ran.code == 0, ran.all
    assert "No delivery proposed: too little history: 0 arrivals" in ran.err
    assert sorted(path.name for path in place.folder.iterdir()) == ["registry"]
    assert (place.folder / FILE).read_text().strip() == ran.out.strip()
