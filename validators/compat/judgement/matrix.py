"""TABLE: which stored type can be read as which other, by table format and engine, with sources.

Rows of types, columns of readers. `Y` read right; `L` lossy, or depends on the values; `N` not, or not right;
`?` no source found, which counts as no; `=` the reader does not tell the two types apart. Unlisted is `N`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dq.contracts.types import DataType

# Column -> its source.
SOURCES: Mapping[str, str] = {
    "Ice2": "Iceberg spec v1-2, Schema Evolution",
    "Ice3": "Iceberg spec v3, Schema Evolution",
    "D3": "Delta docs, delta-type-widening (3.2 preview: byte, short)",
    "D4": "Delta PROTOCOL.md, Type Widening (4.0)",
    "Hudi": "Hudi SchemaChangeUtils.java (schema on read)",
    "Avro": "Avro spec, Schema Resolution; AVRO-299, AVRO-1533",
    "ORC": "ORC SchemaEvolution, list of conversions",
    "Sp3": "Spark 3.5 vectorized Parquet reader; spark#34308",
    "Sp4": "Spark 4.0 Parquet reader; spark#44368",
    "TrP": "Trino docs, hive.md partition coercions; trino#21556",
    "Ath": "Athena User Guide, updates-changing-column-type",
    "RS": "AWS re:Post redshift-spectrum-data-errors: the type must match the Parquet file",
}
_COLUMNS = tuple(SOURCES)

# From, to, then one cell for each column in the order of SOURCES.
#                                  Ice2 Ice3 D3 D4 Hudi Avro ORC Sp3 Sp4 TrP Ath RS
_ROWS = """
    tinyint        int             Y Y Y Y = = Y Y Y Y Y ?
    tinyint        smallint        Y Y Y Y = = Y Y Y Y Y ?
    smallint       int             Y Y Y Y = = Y Y Y Y Y ?
    tinyint        bigint          Y Y N Y Y Y Y N Y Y Y N
    smallint       bigint          Y Y N Y Y Y Y N Y Y Y N
    int            bigint          Y Y N Y Y Y Y N Y Y Y N
    float          double          Y Y N Y Y Y Y ? Y Y Y N
    tinyint        double          N N N Y Y Y Y N Y N N N
    smallint       double          N N N Y Y Y Y N Y N N N
    int            double          N N N Y Y Y Y N Y N N N
    int            float           N N N N L L L N N N N N
    bigint         double          N N N N L L L N N L N N
    bigint         float           N N N N L L L N N N N N
    int            decimal-fits    N N N Y Y N Y N Y Y N N
    bigint         decimal-fits    N N N Y Y N Y N Y Y N N
    decimal        decimal-wider   Y Y N Y Y N Y ? Y Y N ?
    decimal        decimal-scaled  N N N Y Y N L N Y L N N
    decimal        decimal         N N N N N N L N N L N N
    float          decimal         N N N N L N L N N L N N
    double         decimal         N N N N L N L N N L N N
    double         float           N N N N N N L N N L N N
    date           timestamp       N Y N N N N Y N N N N N
    date           timestamp_ntz   N Y N Y N N Y N Y N N N
    timestamp      date            N N N N N N L N N L N N
    int            string          N N N N Y N Y N N Y N N
    bigint         string          N N N N Y N Y N N Y N N
    decimal        string          N N N N Y N Y N N Y N N
    float          string          N N N N Y N Y N N Y N N
    double         string          N N N N Y N Y N N Y N N
    date           string          N N N N Y N Y N N Y N N
    boolean        string          N N N N N N Y N N Y N N
    timestamp      string          N N N N N N Y N N Y N N
    string         int             N N N N N N L N N L L N
    string         bigint          N N N N N N L N N L L N
    string         date            N N N N L N L N N L N N
    string         decimal         N N N N L N L N N N N N
    string         binary          N N N N N Y L Y Y L N N
    binary         string          N N N N N Y L Y Y L N N
    decimal        int             N N N N N N L N N L N N
