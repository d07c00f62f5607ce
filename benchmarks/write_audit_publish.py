"""A reader polls while deliveries are staged, audited and published, and 30 of 100 are bad.

On a real Iceberg table (branches) and on real Parquet partitions (staged folders, a Hive metastore), by the
real `dq publish --audit`. Three of ten deliveries are bad; those with an even number replace the partition of
the one before them. Wanted: no bad row is ever seen, every good delivery is, and none of them in part. In the
end a bad delivery is published without an audit: the reader must see that one, or it would see nothing bad.
"""

from __future__ import annotations

import io
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from _report import arguments, finish
from fakes import jvm, lakehouse

from dq.cli.main import run

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROWS = 500
# A good one, a bad one and a good one over a good one, and a bad one by itself: the quick run has each once.
ALL, QUICK = range(100), range(1, 6)
# Seconds between two polls. Without a pause, the reader of the quick run would take most of its CPU.
PAUSE, QUICK_PAUSE = 0.0, 0.2
BAD = (2, 5, 8)  # of ten
COLUMNS = "delivery bigint, id bigint, amount bigint, day date"
CONTRACT = """\
apiVersion: v3.2.0
kind: DataContract
id: {id}
version: 1.0.0
status: active
domain: wap
dataProduct: {id}
servers:
  - {{server: lake, {server}}}
schema:
  - name: orders
    customProperties: [{{property: dataset, vendor: dq, value: {{format: {format}}}}}]
    quality: [{{metric: rowCount, mustBe: {rows}}}]
    properties:
      - {{name: delivery, logicalType: integer, physicalType: bigint, required: true}}
      - {{name: id, logicalType: integer, physicalType: bigint, required: true, unique: true}}
      - name: amount
        logicalType: integer
        physicalType: bigint
        required: true
        logicalTypeOptions: {{minimum: 0}}
      - {{name: day, logicalType: date, physicalType: date, partitioned: true, partitionKeyPosition: 1}}
"""


@dataclass
class Reader:
    """Polls a table in a session and a thread of its own, and keeps what it saw of each delivery."""

    spark: SparkSession
    table: str
    pause: float = 0
    polls: int = 0
    deliveries_read: set[int] = field(default_factory=set)
    bad_rows: int = 0
    torn: int = 0
    errors: list[str] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)

    def loop(self) -> None:
        from pyspark.errors import PySparkException

        while not self.over.is_set():
            try:
                self.spark.sql(f"REFRESH TABLE {self.table}")
                counts = self.spark.sql(
                    f"SELECT delivery, count(*), count_if(amount < 0) FROM {self.table} GROUP BY delivery"
                ).collect()
            except PySparkException as error:
                self.errors.append(str(error).splitlines()[0])
                counts = []
            for delivery, rows, bad in counts:
                self.deliveries_read.add(delivery)
                self.bad_rows += bad
                self.torn += rows != ROWS
            self.polls += 1
            self.over.wait(self.pause)

    def wait(self) -> None:
        """Until a poll that began after now is over."""
        awaited = self.polls + 2
        while self.polls < awaited:
            time.sleep(0.01)


@dataclass(frozen=True)
class Staged:
    """A kind of publication: how a delivery is staged, the word for `--audit`, and more words.

    `unaudited` shows a delivery to readers as it is.
    """

    name: str
    table: str
    stage: Callable[[DataFrame, int], str]
    unaudited: Callable[[DataFrame, int], object]
    words: tuple[str, ...] = ()


def delivery(spark: SparkSession, number: int, day: date, *, bad: bool) -> DataFrame:
    """So many rows; of a bad one, the last has a negative amount."""
    first = number * ROWS
    amount = f"CASE WHEN id = {first + ROWS - 1} THEN -1L ELSE id END" if bad else "id"
    return spark.range(first, first + ROWS, 1, 1).selectExpr(
        f"{number}L AS delivery", "id", f"{amount} AS amount", f"date'{day}' AS day"
    )


def day_of(number: int) -> date:
    """Good deliveries with an even number replace the partition of the one before them."""
    return date(2026, 1, 1) + timedelta(days=number - 1 if number and number % 2 == 0 else number)


