"""The plan of a measurement, and its run by Spark: answers for all rows, for groups and for partitions."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from dq.contracts.sql import text as sql
from dq.contracts.types import MAX_PRECISION, DataType
from dq.dataquality.model.column import Column, Need, incomparable, key_digits, resolve
from dq.dataquality.model.metric import (
    RANKS,
    SCHEMA,
    Aggregate,
    Answer,
    Answers,
    Call,
    DistinctKeys,
    Failure,
    Group,
    Keyed,
    Kind,
    Metric,
    Number,
    OfRows,
    PerGroup,
    Query,
    RepeatedKeys,
    Schema,
    SingleKeys,
    UnmatchedKeys,
    count,
    of_users,
    one_number,
    reads,
)
from dq.dataquality.model.predicate import INTEGERS, And, Function, Path
from dq.dataquality.spark import session
from dq.dataquality.sql_predicate import predicate_sql, question
from dq.lake.types import from_spark_json

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row


# The plan: which metrics are asked together, so that the data is read as seldom as pays off.

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


# Runs Spark: a plan on a DataFrame to answers, for all rows, for groups and for partitions.

# Metrics that are asked together, and apart where that fails.

M = TypeVar("M", bound=Metric)
# Of a failed aggregation at most so many halves are tried: with one broken column that is plenty for a
# thousand metrics, and on a table that is broken everywhere it ends soon.
MAX_HALVES = 64


def halved(
    metrics: tuple[M, ...], watch: session.Watch, ask: Callable[[tuple[M, ...]], list[Answer]]
) -> dict[Metric, Answer]:
    """Asks all at once; where that fails, halves, until those that have no answer stand alone."""
    answers: dict[Metric, Answer] = {}
    stack, failed = [metrics], 0
    while stack:
        asked = stack.pop()
        if watch.over:
            answers |= dict.fromkeys(asked, watch.failure())
            continue
        values = session.answered(lambda asked=asked: ask(asked))  # type: ignore[misc]  # bound at once
        if not isinstance(values, Failure):
            answers |= dict(zip(asked, values, strict=True))
            continue
        failed += 1
        if len(asked) == 1 or failed > MAX_HALVES or watch.over:
            answers |= dict.fromkeys(asked, values)
        else:
            middle = len(asked) // 2
            stack += [asked[middle:], asked[:middle]]
    return answers


# Metrics for each group of rows, and of keys by how often they stand: those that group before they count.

OfKeys = DistinctKeys | SingleKeys | RepeatedKeys
"""What is told by how often each key stands."""
# A verdict for each of more groups is read by nobody, and their values are kept.
MOST_GROUPS = 1_000


def group_name(value: object) -> str | None:
    """How the value of a group's column is shown; None is the group of NULL."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return None if value is None else str(value)


def too_many(by: Sequence[object]) -> Failure:
    """Why there is no verdict for each of so many groups."""
    shown = ", ".join(str(column) for column in by)
    return Failure(
        f"there are more than {MOST_GROUPS:,} groups by {shown}; group by a column with fewer values,"
        " or narrow the rule with a scope"
    )


def key_counts(keyed: DataFrame, metrics: Sequence[DistinctKeys | SingleKeys]) -> dict[Metric, Answer]:
    """How many keys there are, and how many stand once; `keyed` has the key alone, as 0, 1, …"""
    counted = keyed.groupBy(*keyed.columns).count()
    (row,) = counted.selectExpr("count(1)", "count(CASE WHEN `count` = 1 THEN 1 END)").collect()
    return {one: row[1] if isinstance(one, SingleKeys) else row[0] for one in metrics}


def per_group(frame: DataFrame, metrics: Sequence[PerGroup]) -> Mapping[Metric, Answer]:
    """The answers of metrics with equal groups, by one job; all of aggregates, or all of one key."""
    found = _groups(frame, (), metrics, MOST_GROUPS)
    if isinstance(found, Failure):
        return dict.fromkeys(metrics, too_many(metrics[0].by))
    return found.get((), {metric: {} for metric in metrics})


