"""`dq import`: a table that exists becomes a contract that passes, and says what is a guess."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import boto3
import pyarrow as pa
import pytest
from fakes.late_s3 import LateS3, environment
from pyarrow import parquet

from dq.contracts.access.data_location import text_format
from dq.contracts.types import catalog_type
from dq.contracts.yaml.parse import parse

TYPES = [
    "string", "boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "decimal(9,2)",
    "decimal(38,0)", "date", "timestamp", "timestamp_ntz", "binary", "char(3)", "varchar(20)",
    "array<int>", "array<array<string>>", "map<string,double>", "map<int,array<date>>",
    "struct<a:int,b:array<struct<c:decimal(5,1),d:string>>>", "array<map<string,struct<x:binary>>>",
]  # fmt: skip


def types(path):
    contract = parse(path.read_bytes(), path.name).contract
    [one] = contract.objects
    return {prop.column: str(catalog_type(prop)) for prop in one.properties}


def keys(path):
    contract = parse(path.read_bytes(), path.name).contract
    return [prop.column for prop in contract.objects[0].partition_keys()]


def imported(dq, folder, *words):
    """The contract that the command writes, which the gate has nothing to say about."""
    made = folder / "made.odcs.yaml"
    ran = dq("import", *words, "--output", made.name)
    assert ran.code == 0, ran.err
    assert dq("validate", made.name).code == 0, dq("validate", made.name).out
    return made


@pytest.mark.parametrize("form", ["parquet", "json"])
def test_what_is_registered_and_imported_again_has_the_same_schema(dq, folder, form):
    columns = "".join(
        f"      - {{name: c{number}, logicalType: {logical(kind)}, physicalType: '{kind}',"
        f" description: 'Column: {number}'}}\n"
        for number, kind in enumerate(TYPES)
    )
    (folder / "orders.odcs.yaml").write_text(
        "apiVersion: v3.2.0\nkind: DataContract\nid: all\nversion: 1.0.0\nstatus: active\ndomain: sales\n"
        f"servers:\n  - {{server: lake, type: local, path: lake/all, format: {form}}}\n"
        f"schema:\n  - name: everything\n    properties:\n{columns}"
        "      - {name: day, logicalType: date, physicalType: date, partitioned: true,"
        " partitionKeyPosition: 2}\n"
        "      - {name: area, logicalType: string, physicalType: string, partitioned: true,"
        " partitionKeyPosition: 1}\n"
    )
    assert dq("register", ".", "--apply").code == 0

    made = imported(dq, folder, "local", "sales.everything")

    assert types(made) == types(folder / "orders.odcs.yaml")
    assert keys(made) == ["area", "day"]
    assert 'description: "Column: 3"' in made.read_text()
    again = dq("import", "local", "sales", "--output", "orders.odcs.yaml")
    assert (again.code, "not changed" in again.out) == (0, True)


@pytest.mark.parametrize(
    "server",
    [
        "{server: lake, type: local, path: lake/t, format: json, encoding: utf-16}",
        "{server: lake, type: local, path: lake/t, format: csv}",
        "{server: lake, type: local, path: lake/t, format: csv, customProperties: [{property: csv,"
        " vendor: dq,"
        " value: {delimiter: ';', header: false, nullText: 'NA', encoding: iso8859-1, quote: \"'\"}}]}",
        "{server: lake, type: local, path: lake/t, format: csv, customProperties: [{property: csv,"
        " vendor: dq,"
        " value: {delimiter: '|', quote: none}}]}",
    ],
)
def test_how_texts_are_written_comes_back_from_a_catalog(dq, folder, server):
    (folder / "orders.odcs.yaml").write_text(
        "apiVersion: v3.2.0\nkind: DataContract\nid: all\nversion: 1.0.0\nstatus: active\ndomain: sales\n"
        f"servers:\n  - {server}\nschema: [{{name: t, properties: [{{name: a, logicalType: string}}]}}]\n"
    )
    assert dq("register", ".", "--apply").code == 0

    made = imported(dq, folder, "local", "sales.t")

    written, read = (
        parse(path.read_bytes(), path.name).contract for path in (folder / "orders.odcs.yaml", made)
    )
    assert text_format(read.servers[0]) == text_format(written.servers[0])


def logical(kind):
    name = kind.partition("<")[0].partition("(")[0]
    return {
        "boolean": "boolean", "float": "number", "double": "number", "decimal": "number", "date": "date",
        "timestamp": "timestamp", "timestamp_ntz": "timestamp", "array": "array", "map": "map",
        "struct": "object", "string": "string", "binary": "string", "char": "string", "varchar": "string",
    }.get(name, "integer")  # fmt: skip


def test_a_folder_of_partitions_is_one_table(dq, folder):
    for day, area in (("2026-05-01", "007"), ("2026-05-02", "012")):
        place = folder / f"lake/sales/day={day}/area={area}"
        place.mkdir(parents=True)
        table = pa.table(
            {
                "id": pa.array([1], pa.int64()),
                "amount": pa.array([Decimal("1.50")], pa.decimal128(9, 2)),
                "at": pa.array([datetime(2026, 5, 1, tzinfo=UTC)], pa.timestamp("us", "UTC")),
                "tags": pa.array([["a"]], pa.list_(pa.string())),
                "big": pa.array([1], pa.uint64()),
                "born": pa.array([date(2000, 1, 1)]),
            },
            schema=None,
        )
        required = pa.field("id", pa.int64(), nullable=False)
        parquet.write_table(table.cast(table.schema.set(0, required)), place / "part-0.parquet")
        (place / "_SUCCESS").touch()

    made = imported(dq, folder, "parquet", "lake/sales")

    assert types(made) == {
        "id": "bigint", "amount": "decimal(9,2)", "at": "timestamp", "tags": "array<string>",
        "big": "decimal(20,0)", "born": "date", "day": "date", "area": "string",
    }  # fmt: skip
    assert keys(made) == ["day", "area"]
    text = made.read_text()
    assert "path: lake/sales" in text
    assert "# A guess from 2 values: all are dates of folders." in text
    assert "# Stored as uint64." in text
    assert text.count("required: true") == 1


def test_files_that_differ_are_told(dq, folder):
    (folder / "t").mkdir()
    for number, kind in enumerate((pa.int32(), pa.int64(), pa.int64())):
        parquet.write_table(pa.table({"id": pa.array([1], kind)}), folder / f"t/{number}.parquet")
    parquet.write_table(pa.table({"id": [1], "new": [1]}), folder / "t/9.parquet")

    made = imported(dq, folder, "parquet", "t")

    assert types(made) == {"id": "bigint", "new": "bigint"}
    assert "# Of 4 files: 3 × bigint, 1 × int." in made.read_text()
    assert "# In 1 of 4 files." in made.read_text()


ROWS = """\
id;amount;rate;day;code;at;ok;note;none
1;12.50;0.1;2026-01-01;007;2026-01-01 10:00:00;true;"a
b";
22;-3.10;12.25;2026-02-28;12;2026-01-01T10:00:01Z;false;x;
"""


def test_csv_is_guessed_with_its_evidence_and_its_delimiter(dq, folder):
    (folder / "orders.csv").write_text(ROWS)

    made = imported(dq, folder, "csv", "orders.csv")

    assert types(made) == {
        "id": "bigint", "amount": "decimal(18,2)", "rate": "double", "day": "date", "code": "string",
        "at": "timestamp", "ok": "boolean", "note": "string", "none": "string",
    }  # fmt: skip
    text = made.read_text()
    assert "# A guess from 2 values: all have 2 digits after the point." in text
    assert "# A guess: no values found." in text
    assert dq("sample", made.name, "orders.csv").code == 0


def test_a_word_for_no_value_is_no_text_among_numbers(dq, folder):
    (folder / "t.csv").write_text("id,temp,area,odd\n1,NA,NA,null\n2,2.5,EU,1\nNA,NA,US,2\n")

    made = imported(dq, folder, "csv", "t.csv")

    assert types(made) == {"id": "bigint", "temp": "decimal(18,1)", "area": "string", "odd": "string"}
    text = made.read_text()
    assert "nullText: NA" in text
    assert "# A guess from 1 value, 2 NA: all have 1 digit after the point." in text
    assert "# A guess from 2 values, 1 NA: they are texts." in text
    assert dq("sample", made.name, "t.csv").code == 0


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a,b\n1,2\n1\n", "x.csv:3: 1 values for 2 columns"),
        ("a,a\n1,2\n", "header line is empty or has duplicate"),
        ("a,\n1,2\n", "header line is empty or has duplicate"),
        ("", "header line is empty or has duplicate"),
        ('a,b\n"1,2\n', "not valid CSV"),
        (
            "1,2026-01-01,0.5\n2,2026-01-02,0.7\n",
            "first line looks like data, not a header: 1, 2026-01-01, 0.5.",
        ),
        (b"a\n\xff\n", "not UTF-8"),
    ],
)
def test_what_is_no_csv_is_refused(dq, folder, text, reason):
    (folder / "x.csv").write_bytes(text if isinstance(text, bytes) else text.encode())

    ran = dq("import", "csv", "x.csv")

    assert (ran.code, ran.out) == (3, "")
    assert reason in ran.err


@pytest.mark.parametrize("array", [False, True])
def test_json_is_guessed_at_any_depth(dq, folder, array):
    rows = [
        {"id": 1, "price": 1, "who": {"name": "a", "since": "2026-01-01"}, "tags": ["x"], "odd": 1},
        {"id": 2, "price": 1.5, "who": {"name": None, "age": 3}, "tags": [], "odd": "text", "late": True},
        {"id": 1 << 70},
    ]
    text = json.dumps(rows) if array else "\n".join(json.dumps(row) for row in rows)
    (folder / "orders.json").write_text(text)

    made = imported(dq, folder, "json", "orders.json")

    assert types(made) == {
        "id": "decimal(38,0)", "price": "double", "who": "struct<name:string,since:date,age:bigint>",
        "tags": "array<string>", "odd": "string", "late": "boolean",
    }  # fmt: skip
    assert "of several kinds (text, whole number)" in made.read_text()


def test_sql_says_what_it_declares_and_what_a_contract_cannot(dq, folder):
    (folder / "shop.sql").write_text(
        "CREATE TABLE shop.orders (\n"
        "  id BIGINT PRIMARY KEY, amount NUMERIC(12, 2) NOT NULL CHECK (amount > 0),\n"
        "  at TIMESTAMP WITH TIME ZONE, who JSONB, place POINT, note VARCHAR(20)\n);\n"
        "CREATE TABLE shop.lines (order_id BIGINT, line INT, PRIMARY KEY (order_id, line));\n"
        "INSERT INTO shop.lines VALUES (1, 2);\n"
    )

    made = imported(dq, folder, "sql", "shop.sql@postgres")

    contract = parse(made.read_bytes(), made.name).contract
    orders, lines = contract.objects
    assert [str(catalog_type(prop)) for prop in orders.properties][:3] == [
        "bigint",
        "decimal(12,2)",
        "timestamp",
    ]
    assert [prop.column for prop in lines.primary_key()] == ["order_id", "line"]
    assert orders.properties[1].required is True
    assert "CHECK" in made.read_text()
    assert "# Declared as POINT, which Spark does not support." in made.read_text()


def test_what_sql_creates_and_does_not_describe_is_told_and_not_quoted_by_others(dq, folder, capfd):
    (folder / "t.sql").write_text(
        "CREATE TABLE a (x INT);\nCREATE TABLE b AS SELECT 1;\nCREATE TABLE c (y INT) WITH SECRET nonsense;\n"
        "CREATE EXTENSION secret;\n"
    )

    ran = dq("import", "sql", "t.sql@postgres", "-o", "t.odcs.yaml")

    assert ran.code == 0
    assert "created without readable columns: CREATE TABLE b AS SELECT 1" in ran.err
    assert "CREATE TABLE c" in ran.err
    assert "Falling back" not in ran.err + capfd.readouterr().err


def test_sql_of_spark_has_partitions_a_place_and_comments(dq, folder):
    (folder / "t.sql").write_text(
        "CREATE TABLE s.t (a INT COMMENT 'It\\'s a', b STRUCT<x: INT, y: ARRAY<STRING>>, day DATE)\n"
        "USING parquet PARTITIONED BY (day) LOCATION 's3://lake/t' COMMENT 'All t'"
    )

    made = imported(dq, folder, "sql", "t.sql")

    assert types(made) == {"a": "int", "b": "struct<x:int,y:array<string>>", "day": "date"}
    assert keys(made) == ["day"]
    text = made.read_text()
    assert "location: s3://lake/t" in text or 'location: "s3://lake/t"' in text
    assert "It's a" in text
    assert "All t" in text


def test_sql_says_what_is_inside_of_columns(dq, folder):
    (folder / "t.sql").write_text(
        "CREATE TABLE t (s STRUCT<a: INT COMMENT 'In\\'ner', b: STRING NOT NULL,"
        " `c d`: ARRAY<STRUCT<x: INT NOT NULL COMMENT 'Deep'>>>, m MAP<STRING, STRUCT<y: DECIMAL(9,2)"
        " COMMENT 'y'>>, twice STRUCT<a: INT, A: INT>) CLUSTERED BY (s) INTO 4 BUCKETS"
    )

    made = imported(dq, folder, "sql", "t.sql")

    s, m, twice = parse(made.read_bytes(), made.name).contract.objects[0].properties
    assert str(catalog_type(s)) == "struct<a:int,b:string,c d:array<struct<x:int>>>"
    assert [(one.description, one.required) for one in s.properties] == [
        ("In'ner", None),
        (None, True),
        (None, None),
    ]
    [deep], [y] = s.properties[2].items.properties, m.map.value.properties
    assert (deep.description, deep.required, y.description) == ("Deep", True, "y")
    assert (str(catalog_type(twice)), "# Declared as STRUCT<a: INT, A: INT>" in made.read_text()) == (
        "string",
        True,
    )
    assert "# Not in the contract: CLUSTERED BY (s) INTO 4 BUCKETS." in made.read_text()


def test_json_schema_says_what_it_declares(dq, folder):
    text = {"type": "string"}
    schema = {
        "title": "orders",
        "type": "object",
        "required": ["id"],
        "$defs": {"money": {"type": "number"}},
        "properties": {
            "id": {"type": "integer", "description": "Its number.", "minimum": 1},
            "at": {"type": "string", "format": "date-time", "enum": ["2026-01-01T00:00:00Z"]},
            "state": {"type": "string", "enum": ["paid", "open", "paid"]},
            "code": {"type": "string", "pattern": "(?=x)", "minLength": -1},
            "odd": {"type": "integer", "enum": [1, "x", None]},
            "old": {"type": "number", "minimum": 0, "exclusiveMinimum": True},
            "price": {"$ref": "#/$defs/money"},
            "lines": {
                "type": "array",
                "items": {"type": "object", "properties": {"sku": {"type": "string", "maxLength": 9}}},
            },
            "labels": {"type": "object", "additionalProperties": text},
            "any": {"type": ["string", "integer", "null"]},
            "parent": {"$ref": "#"},
            "other": {"$ref": "other.json"},
        },
    }
    (folder / "orders.schema.json").write_text(json.dumps(schema))

    made = imported(dq, folder, "jsonschema", "orders.schema.json")

    assert types(made) == {
        "id": "bigint", "at": "timestamp", "state": "string", "code": "string", "odd": "bigint",
        "old": "double", "price": "double", "lines": "array<struct<sku:string>>",
        "labels": "map<string,string>", "any": "string", "parent": "string", "other": "string",
    }  # fmt: skip
    columns = {
        prop.column: prop for prop in parse(made.read_bytes(), made.name).contract.objects[0].properties
    }
    assert columns["id"].logical_type_options.minimum == 1
    assert [one.value for one in columns["state"].enum] == ["paid", "open"]
    assert columns["lines"].items.properties[0].logical_type_options.max_length == 9
    for told in (
        "code: pattern",
        "code: minLength -1",
        "odd: enum",
        "old: exclusiveMinimum true",
        "at: enum",
    ):
        assert f"# Not in the contract: {told}" in made.read_text()
    assert "# Declared as string or integer." in made.read_text()
    assert "# Refers to itself." in made.read_text()
    assert "# Declared by other.json, which does not exist." in made.read_text()


def test_avro_says_what_it_declares(dq, folder):
    money = {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}
    number = [{"name": "n", "type": "int"}]
    schema = {
        "type": "record",
        "name": "orders",
        "doc": "All of them.",
        "fields": [
            {"name": "id", "type": "long"},
            {"name": "amount", "type": money},
            {"name": "at", "type": ["null", {"type": "long", "logicalType": "timestamp-micros"}]},
            {"name": "kind", "type": {"type": "enum", "name": "kind", "symbols": ["A"]}},
            {"name": "other", "type": ["null", "kind"]},
            {"name": "who", "type": {"type": "record", "name": "who", "fields": number}},
            {"name": "counts", "type": {"type": "map", "values": "float"}},
            {"name": "mixed", "type": ["int", "string"]},
        ],
    }
    (folder / "orders.avsc").write_text(json.dumps(schema))

    made = imported(dq, folder, "avro", "orders.avsc")

    assert types(made) == {
        "id": "bigint", "amount": "decimal(9,2)", "at": "timestamp", "kind": "string", "other": "string",
        "who": "struct<n:int>", "counts": "map<string,float>", "mixed": "string",
    }  # fmt: skip
    assert "description: All of them." in made.read_text()


# Each level names the next one twice, so that twenty levels are a million fields.
LEVELS = {
    f"l{level}": {
        "type": "object",
        "properties": {side: {"$ref": f"#/$defs/l{level + 1}"} for side in "ab"},
    }
    for level in range(30)
}
NESTED = {"type": "record", "name": "n", "fields": [{"name": side, "type": ["null", "n"]} for side in "ab"]}


@pytest.mark.parametrize(
    ("kind", "name", "text"),
    [
        ("jsonschema", "x.json", json.dumps({"$defs": LEVELS, **LEVELS["l0"]})),
        ("jsonschema", "x.json", json.dumps({"$ref": "#/$ref"})),
        ("jsonschema", "x.json", "[" * 100_000),
        ("avro", "x.avsc", json.dumps({"type": "record", "fields": [{"name": "n", "type": NESTED}]})),
        ("avro", "x.avsc", '{"type": "record", "fields": 7}'),
        ("avro", "x.avsc", '{"type": "record", "fields": [7]}'),
        ("avro", "x.avro", "Obj"),
        ("sql", "x.sql", "CREATE TABLE"),
        ("sql", "x.sql", "SELECT " + "(" * 5_000),
        ("sql", "x.sql", "SELECT 1"),
        ("json", "x.json", "{"),
        ("json", "x.json", "7"),
        ("json", "x.json", "[" * 100_000),
        ("parquet", "x.parquet", "PAR1"),
        ("parquet", "nothing", ""),
    ],
)
def test_what_cannot_be_read_is_said_in_a_sentence(dq, folder, kind, name, text):
    (folder / name).write_text(text)

    ran = dq("import", kind, name if name != "nothing" else "no/such")

    assert ran.code in (2, 3)
    assert (ran.out, "Traceback" in ran.err) == ("", False)


@pytest.mark.parametrize("log", ["", "{", '{"metaData": 7}', '{"metaData": {"schemaString": "["}}'])
def test_a_log_of_delta_that_says_nothing_is_no_table_without_columns(dq, folder, log):
    (folder / "t/_delta_log").mkdir(parents=True)
    (folder / "t/_delta_log/00000000000000000000.json").write_text(log)

    ran = dq("import", "delta", "t")

    assert ran.code in (2, 3)
    assert (ran.out, "Traceback" in ran.err) == ("", False)


def test_delta_says_what_is_inside_of_columns_and_how_long_texts_are(dq, folder):
    line = [
        {"name": "sku", "type": "string", "nullable": False, "metadata": {"comment": "Of the article."}},
        {"name": "note", "type": "string", "nullable": True, "metadata": {}},
    ]
    item = {"type": "struct", "fields": line}
    fields = [
        {"name": "code", "type": "string", "metadata": {"__CHAR_VARCHAR_TYPE_STRING": "varchar(3)"}},
        {"name": "made", "type": "integer", "metadata": {"delta.generationExpression": "1 + 1"}},
        {"name": "lines", "type": {"type": "array", "elementType": item, "containsNull": False},
         "metadata": {"__CHAR_VARCHAR_TYPE_STRING": "array<struct<sku:char(2),note:string>>"}},
        {"name": "rates", "type": {"type": "map", "keyType": "string", "valueType": "double",
                                   "valueContainsNull": False}},
        {"name": "odd", "type": "string", "metadata": {"__CHAR_VARCHAR_TYPE_STRING": "int", "comment": 7}},
    ]  # fmt: skip
    metadata = {"schemaString": json.dumps({"type": "struct", "fields": fields}), "partitionColumns": []}
    (folder / "t/_delta_log").mkdir(parents=True)
    (folder / "t/_delta_log/00000000000000000000.json").write_text(json.dumps({"metaData": metadata}))

    made = imported(dq, folder, "delta", "t")

    assert types(made) == {
        "code": "varchar(3)", "made": "int", "lines": "array<struct<sku:char(2),note:string>>",
        "rates": "map<string,double>", "odd": "string",
    }  # fmt: skip
    columns = {
        prop.column: prop for prop in parse(made.read_bytes(), made.name).contract.objects[0].properties
    }
    sku, note = columns["lines"].items.properties
    assert (sku.required, sku.description, note.required) == (True, "Of the article.", None)
    assert (columns["lines"].items.required, columns["rates"].map.value.required) == (True, True)
    assert "# Not in the contract: made: delta.generationExpression 1 + 1." in made.read_text()


@pytest.mark.parametrize(
    ("sign", "what"),
    [
        ("_delta_log/00000000000000000000.json", "a Delta table"),
        ("metadata/00000-x.metadata.json", "an Iceberg table"),
        (".hoodie/hoodie.properties", "a Hudi table"),
    ],
)
def test_files_of_a_lakehouse_table_are_not_taken_for_its_rows(dq, folder, sign, what):
    (folder / "t" / sign).parent.mkdir(parents=True)
    (folder / "t" / sign).touch()
    parquet.write_table(pa.table({"id": [1]}), folder / "t/gone.parquet")

    ran = dq("import", "parquet", "t")

    assert (ran.code, what in ran.err) == (2, True)


def test_half_a_sign_of_json_makes_a_contract_that_can_be_read(dq, folder):
    (folder / "t.json").write_text('{"a\\ud800": 1}')

    made = imported(dq, folder, "json", "t.json")

    assert list(types(made)) == ["a\ufffd"]


def test_names_and_texts_that_steer_stay_texts(dq, folder):
    evil = 'a: [x]\n# - "b'
    table = pa.table({evil: [1], "\x85\u2028\U0001f600": [1], "no": [1], "1e3": [1]})
    parquet.write_table(table, folder / "t.parquet")

    ran = dq("import", "parquet", "t.parquet", "--output", "t.odcs.yaml", "--owner", "x: {y")

    assert ran.code == 0
    assert set(types(folder / "t.odcs.yaml")) == {evil, "\x85\u2028\U0001f600", "no", "1e3"}


def test_the_first_file_of_a_registry_makes_its_folder(dq, folder):
    (folder / "orders.csv").write_text("id\n1\n")

    ran = dq("import", "csv", "orders.csv", "-o", "new/registry/orders.odcs.yaml")

    assert (ran.code, "status: active" in ran.out) == (0, True)
    assert (folder / "new/registry/orders.odcs.yaml").exists()


def test_a_file_that_is_there_is_left_and_compared(dq, folder):
    parquet.write_table(pa.table({"id": [1], "new": [1.5]}), folder / "orders.parquet")
    written = (folder / "orders.odcs.yaml").read_bytes()

    ran = dq("import", "parquet", "orders.parquet", "--output", "orders.odcs.yaml")

    assert ran.code == 1
    assert ran.out.splitlines() == [
        "  + orders.new: double",
        "  - orders.day: date",
        "  ~ orders partition keys: day → none",
        "orders.odcs.yaml was not changed: 3 differences.",
    ]
    assert (folder / "orders.odcs.yaml").read_bytes() == written


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("parqet", "x"), "Did you mean parquet?"),
        (("local", "no.such"), "the catalog local has no table no.such"),
        (("parquet", "s3://"), "cannot be read"),
        (("parquet", "nosuch://x/y"), "cannot be read"),
    ],
)
def test_what_is_not_there_is_said(dq, folder, words, reason):
    ran = dq("import", *words)

    assert ran.code in (2, 3)
    assert reason in ran.err


@pytest.fixture(scope="module")
def s3():
    server = LateS3()
    held = io.BytesIO()
    parquet.write_table(pa.table({"id": [1]}), held)
    schema = {"type": "struct", "fields": [{"name": name, "type": kind} for name, kind in DELTA.items()]}
    metadata = {"schemaString": json.dumps(schema), "partitionColumns": ["day"]}
    objects = {
        "sales/day=2026-05-01/p.parquet": held.getvalue(),
        "sales/day=2026-05-01/_SUCCESS": b"",
        "visits/day=2026-05-01/p.csv": b"id\n1\n",
        "clicks/day=2026-05-01/p.json": b'{"id": 1}\n',
        "stock/_delta_log/00000000000000000000.json": json.dumps({"metaData": metadata}).encode(),
        "stock/day=2026-05-01/p.parquet": held.getvalue(),
    }
    try:
        server.put(["lake/x"])
        client = boto3.client(
            "s3", endpoint_url=server.url, region_name="us-east-1", aws_access_key_id="test",
            aws_secret_access_key="test",
        )  # fmt: skip
        for key, body in objects.items():
            client.put_object(Bucket="lake", Key=key, Body=body)
        yield server.url
    finally:
        server.close()


DELTA = {"id": "long", "day": "date"}


@pytest.mark.parametrize(
    ("kind", "table"), [("parquet", "sales"), ("csv", "visits"), ("json", "clicks"), ("delta", "stock")]
)
def test_a_table_in_an_object_store_is_read_there(folder, s3, kind, table):
    ran = subprocess.run(
        [Path(sys.executable).parent / "dq", "import", kind, f"s3://lake/{table}", "-o", "x.odcs.yaml"],
        cwd=folder,
        env={**os.environ, **environment(s3)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    assert ran.returncode == 0, ran.stderr
    assert types(folder / "x.odcs.yaml") == {"id": "bigint", "day": "date"}
    assert keys(folder / "x.odcs.yaml") == ["day"]
    assert f'location: "s3://lake/{table}"' in (folder / "x.odcs.yaml").read_text()


@pytest.mark.parametrize("kind", ["csv", "json", "parquet", "avro", "delta", "iceberg", "dbt"])
@pytest.mark.parametrize("way", ["file", "folder"])
def test_t21_a_link_in_a_folder_shows_nothing_of_what_lies_elsewhere(dq, folder, tmp_path_factory, kind, way):
    secret = tmp_path_factory.mktemp("secret")
    endings = {"delta": "00000000000000000000.json", "iceberg": "v1.metadata.json", "dbt": "manifest.json"}
    name = endings.get(kind, f"a.{kind}")
    (secret / name).write_text("secret_of_the_operator\n1\n")
    below = {"delta": "_delta_log", "iceberg": "metadata", "dbt": "target"}.get(kind, "day=1")
    if way == "folder":
        (folder / "lake").mkdir()
        (folder / "lake" / below).symlink_to(secret)
    else:
        (folder / "lake" / below).mkdir(parents=True)
        (folder / "lake" / below / name).symlink_to(secret / name)

    ran = dq("import", kind, "lake", "-o", "made.odcs.yaml")

    assert ran.code == 3
    assert "is a link that leads outside" in ran.err
    assert "secret_of_the_operator" not in ran.out + ran.err
    assert not (folder / "made.odcs.yaml").exists()


def test_t21_a_link_to_a_file_of_the_same_folder_is_read(dq, folder):
    (folder / "lake").mkdir()
    (folder / "lake" / "a.csv").write_text("id\n1\n")
    (folder / "lake" / "b.csv").symlink_to("a.csv")
    (folder / "linked").symlink_to("lake")

    assert dq("import", "csv", "linked", "-o", "made.odcs.yaml").code == 0


def test_sql_notes_at_the_column_what_a_type_leaves_open(dq, folder):
    (folder / "t.sql").write_text("CREATE TABLE t (a NUMERIC, b TIME, c TIMESTAMP)")

    made = imported(dq, folder, "sql", "t.sql@postgres")

    assert types(made) == {"a": "decimal(38,18)", "b": "string", "c": "timestamp_ntz"}
    text = made.read_text()
    assert "# In doubt, declared as DECIMAL: numbers of any scale; write the precision and scale" in text
    assert parse(made.read_bytes(), made.name).contract.objects[0].properties[1].logical_type == "time"
