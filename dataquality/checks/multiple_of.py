"""Numbers are multiples of `multipleOf`.

Why: A price with a tenth of a cent was computed, not charged.
Bad: `multipleOf: 0.01` and a row with 1.005.
Good: A row with 1.10.
Nulls: NULL passes. A float counts as the shortest decimal that names it, to 18 places; NaN, the
infinities and floats from 1e20 on are not multiples.
How to fix: Round the value at its source, or correct the step in the contract.
"""

from __future__ import annotations

from collections.abc import Iterator

from dq.contracts.types import physical_type
from dq.dataquality.clauses.clause import Clause, PropertyKeys, RowTest, refuse, with_test
from dq.dataquality.clauses.kind import property_check
from dq.dataquality.model.predicate import INTEGERS, MultipleOf, Not, Path, Predicate
from dq.dataquality.sql_values import logical_type_of, number

_EXACT = INTEGERS | {"decimal"}


def clauses(keys: PropertyKeys) -> Iterator[Clause]:
    step = keys.options.multiple_of if keys.options else None
    if step is None:
        return
    clause = keys.option("multipleOf", f"a multiple of {step:g}")
    if not 1e-18 <= step < 1e18:
        yield refuse(clause, f"multipleOf {step:g} is not a number from 1e-18 to 1e18")
        return
    promised = physical_type(keys.property)
    exact = promised.name in _EXACT if promised else logical_type_of(keys.property) == "integer"
    exactly = number(int(step) if step.is_integer() else step)

    def breaks(value: Path) -> Predicate:
        return Not(MultipleOf(Path(value.steps, _EXACT) if exact else value, exactly))

    yield with_test(clause, RowTest(keys.column.where(breaks), f"are not multiples of {step:g}"))


CHECK = property_check("multiple_of", __doc__, clauses)
