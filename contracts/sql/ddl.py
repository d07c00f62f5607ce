"""What `CREATE TABLE` statements declare, in any dialect that sqlglot reads, as types of Spark."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from dq.contracts.types import MAX_PRECISION, DataType, NotAType, parse

# TABLE: column types of SQL dialects, as types of Spark that hold every value, with a note at each doubt.
#
# Types are named as sqlglot's parser names them; numbers are what stands in parentheses. A row of a dialect
# comes before the one of all dialects. Sources:
#
# - PostgreSQL, 8.1 Numeric Types (NUMERIC without precision has any scale), 8.2 Monetary, 8.5 Date/Time
# Types
# - BigQuery, GoogleSQL data types (NUMERIC is 38 digits, 9 of them after the point; DATETIME has no zone)
# - Oracle, SQL Language Reference, Data Types (NUMBER floats; DATE has a time; INTEGER is NUMBER(38))
# - Snowflake, Numeric data types (INT and the like are NUMBER(38,0); FLOAT is 64 bits), Date and time types
#   (TIMESTAMP is TIMESTAMP_NTZ unless TIMESTAMP_TYPE_MAPPING differs)
# - MySQL, 13.1 Numeric (DECIMAL is (10,0); display widths), 13.2 Date and Time Data Types (TIMESTAMP is an
#   instant, DATETIME is not)
# - SQL Server, Data types (decimal is (18,0); float is float(53); money is (19,4), smallmoney (10,4))
# - Redshift, Data types (DECIMAL is (18,0); FLOAT is 64 bits) · DuckDB, Data types · SQLite, Datatypes
# - Trino, Data types (DECIMAL is (38,0)) · Athena, Hive and Spark, Data types (DECIMAL is (10,0))
# - ClickHouse, Data types (DateTime is an instant) · Teradata, Data Types (DECIMAL is (5,0)) · Exasol
# - Spark, PostgresDialect and OracleDialect, for numerics without a fixed scale: (38,18) and (38,10)


@dataclass(frozen=True, slots=True)
class ColumnType:
    """A type of Spark as text, None where Spark has none; `note` says what is in doubt, "" for nothing.

    `logical` is the logical type of ODCS where it is not the usual one of the physical type.
    """

    spark: str | None
    note: str = ""
    logical: str = ""


_TIME = ColumnType("string", "a time of day, which Spark holds as text", "time")
_OFFSET = ColumnType("timestamp", "an instant; the offset that each value was written with is not kept")
_FLOATING = "numbers of any scale; write the precision and scale that its values have"
_ANY_38_18 = ColumnType("decimal(38,18)", _FLOATING)
_ANY_38_10 = ColumnType("decimal(38,10)", _FLOATING)
_NO_ZONE = ColumnType("timestamp_ntz")
_INSTANT = ColumnType("timestamp")
_DOUBLE = ColumnType("double")
_TEXT = ColumnType(None)
_INTEGER_38 = ColumnType("decimal(38,0)", "up to 38 digits; write bigint where its values have 18 at most")
_INTEGER_128 = ColumnType("decimal(38,0)", "up to 39 digits, of which Spark holds 38")
_HIVE_TIMESTAMP = ColumnType("timestamp", "a time without a zone in Hive and Athena, an instant in Spark")
_NANOSECONDS = "a time to the nanosecond, of which Spark holds microseconds"
_POSTGRES_MONEY = ColumnType("decimal(19,2)", "lc_monetary decides how many digits follow the point")
_AFFINITY = "SQLite does not enforce the type"

_ANY: Mapping[str, ColumnType] = {
    "TIME": _TIME,
    **dict.fromkeys(("TIMESTAMP", "TIMESTAMPNTZ", "TIMESTAMP_S", "TIMESTAMP_MS"), _NO_ZONE),
    **dict.fromkeys(("DATETIME", "DATETIME2", "SMALLDATETIME"), _NO_ZONE),
    "TIMESTAMP_NS": ColumnType("timestamp_ntz", _NANOSECONDS),
    **dict.fromkeys(("TIMESTAMPTZ", "TIMESTAMPLTZ"), _INSTANT),
    "DECIMAL": _ANY_38_18,
    "MONEY": ColumnType("decimal(19,4)"),
    "SMALLMONEY": ColumnType("decimal(10,4)"),
    **dict.fromkeys(("UTINYINT", "SMALLSERIAL"), ColumnType("smallint")),
    **dict.fromkeys(("USMALLINT", "MEDIUMINT", "UMEDIUMINT", "SERIAL", "YEAR"), ColumnType("int")),
    **dict.fromkeys(("UINT", "BIGSERIAL"), ColumnType("bigint")),
    "UBIGINT": ColumnType("decimal(20,0)"),
    **dict.fromkeys(("INT128", "UINT128"), _INTEGER_128),
    "DATE32": ColumnType("date"),
    **dict.fromkeys(("INTERVAL", "BIT"), _TEXT),
    **dict.fromkeys(("IMAGE", "ROWVERSION"), ColumnType("binary")),
}
_SPARK = {
    "TIMESTAMP": _INSTANT,
    "DECIMAL": ColumnType("decimal(10,0)"),
    "INTERVAL": ColumnType("interval"),
}
_HIVE = {"TIMESTAMP": _HIVE_TIMESTAMP, "DECIMAL": ColumnType("decimal(10,0)")}
_WITH_OFFSET = {"TIMESTAMPTZ": _OFFSET}
_TRINO = {**_WITH_OFFSET, "DECIMAL": ColumnType("decimal(38,0)")}
_TSQL = {
    **_WITH_OFFSET,
    "DECIMAL": ColumnType("decimal(18,0)"),
    "BIT": ColumnType("boolean"),
    "VARIANT": _TEXT,
    "FLOAT": ColumnType("double", "FLOAT and REAL are told apart by no parser; write float for REAL"),
}
_MYSQL = {
    "DECIMAL": ColumnType("decimal(10,0)"),
    "SERIAL": ColumnType("decimal(20,0)"),
    "BIT": ColumnType("boolean"),
    "FLOAT": ColumnType("float", "32 bits as FLOAT; write double for REAL"),
}
_BIGINTS = dict.fromkeys(("TINYINT", "SMALLINT", "INT", "BIGINT"), ColumnType("bigint"))
_INTEGERS_38 = dict.fromkeys(("TINYINT", "SMALLINT", "INT", "BIGINT"), _INTEGER_38)

_DIALECTS: Mapping[str, Mapping[str, ColumnType]] = {
    "spark": _SPARK,
    "spark2": _SPARK,
    "databricks": _SPARK,
    "hive": _HIVE,
    "athena": {**_WITH_OFFSET, **_HIVE},
    "postgres": {"MONEY": _POSTGRES_MONEY},
    "redshift": {"DECIMAL": ColumnType("decimal(18,0)")},
    "bigquery": {**_BIGINTS, "DECIMAL": ColumnType("decimal(38,9)")},
    "oracle": {
        **_WITH_OFFSET,
        **_INTEGERS_38,
        "DECIMAL": _ANY_38_10,
        "DATE": ColumnType("timestamp_ntz", "a date with a time; write date where that is always midnight"),
        "FLOAT": _DOUBLE,
        # The parser reads LONG, which is text, as Spark does; Oracle has no BIGINT.
        "BIGINT": ColumnType("string", "LONG, which is text"),
    },
    "snowflake": {
        **_WITH_OFFSET,
        **_INTEGERS_38,
        "TIMESTAMP": ColumnType("timestamp_ntz", "without a zone unless TIMESTAMP_TYPE_MAPPING differs"),
        "FLOAT": _DOUBLE,
    },
    "mysql": _MYSQL,
    "tsql": _TSQL,
    "fabric": _TSQL,
    "duckdb": {"DECIMAL": ColumnType("decimal(18,3)")},
    "trino": _TRINO,
    "presto": _TRINO,
    "clickhouse": {
        "DECIMAL": ColumnType("decimal(10,0)"),
        "DATETIME": _INSTANT,
        "DATETIME64": _INSTANT,
    },
    "teradata": {
        **_WITH_OFFSET,
        "DECIMAL": ColumnType("decimal(38,10)", "DECIMAL is (5,0), NUMBER has any scale; write which it is"),
        "FLOAT": _DOUBLE,
    },
    "exasol": {"DECIMAL": ColumnType("decimal(18,0)")},
    "sqlite": {
        **{name: ColumnType("bigint", _AFFINITY) for name in _BIGINTS},
        "DECIMAL": ColumnType("double", _AFFINITY),
        "DATETIME": ColumnType("timestamp_ntz", _AFFINITY),
        "TIMESTAMP": ColumnType("timestamp_ntz", _AFFINITY),
    },
}  # fmt: skip

_CLICKHOUSE_DIGITS = {"DECIMAL32": 9, "DECIMAL64": 18, "DECIMAL128": 38}
_SINGLE_BITS = 24
_MICROSECONDS = 6
_TIMESTAMPS = frozenset(
    {"TIMESTAMP", "TIMESTAMPNTZ", "TIMESTAMPTZ", "TIMESTAMPLTZ", "DATETIME", "DATETIME2", "DATETIME64"}
)
_INTEGERS = {"TINYINT": "tinyint", "SMALLINT": "smallint", "INT": "int", "BIGINT": "bigint"}
_UNSIGNED = ("UTINYINT", "USMALLINT", "UMEDIUMINT", "UINT", "UBIGINT")
_TYPES_WITHOUT_NUMBERS = frozenset({*_TIMESTAMPS, "TIME", "YEAR", *_UNSIGNED, "MEDIUMINT"})


def column_type(dialect: str, name: str, numbers: Sequence[str]) -> ColumnType | None:
    """The type of Spark for a plain type of a dialect; None where Spark reads it as it is written."""
    row = _DIALECTS.get(dialect, {}).get(name) or _ANY.get(name)
    if not numbers:
        return row
    if name in _CLICKHOUSE_DIGITS:
        return ColumnType(f"decimal({_CLICKHOUSE_DIGITS[name]},{numbers[0]})")
    if name in ("DECIMAL", "UDECIMAL", "BIGDECIMAL"):
        return _decimal(numbers)
    if name in ("FLOAT", "DOUBLE"):
        return _floating(dialect, name, numbers)
    if name in ("BINARY", "VARBINARY"):
        return ColumnType("binary")
    if name == "BIT":
        return row if numbers[0] == "1" else _TEXT
    if name in _INTEGERS and dialect in ("mysql", "doris", "starrocks"):
        if name == "TINYINT" and numbers[0] == "1":
            return ColumnType("tinyint", "MySQL's BOOLEAN; write boolean where it holds 0 and 1 alone")
        return ColumnType(_INTEGERS[name])
    if row is not None and name in _TIMESTAMPS and _digits(numbers[0]) > _MICROSECONDS:
        return ColumnType(row.spark, row.note or _NANOSECONDS)
    return row if name in _TYPES_WITHOUT_NUMBERS else None


def _decimal(numbers: Sequence[str]) -> ColumnType | None:
    precision = MAX_PRECISION if numbers[0] == "*" else _digits(numbers[0])
    scale = _digits(numbers[1]) if len(numbers) > 1 else 0
    fits = 0 < precision <= MAX_PRECISION and scale <= precision
    return ColumnType(f"decimal({precision},{scale})") if fits else _TEXT


def _floating(dialect: str, name: str, numbers: Sequence[str]) -> ColumnType:
    digits = len(numbers) > 1
    if dialect in ("oracle", "snowflake", "teradata") or (name == "DOUBLE" and digits):
        return _DOUBLE
    # FLOAT(7,4) of MySQL has digits, FLOAT(53) has bits.
    single = digits or _digits(numbers[0]) <= _SINGLE_BITS
    return ColumnType("float" if single else "double")


def _digits(text: str) -> int:
    return int(text) if text.isdecimal() and len(text) < MAX_PRECISION else 0


# What `CREATE TABLE` statements declare, in any dialect that sqlglot reads.


class NotDdl(ValueError):
    """The text is no SQL, or none of this dialect; the message says where."""


@dataclass(frozen=True, slots=True)
class DdlPart:
    """What is said of a field of a struct."""

    comment: str
    required: bool


@dataclass(frozen=True, slots=True)
class DdlColumn:
    """A column. `type` is None where Spark has no such type; `written` is the type as it stands there.

    `notes` say what is in doubt of the type, `logical` is its logical type where that is not the usual one.
    `inside` is what is said of the parts of a nested type, by their path in the column, such as `city` or
    `lines[].sku`.
    """

    name: str
    type: DataType | None
    written: str
    comment: str
    required: bool
    inside: Mapping[str, DdlPart] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    logical: str = ""


@dataclass(slots=True)
class DialectTypes:
    """Reads types of one dialect; gathers what is in doubt, and what is said of the parts of nested ones."""

    dialect: str
    notes: list[str] = field(default_factory=list)
    inside: dict[str, DdlPart] = field(default_factory=dict)
    logical: str = ""

    def read(self, kind: exp.DataType, path: str = "") -> DataType | None:
        """The type of Spark, None where Spark has none. `path` is where it stands in its column."""
        parts = kind.expressions
        name = kind.this.name if isinstance(kind.this, exp.DataType.Type) else ""
        if name == "STRUCT" and parts and all(isinstance(part, exp.ColumnDef) for part in parts):
            return self._struct(parts, path)
        places = {"ARRAY": ("[]",), "MAP": (".^", ".*"), "LOWCARDINALITY": ("",)}.get(name, ())
        if places and len(places) == len(parts) and all(isinstance(part, exp.DataType) for part in parts):
            inner = [self.read(part, f"{path}{sign}") for part, sign in zip(parts, places, strict=True)]
            known = tuple(part for part in inner if part is not None)
            if len(known) < len(inner):
                return None
            return known[0] if name == "LOWCARDINALITY" else DataType(name.lower(), (), known)
        row = column_type(self.dialect, name, [part.name for part in parts])
        if row is None:
            return _parsed(kind.sql(dialect="spark"))
        if row.note:
            self.notes.append(f"{path.lstrip('.')}: {row.note}" if path else row.note)
        if not path:
            self.logical = row.logical
        return None if row.spark is None else _parsed(row.spark)

    def _struct(self, fields: list[exp.ColumnDef], path: str) -> DataType | None:
        names, parts = [field.name for field in fields], []
        for each in fields:
            below = f"{path}.{each.name}"
            part = self.read(each.args["kind"], below) if each.args.get("kind") is not None else None
            if part is None:
                return None
            parts.append(part)
            described, _, _ = _constraints(each, "spark")
            if described.comment or described.required:
                self.inside[below.lstrip(".")] = described
        if len({name.lower() for name in names}) < len(names):
            return None
        return DataType("struct", (), tuple(parts), tuple(names))


def _parsed(text: str) -> DataType | None:
    try:
        return parse(text)
    except NotAType:
        return None


@dataclass(frozen=True, slots=True)
class DdlTable:
    """A table. `keys` are the primary key's columns, `partitions` the names of the partition keys."""

    database: str
    name: str
    columns: tuple[DdlColumn, ...]
    keys: tuple[str, ...]
    partitions: tuple[str, ...]
    comment: str
    location: str
    format: str
    unsaid: tuple[str, ...]


