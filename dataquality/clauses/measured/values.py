"""What the metrics of numbers share: the questions about one column, and examples that all of them have."""

from __future__ import annotations

from decimal import Decimal

from dq.dataquality.clauses.kind import Example
from dq.dataquality.clauses.measured.found import MeasureAsked
from dq.dataquality.model.metric import Aggregate, aggregate, count
from dq.dataquality.model.predicate import IsNaN, IsNull, Not, Predicate, all_of
from dq.dataquality.model.term import NUMBERS, Path


def value_of(asked: MeasureAsked) -> Path:
    """The column that is measured, as a number."""
    return Path(asked.columns[0].path.steps, NUMBERS)


def of_values(asked: MeasureAsked, name: str, where: Predicate | None) -> Aggregate:
    """An aggregate of the column."""
    return aggregate(name, value_of(asked), where)


def present(asked: MeasureAsked, where: Predicate | None) -> Aggregate:
    """How many rows have a value in every column that is measured."""
    return count(all_of(where, *(Not(IsNull(column.path)) for column in asked.columns)))


def nans(asked: MeasureAsked, where: Predicate | None) -> Aggregate:
    """How many values are NaN."""
    return count(all_of(where, IsNaN(value_of(asked))))


def rule(check: str, arguments: str, rest: str, kind: str = "number", more: str = "") -> str:
    """The contract of an example: a rule on the property `v`, beside a property `g` that may make groups."""
    given = f", arguments: {{{arguments}}}" if arguments else ""
    implementation = f"{{check: {check}{given}{', ' if rest else ''}{rest}}}"
    return (
        f"properties: [{{name: v, logicalType: {kind}, quality:"
        f" [{{type: custom, engine: dq, implementation: {implementation}{more}}}]}},"
        " {name: g, logicalType: string}]"
    )


NAN = float("nan")
_TWO = "v double, g string"
_WHERE = ", customProperties: [{property: scope, vendor: dq, value: {where: \"g = 'a'\"}}]"


def of_numbers(check: str, own: str = "") -> tuple[Example, ...]:
    """What is the same for every metric of numbers."""
    more = f"{own}, " if own else ""
    by = rule(check, f"{more}by: [g]", "mustBeLessThan: 9")
    rows = ((1.0, "a"), (1.0, "a"), (10.0, None), (10.0, None), (None, "b"))
    ends = {"sum": ("fail", "1 of 3 groups"), "stddev": ("pass", "2 of 3 groups")}
    end, seen = ends.get(check, ("fail", "1 of 3 groups"))
    scoped = ((1.0, "a"), (2.0, "a"), (90.0, "b"), (NAN, "b"))
    return (
        Example("NaN is no number", rule(check, own, "mustBe: 1"), _TWO, ((NAN, "a"), (1.0, "a")), "error"),
        Example("an argument that is none", rule(check, f"{more}bye: g", "mustBe: 1"), _TWO, (), "error"),
        Example("no history", rule(check, f"{more}against: previous", "mustBe: 0"), _TWO, rows, "skipped"),
        Example("a scope", rule(check, own, "mustBeLessThan: 4", more=_WHERE), _TWO, scoped, "pass"),
        Example("groups, and NULL is one", by, _TWO, rows, end, (seen,)),
    )


DEC = Decimal
