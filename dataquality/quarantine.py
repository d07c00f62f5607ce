"""Rows that break their contract, separated from the good rows or written to a quarantine folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote

from dq.contracts.model import Contract, SchemaObject, clause_namer
from dq.contracts.outcome import ReadError, Status, UsageError
from dq.contracts.sql import text as sql
from dq.contracts.types import DataType
from dq.dataquality.check import check
from dq.dataquality.clauses.clause import Clause, ForeignKey, RowScope
from dq.dataquality.clauses.foreign_key import NO_NEIGHBOURS, ContractSet
from dq.dataquality.clauses.kind import CheckKinds, clauses_of
from dq.dataquality.model.column import hidden_columns
from dq.dataquality.model.metric import DistinctKeys, Failure, RepeatedKeys
from dq.dataquality.model.predicate import Predicate
from dq.dataquality.report import Quarantined, Report
from dq.dataquality.request import OpenedData, Request, context_for, object_opener, select_clauses
from dq.dataquality.spark.dataset import Dataset
from dq.dataquality.spark.failing_rows import masked_column, masked_where_repeated, repeats_classified
from dq.dataquality.spark.measure import OpenObject, schema_of, select_keys
from dq.dataquality.spark.session import attempt_without_values
from dq.dataquality.sql_predicate import predicate_sql

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


def split(request: Request, report: Report | None = None) -> tuple[DataFrame, DataFrame]:
    """Return the good rows, and the bad rows with `_dq_rules`, the names of the clauses that they break.

    A row is bad if it breaks a failed clause of severity error or critical, repeats a key or has no match.
    Nothing is masked. Clauses that no single row breaks (row counts, queries) or that require such rows (more
    than 3 NULLs) are only in the report. The frames are evaluated lazily.

    Args:
        report: Report of `check` on the same data; without it the data is checked as of the request's `now`.

    Raises:
        ReadError: A clause of that severity could not be measured, so that good rows cannot be told from
            bad.
    """
    gated = gate(request, report)
    return gated.good, gated.bad


def gate(request: Request, report: Report | None = None) -> GatedRows:
    """Return the result of `split` with its report, which lists the clauses whose rows were separated.

    Raises the same errors as `split`.
    """
    base_report = report or check(request)
    unmeasured = [result for result in base_report.with_status(Status.ERROR) if result.severity.blocks]
    if unmeasured:
        message = (
            f"{request.contract.id} {base_report.object}: cannot determine which rows are good: "
            f"{unmeasured[0].message}."
        )
        raise ReadError(message, "Fix the checks that could not be measured.")
    checked = _reopen_checked(request, base_report)
    marked = _with_rule_marks(checked, checked.table)
    good = marked.where(f"size({sql.name(RULES)}) = 0").drop(RULES)
    bad = marked.where(f"size({sql.name(RULES)}) > 0")
    return GatedRows(
        good, bad, replace(base_report, separated_clauses=tuple(clause.path for clause in checked.broken))
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
    checked = _reopen_checked(request, report)
    schema_object, rows = checked.schema_object, checked.rows
    if not checked.broken:
        return Quarantined(0, None)
    bad = _with_rule_marks(checked, rows).where(f"size({sql.name(RULES)}) > 0")
    masked_columns = (
        frozenset()
        if unmasked
        else hidden_columns(schema_object, schema_of(rows)) | _reference_columns(request, checked)
    )
    # Hadoop's own client for S3 has the scheme s3a.
    root = "s3a://" + path.removeprefix("s3://") if path.startswith("s3://") else path
    folder = "/".join([root.rstrip("/"), *_folders(contract, schema_object, run)])
    secrets = None if unmasked else repeats_classified(schema_object, schema_of(rows))
    checked_at = sql.timestamp(run.at) if run.at is not None else "CAST(NULL AS TIMESTAMP)"
    output = bad.selectExpr(
        *_output_columns(bad, masked_columns, secrets), f"{checked_at} AS {sql.name(CHECKED_AT)}"
    )

    def write_rows() -> int:
        # Adaptive execution then writes few rows to few files.
        output.hint("rebalance").write.mode("overwrite").parquet(folder)
        return output.sparkSession.read.schema(output.schema).parquet(folder).count()

    row_count = attempt_without_values(write_rows)
    if isinstance(row_count, Failure):
        message = (
            f"{contract.id} {schema_object.name}: the bad rows cannot be written to {path!r}: "
            f"{row_count.message}."
        )
        raise ReadError(message, "Check the path, and that Spark may write there.")
    return Quarantined(row_count, folder)


@dataclass(frozen=True, slots=True)
class _CheckedData:
    """Data of a report and its failed row-level clauses.

    `table` has all rows, and `rows` those of the report's partitions. `open_object` opens the objects that
    relationships refer to.
    """

    schema_object: SchemaObject
    table: DataFrame
    rows: DataFrame
    broken: tuple[Clause, ...]
    kinds: CheckKinds
    open_object: OpenObject


def _reopen_checked(request: Request, report: Report) -> _CheckedData:
    """Return data and clauses as in the report's run: same object, time and partitions."""
    partitions = [dict(partition) for partition in report.partitions]
    request = replace(request, object=report.object, now=report.at, partitions=partitions, rules=report.rules)
    selection, opened = select_clauses(request), OpenedData(request, in_memory=False)
    table = opened.table
    clauses = selection.bind(request, opened.schema, context_for(request))
    failed = {result.clause for result in report.failed}
    row_clauses = (clause for clause in clauses if clause.is_row_level and clause.allows_zero)
    open_object = object_opener(request, selection.schema_object, lambda: table)
    return _CheckedData(
        selection.schema_object,
        table,
        opened.rows(RowScope.PARTITION),
        tuple(clause for clause in row_clauses if clause.path in failed),
        selection.kinds,
        open_object,
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

    Repeated keys are looked up in the whole table if the clause applies to the whole table.
    """
    reserved = [name for name in frame.columns if name.lower().startswith(_PREFIX)]
    if reserved:
        raise UsageError(f"the data has a column {reserved[0]!r}, a name reserved by dq.", "Rename it.")
    marks, marked_rows, schema, name = [], frame, schema_of(frame), clause_namer(checked.schema_object)
    for index, clause in enumerate(checked.broken):
        flag = sql.name(f"{_PREFIX}{index}")
        if clause.keys:
            source = checked.table if clause.row_filter.rows is RowScope.TABLE else frame
            marked_rows = _join_flag(marked_rows, _keys(source, clause, checked.open_object), clause, index)
            present = (f"{key.sql()} IS NOT NULL" for key in clause.keys)
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


def _join_flag(frame: DataFrame, keys: DataFrame, clause: Clause, index: int) -> DataFrame:
    """Add a flag column that is true in rows whose key is in `keys`."""
    from pyspark.sql.functions import expr

    flag = f"{_PREFIX}{index}"
    key_columns = [
        f"{sql.name(str(index))} AS {sql.name(f'{flag}_{index}')}" for index in range(len(clause.keys))
    ]
    equal = (f"{key.sql()} = {sql.name(f'{flag}_{index}')}" for index, key in enumerate(clause.keys))
    return frame.join(
        keys.selectExpr(*key_columns, f"true AS {sql.name(flag)}"), expr(sql.all_of(*equal)), "left"
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
