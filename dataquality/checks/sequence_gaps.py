"""The number of values that are missing from a sequence is within the bounds of a `sequenceGaps` rule.

Why: Invoice 1017 after invoice 1015 is a lost invoice, and a calendar without a day a lost day; no test of
single rows sees what is not there.
Bad: `engine: dq`, `implementation: {check: sequenceGaps, mustBe: 0}`, and the numbers 1, 2 and 4.
Good: The same rule, and the numbers 1, 2, 2 and 3.
Nulls: NULL is left out. Expected is every whole number, or day of a date, from the least value to the
greatest; with `step`, every so many from `start` (by default 0, or 1970-01-01), and a value that is none of
these fills nothing. Of no values nothing is missing. In percent it is a share of what is expected.
Mend: Load what is missing, or correct the step or the bound.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence

from dq.contracts.metrics import MEASURES
from dq.dataquality.clauses.kind import Example
from dq.dataquality.clauses.metric_rule import kind_of
from dq.dataquality.clauses.metrics import ColumnMeasure, Found, MeasureAsked, Question, Share, integer, rule
from dq.dataquality.model.answer import Value
from dq.dataquality.model.metric import DistinctKeys, aggregate
from dq.dataquality.model.predicate import In, Predicate, all_of
from dq.dataquality.model.term import INTEGERS, Path, Remainder, Since1970, Term


def asks(asked: MeasureAsked, where: Predicate | None) -> tuple[Question, ...]:
    column = asked.columns[0].path
    value: Term = Since1970(column, "date") if asked.terms.dated else Path(column.steps, INTEGERS)
    present = DistinctKeys(asked.columns, all_of(where, _expected(asked, value)))
    return aggregate("min", value, where), aggregate("max", value, where), present


def _expected(asked: MeasureAsked, value: Term) -> Predicate | None:
    """Whether a value is one of the sequence; a remainder has the sign of its number."""
    step = asked.terms.step
    if step == 1:
        return None
    rest = asked.terms.start % step
    return In(Remainder(value, step), (rest, rest - step) if rest else (0,))


def number(asked: MeasureAsked, answers: Sequence[Value]) -> Found:
    least, greatest, present = answers
    if least is None or greatest is None:
        return Share(0, 0)
    step, start = asked.terms.step, asked.terms.start
    first, last = -((start - integer(least)) // step), (integer(greatest) - start) // step
    expected = max(last - first + 1, 0)
    return Share(expected - integer(present), expected)


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
MEASURE = ColumnMeasure(MEASURES["sequenceGaps"], asks, number)
CHECK = kind_of(MEASURE, __doc__, EXAMPLES)
