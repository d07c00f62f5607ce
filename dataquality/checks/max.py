"""The greatest value of a column is within the bounds of a `max` rule.

Why: A price of 10,000,000 or an age of 999 shows that somebody's placeholder got through.
Bad: `engine: dq`, `implementation: {check: max, mustBeLessThan: 150}`, and a value of 999.
Good: The same rule, and 104 is the greatest value.
Nulls: NULL is left out; where there is no value, the rule is skipped. NaN is no number: with one, there is no
answer. Exact numbers are compared exactly, and statistics of the files answer without a scan where they can.
Mend: Correct the data or the bound.
"""

from __future__ import annotations

from dq.dataquality.clauses.kind import Example
from dq.dataquality.clauses.metric_rule import kind_of
from dq.dataquality.clauses.metrics import extreme, of_numbers, rule

_DOUBLES = "v double, g string"
EXAMPLES = (
    Example(
        "kept", rule("max", "", "mustBe: 2"), _DOUBLES, ((2.0, "a"), (1.0, "a"), (None, "b")), "pass", ("2",)
    ),
    Example("broken", rule("max", "", "mustBeLessThan: 2"), _DOUBLES, ((2.0, "a"), (1.0, "a")), "fail"),
    Example("no rows", rule("max", "", "mustBe: 1"), _DOUBLES, (), "skipped", ("no values",)),
    Example(
        "the last integer",
        rule("max", "", "mustBe: 9223372036854775807", "integer"),
        "v bigint, g string",
        ((9223372036854775807, "a"),),
        "pass",
        ("9,223,372,036,854,775,807",),
    ),
    Example(
        "one less than the last integer",
        rule("max", "", "mustBe: 9223372036854775807", "integer"),
        "v bigint, g string",
        ((9223372036854775806, "a"),),
        "fail",
    ),
    *of_numbers("max"),
)
MEASURE = extreme("max")
CHECK = kind_of(MEASURE, __doc__, EXAMPLES)
