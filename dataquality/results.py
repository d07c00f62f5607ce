"""Check results as a Spark table for dashboards (one row per clause, no data rows), and in the store."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from dq.contracts.access.access_policy import is_remote
from dq.contracts.agreement import AGREES, cycle_agreements
from dq.contracts.check_result import VERDICT_PASS, AgreementStreak, AnsweredBy, CheckResult, Row, Status
from dq.contracts.incident import Breach, FailedClause, IncidentKey, Recovery, observed_and_expected
from dq.contracts.metrics import METRICS, UNUSUAL
from dq.contracts.model import Contract, SchemaObject, clause_namer
from dq.contracts.outcome import Finding, ReadError, Severity, UsageError, iso
from dq.contracts.sql import text as sql
from dq.dataquality.clauses.agreement_streak import streak
from dq.dataquality.delivery import cycle_store
from dq.dataquality.delivery.cycle import label, partition_from_label
from dq.dataquality.delivery.tables import chunks
from dq.dataquality.model.metric import Failure, Group, Tally
from dq.dataquality.model.run_context import Partition, PastComparison, PastMeasurement, PastRowCount
from dq.store.schema import Json, UtcDateTime, metadata

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from dq.dataquality.report import Report


# Stable: columns are only added, at the end.
COLUMNS = (
    ("contract", "string"),
    ("version", "string"),
    ("object", "string"),
    ("scope", "string"),
    ("at", "timestamp"),
    ("clause", "string"),
    ("check", "string"),
    ("property", "string"),
    ("status", "string"),
    ("severity", "string"),
    ("observed", "string"),
    ("allowed", "string"),
    ("value", "double"),
    ("message", "string"),
    # The clause by ids and names; `clause` is its positional path.
    ("clause_name", "string"),
)
# Tables created by older versions of dq lack these columns.
_ADDED = ("clause_name",)
_DDL = ", ".join(f"{sql.name(column)} {kind}" for column, kind in COLUMNS)
_PATH_SIGNS = ("/", "\\", ":")

TableRow = tuple[str | datetime | float | None, ...]


def lines(report: Report, checked_at: datetime) -> Iterator[TableRow]:
    """Yield the rows of a report, one per clause result, in the order of COLUMNS."""
    scope = ", ".join(label(partition) for partition in report.partitions) or TABLE
    for result in report.results:
        identity = (result.clause, result.check, result.property, result.status.value, result.severity.value)
        outcome = (result.observed, result.allowed, result.value, result.message, result.name)
        yield (report.contract, report.version, report.object, scope, checked_at, *identity, *outcome)


def untested_row(contract: Contract, name: str, scope: str, checked_at: datetime, reason: str) -> TableRow:
    """Return the row of an object that could not be tested: an error without a clause."""
    return (contract.id, contract.version, name, scope, checked_at, *_NO_RESULT, reason, "")


def broken_contract_row(finding: Finding, checked_at: datetime) -> TableRow:
    """Return the row of a contract that could not be read."""
    return (finding.contract or finding.at.file, "", "", "", checked_at, *_NO_RESULT, str(finding), "")


# Values of the columns from `clause` to `value`.
_NO_RESULT = ("", "", "", "error", "error", "not tested", "", None)


def is_path(target: str) -> bool:
    """Return True if the target is a folder or URI, not a table name."""
    return any(sign in target for sign in _PATH_SIGNS)


def quoted_target(target: str) -> str:
    """Return a path unchanged, or a table name quoted. Raises UsageError for anything else."""
    if is_path(target):
        return target
    parts = target.split(".")
    if not all(part.replace("_", "a").isalnum() for part in parts) or len(parts) > 3:
        raise UsageError(
            f"--results-table {target!r} is neither a table nor a path.",
            "Use database.table, or a path with a /.",
        )
    return ".".join(sql.name(part) for part in parts)


def append(spark: SparkSession, rows: Sequence[TableRow], target: str) -> None:
    """Append the rows in one write. A missing table or Parquet folder is created.

    An existing table keeps its format; additional columns are filled with NULL.

    Raises:
        UsageError: An invalid table name, or a table without the required columns.
        ReadError: Spark cannot write, or the executors of a cluster wrote to disks of their own.
    """
    # Readers of results need nothing of Spark, which is much to import.
    from dq.dataquality.spark.session import attempt

    name = quoted_target(target)
    frame = spark.createDataFrame([tuple(row) for row in rows], _DDL).coalesce(1)
    write = _append_to_folder if is_path(target) else _append_to_table
    outcome = attempt(lambda: write(frame, name))
    if isinstance(outcome, Failure):
        raise ReadError(
            f"the results cannot be written to {target}: {outcome.message.rstrip('.')}.",
            "The results are still saved in the store. Fix the table and run again.",
        )


def _append_to_folder(frame: DataFrame, folder: str) -> Failure | None:
    from dq.dataquality.spark.dataset import is_shared, lost_rows
    from dq.dataquality.spark.session import attempt

    def stored_rows() -> int:
        return frame.sparkSession.read.schema(frame.schema).parquet(folder).count()

    if is_shared(frame.sparkSession, folder):
        frame.write.mode("append").parquet(folder)
        return None
    # Before the first run there is no folder.
    earlier = attempt(stored_rows)
    frame.write.mode("append").parquet(folder)
    return lost_rows(frame, stored_rows() - (0 if isinstance(earlier, Failure) else earlier))


def _append_to_table(frame: DataFrame, name: str) -> Failure | None:
    from dq.dataquality.spark.dataset import lost_rows

    spark = frame.sparkSession
    earlier = None
    if spark.catalog.tableExists(name):
        table_rows = _fit_to_table(spark, frame, name)
        earlier = _count_if_not_shared(spark, name)
        table_rows.write.insertInto(name)
    else:
        frame.write.saveAsTable(name)
    stored = _count_if_not_shared(spark, name)
    return None if stored is None else lost_rows(frame, stored - (earlier or 0))


def _count_if_not_shared(spark: SparkSession, name: str) -> int | None:
    """Return the number of rows of a table, or None if the driver certainly sees what executors insert."""
    from dq.dataquality.spark.session import is_local

    if is_local(spark):
        return None
    row = spark.sql(f"DESCRIBE TABLE EXTENDED {name}").where("col_name = 'Location'").first()
    return None if row and is_remote(row["data_type"]) else spark.table(name).count()


def _fit_to_table(spark: SparkSession, frame: DataFrame, name: str) -> DataFrame:
    """Return the rows in the order of the table's columns, because Spark inserts by position."""
    table_columns = {column.lower() for column in spark.table(name).columns}
    missing = [column for column, _ in COLUMNS if column not in table_columns and column not in _ADDED]
    if missing:
        raise UsageError(
            f"the table {name} has no column {', '.join(missing)}.", "Choose another --results-table."
        )
    result_columns = {column for column, _ in COLUMNS}
    return frame.selectExpr(
        *(
            sql.name(column) if column.lower() in result_columns else f"NULL AS {sql.name(column)}"
            for column in spark.table(name).columns
        )
    )


