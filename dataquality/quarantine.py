"""Rows that break their contract, set apart from the good ones or written to a place of their own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote

from dq.contracts.model import Contract, SchemaObject, namer
from dq.contracts.outcome import Status, Unreadable, UsageError
from dq.contracts.sql import text as sql
from dq.contracts.types import DataType
from dq.dataquality.check import check
from dq.dataquality.clauses.clause import Clause, ForeignKey, RowScope
from dq.dataquality.clauses.foreign_key import ALONE, Neighbours
from dq.dataquality.clauses.kind import Shelf, clauses_of
from dq.dataquality.model.column import hidden
from dq.dataquality.model.metric import DistinctKeys, Failure, RepeatedKeys
from dq.dataquality.model.predicate import Predicate
from dq.dataquality.report import Quarantined, Report
from dq.dataquality.request import OpenedData, Request, choose, occasion_of, others_of
from dq.dataquality.spark.columnar_files import only
from dq.dataquality.spark.dataset import Dataset
from dq.dataquality.spark.failing_rows import masked, masked_where_repeated, repeats
from dq.dataquality.spark.measure import Others, keyed, schema_of
from dq.dataquality.spark.session import answered
from dq.dataquality.sql_predicate import predicate_sql

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# The columns that are added.
RULES, CHECKED_AT = "_dq_rules", "_dq_checked_at"
_OURS = "_dq_"


@dataclass(frozen=True, slots=True)
class Run:
    """Which check found the rows. `id` and `scope` name the folder: written again, it is replaced."""

    id: str
    scope: str = "table"
    at: datetime | None = None


class GatedRows(NamedTuple):
    """The rows that may go on, those that may not, and what the check found: `good, bad, report = …`.

    `good` has the columns of the data, `bad` has `_dq_rules` beside them: the paths of the clauses that the
    row breaks. Both are computed when they are used.
    """

    good: DataFrame
    bad: DataFrame
    report: Report

    def raise_for_status(self) -> None:
        """Raises Violated for what is broken and no row can be blamed for; `report` raises for bad rows too.

        Such are too few rows, a column that is not there, an average, a rule in SQL.
        """
        results = (one for one in self.report.results if one.clause not in self.report.apart)
        replace(self.report, results=tuple(results)).raise_for_status()


def split(request: Request, report: Report | None = None) -> tuple[DataFrame, DataFrame]:
    """The good rows as they are, and the bad ones with `_dq_rules`, the names of the clauses that they break.

    A row is bad that breaks a failed clause of the severity error or critical by itself, repeats a key or
    has no match. Nothing is masked. `report` is that of `check` on the same data; without it the data is
    checked as of the request's `now`. What no single row breaks (a number of rows, a query), and what asks
    for such rows (more than 3 NULLs), stands in the report alone.
    Nothing runs before the frames are used.

    Raises Unreadable when a clause of that severity could not be measured: then nobody knows which rows
    are good.
    """
    gated = gate(request, report)
    return gated.good, gated.bad


def gate(request: Request, report: Report | None = None) -> GatedRows:
    """What `split` gives, with the report that it rests on; that says of which clauses rows are set apart.

    Raises as `split` does.
    """
    found = report or check(request)
    unknown = [result for result in found.of(Status.ERROR) if result.severity.blocks]
    if unknown:
        message = (
            f"{request.contract.id} {found.object}: which rows are good cannot be told: {unknown[0].message}."
        )
        raise Unreadable(message, "Mend what could not be measured first.")
    checked = _as_checked(request, found)
    marked = _marked(checked, checked.table)
    good = marked.where(f"size({sql.name(RULES)}) = 0").drop(RULES)
    bad = marked.where(f"size({sql.name(RULES)}) > 0")
    return GatedRows(good, bad, replace(found, apart=tuple(clause.path for clause in checked.broken)))


def write(
    contract: Contract,
    data: DataFrame | Dataset,
    report: Report,
    path: str,
    run: Run,
    *,
    spark: SparkSession | None = None,
    kinds: Shelf | None = None,
    others: Mapping[str, DataFrame | Dataset] | None = None,
    unmasked: bool = False,
    neighbours: Neighbours = ALONE,
) -> Quarantined:
    """Writes the bad rows (see `split`) of the partitions that were checked, as Parquet, in one pass.

    They lie in `PATH/_dq_run=…/_dq_contract=…/_dq_object=…/_dq_scope=…` with all their columns, `_dq_rules`
    and `_dq_checked_at`. Columns that are classified, or that the contract does not describe, are masked,
    unless `unmasked`: texts are `***`, all else is NULL. Where nothing failed, nothing is written.

    Raises Unreadable when it cannot be written.
    """
    if not report.failed:
        return Quarantined(0, None)
    request = Request(contract, data, spark=spark, kinds=kinds, others=others, neighbours=neighbours)
    checked = _as_checked(request, report)
    one, table = checked.one, checked.table
    if not checked.broken:
        return Quarantined(0, None)
    rows = only(table, [dict(each) for each in report.partitions]) if report.partitions else table
    bad = _marked(checked, rows).where(f"size({sql.name(RULES)}) > 0")
    away = frozenset() if unmasked else hidden(one, schema_of(rows)) | _references(request, checked)
    # Hadoop's own client for S3 has the scheme s3a.
    root = "s3a://" + path.removeprefix("s3://") if path.startswith("s3://") else path
    folder = "/".join([root.rstrip("/"), *_folders(contract, one, run)])
    secrets = None if unmasked else repeats(one, schema_of(rows))
    at = sql.timestamp(run.at) if run.at is not None else "CAST(NULL AS TIMESTAMP)"
    shown = bad.selectExpr(*_shown(bad, away, secrets), f"{at} AS {sql.name(CHECKED_AT)}")

    def keep() -> int:
        # With adaptive execution few rows end in few files.
        shown.hint("rebalance").write.mode("overwrite").parquet(folder)
        return shown.sparkSession.read.schema(shown.schema).parquet(folder).count()

    written = answered(keep)
    if isinstance(written, Failure):
        message = f"{contract.id} {one.name}: the bad rows cannot be written to {path!r}: {written.message}."
        raise Unreadable(message, "Check the path, and that Spark may write there.")
    return Quarantined(written, folder)


@dataclass(frozen=True, slots=True)
class _Checked:
    """The data that a report is about, and its broken clauses of which single rows or keys are to blame.

    `others` opens the objects that relationships refer to.
    """

    one: SchemaObject
    table: DataFrame
    broken: tuple[Clause, ...]
    kinds: Shelf
    others: Others


def _as_checked(request: Request, report: Report) -> _Checked:
    """The data and clauses as the report's run had them: of its object, at its time, on its partitions."""
    partitions = [dict(each) for each in report.partitions]
    request = replace(request, object=report.object, now=report.at, partitions=partitions, rules=report.rules)
    chosen, table = choose(request), OpenedData(request, in_memory=False).table
    clauses = chosen.on(request, schema_of(table), occasion_of(request))
    failed = {result.clause for result in report.failed}
    broken = (clause for clause in clauses if clause.of_rows and clause.allows_none)
    others = others_of(request, chosen.one, lambda: table)
    return _Checked(
        chosen.one, table, tuple(each for each in broken if each.path in failed), chosen.kinds, others
    )


