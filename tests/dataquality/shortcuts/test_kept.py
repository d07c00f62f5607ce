"""Counts of folders are kept, add up to the whole, and are never reused for what has changed."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fakes.reach import anywhere

from dq.contracts.check_result import Status
from dq.contracts.model import Contract
from dq.contracts.yaml.parse import parse
from dq.dataquality.answers.partition_cache import CachedPartition, is_time_independent
from dq.dataquality.answers.sources import ALL, NONE, Optimization
from dq.dataquality.check import check
from dq.dataquality.report import Report
from dq.dataquality.request import Request
from dq.dataquality.spark.dataset import locate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

TABLE = "customProperties: [{property: scope, vendor: dq, value: {rows: table}}]"
TEXT = f"""\
apiVersion: v3.2.0
kind: DataContract
id: shop
version: 1.0.0
servers: [{{server: lake, type: local, path: FOLDER, format: FORMAT}}]
schema:
  - name: orders
    quality: [{{metric: rowCount, mustBe: 6, {TABLE}}}]
    properties:
      - {{name: day, logicalType: date, partitioned: true, partitionKeyPosition: 1}}
      - name: id
        logicalType: integer
        physicalType: bigint
        quality: [{{metric: nullValues, mustBe: 1, {TABLE}}}]
"""
DAYS = {"2026-05-10": ["1", "2", ""], "2026-05-11": ["3", "4"], "2026-05-12": ["5"]}
LAST = [{"day": "2026-05-12"}]


@dataclass
class Kept:
    """A memory in a dictionary, which tells what was remembered last."""

    parts: dict[str, CachedPartition] = field(default_factory=dict)
    last: list[str] = field(default_factory=list)
    most_keys: int = 0

    def recall(self, dataset: str) -> Mapping[str, CachedPartition]:
        return self.parts

    def remember(self, dataset: str, parts: Mapping[str, CachedPartition], gone: Set[str]) -> None:
        self.last = sorted(folder.rpartition("=")[2] for folder in parts)
        self.parts |= parts

    def forget(self, dataset: str) -> None:
        self.parts = {}


def write(folder: Path, day: str, ids: list[str], minutes_old: float = 60) -> None:
    """A day as CSV, which keeps no statistics beside its values."""
    file = folder / f"day={day}" / "part-0.csv"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("id,state\n" + "".join(f"{one},x\n" for one in ids))
    at = datetime.now(UTC).timestamp() - minutes_old * 60
    os.utime(file, (at, at))


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    for day, ids in DAYS.items():
        write(tmp_path, day, ids)
    return tmp_path


def contract(lake: Path, form: str = "csv") -> Contract:
    text = TEXT.replace("FOLDER", str(lake)).replace("FORMAT", form)
    parsed = parse(text.encode(), "shop.odcs.yaml")
    assert parsed.contract is not None
    assert not parsed.findings
    return parsed.contract


def run(
    spark: SparkSession,
    made: Contract,
    memory: Kept | None,
    optimizations: Set[Optimization] = ALL,
    partitions: Sequence[Mapping[str, str]] = LAST,
    verify: float = 0.0,
) -> Report:
    data = locate(made, made.objects[0], None, anywhere())
    now = datetime.now(UTC)
    return check(
        Request(
            made,
            data,
            spark=spark,
            partitions=partitions,
            now=now,
            memory=memory,
            optimizations=optimizations,
            verify_statistics=verify,
        )
    )


def observed(report: Report) -> list[str]:
    return [one.observed for one in report.results if one.check in ("row_count", "null_values")]


def test_kept_parts_equal_the_whole_and_only_the_new_one_is_counted(spark: SparkSession, lake: Path) -> None:
    made, memory = contract(lake), Kept()

    whole = run(spark, made, None)
    first = run(spark, made, memory)
    all_three = memory.last
    memory.last = []
    again = run(spark, made, memory)
    nothing = memory.last
    write(lake, "2026-05-13", ["7", "8"])
    more = run(spark, made, memory)

    assert observed(whole) == observed(first) == observed(again) == ["6 rows", "1 of 6 rows"]
    assert all_three == list(DAYS)
    assert nothing == []
    assert again.passes == first.passes - 1
    assert (observed(more), memory.last) == (["8 rows", "1 of 8 rows"], ["2026-05-13"])


@pytest.mark.parametrize("ids", [["1", "2", "9"], ["1", "", ""], []], ids=["as long", "other", "none"])
def test_a_day_that_was_written_again_is_counted_anew(
    spark: SparkSession, lake: Path, ids: list[str]
) -> None:
    made, memory = contract(lake), Kept()
    run(spark, made, memory)

    write(lake, "2026-05-10", ids, minutes_old=30)
    again = run(spark, made, memory)

    assert memory.last == ["2026-05-10"]
    assert observed(again) == observed(run(spark, made, None))


def test_a_file_in_the_place_of_another_with_its_size_and_time_is_counted(
    spark: SparkSession, lake: Path
) -> None:
    made, memory = contract(lake), Kept()
    run(spark, made, memory)
    file = lake / "day=2026-05-11" / "part-0.csv"
    before = file.stat()

    file.write_text(file.read_text().replace("3,x", ",xx"))
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    again = run(spark, made, memory)

    assert (file.stat().st_size, file.stat().st_mtime_ns) == (before.st_size, before.st_mtime_ns)
    assert observed(again) == ["6 rows", "2 of 6 rows"]


def test_without_levers_nothing_is_taken_from_what_is_kept(spark: SparkSession, lake: Path) -> None:
    made = contract(lake)
    lies = Kept()
    run(spark, made, lies)
    lies.parts = {
        folder: CachedPartition(part.print, dict.fromkeys(part.counts, 9))
        for folder, part in lies.parts.items()
    }

    believed, read = run(spark, made, lies), run(spark, made, lies, NONE)

    assert observed(believed) == ["27 rows", "27 of 27 rows"]
    assert believed.from_cache == 2
    assert (observed(read), read.from_cache) == (["6 rows", "1 of 6 rows"], 0)


def test_a_kept_answer_that_is_wrong_is_caught_by_a_trial_and_forgotten(
    spark: SparkSession, lake: Path
) -> None:
    made, memory = contract(lake), Kept()
    run(spark, made, memory)
    memory.parts = {
        folder: CachedPartition(part.print, dict.fromkeys(part.counts, 0))
        for folder, part in memory.parts.items()
    }

    trial = run(spark, made, memory, verify=1.0)

    caught = [one for one in trial.results if one.check == "statistics"]
    assert observed(trial) == ["6 rows", "1 of 6 rows"]
    assert trial.exit_code == 3
    assert "its partition cache is wrong: it gives 0, the rows give" in caught[0].message
    assert memory.parts == {}


MERGED = """\
apiVersion: v3.2.0
kind: DataContract
id: shop
version: 1.0.0
servers: [{server: lake, type: local, path: FOLDER, format: parquet}]
schema:
  - name: orders
    quality:
      - {metric: rowCount, mustBe: 5}
      - {type: sql, query: "SELECT count(*) FROM {object} WHERE note NOT LIKE 'a%'", mustBe: 1}
      - {type: sql, query: "SELECT max(price) FROM {object}", mustBe: 4}
      - {type: sql, query: "SELECT avg(price) FROM {object}", mustBe: 1}
      - {type: sql, query: "SELECT sum(id) FROM {object}", mustBe: 1}
      - {type: sql, query: "SELECT min(id + 1) FROM {object}", mustBe: 1}
      - {type: sql, query: "SELECT sum(weight) FROM {object}", mustBe: 1}
    properties:
      - {name: day, logicalType: string, partitioned: true, partitionKeyPosition: 1}
      - name: id
        logicalType: integer
        physicalType: bigint
        quality:
          - {type: custom, engine: dq, implementation: {check: sum, mustBe: 1}}
          - {type: custom, engine: dq, implementation: {check: mean, mustBe: 1}}
      - {name: price, logicalType: number, physicalType: "decimal(9,2)"}
      - {name: note, logicalType: string, logicalTypeOptions: {pattern: "^[a-z]+$", maxLength: 3}}
      - {name: weight, logicalType: number, physicalType: double}
