"""Between our specification of a table and Glue's, both ways: types, formats, SerDes of texts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from dq.contracts.access.data_location import RFC_4180, TextFormat
from dq.contracts.types import DataType, NotAType, parse
from dq.registry.diff import LiveTable
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
