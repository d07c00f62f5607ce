"""`dq discover`: every table of a lake and of catalogs once, with its contract or none, drift and copies."""

from __future__ import annotations

import json
import os
import re
import sqlite3
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import boto3
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fakes.aws_lake import REGION, Lake
from fakes.command import Place

import dq

OLD = 1_700_000_000
CONTRACT = """\
apiVersion: v3.2.0
kind: DataContract
id: {id}
version: 1.0.0
status: {status}
domain: {domain}
team: {{name: crew}}
servers: [{server}]
schema:
  - name: {id}
    properties:
      - {{name: id, logicalType: integer, physicalType: bigint}}
      - {{name: amount, logicalType: number, physicalType: double}}
"""


def put(file: Path, content: str | bytes | None = None, **columns: Any) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    if content is None:
        with file.open("wb") as opened:
            pq.write_table(pa.table(columns or {"id": [1, 2], "amount": [1.0, 2.5]}), opened)
    else:
        file.write_bytes(content.encode() if isinstance(content, str) else content)
    os.utime(file, (OLD, OLD))


def contract(
    place: Place, id: str, path: str = "", status: str = "active", domain: str = "shop", **server: str
) -> None:
    place_of_data = {"type": "local", "path": path} if path else {"type": "s3"}
    terms = {"server": "lake", "format": "parquet", **place_of_data, **server}
    place.put(
        f"registry/{id}.odcs.yaml",
        CONTRACT.format(id=id, status=status, domain=domain, server=json.dumps(terms)),
    )


@pytest.fixture
def place(tmp_path: Path) -> Place:
    place = Place(tmp_path)
    lake = tmp_path / "lake"
    put(lake / "sales/orders/day=2026-05-01/a.parquet")
    put(lake / "sales/orders/day=2026-05-02/b.parquet", id=[3], amount=[9.0])
    put(lake / "sales/items/a.parquet", id=["1"], amount=[1.0])
    put(lake / "web/views/2026/05/01/a.json", '{"page": "x", "at": 1}\n')
    put(lake / "web/views/2026/05/02/a.json", '{"page": "y", "at": 2}\n')
    put(lake / "exports/customers.csv", "id,name\n1,Ana\n")
    put(lake / "exports/stock-1.csv", "sku,count\na,1\n")
    put(lake / "exports/stock-2.csv", "sku,count\nb,2\n")
    put(lake / "broken/a.parquet", "nothing like it")
    contract(place, "orders", "lake/sales/orders")
    contract(place, "items", "lake/sales/items", status="draft", domain="stock")
    return place


def look(place: Place, *words: str) -> tuple[int, dict[str, dict[str, Any]], Any]:
    ran = place.dq("discover", *words, "--registry", "registry", "--format", "json")
    return (
        ran.code,
        {table["names"][0] if table["names"] else table["location"]: table for table in ran.json["tables"]},
        ran.json,
    )


def test_every_table_has_its_files_its_layout_and_its_contract(place: Place) -> None:
    code, tables, document = look(place, "lake")

    assert code == 3
    assert {
        name: (t["format"], t["files"], t["layout"], t["contract"], t["status"]) for name, t in tables.items()
    } == {
        "lake/sales/orders": ("parquet", 2, "hive", "orders", "active"),
        "lake/sales/items": ("parquet", 1, None, "items", "draft"),
        "lake/web/views": ("json", 2, "{day:%Y/%m/%d}", None, None),
        "lake/exports/customers.csv": ("csv", 1, None, None, None),
        "lake/exports/stock-*.csv": ("csv", 2, None, None, None),
        "lake/broken": ("parquet", 1, None, None, None),
    }
    orders = tables["lake/sales/orders"]
    assert (orders["rows"], orders["partitions"], orders["partition_columns"]) == (3, 2, ["day"])
    assert orders["newest"] == "2023-11-14T22:13:20+00:00"
    assert orders["drift"] == [
        "+ orders.day: date (a guess from 2 values: all are dates of folders)",
        "~ orders partition keys: none → day",
    ]
    assert tables["lake/sales/items"]["drift"] == ["~ items.id: bigint → string"]
    assert tables["lake/broken"]["problem"] == "lake/broken/a.parquet is not a Parquet file."
    assert [name for name, table in tables.items() if table["problem"]] == ["lake/broken"]
    assert document["total"] | {"bytes": 0} == {
        "name": None,
        "tables": 6,
        "covered": 1,
        "drafts": 1,
        "share": 1 / 6,
        "bytes": 0,
    }
    assert {row["name"]: (row["tables"], row["covered"], row["drafts"]) for row in document["domains"]} == {
        None: (1, 0, 0), "exports": (2, 0, 0), "shop": (1, 1, 0), "stock": (1, 0, 1), "web": (1, 0, 0),
    }  # fmt: skip
    assert {row["name"]: row["tables"] for row in document["owners"]} == {None: 4, "crew": 2}


