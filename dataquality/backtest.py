"""Back-test of one object: its partitions, and those in which its rules would have failed."""

from __future__ import annotations

import builtins
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from dq.contracts.agreement import AGREES, cycle_agreements
from dq.contracts.check_result import CheckResult, Status
from dq.contracts.layout import unescaped
from dq.contracts.model import clause_namer
from dq.contracts.outcome import DqError, Location, ReadError, Severity, UsageError
from dq.contracts.sql import text as sql
from dq.contracts.types import DataType
from dq.dataquality.answers.sources import (
    KnownAnswers,
    Optimization,
    answer_without_scan,
    combine_statistics,
    provable,
)
from dq.dataquality.check import check, evaluate_by_schema
from dq.dataquality.clauses.clause import Clause, RowScope
from dq.dataquality.clauses.coverage import JsonObject, in_scope
from dq.dataquality.clauses.kind import (
    CheckKinds,
    evaluate_clause,
    follow_up_metrics,
    metrics_for,
    metrics_for_all,
    unmeasured,
)
from dq.dataquality.clauses.metric_rule import comparing_rules
from dq.dataquality.model import column
from dq.dataquality.model.metric import (
    FILE_BYTES,
    SCHEMA,
    Aggregate,
    Answer,
    Answers,
    Failure,
    MergeRule,
    Metric,
    MetricExecution,
    RepeatedKeys,
    is_user_defined,
    merge_rule,
)
from dq.dataquality.model.run_context import (
    Partition,
    PastComparison,
    PastMeasurement,
    PastResult,
    PastRowCount,
)
from dq.dataquality.request import (
    CheckSelection,
    Request,
    context_for,
    object_opener,
    open_data,
    opens_only_scope,
    select_clauses,
)
from dq.dataquality.results import ROW_COUNT_CHECKS
from dq.dataquality.spark import measure
from dq.dataquality.spark.columnar_files import MAX_INSPECTED_FILES as MOST_FILES
from dq.dataquality.spark.columnar_files import (
    NULL_PARTITION,
    columns_of,
    literal,
    only_partitions,
)
from dq.dataquality.spark.dataset import FILE_FORMATS, TEXT_FORMATS, Dataset, files_of, repartition_small
from dq.dataquality.spark.schema import type_ddl, with_notes
from dq.dataquality.spark.session import attempt, time_limit
from dq.lake.types import from_spark_json

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


# Partitions of a table, oldest first, with the values in the path and in the rows.

# With more values than this, a column is not a partition column.
MAX_PARTITIONS = 100_000
# Number of partitions in one list of values in Spark SQL.
_BATCH_SIZE = 1_000


@dataclass(frozen=True, slots=True)
class TablePartition:
    """An existing partition.

    `key` has the typed values of its columns as Spark returns them, or None if the text is not a valid value.
    `files` are the files in its folder, or None if the table format does not expose them.
    """

    values: Partition
    key: measure.Key | None
    files: tuple[str, ...] | None = None


def partitions(
    spark: SparkSession, table: DataFrame | Dataset, columns: Sequence[str]
) -> tuple[TablePartition, ...]:
    """Return every partition of the data, oldest first, ordered by the columns' values with NULL first.

    `columns` are the contract's partition columns; if empty, those of the folder names or the catalog. Only
    names are read if folders or the catalog list the partitions; otherwise one pass reads these columns.

    Raises UsageError for a table without partitions.
    """
    if isinstance(table, Dataset) and not table.external_partitions:
        listed = (
            _partitions_from_folders(spark, table, columns)
            if table.format in FILE_FORMATS and table.path
            else None
        )
        if listed is not None:
            return listed
        listed = _partitions_from_catalog(spark, table, columns) if table.table else None
        if listed is not None:
            return listed
    if not columns:
        raise UsageError(
            "it has no partitions and therefore no history to test rules on.",
            "Mark its partition columns with partitioned: true, or run 'dq check --all' on the whole table.",
        )
    from dq.dataquality.request import open_data

    return _partitions_from_rows(spark, open_data(table, spark), columns)


def _partitions_from_folders(
    spark: SparkSession, dataset: Dataset, columns: Sequence[str]
) -> tuple[TablePartition, ...] | None:
    """Return the partitions by folder names, or None if the names do not hold these columns."""
    files, fields = files_of(spark, dataset)
    types = {
        struct_field.name.lower(): from_spark_json(struct_field.dataType.jsonValue())
        for struct_field in fields
    }
    names = tuple(columns) or tuple(struct_field.name for struct_field in fields)
    if not names or any(name.lower() not in types for name in names):
        return None
    files_by_partition: dict[Partition, list[str]] = {}
    for file in files:
        folder_values = dataset.values_of(file)
        if folder_values is None or any(name.lower() not in folder_values for name in names):
            return None
        files_by_partition.setdefault(
            tuple((name, folder_values[name.lower()]) for name in names), []
        ).append(file)
    table_partitions = [
        TablePartition(partition, None, tuple(files)) for partition, files in files_by_partition.items()
    ]
    return _sort_partitions(_with_keys(spark, table_partitions, [types[name.lower()] for name in names]))


