"""`dq export`: the schema in the words of others, read again by readers that are not ours."""

from __future__ import annotations

import io
import json
import re

import fastavro
import jsonschema
import pytest
import yaml
from fakes.schemas import document

from dq.contracts.types import catalog_type
from dq.contracts.yaml.parse import read
from dq.registry.exporting import walk

# Type, and what a JSON Schema and Avro make of it; None where that is the same.
TYPES = [
    ("string", None, None),
    ("boolean", None, None),
    ("tinyint", "bigint", "int"),
    ("smallint", "bigint", "int"),
    ("int", "bigint", None),
    ("bigint", None, None),
    ("float", "double", None),
    ("double", None, None),
    ("decimal(9,2)", "double", None),
    ("decimal(38,0)", "double", None),
    ("date", None, None),
    ("timestamp", None, None),
    ("timestamp_ntz", "timestamp", None),
    ("binary", "string", None),
    ("char(3)", "string", "string"),
    ("varchar(20)", "string", "string"),
    ("array<array<string>>", None, None),
    ("map<string,double>", None, None),
    ("map<int,date>", "map<string,date>", "map<string,date>"),
    ("struct<a:bigint,b:array<struct<c:string>>>", None, None),
    ("struct<a:int,b:struct<a:int>>", "struct<a:bigint,b:struct<a:bigint>>", None),
]
LOGICAL = {
    "boolean": "boolean", "float": "number", "double": "number", "decimal": "number", "date": "date",
    "timestamp": "timestamp", "timestamp_ntz": "timestamp", "array": "array", "map": "map",
    "struct": "object", "string": "string", "binary": "string", "char": "string", "varchar": "string",
}  # fmt: skip


@pytest.fixture
def everything(folder):
    """A contract with a column of each type, one of them required, a key and two partition keys."""
    columns = "".join(
        f"      - {{name: c{number}, physicalType: '{kind}', description: 'It''s c{number}: \\ \"x\"',"
        f" logicalType: {LOGICAL.get(kind.partition('<')[0].partition('(')[0], 'integer')},"
        f" required: {'true' if number == 5 else 'false'}}}\n"
        for number, (kind, _, _) in enumerate(TYPES)
    )
    (folder / "all.odcs.yaml").write_text(
        "apiVersion: v3.2.0\nkind: DataContract\nid: all\nversion: 1.0.0\nstatus: active\ndomain: sales\n"
        "servers:\n  - {server: lake, type: local, path: lake/all, format: parquet}\n"
        f"schema:\n  - name: everything\n    description: All of it.\n    properties:\n{columns}"
        "      - {name: day, logicalType: date, physicalType: date, partitioned: true,"
        " partitionKeyPosition: 2}\n"
        "      - {name: area, logicalType: string, physicalType: string, partitioned: true,"
        " partitionKeyPosition: 1, primaryKey: true, primaryKeyPosition: 1,"
        " enum: [{value: north}, {value: 'no'}]}\n"
    )
    return folder


def schema(path):
    [one] = read(path).objects
    return {
        prop.column: (str(catalog_type(prop)), bool(prop.required), prop.description)
        for prop in one.properties
    }


def test_sql_says_all_of_the_schema(dq, everything):
    assert dq("export", "sql", "all.odcs.yaml", "-o", "all.sql").code == 0
    assert dq("import", "sql", "all.sql", "-o", "again.odcs.yaml").code == 0

    wanted, made = schema(everything / "all.odcs.yaml"), schema(everything / "again.odcs.yaml")
    assert made == wanted
    [one] = read(everything / "again.odcs.yaml").objects
    assert [prop.column for prop in one.partition_keys()] == ["area", "day"]
    assert one.description == "All of it."


@pytest.mark.parametrize(("kind", "ending", "at"), [("jsonschema", "json", 1), ("avro", "avsc", 2)])
def test_what_another_form_cannot_say_is_told_and_the_rest_comes_back(dq, everything, kind, ending, at):
    ran = dq("export", kind, "all.odcs.yaml", "-o", f"all.{ending}")
    assert dq("import", kind, f"all.{ending}", "-o", "again.odcs.yaml").code == 0

    made = schema(everything / "again.odcs.yaml")
    told = {line.partition(":")[0].partition(".")[0].partition("[")[0] for line in ran.err.splitlines()}
    for number, row in enumerate(TYPES):
        said, _, description = schema(everything / "all.odcs.yaml")[f"c{number}"]
        assert made[f"c{number}"] == (row[at] or said, number == 5, description)
        assert (f"c{number}" in told) == (row[at] is not None), row
    assert "everything: the partition keys area, day" in ran.err


def test_avro_is_read_by_avro_itself(dq, everything):
    schema = fastavro.parse_schema(json.loads(dq("export", "avro", "all.odcs.yaml").out))
    held = io.BytesIO()
    fastavro.writer(held, schema, [{"c5": 7, "c19": {"a": 1, "b": [{"c": "x"}]}}])
    held.seek(0)

    [row] = fastavro.reader(held)
    assert (row["c5"], row["c19"], row["c0"]) == (7, {"a": 1, "b": [{"c": "x"}]}, None)


