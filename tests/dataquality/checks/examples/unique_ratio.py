"""Examples of the check `unique_ratio`."""

from __future__ import annotations

from fakes.examples import Example
from fakes.measured_examples import SOME, TEXTS, of_keys, pair, rule


def _of(rest: str, arguments: str = "") -> str:
    return rule("uniqueRatio", arguments, rest, "string")


EXAMPLES = (
    Example("kept", _of("mustBeLessThan: 0.34"), TEXTS, SOME, "pass", ("0.3333333333",)),
    Example("broken", _of("mustBe: 1"), TEXTS, SOME, "fail"),
    Example("percent", _of("mustBeGreaterThan: 33, unit: percent"), TEXTS, SOME, "pass", ("33.33333333 %",)),
    Example("no rows", _of("mustBe: 1"), TEXTS, (), "skipped", ("no rows for a ratio",)),
    Example("a pair", pair("uniqueRatio", "mustBe: 1"), TEXTS, SOME, "pass", ("1",)),
    Example("groups", _of("mustBe: 1", "by: g"), TEXTS, (*SOME, ("x", "a")), "fail", ("1 of 3 groups",)),
    *of_keys("uniqueRatio"),
)
