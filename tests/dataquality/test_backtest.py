"""A back-test says of each partition what a check of it alone says, however they were asked."""

from __future__ import annotations

import random
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fakes import past
from fakes.reach import anywhere

from dq.contracts.check_result import CheckResult, Status
from dq.contracts.outcome import DqError
from dq.contracts.yaml.parse import read
from dq.dataquality.backtest import Backtest, backtest
from dq.dataquality.check import check
from dq.dataquality.checks import built_in
from dq.dataquality.model.run_context import PastComparison, PastMeasurement, PastResult, PastRowCount
from dq.dataquality.request import Request
from dq.dataquality.results import ROW_COUNT_CHECKS
from dq.dataquality.spark.dataset import locate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
DAYS = range(7)
# What is added in double precision depends on the order of the rows in its last digits.
OF_FLOATS = ("sql_rule", "sum", "mean", "stddev")
# A comparison has passes of its own.
COMPARING = {"agrees", "agrees_in_sum"}


def _request(spark: SparkSession, folder: Path, text: str) -> Request:
    contract = read(text)
    data, *copies = (
        locate(contract, contract.objects[0], server.server, anywhere(folder)) for server in contract.servers
    )
    copied = {f"{contract.objects[0].name}@copy": copy for copy in copies}
    return Request(contract, data, spark=spark, now=past.NOW, other_objects=copied)


def _alone(request: Request, found: Backtest) -> list[dict[str, CheckResult] | str]:
    """What a check of each partition alone says, in their order, told of those before."""
    before: list[PastResult] = []
    told: list[dict[str, CheckResult] | str] = []
    paths = {rule.clause for rule in found.rules}
    for partition in found.partitions:
        try:
            one = replace(request, partitions=[dict(partition)], history=tuple(before), samples=False)
            report = check(one)
        except DqError as error:
            told.append(error.message)
            continue
        results = [one for one in report.results if one.clause in paths]
        told.append({one.clause: _settled(one) for one in results})
        for one in results:
            if one.check in ROW_COUNT_CHECKS and one.value is not None:
                before.append(PastRowCount(one.check, one.clause, past.NOW, int(one.value), partition))
            if one.check == "agrees":
                before.append(PastComparison(one.clause, one.fingerprint, past.NOW, one.agrees, partition))
                continue
            groups = tuple((each.key, each.value) for each in one.groups if each.value is not None)
            if one.fingerprint and (one.group_columns or one.value is not None):
                number = None if one.group_columns else one.value
                before.append(
                    PastMeasurement(
                        one.check, one.clause, one.fingerprint, past.NOW, number, groups, partition
                    )
                )
    return told


def _settled(one: CheckResult) -> CheckResult:
    """The result without samples; of floats without the last digits, which two checks need not share."""
    one = replace(one, samples=())
    if one.check not in OF_FLOATS or one.value is None or one.group_columns:
        return one
    return replace(one, value=round(one.value, 9), observed="", message="")


def _agree(request: Request) -> Backtest:
    """The back-test, after each of its results was compared with a check's."""
    found = backtest(request)
    alone = _alone(request, found)
    unread = {one.partition: one.reason for one in found.unreadable}
    for at, (partition, told) in enumerate(zip(found.partitions, alone, strict=True)):
        if isinstance(told, str):
            assert unread.pop(partition).startswith(told)
            assert {rule.results[at][1].status for rule in found.rules} <= {Status.ERROR}
            continue
        here = {rule.clause: _settled(rule.results[at][1]) for rule in found.rules}
        assert here == told, partition
    assert not unread
    return found


def _deliver(lake: Path, draw: random.Random, days: Sequence[int]) -> None:
    """Deliver days, and a copy of them that lacks the last file and has other rows in the first day."""
    for day in days:
        for _ in range(draw.randint(1, 2)):
            file = past.deliver(lake / f"day=2026-05-0{day + 1}", past.rows(draw, draw.randint(1, 9), day))
    copy = shutil.copytree(lake, lake.with_name(f"{lake.name}-copy"))
    (copy / file.relative_to(lake)).unlink()
    past.deliver(copy / "day=2026-05-01", past.rows(random.Random(0), 5, days[0]))


def test_every_kind_of_clause_ends_as_in_a_check_of_the_partition_alone(spark, tmp_path) -> None:
    lake, draw = tmp_path / "lake", random.Random(7)
    _deliver(lake, draw, DAYS)
    past.deliver(lake / "day=2026-05-09", past.rows(draw, 0, 8))

    found = _agree(_request(spark, tmp_path, past.contract(lake)))

    kinds = {rule.check for rule in found.rules} | {one.check for one in found.untested}
    assert kinds == set(built_in())
    ends = {status: sum(rule.counts[status] for rule in found.rules) for status in ("pass", "fail", "error")}
    assert min(ends.values()) > 0
    # Only what may depend on the order of rows, or has queries of its own, is asked partition by partition.
    apart = {rule.check for rule in found.rules if rule.batched_count < len(found.partitions)}
    assert apart == {*OF_FLOATS, *COMPARING}
    compared = [rule for rule in found.rules if rule.check in COMPARING]
    assert len(compared) == len(COMPARING)
    assert all(rule.counts["pass"] > 0 < rule.counts["fail"] for rule in compared)
    assert {rule.batched_count for rule in found.rules} == {0, len(found.partitions)}


