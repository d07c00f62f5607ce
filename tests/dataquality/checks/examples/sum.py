"""Examples of the check `sum`."""

from __future__ import annotations

from fakes.examples import Example
from fakes.measured_examples import DEC, of_numbers, rule

_DOUBLES, _LAST = "v double, g string", 9223372036854775807
EXAMPLES = (
    Example(
        "kept", rule("sum", "", "mustBe: 3"), _DOUBLES, ((2.0, "a"), (1.0, "a"), (None, "b")), "pass", ("3",)
    ),
    Example("broken", rule("sum", "", "mustBeLessThan: 3"), _DOUBLES, ((2.0, "a"), (1.0, "a")), "fail"),
    Example("no rows", rule("sum", "", "mustBeGreaterThan: 0"), _DOUBLES, (), "fail", ("0",)),
    Example("all NULL", rule("sum", "", "mustBe: 0"), _DOUBLES, ((None, "a"),), "pass", ("0",)),
    Example(
        "cents are exact",
        rule("sum", "", "mustBe: 0.3"),
        "v decimal(10,2), g string",
        ((DEC("0.1"), "a"), (DEC("0.2"), "a")),
        "pass",
        ("0.3",),
    ),
    Example(
        "beyond 64 bits",
        rule("sum", "", "mustBe: 18446744073709551614", "integer"),
        "v bigint, g string",
        ((_LAST, "a"), (_LAST, "a")),
        "pass",
        ("18,446,744,073,709,551,614",),
    ),
    Example(
        "groups beyond 64 bits",
        rule("sum", "by: g", "mustBeLessThan: 10", "integer"),
        "v bigint, g string",
        ((_LAST, "a"), (_LAST, "a"), (1, None), (2, None), (None, "c")),
        "fail",
        ("1 of 3 groups",),
    ),
    Example(
        "beyond 38 digits",
        rule("sum", "", "mustBeGreaterThan: 0"),
        "v decimal(38,0), g string",
        ((DEC("9" * 38), "a"), (DEC("9" * 38), "a")),
        "error",
    ),
    *of_numbers("sum"),
)
