"""`dq import iceberg FOLDER`: the newest metadata in a table's folder, whoever wrote it and however."""

from __future__ import annotations

import gzip
import json
import re

import pytest
import yaml
from pyiceberg import types as ice
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import BucketTransform, DayTransform, IdentityTransform

from dq.contracts.types import catalog_type
from dq.contracts.yaml.parse import read
from dq.lake.types import from_iceberg
from dq.registry.iceberg import ddl
from dq.registry.importing import kinds
from dq.registry.importing.contract_text import ContractHead, contract_text
from dq.registry.importing.sources import table_from_spec
from dq.registry.table import TableColumn, TableSpec

LINE = ice.StructType(
    ice.NestedField(20, "sku", ice.StringType(), required=True, doc="Of the article."),
    ice.NestedField(21, "price", ice.DecimalType(9, 2)),
)
SCHEMA = Schema(
    ice.NestedField(1, "id", ice.LongType(), required=True, doc='Its "number": \\'),
    ice.NestedField(2, "at", ice.TimestamptzType()),
    ice.NestedField(3, "local", ice.TimestampType()),
    ice.NestedField(4, "lines", ice.ListType(30, LINE, element_required=False)),
    ice.NestedField(5, "rates", ice.MapType(31, ice.StringType(), 32, ice.FloatType(), value_required=True)),
    ice.NestedField(6, "key", ice.UUIDType()),
    ice.NestedField(7, "hash", ice.FixedType(16)),
    ice.NestedField(8, "day", ice.DateType()),
    ice.NestedField(9, "area", ice.StringType()),
    identifier_field_ids=[1],
)
PARTS = PartitionSpec(
    PartitionField(9, 1000, IdentityTransform(), "area"),
    PartitionField(8, 1001, IdentityTransform(), "day"),
    PartitionField(2, 1002, DayTransform(), "at_day"),
    PartitionField(1, 1003, BucketTransform(8), "id_bucket"),
)


def types(path):
    [one] = read(path).objects
    return {prop.column: str(catalog_type(prop)) for prop in one.properties}


def metadata(moment, *names, **more):
    """Metadata of a table with these columns of texts, as one that was written at a moment."""
    fields = [
        {"id": at, "name": name, "type": "string", "required": False} for at, name in enumerate(names, 1)
    ]
    made = {"format-version": 2, "last-updated-ms": moment, "current-schema-id": 0,
            "schemas": [{"schema-id": 0, "fields": fields}]}  # fmt: skip
    return json.dumps({**made, **more}).encode()


def put(folder, **files):
    (folder / "t/metadata").mkdir(parents=True)
    for name, data in files.items():
        (folder / "t/metadata" / name).write_bytes(data)


def test_a_table_of_others_is_read_from_its_folder_alone(dq, folder):
    catalog = SqlCatalog("theirs", uri=f"sqlite:///{folder}/c.db", warehouse=f"file://{folder}/w")
    catalog.create_namespace("sales")
    table = catalog.create_table(
        "sales.orders", SCHEMA, partition_spec=PARTS, location=f"file://{folder}/lake/orders",
        properties={"comment": "All orders."},
    )  # fmt: skip
    with table.update_schema() as update:
        update.add_column("added", ice.IntegerType(), "Later.")
        update.rename_column("local", "here")

    ran = dq("import", "iceberg", "lake/orders", "-o", "made.odcs.yaml")

    assert ran.code == 0, ran.err
    assert types(folder / "made.odcs.yaml") == {
        "id": "bigint", "at": "timestamp", "here": "timestamp_ntz",
        "lines": "array<struct<sku:string,price:decimal(9,2)>>", "rates": "map<string,float>",
        "key": "string", "hash": "binary", "added": "int", "area": "string", "day": "date",
    }  # fmt: skip
    [one] = read(folder / "made.odcs.yaml").objects
    assert [prop.column for prop in one.partition_keys()] == ["area", "day"]
    assert [prop.column for prop in one.primary_key()] == ["id"]
    columns = {prop.column: prop for prop in one.properties}
    assert (columns["id"].required, columns["id"].description) == (True, 'Its "number": \\')
    sku, price = columns["lines"].items.properties
    assert (sku.required, sku.description, price.required) == (True, "Of the article.", None)
    assert columns["rates"].map.value.required is True
    assert one.description == "All orders."
    for told in ("partitioned by day of at", "partitioned by bucket[8] of id"):
        assert told in ran.err
    assert "# Stored as uuid." in (folder / "made.odcs.yaml").read_text()
    assert dq("validate", "made.odcs.yaml").code == 0


