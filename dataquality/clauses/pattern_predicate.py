"""The predicate of a pattern, which `pattern` and `invalidValues` share."""

from __future__ import annotations

from dataclasses import replace

from dq.dataquality.clauses.clause import Clause, refuse
from dq.dataquality.model.column import Column
from dq.dataquality.model.predicate import Matches, Not
from dq.dataquality.model.threshold import Unusable
from dq.dataquality.sql.java_regex import java


def matching(clause: Clause, column: Column, pattern: str) -> Clause:
    """The clause as "every text holds a match of this ECMA-262 pattern"."""
    try:
        regex = java(pattern)
    except Unusable as error:
        return refuse(clause, str(error))
    return replace(
        clause,
        complaint=f"do not match {pattern}",
        breaks=column.where(lambda value: Not(Matches(value, regex))),
    )
