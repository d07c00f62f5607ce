"""Answers metrics in Python tasks that read Parquet files with Arrow, without sending rows to the JVM."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import ROUND_HALF_UP, Context, Decimal, Inexact, InvalidOperation, localcontext
from functools import partial, reduce
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, TypeVar
from zlib import crc32

from dq.contracts.types import DataType
from dq.dataquality.answers import splitmix
from dq.dataquality.answers.statistics import ColumnStatistics, FileStatistics
from dq.dataquality.model import predicate as p
from dq.dataquality.model import predicate as t
from dq.dataquality.model.column import Column
from dq.dataquality.model.metric import (
    Aggregate,
    Answer,
    DistinctKeys,
    Failure,
    Metric,
    MetricExecution,
    RepeatedKeys,
)
from dq.dataquality.model.predicate import INTEGERS, UnsupportedPredicate
from dq.dataquality.spark.columnar_files import open_input
from dq.dataquality.spark.measure import schema_of
from dq.dataquality.spark.session import in_exchanging_tasks, in_tasks
from dq.lake.parquet import unreadable_column
from dq.lake.storage import ArrowFiles
from dq.lake.types import arrow_array, arrow_type

if TYPE_CHECKING:
    import numpy as np
    from pyspark.sql import DataFrame

    _UInt64s = np.ndarray[Any, np.dtype[np.uint64]]


# Arrow arrays of one batch by column name. A condition returns an array of booleans, NULL where SQL is NULL.
Columns = Mapping[str, Any]
Evaluate = Callable[[Columns], Any]
Types = Mapping[str, DataType]

# Raises for a literal with more decimal places than the column, instead of rounding it.
_EXACT = Context(prec=38, traps=[Inexact, InvalidOperation])
_INTEGERS = t.INTEGERS
_ORDERED = _INTEGERS | {"decimal", "date"}
# Types for which Arrow and Spark agree on equality.
COMPARED = _ORDERED | {"string", "boolean"}
# Operator -> Arrow function, and the types for which it behaves as in Spark.
_OPERATORS = {
    "<": ("less", _ORDERED),
    "<=": ("less_equal", _ORDERED),
    ">": ("greater", _ORDERED),
    ">=": ("greater_equal", _ORDERED),
    "=": ("equal", COMPARED),
    "<>": ("not_equal", COMPARED),
}


class NotTranslatable(Exception):
    """The predicate, or a part of it, may behave differently in Arrow than in Spark."""


@dataclass(frozen=True, slots=True)
class Condition:
    """A predicate as a function of Arrow columns, and the columns it reads."""

    evaluate: Evaluate
    columns: frozenset[str]


@dataclass(frozen=True, slots=True)
class _Values:
    """A term as a function of Arrow columns, its type, and the columns it reads."""

    get: Evaluate
    type: DataType
    columns: frozenset[str]


def condition(predicate: p.Predicate, types: Types) -> Condition | None:
    """Return the predicate as a condition on Arrow columns, or None if Arrow may evaluate it differently.

    Args:
        types: Readable columns by their exact names. Spark ignores case in names; this lookup does not.
    """
    try:
        return _translate(predicate, types)
    except (NotTranslatable, UnsupportedPredicate):
        return None


def column_name(term: t.Term | None, types: Types) -> str | None:
    """Return the column name if the term is a plain, readable top-level column, or None."""
    try:
        term = _parse_term(term) if isinstance(term, t.Opaque) else term
    except UnsupportedPredicate:
        return None
    is_column = isinstance(term, t.Path) and len(term.steps) == 1 and term.steps[0] in types
    return term.steps[0] if isinstance(term, t.Path) and is_column else None


def _parse_term(term: t.Opaque) -> t.Term:
    from dq.dataquality.sql_reading import read_term

    return read_term(term.sql)


def _translate(node: p.Predicate, types: Types) -> Condition:
    match node:
        case p.And(parts):
            return _connective("and_kleene", [_translate(part, types) for part in parts])
        case p.Or(parts):
            return _connective("or_kleene", [_translate(part, types) for part in parts])
        case p.Not(part):
            inner = _translate(part, types)
            return Condition(lambda columns: _compute().invert(inner.evaluate(columns)), inner.columns)
        case p.IsNull(value) | p.Missing(value):
            null = _values(value, types, types_known=False)
            return Condition(lambda columns: _compute().is_null(null.get(columns)), null.columns)
        case p.IsNaN(value):
            return _never_true(_values(value, types))
        case p.In(value, literals):
            return _in_list(_values(value, types), literals, node.kinds)
        case p.Compare(value, operator, other):
            return _comparison(_values(value, types), operator, other, node.kind, types)
        case t.Opaque(text, _, _):
            from dq.dataquality.sql_reading import read_predicate

            return _translate(read_predicate(text), types)
        case _:
            raise NotTranslatable


def _compute() -> Any:
    import pyarrow.compute as pc

    return pc


def _connective(name: str, parts: list[Condition]) -> Condition:
    def evaluate(columns: Columns) -> Any:
        return reduce(getattr(_compute(), name), (part.evaluate(columns) for part in parts))

    return Condition(evaluate, frozenset().union(*(part.columns for part in parts)))


def _never_true(values: _Values) -> Condition:
    """Integers and decimals are never NaN, and Spark's isnan of NULL is false."""
    if values.type.name not in _INTEGERS | {"decimal"}:
        raise NotTranslatable

    def evaluate(columns: Columns) -> Any:
        array = values.get(columns)
        return _compute().and_(array.is_null(), array.is_valid())

    return Condition(evaluate, values.columns)