# The tables of results, on the store's shared MetaData.

check_run = sa.Table(
    "check_run",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("contract", sa.Text, nullable=False),
    sa.Column("object", sa.Text, nullable=False),
    sa.Column("contract_version", sa.Text, nullable=False),
    # The partitions that were read, as `dt=2026-01-01, dt=2026-01-02`, or `table`.
    sa.Column("scope", sa.Text, nullable=False),
    sa.Column("at", UtcDateTime, nullable=False),
    sa.Column("jobs", sa.Integer, nullable=False),
    # The words that selected the clauses; NULL for all clauses.
    sa.Column("rules", Json),
    # For audits, the staging location and `passed`, `failed` or `unknown`; else NULL.
    sa.Column("staged", sa.Text),
    sa.Column("verdict", sa.String(16)),
    sa.Index("ix_check_run_what", "contract", "object", "at"),
    sa.Index("ix_check_run_at", "at"),
)

# Outcome of the verification of statistics.
statistics_trial = sa.Table(
    "statistics_trial",
    metadata,
    sa.Column("run_id", sa.ForeignKey("check_run.id"), primary_key=True),
    sa.Column("proofs", sa.Integer, nullable=False),
    sa.Column("scans", sa.Integer, nullable=False),
    sa.Column("disagreements", sa.Integer, nullable=False),
)

check_result = sa.Table(
    "check_result",
    metadata,
    sa.Column("run_id", sa.ForeignKey("check_run.id"), primary_key=True),
    # Its path, which is positional and so only valid for one version of the contract.
    sa.Column("clause", sa.Text, primary_key=True),
    sa.Column("check", sa.Text, primary_key=True),
    sa.Column("property", sa.Text, nullable=False),
    sa.Column("status", sa.String(8), nullable=False),
    sa.Column("severity", sa.String(8), nullable=False),
    sa.Column("observed", sa.Text, nullable=False),
    sa.Column("allowed", sa.Text, nullable=False),
    sa.Column("message", sa.Text, nullable=False),
    sa.Column("value", sa.Float),
    sa.Column("samples", Json, nullable=False),
    # Fingerprint of the measurement, numbers of its groups, and the groups that failed, if any:
    # {"of": …, "groups": [[[values], number], …], "failed": [[values], …]}, or if two sides agree:
    # {"of": …, "agrees": true}; NULL for clauses without comparison.
    sa.Column("measured", Json),
    # The clause by ids and names, stable across contract versions; NULL in results before schema 0034.
    sa.Column("name", sa.Text),
    # Source of the answer; NULL without an answer, and in results before schema 0036.
    sa.Column("answered_by", sa.String(10)),
)

# A person's answer to the alarms of a run's rules `unusual`.
alarm_answer = sa.Table(
    "alarm_answer",
    metadata,
    sa.Column("run_id", sa.ForeignKey("check_run.id"), primary_key=True),
    sa.Column("real", sa.Boolean, nullable=False),
    sa.Column("answered_by", sa.Text, nullable=False),
    sa.Column("answered_at", UtcDateTime, nullable=False),
)


