"""The writers of the referee's tables: those of this environment, and foreign ones in one of their own."""

from __future__ import annotations

import json
import random
import shutil
import struct
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
from _referee_tables import TYPES, RandomTable
from fakes import parquet_footer as footer
from spark import environments

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FOREIGN = ("duckdb", "fastparquet", "deltalake", "pyiceberg")
EVERY = tuple(TYPES)
# What a writer can write as it is: pandas makes NULL of NaN, and objects of dates and decimals.
KINDS: Mapping[str, tuple[str, ...]] = {
    "fastparquet": ("int", "bigint", "string", "boolean"),
}
FORMATS: Mapping[str, str] = {
    "deltalake": "delta",
    "spark delta": "delta",
    "pyiceberg": "iceberg",
    "spark iceberg": "iceberg",
}
# Writers that are known to be wrong, and of which kinds of columns.
LIARS = {
    "Polars": ("int", "bigint", "date"),
    "parquet-cpp-arrow version 9.0.0": ("int", "bigint", "date"),
    "ClickHouse v25.2.1.3085": ("price",),
    "": ("int", "bigint", "date"),
}
_SIZES = {"int": "<i", "date": "<i", "price": "<i", "bigint": "<q"}


class Unwritten(Exception):
    """A writer could not write this table; the text says why."""


@dataclass(frozen=True, slots=True)
class Written:
    """A written table: its location, its format, and the number of lies planted in it."""

    place: Path
    format: str
    lies: int = 0


class Foreign:
    """A process in the environment of the foreign writers. Raises Unbuildable where there can be none."""

    def __init__(self, work: Path) -> None:
        script = Path(__file__).with_name("_referee_foreign.py")
        self._process = subprocess.Popen(
            [str(environments.python("foreign", work)), str(script)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def write(self, **options: Any) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(options) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        reason = json.loads(line) if line else "the process of the foreign writers has ended"
        if reason is not None:
            raise Unwritten(f"{options['writer']}: {reason}")

    def close(self) -> None:
        self._process.terminate()
        self._process.wait()


def write(
    writer: str,
    random_table: RandomTable,
    place: Path,
    chance: random.Random,
    spark: SparkSession,
    foreign: Foreign | None,
) -> Written:
    """The table as this writer writes it. Raises Unwritten."""
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    form = FORMATS.get(writer, "parquet")
    if writer.startswith("spark"):
        return _spark(writer, random_table, place, spark)
    lies = 0
    for number, rows in enumerate(random_table.files):
        table = random_table.arrow(rows)
        size = chance.choice((2, 50, 1_000, 100_000))
        target = place / f"part-{number}.parquet"
        if writer in FOREIGN:
            assert foreign is not None
            source = place.parent / "source.arrow"
            with pa.OSFile(str(source), "wb") as sink, pa.ipc.new_file(sink, table.schema) as out:
                out.write_table(table)
            last = number == len(random_table.files) - 1
            foreign.write(
                writer=writer, source=str(source), target=str(place), number=number, size=size, last=last
            )
        elif writer == "polars":
            _polars(table, target, size)
        else:
            _pyarrow(table, target, size, chance)
            lies += _lie(target, random_table, chance) if writer == "liar" else 0
    return Written(place, form, lies)


def _polars(table: pa.Table, target: Path, size: int) -> None:
    import polars as pl

    frame = pl.from_arrow(table)
    assert isinstance(frame, pl.DataFrame)
    frame.write_parquet(target, row_group_size=max(size, 50))


def _pyarrow(table: pa.Table, target: Path, size: int, chance: random.Random) -> None:
    pq.write_table(
        table,
        target,
        row_group_size=max(size, 50),
        use_dictionary=chance.random() < 0.8,
        write_statistics=chance.random() < 0.9,
        data_page_version=chance.choice(("1.0", "2.0")),
        compression=chance.choice(("snappy", "zstd", "none")),
        store_decimal_as_integer=chance.random() < 0.7,
    )


def _lie(target: Path, random_table: RandomTable, chance: random.Random) -> int:
    """A known liar's name, and bounds of its columns that are as narrow as they can be, in order."""
    writer, kinds = chance.choice(tuple(LIARS.items()))
    planted = 0

    def change(fields: dict[int, footer.Node]) -> None:
        nonlocal planted
        fields[footer.CREATED_BY] = footer.raw(writer.encode())
        for at, kind in enumerate(random_table.columns.values()):
            if kind not in kinds:
                continue
            for chunk in footer.statistics(fields, at):
                if len(chunk.get(footer.MIN, (0, b""))[1]) == struct.calcsize(_SIZES[kind]):
                    chunk[footer.MAX] = chunk[footer.MIN]
                    planted += 1

    footer.rewritten(target, change)
    return planted


def _spark(writer: str, random_table: RandomTable, place: Path, spark: SparkSession) -> Written:
    for rows in random_table.files:
        table = random_table.arrow(rows)
        source = place.parent / "source.parquet"
        pq.write_table(table, source)
        frame = spark.read.parquet(str(source)).coalesce(1)
        if writer == "spark iceberg":
            name = f"ice.referee.t{place.name}"
            if not spark.catalog.tableExists(name):
                frame.limit(0).writeTo(name).using("iceberg").create()
            frame.writeTo(name).append()
        else:
            form = "delta" if writer == "spark delta" else "parquet"
            frame.write.format(form).mode("append").save(str(place / "table"))
    if writer == "spark iceberg":
        warehouse = spark.conf.get("spark.sql.catalog.ice.warehouse")
        return Written(Path(str(warehouse)) / "referee" / f"t{place.name}", "iceberg")
    return Written(place / "table", FORMATS.get(writer, "parquet"))


def names(foreign: bool) -> tuple[str, ...]:
    """The writers that there are."""
    own = ("pyarrow", "liar", "polars", "spark", "spark delta", "spark iceberg")
    return (*own, *FOREIGN) if foreign else own
