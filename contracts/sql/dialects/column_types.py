"""TABLE: column types of SQL dialects, as types of Spark that hold every value, with a note at each doubt.

Types are named as sqlglot's parser names them; numbers are what stands in parentheses. A row of a dialect
comes before the one of all dialects. Sources:

- PostgreSQL, 8.1 Numeric Types (NUMERIC without precision has any scale), 8.2 Monetary, 8.5 Date/Time Types
- BigQuery, GoogleSQL data types (NUMERIC is 38 digits, 9 of them after the point; DATETIME has no zone)
- Oracle, SQL Language Reference, Data Types (NUMBER floats; DATE has a time; INTEGER is NUMBER(38))
- Snowflake, Numeric data types (INT and the like are NUMBER(38,0); FLOAT is 64 bits), Date and time types
  (TIMESTAMP is TIMESTAMP_NTZ unless TIMESTAMP_TYPE_MAPPING differs)
- MySQL, 13.1 Numeric (DECIMAL is (10,0); display widths), 13.2 Date and Time Data Types (TIMESTAMP is an
  instant, DATETIME is not)
- SQL Server, Data types (decimal is (18,0); float is float(53); money is (19,4), smallmoney (10,4))
- Redshift, Data types (DECIMAL is (18,0); FLOAT is 64 bits) · DuckDB, Data types · SQLite, Datatypes
- Trino, Data types (DECIMAL is (38,0)) · Athena, Hive and Spark, Data types (DECIMAL is (10,0))
- ClickHouse, Data types (DateTime is an instant) · Teradata, Data Types (DECIMAL is (5,0)) · Exasol
- Spark, PostgresDialect and OracleDialect, for numerics without a fixed scale: (38,18) and (38,10)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dq.contracts.types import MAX_PRECISION


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
    "TIMESTAMP": _NO_ZONE,
    "TIMESTAMPNTZ": _NO_ZONE,
    "TIMESTAMP_S": _NO_ZONE,
    "TIMESTAMP_MS": _NO_ZONE,
    "TIMESTAMP_NS": ColumnType("timestamp_ntz", _NANOSECONDS),
    "DATETIME": _NO_ZONE,
    "DATETIME2": _NO_ZONE,
    "SMALLDATETIME": _NO_ZONE,
    "TIMESTAMPTZ": _INSTANT,
    "TIMESTAMPLTZ": _INSTANT,
    "DECIMAL": _ANY_38_18,
    "MONEY": ColumnType("decimal(19,4)"),
    "SMALLMONEY": ColumnType("decimal(10,4)"),
    "UTINYINT": ColumnType("smallint"),
    "USMALLINT": ColumnType("int"),
    "MEDIUMINT": ColumnType("int"),
    "UMEDIUMINT": ColumnType("int"),
    "UINT": ColumnType("bigint"),
    "UBIGINT": ColumnType("decimal(20,0)"),
    "INT128": _INTEGER_128,
    "UINT128": _INTEGER_128,
    "SMALLSERIAL": ColumnType("smallint"),
    "SERIAL": ColumnType("int"),
    "BIGSERIAL": ColumnType("bigint"),
    "YEAR": ColumnType("int"),
    "DATE32": ColumnType("date"),
    "INTERVAL": _TEXT,
    "BIT": _TEXT,
    "IMAGE": ColumnType("binary"),
    "ROWVERSION": ColumnType("binary"),
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
