"""Answers that Python tasks over Parquet files give, without rows that cross to the JVM."""

from __future__ import annotations

import functools
import shutil
import sys
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import ROUND_HALF_UP, Context, Decimal, Inexact, InvalidOperation, localcontext
from functools import partial, reduce
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, TypeVar
from zlib import crc32

from dq.contracts.types import DataType
from dq.dataquality.answers.statistics import Facts, File, folder_columns
from dq.dataquality.model import predicate as p
from dq.dataquality.model import predicate as t
from dq.dataquality.model.column import Column
from dq.dataquality.model.metric import Aggregate, Answer, DistinctKeys, Failure, Kind, Metric, RepeatedKeys
from dq.dataquality.model.predicate import INTEGERS, NoReading
from dq.dataquality.spark.columnar_files import opened
from dq.dataquality.spark.measure import schema_of
from dq.dataquality.spark.session import attempt, in_exchanging_tasks, in_tasks
from dq.lake.parquet import unreadable_column
from dq.lake.types import arrow_array, arrow_type

if TYPE_CHECKING:
    import numpy as np
    from pyspark import SparkContext
    from pyspark.sql import DataFrame


# Arrow arrays of one batch by the column's name; what a condition gives is an array of booleans, with
# NULL where SQL has it.
Columns = Mapping[str, Any]
Evaluate = Callable[[Columns], Any]
Types = Mapping[str, DataType]

# Refuses a literal with more places than the column has, instead of rounding it.
_EXACT = Context(prec=38, traps=[Inexact, InvalidOperation])
_INTEGERS = t.INTEGERS
_ORDERED = _INTEGERS | {"decimal", "date"}
# Types whose values are equal here where they are in Spark.
COMPARED = _ORDERED | {"string", "boolean"}
# Operator -> Arrow's function, and the types on which it means the same.
_OPERATORS = {
    "<": ("less", _ORDERED),
    "<=": ("less_equal", _ORDERED),
    ">": ("greater", _ORDERED),
    ">=": ("greater_equal", _ORDERED),
    "=": ("equal", COMPARED),
    "<>": ("not_equal", COMPARED),
}


class Unlike(Exception):
    """The predicate, or a part of it, is not known to mean the same here as in Spark."""


@dataclass(frozen=True, slots=True)
class Condition:
    """A predicate, and the columns that it reads."""

    evaluate: Evaluate
    columns: frozenset[str]


@dataclass(frozen=True, slots=True)
class _Values:
    """A value of the rows: how to get it, its type, and the columns that it reads."""

    get: Evaluate
    type: DataType
    columns: frozenset[str]


def condition(predicate: p.Predicate, types: Types) -> Condition | None:
    """The predicate as a condition on Arrow columns; None when it may mean something else here.

    `types` are the columns that can be read, by their exact names. Spark looks names up without case; a
    name that is written in another way is not found here.
    """
    try:
        return _truth(predicate, types)
    except (Unlike, NoReading):
        return None


def column(term: t.Term | None, types: Types) -> str | None:
    """The name of the column that a term is, when it is nothing else and can be read."""
    try:
        term = _read(term) if isinstance(term, t.Opaque) else term
    except NoReading:
        return None
    alone = isinstance(term, t.Path) and len(term.steps) == 1 and term.steps[0] in types
    return term.steps[0] if isinstance(term, t.Path) and alone else None


def _read(term: t.Opaque) -> t.Term:
    from dq.dataquality.sql_reading import read_term

    return read_term(term.sql)


def _truth(node: p.Predicate, types: Types) -> Condition:
    match node:
        case p.And(parts):
            return _connected("and_kleene", [_truth(part, types) for part in parts])
        case p.Or(parts):
            return _connected("or_kleene", [_truth(part, types) for part in parts])
        case p.Not(part):
            inner = _truth(part, types)
            return Condition(lambda columns: _compute().invert(inner.evaluate(columns)), inner.columns)
        case p.IsNull(value) | p.Missing(value):
            null = _values(value, types, types_known=False)
            return Condition(lambda columns: _compute().is_null(null.get(columns)), null.columns)
        case p.IsNaN(value):
            return _never(_values(value, types))
        case p.In(value, listed):
            return _among(_values(value, types), listed, node.kinds)
        case p.Compare(value, operator, other):
            return _compared(_values(value, types), operator, other, node.kind, types)
        case t.Opaque(text, _, _):
            from dq.dataquality.sql_reading import read_predicate

            return _truth(read_predicate(text), types)
        case _:
            raise Unlike


