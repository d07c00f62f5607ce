"""Requests to Glue: tables in its format, and checks of requests that it would reject."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from dq.contracts.access.data_location import RFC_4180, TextFormat
from dq.contracts.outcome import UsageError
from dq.contracts.types import DataType, NotAType, parse
from dq.registry.catalog import LiveTable
from dq.registry.table import (
    OPEN_FORMATS,
    PARTITION_INDEXES,
    TEXTS,
    VIEW,
    ReaderTerms,
    TableColumn,
    TableSpec,
    UnsupportedReaderOptions,
    fold_location,
    folded,
    is_text,
    kind_of,
    reader_terms,
    text_format_of,
)

# TABLE: column types in Glue, and in Spark's DDL as our specifications have them.
#
# Source: AWS, "Data types in Amazon Athena" and "AWS Glue data types"; Hive's DDL.

# Spark's type -> the type that Hive and Athena read instead. The column's parameters keep the exact one.
_READ_AS = {"timestamp_ntz": "timestamp"}
# No engine on this catalog supports these.
_UNKNOWN = frozenset({"variant", "interval"})
_LONGEST = {"char": 255, "varchar": 65535}
NESTED = frozenset({"array", "map", "struct", "uniontype", "binary"})
"""Types that a partition key cannot have."""

EXACT_TYPE = "dq.type"
"""Column parameter with the contract's type, if Glue's type differs."""

SPELLING = "dq.spelling"
"""Column parameter with name and type in the spelling of the JSON keys."""


def glue_type(text: str) -> str:
    """Return the type as Glue and Athena read it.

    Raises NotAType, with the reason, if they do not have it.
    """
    return str(_translated(parse(text)))


def _translated(kind: DataType) -> DataType:
    if kind.name in _UNKNOWN:
        raise NotAType(f"neither Glue nor Athena supports {kind.name}")
    longest = _LONGEST.get(kind.name)
    if longest is not None and kind.numbers and kind.numbers[0] > longest:
        raise NotAType(f"{kind} is longer than Hive's limit of {longest} characters")
    if longest is not None and not kind.numbers:
        raise NotAType(f"{kind.name} needs a length, e.g. {kind.name}(20)")
    name = _READ_AS.get(kind.name, kind.name)
    return replace(kind, name=name, parts=tuple(_translated(part) for part in kind.parts))


def spark_type(text: str, exact: str | None = None) -> str:
    """Return the type as in our specifications: `exact`, if Glue's type is its translation.

    An unknown type is returned as written, in lower case.
    """
    try:
        if exact is not None and glue_type(exact) == text:
            return exact.lower()
        return str(parse(text)).lower()
    except NotAType:
        return text.lower()


def type_problem(text: str) -> str | None:
    """Return the reason why Athena cannot read a column of this type, or None. Accepts Hive's spellings
    only.
    """
    try:
        kind = parse(text)
        plain = str(_translated(kind))
    except NotAType as error:
        return str(error)
    if text != text.lower():
        return "Glue writes types in lower case"
    if any(character.isspace() for character in text):
        return "Glue writes types without spaces"
    # `integer` and a bare `decimal` are Hive's own.
    if plain != text and text not in ("integer", "decimal"):
        return f"Glue writes it as {plain}"
    return None


# Parameters for CSV and JSON that Athena's SerDes and Spark's readers take from a Glue table.
#
# Athena reads with the SerDe. Spark on Glue skips no header and has no SerDe for JSON, but uses the
# properties of its own data source tables. Sources: AWS, "Choose a SerDe for your data", "Lazy Simple
# SerDe", "Open CSV SerDe", "OpenX JSON SerDe" (Athena); Spark's HiveExternalCatalog; SPARK-11374 for
# headers.

LAZY = "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe"
OPEN_CSV = "org.apache.hadoop.hive.serde2.OpenCSVSerde"
OPENX = "org.openx.data.jsonserde.JsonSerDe"

_HEADER = "skip.header.line.count"
# opencsv requires an escape other than the quote, supports doubled quotes anyway, and drops backslashes
# without an escape. This character occurs in no text.
_NO_ESCAPE = "\x7f"
# The same for Spark, which reads empty text as NULL unless another null text is set.
_NO_TEXT = "\x7f"
_HIVE_NULL = "\\N"

_SPARK = "spark.sql.sources."
_PROVIDER, _SCHEMA = f"{_SPARK}provider", f"{_SPARK}schema"
_PARTITIONS = "spark.sql.partitionProvider"
# Keys that only dq writes.
_TABLE_KEYS = (_HEADER, _PROVIDER, _PARTITIONS)
_SERDE_KEYS = frozenset(
    {"field.delim", "serialization.format", "serialization.null.format", "separatorChar", "quoteChar"}
    | {"escapeChar", "case.insensitive", "path", "sep", "quote", "escape", "header", "nullValue"}
    | {"multiLine", "enforceSchema"}
)


@dataclass(frozen=True, slots=True)
class TextSerde:
    """The SerDe class that Athena reads with, its parameters, and the matching table parameters."""

    name: str
    parameters: Mapping[str, str]
    table: Mapping[str, str]


def text_serde(spec: TableSpec) -> TextSerde:
    """Return the SerDe of a CSV or JSON table.

    Raises UnsupportedReaderOptions for options that no SerDe supports.
    """
    form = text_format_of(spec)
    if form.encoding not in (RFC_4180.encoding, "ascii"):
        raise _unsupported(
            spec, f"Athena reads only UTF-8, and the files are in {form.encoding}", "Deliver UTF-8."
        )
    spark = {"path": f"{fold_location(spec.location)}/"}
    if spec.format == "json":
        # Names in files may have upper case letters, the catalog's have none.
        parameters = {"case.insensitive": "true", "serialization.format": "1"}
        return TextSerde(OPENX, parameters | spark, _spark_table(spec))
    header = {_HEADER: "1"} if form.header else {}
    name, parameters = _open_csv(spec, form) if form.quote else _lazy(spec, form)
    spark |= {
        "sep": form.delimiter,
        "quote": form.quote,
        "escape": form.escape,
        "header": str(form.header).lower(),
        "nullValue": form.null_text or _NO_TEXT,
        "multiLine": "true",
        "enforceSchema": "false",
    }
    return TextSerde(name, parameters | spark, header | _spark_table(spec))


def _lazy(spec: TableSpec, form: TextFormat) -> tuple[str, dict[str, str]]:
    if form.null_text and any(is_text(column.type) for column in spec.columns):
        raise _unsupported(
            spec,
            f"Athena's SerDe supports one text for NULL: with nullText {form.null_text!r}, '' is not NULL",
            "Remove 'nullText' from the 'csv' terms and leave NULL values empty, or deliver Parquet.",
        )
    null = form.null_text
    parameters = {"field.delim": form.delimiter, "serialization.format": form.delimiter}
    return LAZY, parameters | {"serialization.null.format": null}


def _open_csv(spec: TableSpec, form: TextFormat) -> tuple[str, dict[str, str]]:
    typed = next((column for column in spec.columns if not is_text(column.type)), None)
    if typed is not None:
        raise _unsupported(
            spec,
            f"Athena's SerDe for quoted values reads only strings, and {typed.name} is a {typed.type}",
            "If no value is quoted, set 'quote: none' in the server's 'csv' terms. "
            "Otherwise make its columns strings, or deliver Parquet.",
        )
    if form.null_text:
        raise _unsupported(
            spec,
            f"Athena's SerDe for quoted values does not support NULL, and nullText is {form.null_text!r}",
            "Remove 'nullText' from the 'csv' terms, or deliver Parquet.",
        )
    escape = _NO_ESCAPE if form.escape == form.quote else form.escape
    parameters = {"separatorChar": form.delimiter, "quoteChar": form.quote, "escapeChar": escape}
    return OPEN_CSV, parameters | {"serialization.format": "1"}


def _unsupported(spec: TableSpec, reason: str, hint: str) -> UnsupportedReaderOptions:
    return UnsupportedReaderOptions(f"{spec.database}.{spec.name}: {reason}.", hint)


def is_managed_key(key: str) -> bool:
    """Return True if dq manages this parameter of a CSV or JSON table, as part of the reader options."""
    return key in _TABLE_KEYS or key.startswith(_SCHEMA)


def unmanaged_parameters(parameters: Mapping[str, str]) -> dict[str, str]:
    """Return the SerDe parameters that dq does not manage."""
    return {key: text for key, text in parameters.items() if key not in _SERDE_KEYS}


def reader_terms_from_glue(raw: Mapping[str, Any], spec: TableSpec) -> ReaderTerms:
    """Return the reader options of a table, and by name in Glue all parameters that differ from them.

    `raw` is the table as Glue returns it, `spec` is its specification without reader options.
    """
    if spec.format not in TEXTS:
        return ()
    serde = (raw.get("StorageDescriptor") or {}).get("SerdeInfo") or {}
    name, parameters = serde.get("SerializationLibrary") or "", serde.get("Parameters") or {}
    table = raw.get("Parameters") or {}
    terms = reader_terms(spec.format, _form(name, parameters, table)) if spec.format == "csv" else ()
    try:
        expected = text_serde(replace(spec, reader=terms))
    except UnsupportedReaderOptions:
        return terms
    unexpected = {} if name == expected.name else {"SerDe": name}
    for desired, actual in ((expected.parameters, parameters), (expected.table, table)):
        unexpected |= {
            key: actual.get(key, "not set") for key, text in desired.items() if actual.get(key) != text
        }
    return tuple(sorted({**dict(terms), **unexpected}.items()))


def _form(name: str, parameters: Mapping[str, str], table: Mapping[str, str]) -> TextFormat:
    header = table.get(_HEADER, "0") == "1"
    if name == OPEN_CSV:
        quote, escape = parameters.get("quoteChar", '"'), parameters.get("escapeChar", '"')
        escape = quote if escape in (_NO_ESCAPE, quote) else escape
        return TextFormat(parameters.get("separatorChar", ","), quote, escape, header)
    null = parameters.get("serialization.null.format", _HIVE_NULL)
    return TextFormat(parameters.get("field.delim", "\x01"), "", "", header, null_text=null)


def _spark_table(spec: TableSpec) -> dict[str, str]:
    """Return the parameters of a Spark data source table: the reader, and columns with type and spelling."""
    fields = [_field(column) for column in (*spec.columns, *spec.partitions)]
    schema = json.dumps({"type": "struct", "fields": fields}, separators=(",", ":"))
    parameters = {_PROVIDER: spec.format, _PARTITIONS: "catalog", _SCHEMA: schema}
    if spec.partitions:
        parameters[f"{_SCHEMA}.numPartCols"] = str(len(spec.partitions))
        parameters |= {
            f"{_SCHEMA}.partCol.{index}": column.name for index, column in enumerate(spec.partitions)
        }
    return parameters


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
    """Return a type in Spark's JSON schema format."""
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


