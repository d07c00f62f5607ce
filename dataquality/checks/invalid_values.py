"""The number or share of invalid values is within the bounds of an `invalidValues` rule.

Why: It is the way of ODCS 3.1 to promise a list of values or a form, with room for exceptions.
Bad: `metric: invalidValues` with `mustBe: 0`, `validValues: [kg, lb]`, and a row with `pounds`.
Good: The same rule and rows with `kg`.
Nulls: NULL is neither valid nor invalid: it is not counted. Zero rows make a percentage skipped.
Mend: Correct the values at their source, or the list, pattern or bound.
"""

from __future__ import annotations

from dq.contracts.model import Property, Quality, SchemaObject
from dq.dataquality.clauses.clause import Clause, RowTest, asking
from dq.dataquality.clauses.kind import CheckKind, Example
from dq.dataquality.clauses.quality_rule import arguments, clauses_by, listed, matching, of_quality, one_of
from dq.dataquality.model.column import Column
from dq.dataquality.model.predicate import any_of
from dq.dataquality.model.threshold import Unusable

_CHECK = "invalid_values"


def _clause(one: SchemaObject, quality: Quality, prop: Property, column: Column) -> Clause:
    given = arguments(quality, "validValues", "pattern")
    # ODCS 3.0 had the list on the rule itself.
    values = given.get("validValues", quality.valid_values)
    pattern = given.get("pattern")
    made = of_quality(_CHECK, one, quality, str(column))
    if values is None and pattern is None:
        raise Unusable("it needs the argument 'validValues' or 'pattern'")
    if pattern is not None and not isinstance(pattern, str):
        raise Unusable("the argument 'pattern' must be text")
    parts = []
    if values is not None:
        parts.append(one_of(made, prop, column, listed(values, "validValues")))
    if pattern is not None:
        parts.append(matching(made, column, pattern))
    if len(parts) == 1 or any(part.refused for part in parts):
        return next((part for part in parts if part.refused), parts[0])
    breaks = any_of(*(part.breaks for part in parts if part.breaks is not None))
    return asking(parts[0], RowTest(breaks, "are invalid"))


def _rule(given: str, rest: str = "mustBe: 0") -> str:
    return (
        "properties: [{name: v, logicalType: string, quality: "
        f"[{{metric: invalidValues, arguments: {{{given}}}, {rest}}}]}}]"
    )


_SOME = (("kg",), ("lb",), ("pounds",), (None,))
EXAMPLES = (
    Example("listed", _rule("validValues: [kg, lb]"), "v string", _SOME[:2], "pass", ("0 of 2 rows",)),
    Example("not listed", _rule("validValues: [kg, lb]"), "v string", _SOME, "fail", ("1 of 4 rows",)),
    Example("within", _rule("validValues: [kg]", "mustBeLessThan: 3"), "v string", _SOME, "pass"),
    Example("percent", _rule("validValues: [kg]", "mustBe: 50, unit: percent"), "v string", _SOME, "pass"),
    Example(
        "percent of nothing",
        _rule("validValues: [kg]", "mustBe: 0, unit: percent"),
        "v string",
        (),
        "skipped",
    ),
    Example("pattern", _rule("pattern: '^[a-z]{2}$'"), "v string", _SOME, "fail", ("1 of 4 rows",)),
    Example(
        "both",
        _rule("pattern: '^[a-z]{2}$', validValues: [kg, pounds]"),
        "v string",
        _SOME,
        "fail",
        ("2 of 4 rows",),
    ),
    Example(
        "items of an array",
        "properties: [{name: v, logicalType: array, items: {logicalType: string, quality:"
        " [{metric: invalidValues, arguments: {validValues: [a]}, mustBeLessThan: 2}]}}]",
        "v array<string>",
        ((["a", None],), (["a", "b", "c"],), ([],), (None,)),
        "pass",
        ("1 of 4 rows",),
    ),
    Example("no rows", _rule("validValues: [kg]"), "v string", (), "pass", ("0 of 0 rows",)),
    Example(
        "nothing left of",
        _rule(
            "validValues: [kg]",
            "mustBe: 0, unit: percent,"
            " customProperties: [{property: scope, vendor: dq, value: {where: \"v = 'x'\"}}]",
        ),
        "v string",
        _SOME,
        "skipped",
    ),
    Example("neither", _rule(""), "v string", _SOME, "error"),
    Example(
        "as in ODCS 3.0",
        "properties: [{name: v, logicalType: string,"
        " quality: [{rule: validValues, validValues: [kg], mustBe: 0}]}]",
        "v string",
        _SOME,
        "fail",
        ("2 of 4 rows",),
    ),
)
CHECK = CheckKind(_CHECK, __doc__, clauses_by(_CHECK, "invalidValues", _clause), EXAMPLES)