def _compute() -> Any:
    import pyarrow.compute as pc

    return pc


def _connected(name: str, parts: list[Condition]) -> Condition:
    def evaluate(columns: Columns) -> Any:
        return reduce(getattr(_compute(), name), (part.evaluate(columns) for part in parts))

    return Condition(evaluate, frozenset().union(*(part.columns for part in parts)))


def _never(values: _Values) -> Condition:
    """Integers and decimals are never NaN, and Spark's isnan of NULL is false."""
    if values.type.name not in _INTEGERS | {"decimal"}:
        raise Unlike

    def nowhere(columns: Columns) -> Any:
        found = values.get(columns)
        return _compute().and_(found.is_null(), found.is_valid())

    return Condition(nowhere, values.columns)


def _among(values: _Values, listed: tuple[t.Literal, ...], kinds: tuple[str, ...]) -> Condition:
    scalars = [_literal(each, kind, values.type) for each, kind in zip(listed, kinds, strict=True)]

    def evaluate(columns: Columns) -> Any:
        import pyarrow as pa

        found = values.get(columns)
        known = arrow_array([one.as_py() for one in scalars], scalars[0].type).cast(found.type)
        # In SQL, NULL is neither among them nor not.
        return _compute().if_else(found.is_valid(), _compute().is_in(found, known), pa.NULL)

    return Condition(evaluate, values.columns)


def _compared(left: _Values, operator: str, other: t.Literal | t.Term, kind: str, types: Types) -> Condition:
    name, allowed = _OPERATORS[operator]
    if left.type.name not in allowed:
        raise Unlike
    if isinstance(other, t.Term):
        right = _values(other, types)
        if not isinstance(other, t.Path) or right.type != left.type:
            raise Unlike
        return Condition(
            lambda columns: getattr(_compute(), name)(left.get(columns), right.get(columns)),
            left.columns | right.columns,
        )
    scalar = _literal(other, kind, left.type)
    return Condition(lambda columns: getattr(_compute(), name)(left.get(columns), scalar), left.columns)


def _values(term: t.Term, types: Types, *, types_known: bool = True) -> _Values:
    """The values of a term; of types whose values are never compared, only where that does not matter."""
    if isinstance(term, t.Length):
        text = _values(term.value, types)
        if text.type.name != "string":
            raise Unlike
        return _Values(lambda columns: _length(text.get(columns)), DataType("int"), text.columns)
    name = column(term, types)
    if name is None or (types_known and types[name].name not in COMPARED):
        raise Unlike
    return _Values(lambda columns: columns[name], types[name], frozenset({name}))


def _length(texts: Any) -> Any:
    """The number of code points. Of bytes that are no UTF-8, Spark and Arrow count different things."""
    import numpy as np

    data = texts.buffers()[2]
    # What is all ASCII, as most texts are, has as many code points as bytes: a twentieth of the time.
    if not data or np.frombuffer(data, np.int8).min() >= 0:
        return _compute().binary_length(texts)
    texts.validate(full=True)
    return _compute().utf8_length(texts)


def _literal(value: t.Literal, kind: str, wanted: DataType) -> Any:
    """The literal as an Arrow scalar that compares with a column of this type exactly as in Spark."""
    import pyarrow as pa

    exact = Decimal(value) if kind in ("integer", "decimal") else None  # type: ignore[arg-type]  # a number
    try:
        if wanted.name in _INTEGERS and exact is not None:
            if exact != exact.to_integral_value() or abs(exact) >= 2**63:
                raise Unlike
            return arrow_array([int(exact)], pa.int64())[0]
        if wanted.name == "decimal" and exact is not None:
            scale = wanted.numbers[1]
            places = exact.quantize(Decimal(1).scaleb(-scale), context=_EXACT)
            return arrow_array([places], pa.decimal128(38, scale))[0]
        if wanted.name == kind and kind in _LITERALS:
            return arrow_array([value], pa.type_for_alias(_LITERALS[kind]))[0]
    except (ValueError, ArithmeticError, pa.ArrowException) as error:
        raise Unlike from error
    raise Unlike


# Kinds of literals that are called as the columns which they are compared with -> Arrow's type.
_LITERALS = {"date": "date32", "string": "string", "boolean": "bool"}


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


# What one Python task does: some Parquet files read once, and its part of every answer.

_BATCH = 131_072