def _partitions_from_catalog(
    spark: SparkSession, dataset: Dataset, columns: Sequence[str]
) -> tuple[TablePartition, ...] | None:
    """Return the partitions listed by the catalog, or None if it lists none for this table."""
    rows = attempt(lambda: spark.sql(f"SHOW PARTITIONS {dataset.table}").collect())
    if isinstance(rows, Failure) or not rows:
        return None
    schema = from_spark_json(spark.table(str(dataset.table)).schema.jsonValue())
    unique_partitions: dict[Partition, None] = {}
    for (text,) in rows:
        pairs = [part.partition("=") for part in text.split("/")]
        values_by_name = {
            unescaped(name).lower(): (unescaped(name), unescaped(value)) for name, _, value in pairs
        }
        if any(name.lower() not in values_by_name for name in columns):
            return None
        names = columns or [name for name, _ in values_by_name.values()]
        unique_partitions[tuple((name, values_by_name[name.lower()][1]) for name in names)] = None
    kinds = [column.struct_field(schema, name) for name, _ in next(iter(unique_partitions))]
    if any(kind is None for kind in kinds):
        return None
    return _sort_partitions(
        _with_keys(spark, [TablePartition(partition, None) for partition in unique_partitions], kinds)  # type: ignore[arg-type]
    )


def _partitions_from_rows(
    spark: SparkSession, frame: DataFrame, columns: Sequence[str]
) -> tuple[TablePartition, ...]:
    """Return the partitions by the distinct values of the columns in all rows."""
    schema = from_spark_json(frame.schema.jsonValue())
    kinds = []
    for name in columns:
        kind = column.struct_field(schema, name)
        if kind is None:
            raise UsageError(
                f"its data has no column {name!r}, which the contract declares as a partition column.",
                "Correct the contract, or add the column to the data.",
            )
        kinds.append(kind)
    texts = [f"CAST({sql.name(name)} AS STRING)" for name in columns]
    rows = attempt(lambda: frame.selectExpr(*texts).distinct().limit(MAX_PARTITIONS + 1).collect())
    if isinstance(rows, Failure):
        raise UsageError(f"its partitions cannot be listed: {rows.message}.", "Check its partition columns.")
    if len(rows) > MAX_PARTITIONS:
        raise UsageError(
            f"{', '.join(columns)} has more than {MAX_PARTITIONS:,} distinct values, too many for "
            "partitions.",
            "Mark the columns that the table is partitioned by with partitioned: true.",
        )
    # Texts instead of typed values, because a check of a partition takes texts.
    unique_partitions: dict[Partition, None] = {
        tuple(
            (name, NULL_PARTITION if text is None else str(text))
            for name, text in zip(columns, row, strict=True)
        ): None
        for row in rows
    }
    return _sort_partitions(
        _with_keys(spark, [TablePartition(partition, None) for partition in unique_partitions], kinds)
    )


def key_sql(value: str, kind: DataType) -> str:
    """Return the SQL of a partition column's value that compares in Python as in Spark."""
    # PySpark converts instants to the zone of the machine.
    return f"unix_micros({value})" if kind.name == "timestamp" else value


def _with_keys(
    spark: SparkSession, table_partitions: Sequence[TablePartition], kinds: Sequence[DataType]
) -> Iterable[TablePartition]:
    """Add the typed values of the partitions; partitions with equal values are merged."""
    castable: list[tuple[TablePartition, str]] = []
    for partition in table_partitions:
        texts = [_literal(text, kind) for (_, text), kind in zip(partition.values, kinds, strict=True)]
        if None in texts:
            yield partition
        else:
            castable.append((partition, f"({', '.join(str(text) for text in texts)})"))
    names = [f"_dq_p{index}" for index in range(len(kinds))]
    keys = [key_sql(name, kind) for name, kind in zip(names, kinds, strict=True)]
    by_key: dict[measure.Key, TablePartition] = {}
    for begin in range(0, len(castable), _BATCH_SIZE):
        batch = castable[begin : begin + _BATCH_SIZE]
        rows = [f"({index}, {text[1:]}" for index, (_, text) in enumerate(batch)]
        table = f"VALUES {', '.join(rows)} AS t(_dq_at, {', '.join(names)})"
        # The values are literals of their columns' types.
        query = f"SELECT _dq_at, {', '.join(keys)} FROM {table}"  # noqa: S608
        for index, *key in spark.sql(query).collect():
            partition = batch[index][0]
            duplicate = by_key.get(tuple(key))
            # Two folders may have the same value, e.g. month=1 and month=01; Spark reads both for either.
            files = (
                partition.files if duplicate is None else (*(duplicate.files or ()), *(partition.files or ()))
            )
            by_key[tuple(key)] = replace(duplicate or partition, key=tuple(key), files=files)
    yield from by_key.values()


