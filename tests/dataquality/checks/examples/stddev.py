"""Examples of the check `stddev`."""

from __future__ import annotations

from fakes.examples import Example
from fakes.measured_examples import of_numbers, rule

_DOUBLES = "v double, g string"
_SOME = ((1.0, "a"), (3.0, "a"), (5.0, "b"), (None, "b"))
EXAMPLES = (
    Example("kept", rule("stddev", "", "mustBe: 2"), _DOUBLES, _SOME, "pass", ("2",)),
    Example("broken", rule("stddev", "", "mustBeGreaterThan: 2"), _DOUBLES, _SOME, "fail"),
    Example(
        "always the same", rule("stddev", "", "mustBe: 0"), _DOUBLES, ((0.1, "a"), (0.1, "b")), "pass", ("0",)
    ),
    Example(
        "one value",
        rule("stddev", "", "mustBe: 0"),
        _DOUBLES,
        ((1.0, "a"),),
        "skipped",
        ("fewer than two values",),
    ),
    Example("no rows", rule("stddev", "", "mustBe: 0"), _DOUBLES, (), "skipped"),
    *of_numbers("stddev"),
)
