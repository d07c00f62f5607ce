"""Which files of a table hold rows, and when one is another: the same for every command."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fakes.command import BEGIN, MISSED, Place, contract

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OLD = 1_700_000_000
TABLE = """\
apiVersion: v3.2.0
kind: DataContract
id: orders
version: 1.0.0
status: active
servers: [{server: lake, type: local, path: lake/orders, format: parquet}]
schema:
  - name: orders
    quality: [{metric: rowCount, mustBe: 1}]
    properties:
      - {name: id, logicalType: integer, physicalType: bigint}
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.setenv("DQ_STORE_URL", f"sqlite:///{tmp_path}/store.db")
    monkeypatch.delenv("DQ_CONFIG", raising=False)
    return Place(tmp_path)


def write(file: Path, *ids: int) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"id": pa.array(ids, pa.int64())}), file)
    os.utime(file, (OLD, OLD))


def rows(place: Place) -> tuple[object, object]:
    """Rows of the one table as `dq check` and as `dq tables` count them."""
    # A process without Java, in which nobody has set Spark up: what needs Spark would fail.
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_"))}
    program = "from dq.cli.main import main; main()"
    checked = subprocess.run(
        [sys.executable, "-c", program, "check", "orders.odcs.yaml", "--all", "--format", "json"],
        cwd=place.folder,
        env=kept | {"JAVA_HOME": "/nowhere"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.stdout, checked.stderr
    tables = place.dq("tables", "orders.odcs.yaml", "--format", "json")
    return json.loads(checked.stdout)[0]["rows"], tables.json[0]["rows"]


@pytest.mark.parametrize(
    "name",
    [
        "b.parquet._COPYING_", "_temporary.parquet", ".b.parquet.crc", ".hidden.parquet", "_SUCCESS",
        "_temporary/0/b.parquet", ".hidden/b.parquet", "b._COPYING_/b.parquet",
    ],
)  # fmt: skip
def test_t22_files_that_spark_passes_over_are_counted_by_no_command(place: Place, name: str) -> None:
    place.put("orders.odcs.yaml", TABLE)
    write(place.folder / "lake" / "orders" / "a.parquet", 1)
    write(place.folder / "lake" / "orders" / name, 2, 3)

    ran = place.dq("import", "parquet", "lake/orders", "--output", "new.odcs.yaml")

    if "/" in name:
        # A folder is left to Spark by check.
        assert place.dq("tables", "orders.odcs.yaml", "--format", "json").json[0]["rows"] == 1
    else:
        assert rows(place) == (1, 1)
    assert ran.code == 0, ran.err


def test_t22_an_unfinished_upload_is_no_delivery(place: Place) -> None:
    place.put("orders.odcs.yaml", contract("orders").replace(
        "{grace: 30m,", "{evidence: [file], grace: 30m,"))  # fmt: skip
    write(place.folder / "lake" / "orders" / "day=2026-05-10" / "a.parquet._COPYING_", 1)
    place.dq("watch", ".", "--as-of", BEGIN, "--channel", "console")

    ran = place.dq("watch", ".", "--as-of", MISSED, "--channel", "console")

    assert "orders is missing" in ran.out, ran.out + ran.err


def test_t22_a_hidden_partition_folder_is_passed_over_and_an_underscored_one_is_read(
    place: Place,
) -> None:
    text = TABLE.replace("mustBe: 1", "mustBe: 3") + (
        "      - {name: _h, logicalType: integer, partitioned: true, partitionKeyPosition: 1}\n"
    )
    place.put("orders.odcs.yaml", text)
    lake = place.folder / "lake" / "orders"
    write(lake / "_h=1" / "a.parquet", 1)
    write(lake / "._h=2" / "a.parquet", 1, 2)

    tables = place.dq("tables", "orders.odcs.yaml", "--format", "json").json[0]
    imported = place.dq("import", "parquet", "lake/orders", "--output", "new.odcs.yaml")

    assert (tables["rows"], tables["problem"]) == (1, None), tables
    assert imported.code == 0, imported.err
    assert 'name: "_h"' in (place.folder / "new.odcs.yaml").read_text()


KEY = (
    "      - {name: h, logicalType: integer, physicalType: int, partitioned: true, partitionKeyPosition: 1}\n"
)


@pytest.mark.spark
@pytest.mark.parametrize(
    ("keys", "folders", "problem"),
    [
        (KEY, {"h=1": 2, "": 1}, None),
        (KEY, {"h=1": 1, "h=1/inner": 2}, None),
        ("", {"": 1, "inner": 2}, None),
        ("", {"": 1, "_h=1._COPYING_": 2}, None),
        (KEY, {"h=1/g=1": 1}, "has partition folders of h, g, but its contract declares h"),
        ("", {"h=1": 1}, "has partition folders of h, but its contract declares no partition column"),
        (KEY, {"h=1/inner/g=1": 1}, "is a partition folder inside a folder that is not one"),
    ],
    ids=["next_to_partitions", "inside_a_partition", "inner", "unfinished", "deeper", "undeclared", "mixed"],
)
def test_rows_by_metadata_are_those_that_spark_reads_from_the_same_folders(
    place: Place, spark: SparkSession, keys: str, folders: dict[str, int], problem: str | None
) -> None:
    place.put("orders.odcs.yaml", TABLE + keys)
    lake = place.folder / "lake" / "orders"
    for folder, count in folders.items():
        write(lake / folder / "a.parquet", *range(count))

    (table,) = place.dq("tables", "orders.odcs.yaml", "--format", "json").json

    if problem is None:
        assert (table["problem"], table["rows"]) == (None, spark.read.parquet(str(lake)).count())
    else:
        assert (table["state"], table["rows"]) == ("unknown", None)
        assert problem in table["problem"]


@pytest.mark.spark
def test_a_text_beside_the_folders_of_partitions_is_no_file_of_the_table(
    place: Place, spark: SparkSession
) -> None:
    lake = place.folder / "lake" / "orders"
    text = (TABLE + KEY).replace("format: parquet", "format: csv").replace("lake/orders", str(lake))
    place.put("orders.odcs.yaml", text)
    for hour in (1, 2):
        place.put(f"lake/orders/h={hour}/a.csv", "id\n1\n")
    place.put("lake/orders/README.md", "About this table\nsecond line\n")

    (table,) = place.dq("tables", "orders.odcs.yaml", "--format", "json").json
    checked = place.dq("check", "orders.odcs.yaml", "--all", "--channel", "console", "--format", "json")

    assert table["files"] == 2
    assert checked.json[0]["rows"] == 2
    assert "NULL in the others" not in checked.out


def test_links_in_a_circle_end_the_look_at_a_table(place: Place) -> None:
    place.put("orders.odcs.yaml", TABLE + KEY)
    lake = place.folder / "lake" / "orders"
    write(lake / "h=1" / "a.parquet", 1)
    (lake / "h=1" / "circle").symlink_to(lake / "h=1")

    (table,) = place.dq("tables", "orders.odcs.yaml", "--format", "json").json

    assert table["state"] == "unknown"


def padded(ids: list[int], padding: int) -> bytes:
    """A Parquet file of these rows, with so much text in its footer."""
    table = pa.table({"id": pa.array(ids, pa.int64())}, metadata={"k": "x" * padding})
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, use_dictionary=False, compression="none")
    return sink.getvalue().to_pybytes()


def test_t24_a_file_replaced_by_another_of_its_size_and_time_is_read_again(place: Place) -> None:
    place.put("orders.odcs.yaml", TABLE)
    file = place.folder / "lake" / "orders" / "a.parquet"
    file.parent.mkdir(parents=True)
    by_size = {len(content): content for content in (padded([1], padding) for padding in range(200))}
    three_rows = next(
        content for padding in range(200) if len(content := padded([1, 2, 3], padding)) in by_size
    )
    one_row = by_size[len(three_rows)]
    file.write_bytes(one_row)
    os.utime(file, (OLD, OLD))
    before = rows(place)

    file.with_name("b").write_bytes(three_rows)
    file.with_name("b").rename(file)
    os.utime(file, (OLD, OLD))

    assert (before, rows(place)) == ((1, 1), (3, 3))
