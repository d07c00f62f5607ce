"""Tables of many writers, types and odd folders: every command must say the same of each.

`import`, `tables`, `check`, `check --scan`, `backtest`, `propose`, `repair`, `sample`, `status` and the
portal are asked about the same tables in one process and one Spark session. What two of them say of the
files, rows, columns, types, NULLs and partitions of a table must not differ, nor from what Spark reads.
A command may tell nothing of a fact; how much each one tells is counted, so that silence is seen.
With the interpreter of .venv-spark35 (make install-spark35), the tables are those of Hudi.
Every difference is printed with its seed; --seed N shows it again. --minutes N goes on for so long.
"""

from __future__ import annotations

import os
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from contextlib import chdir
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from _report import arguments, finish

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from _agree_commands import WrittenTable, ask  # noqa: E402  # after the path
from _agree_listings import decorate  # noqa: E402
from _agree_types import random_table  # noqa: E402
from _agree_writers import WRITERS, WriteRequest, write  # noqa: E402
from _referee_writers import Foreign, Unwritten  # noqa: E402
from fakes import jvm  # noqa: E402
from fakes.command import Place  # noqa: E402
from spark import environments  # noqa: E402

from dq.dataquality.model import run_context  # noqa: E402
from dq.operations.runtime.context import runtime_context  # noqa: E402
from dq.operations.runtime.spark import session as begin  # noqa: E402

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUICK_SECONDS, MINUTES = 35, 30
BATCH = 6


def main() -> int:
    args = arguments(
        __doc__ or "", minutes=f"how long, by default {MINUTES}", seed="one table alone, as it was printed"
    )
    seconds = QUICK_SECONDS if args.quick else 60 * (args.minutes or MINUTES)
    work = Path(os.environ.get("DQ_BENCH_WORK", Path(tempfile.gettempdir()) / "dq-referee"))
    work.mkdir(parents=True, exist_ok=True)
    foreign = foreign_writers(work)
    tally = Tally()
    with tempfile.TemporaryDirectory(dir=work) as folder:
        begun = time.monotonic()
        spark = session(Path(folder))
        names = writers_here()
        seed = first = args.seed if args.seed is not None else random.SystemRandom().randrange(10**9)
        while seed == first or (args.seed is None and time.monotonic() - begun < seconds):
            size = 1 if args.seed is not None else BATCH
            compare(range(seed, seed + size), names, spark, foreign, Path(folder, str(seed)), tally)
            seed += size
        spark.stop()
    if foreign is not None:
        foreign.close()
    tally.show()
    metrics = {**tally.metrics(), "seconds": time.monotonic() - begun}
    goals = {"differences": ("<", 1.0), "tables": (">", 0.0)}
    if not hudi_alone() and not args.quick and args.seed is None:
        goals |= {"writers": (">", 9.0), "types": (">", 39.0)}
    return finish(metrics, goals, args)


class Tally:
    """Numbers of comparisons and of differences."""

    def __init__(self) -> None:
        self.tables: Counter[str] = Counter()
        self.listings: Counter[str] = Counter()
        self.types: Counter[str] = Counter()
        self.claims: Counter[str] = Counter()
        self.refusals: Counter[tuple[str, str]] = Counter()
        self.unwritten: Counter[str] = Counter()
        self.compared = 0
        self.differences = 0

    def metrics(self) -> dict[str, float]:
        return {
            "tables": float(self.tables.total()),
            "writers": float(len(self.tables)),
            "types": float(len(self.types)),
            "odd things in folders": float(self.listings.total()),
            "claims": float(self.claims.total()),
            "claims compared": float(self.compared),
            "commands": float(len(self.claims)),
            "differences": float(self.differences),
        }

    def show(self) -> None:
        for title, counts in (("tables of", self.tables), ("claims of", self.claims)):
            for name, number in sorted(counts.items()):
                print(f"  {title} {name:<42}{number:>8,}")
        for (command, reason), number in self.refusals.most_common(12):
            print(f"  {command} refused {number:>4} times: {reason[:150]}")
        for reason, number in self.unwritten.most_common(8):
            print(f"  not written {number:>4} times: {reason[:150]}")


