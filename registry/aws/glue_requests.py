"""Requests to Glue: tables in its words, and what it would refuse."""

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
    UnsayableTerms,
    fold_location,
    folded,
    is_text,
    kind_of,
    reader_terms,
    text_format_of,
)

# TABLE: types of columns as Glue writes them, against Spark's DDL, which our specifications hold.
#
# Source: AWS, "Data types in Amazon Athena" and "AWS Glue data types"; Hive's DDL.

# Spark's type -> what Hive and Athena read in its place. The column's own parameters keep the exact one.
_READ_AS = {"timestamp_ntz": "timestamp"}
# No engine on this catalog has anything for these.
_UNKNOWN = frozenset({"variant", "interval"})
_LONGEST = {"char": 255, "varchar": 65535}
NESTED = frozenset({"array", "map", "struct", "uniontype", "binary"})
"""What no partition key can be."""

EXACT_TYPE = "dq.type"
"""The parameter of a column that keeps the type of the contract, where Glue's is another."""

SPELLING = "dq.spelling"
"""The parameter of a column that keeps its name and type as the keys of JSON are written."""


def glue_type(text: str) -> str:
    """The type as Glue and Athena read it. Raises NotAType, with the reason, for one that they have not."""
    return str(_translated(parse(text)))


def _translated(kind: DataType) -> DataType:
    if kind.name in _UNKNOWN:
        raise NotAType(f"neither Glue nor Athena knows {kind.name}")
    longest = _LONGEST.get(kind.name)
    if longest is not None and kind.numbers and kind.numbers[0] > longest:
        raise NotAType(f"{kind} is longer than the {longest} characters of Hive")
    if longest is not None and not kind.numbers:
        raise NotAType(f"{kind.name} needs a length, such as {kind.name}(20)")
    name = _READ_AS.get(kind.name, kind.name)
    return replace(kind, name=name, parts=tuple(_translated(part) for part in kind.parts))


def spark_type(text: str, exact: str | None = None) -> str:
    """The type as our specifications write it: `exact`, if that is what Glue's stands for.

    A type that nobody knows stays as it is written, in lower case.
    """
    try:
        if exact is not None and glue_type(exact) == text:
            return exact.lower()
        return str(parse(text)).lower()
    except NotAType:
        return text.lower()


def fault_of(text: str) -> str | None:
    """Why Athena would not read a column of this type; None when it would. Hive's spellings only."""
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


# How Athena's SerDes and Spark's readers are told of CSV and JSON, and what a table of Glue tells them.
#
# Athena reads by the SerDe. Spark on Glue skips no header and has no SerDe for JSON at hand, but follows
# the properties that its own tables have. Sources: AWS, "Choose a SerDe for your data", "Lazy Simple
# SerDe", "Open CSV SerDe", "OpenX JSON SerDe" (Athena); Spark's HiveExternalCatalog; SPARK-11374 for
# headers.

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


# TABLE: what makes a table of Glue one of a format: input, output, SerDe.
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
    # How these are told to read is in `text_serdes`.
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
"""The parameter without which Athena does not ask a table's partition indexes."""


def own_parameters(name: str) -> dict[str, str]:
    """The parameters of a table that belong to its format, and not to its contract."""
    return {"EXTERNAL": "TRUE", "classification": name} if name in FORMATS else {}


def format_of(table: Mapping[str, Any]) -> str:
    """The format of a table as Glue answers it; "" for a link, and for what nobody knows."""
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


# Between our specification of a table and Glue's: both ways, and without loss of what belongs to others.

Raw = Mapping[str, Any]

# What UpdateTable takes of what GetTable gives; the rest is Glue's own.
_INPUT = (
    "Name", "Description", "Owner", "LastAccessTime", "LastAnalyzedTime", "Retention", "StorageDescriptor",
    "PartitionKeys", "ViewOriginalText", "ViewExpandedText", "TableType", "Parameters", "TargetTable",
)  # fmt: skip


