"""The numbers that a quality rule allows, as one interval, whichever operator says so."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from dq.contracts.model import OPERATORS, Quality
from dq.contracts.shared.source_map import plain


@dataclass(frozen=True, slots=True)
class Interval:
    """From `low` to `high`; an open end leaves its bound out."""

    low: float
    high: float
    low_open: bool = False
    high_open: bool = False

    def within(self, other: Interval) -> bool:
        """Whether every number of this one is in the other."""
        low = self.low > other.low or (self.low == other.low and (self.low_open or not other.low_open))
        high = self.high < other.high or (self.high == other.high and (self.high_open or not other.high_open))
        return low and high


@dataclass(frozen=True, slots=True)
class RuleThreshold:
    """What a rule's metric may be: an interval, or a form that only equals itself."""

    interval: Interval | None
    form: tuple[str, ...]
    unit: str


def _number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


_INTERVALS: Mapping[str, Callable[[Any], Interval]] = {
    "mustBe": lambda value: Interval(value, value),
    "mustBeLessThan": lambda value: Interval(-math.inf, value, high_open=True),
    "mustBeLessOrEqualTo": lambda value: Interval(-math.inf, value),
    "mustBeGreaterThan": lambda value: Interval(value, math.inf, low_open=True),
    "mustBeGreaterOrEqualTo": lambda value: Interval(value, math.inf),
    "mustBeBetween": lambda value: Interval(value[0], value[1]),
}
# A metric counts rows or is a share of them: nothing is below zero, so `< 1 row` is `= 0 rows`.
_COUNTS = frozenset({"nullValues", "missingValues", "invalidValues", "duplicateValues", "rowCount"})


def threshold(rule: Quality) -> RuleThreshold | None:
    """The rule's threshold, or None when it has no operator."""
    operators, written = operators_of(rule)
    unit = (written or "rows").lower()
    unit = {"%": "percent", "row": "rows", "count": "rows"}.get(unit, unit)
    if not operators:
        return None
    form = tuple(sorted(f"{name} {value}" for name, value in operators))
    if len(operators) != 1:
        return RuleThreshold(None, form, unit)
    name, value = operators[0]
    numeric = all(_number(one) for one in value) if isinstance(value, list) else _number(value)
    pair = not isinstance(value, list) or len(value) == 2
    if name not in _INTERVALS or not numeric or not pair:
        return RuleThreshold(None, form, unit)
    return RuleThreshold(_counted(_INTERVALS[name](value), metric(rule), unit), (), unit)


def _counted(interval: Interval, metric_: str, unit: str) -> Interval:
    # In percent, a number of rows is how much it grew.
    if metric_ not in _COUNTS or (metric_ == "rowCount" and unit == "percent"):
        return interval
    low, low_open = interval.low, interval.low_open
    if low < 0:
        low, low_open = 0.0, False
    high, high_open = interval.high, interval.high_open
    if unit == "rows" and high_open and float(high).is_integer():
        high, high_open = high - 1, False
    return Interval(low, high, low_open, high_open)


def metric(rule: Quality) -> str:
    """The metric's name; ODCS 3.0 called it `rule`, and a rule of dq's engine names it as its check."""
    named = of_engine(rule).get("check")
    return rule.metric or rule.rule or (named if isinstance(named, str) else "")


def of_engine(rule: Quality) -> dict[str, object]:
    """What the implementation of a rule of dq's own engine says; empty for every other rule."""
    if rule.type != "custom" or rule.engine != "dq":
        return {}
    written = plain(rule.implementation)
    if isinstance(written, str):
        return {"check": written.strip()}
    return written if isinstance(written, dict) else {}


def operators_of(rule: Quality) -> tuple[list[tuple[str, Any]], str | None]:
    """The operators of a rule and its unit, wherever they stand."""
    inside = of_engine(rule)
    own = [(name, inside[name]) for name in OPERATORS if name in inside]
    unit = inside.get("unit", rule.unit)
    return own + rule.operators(), unit if isinstance(unit, str) else None


def unfolded(rule: Quality) -> dict[str, object]:
    """What an implementation says besides its check, arguments, unit and operators."""
    folded = {"check", "arguments", "unit", *OPERATORS}
    return {key: value for key, value in of_engine(rule).items() if key not in folded}


def strict(rule: Quality) -> bool:
    """Whether the rule lets no row through that breaks it: no operator, or zero."""
    allowed = threshold(rule)
    return allowed is None or (
        allowed.interval is not None and allowed.interval.high == 0 and not allowed.interval.high_open
    )
