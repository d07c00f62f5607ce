"""Tables of Delta and Hudi in a metastore: registered, they are as they were, and still work."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from fakes import lakehouse
from fakes.flights import flights
from fakes.glue import GlueShim

from dq.registry.aws.glue import Glue
from dq.registry.catalog import ActionKind, Catalog, CatalogSettings
from dq.registry.catalogs import open_catalog
from dq.registry.plan import ActionOutcome, apply, propose
from dq.registry.table import TableSpec, marked
from dq.store.engine import Store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = lakehouse.MARKS

# What the metastore itself notes of every write.
_NOTED = {"transient_lastDdlTime"}
# Iceberg's own catalog for Hive wants a metastore service, and pyiceberg's tables in Glue have a test of
# theirs.
FORMATS = [name for name in ("delta", "hudi") if name in lakehouse.FORMATS]
HUDI = {
    "hoodie.table.name": "orders",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "id",
    "hoodie.upsert.shuffle.parallelism": "2",
    "hoodie.bulkinsert.shuffle.parallelism": "2",
}
ROW = "SELECT {0}L AS id, CAST({0}.50 AS DECIMAL(18,2)) AS price"
FACTS = {"dq.contract-id": "orders", "dq.contract-version": "1.0.0"}


@dataclass(frozen=True)
class Lakehouse:
    """A table of the metastore that its own writer made; `place` is its folder."""

    spark: SparkSession
    catalog: Catalog
    store: Store
    format: str
    place: Path

    @property
    def name(self) -> str:
        return self.catalog.id if isinstance(self.catalog, Glue) else "hive"

    def spec(self, description: str = "Ours.") -> TableSpec:
        plain = replace(flights("/x", format=self.format), parameters=(), partitions=())
        return marked(
            replace(plain, database="mesh", name="orders", location="", description=description), FACTS
        )

    def register(self, spec: TableSpec, *, adopt: bool = False) -> list[tuple[ActionKind, ActionOutcome]]:
        made = propose(self.catalog, [spec], self.store, adopt=adopt)
        return [(one.action.kind, one.outcome) for one in apply(self.catalog, made, self.store)]

    def write(self, number: int) -> None:
        """One row more, by the table's own writer."""
        row = self.spark.sql(ROW.format(number))
        if self.format == "hudi":
            # Its tables take rows by name with Hudi's own catalog alone, in place of the session's.
            row.write.format("hudi").options(**HUDI).mode("append").save(str(self.place))
            self.spark.catalog.refreshTable("mesh.orders")
        else:
            row.write.insertInto("mesh.orders")

    def evolve(self) -> None:
        """A column more, by the table's own writer."""
        row = self.spark.sql(f"{ROW.format(3)}, nullif('x', '') AS note")
        if self.format == "hudi":
            evolving = HUDI | {"hoodie.datasource.write.reconcile.schema": "true"}
            row.write.format("hudi").options(**evolving).mode("append").save(str(self.place))
            self.spark.catalog.refreshTable("mesh.orders")
        else:
            self.spark.sql("ALTER TABLE mesh.orders ADD COLUMNS (note STRING)")
            row.write.insertInto("mesh.orders")

    def raw(self) -> dict[str, Any]:
        """All that the metastore keeps and that is not dq's, as texts."""
        session: Any = self.spark
        table = (
            session._jsparkSession.sharedState().externalCatalog().unwrapped().getRawTable("mesh", "orders")
        )
        properties = _pairs(table.properties())
        own = {
            key: text
            for key, text in properties.items()
            if not key.startswith("dq.") and key not in _NOTED and key != "comment"
        }
        # Spark notes with any change what it took for granted before.
        own.setdefault("spark.sql.partitionProvider", "filesystem")
        storage = table.storage()
        return {
            "properties": own,
            "schema": table.schema().json(),
            "storage": _pairs(storage.properties()),
            "classes": str(storage.serde().toString() + storage.inputFormat().toString()),
            "location": str(storage.locationUri().toString()),
            "type": table.tableType().name(),
        }

    def entry(self) -> dict[str, Any]:
        """The metastore's entry as EMR's client for Glue, which takes its place there, writes it to Glue."""
        session: Any = self.spark
        table = (
            session._jsparkSession.sharedState().externalCatalog().unwrapped().getRawTable("mesh", "orders")
        )
        storage = table.storage()
        return {
            "Name": "orders",
            "TableType": "EXTERNAL_TABLE",
            "Parameters": {"EXTERNAL": "TRUE", **_pairs(table.properties())},
            "StorageDescriptor": {
                "Columns": [
                    {"Name": name, "Type": kind, "Comment": "as its writer says"}
                    for name, kind in self.spark.table("mesh.orders").dtypes
                ],
                "Location": str(storage.locationUri().get().toString()),
                "InputFormat": storage.inputFormat().get() if storage.inputFormat().isDefined() else "",
                "OutputFormat": storage.outputFormat().get() if storage.outputFormat().isDefined() else "",
                "SerdeInfo": {
                    "SerializationLibrary": storage.serde().get() if storage.serde().isDefined() else "",
                    "Parameters": _pairs(storage.properties()),
                },
            },
        }

    def files(self) -> dict[str, bytes]:
        """The files of metadata and logs, byte for byte."""
        folders = ("metadata", "_delta_log", ".hoodie")
        found = [file for folder in folders for file in (self.place / folder).rglob("*") if file.is_file()]
        assert found
        return {str(file): file.read_bytes() for file in found}

    def rows(self) -> list[tuple[Any, ...]]:
        frame = self.spark.table("mesh.orders")
        return sorted(tuple(row) for row in frame.selectExpr("id", "string(price)").collect())


