"""Examples of the check `sequence_gaps`."""

from __future__ import annotations

import datetime as dt

from fakes.examples import Example
from fakes.measured_examples import rule


def _of(rest: str, arguments: str = "", kind: str = "integer") -> str:
    return rule("sequenceGaps", arguments, rest, kind)


_INTS = "v bigint, g string"
_SOME = ((1, "a"), (2, "b"), (2, "a"), (4, "a"), (None, "b"))
_DAYS = tuple((dt.date(*day), "a") for day in ((2026, 2, 26), (2026, 2, 28), (2026, 3, 1)))
EXAMPLES = (
    Example("one is missing", _of("mustBe: 0"), _INTS, _SOME, "fail", ("1",)),
    Example("none is missing", _of("mustBe: 0"), _INTS, _SOME[:3], "pass", ("0",)),
    Example("percent of four", _of("mustBe: 25, unit: percent"), _INTS, _SOME, "pass", ("25 %",)),
    Example("no rows", _of("mustBe: 0"), _INTS, (), "pass", ("0",)),
    Example("percent of nothing", _of("mustBe: 0, unit: percent"), _INTS, (), "skipped"),
    Example("a day of February", _of("mustBe: 0", "", "date"), "v date, g string", _DAYS, "fail", ("1",)),
    Example(
        "every other day",
        _of("mustBe: 0", "step: 2, start: 2026-02-26", "date"),
        "v date, g string",
        (*_DAYS, (dt.date(2026, 3, 2), "b")),
        "pass",
        ("0",),
    ),
    Example(
        "steps of ten", _of("mustBe: 1", "step: 10"), _INTS, ((0, "a"), (5, "a"), (20, "a")), "pass", ("1",)
    ),
    Example(
        "steps from five",
        _of("mustBe: 0", "step: 10, start: 5"),
        _INTS,
        ((-15, "a"), (-5, "a"), (5, "b"), (15, "b")),
        "pass",
        ("0",),
    ),
    Example(
        "what fills nothing",
        _of("mustBe: 0", "step: 10"),
        _INTS,
        ((5, "a"), (15, "a"), (25, "a")),
        "fail",
        ("2",),
    ),
    Example(
        "from end to end",
        _of("mustBe: 18446744073709551614"),
        _INTS,
        ((-(2**63), "a"), (2**63 - 1, "a")),
        "pass",
        ("18,446,744,073,709,551,614",),
    ),
    Example("groups", _of("mustBe: 0", "by: g"), _INTS, _SOME, "fail", ("1 of 2 groups",)),
    Example("a step of zero", _of("mustBe: 0", "step: 0"), _INTS, _SOME, "error"),
    Example("a start that is no number", _of("mustBe: 0", "start: first"), _INTS, _SOME, "error"),
    Example("a number that is not whole", _of("mustBe: 0"), "v double, g string", ((1.5, "a"),), "error"),
)
