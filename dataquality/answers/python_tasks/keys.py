"""Keys as numbers, counted file by file and exchanged where they may stand in two."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import TYPE_CHECKING, Any
from zlib import crc32

from dq.contracts.types import DataType
from dq.dataquality.answers.statistics.facts import Facts, File
from dq.dataquality.model.column import Column
from dq.dataquality.model.predicate import INTEGERS

if TYPE_CHECKING:
    import numpy as np


# Keys as numbers of 64 bits: the value itself where it is one number, a hash of the key else.
#
# Two equal keys have the same code. Of numbers the reverse is true as well, so that counting codes counts
# keys;
# hashes that differ prove that the keys do, and those that do not prove nothing.

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


# Which keys may stand in two files, as the bounds of the files tell; all others are counted file by file.

# A task holds the keys that stand in its file alone: so many rows of two long integers are 160 MB.
MOST_ROWS = 10_000_000

Span = tuple[Any, Any]


@dataclass(frozen=True, slots=True)
class Overlaps:
    """A key may stand in two files where its `column` has a value within one of the ranges, ends included.

    The ranges are sorted and apart. Without a column, any key may.
    """

    column: str = ""
    ranges: tuple[Span, ...] = ()


ANYWHERE = Overlaps()


def overlaps(files: Sequence[File], key: Sequence[Column]) -> Overlaps:
    """Told by that column of the key by which the fewest rows may have such a value.

    Tables that are sorted and cut into files share the value at each cut, and no other one.
    """
    if any(file.rows > MOST_ROWS for file in files):
        return ANYWHERE
    told = [made for column in key if (made := _by(column, files)) is not None]
    return min(told, key=lambda made: made[0])[1] if told else ANYWHERE


def near(ranges: Sequence[Span], least: Any, greatest: Any) -> Sequence[Span]:
    """Those of sorted ranges that have a value between these two, ends included."""
    begin = bisect_left(ranges, least, key=lambda span: span[1])
    return ranges[begin : bisect_right(ranges, greatest, key=lambda span: span[0])]


def _by(column: Column, files: Sequence[File]) -> tuple[int, Overlaps] | None:
    """About how many rows may have such a value, and where; None where some file's bounds are not known."""
    spans: list[tuple[Any, Any, int]] = []
    for file in files:
        facts = file.of(column)
        # Rows with a NULL in the key repeat nothing.
        if facts.nulls == file.rows:
            continue
        ends = _ends(facts)
        if ends is None:
            return None
        spans.append((*ends, file.rows))
    spans.sort(key=lambda span: span[0])
    ranges = _shared(spans)
    rows = sum(
        rows
        for least, greatest, rows in spans
        if any(low < high or least == greatest for low, high in near(ranges, least, greatest))
    )
    return rows, Overlaps(str(column.steps[0]), tuple(ranges))


def _shared(spans: Sequence[tuple[Any, Any, int]]) -> list[Span]:
    """Where two or more of these spans lie, which are sorted by their beginnings."""
    ranges: list[Span] = []
    reach: Any = None
    for number, (least, greatest, _) in enumerate(spans):
        if number and least <= reach:
            end = min(reach, greatest)
            if ranges and least <= ranges[-1][1]:
                ranges[-1] = ranges[-1][0], max(ranges[-1][1], end)
            else:
                ranges.append((least, end))
        reach = max(reach, greatest) if number else greatest
    return ranges


def _ends(facts: Facts) -> Span | None:
    if facts.least is not None and facts.greatest is not None:
        return facts.least, facts.greatest
    if facts.values is not None and len(facts.values) == 1:
        (value,) = facts.values
        return value, value
    return None


# Different keys, as tasks hold them, exchange them by hash, and count them.
#
# What travels are the keys themselves, or an image of them from which they could be computed: no two keys
# are
# ever taken for one. The hash says only in which bucket a key is counted.

KeyRun = Any
"""Of one column of whole numbers their images, an array of uint64; else a table of Arrow, without NULL."""
# Rows of keys that a task holds before it looks for the different ones, and their bytes.
MOST_HELD, _MOST_BYTES = 2_000_000, 100_000_000
# Odd, so that the product modulo 2**64 is another one for each number. It is 2**64 over the golden ratio:
# neighbours come to lie far from each other (Knuth, volume 3, 6.4), and a bucket can be a part of the range.
_SPREAD = 0x9E3779B97F4A7C15
# A batch is compared with so many ranges at most; of more, with the one that holds them all.
_MOST_RANGES = 8


@dataclass(slots=True)
class KeyTally:
    """Keys that were seen; of those that repeat, few are held twice."""

    most: int = MOST_HELD
    held: list[KeyRun] = field(default_factory=list)
    rows: int = 0
    size: int = 0
    different: int = 0

    def add(self, keys: KeyRun) -> None:
        """Some keys more."""
        self.held.append(keys)
        self.rows += len(keys)
        self.size += keys.nbytes
        # A tally of many different keys is not searched anew for every few more.
        if self.full and self.rows > 2 * self.different:
            self._settle()

    @property
    def full(self) -> bool:
        """Whether it holds more than it should, which only another task can thin out."""
        return self.rows > self.most or self.size > _MOST_BYTES

    def taken(self) -> KeyRun | None:
        """All different keys, which it forgets; None without any."""
        if not self.held:
            return None
        self._settle()
        (keys,) = self.held
        self.held, self.rows, self.size, self.different = [], 0, 0, 0
        return keys

    def _settle(self) -> None:
        keys = _different(self.held)
        self.held, self.rows, self.size, self.different = [keys], len(keys), keys.nbytes, len(keys)


