"""`dq.gate`: what goes on, what stays behind, and what no row can be blamed for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd
import pytest

import dq
from dq.contracts.outcome import ReadError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

ORDERS = """\
apiVersion: v3.2.0
kind: DataContract
id: orders
version: 1.0.0
status: active
schema:
  - name: orders
    customProperties: [{property: dataset, vendor: dq, value: {additionalColumns: forbid}}]
    properties:
      - {name: id, logicalType: integer, primaryKey: true, primaryKeyPosition: 1}
      - {name: state, logicalType: string, enum: [{value: open}, {value: paid}]}
      - {name: paid, logicalType: number, logicalTypeOptions: {minimum: 0}}
    quality:
      - {id: enough, metric: rowCount, mustBeGreaterThan: 2}
"""
DDL = "id bigint, state string, paid double"
GOOD = [(1, "open", 1.0), (2, "paid", None), (3, None, 0.0)]
BAD = [(4, "lost", 1.0), (5, "open", -1.0), (6, "open", 1.0), (6, "paid", 2.0), (None, "lost", -5.0)]


def frame(spark: SparkSession, rows: list[tuple[object, ...]], ddl: str = DDL) -> DataFrame:
    return spark.createDataFrame(rows, ddl)


def ids(rows: DataFrame) -> list[int | None]:
    return sorted((row["id"] for row in rows.collect()), key=str)


def test_rows_part_by_what_each_breaks_and_all_of_a_repeated_key_are_bad(spark: SparkSession) -> None:
    good, bad, report = dq.gate(frame(spark, GOOD + BAD), ORDERS)

    assert (ids(good), good.columns) == ([1, 2, 3], ["id", "state", "paid"])
    assert ids(bad) == [4, 5, 6, 6, None]
    assert {row["id"]: len(row["_dq_rules"]) for row in bad.collect()} == {4: 1, 5: 1, 6: 1, None: 3}
    assert {one.check for one in report.failed} == {"enum", "bounds", "primary_key"}
    with pytest.raises(dq.Violated, match="4 check"):
        report.raise_for_status()


def test_every_row_is_on_one_side_whatever_it_holds(spark: SparkSession) -> None:
    nan = float("nan")
    rows = [*GOOD, *BAD, *BAD, (7, "", nan), (8, "öpen", -0.0), (9, "open\n", float("-inf")), (None,) * 3]
    everything = frame(spark, rows)

    good, bad, _ = dq.gate(everything, ORDERS)

    assert good.unionByName(bad.drop("_dq_rules")).exceptAll(everything).count() == 0
    assert good.count() + bad.count() == len(rows)
    # What went through keeps the contract by itself.
    dq.check(ORDERS, good).raise_for_status()


def test_what_bad_rows_explain_does_not_stop_the_good_ones(spark: SparkSession) -> None:
    gated = dq.gate(frame(spark, GOOD + BAD), ORDERS)

    gated.raise_for_status()


def test_what_no_row_can_be_blamed_for_leaves_the_rows_and_is_raised(spark: SparkSession) -> None:
    gated = dq.gate(frame(spark, [(1, "open", 1.0), (2, "lost", 1.0)]), ORDERS)

    assert (ids(gated.good), ids(gated.bad)) == ([1], [2])
    with pytest.raises(dq.Violated, match=r"1 check\(s\) failed: orders.*row") as raised:
        gated.raise_for_status()
    assert "lost" not in str(raised.value)


@pytest.mark.parametrize(
    ("columns", "said"),
    [("id bigint, state string, paid double, extra string", "extra"), ("id bigint, state string", "paid")],
    ids=["a column too many", "a column too few"],
)
def test_a_column_that_is_wrong_is_nobodys_row(spark: SparkSession, columns: str, said: str) -> None:
    rows = [(number, "open", 1.0, "x")[: columns.count(",") + 1] for number in range(3)]

    with pytest.raises((dq.Violated, ReadError), match=said):
        dq.gate(frame(spark, rows, columns), ORDERS).raise_for_status()


def test_nothing_is_computed_before_it_is_used_and_each_use_is_one_pass(counted: DataFrame) -> None:
    context = counted.sparkSession.sparkContext

    def jobs(group: str) -> int:
        return len(context.statusTracker().getJobIdsForGroup(group))

    context.setJobGroup("gate", "gate")
    good, bad, report = dq.gate(counted, ORDERS)
    context.setJobGroup("good", "good")
    good.write.format("noop").mode("overwrite").save()
    context.setJobGroup("bad", "bad")
    bad.write.format("noop").mode("overwrite").save()

    # The values, and the keys; without broken keys no pass groups them again.
    assert report.passes == 2
    # One more shows rows that break a clause.
    assert jobs("gate") <= report.passes + 1
    assert (jobs("good"), jobs("bad")) == (1, 1)


@pytest.fixture
def counted(spark: SparkSession) -> Iterator[DataFrame]:
    yield frame(spark, [*GOOD, (4, "lost", 1.0)])
    spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)


def test_a_frame_of_pandas_comes_back_as_two_of_spark(spark: SparkSession) -> None:
    rows = pd.DataFrame({"id": [1, 2, 3], "state": ["open", "paid", "lost"], "paid": [1.0, None, 2.0]})

    good, bad, _ = dq.gate(rows, ORDERS)

    assert (ids(good), ids(bad)) == ([1, 2], [3])


def test_where_a_clause_cannot_be_measured_nobody_knows_what_is_good(spark: SparkSession) -> None:
    linked = ORDERS.replace("name: paid,", "name: paid, relationships: [{to: customers.id}],") + (
        "  - name: customers\n    properties:\n      - {name: id, logicalType: number}\n"
    )

    with pytest.raises(ReadError, match="no data of 'customers' was given"):
        dq.gate(frame(spark, GOOD), linked, "orders")


def test_a_stream_and_a_name_of_ours_are_refused(spark: SparkSession) -> None:
    stream = spark.readStream.format("rate").load()

    with pytest.raises(UsageError, match="streaming frame is unbounded"):
        dq.gate(stream, ORDERS)
    with pytest.raises(UsageError, match="column '_dq_rules'"):
        dq.gate(frame(spark, [(1, "open", 1.0, "x")], f"{DDL}, _dq_rules string"), ORDERS)
