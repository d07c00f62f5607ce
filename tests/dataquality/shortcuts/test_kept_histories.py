"""Random histories of a table: after each deed, a check with what is kept says what a scan of all says.

`benchmarks/incremental.py` takes a hundred of them.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fakes import stores
from fakes.reach import anywhere

from dq.contracts.check_result import Status
from dq.contracts.model import Contract
from dq.contracts.yaml.parse import parse
from dq.dataquality.answers.partition_cache import PartitionCache
from dq.dataquality.answers.sources import ALL, NONE
from dq.dataquality.check import check
from dq.dataquality.report import Report
from dq.dataquality.request import Request
from dq.dataquality.spark.dataset import locate
from dq.store import Store, open_store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
HISTORIES = int(os.environ.get("DQ_HISTORIES", "4"))
STEPS = int(os.environ.get("DQ_HISTORY_STEPS", "3"))
# Each history begins here; another number begins others.
SEED = int(os.environ.get("DQ_HISTORY_SEED", "1"))

SCOPE = "customProperties: [{property: scope, vendor: dq, value: {rows: table}}]"
TEXT = """\
apiVersion: v3.2.0
kind: DataContract
id: shop
version: 1.0.0
servers: [{server: lake, type: local, path: FOLDER, format: parquet}]
schema:
  - name: orders
    quality:
      - {metric: rowCount, mustBeGreaterThan: BOUND, SCOPE}
      - {type: sql, query: "SELECT max(price) FROM {object}", mustBeLessThan: 9, SCOPE}
      - {type: sql, query: "SELECT avg(price) FROM {object}", mustBeLessThan: 5, SCOPE}
      - {type: sql, query: "SELECT count(DISTINCT number) FROM {object}", mustBeLessThan: 7, SCOPE}
      - {type: sql, query: "SELECT count(*) FROM {object} WHERE number > BOUND", mustBe: 0, SCOPE}
    properties:
      - {name: month, logicalType: string, partitioned: true, partitionKeyPosition: 1}
      - name: id
        logicalType: integer
        physicalType: bigint
        required: true
        quality: [{metric: duplicateValues, mustBe: 0, SCOPE}]
      - name: number
        logicalType: integer
        quality: [{metric: duplicateValues, mustBeLessThan: 90, unit: percent, SCOPE}]
      - {name: price, logicalType: number, physicalType: "decimal(9,2)"}
      - name: note
        logicalType: string
        logicalTypeOptions: {pattern: "^[a-z]+$"}
        quality:
          - {metric: nullValues, mustBeLessThan: 4, SCOPE}
          - {metric: duplicateValues, mustBe: 0, SCOPE}