def live_table(raw: Raw) -> LiveTable:
    """A table as Glue answers it, folded. What only says its format is not among the parameters."""
    storage = raw.get("StorageDescriptor") or {}
    kind = format_of(raw)
    parameters = raw.get("Parameters") or {}
    own = own_parameters(kind) | (FILTERING if PARTITION_INDEXES in parameters else {})
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
            if not (own.get(key) == text or (kind in TEXTS and is_own(key)))
        ),
        raw.get("Description") or "",
    )
    spec = folded(spec)
    spec = folded(replace(spec, reader=terms_of(raw, spec)))
    return LiveTable(spec, str(raw.get("VersionId", "")), raw.get("UpdateTime"))


def _column(raw: Raw) -> TableColumn:
    told = raw.get("Parameters") or {}
    kind = spark_type(raw.get("Type") or "", told.get(EXACT_TYPE))
    return TableColumn(raw["Name"], kind, raw.get("Comment") or "", told.get(SPELLING, ""))


def new_table(spec: TableSpec) -> dict[str, Any]:
    """The TableInput of a table that is not there yet. Raises NotAType for a type that Glue has not."""
    made = {
        "Name": spec.name,
        "TableType": "EXTERNAL_TABLE",
        "StorageDescriptor": {
            "Columns": [_input(column) for column in spec.columns],
            "Location": _folder(spec.location),
            "NumberOfBuckets": -1,
            "StoredAsSubDirectories": False,
            **_classes(spec, {}),
        },
        # Athena wants the member even where there are none.
        "PartitionKeys": [_input(column) for column in spec.partitions],
        "Parameters": _own(spec) | dict(spec.parameters),
    }
    return made | ({"Description": spec.description} if spec.description else {})


def changed_table(raw: Raw, after: TableSpec) -> dict[str, Any]:
    """The TableInput that turns the live table into `after`, with all that nobody speaks of as it was.

    Of Iceberg, Delta and Hudi tables only parameters and description change.
    """
    before = live_table(raw).spec
    made = {key: raw[key] for key in _INPUT if key in raw}
    parameters = dict(raw.get("Parameters") or {})
    for key in {key for key, _ in before.parameters} - {key for key, _ in after.parameters}:
        del parameters[key]
    parameters |= {key: text for key, text in after.parameters if before.parameter(key) != text}
    if after.description != before.description:
        made["Description"] = after.description
    # How others made a table of texts be read stays, where nothing but its description is ours to change.
    described = before == replace(after, parameters=before.parameters, description=before.description)
    if after.format not in OPEN_FORMATS and not (described and after.format in TEXTS):
        if after.format != before.format:
            for key in own_parameters(before.format):
                parameters.pop(key, None)
        if not TEXTS.isdisjoint({before.format, after.format}):
            parameters = {key: text for key, text in parameters.items() if not is_own(key)}
        parameters |= _own(after)
        made["StorageDescriptor"] = _changed_storage(raw.get("StorageDescriptor") or {}, before, after)
    if after.format not in OPEN_FORMATS and made.get("StorageDescriptor"):
        made["StorageDescriptor"] = at_s3(made["StorageDescriptor"])
    return made | {"Parameters": parameters}


def at_s3(storage: Raw) -> dict[str, Any]:
    """The storage with an address of Hadoop's (`s3a://`, `s3n://`) as AWS writes it: it is the same place."""
    location = storage.get("Location") or ""
    plain = fold_location(location) != location.rstrip("/") and fold_location(location).startswith("s3:")
    return {**storage, "Location": _folder(location)} if plain else dict(storage)


def _changed_storage(raw: Raw, before: TableSpec, after: TableSpec) -> dict[str, Any]:
    made = dict(raw)
    live = {column["Name"].lower(): column for column in raw.get("Columns") or []}
    made["Columns"] = [
        _changed_column(live.get(column.name), before.column(column.name), column) for column in after.columns
    ]
    if after.location != before.location:
        made["Location"] = _folder(after.location)
    if after.format != before.format:
        made |= _classes(after, {})
    elif after.format in TEXTS:
        serde = raw.get("SerdeInfo") or {}
        made["SerdeInfo"] = {**serde, **_classes(after, serde.get("Parameters") or {})["SerdeInfo"]}
    return made


