"""`dq discover hive://`: partitioned, owned, broken and covered tables of a metastore, each once."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from dq.cli.main import run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

CONTRACT = {
    "apiVersion": "v3.2.0",
    "kind": "DataContract",
    "id": "orders",
    "version": "1.0.0",
    "status": "active",
    "domain": "shop",
    "servers": [{"server": "lake", "type": "local", "path": "lake/orders", "format": "parquet"}],
    "schema": [
        {
            "name": "orders",
            "properties": [
                {"name": "id", "logicalType": "integer", "physicalType": "bigint"},
                {"name": "gone", "logicalType": "string"},
            ],
        }
    ],
}


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A lake with the tables of two databases, and a folder that is in no database."""
    monkeypatch.chdir(tmp_path)
    lake = tmp_path / "lake"
    for name in ("Sales", "crm"):
        spark.sql(f"CREATE DATABASE {name}")
    for name, keys, properties in (
        ("Sales.orders", "PARTITIONED BY (day)", ""),
        ("Sales.clicks", "", "TBLPROPERTIES ('team' = 'growth', 'domain' = 'ads')"),
        ("Sales.lost", "", ""),
        ("crm.people", "", ""),
    ):
        location = f"{lake}/{name.partition('.')[2]}"
        head = f"CREATE TABLE {name} USING parquet {keys} LOCATION '{location}' {properties}"
        rows = "SELECT id, 'x' AS name, DATE'2026-11-20' + CAST(id AS INT) AS day FROM range(3)"
        spark.sql(f"{head} AS {rows}")
    spark.sql("CREATE VIEW Sales.recent AS SELECT id FROM Sales.orders")
    spark.range(5).write.parquet(f"{lake}/loose")
    shutil.rmtree(lake / "lost")
    (tmp_path / "orders.odcs.yaml").write_text(json.dumps(CONTRACT))
    yield lake
    for name in ("Sales", "crm"):
        spark.sql(f"DROP DATABASE {name} CASCADE")


def discover(capsys: pytest.CaptureFixture[str], *sources: str) -> tuple[int, dict[str, Any]]:
    capsys.readouterr()
    code = run(["discover", *sources, "--format", "json"])
    document = json.loads(capsys.readouterr().out)
    assert document["errors"] == []
    listed = document["tables"]
    tables = {table["names"][0] if table["names"] else table["location"]: table for table in listed}
    assert len(tables) == len(listed)
    return code, tables


SALES = {"hive:sales.clicks", "hive:sales.lost", "hive:sales.orders", "hive:sales.recent"}


def test_tables_of_a_metastore_are_listed_once(lake: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, sales = discover(capsys, "hive://Sales")
    _, every = discover(capsys, "hive://", "hive://sales")
    _, with_lake = discover(capsys, "hive://sales", "lake")

    assert code == 3
    assert set(sales) == SALES
    # Other tests leave tables in the metastore.
    assert {name for name in every if name.startswith(("hive:sales.", "hive:crm."))} == {
        *SALES,
        "hive:crm.people",
    }
    assert set(with_lake) == {*SALES, "lake/loose", "lake/people"}
    for tables in (sales, every, with_lake):
        orders, clicks = tables["hive:sales.orders"], tables["hive:sales.clicks"]
        assert (orders["format"], orders["files"], orders["rows"]) == ("parquet", 3, 3)
        assert orders["partitions"] == 3
        assert (orders["columns"], orders["partition_columns"], orders["layout"]) == (3, ["day"], "hive")
        assert (orders["contract"], orders["domain"]) == ("orders", "shop")
        assert orders["drift"] == [
            "+ orders.name: string",
            "+ orders.day: date",
            "- orders.gone: string",
            "~ orders partition keys: none → day",
        ]
        assert (clicks["contract"], clicks["owner"], clicks["domain"], clicks["rows"]) == (
            None,
            "growth",
            "ads",
            3,
        )
        recent, lost = tables["hive:sales.recent"], tables["hive:sales.lost"]
        assert (recent["format"], recent["columns"], recent["problem"]) == ("view", 1, None)
        assert lost["problem"].removeprefix(f"{lake}/lost ") in ("does not exist.", "is not a folder.")
        assert lost["columns"] == 3


def test_an_unknown_database_is_an_error(lake: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["discover", "hive://sale"]) == 3

    assert "hive://sale: the catalog has no table in this database." in capsys.readouterr().err
