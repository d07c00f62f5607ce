"""The number of different values is within the bounds of a `distinctCount` rule.

Why: A table with rows of 3 shops instead of 50 has lost most of its sources, however many rows there are.
Bad: `engine: dq`, `implementation: {check: distinctCount, mustBe: 50}` on `shop_id`, and rows of 3 shops.
Good: The same rule, and rows of all 50.
Nulls: NULL is no value, and a key of several columns (`properties` of a rule on the object) counts where all
of them have one; of no values there are 0. The count is exact; -0.0 and 0.0 are one value, as are all NaN.
In percent it is a share of the rows that have a value.
Mend: Find the missing source, or correct the bound.
"""

from __future__ import annotations

from dq.contracts.metrics import MEASURES
from dq.dataquality.clauses.kind import Example
from dq.dataquality.clauses.metric_rule import kind_of
from dq.dataquality.clauses.metrics import (
    NAN,
    SOME,
    TEXTS,
    ColumnMeasure,
    different,
    of_keys,
    pair,
    rule,
    share,
)


def _of(rest: str, arguments: str = "") -> str:
    return rule("distinctCount", arguments, rest, "string")


EXAMPLES = (
    Example("kept", _of("mustBe: 2"), TEXTS, SOME, "pass", ("2",)),
    Example("broken", _of("mustBeGreaterThan: 2"), TEXTS, SOME, "fail", ("2",)),
    Example("rows", _of("mustBe: 2, unit: rows"), TEXTS, SOME, "pass", ("2",)),
    Example("percent", _of("mustBeLessThan: 60, unit: percent"), TEXTS, SOME, "fail", ("66.66666667 %",)),
    Example("no rows", _of("mustBeGreaterThan: 0"), TEXTS, (), "fail", ("0",)),
    Example("percent of no rows", _of("mustBe: 0, unit: percent"), TEXTS, (), "skipped"),
    Example("a pair", pair("distinctCount", "mustBe: 2"), TEXTS, SOME, "pass", ("2",)),
    Example("groups", _of("mustBe: 1", "by: [g]"), TEXTS, SOME, "fail", ("2 of 3 groups",)),
    Example(
        "zeros and NaN",
        rule("distinctCount", "", "mustBe: 2"),
        "v double, g string",
        ((0.0, "a"), (-0.0, "a"), (NAN, "a"), (NAN, "a")),
        "pass",
        ("2",),
    ),
    *of_keys("distinctCount"),
)
MEASURE = ColumnMeasure(MEASURES["distinctCount"], different, share)
CHECK = kind_of(MEASURE, __doc__, EXAMPLES)
