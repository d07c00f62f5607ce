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
from dq.dataquality.clauses.kind import CheckKind
from dq.dataquality.model.column import Column, columns
from dq.dataquality.model.predicate import HasKey, Not, Path, Predicate, any_of


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


CHECK = CheckKind("required_fields", __doc__, clauses)