# Check runs in the store, and their effect on the quality incident of the object.

JsonObject = dict[str, object]

GROUP = "quality"
TABLE = "table"
# Maximum number of failed checks in a message, and of sample rows per check.
_MAX_FACTS, _MAX_SAMPLE_ROWS = 6, 2
BROKEN = (Status.FAIL, Status.ERROR)


@dataclass(frozen=True, slots=True)
class StoredResult:
    """One stored result, with the scope, time and contract version of its run.

    Throughout this module, `contract` is the contract's key.
    """

    contract: str
    object: str
    version: str
    scope: str
    at: datetime
    clause: str
    check: str
    property: str
    status: Status
    severity: Severity
    observed: str
    allowed: str
    message: str
    samples: list[Row]
    name: str = ""
    answered_by: AnsweredBy | None = None

    def as_dict(self) -> JsonObject:
        """Return the result as JSON values."""
        return {
            "contract": self.contract,
            "object": self.object,
            "version": self.version,
            "scope": self.scope,
            "check": self.check,
            "property": self.property,
            "clause": self.clause,
            "name": self.name,
            "answered_by": self.answered_by,
            "status": self.status,
            "severity": self.severity,
            "observed": self.observed,
            "allowed": self.allowed,
            "samples": self.samples,
        }


def save_run(
    tx: sa.Connection,
    *,
    contract: str,
    object: str,
    version: str,
    scope: str,
    results: Iterable[CheckResult],
    jobs: int,
    now: datetime,
    rules: Sequence[str] = (),
    staged: str | None = None,
    verdict: str | None = None,
) -> int:
    """Insert a run with its results and return its id. History is append-only.

    `rules` are the words that selected the clauses, empty for all clauses. For audits, `staged` is the
    location of the staged data and `verdict` the verdict on it.
    """
    run = tx.execute(
        sa.insert(check_run)
        .values(
            contract=contract,
            object=object,
            contract_version=version,
            scope=scope,
            at=now,
            jobs=jobs,
            rules=list(rules) or None,
            staged=staged,
            verdict=verdict,
        )
        .returning(check_run.c.id)
    ).scalar_one()
    rows = [
        {
            "run_id": run,
            "clause": result.clause,
            "check": result.check,
            "property": result.property,
            "status": result.status,
            "severity": result.severity,
            "observed": result.observed,
            "allowed": result.allowed,
            "message": result.message,
            "value": result.value,
            "answered_by": result.answered_by,
            "samples": [{key: _plain(value) for key, value in row.items()} for row in result.samples],
            "measured": _measured(result),
            "name": result.name or None,
        }
        for result in results
    ]
    if rows:
        tx.execute(sa.insert(check_result), rows)
    return int(run)


def _measured(result: CheckResult) -> object:
    """Return the measurement that later runs compare with, or None if they do not."""
    if not result.fingerprint:
        return None
    if result.agrees is not None:
        return {"of": result.fingerprint, "agrees": result.agrees}
    if not result.group_columns:
        return {"of": result.fingerprint}
    groups = [[list(group.key), group.value] for group in result.groups if group.value is not None]
    failed = [list(group.key) for group in result.groups if group.status is Status.FAIL]
    return {"of": result.fingerprint, "groups": groups, **({"failed": failed} if failed else {})}


def _plain(value: object) -> object:
    return value if isinstance(value, (str, int, float, bool)) or value is None else str(value)


def verdict(
    contract: str,
    object: str,
    scope: str,
    results: Sequence[CheckResult],
    now: datetime,
    unrenewed: Sequence[StoredResult] | None = None,
) -> Breach | Recovery | None:
    """Return the effect of a run on the object's quality incident for this scope.

    A check that could not be measured counts as broken. Disagreements in the last cycles of a rule are not
    of the scope, see `streak_event`. `unrenewed` are, for a run of some clauses only, the latest results of
    the scope that this run did not renew.

    Returns:
        A Breach, a Recovery, or None if the run passes but an unrenewed result is still broken.
    """
    key = IncidentKey(contract, object, GROUP)
    results = [result for result in results if result.streak is None or not result.streak.disagreement]
    failed = [result for result in results if result.status in BROKEN]
    if not failed:
        if any(result.status in BROKEN for result in unrenewed or ()):
            return None
        summary = f"all {len(results)} checks pass"
        if unrenewed is not None:
            summary = f"the selected checks pass ({len(results)}), and no other check is known to fail"
        title = f"{object} passes its data checks again: {scope}"
        return Recovery(key, scope, now, (("checked", f"{scope}: {summary}"),), title=title)
    worst = max((result.severity for result in failed), key=lambda severity: severity.rank)
    # The most unusual numbers come first; their value is the probability of such a deviation.
    failed.sort(
        key=lambda result: (-result.severity.rank, (result.value or 0.0) if result.check == UNUSUAL else 0.0)
    )
    facts = [
        (f"{result.property} {result.check}".strip(), _fact_text(result)) for result in failed[:_MAX_FACTS]
    ]
    if len(failed) > _MAX_FACTS:
        facts.append(("and", f"{len(failed) - _MAX_FACTS} more failed checks"))
    title = f"{object} fails {len(failed)} data {'check' if len(failed) == 1 else 'checks'}: {scope}"
    still_broken = [stored for stored in unrenewed or () if stored.status in BROKEN]
    failed_clauses = (*map(_failed_clause, failed), *map(_failed_clause, still_broken))
    return Breach(key, worst, scope, title, now, tuple(facts), failed=failed_clauses)


