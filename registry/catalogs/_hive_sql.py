"""The statements that make a Hive table what it should be, and how one of CSV or JSON is read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from dq.contracts.access.data_location import CHARSETS, RFC_4180, TextFormat
from dq.contracts.escaping import spark_literal
from dq.contracts.shared.outcome import UsageError
from dq.contracts.sql.text import name as quoted
from dq.contracts.types import DataType
from dq.registry.catalog import Values
from dq.registry.diff import Action, ChangedField
from dq.registry.table import (
    VIEW,
    ReaderTerms,
    TableColumn,
    TableSpec,
    UnsayableTerms,
    encoding_name,
    kind_of,
    reader_terms,
    text_format_of,
)

# How Spark's table of CSV or JSON is told to read its files, and what one was told.
#
# Source: Spark SQL, "CSV Files" and "JSON Files", data source options.

# Spark takes the empty text for NULL too, unless some other text is NULL: no file holds this one.
_NO_TEXT = "\x01"


def text_options(spec: TableSpec) -> dict[str, str]:
    """The options of a table of texts; none for other formats."""
    form = text_format_of(spec)
    if spec.format == "json":
        # Of other encodings Spark asks how lines end.
        return {} if form.encoding == RFC_4180.encoding else {"encoding": form.charset, "lineSep": "\n"}
    if spec.format != "csv":
        return {}
    return {
        "sep": form.delimiter,
        "quote": form.quote,
        "escape": form.escape,
        "header": str(form.header).lower(),
        "encoding": form.charset,
        "nullValue": form.null_text or _NO_TEXT,
        "multiLine": "true",
        # A file whose header names other columns is an error, and not read by position.
        "enforceSchema": "false",
    }


def refuse_encoding(spec: TableSpec) -> None:
    """Raises UnsayableTerms for an encoding that Spark does not read."""
    form = text_format_of(spec)
    if form.charset not in CHARSETS:
        raise UnsayableTerms(
            f"{spec.database}.{spec.name}: Spark does not read texts in {form.encoding}.",
            f"Deliver them in one of {', '.join(sorted(CHARSETS))}.",
        )


def text_terms(format: str, told: Mapping[str, str]) -> ReaderTerms:
    """The terms that the options of a table stand for, and each option that does not follow from them."""
    given = {name.lower(): text for name, text in told.items()}

    def option(name: str, other: str, usual: str) -> str:
        return given.get(name, given.get(other, usual))

    null = option("nullvalue", "nullvalue", "")
    encoding = encoding_name(option("encoding", "charset", RFC_4180.encoding))
    form = TextFormat(
        option("sep", "delimiter", ","),
        option("quote", "quote", '"'),
        option("escape", "escape", "\\"),
        option("header", "header", "false").lower() == "true",
        encoding,
        "" if null == _NO_TEXT else null,
    )
    found = reader_terms(format, form)
    expected = text_options(TableSpec("", "", "", format, (), reader=found))
    strange = {
        f"option {name}": given.get(name.lower(), "not set")
        for name, text in expected.items()
        if name not in ("sep", "encoding") and given.get(name.lower()) != text
    }
    return tuple(sorted({**dict(found), **strange}.items()))


# The statements that make a Hive table what it should be, as text for Spark SQL.

# Spark's data source tables keep the exact Spark types; avro needs a module there that Hive's own does not.
CREATES = {"parquet": "USING parquet", "orc": "USING orc", "json": "USING json", "csv": "USING csv"}
HIVE_SERDES = {"avro": "STORED AS AVRO"}

# Spark refuses these, or changes something else, or cannot read the table ever after (numRows).
_RESERVED = frozenset((
    "collation", "comment", "external", "is_managed_location", "location", "numfiles", "numrows", "owner",
    "provider", "rawdatasize", "table_type", "totalsize", "transient_lastddltime",
))  # fmt: skip
# The metastore's columns are this wide; a longer text fails after twenty seconds of retries.
_KEY_SIZE, _VALUE_SIZE = 255, 4000
_DATABASE_SIZE, _PARTITION_KEY_SIZE = 128, 128
_VARIANTS_SINCE = 4

# These need the whole schema to be written anew.
_REWRITES = (ChangedField.TYPE, ChangedField.ORDER, ChangedField.SPELLING)
_REPLACES = (ChangedField.FORMAT, ChangedField.PARTITIONS)


def refuse_reserved(spec: TableSpec) -> None:
    """Raises UsageError for a property that Spark or the metastore would refuse or misread."""
    for key, value in spec.parameters:
        if key.lower() in _RESERVED or key.lower().startswith("spark.sql."):
            raise UsageError(
                f"{spec.database}.{spec.name}: the property {key!r} is reserved by Spark and Hive.",
                "Give it another name.",
            )
        if len(key) > _KEY_SIZE or len(value) > _VALUE_SIZE:
            raise UsageError(
                f"{spec.database}.{spec.name}: the property {key[:40]!r} is longer than Hive takes.",
                f"Keep names within {_KEY_SIZE} and values within {_VALUE_SIZE} characters.",
            )


def refuse_long(spec: TableSpec) -> None:
    """Raises UsageError for a name that is longer than the metastore keeps."""
    names = [("database", spec.database, _DATABASE_SIZE)]
    names += [("partition key", key.name, _PARTITION_KEY_SIZE) for key in spec.partitions]
    for what, name, most in names:
        if len(name) > most:
            raise UsageError(
                f"{spec.database}.{spec.name}: the {what} {name[:40]!r}… has {len(name)} characters.",
                f"Hive's metastore keeps {most}; give it a shorter name.",
            )


def refuse_variants(spec: TableSpec, spark: str) -> None:
    """Raises UsageError for a type that this version of Spark does not know."""
    found = next((column for column in spec.columns if _holds_variant(kind_of(column.type))), None)
    if found is not None and int(spark.split(".")[0]) < _VARIANTS_SINCE:
        raise UsageError(
            f"{spec.database}.{spec.name}: {found.name} is a {found.type}; Spark {spark} does not know it.",
            f"Register it with Spark {_VARIANTS_SINCE}, or give it another physicalType.",
        )


def _holds_variant(kind: DataType) -> bool:
    return kind.name == "variant" or any(_holds_variant(part) for part in kind.parts)


def create_table(spec: TableSpec) -> str:
    """CREATE TABLE; external where a location is given, so that dropping it never deletes a file."""
    keys = ", ".join(quoted(column.name) for column in spec.partitions)
    if spec.format in HIVE_SERDES:
        head = "CREATE EXTERNAL TABLE" if spec.location else "CREATE TABLE"
        columns, how = spec.columns, HIVE_SERDES[spec.format]
        keys = ", ".join(_column_ddl(column) for column in spec.partitions)
    else:
        head, columns, how = "CREATE TABLE", spec.columns + spec.partitions, CREATES[spec.format]
    parts = [f"{head} {quoted_table(spec)} ({', '.join(_column_ddl(column) for column in columns)})"]
    by = f"PARTITIONED BY ({keys})" if keys else ""
    # The two kinds of tables want these in different order.
    told = text_options(spec)
    how += f" OPTIONS ({_pairs(told)})" if told else ""
    parts += [by, how] if spec.format in HIVE_SERDES else [how, by]
    parts.append(f"LOCATION {spark_literal(spec.location)}" if spec.location else "")
    parts.append(f"COMMENT {spark_literal(spec.description)}" if spec.description else "")
    parts.append(f"TBLPROPERTIES ({_pairs(dict(spec.parameters))})" if spec.parameters else "")
    return " ".join(part for part in parts if part)


def replaces(action: Action) -> bool:
    """Whether the table must be dropped and made anew: nothing else changes its format or keys."""
    return any(change.field in _REPLACES for change in action.changes)


def rewrites(action: Action) -> bool:
    """Whether the columns must be written as a whole: SQL has no words for it on Hive tables."""
    return any(
        change.field in _REWRITES or (change.field is ChangedField.COLUMN and change.after is None)
        for change in action.changes
        if not change.kept
    )


def alter_columns(action: Action, spec: TableSpec) -> Iterator[str]:
    """ALTER TABLE for new columns and changed comments."""
    new = {
        change.name for change in action.changes if change.field is ChangedField.COLUMN and not change.kept
    }
    added = [_column_ddl(column) for column in spec.columns if column.name in new]
    if added:
        yield f"ALTER TABLE {quoted_table(spec)} ADD COLUMNS ({', '.join(added)})"
    for change in action.changes:
        if change.field is ChangedField.COMMENT:
            yield (
                f"ALTER TABLE {quoted_table(spec)} ALTER COLUMN {quoted(change.name)} "
                f"COMMENT {spark_literal(change.after or '')}"
            )


def alter_rest(action: Action, spec: TableSpec) -> Iterator[str]:
    """ALTER TABLE for place, description and properties; the properties last, for they carry the mark."""
    altered = f"ALTER {relation_kind(spec)} {quoted_table(spec)}"
    for change in action.changes:
        if change.field is ChangedField.LOCATION:
            yield f"{altered} SET LOCATION {spark_literal(change.after or '')}"
        if change.field is ChangedField.DESCRIPTION and spec.format == VIEW:
            # COMMENT ON is for tables alone; of a view it is this property.
            yield f"{altered} SET TBLPROPERTIES ('comment' = {spark_literal(change.after or '')})"
        elif change.field is ChangedField.DESCRIPTION:
            yield f"COMMENT ON TABLE {quoted_table(spec)} IS {spark_literal(change.after or '')}"
    if any(change.field is ChangedField.READER for change in action.changes):
        yield f"{altered} SET SERDEPROPERTIES ({_pairs(text_options(spec))})"
    changed = {
        change.name: change.after for change in action.changes if change.field is ChangedField.PARAMETER
    }
    gone = [spark_literal(key) for key, value in changed.items() if value is None]
    if gone:
        yield f"{altered} UNSET TBLPROPERTIES IF EXISTS ({', '.join(gone)})"
    kept = {key: value for key, value in changed.items() if value is not None}
    if kept:
        yield f"{altered} SET TBLPROPERTIES ({_pairs(kept)})"


def columns_ddl(spec: TableSpec) -> str:
    """The data columns as DDL."""
    return ", ".join(_column_ddl(column) for column in spec.columns)


def partition_clause(values: Values) -> str:
    """PARTITION (…); every value as text, which Spark casts to the key's type."""
    return f"PARTITION ({', '.join(f'{quoted(key)} = {spark_literal(value)}' for key, value in values)})"


def relation_kind(spec: TableSpec) -> str:
    """The word for it in ALTER and DROP."""
    return "VIEW" if spec.format == VIEW else "TABLE"


def quoted_table(spec: TableSpec) -> str:
    return f"{quoted(spec.database)}.{quoted(spec.name)}"


def _column_ddl(column: TableColumn) -> str:
    comment = f" COMMENT {spark_literal(column.comment)}" if column.comment else ""
    name, _, kind = column.spelled.partition(" ")
    return f"{quoted(name or column.name)} {kind or column.type}{comment}"


def _pairs(parameters: dict[str, str]) -> str:
    return ", ".join(f"{spark_literal(key)} = {spark_literal(value)}" for key, value in parameters.items())
