"""What is special about Hive: reserved properties, relative places, managed tables, Derby's lock."""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from fakes.flights import flights

from dq.contracts.outcome import DqError, UsageError
from dq.registry.catalog import Action, ActionKind, Catalog, CatalogSettings, Impact
from dq.registry.catalogs import open_catalog
from dq.registry.catalogs.hive import refuse_variants
from dq.registry.plan import ActionOutcome, CompleteRegistry, apply, propose
from dq.registry.table import TableColumn, marked
from dq.store.engine import Store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


@pytest.fixture
def hive(spark: SparkSession) -> Iterator[Catalog]:
    yield open_catalog("hive", CatalogSettings(session=lambda: spark))
    spark.sql("DROP DATABASE IF EXISTS air_flights CASCADE")


@pytest.mark.parametrize(
    "key",
    ["owner", "EXTERNAL", "table_type", "numRows", "spark.sql.sources.provider", "transient_lastDdlTime"],
)
def test_a_reserved_property_is_refused_before_anything_runs(hive: Catalog, tmp_path: Path, key: str) -> None:
    spec = marked(flights(f"{tmp_path}/lake"), {key: "x"})

    with pytest.raises(UsageError, match=re.escape(f"air_flights.flights: the property {key!r} is reserved")):
        hive.apply(Action(ActionKind.CREATE, spec.key, after=spec))

    assert hive.tables("air_flights") == []


def test_a_property_too_long_for_the_metastore_is_refused(hive: Catalog, tmp_path: Path) -> None:
    spec = marked(flights(f"{tmp_path}/lake"), {"dq.note": "x" * 4001})

    with pytest.raises(UsageError, match=r"'dq\.note' is longer than Hive allows"):
        hive.apply(Action(ActionKind.CREATE, spec.key, after=spec))


@pytest.mark.parametrize(("spark_version", "taken"), [("3.5.7", False), ("4.0.2", True)])
def test_a_variant_is_refused_where_spark_has_none(spark_version: str, taken: bool) -> None:
    spec = flights("/lake", more="      - {name: v, physicalType: 'array<variant>'}\n")

    with nullcontext() if taken else pytest.raises(UsageError, match=r"Spark 3\.5\.7 does not support"):
        refuse_variants(spec, spark_version)


def test_a_relative_place_is_refused(hive: Catalog) -> None:
    spec = flights("lake/air")

    with pytest.raises(UsageError, match="would look for 'lake/air' in its own warehouse"):
        hive.apply(Action(ActionKind.CREATE, spec.key, after=spec))


def test_rows_of_a_registered_partition_can_be_read(
    hive: Catalog, spark: SparkSession, tmp_path: Path, store: Store
) -> None:
    spec = flights(f"{tmp_path}/lake")
    apply(hive, propose(hive, [spec], store), store)
    folder = f"{tmp_path}/lake/flight_date=2026-11-20/hour=7"
    spark.sql("SELECT 1L AS id, CAST(2.5 AS DECIMAL(18,2)) AS price").write.parquet(folder)

    hive.add_partition(*spec.key, (("flight_date", "2026-11-20"), ("hour", "7")), folder)

    rows = spark.table("air_flights.flights").selectExpr("id", "string(price)", "string(flight_date)", "hour")
    assert [tuple(row) for row in rows.collect()] == [(1, "2.50", "2026-11-20", 7)]


def test_a_managed_table_is_never_dropped(
    hive: Catalog, spark: SparkSession, tmp_path: Path, store: Store
) -> None:
    spec = marked(replace(flights("/x"), location=""), {})
    apply(hive, propose(hive, [spec], store), store)
    orc = marked(replace(spec, format="orc"), {})
    made = propose(hive, [orc], store)

    results = apply(hive, made, store, allow=frozenset({Impact.DESTRUCTIVE}))

    assert results[0].outcome is ActionOutcome.FAILED
    assert "is a managed table: dropping it would delete its files" in str(results[0].error)
    assert hive.read(*spec.key) is not None


def test_what_spark_refuses_is_one_sentence(hive: Catalog, tmp_path: Path) -> None:
    plain = flights(f"{tmp_path}/lake", format="csv")
    spec = replace(plain, columns=(*plain.columns, TableColumn("x", "array<int>")))

    with pytest.raises(DqError, match=r"Spark's catalog refused: .*CSV datasource doesn't support") as caught:
        hive.apply(Action(ActionKind.CREATE, spec.key, after=spec))

    assert "\n" not in str(caught.value)