# TABLE: the classes of a Glue table's format: input, output, SerDe.
#
# Source: AWS, "Choose a SerDe for your data" (Athena); the classes are Hive's.

_HIVE = "org.apache.hadoop.hive.ql.io"
_TEXT_IN = "org.apache.hadoop.mapred.TextInputFormat"
_TEXT_OUT = f"{_HIVE}.HiveIgnoreKeyTextOutputFormat"


@dataclass(frozen=True, slots=True)
class GlueFormat:
    """The classes that read and write a format."""

    input: str
    output: str
    serde: str
    other_serdes: tuple[str, ...] = ()


FORMATS = {
    "parquet": GlueFormat(
        f"{_HIVE}.parquet.MapredParquetInputFormat",
        f"{_HIVE}.parquet.MapredParquetOutputFormat",
        f"{_HIVE}.parquet.serde.ParquetHiveSerDe",
    ),
    "orc": GlueFormat(f"{_HIVE}.orc.OrcInputFormat", f"{_HIVE}.orc.OrcOutputFormat", f"{_HIVE}.orc.OrcSerde"),
    "avro": GlueFormat(
        f"{_HIVE}.avro.AvroContainerInputFormat",
        f"{_HIVE}.avro.AvroContainerOutputFormat",
        "org.apache.hadoop.hive.serde2.avro.AvroSerDe",
    ),
    # For their parameters see `text_serde`.
    "json": GlueFormat(_TEXT_IN, _TEXT_OUT, OPENX),
    "csv": GlueFormat(_TEXT_IN, _TEXT_OUT, LAZY, (OPEN_CSV,)),
}

