"""A property with `unique: true` has no value twice in the whole table.

Why: A doubled key multiplies the rows of every join.
Bad: `unique: true` on a column that holds the same value in two rows.
Good: Every value once.
Nulls: Rows with NULL repeat nothing. NaN equals NaN, and 0.0 equals -0.0.
Mend: Remove the repeated rows at their source, or remove `unique`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from dq.contracts.model import Contract, SchemaObject
from dq.dataquality.clauses.clause import Clause, Extent, RowScope, UniqueKey, asking, of_property, refuse
from dq.dataquality.clauses.kind import CheckKind, Example
from dq.dataquality.model.column import columns


def clauses(_contract: Contract, one: SchemaObject) -> Iterator[Clause]:
    for prop, column in columns(one):
        if not prop.unique:
            continue
        made = of_property("unique", one, prop, column, "unique", "no value twice")
        made = replace(made, extent=Extent(RowScope.TABLE))
        if column.single:
            yield asking(made, UniqueKey((column,), "repeat a value"))
        else:
            yield refuse(made, "a value inside of an array or map has no row of its own; use uniqueItems")


_ID = "properties: [{name: id, logicalType: string, unique: true}]"
_NUMBER = "properties: [{name: id, logicalType: number, unique: true}]"
_ITEM = "properties: [{name: tags, logicalType: array, items: {logicalType: string, unique: true}}]"
_NAN = float("nan")
EXAMPLES = (
    Example("once each", _ID, "id string", (("a",), ("b",), (None,), (None,)), "pass", ("0 rows",)),
    Example("three alike", _ID, "id string", (("a",), ("a",), ("a",), ("b",)), "fail", ("2 rows",)),
    Example("no rows", _ID, "id string", (), "pass"),
    Example("only NULL", _ID, "id string", ((None,), (None,)), "pass"),
    Example("NaN and zero", _NUMBER, "id double", ((_NAN,), (_NAN,), (0.0,), (-0.0,)), "fail", ("2 rows",)),
    Example("case and composition", _ID, "id string", (("é",), ("e\u0301",), ("É",)), "pass"),
    Example(
        "a field of a struct",
        "properties: [{name: s, logicalType: object,"
        " properties: [{name: n, logicalType: integer, unique: true}]}]",
        "s struct<n: bigint>",
        (((2**63 - 1,),), ((-(2**63),),), ((2**63 - 1,),), ((None,),), ((None,),), (None,), (None,)),
        "fail",
        ("1 row",),
    ),
    Example("items", _ITEM, "tags array<string>", ((["a", "a"],),), "error"),
)
CHECK = CheckKind("unique", __doc__, clauses, EXAMPLES)