def test_tables_of_others_and_views_are_listed(hive: Catalog, spark: SparkSession) -> None:
    spark.sql("CREATE DATABASE air_flights")
    spark.sql("CREATE TABLE air_flights.plain (a INT) STORED AS PARQUET")
    spark.sql("CREATE VIEW air_flights.seen AS SELECT 1 AS a")

    found = [(table.spec.name, table.spec.format) for table in hive.tables("air_flights")]

    assert found == [("plain", "parquet"), ("seen", "view")]


SECOND = """
    import sys
    from pyspark.sql import SparkSession
    from dq.contracts.outcome import DqError
    from dq.registry.catalog import CatalogSettings
    from dq.registry.catalogs import open_catalog

    def session(url):
        build = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
        if url:
            build = build.config("spark.hadoop.javax.jdo.option.ConnectionURL", url).enableHiveSupport()
        made = build.getOrCreate()
        made.sparkContext.setLogLevel("OFF")
        return made

    for url in sys.argv[1:]:
        made = session(url)
        try:
            open_catalog("hive", CatalogSettings(session=lambda: made)).tables("air")
        except DqError as error:
            print(error.exit_code, error)
        made.stop()
"""


@pytest.fixture(scope="module")
def told(spark: SparkSession) -> tuple[str, str]:
    """What another process is told without a metastore, and then with ours, whose lock this one holds."""
    spark.sql("SHOW DATABASES").collect()
    url = spark.conf.get("spark.hadoop.javax.jdo.option.ConnectionURL")
    assert url is not None
    command = [sys.executable, "-c", textwrap.dedent(SECOND), "", url]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    without, locked = ran.stdout.splitlines()
    return without, locked


@pytest.mark.slow
def test_a_second_process_on_derby_is_told_what_to_do(spark: SparkSession, told: tuple[str, str]) -> None:
    url = spark.conf.get("spark.hadoop.javax.jdo.option.ConnectionURL")
    folder = re.search(r"databaseName=([^;]+)", url or "")
    assert folder is not None
    assert told[1] == (
        f"3 The embedded metastore at {folder[1]} is open in another process; Derby serves one at a time. "
        "Stop that Spark session, or use a metastore service, or the catalog 'local'."
    )


@pytest.mark.slow
def test_a_session_without_a_metastore_is_refused(told: tuple[str, str]) -> None:
    assert told[0] == (
        "2 The Spark session has no Hive metastore, only tables in memory. "
        "Build it with .enableHiveSupport()."
    )


def test_a_view_gets_our_properties_and_stays_what_it_is(
    hive: Catalog, spark: SparkSession, store: Store
) -> None:
    plain = replace(flights("/x"), format="view", location="", parameters=())
    facts = {"dq.contract-id": "a", "dq.contract-version": "1.0.0"}
    spark.sql("CREATE DATABASE air_flights")
    theirs = "COMMENT 'Theirs.' TBLPROPERTIES ('theirs' = '1')"
    spark.sql(f"CREATE VIEW air_flights.flights {theirs} AS SELECT 7 AS n")

    def register(description: str, *, adopt: bool = False) -> ActionOutcome:
        spec = marked(replace(plain, description=description), facts)
        made = propose(hive, [spec], store, adopt=adopt)
        return apply(hive, made, store)[0].outcome

    endings = [register("Ours."), register("Ours.", adopt=True), register("New."), register("New.")]

    assert endings == [ActionOutcome.REFUSED, ActionOutcome.DONE, ActionOutcome.DONE, ActionOutcome.UNCHANGED]
    live = hive.read("air_flights", "flights")
    assert live is not None
    assert (live.spec.format, live.spec.description) == ("view", "New.")
    assert (live.spec.parameter("theirs"), live.spec.parameter("dq.contract-id")) == ("1", "a")
    assert [row.n for row in spark.table("air_flights.flights").collect()] == [7]
    gone = propose(hive, [], store, complete=CompleteRegistry(""))
    apply(hive, gone, store, prune=True)
    assert hive.tables("air_flights") == []