# A part of a SerDe's class -> the format; some have several SerDes.
_SERDES = (
    ("parquet", "parquet"), ("orc", "orc"), ("avro", "avro"), ("json", "json"), ("opencsv", "csv"),
    ("lazysimple", "csv"),
)  # fmt: skip
_OPEN = ("iceberg", "delta", "hudi")


FILTERING = {"partition_filtering.enabled": "true"}
"""Table parameter that makes Athena use the partition indexes."""


def own_parameters(name: str) -> dict[str, str]:
    """Return the table parameters that follow from the format, not from the contract."""
    return {"EXTERNAL": "TRUE", "classification": name} if name in FORMATS else {}


def format_of(table: Mapping[str, Any]) -> str:
    """Return the format of a raw Glue table, or "" for a resource link or an unknown format."""
    parameters = table.get("Parameters") or {}
    storage = table.get("StorageDescriptor") or {}
    for key in ("table_type", "spark.sql.sources.provider"):
        word = str(parameters.get(key, "")).lower()
        if word in _OPEN:
            return word
    if "hoodie" in (storage.get("InputFormat") or "").lower():
        return "hudi"
    if table.get("TargetTable"):
        return ""
    if "VIEW" in (table.get("TableType") or ""):
        return VIEW
    serde = ((storage.get("SerdeInfo") or {}).get("SerializationLibrary") or "").lower()
    return next((name for part, name in _SERDES if part in serde), "")


# Conversion between our table specification and Glue's, preserving what others have written.

Raw = Mapping[str, Any]

# Keys of GetTable that UpdateTable accepts; the others are Glue's own.
_INPUT = (
    "Name", "Description", "Owner", "LastAccessTime", "LastAnalyzedTime", "Retention", "StorageDescriptor",
    "PartitionKeys", "ViewOriginalText", "ViewExpandedText", "TableType", "Parameters", "TargetTable",
)  # fmt: skip


