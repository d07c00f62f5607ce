"""Results as a table of Spark, one row per clause, for dashboards: no row of the data is ever in it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from dq.contracts.model import Contract
from dq.contracts.outcome import (
    KEPT,
    AnsweredBy,
    Breach,
    CheckResult,
    Finding,
    IncidentKey,
    Recovery,
    Row,
    Severity,
    Status,
    Unreadable,
    UsageError,
)
from dq.contracts.sql import text as sql
from dq.dataquality.delivery.cycle import label
from dq.dataquality.model.metric import Failure, Tally
from dq.dataquality.model.run_context import Earlier, EarlierMeasure, Partition
from dq.dataquality.report import Report
from dq.dataquality.spark.session import attempt
from dq.store.schema import Json, UtcDateTime, metadata

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


# Stable: a column is only ever added, at the end.
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
    # The clause by ids and names; `clause` is its path, which is by positions.
    ("clause_name", "string"),
)
# Tables that an older dq made do without them.
_ADDED = ("clause_name",)
_DDL = ", ".join(f"{sql.name(column)} {kind}" for column, kind in COLUMNS)
_PATH_SIGNS = ("/", "\\", ":")

TableRow = tuple[str | datetime | float | None, ...]


def lines(report: Report, at: datetime) -> Iterator[TableRow]:
    """The rows of a report: one per clause result, in the order of COLUMNS."""
    scope = ", ".join(label(partition) for partition in report.partitions) or TABLE
    for one in report.results:
        about = (one.clause, one.check, one.property, one.status.value, one.severity.value)
        found = (one.observed, one.allowed, one.value, one.message, one.name)
        yield (report.contract, report.version, report.object, scope, at, *about, *found)


def untested(contract: Contract, name: str, scope: str, at: datetime, reason: str) -> TableRow:
    """The row of an object that could not be tested at all: an error without a clause."""
    return (contract.id, contract.version, name, scope, at, *_NO_RESULT, reason, "")


def broken(finding: Finding, at: datetime) -> TableRow:
    """The row of a contract that could not be read."""
    return (finding.contract or finding.at.file, "", "", "", at, *_NO_RESULT, str(finding), "")


# From the clause to the value.
_NO_RESULT = ("", "", "", "error", "error", "not tested", "", None)


def is_path(target: str) -> bool:
    """Whether the target is a folder or URI, and no table's name."""
    return any(sign in target for sign in _PATH_SIGNS)


def place(target: str) -> str:
    """A path as it is, a table's name quoted. Raises UsageError for what is neither."""
    if is_path(target):
        return target
    parts = target.split(".")
    if not all(part.replace("_", "a").isalnum() for part in parts) or len(parts) > 3:
        raise UsageError(
            f"--results-table {target!r} is neither a table nor a path.",
            "Write database.table, or a path with a /.",
        )
    return ".".join(sql.name(part) for part in parts)


def append(spark: SparkSession, rows: Sequence[TableRow], target: str) -> None:
    """Adds the rows in one write. A table, or a folder of Parquet, that is not there yet is made.

    A table that is there keeps its format and may have more columns, which are filled with NULL. Raises
    UsageError for a name that cannot be one and for a table without these columns, and Unreadable when
    Spark cannot write.
    """
    name = place(target)
    frame = spark.createDataFrame([tuple(row) for row in rows], _DDL).coalesce(1)
    if is_path(target):
        done = attempt(lambda: frame.write.mode("append").parquet(name))
    elif spark.catalog.tableExists(name):
        fitted = _fitted(spark, frame, name)
        done = attempt(lambda: fitted.write.insertInto(name))
    else:
        done = attempt(lambda: frame.write.saveAsTable(name))
    if isinstance(done, Failure):
        raise Unreadable(
            f"the results cannot be written to {target}: {done.message.rstrip('.')}.",
            "They are kept in the store all the same; mend the table and run again.",
        )