def test_the_text_shows_the_tables_without_a_contract_and_the_totals(place: Place) -> None:
    ran = place.dq("discover", "lake", "--registry", "registry")

    assert ran.code == 3
    assert "Without a contract (4)" in ran.out
    assert "Drift (2)" in ran.out
    assert "  lake/broken: lake/broken/a.parquet is not a Parquet file." in ran.out
    assert ran.out.splitlines()[-1].endswith(
        "1 with a contract in force (17%), 1 with a draft, 4 without; 2 with drift, 0 likely copies,"
        " 1 that cannot be read."
    )
    assert "… and 3 more" in place.dq("discover", "lake", "--limit", "1", "--registry", "registry").out


def test_the_most_read_without_a_contract_come_first(place: Place) -> None:
    reads = [
        ("lake/web/views/2026/05/01/a.json", "ana", 3),
        ("lake/web/views", "bob", 2),
        ("lake/exports/customers.csv", "ana", 9),
        ("lake/sales/orders/day=2026-05-01/a.parquet", "ana", 1_000),
        ("lake/nowhere", "ana", 5),
    ]
    paths, readers, counts = zip(*reads, strict=True)
    put(place.folder / "reads.parquet", path=paths, reader=readers, count=counts)
    put(place.folder / "reads.csv", "path,reader,count\n" + "".join(f"{p},{r},{c}\n" for p, r, c in reads))
    for file in ("reads.parquet", "reads.csv"):
        _, tables, _ = look(place, "lake", "--reads", file)

        assert list(tables)[:2] == ["lake/exports/customers.csv", "lake/web/views"]
        assert (tables["lake/web/views"]["reads"], tables["lake/web/views"]["readers"]) == (5, 2)
        assert list(tables)[-2] == "lake/sales/orders"
        assert tables["lake/broken"]["reads"] == 0


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a,b\n1,2\n", "has the columns a, b."),
        ("path,reader,count\nlake,ana,many\n", "cannot be read"),
        ("", "cannot be read"),
    ],
)
def test_a_file_of_reads_that_cannot_be_read_is_an_error(place: Place, content: str, message: str) -> None:
    put(place.folder / "reads.csv", content)
    ran = place.dq("discover", "lake", "--reads", "reads.csv", "--registry", "registry")

    assert ran.code == 2
    assert message in ran.err