DISAGREEMENT = "disagrees in"
"""Label of the fact with the first partition that disagrees, or its day."""


def streak_event(standing: AgreementStanding, result: CheckResult, now: datetime) -> Breach | Recovery:
    """Return the effect of a rule for cycles in a row on the object's quality incident.

    The rule is one subject of the incident, however many cycles disagree. `result` is its newest result.
    """
    key, streak = IncidentKey(standing.contract, standing.object, GROUP), standing.streak
    sides = f"{standing.object} disagrees with {standing.other}"
    if not streak.disagreement:
        fact = ("checked", f"agrees with {standing.other} in {streak}")
        title = f"{standing.object} agrees with {standing.other} again: {streak}"
        return Recovery(key, standing.subject, now, (fact,), title=title)
    title, facts = f"{sides}: {streak.disagreement}", [(DISAGREEMENT, streak.disagreement)]
    if result.agrees is False:
        facts.append((result.check, _fact_text(result)))
    facts.append(("streak", f"agrees in {streak}"))
    failed = (_failed_clause(result),)
    return Breach(key, result.severity, standing.subject, title, now, tuple(facts), failed=failed)


def _failed_clause(result: CheckResult | StoredResult) -> FailedClause:
    return FailedClause(
        result.clause, result.check, result.property, result.severity, result.observed, result.allowed
    )


def _fact_text(result: CheckResult) -> str:
    """Return the observed and allowed values, and the keys of the first failing rows, classified keys
    masked.
    """
    text = (
        result.observed if result.check == UNUSUAL else observed_and_expected(result.observed, result.allowed)
    )
    rows = [
        " ".join(f"{key}={value}" for key, value in row.items()) for row in result.samples[:_MAX_SAMPLE_ROWS]
    ]
    return (
        f"{text}; {', '.join(rows)}{' …' if len(result.samples) > _MAX_SAMPLE_ROWS else ''}" if rows else text
    )


def latest(
    tx: sa.Connection, contracts: Collection[str], until: datetime | None = None
) -> dict[tuple[str, str], list[StoredResult]]:
    """Return the current results of each scope of the objects of these contracts, by contract and object.

    They are ordered by scope and clause: the results of the newest run of all clauses, each replaced by newer
    results of runs of some clauses with the same contract version. Only runs up to `until`, if given.
    """
    by_object: dict[tuple[str, str], list[StoredResult]] = {}
    for chunk in chunks(sorted(contracts)):
        condition = sa.and_(check_run.c.contract.in_(chunk), check_run.c.staged.is_(None))
        for _, stored in _standing_results(tx, condition, until):
            by_object.setdefault((stored.contract, stored.object), []).append(stored)
    return by_object


def unrenewed_results(
    tx: sa.Connection, run: int, contract: str, object: str, scope: str
) -> list[StoredResult]:
    """Return the current results of a scope that come from earlier runs than `run`."""
    standing = _standing_results(tx, _is_published(contract, object))
    return [stored for run_id, stored in standing if stored.scope == scope and run_id != run]


def _standing_results(
    tx: sa.Connection, conditions: sa.ColumnElement[bool], until: datetime | None = None
) -> list[tuple[int, StoredResult]]:
    """Return the current results of runs that meet the conditions, with the id of their run."""
    if until is not None:
        conditions = sa.and_(conditions, check_run.c.at <= until)
    runs, columns = check_run.c, check_result.c
    scope_of_run = (runs.contract, runs.object, runs.scope)
    latest_full_runs = (
        sa.select(sa.func.max(runs.id).label("id"), *scope_of_run)
        .where(conditions, runs.rules.is_(None))
        .group_by(*scope_of_run)
        .subquery()
    )
    is_of_scope = sa.and_(*(latest_full_runs.c[column.name] == column for column in scope_of_run))
    rows = tx.execute(
        sa.select(
            runs.id, runs.contract, runs.object, runs.contract_version, runs.scope, runs.at, columns.clause,
            columns.check, columns.property, columns.status, columns.severity, columns.observed,
            columns.allowed, columns.message, columns.samples, columns.name, columns.answered_by,
            columns.measured,
        )
        .join(check_result, columns.run_id == runs.id)
        .outerjoin(latest_full_runs, is_of_scope)
        .where(conditions, sa.or_(latest_full_runs.c.id.is_(None), runs.id >= latest_full_runs.c.id))
        .order_by(runs.id)
    )  # fmt: skip
    newest: dict[tuple[str, ...], tuple[int, StoredResult]] = {}
    # By position, because reading one value of a row by name takes as long as all of them.
    for row in map(tuple, rows):
        (
            run_id, contract, object_name, version, scope, at, clause, check, property_, status, severity,
            observed, allowed, message, samples, name, answered_by, measured,
        ) = row  # fmt: skip
        stored = StoredResult(
            contract, object_name, version, scope, at, clause, check, property_,
            _status_of_scope(status, measured), Severity(severity), observed, allowed, message, samples,
            name or "", AnsweredBy(answered_by) if answered_by else None,
        )  # fmt: skip
        # A path may mean something else in another version of the contract.
        newest[contract, object_name, scope, version, clause, check, property_] = (run_id, stored)
    return sorted(newest.values(), key=lambda entry: (entry[1].scope, entry[1].clause, entry[0]))


