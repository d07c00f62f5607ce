"""Small partitioned tables in this process: the results of a scan by Spark, or left to Spark."""

from __future__ import annotations

import datetime as dt
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.dataset as pd
import pyarrow.parquet as pq
import pytest
from fakes.reach import anywhere

from dq.contracts.layout import partition_folder
from dq.contracts.yaml.parse import parse
from dq.dataquality.answers.sources import NONE
from dq.dataquality.check import check
from dq.dataquality.request import OpenedData, Request
from dq.dataquality.spark.dataset import locate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NOW = dt.datetime(2026, 5, 2, 12, tzinfo=dt.UTC)
CONTRACT = """\
apiVersion: v3.2.0
kind: DataContract
id: shop
version: 1.0.0
status: active
servers:
  - server: lake
    type: local
    path: '{lake}'
    format: parquet
{layout}
schema:
  - name: orders
    quality:
      - {{metric: rowCount, mustBeGreaterThan: 5}}
      - {{metric: duplicateValues, mustBe: 0, arguments: {{properties: [state, {first}]}}}}
      - {{metric: nullValues, mustBe: 0, arguments: {{properties: [{first}]}}}}
      - {{metric: distinctCount, mustBe: 99, arguments: {{properties: [{first}], by: [state]}}}}
    properties:
      - {{name: id, logicalType: integer, physicalType: bigint, unique: true}}
      - {{name: state, logicalType: string, required: true, enum: [{{value: open}}]}}
      - {{name: price, logicalType: number, physicalType: double, logicalTypeOptions: {{minimum: 1.5}}}}
{keys}"""
LAYOUT = "    customProperties: [{{property: layout, vendor: dq, value: {{path: '{template}'}}}}]"

Values = Mapping[str, str]


def rows(number: int, *, size: int = 4) -> pa.Table:
    """Rows of one partition: `id` occurs in the next one too."""
    return pa.table(
        {
            "id": pa.array(range(3 * number, 3 * number + size), pa.int64()),
            "state": pa.array(["open", "open", "shut", None][:size]),
            "price": pa.array([0.5 * number, 1.25, 2.0, None][:size], pa.float64()),
        }
    )


def request(lake: Path, keys: Mapping[str, str], template: str = "") -> Request:
    """A check of the table; `keys` are types of the partition columns by name."""
    lines = [
        f"      - {{name: {name}, logicalType: {logical(kind)}, physicalType: {kind}, required: true,"
        f" partitioned: true, partitionKeyPosition: {position}}}"
        for position, (name, kind) in enumerate(keys.items(), 1)
    ]
    text = CONTRACT.format(
        lake=lake,
        layout=LAYOUT.format(template=template) if template else "",
        first=next(iter(keys)),
        keys="\n".join(lines),
    )
    parsed = parse(text.encode(), "shop.odcs.yaml")
    assert parsed.contract is not None, parsed.findings
    data = locate(parsed.contract, parsed.contract.objects[0], None, anywhere())
    return Request(parsed.contract, data, now=NOW)


def logical(kind: str) -> str:
    return {"string": "string", "date": "date", "timestamp": "timestamp"}.get(kind, "integer")


def write(lake: Path, folders: Sequence[str]) -> None:
    """Write a file into each folder. The folders are in an order other than that of their names."""
    for number, folder in enumerate(folders):
        (lake / folder).mkdir(parents=True, exist_ok=True)
        pq.write_table(rows(number), lake / folder / "part-0.parquet")


def assert_as_spark(spark: SparkSession, base: Request, scopes: Sequence[Sequence[Values]]) -> None:
    """Compare the results in this process, without a session, with those of a scan, of scopes and table."""
    for scope in ([], *scopes):
        request = replace(base, partitions=list(scope) or None)

        in_memory = check(request)

        scan = check(replace(request, spark=spark, optimizations=NONE))
        assert (in_memory.results, in_memory.rows) == (scan.results, scan.rows), scope
        assert in_memory.failed