def live_table(raw: Raw) -> LiveTable:
    """Return a raw Glue table as folded specification, without the parameters that follow from its format."""
    storage = raw.get("StorageDescriptor") or {}
    kind = format_of(raw)
    parameters = raw.get("Parameters") or {}
    derived_parameters = own_parameters(kind) | (FILTERING if PARTITION_INDEXES in parameters else {})
    spec = TableSpec(
        raw["DatabaseName"],
        raw["Name"],
        storage.get("Location") or "",
        kind,
        tuple(_column(column) for column in storage.get("Columns") or []),
        tuple(_column(column) for column in raw.get("PartitionKeys") or []),
        tuple(
            (key, text)
            for key, text in parameters.items()
            if not (derived_parameters.get(key) == text or (kind in TEXTS and is_managed_key(key)))
        ),
        raw.get("Description") or "",
    )
    spec = folded(spec)
    spec = folded(replace(spec, reader=reader_terms_from_glue(raw, spec)))
    return LiveTable(spec, str(raw.get("VersionId", "")), raw.get("UpdateTime"), str(raw.get("Owner") or ""))


def _column(raw: Raw) -> TableColumn:
    parameters = raw.get("Parameters") or {}
    kind = spark_type(raw.get("Type") or "", parameters.get(EXACT_TYPE))
    return TableColumn(raw["Name"], kind, raw.get("Comment") or "", parameters.get(SPELLING, ""))


def new_table(spec: TableSpec) -> dict[str, Any]:
    """Return the TableInput of a new table. Raises NotAType for a type that Glue does not have."""
    table_input = {
        "Name": spec.name,
        "TableType": "EXTERNAL_TABLE",
        "StorageDescriptor": {
            "Columns": [_input(column) for column in spec.columns],
            "Location": _folder(spec.location),
            "NumberOfBuckets": -1,
            "StoredAsSubDirectories": False,
            **_classes(spec, {}),
        },
        # Athena requires the key even without partition keys.
        "PartitionKeys": [_input(column) for column in spec.partitions],
        "Parameters": _own(spec) | dict(spec.parameters),
    }
    return table_input | ({"Description": spec.description} if spec.description else {})


def changed_table(raw: Raw, after: TableSpec) -> dict[str, Any]:
    """Return the TableInput that turns the live table into `after` and keeps everything else.

    For Iceberg, Delta and Hudi tables only parameters and description change.
    """
    before = live_table(raw).spec
    table_input = {key: raw[key] for key in _INPUT if key in raw}
    parameters = dict(raw.get("Parameters") or {})
    for key in {key for key, _ in before.parameters} - {key for key, _ in after.parameters}:
        del parameters[key]
    parameters |= {key: text for key, text in after.parameters if before.parameter(key) != text}
    if after.description != before.description:
        table_input["Description"] = after.description
    # If only metadata changes, reader parameters of a CSV or JSON table written by others are kept.
    only_metadata = before == replace(after, parameters=before.parameters, description=before.description)
    if after.format not in OPEN_FORMATS and not (only_metadata and after.format in TEXTS):
        if after.format != before.format:
            for key in own_parameters(before.format):
                parameters.pop(key, None)
        if not TEXTS.isdisjoint({before.format, after.format}):
            parameters = {key: text for key, text in parameters.items() if not is_managed_key(key)}
        parameters |= _own(after)
        table_input["StorageDescriptor"] = _changed_storage(raw.get("StorageDescriptor") or {}, before, after)
    if after.format not in OPEN_FORMATS and table_input.get("StorageDescriptor"):
        table_input["StorageDescriptor"] = with_s3_location(table_input["StorageDescriptor"])
    return table_input | {"Parameters": parameters}


def with_s3_location(storage: Raw) -> dict[str, Any]:
    """Return the storage with a Hadoop address (`s3a://`, `s3n://`) as the equivalent `s3://` location."""
    location = storage.get("Location") or ""
    plain = fold_location(location) != location.rstrip("/") and fold_location(location).startswith("s3:")
    return {**storage, "Location": _folder(location)} if plain else dict(storage)


def _changed_storage(raw: Raw, before: TableSpec, after: TableSpec) -> dict[str, Any]:
    storage = dict(raw)
    live = {column["Name"].lower(): column for column in raw.get("Columns") or []}
    storage["Columns"] = [
        _changed_column(live.get(column.name), before.column(column.name), column) for column in after.columns
    ]
    if after.location != before.location:
        storage["Location"] = _folder(after.location)
    if after.format != before.format:
        storage |= _classes(after, {})
    elif after.format in TEXTS:
        serde = raw.get("SerdeInfo") or {}
        storage["SerdeInfo"] = {**serde, **_classes(after, serde.get("Parameters") or {})["SerdeInfo"]}
    return storage


def _changed_column(raw: Raw | None, before: TableColumn | None, after: TableColumn) -> dict[str, Any]:
    if raw is None or before is None:
        return _input(after)
    changed = dict(raw)
    if after.comment != before.comment:
        changed["Comment"] = after.comment
    if (after.type, after.spelled) != (before.type, before.spelled):
        new = _input(after)
        foreign = {key: text for key, text in (raw.get("Parameters") or {}).items() if key not in _OWN}
        changed |= {"Type": new["Type"], "Parameters": foreign | new.get("Parameters", {})}
    return changed


