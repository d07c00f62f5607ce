"""What one Python task does: some Parquet files read once, and its part of every answer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from dq.contracts.types import DataType
from dq.dataquality.answers.python_tasks.condition import COMPARED, Condition
from dq.dataquality.answers.python_tasks.keys import (
    ANYWHERE,
    MOST_HELD,
    Keys,
    KeysOfFile,
    KeyTally,
    Overlaps,
    coded,
    cut,
    run_of,
)
from dq.dataquality.spark.readers.columnar import opened
from dq.lake.parquet import unreadable_chunk
from dq.lake.types import arrow_type

if TYPE_CHECKING:
    from pyarrow.parquet import FileMetaData


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
            _require_readable(file.metadata, wanted)
            for read in file.iter_batches(_BATCH, columns=wanted, use_threads=False):
                cast = {name: read[name].cast(arrow.get(name, read[name].type)) for name in wanted}
                yield Batch(read.num_rows, cast)


def _require_readable(meta: FileMetaData, names: Sequence[str]) -> None:
    """Raise ValueError for a column that Spark cannot read: it answers then, with its error."""
    for group in map(meta.row_group, range(meta.num_row_groups)):
        for chunk in map(group.column, range(group.num_columns)):
            if chunk.path_in_schema in names and (reason := unreadable_chunk(chunk)):
                raise ValueError(reason)


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
