"""One reading of the physical types of Parquet: import, tables, sample and check say the same of a file."""

from __future__ import annotations

import datetime as dt
import json
import re
import uuid
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pyspark
import pytest
from fakes.desk import Desk

from dq.lake.types import from_spark_json

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NOON = dt.datetime(2026, 5, 1, 12)  # noqa: DTZ001  # as Arrow has it
# Name -> values, and the options of their writer.
COLUMNS: dict[str, tuple[Any, Mapping[str, Any]]] = {
    "int96": (pa.array([NOON], pa.timestamp("us")), {"use_deprecated_int96_timestamps": True}),
    "int96_in_struct": (
        pa.array([{"at": NOON}], pa.struct([("at", pa.timestamp("us"))])),
        {"use_deprecated_int96_timestamps": True},
    ),
    "micros": (pa.array([NOON], pa.timestamp("us")), {}),
    "micros_utc": (pa.array([NOON], pa.timestamp("us", "UTC")), {}),
    "millis": (pa.array([NOON], pa.timestamp("ms")), {}),
    "millis_by_converted_type": (
        pa.array([NOON], pa.timestamp("ms")),
        {"version": "1.0", "store_schema": False},
    ),
    "nanos": (pa.array([NOON], pa.timestamp("ns")), {}),
    "time": (pa.array([dt.time(12)], pa.time64("us")), {}),
    "duration": (pa.array([1], pa.duration("us")), {}),
    "uuid": (pa.array([uuid.UUID(int=7).bytes], pa.uuid()), {}),
    "fixed": (pa.array([b"12345"], pa.binary(5)), {}),
    "half": (pa.array([1.5], pa.float16()), {}),
    "nothing": (pa.nulls(1), {}),
    "uint8": (pa.array([1], pa.uint8()), {}),
    "uint32": (pa.array([1], pa.uint32()), {}),
    "uint64": (pa.array([1], pa.uint64()), {}),
    "decimal": (pa.array([Decimal("1.50")], pa.decimal128(9, 2)), {}),
    "decimal_as_integer": (
        pa.array([Decimal("1.50")], pa.decimal128(9, 2)),
        {"store_decimal_as_integer": True},
    ),
    "dictionary": (pa.array(["a"]).dictionary_encode(), {}),
    "json": (pa.array(["{}"], pa.json_()), {}),
    "list_of_times": (pa.array([[dt.time(12)]], pa.list_(pa.time64("us"))), {}),
    "map": (pa.array([[("a", 1)]], pa.map_(pa.string(), pa.uint16())), {}),
    "fixed_list": (pa.array([[1, 2]], pa.list_(pa.int16(), 2)), {}),
    "date64": (pa.array([NOON.date()], pa.date64()), {}),
}  # fmt: skip
if pyspark.__version__ < "4":
    # Spark 3.5 cannot open a file that has such a column.
    del COLUMNS["half"]
CONTRACT = """\
apiVersion: v3.2.0
kind: DataContract
id: orders
version: 1.0.0
status: active
servers: [{{server: lake, type: local, path: {lake}, format: parquet}}]
schema:
  - name: orders
    properties:
      - {{name: id, logicalType: integer, physicalType: bigint}}
      - {{name: c, physicalType: '{physical}'}}
"""


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Desk:
    return Desk(tmp_path, monkeypatch, capfd)


def write(desk: Desk, values: Any, options: Mapping[str, Any]) -> Path:
    file = desk.folder / "lake" / "part-0.parquet"
    file.parent.mkdir()
    pq.write_table(pa.table({"id": pa.array([1], pa.int64()), "c": values}), file, **options)
    return file


def verdict_of_check(desk: Desk, *options: str) -> set[str]:
    ran = desk.dq("check", "orders.odcs.yaml", "--all", "--channel", "console", "--format", "json", *options)
    return {
        result["status"]
        for result in json.loads(ran.out)[0]["results"]
        if result["check"] == "columns" and result["target"]["property"] == "c"
    }


@pytest.mark.spark
@pytest.mark.parametrize("name", COLUMNS)
def test_t1_every_command_reads_the_type_of_a_column_as_spark_does(
    spark: SparkSession, desk: Desk, name: str
) -> None:
    file = write(desk, *COLUMNS[name])
    try:
        of_spark = from_spark_json(spark.read.parquet(str(file)).schema["c"].dataType.jsonValue())
    except Exception:  # noqa: BLE001  # it has a class for each version
        of_spark = None

    imported = desk.dq("import", "parquet", "lake", "--output", "new.odcs.yaml")
    text = CONTRACT.format(lake=desk.folder / "lake", physical=of_spark or "string")
    desk.write("orders.odcs.yaml", text)
    compared = desk.dq("import", "parquet", "lake", "--output", "orders.odcs.yaml")
    (table,) = desk.dq("tables", "orders.odcs.yaml", "--format", "json").json
    sample = desk.dq("sample", "orders.odcs.yaml", str(file), "--format", "json")
    sampled = {
        result["status"]
        for result in json.loads(sample.out)[0]["results"]
        if result["check"] == "columns" and result["target"]["property"] == "c"
    }

    assert imported.code == 0, imported.err
    told = desk.folder.joinpath("new.odcs.yaml").read_text()
    if of_spark is None:
        assert (table["state"], sampled) == ("unknown", {"error"}), (table, sample.all)
        assert "Spark cannot read" in table["problem"]
        assert "Spark cannot read" in told
        assert verdict_of_check(desk) == verdict_of_check(desk, "--scan") == {"error"}
    else:
        assert (table["state"], sampled) == ("matching", {"pass"}), (table, sample.all)
        assert (compared.code, "matches its source" in compared.out) == (0, True), compared.out
        leaf = re.findall(r"[a-z_]+(?:\([\d,]+\))?", str(of_spark))[-1]
        assert re.search(rf'physicalType: "?{re.escape(leaf)}"?$', told, re.MULTILINE), told
        assert verdict_of_check(desk) == verdict_of_check(desk, "--scan") == {"pass"}


