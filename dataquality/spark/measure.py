"""Measurement of metrics with Spark: planning passes, and answers for all rows, groups and partitions."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from dq.contracts.sql import text as sql
from dq.contracts.types import MAX_PRECISION, DataType
from dq.dataquality.model.column import Column, Need, incomparable, key_digits, resolve
from dq.dataquality.model.metric import (
    FILE_BYTES,
    RANKS,
    SCHEMA,
    Aggregate,
    Answer,
    Answers,
    Call,
    ComparedRows,
    ComparedSums,
    DistinctKeys,
    Failure,
    FileBytes,
    Group,
    KeyMetric,
    Metric,
    MetricExecution,
    Number,
    OldestInstant,
    PerGroup,
    Query,
    RepeatedKeys,
    RowMetric,
    Schema,
    SingleKeys,
    UnmatchedKeys,
    count,
    is_user_defined,
    reads,
    require_number,
)
from dq.dataquality.model.predicate import INTEGERS, And, Function, Path
from dq.dataquality.spark import session
from dq.dataquality.sql_predicate import predicate_sql, question
from dq.lake.types import from_spark_json

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row


# The plan groups metrics into few passes over the data.

# The JVM interprets generated methods of more than 8,000 bytecodes. Measured on Spark 4.0, 2 million rows,
# counts of plain predicates, CPU seconds: 120 in one pass 3.7 (in two 4.6), 200 in one pass 8.3 (in two 5.5).
# So one pass is best up to about 120 expressions, and two beyond.
MAX_EXPRESSIONS = 100
# Kinds with many metrics per job. Each has its own pass: a list of values would keep the others from being
# compiled.
_SHARED = (MetricExecution.ROWS, MetricExecution.INTERPRETED, MetricExecution.RANKED)
# Maximum SQL text of one query, which the driver parses and plans; long lists of values reach it.
MAX_CHARACTERS = 100_000


@dataclass(frozen=True, slots=True)
class Pass:
    """Metrics answered by one Spark job, all of the same kind."""

    kind: MetricExecution
    metrics: tuple[Metric, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """Passes over the data, and the metrics that fail without running anything."""

    passes: tuple[Pass, ...]
    failures: tuple[tuple[Metric, Failure], ...]


def plan(metrics: Iterable[Metric], schema: DataType) -> Plan:
    """Plan the passes that answer these metrics on data of this schema (a struct type).

    Aggregates that Spark can compile share a pass, those with a lambda share another one, and every key set,
    relationship and query has its own: one lambda or distinct count inside of a big aggregation makes all of
    it slow (40 counts and a lambda: 5.0 CPU seconds in one pass, 2.5 in two). SCHEMA needs no pass. A metric
    on a column that is missing or has the wrong type is a failure.
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
    passes += [Pass(group[0].kind, group) for group in _grouped_metrics(sound)]
    return Plan(tuple(passes), tuple(failures.items()))


def _grouped_metrics(metrics: Iterable[Metric]) -> Iterable[tuple[Metric, ...]]:
    """Group the metrics that are not aggregates over all rows by the pass that can answer them."""
    groups: dict[object, tuple[Metric, ...]] = {}
    for metric in metrics:
        if not isinstance(metric, Aggregate | Schema | FileBytes):
            shared = _pass_key(metric)
            groups[shared] = (*groups.get(shared, ()), metric)
    return groups.values()


def _pass_key(metric: Metric) -> object:
    """Return a key that is equal for metrics that one pass can answer."""
    if isinstance(metric, PerGroup):
        inner = metric.of
        inner_key = inner.kind if isinstance(inner, Aggregate) else ("keys", inner.keys, inner.where)
        return metric.by, metric.within, inner_key
    return ("keys", metric.keys, metric.where) if isinstance(metric, SingleKeys | DistinctKeys) else metric


def _unmet(metric: Metric, schema: DataType) -> Failure | None:
    reasons = (_unmet_need(need, schema) for need in reads(metric))
    return next((Failure(reason) for reason in reasons if reason), None)


