"""What a file's statistics prove by the name of who wrote it."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fakes import parquet_footer as footer
from fakes.reach import anywhere

from dq.contracts.types import DataType
from dq.contracts.yaml.parse import parse
from dq.dataquality.answers.sources import NONE, Optimization
from dq.dataquality.answers.statistics import (
    WRONG,
    ColumnStatistics,
    RequestedColumn,
    Statistic,
    counts_rows,
    distrusted,
    read_statistics,
    without_distrusted,
)
from dq.dataquality.check import check
from dq.dataquality.model.column import Column
from dq.dataquality.report import Report
from dq.dataquality.request import Request
from dq.dataquality.spark.dataset import locate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BOUNDS, NULLS, VALUES, ROWS, BLOOM = Statistic
_NAMES: dict[str, tuple[str, str, set[Statistic]]] = {
    "pyarrow": ("parquet-cpp-arrow version 26.0.1", "int", set()),
    "Spark": ("parquet-mr version 1.15.2 (build 859eac165b08f927fa14590c34bc5f476405fb68)", "decimal", set()),
    "old pyarrow": ("parquet-cpp-arrow version 11.0.0", "bigint", {BOUNDS}),
    "parquet-cpp, before Arrow": ("parquet-cpp version 1.5.1-SNAPSHOT", "bigint", {BOUNDS}),
    "Polars without a version": ("Polars", "int", {BOUNDS}),
    "Polars that merged decimals": ("Polars (python) version 2.0.3 (build 1)", "decimal", {BOUNDS}),
    "the integers of that Polars": ("Polars (python) version 2.0.3 (build 1)", "int", set()),
    "Polars now": ("Polars (python) version 2.1.0 (build 1)", "decimal", set()),
    "old ClickHouse": ("ClickHouse v25.2.1.3085", "decimal", {BOUNDS}),
    "ClickHouse now": ("ClickHouse v25.8.1", "decimal", set()),
    "ClickHouse's integers": ("ClickHouse v25.2.1.3085", "int", set()),
    "DuckDB's ENUM": ("DuckDB version v1.5.2 (build 1)", "string", {BOUNDS}),
    "DuckDB": ("DuckDB version v1.5.2 (build 1)", "decimal", set()),
    "parquet-rs": ("parquet-rs version 59.3.0", "decimal", {BOUNDS}),
    "an old parquet-rs": ("parquet-rs version 4.1.0", "date", {NULLS}),
    "parquet-go": ("parquet-go version latest", "int", {NULLS, BLOOM}),
    "another parquet-go": ("github.com/parquet-go/parquet-go version 0.25.0", "int", set()),
    "hyparquet": ("hyparquet", "decimal", {BOUNDS}),
    "Delta by Spark": ("Apache-Spark/4.0.1 Delta-Lake/4.0.0", "int", set()),
    "Delta by an old Trino": ("Trino 390", "int", {BOUNDS}),
    "Delta by Trino": ("Trino 476", "int", set()),
    "Iceberg": ("Apache Iceberg 1.10.1 (commit 1)", "double", set()),
    "Presto": ("presto 0.297", "int", {NULLS, ROWS}),
    "nobody": ("", "int", {BOUNDS, VALUES, BLOOM}),
    "a blank name": ("  ", "int", {BOUNDS, VALUES, BLOOM}),
}


@pytest.mark.parametrize(("writer", "kind", "lost"), _NAMES.values(), ids=_NAMES)
def test_a_writer_is_believed_what_it_does_not_say_wrongly(
    writer: str, kind: str, lost: set[Statistic]
) -> None:
    assert distrusted(writer, kind) == lost


def test_floats_below_a_null_struct_are_not_believed_of_iceberg() -> None:
    assert distrusted("Apache Iceberg 1.10.1", "double", True) == {NULLS}


@pytest.mark.parametrize(
    ("physical_type", "lost"),
    [
        ("INT32", set()),
        ("INT64", set()),
        ("BYTE_ARRAY", {BOUNDS}),
        ("FIXED_LEN_BYTE_ARRAY", {BOUNDS}),
        ("", {BOUNDS}),
    ],
)
def test_decimals_of_parquet_rs_are_believed_where_they_are_integers(
    physical_type: str, lost: set[Statistic]
) -> None:
    assert distrusted("parquet-rs version 59.0.0", "decimal", physical_type=physical_type) == lost


def test_the_worst_of_several_writers_decides() -> None:
    facts = ColumnStatistics(0, 1, 2, True, frozenset({1, 2}))

    assert without_distrusted(facts, ("Trino 390", "parquet-go"), "int") == ColumnStatistics(
        values=frozenset({1, 2})
    )
    assert without_distrusted(facts, ("",), "int") == ColumnStatistics(0)
    assert not counts_rows(("spark 4.0.1", "presto"))


@pytest.mark.parametrize("one", WRONG, ids=lambda one: f"{one.writer[:14]} {one.source.rpartition('/')[2]}")
def test_every_mistake_has_a_source_and_evidence(one: Any) -> None:
    assert one.source.startswith(("https://github.com/", "https://issues.apache.org/"))
    assert one.evidence


HEAD = """
apiVersion: v3.2.0
kind: DataContract
id: shop
version: 1.0.0
status: active
servers: [{server: lake, type: local, path: '${LAKE}', format: parquet}]
schema:
  - name: orders
    quality: [{metric: rowCount, mustBeGreaterThan: 0}]
    properties:
      - {name: v, logicalType: integer, required: true, enum: [{value: 1}, {value: 2}],
         logicalTypeOptions: {maximum: 2}}
