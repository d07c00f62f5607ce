"""What Spark's external catalog says of a table and its partitions, as our specification."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote

from dq.registry.catalog import Partition
from dq.registry.catalogs import _hive_text as texts
from dq.registry.table import VIEW, TableColumn, TableSpec, fold_location, folded

# Spark's names in schema JSON that differ from its DDL.
_TYPES = {"long": "bigint", "integer": "int", "short": "smallint", "byte": "tinyint"}
_RAW_TYPE = "__CHAR_VARCHAR_TYPE_STRING"
_FINAL = 0x10  # java.lang.reflect.Modifier.FINAL
_SERDE_FORMATS = ("parquet", "orc", "avro", "json", "csv")


def spec_of(table: Any) -> TableSpec:
    """Spark's CatalogTable as our specification, folded."""
    schema = json.loads(table.schema().json())
    keys = list(each(table.partitionColumnNames()))
    properties = {pair._1(): pair._2() for pair in each(table.properties())}
    told = {pair._1(): pair._2() for pair in each(table.storage().properties())}
    view = table.tableType().name() == "VIEW"
    format = _format(_option(table.provider()), _option(table.storage().serde()), properties)
    format = VIEW if view else format
    columns = {field["name"]: _column(field, format) for field in schema["fields"]}
    return folded(
        TableSpec(
            table.database(),
            table.identifier().table(),
            _place(table.storage()),
            format,
            tuple(column for name, column in columns.items() if name not in keys),
            tuple(columns[name] for name in keys),
            tuple(properties.items()),
            _option(table.comment()),
            texts.terms(format, told),
        )
    )


def _format(provider: str, serde: str, properties: Mapping[str, str]) -> str:
    if properties.get("table_type", "").upper() == "ICEBERG":
        return "iceberg"
    if provider.lower() != "hive":
        return provider
    return next((name for name in _SERDE_FORMATS if name in serde.lower()), "")


def _column(field: Mapping[str, Any], format: str) -> TableColumn:
    name, kind = field["name"], field["metadata"].get(_RAW_TYPE) or _ddl(field["type"])
    spelled = f"{name} {kind}" if format == "json" else ""
    return TableColumn(name, kind, field["metadata"].get("comment", ""), spelled)


def _ddl(kind: Any) -> str:
    """Spark's JSON of a type as DDL, like `str(DataType)` writes it."""
    if isinstance(kind, str):
        return _TYPES.get(kind, kind)
    if kind["type"] == "array":
        return f"array<{_ddl(kind['elementType'])}>"
    if kind["type"] == "map":
        return f"map<{_ddl(kind['keyType'])},{_ddl(kind['valueType'])}>"
    if kind["type"] == "struct":
        fields = [f"{one['name']}:{_ddl(one['type'])}" for one in kind["fields"]]
        return f"struct<{','.join(fields)}>"
    return str(kind["type"])


def partition_of(one: Any, keys: list[str]) -> Partition:
    """A CatalogTablePartition of a table with these keys."""
    values = {pair._1(): pair._2() for pair in each(one.spec())}
    location = fold_location(_place(one.storage()))
    return Partition(tuple((key.lower(), values[key]) for key in keys), location)


def _place(storage: Any) -> str:
    """The location as a path: the URI of one with a space, or a percent sign, is spelt otherwise."""
    return unquote(_option(storage.locationUri()))


def described(table: Any, properties: Any, comment: Any) -> Any:
    """The CatalogTable with other properties, a Map, and another comment, an Option; all else as it is."""
    changed = {"properties": properties, "comment": comment}
    values = [table.productElement(at) for at in range(table.productArity())]
    # Scala 2.12, which Spark 3.5 is made with, names the elements of a case class by its fields alone; a lazy
    # value is a field too, and not final.
    fields = [field for field in table.getClass().getDeclaredFields() if field.getModifiers() & _FINAL]
    names = [field.getName() for field in fields[: len(values)]]
    return table.copy(*(changed.get(name, value) for name, value in zip(names, values, strict=True)))


def each(scala: Any) -> Iterator[Any]:
    """The elements of a collection, or of an iterator, of Scala."""
    iterator = scala.iterator()
    while iterator.hasNext():
        yield iterator.next()


def _option(scala: Any) -> str:
    """An Option's content as text, "" for none."""
    if not scala.isDefined():
        return ""
    # A Java string arrives as a Python one, anything else as an object.
    content = scala.get()
    return content if isinstance(content, str) else str(content.toString())
