"""How Athena's SerDes and Spark's readers are told of CSV and JSON, and what a table of Glue tells them.

Athena reads by the SerDe. Spark on Glue skips no header and has no SerDe for JSON at hand, but follows the
properties that its own tables have. Sources: AWS, "Choose a SerDe for your data", "Lazy Simple SerDe",
"Open CSV SerDe", "OpenX JSON SerDe" (Athena); Spark's HiveExternalCatalog; SPARK-11374 for headers.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from dq.contracts.access.text_format import RFC_4180, TextFormat
from dq.contracts.types import DataType
from dq.registry.reader import TEXTS, UnsayableTerms, is_text, kind_of, reader_terms, text_format_of
from dq.registry.table import ReaderTerms, TableColumn, TableSpec, fold_location

LAZY = "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe"
OPEN_CSV = "org.apache.hadoop.hive.serde2.OpenCSVSerde"
OPENX = "org.openx.data.jsonserde.JsonSerDe"

_HEADER = "skip.header.line.count"
# opencsv wants an escape that is not the quote, understands doubled quotes anyway, and drops a backslash if
# it is told none: no text has this sign.
_NO_ESCAPE = "\x7f"
# The same for Spark, which takes the empty text for NULL too unless some other text is NULL.
_NO_TEXT = "\x7f"
_HIVE_NULL = "\\N"

_SPARK = "spark.sql.sources."
_PROVIDER, _SCHEMA = f"{_SPARK}provider", f"{_SPARK}schema"
_PARTITIONS = "spark.sql.partitionProvider"
# What we write, and nobody else has a say in.
_TABLE_KEYS = (_HEADER, _PROVIDER, _PARTITIONS)
_SERDE_KEYS = frozenset(
    {"field.delim", "serialization.format", "serialization.null.format", "separatorChar", "quoteChar"}
    | {"escapeChar", "case.insensitive", "path", "sep", "quote", "escape", "header", "nullValue"}
    | {"multiLine", "enforceSchema"}
)


@dataclass(frozen=True, slots=True)
class TextSerde:
    """The class that Athena reads by, what it is told, and the parameters of the table that go with it."""

    name: str
    parameters: Mapping[str, str]
    table: Mapping[str, str]


def text_serde(spec: TableSpec) -> TextSerde:
    """What a table of CSV or JSON needs. Raises UnsayableTerms for what no SerDe understands."""
    form = text_format_of(spec)
    if form.encoding not in (RFC_4180.encoding, "ascii"):
        raise _refused(spec, f"Athena reads UTF-8, and its files are in {form.encoding}", "Deliver UTF-8.")
    spark = {"path": f"{fold_location(spec.location)}/"}
    if spec.format == "json":
        # Names in files may be upper case, the catalog's never are.
        told = {"case.insensitive": "true", "serialization.format": "1"}
        return TextSerde(OPENX, told | spark, _spark_table(spec))
    header = {_HEADER: "1"} if form.header else {}
    name, told = _open_csv(spec, form) if form.quote else _lazy(spec, form)
    spark |= {
        "sep": form.delimiter,
        "quote": form.quote,
        "escape": form.escape,
        "header": str(form.header).lower(),
        "nullValue": form.null_text or _NO_TEXT,
        "multiLine": "true",
        "enforceSchema": "false",
    }
    return TextSerde(name, told | spark, header | _spark_table(spec))


def _lazy(spec: TableSpec, form: TextFormat) -> tuple[str, dict[str, str]]:
    if form.null_text and any(is_text(column.type) for column in spec.columns):
        raise _refused(
            spec,
            f"Athena's SerDe knows one text for NULL: with nullText {form.null_text!r}, nothing is no NULL",
            "Leave 'nullText' out of the 'csv' terms, and write nothing for NULL; or deliver Parquet.",
        )
    null = form.null_text
    told = {"field.delim": form.delimiter, "serialization.format": form.delimiter}
    return LAZY, told | {"serialization.null.format": null}


def _open_csv(spec: TableSpec, form: TextFormat) -> tuple[str, dict[str, str]]:
    typed = next((column for column in spec.columns if not is_text(column.type)), None)
    if typed is not None:
        raise _refused(
            spec,
            f"Athena's SerDe for values in quotes reads texts alone, and {typed.name} is a {typed.type}",
            "Where no value is in quotes, say so: 'quote: none' in the server's 'csv' terms. "
            "Else make its columns strings, or deliver Parquet.",
        )
    if form.null_text:
        raise _refused(
            spec,
            f"Athena's SerDe for values in quotes knows no NULL, and nullText is {form.null_text!r}",
            "Leave 'nullText' out of the 'csv' terms, or deliver Parquet.",
        )
    escape = _NO_ESCAPE if form.escape == form.quote else form.escape
    told = {"separatorChar": form.delimiter, "quoteChar": form.quote, "escapeChar": escape}
    return OPEN_CSV, told | {"serialization.format": "1"}


def _refused(spec: TableSpec, why: str, mend: str) -> UnsayableTerms:
    return UnsayableTerms(f"{spec.database}.{spec.name}: {why}.", mend)


def is_own(key: str) -> bool:
    """Whether a parameter of a table of texts is ours to write, with its reader's terms."""
    return key in _TABLE_KEYS or key.startswith(_SCHEMA)