def _in_list(values: _Values, literals: tuple[t.Literal, ...], kinds: tuple[str, ...]) -> Condition:
    scalars = [_literal(literal, kind, values.type) for literal, kind in zip(literals, kinds, strict=True)]

    def evaluate(columns: Columns) -> Any:
        import pyarrow as pa

        array = values.get(columns)
        allowed = arrow_array([scalar.as_py() for scalar in scalars], scalars[0].type).cast(array.type)
        # In SQL, NULL IN (...) is NULL.
        return _compute().if_else(array.is_valid(), _compute().is_in(array, allowed), pa.NULL)

    return Condition(evaluate, values.columns)


def _comparison(
    left: _Values, operator: str, other: t.Literal | t.Term, kind: str, types: Types
) -> Condition:
    name, allowed = _OPERATORS[operator]
    if left.type.name not in allowed:
        raise NotTranslatable
    if isinstance(other, t.Term):
        right = _values(other, types)
        if not isinstance(other, t.Path) or right.type != left.type:
            raise NotTranslatable
        return Condition(
            lambda columns: getattr(_compute(), name)(left.get(columns), right.get(columns)),
            left.columns | right.columns,
        )
    scalar = _literal(other, kind, left.type)
    return Condition(lambda columns: getattr(_compute(), name)(left.get(columns), scalar), left.columns)


def _values(term: t.Term, types: Types, *, types_known: bool = True) -> _Values:
    """Return the values of a term. With `types_known`, raise NotTranslatable for types that are not
    comparable.
    """
    if isinstance(term, t.Length):
        text = column_name(term.value, types)
        if text is None or types[text].name != "string":
            raise NotTranslatable
        return _Values(lambda columns: _lengths(columns, text), DataType("int"), frozenset({text}))
    name = column_name(term, types)
    if name is None or (types_known and types[name].name not in COMPARED):
        raise NotTranslatable
    return _Values(lambda columns: columns[name], types[name], frozenset({name}))


def _lengths(columns: Columns, name: str) -> Any:
    return columns.lengths(name) if isinstance(columns, BatchColumns) else _length(columns[name])


def _length(texts: Any) -> Any:
    """Return the number of code points. Raises for invalid UTF-8, which Spark and Arrow count differently."""
    import numpy as np

    data = texts.buffers()[2]
    # Pure ASCII, the usual case, has as many code points as bytes; counting bytes takes a twentieth of the
    # time.
    if not data or np.frombuffer(data, np.int8).min() >= 0:
        return _compute().binary_length(texts)
    texts.validate(full=True)
    return _compute().utf8_length(texts)


def _ascii_view_length(texts: Any) -> Any | None:
    """Return the lengths of the texts of a string_view array, or None if one of them may not be ASCII.

    A view is 16 bytes: the length, then up to 12 bytes of text, or the first 4, a buffer and an offset.
    """
    import numpy as np
    import pyarrow as pa

    _, views, *buffers = texts.buffers()
    if not views or any(buffer and np.frombuffer(buffer, np.int8).min() < 0 for buffer in buffers):
        return None
    words = np.frombuffer(views, np.int32, 4 * len(texts), 16 * texts.offset).reshape(-1, 4)
    lengths = np.ascontiguousarray(words[:, 0])
    inline = words.take(np.flatnonzero(lengths <= _INLINE_BYTES), axis=0)
    if (np.bitwise_or.reduce(inline, axis=0)[1:] & _NOT_ASCII).any():
        return None
    counts = pa.Array.from_buffers(pa.int32(), len(lengths), [None, pa.py_buffer(lengths)])
    return counts if not texts.null_count else _compute().if_else(texts.is_valid(), counts, pa.NULL)


# Of a string_view: the longest text that the view itself holds, and the highest bits of four bytes.
_INLINE_BYTES, _NOT_ASCII = 12, -0x7F7F_7F80


def _literal(value: t.Literal, kind: str, column_type: DataType) -> Any:
    """Return the literal as an Arrow scalar that compares with a column of this type exactly as in Spark."""
    import pyarrow as pa

    exact = Decimal(value) if kind in ("integer", "decimal") else None  # type: ignore[arg-type]  # a number
    try:
        if column_type.name in _INTEGERS and exact is not None:
            if exact != exact.to_integral_value() or abs(exact) >= 2**63:
                raise NotTranslatable
            return arrow_array([int(exact)], pa.int64())[0]
        if column_type.name == "decimal" and exact is not None:
            scale = column_type.numbers[1]
            places = exact.quantize(Decimal(1).scaleb(-scale), context=_EXACT)
            return arrow_array([places], pa.decimal128(38, scale))[0]
        if column_type.name == kind and kind in _LITERALS:
            return arrow_array([value], pa.type_for_alias(_LITERALS[kind]))[0]
    except (ValueError, ArithmeticError, pa.ArrowException) as error:
        raise NotTranslatable from error
    raise NotTranslatable


# Kinds of literals named like the type of the compared column -> Arrow type.
_LITERALS = {"date": "date32", "string": "string", "boolean": "bool"}


# Key codes: keys as 64-bit numbers, the value itself for a single numeric column, else a hash of the key.
#
# Equal keys have equal codes. For a single numeric column the reverse holds too, so counting codes counts
# keys. Otherwise different hashes prove different keys, while equal hashes prove nothing.

_NUMBERS = INTEGERS | {"date", "boolean"}