"""
Row = tuple[int | None, str | None, str | None, float | None]
ROWS: dict[str, list[Row]] = {
    "1": [(2**62, "1.00", "ab", 0.1), (None, None, "abc", None)],
    "2": [(5, "1.01", None, 1e300), (-3, None, "zz", -1e300)],
    "3": [(2**61, "1.00", "abcd", 0.2)],
}


def deliver(
    lake: Path, day: str, rows: list[tuple[int | None, str | None, str | None, float | None]]
) -> None:
    columns = list(zip(*rows, strict=True))
    table = pa.table(
        {
            "id": pa.array(columns[0], pa.int64()),
            "price": pa.array(
                [None if one is None else Decimal(one) for one in columns[1]], pa.decimal128(9, 2)
            ),
            "note": pa.array(columns[2], pa.string()),
            "weight": pa.array(columns[3], pa.float64()),
        }
    )
    file = lake / f"day={day}" / "part-0.parquet"
    file.parent.mkdir(exist_ok=True)
    pq.write_table(table, file)
    os.utime(file, (0, datetime.now(UTC).timestamp() - 3600))


@pytest.mark.parametrize("tasks", [True, False])
def test_all_that_merges_is_the_same_as_from_the_rows(
    spark: SparkSession, tmp_path: Path, tasks: bool
) -> None:
    for day, rows in ROWS.items():
        deliver(tmp_path, day, rows)
    made, memory = parse(MERGED.replace("FOLDER", str(tmp_path)).encode(), "s.odcs.yaml").contract, Kept()
    assert made is not None
    optimizations = ALL if tasks else frozenset({Optimization.PARTITION_CACHE})

    first = run(spark, made, memory, optimizations, ())
    deliver(tmp_path, "3", [(2**62 - 3, "9.99", "x", 7.5)])
    second, scanned = run(spark, made, memory, optimizations, ()), run(spark, made, None, NONE, ())

    assert memory.last == ["3"]
    assert first.from_cache == 0
    assert second.from_cache >= 6
    assert [(one.observed, one.value, one.status) for one in second.results] == [
        (one.observed, one.value, one.status) for one in scanned.results
    ]


def test_a_day_that_is_gone_counts_no_more(spark: SparkSession, lake: Path) -> None:
    made, memory = contract(lake), Kept()
    run(spark, made, memory)

    (lake / "day=2026-05-11" / "part-0.csv").unlink()
    again = run(spark, made, memory)

    assert observed(again) == ["4 rows", "1 of 4 rows"]


def test_files_that_were_just_written_are_counted_and_not_kept(spark: SparkSession, lake: Path) -> None:
    made, memory = contract(lake), Kept()
    write(lake, "2026-05-12", ["5"], minutes_old=0)

    report = run(spark, made, memory)

    assert observed(report) == ["6 rows", "1 of 6 rows"]
    assert memory.last == ["2026-05-10", "2026-05-11"]


def test_another_type_in_the_contract_is_another_question(spark: SparkSession, lake: Path) -> None:
    memory = Kept()
    run(spark, contract(lake), memory)
    memory.last = []
    text = TEXT.replace("physicalType: bigint", "physicalType: int")
    other = parse(text.replace("FOLDER", str(lake)).replace("FORMAT", "csv").encode(), "s.odcs.yaml").contract
    assert other is not None

    run(spark, other, memory)

    assert memory.last == list(DAYS)


def test_what_cannot_be_counted_is_an_error_and_is_not_kept(spark: SparkSession, lake: Path) -> None:
    made, memory = contract(lake), Kept()
    write(lake, "2026-05-11", ["3", "4,one value more"])

    report = run(spark, made, memory)

    assert Status.ERROR in {one.status for one in report.results if one.check == "null_values"}
    assert memory.last == []


def test_a_clock_that_is_behind_the_files_keeps_nothing(spark: SparkSession, lake: Path) -> None:
    made, memory = contract(lake), Kept()
    data = locate(made, made.objects[0], None, anywhere())

    past = datetime.now(UTC) - timedelta(days=2)
    check(Request(made, data, spark=spark, partitions=LAST, now=past, memory=memory))

    assert memory.parts == {}


LASTING = {
    "no condition": ("count(1)", True),
    "a bound": ("count(CASE WHEN `v` > 9 THEN 1 END)", True),
    "instants": ("count(CASE WHEN `at` < TIMESTAMP'2026-01-01 00:00:00Z' THEN 1 END)", True),
    "a lambda of ours": ("count(CASE WHEN exists(`a`, _dq_0 -> _dq_0 IS NULL) THEN 1 END)", True),
    "a column that has the name of a function": (
        "count(CASE WHEN `now` > 1 AND `rand()` > 2 THEN 1 END)",
        True,
    ),
    "a text that looks like SQL": ("count(CASE WHEN `s` = 'rand() it''s' THEN 1 END)", True),
    "the time": ("count(CASE WHEN `at` < now() THEN 1 END)", False),
    "the time as a number": ("count(CASE WHEN `n` < unix_timestamp() THEN 1 END)", False),
    "the day": ("count(CASE WHEN `day` < CURRENT_DATE THEN 1 END)", False),
    "the day, in a text": ("count(CASE WHEN `day` < CAST('today' AS DATE) THEN 1 END)", False),
    "chance": ("count(CASE WHEN rand(7) < 0.5 THEN 1 END)", False),
    "chance by another name": ("count(CASE WHEN randn() < 0.5 OR uuid() = `s` THEN 1 END)", False),
    "the file": ("count(CASE WHEN input_file_name() LIKE '%a' THEN 1 END)", False),
    "the partition of a task": ("count(CASE WHEN spark_partition_id() = 0 THEN 1 END)", False),
    "who asks": ("count(CASE WHEN `s` = session_user() THEN 1 END)", False),
    "a function that nobody knows": ("count(CASE WHEN my_udf(`s`) THEN 1 END)", False),
}


@pytest.mark.parametrize(("asked", "expected"), LASTING.values(), ids=LASTING)
def test_only_what_is_known_to_be_the_same_at_any_time_is_kept(asked: str, expected: bool) -> None:
    assert is_time_independent(asked) is expected