def dialects() -> list[str]:
    """The dialects that can be named."""
    return sorted(name for name in sqlglot.Dialects.__members__.values() if name)


def data_type(text: str, dialect: str) -> tuple[DataType | None, DialectTypes]:
    """The type of Spark that a type of this dialect is, None where Spark has none or it is no type; and
    what is in doubt of it."""
    types = DialectTypes(dialect)
    try:
        with _quiet():
            return types.read(exp.DataType.build(text, dialect=dialect or None, udt=True)), types
    except (SqlglotError, RecursionError):
        return None, types


def tables(text: str, dialect: str) -> tuple[list[DdlTable], list[str]]:
    """Every table that the text creates with its columns, and the beginnings of the statements that create
    one and do not say its columns, or in words that are not understood. Raises NotDdl.
    """
    try:
        with _quiet():
            statements = sqlglot.parse(text, dialect=dialect)
    except (SqlglotError, RecursionError) as error:
        raise NotDdl(str(error).splitlines()[0][:200] if str(error) else "it is nested too deep") from error
    found: list[DdlTable] = []
    unread: list[str] = []
    for one in statements:
        if isinstance(one, exp.Create) and one.kind == "TABLE" and isinstance(one.this, exp.Schema):
            found.append(_table(one, dialect))
        elif isinstance(one, exp.Create | exp.Command):
            with _quiet():
                written = one.sql(dialect=dialect)
            if _CREATES.match(written):
                unread.append(" ".join(written.split())[:80])
    return found, unread


