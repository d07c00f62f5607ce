"""Vectors have the length, numbers and norm that `dimensions`, `elementType` and `normalized` promise.

Why: A vector of another length fails in the index, and one of another norm is silently ranked wrong.
Bad: `logicalType: vector`, `logicalTypeOptions: {dimensions: 3}` and a row with two numbers.
Good: A row with three.
Nulls: NULL instead of a vector passes; NULL and NaN inside a vector are counted in its length
and have no norm. Normalized is a Euclidean norm of 1, give or take 0.001. Spark's type for an element:
float32, float16 and bfloat16 are float, float64 is double, int8 is tinyint, uint8 is smallint or int with
values from 0 to 255, binary is boolean, or a tinyint of 0 or 1.
How to fix: Compute the vectors again with the model that the contract names, or correct the contract.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from dq.dataquality.clauses.clause import CheckParameters, Clause, PropertyKeys, RowTest, refuse, with_test
from dq.dataquality.clauses.kind import AllowedTypes, evaluate_type, property_check, schema_metrics
from dq.dataquality.model.column import Column
from dq.dataquality.model.predicate import (
    NUMBERS,
    Compare,
    Inside,
    IntegerValue,
    Normalized,
    Not,
    Size,
    any_of,
)

# elementType -> Spark types that store it, and the range of integers if the Spark type has a larger one.
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
    if (dimensions := options.dimensions) is not None:
        breaks = column.where(lambda value: Compare(Size(value, NUMBERS | {"boolean"}), "<>", dimensions))
        yield with_test(
            keys.option("dimensions", f"{dimensions} numbers"),
            RowTest(breaks, f"do not have {dimensions} numbers"),
        )
    if options.element_type is not None:
        yield from _elements(keys, options.element_type)
    if options.normalized:
        breaks = column.where(lambda value: Not(Normalized(value, _TOLERANCE)))
        yield with_test(keys.option("normalized", "a norm of 1"), RowTest(breaks, "have a norm other than 1"))


def _elements(keys: PropertyKeys, element_type: str) -> Iterator[Clause]:
    clause = keys.option("elementType", f"numbers of the type {element_type}")
    if element_type not in _ELEMENTS:
        yield refuse(clause, f"elementType {element_type!r} is not one of {', '.join(_ELEMENTS)}")
        return
    types, bounds = _ELEMENTS[element_type]
    item = Column((*keys.column.steps, Inside.ITEM))
    yield with_test(clause, CheckParameters(AllowedTypes(item, types, "elements are {}", "elements are {}")))
    if bounds is not None:
        least, greatest = bounds
        breaks = item.where(
            lambda value: any_of(
                Compare(IntegerValue(value), "<", least), Compare(IntegerValue(value), ">", greatest)
            )
        )
        yield replace(
            clause,
            path=f"{clause.path}.values",
            allowed=f"from {least} to {greatest}",
            test=RowTest(breaks, f"have a number outside {least} to {greatest}"),
        )


CHECK = replace(property_check("vector", __doc__, clauses), metrics=schema_metrics, evaluate=evaluate_type)