@pytest.mark.parametrize("name", COLUMNS)
def test_a_type_that_the_file_does_not_have_is_broken_for_tables_and_sample(desk: Desk, name: str) -> None:
    file = write(desk, *COLUMNS[name])
    promised = "array<array<boolean>>"
    desk.write("orders.odcs.yaml", CONTRACT.format(lake=desk.folder / "lake", physical=promised))

    (table,) = desk.dq("tables", "orders.odcs.yaml", "--format", "json").json
    sample = desk.dq("sample", "orders.odcs.yaml", str(file), "--format", "json")

    statuses = {
        result["status"]
        for result in json.loads(sample.out)[0]["results"]
        if result["check"] == "columns" and result["target"]["property"] == "c"
    }
    assert (table["state"], statuses) in [("mismatching", {"fail"}), ("unknown", {"error"})], (
        table,
        sample.all,
    )


UNREADABLE = {
    "brotli": {"compression": "brotli"},
    "byte_stream_split": {"use_byte_stream_split": ["c"], "use_dictionary": False},
}
BOUNDS = CONTRACT.replace(
    "physicalType: '{physical}'",
    "logicalType: number, physicalType: double, logicalTypeOptions: {{minimum: 0}}, required: true",
)


@pytest.mark.spark
@pytest.mark.parametrize("name", UNREADABLE)
def test_t27_values_that_spark_cannot_read_have_no_verdict_on_any_way(
    spark: SparkSession, desk: Desk, name: str
) -> None:
    file = write(desk, pa.array([1.5], pa.float64()), UNREADABLE[name])
    desk.write("orders.odcs.yaml", BOUNDS.format(lake=desk.folder / "lake"))

    statuses = {}
    for way in ([], ["--scan"]):
        ran = desk.dq("check", "orders.odcs.yaml", "--all", "--channel", "console", "--format", "json", *way)
        statuses[tuple(way)] = {
            result["check"]: result["status"]
            for result in json.loads(ran.out)[0]["results"]
            if result["target"]["property"] == "c" and result["check"] != "columns"
        }
    sample = desk.dq("sample", "orders.odcs.yaml", str(file), "--format", "json")
    of_sample = {
        result["check"]: result["status"]
        for result in json.loads(sample.out)[0]["results"]
        if result["target"]["property"] == "c" and result["check"] != "columns"
    }

    assert statuses[()] == statuses["--scan",] == of_sample == {"bounds": "error", "required": "error"}


@pytest.mark.parametrize("names", [["c", "c"], ["c", "C"]], ids=["the same", "by case"])
def test_a_file_with_two_columns_of_one_name_is_read_by_no_command(desk: Desk, names: list[str]) -> None:
    file = desk.folder / "lake" / "part-0.parquet"
    file.parent.mkdir()
    pq.write_table(pa.Table.from_arrays([pa.array([1]), pa.array(["x"])], names=names), file)
    desk.write("orders.odcs.yaml", CONTRACT.format(lake=desk.folder / "lake", physical="string"))

    tables = desk.dq("tables", "orders.odcs.yaml", "--format", "json")
    sample = desk.dq("sample", "orders.odcs.yaml", str(file))
    imported = desk.dq("import", "parquet", "lake", "--output", "new.odcs.yaml")

    assert (tables.code, sample.code, imported.code) == (3, 3, 3)
    for problem in (tables.json[0]["problem"], sample.err, imported.err):
        assert "has duplicate columns named" in problem


@pytest.mark.parametrize("order", [["a.b", "a"], ["a", "a.b"]])
def test_a_sample_tells_a_dot_in_a_name_from_a_field_of_a_struct(desk: Desk, order: list[str]) -> None:
    file = desk.folder / "part-0.parquet"
    values = {"a.b": pa.array(["x"]), "a": pa.array([{"b": 1}])}
    pq.write_table(pa.table({name: values[name] for name in order}), file)
    head, _, _ = CONTRACT.format(lake="lake", physical="string").partition("      - {name: id")
    named = "      - {name: a.b, logicalType: string, enum: [{value: x}]}\n"
    struct = "      - {name: a, logicalType: object, properties: [{name: b, logicalType: integer}]}\n"
    desk.write("orders.odcs.yaml", head + named + struct)

    ran = desk.dq("sample", "orders.odcs.yaml", str(file))

    assert ran.code == 0, ran.all
