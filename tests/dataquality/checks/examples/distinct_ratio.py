"""Examples of the check `distinct_ratio`."""

from __future__ import annotations

from fakes.examples import Example
from fakes.measured_examples import SOME, TEXTS, of_keys, pair, rule


def _of(rest: str, arguments: str = "") -> str:
    return rule("distinctRatio", arguments, rest, "string")


EXAMPLES = (
    Example("kept", _of("mustBeBetween: [0.66, 0.67]"), TEXTS, SOME, "pass", ("0.6666666667",)),
    Example("broken", _of("mustBeGreaterThan: 0.67"), TEXTS, SOME, "fail"),
    Example("percent", _of("mustBeGreaterThan: 66, unit: '%'"), TEXTS, SOME, "pass", ("66.66666667 %",)),
    Example("rows make no ratio", _of("mustBe: 1, unit: rows"), TEXTS, SOME, "error"),
    Example("no rows", _of("mustBe: 1"), TEXTS, (), "skipped", ("no rows for a ratio",)),
    Example("a pair", pair("distinctRatio", "mustBe: 1"), TEXTS, SOME, "pass", ("1",)),
    Example("groups", _of("mustBe: 1", "by: g"), TEXTS, (*SOME, ("x", "a")), "fail", ("1 of 3 groups",)),
    *of_keys("distinctRatio"),
)