def test_types_are_called_as_in_a_catalog_of_iceberg():
    kinds = [ice.BooleanType(), ice.IntegerType(), ice.LongType(), ice.FloatType(), ice.DoubleType(),
             ice.DateType(), ice.TimestampType(), ice.TimestamptzType(), ice.StringType(),
             ice.BinaryType()]  # fmt: skip
    plain = {str(kind): kind for kind in kinds}

    types = {name: str(from_iceberg(name)[0]) for name in plain}
    assert types == {name: ddl(kind) for name, kind in plain.items()}


OLD, NOW = metadata(1, "old"), metadata(2, "now")


@pytest.mark.parametrize(
    "files",
    [
        {"v9.metadata.json": OLD, "v10.metadata.json": NOW},
        # A hint that lags behind, and one that is damaged.
        {"v1.metadata.json": OLD, "v2.metadata.json": NOW, "version-hint.text": b"1\n"},
        {"v1.metadata.json": OLD, "v2.metadata.json": NOW, "version-hint.text": b"\xff"},
        # What lies behind a gap was never committed.
        {"v2.metadata.json": NOW, "v7.metadata.json": metadata(9, "old"), "version-hint.text": b"2"},
        {"00002-b.metadata.json": OLD, "00010-a.metadata.json": NOW},
        # Two commits of one number: one of them failed.
        {"00003-a.metadata.json": metadata(5, "now"), "00003-b.metadata.json": metadata(4, "old")},
        # A table of a folder that a catalog took over begins to count again.
        {"v5.metadata.json": OLD, "00000-a.metadata.json": NOW},
        {"v1.metadata.json": OLD, "v2.gz.metadata.json": gzip.compress(NOW)},
        {"v1.metadata.json": OLD, "v2.metadata.json.gz": gzip.compress(NOW)},
        {"00001-a.gz.metadata.json": gzip.compress(NOW), "00000-a.metadata.json": OLD},
        {"v1.metadata.json": metadata(1, "now", **{"current-schema-id": 9, "schema": {"fields": [
            {"id": 1, "name": "now", "type": "string"}]}, "partition-spec": []})},
    ],
)  # fmt: skip
def test_the_newest_metadata_counts(dq, folder, files):
    put(folder, **files)

    ran = dq("import", "iceberg", "./t/", "-o", "made.odcs.yaml")

    assert (ran.code, ran.err) == (0, "")
    assert list(types(folder / "made.odcs.yaml")) == ["now"]


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ({}, "has no *.metadata.json"),
        ({"snap-1.avro": b""}, "has no *.metadata.json"),
        ({"v1.metadata.json": b""}, "v1.metadata.json is not Iceberg metadata"),
        ({"v1.metadata.json": b"[]"}, "v1.metadata.json is not Iceberg metadata"),
        ({"v1.metadata.json": b"[" * 100_000}, "v1.metadata.json is not Iceberg metadata"),
        ({"v1.metadata.json": b"{}"}, "has no columns"),
        ({"v1.metadata.json": b'{"schemas": 7, "schema": [1], "partition-spec": 8}'}, "has no columns"),
        ({"v1.gz.metadata.json": gzip.compress(metadata(1, "x"))[:-9]}, "is not a readable gzip file"),
        ({"v1.gz.metadata.json": b"\x1f\x8b\x08junk"}, "is not a readable gzip file"),
        ({"v1.metadata.json": b'{"view-uuid": "x", "schemas": []}'}, "describes a view"),
    ],
)
def test_what_is_no_table_is_said_in_a_sentence(dq, folder, files, reason):
    put(folder, **files)

    ran = dq("import", "iceberg", "t")

    assert ran.code in (2, 3)
    assert (ran.out, "Traceback" in ran.err, reason in ran.err) == ("", False, True), ran.err


@pytest.mark.parametrize(("kind", "log"), [("iceberg", "metadata"), ("delta", "_delta_log")])
def test_a_table_that_is_not_there_is_said_to_be_missing(dq, folder, kind, log):
    ran = dq("import", kind, "./nowhere")

    assert (ran.code, ran.out) == (3, "")
    assert f"./nowhere/{log} cannot be read: no such file or folder." in ran.err


