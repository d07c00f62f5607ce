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
from dataclasses import dataclass, replace

from dq.contracts.model import Contract, Property, SchemaObject
from dq.contracts.shared.outcome import CheckResult, Status
from dq.dataquality.clauses.clause import Clause, KindTerms, RowTest, asking, of_option, refuse, terms_of
from dq.dataquality.clauses.kind import CheckKind, Values, of_schema, result, schema_in
from dq.dataquality.model.column import Column, columns, resolve
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


@dataclass(frozen=True, slots=True)
class Elements:
    """The promised type of a vector's elements."""

    item: Column
    types: tuple[str, ...]


def clauses(_contract: Contract, one: SchemaObject) -> Iterator[Clause]:
    for prop, column in columns(one):
        if prop.logical_type_options is not None:
            yield from _of(one, prop, column)


def _of(one: SchemaObject, prop: Property, column: Column) -> Iterator[Clause]:
    options = prop.logical_type_options
    assert options is not None
    item = Column((*column.steps, Inside.ITEM))
    if options.dimensions is not None:
        wanted = options.dimensions
        made = of_option("vector", one, prop, column, "dimensions", f"{wanted} numbers")
        breaks = column.where(lambda value: Compare(Size(value, NUMBERS | {"boolean"}), "<>", wanted))
        yield asking(made, RowTest(breaks, f"have not {wanted} numbers"))
    if options.element_type is not None:
        yield from _elements(one, prop, column, item, options.element_type)
    if options.normalized:
        made = of_option("vector", one, prop, column, "normalized", "a norm of 1")
        breaks = column.where(lambda value: Not(Normalized(value, _TOLERANCE)))
        yield asking(made, RowTest(breaks, "have another norm than 1"))


def _elements(
    one: SchemaObject, prop: Property, column: Column, item: Column, written: str
) -> Iterator[Clause]:
    made = of_option("vector", one, prop, column, "elementType", f"numbers of the type {written}")
    if written not in _ELEMENTS:
        yield refuse(made, f"elementType {written!r} is none of {', '.join(_ELEMENTS)}")
        return
    types, bounds = _ELEMENTS[written]
    yield asking(made, KindTerms(Elements(item, types)))
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


def judge(clause: Clause, values: Values) -> CheckResult:
    schema, elements = schema_in(values), terms_of(clause, Elements)
    subject = f"{clause.object}.{clause.property}"
    found = resolve(schema, elements.item)
    if isinstance(found, str):
        return result(clause, Status.ERROR, "not measured", f"{subject}: {found}")
    if found.name in elements.types:
        return result(clause, Status.PASS, str(found), f"{subject}: elements are {found}")
    wanted = " or ".join(elements.types)
    message = f"{subject}: elements are {found}; allowed: {clause.allowed}, which Spark keeps as {wanted}"
    return result(clause, Status.FAIL, str(found), message)


CHECK = CheckKind("vector", __doc__, clauses, of_schema, judge)
