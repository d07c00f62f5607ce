"""`dq import` onto a contract that is there: what differs is shown, and not a byte of it is changed."""

from __future__ import annotations

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
            ["~ orders.WHO: struct<Name:varchar(20),age:int> → struct<name:string,age:bigint>"],
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
        (WRITTEN.replace("integer", "integr"), "is not one that it can have"),
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
    assert "nothing is compared" in ran.err
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