@dataclass(slots=True)
class KeysOfFile:
    """Keys that other files may have, too, how many rows have one, and the keys of this file alone."""

    shared: KeyTally
    rows: int = 0
    own: list[list[Any]] = field(default_factory=list)

    def add(self, names: Sequence[str], columns: Sequence[Any], overlaps: Overlaps) -> None:
        """The keys of some rows more: a name and an Arrow array for each column."""
        import pyarrow.compute as pc

        keys = present(columns)
        if overlaps.column and len(keys[0]):
            shared = _within(keys[names.index(overlaps.column)], overlaps)
            if shared is None:
                self.own.append(keys)
                return
            self.own.append([key.filter(pc.invert(shared)) for key in keys])
            keys = [key.filter(shared) for key in keys]
        self.rows += len(keys[0])
        self.shared.add(_keys(keys))

    def repeated(self) -> int:
        """How many rows repeat the key of another one, plus all rows whose keys are not this file's alone."""
        import pyarrow as pa

        if not self.own:
            return self.rows
        keys = [pa.chunked_array(chunks).combine_chunks() for chunks in zip(*self.own, strict=True)]
        if len(keys[0]) < 2 or _increasing(keys):
            return self.rows
        return self.rows + len(keys[0]) - len(_different([_table(keys)]))


def _keys(columns: Sequence[Any]) -> KeyRun:
    number = _numbers(columns[0]) if len(columns) == 1 else None
    return _table(columns) if number is None else number * number.dtype.type(_SPREAD)


def _table(columns: Sequence[Any]) -> Any:
    import pyarrow as pa

    return pa.table(list(columns), [str(at) for at in range(len(columns))])


def _within(values: Any, overlaps: Overlaps) -> Any:
    """Which values lie in one of the ranges; None where none does."""
    import pyarrow as pa
    import pyarrow.compute as pc

    least, greatest = (found.as_py() for found in pc.min_max(values).values())
    ranges = near(overlaps.ranges, least, greatest)
    if len(ranges) > _MOST_RANGES:
        ranges = [(ranges[0][0], ranges[-1][1])]
    found = None
    for span in ranges:
        low, high = (pa.scalar(end, values.type) for end in span)
        inside = pc.and_(pc.greater_equal(values, low), pc.less_equal(values, high))
        found = inside if found is None else pc.or_(found, inside)
    return found


def _increasing(keys: list[Any]) -> bool:
    """Whether every key is greater than the one before it: sorted data, the usual case, has none twice."""
    import pyarrow.compute as pc

    found = None
    for key in reversed(keys):
        before, after = key[:-1], key[1:]
        less = pc.less(before, after)
        found = less if found is None else pc.or_(less, pc.and_(pc.equal(before, after), found))
    return bool(pc.all(found).as_py())


def cut(keys: KeyRun, buckets: int) -> Iterator[tuple[int, KeyRun]]:
    """The keys by bucket, the same bucket for the same key in any task."""
    import numpy as np

    if isinstance(keys, np.ndarray):
        # They are sorted: a bucket is a part of the range.
        begins = [-(-(number << 64) // buckets) for number in range(1, buckets)]
        found = np.searchsorted(keys, np.array(begins, np.uint64))
        yield from ((at, part) for at, part in enumerate(np.split(keys, found)) if len(part))
        return
    at = _hashes(keys) % np.uint64(buckets)
    order = np.argsort(at, kind="stable")
    ends = np.cumsum(np.bincount(at.astype(np.int64), minlength=buckets))
    for bucket, rows in enumerate(np.split(order, ends[:-1])):
        if len(rows):
            # A slice would be pickled with all that it is a part of.
            yield bucket, keys.take(rows)


def _different(held: Sequence[KeyRun]) -> KeyRun:
    """The different ones; numbers come sorted."""
    import numpy as np
    import pyarrow as pa

    if not isinstance(held[0], np.ndarray):
        table = pa.concat_tables(held)
        return table.group_by(table.column_names, use_threads=False).aggregate([])
    keys = np.concatenate(held)
    # numpy.unique takes forty times as long as sorting does (2.4, a million numbers).
    keys.sort()
    first = np.ones(len(keys), bool)
    np.not_equal(keys[1:], keys[:-1], out=first[1:])
    return keys[first]


def _numbers(column: Any) -> np.ndarray[Any, np.dtype[np.uint64]] | None:
    """Whole numbers of at most 64 bits as such; None for other types."""
    import numpy as np
    import pyarrow as pa

    if pa.types.is_date32(column.type):
        column = column.view(pa.int32())
    if not pa.types.is_integer(column.type) and not pa.types.is_boolean(column.type):
        return None
    return np.asarray(column.cast(pa.int64()).to_numpy(zero_copy_only=False)).view(np.uint64)


def _hashes(table: Any) -> np.ndarray[Any, np.dtype[np.uint64]]:
    """A number for each row, equal for equal rows."""
    import numpy as np

    spread = np.uint64(_SPREAD)
    found = np.zeros(len(table), np.uint64)
    for column in table.columns:
        whole = column.combine_chunks()
        numbers = _numbers(whole)
        if numbers is None:
            numbers = np.fromiter(map(crc32, _bytes(whole)), np.uint64, len(whole))
        found = (found ^ numbers) * spread
        found ^= found >> np.uint64(32)
    return found


def _bytes(column: Any) -> Iterable[bytes]:
    import pyarrow as pa

    kind = pa.binary(column.type.byte_width) if pa.types.is_decimal(column.type) else pa.binary()
    return column.view(kind).to_pylist()  # type: ignore[no-any-return]  # untyped