@dataclass(frozen=True, slots=True)
class Count:
    """How many rows pass; all of them without a condition."""

    where: Condition | None


@dataclass(frozen=True, slots=True)
class Extreme:
    """The least (`min`) or greatest (`max`) value of a column over the rows that pass."""

    aggregate: str
    column: str
    where: Condition | None


@dataclass(frozen=True, slots=True)
class Total:
    """The exact sum of a column of decimals over the rows that pass, and how many values it has.

    `aggregate` says what becomes of them in the end: `sum` or `avg`.
    """

    aggregate: str
    column: str
    where: Condition | None


@dataclass(frozen=True, slots=True)
class Keyed:
    """How many different keys there are, or how many rows stand beyond the first of theirs.

    A key with a NULL in it is none. `overlaps` tells which keys other files may have, too.
    """

    columns: tuple[str, ...]
    repeated: bool
    overlaps: Overlaps = ANYWHERE


Question = Count | Extreme | Total | Keyed | Keys
# None: this task cannot tell, and Spark has to be asked.
Part = Any


@dataclass(frozen=True, slots=True)
class Work:
    """The questions, and the types of the columns that they read, by exact names.

    A task holds so many keys of other files, too, before it hands them on.
    """

    questions: tuple[Question, ...]
    types: Mapping[str, DataType]
    most_keys: int = MOST_HELD


def columns_of(question: Question) -> frozenset[str]:
    """The columns that a question reads."""
    match question:
        case Count(where):
            return where.columns if where else frozenset()
        case Extreme(_, column, where) | Total(_, column, where):
            return frozenset({column}) | (where.columns if where else frozenset())
        case Keyed(columns) | Keys(columns):
            return frozenset(columns)


@dataclass(frozen=True, slots=True)
class Exchanged:
    """Some different keys of one bucket, for the question of this number."""

    question: int
    keys: Any


def answer(paths: Sequence[str], work: Work, buckets: int) -> Iterator[tuple[int, list[Part] | Exchanged]]:
    """The parts of all answers that these files give, in the order of the questions, and keys by bucket.

    A question whose evaluation fails gives None, and the others are answered all the same. Raises
    OSError and pyarrow's errors when a file cannot be read.
    """
    import pyarrow as pa

    # The task has one processor; its neighbours have the others.
    pa.set_cpu_count(1)
    return of_batches(_batches(paths, work), work, buckets)


def alone(paths: Sequence[str], work: Work) -> list[Part]:
    """The parts alone, where no question is about keys that are exchanged; else as `answer`."""
    ((_, parts),) = answer(paths, work, 1)
    assert isinstance(parts, list)
    return parts


def of_batches(
    batches: Iterable[Batch], work: Work, buckets: int
) -> Iterator[tuple[int, list[Part] | Exchanged]]:
    """The parts of all answers that these rows give, and their keys; see `answer`."""
    import pyarrow as pa

    parts: list[Part] = [_nothing(question, work) for question in work.questions]
    for batch in batches:
        for number, question in enumerate(work.questions):
            if parts[number] is not None:
                try:
                    parts[number] = _more(parts[number], question, batch)
                except (pa.ArrowException, ValueError):
                    parts[number] = None
            if isinstance(parts[number], KeysOfFile) and parts[number].shared.full:
                yield from _exchanged(parts[number], number, buckets)
    for number, part in enumerate(parts):
        if isinstance(part, KeysOfFile):
            yield from _exchanged(part, number, buckets)
    yield 0, [_done(part, question) for part, question in zip(parts, work.questions, strict=True)]


def _exchanged(part: KeysOfFile, number: int, buckets: int) -> Iterator[tuple[int, Exchanged]]:
    keys = part.shared.taken()
    if keys is not None:
        for bucket, some in cut(keys, buckets):
            yield bucket, Exchanged(number, some)


def merged(given: Iterable[list[Part] | Exchanged]) -> Iterator[list[Part] | tuple[int, int | None]]:
    """What the tasks of the files tell, as it is, and for each question how many keys the bucket has.

    None instead of a number where the bucket cannot tell.
    """
    import pyarrow as pa

    tallies: dict[int, KeyTally] = {}
    lost = set()
    for one in given:
        if isinstance(one, list):
            yield one
            continue
        try:
            tallies.setdefault(one.question, KeyTally()).add(one.keys)
        except pa.ArrowException:
            # More than 2 GB of texts.
            lost.add(one.question)
    for number, tally in tallies.items():
        keys = None if number in lost else tally.taken()
        yield number, None if keys is None else len(keys)