"""
MATRIX: Mapping[tuple[str, str], Mapping[str, str]] = {
    (row[0], row[1]): dict(zip(_COLUMNS, row[2:], strict=True))
    for row in (line.split() for line in _ROWS.strip().splitlines())
}

# Format -> the column that its own rules give, whoever reads. Formats of files without such rules are
# read as each engine likes, and an engine without a column there is "no".
FORMAT_COLUMN: Mapping[str, str] = {
    "iceberg-v1": "Ice2",
    "iceberg-v2": "Ice2",
    "iceberg-v3": "Ice3",
    "delta-3": "D3",
    "delta-4": "D4",
    "hudi": "Hudi",
    "avro": "Avro",
    "orc-index": "ORC",
    "orc-name": "ORC",
}
ENGINE_COLUMN: Mapping[str, str] = {
    "spark": "Sp4",
    "spark-3": "Sp3",
    "trino": "TrP",
    "trino-451": "TrP",
    "athena": "Ath",
    "redshift-spectrum": "RS",
}
# (engine, from, to) where an engine's version is known to give wrong results silently.
WRONG: Mapping[tuple[str, str, str], str] = {
    ("trino-451", "int", "decimal-fits"): "trino#21556: 0.05 for 5 before Trino 452",
    ("trino-451", "bigint", "decimal-fits"): "trino#21556: 0.05 for 5 before Trino 452",
}

# Order of width, for telling a narrowing from another exchange of types.
_WIDTH = {"tinyint": 1, "smallint": 2, "int": 3, "bigint": 4, "float": 5, "double": 6}
_DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 20}


@dataclass(frozen=True, slots=True)
class Readable:
    """Whether old data can be read as the new type; where not, which reader fails and by which source."""

    yes: bool
    reader: str = ""
    source: str = ""


def readable(before: DataType, after: DataType, format_: str, engines: tuple[str, ...]) -> Readable:
    """Whether every declared engine reads data of one type as another, in files of this format."""
    key = (_name(before), _target(before, after))
    cells = MATRIX.get(key, {})
    own = FORMAT_COLUMN.get(format_)
    if own is not None:
        return _cell(cells.get(own, "N"), format_, SOURCES[own])
    for engine in engines:
        column = ENGINE_COLUMN.get(engine)
        wrong = WRONG.get((engine, *key))
        if column is None or wrong is not None or format_ not in ("parquet-name", "parquet-index"):
            return Readable(False, engine, wrong or f"no source for {engine} on {format_}")
        found = _cell(cells.get(column, "N"), engine, SOURCES[column])
        if not found.yes:
            return found
    return Readable(bool(engines))


def _cell(cell: str, reader: str, source: str) -> Readable:
    return Readable(True) if cell in ("Y", "=") else Readable(False, reader, source)


def _name(type_: DataType) -> str:
    return "string" if type_.name in ("varchar", "char") else type_.name


def _target(before: DataType, after: DataType) -> str:
    """The column's row for a decimal depends on whether all digits have room."""
    if after.name != "decimal" or len(after.numbers) != 2:
        return _name(after)
    precision, scale = after.numbers
    if before.name in _DIGITS:
        return "decimal-fits" if precision - scale >= _DIGITS[before.name] else "decimal"
    if before.name == "decimal" and len(before.numbers) == 2:
        more, finer = precision - before.numbers[0], scale - before.numbers[1]
        if finer == 0 and more > 0:
            return "decimal-wider"
        if finer > 0 and more >= finer:
            return "decimal-scaled"
    return "decimal"


def narrows(before: DataType, after: DataType) -> bool:
    """Whether the new type holds fewer values of the same sort than the old one."""
    if before.name == after.name == "decimal" and len(before.numbers) == len(after.numbers) == 2:
        whole = (before.numbers[0] - before.numbers[1], after.numbers[0] - after.numbers[1])
        return whole[1] <= whole[0] and after.numbers[1] <= before.numbers[1] and before != after
    first, second = _WIDTH.get(before.name), _WIDTH.get(after.name)
    if first is not None and second is not None:
        return second < first
    if before.name == "decimal" and after.name in _DIGITS:
        return _target(after, before) == "decimal-fits"
    return False