def _literal(text: str, kind: DataType) -> str | None:
    """Return the SQL of a path's text as a value of its column, or None if it is not a valid value."""
    if text == NULL_PARTITION:
        return f"CAST(NULL AS {type_ddl(kind)})"
    try:
        value_sql = literal(text, kind)
    except (ValueError, ArithmeticError):
        return None
    return None if value_sql is None else f"CAST({value_sql} AS {type_ddl(kind)})"


def _sort_partitions(table_partitions: Iterable[TablePartition]) -> tuple[TablePartition, ...]:
    return tuple(
        sorted(table_partitions, key=lambda partition: (partition.key is not None, _sort_key(partition)))
    )


def _sort_key(partition: TablePartition) -> tuple[Any, ...]:
    if partition.key is None:
        return tuple(text for _, text in partition.values)
    return tuple((value is not None, value if value is not None else 0) for value in partition.key)


# Groups of partitions that a check opens with the same columns, so that one job can answer all of them.


def group_by_columns(
    data: DataFrame | Dataset, table_partitions: Sequence[TablePartition]
) -> list[Sequence[TablePartition]]:
    """Group the partitions by their columns.

    All partitions of a table have the same columns. For plain files the columns are read from the files, and
    a partition whose files differ or cannot be read is in no group. CSV partitions form one group (see
    `has_uniform_columns`), JSON partitions none.
    """
    if not isinstance(data, Dataset) or data.table is not None or data.format not in FILE_FORMATS:
        return [table_partitions]
    if data.format in TEXT_FORMATS:
        return [table_partitions] if data.format == "csv" else []
    groups: dict[object, list[TablePartition]] = {}
    for partition in table_partitions:
        columns = _partition_columns(partition, data.format)
        if columns is not None:
            groups.setdefault(columns, []).append(partition)
    return list(groups.values())


def _partition_columns(partition: TablePartition, file_format: str) -> object:
    """Return the columns of a partition's files, or None if they differ or are unknown."""
    if partition.files is None:
        return ()
    try:
        distinct_columns = {(file.names, file.types) for file in columns_of(partition.files, file_format)}
    except ReadError:
        return None
    return distinct_columns.pop() if len(distinct_columns) == 1 else None


def has_uniform_columns(data: DataFrame | Dataset, table: DataFrame) -> bool:
    """Return True if partitions opened together have the same columns as when opened individually.

    The CSV reader adds a note to a column with invalid values or missing files. Without notes, no partition
    would have one.
    """
    if not isinstance(data, Dataset) or data.table is not None or data.format not in TEXT_FORMATS:
        return True
    return not any(struct_field.metadata for struct_field in table.schema.fields)


# Results of a back-test: for each rule the partitions in which it would have failed.


@dataclass(frozen=True, slots=True)
class UnreadablePartition:
    """A partition that could not be tested, with the reason. Every rule is an error there."""

    partition: Partition
    reason: str


@dataclass(frozen=True, slots=True)
class UntestedRule:
    """A rule that cannot be back-tested, with the reason."""

    check: str
    clause: str
    property: str
    at: Location
    reason: str


