"""Examples of the check `quantile`."""

from __future__ import annotations

from fakes.examples import Example
from fakes.measured_examples import DEC, of_numbers, rule

_DOUBLES = "v double, g string"
_TEN = tuple((float(value), "a" if value % 2 else None) for value in range(10, 0, -1))
_MEDIAN = "q: 0.5"
EXAMPLES = (
    Example("the median of ten", rule("quantile", _MEDIAN, "mustBe: 5.5"), _DOUBLES, _TEN, "pass", ("5.5",)),
    Example(
        "between two values", rule("quantile", "q: 0.95", "mustBe: 9.55"), _DOUBLES, _TEN, "pass", ("9.55",)
    ),
    Example("the least", rule("quantile", "q: 0", "mustBe: 1"), _DOUBLES, _TEN, "pass"),
    Example("the greatest", rule("quantile", "q: 1", "mustBe: 10"), _DOUBLES, _TEN, "pass"),
    Example("broken", rule("quantile", _MEDIAN, "mustBeLessThan: 5.5"), _DOUBLES, _TEN, "fail"),
    Example("no rows", rule("quantile", _MEDIAN, "mustBe: 1"), _DOUBLES, (), "skipped", ("no values",)),
    Example("a share beyond 1", rule("quantile", "q: 1.5", "mustBe: 1"), _DOUBLES, _TEN, "error"),
    Example(
        "decimals are exact",
        rule("quantile", _MEDIAN, "mustBe: 0.3000000000000000005"),
        "v decimal(38,18), g string",
        ((DEC("0.1"), "a"), (DEC("0.500000000000000001"), "a")),
        "fail",
        ("0.3000000000000000005",),
    ),
    *of_numbers("quantile", _MEDIAN),
)