def _changed_column(raw: Raw | None, before: TableColumn | None, after: TableColumn) -> dict[str, Any]:
    if raw is None or before is None:
        return _input(after)
    made = dict(raw)
    if after.comment != before.comment:
        made["Comment"] = after.comment
    if (after.type, after.spelled) != (before.type, before.spelled):
        fresh = _input(after)
        others = {key: text for key, text in (raw.get("Parameters") or {}).items() if key not in _OWN}
        made |= {"Type": fresh["Type"], "Parameters": others | fresh.get("Parameters", {})}
    return made


_OWN = (EXACT_TYPE, SPELLING)


def _input(column: TableColumn) -> dict[str, Any]:
    kind = glue_type(column.type)
    made: dict[str, Any] = {"Name": column.name, "Type": kind}
    if column.comment:
        made["Comment"] = column.comment
    own = {} if kind == column.type else {EXACT_TYPE: column.type}
    own |= {SPELLING: column.spelled} if column.spelled else {}
    return made | ({"Parameters": own} if own else {})


def _own(spec: TableSpec) -> dict[str, str]:
    """The parameters that say the format, how it is read, and how its partitions are found."""
    found = FILTERING if spec.parameter(PARTITION_INDEXES) else {}
    return {
        **own_parameters(spec.format),
        **(text_serde(spec).table if spec.format in TEXTS else {}),
        **found,
    }


def _classes(spec: TableSpec, others: Mapping[str, str]) -> dict[str, Any]:
    """What reads the files; parameters of the SerDe that are others' stay."""
    kind = FORMATS[spec.format]
    name, told = kind.serde, {"serialization.format": "1"}
    if spec.format in TEXTS:
        serde = text_serde(spec)
        name, told = serde.name, dict(serde.parameters)
    return {
        "InputFormat": kind.input,
        "OutputFormat": kind.output,
        "SerdeInfo": {"SerializationLibrary": name, "Parameters": without_own(others) | told},
    }


def _folder(location: str) -> str:
    """With the slash that says "all below", and not "all that begins so"."""
    return f"{fold_location(location)}/" if location else ""


# What the model of AWS says of a request and botocore does not check: sizes, patterns, enumerations.
#
# botocore itself refuses what is missing, unknown, of a wrong type, or too small.

Rule = Callable[[Raw], Iterable[str]]
"""What AWS keeps to itself about a request of one operation."""

_SHOWN_LENGTH = 60
# Java's words in the patterns of the model -> Python's.
_TRANSLATED = (
    (r"\uD800\uDC00-\uDBFF\uDFFF", r"\U00010000-\U0010FFFF"),
    (r"\p{L}\p{N}\p{P}", r"\x21-\x7e\u00a1-\uFFFD"),
    (r"\p{Graph}", r"\x21-\x7e"),
    (r"\p{L}\p{Z}\p{N}", r"\w\x20\xa0\u2000-\u200a\u3000"),
)


def refusals(operation: Any, params: Raw, rules: Mapping[str, Rule]) -> list[str]:
    """All that AWS would refuse of a request, each once: by its model, then by the rule of the operation."""
    shape, own = operation.input_shape, rules.get(operation.name)
    wrong = list(faults(shape, params)) if shape is not None else []
    return list(dict.fromkeys([*wrong, *(own(params) if own is not None else ())]))