@dataclass(frozen=True, slots=True)
class RuleHistory:
    """Results of one rule in each partition, oldest first. `name` identifies the rule by ids and names.

    `batched_count` is the number of partitions tested in a batch; the others were tested individually.
    """

    check: str
    clause: str
    name: str
    property: str
    severity: Severity
    allowed: str
    at: Location
    results: tuple[tuple[Partition, CheckResult], ...]
    batched_count: int = 0

    def with_status(self, status: Status) -> list[tuple[Partition, CheckResult]]:
        """Return the partitions with this status."""
        return [(partition, result) for partition, result in self.results if result.status is status]

    @builtins.property
    def counts(self) -> dict[str, int]:
        """Number of partitions per status."""
        counter = Counter(result.status for _, result in self.results)
        return {status.value: counter[status] for status in Status}

    def as_dict(self) -> JsonObject:
        """Return JSON values, with all partitions in which the rule did not pass."""
        failed = self.with_status(Status.FAIL)
        return {
            "check": self.check,
            "clause": self.clause,
            "name": self.name,
            "property": self.property or None,
            "severity": self.severity.value,
            "threshold": self.allowed,
            "at": str(self.at),
            "total": len(self.results),
            "counts": self.counts,
            "batched_count": self.batched_count,
            "first": dict(failed[0][0]) if failed else None,
            "last": dict(failed[-1][0]) if failed else None,
            "failed": [_entry(*pair) for pair in failed],
            "untested": [_entry(*pair) for pair in self.with_status(Status.ERROR)],
            "skipped": [_entry(*pair) for pair in self.with_status(Status.SKIPPED)],
        }


def _entry(partition: Partition, result: CheckResult) -> JsonObject:
    return {
        "partition": dict(partition),
        "value": result.value,
        "observed": result.observed,
        "message": result.message,
    }


@dataclass(frozen=True, slots=True)
class Backtest:
    """Results of an object's rules in its partitions, oldest first.

    `present` is the number of partitions of the table; `partitions` are the last of them. `untested` are
    rules that were not tested, `unreadable` are partitions that could not be tested.
    """

    contract: str
    version: str
    object: str
    partitions: tuple[Partition, ...]
    present: int
    rules: tuple[RuleHistory, ...]
    untested: tuple[UntestedRule, ...]
    unreadable: tuple[UnreadablePartition, ...]
    at: datetime | None = None

    def with_status(self, status: Status) -> tuple[RuleHistory, ...]:
        """Return the rules that have this status in some partition."""
        return tuple(rule for rule in self.rules if rule.with_status(status))

    @property
    def exit_code(self) -> int:
        """1 if a rule of severity error or critical would have failed, 3 if one is an error, else 0.

        Failures take precedence. Untested rules only count (as 3) if no rule was tested.
        """
        if _any_blocks(self.with_status(Status.FAIL)):
            return 1
        if _any_blocks(self.with_status(Status.ERROR)) or (self.untested and not self.rules):
            return ReadError.exit_code
        return 0

    def as_dict(self) -> JsonObject:
        """Return the back-test as JSON values, without rows of the data."""
        return {
            "contract": self.contract,
            "version": self.version,
            "object": self.object,
            "at": self.at.isoformat() if self.at else None,
            "partitions": [dict(partition) for partition in self.partitions],
            "present": self.present,
            "rules": [rule.as_dict() for rule in self.rules],
            "not_tested": [
                {
                    "check": rule.check,
                    "clause": rule.clause,
                    "property": rule.property or None,
                    "at": str(rule.at),
                    "reason": rule.reason,
                }
                for rule in self.untested
            ],
            "unreadable": [
                {"partition": dict(unreadable.partition), "reason": unreadable.reason}
                for unreadable in self.unreadable
            ],
        }


def _any_blocks(rules: Iterable[RuleHistory]) -> bool:
    return any(rule.severity.blocks for rule in rules)


# Batches of partitions: each metric is measured for all partitions of a batch in one job.
#
# A batch has partitions with the same columns. Metrics without an answer here are left to a check of the
# individual partition, so that the results are the same as those of such checks.

# Spark plans a filter on this many partitions fast.
MAX_BATCH_PARTITIONS = 300
# Values of a column that are in memory at once; see `checks.quantile`.
MAX_RANKED_VALUES = 200_000
# Failed batches, beyond the successful ones, after which partitions are checked individually.
_MIN_FAILED_GROUPS = 8


History = Sequence[PastResult]


@dataclass(frozen=True, slots=True)
class BatchedAnswers:
    """Answers of one partition from a batch, and the frame with its columns."""

    table: DataFrame
    answers: Answers


@dataclass(frozen=True, slots=True)
class _BacktestRun:
    """Partitions and clauses of a back-test; `outcomes` records which batches succeeded."""

    request: Request
    selection: CheckSelection
    partitions: Sequence[TablePartition]
    present: int
    outcomes: list[bool] = field(default_factory=list)

    def request_for(self, partition: TablePartition, history: History = ()) -> Request:
        """Return the request to check this partition."""
        return replace(self.request, partitions=[dict(partition.values)], history=tuple(history))

    def clauses_for(
        self, partition: TablePartition, schema: DataType, history: History = ()
    ) -> tuple[Clause, ...]:
        """Return the clauses as bound by a check of this partition."""
        request = self.request_for(partition, history)
        return self.selection.bind(request, schema, context_for(request))

    @property
    def may_batch(self) -> bool:
        """True unless most batches have failed."""
        return len(self.outcomes) < _MIN_FAILED_GROUPS + 2 * sum(self.outcomes)


