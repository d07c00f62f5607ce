"""The number or share of missing values is within the bounds of a `missingValues` rule.

Why: `N/A` and the empty text are gaps that a NULL check does not see.
Bad: `metric: missingValues` with `mustBe: 0`, `missingValues: ['N/A']`, and a row with `N/A`.
Good: The same rule and no such row.
Nulls: NULL is missing, whether it is listed or not. Zero rows make a percentage skipped.
Mend: Fill the values at their source, or correct the bound or the list.
"""

from __future__ import annotations

from dq.contracts.model import Property, Quality, SchemaObject
from dq.dataquality.clauses.clause import Clause
from dq.dataquality.clauses.kind import CheckKind, Example
from dq.dataquality.clauses.quality_rule import arguments, clauses_by, counting, listed
from dq.dataquality.model.column import Column
from dq.dataquality.model.predicate import In, any_of
from dq.dataquality.sql.values import literal

_CHECK = "missing_values"


def _clause(one: SchemaObject, quality: Quality, prop: Property, column: Column) -> Clause:
    given = listed(arguments(quality, "missingValues").get("missingValues", [None]), "missingValues")
    literals = tuple(literal(prop, value) for value in given if value is not None)
    gap = column.missing()
    breaks = any_of(gap, column.where(lambda value: In(value, literals))) if literals else gap
    return counting(_CHECK, one, quality, column, "are missing", breaks)


def _rule(values: str, rest: str = "mustBe: 0", kind: str = "string") -> str:
    return (
        f"properties: [{{name: v, logicalType: {kind}, quality: "
        f"[{{metric: missingValues, arguments: {{missingValues: [{values}]}}, {rest}}}]}}]"
    )


_SOME = (("a",), ("",), ("N/A",), (None,))
EXAMPLES = (
    Example("none", _rule("null, 'N/A'"), "v string", (("a",), ("n/a",)), "pass", ("0 of 2 rows",)),
    Example("texts and NULL", _rule("null, '', 'N/A'"), "v string", _SOME, "fail", ("3 of 4 rows",)),
    Example("NULL unlisted", _rule("'N/A'"), "v string", _SOME, "fail", ("2 of 4 rows",)),
    Example("numbers", _rule("-999", kind="integer"), "v int", ((-999,), (1,)), "fail", ("1 of 2 rows",)),
    Example("percent", _rule("''", "mustBe: 50, unit: percent"), "v string", _SOME, "pass"),
    Example("percent of nothing", _rule("''", "mustBe: 0, unit: percent"), "v string", (), "skipped"),
    Example(
        "floats and NaN",
        _rule("-99.9", kind="number"),
        "v float",
        ((-99.9,), (float("nan"),), (99.9,)),
        "fail",
        ("1 of 3 rows",),
    ),
    Example(
        "items of an array",
        "properties: [{name: v, logicalType: array, items: {logicalType: string, quality:"
        " [{metric: missingValues, arguments: {missingValues: ['']}, mustBe: 0}]}}]",
        "v array<string>",
        ((["a", ""],), ([None],), (["a"],), ([],), (None,)),
        "fail",
        ("2 of 5 rows",),
    ),
    Example("text in a number", _rule("'N/A'", kind="integer"), "v int", ((1,),), "error"),
)
CHECK = CheckKind(_CHECK, __doc__, clauses_by(_CHECK, "missingValues", _clause), EXAMPLES)
