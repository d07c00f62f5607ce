"""Metrics to Python tasks and back: what a task does, and how parts become answers."""

from __future__ import annotations

import functools
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal, localcontext
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from dq.contracts.types import DataType
from dq.dataquality.answers.python_tasks.condition import COMPARED, Condition, column, condition
from dq.dataquality.answers.python_tasks.keys import (
    ANYWHERE,
    MOST_HELD,
    Keys,
    KeysOfFile,
    KeyTally,
    Overlaps,
    coded,
    cut,
    overlaps,
    run_of,
)
from dq.dataquality.answers.statistics.facts import File
from dq.dataquality.answers.statistics.parquet import folder_columns
from dq.dataquality.model.column import Column
from dq.dataquality.model.metric import Aggregate, Answer, DistinctKeys, Failure, Kind, Metric, RepeatedKeys
from dq.dataquality.model.predicate import INTEGERS
from dq.dataquality.spark.measure import schema_of
from dq.dataquality.spark.readers.columnar import opened
from dq.dataquality.spark.session import attempt, in_exchanging_tasks, in_tasks
from dq.lake.parquet import unreadable_column
from dq.lake.types import arrow_type

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import DataFrame


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
    for name, kind, field in zip(schema.names, schema.parts, frame.schema.fields, strict=True):
        column = Column((name,))
        collated = kind.name == "string" and field.dataType.simpleString() != "string"
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
