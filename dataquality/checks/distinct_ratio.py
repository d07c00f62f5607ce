"""The number of different values per row that has one is within the bounds of a `distinctRatio` rule.

Why: A column that is nearly a key, and suddenly has each value ten times, was joined with too much.
Bad: `engine: dq`, `implementation: {check: distinctRatio, mustBeGreaterThan: 0.9}`, and 100 different values
in 1,000 rows.
Good: The same rule, and 950 different values.
Nulls: NULL is no value, and a key of several columns counts where all of them have one; where there is none,
the rule is skipped. With `unit: percent` the bound is in percent.
Mend: Look for the join that multiplies rows, or correct the bound.
"""

from __future__ import annotations

from dq.contracts.metrics import MEASURES
from dq.dataquality.clauses.kind import Example
from dq.dataquality.clauses.metric_rule import kind_of
from dq.dataquality.clauses.metrics import SOME, TEXTS, ColumnMeasure, different, of_keys, pair, rule, share


def _of(rest: str, arguments: str = "") -> str:
    return rule("distinctRatio", arguments, rest, "string")


EXAMPLES = (
    Example("kept", _of("mustBeBetween: [0.66, 0.67]"), TEXTS, SOME, "pass", ("0.6666666667",)),
    Example("broken", _of("mustBeGreaterThan: 0.67"), TEXTS, SOME, "fail"),
    Example("percent", _of("mustBeGreaterThan: 66, unit: '%'"), TEXTS, SOME, "pass", ("66.66666667 %",)),
    Example("rows make no ratio", _of("mustBe: 1, unit: rows"), TEXTS, SOME, "error"),
    Example("no rows", _of("mustBe: 1"), TEXTS, (), "skipped", ("nothing to take a share of",)),
    Example("a pair", pair("distinctRatio", "mustBe: 1"), TEXTS, SOME, "pass", ("1",)),
    Example("groups", _of("mustBe: 1", "by: g"), TEXTS, (*SOME, ("x", "a")), "fail", ("1 of 3 groups",)),
    *of_keys("distinctRatio"),
)
MEASURE = ColumnMeasure(MEASURES["distinctRatio"], different, share)
CHECK = kind_of(MEASURE, __doc__, EXAMPLES)
