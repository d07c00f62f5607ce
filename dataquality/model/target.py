"""What keys are looked up in: the columns of another object, and whether the keys can be compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dq.contracts.types import MAX_PRECISION, DataType
from dq.dataquality.model.column import Column, resolve
from dq.dataquality.model.term import FLOATS, INTEGERS, TEXTS


@dataclass(frozen=True, slots=True)
class Target:
    """The columns of an object, by its name, that hold the keys which others refer to.

    Where one of them is `classified`, so is what refers to it.
    """

    object: str
    keys: tuple[Column, ...]
    classified: bool = False

    def __str__(self) -> str:
        shown = ", ".join(str(key) for key in self.keys)
        return f"{self.object}.{shown}" if len(self.keys) == 1 else f"{self.object} ({shown})"


# Types that can be compared without a cast that may fail or round; every other type only with itself.
_FAMILIES = {
    **dict.fromkeys(INTEGERS | {"decimal"}, "exact number"),
    **dict.fromkeys(FLOATS, "float"),
    **dict.fromkeys(TEXTS, "text"),
    **{name: name for name in ("boolean", "date", "timestamp", "timestamp_ntz", "binary")},
}
_DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 20}


def digits(kind: DataType) -> tuple[int, ...]:
    """The precision and the scale that Spark needs for numbers of a type; (0, 0) where they are not exact."""
    return kind.numbers if kind.name == "decimal" else (_DIGITS.get(kind.name, 0), 0)


def incomparable(schema: DataType, keys: Sequence[Column], other: DataType, found: Target) -> str | None:
    """Why keys in data of one schema cannot be looked up in data of the other one, or None."""
    for key, column in zip(keys, found.keys, strict=True):
        here, there = resolve(schema, key), resolve(other, column)
        if isinstance(here, str):
            return here
        if isinstance(there, str):
            return f"in {found.object}: {there}"
        family = _FAMILIES.get(here.name)
        if family is None or family != _FAMILIES.get(there.name) or _too_wide(here, there):
            there_ = f"{found.object}.{column} is {there}"
            return f"column {str(key)!r} is {here} and {there_}; they cannot be compared"
    return None


def _too_wide(*types: DataType) -> bool:
    if all(one.name != "decimal" for one in types):
        return False
    sizes = [digits(one) for one in types]
    # Beyond Spark's largest decimal, a common type of two would round them.
    return max(size[0] - size[1] for size in sizes) + max(size[1] for size in sizes) > MAX_PRECISION
