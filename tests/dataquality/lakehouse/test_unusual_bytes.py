"""Bytes as a number of the check `unusual`: those of the current files of Iceberg and Delta tables."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from fakes import lakehouse
from fakes.reach import anywhere

from dq.contracts.yaml.parse import read
from dq.dataquality.answers.sources import ALL, NONE, Optimization
from dq.dataquality.check import check
from dq.dataquality.request import Request
from dq.dataquality.spark.dataset import locate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = lakehouse.MARKS
NOW = dt.datetime(2026, 5, 4, 12, tzinfo=dt.UTC)
UNUSUAL = "{type: custom, engine: dq, implementation: {check: unusual, arguments: {of: [rowCount, bytes]}}}"
CONTRACT = """
apiVersion: v3.2.0
kind: DataContract
id: shop
version: 1.0.0
servers: [{server: lake, type: local, path: '${PLACE}', format: FORM}]
schema:
  - name: orders
    quality: [{metric: rowCount, mustBeGreaterThan: 0}RULE]
    properties:
      - {name: id, logicalType: integer, required: true}
      - {name: day, logicalType: date, partitioned: true, partitionKeyPosition: 1}
"""


class Orders:
    """A table with a partition of two files, one of a single file, and files that no longer count."""

    def __init__(self, spark: SparkSession, form: str, folder: Path) -> None:
        self.spark, self.form = spark, form
        if form == "iceberg":
            warehouse = str(spark.conf.get(f"spark.sql.catalog.{lakehouse.CATALOG}.warehouse"))
            short = f"bytes_{folder.name.replace('-', '_')}"
            self.name, self.path = f"{lakehouse.CATALOG}.shop.{short}", f"{warehouse}/shop/{short}"
        else:
            self.path = str(folder / "orders")
            self.name = f"delta.`{self.path}`"
        self.sql(f"CREATE TABLE {{}} (id INT, day DATE) USING {form} PARTITIONED BY (day)")
        for day, ids in ((1, range(50)), (2, range(9)), (2, range(900)), (3, range(30))):
            self.insert(day, ids)
        # Files of rows that are replaced or deleted do not count.
        self.sql("DELETE FROM {} WHERE day = DATE'2026-05-03'")
        self.sql("DELETE FROM {} WHERE day = DATE'2026-05-01'")
        self.insert(1, range(40))

    def insert(self, day: int, ids: range) -> None:
        rows = self.spark.range(ids.start, ids.stop, 1, 1).selectExpr(
            "CAST(id AS INT) AS id", f"DATE'2026-05-0{day}' AS day"
        )
        rows.createOrReplaceTempView("arrived")
        self.sql("INSERT INTO {} SELECT * FROM arrived")

    def sql(self, statement: str) -> None:
        """Run a statement; `{}` stands for the table."""
        self.spark.sql(statement.replace("{}", self.name))

    def sizes(self) -> dict[str, int]:
        """Bytes by day, as the format itself lists the files."""
        rows = self.spark.table(self.name).selectExpr("input_file_name() AS file").distinct().collect()
        files = [Path(row["file"].removeprefix("file://").removeprefix("file:")) for row in rows]
        days = {file.parent.name.removeprefix("day=") for file in files}
        return {
            day: sum(file.stat().st_size for file in files if file.parent.name == f"day={day}")
            for day in days
        }

    def request(self, *, rule: str, **reading: object) -> Request:
        text = CONTRACT.replace("FORM", self.form).replace("RULE", f", {rule}" if rule else "")
        contract = read(text)
        data = locate(contract, contract.objects[0], "lake", anywhere(PLACE=self.path))
        return Request(contract, data, spark=self.spark, now=NOW, history=(), **reading)  # type: ignore[arg-type]


@pytest.fixture(params=[form for form in ("iceberg", "delta") if form in lakehouse.FORMATS])
def orders(spark: SparkSession, tmp_path: Path, request: pytest.FixtureRequest) -> Orders:
    return Orders(spark, request.param, tmp_path)


def number_of_bytes(request: Request) -> float | None:
    """The bytes that the rule measured."""
    [result] = [result for result in check(request).results if result.check == "unusual"]
    return {group.key[0]: group.value for group in result.groups}["bytes"]


@pytest.mark.parametrize("of", ["[rowCount, bytes]", "[bytes]"])
@pytest.mark.parametrize("optimizations", [ALL, NONE], ids=["all", "none"])
def test_bytes_are_those_of_the_current_files(
    orders: Orders, optimizations: frozenset[Optimization], of: str
) -> None:
    sizes, rule = orders.sizes(), UNUSUAL.replace("[rowCount, bytes]", of)
    request: Callable[..., Request] = lambda **more: orders.request(  # noqa: E731
        rule=rule, rules=("unusual",), optimizations=optimizations, **more
    )

    assert sorted(sizes) == ["2026-05-01", "2026-05-02"]
    for day, size in sizes.items():
        assert number_of_bytes(request(partitions=[{"day": day}])) == size
    assert number_of_bytes(request()) == sum(sizes.values())


@pytest.mark.parametrize("partitions", [[{"day": "2026-05-02"}], None], ids=["partition", "table"])
def test_bytes_cost_no_pass(orders: Orders, partitions: list[dict[str, str]] | None) -> None:
    """On Delta, the files of a partition are listed by a job of their own, which reads its log."""
    context, jobs = orders.spark.sparkContext, []
    listing = int(orders.form == "delta" and partitions is not None)
    for attempt, rule in enumerate(("", "", UNUSUAL)):
        context.setJobGroup(group := f"bytes {orders.path} {attempt}", "")
        report = check(orders.request(rule=rule, partitions=partitions))
        jobs.append((len(context.statusTracker().getJobIdsForGroup(group)), report.passes))

    # The first one may do what the others find done.
    assert jobs[2] == (jobs[1][0] + listing, jobs[1][1])