@dataclass(frozen=True, slots=True)
class Batch:
    """Some rows: how many they are, and their columns as Arrow arrays."""

    rows: int
    columns: Mapping[str, Any]


def _batches(paths: Sequence[str], work: Work) -> Iterator[Batch]:
    import pyarrow.parquet as pq

    wanted = sorted(frozenset().union(*(columns_of(question) for question in work.questions)))
    # What is compared is of one Arrow type; all else is counted as it stands.
    compared = {name: kind for name in wanted if (kind := work.types[name]).name in COMPARED}
    arrow = {name: arrow_type(kind) for name, kind in compared.items()}
    for path in paths:
        with opened(path) as source:
            file = pq.ParquetFile(source, pre_buffer=False)
            if not wanted:
                yield Batch(file.metadata.num_rows, {})
                continue
            # Spark answers with its error where it cannot read a column.
            if reason := next(filter(None, (unreadable_column(file.metadata, name) for name in wanted)), ""):
                raise ValueError(reason)
            for read in file.iter_batches(_BATCH, columns=wanted, use_threads=False):
                cast = {name: read[name].cast(arrow.get(name, read[name].type)) for name in wanted}
                yield Batch(read.num_rows, cast)


def _nothing(question: Question, work: Work) -> Part:
    match question:
        case Count():
            return 0
        case Extreme() | Keys():
            return []
        case Total():
            return Decimal(0), 0
        case _:
            return KeysOfFile(KeyTally(work.most_keys))


def _more(part: Part, question: Question, batch: Batch) -> Part:
    """The part with one batch more."""
    import pyarrow.compute as pc

    match question:
        case Count(where):
            if where is None:
                return part + batch.rows
            return part + (pc.sum(where.evaluate(batch.columns)).as_py() or 0)
        case Extreme(aggregate, column, where):
            found = pc.min_max(_passing(batch, column, where))[aggregate].as_py()
            return part if found is None else [*part, found]
        case Total(_, column, where):
            values = _passing(batch, column, where)
            return part[0] + (pc.sum(values).as_py() or 0), part[1] + len(values) - values.null_count
        case Keys(columns):
            return [*part, coded([batch.columns[name] for name in columns])]
        case Keyed(columns, _, overlaps):
            part.add(columns, [batch.columns[name] for name in columns], overlaps)
            return part


def _passing(batch: Batch, column: str, where: Condition | None) -> Any:
    values = batch.columns[column]
    return values if where is None else values.filter(where.evaluate(batch.columns))


def _done(part: Part, question: Question) -> Part:
    """The part as it travels to the driver."""
    if part is None:
        return None
    match question:
        case Extreme(aggregate, _, _):
            return ({"min": min, "max": max}[aggregate](part),) if part else ()
        case Keys():
            return run_of(part)
        case Keyed():
            return part.repeated()
        case _:
            return part


# From metrics to tasks and back: which of them Python tasks answer, and how their parts become answers.

# Whether the Python of Spark's tasks can run ours.


def unfit(context: SparkContext) -> str | None:
    """Why tasks of this application cannot run dq's functions, and what to do; None where they can.

    A task that lacks a module fails with its stack in the log of every executor, so that one is asked first
    that needs none of ours: a job, once for each application whose Python is not that of the driver.
    """
    python = str(context.pythonExec)
    return (
        None
        if shutil.which(python) == sys.executable
        else _workers_of(context, context.applicationId, python)
    )


@functools.lru_cache(64)
def _workers_of(context: SparkContext, _application: str, python: str) -> str | None:
    # Defined here, it travels as code and not by the name of its module.
    def lacks(_number: int) -> list[str]:
        from importlib.util import find_spec

        missing = []
        for name in ("dq", "dq.dataquality", "pyarrow", "numpy"):
            try:
                found = find_spec(name)
            except ImportError:
                found = None
            if found is None:
                missing.append(name)
        return missing

    answer = attempt(lambda: context.parallelize([0], 1).map(lacks).collect())
    if isinstance(answer, Failure):
        return f"the Python of Spark's tasks ({python}) does not run: {answer.message}. {_mend()}"
    (missing,) = answer
    return f"the Python of Spark's tasks ({python}) has no {missing[0]}. {_mend()}" if missing else None


def _mend() -> str:
    return f"Begin the session with PYSPARK_PYTHON={sys.executable}, or install dq with pyarrow there"


