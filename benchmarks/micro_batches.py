"""Cost of a check in `foreachBatch`: small batches of a stream, in an existing session.

The session keeps Spark's own settings, 200 shuffle partitions without adaptive execution, which are read
again at the end. The first batch starts all that is started once, and is reported separately. Each batch is
tested by hand as well, with the queries that one would write for the same clauses.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from _report import arguments, finish
from pyspark.sql import DataFrame, SparkSession
from spark import machine

import dq

ROWS = 1_500
SETTINGS = {"spark.sql.shuffle.partitions": "200", "spark.sql.adaptive.enabled": "false"}
CONTRACT = """\
apiVersion: v3.2.0
kind: DataContract
id: events
version: 1.0.0
status: active
schema:
  - name: events
    quality:
      - {metric: rowCount, mustBeGreaterThan: 0}
      - {type: sql, query: "SELECT count(*) FROM {object} WHERE amount > total", mustBe: 0}
      - {metric: duplicateValues, mustBe: 0, arguments: {properties: [user, at]}}
    properties:
      - {name: id, logicalType: integer, required: true, unique: true}
      - {name: user, logicalType: string, required: true, logicalTypeOptions: {pattern: '^u[0-9]+$'}}
      - {name: amount, logicalType: integer, logicalTypeOptions: {minimum: 0}}
      - {name: total, logicalType: integer, required: true}
      - {name: at, logicalType: timestamp, required: true}
"""
# One id stands twice, one amount is below zero.
COLUMNS = (
    "IF(id % 1500 = 7, id - 1, id) AS id",
    "concat('u', id % 97) AS user",
    "IF(id % 1500 = 9, -1, id % 50) AS amount",
    "100L AS total",
    "timestamp_seconds(1700000000 + id) AS at",
)


# Of the properties: what NULL, the pattern, the bound and the rule in SQL are broken by.
WRONG = (
    "id IS NULL", "user IS NULL", "total IS NULL", "at IS NULL", "NOT user RLIKE '^u[0-9]+$'", "amount < 0",
    "amount > total",
)  # fmt: skip


def by_hand(batch: DataFrame) -> int:
    """Number of broken clauses, by one pass for the rows and one for each key, in a task each."""
    row = batch.selectExpr("count(*)", *(f"count_if({wrong})" for wrong in WRONG)).head()
    assert row is not None
    rows, *counts = row
    keys = (("id",), ("user", "at"))
    twice = [batch.select(*key).coalesce(1).groupBy(*key).count().filter("count > 1").count() for key in keys]
    return (rows == 0) + sum(number > 0 for number in (*counts, *twice))


def main() -> int:
    args = arguments(__doc__ or "", batches="how many after the first, by default 10, with --quick 3")
    batches = args.batches or (3 if args.quick else 10)
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    seconds: list[float] = []
    dq_seconds: list[float] = []
    by_hands: list[float] = []
    broken: list[int] = []

    def test(batch: DataFrame, _: int) -> None:
        began, cpu = time.monotonic(), machine.cpu_seconds()
        report = dq.check(CONTRACT, batch)
        seconds.append(time.monotonic() - began)
        dq_seconds.append(machine.cpu_seconds() - cpu)
        broken.append(len(report.failed))
        cpu = machine.cpu_seconds()
        assert by_hand(batch) == 2
        by_hands.append(machine.cpu_seconds() - cpu)

    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "events"
        for number in range(batches + 1):
            rows = spark.range(number * ROWS, (number + 1) * ROWS, 1, 2).selectExpr(*COLUMNS)
            rows.write.mode("append").parquet(str(source))
        schema = spark.read.parquet(str(source)).schema
        stream = spark.readStream.schema(schema).option("maxFilesPerTrigger", 2).parquet(str(source))
        query = (
            stream.writeStream.foreachBatch(test)
            .option("checkpointLocation", str(Path(folder) / "state"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
    unchanged = all(spark.conf.get(name) == value for name, value in SETTINGS.items())
    spark.stop()
    assert broken == [2] * (batches + 1), broken
    metrics = {
        "batches of 1,500 rows after the first": float(len(seconds) - 1),
        "the first, seconds": seconds[0],
        "median of the others, seconds": median(seconds[1:]),
        "slowest of the others, seconds": max(seconds[1:]),
        "median of the others, CPU seconds": median(dq_seconds[1:]),
        "by hand, median of the others, CPU seconds": median(by_hands[1:]),
        "CPU of the others / by hand": median(dq_seconds[1:]) / median(by_hands[1:]),
        "settings as they were": float(unchanged),
    }
    goals = {"CPU of the others / by hand": ("<", 3.3), "settings as they were": (">", 0.5)}
    return finish(metrics, goals, args)


if __name__ == "__main__":
    sys.exit(main())