def hudi_alone() -> bool:
    """Return True for Spark 3.5, whose one part here is Hudi: its bundle for 4.0 cannot be had everywhere."""
    return run_context.line(version("pyspark")) == "3.5"


def writers_here() -> list[str]:
    return [name for name in WRITERS if (name == "Hudi") == hudi_alone()]


def foreign_writers(work: Path) -> Foreign | None:
    """The process of the foreign writers, or None if their environment cannot be made."""
    try:
        return Foreign(work)
    except environments.Unbuildable as error:
        print(f"  without foreign writers: {error}", file=sys.stderr)
        return None


def session(home: Path) -> SparkSession:
    """The session that dq's own commands begin, with the jars of Delta and Iceberg."""
    for name, value in jvm.SETTINGS.items():
        os.environ.setdefault(name, value)
    home.mkdir(parents=True, exist_ok=True)
    with chdir(home):
        formats = ("hudi",) if hudi_alone() else ("delta", "iceberg")
        spark = begin(runtime_context(None, [home]), formats=formats)
    spark.sparkContext.setLogLevel("OFF")
    return spark


def compare(
    seeds: range,
    names: list[str],
    spark: SparkSession,
    foreign: Foreign | None,
    folder: Path,
    tally: Tally,
) -> None:
    """Write a table for each seed, ask all commands about them, and print what differs."""
    place = Place(folder)
    (folder / "r").mkdir(parents=True)
    tables = [
        table for seed in seeds if (table := written(seed, names, spark, foreign, folder, tally)) is not None
    ]
    claims = ask(place, spark, tables)
    by_name = {table.name: table for table in tables}
    for table in tables:
        tally.tables[table.writer] += 1
        tally.listings.update(table.listing)
        tally.types.update(table.table.columns.values())
        for command, reason in claims.refusals[table.name].items():
            tally.refusals[(command, reason)] += 1
    tally.claims.update(claims.count())
    tally.compared += claims.compared()
    for name, fact, values in claims.differences():
        tally.differences += 1
        table = by_name[name]
        stated = "; ".join(f"{value} ({command})" for command, value in values.items())
        odd = f"{', '.join(table.listing) or 'nothing odd'}; keys {', '.join(table.table.keys) or 'none'}"
        print(f"seed {table.seed}, {table.writer}; {odd}; {_kinds(table, fact)}")
        print(f"    {fact}: {stated}")
        for command, reason in claims.refusals[name].items():
            print(f"    {command} refused: {reason[:300]}")
        sys.stdout.flush()
    shutil.rmtree(folder, ignore_errors=True)


def _kinds(table: WrittenTable, fact: str) -> str:
    """The type of the column that a fact is about, else of all."""
    name = fact.rpartition(" ")[2].partition(".")[0].partition("[")[0]
    return table.table.columns.get(name, str(table.table.columns))


def written(
    seed: int,
    names: list[str],
    spark: SparkSession,
    foreign: Foreign | None,
    folder: Path,
    tally: Tally,
) -> WrittenTable | None:
    """The table of a seed in the lake of this folder, or None if its writer refuses it."""
    chance = random.Random(seed)
    name = chance.choice(names)
    writer = WRITERS[name]
    table = random_table(chance, writer.types, partitioned=writer.partitioned and chance.random() < 0.5)
    path = folder / "lake" / f"t{seed}"
    try:
        write(name, WriteRequest(table, path, chance, spark, foreign))
    except Unwritten as error:
        tally.unwritten[str(error)] += 1
        return None
    listing, changed = decorate(path, chance) if writer.format in ("parquet", "csv", "json") else ((), False)
    wrong = writer.format not in ("csv", "json") and chance.random() < 0.5
    return WrittenTable(f"t{seed}", seed, name, writer.format, table, listing, not changed, wrong)


if __name__ == "__main__":
    sys.exit(main())
