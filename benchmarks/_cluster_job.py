"""The program of a Spark driver: checks of tables, in the session that spark-submit or the caller set up.

    _cluster_job.py CONTRACTS OUTPUT [READING …]

CONTRACTS and OUTPUT are files, on S3 or local. The first is a JSON object of contracts (YAML) by name. The
second gets the results by table and reading, each with its notes and seconds; and the tasks by executor.
"""

from __future__ import annotations

import json
import sys
import time
import urllib.request
from collections import defaultdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pyarrow import fs
from pyspark.sql import SparkSession

from dq.contracts.access.access_policy import build_access_policy
from dq.contracts.yaml.parse import parse
from dq.dataquality.answers.sources import ALL, NONE
from dq.dataquality.check import check
from dq.dataquality.request import Request
from dq.dataquality.spark.dataset import locate

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
READINGS = {"all": ALL, "scan": NONE}
Json = dict[str, Any]


def main(contracts: str, output: str, *readings: str) -> None:
    spark = SparkSession.builder.appName("checks").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    system, path = _located(contracts)
    with system.open_input_file(path) as stream:
        documents = json.loads(stream.read())
    tables = {
        name: {reading: _check(spark, text, reading) for reading in readings or READINGS}
        for name, text in documents.items()
    }
    _write(spark, output, json.dumps({"tables": tables, "executors": _tasks(spark)}, default=str).encode())
    spark.stop()


def _check(spark: SparkSession, text: str, reading: str) -> Json:
    contract = parse(text.encode(), "random.odcs.yaml").contract
    assert contract is not None
    begun = time.monotonic()
    try:
        reach = build_access_policy(Path("/"), ["/", "s3://lake", "s3://yarn", "hdfs://master:9000"])
        data = locate(contract, contract.objects[0], None, reach)
        optimizations = READINGS[reading]
        report = check(
            Request(contract, data, spark=spark, now=NOW, optimizations=optimizations, tasks_from=0)
        )
    except Exception as error:  # noqa: BLE001  # a failed check is an answer
        return {"error": f"{type(error).__name__}: {error}"}
    return {
        "seconds": time.monotonic() - begun,
        "notes": report.notes,
        "proven": report.from_statistics,
        "results": [
            [result.clause, result.status.value, result.value, result.observed, list(result.samples)]
            for result in report.results
        ],
    }


def _tasks(spark: SparkSession) -> dict[str, dict[str, float]]:
    """Return the tasks of each executor, with their CPU seconds in the JVM, from the driver's own page."""
    context = spark.sparkContext
    if context.uiWebUrl is None or context.master == "yarn":
        return {}
    page = f"{context.uiWebUrl}/api/v1/applications/{context.applicationId}"
    totals: dict[str, dict[str, float]] = defaultdict(lambda: {"tasks": 0, "failed": 0, "CPU s": 0.0})
    for stage in _get(f"{page}/stages"):
        for task in _get(f"{page}/stages/{stage['stageId']}/{stage['attemptId']}/taskList?length=10000"):
            total = totals[f"{task['host']} #{task['executorId']}"]
            total["tasks"] += 1
            total["failed"] += task["status"] in ("FAILED", "KILLED")
            total["CPU s"] += task.get("taskMetrics", {}).get("executorCpuTime", 0) / 1e9
    return totals


def _get(address: str) -> list[Json]:
    with urllib.request.urlopen(address) as answer:
        rows: list[Json] = json.loads(answer.read())
        return rows


def _write(spark: SparkSession, address: str, content: bytes) -> None:
    if "://" not in address:
        Path(address).write_bytes(content)
        return
    # By Hadoop's client: Arrow uploads with checksums between the chunks, which moto keeps as content.
    context = spark.sparkContext
    assert context._jvm is not None
    path = context._jvm.org.apache.hadoop.fs.Path(address.replace("s3://", "s3a://", 1))
    stream = path.getFileSystem(context._jsc.hadoopConfiguration()).create(path)
    stream.write(content)
    stream.close()


def _located(address: str) -> tuple[fs.FileSystem, str]:
    system, path = fs.FileSystem.from_uri(address if "://" in address else f"file://{address}")
    return system, path


if __name__ == "__main__":
    main(*sys.argv[1:])