TEXTS = [
    "open", "a b", "München", "😀", "it's", '"q"', "back\\slash", "x:y", "x/y", "a=b", "a+b", "50%", "%41",
    "01", "[a]{b}*?", "#1", "2026-05-01",
]  # fmt: skip
HIVE = {
    "integers": (
        {"month": "int"}, ["month=2", "month=-1", "month=10"], [[{"month": "2"}], [{"month": "-1"}]],
    ),
    "integers with zeros": (
        {"month": "int", "day": "smallint"},
        ["month=02/day=1", "month=2/day=01", "month=1/day=1"],
        [[{"month": "2"}], [{"month": "02", "day": "1"}], [{"DAY": "001"}]],
    ),
    "large integers": ({"day": "bigint"}, ["day=20260501", "day=20260502"], [[{"day": "20260502"}]]),
    "dates and NULL": (
        {"day": "date"},
        ["day=2026-05-02", "day=__HIVE_DEFAULT_PARTITION__", "day=2026-05-01"],
        [
            [{"day": "2026-05-01"}],
            [{"day": "__HIVE_DEFAULT_PARTITION__"}],
            [{"day": "2026-05-01"}, {"day": "__HIVE_DEFAULT_PARTITION__"}],
        ],
    ),
    "times": (
        {"hour": "timestamp"},
        ["hour=2026-05-01 03%3A00%3A00", "hour=2026-05-01 04:00:00"],
        [[{"hour": "2026-05-01 03:00:00"}]],
    ),
    "texts": (
        {"text": "string"},
        [partition_folder([("text", text)]) for text in TEXTS],
        [[{"text": text}] for text in ("50%", "x/y", "back\\slash", "01", "absent")],
    ),
    "integers and texts": (
        {"year": "int", "city": "string", "day": "date"},
        [f"year=2026/city=c%3A{city}/day=2026-05-0{day}" for city in ("a", "b") for day in (1, 2)],
        [[{"city": "c:a", "year": "2026"}], [{"year": "2026", "city": "c:b", "day": "2026-05-02"}]],
    ),
    "a partition that is absent": (
        {"day": "date"}, ["day=2026-05-01", "day=2026-05-02"], [[{"day": "2026-05-03"}]],
    ),
    "31 days": (
        {"day": "date"}, [f"day=2026-05-{day:02}" for day in range(1, 32)], [[{"day": "2026-05-31"}]],
    ),
}  # fmt: skip
LAYOUTS = {
    "a day of three folders": (
        "{day:%Y/%m/%d}", {"day": "date"}, ["2026/05/02", "2026/05/01"], [[{"day": "2026-05-02"}]],
    ),
    "hours of tenants": (
        "{tenant}/{hour:%Y%m%d%H}",
        {"tenant": "string", "hour": "timestamp"},
        ["acme/2026050103", "acme/2026050104", "a%25b +c/2026050103"],
        [
            [{"tenant": "acme", "hour": "2026-05-01 03:00:00"}],
            [{"tenant": "a%b +c", "hour": "2026-05-01 03:00:00"}],
            [{"hour": "2026-05-01 03:00:00"}],
        ],
    ),
    "integers": (
        "{year}/{month}",
        {"year": "int", "month": "int"},
        ["2026/05", "2026/5", "2025/12"],
        [[{"year": "2026", "month": "5"}], [{"month": "12"}]],
    ),
    "named integers": ("d-{month}", {"month": "int"}, ["d-01", "d-2"], [[{"month": "1"}]]),
}  # fmt: skip


@pytest.mark.spark
@pytest.mark.parametrize("case", HIVE)
def test_results_on_hive_folders_are_those_of_a_scan(spark, tmp_path, case):
    keys, folders, scopes = HIVE[case]
    write(tmp_path / "lake", folders)

    assert_as_spark(spark, request(tmp_path / "lake", keys), scopes)


@pytest.mark.spark
@pytest.mark.parametrize("case", LAYOUTS)
def test_results_on_other_layouts_are_those_of_a_scan(spark, tmp_path, case):
    template, keys, folders, scopes = LAYOUTS[case]
    write(tmp_path / "lake", folders)

    assert_as_spark(spark, request(tmp_path / "lake", keys, template), scopes)


def by_spark(spark: SparkSession, table: pa.Table, lake: Path, keys: Sequence[str]) -> None:
    frame = spark.createDataFrame(
        table.to_pylist(), "id long, state string, price double, day date, city string"
    )
    frame.coalesce(1).write.partitionBy(*keys).parquet(str(lake))


