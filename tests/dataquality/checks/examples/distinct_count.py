"""Examples of the check `distinct_count`."""

from __future__ import annotations

from fakes.examples import Example
from fakes.measured_examples import NAN, SOME, TEXTS, of_keys, pair, rule


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
