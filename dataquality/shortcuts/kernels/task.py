"""What one Python task does: some Parquet files read once, and its part of every answer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from dq.contracts.types import DataType
from dq.dataquality.shortcuts.kernels.codes import Keys, coded, run_of
from dq.dataquality.shortcuts.kernels.condition import Condition
from dq.dataquality.spark.readers.columnar import opened

_BATCH = 131_072
# So many values that may repeat are held before they are thinned out.
_HELD = 2_000_000
# So many rows with values that other units have too are handed on; more are no mere cut between two files.
_MOST_HANDED = 100_000


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
class Distinct:
    """The different values of a column, as an Arrow array, when there are at most `most` of them."""

    column: str
    most: int


@dataclass(frozen=True, slots=True)
class Repeated:
    """How many rows stand beyond the first of their key, among the files of one unit.

    Rows whose `column` has one of the `shared` values are not counted but handed on, as other units have
    such rows too.
    """

    columns: tuple[str, ...]
    column: str = ""
    shared: tuple[Any, ...] = ()


Question = Count | Extreme | Total | Distinct | Repeated | Keys
# None: this task cannot tell, and Spark has to be asked.
Part = Any


@dataclass(frozen=True, slots=True)
class Work:
    """The questions, and the types of the columns that they read, by exact names."""

    questions: tuple[Question, ...]
    types: Mapping[str, DataType]


def columns_of(question: Question) -> frozenset[str]:
    """The columns that a question reads."""
    match question:
        case Count(where):
            return where.columns if where else frozenset()
        case Extreme(_, column, where) | Total(_, column, where):
            return frozenset({column}) | (where.columns if where else frozenset())
        case Distinct(column, _):
            return frozenset({column})
        case Repeated(columns, _, _) | Keys(columns):
            return frozenset(columns)


@dataclass(slots=True)
class _Tally:
    """What has been seen so far of the values of a distinct count or a key."""

    parts: list[Any] = field(default_factory=list)
    rows: int = 0
    lost: bool = False


def answer(paths: Sequence[str], work: Work) -> list[Part]:
    """The parts of all answers that these files give, in the order of the questions.

    A question whose evaluation fails gives None, and the others are answered all the same. Raises
    OSError and pyarrow's errors when a file cannot be read.
    """
    import pyarrow as pa

    # The task has one processor; its neighbours have the others.
    pa.set_cpu_count(1)
    return of_batches(_batches(paths, work), work)


def of_batches(batches: Iterable[Batch], work: Work) -> list[Part]:
    """The parts of all answers that these rows give; see `answer`."""
    import pyarrow as pa

    parts: list[Part] = [_nothing(question) for question in work.questions]
    for batch in batches:
        for number, question in enumerate(work.questions):
            if parts[number] is not None:
                try:
                    parts[number] = _more(parts[number], question, batch)
                except (pa.ArrowException, ValueError):
                    parts[number] = None
    return [_done(part, question) for part, question in zip(parts, work.questions, strict=True)]


@dataclass(frozen=True, slots=True)
class Batch:
    """Some rows: how many they are, and their columns as Arrow arrays."""

    rows: int
    columns: Mapping[str, Any]


def _batches(paths: Sequence[str], work: Work) -> Iterator[Batch]:
    import pyarrow.parquet as pq

    wanted = sorted(frozenset().union(*(columns_of(question) for question in work.questions)))
    arrow = {name: _arrow(work.types[name]) for name in wanted}
    for path in paths:
        with opened(path) as source:
            file = pq.ParquetFile(source, pre_buffer=False)
            if not wanted:
                yield Batch(file.metadata.num_rows, {})
                continue
            for read in file.iter_batches(_BATCH, columns=wanted, use_threads=False):
                cast = {name: read[name].cast(kind or read[name].type) for name, kind in arrow.items()}
                yield Batch(read.num_rows, cast)


def _arrow(kind: DataType) -> Any:
    """The one Arrow type in which values of this type are compared; None for any."""
    import pyarrow as pa

    if kind.name == "decimal":
        return pa.decimal128(*kind.numbers)
    made = {
        "tinyint": pa.int8,
        "smallint": pa.int16,
        "int": pa.int32,
        "bigint": pa.int64,
        "date": pa.date32,
        "string": pa.string,
        "boolean": pa.bool_,
    }.get(kind.name)
    return made() if made else None


def _nothing(question: Question) -> Part:
    match question:
        case Count():
            return 0
        case Extreme():
            return []
        case Total():
            return Decimal(0), 0
        case Keys():
            return []
        case _:
            return _Tally()


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
        case Distinct(column, most):
            return _seen(part, [pc.unique(batch.columns[column].drop_null())], most)
        case Keys(columns):
            return [*part, coded([batch.columns[name] for name in columns])]
        case Repeated(columns, _, _):
            part.parts.append([batch.columns[name] for name in columns])
            return part


def _passing(batch: Batch, column: str, where: Condition | None) -> Any:
    values = batch.columns[column]
    return values if where is None else values.filter(where.evaluate(batch.columns))


def _seen(tally: _Tally, values: list[Any], most: int) -> _Tally:
    tally.parts += values
    tally.rows += sum(len(one) for one in values)
    if tally.rows > _HELD:
        kept = _unique(tally.parts)
        tally.parts, tally.rows = [kept], len(kept)
        tally.lost = tally.lost or len(kept) > most
        if tally.lost:
            tally.parts, tally.rows = [], 0
    return tally


def _unique(parts: list[Any]) -> Any:
    import pyarrow as pa

    return pa.chunked_array(parts).unique()


def _done(part: Part, question: Question) -> Part:
    """The part as it travels to the driver."""
    match question:
        case Extreme(aggregate, _, _):
            return part if part is None else ({"min": min, "max": max}[aggregate](part),) if part else ()
        case Distinct(_, most):
            if part is None or part.lost:
                return None
            kept = _unique(part.parts) if part.parts else []
            return kept if len(kept) <= most else None
        case Keys():
            return part if part is None else run_of(part)
        case Repeated():
            return part if part is None else _repeated(part.parts, question)
        case _:
            return part


def _repeated(parts: list[list[Any]], question: Repeated) -> Part:
    """Rows beyond the first of each key, those with a NULL in it left out, and the keys to be handed on."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not parts:
        return 0, []
    keys = [pa.chunked_array(chunks).combine_chunks() for chunks in zip(*parts, strict=True)]
    if any(key.null_count for key in keys):
        present = keys[0].is_valid()
        for key in keys[1:]:
            present = pc.and_(present, key.is_valid())
        keys = [key.filter(present) for key in keys]
    handed: list[Any] = []
    if question.shared:
        split = keys[question.columns.index(question.column)]
        found = pc.is_in(split, value_set=pa.array(question.shared, split.type))
        handed = [key.filter(found) for key in keys]
        if len(handed[0]) > _MOST_HANDED:
            return None
        keys = [key.filter(pc.invert(found)) for key in keys]
    return beyond_first(keys), handed


def beyond_first(keys: list[Any]) -> int:
    """How many rows repeat the key of another one; the columns of the keys are Arrow arrays without NULL."""
    import pyarrow as pa

    if len(keys[0]) < 2 or _increasing(keys):
        return 0
    names = [str(number) for number in range(len(keys))]
    groups = pa.table(keys, names).group_by(names, use_threads=False).aggregate([([], "count_all")])
    return len(keys[0]) - int(groups.num_rows)


def _increasing(keys: list[Any]) -> bool:
    """Whether every key is greater than the one before it: sorted data, the usual case, has none twice."""
    import pyarrow.compute as pc

    found = None
    for key in reversed(keys):
        before, after = key[:-1], key[1:]
        less = pc.less(before, after)
        found = less if found is None else pc.or_(less, pc.and_(pc.equal(before, after), found))
    return bool(pc.all(found).as_py())
