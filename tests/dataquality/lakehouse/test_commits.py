"""Deliveries are seen in the logs of tables that Spark wrote, and what only rearranges them is none."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from fakes import lakehouse

from dq.contracts import slo as promise
from dq.contracts.incident import CycleStatus
from dq.contracts.yaml.parse import parse
from dq.dataquality.delivery import cycle_store
from dq.dataquality.delivery.cycle import CycleWindow, DeliveryPlace, WatchTarget
from dq.dataquality.delivery.evidence import READERS, CommitHistory, delivery_in_commits
from dq.dataquality.delivery.tick import tick
from dq.lake.storage import LocalFiles
from dq.store.engine import open_store

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = lakehouse.MARKS

CONTRACT = """
apiVersion: v3.2.0
kind: DataContract
id: t
version: 1.0.0
schema:
  - name: t
    properties:
      - {name: day, logicalType: date, partitioned: true, partitionKeyPosition: 1}
slaProperties:
  - id: daily
    property: frequency
    value: 1
    unit: d
    element: t
    schedule: "0 6 * * *"
    customProperties:
      - property: delivery
        vendor: dq
        value: {timezone: UTC, grace: 30m, objective: 50%, partition: {day: "{due:%F}"}}
"""
HUDI = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id,day",
    "hoodie.datasource.write.partitionpath.field": "day",
    "hoodie.datasource.write.precombine.field": "id",
    "hoodie.metadata.enable": "false",
}


# The commits are of the real time, and so are the cycles that they are late for.
TODAY = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
FIRST, SECOND = (f"{TODAY - timedelta(days=ago):%F}" for ago in (2, 1))


def rows(spark: SparkSession, day: str) -> DataFrame:
    return spark.range(2).selectExpr("id", f"DATE'{day}' AS day")


DELETE = "DELETE FROM {} WHERE day = DATE'{}'"


class Delta:
    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark, self.place = spark, str(folder / "t")
        self.name = f"delta.`{self.place}`"
        # Partitions then have names in the log that nobody gave them.
        spark.sql(
            f"CREATE TABLE {self.name} (id BIGINT, day DATE) USING delta PARTITIONED BY (day)"
            " TBLPROPERTIES ('delta.columnMapping.mode'='name', 'delta.enableDeletionVectors'='true')"
        )

    def write(self, day: str) -> None:
        rows(self.spark, day).write.format("delta").mode("append").save(self.place)

    def maintain(self) -> None:
        for statement in (
            "OPTIMIZE {}",
            "DELETE FROM {} WHERE id = 1",
            "UPDATE {} SET id = 7 WHERE id = 0",
            "VACUUM {}",
        ):
            self.spark.sql(statement.format(self.name))

    def delete(self, day: str) -> None:
        self.spark.sql(DELETE.format(self.name, day))

    def undo(self) -> None:
        self.spark.sql(f"RESTORE TABLE {self.name} TO VERSION AS OF 0")


class Iceberg:
    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark, self.name = spark, f"{lakehouse.CATALOG}.{folder.name.replace('-', '_')}.t"
        spark.sql(f"CREATE TABLE {self.name} (id BIGINT, day DATE) USING iceberg PARTITIONED BY (day)")
        self.place = str(lakehouse.loaded(spark, self.name).location())

    def write(self, day: str) -> None:
        rows(self.spark, day).writeTo(self.name).append()

    def maintain(self) -> None:
        lakehouse.compact(self.spark, self.name)
        self.spark.sql("DELETE FROM {} WHERE day = DATE'{}'".replace("{}", self.name, 1).replace("{}", FIRST))
        table = lakehouse.loaded(self.spark, self.name)
        table.rewriteManifests().commit()

    def delete(self, day: str) -> None:
        self.spark.sql(DELETE.format(self.name, day))

    def undo(self) -> None:
        table = lakehouse.loaded(self.spark, self.name)
        first = min(table.snapshots(), key=lambda one: one.sequenceNumber())
        table.manageSnapshots().rollbackTo(first.snapshotId()).commit()


class Hudi:
    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark, self.place = spark, str(folder / "t")

    def write(self, day: str, **options: str) -> None:
        writer = rows(self.spark, day).write.format("hudi").options(**HUDI, **options)
        writer.mode("append").save(self.place)

    def maintain(self) -> None:
        operation = {"hoodie.datasource.write.operation": "delete_partition"}
        deleted = {"hoodie.datasource.write.partitions.to.delete": FIRST}
        self.write(FIRST, **operation, **deleted)

    def delete(self, day: str) -> None:
        options = {
            "hoodie.datasource.write.operation": "delete_partition",
            "hoodie.datasource.write.partitions.to.delete": day,
        }
        self.write(day, **options)


TABLES = {"delta": Delta, "iceberg": Iceberg, "hudi": Hudi}


@pytest.mark.parametrize("format", [name for name in TABLES if name in lakehouse.FORMATS])
def test_a_commit_that_brings_rows_is_a_delivery_within_one_tick_and_no_other(
    spark: SparkSession, tmp_path: Path, format: str
) -> None:
    table = TABLES[format](spark, tmp_path)
    parsed = parse(CONTRACT.encode(), "t.odcs.yaml")
    assert parsed.contract is not None
    (slo,), _ = promise.read_slos(parsed.contract)
    watched = [WatchTarget(slo, DeliveryPlace(table.place, format, "_SUCCESS"), LocalFiles())]
    store = open_store(f"sqlite:///{tmp_path / 'store.db'}")

    def statuses() -> list[str]:
        tick(store, watched, datetime.now(UTC), lambda *_: None, since=TODAY - timedelta(hours=60))
        with store.read() as tx:
            return [one.status for one in cycle_store.all_cycles(tx, slo.key)[:2]]

    before = statuses()
    table.write(FIRST)
    first = statuses()
    table.maintain()
    maintained = statuses()
    table.write(SECOND)
    second = statuses()

    missing, late = CycleStatus.MISSING, CycleStatus.LATE
    assert [before, first, maintained, second] == [
        [missing, missing],
        [late, missing],
        [late, missing],
        [late, late],
    ]
    log = READERS[format](LocalFiles(), table.place, (), TODAY)
    full = [
        dict(one.partition) | {"rows": one.rows}
        for commit in log.new_commits
        for one in commit.appends
        if one.rows
    ]
    assert full == [{"day": FIRST, "rows": 2}, {"day": SECOND, "rows": 2}]


@pytest.mark.parametrize("format", [name for name in TABLES if name in lakehouse.FORMATS])
def test_what_is_taken_away_is_seen_in_the_log_and_what_only_rearranges_is_not(
    spark: SparkSession, tmp_path: Path, format: str
) -> None:
    table = TABLES[format](spark, tmp_path)
    # Both were due a little ago, and are on time by a grace of three days.
    parsed = parse(CONTRACT.replace("grace: 30m", "grace: 72h").encode(), "t.odcs.yaml")
    assert parsed.contract is not None
    (slo,), _ = promise.read_slos(parsed.contract)
    watched = [WatchTarget(slo, DeliveryPlace(table.place, format, "_SUCCESS"), LocalFiles())]
    store = open_store(f"sqlite:///{tmp_path / 'store.db'}")
    clock = datetime.now(UTC)
    table.write(FIRST)
    table.write(SECOND)

    def seen() -> list[str | None]:
        history = CommitHistory({}, clock)
        found = history.commits_of(table.place, format, LocalFiles())
        live = partial(history.live, table.place, format, LocalFiles())
        parts = ((("day", FIRST),), (("day", SECOND),))
        with store.read() as tx:
            cycles = [one.cycle for one in cycle_store.all_cycles(tx, slo.key)][:2]
        return [
            "there" if delivery_in_commits(slo, cycle, part, found, WINDOW, live) else None
            for cycle, part in zip(cycles, parts, strict=True)
        ]

    tick(store, watched, clock, lambda *_: None, since=TODAY - timedelta(hours=60))
    before = seen()
    table.delete(FIRST)
    deleted = seen()

    assert (before, deleted) == (["there", "there"], [None, "there"])


WINDOW = CycleWindow(None, None, None)


@pytest.mark.parametrize("format", [name for name in ("delta", "iceberg") if name in lakehouse.FORMATS])
def test_what_is_rolled_back_is_undone(spark: SparkSession, tmp_path: Path, format: str) -> None:
    table = TABLES[format](spark, tmp_path)
    table.write(FIRST)
    table.write(SECOND)
    first = READERS[format](LocalFiles(), table.place, (), TODAY)
    known = {one.ident for one in first.new_commits}

    table.undo()

    log = READERS[format](LocalFiles(), table.place, known, TODAY)
    took = [dict(pairs)["day"] for one in log.new_commits for pairs in one.removed_from]
    assert sorted(took) == ([FIRST, SECOND] if format == "delta" else [])
    assert len(log.rolled_back) == (0 if format == "delta" else 1)
