"""Predicates on lists of values, which `enum` and two library metrics share."""

from __future__ import annotations

from dataclasses import replace

from dq.contracts.model import Property
from dq.dataquality.clause import Clause, refuse
from dq.dataquality.column import Column
from dq.dataquality.comparison import compared, compared_need, may_be_narrow
from dq.dataquality.literal import literal, shown
from dq.dataquality.metric import Proof
from dq.dataquality.operators import Unusable

# Of a long list the reader sees the beginning.
_SHOWN = 10


def one_of(clause: Clause, prop: Property, column: Column, values: list[object]) -> Clause:
    """The clause as "every value is one of these"; NULL in the list is left out, as NULL breaks nothing."""
    given = [value for value in values if value is not None]
    try:
        literals = list(dict.fromkeys(literal(prop, value) for value in given))
    except Unusable as error:
        return refuse(clause, str(error))
    if not literals:
        return refuse(clause, "its list of values is empty")
    names, narrow = in_words(given), may_be_narrow(prop, given)
    return replace(
        clause,
        allowed=clause.allowed or f"one of {names}",
        complaint=f"are not one of {names}",
        breaks=column.rows_where(lambda value: compared(value, literals, narrow, "NOT ({0} IN ({1}))")),
        proof=Proof.VALUES,
        needs=(compared_need(prop, column, given),),
    )


def in_words(values: list[object]) -> str:
    """The first ten values, and how many more there are."""
    more = f" and {len(values) - _SHOWN} more" if len(values) > _SHOWN else ""
    return ", ".join(shown(value) for value in values[:_SHOWN]) + more
