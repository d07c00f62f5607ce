"""The number of rows is within the bounds of a `rowCount` rule.

Why: An empty or half-loaded delivery looks fine to every check of a column.
Bad: `metric: rowCount` with `mustBeGreaterThan: 0` on no rows.
Good: The same rule on one row.
Nulls: A row counts whatever is in it.
Mend: Load the missing rows, or correct the bounds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from dq.contracts.model import Contract, SchemaObject
from dq.dataquality.clause import Clause, Unit, of_quality, refuse
from dq.dataquality.kind import CheckKind, Example
from dq.dataquality.library import arguments, metric
from dq.dataquality.operators import Unusable


def clauses(_contract: Contract, one: SchemaObject) -> Iterator[Clause]:
    for quality in one.quality:
        if metric(quality) != "rowCount":
            continue
        made = of_quality("row_count", one, quality, "")
        try:
            arguments(quality)
        except Unusable as error:
            made = refuse(made, str(error))
        if made.unit is Unit.PERCENT:
            made = refuse(made, "a row count in percent is of an earlier count, which is not evaluated")
        yield replace(made, allowed=str(made.threshold) + " rows" if made.threshold else "")


def _rule(operator: str) -> str:
    return f"quality: [{{metric: rowCount, {operator}}}]"


_SOME = (("a",), (None,), ("a",))
EXAMPLES = (
    Example("as many as promised", _rule("mustBe: 3"), "v string", _SOME, "pass", ("3 rows",)),
    Example("none", _rule("mustBeGreaterThan: 0"), "v string", (), "fail", ("0 rows",)),
    Example("at the bound", _rule("mustBeBetween: [1, 3]"), "v string", _SOME, "pass"),
    Example("over the bound", _rule("mustBeLessThan: 3"), "v string", _SOME, "fail"),
    Example("in a forbidden range", _rule("mustNotBeBetween: [3, 4]"), "v string", _SOME, "fail"),
    Example("two operators", _rule("mustBeLessThan: 3, mustBeGreaterThan: 1"), "v string", _SOME, "error"),
    Example("relative", _rule("mustBeLessThan: 3, unit: percent"), "v string", _SOME, "error"),
    Example(
        "where nothing is left",
        "quality: [{metric: rowCount, mustBe: 0, customProperties:"
        " [{property: scope, vendor: dq, value: {where: \"v = 'b'\"}}]}]",
        "v string",
        _SOME,
        "pass",
        ("0 rows",),
    ),
)
CHECK = CheckKind("row_count", __doc__, clauses, EXAMPLES)
