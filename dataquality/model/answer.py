"""An answer to a metric, or why there is none."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

from dq.contracts.types import DataType


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a metric has no answer, in one line. `late`: it took too long, and so would another way."""

    message: str
    late: bool = False


Number = int | float | Decimal
Group = tuple[str | None, ...]
"""The values of the columns that make a group; None is NULL."""
Groups = Mapping[Group, Number | None]
# SCHEMA gives a struct type; a minimum or maximum of no rows gives None.
Value = Number | str | dt.date | DataType | Groups | None
Answer = Value | Failure


def one_number(value: object, giver: str = "the query") -> Number | Failure:
    """What a query or a function gave, when it is a number that can be compared."""
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        shown = "NULL" if value is None else f"a {type(value).__name__}"
        return Failure(f"{giver} gives {shown}; one number is needed")
    return value if math.isfinite(value) else Failure(f"{giver} gives {value}, which is no number")
