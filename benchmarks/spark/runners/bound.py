"""The bound: what one would write by hand in Spark for these clauses and no others, everything exact.

One aggregation for all that Spark can compile together, one distinct count each, and the key by sorting:
of the ways that were tried, the fastest that holds for any types and values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from spark import terms


def build(
    place: str, scale: float, _variant: str, session: Any
) -> tuple[tuple[str, ...], Callable[[], list[str]]]:
    counts = {
        name: f"count(CASE WHEN {test} THEN 1 END)"
        for name, test in terms.broken_rows("{column} RLIKE '{pattern}'").items()
    }
    figures = {
        "rows": "count(1)",
        "fresh": f"max({terms.FRESH})",
        "mean": f"avg({terms.MEAN})",
        "maximum": f"max({terms.MAXIMUM})",
    }
    expressions = [f"{text} AS `{name}`" for name, text in (counts | figures).items()]
    keys = ", ".join(terms.KEY)

    def run() -> list[str]:
        frame = session.read.parquet(place)
        values = frame.selectExpr(*expressions).first().asDict()
        values["distinct"] = frame.select(terms.DISTINCT).distinct().count()
        values["parts"] = frame.select(terms.REPEATED).distinct().count()
        numbered = frame.selectExpr(f"row_number() OVER (PARTITION BY {keys} ORDER BY {keys}) AS n")
        repeats = numbered.where("n > 1").count()
        types = {field.name: field.dataType.simpleString() for field in frame.schema.fields}
        return terms.judged(scale, types, {name: values[name] for name in counts}, repeats, values)

    return terms.ALL, run