@pytest.mark.parametrize("seed", [1, 2])
def test_contracts_and_data_by_chance_end_so_too(spark, tmp_path, seed) -> None:
    lake, draw = tmp_path / "lake", random.Random(seed)
    _deliver(lake, draw, [0, 2, 4])

    found = _agree(_request(spark, tmp_path, past.contract(lake, draw)))

    assert sum(rule.batched_count for rule in found.rules) > len(found.rules)


FEW = """\
apiVersion: v3.2.0
kind: DataContract
id: few
version: 1.0.0
servers: [{{server: lake, type: local, path: '{lake}', format: {form}}}]
schema:
  - name: few
    quality: [{{metric: rowCount, mustBeGreaterThan: 1}}]
    properties:
      - {{name: id, logicalType: integer, physicalType: bigint, required: true}}
      - {{name: state, logicalType: string, enum: [{{value: open}}]}}
{keys}
"""


def _few(spark: SparkSession, folder: Path, *keys: str, form: str = "parquet") -> Request:
    written = "".join(
        f"      - {{name: {key.split()[0]}, logicalType: {key.split()[1]}, partitioned: true,"
        f" partitionKeyPosition: {at + 1}{' '.join(['', *key.split()[2:]])}}}\n"
        for at, key in enumerate(keys)
    )
    # A key that holds the partition speaks of the partition.
    return _request(spark, folder, FEW.format(lake=folder / "lake", form=form, keys=written))


def _rows(folder: Path, ids: Sequence[int | None], states: Sequence[str | None], **more: pa.Array) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"part-{len(list(folder.iterdir()))}.parquet"
    columns = {"id": pa.array(ids, pa.int64()), "state": pa.array(states, pa.string()), **more}
    pq.write_table(pa.table(columns), file)
    return file


def _ways(found: Backtest) -> set[int]:
    return {rule.batched_count for rule in found.rules}


def test_values_of_partitions_may_be_null_strange_or_written_twice(spark, tmp_path) -> None:
    lake = tmp_path / "lake"
    for name in ("__HIVE_DEFAULT_PARTITION__", "a%2Fb", "it's `q` %25", "naïve"):
        for month in ("1", "01", "__HIVE_DEFAULT_PARTITION__"):
            _rows(lake / f"shop={name}" / f"month={month}", [1, None], ["open", name])

    found = _agree(_few(spark, tmp_path, "shop string", "month integer , physicalType: int"))

    assert len(found.partitions) == 8
    assert _ways(found) == {8}
    assert {value for _, value in found.partitions[0]} == {"__HIVE_DEFAULT_PARTITION__"}


def test_partitions_are_named_by_the_values_that_spark_reads_in_their_folders(spark, tmp_path) -> None:
    # The last is how a writer that escapes the bytes of UTF-8 writes ü, which Spark does not read so.
    folders = {
        "a%2Fb": "a/b", "q%3F": "q?", "it%27s": "it's", "100%25": "100%", "5%": "5%", "%C3%BC": "\xc3\xbc",
    }  # fmt: skip
    rows = {value: at + 1 for at, value in enumerate(folders.values())}
    for folder, value in folders.items():
        _rows(tmp_path / "lake" / f"shop={folder}", [None] * rows[value], ["open"] * rows[value])

    found = _agree(_few(spark, tmp_path, "shop string"))

    read = spark.read.parquet(str(tmp_path / "lake")).groupBy("shop").count().collect()
    assert {row.shop: row["count"] for row in read} == rows
    assert sorted(found.partitions) == sorted((("shop", value),) for value in rows)
    (required,) = (rule for rule in found.rules if rule.check == "required")
    assert {dict(key)["shop"]: result.value for key, result in required.with_status(Status.FAIL)} == rows


@pytest.mark.parametrize(
    ("key", "values"),
    [
        ("key number , physicalType: double", ["0.1", "NaN", "-0.0", "1e300"]),
        ("key number , physicalType: 'decimal(5,2)'", ["1.5", "1.50", "-0.01"]),
        ("key boolean", ["true", "FALSE"]),
        ("key timestamp", ["2026-05-01 00%3A30%3A00", "2026-05-01 01%3A30%3A00.5"]),
        ("key date", ["2026-05-01", "0001-01-01", "tomorrow"]),
        ("key string", ["1", "01", "1.0"]),
    ],
    ids=lambda one: one.split()[1] if isinstance(one, str) else "",
)
def test_partitions_of_any_type_are_told_apart_as_spark_does(spark, tmp_path, key, values) -> None:
    for at, value in enumerate(values):
        _rows(tmp_path / "lake" / f"key={value}", [1, 2, None][: at + 1], ["open"] * min(at + 1, 3))

    _agree(_few(spark, tmp_path, key))