def test_a_packed_file_is_unpacked_no_further_than_others_are_read(dq, folder):
    packed = gzip.compress(b" " * (300 << 20), 1)
    put(folder, **{"v1.gz.metadata.json": packed})

    ran = dq("import", "iceberg", "t")

    assert (ran.code, "holds more than 128 MiB" in ran.err) == (3, True)


def test_columns_that_mean_harm_are_texts(dq, folder):
    fields = [
        {"id": 1, "name": "a\n- name: b\n# ${HOME} {{x}}", "type": "string", "doc": "x\n    required: true"},
        {"id": "no", "name": "odd", "type": {"type": "list"}, "doc": 7},
        {"id": [1], "name": "list", "type": "string"},
        {"id": 1, "name": "more", "type": "geometry(OGC:CRS84)"},
    ]
    put(
        folder,
        **{
            "v1.metadata.json": metadata(
                1,
                schemas=[{"schema-id": 0, "fields": fields, "identifier-field-ids": [[1]]}],
                **{
                    "default-spec-id": 0,
                    "partition-specs": [
                        {"spec-id": 0, "fields": [{"source-id": [1], "transform": "identity"}]}
                    ],
                },
            )
        },
    )

    ran = dq("import", "iceberg", "t", "-o", "made.odcs.yaml")

    assert ran.code == 0
    assert list(types(folder / "made.odcs.yaml")) == [one["name"] for one in fields]
    assert (
        "# Declared as geometry(OGC:CRS84), which Spark does not support."
        in (folder / "made.odcs.yaml").read_text()
    )


@pytest.mark.parametrize(
    ("kind", "written"),
    [
        ("time", {"logicalType": "time", "physicalType": "time"}),
        ("interval", {"logicalType": "string", "physicalType": "interval"}),
        ("timestamp_ns", {"logicalType": "timestamp", "physicalType": "timestamp_ntz"}),
    ],
)
def test_a_type_with_which_spark_opens_no_table_is_no_text(dq, folder, kind, written):
    fields = [
        {"id": 1, "name": "at", "type": kind},
        {"id": 2, "name": "inner", "type": {"type": "list", "element-id": 3, "element": kind}},
    ]
    put(folder, **{"v1.metadata.json": metadata(1, schemas=[{"schema-id": 0, "fields": fields}])})

    ran = dq("import", "iceberg", "t", "-o", "made.odcs.yaml")

    at, inner = yaml.safe_load((folder / "made.odcs.yaml").read_text())["schema"][0]["properties"]
    assert {key: at[key] for key in written} == written
    assert {key: inner["items"][key] for key in written} == written
    for name in ("at", "inner"):
        assert f"{name}: type {kind}; Spark cannot open a table with such a column" in ran.err
    assert dq("import", "iceberg", "t", "-o", "made.odcs.yaml").code == 0
    assert dq("validate", "made.odcs.yaml").code == 0


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (ice.UUIDType(), "string"),
        (ice.FixedType(16), "binary"),
        (ice.ListType(2, ice.UUIDType()), "array<string>"),
        (ice.TimestampType(), "timestamp_ntz"),
        (ice.TimestamptzType(), "timestamp"),
        (ice.TimeType(), "time"),
    ],
)
def test_a_catalog_s_types_become_those_of_a_folder(kind, expected):
    column = TableColumn("at", ddl(kind))
    made = contract_text(
        ContractHead("t"), [table_from_spec(TableSpec("s", "t", "/t", "iceberg", (column,)))]
    )

    [prop] = yaml.safe_load(made)["schema"][0]["properties"]
    assert prop.get("physicalType", f"array<{prop.get('items', {}).get('physicalType')}>") == expected


def test_a_name_without_a_folder_is_one_of_the_catalog(dq, folder, monkeypatch):
    monkeypatch.delenv("PYICEBERG_CATALOG__DEFAULT__URI", raising=False)

    assert "The address of the Iceberg catalog is missing." in dq("import", "iceberg", "sales.orders").err


def test_every_kind_is_in_the_help(dq):
    shown = " ".join(dq("import", "--help").out.replace("│", " ").split())

    for kind in [*kinds.load(), "hive", "glue", "local"]:
        assert re.search(rf"\b{kind}\b", shown), kind
