"""Rows that break their contract, separated from the good rows; and writing of both."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import takewhile
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote

from dq.contracts.check_result import Status
from dq.contracts.layout import partition_folder
from dq.contracts.model import Contract, SchemaObject, clause_namer
from dq.contracts.outcome import ReadError, UsageError
from dq.contracts.sql import text as sql
from dq.contracts.types import DataType
from dq.dataquality.check import check
from dq.dataquality.clauses.clause import Clause, ForeignKey, RowScope, UniqueKey
from dq.dataquality.clauses.foreign_key import NO_NEIGHBOURS, ContractSet
from dq.dataquality.clauses.kind import CheckKinds, clauses_of
from dq.dataquality.deduplication import Precedence, RowOrder, precedence_column
from dq.dataquality.delivery.cycle import label
from dq.dataquality.model.column import hidden_columns, struct_field
from dq.dataquality.model.metric import DistinctKeys, Failure, RepeatedKeys
from dq.dataquality.model.predicate import Predicate
from dq.dataquality.model.run_context import Partition
from dq.dataquality.report import Cleaned, Quarantined, Report
from dq.dataquality.request import OpenedData, Request, context_for, object_opener, select_clauses
from dq.dataquality.spark.columnar_files import NULL_PARTITION, for_hadoop, literal, without_partitions
from dq.dataquality.spark.dataset import TEXT_FORMATS, Dataset, count_written
from dq.dataquality.spark.failing_rows import masked_column, masked_where_repeated, repeats_classified
from dq.dataquality.spark.measure import OpenObject, schema_of, select_keys
from dq.dataquality.spark.session import attempt_without_values
from dq.dataquality.sql_predicate import predicate_sql
from dq.dataquality.text import STRING, carrier_type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# Columns added to bad rows.
RULES, CHECKED_AT = "_dq_rules", "_dq_checked_at"
_PREFIX = "_dq_"


@dataclass(frozen=True, slots=True)
class Run:
    """Check run that found the rows. `id` and `scope` name the folder, which is overwritten if it exists."""

    id: str
    scope: str = "table"
    at: datetime | None = None


class GatedRows(NamedTuple):
    """Good rows, bad rows and the report of the check: `good, bad, report = …`.

    `good` has the columns of the data; `bad` also has `_dq_rules`, the clauses that the row breaks. Both are
    evaluated lazily.
    """

    good: DataFrame
    bad: DataFrame
    report: Report

    def raise_for_status(self) -> None:
        """Raise Violated for failures that no single row causes; `report.raise_for_status` also covers bad
        rows.

        Examples are too few rows, a missing column, an average, or a SQL rule.
        """
        results = (
            result for result in self.report.results if result.clause not in self.report.separated_clauses
        )
        replace(self.report, results=tuple(results)).raise_for_status()


def split(
    request: Request, report: Report | None = None, precedence: Precedence | None = None
) -> tuple[DataFrame, DataFrame]:
    """Return the good rows, and the bad rows with `_dq_rules`, the names of the clauses that they break.

    A row is bad if it breaks a failed clause of severity error or critical, repeats a key or has no match.
    Nothing is masked. Clauses that no single row breaks (row counts, queries) or that require such rows (more
    than 3 NULLs) are only in the report. The frames are evaluated lazily.

    Args:
        report: Report of `check` on the same data; without it the data is checked as of the request's `now`.
        precedence: Which row of a repeated key is kept; without it all of its rows are bad. A row is kept if
            it is kept for each failed key. It is chosen among all rows of the key, so that an older row never
            replaces one that breaks another clause.

    Raises:
        ReadError: A clause of that severity could not be measured, so that good rows cannot be told from
            bad.
        UsageError: The precedence cannot be applied, see `deduplication.precedence_column`.
    """
    gated = gate(request, report, precedence)
    return gated.good, gated.bad


def gate(request: Request, report: Report | None = None, precedence: Precedence | None = None) -> GatedRows:
    """Return the result of `split` with its report, which lists the clauses whose rows were separated.

    Raises the same errors as `split`.
    """
    if precedence is not None:
        # Before the data is checked.
        selection = select_clauses(request)
        precedence_column(request.contract, selection.schema_object, selection.clauses, precedence)
    base_report = report or check(request)
    _require_measured(request.contract, base_report)
    checked = _reopen_checked(request, base_report, precedence)
    marked = _with_rule_marks(checked, checked.table)
    return GatedRows(
        _good_rows(marked),
        marked.where(_IS_BAD),
        replace(base_report, separated_clauses=tuple(clause.path for clause in checked.broken)),
    )


_IS_BAD = f"size({sql.name(RULES)}) > 0"


def _good_rows(marked: DataFrame) -> DataFrame:
    return marked.where(f"NOT {_IS_BAD}").drop(RULES)


def _require_measured(contract: Contract, report: Report) -> None:
    """Raise ReadError if a clause could not be measured, so that the good rows are unknown."""
    unmeasured = [result for result in report.with_status(Status.ERROR) if result.severity.blocks]
    if unmeasured:
        raise ReadError(
            f"{contract.id} {report.object}: cannot determine which rows are good: {unmeasured[0].message}.",
            "Fix the checks that could not be measured.",
        )


def write(
    contract: Contract,
    data: DataFrame | Dataset,
    report: Report,
    path: str,
    run: Run,
    *,
    spark: SparkSession | None = None,
    kinds: CheckKinds | None = None,
    other_objects: Mapping[str, DataFrame | Dataset] | None = None,
    unmasked: bool = False,
    neighbours: ContractSet = NO_NEIGHBOURS,
    precedence: Precedence | None = None,
) -> Quarantined:
    """Write the bad rows (see `split`) of the checked partitions as Parquet, in one pass.

    The folder is `PATH/_dq_run=…/_dq_contract=…/_dq_object=…/_dq_scope=…`; the rows have all their columns,
    `_dq_rules` and `_dq_checked_at`. Unless `unmasked`, columns that are classified or not in the contract
    are masked: strings become `***`, all other values NULL. Nothing is written if no clause failed.

    Raises ReadError if writing fails.
    """
    if not report.failed:
        return Quarantined(0, None)
    request = Request(
        contract, data, spark=spark, kinds=kinds, other_objects=other_objects, neighbours=neighbours
    )
    checked = _reopen_checked(request, report, precedence)
    schema_object, rows = checked.schema_object, checked.rows
    if not checked.broken:
        return Quarantined(0, None)
    bad = _with_rule_marks(checked, rows).where(_IS_BAD)
    masked_columns = (
        frozenset()
        if unmasked
        else hidden_columns(schema_object, schema_of(rows)) | _reference_columns(request, checked)
    )
    folder = "/".join([for_hadoop(path).rstrip("/"), *_folders(contract, schema_object, run)])
    secrets = None if unmasked else repeats_classified(schema_object, schema_of(rows))
    checked_at = sql.timestamp(run.at) if run.at is not None else "CAST(NULL AS TIMESTAMP)"
    output = bad.selectExpr(
        *_output_columns(bad, masked_columns, secrets), f"{checked_at} AS {sql.name(CHECKED_AT)}"
    )

    def write_rows() -> int | Failure:
        # Adaptive execution then writes few rows to few files.
        output.hint("rebalance").write.mode("overwrite").parquet(folder)
        return count_written(output, folder)

    row_count = attempt_without_values(write_rows)
    if isinstance(row_count, Failure):
        message = (
            f"{contract.id} {schema_object.name}: the bad rows cannot be written to {path!r}: "
            f"{row_count.message}."
        )
        raise ReadError(message, "Check the path, and that Spark may write there.")
    return Quarantined(row_count, folder)


def write_good_rows(
    request: Request, report: Report, folder: str, precedence: Precedence | None = None
) -> Cleaned:
    """Write the good rows (see `split`) of the checked partitions as Parquet, with all their values.

    `folder` then has the columns of the data, and its partition columns as folders in Hive's layout. Without
    partitions the whole folder is replaced, else the folder of the partition, also if it has no good rows.

    Raises:
        ReadError: The good rows or their types are unknown, or writing fails.
        UsageError: The partition is not a folder, since it has no value of an outer partition column.
    """
    contract = request.contract
    _require_measured(contract, report)
    checked = _reopen_checked(request, report, precedence)
    _require_types(contract, report, request.data, checked.rows)
    marked = _with_rule_marks(checked, checked.rows)
    good = _good_rows(marked)
    partition_columns = _partition_columns(request.data, good)
    scope = {column.lower(): text for column, text in report.partitions[0]} if report.partitions else {}
    fixed = list(takewhile(lambda name: name.lower() in scope, partition_columns))
    if len(report.partitions) > 1 or len(fixed) < len(scope):
        raise UsageError(
            f"{contract.id} {report.object}: the rows of {label(report.partitions[0])} have no folder of "
            f"their own: the partition columns are {', '.join(partition_columns) or 'none'}.",
            "Select partitions by the first of these columns, or check the whole table with --all.",
        )
    inner = [name for name in partition_columns if name not in fixed]
    target = "/".join(
        [for_hadoop(folder), *_partition_folders(good, {name: scope[name.lower()] for name in fixed})]
    )
    rows = good.drop(*fixed)

    def write_rows() -> int | Failure:
        # One file or a few for each folder.
        gathered = rows.repartition(*map(sql.name, inner)) if inner else rows.hint("rebalance")
        writer = gathered.write.mode("overwrite").option("partitionOverwriteMode", "static")
        writer.partitionBy(*inner).parquet(target)
        return count_written(rows, target)

    row_count = attempt_without_values(write_rows)
    if isinstance(row_count, Failure):
        raise ReadError(
            f"{contract.id} {report.object}: the good rows cannot be written to {target!r}: "
            f"{row_count.message}.",
            "Check the path, and that Spark may write there; an incomplete folder has no file _SUCCESS.",
        )
    return Cleaned(
        row_count, target, superseded=_superseded_partitions(checked, report, marked, partition_columns)
    )


def _require_types(contract: Contract, report: Report, data: DataFrame | Dataset, frame: DataFrame) -> None:
    """Raise ReadError if JSON or CSV has values that are not of the contract's type, and so only texts."""
    if not isinstance(data, Dataset) or data.format not in TEXT_FORMATS:
        return
    schema = schema_of(frame)
    for name, kind in zip(data.columns.names, data.columns.parts, strict=True):
        if struct_field(schema, name) == STRING != carrier_type(kind):
            raise ReadError(
                f"{contract.id} {report.object}: the good rows have no type: column {name!r} has values that "
                f"are not {kind}.",
                "Correct the values, or the type in the contract.",
            )