def by_arrow(_: SparkSession, table: pa.Table, lake: Path, keys: Sequence[str]) -> None:
    pd.write_dataset(
        table,
        lake,
        format="parquet",
        partitioning=pd.partitioning(pa.schema([table.schema.field(key) for key in keys]), flavor="hive"),
    )


def by_polars(_: SparkSession, table: pa.Table, lake: Path, keys: Sequence[str]) -> None:
    import polars as pl

    pl.from_arrow(table).write_parquet(lake, use_pyarrow=False, partition_by=list(keys), mkdir=True)  # type: ignore[union-attr,call-arg]


@pytest.mark.spark
@pytest.mark.parametrize("writer", [by_spark, by_arrow])
def test_results_on_tables_of_other_writers_are_those_of_a_scan(spark, tmp_path, writer):
    parts = []
    for number, city in enumerate(["São", "a:b", "c d", None, "50%", "[x]"]):
        size = 4
        days = pa.array([dt.date(2026, 5, 1 + number % 2)] * size, pa.date32())
        parts.append(
            rows(number, size=size)
            .append_column("day", days)
            .append_column("city", pa.array([city] * size, pa.string()))
        )
    writer(spark, pa.concat_tables(parts), tmp_path / "lake", ["day", "city"])

    base = request(tmp_path / "lake", {"day": "date", "city": "string"})

    assert_as_spark(
        spark, base, [[{"day": "2026-05-01"}], [{"city": "c d"}], [{"city": "__HIVE_DEFAULT_PARTITION__"}]]
    )


def _evolve(lake: Path, change: Callable[[pa.Table], pa.Table]) -> None:
    """Write another schema into the first partition."""
    pq.write_table(change(rows(0)), lake / "day=2026-05-01" / "part-0.parquet")


DAYS = ["day=2026-05-01", "day=2026-05-02", "day=2026-05-03"]


@pytest.mark.spark
@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda table: table.drop_columns(["price"]), id="without a column"),
        pytest.param(
            lambda table: table.append_column("old", pa.array([1] * 4)), id="with an additional column"
        ),
        pytest.param(lambda table: table.select(["price", "state", "id"]), id="in another order"),
    ],
)
def test_columns_that_only_the_first_partition_has_or_lacks_are_merged_as_by_spark(spark, tmp_path, change):
    write(tmp_path, DAYS)
    _evolve(tmp_path, change)
    base = replace(request(tmp_path, {"day": "date"}), partitions=[{"day": "2026-05-03"}], rules=["columns"])

    in_memory = check(base)

    scan = check(replace(base, spark=spark, optimizations=NONE))
    assert in_memory.results == scan.results
    small = OpenedData(base).small
    assert small is not None
    spark_schema = OpenedData(replace(base, spark=spark, optimizations=NONE)).schema
    assert small.schema == spark_schema


@pytest.mark.spark
def test_names_that_readers_skip_are_skipped(spark, tmp_path):
    write(tmp_path, DAYS)
    for name in (
        "_tmp/part.parquet",
        ".part.parquet.crc",
        "_SUCCESS",
        "part-1.parquet._COPYING_",
        ".x/a.parquet",
    ):
        for folder in (tmp_path, tmp_path / DAYS[0]):
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_bytes(b"unfinished")

    assert_as_spark(spark, request(tmp_path, {"day": "date"}), [[{"day": "2026-05-01"}]])


def rename(old: str, new: str, lake: Path) -> None:
    (lake / new).parent.mkdir(parents=True, exist_ok=True)
    (lake / old).rename(lake / new)


def move_file(path: str, lake: Path) -> None:
    (lake / path).parent.mkdir(parents=True)
    (lake / DAYS[2] / "part-0.parquet").rename(lake / path)


def add_file(path: str, table: pa.Table | None, lake: Path) -> None:
    (lake / path).parent.mkdir(parents=True, exist_ok=True)
    if table is None:
        (lake / path).write_bytes(b"")
    else:
        pq.write_table(table, lake / path)


SECOND = f"{DAYS[0]}/part-1.parquet"
WITH_KEY = rows(0).append_column("day", pa.array([""] * 4))
OTHER_TYPE = rows(1).set_column(0, "id", pa.array([1, 2, 3, 4], pa.int32()))