def test_unchanged_folders_are_not_opened_again(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    _, before, _ = look(place, "lake")
    # Content that cannot be read, of the same size, time and inode: only the ctime may differ.
    file = place.folder / "lake/sales/items/a.parquet"
    file.chmod(0)
    _, after, _ = look(place, "lake")
    assert after == before

    put(place.folder / "lake/sales/orders/day=2026-05-03/c.parquet", id=[7], amount=[0.0])
    put(place.folder / "lake/new/a.csv", "a,b,c\n1,2,3\n")
    for old in (place.folder / "lake/exports").iterdir():
        old.unlink()
    _, tables, _ = look(place, "lake")
    assert tables["lake/sales/orders"]["rows"] == 4
    assert set(tables) - set(before) == {"lake/new"}
    assert set(before) - set(tables) == {"lake/exports/customers.csv", "lake/exports/stock-*.csv"}


def test_likely_copies_have_their_evidence(place: Place) -> None:
    lake = place.folder / "lake"
    rows = {"id": list(range(50)), "amount": [n / 3 for n in range(50)], "city": [f"c{n}" for n in range(50)]}
    put(lake / "sales/real/a.parquet", **rows)
    put(lake / "tmp/half/day=1/a.parquet", **{name: values[:25] for name, values in rows.items()})
    put(lake / "tmp/half/day=2/a.parquet", **{name: values[25:] for name, values in rows.items()})
    put(lake / "tmp/other/a.parquet", **{**rows, "id": list(range(100, 150)), "amount": [9.0] * 50})
    contract(place, "real", "lake/sales/real")
    _, tables, _ = look(place, "lake")

    assert {name: (t["copy_of"], t["evidence"]) for name, t in tables.items() if t["copy_of"]} == {
        "lake/tmp/half": (
            "lake/sales/real",
            "3 of 3 columns, the same number of rows, 6 of 6 equal minima and maxima",
        )
    }


def test_files_of_several_formats_in_a_folder_are_tables_of_their_own(place: Place) -> None:
    for name, content in (("a.csv", "x,y\n1,2\n"), ("b.json", '{"x": 1}\n'), ("c1.json", '{"x": 2}\n')):
        put(place.folder / "lake/mixed" / name, content)
    found = set(look(place, "lake/mixed")[1])
    assert found == {"lake/mixed/a.csv", "lake/mixed/*.json"}

    contract(place, "mixed", "lake/mixed", format="json")
    assert {name: t["contract"] for name, t in look(place, "lake/mixed")[1].items()} == {
        "lake/mixed": "mixed"
    }


def test_nested_roots_list_no_table_twice(place: Place) -> None:
    once = look(place, "lake")[1]
    absolute = str(place.folder / "lake" / "sales")

    assert set(look(place, "lake", "lake/sales", absolute, "lake/")[1]) == set(once)


def test_a_contract_says_where_a_table_begins(place: Place) -> None:
    lake = place.folder / "lake"
    put(lake / "events/eu/a.parquet")
    put(lake / "events/us/a.parquet")
    assert {"lake/events/eu", "lake/events/us"} < set(look(place, "lake")[1])

    contract(
        place,
        "events",
        "lake/events",
        customProperties=[{"property": "layout", "vendor": "dq", "value": {"path": "{tenant}"}}],
    )  # type: ignore[arg-type]
    events = look(place, "lake")[1]["lake/events"]
    assert (events["contract"], events["files"], events["layout"]) == ("events", 2, "{tenant}")
    assert events["partition_columns"] == ["tenant"]


def test_links_and_tables_without_columns_are_reported(place: Place) -> None:
    lake = place.folder / "lake"
    (lake / "loop").symlink_to(lake)
    schema = json.dumps({"type": "struct", "fields": []})
    log = {"metaData": {"id": "a", "schemaString": schema, "partitionColumns": []}}
    put(lake / "empty/_delta_log/00000000000000000000.json", json.dumps(log) + "\n")
    current = {"schema-id": 0, "fields": [{"id": 1, "name": "a", "required": False, "type": "int"}]}
    snapshot = {"snapshot-id": 1, "manifest-list": "file:///etc/passwd"}
    metadata = {
        "format-version": 2,
        "location": "file:///etc",
        "current-schema-id": 0,
        "schemas": [current],
        "current-snapshot-id": 1,
        "snapshots": [snapshot],
    }
    put(lake / "foreign/metadata/v1.metadata.json", json.dumps(metadata))
    code, tables, document = look(place, "lake")

    assert code == 3
    assert document["errors"] == ["lake/loop is a link, which is not followed."]
    assert tables["lake/empty"]["problem"] == "lake/empty: its log cannot be understood."
    assert tables["lake/foreign"]["problem"]
    assert len(tables) == 8


def test_what_cannot_be_listed_stops_nothing_else(place: Place) -> None:
    place.put("registry/damaged.odcs.yaml", "id: [")
    ran = place.dq("discover", "lake", "nowhere", "--registry", "registry", "--format", "json")

    assert ran.code == 3
    assert ran.json["errors"] == ["nowhere is not a folder. Check the path."]
    assert len(ran.json["tables"]) == 6
    assert len(ran.json["findings"]) == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["glue://a/b"], "'glue://a/b' is not a database."),
        (["lake", "--registry", "nowhere"], "nowhere does not exist"),
        ([], "Missing argument"),
    ],
)
def test_mistakes_of_the_caller(place: Place, words: list[str], message: str) -> None:
    ran = place.dq("discover", *words)

    assert ran.code in (2, 3)
    assert message in ran.err