def answer_in_batches(run: _BacktestRun) -> dict[TablePartition, BatchedAnswers]:
    """Return the answers of the partitions that can be measured in batches.

    A failing batch is bisected; partitions without answers are left out.
    """
    answers_by_partition: dict[TablePartition, BatchedAnswers] = {}
    table_partitions = run.partitions
    comparable = [
        partition
        for partition in table_partitions
        if partition.key is not None and partition.key == tuple(map(_value_unless_nan, partition.key))
    ]
    for group in group_by_columns(run.request.data, comparable):
        for batch in _batches(group):
            answers_by_partition |= dict(_answer_group(run, batch))
    return answers_by_partition


def _value_unless_nan(value: object) -> object:
    """Return the value, or None for NaN, which equals no value."""
    return value if value == value else None


def _batches(group: Sequence[TablePartition]) -> Iterator[list[TablePartition]]:
    """Split a group into batches with limited numbers of partitions and files."""
    batch: list[TablePartition] = []
    files = 0
    for partition in group:
        added_files = len(partition.files or ())
        if batch and (len(batch) == MAX_BATCH_PARTITIONS or files + added_files > MOST_FILES):
            yield batch
            batch, files = [], 0
        batch.append(partition)
        files += added_files
    if batch:
        yield batch


def _answer_group(
    run: _BacktestRun, group: Sequence[TablePartition]
) -> Iterator[tuple[TablePartition, BatchedAnswers]]:
    if len(group) < 2 or not run.may_batch:
        return
    group_answers = _answers_for_group(run, group)
    run.outcomes.append(group_answers is not None)
    if group_answers is not None:
        yield from group_answers.items()
        return
    middle = len(group) // 2
    yield from _answer_group(run, group[:middle])
    yield from _answer_group(run, group[middle:])


def _answers_for_group(
    run: _BacktestRun, group: Sequence[TablePartition]
) -> dict[TablePartition, BatchedAnswers] | None:
    """Return the answers of all of these partitions, or None if one of them makes the batch fail."""
    request = run.request
    scope = [dict(partition.values) for partition in group]
    is_whole_table = len(group) == run.present
    try:
        table = open_data(request.data, request.spark, scope)
        # Spark plans faster without a filter that selects everything. In a layout it would also compute the
        # partition columns from the path of each row's file once for each partition.
        is_scope = is_whole_table or (opens_only_scope(request.data) and _reads_only(table, group))
        rows = table if is_scope else only_partitions(table, scope)
    except DqError:
        return None
    schema = measure.schema_of(table)
    key_columns = _partition_key_sql(group, schema)
    if key_columns is None or not has_uniform_columns(request.data, table):
        return None
    clauses_by_partition = {partition: list(run.clauses_for(partition, schema)) for partition in group}
    kinds = run.selection.kinds
    first_metrics = dict.fromkeys(
        metric for clauses in clauses_by_partition.values() for metric in metrics_for_all(clauses, kinds)
    )
    metrics = [metric for metric in (*first_metrics, measure.COUNT) if measure.is_separable(metric, schema)]
    answers_by_partition = _answers_without_scan(
        request, table, () if is_whole_table else scope, metrics, group
    )
    open_object = object_opener(
        request,
        run.selection.schema_object,
        lambda: open_data(request.data, request.spark) if opens_only_scope(request.data) else table,
    )
    batch = _PartitionBatch(rows, key_columns, open_object, request.limit_seconds)
    if not batch.answer_metrics(metrics, answers_by_partition):
        return None
    follow_ups: dict[Metric, None] = {}
    for partition, clauses in clauses_by_partition.items():
        for clause in clauses:
            if all(metric in answers_by_partition[partition] for metric in metrics_for_all([clause], kinds)):
                follow_ups |= dict.fromkeys(follow_up_metrics(clause, answers_by_partition[partition], kinds))
    may_rank = (
        sum(_integer(answers_by_partition[partition].get(measure.COUNT)) for partition in group)
        <= MAX_RANKED_VALUES
    )
    further_metrics = [
        metric
        for metric in follow_ups
        if measure.is_separable(metric, schema) and (may_rank or metric.kind is not MetricExecution.RANKED)
    ]
    if further_metrics and not batch.answer_metrics(further_metrics, answers_by_partition):
        return None
    return {partition: BatchedAnswers(table, answers) for partition, answers in answers_by_partition.items()}


