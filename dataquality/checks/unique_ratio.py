"""The share of rows whose value stands once is within the bounds of a `uniqueRatio` rule.

Why: Some repetition is tolerable; `distinctRatio` does not tell ten values twice from one value ten times.
Bad: `engine: dq`, `implementation: {check: uniqueRatio, mustBeGreaterThan: 0.9}`, and half of them repeat.
Good: The same rule, and nearly every value stands once.
Nulls: Of the rows that have a value, those count whose value no other row has. NULL is no value, and a key of
several columns counts where all of them have one; where there is none, the rule is skipped. With
`unit: percent` the bound is in percent. It shares the pass of the different values.
Mend: Remove the repeated rows at their source, or correct the bound.
"""

from __future__ import annotations

from dq.contracts.metrics import MEASURES
from dq.dataquality.clauses.kind import Example
from dq.dataquality.clauses.metric_rule import kind_of
from dq.dataquality.clauses.metrics import (
    SOME,
    TEXTS,
    ColumnMeasure,
    MeasureAsked,
    Question,
    of_keys,
    pair,
    present,
    rule,
    share,
)
from dq.dataquality.model.metric import SingleKeys
from dq.dataquality.model.predicate import Predicate


def asks(asked: MeasureAsked, where: Predicate | None) -> tuple[Question, ...]:
    return SingleKeys(asked.columns, where), present(asked, where)


def _of(rest: str, arguments: str = "") -> str:
    return rule("uniqueRatio", arguments, rest, "string")


EXAMPLES = (
    Example("kept", _of("mustBeLessThan: 0.34"), TEXTS, SOME, "pass", ("0.3333333333",)),
    Example("broken", _of("mustBe: 1"), TEXTS, SOME, "fail"),
    Example("percent", _of("mustBeGreaterThan: 33, unit: percent"), TEXTS, SOME, "pass", ("33.33333333 %",)),
    Example("no rows", _of("mustBe: 1"), TEXTS, (), "skipped", ("nothing to take a share of",)),
    Example("a pair", pair("uniqueRatio", "mustBe: 1"), TEXTS, SOME, "pass", ("1",)),
    Example("groups", _of("mustBe: 1", "by: g"), TEXTS, (*SOME, ("x", "a")), "fail", ("1 of 3 groups",)),
    *of_keys("uniqueRatio"),
)
MEASURE = ColumnMeasure(MEASURES["uniqueRatio"], asks, share)
CHECK = kind_of(MEASURE, __doc__, EXAMPLES)
