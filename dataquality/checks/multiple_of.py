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
from decimal import Decimal
from functools import partial

from dq.contracts.model import Contract, SchemaObject
from dq.contracts.types import physical_type
from dq.dataquality.clauses.clause import Clause, RowTest, asking, of_option, refuse
from dq.dataquality.clauses.kind import CheckKind
from dq.dataquality.model.column import columns
from dq.dataquality.model.predicate import INTEGERS, MultipleOf, Not, Path, Predicate
from dq.dataquality.sql.values import logical, number

_EXACT = INTEGERS | {"decimal"}


def clauses(_contract: Contract, one: SchemaObject) -> Iterator[Clause]:
    for prop, column in columns(one):
        options = prop.logical_type_options
        if options is None or options.multiple_of is None:
            continue
        step = options.multiple_of
        made = of_option("multiple_of", one, prop, column, "multipleOf", f"a multiple of {step:g}")
        if not 1e-18 <= step < 1e18:
            yield refuse(made, f"multipleOf {step:g} is not a number from 1e-18 to 1e18")
            continue
        promised = physical_type(prop)
        exact = promised.name in _EXACT if promised else logical(prop) == "integer"
        exactly = number(int(step) if step.is_integer() else step)
        breaks = column.where(partial(_breaks, exactly, exact))
        yield asking(made, RowTest(breaks, f"are no multiples of {step:g}"))


def _breaks(step: int | Decimal, exact: bool, value: Path) -> Predicate:
    return Not(MultipleOf(Path(value.steps, _EXACT) if exact else value, step))


CHECK = CheckKind("multiple_of", __doc__, clauses)
