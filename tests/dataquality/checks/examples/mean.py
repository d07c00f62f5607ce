"""Examples of the check `mean`."""

from __future__ import annotations

from fakes.examples import Example
from fakes.measured_examples import DEC, of_numbers, rule

_DOUBLES, _LAST = "v double, g string", 9223372036854775807
EXAMPLES = (
    Example(
        "kept",
        rule("mean", "", "mustBe: 1.5"),
        _DOUBLES,
        ((2.0, "a"), (1.0, "a"), (None, "b")),
        "pass",
        ("1.5",),
    ),
    Example("broken", rule("mean", "", "mustBeLessThan: 1.5"), _DOUBLES, ((2.0, "a"), (1.0, "a")), "fail"),
    Example("no rows", rule("mean", "", "mustBe: 0"), _DOUBLES, (), "skipped", ("no values",)),
    Example(
        "exact beyond 64 bits",
        rule("mean", "", "mustBe: 9223372036854775807", "integer"),
        "v bigint, g string",
        ((_LAST, "a"), (_LAST, "a")),
        "pass",
        ("9,223,372,036,854,775,807",),
    ),
    Example(
        "a third is more than its digits",
        rule("mean", "", "mustBe: 0.3333333333333333"),
        "v decimal(3,0), g string",
        ((DEC(1), "a"), (DEC(0), "a"), (DEC(0), "a")),
        "fail",
        ("0.3333333333",),
    ),
    *of_numbers("mean"),
)
