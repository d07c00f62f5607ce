"""Python functions as tasks of a Spark Connect server, which has no RDDs: rows of pickled values."""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import is_dataclass
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

Item = TypeVar("Item")
Part = TypeVar("Part")
Result = TypeVar("Result")

_SCHEMA = "number int, content binary"


def map_items(spark: SparkSession, items: Sequence[Item], work: Callable[[Item], Result]) -> list[Result]:
    """Return the result of `work` for each item, in order, with one task per item."""
    return _collect(_as_rows(spark, items).mapInArrow(partial(_map, work=work), _SCHEMA))


def exchange_items(
    spark: SparkSession,
    items: Sequence[Item],
    work: Callable[[Item], Iterable[tuple[int, Part]]],
    buckets: int,
    merge: Callable[[Iterable[Part]], Iterable[Result]],
) -> list[Result]:
    """Return the merged results of all buckets, in their order; `work` yields parts with their buckets."""
    parts = _as_rows(spark, items).mapInArrow(partial(_split, work=work), _SCHEMA)
    merged = parts.repartition(buckets, "number").mapInArrow(partial(_merge, merge=merge), _SCHEMA)
    return _collect(merged)


def _as_rows(spark: SparkSession, items: Sequence[Item]) -> DataFrame:
    rows = [(number, _pickled(item)) for number, item in enumerate(items)]
    return spark.createDataFrame(rows, _SCHEMA).repartition(len(rows))


def _collect(frame: DataFrame) -> list[Any]:
    rows = sorted(frame.collect(), key=lambda row: row.number)
    return [_Answers(io.BytesIO(row.content)).load() for row in rows]


_SAFE = {
    "builtins": {"complex", "frozenset", "set"},
    "datetime": {"date", "datetime", "time", "timedelta", "timezone"},
    "decimal": {"Decimal"},
    "fractions": {"Fraction"},
    "numpy": {"dtype", "ndarray"},
    "numpy.core.multiarray": {"_reconstruct", "scalar"},
    "numpy._core.multiarray": {"_reconstruct", "scalar"},
    "numpy._core.numeric": {"_frombuffer"},
}


class _Answers(pickle.Unpickler):
    """Reader of answers that creates values only: a server has the data, and may not run code here."""

    def find_class(self, module: str, name: str) -> Any:
        """Return a class of values. Raises PySparkException for anything else."""
        from pyspark.errors import PySparkException

        if name in _SAFE.get(module, ()):
            return super().find_class(module, name)
        if module.startswith("dq.dataquality.") and "." not in name:
            value = super().find_class(module, name)
            is_own = isinstance(value, type) and value.__module__ == module
            if is_own and (is_dataclass(value) or issubclass(value, Enum)):
                return value
        raise PySparkException(f"the server's answer has {module}.{name}, which is not a value.")


def _pickled(value: object) -> bytes:
    # The pickler of Spark's own tasks: nested functions are pickled by value.
    from pyspark import cloudpickle

    return bytes(cloudpickle.dumps(value))  # type: ignore[no-untyped-call]


def _map(batches: Iterable[pa.RecordBatch], work: Callable[[Any], object]) -> Iterator[pa.RecordBatch]:
    for number, item in _values(batches):
        yield _batch(number, work(item))


def _split(
    batches: Iterable[pa.RecordBatch], work: Callable[[Any], Iterable[tuple[int, object]]]
) -> Iterator[pa.RecordBatch]:
    for _, item in _values(batches):
        for bucket, part in work(item):
            yield _batch(bucket, part)


def _merge(
    batches: Iterable[pa.RecordBatch], merge: Callable[[Iterable[Any]], Iterable[object]]
) -> Iterator[pa.RecordBatch]:
    parts: dict[int, list[Any]] = {}
    for bucket, part in _values(batches):
        parts.setdefault(bucket, []).append(part)
    for bucket in sorted(parts):
        for result in merge(parts[bucket]):
            yield _batch(bucket, result)


def _values(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, Any]]:
    for batch in batches:
        for number, content in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            yield number, pickle.loads(content)


def _batch(number: int, value: object) -> pa.RecordBatch:
    import pyarrow as pa

    columns = [pa.array([number], pa.int32()), pa.array([_pickled(value)], pa.binary())]
    return pa.RecordBatch.from_arrays(columns, ["number", "content"])