def without_own(parameters: Mapping[str, str]) -> dict[str, str]:
    """Parameters of a SerDe that are not ours to write."""
    return {key: text for key, text in parameters.items() if key not in _SERDE_KEYS}


def terms_of(raw: Mapping[str, Any], spec: TableSpec) -> ReaderTerms:
    """The terms by which a table is read, and all that does not follow from them, by its name in Glue.

    `raw` is the table as Glue answers it, `spec` the same without its reader.
    """
    if spec.format not in TEXTS:
        return ()
    serde = (raw.get("StorageDescriptor") or {}).get("SerdeInfo") or {}
    name, told = serde.get("SerializationLibrary") or "", serde.get("Parameters") or {}
    table = raw.get("Parameters") or {}
    found = reader_terms(spec.format, _form(name, told, table)) if spec.format == "csv" else ()
    try:
        expected = text_serde(replace(spec, reader=found))
    except UnsayableTerms:
        return found
    strange = {} if name == expected.name else {"SerDe": name}
    for should, is_ in ((expected.parameters, told), (expected.table, table)):
        strange |= {key: is_.get(key, "not set") for key, text in should.items() if is_.get(key) != text}
    return tuple(sorted({**dict(found), **strange}.items()))


def _form(name: str, told: Mapping[str, str], table: Mapping[str, str]) -> TextFormat:
    header = table.get(_HEADER, "0") == "1"
    if name == OPEN_CSV:
        quote, escape = told.get("quoteChar", '"'), told.get("escapeChar", '"')
        escape = quote if escape in (_NO_ESCAPE, quote) else escape
        return TextFormat(told.get("separatorChar", ","), quote, escape, header)
    null = told.get("serialization.null.format", _HIVE_NULL)
    return TextFormat(told.get("field.delim", "\x01"), "", "", header, null_text=null)


def _spark_table(spec: TableSpec) -> dict[str, str]:
    """What Spark takes a table for its own by: the reader, and the columns in their types and spellings."""
    fields = [_field(column) for column in (*spec.columns, *spec.partitions)]
    schema = json.dumps({"type": "struct", "fields": fields}, separators=(",", ":"))
    made = {_PROVIDER: spec.format, _PARTITIONS: "catalog", _SCHEMA: schema}
    if spec.partitions:
        made[f"{_SCHEMA}.numPartCols"] = str(len(spec.partitions))
        made |= {f"{_SCHEMA}.partCol.{at}": column.name for at, column in enumerate(spec.partitions)}
    return made


_SPARK_NAMES = {"bigint": "long", "int": "integer", "smallint": "short", "tinyint": "byte"}
_BOUNDED = "__CHAR_VARCHAR_TYPE_STRING"


def _field(column: TableColumn) -> dict[str, object]:
    name, _, text = column.spelled.partition(" ")
    kind = kind_of(text or column.type)
    bounded = {_BOUNDED: str(kind)} if _has_bounds(kind) else {}
    return {"name": name or column.name, "type": _json(kind), "nullable": True, "metadata": bounded}


def _has_bounds(kind: DataType) -> bool:
    return kind.name in ("char", "varchar") or any(_has_bounds(part) for part in kind.parts)


def _json(kind: DataType) -> object:
    """A type as Spark's JSON of a schema."""
    if kind.name == "array":
        return {"type": "array", "elementType": _json(kind.parts[0]), "containsNull": True}
    if kind.name == "map":
        key, value = (_json(part) for part in kind.parts)
        return {"type": "map", "keyType": key, "valueType": value, "valueContainsNull": True}
    if kind.name == "struct":
        pairs = zip(kind.names, kind.parts, strict=True)
        fields = [
            {"name": name, "type": _json(part), "nullable": True, "metadata": {}} for name, part in pairs
        ]
        return {"type": "struct", "fields": fields}
    if kind.name in ("char", "varchar"):
        return "string"
    return _SPARK_NAMES.get(kind.name, str(kind))