_OWN = (EXACT_TYPE, SPELLING)


def _input(column: TableColumn) -> dict[str, Any]:
    kind = glue_type(column.type)
    glue_column: dict[str, Any] = {"Name": column.name, "Type": kind}
    if column.comment:
        glue_column["Comment"] = column.comment
    own = {} if kind == column.type else {EXACT_TYPE: column.type}
    own |= {SPELLING: column.spelled} if column.spelled else {}
    return glue_column | ({"Parameters": own} if own else {})


def _own(spec: TableSpec) -> dict[str, str]:
    """Return the table parameters for its format, reader options and partition indexes."""
    filtering = FILTERING if spec.parameter(PARTITION_INDEXES) else {}
    return {
        **own_parameters(spec.format),
        **(text_serde(spec).table if spec.format in TEXTS else {}),
        **filtering,
    }


def _classes(spec: TableSpec, existing: Mapping[str, str]) -> dict[str, Any]:
    """Return the classes that read the files. SerDe parameters that dq does not manage are kept."""
    kind = FORMATS[spec.format]
    name, parameters = kind.serde, {"serialization.format": "1"}
    if spec.format in TEXTS:
        serde = text_serde(spec)
        name, parameters = serde.name, dict(serde.parameters)
    return {
        "InputFormat": kind.input,
        "OutputFormat": kind.output,
        "SerdeInfo": {
            "SerializationLibrary": name,
            "Parameters": unmanaged_parameters(existing) | parameters,
        },
    }


def _folder(location: str) -> str:
    """Return the location with a trailing slash, so that it is a folder and not a key prefix."""
    return f"{fold_location(location)}/" if location else ""


# Checks of requests by AWS's model that botocore leaves out: sizes, patterns, enumerations.
#
# botocore itself rejects missing and unknown keys, wrong types and values that are too small.

Rule = Callable[[Raw], Iterable[str]]
"""Checks the requests of one operation for constraints that AWS's model does not have."""

_SHOWN_LENGTH = 60
# Java's syntax in the patterns of the model -> Python's.
_TRANSLATED = (
    (r"\uD800\uDC00-\uDBFF\uDFFF", r"\U00010000-\U0010FFFF"),
    (r"\p{L}\p{N}\p{P}", r"\x21-\x7e\u00a1-\uFFFD"),
    (r"\p{Graph}", r"\x21-\x7e"),
    (r"\p{L}\p{Z}\p{N}", r"\w\x20\xa0\u2000-\u200a\u3000"),
)


def request_problems(operation: Any, params: Raw, rules: Mapping[str, Rule]) -> list[str]:
    """Return all problems of a request, without duplicates: by AWS's model, then by the operation's rule."""
    shape, own = operation.input_shape, rules.get(operation.name)
    problems = list(shape_problems(shape, params)) if shape is not None else []
    return list(dict.fromkeys([*problems, *(own(params) if own is not None else ())]))


def shape_problems(shape: Any, value: Any, path: str = "") -> Iterator[str]:
    """Return the problems of `value` by its shape, each as text that begins with the path."""
    limits = shape.metadata
    if shape.type_name == "structure" and isinstance(value, dict):
        for name, inner in value.items():
            if name in shape.members:
                yield from shape_problems(shape.members[name], inner, f"{path}.{name}" if path else name)
    elif shape.type_name == "list" and isinstance(value, (list, tuple)):
        yield from _size(path, len(value), limits, "items")
        for index, inner in enumerate(value):
            yield from shape_problems(shape.member, inner, f"{path}[{index}]")
    elif shape.type_name == "map" and isinstance(value, dict):
        yield from _size(path, len(value), limits, "entries")
        for key, inner in value.items():
            yield from shape_problems(shape.key, key, f"{path} key {_shown(key)}")
            yield from shape_problems(shape.value, inner, f"{path}[{_shown(key)}]")
    elif shape.type_name == "string" and isinstance(value, str):
        yield from _text(path, value, limits)
    elif shape.type_name in ("integer", "long") and isinstance(value, int):
        low, high = limits.get("min", value), limits.get("max", value)
        if not low <= value <= high:
            yield f"{path}: {value} is not between {low} and {high}"


def _size(path: str, size: int, limits: Any, unit: str) -> Iterator[str]:
    low, high = limits.get("min", 0), limits.get("max", size)
    if not low <= size <= high:
        yield f"{path}: {size} {unit}, but AWS allows {low} to {high}"


def _text(path: str, text: str, limits: Any) -> Iterator[str]:
    # Java counts a character beyond the basic plane as two.
    size = len(text.encode("utf-16-le", "surrogatepass")) // 2
    yield from _size(path, size, limits, "characters")
    choices = limits.get("enum")
    if choices and text not in choices:
        yield f"{path}: {_shown(text)} is not one of {', '.join(choices)}"
    pattern = limits.get("pattern")
    if pattern and not compiled(pattern).fullmatch(text):
        yield f"{path}: {_shown(text)} has a character that AWS does not allow there, e.g. a line break"