def _status_of_scope(status: str, measured: Mapping[str, Any] | None) -> Status:
    """Return the status of a stored result for its own rows, which may agree if an earlier cycle does not."""
    return Status.PASS if (measured or {}).get("agrees") else Status(status)


def fully_checked_scopes(tx: sa.Connection, contract: str, object: str) -> set[str]:
    """Return the scopes of an object that have a run of all clauses."""
    conditions = sa.and_(_is_published(contract, object), check_run.c.rules.is_(None))
    return set(tx.execute(sa.select(check_run.c.scope).where(conditions)).scalars())


@dataclass(frozen=True, slots=True)
class FailedChecks:
    """Failed checks of an object that block a gate, or could not be measured, by their scopes.

    `partitions` are the scopes of failing partitions. `is_table_failing`: a check of the whole table fails.
    `table_passed_at` is the last run of all clauses on the whole table in which none did, None without one.
    """

    partitions: tuple[Partition, ...] = ()
    is_table_failing: bool = False
    table_passed_at: datetime | None = None

    def scope_of(self, partitions: Sequence[Partition], written_at: datetime) -> str:
        """Return the scope of a failed check that covers data of these partitions, "" if there is none.

        Data written before the whole table last passed is not covered by its failures.
        """
        for failing in self.partitions:
            if any(_overlap(failing, partition) for partition in partitions):
                return label(failing)
        is_suspect = self.table_passed_at is None or written_at > self.table_passed_at
        return TABLE if self.is_table_failing and is_suspect else ""


def _overlap(scope: Partition, partition: Partition) -> bool:
    """True if no column has a different value: a scope may have fewer or more columns."""
    values = dict(partition)
    return all(column not in values or _same_value(values[column], value) for column, value in scope)


def _same_value(first: str, second: str) -> bool:
    # A folder `hour=03` and the integer 3.
    return first == second or (first.isdecimal() and second.isdecimal() and int(first) == int(second))


_IS_BLOCKING = check_result.c.severity.in_([severity for severity in Severity if severity.blocks])


def objects_with_failures(
    tx: sa.Connection, contracts: Collection[str], until: datetime | None = None
) -> set[tuple[str, str]]:
    """Return contract and object of published data on which a blocking check ever failed or had no result.

    Only runs of these contracts up to `until`, if given.
    """
    runs, failing = check_run.c, set[tuple[str, str]]()
    conditions = sa.and_(runs.staged.is_(None), _IS_BLOCKING, check_result.c.status.in_(BROKEN))
    if until is not None:
        conditions = sa.and_(conditions, runs.at <= until)
    query = sa.select(runs.contract, runs.object).join(check_result, check_result.c.run_id == runs.id)
    for chunk in chunks(sorted(contracts)):
        rows = tx.execute(query.where(conditions, runs.contract.in_(chunk)).distinct())
        failing |= {(row[0], row[1]) for row in rows}
    return failing


def failed_checks(
    tx: sa.Connection, contract: str, object: str, until: datetime | None = None
) -> FailedChecks:
    """Return the failed checks of the published data of an object, as of its runs up to `until`, if given.

    A run of all clauses replaces the earlier results of each of its partitions, a run of some clauses those
    of the same clauses and contract version.
    """
    conditions = _is_published(contract, object)
    if until is not None:
        conditions = sa.and_(conditions, check_run.c.at <= until)
    columns = check_result.c
    is_broken_by_run: dict[int, dict[tuple[str, ...], bool]] = {}
    names = (
        columns.run_id,
        columns.clause,
        columns.check,
        columns.property,
        columns.status,
        columns.measured,
    )
    joined = sa.select(*names).join(check_run, columns.run_id == check_run.c.id)
    for row in tx.execute(joined.where(conditions, _IS_BLOCKING)):
        is_broken = _status_of_scope(row.status, row.measured) in BROKEN
        is_broken_by_run.setdefault(row.run_id, {})[row.clause, row.check, row.property] = is_broken
    if not any(any(clauses.values()) for clauses in is_broken_by_run.values()):
        return FailedChecks()
    failing: dict[str, set[tuple[str, ...]]] = {}
    passed_at = None
    for run in tx.execute(sa.select(check_run).where(conditions).order_by(check_run.c.id)):
        clauses = {
            (run.contract_version, *clause): broken
            for clause, broken in is_broken_by_run.get(run.id, {}).items()
        }
        for scope in _scopes(run.scope):
            unrenewed = {name for name in failing.get(scope, ()) if name not in clauses}
            broken_clauses = {name for name, broken in clauses.items() if broken}
            failing[scope] = broken_clauses | unrenewed if run.rules else broken_clauses
        if run.scope == TABLE and not run.rules and not failing[TABLE]:
            passed_at = run.at
    return FailedChecks(
        tuple(partition_from_label(scope) for scope, names in failing.items() if names and scope != TABLE),
        bool(failing.get(TABLE)),
        passed_at,
    )


