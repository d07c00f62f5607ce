"""Numbers are multiples of `multipleOf`.

Why: A price with a tenth of a cent was computed, not charged.
Bad: `multipleOf: 0.01` and a row with 1.005.
Good: A row with 1.10.
Nulls: NULL does not break it. A float counts as the shortest decimal that names it, to 18 places; NaN, the
infinities and floats from 1e20 on are no multiples.
Mend: Round the value at its source, or correct the step in the contract.
"""

from __future__ import annotations

from collections.abc import Iterator

from dq.contracts.types import physical_type
from dq.dataquality.clauses.clause import Clause, PropertyKeys, RowTest, asking, refuse
from dq.dataquality.clauses.kind import of_properties
from dq.dataquality.model.predicate import INTEGERS, MultipleOf, Not, Path, Predicate
from dq.dataquality.sql_values import logical, number

_EXACT = INTEGERS | {"decimal"}


def clauses(keys: PropertyKeys) -> Iterator[Clause]:
    step = keys.options.multiple_of if keys.options else None
    if step is None:
        return
    made = keys.option("multipleOf", f"a multiple of {step:g}")
    if not 1e-18 <= step < 1e18:
        yield refuse(made, f"multipleOf {step:g} is not a number from 1e-18 to 1e18")
        return
    promised = physical_type(keys.property)
    exact = promised.name in _EXACT if promised else logical(keys.property) == "integer"
    exactly = number(int(step) if step.is_integer() else step)

    def breaks(value: Path) -> Predicate:
        return Not(MultipleOf(Path(value.steps, _EXACT) if exact else value, exactly))

    yield asking(made, RowTest(keys.column.where(breaks), f"are no multiples of {step:g}"))


CHECK = of_properties("multiple_of", __doc__, clauses)
