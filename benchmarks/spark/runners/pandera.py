"""pandera.pyspark, a DataFrameSchema. It has no form for the row count, an order of two columns, freshness,
mean, maximum, distinct count and duplicates; both lengths are one check.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pandera.pyspark as pa
import pyspark.sql.types as spark_types

from spark import terms

_TYPES = {
    "bigint": spark_types.LongType(),
    "int": spark_types.IntegerType(),
    "string": spark_types.StringType(),
    "date": spark_types.DateType(),
    "decimal(15,2)": spark_types.DecimalType(15, 2),
}


def build(
    place: str, _scale: float, _variant: str, session: Any
) -> tuple[tuple[str, ...], Callable[[], list[str]]]:
    checks = _checks()
    columns = {
        column: pa.Column(
            _TYPES[kind], checks=[check for at, _, check in checks if at == column] or None, nullable=False
        )
        for column, kind in terms.TYPES.items()
    }
    schema = pa.DataFrameSchema(columns, strict=True, unique=list(terms.KEY))
    covers = ("schema", "key", *(f"null:{column}" for column in terms.COLUMNS))
    covers += tuple(name for _, names, _ in checks for name in names)

    def run() -> list[str]:
        by_kind = schema.validate(check_obj=session.read.parquet(place)).pandera.errors or {}
        errors = [error for kinds in by_kind.values() for listed in kinds.values() for error in listed]
        return sorted({name for error in errors for name in _names(error, checks)})

    return covers, run


Checks = list[tuple[str, tuple[str, ...], Any]]


def _names(error: dict[str, Any], checks: Checks) -> tuple[str, ...]:
    column, check = error["column"], str(error["check"])
    if check == "not_nullable":
        return (f"null:{column}",)
    for at, names, rule in checks:
        if at == column and check == rule.error:
            return names
    if "unique" in check or "unique" in str(error["error"]):
        return ("key",)
    return ("schema",)


def _checks() -> Checks:
    checks: Checks = []
    for kind, ranges in (("range", terms.RANGES), ("dates", terms.DATES)):
        for column, (low, high) in ranges.items():
            least = _value(column, low)
            check = pa.Check.ge(least) if high is None else pa.Check.in_range(least, _value(column, high))
            checks.append((column, (f"{kind}:{column}",), check))
    checks.append((terms.POSITIVE, (f"positive:{terms.POSITIVE}",), pa.Check.gt(0)))
    for column, values in terms.ENUMS.items():
        checks.append((column, (f"enum:{column}",), pa.Check.isin(values)))
    lengths = pa.Check.str_length(min_value=terms.MIN_LENGTH, max_value=terms.MAX_LENGTH)
    checks.append((terms.TEXT, ("min_length", "max_length"), lengths))
    checks.append((terms.FORMED, ("pattern",), pa.Check.str_matches(terms.PATTERN)))
    return checks


def _value(column: str, text: str) -> Any:
    kind = terms.TYPES[column]
    if kind == "date":
        return dt.date.fromisoformat(text)
    return Decimal(text) if kind.startswith("decimal") else int(text)