def faults(shape: Any, value: Any, path: str = "") -> Iterator[str]:
    """What AWS would refuse in `value` by its shape, each as a text that begins with the place."""
    limits = shape.metadata
    if shape.type_name == "structure" and isinstance(value, dict):
        for name, inner in value.items():
            if name in shape.members:
                yield from faults(shape.members[name], inner, f"{path}.{name}" if path else name)
    elif shape.type_name == "list" and isinstance(value, (list, tuple)):
        yield from _size(path, len(value), limits, "items")
        for index, inner in enumerate(value):
            yield from faults(shape.member, inner, f"{path}[{index}]")
    elif shape.type_name == "map" and isinstance(value, dict):
        yield from _size(path, len(value), limits, "entries")
        for key, inner in value.items():
            yield from faults(shape.key, key, f"{path} key {_shown(key)}")
            yield from faults(shape.value, inner, f"{path}[{_shown(key)}]")
    elif shape.type_name == "string" and isinstance(value, str):
        yield from _text(path, value, limits)
    elif shape.type_name in ("integer", "long") and isinstance(value, int):
        low, high = limits.get("min", value), limits.get("max", value)
        if not low <= value <= high:
            yield f"{path}: {value} is not within {low} and {high}"


def _size(path: str, size: int, limits: Any, what: str) -> Iterator[str]:
    low, high = limits.get("min", 0), limits.get("max", size)
    if not low <= size <= high:
        yield f"{path}: {size} {what}, where AWS takes {low} to {high}"


def _text(path: str, text: str, limits: Any) -> Iterator[str]:
    # Java counts what lies beyond the basic plane as two.
    size = len(text.encode("utf-16-le", "surrogatepass")) // 2
    yield from _size(path, size, limits, "characters")
    choices = limits.get("enum")
    if choices and text not in choices:
        yield f"{path}: {_shown(text)} is none of {', '.join(choices)}"
    pattern = limits.get("pattern")
    if pattern and not compiled(pattern).fullmatch(text):
        yield f"{path}: {_shown(text)} has a character that AWS does not take there, such as a line end"


@lru_cache(256)
def compiled(pattern: str) -> re.Pattern[str]:
    """A pattern of the model for Python. Raises re.error for one that we cannot translate."""
    for java, python in _TRANSLATED:
        pattern = pattern.replace(java, python)
    return re.compile(pattern)


def _shown(text: str) -> str:
    return repr(text if len(text) <= _SHOWN_LENGTH else f"{text[: _SHOWN_LENGTH - 1]}…")


# What a table of Glue must be that no model says: AWS refuses it later, or Athena cannot read it.
#
# Sources: AWS, "Tables, databases, and columns naming requirements" (Athena), "PartitionIndex" and
# "TableInput" (Glue API), "Bucket naming rules" (S3); Iceberg's GlueCatalog for names.

NAME = re.compile(r"[a-z_][a-z0-9_]{0,254}")
DATABASE = re.compile(r"[a-z_][a-z0-9_]{0,251}")
_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_DOTTED_NUMBER = re.compile(r"\d+\.\d+\.\d+\.\d+")
_SIGNS = re.compile(r"[*?\[\]{}\\\x00-\x1f\x7f]")

# Glue keeps a table as one compressed item.
_MOST_BYTES = 1_000_000
# Writers of tables say these of themselves: a table that is born with them is not read as what it is.
_RESERVED = re.compile(
    r"(?i)metadata_location|previous_metadata_location|table_type|spark\.sql\..*|numrows|numfiles|totalsize"
    r"|rawdatasize|transient_lastddltime|last_commit_time_sync|updated_by_crawler|crawlerschema.*|comment"
)
_KINDS = {name: kind for kind in FORMATS.values() for name in (kind.serde, *kind.other_serdes)}
_MOST_INDEXES = 3
_INDEX_TYPES = re.compile(r"(string|tinyint|smallint|int|bigint|date|(var)?char\(\d+\))")
_PROJECTIONS = frozenset({"enum", "integer", "date", "injected"})