_CREATES = re.compile(
    r"\s*CREATE\s+(OR\s+REPLACE\s+)?((EXTERNAL|FOREIGN|TEMP|TEMPORARY|TRANSIENT|UNLOGGED)\s+)*TABLE\b",
    re.IGNORECASE,
)


@contextmanager
def _quiet() -> Iterator[None]:
    """Without what sqlglot writes to the terminal of statements that it does not know: it quotes them."""
    logger = logging.getLogger("sqlglot")
    before, logger.disabled = logger.disabled, True
    try:
        yield
    finally:
        logger.disabled = before


def _table(one: exp.Create, dialect: str) -> DdlTable:
    schema: exp.Schema = one.this
    table = schema.this
    columns, keys, partitions, unsaid = [], [], [], []
    for part in schema.expressions:
        if isinstance(part, exp.ColumnDef):
            column, is_key, extra = _column(part, dialect)
            columns.append(column)
            keys += [column.name] if is_key else []
            unsaid += extra
        else:
            found = part.find(exp.PrimaryKey)
            if found is not None:
                keys += [each.name for each in found.expressions]
            else:
                unsaid.append(part.sql(dialect=dialect))
    said = {"comment": "", "location": "", "format": ""}
    for each in one.args["properties"].expressions if one.args.get("properties") else ():
        if isinstance(each, exp.SchemaCommentProperty):
            said["comment"] = each.this.name
        elif isinstance(each, exp.LocationProperty):
            said["location"] = each.this.name
        elif isinstance(each, exp.FileFormatProperty):
            said["format"] = each.this.name.lower() if each.this else ""
        elif isinstance(each, exp.PartitionedByProperty):
            inner = each.this.expressions if isinstance(each.this, exp.Schema | exp.Tuple) else [each.this]
            for key in inner:
                if isinstance(key, exp.ColumnDef):
                    column, _, extra = _column(key, dialect)
                    columns.append(column)
                    unsaid += extra
                elif not isinstance(key, exp.Column | exp.Identifier):
                    unsaid.append(f"PARTITIONED BY {key.sql(dialect=dialect)}")
                    continue
                partitions.append(key.name)
        else:
            unsaid.append(each.sql(dialect=dialect))
    return DdlTable(table.db, table.name, tuple(columns), tuple(keys), tuple(partitions), **said,
                    unsaid=tuple(unsaid))  # fmt: skip