@lru_cache(256)
def compiled(pattern: str) -> re.Pattern[str]:
    """Return a pattern of the model for Python. Raises re.error if it cannot be translated."""
    for java, python in _TRANSLATED:
        pattern = pattern.replace(java, python)
    return re.compile(pattern)


def _shown(text: str) -> str:
    return repr(text if len(text) <= _SHOWN_LENGTH else f"{text[: _SHOWN_LENGTH - 1]}…")


# Constraints on Glue tables outside of AWS's model: AWS rejects the table later, or Athena cannot read it.
#
# Sources: AWS, "Tables, databases, and columns naming requirements" (Athena), "PartitionIndex" and
# "TableInput" (Glue API), "Bucket naming rules" (S3); Iceberg's GlueCatalog for names.

NAME = re.compile(r"[a-z_][a-z0-9_]{0,254}")
DATABASE = re.compile(r"[a-z_][a-z0-9_]{0,251}")
_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_DOTTED_NUMBER = re.compile(r"\d+\.\d+\.\d+\.\d+")
_SIGNS = re.compile(r"[*?\[\]{}\\\x00-\x1f\x7f]")

# Glue keeps a table as one compressed item.
_MAX_BYTES = 1_000_000
# Written by table writers themselves: a table created with these is not read correctly.
_RESERVED = re.compile(
    r"(?i)metadata_location|previous_metadata_location|table_type|spark\.sql\..*|numrows|numfiles|totalsize"
    r"|rawdatasize|transient_lastddltime|last_commit_time_sync|updated_by_crawler|crawlerschema.*|comment"
)
_KINDS = {name: kind for kind in FORMATS.values() for name in (kind.serde, *kind.other_serdes)}
_MAX_INDEXES = 3
_INDEX_TYPES = re.compile(r"(string|tinyint|smallint|int|bigint|date|(var)?char\(\d+\))")
_PROJECTIONS = frozenset({"enum", "integer", "date", "injected"})


def new_table_problems(table: Raw) -> Iterator[str]:
    """Return the problems of a TableInput of CreateTable."""
    name = table.get("Name", "")
    if not NAME.fullmatch(name):
        yield f"TableInput.Name: {name!r} must be lower case letters, digits and underscores (at most 255)"
    if table.get("TargetTable"):
        return
    if table.get("TableType") != "EXTERNAL_TABLE":
        yield f"TableInput.TableType: {table.get('TableType')!r}, but Athena reads only EXTERNAL_TABLE"
    if "PartitionKeys" not in table:
        yield "TableInput.PartitionKeys: missing; Athena cannot read a table without it, even if it is empty"
    storage = table.get("StorageDescriptor")
    if not storage:
        yield "TableInput.StorageDescriptor: missing"
        return
    if not storage.get("Location"):
        yield "TableInput.StorageDescriptor.Location: missing; Athena reads from a folder in S3"
    texts = format_of(table) in TEXTS
    for key in table.get("Parameters") or {}:
        if _RESERVED.fullmatch(key) and not (texts and is_managed_key(key)):
            yield f"TableInput.Parameters: {key!r} is reserved for the engines that write tables"
    yield from table_problems(table)
    columns = [*(storage.get("Columns") or []), *(table.get("PartitionKeys") or [])]
    for column in columns:
        if not NAME.fullmatch(column.get("Name", "")):
            yield f"column {column.get('Name')!r}: must be lower case letters, digits and underscores"


def table_problems(table: Raw) -> Iterator[str]:
    """Return the problems of a TableInput of CreateTable or UpdateTable."""
    if table.get("Name", "") != table.get("Name", "").lower():
        yield f"TableInput.Name: {table['Name']!r} is not in lower case; Glue would convert it"
    yield from _table_size(table)
    if format_of(table) in OPEN_FORMATS or table.get("TargetTable"):
        # Everything else is written by their own writers.
        return
    storage = table.get("StorageDescriptor") or {}
    yield from _columns(storage.get("Columns") or [], table.get("PartitionKeys") or [])
    yield from storage_problems(storage, "TableInput.StorageDescriptor")
    yield from _parameters(table, storage)


def _table_size(table: Raw) -> Iterator[str]:
    data = json.dumps(table, default=str).encode()
    if len(data) > _MAX_BYTES and len(gzip.compress(data, 6)) > _MAX_BYTES:
        yield "TableInput: more than a megabyte when compressed, which Glue does not store"