def created_table_faults(table: Raw) -> Iterator[str]:
    """What is wrong with a TableInput of CreateTable."""
    name = table.get("Name", "")
    if not NAME.fullmatch(name):
        yield f"TableInput.Name: {name!r} is not of lower case letters, digits and underscores (255 at most)"
    if table.get("TargetTable"):
        return
    if table.get("TableType") != "EXTERNAL_TABLE":
        yield f"TableInput.TableType: {table.get('TableType')!r}, where Athena reads EXTERNAL_TABLE"
    if "PartitionKeys" not in table:
        yield "TableInput.PartitionKeys: missing; Athena cannot read a table without, even if it is empty"
    storage = table.get("StorageDescriptor")
    if not storage:
        yield "TableInput.StorageDescriptor: missing"
        return
    if not storage.get("Location"):
        yield "TableInput.StorageDescriptor.Location: missing; Athena reads from a folder in S3"
    texts = format_of(table) in TEXTS
    for key in table.get("Parameters") or {}:
        if _RESERVED.fullmatch(key) and not (texts and is_own(key)):
            yield f"TableInput.Parameters: {key!r} is reserved for the engines that write tables"
    yield from written_table_faults(table)
    columns = [*(storage.get("Columns") or []), *(table.get("PartitionKeys") or [])]
    for column in columns:
        if not NAME.fullmatch(column.get("Name", "")):
            yield f"column {column.get('Name')!r}: not of lower case letters, digits and underscores"


def written_table_faults(table: Raw) -> Iterator[str]:
    """What is wrong with a TableInput of CreateTable or UpdateTable."""
    if table.get("Name", "") != table.get("Name", "").lower():
        yield f"TableInput.Name: {table['Name']!r} is not in lower case, and Glue would fold it"
    yield from _table_size(table)
    if format_of(table) in OPEN_FORMATS or table.get("TargetTable"):
        # Their own writers answer for the rest.
        return
    storage = table.get("StorageDescriptor") or {}
    yield from _columns(storage.get("Columns") or [], table.get("PartitionKeys") or [])
    yield from storage_faults(storage, "TableInput.StorageDescriptor")
    yield from _parameters(table, storage)


def _table_size(table: Raw) -> Iterator[str]:
    data = json.dumps(table, default=str).encode()
    if len(data) > _MOST_BYTES and len(gzip.compress(data, 6)) > _MOST_BYTES:
        yield "TableInput: more than a megabyte when compressed, which Glue does not keep"


def _columns(columns: Sequence[Raw], keys: Sequence[Raw]) -> Iterator[str]:
    if not columns:
        yield "TableInput.StorageDescriptor.Columns: none; Athena reads no table without a column"
    seen: set[str] = set()
    for column in (*columns, *keys):
        name = column.get("Name", "")
        if name.lower() in seen:
            yield f"column {name!r}: named twice, and Glue does not tell upper from lower case"
        seen.add(name.lower())
        if name != name.lower():
            yield f"column {name!r}: not in lower case, and Glue would fold it"
        if not name.strip():
            yield f"column {name!r}: without a name"
        why = fault_of(column["Type"]) if column.get("Type") else "it has none"
        if why:
            yield f"type of column {name!r}: {column.get('Type', '')[:60]!r}: {why}"
    for key in keys:
        if re.split(r"[(<]", key.get("Type", ""))[0] in NESTED:
            yield f"partition key {key.get('Name')!r}: a {key.get('Type')}, and keys are plain values"