@dataclass(frozen=True, slots=True)
class Keys:
    """A question for the distinct keys of some files, as `Codes`. Keys that contain a NULL are ignored."""

    columns: tuple[str, ...]

    def has_comparable_types(self, types: Mapping[str, DataType]) -> bool:
        """Return whether all columns have types whose values are equal exactly if their bytes are."""
        kinds = [types[name].name if name in types else "" for name in self.columns]
        return all(kind in _NUMBERS or kind in ("string", "decimal") for kind in kinds)

    def has_exact_codes(self, types: Mapping[str, DataType]) -> bool:
        """Return whether different keys always have different codes."""
        return len(self.columns) == 1 and types[self.columns[0]].name in _NUMBERS


@dataclass(frozen=True, slots=True)
class Codes:
    """Number of rows with a key, and the distinct codes of their keys, ascending, as an Arrow int64 array."""

    rows: int
    codes: Any


def key_codes(columns: Sequence[Any]) -> Any:
    """Return the int64 key codes of the rows that have no NULL in any of these Arrow arrays."""
    import pyarrow as pa
    import pyarrow.compute as pc

    columns = drop_nulls(columns)
    first, *remaining = map(_encode, columns)
    if not remaining and _numeric(columns[0]):
        return first.view(pa.int64())
    mixed = _mix(first)
    for code in remaining:
        # Mixing before the XOR distinguishes (a, b) from (b, a), and (a, a) from (b, b).
        mixed = _mix(pc.bit_wise_xor(pc.multiply(mixed, _uint64(splitmix.INCREMENT)), _mix(code)))
    return mixed.view(pa.int64())


def drop_nulls(columns: Sequence[Any]) -> list[Any]:
    """Return the Arrow arrays without the rows in which any of them is NULL."""
    import pyarrow.compute as pc

    is_complete = None
    for column in columns:
        if column.null_count:
            valid = column.is_valid()
            is_complete = valid if is_complete is None else pc.and_(is_complete, valid)
    return list(columns) if is_complete is None else [column.filter(is_complete) for column in columns]


def distinct_codes(parts: Sequence[Any]) -> Codes:
    """Return the number of codes in these arrays, and the distinct ones, sorted."""
    import pyarrow as pa
    import pyarrow.compute as pc

    codes = pa.chunked_array(parts, pa.int64())
    distinct = codes.unique()
    return Codes(len(codes), distinct.take(pc.sort_indices(distinct)))


def _numeric(column: Any) -> bool:
    import pyarrow.types as at

    return any(has_type(column.type) for has_type in (at.is_integer, at.is_date32, at.is_boolean))


def _encode(column: Any) -> Any:
    """Return a uint64 for each value."""
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


def _mix(code: Any) -> Any:
    import pyarrow.compute as pc

    code = pc.add(code, _uint64(splitmix.INCREMENT))
    for bits, factor in splitmix.ROUNDS:
        code = pc.multiply(pc.bit_wise_xor(code, pc.shift_right(code, _uint64(bits))), _uint64(factor))
    return pc.bit_wise_xor(code, pc.shift_right(code, _uint64(splitmix.LAST_SHIFT)))


def _uint64(number: int) -> Any:
    import pyarrow as pa

    return pa.scalar(number, pa.uint64())


# Keys that may occur in two files, by the files' bounds. All other keys are counted file by file.

# A task keeps the keys of its own file in memory: this many rows with two long integers take 160 MB.
MOST_ROWS = 10_000_000

Span = tuple[Any, Any]


@dataclass(frozen=True, slots=True)
class Overlaps:
    """Ranges (ends included) of `column` within which a key may occur in more than one file.

    The ranges are sorted and disjoint. Without a column, any key may occur in several files.
    """

    column: str = ""
    ranges: tuple[Span, ...] = ()


ANYWHERE = Overlaps()


def find_overlaps(files: Sequence[FileStatistics], key: Sequence[Column]) -> Overlaps:
    """Return the overlaps by the key column for which they affect the fewest rows.

    In a sorted table, two neighbouring files share at most the value at their boundary.
    """
    if any(file.rows > MOST_ROWS for file in files):
        return ANYWHERE
    candidates = [
        candidate for column in key if (candidate := _overlaps_by_column(column, files)) is not None
    ]
    return min(candidates, key=lambda candidate: candidate[0])[1] if candidates else ANYWHERE


def ranges_between(ranges: Sequence[Span], least: Any, greatest: Any) -> Sequence[Span]:
    """Return the sorted ranges that intersect the interval from `least` to `greatest`, ends included."""
    begin = bisect_left(ranges, least, key=lambda span: span[1])
    return ranges[begin : bisect_right(ranges, greatest, key=lambda span: span[0])]


def _overlaps_by_column(column: Column, files: Sequence[FileStatistics]) -> tuple[int, Overlaps] | None:
    """Return the estimated number of rows in overlaps, and the overlaps; None if a file has no known
    bounds.
    """
    spans: list[tuple[Any, Any, int]] = []
    for file in files:
        facts = file.statistics_of(column)
        # A row with a NULL in its key is never a duplicate.
        if facts.nulls == file.rows:
            continue
        bounds = _bounds(facts)
        if bounds is None:
            return None
        spans.append((*bounds, file.rows))
    spans.sort(key=lambda span: span[0])
    ranges = _overlapping_ranges(spans)
    rows = sum(
        rows
        for least, greatest, rows in spans
        if any(low < high or least == greatest for low, high in ranges_between(ranges, least, greatest))
    )
    return rows, Overlaps(str(column.steps[0]), tuple(ranges))


