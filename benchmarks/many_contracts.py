"""Cost of many small tables: all contracts in one Spark application, against one application for each.

Separate runs are measured on a sample, whole processes as a scheduler would start them, and their sum for
all contracts is extrapolated from it: the output says so.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from _report import arguments, finish

from dq.cli.main import run

ROWS = 1_000
HEAD = """\
apiVersion: v3.2.0
kind: DataContract
id: table-{number:03d}
version: 1.0.0
status: active
servers:
  - {{server: lake, type: local, path: '{path}', format: parquet}}
schema:
  - name: table_{number:03d}
    quality: [{{metric: rowCount, mustBeGreaterThan: 0}}]
    properties:
      - name: id_{number}
        logicalType: integer
        physicalType: bigint
        primaryKey: true
        primaryKeyPosition: 1
"""
# What a further column is like: its terms in the contract, and its values.
COLUMNS = (
    ("logicalType: string, required: true, enum: [{value: open}, {value: paid}]", ["open", "paid"]),
    ("logicalType: string, logicalTypeOptions: {pattern: '^[A-Z]+$', maxLength: 9}", ["AB", "C"]),
    ("logicalType: number, physicalType: double, logicalTypeOptions: {minimum: 0}", [0.5, 1e6]),
    ("logicalType: integer, physicalType: bigint, logicalTypeOptions: {multipleOf: 5}", [5, 10]),
    ("logicalType: string, quality: [{metric: nullValues, mustBeLessThan: 1, unit: percent}]", ["x", "y"]),
)


def write(folder: Path, count: int) -> list[Path]:
    """Contracts that differ in their columns, with the data of each; gives the contracts' files."""
    (folder / "contracts").mkdir()
    files = []
    for number in range(count):
        draw = random.Random(number)
        path = folder / "lake" / f"{number:03d}"
        path.mkdir(parents=True)
        text = HEAD.format(number=number, path=path)
        table = {f"id_{number}": pa.array(range(ROWS), pa.int64())}
        for column in range(draw.randint(3, 12)):
            terms, values = draw.choice(COLUMNS)
            text += f"      - {{name: column_{column}_{number}, {terms}}}\n"
            table[f"column_{column}_{number}"] = pa.array([values[row % 2] for row in range(ROWS)])
        pq.write_table(pa.table(table), path / "part-0.parquet")
        files.append(folder / "contracts" / f"table-{number:03d}.odcs.yaml")
        files[-1].write_text(text, "utf-8")
    return files


def together(folder: Path) -> tuple[float, int]:
    """Seconds for one application, from its start, and the number of Spark jobs that it ran."""
    os.environ["DQ_STORE_URL"] = f"sqlite:///{folder / 'together.db'}"
    os.environ["DQ_LAKE_ROOTS"] = str(folder)
    before = time.perf_counter()
    code = run(["check", str(folder / "contracts"), "--all", "--channel", "console"])
    took = time.perf_counter() - before
    assert code == 0, code
    from pyspark.sql import SparkSession

    spark = SparkSession.getActiveSession()
    if spark is None:
        # All was answered without Spark, which was not begun then.
        return took, 0
    # Jobs are numbered from 0, so that the number of one more is the count of those before it.
    spark.sparkContext.setJobGroup("count", "count")
    spark.range(1).collect()
    jobs = min(spark.sparkContext.statusTracker().getJobIdsForGroup("count"))
    spark.stop()
    return took, jobs


def separately(folder: Path, files: list[Path]) -> float:
    """The mean seconds of one process for one contract."""
    environment = {
        **os.environ,
        "DQ_STORE_URL": f"sqlite:///{folder / 'separately.db'}",
        "DQ_LAKE_ROOTS": str(folder),
    }
    dq = str(Path(sys.executable).parent / "dq")
    before = time.perf_counter()
    for file in files:
        subprocess.run(
            [dq, "check", str(file), "--all", "--channel", "console"],
            check=True,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
    return (time.perf_counter() - before) / len(files)


def main() -> int:
    args = arguments(__doc__ or "")
    count, sample = (40, 2) if args.quick else (200, 5)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        files = write(folder, count)
        separate = separately(folder, files[:: count // sample][:sample])
        seconds, jobs = together(folder)
    print(f"{count} contracts; separate runs are measured on {sample} and extrapolated to {count}.")
    metrics = {
        "contracts": float(count),
        "one_application_seconds": seconds,
        "spark_jobs": float(jobs),
        "spark_jobs_per_contract": jobs / count,
        "separate_process_seconds": separate,
        "separate_processes_extrapolated_seconds": separate * count,
        "share_of_separate_runs": seconds / (separate * count),
    }
    return finish(metrics, {"share_of_separate_runs": ("<", 0.2)}, args)


if __name__ == "__main__":
    sys.exit(main())