"""


def proven(spark: SparkSession, lake: Path) -> set[str]:
    """The checks that statistics prove, after their results were compared with those of a scan."""
    parsed = parse(HEAD.encode(), "shop.odcs.yaml")
    assert parsed.contract is not None, parsed.findings
    data = locate(parsed.contract, parsed.contract.objects[0], None, anywhere(LAKE=str(lake)))

    def by(check_name: str, **more: Any) -> Report:
        return check(Request(parsed.contract, data, spark=spark, rules=(check_name,), **more))  # type: ignore[arg-type]

    found = set()
    for name in ("row_count", "required", "bounds", "enum"):
        report = by(name, optimizations=frozenset({Optimization.STATISTICS}))
        assert report.results == by(name, optimizations=NONE).results
        found |= {name} if report.from_statistics else set()
    return found


def named(path: Path, writer: str | None) -> None:
    def change(fields: dict[int, footer.Node]) -> None:
        if writer is None:
            del fields[footer.CREATED_BY]
        else:
            fields[footer.CREATED_BY] = footer.raw(writer.encode())

    footer.rewritten(path, change)


_FILES: dict[str, tuple[str | None, set[str]]] = {
    "a writer without mistakes": (
        "parquet-cpp-arrow version 26.0.1",
        {"row_count", "required", "bounds", "enum"},
    ),
    "no name": (None, {"row_count", "required"}),
    "an empty name": ("", {"row_count", "required"}),
    "wrong bounds": ("parquet-cpp-arrow version 9.0.0", {"row_count", "required", "enum"}),
    "wrong counts of NULL": ("parquet-go version 1", {"row_count", "bounds", "enum"}),
    # Every result says of how many rows.
    "wrong row counts": ("presto", set()),
}


@pytest.mark.spark
@pytest.mark.parametrize(("writer", "checks"), _FILES.values(), ids=_FILES)
def test_a_file_proves_what_its_writer_is_believed(
    spark: SparkSession, tmp_path: Path, writer: str | None, checks: set[str]
) -> None:
    pq.write_table(pa.table({"v": pa.array([1, 2, 1], pa.int64())}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"v": pa.array([1, 2, 1], pa.int64())}), tmp_path / "b.parquet")
    named(tmp_path / "b.parquet", writer)

    assert proven(spark, tmp_path) == checks


def test_bounds_of_decimals_are_used_by_how_they_are_stored(tmp_path: Path) -> None:
    column = pa.array([Decimal("-1.00"), Decimal("2.00")], pa.decimal128(9, 2))
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"v": column}), path, store_decimal_as_integer=True)
    requested = (RequestedColumn(Column(("v",)), DataType("decimal", (9, 2)), False),)

    def least(writer: str) -> object:
        named(path, writer)
        with pa.OSFile(str(path)) as source:
            return read_statistics(source, str(path), requested).statistics_of(Column(("v",))).least

    assert least("parquet-rs version 59.0.0") == Decimal("-1.00")
    assert least("hyparquet") is None


@pytest.mark.spark
def test_polars_names_itself_with_its_version(spark: SparkSession, tmp_path: Path) -> None:
    pl.DataFrame({"v": [1, 2, 1]}).write_parquet(tmp_path / "a.parquet")

    assert proven(spark, tmp_path) >= {"row_count", "required", "bounds"}


ALONE = """
apiVersion: v3.2.0
kind: DataContract
id: shop
version: 1.0.0
status: active
servers: [{server: lake, type: local, path: '${LAKE}', format: parquet}]
schema:
  - name: orders
    properties: [{name: v, logicalType: integer, logicalTypeOptions: {maximum: 9}}]
"""


@pytest.mark.spark
def test_a_scan_does_not_pass_over_rows_that_their_bounds_exclude(
    spark: SparkSession, tmp_path: Path
) -> None:
    pq.write_table(pa.table({"v": pa.array([1, 99], pa.int64())}), tmp_path / "a.parquet")

    def lie(fields: dict[int, footer.Node]) -> None:
        fields[footer.CREATED_BY] = footer.raw(b"parquet-cpp-arrow version 9.0.0")
        for told in footer.statistics(fields):
            told[footer.MAX] = told[footer.OLD_MAX] = footer.raw((1).to_bytes(8, "little"))

    footer.rewritten(tmp_path / "a.parquet", lie)
    parsed = parse(ALONE.encode(), "shop.odcs.yaml")
    assert parsed.contract is not None, parsed.findings
    data = locate(parsed.contract, parsed.contract.objects[0], None, anywhere(LAKE=str(tmp_path)))

    report = check(Request(parsed.contract, data, spark=spark, rules=("bounds",)))

    assert [result.observed for result in report.failed] == ["1 of 2 rows"]
