"""Keys as numbers of 64 bits: the value itself where it is one number, a hash of the key else.

Two equal keys have the same code. Of numbers the reverse is true as well, so that counting codes counts keys;
hashes that differ prove that the keys do, and those that do not prove nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from dq.contracts.types import DataType
from dq.dataquality.model.term import INTEGERS

_NUMBERS = INTEGERS | {"date", "boolean"}
# The finalizer of splitmix64, by Sebastiano Vigna: a one-to-one map that spreads every bit over all.
_STEP = 0x9E3779B97F4A7C15
_ROUNDS = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB))


@dataclass(frozen=True, slots=True)
class Keys:
    """The different keys of some files, those with a NULL left out, as a `Codes`."""

    columns: tuple[str, ...]

    def sound(self, types: Mapping[str, DataType]) -> bool:
        """Whether all columns have types whose values are equal when their bytes are."""
        kinds = [types[name].name if name in types else "" for name in self.columns]
        return all(kind in _NUMBERS or kind in ("string", "decimal") for kind in kinds)

    def exact(self, types: Mapping[str, DataType]) -> bool:
        """Whether different keys have different codes."""
        return len(self.columns) == 1 and types[self.columns[0]].name in _NUMBERS


@dataclass(frozen=True, slots=True)
class Codes:
    """How many rows have a key, and the codes of their keys, each once, ascending, as Arrow's int64."""

    rows: int
    codes: Any


def coded(columns: Sequence[Any]) -> Any:
    """The codes of the rows without a NULL in one of these columns, arrays of Arrow, as int64."""
    import pyarrow as pa
    import pyarrow.compute as pc

    columns = present(columns)
    first, *more = map(_code, columns)
    if not more and _numeric(columns[0]):
        return first.view(pa.int64())
    mixed = _mixed(first)
    for code in more:
        # Not the same for (a, b) and (b, a), nor for (a, a) of any a.
        mixed = _mixed(pc.bit_wise_xor(pc.multiply(mixed, _whole(_STEP)), _mixed(code)))
    return mixed.view(pa.int64())


def present(columns: Sequence[Any]) -> list[Any]:
    """The columns, arrays of Arrow, without the rows in which any of them is NULL."""
    import pyarrow.compute as pc

    sound = None
    for column in columns:
        if column.null_count:
            valid = column.is_valid()
            sound = valid if sound is None else pc.and_(sound, valid)
    return list(columns) if sound is None else [column.filter(sound) for column in columns]


def run_of(parts: Sequence[Any]) -> Codes:
    """The run of these arrays of codes together."""
    import pyarrow as pa
    import pyarrow.compute as pc

    together = pa.chunked_array(parts, pa.int64())
    different = together.unique()
    return Codes(len(together), different.take(pc.sort_indices(different)))


def _numeric(column: Any) -> bool:
    import pyarrow.types as at

    return any(is_one(column.type) for is_one in (at.is_integer, at.is_date32, at.is_boolean))


def _code(column: Any) -> Any:
    """Of each value a number of 64 bits without a sign."""
    import pyarrow as pa
    import pyarrow.types as at

    if at.is_date32(column.type):
        column = column.view(pa.int32())
    if _numeric(column):
        return column.cast(pa.int64()).view(pa.uint64())
    names = column.dictionary_encode()
    texts = (str(value).encode("utf-8", "surrogatepass") for value in names.dictionary.to_pylist())
    hashes = [int.from_bytes(blake2b(text, digest_size=8).digest()) for text in texts]
    return pa.array(hashes, pa.uint64()).take(names.indices)


def _mixed(code: Any) -> Any:
    import pyarrow.compute as pc

    code = pc.add(code, _whole(_STEP))
    for bits, factor in _ROUNDS:
        code = pc.multiply(pc.bit_wise_xor(code, pc.shift_right(code, _whole(bits))), _whole(factor))
    return pc.bit_wise_xor(code, pc.shift_right(code, _whole(31)))


def _whole(number: int) -> Any:
    import pyarrow as pa

    return pa.scalar(number, pa.uint64())