def test_nothing_is_written_to_lake_or_registry(place: Place) -> None:
    def state() -> dict[str, bytes]:
        return {
            str(path): path.read_bytes()
            for top in ("lake", "registry")
            for path in (place.folder / top).rglob("*")
            if path.is_file()
        }

    before = state()
    look(place, "lake")
    assert state() == before


def test_a_registry_without_contracts_is_no_error(place: Place) -> None:
    for file in (place.folder / "registry").iterdir():
        file.unlink()
    ran = place.dq("discover", "lake/web", "--registry", "registry", "--format", "json")

    assert (ran.code, len(ran.json["tables"])) == (0, 1)
    assert "registry contains no contract, so all tables are listed without one." in ran.err

    ran = place.dq("discover", "lake/web")
    assert (ran.code, "Without a contract (1)" in ran.out) == (0, True)
    assert "The working folder contains no contract, so all tables are listed without one." in ran.err
    assert "--registry names another folder." in ran.err


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> Iterator[Lake]:
    with Lake() as lake:
        for name, text in lake.variables.items():
            monkeypatch.setenv(name, text)
        yield lake


def glue_table(glue: Any, database: str, name: str, location: str, **parts: Any) -> None:
    columns = [{"Name": "id", "Type": "bigint"}, {"Name": "amount", "Type": "double"}]
    storage = {
        "Columns": columns,
        "Location": location,
        "InputFormat": "org.apache.hadoop.hive.ql.io.parquet.MapredParquetInputFormat",
        "OutputFormat": "org.apache.hadoop.hive.ql.io.parquet.MapredParquetOutputFormat",
        "SerdeInfo": {"SerializationLibrary": "org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe"},
    }
    table = {"Name": name, "TableType": "EXTERNAL_TABLE", "StorageDescriptor": storage, **parts}
    glue.create_table(DatabaseName=database, TableInput=table)


def test_tables_of_glue_are_merged_with_the_folders_of_a_bucket(place: Place, aws: Lake) -> None:
    for path in (place.folder / "lake").rglob("*.*"):
        if path.is_file():
            aws.s3.upload_file(str(path), "lake", f"raw/{path.relative_to(place.folder / 'lake')}")
    glue = boto3.client("glue", region_name=REGION, endpoint_url=aws.variables["AWS_ENDPOINT_URL"])
    for database in ("sales", "other"):
        glue.create_database(DatabaseInput={"Name": database})
    day = [{"Name": "day", "Type": "date"}]
    glue_table(glue, "sales", "orders", "s3://lake/raw/sales/orders/", PartitionKeys=day,
               Parameters={"owner": "ana@example.com", "classification": "parquet"})  # fmt: skip
    glue_table(glue, "sales", "gone", "s3://lake/gone/")
    glue_table(glue, "other", "items", "s3://lake/raw/sales/items/")
    glue.create_table(DatabaseName="other", TableInput={
        "Name": "seen", "TableType": "VIRTUAL_VIEW", "ViewOriginalText": "select 1",
        "StorageDescriptor": {"Columns": [{"Name": "id", "Type": "bigint"}]},
    })  # fmt: skip
    lake = boto3.client("lakeformation", region_name=REGION, endpoint_url=aws.variables["AWS_ENDPOINT_URL"])
    for tag, values in {"owner": ["crew-web", "crew-sales"], "domain": ["shop"]}.items():
        lake.create_lf_tag(TagKey=tag, TagValues=values)
    tags = {"other": {"owner": "crew-web", "domain": "shop"}, "sales": {"owner": "crew-sales"}}
    for database, own in tags.items():
        lake.add_lf_tags_to_resource(
            Resource={"Database": {"Name": database}},
            LFTags=[{"TagKey": tag, "TagValues": [value]} for tag, value in own.items()],
        )
    contract(place, "orders", location="s3://lake/raw/sales/orders")
    code, tables, document = look(place, "glue://", "s3://lake/raw")

    assert code == 3
    assert set(tables) == {
        "glue:sales.orders", "glue:sales.gone", "glue:other.items", "glue:other.seen", "s3://lake/raw/web/views",
        "s3://lake/raw/exports/customers.csv", "s3://lake/raw/exports/stock-*.csv", "s3://lake/raw/broken",
    }  # fmt: skip
    orders = tables["glue:sales.orders"]
    assert (orders["location"], orders["files"], orders["contract"], orders["layout"]) == (
        "s3://lake/raw/sales/orders", 2, "orders", "hive",
    )  # fmt: skip
    assert orders["owner"] == "crew"
    assert tables["glue:sales.gone"]["problem"] == "s3://lake/gone is not a folder."
    assert tables["glue:other.seen"]["problem"] is None
    assert tables["glue:other.items"]["rows"] == 1
    assert [(tables[name]["owner"], tables[name]["domain"]) for name in sorted(tables) if name[0] == "g"] == [
        ("crew-web", "shop"), ("crew-web", "shop"), ("crew-sales", "sales"), ("crew", "shop"),
    ]  # fmt: skip
    assert document["errors"] == []

    alone = look(place, "glue://sales")[1]
    assert {name: table["files"] for name, table in alone.items()} == {
        "glue:sales.orders": 2,
        "glue:sales.gone": 0,
    }
    # Once read, only listings; what was just written may still change.
    later = datetime.now(UTC) + timedelta(hours=1)
    dq.discover("s3://lake/raw", registry="registry", folder=place.folder, now=later)
    aws.requests.clear()
    dq.discover("s3://lake/raw", registry="registry", folder=place.folder, now=later)
    assert [path for method, path in aws.requests if method == "GET" and "list-type" not in path] == []