def _partition_columns(data: DataFrame | Dataset, frame: DataFrame) -> list[str]:
    """Return the partition columns of the data, as they are written in the frame."""
    names = {name.lower(): name for name in frame.columns}
    partitions = data.partitions if isinstance(data, Dataset) else ()
    return [names[name.lower()] for name in partitions if name.lower() in names]


def _partition_folders(frame: DataFrame, values: Mapping[str, str]) -> list[str]:
    """Return the folders of partition values, each as Spark writes it: `month=1` for the text `01`."""
    schema, folders = schema_of(frame), []
    for name, text in values.items():
        kind = struct_field(schema, name)
        value = None if text == NULL_PARTITION or kind is None else literal(text, kind)
        if value is not None:
            text = frame.sparkSession.range(1).selectExpr(f"CAST({value} AS STRING)").collect()[0][0]
        folders.append(partition_folder([(name, text)]))
    return folders


def _superseded_partitions(
    checked: _CheckedData, report: Report, marked: DataFrame, partition_columns: Sequence[str]
) -> tuple[Partition, ...]:
    """Return the other partitions with rows that are bad because a row of the report's partitions is kept."""
    if checked.order is None or not report.partitions:
        return ()
    outside = without_partitions(checked.table, [dict(partition) for partition in report.partitions])
    texts = [
        f"CAST({sql.name(name)} AS STRING) AS {sql.name(f'{_PREFIX}{name}')}" for name in partition_columns
    ]
    name, superseded = clause_namer(checked.schema_object), set()
    for clause in checked.broken:
        if not isinstance(clause.test, UniqueKey) or clause.row_filter.rows is not RowScope.TABLE:
            continue
        metric = RepeatedKeys(clause.keys, clause.row_filter.where)
        keys = [str(index) for index in range(len(clause.keys))]
        winners = marked.where(f"NOT array_contains({sql.name(RULES)}, {sql.text(name(clause.path))})")
        repeated = _keys(checked.table, clause, checked.open_object)
        rows = select_keys(outside, metric, *texts).join(repeated, on=keys, how="left_semi")
        rows = rows.join(select_keys(winners, metric), on=keys, how="left_semi").drop(*keys).distinct()
        superseded |= {tuple(row) for row in rows.collect()}
    return tuple(
        tuple(
            (name, NULL_PARTITION if text is None else text)
            for name, text in zip(partition_columns, values, strict=True)
        )
        for values in sorted(superseded, key=str)
    )


