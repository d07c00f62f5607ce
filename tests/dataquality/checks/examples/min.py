"""Examples of the check `min`."""

from __future__ import annotations

from fakes.examples import Example
from fakes.measured_examples import DEC, of_numbers, rule

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