def _columns(columns: Sequence[Raw], keys: Sequence[Raw]) -> Iterator[str]:
    if not columns:
        yield "TableInput.StorageDescriptor.Columns: none; Athena cannot read a table without columns"
    seen_names: set[str] = set()
    for column in (*columns, *keys):
        name = column.get("Name", "")
        if name.lower() in seen_names:
            yield f"column {name!r}: duplicated; Glue ignores case"
        seen_names.add(name.lower())
        if name != name.lower():
            yield f"column {name!r}: not in lower case; Glue would convert it"
        if not name.strip():
            yield f"column {name!r}: without a name"
        reason = type_problem(column["Type"]) if column.get("Type") else "missing"
        if reason:
            yield f"type of column {name!r}: {column.get('Type', '')[:60]!r}: {reason}"
    for key in keys:
        if re.split(r"[(<]", key.get("Type", ""))[0] in NESTED:
            yield f"partition key {key.get('Name')!r}: a {key.get('Type')}; keys must be plain values"


def storage_problems(storage: Raw, path: str) -> Iterator[str]:
    """Return the problems of a StorageDescriptor: location, classes, buckets, sort order."""
    if storage.get("Location"):
        yield from _place(storage["Location"], f"{path}.Location")
    serde = (storage.get("SerdeInfo") or {}).get("SerializationLibrary")
    classes = {"InputFormat": storage.get("InputFormat"), "OutputFormat": storage.get("OutputFormat")}
    classes["SerdeInfo.SerializationLibrary"] = serde
    missing = [name for name, text in classes.items() if not text]
    if missing:
        yield f"{path}: without {', '.join(missing)} no engine can read the files"
    glue_format = _KINDS.get(serde or "")
    if glue_format is not None and not missing and (glue_format.input, glue_format.output) != (
        classes["InputFormat"], classes["OutputFormat"],
    ):  # fmt: skip
        yield f"{path}: {serde} cannot read the output of {classes['InputFormat']}"
    names = {column.get("Name") for column in storage.get("Columns") or []}
    buckets = storage.get("BucketColumns") or []
    if buckets and not storage.get("NumberOfBuckets", 0) > 0:
        yield f"{path}.NumberOfBuckets: must be above 0 if there are BucketColumns"
    sorts = storage.get("SortColumns") or []
    for name in (*buckets, *(order.get("Column") for order in sorts)):
        if name not in names:
            yield f"{path}: buckets or sorts by {name!r}, which is not a column"
    for order in sorts:
        if order.get("SortOrder") not in (0, 1):
            yield f"{path}.SortColumns: order {order.get('SortOrder')!r} is neither 0 nor 1"


def _place(text: str, path: str) -> Iterator[str]:
    scheme, _, remainder = text.partition("://")
    if scheme != "s3":
        yield f"{path}: {text!r} is not in S3; write s3://bucket/prefix/"
        return
    bucket, _, key = remainder.partition("/")
    if not _BUCKET.fullmatch(bucket) or ".." in bucket or _DOTTED_NUMBER.fullmatch(bucket):
        yield f"{path}: {bucket!r} is not a valid bucket name"
    if _SIGNS.search(key):
        yield f"{path}: {text!r} has wildcard characters; a table is a folder"
    if "//" in f"/{key}" or any(step in (".", "..") for step in key.split("/")):
        yield f"{path}: {text!r} has an empty path segment, '.' or '..'"


def _parameters(table: Raw, storage: Raw) -> Iterator[str]:
    parameters = table.get("Parameters") or {}
    if "EXTERNAL" in parameters and parameters["EXTERNAL"].upper() != "TRUE":
        yield f"TableInput.Parameters: EXTERNAL is {parameters['EXTERNAL']!r}, but the table is external"
    if not parameters.get("skip.header.line.count", "0").isdecimal():
        yield "TableInput.Parameters: skip.header.line.count is not a number"
    classification, serde_format = parameters.get("classification"), format_of({"StorageDescriptor": storage})
    if classification in FORMATS and serde_format and classification != serde_format:
        yield (
            f"TableInput.Parameters: classification is {classification!r}, but the SerDe reads {serde_format}"
        )
    if parameters.get("projection.enabled", "false").lower() == "true":
        for key in table.get("PartitionKeys") or []:
            kind = parameters.get(f"projection.{key.get('Name')}.type")
            if kind not in _PROJECTIONS:
                yield f"TableInput.Parameters: projection of {key.get('Name')!r} has the type {kind!r}"


def index_problems(indexes: Sequence[Raw], keys: Sequence[Raw] | None) -> Iterator[str]:
    """Return the problems of indexes over these partition keys (None: the keys are not known)."""
    if len(indexes) > _MAX_INDEXES:
        yield f"PartitionIndexes: {len(indexes)}, but Glue allows {_MAX_INDEXES}"
    for index in indexes:
        name, index_keys = index.get("IndexName", ""), index.get("Keys") or []
        if not NAME.fullmatch(name):
            yield f"index {name!r}: must be lower case letters, digits and underscores"
        if len(set(index_keys)) != len(index_keys):
            yield f"index {name!r}: duplicate key"
    for label, values in (
        ("name", [index.get("IndexName") for index in indexes]),
        ("keys", [tuple(index.get("Keys") or []) for index in indexes]),
    ):
        if len(set(values)) != len(values):
            yield f"PartitionIndexes: two with the same {label}"
    if keys is None:
        return
    types = {key["Name"]: key.get("Type", "") for key in keys}
    for index in indexes:
        for key in index.get("Keys") or []:
            if key not in types:
                yield f"index {index.get('IndexName')!r}: {key!r} is not a partition key"
            elif not _INDEX_TYPES.fullmatch(types[key]):
                yield f"index {index.get('IndexName')!r}: {key!r} is a {types[key]}, which cannot be indexed"