def _scopes(scope: str) -> list[str]:
    """Return the partition labels of a run's scope, or `table`."""
    labels: list[str] = []
    for part in scope.split(", "):
        # Values of partitions may contain the separator.
        if labels and "=" not in part:
            labels[-1] += f", {part}"
        else:
            labels.append(part)
    return labels


def _is_published(contract: str, object: str) -> sa.ColumnElement[bool]:
    """Return the condition for runs on published data, excluding staged data."""
    return sa.and_(
        check_run.c.contract == contract, check_run.c.object == object, check_run.c.staged.is_(None)
    )


# Audits: runs on staged data, before it is published.


@dataclass(frozen=True, slots=True)
class StagedRun:
    """Newest audit of a scope: staging location and outcome.

    `verdict` is `passed`, `failed` or `unknown`. `counts` is the number of clauses per
    status. `broken` are subject and message of each result that blocked publication; warnings do
    not block.
    """

    contract: str
    object: str
    version: str
    scope: str
    staged: str
    verdict: str
    at: datetime
    counts: Mapping[Status, int]
    broken: tuple[tuple[str, str], ...]


def newest_audits(
    tx: sa.Connection, contract: str, object: str, until: datetime | None = None
) -> list[StagedRun]:
    """Return the newest audit of each scope of an object, ordered by scope, up to `until` if given."""
    conditions = (check_run.c.contract == contract) & (check_run.c.object == object)
    if until is not None:
        conditions &= check_run.c.at <= until
    latest_runs = (
        sa.select(sa.func.max(check_run.c.id))
        .where(conditions, check_run.c.staged.is_not(None))
        .group_by(check_run.c.scope)
        .scalar_subquery()
    )
    runs = tx.execute(
        sa.select(check_run).where(check_run.c.id.in_(latest_runs)).order_by(check_run.c.scope)
    ).all()
    rows = tx.execute(
        sa.select(check_result).where(check_result.c.run_id.in_(latest_runs)).order_by(check_result.c.clause)
    ).all()
    audits = []
    for run in runs:
        results = [row for row in rows if row.run_id == run.id]
        failures = tuple(
            (" ".join(part for part in (row.property, row.check) if part), row.message)
            for row in results
            if row.status in BROKEN and Severity(row.severity).blocks
        )
        counts = Counter(Status(row.status) for row in results)
        identity = (run.contract, run.object, run.contract_version, run.scope)
        audits.append(StagedRun(*identity, run.staged, run.verdict, run.at, counts, failures))
    return audits


# Earlier measurements of an object, for rules that compare with them.

# Number of newest runs to load per rule: a year of daily runs, two weeks of hourly runs.
_MAX_EARLIER_RUNS = 400
ROW_COUNT_CHECKS = ("row_count",)
"""Checks whose value is a row count that later runs compare with."""


def earlier_measures(
    tx: sa.Connection, contract: str, object: str, names: Mapping[str, str]
) -> tuple[PastMeasurement, ...]:
    """Return the newest measurements of these clauses; `names` maps clause paths to clause names.

    Results stored by older versions of dq have no name and are matched by path.
    """
    measures = []
    for clause, name in names.items():
        is_unnamed_match = sa.and_(check_result.c.name.is_(None), check_result.c.clause == clause)
        condition = sa.and_(
            sa.or_(check_result.c.name == name, is_unnamed_match), check_result.c.measured.is_not(None)
        )
        rows = tx.execute(_newest(contract, object, condition))
        measures += [measure for row in rows if (measure := _earlier_measure(row, clause)) is not None]
    return tuple(measures)


def _earlier_measure(row: Any, clause: str) -> PastMeasurement | None:
    partition, measured = _partition_of_scope(row.scope), row.measured
    is_grouped = "groups" in measured
    if partition is None or (row.value is None and not is_grouped):
        return None
    groups = tuple((tuple(key), value) for key, value in measured.get("groups", ()))
    number = None if is_grouped else row.value
    return PastMeasurement(row.check, clause, measured["of"], row.at, number, groups, partition, row.real)


