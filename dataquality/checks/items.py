"""Arrays and maps have as many parts as they may, and no item twice where the contract says so.

Why: An order without lines, or a vector of another length, breaks whoever reads it.
The keys are `minItems`, `maxItems`, `uniqueItems`, `minProperties` and `maxProperties`.
Bad: `minItems: 1` and a row with an empty array.
Good: A row with one item.
Nulls: NULL instead of an array does not break it; items that are NULL count, and repeat each other.
Mend: Correct the value at its source, or the bound in the contract.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from dq.contracts.model import Contract, SchemaObject
from dq.dataquality.clause import Clause, of_option
from dq.dataquality.column import columns
from dq.dataquality.kind import CheckKind, Example
from dq.dataquality.metric import Need

# Key -> (attribute, test of a value that breaks it, physical type, allowed, complaint).
_OPTIONS = {
    "minItems": ("min_items", "size({0}) < {1}", "array", "at least {} items", "have fewer items"),
    "maxItems": ("max_items", "size({0}) > {1}", "array", "at most {} items", "have more items"),
    "minProperties": (
        "min_properties",
        "size({0}) < {1}",
        "map",
        "at least {} entries",
        "have fewer entries",
    ),
    "maxProperties": ("max_properties", "size({0}) > {1}", "map", "at most {} entries", "have more entries"),
    "uniqueItems": (
        "unique_items",
        "size(array_distinct({0})) < size({0})",
        "array",
        "no item twice",
        "repeat an item",
    ),
}


def clauses(_contract: Contract, one: SchemaObject) -> Iterator[Clause]:
    for prop, column in columns(one):
        for key, (attribute, test, kind, allowed, complaint) in _OPTIONS.items():
            bound = getattr(prop.logical_type_options, attribute, None)
            if bound is None or bound is False:
                continue
            made = of_option("items", one, prop, column, key, allowed.format(bound))
            breaks = column.rows_where(partial(_breaks, test, bound))
            yield replace(made, complaint=complaint, breaks=breaks, needs=(Need(column, frozenset({kind})),))


def _breaks(test: str, bound: int, value: str) -> str:
    # `size(NULL)` is -1 or NULL, by spark.sql.legacy.sizeOfNull.
    return f"{value} IS NOT NULL AND {test.format(value, bound)}"


def _array(options: str) -> str:
    return (
        "properties: [{name: v, logicalType: array, items: {logicalType: integer},"
        f" logicalTypeOptions: {{{options}}}}}]"
    )


_MAP = (
    "properties: [{name: v, logicalType: map,"
    " map: {key: {logicalType: string}, value: {logicalType: integer}},"
    " logicalTypeOptions: {minProperties: 1}}]"
)
EXAMPLES = (
    Example(
        "within",
        _array("minItems: 1, maxItems: 2"),
        "v array<int>",
        (([1],), ([1, 2],), (None,)),
        "pass pass",
    ),
    Example(
        "outside", _array("minItems: 1, maxItems: 2"), "v array<int>", (([],), ([1, 2, None],)), "fail fail"
    ),
    Example(
        "repeated",
        _array("uniqueItems: true"),
        "v array<int>",
        (([1, 1],), ([None, None],), ([1],)),
        "fail",
        ("2 of 3 rows",),
    ),
    Example("no rows", _array("minItems: 1"), "v array<int>", (), "pass"),
    Example("an empty map", _MAP, "v map<string,int>", (({},), ({"a": 1},)), "fail", ("1 of 2 rows",)),
    Example("no array", _array("minItems: 1"), "v int", ((1,),), "error"),
)
CHECK = CheckKind("items", __doc__, clauses, EXAMPLES)
