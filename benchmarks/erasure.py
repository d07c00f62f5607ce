"""Search for the keys of people in a lake: bytes that are not read, growth, and a plain semi-join on Spark.

The lake has the shape that Adobe describes: the rows of a person are in under 2 % of the files, in no order,
so that bounds prove nothing. It exists with and without Bloom filters. A search counts the bytes that it
reads by means; every row of a key must be found, in each batch of keys.
"""

from __future__ import annotations

import random
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq
from _report import arguments, finish

from dq.operations.erasure import FindErasureOutcome, bytes_by_means, find_erasure

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS, QUICK_ROWS = 18_000_000, 600_000
FILES, QUICK_FILES = 360, 100
BATCHES = (1, 10, 100, 1_000, 10_000)
RUNS = 2
T = TypeVar("T")
# The rows of a person, all in one or two files.
ROWS_PER_PERSON = 4
CONTRACT = """\
apiVersion: v3.2.0
kind: DataContract
id: events
version: 1.0.0
status: active
servers: [{{server: lake, type: local, path: {path}, format: parquet}}]
schema:
  - name: events
    properties:
      - name: email
        logicalType: string
        customProperties: [{{property: identity, value: {{name: customer.email, normalize: {normalize}}}}}]
      - {{name: page, logicalType: string}}
      - {{name: referrer, logicalType: string}}
      - {{name: amount, logicalType: number}}
"""


def main() -> int:
    args = arguments(__doc__ or "")
    rows, files = (QUICK_ROWS, QUICK_FILES) if args.quick else (ROWS, FILES)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        people = rows // ROWS_PER_PERSON
        _write_lakes(folder, rows, files)
        metrics: dict[str, float] = {"rows": rows, "files": files}
        for count in BATCHES:
            for lake in ("with", "without"):
                taken, outcome = _timed(lambda lake=lake, count=count: _find(folder, lake, count, people))
                _require_all(outcome, count, lake)
                share = _share_read(outcome)
                metrics[f"{lake} filters, {count:,} keys: seconds"] = taken
                metrics[f"{lake} filters, {count:,} keys: bytes read, share"] = share
                print(f"{lake} filters, {count:,} keys: {bytes_by_means(outcome.search)}")
        metrics["bytes not read with filters, 10 keys"] = (
            1 - metrics["with filters, 10 keys: bytes read, share"]
        )
        metrics |= _against_spark(folder, people)
    goals = {
        "bytes not read with filters, 10 keys": (">", 0.9),
        "times faster than a semi-join, with filters": (">", 5.0),
        "times as slow as a semi-join, without filters": ("<", 1.1),
    }
    return finish(metrics, goals, args)


def _write_lakes(folder: Path, rows: int, files: int) -> None:
    """Write the same files with and without filters; each person's rows are in one or two of them."""
    for lake in ("with", "without"):
        (folder / lake).mkdir()
    per_file = rows // files
    for number in range(files):
        source = random.Random(number)
        people = [
            (number * per_file + at) // ROWS_PER_PERSON * 7_919 % (rows // ROWS_PER_PERSON)
            for at in range(per_file)
        ]
        source.shuffle(people)
        table = pa.table(
            {
                "email": [_email(person) for person in people],
                "page": [f"/articles/{source.randrange(10**9)}" for _ in people],
                "referrer": [f"https://example.com/search?q={source.randrange(10**12)}" for _ in people],
                "amount": [source.random() for _ in people],
            }
        )
        filters = {"bloom_filter_options": {"email": {"ndv": per_file, "fpp": 0.001}}}
        for lake, options in (("with", filters), ("without", {})):
            path = folder / lake / f"part-{number:05}.parquet"
            pq.write_table(table, path, use_dictionary=False, **options)


def _email(person: int) -> str:
    return f"user{person:09}@mail-{person % 97}.example.com"


def _keys(folder: Path, count: int, people: int) -> Path:
    source = random.Random(count)
    path = folder / f"keys-{count}.txt"
    path.write_text("".join(f"{_email(person)}\n" for person in source.sample(range(people), count)))
    return path


def _find(folder: Path, lake: str, count: int, people: int, normalize: str = "exact") -> FindErasureOutcome:
    registry = folder / f"registry-{lake}-{normalize}"
    registry.mkdir(exist_ok=True)
    (registry / "dq-policy.yaml").write_text("profile: default\n")
    (registry / "events.odcs.yaml").write_text(CONTRACT.format(path=folder / lake, normalize=normalize))
    out = tempfile.mkdtemp(dir=folder)
    keys = _keys(folder, count, people)
    return find_erasure(registry, keys=keys, identity="customer.email", out=out, folder=folder)


def _require_all(outcome: FindErasureOutcome, count: int, lake: str) -> None:
    """Raise AssertionError unless every row of every key was found, and all files were searched."""
    assert not outcome.search.gaps, outcome.search.gaps[:3]
    hits = [hit for result in outcome.search.files for hit in result.hits]
    assert outcome.rows == count * ROWS_PER_PERSON, (lake, count, outcome.rows)
    assert len({hit.key for hit in hits}) == count


def _share_read(outcome: FindErasureOutcome) -> float:
    totals = bytes_by_means(outcome.search).values()
    return sum(total["bytes_read"] for total in totals) / sum(total["bytes"] for total in totals)


def _timed(work: Callable[[], T]) -> tuple[float, T]:
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def _against_spark(folder: Path, people: int) -> dict[str, float]:
    """Return how much faster a search is than a semi-join of the same keys, by the best of several runs."""
    from pyspark.sql import SparkSession

    spark = (
        SparkSession.builder.master("local[*]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "4g")
        .config("spark.ui.showConsoleProgress", "false")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    count = 10
    try:
        joins, finds = dict[str, list[float]](), dict[str, list[float]]()
        for _ in range(RUNS):
            for lake in ("with", "without"):
                joins.setdefault(lake, []).append(
                    _timed(lambda lake=lake: _semi_join(spark, folder, lake, _keys(folder, count, people)))[0]
                )
                finds.setdefault(lake, []).append(
                    _timed(lambda lake=lake: _find(folder, lake, count, people))[0]
                )
    finally:
        spark.stop()
    with_filters, without = (min(joins[lake]) / min(finds[lake]) for lake in ("with", "without"))
    return {
        "times faster than a semi-join, with filters": with_filters,
        "times as slow as a semi-join, without filters": 1 / without,
        "seconds of the semi-join": min(joins["without"]),
    }


def _semi_join(spark: SparkSession, folder: Path, lake: str, keys: Path) -> Sequence[object]:
    """Return the rows of keys with their files, as a person would write it."""
    from pyspark.sql.functions import broadcast, input_file_name

    searched = spark.read.text(str(keys)).withColumnRenamed("value", "email")
    events = spark.read.parquet(str(folder / lake)).withColumn("file", input_file_name())
    rows = events.join(broadcast(searched), "email", "left_semi").collect()
    assert rows
    return rows


if __name__ == "__main__":
    sys.exit(main())