def _reads_only(table: DataFrame, group: Sequence[TablePartition]) -> bool:
    """Return True if all files of the frame are those of these partitions."""
    return {*table.inputFiles()} <= {file for partition in group for file in partition.files or ()}


def _partition_key_sql(group: Sequence[TablePartition], schema: DataType) -> list[str] | None:
    """Return the SQL of the partition key, or None if the data lacks one of its columns."""
    kinds = [(name, column.struct_field(schema, name)) for name, _ in group[0].values]
    key_expressions = [key_sql(sql.name(name), kind) for name, kind in kinds if kind is not None]
    return key_expressions if len(key_expressions) == len(kinds) else None


def _answers_without_scan(
    request: Request,
    table: DataFrame,
    parts: Sequence[Mapping[str, str]],
    metrics: Sequence[Metric],
    group: Sequence[TablePartition],
) -> dict[TablePartition, dict[Metric, Answer]]:
    """Return answers that need no scan: zero counts of the whole table, and file statistics."""
    data = request.data
    source = data if isinstance(data, Dataset) and not data.external_partitions else None
    known_answers = answer_without_scan(metrics, table, source, parts, request.options)
    zero_answers: dict[Metric, Answer] = {
        metric: 0
        for metric, answer in known_answers.answers.items()
        if answer == 0 and (merge_rule(metric) is MergeRule.SUM or isinstance(metric, RepeatedKeys))
    }
    schema = measure.schema_of(table)
    file_answers = (
        _answers_from_files(known_answers, group, provable(metrics, schema))
        if Optimization.STATISTICS in request.optimizations
        else {}
    )
    return {
        partition: {SCHEMA: schema, **zero_answers, **file_answers.get(partition, {})} for partition in group
    }


def _answers_from_files(
    known_answers: KnownAnswers, group: Sequence[TablePartition], aggregates: Sequence[Aggregate]
) -> dict[TablePartition, dict[Metric, Answer]]:
    """Return the answers from the file statistics of each partition whose files all have them."""
    files = {file.path: file for file in known_answers.files}
    return {
        partition: {
            **combine_statistics(aggregates, [files[path] for path in partition.files]),
            FILE_BYTES: sum(files[path].size or 0 for path in partition.files),
        }
        for partition in group
        if files and partition.files is not None and all(path in files for path in partition.files)
    }


@dataclass(frozen=True, slots=True)
class _PartitionBatch:
    """Rows of the partitions of a batch."""

    frame: DataFrame
    key_columns: Sequence[str]
    open_object: measure.OpenObject
    limit_seconds: float | None

    def answer_metrics(
        self, metrics: Iterable[Metric], answers_by_partition: dict[TablePartition, dict[Metric, Answer]]
    ) -> bool:
        """Add the answers to these metrics; return False if a metric that is not user-defined has none."""
        missing = [
            metric
            for metric in metrics
            if any(metric not in answers for answers in answers_by_partition.values())
        ]
        spark_plan = measure.plan(missing, measure.schema_of(self.frame))
        for metric, failure in spark_plan.failures:
            # Only a check of the partition itself can measure the alternative metric.
            if getattr(metric, "instead", None) is None:
                for answers in answers_by_partition.values():
                    answers[metric] = failure
        return all(self._answer_pass(spark_pass, answers_by_partition) for spark_pass in spark_plan.passes)

    def _answer_pass(
        self, spark_pass: measure.Pass, answers_by_partition: dict[TablePartition, dict[Metric, Answer]]
    ) -> bool:
        author_metrics = tuple(metric for metric in spark_pass.metrics if is_user_defined(metric))
        pass_answers = self._pass_answers(
            spark_pass, answers_by_partition, self.limit_seconds if author_metrics else None
        )
        if isinstance(pass_answers, Failure) and author_metrics:
            own_metrics = tuple(metric for metric in spark_pass.metrics if metric not in author_metrics)
            if not own_metrics:
                return True
            spark_pass = measure.Pass(spark_pass.kind, own_metrics)
            pass_answers = self._pass_answers(spark_pass, answers_by_partition, None)
        if isinstance(pass_answers, Failure) or not pass_answers.keys() <= {
            partition.key for partition in answers_by_partition
        }:
            return False
        for partition, answers in answers_by_partition.items():
            partition_answers = pass_answers.get(partition.key or (), {})
            if (
                not partition_answers
                and isinstance(spark_pass.metrics[0], Aggregate)
                and answers.get(measure.COUNT)
            ):
                # The data has changed since its rows were counted.
                return False
            answers |= {
                metric: partition_answers.get(metric, measure.answer_without_rows(metric))
                for metric in spark_pass.metrics
            }
        return True

    def _pass_answers(
        self,
        spark_pass: measure.Pass,
        answers_by_partition: Mapping[TablePartition, Mapping[Metric, Answer]],
        limit_seconds: float | None,
    ) -> Mapping[measure.Key, Mapping[Metric, Answer]] | Failure:
        counts = [answers.get(measure.COUNT) for answers in answers_by_partition.values()]
        total = sum(map(_integer, counts)) if None not in counts else None
        keeps_layout = (
            isinstance(spark_pass.metrics[0], Aggregate) or spark_pass.kind is MetricExecution.UNMATCHED
        )
        frame = self.frame if keeps_layout else repartition_small(self.frame, total)
        with time_limit(frame.sparkSession, limit_seconds):
            return measure.by_partition(frame, self.key_columns, spark_pass, self.open_object)


