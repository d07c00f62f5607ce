"""Vectors have the length, numbers and norm that `dimensions`, `elementType` and `normalized` promise.

Why: A vector of another length fails in the index, and one of another norm is ranked wrong without a word.
Bad: `logicalType: vector`, `logicalTypeOptions: {dimensions: 3}` and a row with two numbers.
Good: A row with three.
Nulls: NULL instead of a vector does not break it; NULL and NaN inside of a vector are counted in its length
and have no norm. Normalized is a Euclidean norm of 1, give or take 0.001. Spark's type for an element:
float32, float16 and bfloat16 are float, float64 is double, int8 is tinyint, uint8 is smallint or int with
values from 0 to 255, binary is boolean, or a tinyint of 0 or 1.
Mend: Make the vectors anew with the model that the contract names, or correct the contract.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from dq.dataquality.clauses.clause import Clause, KindTerms, PropertyKeys, RowTest, asking, refuse
from dq.dataquality.clauses.kind import TypeAsked, judge_type, of_properties, of_schema
from dq.dataquality.model.column import Column
from dq.dataquality.model.predicate import NUMBERS, Compare, Inside, Normalized, Not, Size, Whole, any_of

# elementType -> the types of Spark that hold it, and the range of whole numbers where the type has more.
_ELEMENTS: dict[str, tuple[tuple[str, ...], tuple[int, int] | None]] = {
    "float16": (("float",), None),
    "bfloat16": (("float",), None),
    "float32": (("float",), None),
    "float64": (("double",), None),
    "int8": (("tinyint",), None),
    "uint8": (("smallint", "int"), (0, 255)),
    "binary": (("boolean", "tinyint"), (0, 1)),
}
_TOLERANCE = 0.001


def clauses(keys: PropertyKeys) -> Iterator[Clause]:
    options, column = keys.options, keys.column
    if options is None:
        return
    if (wanted := options.dimensions) is not None:
        breaks = column.where(lambda value: Compare(Size(value, NUMBERS | {"boolean"}), "<>", wanted))
        yield asking(
            keys.option("dimensions", f"{wanted} numbers"), RowTest(breaks, f"have not {wanted} numbers")
        )
    if options.element_type is not None:
        yield from _elements(keys, options.element_type)
    if options.normalized:
        breaks = column.where(lambda value: Not(Normalized(value, _TOLERANCE)))
        yield asking(keys.option("normalized", "a norm of 1"), RowTest(breaks, "have another norm than 1"))


def _elements(keys: PropertyKeys, written: str) -> Iterator[Clause]:
    made = keys.option("elementType", f"numbers of the type {written}")
    if written not in _ELEMENTS:
        yield refuse(made, f"elementType {written!r} is none of {', '.join(_ELEMENTS)}")
        return
    types, bounds = _ELEMENTS[written]
    item = Column((*keys.column.steps, Inside.ITEM))
    yield asking(made, KindTerms(TypeAsked(item, types, "elements are {}", "elements are {}")))
    if bounds is not None:
        least, most = bounds
        breaks = item.where(
            lambda value: any_of(Compare(Whole(value), "<", least), Compare(Whole(value), ">", most))
        )
        yield replace(
            made,
            path=f"{made.path}.values",
            allowed=f"from {least} to {most}",
            ask=RowTest(breaks, f"have a number outside of {least} to {most}"),
        )


CHECK = replace(of_properties("vector", __doc__, clauses), metrics=of_schema, judge=judge_type)
