"""The fields of an object that `required` lists have a value wherever the object is there.

Why: A reader that unpacks the object fails on the first one without the field.
Bad: `logicalType: object`, `logicalTypeOptions: {required: [zip]}` and an address whose `zip` is NULL.
Good: Addresses with a `zip`, and rows without any address.
Nulls: NULL in a field breaks it, because a struct has no other way to lack one; NULL instead of the object
does not. In a map (`physicalType: map<…>`) the key must be there, whatever its value. The empty text is a
value.
Mend: Fill the field at its source, or take it off the list.
"""

from __future__ import annotations

from collections.abc import Iterator

from dq.contracts.model import Contract, Property, SchemaObject
from dq.contracts.types import physical_type
from dq.dataquality.clauses.clause import Clause, RowTest, asking, of_option
from dq.dataquality.clauses.kind import CheckKind, Example
from dq.dataquality.model.column import Column, columns
from dq.dataquality.model.predicate import HasKey, Not, Predicate, any_of
from dq.dataquality.model.term import Path


def clauses(_contract: Contract, one: SchemaObject) -> Iterator[Clause]:
    for prop, column in columns(one):
        options = prop.logical_type_options
        if options and options.required:
            made = of_option(
                "required_fields", one, prop, column, "required", f"with {', '.join(options.required)}"
            )
            promised = physical_type(prop)
            if promised is not None and promised.name == "map":
                breaks = _keyed(column, options.required)
            else:
                breaks = _fields(prop, column, options.required)
            yield asking(made, RowTest(breaks, f"lack {' or '.join(options.required)}"))


def _fields(prop: Property, column: Column, names: list[str]) -> Predicate:
    """Listed are names of properties; the data has their physical names."""
    physical = {inner.name: inner.column for inner in prop.properties}
    fields = [Column((*column.steps, physical.get(name, name))) for name in names]
    return any_of(*(field.missing() for field in fields))


def _keyed(column: Column, names: list[str]) -> Predicate:
    def breaks(value: Path) -> Predicate:
        return any_of(*(Not(HasKey(value, name)) for name in names))

    return column.where(breaks)


_PLACE = """
properties:
  - name: place
    logicalType: object
    logicalTypeOptions: {required: [zip, town]}
    properties:
      - {name: zip, logicalType: string}
      - {name: town, physicalName: town_name, logicalType: string}
"""
_STRUCT = "place struct<zip: string, town_name: string>"
_ITEMS = """
properties:
  - name: lines
    logicalType: array
    items:
      logicalType: object
      logicalTypeOptions: {required: [sku]}
      properties: [{name: sku, logicalType: string}]
"""
_MAP = (
    "properties: [{name: v, logicalType: object, physicalType: 'map<string,int>',"
    ' logicalTypeOptions: {required: [a, "it\'s"]}}]'
)
EXAMPLES = (
    Example("all there", _PLACE, _STRUCT, ((("1", ""),), (None,)), "pass", ("0 of 2 rows",)),
    Example("a field is NULL", _PLACE, _STRUCT, ((("1", None),), ((None, None),)), "fail", ("2 of 2 rows",)),
    Example("no rows", _PLACE, _STRUCT, (), "pass", ("0 of 0 rows",)),
    Example("only NULL", _PLACE, _STRUCT, ((None,),), "pass"),
    Example("no such field", _PLACE, "place struct<zip: string>", ((("1",),),), "error"),
    Example(
        "in the items of an array",
        _ITEMS,
        "lines array<struct<sku: string>>",
        (([("a",)],), ([("a",), (None,)],), ([],), ([None],), (None,)),
        "fail",
        ("1 of 5 rows",),
    ),
    Example("keys of a map", _MAP, "v map<string,int>", (({"a": 1, "it's": None},), (None,)), "pass"),
    Example("a key less", _MAP, "v map<string,int>", (({"a": 1},), ({},)), "fail", ("2 of 2 rows",)),
)
CHECK = CheckKind("required_fields", __doc__, clauses, EXAMPLES)