def _overlapping_ranges(spans: Sequence[tuple[Any, Any, int]]) -> list[Span]:
    """Return the ranges covered by two or more of these spans, which are sorted by their starts."""
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


def _bounds(facts: ColumnStatistics) -> Span | None:
    if facts.least is not None and facts.greatest is not None:
        return facts.least, facts.greatest
    if facts.values is not None and len(facts.values) == 1:
        (value,) = facts.values
        return value, value
    return None


# Distinct keys: tasks collect them, exchange them by hash, and count them.
#
# Tasks exchange the keys themselves or an invertible image of them, so different keys are never confused.
# The hash only selects the bucket that counts a key.

KeyRun = Any
"""A uint64 array (images of the values of one integer column) or an Arrow table; without NULLs."""
# Rows and bytes of keys that a task collects before it deduplicates them.
MAX_HELD_KEYS, _MOST_BYTES = 2_000_000, 100_000_000
# Odd, so multiplication modulo 2**64 is invertible. It is 2**64 divided by the golden ratio, which spreads
# neighbouring numbers (Knuth, volume 3, 6.4), so a bucket can be a contiguous part of the range.
_SPREAD = 0x9E3779B97F4A7C15
# With more ranges than this, a batch is compared with the one range that covers them all.
_MOST_RANGES = 8


@dataclass(slots=True)
class KeyTally:
    """A growing collection of keys that is deduplicated when it becomes too large."""

    max_rows: int = MAX_HELD_KEYS
    runs: list[KeyRun] = field(default_factory=list)
    rows: int = 0
    size: int = 0
    distinct_rows: int = 0

    def add(self, keys: KeyRun) -> None:
        """Add keys; deduplicate if the tally is full and has at least doubled since."""
        self.runs.append(keys)
        self.rows += len(keys)
        self.size += keys.nbytes
        # Do not deduplicate a tally of many distinct keys for every small addition.
        if self.is_full and self.rows > 2 * self.distinct_rows:
            self._deduplicate()

    @property
    def is_full(self) -> bool:
        """True if it exceeds its limits, so its keys should be sent to the exchange."""
        return self.rows > self.max_rows or self.size > _MOST_BYTES

    def take(self) -> KeyRun | None:
        """Return all distinct keys and clear the tally; None if it is empty."""
        if not self.runs:
            return None
        self._deduplicate()
        (keys,) = self.runs
        self.runs, self.rows, self.size, self.distinct_rows = [], 0, 0, 0
        return keys

    def _deduplicate(self) -> None:
        keys = _distinct(self.runs)
        self.runs, self.rows, self.size, self.distinct_rows = [keys], len(keys), keys.nbytes, len(keys)


@dataclass(slots=True)
class FileKeys:
    """Keys that other files may share with the number of rows that have them, and keys of this file only."""

    shared: KeyTally
    rows: int = 0
    own: list[list[Any]] = field(default_factory=list)

    def add(self, names: Sequence[str], columns: Sequence[Any], overlaps: Overlaps) -> None:
        """Add the keys of some rows: a name and an Arrow array per column."""
        import pyarrow.compute as pc

        keys = drop_nulls(columns)
        if overlaps.column and len(keys[0]):
            shared = _in_ranges(keys[names.index(overlaps.column)], overlaps)
            if shared is None:
                self.own.append(keys)
                return
            self.own.append([key.filter(pc.invert(shared)) for key in keys])
            keys = [key.filter(shared) for key in keys]
        self.rows += len(keys[0])
        self.shared.add(_key_run(keys))

    def repeated(self) -> int:
        """Return the number of rows that repeat a key of this file, plus all rows whose keys may be
        shared.
        """
        import pyarrow as pa

        if not self.own:
            return self.rows
        keys = [pa.chunked_array(chunks).combine_chunks() for chunks in zip(*self.own, strict=True)]
        if len(keys[0]) < 2 or _is_increasing(keys):
            return self.rows
        return self.rows + len(keys[0]) - len(_distinct([_table(keys)]))


def _key_run(columns: Sequence[Any]) -> KeyRun:
    numbers = _numbers(columns[0]) if len(columns) == 1 else None
    if numbers is None:
        return _table(columns)
    distinct = _distinct_by_marking(numbers)
    return (numbers if distinct is None else distinct) * numbers.dtype.type(_SPREAD)


def _distinct_by_marking(numbers: _UInt64s) -> _UInt64s | None:
    """Return the distinct numbers if, as signed, they span a range shorter than their count, else None.

    Marking the values of such a range takes a fraction of the time of sorting the numbers.
    """
    import numpy as np

    signed = numbers.view(np.int64)
    if not len(signed):
        return None
    least = signed.min()
    if int(signed.max()) - int(least) >= len(signed):
        return None
    is_present = np.zeros(len(signed), bool)
    is_present[signed - least] = True
    distinct: _UInt64s = (np.flatnonzero(is_present) + least).view(np.uint64)
    return distinct


def _table(columns: Sequence[Any]) -> Any:
    import pyarrow as pa

    return pa.table(list(columns), [str(index) for index in range(len(columns))])


def _in_ranges(values: Any, overlaps: Overlaps) -> Any:
    """Return a mask of the values that lie in one of the ranges, or None if no range applies."""
    import pyarrow as pa
    import pyarrow.compute as pc

    least, greatest = (bound.as_py() for bound in pc.min_max(values).values())
    ranges = ranges_between(overlaps.ranges, least, greatest)
    if len(ranges) > _MOST_RANGES:
        ranges = [(ranges[0][0], ranges[-1][1])]
    mask = None
    for span in ranges:
        low, high = (pa.scalar(end, values.type) for end in span)
        is_in_range = pc.and_(pc.greater_equal(values, low), pc.less_equal(values, high))
        mask = is_in_range if mask is None else pc.or_(mask, is_in_range)
    return mask


