"""From metrics to tasks and back: which of them Python tasks answer, and how their parts become answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_HALF_UP, Decimal, localcontext
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from dq.contracts.types import DataType
from dq.dataquality.model.column import Column
from dq.dataquality.model.metric import Aggregate, Answer, DistinctKeys, Failure, Kind, Metric, RepeatedKeys
from dq.dataquality.model.term import INTEGERS
from dq.dataquality.shortcuts.kernels.codes import Keys
from dq.dataquality.shortcuts.kernels.condition import Condition, column, condition
from dq.dataquality.shortcuts.kernels.task import (
    Batch,
    Count,
    Distinct,
    Extreme,
    Part,
    Question,
    Repeated,
    Total,
    Work,
    answer,
    beyond_first,
    columns_of,
    of_batches,
)
from dq.dataquality.shortcuts.kernels.units import Unit, joined, units
from dq.dataquality.shortcuts.statistics.facts import File
from dq.dataquality.shortcuts.statistics.parquet import folder_columns
from dq.dataquality.spark.measure import schema_of
from dq.dataquality.spark.tasks import in_tasks

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# Below, Spark answers before the Python workers have started (about 0.3 s of CPU each).
WORTH_ROWS = 1_000_000
# So many different values of one column come to the driver, over all tasks: 80 MB of integers.
MOST_DISTINCT = 10_000_000
_KEYS = INTEGERS | {"decimal", "date", "string", "boolean"}
# Of these, Spark may have written values in another calendar than it reads; known bounds exclude it.
_DATED = frozenset({"date"})
# Spark's average of decimals has four places more than the column. With more digits than this in the column
# its type, or that of the sum, would lack places.
_AVERAGE_PLACES, MOST_AVERAGED = 4, 18


@dataclass(frozen=True, slots=True)
class _Asked:
    metric: Metric
    question: Question


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
    asked = [
        _Asked(metric, question)
        for metric in metrics
        if (question := _question(metric, types, len(files), keys=keys, values=values)) is not None
        and columns_of(question) <= types.keys()
    ]
    grouped: tuple[Unit, ...] = tuple((file,) for file in files)
    chosen: list[_Asked] = []
    for one in asked:
        if isinstance(one.question, Repeated):
            apart = units(files, [Column((name,)) for name in one.question.columns])
            both = joined(grouped, apart.units) if apart else None
            if apart is None or both is None:
                continue
            grouped = both
            split = replace(one.question, column=apart.column, shared=apart.shared)
            one = replace(one, question=split)
        chosen.append(one)
    if not chosen or not grouped:
        return {}
    work = Work(tuple(one.question for one in chosen), {name: types[name] for name in types})
    addresses = [[file.path for file in unit] for unit in grouped]
    parts = in_tasks(frame.sparkSession.sparkContext, addresses, partial(answer, work=work))
    if isinstance(parts, Failure):
        return {}
    found: dict[Metric, Answer] = {}
    for number, one in enumerate(chosen):
        mine = [part[number] for part in parts]
        if all(part is not None for part in mine):
            found[one.metric] = _merged(one.question, mine, types)
    return found


_Told = TypeVar("_Told", Aggregate, Keys)


def by_unit(
    metrics: Sequence[_Told], frame: DataFrame, groups: Sequence[Unit], tasks_from: int
) -> dict[_Told, list[Any]]:
    """The answers of each of these groups of files to what can be asked of tasks, in their order.

    Below `tasks_from` rows without Spark, in this process. What is left out is to be asked of Spark.
    """
    files = [file for unit in groups for file in unit]
    if not all(file.whole for file in files):
        return {}
    types = _types(frame, files)
    asked: list[tuple[_Told, Question]] = []
    for metric in metrics:
        if isinstance(metric, Keys):
            question: Question | None = metric if metric.sound(types) else None
        else:
            question = _question(metric, types, len(files), keys=False, values=True)
        if question is not None and columns_of(question) <= types.keys():
            asked.append((metric, question))
    if not asked:
        return {}
    work = Work(tuple(question for _, question in asked), types)
    addresses = [[file.path for file in unit] for unit in groups]
    if sum(file.rows for file in files) >= tasks_from:
        told = in_tasks(frame.sparkSession.sparkContext, addresses, partial(answer, work=work))
    else:
        told = _here(addresses, work)
    if isinstance(told, Failure):
        return {}
    return {
        metric: [_merged(question, [part[at]], types) for part in told]
        for at, (metric, question) in enumerate(asked)
        if all(part[at] is not None for part in told)
    }


def _here(addresses: Sequence[Sequence[str]], work: Work) -> list[list[Part]] | Failure:
    """What tasks would give, from this process, which has other work for its processors."""
    import pyarrow as pa

    before = pa.cpu_count()
    try:
        return [answer(paths, work) for paths in addresses]
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
    made = ((metric, _question(metric, types, 1, keys=True, values=True)) for metric in metrics)
    asked = [(metric, one) for metric, one in made if one is not None and columns_of(one) <= types.keys()]
    work = Work(tuple(question for _, question in asked), types)
    parts = of_batches([Batch(rows, columns)], work)
    return {
        metric: _merged(question, [part], types)
        for (metric, question), part in zip(asked, parts, strict=True)
        if part is not None
    }


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


def _question(
    metric: Metric, types: Mapping[str, DataType], files: int, *, keys: bool, values: bool
) -> Question | None:
    """The question to a task; None for a metric that stays with Spark."""
    if isinstance(metric, RepeatedKeys):
        names = _names(metric.keys, types)
        return Repeated(names) if keys and names and not metric.where else None
    if not values:
        return None
    if isinstance(metric, DistinctKeys):
        names = _names(metric.keys, types)
        plain = names is not None and len(names) == 1 and not metric.where
        return Distinct(names[0], MOST_DISTINCT // files) if plain and names else None
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
    sound = len(found) == len(keys) and all(name in types and types[name].name in _KEYS for name in found)
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


def _merged(question: Question, parts: Sequence[Part], types: Mapping[str, DataType]) -> Any:
    match question:
        case Count():
            return sum(parts)
        case Keys():
            return parts[0]
        case Repeated():
            return sum(count for count, _ in parts) + _across([handed for _, handed in parts])
        case Extreme(aggregate, _, _):
            found = [value for part in parts for value in part]
            return {"min": min, "max": max}[aggregate](found) if found else None
        case Distinct():
            return _different(parts)
        case Total(aggregate, column, _):
            total, number = sum((part[0] for part in parts), Decimal(0)), sum(part[1] for part in parts)
            if aggregate == "sum" or not number:
                return total if number else None
            return average(total, number, types[column].numbers[1])


def average(total: Decimal, number: int, scale: int) -> Decimal:
    """As Spark divides decimals: to 38 digits, and then to four places more than the column has."""
    with localcontext(prec=38, rounding=ROUND_HALF_UP):
        return (total / number).quantize(Decimal(1).scaleb(-scale - _AVERAGE_PLACES))


def _across(handed: Sequence[list[Any]]) -> int:
    """The repeated keys among those that stand in several units."""
    import pyarrow as pa

    held = [keys for keys in handed if keys]
    return beyond_first([pa.concat_arrays(chunks) for chunks in zip(*held, strict=True)]) if held else 0


def _different(parts: Sequence[Any]) -> int:
    import pyarrow as pa

    held = [part for part in parts if len(part)]
    return len(pa.chunked_array(held).unique()) if held else 0
