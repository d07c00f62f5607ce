"""`dq import` onto a contract that is there: what differs is shown, and not a byte of it is changed."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

WRITTEN = """\
# Of the sales team. \t
apiVersion: v3.2.0
kind: DataContract
id: orders
version: 2.1.0
status: active   # since May
team: {members: [{username: ana@example.com, role: owner}]}
schema:
  - name: orders
    description: "What a person wrote: ${HOME} 'it' \\"said\\""
    properties:
      - &id
        name: id
        logicalType: integer
        physicalType: bigint   # never an int again
        quality: [{metric: duplicateValues, mustBe: 0, severity: warning}]
      - <<: *id
        name: other
      # The customer.
      - name: who
        physicalName: WHO
        description: Kept.
        logicalType: object
        properties:
          - {name: Name, logicalType: string, physicalType: varchar(20), required: true}
          - {name: age, logicalType: integer, physicalType: int}
"""
WHO = pa.struct([("name", pa.string()), ("age", pa.int32())])
COLUMNS = {"id": pa.int64(), "other": pa.int64(), "who": WHO}


def put(folder, **columns):
    schema = pa.schema(list(columns.items()))
    parquet.write_table(schema.empty_table(), folder / "t.parquet")


def without(*names):
    return {name: kind for name, kind in COLUMNS.items() if name not in names}


@pytest.mark.parametrize("form", ["as it was written", "CRLF", "no line end", "byte order mark"])
@pytest.mark.parametrize(
    ("columns", "shown"),
    [
        (COLUMNS, []),
        ({name.upper(): kind for name, kind in reversed(COLUMNS.items())}, []),
        (without("other"), ["- orders.other: bigint"]),
        ({**COLUMNS, "new": pa.date32()}, ["+ orders.new: date"]),
        ({**without("other"), "another": pa.int64()}, ["+ orders.another: bigint", "- orders.other: bigint"]),
        ({**COLUMNS, "id": pa.string()}, ["~ orders.id: bigint → string"]),
        (
            {**COLUMNS, "who": pa.struct([("name", pa.string()), ("age", pa.int64())])},
            ["~ orders.WHO.age: int → bigint"],
        ),
        (
            {**COLUMNS, "who": pa.struct([("age", pa.int32()), ("name", pa.string())])},
            ["~ orders.WHO: struct<Name:varchar(20),age:int> → struct<age:int,name:string>"],
        ),
        ({**COLUMNS, "x\n+ orders.y: int": pa.int32()}, [r"+ orders.x\n+ orders.y: int: int"]),
    ],
)  # fmt: skip
def test_what_differs_is_shown_and_nothing_is_changed(dq, folder, form, columns, shown):
    text = {"CRLF": WRITTEN.replace("\n", "\r\n"), "no line end": WRITTEN.rstrip("\n")}.get(form, WRITTEN)
    data = (b"\xef\xbb\xbf" if form == "byte order mark" else b"") + text.encode()
    (folder / "mine.odcs.yaml").write_bytes(data)
    put(folder, **columns)

    ran = dq("import", "parquet", "t.parquet", "-o", "mine.odcs.yaml", "--owner", "eve", "--id", "other")

    assert [line.strip() for line in ran.out.splitlines()[:-1]] == shown, ran.err
    assert ran.code == (1 if shown else 0)
    assert (folder / "mine.odcs.yaml").read_bytes() == data
    assert sorted(path.name for path in folder.iterdir()) == [
        "mine.odcs.yaml",
        "orders.odcs.yaml",
        "t.parquet",
    ]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (WRITTEN.replace("integer", "integr"), "unknown logicalType 'integr'"),
        (WRITTEN + "  - [", "this is not YAML"),
        ("a: 1\n", "apiVersion is missing"),
        ("", "the document is empty"),
    ],
)
def test_what_is_no_contract_is_not_compared_and_not_touched(dq, folder, content, reason):
    (folder / "mine.odcs.yaml").write_text(content)
    put(folder, **COLUMNS)

    ran = dq("import", "parquet", "t.parquet", "-o", "mine.odcs.yaml")

    assert (ran.code, ran.out) == (2, "")
    assert reason in ran.err
    assert "nothing was compared" in ran.err
    assert (folder / "mine.odcs.yaml").read_text() == content


@pytest.mark.parametrize("source", ["gone.parquet", "damaged.parquet", "folder"])
def test_a_source_that_cannot_be_read_is_no_table_without_columns(dq, folder, source):
    (folder / "mine.odcs.yaml").write_text(WRITTEN)
    (folder / "damaged.parquet").write_bytes(b"PAR1....PAR1")
    (folder / "folder").mkdir()

    ran = dq("import", "parquet", source, "-o", "mine.odcs.yaml")

    assert ran.code in (2, 3)
    assert (ran.out, "Traceback" in ran.err) == ("", False)
    assert (folder / "mine.odcs.yaml").read_text() == WRITTEN


@pytest.mark.parametrize("what", ["link", "link to nothing", "pipe", "folder"])
def test_an_output_that_is_no_file_is_left_alone(dq, folder, what):
    put(folder, **COLUMNS)
    (folder / "theirs.yaml").write_text(WRITTEN)
    place = folder / "mine.odcs.yaml"
    make = {
        "link": lambda: place.symlink_to("theirs.yaml"),
        "link to nothing": lambda: place.symlink_to("nowhere"),
        "pipe": lambda: os.mkfifo(place),
        "folder": place.mkdir,
    }
    make[what]()

    ran = dq("import", "parquet", "t.parquet", "-o", place.name)

    assert ran.code in (2, 3)
    assert ran.out == ""
    assert (folder / "theirs.yaml").read_text() == WRITTEN
    assert not (folder / "nowhere").exists()


@pytest.mark.parametrize(
    "kind", ["parquet", "csv", "json", "sql", "dbt", "jsonschema", "avro", "iceberg", "delta", "dcs"]
)
@pytest.mark.parametrize("name", ["t.parquet", "t.avsc", "t.avro", "manifest.json"])
def test_a_pipe_is_no_source_and_is_not_waited_for(dq, folder, kind, name):
    os.mkfifo(folder / name)
    before = signal.signal(signal.SIGALRM, lambda *_: pytest.fail("it waits for ever"))
    signal.alarm(30)
    try:
        ran = dq("import", kind, f"./{name}")
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)

    assert ran.code in (2, 3)
    assert "Traceback" not in ran.err


@pytest.mark.parametrize("kind", ["sql", "jsonschema", "avro"])
def test_half_of_a_large_file_is_not_taken_for_all_of_it(dq, folder, kind):
    with (folder / "t.avsc").open("wb") as file:
        file.write(b"CREATE TABLE a (x INT);\n")
        file.truncate(17 << 20)

    ran = dq("import", kind, "t.avsc")

    assert (ran.code, "t.avsc has more than 16 MB." in ran.err) == (3, True)


def test_a_disk_that_is_full_leaves_no_half_of_a_file(folder):
    columns = "".join(f"      - {{name: c{at}, logicalType: string}}\n" for at in range(200))
    head = WRITTEN.partition("      - &id")[0]
    (folder / "wide.odcs.yaml").write_text(head + columns)

    ran = subprocess.run(
        [Path(sys.executable).parent / "dq", "export", "html", "wide.odcs.yaml", "-o", "page.html"],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)),
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip

    assert (ran.returncode, "Traceback" in ran.stderr) == (3, False)
    assert sorted(path.name for path in folder.iterdir()) == ["orders.odcs.yaml", "wide.odcs.yaml"]


PROMISED = {
    "id": "bigint",
    "day": "date",
    "who": "struct<name:string,age:int>",
    "tags": "array<string>",
    "more": "map<string,int>",
}
WHO_NOW = "~ who: struct<name:string,age:int> → "
ROW = {"id": 1, "day": "2026-05-01", "who": {"name": "Ana", "age": 4}, "tags": ["x"], "more": {"a": 1}}


@pytest.mark.parametrize(
    ("changed", "shown"),
    [
        ({}, ""),
        ({"who": {"NAME": "Ana", "age": 4}}, ""),
        ({"who": {"age": 4, "name": None}}, ""),
        ({"who": None, "tags": None, "id": None}, ""),
        ({"tags": []}, ""),
        ({"more": {"b": 2, "c": 3}}, ""),
        ({"day": 20260501}, ""),
        ({"more": None}, ""),
        ({"id": None, "day": "1 May"}, ""),
        ({"who": {"name": {"first": "Ana"}, "age": 4}}, "~ who.name: string → struct<first:string>"),
        ({"who": {"name": 7, "age": 4}}, "~ who.name: string → bigint"),
        ({"who": {"name": "Ana", "age": 4, "m": 1}}, "+ who.m: bigint"),
        ({"who": {"name": "Ana", "age": 4, "a b": {"c": [{"d": 1}]}}}, "+ who.a b.c[].d: bigint"),
        ({"who": {"name": "Ana"}}, "- who.age: int"),
        ({"who": {}}, "- who.name: string; - who.age: int"),
        ({"who": {"name": "Ana", "age": [4]}}, "~ who.age: int → array<bigint>"),
        ({"who": [{"name": "Ana", "age": 4}]}, f"{WHO_NOW}array<struct<name:string,age:bigint>>"),
        ({"who": "Ana"}, f"{WHO_NOW}string"),
        ({"tags": "x"}, "~ tags: array<string> → string"),
        ({"tags": {"x": 1}}, "~ tags: array<string> → struct<x:bigint>"),
        ({"tags": [1]}, "~ tags[]: string → bigint"),
        ({"tags": [{"k": 1}]}, "~ tags[]: string → struct<k:bigint>"),
        ({"more": {"a": {"b": 1}}}, "~ more.*: int → struct<b:bigint>"),
        ({"more": {"a": 1, "b": 1.5}}, "~ more.*: int → double"),
        ({"id": 1.5}, "~ id: bigint → double"),
        ({"id": "one"}, "~ id: bigint → string"),
        ({"id": {"a": 1}}, "~ id: bigint → struct<a:bigint>"),
        ({"day": True}, "~ day: date → boolean"),
    ],
)  # fmt: skip
def test_json_that_no_longer_fits_a_contract_is_told(dq, folder, changed, shown):
    lines = "".join(f'      - {{name: {name}, physicalType: "{kind}"}}\n' for name, kind in PROMISED.items())
    head = WRITTEN.partition("    properties:\n")[0]
    (folder / "mine.odcs.yaml").write_text(f"{head}    properties:\n{lines}")
    (folder / "t.json").write_text(json.dumps({**ROW, **changed}))

    ran = dq("import", "json", "t.json", "-o", "mine.odcs.yaml")

    told = [line.strip().partition(" (")[0].replace("orders.", "") for line in ran.out.splitlines()[:-1]]
    assert "; ".join(told) == shown, ran.out + ran.err
    assert ran.code == (1 if shown else 0)


@pytest.mark.parametrize(
    ("text", "kind", "shown"),
    [
        ("a\n007\n", "int", ""),
        ("a\n1\n", "double", ""),
        ("a\n1.50\n", "int", "a: int → decimal(18,2)"),
        ("a\ntrue\n", "date", "a: date → boolean"),
        ("a\n20260501\n", "date", ""),
        ("a\n\n", "int", ""),
        ("a\nten\n", "int", "a: int → string"),
        ("a\n9,90\n".replace(",", "."), "double", ""),
        ("a\nNA\n1\n", "int", ""),
        ("a\n+.5\n", "double", ""),
        ("a\nTRUE\n", "boolean", ""),
        ("a\n1\n", "boolean", "a: boolean → bigint"),
    ],
)
def test_csv_whose_values_cannot_be_what_is_promised_is_told(dq, folder, text, kind, shown):
    head = WRITTEN.partition("    properties:\n")[0]
    (folder / "mine.odcs.yaml").write_text(
        f"{head}    properties:\n      - {{name: a, physicalType: {kind}}}\n"
    )
    (folder / "t.csv").write_text(text)

    ran = dq("import", "csv", "t.csv", "-o", "mine.odcs.yaml")

    told = [line.strip().partition(" (a guess")[0] for line in ran.out.splitlines()[:-1]]
    assert told == ([f"~ orders.{shown}"] if shown else []), ran.out + ran.err
    assert ran.code == (1 if shown else 0)


@pytest.mark.parametrize(
    ("promised", "declared", "code"),
    [("bigint", "NUMERIC", 0), ("decimal(12,2)", "NUMERIC", 0), ("boolean", "NUMERIC", 1), ("int", "INT", 0)],
)
def test_a_type_in_doubt_is_settled_by_what_a_person_wrote(dq, folder, promised, declared, code):
    head = WRITTEN.partition("    properties:\n")[0]
    (folder / "mine.odcs.yaml").write_text(
        f"{head}    properties:\n      - {{name: a, physicalType: '{promised}'}}\n"
    )
    (folder / "t.sql").write_text(f"CREATE TABLE orders (a {declared})")

    assert dq("import", "sql", "t.sql@postgres", "-o", "mine.odcs.yaml").code == code