def _references(request: Request, checked: _Checked) -> frozenset[str]:
    """Columns that hold keys of another object, which are classified there; the run need not ask for them."""
    found = (
        clause
        for clause in clauses_of(request.contract, checked.one, checked.kinds, request.neighbours)
        if isinstance(clause.ask, ForeignKey) and clause.ask.target.classified
    )
    return frozenset(str(key.steps[0]).lower() for clause in found for key in clause.keys)


def _marked(checked: _Checked, frame: DataFrame) -> DataFrame:
    """The frame with the names of the broken clauses that each row breaks.

    Keys are looked for in the whole table, where they are promised there.
    """
    taken = [name for name in frame.columns if name.lower().startswith(_OURS)]
    if taken:
        raise UsageError(f"the data has a column {taken[0]!r}, and such names are those of dq.", "Rename it.")
    marks, marked, schema, name = [], frame, schema_of(frame), namer(checked.one)
    for index, clause in enumerate(checked.broken):
        flag = sql.name(f"{_OURS}{index}")
        if clause.keys:
            source = checked.table if clause.extent.rows is RowScope.TABLE else frame
            marked = _joined(marked, _keys(source, clause, checked.others), clause, index)
            present = (f"{key.sql()} IS NOT NULL" for key in clause.keys)
            breaks = (
                sql.all_of(*present, f"{flag} IS NULL")
                if isinstance(clause.ask, ForeignKey)
                else f"{flag} IS NOT NULL"
            )
        else:
            breaks = _text(clause.breaks, schema)
        bad = sql.all_of(_text(clause.extent.where, schema), breaks)
        marks.append(f"CASE WHEN {bad} THEN {sql.text(name(clause.path))} END")
    rules = f"filter(array({', '.join(marks or ['CAST(NULL AS STRING)'])}), one -> one IS NOT NULL)"
    return marked.selectExpr(*(sql.name(name) for name in frame.columns), f"{rules} AS {sql.name(RULES)}")


def _text(predicate: Predicate | None, schema: DataType) -> str:
    return "" if predicate is None else predicate_sql(predicate, schema)


def _keys(source: DataFrame, clause: Clause, others: Others) -> DataFrame:
    """The repeated keys, or those that may be referred to, called 0, 1, …, each once."""
    names = [sql.name(str(index)) for index in range(len(clause.keys))]
    if not isinstance(clause.ask, ForeignKey):
        return (
            keyed(source, RepeatedKeys(clause.keys, clause.extent.where))
            .groupBy(*names)
            .count()
            .where("count > 1")
            .select(*names)
        )
    other = others(clause.ask.target.object)
    if isinstance(other, Failure):
        raise Unreadable(f"{clause.object}: {other.message}.", "Hand it in.")
    return keyed(other, DistinctKeys(clause.ask.target.keys)).distinct()


def _joined(frame: DataFrame, keys: DataFrame, clause: Clause, index: int) -> DataFrame:
    """The frame with a flag in the rows whose key is among these."""
    from pyspark.sql.functions import expr

    flag = f"{_OURS}{index}"
    named = [f"{sql.name(str(at))} AS {sql.name(f'{flag}_{at}')}" for at in range(len(clause.keys))]
    equal = (f"{key.sql()} = {sql.name(f'{flag}_{at}')}" for at, key in enumerate(clause.keys))
    return frame.join(keys.selectExpr(*named, f"true AS {sql.name(flag)}"), expr(sql.all_of(*equal)), "left")


def _shown(bad: DataFrame, away: frozenset[str], secrets: Callable[[str], str] | None) -> list[str]:
    schema = schema_of(bad)
    return [
        masked(name, part)
        if name.lower() in away
        else masked_where_repeated(name, part, secrets)
        if secrets
        else sql.name(name)
        for name, part in zip(schema.names, schema.parts, strict=True)
    ]


def _folders(contract: Contract, one: SchemaObject, run: Run) -> list[str]:
    """As Hive writes partitions: a reader of the path finds them as columns."""
    named = (("run", run.id), ("contract", contract.key), ("object", one.name), ("scope", run.scope))
    return [f"{_OURS}{name}={quote(value, safe='')}" for name, value in named]