def told_by(
    rows: DataFrame, by: Sequence[str], asked: Sequence[Aggregate | OfKeys], most: int | None = None
) -> list[Row]:
    """For each different value of `by` (Spark SQL) the value, and behind it each answer; at most so many.

    One job. All that is asked is of aggregates, or all of one key: a value without a key has none of it, and
    is there all the same.
    """
    from pyspark.sql.functions import expr

    schema = from_spark_json(rows.schema.jsonValue())
    aggregates = [one for one in asked if isinstance(one, Aggregate)]
    keys = [one for one in asked if not isinstance(one, Aggregate)]
    named = [f"{text} AS {sql.name(f'g{at}')}" for at, text in enumerate(by)]
    if aggregates:
        assert not keys
        told = [f"{question(one, schema)} AS {sql.name(f'a{at}')}" for at, one in enumerate(aggregates)]
        grouped = rows.groupBy(*map(expr, named))
    else:
        told = [_OF_KEYS[type(one)] for one in keys]
        grouped = _counted(rows, named, keys[0], schema).groupBy(*(f"g{at}" for at in range(len(by))))
    found = grouped.agg(*map(expr, told))
    return (found if most is None else found.limit(most)).collect()


# Of the rows with a key and how often it stands, `count`; without a key, `k0` is NULL.
_OF_KEYS: Mapping[type, str] = {
    DistinctKeys: "count(`k0`)",
    SingleKeys: "count(CASE WHEN `count` = 1 THEN `k0` END)",
    RepeatedKeys: "sum(CASE WHEN `k0` IS NULL THEN 0 ELSE `count` - 1 END)",
}


def _counted(rows: DataFrame, by: Sequence[str], of: OfKeys, schema: DataType) -> DataFrame:
    """How often each key stands in each group."""
    present = " AND ".join(f"{key.sql()} IS NOT NULL" for key in of.keys)
    if of.where is not None:
        present += f" AND ({predicate_sql(of.where, schema)})"
    keys = [
        f"CASE WHEN {present} THEN {key.sql()} END AS {sql.name(f'k{at}')}" for at, key in enumerate(of.keys)
    ]
    names = [*(f"g{at}" for at in range(len(by))), *(f"k{at}" for at in range(len(keys)))]
    return rows.selectExpr(*by, *keys).groupBy(*names).count()


# The one module that runs Spark: a plan on a DataFrame to answers.

NOTHING: Answers = {}
COUNT = count()


def schema_of(frame: DataFrame) -> DataType:
    """The frame's columns and types as a struct type; no job runs."""
    return from_spark_json(frame.schema.jsonValue())


_Run = Callable[["DataFrame", tuple[Metric, ...], session.Watch], dict[Metric, Answer]]
Others = Callable[[str], "DataFrame | Failure"]
"""The whole data of another object of the contract, by its name."""


def none_given(name: str) -> DataFrame | Failure:
    """No other object can be opened."""
    return Failure(f"there is no data of {name!r} to look the keys up in")


def measure(
    frame: DataFrame,
    made: Plan,
    others: Others = none_given,
    known: Answers = NOTHING,
    limit_seconds: float | None = None,
    gather: Callable[[DataFrame, object], DataFrame] = lambda frame, _rows: frame,
) -> dict[Metric, Answer]:
    """Every metric of the plan with its value, or with a Failure that says why it has none.

    `others` gives the objects that relationships refer to; `known` are answers that are there already.
    `gather` makes of the frame and the number of its rows (None: not asked) one whose keys are found faster.

    One Spark job per pass, and one before a look-up that Spark broadcasts; more only when one
    fails: then it is halved until the guilty metrics stand alone and the others have their answers. A key
    that holds another one without duplicates has none (see `implied`), and takes no job.
    A pass with something that the contract's author wrote is stopped after the limit; then all else is asked
    without it, and each such metric alone, again with the limit. So a pass with n of them takes at most n + 1
    limits more than without them.
    Never raises for what is wrong with the data.
    """
    answers: dict[Metric, Answer] = {SCHEMA: schema_of(frame), **dict(made.failures), **known}
    for one in sorted(made.passes, key=_width):
        if implied(one, answers):
            answers[one.metrics[0]] = 0
        else:
            # What the rows of another object are joined with stays as it lies.
            apart = one.kind is Kind.UNMATCHED
            asked = frame if apart else gather(frame, answers.get(COUNT))
            answers |= _limited(asked, one.metrics, _runner(others), limit_seconds)
    again = {
        one: one.instead
        for one, answer in answers.items()
        if isinstance(answer, Failure) and not answer.late
        if isinstance(one, Aggregate | DistinctKeys) and one.instead is not None
    }
    if again:
        instead = plan(again.values(), schema_of(frame))
        found = measure(frame, instead, others, limit_seconds=limit_seconds)
        answers |= {one: found[other] for one, other in again.items()}
    return answers