def _fitted(spark: SparkSession, frame: DataFrame, name: str) -> DataFrame:
    """The rows in the order of a table's columns, because Spark inserts by position."""
    there = {column.lower() for column in spark.table(name).columns}
    missing = [column for column, _ in COLUMNS if column not in there and column not in _ADDED]
    if missing:
        raise UsageError(
            f"the table {name} has no column {', '.join(missing)}.", "Name another --results-table."
        )
    ours = {column for column, _ in COLUMNS}
    return frame.selectExpr(
        *(
            sql.name(column) if column.lower() in ours else f"NULL AS {sql.name(column)}"
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
    # The words that chose its clauses; NULL when it asked for all of them.
    sa.Column("rules", Json),
    # Of an audit, where the data was staged, and `kept`, `broken` or `could not tell`; else NULL.
    sa.Column("staged", sa.Text),
    sa.Column("verdict", sa.String(16)),
    sa.Index("ix_check_run_what", "contract", "object", "at"),
)

# What came of statistics that a run put on trial.
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
    # Its path, which is by positions and so means something in one version of the contract.
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
    # What was measured, and the numbers of its groups: {"of": …, "groups": [[[values], number], …]}; NULL for
    # a clause that later runs do not compare with.
    sa.Column("measured", Json),
    # The clause by ids and names, by which later versions find it; NULL in results of before 0034.
    sa.Column("name", sa.Text),
    # Where the answer was found; NULL where there is none, and in results of before 0036.
    sa.Column("answered_by", sa.String(10)),
)


# Check runs as rows: how they ended, what they measured, audits, and statistics on trial.

# Check runs as rows: what was checked when, how it ended, and what that means for the quality incident.

JsonObject = dict[str, object]

GROUP = "quality"
TABLE = "table"
# Of failed checks a message has room for so many, and of their rows.
_TOLD, _SHOWN = 6, 2
BROKEN = (Status.FAIL, Status.ERROR)


@dataclass(frozen=True, slots=True)
class Line:
    """One stored result, with the scope, the time and the contract's version of its run.

    Here and in all functions of this module, `contract` is the contract's key.
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
        """As JSON values."""
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
    """Adds a run with its results; gives the run's id. History is only ever added to.

    `rules` are the words that chose the clauses of a run that did not ask for all of them. `staged` is where
    the data lay that no reader saw, with the `verdict` on it; see `audits`.
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
            "clause": one.clause,
            "check": one.check,
            "property": one.property,
            "status": one.status,
            "severity": one.severity,
            "observed": one.observed,
            "allowed": one.allowed,
            "message": one.message,
            "value": one.value,
            "answered_by": one.answered_by,
            "samples": [{key: _plain(value) for key, value in row.items()} for row in one.samples],
            "measured": _measured(one),
            "name": one.name or None,
        }
        for one in results
    ]
    if rows:
        tx.execute(sa.insert(check_result), rows)
    return int(run)


def _measured(result: CheckResult) -> object:
    """What later runs compare with: what was measured, and the numbers of its groups."""
    if not result.of:
        return None
    groups = [[list(one.key), one.value] for one in result.groups if one.value is not None]
    return {"of": result.of, "groups": groups} if result.by else {"of": result.of}


def _plain(value: object) -> object:
    return value if isinstance(value, (str, int, float, bool)) or value is None else str(value)


def verdict(
    contract: str,
    object: str,
    scope: str,
    results: Sequence[CheckResult],
    now: datetime,
    unasked: Sequence[Line] | None = None,
) -> Breach | Recovery | None:
    """What a run means for the object's quality incident: broken for this scope, or made good.

    A check that could not be measured breaks the promise too: nobody knows whether it holds. `unasked`,
    of a run of some clauses, are the standing results of the scope that it did not renew: while one of them
    is broken, such a run makes nothing good, and says nothing (None).
    """
    key = IncidentKey(contract, object, GROUP)
    broken = [one for one in results if one.status in BROKEN]
    if not broken:
        if any(one.status in BROKEN for one in unasked or ()):
            return None
        said = f"all {len(results)} checks pass"
        if unasked is not None:
            said = f"the checks that were asked for pass ({len(results)}), and no other one is known to fail"
        title = f"{object} keeps its promises of quality again: {scope}"
        return Recovery(key, scope, now, (("checked", f"{scope}: {said}"),), title=title)
    worst = max((one.severity for one in broken), key=lambda severity: severity.rank)
    broken.sort(key=lambda one: -one.severity.rank)
    facts = [(f"{one.property} {one.check}".strip(), _told(one)) for one in broken[:_TOLD]]
    if len(broken) > _TOLD:
        facts.append(("and", f"{len(broken) - _TOLD} more failed checks"))
    title = (
        f"{object} breaks {len(broken)} {'promise' if len(broken) == 1 else 'promises'} of quality: {scope}"
    )
    return Breach(key, worst, scope, title, now, tuple(facts))