def test_a_database_that_does_not_exist_is_an_error_of_its_source(place: Place, aws: Lake) -> None:
    code, tables, document = look(place, "glue://nowhere", "lake/web")

    assert (code, list(tables)) == (3, ["lake/web/views"])
    assert document["errors"] == ["glue://nowhere: the catalog has no table in this database."]


def test_tables_of_the_local_catalog(place: Place) -> None:
    contract(place, "items", "lake/sales/items")
    assert place.dq("register", "registry/items.odcs.yaml", "--apply").code == 0
    _, tables, _ = look(place, "local://", "lake")

    assert tables["local:shop.items"]["location"] == "lake/sales/items"
    assert tables["local:shop.items"]["contract"] == "items"
    assert len(tables) == 6


def test_it_is_the_function(place: Place) -> None:
    ran = place.dq("discover", "lake", "--registry", "registry", "--format", "json")
    outcome = dq.discover("lake", registry="registry", folder=place.folder)

    assert outcome.exit_code == ran.code
    assert {table.contracted.contract.id for table in outcome.tables if table.contracted} == {
        "orders",
        "items",
    }


POLICY = """\
coverage:
  min: 50%
  domains: {exports: 0%, stock: 100%, nowhere: 10%}
"""


def test_domains_below_the_coverage_of_the_policy_fail(place: Place) -> None:
    (place.folder / "lake/broken/a.parquet").unlink()
    for id, path in (("views", "lake/web/views"), ("orders", "lake/sales/orders")):
        contract(place, id, path, format="json" if id == "views" else "parquet")
    place.put("registry/dq-policy.yaml", POLICY)
    code, _, document = look(place, "lake")

    assert code == 1
    assert [
        (row["name"], row["covered"], row["tables"], row["minimum"], row["missing"])
        for row in document["shortfalls"]
    ] == [("stock", 0, 1, 1.0, 1)]
    ran = place.dq("discover", "lake", "--registry", "registry")
    assert "Below the policy's coverage (1)" in ran.out
    assert "  stock: 0 of 1 table with a contract in force, 100% required: 1 missing" in ran.out
    assert "the domain 'nowhere', which has no table here" in ran.err