def _is_increasing(keys: list[Any]) -> bool:
    """Return whether the keys are strictly increasing, as in sorted data, so that none repeats."""
    import pyarrow.compute as pc

    is_increasing = None
    for key in reversed(keys):
        before, after = key[:-1], key[1:]
        less = pc.less(before, after)
        is_increasing = (
            less if is_increasing is None else pc.or_(less, pc.and_(pc.equal(before, after), is_increasing))
        )
    return bool(pc.all(is_increasing).as_py())


def split_by_bucket(keys: KeyRun, buckets: int) -> Iterator[tuple[int, KeyRun]]:
    """Yield the keys by bucket. A key has the same bucket in every task."""
    import numpy as np

    if isinstance(keys, np.ndarray):
        # The keys are sorted, so a bucket is a contiguous part of the range.
        begins = [-(-(number << 64) // buckets) for number in range(1, buckets)]
        positions = np.searchsorted(keys, np.array(begins, np.uint64))
        yield from ((index, part) for index, part in enumerate(np.split(keys, positions)) if len(part))
        return
    row_buckets = _hashes(keys) % np.uint64(buckets)
    order = np.argsort(row_buckets, kind="stable")
    ends = np.cumsum(np.bincount(row_buckets.astype(np.int64), minlength=buckets))
    for bucket, rows in enumerate(np.split(order, ends[:-1])):
        if len(rows):
            # Pickling a slice would include the whole table.
            yield bucket, keys.take(rows)


def _distinct(runs: Sequence[KeyRun]) -> KeyRun:
    """Return the distinct keys; numbers are sorted."""
    import numpy as np
    import pyarrow as pa

    if not isinstance(runs[0], np.ndarray):
        table = pa.concat_tables(runs)
        return table.group_by(table.column_names, use_threads=False).aggregate([])
    keys = np.concatenate(runs)
    # numpy.unique takes forty times as long as sorting does (2.4, a million numbers).
    keys.sort()
    first = np.ones(len(keys), bool)
    np.not_equal(keys[1:], keys[:-1], out=first[1:])
    # Boolean indexing takes four times as long.
    return keys.compress(first)


def _numbers(column: Any) -> _UInt64s | None:
    """Return integers, dates and booleans as uint64, or None for other types."""
    import numpy as np
    import pyarrow as pa

    if pa.types.is_date32(column.type):
        column = column.view(pa.int32())
    if not pa.types.is_integer(column.type) and not pa.types.is_boolean(column.type):
        return None
    return np.asarray(column.cast(pa.int64()).to_numpy(zero_copy_only=False)).view(np.uint64)


def _hashes(table: Any) -> _UInt64s:
    """Return a hash for each row."""
    import numpy as np

    spread = np.uint64(_SPREAD)
    hashes = np.zeros(len(table), np.uint64)
    for column in table.columns:
        array = column.combine_chunks()
        numbers = _numbers(array)
        if numbers is None:
            numbers = np.fromiter(map(crc32, _bytes(array)), np.uint64, len(array))
        hashes = (hashes ^ numbers) * spread
        hashes ^= hashes >> np.uint64(32)
    return hashes


def _bytes(column: Any) -> Iterable[bytes]:
    import pyarrow as pa

    kind = pa.binary(column.type.byte_width) if pa.types.is_decimal(column.type) else pa.binary()
    return column.view(kind).to_pylist()  # type: ignore[no-any-return]  # untyped


# The work of one Python task: it reads some Parquet files once and returns its part of every answer.

_BATCH = 131_072


@dataclass(frozen=True, slots=True)
class Count:
    """Number of rows that satisfy the condition, or of all rows if it is None."""

    where: Condition | None


@dataclass(frozen=True, slots=True)
class Extreme:
    """The least (`min`) or greatest (`max`) value of a column over the rows that satisfy the condition."""

    aggregate: str
    column: str
    where: Condition | None


@dataclass(frozen=True, slots=True)
class Total:
    """The exact sum and number of values of a decimal column over the rows that satisfy the condition.

    `aggregate` is the final result: `sum` or `avg`.
    """

    aggregate: str
    column: str
    where: Condition | None


@dataclass(frozen=True, slots=True)
class KeyCount:
    """Number of distinct keys, or (`repeated`) of rows beyond the first of each key.

    Keys that contain a NULL are ignored. `overlaps` are the keys that other files may have too.
    """

    columns: tuple[str, ...]
    repeated: bool
    overlaps: Overlaps = ANYWHERE


Question = Count | Extreme | Total | KeyCount | Keys
# None: this task has no answer, and Spark must compute it.
Part = Any


@dataclass(frozen=True, slots=True)
class Work:
    """The questions for a task, and the types of the columns they read, by exact names.

    A task collects up to `most_keys` keys that other files may share before it sends them to the exchange.
    """

    questions: tuple[Question, ...]
    types: Mapping[str, DataType]
    most_keys: int = MAX_HELD_KEYS


def columns_of(question: Question) -> frozenset[str]:
    """Return the columns that a question reads."""
    match question:
        case Count(where):
            return where.columns if where else frozenset()
        case Extreme(_, column, where) | Total(_, column, where):
            return frozenset({column}) | (where.columns if where else frozenset())
        case KeyCount(columns) | Keys(columns):
            return frozenset(columns)


@dataclass(frozen=True, slots=True)
class ExchangedKeys:
    """Distinct keys of one bucket, for the question with this index."""

    question: int
    keys: Any


def answer(
    paths: Sequence[str], work: Work, buckets: int
) -> Iterator[tuple[int, list[Part] | ExchangedKeys]]:
    """Yield this task's parts of all answers, in the order of the questions, and keys by bucket.

    The part of a question that cannot be evaluated is None; the other questions are still answered.

    Raises:
        OSError: A file cannot be read; also pyarrow's own errors.
    """
    import pyarrow as pa

    # Spark gives each task one CPU.
    pa.set_cpu_count(1)
    return answer_batches(_batches(paths, work), work, buckets)


def answer_without_exchange(paths: Sequence[str], work: Work) -> list[Part]:
    """Return the parts only, for questions without exchanged keys; otherwise as `answer`."""
    ((_, parts),) = answer(paths, work, 1)
    assert isinstance(parts, list)
    return parts


def answer_batches(
    batches: Iterable[Batch], work: Work, buckets: int
) -> Iterator[tuple[int, list[Part] | ExchangedKeys]]:
    """Yield the parts of all answers for these batches, and their keys; see `answer`."""
    import pyarrow as pa

    parts: list[Part] = [_initial_part(question, work) for question in work.questions]
    for batch in batches:
        for number, question in enumerate(work.questions):
            if parts[number] is not None:
                try:
                    parts[number] = _add_batch(parts[number], question, batch)
                except (pa.ArrowException, ValueError):
                    parts[number] = None
            if isinstance(parts[number], FileKeys) and parts[number].shared.is_full:
                yield from _exchange(parts[number], number, buckets)
    for number, part in enumerate(parts):
        if isinstance(part, FileKeys):
            yield from _exchange(part, number, buckets)
    yield 0, [_final_part(part, question) for part, question in zip(parts, work.questions, strict=True)]


def _exchange(part: FileKeys, number: int, buckets: int) -> Iterator[tuple[int, ExchangedKeys]]:
    keys = part.shared.take()
    if keys is not None:
        for bucket, bucket_keys in split_by_bucket(keys, buckets):
            yield bucket, ExchangedKeys(number, bucket_keys)


def merge_outputs(
    outputs: Iterable[list[Part] | ExchangedKeys],
) -> Iterator[list[Part] | tuple[int, int | None]]:
    """Pass through the parts of the file tasks, and yield the number of distinct keys per question.

    The number is None if this bucket cannot count them.
    """
    import pyarrow as pa

    tallies: dict[int, KeyTally] = {}
    failed = set()
    for output in outputs:
        if isinstance(output, list):
            yield output
            continue
        try:
            tallies.setdefault(output.question, KeyTally()).add(output.keys)
        except pa.ArrowException:
            # Arrow string arrays hold at most 2 GB.
            failed.add(output.question)
    for number, tally in tallies.items():
        keys = None if number in failed else tally.take()
        yield number, None if keys is None else len(keys)


@dataclass(frozen=True, slots=True)
class Batch:
    """Some rows: their number, and their columns as Arrow arrays."""

    rows: int
    columns: Columns


class BatchColumns(Mapping[str, Any]):
    """Columns of an Arrow record batch, cast to the Arrow types of `types` when they are first read.

    Casting a string_view copies every text, and their lengths can be read without it.
    """

    def __init__(self, record_batch: Any, types: Mapping[str, Any]) -> None:
        self._record_batch, self._types = record_batch, types
        self._arrays: dict[str, Any] = {}
        self._lengths: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._arrays:
            stored = self._record_batch[name]
            self._arrays[name] = stored.cast(self._types.get(name, stored.type))
        return self._arrays[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._record_batch.schema.names)

    def __len__(self) -> int:
        return len(self._record_batch.schema)

    def lengths(self, name: str) -> Any:
        """Return the number of code points of each text in a column; see `_length`."""
        if name not in self._lengths:
            stored = self._record_batch[name]
            lengths = _ascii_view_length(stored) if str(stored.type) == "string_view" else None
            self._lengths[name] = _length(self[name]) if lengths is None else lengths
        return self._lengths[name]


def _batches(paths: Sequence[str], work: Work) -> Iterator[Batch]:
    import pyarrow.parquet as pq

    names = sorted(frozenset().union(*(columns_of(question) for question in work.questions)))
    # Compared columns are cast to one Arrow type; the others are only counted.
    compared = {name: kind for name in names if (kind := work.types[name]).name in COMPARED}
    arrow = {name: arrow_type(kind) for name, kind in compared.items()}
    storage = ArrowFiles()
    for path in paths:
        with open_input(path, storage) as source:
            file = pq.ParquetFile(source, pre_buffer=False)
            if not names:
                yield Batch(file.metadata.num_rows, {})
                continue
            # Spark reports its own error for a column that it cannot read.
            if reason := next(filter(None, (unreadable_column(file.metadata, name) for name in names)), ""):
                raise ValueError(reason)
            for record_batch in file.iter_batches(_BATCH, columns=names, use_threads=False):
                yield Batch(record_batch.num_rows, BatchColumns(record_batch, arrow))


def _initial_part(question: Question, work: Work) -> Part:
    match question:
        case Count():
            return 0
        case Extreme() | Keys():
            return []
        case Total():
            return Decimal(0), 0
        case _:
            return FileKeys(KeyTally(work.most_keys))


def _add_batch(part: Part, question: Question, batch: Batch) -> Part:
    """Return the part updated with another batch."""
    import pyarrow.compute as pc

    match question:
        case Count(where):
            if where is None:
                return part + batch.rows
            return part + (pc.sum(where.evaluate(batch.columns)).as_py() or 0)
        case Extreme(aggregate, column, where):
            value = pc.min_max(_matching_values(batch, column, where))[aggregate].as_py()
            return part if value is None else [*part, value]
        case Total(_, column, where):
            values = _matching_values(batch, column, where)
            return part[0] + (pc.sum(values).as_py() or 0), part[1] + len(values) - values.null_count
        case Keys(columns):
            return [*part, key_codes([batch.columns[name] for name in columns])]
        case KeyCount(columns, _, overlaps):
            part.add(columns, [batch.columns[name] for name in columns], overlaps)
            return part


def _matching_values(batch: Batch, column: str, where: Condition | None) -> Any:
    values = batch.columns[column]
    return values if where is None else values.filter(where.evaluate(batch.columns))


def _final_part(part: Part, question: Question) -> Part:
    """Return the part in the form that is sent to the driver."""
    if part is None:
        return None
    match question:
        case Extreme(aggregate, _, _):
            return ({"min": min, "max": max}[aggregate](part),) if part else ()
        case Keys():
            return distinct_codes(part)
        case KeyCount():
            return part.repeated()
        case _:
            return part


# Translation of metrics into task questions, and of the parts into answers.

# With fewer rows, Spark answers before the Python workers have started (about 0.3 s of CPU each).
WORTH_ROWS = 1_000_000
# Exchanged keys are counted in buckets of this many rows, i.e. at most 32 MB of integers per task.
_BUCKET_ROWS = 4_000_000
# Types that Spark may have written in another calendar than it reads; known bounds rule this out.
_DATED = frozenset({"date"})
# Spark's average of decimals has four more decimal places than the column. For columns with more digits than
# this, the type of the average or of the sum would lose places.
_AVERAGE_PLACES, MOST_AVERAGED = 4, 18
_M = TypeVar("_M", bound=Metric | Keys)


def answers(
    metrics: Sequence[Metric], frame: DataFrame, files: Sequence[FileStatistics], *, keys: bool, values: bool
) -> dict[Metric, Answer] | Failure:
    """Return the answers that tasks over these Parquet files can compute, in one Spark job.

    Metrics that are missing in the result must be computed by Spark: Arrow may evaluate them differently.
    A Failure if the tasks cannot run, or failed.

    Args:
        files: All files that a query would read, each completely, with the bounds of the columns the metrics
            need.
        keys: Answer metrics on repeated keys.
        values: Answer metrics on the values of each row.
    """
    types = _types(frame, files)
    questions = _questions(metrics, types, files, keys=keys, values=values)
    if not questions or not files:
        return {}
    work = Work(tuple(questions.values()), types)
    has_keys = any(isinstance(question, KeyCount) for question in work.questions)
    buckets = 1 + sum(file.rows for file in files) // _BUCKET_ROWS if has_keys else 1
    outputs = in_exchanging_tasks(
        frame.sparkSession,
        [[file.path] for file in files],
        partial(answer, work=work, buckets=buckets),
        buckets,
        merge_outputs,
    )
    return outputs if isinstance(outputs, Failure) else _answers(questions, outputs, types)


def _answers(
    questions: Mapping[Metric, Question],
    outputs: Sequence[list[Part] | tuple[int, int | None]],
    types: Mapping[str, DataType],
) -> dict[Metric, Answer]:
    """Return the answers for which no part is missing; `outputs` are those of `merge_outputs`."""
    parts = [part for part in outputs if isinstance(part, list)]
    distinct_counts: dict[int, list[int | None]] = {}
    for part in outputs:
        if isinstance(part, tuple):
            distinct_counts.setdefault(part[0], []).append(part[1])
    results: dict[Metric, Answer] = {}
    for index, (metric, question) in enumerate(questions.items()):
        question_parts = [part[index] for part in parts]
        counts = [count for count in distinct_counts.get(index, ()) if count is not None]
        if None not in question_parts and len(counts) == len(distinct_counts.get(index, ())):
            results[metric] = _combine(question, question_parts, sum(counts), types)
    return results


def answers_by_group(
    metrics: Sequence[_M], frame: DataFrame, groups: Sequence[Sequence[FileStatistics]], tasks_from: int
) -> dict[_M, list[Any]]:
    """Return the answers of each group of files, in their order, for the metrics that tasks can compute.

    Below `tasks_from` rows they are computed in this process, without Spark. Metrics that are missing in the
    result must be computed by Spark.
    """
    files = [file for group in groups for file in group]
    if not all(file.is_complete for file in files):
        return {}
    types = _types(frame, files)
    questions = _questions(metrics, types, files, keys=False, values=True)
    if not questions:
        return {}
    work = Work(tuple(questions.values()), types)
    addresses = [[file.path for file in group] for group in groups]
    if sum(file.rows for file in files) >= tasks_from:
        outputs = in_tasks(frame.sparkSession, addresses, partial(answer_without_exchange, work=work))
    else:
        outputs = _run_in_process(addresses, work)
    if isinstance(outputs, Failure):
        return {}
    return {
        metric: [_combine(question, [part[index]], 0, types) for part in outputs]
        for index, (metric, question) in enumerate(questions.items())
        if all(part[index] is not None for part in outputs)
    }


def _run_in_process(addresses: Sequence[Sequence[str]], work: Work) -> list[list[Part]] | Failure:
    """Run the tasks in this process, and restore its Arrow CPU count afterwards."""
    import pyarrow as pa

    cpu_count = pa.cpu_count()
    try:
        return [answer_without_exchange(paths, work) for paths in addresses]
    except (OSError, ValueError, NotImplementedError, pa.ArrowException) as error:
        return Failure(type(error).__name__)
    finally:
        pa.set_cpu_count(cpu_count)


def answer_in_memory(
    metrics: Sequence[Metric], schema: DataType, columns: Mapping[str, Any], rows: int
) -> dict[Metric, Answer]:
    """Return the answers that tasks would give, for rows in this process, without Spark.

    `columns` are Arrow arrays of the schema's types, without dates before 1900.
    """
    types = {name: kind for name, kind in zip(schema.names, schema.parts, strict=True) if name in columns}
    questions = _questions(metrics, types, (), keys=True, values=True)
    work = Work(tuple(questions.values()), types)
    outputs = merge_outputs(part for _, part in answer_batches([Batch(rows, columns)], work, 1))
    return _answers(questions, list(outputs), types)


def _types(frame: DataFrame, files: Sequence[FileStatistics]) -> dict[str, DataType]:
    """Return the columns that every file stores as the frame has them and that are compared byte by byte."""
    schema = schema_of(frame)
    folders = {name for file in files for name in file.path_columns}
    types = {}
    for name, kind, stored in zip(schema.names, schema.parts, frame.schema.fields, strict=True):
        column = Column((name,))
        collated = kind.name == "string" and stored.dataType.simpleString() != "string"
        is_certain = all(column in file.columns and _has_certain_values(file, column, kind) for file in files)
        # A dot would be taken for a path into a struct.
        if is_certain and not collated and "." not in name and name not in folders:
            types[name] = kind
    return types


def _has_certain_values(file: FileStatistics, column: Column, kind: DataType) -> bool:
    facts = file.statistics_of(column)
    return kind.name not in _DATED or facts.least is not None or facts.nulls == file.rows


def _questions(
    metrics: Iterable[_M],
    types: Mapping[str, DataType],
    files: Sequence[FileStatistics],
    *,
    keys: bool,
    values: bool,
) -> dict[_M, Question]:
    """Return the questions for a task by metric, without the metrics that Spark must compute."""
    pairs = ((metric, _question(metric, types, files, keys=keys, values=values)) for metric in metrics)
    return {
        metric: question
        for metric, question in pairs
        if question is not None and columns_of(question) <= types.keys()
    }


def _question(
    metric: Metric | Keys,
    types: Mapping[str, DataType],
    files: Sequence[FileStatistics],
    *,
    keys: bool,
    values: bool,
) -> Question | None:
    if isinstance(metric, Keys):
        return metric if metric.has_comparable_types(types) else None
    if isinstance(metric, RepeatedKeys):
        names = _names(metric.keys, types)
        if not keys or not names or metric.where:
            return None
        return KeyCount(names, True, find_overlaps(files, metric.keys))
    if not values:
        return None
    if isinstance(metric, DistinctKeys):
        names = _names(metric.keys, types)
        return KeyCount(names, False) if names and not metric.where else None
    if not isinstance(metric, Aggregate) or metric.kind is not MetricExecution.ROWS:
        return None
    where: Condition | None = None
    if metric.where is not None:
        where = condition(metric.where, types)
        if where is None:
            return None
    return _aggregate(metric, types, where)


def _names(keys: Sequence[Column], types: Mapping[str, DataType]) -> tuple[str, ...] | None:
    names = [str(key.steps[0]) for key in keys if len(key.steps) == 1]
    is_valid = len(names) == len(keys) and all(
        name in types and types[name].name in COMPARED for name in names
    )
    return tuple(names) if is_valid else None


def _aggregate(metric: Aggregate, types: Mapping[str, DataType], where: Condition | None) -> Question | None:
    if metric.name == "count" and metric.value is None:
        return Count(where)
    name = column_name(metric.value, types)
    if name is None:
        return None
    kind = types[name]
    if metric.name in ("min", "max") and kind.name in INTEGERS | {"decimal", "date"}:
        return Extreme(metric.name, name, where)
    if metric.name in ("sum", "avg") and kind.name == "decimal" and kind.numbers[0] <= MOST_AVERAGED:
        return Total(metric.name, name, where)
    return None


def _combine(question: Question, parts: Sequence[Part], distinct: int, types: Mapping[str, DataType]) -> Any:
    match question:
        case Count():
            return sum(parts)
        case Keys():
            return parts[0]
        case KeyCount(_, repeated, _):
            # One row of each exchanged key is not a repetition.
            return sum(parts) - distinct if repeated else distinct
        case Extreme(aggregate, _, _):
            values = [value for part in parts for value in part]
            return {"min": min, "max": max}[aggregate](values) if values else None
        case Total(aggregate, column, _):
            total, number = sum((part[0] for part in parts), Decimal(0)), sum(part[1] for part in parts)
            if aggregate == "sum" or not number:
                return total if number else None
            return average(total, number, types[column].numbers[1])


def average(total: Decimal, number: int, scale: int) -> Decimal:
    """Return the average as Spark computes it: 38 digits, then rounded to four places more than the
    column.
    """
    with localcontext(prec=38, rounding=ROUND_HALF_UP):
        return (total / number).quantize(Decimal(1).scaleb(-scale - _AVERAGE_PLACES))