def publish_all(spark: SparkSession, how: Staged, numbers: range, pause: float) -> dict[str, float]:
    """Publishes these deliveries, and says what the reader saw meanwhile."""
    reader = Reader(spark.newSession(), how.table, pause)
    thread = threading.Thread(target=reader.loop, daemon=True)
    thread.start()
    good, wrong, seconds = set(), [], []
    for number in numbers:
        bad, day = number % 10 in BAD, day_of(number)
        staged = how.stage(delivery(spark, number, day, bad=bad), number)
        file = f"{how.name}.odcs.yaml"
        began = time.monotonic()
        printed = io.StringIO()
        with redirect_stdout(printed), redirect_stderr(printed):
            code = run(["publish", file, "--partition", f"day={day}", "--audit", staged, *how.words])
        seconds.append(time.monotonic() - began)
        if code != (1 if bad else 0):
            wrong.append(f"{number}: exit code {code}\n{printed.getvalue()}")
        if not bad:
            good.add(number)
        if not bad and day_of(number) == day_of(number + 1):
            # Else the reader may come when it is replaced already; all others stay until the end.
            reader.wait()
    reader.wait()
    figures = {
        "polls": reader.polls,
        "bad rows seen": reader.bad_rows,
        "bad deliveries seen": len(reader.deliveries_read - good),
        "good deliveries not seen": len(good - reader.deliveries_read),
        "deliveries seen in part": reader.torn,
    }
    how.unaudited(delivery(spark, numbers.stop, day_of(numbers.stop + 1), bad=True), numbers.stop)
    reader.wait()
    reader.over.set()
    thread.join()
    for text in (*wrong[:3], *reader.errors[:3]):
        print(text, file=sys.stderr)
    return {
        "publishes": len(numbers),
        "of them bad": len(numbers) - len(good),
        **figures,
        "bad rows seen without an audit": reader.bad_rows - figures["bad rows seen"],
        "reads that failed": len(reader.errors),
        "wrong exit codes": len(wrong),
        "seconds of a publish": sorted(seconds)[len(seconds) // 2],
    }


def session(home: Path) -> SparkSession:
    """One session with Iceberg, and a metastore in files."""
    from pyspark.sql import SparkSession

    derby = f"jdbc:derby:;databaseName={home / 'metastore'};create=true"
    settings = lakehouse.settings(home) | {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.ansi.enabled": "true",
        "spark.sql.warehouse.dir": str(home / "warehouse"),
        "spark.sql.sources.partitionOverwriteMode": "dynamic",
        "spark.hadoop.javax.jdo.option.ConnectionURL": derby,
        "spark.driver.extraJavaOptions": f"-Dderby.system.home={home}",
        # The reader sees each commit, and not one of half a minute ago.
        f"spark.sql.catalog.{lakehouse.CATALOG}.cache-enabled": "false",
    }
    builder = SparkSession.builder.master("local[2]").appName("write-audit-publish").enableHiveSupport()
    for name, value in settings.items():
        builder = builder.config(name, value)
    session_: SparkSession = builder.getOrCreate()
    session_.sparkContext.setLogLevel("ERROR")
    return session_


def parquet(_spark: SparkSession, home: Path) -> Staged:
    """Partitions of Parquet that a Hive metastore knows."""
    server = f"type: local, path: {home / 'lake' / 'orders'}, format: parquet"
    text = CONTRACT.format(id="parquet", server=server, format="parquet", rows=ROWS)
    Path("parquet.odcs.yaml").write_text(text)
    (home / "lake" / "orders").mkdir(parents=True)
    with redirect_stdout(io.StringIO()):
        assert run(["register", "parquet.odcs.yaml", "--apply", "--catalog", "hive"]) == 0

    def stage(frame: DataFrame, number: int) -> str:
        root = str(home / "lake" / "_staged" / f"run-{number}")
        frame.write.partitionBy("day").parquet(root)
        return root

    def unaudited(frame: DataFrame, number: int) -> None:
        day = day_of(number + 1)
        frame.drop("day").write.parquet(f"{home}/lake/orders/day={day}")
        with redirect_stdout(io.StringIO()):
            run(["publish", "parquet.odcs.yaml", "--partition", f"day={day}", "--catalog", "hive"])

    return Staged("parquet", "wap_parquet.orders", stage, unaudited, ("--catalog", "hive"))


def iceberg(spark: SparkSession, _home: Path) -> Staged:
    """A table of Iceberg whose writers use a branch; one for each delivery, made from main."""
    table = f"{lakehouse.CATALOG}.wap.orders"
    spark.sql(f"CREATE TABLE {table} ({COLUMNS}) USING iceberg PARTITIONED BY (day)")
    server = "type: hive, host: metastore, database: wap"
    text = CONTRACT.format(id="iceberg", server=server, format="iceberg", rows=ROWS)
    Path("iceberg.odcs.yaml").write_text(text)
    spark.catalog.setCurrentCatalog(lakehouse.CATALOG)
    # So that there is a main, from which branches are made.
    spark.createDataFrame([], COLUMNS).writeTo(table).append()

    def stage(frame: DataFrame, number: int) -> str:
        branch = f"run_{number}"
        loaded = lakehouse.loaded(spark, table)
        head = loaded.currentSnapshot().snapshotId()
        loaded.manageSnapshots().createBranch(branch, head).commit()
        frame.writeTo(f"{table}.branch_{branch}").overwritePartitions()
        return branch

    return Staged("iceberg", table, stage, lambda frame, _: frame.writeTo(table).append())


def main() -> int:
    args = arguments(__doc__)
    os.environ.update({name: value for name, value in jvm.SETTINGS.items() if name not in os.environ})
    numbers, pause = (QUICK, QUICK_PAUSE) if args.quick else (ALL, PAUSE)
    metrics: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        os.chdir(home)
        os.environ["DQ_LAKE_ROOTS"] = folder
        spark = session(home)
        for make in (parquet, iceberg):
            how = make(spark, home)
            figures = publish_all(spark, how, numbers, pause)
            metrics |= {f"{how.name}: {name}": float(value) for name, value in figures.items()}
        spark.stop()
        os.chdir("/")
    none = (
        *("bad rows seen", "bad deliveries seen", "good deliveries not seen"),
        *("deliveries seen in part", "reads that failed", "wrong exit codes"),
    )
    goals = {f"{name}: {what}": ("<", 0.5) for name in ("parquet", "iceberg") for what in none}
    goals |= {f"{name}: bad rows seen without an audit": (">", 0.5) for name in ("parquet", "iceberg")}
    return finish(metrics, goals, args)


if __name__ == "__main__":
    sys.exit(main())
