"""The contract type of a column is the same by whichever format and command it is read."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from io import BytesIO
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dq.contracts.outcome import DqError
from dq.contracts.types import DataType
from dq.lake import delta, iceberg
from dq.lake.parquet import columns
from dq.lake.storage import LocalFiles
from dq.lake.types import arrow_array, arrow_type, from_arrow
from dq.registry.importing.kinds import avro as import_avro
from dq.registry.importing.kinds import delta as import_delta
from dq.registry.importing.kinds import iceberg as import_iceberg


@dataclass(frozen=True)
class Column:
    """A type as each format spells it, None where there is none; `options` are those of pq.write_table."""

    contract: str
    arrow: pa.DataType | None = None
    iceberg: object = None
    spark: object = None
    avro: object = None
    options: Mapping[str, Any] = field(default_factory=dict)


COLUMNS = {
    "boolean": Column("boolean", pa.bool_(), "boolean", "boolean", "boolean"),
    "int8": Column("tinyint", pa.int8(), spark="byte"),
    "int16": Column("smallint", pa.int16(), spark="short"),
    "int32": Column("int", pa.int32(), "int", "integer", "int"),
    "int64": Column("bigint", pa.int64(), "long", "long", "long"),
    "uint8": Column("smallint", pa.uint8()),
    "uint16": Column("int", pa.uint16()),
    "uint32": Column("bigint", pa.uint32()),
    "uint64": Column("decimal(20,0)", pa.uint64()),
    "float": Column("float", pa.float32(), "float", "float", "float"),
    "double": Column("double", pa.float64(), "double", "double", "double"),
    "decimal": Column(
        "decimal(9,2)", pa.decimal128(9, 2), "decimal(9, 2)", "decimal(9,2)",
        {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
    ),
    "decimal as integer": Column(
        "decimal(9,2)", pa.decimal128(9, 2), options={"store_decimal_as_integer": True}
    ),
    "string": Column("string", pa.string(), "string", "string", "string"),
    "large string": Column("string", pa.large_string()),
    "dictionary": Column("string", pa.dictionary(pa.int32(), pa.string())),
    "enum": Column("string", avro={"type": "enum", "name": "e", "symbols": ["a"]}),
    "binary": Column("binary", pa.binary(), "binary", "binary", "bytes"),
    "fixed": Column("binary", pa.binary(5), "fixed[5]", avro={"type": "fixed", "name": "f", "size": 5}),
    "date": Column("date", pa.date32(), "date", "date", {"type": "int", "logicalType": "date"}),
    "timestamp with zone": Column(
        "timestamp", pa.timestamp("us", "UTC"), "timestamptz", "timestamp",
        {"type": "long", "logicalType": "timestamp-micros"},
    ),
    "timestamp with zone, millis": Column(
        "timestamp", pa.timestamp("ms", "UTC"), avro={"type": "long", "logicalType": "timestamp-millis"}
    ),
    "timestamp without zone": Column(
        "timestamp_ntz", pa.timestamp("us"), "timestamp", "timestamp_ntz",
        {"type": "long", "logicalType": "local-timestamp-micros"},
    ),
    "variant": Column("variant", None, "variant", "variant"),
    "list": Column(
        "array<int>", pa.list_(pa.int32()),
        {"type": "list", "element-id": 2, "element": "int", "element-required": False},
        {"type": "array", "elementType": "integer", "containsNull": True},
        {"type": "array", "items": "int"},
    ),
    "fixed list": Column("array<smallint>", pa.list_(pa.int16(), 2)),
    "map": Column(
        "map<string,bigint>", pa.map_(pa.string(), pa.int64()),
        {"type": "map", "key-id": 2, "key": "string", "value-id": 3, "value": "long", "value-required": True},
        {"type": "map", "keyType": "string", "valueType": "long", "valueContainsNull": True},
        {"type": "map", "values": "long"},
    ),
    "struct": Column(
        "struct<at:timestamp,lines:array<struct<price:decimal(9,2)>>>",
        pa.struct([
            ("at", pa.timestamp("us", "UTC")),
            ("lines", pa.list_(pa.struct([("price", pa.decimal128(9, 2))]))),
        ]),
        {"type": "struct", "fields": [
            {"id": 2, "name": "at", "type": "timestamptz", "required": False},
            {"id": 3, "name": "lines", "required": False, "type": {
                "type": "list", "element-id": 4, "element-required": False, "element": {
                    "type": "struct", "fields": [
                        {"id": 5, "name": "price", "type": "decimal(9, 2)", "required": False}]}}}]},
        {"type": "struct", "fields": [
            {"name": "at", "type": "timestamp", "nullable": True, "metadata": {}},
            {"name": "lines", "nullable": True, "metadata": {}, "type": {
                "type": "array", "containsNull": True, "elementType": {"type": "struct", "fields": [
                    {"name": "price", "type": "decimal(9,2)", "nullable": True, "metadata": {}}]}}}]},
        {"type": "record", "name": "r", "fields": [
            {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
            {"name": "lines", "type": {"type": "array", "items": {"type": "record", "name": "l", "fields": [
                {"name": "price",
                 "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}}]}}}]},
    ),
}  # fmt: skip
# Formats have these, and Spark reads them in no file.
UNREAD = {
    "time": Column("", pa.time64("us"), "time"),
    "nanoseconds": Column("", None, "timestamptz_ns"),
    "wide decimal": Column("", pa.decimal256(50, 2)),
    "uuid": Column("", pa.uuid()),
}


def by_arrow(column: Column, _: Path) -> DataType:
    return from_arrow(column.arrow)


def by_parquet(column: Column, _: Path) -> DataType | None:
    file = BytesIO()
    pq.write_table(pa.schema([("c", column.arrow)]).empty_table(), file, **column.options)
    return columns(pq.ParquetFile(file).schema)[0].type


def iceberg_table(column: Column, place: Path) -> Path:
    fields = [{"id": 1, "name": "c", "type": column.iceberg, "required": False}]
    made = {
        "format-version": 2,
        "location": str(place),
        "last-updated-ms": 1,
        "current-schema-id": 0,
        "schemas": [{"type": "struct", "schema-id": 0, "fields": fields}],
        "partition-specs": [{"spec-id": 0, "fields": []}],
        "default-spec-id": 0,
    }
    (place / "metadata").mkdir(parents=True, exist_ok=True)
    (place / "metadata" / "v1.metadata.json").write_text(json.dumps(made))
    (place / "metadata" / "version-hint.text").write_text("1")
    return place


def by_iceberg_import(column: Column, place: Path) -> DataType:
    [table] = import_iceberg.KIND.read(str(iceberg_table(column, place)))
    return table.columns[0].type


def by_iceberg_metadata(column: Column, place: Path) -> DataType | None:
    try:
        return iceberg.live_table(LocalFiles(), str(iceberg_table(column, place))).schema.parts[0]
    except DqError:
        return None


def delta_table(column: Column, place: Path) -> Path:
    fields = [{"name": "c", "type": column.spark, "nullable": True, "metadata": {}}]
    schema = json.dumps({"type": "struct", "fields": fields})
    log = [
        {"commitInfo": {"timestamp": 1}},
        {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}},
        {"metaData": {"id": "x", "format": {"provider": "parquet"}, "schemaString": schema,
                      "partitionColumns": [], "configuration": {}}},
    ]  # fmt: skip
    (place / "_delta_log").mkdir(parents=True, exist_ok=True)
    text = "\n".join(map(json.dumps, log))
    (place / "_delta_log" / "00000000000000000000.json").write_text(text)
    return place


def by_delta_import(column: Column, place: Path) -> DataType:
    [table] = import_delta.KIND.read(str(delta_table(column, place)))
    return table.columns[0].type


def by_delta_log(column: Column, place: Path) -> DataType:
    return delta.live_table(LocalFiles(), str(delta_table(column, place))).schema.parts[0]


def by_avro(column: Column, place: Path) -> DataType:
    schema = {"type": "record", "name": "row", "fields": [{"name": "c", "type": column.avro}]}
    file = place.with_suffix(".avsc")
    file.write_text(json.dumps(schema))
    [table] = import_avro.KIND.read(str(file))
    return table.columns[0].type


FRONTS: Mapping[str, tuple[Callable[[Column, Path], DataType | None], ...]] = {
    "arrow": (by_arrow, by_parquet),
    "iceberg": (by_iceberg_import, by_iceberg_metadata),
    "spark": (by_delta_import, by_delta_log),
    "avro": (by_avro,),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_each_format_gives_a_column_the_same_contract_type(name: str, tmp_path: Path) -> None:
    column = COLUMNS[name]
    fronts = [front for spelling, fronts in FRONTS.items() if getattr(column, spelling) for front in fronts]

    types = {front.__name__: str(front(column, tmp_path / "table")) for front in fronts}

    assert types == dict.fromkeys(types, column.contract)


@pytest.mark.parametrize("options", [{"use_deprecated_int96_timestamps": True}, {"version": "1.0"}])
def test_an_instant_of_older_writers_of_parquet_is_a_timestamp(
    options: dict[str, Any], tmp_path: Path
) -> None:
    column = Column("timestamp", pa.timestamp("us", "UTC"), options={**options, "store_schema": False})

    assert str(by_parquet(column, tmp_path)) == "timestamp"


@pytest.mark.parametrize("name", UNREAD)
def test_what_spark_does_not_read_is_no_contract_type(name: str, tmp_path: Path) -> None:
    column = UNREAD[name]
    fronts = [by_parquet] if column.arrow else []
    fronts += [by_iceberg_metadata] if column.iceberg else []

    assert {front(column, tmp_path / "table") for front in fronts} == {None}
    if column.arrow:
        assert str(from_arrow(column.arrow)) == str(column.arrow)


@pytest.mark.parametrize("name", COLUMNS)
def test_a_contract_type_is_written_as_a_type_of_arrow_that_is_read_as_it(name: str) -> None:
    column = COLUMNS[name]
    if column.arrow is None:
        return

    written = arrow_type(from_arrow(column.arrow))

    assert str(from_arrow(written)) == column.contract


def test_a_logical_type_of_avro_counts_on_its_own_type_alone(tmp_path: Path) -> None:
    """Avro: a logical type on another type than its own is to be ignored."""
    column = Column("string", avro={"type": "string", "logicalType": "timestamp-micros"})

    assert str(by_avro(column, tmp_path / "table")) == "string"


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([True, False], pa.bool_()),
        ([-(2**63), 0, 2**63 - 1], pa.int64()),
        ([Decimal("-1.50"), Decimal("1E+3")], pa.decimal128(38, 2)),
        ([dt.date(1, 1, 1), dt.date(9999, 12, 31)], pa.date32()),
        (["", "é", "a b", "true"], pa.string()),
        ([], pa.int32()),
    ],
    ids=str,
)
def test_values_become_an_array_of_their_type(values: list[object], kind: pa.DataType) -> None:
    assert arrow_array(values, kind).equals(pa.array(values, kind))


def test_half_of_a_surrogate_pair_is_no_text_of_an_array() -> None:
    with pytest.raises(ValueError, match="surrogates"):
        arrow_array(["\ud800"], pa.string())