@dataclass(frozen=True, slots=True)
class _CheckedData:
    """Data of a report and its failed row-level clauses.

    `table` has all rows, and `rows` those of the report's partitions. `open_object` opens the objects that
    relationships refer to. `order` decides which row of a repeated key is kept; None: none of them.
    """

    schema_object: SchemaObject
    table: DataFrame
    rows: DataFrame
    broken: tuple[Clause, ...]
    kinds: CheckKinds
    open_object: OpenObject
    order: RowOrder | None = None


def _reopen_checked(request: Request, report: Report, precedence: Precedence | None = None) -> _CheckedData:
    """Return data and clauses as in the report's run: same object, time and partitions."""
    partitions = [dict(partition) for partition in report.partitions]
    request = replace(request, object=report.object, now=report.at, partitions=partitions, rules=report.rules)
    selection, opened = select_clauses(request), OpenedData(request, in_memory=False)
    table = opened.table
    clauses = selection.bind(request, opened.schema, context_for(request))
    failed = {result.clause for result in report.failed}
    row_clauses = (clause for clause in clauses if clause.is_row_level and clause.allows_zero)
    open_object = object_opener(request, selection.schema_object, lambda: table)
    rows, order = opened.rows(RowScope.PARTITION), None
    if precedence is not None:
        subject = request.contract, selection.schema_object
        by = precedence_column(*subject, clauses, precedence)
        order = RowOrder.for_data(*subject, by, precedence, schema_of(rows))
    return _CheckedData(
        selection.schema_object,
        table,
        rows,
        tuple(clause for clause in row_clauses if clause.path in failed),
        selection.kinds,
        open_object,
        order,
    )


