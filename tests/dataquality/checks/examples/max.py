"""Examples of the check `max`."""

from __future__ import annotations

from fakes.examples import Example
from fakes.measured_examples import of_numbers, rule

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