def storage_faults(storage: Raw, path: str) -> Iterator[str]:
    """What is wrong with the StorageDescriptor of a table or partition: place, classes, buckets, order."""
    if storage.get("Location"):
        yield from _place(storage["Location"], f"{path}.Location")
    serde = (storage.get("SerdeInfo") or {}).get("SerializationLibrary")
    classes = {"InputFormat": storage.get("InputFormat"), "OutputFormat": storage.get("OutputFormat")}
    classes["SerdeInfo.SerializationLibrary"] = serde
    missing = [name for name, text in classes.items() if not text]
    if missing:
        yield f"{path}: without {', '.join(missing)} no engine reads the files"
    known = _KINDS.get(serde or "")
    if known is not None and not missing and (known.input, known.output) != (
        classes["InputFormat"], classes["OutputFormat"],
    ):  # fmt: skip
        yield f"{path}: {serde} does not read what {classes['InputFormat']} gives"
    names = {column.get("Name") for column in storage.get("Columns") or []}
    buckets = storage.get("BucketColumns") or []
    if buckets and not storage.get("NumberOfBuckets", 0) > 0:
        yield f"{path}.NumberOfBuckets: not above 0, and there are BucketColumns"
    sorts = storage.get("SortColumns") or []
    for name in (*buckets, *(order.get("Column") for order in sorts)):
        if name not in names:
            yield f"{path}: buckets or sorts by {name!r}, which is no column"
    for order in sorts:
        if order.get("SortOrder") not in (0, 1):
            yield f"{path}.SortColumns: order {order.get('SortOrder')!r} is neither 0 nor 1"


def _place(text: str, path: str) -> Iterator[str]:
    scheme, _, rest = text.partition("://")
    if scheme != "s3":
        yield f"{path}: {text!r} is not in S3; write s3://bucket/prefix/"
        return
    bucket, _, key = rest.partition("/")
    if not _BUCKET.fullmatch(bucket) or ".." in bucket or _DOTTED_NUMBER.fullmatch(bucket):
        yield f"{path}: {bucket!r} is no name of a bucket"
    if _SIGNS.search(key):
        yield f"{path}: {text!r} has signs of a pattern; a table is a folder"
    if "//" in f"/{key}" or any(step in (".", "..") for step in key.split("/")):
        yield f"{path}: {text!r} has an empty step, or one of dots"


def _parameters(table: Raw, storage: Raw) -> Iterator[str]:
    parameters = table.get("Parameters") or {}
    if "EXTERNAL" in parameters and parameters["EXTERNAL"].upper() != "TRUE":
        yield f"TableInput.Parameters: EXTERNAL is {parameters['EXTERNAL']!r}, and the table is external"
    if not parameters.get("skip.header.line.count", "0").isdecimal():
        yield "TableInput.Parameters: skip.header.line.count is no count"
    told, is_ = parameters.get("classification"), format_of({"StorageDescriptor": storage})
    if told in FORMATS and is_ and told != is_:
        yield f"TableInput.Parameters: classification is {told!r}, and the SerDe reads {is_}"
    if parameters.get("projection.enabled", "false").lower() == "true":
        for key in table.get("PartitionKeys") or []:
            kind = parameters.get(f"projection.{key.get('Name')}.type")
            if kind not in _PROJECTIONS:
                yield f"TableInput.Parameters: projection of {key.get('Name')!r} has the type {kind!r}"


def index_faults(wanted: Sequence[Raw], keys: Sequence[Raw] | None) -> Iterator[str]:
    """What is wrong with indexes over these partition keys; None where the keys are not at hand."""
    if len(wanted) > _MOST_INDEXES:
        yield f"PartitionIndexes: {len(wanted)}, where Glue takes {_MOST_INDEXES}"
    for one in wanted:
        name, of = one.get("IndexName", ""), one.get("Keys") or []
        if not NAME.fullmatch(name):
            yield f"index {name!r}: not of lower case letters, digits and underscores"
        if len(set(of)) != len(of):
            yield f"index {name!r}: a key twice"
    for what, values in (
        ("name", [one.get("IndexName") for one in wanted]),
        ("keys", [tuple(one.get("Keys") or []) for one in wanted]),
    ):
        if len(set(values)) != len(values):
            yield f"PartitionIndexes: two with the same {what}"
    if keys is None:
        return
    types = {key["Name"]: key.get("Type", "") for key in keys}
    for one in wanted:
        for key in one.get("Keys") or []:
            if key not in types:
                yield f"index {one.get('IndexName')!r}: {key!r} is no partition key"
            elif not _INDEX_TYPES.fullmatch(types[key]):
                yield f"index {one.get('IndexName')!r}: {key!r} is a {types[key]}, which has no index"