def test_json_schema_is_read_by_a_validator(dq, everything):
    made = json.loads(dq("export", "jsonschema", "all.odcs.yaml").out)

    jsonschema.Draft202012Validator.check_schema(made)
    validator = jsonschema.Draft202012Validator(made)
    assert validator.is_valid({"c5": 7, "c16": [["x"]], "c19": {"b": [{"c": "x"}]}})
    assert not validator.is_valid({"c5": "7"})
    assert not validator.is_valid({"c16": []})


def test_dbt_has_types_and_tests(dq, everything):
    made = yaml.safe_load(dq("export", "dbt", "all.odcs.yaml").out)

    [source] = made["sources"]
    [table] = source["tables"]
    columns = {one["name"]: one for one in table["columns"]}
    assert (source["name"], table["name"], len(columns)) == ("sales", "everything", len(TYPES) + 2)
    assert columns["c8"]["data_type"] == "decimal(9,2)"
    assert columns["c5"]["data_tests"] == ["not_null"]
    assert columns["area"]["data_tests"] == [
        "not_null",
        "unique",
        {"accepted_values": {"values": ["north", "no"]}},
    ]


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("export", "sqll", "all.odcs.yaml"), "Did you mean sql?"),
        (("export", "sql", "nowhere.yaml"), "nowhere.yaml does not exist"),
        (("export", "sql", "broken.odcs.yaml"), "\n    broken.odcs.yaml:7:51: error unknown-value"),
        (("export", "sql", "all.odcs.yaml", "--object", "x"), "Objects: everything."),
        (("export", "sql", "all.odcs.yaml", "-o", "all.odcs.yaml"), "already exists"),
        (("export", "avro", "two.odcs.yaml"), "Select one with --object."),
        (("export", "avro", "two.odcs.yaml", "--object", "a"), "Avro does not allow the name 'x y'"),
    ],
)
def test_mistakes_are_said(dq, everything, words, reason):
    (everything / "two.odcs.yaml").write_text(
        "apiVersion: v3.2.0\nkind: DataContract\nid: two\nversion: 1.0.0\nstatus: active\nschema:\n"
        "  - {name: a, properties: [{name: x y, logicalType: string}]}\n"
        "  - {name: b, properties: [{name: x, logicalType: string}]}\n"
    )
    (everything / "broken.odcs.yaml").write_text(
        "apiVersion: v3.2.0\nkind: DataContract\nid: two\nversion: 1.0.0\nstatus: active\nschema:\n"
        "  - {name: a, properties: [{name: x, logicalType: strng}]}\n"
    )
    before = (everything / "all.odcs.yaml").read_bytes()

    ran = dq(*words)

    assert ran.code in (2, 3)
    assert reason in ran.err
    assert (everything / "all.odcs.yaml").read_bytes() == before


@pytest.mark.spark
def test_spark_takes_the_statement(dq, everything, spark):
    statement = dq("export", "sql", "all.odcs.yaml").out.rstrip().rstrip(";")

    spark.sql(statement.replace("CREATE TABLE `everything`", "CREATE TABLE exported_everything"))
    try:
        found = {one.name: one for one in spark.catalog.listColumns("exported_everything")}
        assert found["c8"].dataType == "decimal(9,2)"
        assert found["area"].isPartition
        assert found["c0"].description == 'It\'s c0: \\ "x"'
    finally:
        spark.sql("DROP TABLE exported_everything")


@pytest.mark.spark
def test_spark_takes_what_is_inside_of_columns(dq, folder, spark):
    (folder / "t.odcs.yaml").write_text(document(4))
    statement = dq("export", "sql", "t.odcs.yaml").out.rstrip().rstrip(";")
    [one] = read(folder / "t.odcs.yaml").objects
    described = {path: prop.description for path, _, prop in walk(one) if prop.description}

    statement = statement.replace("CREATE TABLE `t`", "CREATE TABLE exported_t")
    spark.sql(statement.replace("\nPARTITIONED", "\nUSING parquet PARTITIONED"))
    try:
        found = {each.name: each for each in spark.catalog.listColumns("exported_t")}
        schema = spark.table("exported_t").schema.json()
    finally:
        spark.sql("DROP TABLE exported_t")

    # What lists columns gives texts without their lengths.
    assert {name: each.dataType for name, each in found.items()} == {
        prop.column: re.sub(r"(var)?char\(\d+\)", "string", str(catalog_type(prop)))
        for prop in one.properties
    }
    fields = [text for path, text in described.items() if "." in path and path[-1] not in "]*^"]
    assert fields
    assert all(f'"comment":{json.dumps(text, ensure_ascii=False)}' in schema for text in fields)