# Below, Spark answers before the Python workers have started (about 0.3 s of CPU each).
WORTH_ROWS = 1_000_000
# Keys that tasks exchange are counted in buckets of so many rows: at most 32 MB of integers for a task.
_BUCKET_ROWS = 4_000_000
# Of these, Spark may have written values in another calendar than it reads; known bounds exclude it.
_DATED = frozenset({"date"})
# Spark's average of decimals has four places more than the column. With more digits than this in the column
# its type, or that of the sum, would lack places.
_AVERAGE_PLACES, MOST_AVERAGED = 4, 18
_M = TypeVar("_M", bound=Metric | Keys)


def answers(
    metrics: Sequence[Metric], frame: DataFrame, files: Sequence[File], *, keys: bool, values: bool
) -> dict[Metric, Answer]:
    """The answers to those metrics that tasks over these Parquet files can give, in one Spark job.

    With `keys` those about repeated keys, with `values` those about the values of each row.

    `files` are all files that a query on the rows asked for would read, each of them wholly, with
    the bounds of the columns that the metrics need. What is left out is to be asked of Spark: metrics that
    may mean something else here, and those whose tasks failed.
    """
    types = _types(frame, files)
    asked = _asked(metrics, types, files, keys=keys, values=values)
    if not asked or not files:
        return {}
    work = Work(tuple(asked.values()), types)
    keyed = any(isinstance(one, Keyed) for one in work.questions)
    buckets = 1 + sum(file.rows for file in files) // _BUCKET_ROWS if keyed else 1
    told = in_exchanging_tasks(
        frame.sparkSession.sparkContext,
        [[file.path] for file in files],
        partial(answer, work=work, buckets=buckets),
        buckets,
        merged,
    )
    if isinstance(told, Failure):
        return {}
    return _answers(asked, told, types)


def _answers(
    asked: Mapping[Metric, Question],
    told: Sequence[list[Part] | tuple[int, int | None]],
    types: Mapping[str, DataType],
) -> dict[Metric, Answer]:
    """The answers of which no part is missing, of what tasks tell; see `merged`."""
    parts = [part for part in told if isinstance(part, list)]
    different: dict[int, list[int | None]] = {}
    for part in told:
        if isinstance(part, tuple):
            different.setdefault(part[0], []).append(part[1])
    found: dict[Metric, Answer] = {}
    for at, (metric, question) in enumerate(asked.items()):
        mine = [part[at] for part in parts]
        counts = [count for count in different.get(at, ()) if count is not None]
        if None not in mine and len(counts) == len(different.get(at, ())):
            found[metric] = _joined(question, mine, sum(counts), types)
    return found


def by_unit(
    metrics: Sequence[_M], frame: DataFrame, groups: Sequence[Sequence[File]], tasks_from: int
) -> dict[_M, list[Any]]:
    """The answers of each of these groups of files to what can be asked of tasks, in their order.

    Below `tasks_from` rows without Spark, in this process. What is left out is to be asked of Spark.
    """
    files = [file for unit in groups for file in unit]
    if not all(file.whole for file in files):
        return {}
    types = _types(frame, files)
    asked = _asked(metrics, types, files, keys=False, values=True)
    if not asked:
        return {}
    work = Work(tuple(asked.values()), types)
    addresses = [[file.path for file in unit] for unit in groups]
    if sum(file.rows for file in files) >= tasks_from:
        told = in_tasks(frame.sparkSession.sparkContext, addresses, partial(alone, work=work))
    else:
        told = _here(addresses, work)
    if isinstance(told, Failure):
        return {}
    return {
        metric: [_joined(question, [part[at]], 0, types) for part in told]
        for at, (metric, question) in enumerate(asked.items())
        if all(part[at] is not None for part in told)
    }


def _here(addresses: Sequence[Sequence[str]], work: Work) -> list[list[Part]] | Failure:
    """What tasks would give, from this process, which has other work for its processors."""
    import pyarrow as pa

    before = pa.cpu_count()
    try:
        return [alone(paths, work) for paths in addresses]
    except (OSError, ValueError, NotImplementedError, pa.ArrowException) as error:
        return Failure(type(error).__name__)
    finally:
        pa.set_cpu_count(before)


