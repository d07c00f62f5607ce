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

from dq.contracts.types import physical_type
from dq.dataquality.clauses.clause import Clause, PropertyKeys, RowTest, asking
from dq.dataquality.clauses.kind import of_properties
from dq.dataquality.model.column import Column
from dq.dataquality.model.predicate import Compare, Length, Operator


def clauses(keys: PropertyKeys) -> Iterator[Clause]:
    options, column = keys.options, keys.column
    if options and (least := options.min_length) is not None:
        made = keys.option("minLength", f"at least {least} characters")
        yield _counted(made, column, "<", least, "are shorter")
    if options and (most := options.max_length) is not None:
        made = keys.option("maxLength", f"at most {most} characters")
        yield _counted(made, column, ">", most, "are longer")
    # Files hold no length of a `varchar(n)`: only the values can show whether it is kept.
    promised = physical_type(keys.property) if keys.property.physical_type else None
    if promised and promised.name == "varchar" and promised.numbers:
        made = keys.clause("physicalType", f"at most {promised.numbers[0]} characters")
        yield _counted(made, column, ">", promised.numbers[0], "are longer")


def _counted(made: Clause, column: Column, comparison: Operator, bound: int, complaint: str) -> Clause:
    breaks = column.where(lambda value: Compare(Length(value), comparison, bound))
    return asking(made, RowTest(breaks, complaint))


CHECK = of_properties("lengths", __doc__, clauses)