def earlier_counts(
    tx: sa.Connection, contract: str, object: str, names: Mapping[str, str] | None = None
) -> tuple[PastRowCount, ...]:
    """Return the newest row counts of an object for each rule that compares row counts.

    `names` maps rule paths to rule names. With it, counts have the current path of their rule, and counts of
    removed rules are dropped. Without it, paths are those at the time of the run.
    """
    counts = []
    paths = {name: path for path, name in (names or {}).items()}
    for check in ROW_COUNT_CHECKS:
        condition = sa.and_(check_result.c.check == check, check_result.c.value.is_not(None))
        counts += [
            PastRowCount(check, path, row.at, int(row.value), partition)
            for row in tx.execute(_newest(contract, object, condition))
            if (partition := _partition_of_scope(row.scope)) is not None
            and (path := row.clause if names is None or not row.name else paths.get(row.name)) is not None
        ]
    condition = sa.and_(check_result.c.check == UNUSUAL, check_result.c.measured.is_not(None))
    for row in tx.execute(_newest(contract, object, condition)):
        partition = _partition_of_scope(row.scope)
        path = row.clause if names is None or not row.name else paths.get(row.name)
        numbers = _group_numbers(row.measured or {})
        if partition is not None and path is not None and ROW_COUNT in numbers:
            counts.append(PastRowCount(UNUSUAL, path, row.at, int(numbers[ROW_COUNT]), partition))
    return tuple(counts)


ROW_COUNT: Group = ("rowCount",)
"""Group of the number of rows in a result of the check `unusual`."""


def _group_numbers(measured: Mapping[str, Any]) -> dict[Group, float]:
    """Return the numbers of a result's groups, {} for a rule without groups."""
    return {tuple(key): number for key, number in measured.get("groups", ())}


def _value(check: str, value: float | None, measured: Mapping[str, Any]) -> float | None:
    """Return the measured number of a result, None for a rule with groups.

    The stored value of the check `unusual` is a probability, and that of groups how many of them failed.
    """
    # Without a fingerprint, the numbers of a metric are hidden.
    if check == UNUSUAL or "groups" in measured or (check in _METRIC_CHECKS and not measured):
        return None
    return value


_METRIC_CHECKS = {kind.check for kind in METRICS.values()}


# A quarter of daily runs.
_MAX_PAST_RUNS = 90


@dataclass(frozen=True, slots=True)
class PastResult:
    """One result of an earlier run. `partition` is that of its scope, () for the table, None for several.

    `value` is the number that was measured, or None. A rule with groups has no `value`, but the `numbers` of
    its groups, and those of them that `failed`. The groups of the check `unusual` are its numbers by name.
    """

    at: datetime
    version: str
    scope: str
    partition: Partition | None
    clause: str
    name: str
    check: str
    status: Status
    observed: str
    allowed: str
    value: float | None
    numbers: Mapping[Group, float] = field(default_factory=dict)
    failed: frozenset[Group] = frozenset()


def past_results(
    tx: sa.Connection, contracts: Collection[str], until: datetime | None = None
) -> dict[tuple[str, str], list[PastResult]]:
    """Return the results of the newest 90 runs on delivered data of each object of these contracts.

    They are oldest first, by contract and object. Only runs up to `until`, if given. Audits that did not pass
    are excluded.
    """
    runs, columns = check_run.c, check_result.c
    conditions = sa.or_(runs.verdict.is_(None), runs.verdict == VERDICT_PASS)
    if until is not None:
        conditions = sa.and_(conditions, runs.at <= until)
    age = sa.func.row_number().over(
        partition_by=(runs.contract, runs.object), order_by=(runs.at.desc(), runs.id.desc())
    )
    by_object: dict[tuple[str, str], list[PastResult]] = {}
    for chunk in chunks(sorted(contracts)):
        ranked = sa.select(runs.id, age.label("age")).where(conditions, runs.contract.in_(chunk)).subquery()
        newest = sa.select(ranked.c.id).where(ranked.c.age <= _MAX_PAST_RUNS)
        query = (
            sa.select(
                runs.contract, runs.object, runs.at, runs.contract_version, runs.scope, columns.clause,
                columns.name, columns.check, columns.status, columns.observed, columns.allowed, columns.value,
                columns.measured,
            )
            .join(check_result, columns.run_id == runs.id)
            .where(runs.id.in_(newest))
            .order_by(runs.at, runs.id)
        )  # fmt: skip
        for contract, object_name, *values in map(tuple, tx.execute(query)):
            by_object.setdefault((contract, object_name), []).append(_past_result(*values))
    return by_object


def _past_result(
    at: datetime, version: str, scope: str, clause: str, name: str | None, check: str, status: str,
    observed: str, allowed: str, value: float | None, measured: Mapping[str, Any] | None,
) -> PastResult:  # fmt: skip
    measured = measured or {}
    return PastResult(
        at, version, scope, _partition_of_scope(scope), clause, name or "", check,
        _status_of_scope(status, measured), observed, allowed, _value(check, value, measured),
        _group_numbers(measured), frozenset(map(tuple, measured.get("failed", ()))),
    )  # fmt: skip


# Far more than the cycles of a streak, since cycles may be checked again and have many partitions.
_MAX_COMPARISONS = 10_000


