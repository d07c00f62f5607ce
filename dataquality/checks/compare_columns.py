"""The rows in which two columns do not compare as a `compareColumns` rule says are within its bounds.

Why: An order that is shipped before it was made, or a net above its gross, shows that a join went wrong.
Bad: `engine: dq`, `implementation: {check: compareColumns, arguments: {operator: ">=", property: ordered}}`
on `shipped`, and a row that was shipped a day too soon.
Good: The same rule, and each row was shipped on its day or later.
Nulls: A row with NULL in one of the columns keeps it. Both columns are numbers, texts, dates, timestamps or
flags; exact numbers are compared exactly, texts byte by byte, NaN equals NaN and stands above every number.
Without an operator such as mustBe, no row may break it; a percentage is of all rows.
Mend: Correct the rows, or the bound.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from dq.contracts.metrics import MEASURES
from dq.contracts.model import Contract, SchemaObject
from dq.dataquality.clauses.clause import Clause, KindTerms, RowTest, asking, terms_of
from dq.dataquality.clauses.kind import Example
from dq.dataquality.clauses.metric_rule import kind_of
from dq.dataquality.clauses.metric_rule import metric_clauses as of_measure
from dq.dataquality.clauses.metrics import ColumnMeasure, MeasureAsked, Question, share
from dq.dataquality.model.metric import count
from dq.dataquality.model.predicate import Compare, Not, Predicate, all_of
from dq.dataquality.model.term import NUMBERS, TEXTS, Path

# The kind of a logical type -> what a column of it may be in the data.
_TYPES = {
    "number": NUMBERS,
    "string": TEXTS,
    "timestamp": frozenset({"timestamp", "timestamp_ntz"}),
}


def breaks(asked: MeasureAsked) -> Predicate:
    """What is true of a row that breaks it; NULL where a value is NULL."""
    types = _TYPES.get(asked.terms.family, frozenset({asked.terms.family}))
    left, right = (Path(column.path.steps, types) for column in asked.columns)
    return Not(Compare(left, asked.terms.comparison, right))  # type: ignore[arg-type]  # one of the operators


def asks(asked: MeasureAsked, where: Predicate | None) -> tuple[Question, ...]:
    return count(all_of(where, breaks(asked))), count(where)


MEASURE = ColumnMeasure(MEASURES["compareColumns"], asks, share)


def clauses(_contract: Contract, one: SchemaObject) -> Iterator[Clause]:
    for clause in of_measure(MEASURE, one):
        if not isinstance(clause.ask, KindTerms):
            yield clause
            continue
        asked = terms_of(clause, MeasureAsked)
        if asked.by or asked.terms.against:
            yield clause
        else:
            left, right = asked.columns
            shown = next(name for name, sign in _SIGNS.items() if sign == asked.terms.comparison)
            yield asking(clause, RowTest(breaks(asked), f"have not {left} {shown} {right}"))


_SIGNS = {"<": "<", "<=": "<=", ">": ">", ">=": ">=", "=": "=", "!=": "<>"}


def _of(
    rest: str = "", arguments: str = 'operator: "<=", property: w', kind: str = "number", other: str = ""
) -> str:
    implementation = f"{{check: compareColumns, arguments: {{{arguments}}}{', ' if rest else ''}{rest}}}"
    return (
        f"properties: [{{name: v, logicalType: {kind}, quality: [{{type: custom, engine: dq, implementation:"
        f" {implementation}}}]}}, {{name: w, logicalType: {other or kind}}},"
        " {name: g, logicalType: string}]"
    )


def _pair(names: str, operator: str = '">="') -> str:
    return (
        "{properties: [{name: v, logicalType: date}, {name: w, logicalType: date}], quality: [{type: custom,"
        f" engine: dq, implementation: {{check: compareColumns, arguments: {{properties: [{names}],"
        f" operator: {operator}}}}}}}]}}"
    )


_DDL, _NAN = "v double, w double, g string", float("nan")
_SOME = ((1.0, 1.0, "a"), (2.0, 1.0, "a"), (None, 1.0, "b"), (1.0, None, None))
_BY = 'operator: "<=", property: w, by: [g]'
EXAMPLES = (
    Example("kept", _of(), _DDL, _SOME[:1], "pass", ("0 of 1 row",)),
    Example("broken", _of(), _DDL, _SOME, "fail", ("1 of 4 rows",)),
    Example(
        "tolerated", _of("mustBeLessThan: 30, unit: percent"), _DDL, _SOME, "pass", ("25 % (1 of 4 rows)",)
    ),
    Example("one is allowed", _of("mustBe: 1, unit: rows"), _DDL, _SOME, "pass"),
    Example("no rows", _of(), _DDL, (), "pass"),
    Example("percent of no rows", _of("mustBe: 0, unit: percent"), _DDL, (), "skipped"),
    Example(
        "NaN above all",
        _of(),
        _DDL,
        ((1.0, _NAN, ""), (_NAN, _NAN, ""), (_NAN, 1.0, "")),
        "fail",
        ("1 of 3 rows",),
    ),
    Example("groups", _of("mustBe: 0", _BY), _DDL, _SOME, "fail", ("1 of 3 groups",)),
    Example(
        "groups, in percent",
        _of("mustBeLessThan: 51, unit: percent", _BY),
        _DDL,
        _SOME,
        "pass",
        ("3 of 3 groups",),
    ),
    Example(
        "an integer and a decimal", _of(other="integer"), "v decimal(38,0), w bigint, g string", (), "pass"
    ),
    Example(
        "texts, byte by byte", _of(kind="string"), "v string, w string, g string", (("Z", "a", ""),), "pass"
    ),
    Example(
        "a date before a text", _of(kind="date", other="string"), "v date, w string, g string", (), "error"
    ),
    Example("a date that is a text in the data", _of(kind="date"), "v date, w string, g string", (), "error"),
    Example("no operator", _of("", "property: w"), _DDL, (), "error"),
    Example("an operator that is none", _of("", 'property: w, operator: "=>"'), _DDL, (), "error"),
    Example("with what?", _of("", 'operator: "<"'), _DDL, (), "error"),
    Example("with what is not there", _of("", 'operator: "<", property: x'), _DDL, (), "error"),
    Example(
        "against no history",
        _of("mustBe: 0", 'operator: "<", property: w, against: previous'),
        _DDL,
        _SOME,
        "skipped",
    ),
    Example("on the object", _pair("v, w"), "v date, w date", (), "pass"),
    Example("three columns", _pair("v, w, v"), "v date, w date", (), "error"),
)
CHECK = replace(kind_of(MEASURE, __doc__, EXAMPLES), clauses=clauses)
