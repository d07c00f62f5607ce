"""The predicate of a pattern, which `pattern` and `invalidValues` share."""

from __future__ import annotations

from dataclasses import replace

from dq.contracts.sql import text as sql
from dq.dataquality.clause import Clause, refuse
from dq.dataquality.column import Column
from dq.dataquality.literal import TEXTS
from dq.dataquality.metric import Need, Proof
from dq.dataquality.operators import Unusable
from dq.dataquality.regex import java


def matching(clause: Clause, column: Column, pattern: str) -> Clause:
    """The clause as "every text holds a match of this ECMA-262 pattern"."""
    try:
        regex = sql.text(java(pattern))
    except Unusable as error:
        return refuse(clause, str(error))
    return replace(
        clause,
        complaint=f"do not match {pattern}",
        breaks=column.rows_where(lambda value: f"NOT ({value} RLIKE {regex})"),
        proof=Proof.VALUES,
        needs=(Need(column, TEXTS),),
    )