def _limited(
    frame: DataFrame, metrics: tuple[Metric, ...], run: _Run, limit_seconds: float | None
) -> dict[Metric, Answer]:
    theirs = tuple(metric for metric in metrics if of_users(metric)) if limit_seconds else ()
    with session.time_limit(frame.sparkSession, limit_seconds if theirs else None) as watch:
        answers = run(frame, metrics, watch)
    if not watch.over or not any(isinstance(answer, Failure) for answer in answers.values()):
        return answers
    if len(metrics) == 1:
        return {metrics[0]: watch.failure()}
    ours = tuple(metric for metric in metrics if metric not in theirs)
    answers = run(frame, ours, session.Watch()) if ours else {}
    for metric in theirs:
        answers |= _limited(frame, (metric,), run, limit_seconds)
    return answers


def _runner(others: Others) -> _Run:
    def run(frame: DataFrame, metrics: tuple[Metric, ...], watch: session.Watch) -> dict[Metric, Answer]:
        together = tuple(metric for metric in metrics if isinstance(metric, Aggregate))
        alone = [metric for metric in metrics if not isinstance(metric, Aggregate)]
        answers: dict[Metric, Answer] = {}
        if together:
            answers |= halved(together, watch, lambda some: _row(frame, some))
        grouped = tuple(metric for metric in alone if isinstance(metric, PerGroup))
        if grouped:
            return answers | halved(grouped, watch, lambda some: list(per_group(frame, some).values()))
        keys = [metric for metric in alone if isinstance(metric, DistinctKeys | SingleKeys)]
        if any(isinstance(metric, SingleKeys) for metric in keys):
            counted = session.answered(lambda: key_counts(keyed(frame, keys[0]), keys))
            return answers | (dict.fromkeys(keys, counted) if isinstance(counted, Failure) else counted)
        for one in alone:
            answers[one] = session.answered(lambda one=one: _alone(frame, one, others))  # type: ignore[misc]  # at once
        return answers

    return run


def _alone(frame: DataFrame, metric: Metric, others: Others) -> Number | Failure:
    """The answer to what shares no pass with others."""
    match metric:
        case DistinctKeys():
            return keyed(frame, metric).distinct().count()
        case RepeatedKeys():
            return _duplicates(frame, metric)
        case UnmatchedKeys():
            return _unmatched(frame, metric, others)
        case Query():
            return _queried(frame, metric)
        case Call():
            return _called(frame, metric)
        case _:
            raise AssertionError(f"{metric} shares a pass")


def _width(one: Pass) -> int:
    asked = one.metrics[0]
    return len(asked.keys) if isinstance(asked, RepeatedKeys) else 0


def implied(one: Pass, answers: Answers) -> bool:
    """Whether the pass counts duplicates of a key that holds another one, which has none in these rows."""
    asked = one.metrics[0]
    return isinstance(asked, RepeatedKeys) and any(
        answer == 0
        and isinstance(other, RepeatedKeys)
        and set(other.keys) < set(asked.keys)
        and other.where in (None, asked.where)
        for other, answer in answers.items()
    )


def _row(frame: DataFrame, metrics: tuple[Aggregate, ...]) -> list[Any]:
    if len({metric.where for metric in metrics}) == 1 and metrics[0].where:
        # A filter on partitions reaches the scan, which then reads no other one.
        frame, metrics = _within(frame, metrics[0]), tuple(replace(one, where=None) for one in metrics)
    schema = schema_of(frame)
    asked = [f"{question(metric, schema)} AS `{index}`" for index, metric in enumerate(metrics)]
    return list(frame.selectExpr(*asked).collect()[0])