def test_a_partition_with_other_columns_is_tested_by_its_own(spark, tmp_path) -> None:
    lake = tmp_path / "lake"
    for day in range(1, 6):
        _rows(lake / f"day=2026-05-0{day}", [day, day + 1], ["open", "open"])
    # Another type, a column less, both in one partition, and one more.
    pq.write_table(
        pa.table({"id": pa.array([1], pa.int32()), "state": ["open"]}), lake / "day=2026-05-04/b.parquet"
    )
    _rows(lake / "day=2026-05-06", [1, 2], ["open", "open"], more=pa.array([1, 2]))
    (lake / "day=2026-05-07").mkdir()
    pq.write_table(pa.table({"state": ["open", "lost"]}), lake / "day=2026-05-07/a.parquet")
    (lake / "day=2026-05-08").mkdir()
    pq.write_table(pa.table({"id": ["1", "x"], "state": ["open", None]}), lake / "day=2026-05-08/a.parquet")
    _rows(lake / "day=2026-05-09", [], [])

    found = _agree(_few(spark, tmp_path, "day date"))

    counts = [rule.counts for rule in found.rules if rule.property == "id"]
    assert _ways(found) == {5}
    assert sum(each["error"] for each in counts) > 0
    assert sum(each["fail"] for each in counts) > 0


def test_a_broken_partition_could_not_tell_and_the_others_are_judged(spark, tmp_path) -> None:
    lake = tmp_path / "lake"
    files = [_rows(lake / f"day=2026-05-0{day}", [day, None], ["open", "lost"]) for day in range(1, 9)]
    whole = files[2].read_bytes()
    # The footer is whole, and the pages are not: only who reads the rows sees it.
    footer = 8 + int.from_bytes(whole[-8:-4], "little")
    files[2].write_bytes(b"PAR1" + bytes(len(whole) - 4 - footer) + whole[-footer:])
    files[5].write_bytes(b"no Parquet at all")

    found = _agree(_few(spark, tmp_path, "day date"))

    assert [one.partition for one in found.unreadable] == [(("day", "2026-05-06"),)]
    by_check = {rule.check: rule for rule in found.rules}
    enum = {partition[0][1][-1]: result.status for partition, result in by_check["enum"].results}
    assert [day for day, status in enum.items() if status is Status.ERROR] == ["3", "6"]
    assert set(enum.values()) == {Status.ERROR, Status.FAIL}
    assert _ways(found) == {4}


def test_of_csv_a_value_of_another_type_is_judged_in_its_partition_alone(spark, tmp_path) -> None:
    for day in range(1, 7):
        folder = tmp_path / "lake" / f"day=2026-05-0{day}"
        folder.mkdir(parents=True)
        last = {4: "x,open", 5: '5,"open'}.get(day, f"{day},open")
        (folder / "a.csv").write_text(f"id,state\n{day},open\n{last}\n")

    found = _agree(_few(spark, tmp_path, "day date", form="csv"))

    columns = next(rule for rule in found.rules if rule.check == "columns" and rule.property == "id")
    assert [partition[0][1][-1] for partition, _ in columns.with_status(Status.FAIL)] == ["4"]
    assert [one.partition[0][1][-1] for one in found.unreadable] == ["5"]
    assert _ways(found) == {3}


def test_of_json_each_partition_has_the_keys_of_its_own(spark, tmp_path) -> None:
    for day, line in enumerate(
        ('{"id": 1, "state": "open"}', '{"id": 1}', '{"state": "lost", "id": null}'), 1
    ):
        folder = tmp_path / "lake" / f"day=2026-05-0{day}"
        folder.mkdir(parents=True)
        (folder / "a.json").write_text(line + "\n")

    found = _agree(_few(spark, tmp_path, "day date", form="json"))

    assert _ways(found) == {0}


def test_the_last_partitions_alone_are_tested_and_frames_are_too(spark, tmp_path) -> None:
    for day in range(1, 6):
        _rows(tmp_path / f"lake/day=2026-05-0{day}", [day, None], ["open", "lost"])
    request = _few(spark, tmp_path, "day date")
    frame = spark.read.parquet(str(tmp_path / "lake"))
    told = {rule.name: rule.counts for rule in _agree(replace(request, data=frame)).rules}

    found = backtest(request, last=3)

    assert (len(found.partitions), found.present) == (3, 5)
    assert _ways(found) == {3}
    assert {rule.name: rule.counts["fail"] for rule in found.rules} == {
        name: 3 * counts["fail"] // 5 for name, counts in told.items()
    }