def test_a_policy_may_count_only_tables_that_are_read(place: Place) -> None:
    put(place.folder / "reads.csv", "path,reader,count\nlake/web/views,ana,2\n")
    place.put("registry/dq-policy.yaml", "coverage: {min: 100%, of: read}\n")
    assert [row["name"] for row in look(place, "lake", "--reads", "reads.csv")[2]["shortfalls"]] == ["web"]

    put(place.folder / "lake/web/unread/a.csv", "a,b\n1,2\n")
    look(place, "lake", "--reads", "reads.csv")
    dq.build_portal("site", "registry", folder=place.folder)
    page = (place.folder / "site/domains/index.html").read_text()
    assert '0.0% <span class="state late">below 100% of the 1 that are read</span>' in page
    assert "Most read tables without a contract" in page

    ran = place.dq("discover", "lake", "--registry", "registry")
    assert (ran.code, "no reads are known" in ran.err) == (2, True)


@pytest.mark.parametrize(
    ("coverage", "message"),
    [
        ("{min: 101%}", "Write a share from 0% to 100%, e.g. 80%."),
        ("{min: most}", "Write a share from 0% to 100%, e.g. 80%."),
        ("{domains: {sales: 2}}", "the coverage of 'sales' is not a share."),
        ("{of: read}", "the coverage has no minimum."),
        ("{min: 80%, of: written}", "written"),
        ("{minimum: 80%}", "minimum"),
    ],
)
def test_a_coverage_that_is_none_is_an_error_of_the_policy(place: Place, coverage: str, message: str) -> None:
    place.put("registry/dq-policy.yaml", f"coverage: {coverage}\n")
    ran = place.dq("discover", "lake", "--registry", "registry")

    assert ran.code == 2
    assert "the policy is invalid" in ran.err
    assert message in ran.err


def test_the_last_counts_are_metrics_and_a_part_of_the_portal(place: Place) -> None:
    folder, now = place.folder, datetime(2026, 5, 20, 6, tzinfo=UTC)

    def domains(at: datetime) -> str:
        dq.build_portal("site", "registry", folder=folder, now=at)
        return (folder / "site/domains/index.html").read_text()

    (folder / "lake/broken/a.parquet").unlink()
    assert "No tables were counted." in domains(now)
    place.put("registry/dq-policy.yaml", "coverage: {min: 60%}\n")
    dq.discover(["lake", "nowhere"], registry="registry", folder=folder, now=now)

    later = now + timedelta(days=8)
    for at in (now, later):
        text = dq.metrics(folder=folder, now=at)
        assert 'dq_discovered_tables{domain="shop",contract="in force"} 1\n' in text
        assert 'dq_discovered_tables{domain="exports",contract="none"} 2\n' in text
        assert 'dq_discovered_tables{domain="stock",contract="draft"} 1\n' in text
    page = domains(later)
    assert "2026-05-20 06:00 UTC" in page
    assert "<strong>Incomplete:</strong> 1 of the places and contracts could not be read" in page
    assert "<td><bdi>lake/exports/customers.csv</bdi></td><td><bdi>exports</bdi></td>" in page
    rows = [re.sub("<[^>]*>", " ", row).split() for row in page.splitlines() if row.startswith("<tr><td>")]
    assert ["exports", "2", "0", "0", "2", "0.0%", "below", "60%"] in rows
    assert ["shop", "1", "1", "0", "0", "100.0%"] in rows
    assert ["All", "5", "1", "1", "3", "20.0%"] in rows
    shop = (folder / "site/domains/shop.html").read_text()
    assert "1 of 1 table, as of 2026-05-20 06:00 UTC" in shop

    stale = later + timedelta(minutes=1)
    assert "dq_discovered_tables{" not in dq.metrics(folder=folder, now=stale)
    assert "dq_last_discovery_timestamp_seconds" in dq.metrics(folder=folder, now=stale)
    page = domains(stale)
    assert "Tables were last counted" in page
    assert "customers.csv" not in page
    assert "100.0%" not in (folder / "site/domains/shop.html").read_text().partition("Tables with")[2]
    # What is counted later is not known before.
    assert "No tables were counted." in domains(now - timedelta(minutes=1))


