"""Ways to read less that are closed are said aloud: a cache, more than files, tasks without dq."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dq.contracts.model import Contract
from dq.contracts.yaml.parse import parse
from dq.dataquality.answers.sources import NONE
from dq.dataquality.check import check
from dq.dataquality.request import Request

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
HEAD = """
apiVersion: v3.2.0
kind: DataContract
id: shop
version: 1.0.0
status: active
schema:
  - name: orders
    properties: [{name: v, logicalType: integer, unique: true, logicalTypeOptions: {maximum: 9}}]
"""


@pytest.fixture
def promised() -> Contract:
    parsed = parse(HEAD.encode(), "shop.odcs.yaml")
    assert parsed.contract is not None, parsed.findings
    return parsed.contract


def write(lake: Path, *values: int) -> Path:
    pq.write_table(pa.table({"v": pa.array(values, pa.int64())}), lake / "part.parquet")
    return lake


def test_rows_of_a_cache_are_judged_and_not_the_files_that_replaced_theirs(
    spark: SparkSession, tmp_path: Path, promised: Contract
) -> None:
    frame = spark.read.parquet(str(write(tmp_path, 1, 99))).cache()
    try:
        frame.count()
        write(tmp_path, 1, 2)

        report = check(Request(promised, frame, tasks_from=0))
        # The same plan under another name is answered from the same cache.
        again = check(Request(promised, spark.read.parquet(str(tmp_path)), tasks_from=0))
    finally:
        frame.unpersist()

    assert [one.observed for one in report.failed] == ["1 of 2 rows"]
    assert (report.from_statistics, again.from_statistics) == (0, 0)
    assert ["cache" in note for note in report.notes] == [True]
    assert report.as_dict()["notes"] == list(report.notes)


def test_a_frame_that_is_more_than_files_says_that_all_is_read(
    spark: SparkSession, tmp_path: Path, promised: Contract
) -> None:
    frame = spark.read.parquet(str(write(tmp_path, 1, 2)))

    plain = check(Request(promised, frame))
    filtered = check(Request(promised, frame.where("v < 9")))
    kept = check(Request(promised, frame.localCheckpoint()))
    scanned = check(Request(promised, frame, optimizations=NONE))

    assert (plain.notes, scanned.notes) == ((), ())
    assert [note.split(":")[0] for note in (*filtered.notes, *kept.notes)] == ["All rows are read"] * 2
    assert (plain.from_statistics, filtered.from_statistics, kept.from_statistics) == (1, 0, 0)


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """A Python without dq, as a session that others began may give it to Spark's tasks."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "bare"], check=True)
    return tmp_path / "bare" / "bin" / "python"


def test_tasks_of_a_python_without_dq_are_not_begun_and_the_report_says_so(
    spark: SparkSession, tmp_path: Path, promised: Contract, bare: Path
) -> None:
    context = spark.sparkContext
    (tmp_path / "lake").mkdir()
    frame = spark.read.parquet(str(write(tmp_path / "lake", 1, 1, 2)))
    good = check(Request(promised, frame, tasks_from=0))
    before, context.pythonExec = context.pythonExec, str(bare)
    try:
        report = check(Request(promised, frame, tasks_from=0))
    finally:
        context.pythonExec = before

    assert good.notes == ()
    assert report.results == good.results
    (note,) = report.notes
    assert note.startswith(f"Spark scans: the Python of Spark's tasks ({bare}) has no dq.")
    assert f"PYSPARK_PYTHON={sys.executable}" in note