def _reference_columns(request: Request, checked: _CheckedData) -> frozenset[str]:
    """Return the columns with keys of another object that are classified there, even if not checked in this
    run.
    """
    references = (
        clause
        for clause in clauses_of(request.contract, checked.schema_object, checked.kinds, request.neighbours)
        if isinstance(clause.test, ForeignKey) and clause.test.target.classified
    )
    return frozenset(str(key.steps[0]).lower() for clause in references for key in clause.keys)


def _with_rule_marks(checked: _CheckedData, frame: DataFrame) -> DataFrame:
    """Add the names of the failed clauses that each row breaks.

    Repeated keys are looked up in the whole table if the clause applies to the whole table. With an order,
    the row that takes precedence does not break its key.
    """
    reserved = [name for name in frame.columns if name.lower().startswith(_PREFIX)]
    if reserved:
        raise UsageError(f"the data has a column {reserved[0]!r}, a name reserved by dq.", "Rename it.")
    marks, marked_rows, schema, name = [], frame, schema_of(frame), clause_namer(checked.schema_object)
    for index, clause in enumerate(checked.broken):
        flag = sql.name(f"{_PREFIX}{index}")
        source = checked.table if clause.row_filter.rows is RowScope.TABLE else frame
        present = [f"{key.sql()} IS NOT NULL" for key in clause.keys]
        if checked.order is not None and isinstance(clause.test, UniqueKey):
            rank = f"{_PREFIX}rank_{index}"
            applies = sql.all_of(_optional_sql(clause.row_filter.where, schema), *present)
            marked_rows = marked_rows.selectExpr(
                "*", f"{checked.order.rank(clause.keys, applies)} AS {sql.name(rank)}"
            )
            row_fails = f"{sql.name(rank)} > 1"
            if source is not frame:
                best = checked.order.best(source, clause, _keys(source, clause, checked.open_object))
                marked_rows = _join_flag(marked_rows, best, clause, index, "best")
                row_fails = sql.any_of(row_fails, checked.order.is_superseded_by(flag))
        elif clause.keys:
            marked_rows = _join_flag(marked_rows, _keys(source, clause, checked.open_object), clause, index)
            row_fails = (
                sql.all_of(*present, f"{flag} IS NULL")
                if isinstance(clause.test, ForeignKey)
                else f"{flag} IS NOT NULL"
            )
        else:
            row_fails = _optional_sql(clause.breaks, schema)
        bad = sql.all_of(_optional_sql(clause.row_filter.where, schema), row_fails)
        marks.append(f"CASE WHEN {bad} THEN {sql.text(name(clause.path))} END")
    rules = f"filter(array({', '.join(marks or ['CAST(NULL AS STRING)'])}), one -> one IS NOT NULL)"
    return marked_rows.selectExpr(
        *(sql.name(name) for name in frame.columns), f"{rules} AS {sql.name(RULES)}"
    )