def _within(frame: DataFrame, metric: OfRows) -> DataFrame:
    """The rows that the metric speaks about.

    Spark chooses folders by such a filter, and hands it to no reader: readers pass over what a file's
    statistics exclude, and these may be wrong.
    """
    where = metric.where
    if where is None:
        return frame
    schema = schema_of(frame)
    parts = where.parts if isinstance(where, And) else (where,)
    truths = (predicate_sql(part, schema) for part in parts)
    return frame.where(
        sql.all_of(*(f"array_contains(array(true), coalesce({truth}, false))" for truth in truths))
    )


def _duplicates(frame: DataFrame, metric: RepeatedKeys) -> int:
    # Sorting within each key costs about half of the CPU of grouping and counting, for any type of key.
    keys = ", ".join(sql.name(str(index)) for index in range(len(metric.keys)))
    numbered = keyed(frame, metric).selectExpr(
        f"row_number() OVER (PARTITION BY {keys} ORDER BY {keys}) AS n"
    )
    return int(numbered.where("n > 1").selectExpr("count(1) AS n").collect()[0][0])


def _unmatched(frame: DataFrame, metric: UnmatchedKeys, others: Others) -> int | Failure:
    rows = unmatched(frame, metric, others)
    if isinstance(rows, Failure):
        return rows
    return session.answered(lambda: int(rows.selectExpr("count(1) AS n").collect()[0][0]))


def unmatched(frame: DataFrame, metric: UnmatchedKeys, others: Others, *more: str) -> DataFrame | Failure:
    """The keys, called 0, 1, …, and `more` columns, of the rows whose key the target does not have."""
    other = others(metric.target.object)
    if isinstance(other, Failure):
        return other
    reason = incomparable(schema_of(frame), metric.keys, schema_of(other), metric.target)
    if reason is not None:
        return Failure(reason)
    names = [str(index) for index in range(len(metric.keys))]
    theirs = keyed(other, DistinctKeys(metric.target.keys))
    return session.answered(lambda: keyed(frame, metric, *more).join(theirs, on=names, how="left_anti"))


def keyed(frame: DataFrame, metric: Keyed, *more: str) -> DataFrame:
    """The key's columns, called 0, 1, …, of the rows that the metric speaks about; and `more` columns."""
    rows = _within(frame, metric)
    present = sql.all_of(*(f"{key.sql()} IS NOT NULL" for key in metric.keys))
    named = (f"{key.sql()} AS {sql.name(str(index))}" for index, key in enumerate(metric.keys))
    return rows.where(present).selectExpr(*named, *more)


def _queried(frame: DataFrame, metric: Query) -> Number | Failure:
    """The one number of a guarded query; its view lives as long as the query.

    Views belong to the session, which threads share: each query has one of its own name.
    """
    view = f"{sql.ROWS_VIEW}_{uuid.uuid4().hex}"
    rows = _within(frame, metric)
    rows.createOrReplaceTempView(view)
    try:
        asked = frame.sparkSession.sql(metric.sql.replace(sql.name(sql.ROWS_VIEW), sql.name(view)))
        return _one_number(asked.columns, asked.limit(2).collect())
    except session.spark_errors() as error:
        return Failure(f"the query failed: {session.cleaned(error, session.without_values)}")
    finally:
        frame.sparkSession.catalog.dropTempView(view)


def _called(frame: DataFrame, metric: Call) -> Number | Failure:
    """The number of another package's function, which may do whatever it likes with the rows."""
    rows = _within(frame, metric)
    try:
        return one_number(metric.number(rows), f"the check {metric.name!r}")
    except (Exception, SystemExit) as error:  # noqa: BLE001  # a foreign function may raise anything
        spark = isinstance(error, session.spark_errors())
        first = str(error).strip().split("\n", 1)[0]
        text = session.cleaned(error, session.without_values) if spark else session.without_values(first)
        said = f"the check {metric.name!r} raised {type(error).__name__}: {text}"
        return Failure(said[: session.MAX_MESSAGE].rstrip(": "))


def _one_number(names: list[str], rows: list[Row]) -> Number | Failure:
    if len(names) != 1 or len(rows) != 1:
        shown = "several rows" if len(rows) > 1 else f"{len(rows)} row(s)"
        return Failure(f"the query gives {shown} of {len(names)} column(s); one number is needed")
    return one_number(rows[0][0])


# Metrics for each partition of a table, by one Spark job for all partitions.