def _integer(value: object) -> int:
    return value if isinstance(value, int) else 0


# All partitions are measured in batches, and individually where a batch has no answer. Results are the same
# as those of checks of the individual partitions.

LAST = 90
_TABLE = "it applies to the whole table, not to one partition; 'dq check --all' tests it"


@dataclass(frozen=True, slots=True)
class RuleResult:
    """Result of a rule in a partition; `batched` is True if it was measured in a batch."""

    result: CheckResult
    batched: bool


Outcome = dict[str, RuleResult] | DqError
"""Outcome of one partition: the result of each rule by its path, or the error that prevented the test."""

ParallelMap = Callable[[Callable[[TablePartition], Outcome], Sequence[TablePartition]], Iterable[Outcome]]


def backtest(request: Request, last: int = LAST, parallel_map: ParallelMap = map) -> Backtest:
    """Evaluate the requested rules in each of the last partitions.

    Partitions are measured in batches, and individually where a batch has no answer. Rules about the whole
    table are listed as untested. Rules that compare with earlier runs compare with the earlier partitions.

    Args:
        request: As for `check`, without `partitions`; `history` is ignored.
        last: Number of partitions, at least 1.
        parallel_map: Maps the individual checks, possibly concurrently.

    Raises:
        UsageError: A table without partitions, `last` below 1, or an unknown object or rule.
        ReadError: The partitions cannot be listed.
    """
    if last < 1:
        raise UsageError(f"last={last} is below 1.", "Pass a number of at least 1.")
    if request.partitions:
        raise UsageError("a back-test selects its partitions itself.", "Pass last=… instead.")
    contract, selection = request.contract, select_clauses(request)
    schema_object = selection.schema_object
    table_partitions = partitions(
        request.session(), request.data, [prop.column for prop in schema_object.partition_keys()]
    )
    tested_partitions = table_partitions[-last:]
    # Clauses that a check of one partition tests on its rows, including keys with the partition column.
    newest = tuple(partition.values for partition in tested_partitions[-1:])
    testable = [
        clause
        for clause in selection.clauses
        if in_scope(clause, newest).row_filter.rows is RowScope.PARTITION
    ]
    tested_request = replace(
        request,
        object=schema_object.name,
        rules=tuple(clause.path for clause in testable),
        samples=False,
        memory=None,
    )
    run = (
        _BacktestRun(tested_request, select_clauses(tested_request), tested_partitions, len(table_partitions))
        if testable
        else None
    )
    outcomes = _outcomes(run, parallel_map) if run else []
    name = clause_namer(schema_object)
    return Backtest(
        contract=contract.id,
        version=contract.version,
        object=schema_object.name,
        partitions=tuple(partition.values for partition in tested_partitions),
        present=len(table_partitions),
        rules=tuple(_history(name(clause.path), clause, tested_partitions, outcomes) for clause in testable),
        untested=tuple(
            UntestedRule(clause.check, clause.path, clause.property, clause.at, _TABLE)
            for clause in selection.clauses
            if clause not in testable
        ),
        unreadable=tuple(
            UnreadablePartition(partition.values, f"{outcome.message} {outcome.hint}".strip())
            for partition, outcome in zip(tested_partitions, outcomes, strict=False)
            if isinstance(outcome, DqError)
        ),
        at=request.now,
    )


