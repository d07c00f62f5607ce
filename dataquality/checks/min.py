"""The least value of a column is within the bounds of a `min` rule.

Why: One price of 0.01 or one age of -1 shows that a source has changed its meaning.
Bad: `engine: dq`, `implementation: {check: min, mustBeGreaterOrEqualTo: 1}`, and a value of 0.5.
Good: The same rule, and 1 is the least value.
Nulls: NULL is left out; where there is no value, the rule is skipped. NaN is no number: with one, there is no
answer. -0.0 is 0. Exact numbers are compared exactly, and statistics of the files answer without a scan where
they can.
Mend: Correct the data or the bound.
"""

from __future__ import annotations

from dq.dataquality.clauses.kind import Example
from dq.dataquality.clauses.metric_rule import kind_of
from dq.dataquality.clauses.metrics import DEC, extreme, of_numbers, rule

_DOUBLES = "v double, g string"
EXAMPLES = (
    Example(
        "kept", rule("min", "", "mustBe: 1"), _DOUBLES, ((2.0, "a"), (1.0, "a"), (None, "b")), "pass", ("1",)
    ),
    Example("broken", rule("min", "", "mustBeGreaterThan: 1"), _DOUBLES, ((2.0, "a"), (1.0, "a")), "fail"),
    Example("no rows", rule("min", "", "mustBe: 1"), _DOUBLES, (), "skipped", ("no values",)),
    Example("all NULL", rule("min", "", "mustBe: 1"), _DOUBLES, ((None, "a"),), "skipped"),
    Example("the negative zero", rule("min", "", "mustBe: 0"), _DOUBLES, ((-0.0, "a"),), "pass", ("0",)),
    Example(
        "infinity is no number",
        rule("min", "", "mustBeLessThan: 0"),
        _DOUBLES,
        ((float("-inf"), "a"),),
        "error",
    ),
    Example(
        "38 digits",
        rule("min", "", "mustBe: -12345678901234567890123456789012345678"),
        "v decimal(38,0), g string",
        ((DEC("-12345678901234567890123456789012345678"), "a"),),
        "pass",
    ),
    Example(
        "decimals are exact",
        rule("min", "", "mustBe: 0.1"),
        "v decimal(38,18), g string",
        ((DEC("0.100000000000000001"), "a"),),
        "fail",
        ("0.100000000000000001",),
    ),
    *of_numbers("min"),
)
MEASURE = extreme("min")
CHECK = kind_of(MEASURE, __doc__, EXAMPLES)
