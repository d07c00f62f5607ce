"""cuallee on PySpark. It has no form for the schema, for bounds of the row count, freshness, and for bounds
of mean, maximum, distinct count and duplicates (equality only).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cuallee import Check, CheckLevel

from spark import terms


def build(
    place: str, _scale: float, _variant: str, session: Any
) -> tuple[tuple[str, ...], Callable[[], list[str]]]:
    names = [name for name, _ in _rules(Check(CheckLevel.WARNING, "c40"))]

    def run() -> list[str]:
        check = Check(CheckLevel.WARNING, "c40")
        added = [add() for _, add in _rules(check)]
        rows = check.validate(session.read.parquet(place)).collect()
        ordered = sorted(rows, key=lambda row: row["id"])
        assert len(ordered) == len(added)
        return sorted(name for name, row in zip(names, ordered, strict=True) if row["status"] != "PASS")

    return tuple(names), run


def _rules(check: Check) -> list[tuple[str, Callable[[], Any]]]:
    rules: list[tuple[str, Callable[[], Any]]] = []

    def add(name: str, method: str, *arguments: Any) -> None:
        rules.append((name, lambda: getattr(check, method)(*arguments)))

    for column in terms.COLUMNS:
        add(f"null:{column}", "is_complete", column)
    add("key", "is_composite_key", terms.KEY)
    for column, (low, high) in terms.RANGES.items():
        if high is None:
            add(f"range:{column}", "is_greater_or_equal_than", column, float(low))
        else:
            add(f"range:{column}", "is_between", column, (float(low), float(high)))
    add(f"positive:{terms.POSITIVE}", "is_positive", terms.POSITIVE)
    for column, values in terms.ENUMS.items():
        add(f"enum:{column}", "is_contained_in", column, values)
    add("min_length", "satisfies", terms.TEXT, f"length({terms.TEXT}) >= {terms.MIN_LENGTH}")
    add("max_length", "satisfies", terms.TEXT, f"length({terms.TEXT}) <= {terms.MAX_LENGTH}")
    add("pattern", "has_pattern", terms.FORMED, terms.PATTERN)
    add("order", "satisfies", terms.EARLIER, f"{terms.EARLIER} <= {terms.LATER}")
    for column, days in terms.DATES.items():
        add(f"dates:{column}", "is_between", column, days)
    return rules