def _told(result: CheckResult) -> str:
    """What was seen and allowed, and the first rows by their keys, of which the classified are masked."""
    said = f"{result.observed}, promised {result.allowed}"
    rows = [" ".join(f"{key}={value}" for key, value in row.items()) for row in result.samples[:_SHOWN]]
    return f"{said}; {', '.join(rows)}{' …' if len(result.samples) > _SHOWN else ''}" if rows else said


def latest(tx: sa.Connection, contract: str, object: str, at: datetime | None = None) -> list[Line]:
    """The standing results of each scope of an object, by scope and clause; of runs until `at`, if given.

    They are those of the newest run of all clauses, each replaced by the newest answer of a later run of
    some clauses, where that was of the same version of the contract.
    """
    return [line for _, line in _standing(tx, contract, object, at)]


def unasked(tx: sa.Connection, run: int, contract: str, object: str, scope: str) -> list[Line]:
    """The standing results of a scope that are of an earlier run than this one."""
    found = _standing(tx, contract, object)
    return [line for made_by, line in found if line.scope == scope and made_by != run]


def _standing(
    tx: sa.Connection, contract: str, object: str, at: datetime | None = None
) -> list[tuple[int, Line]]:
    here = _of_readers(contract, object)
    if at is not None:
        here = sa.and_(here, check_run.c.at <= at)
    whole = (
        sa.select(sa.func.max(check_run.c.id).label("id"), check_run.c.scope)
        .where(here, check_run.c.rules.is_(None))
        .group_by(check_run.c.scope)
        .subquery()
    )
    rows = tx.execute(
        sa.select(check_run, check_result)
        .join(check_result, check_result.c.run_id == check_run.c.id)
        .outerjoin(whole, whole.c.scope == check_run.c.scope)
        .where(here, sa.or_(whole.c.id.is_(None), check_run.c.id >= whole.c.id))
        .order_by(check_run.c.id)
    )
    newest: dict[tuple[str, ...], tuple[int, Line]] = {}
    for row in rows:
        about = (row.contract, row.object, row.contract_version, row.scope, row.at, row.clause, row.check)
        ended = (row.property, Status(row.status), Severity(row.severity), row.observed, row.allowed)
        answered_by = AnsweredBy(row.answered_by) if row.answered_by else None
        line = Line(*about, *ended, row.message, row.samples, row.name or "", answered_by)
        # A path may mean something else in another version of the contract.
        same = (line.scope, line.version, line.clause, line.check, line.property)
        newest[same] = (row.run_id, line)
    return sorted(newest.values(), key=lambda found: (found[1].scope, found[1].clause, found[0]))


def checked(tx: sa.Connection, contract: str, object: str) -> set[str]:
    """The scopes of an object that have a run of all its clauses."""
    here = sa.and_(_of_readers(contract, object), check_run.c.rules.is_(None))
    return set(tx.execute(sa.select(check_run.c.scope).where(here)).scalars())


def _of_readers(contract: str, object: str) -> sa.ColumnElement[bool]:
    """The runs on what readers see, and none on what was only staged."""
    return sa.and_(
        check_run.c.contract == contract, check_run.c.object == object, check_run.c.staged.is_(None)
    )


# Audits: runs on what was staged, which readers saw afterwards, or never.


