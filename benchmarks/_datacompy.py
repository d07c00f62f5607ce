"""Compare two Parquet tables with datacompy and print the CPU seconds: a child of reconcile.py.

`python _datacompy.py LEFT RIGHT KEY SETTINGS`, with Spark's settings as JSON, in an environment that has
datacompy. The first comparison warms Spark up, and is not counted.
"""

from __future__ import annotations

import json
import sys

from spark import machine


def main() -> int:
    import datacompy  # type: ignore[import-not-found]
    from pyspark.sql import SparkSession

    left, right, key, settings = sys.argv[1:]
    builder = SparkSession.builder.master("local[*]")
    for name, value in json.loads(settings).items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    for _ in range(2):
        before = machine.cpu_seconds()
        frames = [spark.read.parquet(path) for path in (left, right)]
        # It fails for dates, since it casts them to a number: it has to compare a column less.
        frames = [frame.drop(*(name for name, kind in frame.dtypes if kind == "date")) for frame in frames]
        report = datacompy.SparkSQLCompare(spark, *frames, join_columns=[key]).report()
        spent = machine.cpu_seconds() - before
    print(json.dumps({"seconds": spent, "report": report}))
    spark.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