def _column(part: exp.ColumnDef, dialect: str) -> tuple[DdlColumn, bool, list[str]]:
    kind: exp.DataType | None = part.args.get("kind")
    written = kind.sql(dialect=dialect) if kind is not None else ""
    types = DialectTypes(dialect)
    made = types.read(kind) if isinstance(kind, exp.DataType) else None
    said, is_key, unsaid = _constraints(part, dialect)
    column = DdlColumn(
        part.name,
        made,
        written,
        said.comment,
        said.required,
        types.inside,
        tuple(types.notes),
        types.logical,
    )
    return column, is_key, unsaid


def _constraints(part: exp.ColumnDef, dialect: str) -> tuple[DdlPart, bool, list[str]]:
    """What is said of a column or field, whether it is the primary key, and what has no word here."""
    comment, required, is_key, unsaid = "", False, False, []
    for constraint in part.args.get("constraints") or ():
        what = constraint.args.get("kind")
        if isinstance(what, exp.NotNullColumnConstraint):
            required = not what.args.get("allow_null")
        elif isinstance(what, exp.PrimaryKeyColumnConstraint):
            is_key = required = True
        elif isinstance(what, exp.CommentColumnConstraint):
            comment = what.this.name
        else:
            unsaid.append(f"{part.name}: {constraint.sql(dialect=dialect)}")
    return DdlPart(comment, required), is_key, unsaid