@dataclass(frozen=True, slots=True)
class StagedRun:
    """The newest audit of a scope: where the data was staged, and what came of it.

    `verdict` is `kept`, `broken` or `could not tell`. `counts` are how many clauses ended how; `broken` says
    of each that kept it back what it is about, and why; warnings keep nothing back.
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
    tx: sa.Connection, contract: str, object: str, at: datetime | None = None
) -> list[StagedRun]:
    """The newest audit of each scope of an object, by scope; `contract` is the contract's key.

    Only of audits until `at`, if given.
    """
    here = (check_run.c.contract == contract) & (check_run.c.object == object)
    if at is not None:
        here &= check_run.c.at <= at
    last = (
        sa.select(sa.func.max(check_run.c.id))
        .where(here, check_run.c.staged.is_not(None))
        .group_by(check_run.c.scope)
        .scalar_subquery()
    )
    runs = tx.execute(sa.select(check_run).where(check_run.c.id.in_(last)).order_by(check_run.c.scope)).all()
    rows = tx.execute(
        sa.select(check_result).where(check_result.c.run_id.in_(last)).order_by(check_result.c.clause)
    ).all()
    made = []
    for run in runs:
        results = [row for row in rows if row.run_id == run.id]
        broken = tuple(
            (" ".join(part for part in (row.property, row.check) if part), row.message)
            for row in results
            if row.status in BROKEN and Severity(row.severity).blocks
        )
        counts = Counter(Status(row.status) for row in results)
        about = (run.contract, run.object, run.contract_version, run.scope)
        made.append(StagedRun(*about, run.staged, run.verdict, run.at, counts, broken))
    return made


# What earlier runs measured of an object, for the rules that compare with it.

# Of a rule that compares, so many of its newest counts are enough: half a year of days, a week of hours.
_MOST = 200
COUNTED = ("row_count", "row_count_anomaly")
"""The checks whose number is a count of rows, which later runs compare with."""


def earlier_measures(
    tx: sa.Connection, contract: str, object: str, names: Mapping[str, str]
) -> tuple[EarlierMeasure, ...]:
    """What the newest runs of an object measured, for these clauses: `names` has their names by path.

    A result that an older dq kept has no name, and is found by its path.
    """
    found = []
    for clause, name in names.items():
        by_path = sa.and_(check_result.c.name.is_(None), check_result.c.clause == clause)
        meant = sa.and_(sa.or_(check_result.c.name == name, by_path), check_result.c.measured.is_not(None))
        rows = tx.execute(_newest(contract, object, meant))
        found += [made for row in rows if (made := _earlier(row, clause)) is not None]
    return tuple(found)


def _earlier(row: Any, clause: str) -> EarlierMeasure | None:
    partition, kept = _partition(row.scope), row.measured
    grouped = "groups" in kept
    if partition is None or (row.value is None and not grouped):
        return None
    groups = tuple((tuple(key), value) for key, value in kept.get("groups", ()))
    number = None if grouped else row.value
    return EarlierMeasure(row.check, clause, kept["of"], row.at, number, groups, partition)


def earlier_counts(
    tx: sa.Connection, contract: str, object: str, names: Mapping[str, str] | None = None
) -> tuple[Earlier, ...]:
    """What the newest runs of an object counted, for each rule that compares numbers of rows.

    `names` has the names of the object's rules by their paths: each count is given under the path that its
    rule has now, those of rules that are gone are left out. Without it, paths are those of then.
    """
    found = []
    paths = {name: path for path, name in (names or {}).items()}
    for check in COUNTED:
        meant = sa.and_(check_result.c.check == check, check_result.c.value.is_not(None))
        found += [
            Earlier(check, path, row.at, int(row.value), partition)
            for row in tx.execute(_newest(contract, object, meant))
            if (partition := _partition(row.scope)) is not None
            and (path := row.clause if names is None or not row.name else paths.get(row.name)) is not None
        ]
    return tuple(found)


def _partition(scope: str) -> Partition | None:
    """The partition that a scope names, `()` for the table; None for what no partition can be read from."""
    if scope == TABLE:
        return ()
    pairs = [part.partition("=") for part in scope.split("/")]
    if not all(column and equals for column, equals, _ in pairs):
        return None
    return tuple((column, value) for column, _, value in pairs)


def _newest(contract: str, object: str, meant: sa.ColumnElement[bool]) -> sa.Select[Any]:
    """The newest of these results, the last one first, of runs on what was delivered.

    What broke its promises in an audit, nobody ever got.
    """
    runs = check_run.c
    delivered = sa.or_(runs.verdict.is_(None), runs.verdict == KEPT)
    return (
        sa.select(runs.at, runs.scope, check_result)
        .join(check_result, check_result.c.run_id == runs.id)
        .where(runs.contract == contract, runs.object == object, delivered, meant)
        .order_by(runs.at.desc(), runs.id.desc())
        .limit(_MOST)
    )


# What came of statistics on trial, as rows, and what all runs together come to.


def save_trial(tx: sa.Connection, run: int, tally: Tally) -> None:
    """Keeps what came of the trial of a run, by the run's id."""
    tx.execute(sa.insert(statistics_trial).values(run_id=run, **asdict(tally)))


def all_trials(tx: sa.Connection) -> Tally:
    """The sums over all runs of all contracts; zeros where there was none."""
    columns = statistics_trial.c
    sums = sa.select(
        *(
            sa.func.coalesce(sa.func.sum(one), 0)
            for one in (columns.proofs, columns.scans, columns.disagreements)
        )
    )
    return Tally(*map(int, tx.execute(sums).one()))
