"""DuckDB, one SQL statement on two threads, everything exact: an outer bound, since it is not Spark."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import duckdb

from spark import terms

_TYPES = {
    "BIGINT": "bigint",
    "INTEGER": "int",
    "VARCHAR": "string",
    "DATE": "date",
    "DECIMAL(15,2)": "decimal(15,2)",
}


def build(
    place: str, scale: float, _variant: str, _session: Any
) -> tuple[tuple[str, ...], Callable[[], list[str]]]:
    connection = duckdb.connect()
    connection.execute("SET threads = 2")
    source = f"read_parquet('{place}/*.parquet')"
    counts = terms.broken_rows("regexp_matches({column}, '{pattern}')")
    expressions = [f'count(*) FILTER (WHERE {test}) AS "{name}"' for name, test in counts.items()]
    expressions += [
        "count(*) AS rows",
        f"max({terms.FRESH}) AS fresh",
        f"avg({terms.MEAN}) AS mean",
        f"max({terms.MAXIMUM}) AS maximum",
        f"count(DISTINCT {terms.DISTINCT}) AS distinct",
        f"count(DISTINCT {terms.REPEATED}) AS parts",
    ]
    keys = ", ".join(terms.KEY)
    present = " AND ".join(f"{key} IS NOT NULL" for key in terms.KEY)
    repeats = f"SELECT 1 FROM {source} WHERE {present} GROUP BY {keys} HAVING count(*) > 1"
    query = f"SELECT {', '.join(expressions)}, (SELECT count(*) FROM ({repeats})) AS repeats FROM {source}"

    def run() -> list[str]:
        done = connection.execute(query)
        values = dict(zip((column[0] for column in done.description), done.fetchone(), strict=True))
        described = connection.execute(f"DESCRIBE SELECT * FROM {source}").fetchall()
        types = {row[0]: _TYPES.get(row[1], row[1]) for row in described}
        return terms.judged(scale, types, {name: values[name] for name in counts}, values["repeats"], values)

    return terms.ALL, run