# Checks every request before it is sent: by AWS's model first, then by our own rules.
#
# Registered on the session, so that it applies to all of its clients.

_ACCOUNT = re.compile(r"\d{12}(:.+)?")
_MAX_SHOWN = 10


def refuse(operation: Any, params: Raw) -> None:
    """Raise UsageError, with all problems, for a request that AWS would reject or misunderstand.

    `operation` is botocore's model of the operation.
    """
    problems = [*_account(params), *request_problems(operation, params, RULES)]
    if not problems:
        return
    remaining = [f"and {len(problems) - _MAX_SHOWN} more"] if len(problems) > _MAX_SHOWN else []
    raise UsageError(
        f"{_subject(params)}: Glue would reject this {operation.name}: "
        f"{'; '.join(problems[:_MAX_SHOWN] + remaining)}.",
        "Nothing was sent; fix the contract.",
    )


def _subject(params: Raw) -> str:
    table = params.get("TableInput") or {}
    database = params.get("DatabaseInput") or {}
    parts = (params.get("DatabaseName"), table.get("Name"), params.get("TableName"), params.get("Name"))
    words = list(dict.fromkeys([*(part for part in parts if part), *filter(None, [database.get("Name")])]))
    return ".".join(str(word) for word in words) or "Glue"


def _account(params: Raw) -> Iterator[str]:
    catalog = params.get("CatalogId")
    if isinstance(catalog, str) and not _ACCOUNT.fullmatch(catalog):
        yield f"CatalogId: {catalog!r} is not a 12-digit account ID"


def _create_database(params: Raw) -> Iterator[str]:
    database_input = params.get("DatabaseInput") or {}
    name = database_input.get("Name", "")
    if not DATABASE.fullmatch(name):
        yield f"DatabaseInput.Name: {name!r} must be lower case letters, digits and underscores"
    location = database_input.get("LocationUri")
    if location and not location.startswith("s3://"):
        yield f"DatabaseInput.LocationUri: {location!r} is not in S3"


def _create_table(params: Raw) -> Iterator[str]:
    table_input = params.get("TableInput") or {}
    yield from new_table_problems(table_input)
    yield from index_problems(params.get("PartitionIndexes") or [], table_input.get("PartitionKeys") or [])


def _update_table(params: Raw) -> Iterator[str]:
    if not params.get("VersionId"):
        yield "VersionId: missing; without it a concurrent change would be lost"
    if "SkipArchive" not in params:
        yield "SkipArchive: missing; every write would keep an old version"
    yield from table_problems(params.get("TableInput") or {})


def _partitions(items: str, get_input: Callable[[Raw], Raw]) -> Callable[[Raw], Iterator[str]]:
    def check(params: Raw) -> Iterator[str]:
        partitions = [get_input(item) for item in params.get(items) or []]
        values = [tuple(partition.get("Values") or ()) for partition in partitions]
        if not partitions:
            yield f"{items}: empty"
        if len({len(row) for row in values}) > 1:
            yield f"{items}: some have more values than others"
        if len(set(values)) != len(values):
            yield f"{items}: duplicate partition"
        if any(not row or not all(row) for row in values):
            yield f"{items}: a partition without a value"
        for number, partition in enumerate(partitions):
            if partition.get("StorageDescriptor"):
                path = f"{items}[{number}].StorageDescriptor"
                if not partition["StorageDescriptor"].get("Location"):
                    yield f"{path}.Location: missing"
                yield from storage_problems(partition["StorageDescriptor"], path)
            else:
                yield f"{items}[{number}]: no StorageDescriptor; Glue does not use the table's"

    return check


def _update_entries(params: Raw) -> Iterator[str]:
    for number, entry in enumerate(params.get("Entries") or []):
        if list(entry.get("PartitionValueList") or []) != list(
            (entry.get("PartitionInput") or {}).get("Values") or []
        ):
            yield f"Entries[{number}]: renames a partition"
    yield from _UPDATE(params)


_UPDATE = _partitions("Entries", lambda entry: entry.get("PartitionInput") or {})

# Operation -> rule for constraints that AWS's model does not have.
RULES: dict[str, Rule] = {
    "CreateDatabase": _create_database,
    "CreateTable": _create_table,
    "UpdateTable": _update_table,
    "BatchCreatePartition": _partitions("PartitionInputList", lambda item: item),
    "BatchUpdatePartition": _update_entries,
    "CreatePartitionIndex": lambda params: index_problems([params.get("PartitionIndex") or {}], None),
}
