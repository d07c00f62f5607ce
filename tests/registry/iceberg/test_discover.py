"""`dq discover iceberg://` on a REST catalog: partitioned, owned, broken and covered tables, each once."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from fakes.iceberg import RestProxy
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import DateType, LongType, NestedField

from dq.cli.main import run
from dq.operations.runtime.spark import iceberg_properties

pytestmark = [pytest.mark.spark, pytest.mark.slow]

SCHEMA = Schema(
    NestedField(1, "id", LongType(), required=False), NestedField(2, "day", DateType(), required=False)
)
BY_DAY = PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "day"))
ROWS = pa.table({"id": [1, 2], "day": pa.array([0, 1], pa.date32())})
CONTRACT = {
    "apiVersion": "v3.2.0",
    "kind": "DataContract",
    "id": "visits",
    "version": "1.0.0",
    "status": "active",
    "domain": "web",
    "schema": [
        {
            "name": "visits",
            "properties": [
                {"name": "id", "logicalType": "integer", "physicalType": "bigint"},
                {"name": "gone", "logicalType": "string"},
            ],
        }
    ],
}


@pytest.fixture
def rest(iceberg_server: RestProxy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RestCatalog:
    """A client of the catalog that also writes data; dq's own does not."""
    iceberg_server.reset()
    monkeypatch.chdir(tmp_path)
    for name, text in iceberg_server.environment.items():
        monkeypatch.setenv(name, text)
    return RestCatalog("writer", **iceberg_properties(iceberg_server.environment))


def discover(capsys: pytest.CaptureFixture[str], *sources: str) -> tuple[int, dict]:
    capsys.readouterr()
    code = run(["discover", *sources, "--format", "json"])
    return code, json.loads(capsys.readouterr().out)


def test_tables_of_a_rest_catalog_are_listed_once_and_a_broken_one_stops_no_other(
    rest: RestCatalog, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rest.create_namespace_if_not_exists("web")
    lake = tmp_path / "lake"
    server = {"server": "lake", "type": "local", "path": "lake/visits", "format": "iceberg"}
    (tmp_path / "visits.odcs.yaml").write_text(json.dumps({**CONTRACT, "servers": [server]}))
    for name, spec, properties in (
        ("visits", BY_DAY, {}),
        ("clicks", PartitionSpec(), {"owner": "crew", "domain": "ads"}),
        ("broken", PartitionSpec(), {}),
    ):
        location = f"file://{lake}/{name}"
        table = rest.create_table(f"web.{name}", SCHEMA, location, spec, properties=properties)
        table.append(ROWS)
    for file in (lake / "broken/metadata").glob("*.metadata.json"):
        file.unlink()

    for sources in (["iceberg://web"], ["iceberg://web", "lake"]):
        code, document = discover(capsys, *sources)
        tables = {
            table["names"][0] if table["names"] else table["location"]: table for table in document["tables"]
        }

        assert code == 3
        assert {"iceberg:web.visits", "iceberg:web.clicks"} <= set(tables), document
        visits, clicks = tables["iceberg:web.visits"], tables["iceberg:web.clicks"]
        assert (visits["contract"], visits["files"], visits["rows"]) == ("visits", 2, 2)
        assert visits["drift"] == [
            "+ visits.day: date",
            "- visits.gone: string",
            "~ visits partition keys: none → day",
        ]
        assert (clicks["contract"], clicks["owner"], clicks["domain"]) == (None, "crew", "ads")
        assert "NotFoundException" in tables["iceberg:web.broken"]["problem"]
        assert sorted(tables)[:3] == ["iceberg:web.broken", "iceberg:web.clicks", "iceberg:web.visits"]


def test_rows_and_files_are_those_of_the_metadata_that_the_catalog_calls_current(
    rest: RestCatalog, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rest.create_namespace_if_not_exists("Web")
    table = rest.create_table("Web.visits", SCHEMA, f"file://{tmp_path}/lake/visits")
    table.append(ROWS)
    table.append(ROWS)
    table.overwrite(ROWS.slice(0, 1))
    # A commit that the catalog rejected leaves metadata of the same version.
    current = Path(table.metadata_location.removeprefix("file:").replace("//", "/"))
    rejected = current.with_name(f"{current.name[:6]}0a1b2c3d-1111-4111-8111-111111111111.metadata.json")
    rejected.write_text(json.dumps({**json.loads(current.read_text()), "snapshots": []}))

    code, document = discover(capsys, "iceberg://Web")

    [visits] = document["tables"]
    assert (code, visits["names"], visits["problem"]) == (0, ["iceberg:web.visits"], None)
    assert (visits["files"], visits["rows"]) == (1, 1)
    table.append(ROWS)
    [visits] = discover(capsys, "iceberg://Web")[1]["tables"]
    assert (visits["files"], visits["rows"]) == (2, 3)
    assert discover(capsys, "iceberg://")[1]["tables"] == [visits]


def test_tables_of_nested_namespaces(
    rest: RestCatalog, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for namespace in ("sales", "sales.eu", "sales.eu.north"):
        rest.create_namespace_if_not_exists(namespace)
    for name in ("sales.orders", "sales.eu.north.orders"):
        rest.create_table(name, SCHEMA, f"file://{tmp_path}/lake/{name}").append(ROWS)

    tables = discover(capsys, "iceberg://")[1]["tables"]
    nested = discover(capsys, "iceberg://sales.eu.north")[1]["tables"]

    names = {table["names"][0]: table["rows"] for table in tables}
    assert names == {"iceberg:sales.orders": 2, "iceberg:sales.eu.north.orders": 2}
    assert [table["names"] for table in nested] == [["iceberg:sales.eu.north.orders"]]
    assert run(["import", "iceberg", "sales.eu.north.orders", "--output", "orders.odcs.yaml"]) == 0
