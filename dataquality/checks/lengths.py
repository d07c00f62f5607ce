"""Texts are as long as `minLength` and `maxLength` allow, and as a `varchar(n)` promises.

Why: A text that is too long is cut, or refused, by the next system.
Bad: `maxLength: 2` and a row with `DEU`.
Good: A row with `DE`.
Nulls: NULL passes; the empty text has length 0. Length counts Unicode code points, as JSON
Schema does: an emoji is one, a letter with a combining accent is two.
How to fix: Correct the value at its source, or the length in the contract.
"""

from __future__ import annotations

from collections.abc import Iterator

from dq.contracts.types import physical_type
from dq.dataquality.clauses.clause import Clause, PropertyKeys, RowTest, with_test
from dq.dataquality.clauses.kind import property_check
from dq.dataquality.model.column import Column
from dq.dataquality.model.predicate import Compare, Length, Operator


def clauses(keys: PropertyKeys) -> Iterator[Clause]:
    options, column = keys.options, keys.column
    if options and (least := options.min_length) is not None:
        clause = keys.option("minLength", f"at least {least} characters")
        yield _length_clause(clause, column, "<", least, "are shorter")
    if options and (greatest := options.max_length) is not None:
        clause = keys.option("maxLength", f"at most {greatest} characters")
        yield _length_clause(clause, column, ">", greatest, "are longer")
    # Files do not store the length of a `varchar(n)`, so the values are tested.
    promised = physical_type(keys.property) if keys.property.physical_type else None
    if promised and promised.name == "varchar" and promised.numbers:
        clause = keys.clause("physicalType", f"at most {promised.numbers[0]} characters")
        yield _length_clause(clause, column, ">", promised.numbers[0], "are longer")


def _length_clause(
    clause: Clause, column: Column, comparison: Operator, bound: int, complaint: str
) -> Clause:
    breaks = column.where(lambda value: Compare(Length(value), comparison, bound))
    return with_test(clause, RowTest(breaks, complaint))


CHECK = property_check("lengths", __doc__, clauses)
