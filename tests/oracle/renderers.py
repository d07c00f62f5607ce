"""Predicates through every renderer and the plain evaluator: where two of them differ on a row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from oracle.tree_truth import Plain, Truth
from oracle.trees import SCHEMA, Row

from dq.contracts.sql.text import name as quoted
from dq.contracts.types import DataType
from dq.dataquality.answers.python_tasks import Condition, condition
from dq.dataquality.answers.rows import compile_truth
from dq.dataquality.model import predicate as p
from dq.dataquality.model.predicate import UnsupportedPredicate
from dq.dataquality.sql_predicate import predicate_sql
from dq.lake.types import arrow_type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# So many predicates in one query: Spark compiles no more into one method.
_AT_ONCE = 50


@dataclass(frozen=True, slots=True)
class Difference:
    """An engine that says of a row something else than the plain evaluator."""

    engine: str
    predicate: p.Predicate
    row: Row
    said: object
    plain: Truth

    def __str__(self) -> str:
        return (
            f"{self.engine} says {self.said}, plain Python {self.plain}: {self.predicate!r} of {self.row!r}"
        )


def compared(
    predicates: Sequence[p.Predicate],
    rows: Sequence[Row],
    meanings: Mapping[str, p.Predicate],
    spark: SparkSession | None,
    asked: Counter[str],
    schema: DataType = SCHEMA,
) -> Iterator[Difference]:
    """Where engines differ. `asked` counts the pairs of a predicate and a row that each engine answered."""
    plain = Plain(meanings)
    wanted = [[plain.truth(one, row, schema) for row in rows] for one in predicates]
    engines: dict[str, Sequence[Sequence[object] | None]] = {
        "Python": [_in_memory(one, rows, schema) for one in predicates],
        "Arrow": _in_arrow(predicates, rows, schema),
    }
    if spark is not None:
        engines["Spark"] = _in_spark(predicates, rows, spark, schema)
    for name, answers in engines.items():
        for one, said, truths in zip(predicates, answers, wanted, strict=True):
            if said is None:
                continue
            asked[name] += len(rows)
            for row, here, there in zip(rows, said, truths, strict=True):
                if here is not there:
                    yield Difference(name, one, row, here, there)


def _in_memory(predicate: p.Predicate, rows: Sequence[Row], schema: DataType) -> list[object] | None:
    try:
        holds = compile_truth(predicate, schema)
    except UnsupportedPredicate:
        return None
    return [holds(row) for row in rows]


def _in_arrow(
    predicates: Sequence[p.Predicate], rows: Sequence[Row], schema: DataType
) -> list[list[object] | None]:
    """Of the columns that tasks read."""
    pairs = zip(schema.names, schema.parts, strict=True)
    flat = {name: kind for name, kind in pairs if not kind.parts and kind.name != "binary"}
    columns = {name: pa.array([row[name] for row in rows], arrow_type(kind)) for name, kind in flat.items()}
    return [_evaluated(condition(one, flat), columns) for one in predicates]


def _evaluated(made: Condition | None, columns: Mapping[str, Any]) -> list[object] | None:
    """As a task does it: what fails there is asked of Spark."""
    try:
        return None if made is None else list(made.evaluate(columns).to_pylist())
    except (pa.ArrowException, ValueError):
        return None


def frame_of(rows: Sequence[Row], spark: SparkSession, schema: DataType) -> DataFrame:
    """The rows as a cached frame, with their number in `_at`."""
    pairs = list(zip(schema.names, schema.parts, strict=True))
    told = [(at, *(_spark(row[name], kind) for name, kind in pairs)) for at, row in enumerate(rows)]
    ddl = ", ".join(f"{quoted(name)} {_ddl(kind)}" for name, kind in pairs)
    return spark.createDataFrame(told, f"_at int, {ddl}").coalesce(1).cache()


def _ddl(kind: DataType) -> str:
    if kind.name == "struct":
        pairs = zip(kind.names, kind.parts, strict=True)
        return f"struct<{', '.join(f'{quoted(name)}: {_ddl(part)}' for name, part in pairs)}>"
    return f"{kind.name}<{', '.join(map(_ddl, kind.parts))}>" if kind.parts else str(kind)


def _spark(value: Any, kind: DataType) -> Any:
    if value is None or not kind.parts:
        return value
    if kind.name == "struct":
        return tuple(_spark(value[name], part) for name, part in zip(kind.names, kind.parts, strict=True))
    if kind.name == "map":
        return {key: _spark(one, kind.parts[1]) for key, one in value}
    return [_spark(one, kind.parts[0]) for one in value]


def _in_spark(
    predicates: Sequence[p.Predicate], rows: Sequence[Row], spark: SparkSession, schema: DataType
) -> list[list[object]]:
    frame = frame_of(rows, spark, schema)
    answers: list[list[object]] = []
    for begin in range(0, len(predicates), _AT_ONCE):
        some = predicates[begin : begin + _AT_ONCE]
        asked = [f"{predicate_sql(one, schema)} AS `{at}`" for at, one in enumerate(some)]
        found = sorted(frame.selectExpr("_at", *asked).collect(), key=lambda row: row[0])
        answers += [[row[at + 1] for row in found] for at in range(len(some))]
    frame.unpersist()
    return answers