def _pairs(scala: Any) -> dict[str, str]:
    iterator, found = scala.iterator(), {}
    while iterator.hasNext():
        pair = iterator.next()
        found[pair._1()] = pair._2()
    return found


@pytest.fixture(params=FORMATS)
def table(
    request: pytest.FixtureRequest, spark: SparkSession, store: Store, tmp_path: Path
) -> Iterator[Lakehouse]:
    spark.sql("CREATE DATABASE IF NOT EXISTS mesh")
    place = tmp_path / "orders"
    catalog = open_catalog("hive", CatalogSettings(session=lambda: spark))
    made = Lakehouse(spark, catalog, store, request.param, place)
    row = spark.sql(ROW.format(1))
    if request.param == "hudi":
        row.write.format("hudi").options(**HUDI).save(str(place))
        spark.sql(f"CREATE TABLE mesh.orders USING hudi LOCATION '{place}'")
    else:
        spark.sql(f"CREATE TABLE mesh.orders (id BIGINT, price DECIMAL(18,2)) USING delta LOCATION '{place}'")
        made.write(1)
    yield made
    spark.sql("DROP DATABASE IF EXISTS mesh CASCADE")


def test_a_registered_table_is_as_its_writer_left_it(table: Lakehouse) -> None:
    before, files, rows = table.raw(), table.files(), table.rows()

    adopted = table.register(table.spec(), adopt=True)
    changed = table.register(table.spec("Now."))
    again = table.register(table.spec("Now."))

    assert [one[0][1] for one in (adopted, changed, again)] == [
        ActionOutcome.DONE,
        ActionOutcome.DONE,
        ActionOutcome.UNCHANGED,
    ]
    assert table.raw() == before
    assert table.files() == files
    assert table.rows() == rows == [(1, "1.50")]
    live = table.catalog.read("mesh", "orders")
    assert live is not None
    assert live.spec.format == table.format
    assert live.spec.parameter("dq.contract-id") == "orders"
    assert live.spec.description == "Now."


def test_its_writer_goes_on_and_what_it_wipes_is_put_back(table: Lakehouse) -> None:
    assert table.register(table.spec(), adopt=True)[0][1] is ActionOutcome.DONE

    table.write(2)
    # Delta writes the metastore's entry anew when columns change, without the properties of others.
    table.evolve()
    table.register(table.spec())

    assert table.rows() == [(1, "1.50"), (2, "2.50"), (3, "3.50")]
    live = table.catalog.read("mesh", "orders")
    assert live is not None
    assert live.spec.parameter("dq.contract-id") == "orders"
    assert table.register(table.spec()) == [(ActionKind.NOOP, ActionOutcome.UNCHANGED)]


def test_its_entry_in_glue_stays_as_its_writer_left_it(
    table: Lakehouse, glue: GlueShim, glue_catalog: Glue
) -> None:
    client, entry = boto3.client("glue"), table.entry()
    client.create_database(DatabaseInput={"Name": "mesh"})
    client.create_table(DatabaseName="mesh", TableInput=entry)
    files, there = table.files(), replace(table, catalog=glue_catalog)

    adopted = there.register(there.spec(), adopt=True)
    changed = there.register(there.spec("Now."))
    again = there.register(there.spec("Now."))

    assert [one[0][1] for one in (adopted, changed, again)] == [
        ActionOutcome.DONE,
        ActionOutcome.DONE,
        ActionOutcome.UNCHANGED,
    ]
    live = client.get_table(DatabaseName="mesh", Name="orders")["Table"]
    assert {name: live[name] for name in ("TableType", "StorageDescriptor")} == {
        name: entry[name] for name in ("TableType", "StorageDescriptor")
    }
    assert entry["Parameters"].items() <= live["Parameters"].items()
    assert (live["Description"], live["Parameters"]["dq.contract-id"]) == ("Now.", "orders")
    assert table.files() == files