# Looks at every request before it leaves: AWS's model first, then what AWS keeps to itself.
#
# Hooked on the session, so that no client of it can skip it.

_ACCOUNT = re.compile(r"\d{12}(:.+)?")
_MOST = 10


def refuse(operation: Any, params: Raw) -> None:
    """Raises UsageError, with all that is wrong, for a request that AWS would refuse or misunderstand.

    `operation` is botocore's model of the operation.
    """
    wrong = [*_account(params), *refusals(operation, params, RULES)]
    if not wrong:
        return
    more = [f"and {len(wrong) - _MOST} more"] if len(wrong) > _MOST else []
    raise UsageError(
        f"{_subject(params)}: Glue would not take this {operation.name}: {'; '.join(wrong[:_MOST] + more)}.",
        "Nothing was sent; mend the contract.",
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
        yield f"CatalogId: {catalog!r} is no account of 12 digits"


def _create_database(params: Raw) -> Iterator[str]:
    made = params.get("DatabaseInput") or {}
    name = made.get("Name", "")
    if not DATABASE.fullmatch(name):
        yield f"DatabaseInput.Name: {name!r} is not of lower case letters, digits and underscores"
    place = made.get("LocationUri")
    if place and not place.startswith("s3://"):
        yield f"DatabaseInput.LocationUri: {place!r} is not in S3"


def _create_table(params: Raw) -> Iterator[str]:
    made = params.get("TableInput") or {}
    yield from created_table_faults(made)
    yield from index_faults(params.get("PartitionIndexes") or [], made.get("PartitionKeys") or [])


def _update_table(params: Raw) -> Iterator[str]:
    if not params.get("VersionId"):
        yield "VersionId: missing; without it the change of another is lost"
    if "SkipArchive" not in params:
        yield "SkipArchive: missing; every write would keep an old version"
    yield from written_table_faults(params.get("TableInput") or {})


def _partitions(items: str, of: Callable[[Raw], Raw]) -> Callable[[Raw], Iterator[str]]:
    def check(params: Raw) -> Iterator[str]:
        partitions = [of(one) for one in params.get(items) or []]
        values = [tuple(one.get("Values") or ()) for one in partitions]
        if not partitions:
            yield f"{items}: empty"
        if len({len(one) for one in values}) > 1:
            yield f"{items}: some have more values than others"
        if len(set(values)) != len(values):
            yield f"{items}: a partition twice"
        if any(not one or not all(one) for one in values):
            yield f"{items}: a partition without a value"
        for number, one in enumerate(partitions):
            if one.get("StorageDescriptor"):
                path = f"{items}[{number}].StorageDescriptor"
                if not one["StorageDescriptor"].get("Location"):
                    yield f"{path}.Location: missing"
                yield from storage_faults(one["StorageDescriptor"], path)
            else:
                yield f"{items}[{number}]: no StorageDescriptor, and Glue does not take the table's"

    return check


def _update_entries(params: Raw) -> Iterator[str]:
    for number, entry in enumerate(params.get("Entries") or []):
        if list(entry.get("PartitionValueList") or []) != list(
            (entry.get("PartitionInput") or {}).get("Values") or []
        ):
            yield f"Entries[{number}]: renames a partition"
    yield from _UPDATE(params)


_UPDATE = _partitions("Entries", lambda one: one.get("PartitionInput") or {})

# Operation -> what AWS keeps to itself about its request.
RULES: dict[str, Rule] = {
    "CreateDatabase": _create_database,
    "CreateTable": _create_table,
    "UpdateTable": _update_table,
    "BatchCreatePartition": _partitions("PartitionInputList", lambda one: one),
    "BatchUpdatePartition": _update_entries,
    "CreatePartitionIndex": lambda params: index_faults([params.get("PartitionIndex") or {}], None),
}
