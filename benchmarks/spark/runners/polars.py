"""Polars, its streaming engine, everything exact: an outer bound, since it is not Spark."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import polars as pl

from spark import terms

_TYPES: dict[Any, str] = {pl.Int64: "bigint", pl.Int32: "int", pl.String: "string", pl.Date: "date"}


def build(
    place: str, scale: float, _variant: str, _session: Any
) -> tuple[tuple[str, ...], Callable[[], list[str]]]:
    tests = _tests()
    figures = [
        pl.len().alias("rows"),
        pl.col(terms.FRESH).max().alias("fresh"),
        pl.col(terms.MEAN).mean().alias("mean"),
        pl.col(terms.MAXIMUM).max().alias("maximum"),
        pl.col(terms.DISTINCT).drop_nulls().n_unique().alias("distinct"),
        pl.col(terms.REPEATED).drop_nulls().n_unique().alias("parts"),
    ]

    def run() -> list[str]:
        rows = pl.scan_parquet(f"{place}/*.parquet")
        expressions = [test.sum().alias(name) for name, test in tests.items()]
        keys = rows.drop_nulls(list(terms.KEY)).group_by(*terms.KEY).len().filter(pl.col("len") > 1)
        first, second = pl.collect_all(
            [rows.select(*expressions, *figures), keys.select(pl.len().alias("repeats"))], engine="streaming"
        )
        values = first.to_dicts()[0]
        types = {name: _named(kind) for name, kind in rows.collect_schema().items()}
        counts = {name: values[name] for name in tests}
        return terms.judged(scale, types, counts, second["repeats"][0], values)

    return terms.ALL, run


def _tests() -> dict[str, pl.Expr]:
    tests = {f"null:{column}": pl.col(column).is_null() for column in terms.COLUMNS}
    for kind, ranges in (("range", terms.RANGES), ("dates", terms.DATES)):
        for column, (least, largest) in ranges.items():
            test = pl.col(column) < _value(column, least)
            if largest is not None:
                test = test | (pl.col(column) > _value(column, largest))
            tests[f"{kind}:{column}"] = test
    tests[f"positive:{terms.POSITIVE}"] = pl.col(terms.POSITIVE) <= 0
    for column, values in terms.ENUMS.items():
        tests[f"enum:{column}"] = ~pl.col(column).is_in(values)
    tests["min_length"] = pl.col(terms.TEXT).str.len_chars() < terms.MIN_LENGTH
    tests["max_length"] = pl.col(terms.TEXT).str.len_chars() > terms.MAX_LENGTH
    tests["pattern"] = ~pl.col(terms.FORMED).str.contains(terms.PATTERN)
    tests["order"] = pl.col(terms.EARLIER) > pl.col(terms.LATER)
    return tests


def _value(column: str, text: str) -> pl.Expr:
    kind = terms.TYPES[column]
    if kind == "date":
        return pl.lit(dt.date.fromisoformat(text))
    return pl.lit(Decimal(text)) if kind.startswith("decimal") else pl.lit(int(text))


def _named(kind: Any) -> str:
    if isinstance(kind, pl.Decimal):
        return f"decimal({kind.precision},{kind.scale})"
    return _TYPES.get(kind, str(kind))
