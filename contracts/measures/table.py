"""TABLE: the metrics of dq's own engine: what they are asked of, and which arguments and units they take."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

_NUMBERS = ("integer", "number")
_ROWS = ("rows", "percent")


@dataclass(frozen=True, slots=True)
class MeasureKind:
    """One metric: its name in a contract, and its check on the shelf.

    `types` are the logical types that its column may have (empty: any); one without a logical type is told by
    the data. `own` are arguments besides those that every metric takes. `units` are those that make sense
    without a comparison with earlier runs. `columns` is how many columns a rule on the object names: 0 where
    it stands on a property alone, None for one or more. `by_size`: its number grows with the table, so that
    a sample does not show it.
    """

    name: str
    check: str
    types: tuple[str, ...] = _NUMBERS
    own: tuple[str, ...] = ()
    units: tuple[str, ...] = ()
    columns: int | None = 0
    by_size: bool = False


_KINDS = (
    MeasureKind("min", "min"),
    MeasureKind("max", "max"),
    MeasureKind("mean", "mean"),
    MeasureKind("sum", "sum", by_size=True),
    MeasureKind("stddev", "stddev"),
    MeasureKind("quantile", "quantile", own=("q",)),
    MeasureKind("distinctCount", "distinct_count", (), ("properties",), _ROWS, None, by_size=True),
    MeasureKind("distinctRatio", "distinct_ratio", (), ("properties",), ("percent",), None),
    MeasureKind("uniqueRatio", "unique_ratio", (), ("properties",), ("percent",), None),
    MeasureKind("compareColumns", "compare_columns", (), ("properties", "property", "operator"), _ROWS, 2),
    MeasureKind(
        "sequenceGaps", "sequence_gaps", ("integer", "date"), ("step", "start"), _ROWS, 0, by_size=True
    ),
)
MEASURES: Mapping[str, MeasureKind] = {kind.name: kind for kind in _KINDS}

# What a comparison with earlier runs takes: key -> (default, least, most).
BAND: Mapping[str, tuple[float, float, float]] = {
    "runs": (28, 1, 1_000),
    "minimum": (7, 1, 1_000),
    "deviations": (3.5, 0, 1_000),
    "slack": (20, 0, 1_000),
}
DIRECTIONS = ("both", "fewer", "more")
AGAINST = ("previous", "weekday", "usual")
SHARED = ("by", "against", *BAND, "direction")
COMPARISONS: Mapping[str, str] = {"<": "<", "<=": "<=", ">": ">", ">=": ">=", "=": "=", "!=": "<>"}
UNITS: Mapping[str, str] = {"rows": "rows", "percent": "percent", "%": "percent"}
# Types whose values are few and exact enough to be the name of a group.
BY_TYPES = ("string", "integer", "number", "boolean", "date")
MOST_BY = 3
