"""Comparing a column with values of the contract: what it needs, and the test as SQL."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence

from dq.contracts.columns import physical_type
from dq.contracts.model import Property
from dq.contracts.sql import text as sql
from dq.dataquality.column import Column
from dq.dataquality.literal import NUMBERS, TEXTS, civil, logical
from dq.dataquality.metric import Need

_COMPARED = {
    "integer": NUMBERS,
    "number": NUMBERS,
    "string": TEXTS,
    "time": TEXTS,
    "boolean": frozenset({"boolean"}),
    "date": frozenset({"date"}),
}


def compared_need(prop: Property, column: Column, values: Iterable[object]) -> Need:
    """What comparing the column with these values needs: a type that takes no cast that may fail or round."""
    kind = logical(prop)
    types = _COMPARED.get(kind, frozenset())
    if kind == "timestamp":
        types = frozenset({"timestamp_ntz" if civil(prop) else "timestamp"})
    sizes = [sql.digits(value) for value in values if isinstance(value, int | float)]
    before, after = (max((size[at] for size in sizes), default=0) for at in (0, 1))
    return Need(column, types, (before, after))


def may_be_narrow(prop: Property, values: Iterable[object]) -> bool:
    """Whether the column may be a float, and one of these numbers has none that is exactly it.

    Spark compares a float with a number as doubles, where the float nearest to 0.1 is more than 0.1.
    """
    promised = physical_type(prop)
    if (promised is not None and promised.name != "float") or logical(prop) != "number":
        return False
    numbers = (value for value in values if isinstance(value, int | float) and not isinstance(value, bool))
    return any(abs(value) > _LARGEST_FLOAT or _as_float(value) != value for value in numbers)


_LARGEST_FLOAT = 3.4e38


def _as_float(value: float) -> float:
    return float(struct.unpack("f", struct.pack("f", value))[0])


def compared(value: str, literals: Sequence[str], narrow: bool, test: str) -> str:
    """A test of a value against literals, `{0}` and `{1}`; in a column of floats against their floats.

    `typeof` is known when the query is planned, so that one of both is left of it.
    """
    plain = test.format(value, ", ".join(literals))
    if not narrow:
        return plain
    floats = ", ".join(f"CAST({literal} AS FLOAT)" for literal in literals)
    return f"CASE WHEN typeof({value}) = 'float' THEN {test.format(value, floats)} ELSE {plain} END"