Key = tuple[object, ...]
"""The values of a partition's columns, as Spark gives them."""
# All groups of all partitions are collected at once; more are no rows for the driver.
MOST_ROWS = 100_000
# Aggregates that give the same whatever the order of the rows; sums only of exact numbers.
_EXACT = {"count", "min", "max", *RANKS[:2]}
_SUMS = ("sum", "try_sum")


def separable(metric: Metric, schema: DataType) -> bool:
    """Whether its answer for a partition is the same to the last digit when all partitions are asked at once.

    The last digits of a sum of floats depend on the order of the rows, and a query or a foreign function may
    do anything with them.
    """
    match metric:
        case Aggregate(name=name, value=value):
            return name in _EXACT or (name in _SUMS and _exact(value, schema))
        case PerGroup(of=of):
            return separable(of, schema)
        case _:
            return not isinstance(metric, Query | Call)


def _exact(value: object, schema: DataType) -> bool:
    if isinstance(value, Function):
        return value.name == "try_decimal"
    kind = resolve(schema, Column(value.steps)) if isinstance(value, Path) else None
    return isinstance(kind, DataType) and (kind.name == "decimal" or kind.name in INTEGERS)


def of_no_rows(metric: Metric) -> Answer:
    """The answer of a separable metric for a partition without rows."""
    match metric:
        case Aggregate(name=name):
            return 0 if name == "count" else None
        case PerGroup():
            return {}
        case _:
            return 0


def by_partition(
    frame: DataFrame, by: Sequence[str], made: Pass, others: Others
) -> Mapping[Key, Mapping[Metric, Answer]] | Failure:
    """The answers to a pass of separable metrics by partition; one without rows may be left out.

    `by` is Spark SQL of the values that tell partitions apart. One job, and one before a look-up that Spark
    broadcasts. A Failure says that one of the metrics, or one of the partitions, has no answer.
    """
    first = made.metrics[0]
    if isinstance(first, PerGroup):
        return session.answered(lambda: _groups(frame, by, made.metrics, MOST_ROWS))  # type: ignore[arg-type]
    if isinstance(first, UnmatchedKeys):
        return session.answered(lambda: _unmatched_by_partition(frame, by, first, others))
    return session.answered(lambda: _told(frame, by, made.metrics))


def _told(frame: DataFrame, by: Sequence[str], metrics: Sequence[Metric]) -> dict[Key, dict[Metric, Answer]]:
    rows = told_by(frame, by, metrics)  # type: ignore[arg-type]  # the others are asked in other ways
    width = len(by)
    return {tuple(row[:width]): dict(zip(metrics, row[width:], strict=True)) for row in rows}


def _groups(
    frame: DataFrame, by: Sequence[str], metrics: Sequence[PerGroup], most: int
) -> dict[Key, dict[Metric, Answer]] | Failure:
    """Of each partition its groups, of all of them at most so many."""
    first, width = metrics[0], len(by)
    rows = frame if first.within is None else frame.where(predicate_sql(first.within, schema_of(frame)))
    names = [*by, *(column.sql() for column in first.by)]
    found = told_by(rows, names, [metric.of for metric in metrics], most + 1)
    if len(found) > most:
        return Failure("there are too many groups to ask all partitions at once")
    groups: dict[Key, list[dict[Group, Number | None]]] = {}
    for row in found:
        of_partition = groups.setdefault(tuple(row[:width]), [{} for _ in metrics])
        group = tuple(map(group_name, row[width : len(names)]))
        for at, numbers in enumerate(of_partition):
            numbers[group] = row[len(names) + at]

    def few(numbers: dict[Group, Number | None]) -> Answer:
        return too_many(first.by) if len(numbers) > MOST_GROUPS else numbers

    return {key: dict(zip(metrics, map(few, numbers), strict=True)) for key, numbers in groups.items()}


def _unmatched_by_partition(
    frame: DataFrame, by: Sequence[str], metric: UnmatchedKeys, others: Others
) -> dict[Key, dict[Metric, Answer]] | Failure:
    names = [f"_dq_p{at}" for at in range(len(by))]
    rows = unmatched(
        frame, metric, others, *(f"{text} AS {sql.name(name)}" for text, name in zip(by, names, strict=True))
    )
    if isinstance(rows, Failure):
        return rows
    return {tuple(row[:-1]): {metric: row[-1]} for row in rows.groupBy(*names).count().collect()}