def _outcomes(run: _BacktestRun, parallel_map: ParallelMap) -> list[Outcome]:
    """Return the outcome of each partition from batches, completed by individual checks."""
    selection = run.selection
    batched_answers = answer_in_batches(run)
    paths_by_partition = {
        partition: tuple(
            clause.path
            for clause in selection.clauses
            if partition not in batched_answers
            or not _is_answered(clause, batched_answers[partition].answers, selection.kinds)
        )
        for partition in run.partitions
    }
    remaining = [partition for partition in run.partitions if paths_by_partition[partition]]
    comparing_paths = {
        *comparing_rules(selection.schema_object),
        *cycle_agreements(selection.schema_object),
        *(clause.path for clause in selection.clauses if clause.check in ROW_COUNT_CHECKS),
    }
    outcomes_by_partition: dict[TablePartition, Outcome] = {}
    if all(comparing_paths.isdisjoint(paths_by_partition[partition]) for partition in remaining):
        single_outcomes = parallel_map(
            lambda partition: _check_single(run, partition, paths_by_partition[partition]), remaining
        )
        outcomes_by_partition = dict(zip(remaining, single_outcomes, strict=True))
    history: list[PastResult] = []
    outcomes: list[Outcome] = []
    for partition in run.partitions:
        outcome = outcomes_by_partition.get(partition) or (
            _check_single(run, partition, paths_by_partition[partition], history)
            if paths_by_partition[partition]
            else {}
        )
        if not isinstance(outcome, DqError):
            batched_results = (
                _batched_results(
                    run, partition, batched_answers[partition], set(paths_by_partition[partition]), history
                )
                if partition in batched_answers
                else {}
            )
            outcome = batched_results | outcome
            results = (rule_result.result for rule_result in outcome.values())
            history += _measures(results, partition.values, run.request.now or datetime.now(UTC))
        outcomes.append(outcome)
    return outcomes


def _is_answered(clause: Clause, answers: Answers, kinds: CheckKinds) -> bool:
    """Return True if all metrics of the clause are answered."""
    metrics = metrics_for(clause, kinds)
    return all(metric in answers for metric in metrics) and all(
        metric in answers for metric in follow_up_metrics(clause, answers, kinds)
    )


def _batched_results(
    run: _BacktestRun,
    partition: TablePartition,
    batched: BatchedAnswers,
    single_paths: Set[str],
    history: History,
) -> dict[str, RuleResult]:
    """Return the results of a partition's clauses from its batched answers."""
    kinds = run.selection.kinds
    clauses = run.clauses_for(partition, measure.schema_of(batched.table), history)
    results = {
        clause.path: evaluate_clause(clause, batched.answers, kinds)
        for clause in clauses
        if clause.path not in single_paths
    }
    results_with_notes = with_notes(
        results, batched.table, run.selection.schema_object, partial(evaluate_by_schema, clauses, kinds)
    )
    return {path: RuleResult(result, batched=True) for path, result in results_with_notes.items()}


def _check_single(
    run: _BacktestRun, partition: TablePartition, paths: Sequence[str], history: History = ()
) -> Outcome:
    try:
        report = check(replace(run.request_for(partition, history), rules=tuple(paths)))
    except DqError as error:
        return error
    return {result.clause: RuleResult(result, batched=False) for result in report.results}


def _measures(results: Iterable[CheckResult], partition: Partition, now: datetime) -> Iterable[PastResult]:
    """Yield the measurements that later partitions compare with, as the store would return them."""
    for result in results:
        if result.check in ROW_COUNT_CHECKS and result.value is not None:
            yield PastRowCount(result.check, result.clause, now, int(result.value), partition)
        if result.check == AGREES and result.status is not Status.SKIPPED:
            yield PastComparison(result.clause, result.fingerprint, now, result.agrees, partition)
        if not result.fingerprint or result.agrees is not None:
            continue
        groups = tuple((group.key, group.value) for group in result.groups if group.value is not None)
        if result.group_columns or result.value is not None:
            number = None if result.group_columns else result.value
            yield PastMeasurement(
                result.check, result.clause, result.fingerprint, now, number, groups, partition
            )


def _history(
    name: str, clause: Clause, table_partitions: Sequence[TablePartition], outcomes: Sequence[Outcome]
) -> RuleHistory:
    results, batched_count = [], 0
    for partition, outcome in zip(table_partitions, outcomes, strict=True):
        if isinstance(outcome, DqError):
            result = unmeasured(clause, Failure("the partition could not be tested"))
        elif clause.path in outcome:
            result = outcome[clause.path].result
            batched_count += outcome[clause.path].batched
        else:
            result = unmeasured(clause, Failure("the check has no result for it"))
        results.append((partition.values, result))
    allowed = next(
        (result.allowed for _, result in results if result.status is not Status.ERROR), clause.allowed
    )
    return RuleHistory(
        check=clause.check,
        clause=clause.path,
        name=name,
        property=clause.property,
        severity=clause.severity,
        allowed=allowed,
        at=clause.at,
        results=tuple(results),
        batched_count=batched_count,
    )