def _optional_sql(predicate: Predicate | None, schema: DataType) -> str:
    return "" if predicate is None else predicate_sql(predicate, schema)


def _keys(source: DataFrame, clause: Clause, open_object: OpenObject) -> DataFrame:
    """Return the distinct repeated keys, or the keys of the referenced object, in columns 0, 1, …"""
    names = [sql.name(str(index)) for index in range(len(clause.keys))]
    if not isinstance(clause.test, ForeignKey):
        return (
            select_keys(source, RepeatedKeys(clause.keys, clause.row_filter.where))
            .groupBy(*names)
            .count()
            .where("count > 1")
            .select(*names)
        )
    target_frame = open_object(clause.test.target.object)
    if isinstance(target_frame, Failure):
        raise ReadError(f"{clause.object}: {target_frame.message}.", "Pass it as an argument.")
    return select_keys(target_frame, DistinctKeys(clause.test.target.keys)).distinct()


def _join_flag(
    frame: DataFrame, keys: DataFrame, clause: Clause, index: int, value: str = "true"
) -> DataFrame:
    """Add a flag column with `value`, SQL on the columns of `keys`, in rows whose key is in `keys`."""
    from pyspark.sql.functions import expr

    flag = f"{_PREFIX}{index}"
    key_columns = [
        f"{sql.name(str(index))} AS {sql.name(f'{flag}_{index}')}" for index in range(len(clause.keys))
    ]
    equal = (f"{key.sql()} = {sql.name(f'{flag}_{index}')}" for index, key in enumerate(clause.keys))
    return frame.join(
        keys.selectExpr(*key_columns, f"{value} AS {sql.name(flag)}"), expr(sql.all_of(*equal)), "left"
    )


def _output_columns(
    bad: DataFrame, masked_columns: frozenset[str], secrets: Callable[[str], str] | None
) -> list[str]:
    schema = schema_of(bad)
    return [
        masked_column(name, part)
        if name.lower() in masked_columns
        else masked_where_repeated(name, part, secrets)
        if secrets
        else sql.name(name)
        for name, part in zip(schema.names, schema.parts, strict=True)
    ]


def _folders(contract: Contract, schema_object: SchemaObject, run: Run) -> list[str]:
    """Return the folder names in Hive's `key=value` form, which readers turn into columns."""
    levels = (
        ("run", run.id),
        ("contract", contract.key),
        ("object", schema_object.name),
        ("scope", run.scope),
    )
    return [f"{_PREFIX}{name}={quote(value, safe='')}" for name, value in levels]
