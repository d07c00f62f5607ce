"""Retention of snapshots and files: on real tables, from their logs and listings."""

from __future__ import annotations

import datetime as dt
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from fakes import lakehouse
from fakes.command import Place
from pyarrow import parquet

import dq
from dq.contracts.outcome import ReadError
from dq.dataquality.answers.table_age import oldest_instant
from dq.dataquality.clauses.clause import micros_of
from dq.dataquality.model.metric import TableAge

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NOW = dt.datetime(2026, 11, 29, 12, tzinfo=dt.UTC)
CONTRACT = """\
apiVersion: v3.2.0
kind: DataContract
id: orders
version: 1.0.0
status: active
servers:
  - {server: lake, type: local, path: orders, format: FORMAT}
schema:
  - name: orders
    properties:
      - {name: id, logicalType: integer}
slaProperties:
  - id: kept
    property: retention
    value: LENGTH
    unit: d
    element: orders
    customProperties:
      - {property: retention, vendor: dq, value: TERMS}
"""


class Orders(Place):
    """A folder of Parquet files of a given age in days, and a contract with a retention."""

    def write(self, name: str, days: float) -> None:
        path = self.folder / "orders" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        parquet.write_table(pa.table({"id": [1]}), path)
        os.utime(path, ((NOW - dt.timedelta(days=days)).timestamp(),) * 2)

    def contract(self, terms: str, length: int = 30, form: str = "parquet") -> None:
        text = CONTRACT.replace("TERMS", terms).replace("LENGTH", str(length)).replace("FORMAT", form)
        self.put("orders.odcs.yaml", text)

    def result(self) -> tuple[str, str, str]:
        """Status, observed value and source of the retention in `dq check`."""
        ran = self.dq("check", "orders.odcs.yaml", "--as-of", NOW.isoformat(), "--format", "json")
        (report,) = ran.json
        (result,) = [result for result in report["results"] if result["check"] == "retention"]
        return result["status"], result["measure"]["observed"], str(result["answered_by"])


@pytest.fixture
def orders(tmp_path: Path) -> Orders:
    made = Orders(tmp_path)
    made.write("part-0.parquet", 10)
    made.write("part-1.parquet", 3)
    return made


@pytest.mark.parametrize(("terms", "length", "status"), [
    ("{of: files}", 30, "pass"), ("{of: files}", 9, "fail"), ("{of: files, bound: atMost}", 10, "pass"),
    ("{of: files, bound: atLeast}", 9, "pass"), ("{of: files, bound: atLeast}", 11, "fail"),
])  # fmt: skip
def test_the_oldest_file_is_judged_by_the_listing(
    orders: Orders, terms: str, length: int, status: str
) -> None:
    orders.contract(terms, length)

    assert orders.result() == (status, "oldest 10 d", "statistics")


@pytest.mark.parametrize("name", ["_tmp/part-2.parquet", ".hidden.parquet", "_SUCCESS"])
def test_a_hidden_or_orphaned_file_counts(orders: Orders, name: str) -> None:
    orders.contract("{of: files}")
    orders.write(name, 40)

    assert orders.result() == ("fail", "oldest 40 d", "statistics")


def test_a_listing_with_a_link_is_an_error_and_an_empty_folder_has_no_age(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / "part.parquet").symlink_to("/dev/null")

    assert oldest_instant(TableAge.FILE, str(tmp_path / "empty"), "parquet") is None
    for path, form in (("linked", "parquet"), ("gone", "parquet")):
        with pytest.raises(ReadError):
            oldest_instant(TableAge.FILE, str(tmp_path / path), form)
    with pytest.raises(ReadError, match="has no snapshots"):
        oldest_instant(TableAge.SNAPSHOT, str(tmp_path / "empty"), "parquet")
    with pytest.raises(ReadError, match="has no log"):
        oldest_instant(TableAge.SNAPSHOT, str(tmp_path / "empty"), "delta")


def test_a_frame_has_no_files_to_judge(orders: Orders) -> None:
    orders.contract("{of: files}")

    report = dq.sample(orders.folder / "orders.odcs.yaml", orders.folder / "orders/part-0.parquet")

    assert [result for result in report.results if result.check == "retention"] == []


@pytest.mark.parametrize(("terms", "rule"), [
    ("{of: bytes}", "unknown-value"), ("{of: files, atLeast: 3d}", "unknown-key"), ("files", "wrong-type"),
    ("{of: snapshots}", "retention-invalid"), ("{of: files, bound: most}", "unknown-value"),
])  # fmt: skip
def test_malformed_terms_are_findings(orders: Orders, terms: str, rule: str) -> None:
    orders.contract(terms)

    ran = orders.dq("validate", "orders.odcs.yaml", "--format", "json")

    assert rule in {finding["rule"] for finding in ran.json["findings"]}, ran.out


class Table:
    """A table that Spark writes, with the times of its commits."""

    def __init__(self, spark: SparkSession, form: str, folder: Path) -> None:
        self.spark, self.form = spark, form
        name = "age" + folder.name.replace("-", "_")
        home = str(spark.conf.get(f"spark.sql.catalog.{lakehouse.CATALOG}.warehouse"))
        self.path = f"{home}/shop/{name}" if form == "iceberg" else f"{folder}/t"
        self.name = f"{lakehouse.CATALOG}.shop.{name}" if form == "iceberg" else f"delta.`{self.path}`"
        spark.sql(f"CREATE TABLE {self.name} (id BIGINT) USING {form}")
        if form == "iceberg":
            # An Iceberg table begins without a snapshot, a Delta table with a commit.
            self.insert()

    def insert(self) -> None:
        self.spark.sql("INSERT INTO {} VALUES (1)".replace("{}", self.name))

    def oldest(self, of: TableAge) -> int | None:
        return oldest_instant(of, self.path, self.form)


@pytest.mark.spark
@pytest.mark.parametrize("spark", ["lakehouse"], indirect=True, scope="session")
@pytest.mark.parametrize("form", ["delta", "iceberg"])
def test_the_oldest_snapshot_besides_the_current_one_and_the_begin_of_a_shortened_history(
    spark: SparkSession, tmp_path: Path, form: str
) -> None:
    table = Table(spark, form, tmp_path)
    alone = table.oldest(TableAge.SNAPSHOT)
    begin = micros_of(dt.datetime.now(dt.UTC))
    table.insert()

    oldest, complete = table.oldest(TableAge.SNAPSHOT), table.oldest(TableAge.HISTORY)
    if form == "iceberg":
        table.insert()
        expiry = lakehouse.loaded(spark, table.name).expireSnapshots()
        expiry.expireOlderThan(9_999_999_999_999).retainLast(2).commit()
    else:
        table.insert()
        Path(table.path, "_delta_log/00000000000000000000.json").unlink()
    later = table.oldest(TableAge.SNAPSHOT)

    assert alone is None
    assert oldest is not None
    assert oldest < begin
    assert complete is None
    assert later is not None
    assert later > begin
    assert table.oldest(TableAge.HISTORY) == later