def test_only_the_newest_run_has_its_tables_without_a_contract(place: Place) -> None:
    now = datetime(2026, 5, 20, 6, tzinfo=UTC)
    for hours in range(102):
        dq.discover("lake/web", registry="registry", folder=place.folder, now=now + timedelta(hours=hours))
    with sqlite3.connect(place.folder / ".dq/store.db") as store:
        stored = store.execute(
            "SELECT number, uncovered IS NULL FROM discovery_run ORDER BY number"
        ).fetchall()

    assert [number for number, _ in stored] == list(range(3, 103))
    assert [number for number, is_empty in stored if not is_empty] == [102]


def git(folder: Path, *words: str) -> str:
    command = ["git", "-C", str(folder), "-c", "user.name=Ana", "-c", "user.email=ana@example.com", *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def as_repository(place: Place) -> Path:
    registry = place.folder / "registry"
    place.put("registry/dq-policy.yaml", "profile: default\n")
    place.put("registry/CODEOWNERS", "/web/ @acme/web\n")
    git(registry, "init", "-q", "-b", "main")
    git(registry, "add", "-A")
    git(registry, "commit", "-qm", "start")
    for name, text in (("user.name", "Dee"), ("user.email", "dee@example.com")):
        git(registry, "config", name, text)
    return registry


def test_open_needs_a_repository(place: Place) -> None:
    ran = place.dq("discover", "lake", "--registry", "registry", "--open")

    assert ran.code == 2
    assert "registry is not in a Git repository." in ran.err


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_open_writes_contracts_that_validate_and_hold(place: Place) -> None:
    registry = as_repository(place)
    put(place.folder / "lake/web/clicks/a.parquet", id=list(range(40)), kind=["a", "b"] * 20, at=[1] * 40)
    put(place.folder / "lake/tmp/clicks/a.parquet", id=list(range(40)), kind=["a", "b"] * 20, at=[1] * 40)
    # Spark resolves a relative path in the folder in which its JVM was started.
    lake = str(place.folder / "lake")
    words = ("discover", lake, "--registry", "registry", "--open", "--format", "json")
    opened = {branch["branch"].rpartition("-")[0]: branch for branch in place.dq(*words).json["branches"]}

    # One of the two alike is a copy; a pattern of names and what cannot be read have no contract.
    assert {name: (branch["state"], branch["files"]) for name, branch in opened.items()} == {
        "discover/views": ("opened", ["web/views.odcs.yaml"]),
        "discover/clicks": (
            "opened",
            ["tmp/clicks_{}.odcs.yaml".format(opened["discover/clicks"]["branch"][-8:])],
        ),
        "discover/customers": ("opened", ["exports/customers.odcs.yaml"]),
    }
    assert git(registry, "status", "--porcelain") == ""
    for branch in opened.values():
        git(registry, "switch", "-q", branch["branch"])
        file = f"registry/{branch['files'][0]}"
        assert place.dq("validate", file).code == 0
        ran = place.dq("check", file)
        assert ran.code == 0, ran.all
    git(registry, "switch", "-q", opened["discover/views"]["branch"])
    text = (registry / "web/views.odcs.yaml").read_text()
    assert "status: draft" in text
    assert "- metric: rowCount  # never empty in" in text
    assert "# The owner is that of CODEOWNERS." in text
    assert "username: acme/web" in text
    assert "{day:%Y/%m/%d}" in text
    git(registry, "switch", "-q", "main")

    again = {branch["state"] for branch in place.dq(*words).json["branches"]}
    assert again == {"unchanged"}
    name = opened["discover/customers"]["branch"]
    git(registry, "switch", "-q", name)
    (registry / "exports/customers.odcs.yaml").write_text("edited\n")
    git(registry, "commit", "-qam", "edit")
    git(registry, "switch", "-q", "main")
    put(place.folder / "lake/exports/customers.csv", "id,name,city\n1,Ana,Rome\n")
    states = {branch["branch"]: branch["state"] for branch in place.dq(*words).json["branches"]}
    assert states[name] == "skipped"
    assert git(registry, "show", f"{name}:exports/customers.odcs.yaml") == "edited\n"

    by_domain = place.dq(*words, "--by", "domain").json["branches"]
    assert {branch["branch"]: len(branch["files"]) for branch in by_domain} == {
        "discover/domain-exports": 1, "discover/domain-tmp": 1, "discover/domain-web": 1,
    }  # fmt: skip
