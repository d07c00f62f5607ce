"""The fields of an object that `required` lists have a value wherever the object is present.

Why: A reader that unpacks the object fails on the first one without the field.
Bad: `logicalType: object`, `logicalTypeOptions: {required: [zip]}` and an address whose `zip` is NULL.
Good: Addresses with a `zip`, and rows without any address.
Nulls: NULL in a field fails, because a struct has no other way to lack one; NULL instead of the object
does not. In a map (`physicalType: map<…>`) the key must be there, whatever its value. The empty text is a
value.
How to fix: Fill the field at its source, or take it off the list.
"""

from __future__ import annotations

from collections.abc import Iterator

from dq.contracts.model import Property
from dq.contracts.types import physical_type
from dq.dataquality.clauses.clause import Clause, PropertyKeys, RowTest, with_test
from dq.dataquality.clauses.kind import property_check
from dq.dataquality.model.column import Column
from dq.dataquality.model.predicate import HasKey, Not, Path, Predicate, any_of


def clauses(keys: PropertyKeys) -> Iterator[Clause]:
    names = keys.options.required if keys.options else None
    if names:
        promised = physical_type(keys.property)
        if promised is not None and promised.name == "map":
            breaks = _lacks_map_keys(keys.column, names)
        else:
            breaks = _fields(keys.property, keys.column, names)
        clause = keys.option("required", f"with {', '.join(names)}")
        yield with_test(clause, RowTest(breaks, f"lack {' or '.join(names)}"))


def _fields(prop: Property, column: Column, names: list[str]) -> Predicate:
    """Return the predicate for missing struct fields; `names` are property names, the data has physical
    names.
    """
    physical = {inner.name: inner.column for inner in prop.properties}
    fields = [Column((*column.steps, physical.get(name, name))) for name in names]
    return any_of(*(field.missing() for field in fields))


def _lacks_map_keys(column: Column, names: list[str]) -> Predicate:
    def breaks(value: Path) -> Predicate:
        return any_of(*(Not(HasKey(value, name)) for name in names))

    return column.where(breaks)


CHECK = property_check("required_fields", __doc__, clauses)