"""
Row = tuple[int | None, int | None, Decimal | None, str | None]


@dataclass
class Lake:
    """A table under way: what is done to it is drawn, and told for whoever has to look into it."""

    folder: Path
    draw: random.Random
    said: list[str] = field(default_factory=list)
    bound: int = 3
    next: int = 0

    @property
    def files(self) -> list[Path]:
        return sorted(self.folder.rglob("*.parquet"))

    def row(self) -> Row:
        draw = self.draw
        self.next += 1
        identity = draw.choice([self.next] * 20 + [1, None])
        note = draw.choice([f"n{self.next}", "abcdefgh"[: draw.randrange(1, 8)], None])
        price = draw.choice([None, Decimal(draw.randrange(1000)).scaleb(-2)])
        return identity, draw.choice([None, *range(8)]), price, note

    def write(self, file: Path, rows: list[Row], number: Any = None, more: bool = False) -> None:
        ids, numbers, prices, notes = zip(*rows, strict=True) if rows else ((), (), (), ())
        columns = {
            "id": pa.array(ids, pa.int64()),
            "number": pa.array(numbers, number or pa.int32()),
            "price": pa.array(prices, pa.decimal128(9, 2)),
            "note": pa.array(notes, pa.string()),
        }
        if more:
            columns["more"] = pa.array([1] * len(rows), pa.int32())
        file.parent.mkdir(exist_ok=True)
        pq.write_table(pa.table(columns), file)
        # Most files are old; one that was just written has not settled.
        if self.draw.random() < 0.9:
            past = datetime.now(UTC).timestamp() - 3600
            os.utime(file, (past, past))

    def rows(self, file: Path) -> list[Row]:
        table = pq.ParquetFile(file).read()
        names = ("id", "number", "price", "note")
        columns = [
            table.column(name).to_pylist() if name in table.column_names else [None] * len(table)
            for name in names
        ]
        return list(zip(*columns, strict=True))


def append(lake: Lake) -> None:
    month = lake.draw.randrange(1, 6)
    _add(lake, lake.folder / f"month=2026-0{month}")


def _add(lake: Lake, folder: Path, **shape: Any) -> None:
    rows = [lake.row() for _ in range(lake.draw.randrange(4))]
    lake.write(folder / f"part-{lake.next}-{lake.draw.randrange(10**6)}.parquet", rows, **shape)


def overwrite(lake: Lake) -> None:
    file = lake.draw.choice(lake.files)
    lake.write(file, [lake.row() for _ in range(2)])


def in_place(lake: Lake) -> None:
    """The same rows but for one value, under the same name, of the same size and time."""
    file = lake.draw.choice(lake.files)
    rows, before = lake.rows(file), file.stat()
    if rows:
        lake.write(file, [(rows[0][0], 7, *rows[0][2:]), *rows[1:]])
        os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))


def delete_rows(lake: Lake) -> None:
    file = lake.draw.choice(lake.files)
    lake.write(file, lake.rows(file)[1:])


def delete_month(lake: Lake) -> None:
    file = lake.draw.choice(lake.files)
    if len({one.parent for one in lake.files}) > 1:
        for one in file.parent.iterdir():
            one.unlink()
        file.parent.rmdir()


def compact(lake: Lake) -> None:
    folder = lake.draw.choice(lake.files).parent
    files = [one for one in lake.files if one.parent == folder]
    rows = [row for file in files for row in lake.rows(file)]
    for file in files:
        file.unlink()
    lake.write(folder / "compact.parquet", rows)


def column_added(lake: Lake) -> None:
    _add(lake, lake.draw.choice(lake.files).parent, more=True)


def type_widened(lake: Lake) -> None:
    _add(lake, lake.draw.choice(lake.files).parent, number=pa.int64())


def renamed(lake: Lake) -> None:
    file = lake.draw.choice(lake.files)
    table = pq.ParquetFile(file).read()
    pq.write_table(
        table.rename_columns(["remark" if name == "note" else name for name in table.column_names]), file
    )
    os.utime(file, (0, 10**9))


def contract_changed(lake: Lake) -> None:
    lake.bound = lake.draw.randrange(2, 8)


DEEDS: tuple[Callable[[Lake], None], ...] = (
    append, append, overwrite, in_place, delete_rows, delete_month, compact, column_added, type_widened,
    renamed, contract_changed,
)  # fmt: skip


def contract(lake: Lake) -> Contract:
    text = TEXT.replace("FOLDER", str(lake.folder)).replace("BOUND", str(lake.bound)).replace("SCOPE", SCOPE)
    parsed = parse(text.encode(), "shop.odcs.yaml")
    assert parsed.contract is not None, parsed.findings
    return parsed.contract


def run(spark: SparkSession, lake: Lake, store: Store | None) -> Report:
    made, now = contract(lake), datetime.now(UTC)
    # At times beside one month, at times all of it.
    months = [{"month": lake.files[0].parent.name.removeprefix("month=")}] if len(lake.said) % 2 else []
    memory = None if store is None else PartitionCache(store, now, most_keys=1_000)
    data = locate(made, made.objects[0], None, anywhere())
    optimizations = NONE if store is None else ALL
    return check(
        Request(
            made,
            data,
            spark=spark,
            partitions=months,
            now=now,
            memory=memory,
            optimizations=optimizations,
            samples=False,
        )
    )


def told(report: Report) -> list[tuple[object, ...]]:
    return [
        (
            one.clause,
            one.check,
            one.status,
            *(() if one.status is Status.ERROR else (one.observed, one.value)),
        )
        for one in report.results
    ]


@pytest.mark.parametrize("number", range(HISTORIES))
def test_a_check_with_kept_answers_says_what_a_scan_says(
    spark: SparkSession, tmp_path: Path, number: int
) -> None:
    lake = Lake(tmp_path / "lake", random.Random(SEED * 1_000_003 + number))  # no secret
    lake.folder.mkdir()
    kept = 0
    with closing(open_store(stores.new_sqlite(tmp_path / "dq.db"))) as store:
        for month in range(1, 5):
            lake.write(
                lake.folder / f"month=2026-0{month}" / "part-0.parquet", [lake.row() for _ in range(4)]
            )
        run(spark, lake, store)
        for _ in range(STEPS):
            for deed in lake.draw.sample(DEEDS, lake.draw.randrange(1, 3)):
                deed(lake)
                lake.said.append(deed.__name__)
            report = run(spark, lake, store)
            kept += report.from_cache
            assert told(report) == told(run(spark, lake, None)), lake.said
    # A schema that changes is another question at each step.
    assert kept or {"column_added", "type_widened", "renamed", "contract_changed"} & {*lake.said}, lake.said
