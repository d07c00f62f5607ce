"""Tables made of lineitem in the environment of the tools: a copy by month, and two broken tables."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import duckdb

from spark import terms

# The broken tables are made of so small a one that the clauses on the whole of it break cheaply.
BASE_SCALE = 0.01


def main() -> int:
    """`python -m spark.tables dirty|retyped|months SOURCE TARGET`; the target appears when it is whole."""
    what, source, target = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    scratch = target.with_name(target.name + ".part")
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(parents=True)
    _MAKE[what](f"read_parquet('{source}/*.parquet')", scratch)
    scratch.rename(target)
    return 0


def dirty(source: str, target: Path) -> None:
    """Every clause but the schema is broken: rows, distinct and repeated by a second copy with other keys
    and suppliers, fresh by leaving the last weeks out, the others by one row each.
    """
    connection = duckdb.connect()
    connection.execute(
        f"CREATE TABLE one AS SELECT * FROM {source} WHERE l_shipdate < DATE '{terms.FRESH_SINCE}'"
    )
    connection.execute(
        "CREATE TABLE other AS SELECT * REPLACE (l_orderkey + 100000000 AS l_orderkey,"
        " l_suppkey + 1000 AS l_suppkey) FROM one"
    )
    connection.execute("CREATE TABLE base AS SELECT * FROM one ORDER BY l_orderkey, l_linenumber LIMIT 1")
    rows = [
        *({column: "NULL"} for column in terms.COLUMNS),
        {"l_quantity": "99999999"},  # the mean, too
        {"l_discount": "0.11"},
        {"l_tax": "0.09"},
        {"l_linenumber": "8"},
        {"l_orderkey": "0"},
        {"l_extendedprice": "0"},
        {"l_extendedprice": "200001"},
        {"l_returnflag": "'Q'"},
        {"l_linestatus": "'Q'"},
        {"l_shipinstruct": "'Q'"},
        {"l_shipmode": "'QUICK'"},
        {"l_shipmode": "'truck'"},
        {"l_comment": "repeat('x', 45)"},
        {"l_comment": "''"},
        {"l_shipdate": "DATE '1996-01-02'", "l_receiptdate": "DATE '1996-01-01'"},
        {"l_commitdate": "DATE '2000-01-01'"},
        {"l_shipdate": "DATE '1991-01-01'"},
    ]
    for index, changed in enumerate(rows):
        changed = {"l_orderkey": str(900_000_000 + index)} | changed
        replaced = ", ".join(f"{value} AS {column}" for column, value in changed.items())
        connection.execute(f"INSERT INTO other SELECT * REPLACE ({replaced}) FROM base")
    # The key that is repeated stands in both files.
    connection.execute("INSERT INTO other SELECT * FROM base")
    for name in ("one", "other"):
        _typed(connection, name, {})
        connection.execute(f"COPY typed TO '{target}/{name}.parquet' (FORMAT parquet)")


def retyped(source: str, target: Path) -> None:
    """Only the schema is broken: a supplier is a text, which can be counted as well as a number."""
    connection = duckdb.connect()
    _typed(connection, source, {"l_suppkey": "VARCHAR"})
    connection.execute(f"COPY typed TO '{target}/retyped.parquet' (FORMAT parquet)")


def _typed(connection: duckdb.DuckDBPyConnection, source: str, other: dict[str, str]) -> None:
    types = terms.TYPES | other
    columns = ", ".join(f"CAST({column} AS {kind}) AS {column}" for column, kind in types.items())
    connection.execute(f"CREATE OR REPLACE TABLE typed AS SELECT {columns} FROM {source}")


def months(source: str, target: Path) -> None:
    """Partitioned as Hive does by the month of shipping, one file each."""
    connection = duckdb.connect()
    connection.execute("SET threads = 1")
    connection.execute(
        f"COPY (SELECT *, strftime(l_shipdate, '%Y-%m') AS month FROM {source}) TO '{target}'"
        " (FORMAT parquet, PARTITION_BY (month))"
    )


_MAKE = {"dirty": dirty, "retyped": retyped, "months": months}

if __name__ == "__main__":
    sys.exit(main())
