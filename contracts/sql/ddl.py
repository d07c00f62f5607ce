"""Parser of `CREATE TABLE` statements in any dialect that sqlglot reads, with types converted to Spark's."""

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

# TABLE: column types of SQL dialects, as Spark types that can hold every value, with a note if in doubt.
#
# Types have the names of sqlglot's parser; numbers are the type's parameters. An entry of a dialect takes
# precedence over the one for all dialects. Sources:
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
    """A Spark type.

    Attributes:
        spark: Spark type as text, or None if Spark has no such type.
        note: Caveat about the conversion, or "".
        logical: Logical type of ODCS if it is not the default of the physical type, or "".
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
_UNSUPPORTED = ColumnType(None)
_INTEGER_38 = ColumnType("decimal(38,0)", "up to 38 digits; write bigint where its values have 18 at most")
_INTEGER_128 = ColumnType("decimal(38,0)", "up to 39 digits; Spark holds 38")
_HIVE_TIMESTAMP = ColumnType("timestamp", "a time without a zone in Hive and Athena, an instant in Spark")
_NANOSECONDS = "a time in nanoseconds; Spark holds microseconds"
_POSTGRES_MONEY = ColumnType("decimal(19,2)", "lc_monetary decides how many digits follow the point")
_AFFINITY = "SQLite does not enforce the type"

_COMMON_TYPES: Mapping[str, ColumnType] = {
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
    **dict.fromkeys(("INTERVAL", "BIT"), _UNSUPPORTED),
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
    "VARIANT": _UNSUPPORTED,
    "FLOAT": ColumnType("double", "the parser does not distinguish FLOAT and REAL; write float for REAL"),
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
    """Return the Spark type for a scalar type of a dialect, or None if Spark reads it as written."""
    row = _DIALECTS.get(dialect, {}).get(name) or _COMMON_TYPES.get(name)
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
        return row if numbers[0] == "1" else _UNSUPPORTED
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
    return ColumnType(f"decimal({precision},{scale})") if fits else _UNSUPPORTED


def _floating(dialect: str, name: str, numbers: Sequence[str]) -> ColumnType:
    digits = len(numbers) > 1
    if dialect in ("oracle", "snowflake", "teradata") or (name == "DOUBLE" and digits):
        return _DOUBLE
    # FLOAT(7,4) of MySQL has digits, FLOAT(53) has bits.
    single = digits or _digits(numbers[0]) <= _SINGLE_BITS
    return ColumnType("float" if single else "double")


def _digits(text: str) -> int:
    return int(text) if text.isdecimal() and len(text) < MAX_PRECISION else 0


# Tables and columns of `CREATE TABLE` statements.


class NotDdl(ValueError):
    """The text is not valid SQL of this dialect; the message says where."""


@dataclass(frozen=True, slots=True)
class DdlPart:
    """Attributes of a nested field."""

    comment: str
    required: bool


@dataclass(frozen=True, slots=True)
class DdlColumn:
    """A column.

    Attributes:
        type: Spark type, or None if Spark has no such type.
        sql_type: Type as written in the statement.
        nested: Attributes of nested fields by their path in the column, e.g. `city` or `lines[].sku`.
        notes: Caveats about the conversion of the type.
        logical: Logical type if it is not the default of the physical type, or "".
    """

    name: str
    type: DataType | None
    sql_type: str
    comment: str
    required: bool
    nested: Mapping[str, DdlPart] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    logical: str = ""


@dataclass(slots=True)
class DialectTypes:
    """Converts types of one dialect; collects caveats and the attributes of nested fields."""

    dialect: str
    notes: list[str] = field(default_factory=list)
    nested: dict[str, DdlPart] = field(default_factory=dict)
    logical: str = ""

    def read(self, kind: exp.DataType, path: str = "") -> DataType | None:
        """Return the Spark type, or None if Spark has none. `path` is the field's path in its column."""
        parts = kind.expressions
        name = kind.this.name if isinstance(kind.this, exp.DataType.Type) else ""
        if name == "STRUCT" and parts and all(isinstance(part, exp.ColumnDef) for part in parts):
            return self._struct(parts, path)
        places = {"ARRAY": ("[]",), "MAP": (".^", ".*"), "LOWCARDINALITY": ("",)}.get(name, ())
        if places and len(places) == len(parts) and all(isinstance(part, exp.DataType) for part in parts):
            inner = [self.read(part, f"{path}{sign}") for part, sign in zip(parts, places, strict=True)]
            types = tuple(part for part in inner if part is not None)
            if len(types) < len(inner):
                return None
            return types[0] if name == "LOWCARDINALITY" else DataType(name.lower(), (), types)
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
        for field_definition in fields:
            below = f"{path}.{field_definition.name}"
            part = (
                self.read(field_definition.args["kind"], below)
                if field_definition.args.get("kind") is not None
                else None
            )
            if part is None:
                return None
            parts.append(part)
            described, _, _ = _constraints(field_definition, "spark")
            if described.comment or described.required:
                self.nested[below.lstrip(".")] = described
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
    """A table. `keys` are the primary key's columns, `partitions` the names of the partition keys.

    `unsupported` are the parts of the statement that are not converted, as SQL.
    """

    database: str
    name: str
    columns: tuple[DdlColumn, ...]
    keys: tuple[str, ...]
    partitions: tuple[str, ...]
    comment: str
    location: str
    format: str
    unsupported: tuple[str, ...]


