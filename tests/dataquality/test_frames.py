"""Frames of pandas, polars and Arrow on Spark, batches of a stream, and what is refused with its mend."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import dq
from dq.contracts.model import Contract, SchemaObject
from dq.contracts.outcome import UsageError
from dq.contracts.yaml.parse import parse
from dq.dataquality.request import as_spark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

CONTRACT = """
apiVersion: v3.2.0
kind: DataContract
id: shop
version: 1.0.0
schema:
  - name: orders
    quality: [{metric: rowCount, mustBeGreaterThan: 0}]
    properties:
      - {name: id, logicalType: integer, required: true, unique: true}
      - {name: state, logicalType: string, logicalTypeOptions: {pattern: '^[a-z]+$'}}
      - {name: place, logicalType: object, properties: [{name: zip, logicalType: string}]}
"""


def contract() -> Contract:
    made = parse(CONTRACT.encode(), "shop.odcs.yaml").contract
    assert isinstance(made, Contract)
    return made


def orders() -> SchemaObject:
    return contract().objects[0]


def types(frame: Any) -> dict[str, str]:
    return {field.name: field.dataType.simpleString() for field in frame.schema.fields}


TIME = dt.datetime(2024, 7, 1, 12)  # noqa: DTZ001 - civil time
ZONED = pd.Series([pd.Timestamp("2024-07-01 12:00", tz="Europe/Berlin"), None])
PANDAS: dict[str, tuple[Any, str, list[object]]] = {
    "whole": (pd.array([1, None], dtype="Int64"), "bigint", [1, None]),
    "floats hide gaps": ([1.5, float("nan")], "double", [1.5, None]),
    "category": (pd.Categorical(["a", None]), "string", ["a", None]),
    "civil time": (np.array([TIME, None], dtype="datetime64[ns]"), "timestamp_ntz", [TIME, None]),
    "day": ([dt.date(1, 1, 1), None], "date", [dt.date(1, 1, 1), None]),
    "time of the day": ([dt.time(7, 30), None], "string", ["07:30:00.000000", None]),
    "decimal": ([Decimal("1.50"), None], "decimal(3,2)", [Decimal("1.50"), None]),
    "unsigned": (np.array([2**64 - 1, 0], dtype="uint64"), "decimal(20,0)", [Decimal(2**64 - 1), Decimal(0)]),
    "list": ([[1], None], "array<bigint>", [[1], None]),
    "flag": ([True, None], "boolean", [True, None]),
}


def test_a_frame_of_pandas_keeps_its_types_and_its_gaps(spark: SparkSession) -> None:
    frame = pd.DataFrame({name: column for name, (column, _, _) in PANDAS.items()}, index=[7, 7])

    made = as_spark(frame, orders(), spark)

    assert types(made) == {name: kind for name, (_, kind, _) in PANDAS.items()}
    first, second = made.collect()
    assert {name: [first[name], second[name]] for name in PANDAS} == {
        name: values for name, (_, _, values) in PANDAS.items()
    }


@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_an_instant_is_one_whatever_the_sessions_zone_is(spark: SparkSession, zone: str) -> None:
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        made = as_spark(pd.DataFrame({"at": ZONED, "civil": [TIME, None]}), orders(), spark)
        seconds = made.selectExpr("unix_seconds(at)", "CAST(civil AS STRING)").collect()[0]
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)

    assert types(made) == {"at": "timestamp", "civil": "timestamp_ntz"}
    assert tuple(seconds) == (1_719_828_000, "2024-07-01 12:00:00")


def test_polars_and_arrow_tell_nan_from_null(spark: SparkSession) -> None:
    polars = pl.DataFrame(
        {"x": [1.0, float("nan"), None], "c": pl.Series(["a", "b", None], dtype=pl.Categorical)}
    )
    arrow = pa.table({"x": pa.array([1.0, float("nan"), None]), "c": pa.array(["a", "b", None])})

    for frame in (polars, polars.lazy(), arrow, arrow.to_batches()[0]):
        made = as_spark(frame, orders(), spark)
        assert types(made) == {"x": "double", "c": "string"}
        assert [str(row.x) for row in made.collect()] == ["1.0", "nan", "None"]
        assert [row.c for row in made.collect()] == ["a", "b", None]


def test_a_column_without_values_has_the_type_that_is_promised(spark: SparkSession) -> None:
    gaps = pd.DataFrame({"id": [None, None], "place": [None, None], "other": [None, None]})
    empty = pd.DataFrame({"id": [], "state": []})

    made, none = (as_spark(frame, orders(), spark) for frame in (gaps, empty))

    assert types(made) == {"id": "bigint", "place": "struct<zip:string>", "other": "string"}
    assert types(none) == {"id": "bigint", "state": "string"}
    assert none.count() == 0


WHOLE = {"id": pd.array([1, 2, 2], dtype="Int64"), "state": ["open", "OPEN", None], "place": [None] * 3}


@pytest.mark.parametrize("make", [pd.DataFrame, lambda data: pl.DataFrame(data | {"id": [1, 2, 2]})])
def test_the_verdict_is_that_of_the_same_rows_on_spark(spark: SparkSession, make: Any) -> None:
    report = dq.check(contract(), make(WHOLE), spark=spark)
    good, bad = dq.split(contract(), make(WHOLE), spark=spark)

    failed = {(one.property, one.check): one.value for one in report.failed}
    assert failed == {("id", "unique"): 1.0, ("state", "pattern"): 1.0}
    assert ([row.id for row in good.collect()], sorted(row.id for row in bad.collect())) == ([1], [2, 2])


REFUSED: dict[str, tuple[Any, str]] = {
    "no frame": ([1, 2], "builtins.list is not a supported frame type"),
    "nothing": (None, "builtins.NoneType is not a supported frame"),
    "a name twice": (pd.DataFrame([[1, 2]], columns=["id", "id"]), "cannot distinguish: 'id'"),
    "but for case": (pd.DataFrame({"id": [1], "ID": [2]}), "cannot distinguish: 'ID', 'id'"),
    "two types": (pd.DataFrame({"id": [1, "x"]}), "Conversion failed for column id"),
    "an index": (pd.DataFrame({"id": [1], "state": ["a"]}).set_index("id"), "id is the index of the frame"),
    "no columns": (pd.DataFrame(index=range(3)), "the frame has no columns"),
    "levels": (pd.DataFrame({("id", "a"): [1]}), "multi-level columns"),
    "lengths of time": (pd.DataFrame({"id": pd.to_timedelta(["1d"])}), "column 'id' is duration[ns]"),
}  # fmt: skip


@pytest.mark.parametrize(("frame", "said"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_taken_is_refused_with_its_reason(spark: SparkSession, frame: Any, said: str) -> None:
    with pytest.raises(UsageError) as raised:
        dq.check(contract(), frame, spark=spark)

    assert said in raised.value.message
    assert raised.value.hint


@pytest.fixture
def as_spark_ships(spark: SparkSession) -> Iterator[dict[str, str]]:
    """The session with the settings that Spark has by itself, and no adaptive execution."""
    settings = {"spark.sql.shuffle.partitions": "200", "spark.sql.adaptive.enabled": "false"}
    before = {name: spark.conf.get(name) for name in settings}
    for name, value in settings.items():
        spark.conf.set(name, value)
    yield settings
    for name, value in before.items():
        spark.conf.set(name, value)


def test_a_stream_is_refused_and_its_batches_take_few_tasks(
    spark: SparkSession, tmp_path: Path, as_spark_ships: dict[str, str]
) -> None:
    rows = spark.range(0, 1_500, 1, 2).selectExpr(
        "IF(id = 7, 6, id) AS id", "'open' AS state", "named_struct('zip', 'a') AS place"
    )
    rows.write.parquet(str(tmp_path / "in"))
    stream = spark.readStream.schema(rows.schema).parquet(str(tmp_path / "in"))
    told: list[tuple[int, int, tuple[Any, ...]]] = []

    def test(batch: DataFrame, _: int) -> None:
        context = batch.sparkSession.sparkContext
        context.setJobGroup("batch", "batch")
        report = dq.check(contract(), batch)
        jobs = context.statusTracker().getJobIdsForGroup("batch")
        stages = [stage for job in jobs for stage in context.statusTracker().getJobInfo(job).stageIds]
        tasks = sum(
            info.numTasks for stage in stages if (info := context.statusTracker().getStageInfo(stage))
        )
        told.append((len(jobs), tasks, tuple(one.samples for one in report.failed)))

    with pytest.raises(UsageError, match="a streaming frame is unbounded") as raised:
        dq.check(contract(), stream)
    query = stream.writeStream.foreachBatch(test).option("checkpointLocation", str(tmp_path / "state"))
    query.trigger(availableNow=True).start().awaitTermination(120)

    assert "foreachBatch" in raised.value.hint
    ((jobs, tasks, samples),) = told
    assert samples == (({"id": "6", "count": 2},),)
    assert (jobs, tasks < 20) == (3, True)
    assert {name: spark.conf.get(name) for name in as_spark_ships} == as_spark_ships


def test_the_example_publishes_the_good_rows_of_each_batch(spark: SparkSession, tmp_path: Path) -> None:
    from dq.examples.foreach_batch import publish

    file, schema = tmp_path / "shop.odcs.yaml", "id bigint, state string, place struct<zip: string>"
    file.write_text(CONTRACT)
    places = {name: str(tmp_path / name) for name in ("in", "good", "bad", "state")}
    rows = [(1, "open", None), (2, "open", None), (2, "paid", None)]
    spark.createDataFrame(rows, schema).coalesce(1).write.parquet(places["in"])
    stream = spark.readStream.schema(schema).parquet(places["in"])

    publish(stream, file, places["good"], places["bad"], places["state"]).awaitTermination(120)

    assert [row.id for row in spark.read.parquet(places["good"]).collect()] == [1]
    assert sorted(row.state for row in spark.read.parquet(places["bad"]).collect()) == ["open", "paid"]