@pytest.mark.parametrize(
    ("keys", "change"),
    [
        ({"day": "date"}, partial(rename, DAYS[2], "day=2026-5-3")),
        ({"day": "date"}, partial(rename, DAYS[2], "day=20260503")),
        ({"day": "date"}, partial(rename, DAYS[2], "day=2026%2D05%2D03")),
        ({"day": "date"}, partial(rename, DAYS[2], "Day=2026-05-03")),
        ({"day": "date"}, partial(rename, DAYS[2], "2026-05-03")),
        ({"day": "date"}, partial(move_file, "day=2026-05-03/hour=1/a.parquet")),
        ({"day": "date"}, partial(move_file, "day=2026-05-03/more/a.parquet")),
        ({"day": "string"}, partial(rename, DAYS[2], "day=%4")),
        ({"day": "string"}, partial(rename, DAYS[2], "day=%+1")),
        ({"day": "string"}, partial(rename, DAYS[2], "day=")),
        ({"day": "string"}, partial(rename, DAYS[2], "day=a%0Ab")),
        ({"day": "string"}, partial(rename, DAYS[2], "day=%5F_HIVE_DEFAULT_PARTITION__")),
        ({"day": "date"}, partial(add_file, "part.parquet", rows(1))),
        ({"day": "date"}, partial(add_file, f"{DAYS[0]}/empty.parquet", None)),
        ({"day": "date"}, partial(add_file, f"{DAYS[1]}/_metadata", rows(1))),
        ({"day": "date"}, partial(add_file, SECOND, OTHER_TYPE)),
        ({"day": "date"}, partial(add_file, SECOND, rows(1).drop_columns(["price"]))),
        ({"day": "date"}, partial(add_file, SECOND, rows(1).rename_columns(["ID", "state", "price"]))),
        ({"day": "date"}, partial(add_file, SECOND, WITH_KEY)),
        ({"day": "date"}, lambda lake: os.mkfifo(lake / DAYS[0] / "pipe.parquet")),
        ({"day": "boolean"}, lambda lake: None),
        ({"day": "int"}, lambda lake: None),
    ],
)  # fmt: skip
def test_what_spark_may_read_in_another_way_is_left_to_it(tmp_path, keys, change):
    write(tmp_path, DAYS)
    if keys == {"day": "date"}:
        assert OpenedData(request(tmp_path, keys)).small is not None

    change(tmp_path)

    assert OpenedData(request(tmp_path, keys)).small is None


def test_a_first_file_that_has_the_partition_column_is_left_to_spark(tmp_path):
    write(tmp_path, DAYS)
    partition = replace(request(tmp_path, {"day": "date"}), partitions=[{"day": "2026-05-03"}])
    before = OpenedData(partition).small

    add_file(f"{DAYS[0]}/part-0.parquet", WITH_KEY, tmp_path)

    assert before is not None
    assert OpenedData(partition).small is None


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("+1", "int"),
        ("1_0", "int"),
        (" 1", "int"),
        ("١", "int"),
        ("200", "tinyint"),
        ("2147483648", "int"),
        ("x", "int"),
    ],
)
def test_integers_that_are_written_in_another_way_are_left_to_spark(tmp_path, text, kind):
    write(tmp_path, ["n=1", f"n={text}"])

    assert OpenedData(request(tmp_path, {"n": kind})).small is None


def test_a_table_of_many_or_large_files_is_left_to_spark_but_not_its_small_partitions(tmp_path):
    write(tmp_path, [f"day={dt.date(2026, 1, 1) + dt.timedelta(days=day)}" for day in range(65)])
    table = request(tmp_path, {"day": "date"})

    partition = replace(table, partitions=[{"day": "2026-01-03"}])

    assert OpenedData(table).small is None
    assert OpenedData(partition).small is not None
    # A clause about the whole table needs it.
    with pytest.raises(Exception, match=re.escape("needs a Spark session")):
        check(partition)


@pytest.mark.parametrize("folder", ["2026/5/1", "2026/02/30", "other", "2026/05/01/deep"])
def test_files_outside_of_a_layout_are_left_to_spark(tmp_path, folder):
    write(tmp_path, ["2026/05/01"])
    table = request(tmp_path, {"day": "date"}, "{day:%Y/%m/%d}")
    before = OpenedData(table).small

    write(tmp_path, [folder])

    assert before is not None
    assert OpenedData(table).small is None