def in_memory(
    metrics: Sequence[Metric], schema: DataType, columns: Mapping[str, Any], rows: int
) -> dict[Metric, Answer]:
    """The answers that tasks would give to these metrics, of rows in this process, without Spark.

    `columns` are Arrow arrays of the types that the schema gives them, with no date before 1900.
    """
    types = {name: kind for name, kind in zip(schema.names, schema.parts, strict=True) if name in columns}
    asked = _asked(metrics, types, (), keys=True, values=True)
    work = Work(tuple(asked.values()), types)
    told = merged(part for _, part in of_batches([Batch(rows, columns)], work, 1))
    return _answers(asked, list(told), types)


def _types(frame: DataFrame, files: Sequence[File]) -> dict[str, DataType]:
    """The columns that every file holds as the frame has them, and that are compared byte by byte."""
    schema = schema_of(frame)
    folders = folder_columns(frame)
    found = {}
    for name, kind, stored in zip(schema.names, schema.parts, frame.schema.fields, strict=True):
        column = Column((name,))
        collated = kind.name == "string" and stored.dataType.simpleString() != "string"
        known = all(column in file.columns and _sure(file, column, kind) for file in files)
        # A dot would be taken for the way into a struct.
        if known and not collated and "." not in name and name not in folders:
            found[name] = kind
    return found


def _sure(file: File, column: Column, kind: DataType) -> bool:
    facts = file.of(column)
    return kind.name not in _DATED or facts.least is not None or facts.nulls == file.rows


def _asked(
    metrics: Iterable[_M], types: Mapping[str, DataType], files: Sequence[File], *, keys: bool, values: bool
) -> dict[_M, Question]:
    """The questions to a task, without those metrics that stay with Spark."""
    made = ((metric, _question(metric, types, files, keys=keys, values=values)) for metric in metrics)
    return {metric: one for metric, one in made if one is not None and columns_of(one) <= types.keys()}


def _question(
    metric: Metric | Keys, types: Mapping[str, DataType], files: Sequence[File], *, keys: bool, values: bool
) -> Question | None:
    if isinstance(metric, Keys):
        return metric if metric.sound(types) else None
    if isinstance(metric, RepeatedKeys):
        names = _names(metric.keys, types)
        if not keys or not names or metric.where:
            return None
        return Keyed(names, True, overlaps(files, metric.keys))
    if not values:
        return None
    if isinstance(metric, DistinctKeys):
        names = _names(metric.keys, types)
        return Keyed(names, False) if names and not metric.where else None
    if not isinstance(metric, Aggregate) or metric.kind is not Kind.ROWS:
        return None
    where: Condition | None = None
    if metric.where is not None:
        where = condition(metric.where, types)
        if where is None:
            return None
    return _aggregate(metric, types, where)


def _names(keys: Sequence[Column], types: Mapping[str, DataType]) -> tuple[str, ...] | None:
    found = [str(key.steps[0]) for key in keys if len(key.steps) == 1]
    sound = len(found) == len(keys) and all(name in types and types[name].name in COMPARED for name in found)
    return tuple(found) if sound else None


def _aggregate(metric: Aggregate, types: Mapping[str, DataType], where: Condition | None) -> Question | None:
    if metric.name == "count" and metric.value is None:
        return Count(where)
    name = column(metric.value, types)
    if name is None:
        return None
    kind = types[name]
    if metric.name in ("min", "max") and kind.name in INTEGERS | {"decimal", "date"}:
        return Extreme(metric.name, name, where)
    if metric.name in ("sum", "avg") and kind.name == "decimal" and kind.numbers[0] <= MOST_AVERAGED:
        return Total(metric.name, name, where)
    return None


def _joined(question: Question, parts: Sequence[Part], different: int, types: Mapping[str, DataType]) -> Any:
    match question:
        case Count():
            return sum(parts)
        case Keys():
            return parts[0]
        case Keyed(_, repeated, _):
            # Of the rows whose keys were exchanged, one for each key is no repetition.
            return sum(parts) - different if repeated else different
        case Extreme(aggregate, _, _):
            found = [value for part in parts for value in part]
            return {"min": min, "max": max}[aggregate](found) if found else None
        case Total(aggregate, column, _):
            total, number = sum((part[0] for part in parts), Decimal(0)), sum(part[1] for part in parts)
            if aggregate == "sum" or not number:
                return total if number else None
            return average(total, number, types[column].numbers[1])


def average(total: Decimal, number: int, scale: int) -> Decimal:
    """As Spark divides decimals: to 38 digits, and then to four places more than the column has."""
    with localcontext(prec=38, rounding=ROUND_HALF_UP):
        return (total / number).quantize(Decimal(1).scaleb(-scale - _AVERAGE_PLACES))
