"""The plan: which metrics are asked together, so that the data is read as seldom as pays off."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from dq.contracts.types import MAX_PRECISION, DataType
from dq.dataquality.model.column import Need, key_digits, resolve
from dq.dataquality.model.metric import (
    Aggregate,
    DistinctKeys,
    Failure,
    Kind,
    Metric,
    PerGroup,
    Schema,
    SingleKeys,
    reads,
)
from dq.dataquality.sql.spark_predicate import question

# The JVM interprets a generated method that has more than 8,000 bytecodes. Measured on Spark 4.0, 2 million
# rows, counts of plain predicates, CPU seconds: 120 in one pass 3.7 (in two 4.6), 200 in one pass 8.3 (in
# two 5.5). So a pass pays up to about 120 expressions, and a second one beyond.
MAX_EXPRESSIONS = 100
# Kinds of which one job answers many; a list of values beside them would keep the others from being compiled.
_SHARED = (Kind.ROWS, Kind.INTERPRETED, Kind.RANKED)
# Text of one query that is parsed and planned on the driver; long lists of values come to that.
MAX_CHARACTERS = 100_000


@dataclass(frozen=True, slots=True)
class Pass:
    """Metrics that one Spark job answers. `kind` is that of all of them."""

    kind: Kind
    metrics: tuple[Metric, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """Passes over the data, and the metrics whose failure is known before anything runs."""

    passes: tuple[Pass, ...]
    failures: tuple[tuple[Metric, Failure], ...]


def plan(metrics: Iterable[Metric], schema: DataType) -> Plan:
    """The passes that answer these metrics on data of this schema (a struct type).

    Aggregates that Spark can compile share a pass, those with a lambda share another one, and every key
    set, relationship and query has its own: one lambda or distinct count inside of the big aggregation
    makes all of it slow (40 counts and a lambda: 5.0 CPU seconds in one pass, 2.5 in two). SCHEMA needs no
    pass. A metric with a column that is missing or of a wrong type is a failure.
    """
    distinct = dict.fromkeys(metrics)
    failures = {metric: failure for metric in distinct if (failure := _unmet(metric, schema))}
    sound = [metric for metric in distinct if metric not in failures]
    aggregates = [metric for metric in sound if isinstance(metric, Aggregate)]
    passes = [
        Pass(kind, chunk)
        for kind in _SHARED
        for chunk in _chunks([metric for metric in aggregates if metric.kind is kind], schema)
    ]
    passes += [Pass(one[0].kind, one) for one in _together(sound)]
    return Plan(tuple(passes), tuple(failures.items()))


def _together(metrics: Iterable[Metric]) -> Iterable[tuple[Metric, ...]]:
    """Those that are no aggregates of all rows: equal groups together, and what is told of one key."""
    found: dict[object, tuple[Metric, ...]] = {}
    for metric in metrics:
        if not isinstance(metric, Aggregate | Schema):
            shared = _shared(metric)
            found[shared] = (*found.get(shared, ()), metric)
    return found.values()


def _shared(metric: Metric) -> object:
    """What is equal for metrics that one pass answers."""
    if isinstance(metric, PerGroup):
        of = metric.of
        told = of.kind if isinstance(of, Aggregate) else ("keys", of.keys, of.where)
        return metric.by, metric.within, told
    return ("keys", metric.keys, metric.where) if isinstance(metric, SingleKeys | DistinctKeys) else metric


def _unmet(metric: Metric, schema: DataType) -> Failure | None:
    reasons = (_unmet_need(need, schema) for need in reads(metric))
    return next((Failure(reason) for reason in reasons if reason), None)


def _unmet_need(need: Need, schema: DataType) -> str | None:
    found = resolve(schema, need.column)
    if isinstance(found, str):
        return found
    if need.types and found.name not in need.types:
        return f"column {str(need.column)!r} is {found}; it can be tested as {', '.join(sorted(need.types))}"
    # Spark compares both as one decimal. Where 38 digits do not hold both, 3.5 overflows, which without ANSI
    # is NULL and breaks nothing, and 4.0 rounds.
    precision, scale = key_digits(found)
    before, after = need.digits
    if precision and max(precision - scale, before) + max(scale, after) > MAX_PRECISION:
        return (
            f"column {str(need.column)!r} is {found} and the contract's number has {before} digits before"
            f" the point and {after} after it; {MAX_PRECISION} digits do not hold both"
        )
    return None


def _chunks(metrics: list[Aggregate], schema: DataType) -> Iterator[tuple[Aggregate, ...]]:
    chunk: list[Aggregate] = []
    characters = 0
    for metric in metrics:
        size = len(question(metric, schema))
        if chunk and (len(chunk) == MAX_EXPRESSIONS or characters + size > MAX_CHARACTERS):
            yield tuple(chunk)
            chunk, characters = [], 0
        chunk.append(metric)
        characters += size
    if chunk:
        yield tuple(chunk)
