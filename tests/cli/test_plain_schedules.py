"""A schedule by the keys of ODCS alone, as a user watches it: new data since the previous due time."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from dq.dataquality.delivery.cycle_store import write_receipt
from dq.operations.runtime.context import runtime_context

CONTRACT = """\
apiVersion: v3.1.0
kind: DataContract
id: orders
version: 1.0.0
status: active
servers: [{server: lake, type: local, path: lake/orders, format: parquet}]
team: {members: [{username: ana@example.com, role: owner}]}
support: [{channel: "#sales", tool: slack, scope: notifications}]
schema:
  - name: orders
    description: One row per order.
    properties:
      - {name: day, logicalType: date, physicalType: date, partitioned: true, partitionKeyPosition: 1}
      - {name: id, logicalType: integer, physicalType: bigint}
slaProperties:
  - {property: frequency, value: 1, unit: d, scheduler: cron, schedule: "0 6 * * *", element: orders}
"""
Write = Callable[[str, str], None]
Watch = Callable[[str], tuple[int, str]]


@pytest.fixture
def place(folder: Path) -> Path:
    (folder / "orders.odcs.yaml").write_text(CONTRACT)
    return folder


@pytest.fixture
def write(place: Path) -> Write:
    """Write a file of a partition, last written at an instant."""

    def writer(file: str, at: str) -> None:
        path = place / "lake" / "orders" / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("rows")
        moment = datetime.fromisoformat(f"{at}+00:00").timestamp()
        os.utime(path, (moment, moment))

    return writer


@pytest.fixture
def watch(place: Path, dq) -> Watch:
    def watcher(at: str) -> tuple[int, str]:
        ran = dq("watch", "orders.odcs.yaml", "--channel", "console", "--as-of", f"{at}:00Z")
        return ran.code, ran.out + ran.err

    return watcher


def test_on_time_missing_late_and_resolved(place: Path, dq, write: Write, watch: Watch) -> None:
    write("day=2026-05-08/a.parquet", "2026-05-09T05:50")
    watch("2026-05-09T00:00")

    on_time = watch("2026-05-09T06:05")
    in_grace = watch("2026-05-10T06:59")
    missing = watch("2026-05-10T07:05")
    # A file of an old partition is new data.
    write("day=2026-05-01/b.parquet", "2026-05-10T08:00")
    resolved = watch("2026-05-10T08:05")
    following = watch("2026-05-11T06:05")

    assert (on_time[0], "on time. Delivered 2026-05-09 05:50:00Z by file" in on_time[1]) == (0, True)
    assert (in_grace[0], "missing" in in_grace[1]) == (0, False)
    assert missing[0] == 1
    assert "promised      new data by 2026-05-10 06:00 UTC, 1 h grace" in missing[1]
    assert "found         the newest file is from 2026-05-09 05:50 UTC" in missing[1]
    assert "RESOLVED: orders came 2 h late" in resolved[1]
    assert (following[0], "on time. Delivered 2026-05-10 08:00:00Z" in following[1]) == (0, True)
    assert "orders/frequency  ●◐●" in dq("status", "--as-of", "2026-05-11T06:10:00Z").out


@pytest.mark.parametrize("hour", range(0, 24, 3))
def test_a_job_at_any_hour_of_the_day_gives_no_alarm(write: Write, watch: Watch, hour: int) -> None:
    """ODCS does not say whether the schedule starts the job or is its deadline, nor in which zone."""
    watch("2026-05-08T12:00")
    codes = []
    for day in range(8, 14):
        # The job takes up to half an hour longer on some days.
        write(f"day=2026-05-{day:02}/a.parquet", f"2026-05-{day:02}T{hour:02}:{(day * 17) % 30:02}")
        for tick in range(24) if day > 8 else range(13, 24):
            codes.append(watch(f"2026-05-{day:02}T{tick:02}:31")[0] if tick >= hour else 0)

    assert set(codes) == {0}


def test_a_table_that_is_written_all_the_time_is_on_time(write: Write, watch: Watch) -> None:
    watch("2026-05-09T05:00")
    for minute in range(60):
        write(f"day=2026-05-09/{minute}.parquet", f"2026-05-09T05:{minute:02}")
    write("day=2026-05-09/now.parquet", "2026-05-09T06:00")

    code, printed = watch("2026-05-09T06:00")

    assert (code, "on time" in printed) == (0, True)


def test_a_file_that_is_still_written_is_not_a_delivery(write: Write, watch: Watch) -> None:
    watch("2026-05-09T05:00")
    write("day=2026-05-09/now.parquet", "2026-05-09T07:05")

    code, printed = watch("2026-05-09T07:05")

    assert (code, "data is still being written" in printed) == (1, True)


def test_hidden_and_empty_files_are_no_data(place: Path, write: Write, watch: Watch) -> None:
    watch("2026-05-09T05:00")
    write("day=2026-05-08/.a.crc", "2026-05-09T05:30")
    write("_temporary/0/day=2026-05-08/a.parquet", "2026-05-09T05:30")
    write("day=2026-05-08/a.parquet", "2026-05-09T05:30")
    (place / "lake/orders/day=2026-05-08/a.parquet").write_text("")
    os.utime(place / "lake/orders/day=2026-05-08/a.parquet", (1_778_304_600, 1_778_304_600))

    assert watch("2026-05-09T07:05")[0] == 1


def test_a_receipt_of_any_partition_is_new_data(place: Path, dq, watch: Watch) -> None:
    (place / "lake" / "orders").mkdir(parents=True)
    watch("2026-05-09T05:00")
    with closing(runtime_context(None, [place]).store()) as store, store.write() as tx:
        write_receipt(
            tx,
            id="r",
            contract="orders",
            object="orders",
            partition="day=2026-05-08",
            due_at=None,
            delivered_at=datetime(2026, 5, 9, 5, 30, tzinfo=UTC),
            rows=3,
            version="1.0.0",
        )

    code, printed = watch("2026-05-09T07:05")

    assert (code, "Delivered 2026-05-09 05:30:00Z by receipt" in printed) == (0, True), printed


def test_a_folder_that_does_not_exist_is_unknown_and_no_alarm(dq, watch: Watch) -> None:
    watch("2026-05-09T05:00")

    first, again = watch("2026-05-09T07:05"), watch("2026-05-09T07:06")

    assert (first[0], "lake/orders does not exist" in first[1]) == (3, True)
    assert ("cannot read evidence" in first[1], again[0]) == (False, 0)
    assert "?" in dq("status", "--as-of", "2026-05-09T07:10:00Z").out


def test_a_choice_of_servers_is_a_warning_and_the_others_are_watched(
    place: Path, dq, write: Write, watch: Watch
) -> None:
    lake = "{server: lake, type: local, path: lake/orders, format: parquet}"
    text = CONTRACT.replace(lake, f"{lake}, {lake.replace('lake', 'b')}")
    (place / "orders.odcs.yaml").write_text(text)

    code, printed = watch("2026-05-09T05:00")
    write("day=2026-05-08/a.parquet", "2026-05-09T05:30")
    chosen = [
        dq("watch", "--server", "lake", "--channel", "console", "--as-of", f"2026-05-0{day}:00Z")
        for day in ("9T05:00", "9T06:05")
    ]

    assert (code, "schedule-not-watched" in printed) == (0, True), printed
    assert "frequency is not watched: contract 'orders' has several servers" in printed
    assert "on time" in chosen[-1].out


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("scheduler: cron", "scheduler: airflow", "dq reads cron, not schedules of 'airflow'"),
        ('"0 6 * * *"', '"0 0 6 * * ?"', "'0 0 6 * * ?' has 6 fields"),
        ("path: lake/orders", "path: 'lake/orders/{date}'", "the location has '{date}'"),
    ],
)
def test_a_schedule_that_cannot_be_watched_is_shown_as_such(
    place: Path, dq, watch: Watch, old: str, new: str, reason: str
) -> None:
    (place / "orders.odcs.yaml").write_text(CONTRACT.replace(old, new))

    code, _ = watch("2026-05-09T07:05")
    status = dq("status", "orders.odcs.yaml")
    unwatched = dq("status", "orders.odcs.yaml", "--format", "json").json["unwatched"]
    explained = dq("explain", "orders.odcs.yaml").out
    validated = dq("validate", "orders.odcs.yaml")

    assert (code, status.code, validated.code) == (0, 0, 0)
    assert f"orders/frequency is not watched: {reason}" in status.out
    assert "on time," not in status.out
    assert [reason in finding["message"] for finding in unwatched] == [True]
    assert "not evaluated" in explained
    assert reason in " ".join(explained.split())
    assert reason in " ".join(validated.out.split())


def test_the_terms_are_explained(place: Path, dq) -> None:
    explained = dq("explain", "orders.odcs.yaml").out
    scheduled = dq("schedule", "explain", "orders.odcs.yaml", "--count", "1").out

    assert "dq watch, by the default delivery terms" in explained
    assert "new data in any partition" in scheduled
    assert dq("validate", "orders.odcs.yaml").out.strip().endswith("no findings.")


def test_writing_the_default_terms_is_no_change(place: Path, dq) -> None:
    value = "{timezone: UTC, grace: 1h, expect: new_data}"
    terms = f'customProperties:\n  - {{property: "delivery:daily", value: {value}}}\n'
    plain = CONTRACT.replace("{property: frequency", "{id: daily, property: frequency")
    (place / "orders.odcs.yaml").write_text(plain)
    (place / "new").mkdir()
    (place / "new/orders.odcs.yaml").write_text(plain + terms)

    same = dq("diff", "orders.odcs.yaml", "new/orders.odcs.yaml")
    (place / "new/orders.odcs.yaml").write_text(
        plain + terms.replace("expect: new_data", 'partition: {day: "{due:%F}"}')
    )
    stronger = dq("diff", "orders.odcs.yaml", "new/orders.odcs.yaml")

    assert (same.code, "sla" in same.out) == (0, False), same.out
    assert "sla-tightened" in stronger.out


def test_links_in_a_circle_are_listed_once(place: Path, write: Write, watch: Watch) -> None:
    write("day=2026-05-08/a.parquet", "2026-05-09T05:50")
    (place / "lake/orders/day=2026-05-09").symlink_to(place / "lake/orders")
    watch("2026-05-09T05:00")

    assert watch("2026-05-09T06:05")[0] == 0