def earlier_comparisons(
    tx: sa.Connection, contract: str, object: str, names: Mapping[str, str], until: datetime | None = None
) -> tuple[PastComparison, ...]:
    """Return the stored results of `agrees` rules, and a comparison not made for each delivery.

    `names` maps rule paths to rule names. Results are oldest first. Skipped ones, e.g. of
    a run on the other side, are left out. Only runs and deliveries up to `until`, if given.
    """
    if not names:
        return ()
    cycles = cycle_store.all_cycles(tx, (contract, object))
    delivered = [
        (cycle.delivered_at, partition)
        for cycle in cycles
        if cycle.delivered_at is not None and (until is None or cycle.delivered_at <= until)
        for partition in cycle.cycle.partitions
        if partition
    ]
    comparisons = []
    for path, name in names.items():
        condition = sa.and_(
            check_result.c.check == AGREES,
            check_result.c.name == name,
            check_result.c.status != Status.SKIPPED,
        )
        if until is not None:
            condition = sa.and_(condition, check_run.c.at <= until)
        rows = tx.execute(_newest(contract, object, condition, _MAX_COMPARISONS)).all()
        comparisons += [PastComparison(path, "", at, None, part, compared=False) for at, part in delivered]
        for row in reversed(rows):
            measured = row.measured or {}
            # A scope of several partitions is not one of the cycles.
            if (partition := _partition_of_scope(row.scope)) is not None:
                comparisons.append(
                    PastComparison(path, measured.get("of", ""), row.at, measured.get("agrees"), partition)
                )
    return tuple(comparisons)


@dataclass(frozen=True, slots=True)
class AgreementStanding:
    """Standing of a rule that an object agrees with another side for cycles in a row.

    `name` is the name of the rule's clause, `other` the other side, as in messages. `compared_at` is the time
    of the newest comparison, None without one.
    """

    contract: str
    object: str
    name: str
    other: str
    streak: AgreementStreak
    compared_at: datetime | None

    @property
    def subject(self) -> str:
        """Subject of the rule in the object's quality incident."""
        return f"{STREAK_SUBJECT}{self.name}"

    def as_dict(self) -> JsonObject:
        """Return the standing as JSON values."""
        return {
            "contract": self.contract,
            "object": self.object,
            "name": self.name,
            "with": self.other,
            "cycles": self.streak.cycles,
            "required": self.streak.required,
            "complete": self.streak.is_complete,
            "disagreement": self.streak.disagreement or None,
            "gap": self.streak.gap or None,
            "compared_at": iso(self.compared_at),
        }


STREAK_SUBJECT = "agrees: "
"""Prefix of the subjects of rules for cycles in a row."""


def agreement_standings(
    tx: sa.Connection, contract: Contract, schema_object: SchemaObject, until: datetime | None = None
) -> list[AgreementStanding]:
    """Return the standing of each rule of an object that requires cycles in a row, as of now or `until`."""
    rules, standings = cycle_agreements(schema_object), []
    name = clause_namer(schema_object) if rules else str
    for path, agreement in rules.items():
        comparisons = earlier_comparisons(tx, contract.key, schema_object.name, {path: name(path)}, until)
        compared_at = max((past.measured_at for past in comparisons if past.agrees is not None), default=None)
        standings.append(
            AgreementStanding(
                contract.key,
                schema_object.name,
                name(path),
                str(agreement.other),
                streak(agreement, comparisons),
                compared_at,
            )
        )
    return standings


def _partition_of_scope(scope: str) -> Partition | None:
    """Return the partition that a scope names, `()` for the table, or None if it is not a single
    partition.
    """
    if scope == TABLE:
        return ()
    pairs = [part.partition("=") for part in scope.split("/")]
    if not all(column and equals for column, equals, _ in pairs):
        return None
    return tuple((column, value) for column, _, value in pairs)


def _newest(
    contract: str, object: str, condition: sa.ColumnElement[bool], limit: int = _MAX_EARLIER_RUNS
) -> sa.Select[Any]:
    """Select the newest matching results, newest first, of delivered data.

    Audits that did not pass are excluded, because their data was never published.
    """
    runs = check_run.c
    delivered = sa.or_(runs.verdict.is_(None), runs.verdict == VERDICT_PASS)
    return (
        sa.select(runs.at, runs.scope, alarm_answer.c.real, check_result)
        .join(check_result, check_result.c.run_id == runs.id)
        .outerjoin(alarm_answer, alarm_answer.c.run_id == runs.id)
        .where(runs.contract == contract, runs.object == object, delivered, condition)
        .order_by(runs.at.desc(), runs.id.desc())
        .limit(limit)
    )


# Outcome of the verification of statistics, per run and in total.


def save_verification(tx: sa.Connection, run: int, tally: Tally) -> None:
    """Store the verification counts of a run."""
    tx.execute(sa.insert(statistics_trial).values(run_id=run, **asdict(tally)))


def total_verifications(tx: sa.Connection) -> Tally:
    """Return the verification counts of all runs of all contracts; zeros without runs."""
    columns = statistics_trial.c
    sums = sa.select(
        *(
            sa.func.coalesce(sa.func.sum(column), 0)
            for column in (columns.proofs, columns.scans, columns.disagreements)
        )
    )
    return Tally(*map(int, tx.execute(sums).one()))
