"""What is asked of each column in one pass, as Spark SQL, and how the answers are read."""

from __future__ import annotations

import datetime as dt
import math
import string
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from dq.contracts.sql import text as sql
from dq.contracts.types import DataType
from dq.contracts.yaml.insertion.spans import Way
from dq.dataquality.model.column import Column
from dq.dataquality.model.term import INTEGERS, NUMBERS, TEXTS
from dq.dataquality.proposal import policy
from dq.dataquality.proposal.bounds import TIMES
from dq.dataquality.proposal.column_rules import FORMATS, PLAIN
from dq.dataquality.proposal.facts import Bound, SeenValues
from dq.dataquality.sql import text_formats
from dq.dataquality.sql.spark_predicate import predicate_sql

_SIGNS = string.ascii_uppercase + string.ascii_lowercase + string.digits
_SHAPES = "A" * 26 + "a" * 26 + "9" * 10


@dataclass(frozen=True, slots=True)
class AskedColumn:
    """A column of the contract that is there; `forms` are the formats that its first values have."""

    way: Way
    name: str
    column: Column
    type: DataType
    written: frozenset[str]
    sensitive: bool = False
    partition: bool = False
    forms: tuple[str, ...] = ()

    @property
    def value(self) -> str:
        """It as an expression."""
        return self.column.sql()


def of_forms(one: AskedColumn, schema: DataType, forms: tuple[str, ...] = FORMATS) -> dict[str, str]:
    """The aggregates that count the values of a text without each of these formats."""
    return {
        form: f"count_if({predicate_sql(text_formats.breaks(form, one.column.path), schema)})"
        for form in forms
    }


def aggregates(one: AskedColumn, at: int, schema: DataType) -> dict[str, str]:
    """The aggregates of the column in this place, by their names; `h…` sketches the different values."""
    value, made = one.value, {f"n{at}": f"count({one.value})"}
    if one.type.name in NUMBERS:
        made |= {f"lo{at}": f"min({value})", f"hi{at}": f"max({value})"}
    elif one.type.name in TIMES:
        made |= {f"lo{at}": f"CAST(min({value}) AS STRING)", f"hi{at}": f"CAST(max({value}) AS STRING)"}
    elif one.type.name in TEXTS:
        shape = f"translate(left({value}, {policy.LONGEST_SHAPE + 1}), '{_SIGNS}', '{_SHAPES}')"
        made |= {
            f"s{at}": f"min(length({value}))",
            f"l{at}": f"max(length({value}))",
            f"a{at}": f"min({shape})",
            f"z{at}": f"max({shape})",
            f"p{at}": f"count_if(NOT {value} RLIKE {sql.text(PLAIN)})",
        }
        for form, count in of_forms(one, schema, one.forms).items():
            made[f"f{at}_{FORMATS.index(form)}"] = count
    if one.type.name in INTEGERS:
        made[f"h{at}"] = f"hll_sketch_agg(CAST({value} AS BIGINT))"
    elif one.type.name in TEXTS | TIMES | {"decimal", "boolean"}:
        made[f"h{at}"] = f"hll_sketch_agg(CAST({value} AS STRING))"
    return made


def seen(row: Mapping[str, Any], at: int) -> SeenValues:
    """What the answers of one partition say of the column in this place."""
    rows = int(row["n"])
    return SeenValues(
        rows,
        rows - int(row[f"n{at}"]),
        _bound(row.get(f"lo{at}")),
        _bound(row.get(f"hi{at}")),
        row.get(f"s{at}"),
        row.get(f"l{at}"),
    )


def _bound(value: object) -> Bound | None:
    match value:
        case bool():
            return None
        case float():
            return value if math.isfinite(value) else None
        case int() | Decimal():
            return value
        case str():
            try:
                # Fractions of a second come with as many digits as they have.
                return dt.datetime.fromisoformat(value.partition(".")[0])
            except ValueError:
                return None
    return None


def forms_of(rows: list[Mapping[str, Any]], one: AskedColumn, at: int) -> frozenset[str]:
    """The formats that all values have."""
    return frozenset(
        form for form in one.forms if all(not row[f"f{at}_{FORMATS.index(form)}"] for row in rows)
    )


def shape_of(rows: list[Mapping[str, Any]], at: int) -> str:
    """The one shape of all values, "" where there are several."""
    shapes = {row.get(name) for row in rows for name in (f"a{at}", f"z{at}")} - {None}
    return str(next(iter(shapes))) if len(shapes) == 1 else ""
