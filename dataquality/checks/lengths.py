"""Texts are as long as `minLength` and `maxLength` allow, and as a `varchar(n)` promises.

Why: A text that is too long is cut, or refused, by the next system.
Bad: `maxLength: 2` and a row with `DEU`.
Good: A row with `DE`.
Nulls: NULL does not break it; the empty text has length 0. Length counts Unicode code points, as JSON
Schema does: an emoji is one, a letter with a combining accent is two.
Mend: Correct the value at its source, or the length in the contract.
"""

from __future__ import annotations

from collections.abc import Iterator

from dq.contracts.model import Contract, Property, SchemaObject
from dq.contracts.types import physical_type
from dq.dataquality.clauses.clause import Clause, RowTest, asking, of_option, of_property
from dq.dataquality.clauses.kind import CheckKind
from dq.dataquality.model.column import Column, columns
from dq.dataquality.model.predicate import Compare, Length, Operator


def clauses(_contract: Contract, one: SchemaObject) -> Iterator[Clause]:
    for prop, column in columns(one):
        options = prop.logical_type_options
        if options and options.min_length is not None:
            made = of_option(
                "lengths", one, prop, column, "minLength", f"at least {options.min_length} characters"
            )
            yield _counted(made, column, "<", options.min_length, "are shorter")
        if options and options.max_length is not None:
            made = of_option(
                "lengths", one, prop, column, "maxLength", f"at most {options.max_length} characters"
            )
            yield _counted(made, column, ">", options.max_length, "are longer")
        yield from _promised(one, prop, column)


def _promised(one: SchemaObject, prop: Property, column: Column) -> Iterator[Clause]:
    """`varchar(n)`: files hold no length, so that only the values can show whether it is kept."""
    promised = physical_type(prop) if prop.physical_type else None
    if promised and promised.name == "varchar" and promised.numbers:
        most = promised.numbers[0]
        made = of_property("lengths", one, prop, column, "physicalType", f"at most {most} characters")
        yield _counted(made, column, ">", most, "are longer")


def _counted(made: Clause, column: Column, comparison: Operator, bound: int, complaint: str) -> Clause:
    breaks = column.where(lambda value: Compare(Length(value), comparison, bound))
    return asking(made, RowTest(breaks, complaint))


CHECK = CheckKind("lengths", __doc__, clauses)