def _unmet_need(need: Need, schema: DataType) -> str | None:
    column_type = resolve(schema, need.column)
    if isinstance(column_type, str):
        return column_type
    if need.types and column_type.name not in need.types:
        return (
            f"column {str(need.column)!r} is {column_type}; it can be tested as "
            f"{', '.join(sorted(need.types))}"
        )
    # Spark compares both as one decimal type. If 38 digits do not hold both, Spark 3.5 overflows (NULL
    # without ANSI mode, which breaks nothing), and Spark 4.0 rounds.
    precision, scale = key_digits(column_type)
    before, after = need.digits
    if precision and max(precision - scale, before) + max(scale, after) > MAX_PRECISION:
        return (
            f"column {str(need.column)!r} is {column_type} and the contract's number has {before} "
            "digits before"
            f" the decimal point and {after} after it; both do not fit into {MAX_PRECISION} digits"
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


# Batches of metrics, bisected if they fail.

M = TypeVar("M", bound=Metric)
# Maximum number of failed jobs per bisected batch: enough to isolate one broken column among a thousand
# metrics, and it ends soon for a table that is broken everywhere.
MAX_HALVES = 64


def bisect_failures(
    metrics: tuple[M, ...], deadline: session.Deadline, ask: Callable[[tuple[M, ...]], list[Answer]]
) -> dict[Metric, Answer]:
    """Measure all metrics at once; if that fails, bisect until the failing metrics are isolated."""
    answers: dict[Metric, Answer] = {}
    stack, failed = [metrics], 0
    while stack:
        batch = stack.pop()
        if deadline.is_expired:
            answers |= dict.fromkeys(batch, deadline.failure())
            continue
        # bound at once
        values = session.attempt_without_values(lambda batch=batch: ask(batch))  # type: ignore[misc]
        if not isinstance(values, Failure):
            answers |= dict(zip(batch, values, strict=True))
            continue
        failed += 1
        if len(batch) == 1 or failed > MAX_HALVES or deadline.is_expired:
            answers |= dict.fromkeys(batch, values)
        else:
            middle = len(batch) // 2
            stack += [batch[middle:], batch[:middle]]
    return answers


# Metrics per group of rows, and metrics of keys by their number of occurrences.

KeyCountMetric = DistinctKeys | SingleKeys | RepeatedKeys
"""Metrics computed from the number of occurrences of each key."""
# More groups have no readable verdicts, and their values would all be stored.
MOST_GROUPS = 1_000


def group_name(value: object) -> str | None:
    """Return the text of a group's value, or None for NULL."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return None if value is None else str(value)


def too_many_groups(group_by: Sequence[object]) -> Failure:
    """Return the failure of a metric with too many groups."""
    column_list = ", ".join(str(column) for column in group_by)
    return Failure(
        f"there are more than {MOST_GROUPS:,} groups by {column_list}; group by a column with fewer values,"
        " or narrow the rule with a scope"
    )


def key_counts(key_frame: DataFrame, metrics: Sequence[DistinctKeys | SingleKeys]) -> dict[Metric, Answer]:
    """Return the numbers of distinct keys and of keys that occur once; `key_frame` has the key columns 0, 1,
    …
    """
    key_rows = key_frame.groupBy(*key_frame.columns).count()
    (row,) = key_rows.selectExpr("count(1)", "count(CASE WHEN `count` = 1 THEN 1 END)").collect()
    return {metric: row[1] if isinstance(metric, SingleKeys) else row[0] for metric in metrics}


def per_group(frame: DataFrame, metrics: Sequence[PerGroup]) -> Mapping[Metric, Answer]:
    """Answer metrics with equal groups in one job; all are aggregates, or all have the same key."""
    groups = _groups(frame, (), metrics, MOST_GROUPS)
    if isinstance(groups, Failure):
        return dict.fromkeys(metrics, too_many_groups(metrics[0].by))
    return groups.get((), {metric: {} for metric in metrics})


def aggregate_by(
    rows: DataFrame,
    group_by: Sequence[str],
    metrics: Sequence[Aggregate | KeyCountMetric],
    limit: int | None = None,
) -> list[Row]:
    """Return a row per distinct value of `group_by` (Spark SQL), with the value and then each answer.

    Runs one job and returns at most `limit` rows. All metrics are aggregates, or all have the same key.
    Groups without keys are included.
    """
    from pyspark.sql.functions import expr

    schema = from_spark_json(rows.schema.jsonValue())
    aggregates = [metric for metric in metrics if isinstance(metric, Aggregate)]
    key_metrics = [metric for metric in metrics if not isinstance(metric, Aggregate)]
    group_columns = [f"{text} AS {sql.name(f'g{index}')}" for index, text in enumerate(group_by)]
    if aggregates:
        assert not key_metrics
        aggregations = [
            f"{question(metric, schema)} AS {sql.name(f'a{index}')}"
            for index, metric in enumerate(aggregates)
        ]
        grouped = rows.groupBy(*map(expr, group_columns))
    else:
        aggregations = [_KEY_AGGREGATES[type(metric)] for metric in key_metrics]
        grouped = _count_keys(rows, group_columns, key_metrics[0], schema).groupBy(
            *(f"g{index}" for index in range(len(group_by)))
        )
    aggregated = grouped.agg(*map(expr, aggregations))
    return (aggregated if limit is None else aggregated.limit(limit)).collect()


# Aggregates over rows of a key and its number of occurrences, `count`; `k0` is NULL without a key.
_KEY_AGGREGATES: Mapping[type, str] = {
    DistinctKeys: "count(`k0`)",
    SingleKeys: "count(CASE WHEN `count` = 1 THEN `k0` END)",
    RepeatedKeys: "sum(CASE WHEN `k0` IS NULL THEN 0 ELSE `count` - 1 END)",
}


def _count_keys(
    rows: DataFrame, group_by: Sequence[str], key_metric: KeyCountMetric, schema: DataType
) -> DataFrame:
    """Count the occurrences of each key in each group."""
    present = " AND ".join(f"{key.sql()} IS NOT NULL" for key in key_metric.keys)
    if key_metric.where is not None:
        present += f" AND ({predicate_sql(key_metric.where, schema)})"
    keys = [
        f"CASE WHEN {present} THEN {key.sql()} END AS {sql.name(f'k{index}')}"
        for index, key in enumerate(key_metric.keys)
    ]
    names = [*(f"g{index}" for index in range(len(group_by))), *(f"k{index}" for index in range(len(keys)))]
    return rows.selectExpr(*group_by, *keys).groupBy(*names).count()


# Runs a plan on a DataFrame.

NOTHING: Answers = {}
COUNT = count()


def schema_of(frame: DataFrame) -> DataType:
    """Return the frame's columns and types as a struct type, without a job."""
    return from_spark_json(frame.schema.jsonValue())


_Run = Callable[["DataFrame", tuple[Metric, ...], session.Deadline], dict[Metric, Answer]]
OpenObject = Callable[[str], "DataFrame | Failure"]
"""Opens the whole data of another object by its name."""


def no_other_objects(name: str) -> DataFrame | Failure:
    """Return a Failure, if no other objects are available."""
    return Failure(f"no data of {name!r} was given to look up the keys")


def measure(
    frame: DataFrame,
    spark_plan: Plan,
    open_object: OpenObject = no_other_objects,
    known_answers: Answers = NOTHING,
    limit_seconds: float | None = None,
    gather: Callable[[DataFrame, object], DataFrame] = lambda frame, _rows: frame,
) -> dict[Metric, Answer]:
    """Return every metric of the plan with its value, or with a Failure.

    Runs one Spark job per pass, and one before a join that Spark broadcasts. A failing pass is bisected until
    the failing metrics are isolated. A key that includes another key without duplicates has none itself (see
    `is_implied`) and takes no job.

    A pass with user-defined metrics is cancelled after the limit. Then the other metrics are measured without
    them, and each user-defined metric separately with the limit, so that n of them add at most n + 1 limits.

    Never raises for problems in the data.

    Args:
        open_object: Opens the objects that relationships refer to.
        known_answers: Answers that are already available.
        gather: Repartitions a frame, given its number of rows or None if unknown, to group keys faster.
    """
    answers: dict[Metric, Answer] = {
        SCHEMA: schema_of(frame),
        FILE_BYTES: None,
        **dict(spark_plan.failures),
        **known_answers,
    }
    for spark_pass in sorted(spark_plan.passes, key=_key_width):
        if is_implied(spark_pass, answers):
            answers[spark_pass.metrics[0]] = 0
        else:
            # The frame is not repartitioned for a join with another object.
            keeps_layout = spark_pass.kind is MetricExecution.UNMATCHED
            pass_frame = frame if keeps_layout else gather(frame, answers.get(COUNT))
            answers |= _measure_within_limit(
                pass_frame, spark_pass.metrics, _runner(open_object), limit_seconds
            )
    fallbacks = {
        metric: metric.instead
        for metric, answer in answers.items()
        if isinstance(answer, Failure) and not answer.late
        if isinstance(metric, Aggregate | DistinctKeys) and metric.instead is not None
    }
    if fallbacks:
        fallback_plan = plan(fallbacks.values(), schema_of(frame))
        fallback_answers = measure(frame, fallback_plan, open_object, limit_seconds=limit_seconds)
        answers |= {metric: fallback_answers[fallback] for metric, fallback in fallbacks.items()}
    return answers


def _measure_within_limit(
    frame: DataFrame, metrics: tuple[Metric, ...], run: _Run, limit_seconds: float | None
) -> dict[Metric, Answer]:
    author_metrics = tuple(metric for metric in metrics if is_user_defined(metric)) if limit_seconds else ()
    with session.time_limit(frame.sparkSession, limit_seconds if author_metrics else None) as deadline:
        answers = run(frame, metrics, deadline)
    if not deadline.is_expired or not any(isinstance(answer, Failure) for answer in answers.values()):
        return answers
    if len(metrics) == 1:
        return {metrics[0]: deadline.failure()}
    own_metrics = tuple(metric for metric in metrics if metric not in author_metrics)
    answers = run(frame, own_metrics, session.Deadline()) if own_metrics else {}
    for metric in author_metrics:
        answers |= _measure_within_limit(frame, (metric,), run, limit_seconds)
    return answers


def _runner(open_object: OpenObject) -> _Run:
    def run(
        frame: DataFrame, metrics: tuple[Metric, ...], deadline: session.Deadline
    ) -> dict[Metric, Answer]:
        aggregates = tuple(metric for metric in metrics if isinstance(metric, Aggregate))
        other_metrics = [metric for metric in metrics if not isinstance(metric, Aggregate)]
        answers: dict[Metric, Answer] = {}
        if aggregates:
            answers |= bisect_failures(aggregates, deadline, lambda batch: _row(frame, batch))
        grouped = tuple(metric for metric in other_metrics if isinstance(metric, PerGroup))
        if grouped:
            return answers | bisect_failures(
                grouped, deadline, lambda batch: list(per_group(frame, batch).values())
            )
        keys = [metric for metric in other_metrics if isinstance(metric, DistinctKeys | SingleKeys)]
        if any(isinstance(metric, SingleKeys) for metric in keys):
            key_answers = session.attempt_without_values(
                lambda: key_counts(select_keys(frame, keys[0]), keys)
            )
            return answers | (
                dict.fromkeys(keys, key_answers) if isinstance(key_answers, Failure) else key_answers
            )
        for metric in other_metrics:
            answers[metric] = session.attempt_without_values(
                # bound
                lambda metric=metric: _measure_single(frame, metric, open_object)  # type: ignore[misc]
            )
        return answers

    return run


def _measure_single(frame: DataFrame, metric: Metric, open_object: OpenObject) -> Number | Failure:
    """Answer a metric that has a pass of its own."""
    match metric:
        case DistinctKeys():
            return select_keys(frame, metric).distinct().count()
        case RepeatedKeys():
            return _duplicates(frame, metric)
        case UnmatchedKeys():
            return _unmatched(frame, metric, open_object)
        case Query():
            return _run_query(frame, metric)
        case Call():
            return _run_function(frame, metric)
        case OldestInstant():
            return Failure("it is read from the table's log or listing by dq check only")
        case ComparedRows() | ComparedSums():
            return Failure("it is compared with another side by dq check only")
        case _:
            raise AssertionError(f"{metric} shares a pass")


def _key_width(spark_pass: Pass) -> int:
    metric = spark_pass.metrics[0]
    return len(metric.keys) if isinstance(metric, RepeatedKeys) else 0


def is_implied(spark_pass: Pass, answers: Answers) -> bool:
    """Return True if the pass counts duplicates of a key that includes another key without duplicates."""
    metric = spark_pass.metrics[0]
    return isinstance(metric, RepeatedKeys) and any(
        answer == 0
        and isinstance(other, RepeatedKeys)
        and set(other.keys) < set(metric.keys)
        and other.where in (None, metric.where)
        for other, answer in answers.items()
    )


def _row(frame: DataFrame, metrics: tuple[Aggregate, ...]) -> list[Any]:
    if len({metric.where for metric in metrics}) == 1 and metrics[0].where:
        # As a filter of the frame, a partition predicate prunes the scan.
        frame, metrics = (
            _rows_in_scope(frame, metrics[0]),
            tuple(replace(metric, where=None) for metric in metrics),
        )
    schema = schema_of(frame)
    expressions = [f"{question(metric, schema)} AS `{index}`" for index, metric in enumerate(metrics)]
    return list(frame.selectExpr(*expressions).collect()[0])


def _rows_in_scope(frame: DataFrame, metric: RowMetric) -> DataFrame:
    """Return the rows that the metric applies to.

    The filter is written so that Spark prunes partitions but does not push it down to readers, which would
    skip rows by file statistics that may be wrong.
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
    # Sorting within each key costs about half the CPU of grouping and counting, for all key types.
    keys = ", ".join(sql.name(str(index)) for index in range(len(metric.keys)))
    numbered = select_keys(frame, metric).selectExpr(
        f"row_number() OVER (PARTITION BY {keys} ORDER BY {keys}) AS n"
    )
    return int(numbered.where("n > 1").selectExpr("count(1) AS n").collect()[0][0])


def _unmatched(frame: DataFrame, metric: UnmatchedKeys, open_object: OpenObject) -> int | Failure:
    rows = unmatched(frame, metric, open_object)
    if isinstance(rows, Failure):
        return rows
    return session.attempt_without_values(lambda: int(rows.selectExpr("count(1) AS n").collect()[0][0]))


def unmatched(
    frame: DataFrame, metric: UnmatchedKeys, open_object: OpenObject, *extra_columns: str
) -> DataFrame | Failure:
    """Return the keys (columns 0, 1, …) and `extra_columns` of the rows whose key is not in the target."""
    other = open_object(metric.target.object)
    if isinstance(other, Failure):
        return other
    reason = incomparable(schema_of(frame), metric.keys, schema_of(other), metric.target)
    if reason is not None:
        return Failure(reason)
    names = [str(index) for index in range(len(metric.keys))]
    target_keys = select_keys(other, DistinctKeys(metric.target.keys))
    return session.attempt_without_values(
        lambda: select_keys(frame, metric, *extra_columns).join(target_keys, on=names, how="left_anti")
    )


def select_keys(frame: DataFrame, metric: KeyMetric, *extra_columns: str) -> DataFrame:
    """Return the key (columns 0, 1, …) and `extra_columns` of the rows with a key that the metric
    applies to.
    """
    rows = _rows_in_scope(frame, metric)
    present = sql.all_of(*(f"{key.sql()} IS NOT NULL" for key in metric.keys))
    key_columns = (f"{key.sql()} AS {sql.name(str(index))}" for index, key in enumerate(metric.keys))
    return rows.where(present).selectExpr(*key_columns, *extra_columns)


def _run_query(frame: DataFrame, metric: Query) -> Number | Failure:
    """Return the number of a guarded query, which reads a temporary view.

    Views belong to the session, which threads share, so each query has a view with a unique name.
    """
    view = f"{sql.ROWS_VIEW}_{uuid.uuid4().hex}"
    rows = _rows_in_scope(frame, metric)
    rows.createOrReplaceTempView(view)
    try:
        query_result = frame.sparkSession.sql(metric.sql.replace(sql.name(sql.ROWS_VIEW), sql.name(view)))
        return _one_number(query_result.columns, query_result.limit(2).collect())
    except session.spark_errors() as error:
        return Failure(f"the query failed: {session.error_reason(error, session.without_values)}")
    finally:
        frame.sparkSession.catalog.dropTempView(view)


def _run_function(frame: DataFrame, metric: Call) -> Number | Failure:
    """Return the number of a plug-in's function, which may raise anything."""
    rows = _rows_in_scope(frame, metric)
    try:
        return require_number(metric.number(rows), f"the check {metric.name!r}")
    except (Exception, SystemExit) as error:  # noqa: BLE001  # a foreign function may raise anything
        spark = isinstance(error, session.spark_errors())
        first_line = str(error).strip().split("\n", 1)[0]
        text = (
            session.error_reason(error, session.without_values)
            if spark
            else session.without_values(first_line)
        )
        message = f"the check {metric.name!r} raised {type(error).__name__}: {text}"
        return Failure(message[: session.MAX_MESSAGE].rstrip(": "))


def _one_number(names: list[str], rows: list[Row]) -> Number | Failure:
    if len(names) != 1 or len(rows) != 1:
        row_text = "several rows" if len(rows) > 1 else f"{len(rows)} row(s)"
        return Failure(f"the query gives {row_text} of {len(names)} column(s); one number is needed")
    return require_number(rows[0][0])


# Metrics per partition of a table, with one Spark job for all partitions.

Key = tuple[object, ...]
"""The values of a partition's columns, as Spark returns them."""
# Maximum number of groups of all partitions to collect on the driver.
MOST_ROWS = 100_000
# Aggregates that do not depend on the order of the rows; sums only of exact numbers.
_EXACT = {"count", "min", "max", *RANKS[:2]}
_SUMS = ("sum", "try_sum")


def is_separable(metric: Metric, schema: DataType) -> bool:
    """Return True if a partition's answer is exactly the same when all partitions are measured in one job.

    The last digits of a sum of floats depend on the order of the rows, and queries and plug-in functions may
    depend on anything.
    """
    match metric:
        case Aggregate(name=name, value=value):
            return name in _EXACT or (name in _SUMS and _exact(value, schema))
        case PerGroup(of=of):
            return is_separable(of, schema)
        case _:
            return not isinstance(metric, Query | Call | OldestInstant | ComparedRows | ComparedSums)


def _exact(value: object, schema: DataType) -> bool:
    if isinstance(value, Function):
        return value.name == "try_decimal"
    kind = resolve(schema, Column(value.steps)) if isinstance(value, Path) else None
    return isinstance(kind, DataType) and (kind.name == "decimal" or kind.name in INTEGERS)


def answer_without_rows(metric: Metric) -> Answer:
    """Return the answer of a separable metric for a partition without rows."""
    match metric:
        case Aggregate(name=name):
            return 0 if name == "count" else None
        case PerGroup():
            return {}
        case _:
            return 0


def by_partition(
    frame: DataFrame, partition_keys: Sequence[str], spark_pass: Pass, open_object: OpenObject
) -> Mapping[Key, Mapping[Metric, Answer]] | Failure:
    """Answer a pass of separable metrics by partition; partitions without rows may be missing.

    Runs one job, and one before a join that Spark broadcasts. Returns a Failure if any metric or partition
    has no answer. `partition_keys` is the Spark SQL of the partition values.
    """
    first = spark_pass.metrics[0]
    if isinstance(first, PerGroup):
        return session.attempt_without_values(
            lambda: _groups(frame, partition_keys, spark_pass.metrics, MOST_ROWS)  # type: ignore[arg-type]
        )
    if isinstance(first, UnmatchedKeys):
        return session.attempt_without_values(
            lambda: _unmatched_by_partition(frame, partition_keys, first, open_object)
        )
    return session.attempt_without_values(lambda: _answers_by_key(frame, partition_keys, spark_pass.metrics))


def _answers_by_key(
    frame: DataFrame, partition_keys: Sequence[str], metrics: Sequence[Metric]
) -> dict[Key, dict[Metric, Answer]]:
    # the others are asked in other ways
    rows = aggregate_by(frame, partition_keys, metrics)  # type: ignore[arg-type]
    width = len(partition_keys)
    return {tuple(row[:width]): dict(zip(metrics, row[width:], strict=True)) for row in rows}


def _groups(
    frame: DataFrame, partition_keys: Sequence[str], metrics: Sequence[PerGroup], limit: int
) -> dict[Key, dict[Metric, Answer]] | Failure:
    """Return the answers per group of each partition, or a Failure for more than `limit` groups."""
    first, width = metrics[0], len(partition_keys)
    rows = frame if first.within is None else frame.where(predicate_sql(first.within, schema_of(frame)))
    names = [*partition_keys, *(column.sql() for column in first.by)]
    group_rows = aggregate_by(rows, names, [metric.of for metric in metrics], limit + 1)
    if len(group_rows) > limit:
        return Failure("there are too many groups to ask all partitions at once")
    groups: dict[Key, list[dict[Group, Number | None]]] = {}
    for row in group_rows:
        partition_groups = groups.setdefault(tuple(row[:width]), [{} for _ in metrics])
        group = tuple(map(group_name, row[width : len(names)]))
        for index, numbers in enumerate(partition_groups):
            numbers[group] = row[len(names) + index]

    def limit_groups(numbers: dict[Group, Number | None]) -> Answer:
        return too_many_groups(first.by) if len(numbers) > MOST_GROUPS else numbers

    return {
        key: dict(zip(metrics, map(limit_groups, numbers), strict=True)) for key, numbers in groups.items()
    }


def _unmatched_by_partition(
    frame: DataFrame, partition_keys: Sequence[str], metric: UnmatchedKeys, open_object: OpenObject
) -> dict[Key, dict[Metric, Answer]] | Failure:
    names = [f"_dq_p{index}" for index in range(len(partition_keys))]
    rows = unmatched(
        frame,
        metric,
        open_object,
        *(f"{text} AS {sql.name(name)}" for text, name in zip(partition_keys, names, strict=True)),
    )
    if isinstance(rows, Failure):
        return rows
    return {tuple(row[:-1]): {metric: row[-1]} for row in rows.groupBy(*names).count().collect()}