def dialects() -> list[str]:
    """Return the names of the supported dialects."""
    return sorted(name for name in sqlglot.Dialects.__members__.values() if name)


def data_type(text: str, dialect: str) -> tuple[DataType | None, DialectTypes]:
    """Return the Spark type of a dialect's type, or None if it has none or is invalid, and its caveats."""
    types = DialectTypes(dialect)
    try:
        with _quiet():
            return types.read(exp.DataType.build(text, dialect=dialect or None, udt=True)), types
    except (SqlglotError, RecursionError):
        return None, types


def tables(text: str, dialect: str) -> tuple[list[DdlTable], list[str]]:
    """Return the tables that the text creates with columns, and the beginnings of the CREATE TABLE statements
    without columns or with unsupported syntax. Raises NotDdl.
    """
    try:
        with _quiet():
            statements = sqlglot.parse(text, dialect=dialect)
    except (SqlglotError, RecursionError) as error:
        raise NotDdl(str(error).splitlines()[0][:200] if str(error) else "it is nested too deep") from error
    created: list[DdlTable] = []
    unsupported_statements: list[str] = []
    for statement in statements:
        if (
            isinstance(statement, exp.Create)
            and statement.kind == "TABLE"
            and isinstance(statement.this, exp.Schema)
        ):
            created.append(_table(statement, dialect))
        elif isinstance(statement, exp.Create | exp.Command):
            with _quiet():
                sql = statement.sql(dialect=dialect)
            if _CREATES.match(sql):
                unsupported_statements.append(" ".join(sql.split())[:80])
    return created, unsupported_statements


_CREATES = re.compile(
    r"\s*CREATE\s+(OR\s+REPLACE\s+)?((EXTERNAL|FOREIGN|TEMP|TEMPORARY|TRANSIENT|UNLOGGED)\s+)*TABLE\b",
    re.IGNORECASE,
)


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence sqlglot's log messages, which quote statements that it does not support."""
    logger = logging.getLogger("sqlglot")
    was_disabled, logger.disabled = logger.disabled, True
    try:
        yield
    finally:
        logger.disabled = was_disabled


def _table(statement: exp.Create, dialect: str) -> DdlTable:
    schema: exp.Schema = statement.this
    table = schema.this
    columns, keys, partitions, unsupported = [], [], [], []
    for part in schema.expressions:
        if isinstance(part, exp.ColumnDef):
            column, is_key, unsupported_here = _column(part, dialect)
            columns.append(column)
            keys += [column.name] if is_key else []
            unsupported += unsupported_here
        else:
            primary_key = part.find(exp.PrimaryKey)
            if primary_key is not None:
                keys += [key_column.name for key_column in primary_key.expressions]
            else:
                unsupported.append(part.sql(dialect=dialect))
    options = {"comment": "", "location": "", "format": ""}
    for option in statement.args["properties"].expressions if statement.args.get("properties") else ():
        if isinstance(option, exp.SchemaCommentProperty):
            options["comment"] = option.this.name
        elif isinstance(option, exp.LocationProperty):
            options["location"] = option.this.name
        elif isinstance(option, exp.FileFormatProperty):
            options["format"] = option.this.name.lower() if option.this else ""
        elif isinstance(option, exp.PartitionedByProperty):
            inner = (
                option.this.expressions if isinstance(option.this, exp.Schema | exp.Tuple) else [option.this]
            )
            for key in inner:
                if isinstance(key, exp.ColumnDef):
                    column, _, unsupported_here = _column(key, dialect)
                    columns.append(column)
                    unsupported += unsupported_here
                elif not isinstance(key, exp.Column | exp.Identifier):
                    unsupported.append(f"PARTITIONED BY {key.sql(dialect=dialect)}")
                    continue
                partitions.append(key.name)
        else:
            unsupported.append(option.sql(dialect=dialect))
    return DdlTable(table.db, table.name, tuple(columns), tuple(keys), tuple(partitions), **options,
                    unsupported=tuple(unsupported))  # fmt: skip


def _column(definition: exp.ColumnDef, dialect: str) -> tuple[DdlColumn, bool, list[str]]:
    kind: exp.DataType | None = definition.args.get("kind")
    sql_type = kind.sql(dialect=dialect) if kind is not None else ""
    types = DialectTypes(dialect)
    spark_type = types.read(kind) if isinstance(kind, exp.DataType) else None
    description, is_key, unsupported = _constraints(definition, dialect)
    column = DdlColumn(
        definition.name,
        spark_type,
        sql_type,
        description.comment,
        description.required,
        types.nested,
        tuple(types.notes),
        types.logical,
    )
    return column, is_key, unsupported


def _constraints(definition: exp.ColumnDef, dialect: str) -> tuple[DdlPart, bool, list[str]]:
    """Return the attributes of a column or field, whether it is the primary key, and unsupported
    constraints.
    """
    comment, required, is_key, unsupported = "", False, False, []
    for constraint in definition.args.get("constraints") or ():
        kind = constraint.args.get("kind")
        if isinstance(kind, exp.NotNullColumnConstraint):
            required = not kind.args.get("allow_null")
        elif isinstance(kind, exp.PrimaryKeyColumnConstraint):
            is_key = required = True
        elif isinstance(kind, exp.CommentColumnConstraint):
            comment = kind.this.name
        else:
            unsupported.append(f"{definition.name}: {constraint.sql(dialect=dialect)}")
    return DdlPart(comment, required), is_key, unsupported
