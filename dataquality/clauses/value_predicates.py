"""Predicates on lists of values and on patterns, which several kinds of check share."""

from __future__ import annotations

from dataclasses import replace

from dq.contracts.model import Property
from dq.dataquality.clauses.clause import Clause, RowTest, asking, refuse
from dq.dataquality.model.column import Column
from dq.dataquality.model.predicate import In, Matches, Not
from dq.dataquality.model.term import kind_of
from dq.dataquality.model.threshold import Unusable
from dq.dataquality.sql.java_regex import java
from dq.dataquality.sql.literal import literal, shown

# Of a long list the reader sees the beginning.
_SHOWN = 10


def one_of(clause: Clause, prop: Property, column: Column, values: list[object]) -> Clause:
    """The clause as "every value is one of these"; NULL in the list is left out, as NULL breaks nothing."""
    given = [value for value in values if value is not None]
    try:
        literals = [literal(prop, value) for value in given]
    except Unusable as error:
        return refuse(clause, str(error))
    if not literals:
        return refuse(clause, "its list of values is empty")
    names = in_words(given)
    known = tuple({(kind_of(value), value): value for value in literals}.values())
    breaks = column.where(lambda value: Not(In(value, known)))
    asked = asking(clause, RowTest(breaks, f"are not one of {names}"))
    return replace(asked, allowed=clause.allowed or f"one of {names}")


def in_words(values: list[object]) -> str:
    """The first ten values, and how many more there are."""
    more = f" and {len(values) - _SHOWN} more" if len(values) > _SHOWN else ""
    return ", ".join(shown(value) for value in values[:_SHOWN]) + more


def matching(clause: Clause, column: Column, pattern: str) -> Clause:
    """The clause as "every text holds a match of this ECMA-262 pattern"."""
    try:
        regex = java(pattern)
    except Unusable as error:
        return refuse(clause, str(error))
    breaks = column.where(lambda value: Not(Matches(value, regex.text, regex.longest)))
    return asking(clause, RowTest(breaks, f"do not match {pattern}"))
