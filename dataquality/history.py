"""Check runs as rows: what was checked when, how it ended, and what that means for the quality incident."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, and_, func, insert, select

from dq.contracts.outcome import Breach, CheckResult, IncidentKey, Recovery, Row, Severity, Status
from dq.dataquality.occasion import Earlier, Partition
from dq.dataquality.tables import check_result, check_run

GROUP = "quality"
TABLE = "table"


@dataclass(frozen=True, slots=True)
class Line:
    """One stored result, with the scope and the time of its run."""

    contract: str
    object: str
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


def save(
    tx: Connection,
    *,
    contract: str,
    object: str,
    version: str,
    scope: str,
    results: Iterable[CheckResult],
    jobs: int,
    now: datetime,
) -> int:
    """Adds a run with its results; gives the run's id. History is only ever added to."""
    run = tx.execute(
        insert(check_run)
        .values(contract=contract, object=object, contract_version=version, scope=scope, at=now, jobs=jobs)
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
            "samples": [{key: _plain(value) for key, value in row.items()} for row in one.samples],
        }
        for one in results
    ]
    if rows:
        tx.execute(insert(check_result), rows)
    return int(run)


def _plain(value: object) -> object:
    return value if isinstance(value, (str, int, float, bool)) or value is None else str(value)


def verdict(
    contract: str, object: str, scope: str, results: Sequence[CheckResult], now: datetime
) -> Breach | Recovery:
    """What a run means for the object's quality incident: broken for this scope, or made good.

    A check that could not be measured breaks the promise too: nobody knows whether it holds.
    """
    key = IncidentKey(contract, object, GROUP)
    broken = [one for one in results if one.status in (Status.FAIL, Status.ERROR)]
    if not broken:
        return Recovery(key, scope, now, (("checked", f"{scope}: all {len(results)} checks pass"),))
    worst = max((one.severity for one in broken), key=lambda severity: severity.rank)
    facts = [(_what(one), f"{one.observed}, promised {one.allowed}") for one in broken[:8]]
    if len(broken) > 8:
        facts.append(("and", f"{len(broken) - 8} more failed checks"))
    title = (
        f"{object} breaks {len(broken)} {'promise' if len(broken) == 1 else 'promises'} of quality: {scope}"
    )
    return Breach(key, worst, scope, title, now, tuple(facts))


def _what(result: CheckResult) -> str:
    return f"{result.property} {result.check}".strip()


def latest(tx: Connection, contract: str, object: str) -> list[Line]:
    """The results of the newest run of each scope of an object, by scope and clause."""
    newest = (
        select(func.max(check_run.c.id).label("id"))
        .where(check_run.c.contract == contract, check_run.c.object == object)
        .group_by(check_run.c.scope)
        .subquery()
    )
    rows = tx.execute(
        select(check_run, check_result)
        .join(newest, newest.c.id == check_run.c.id)
        .join(check_result, check_result.c.run_id == check_run.c.id)
        .order_by(check_run.c.scope, check_result.c.clause)
    )
    return [
        Line(
            row.contract,
            row.object,
            row.scope,
            row.at,
            row.clause,
            row.check,
            row.property,
            Status(row.status),
            Severity(row.severity),
            row.observed,
            row.allowed,
            row.message,
            row.samples,
        )
        for row in rows
    ]


def checked(tx: Connection, contract: str, object: str) -> set[str]:
    """The scopes of an object that have a run."""
    here = and_(check_run.c.contract == contract, check_run.c.object == object)
    return set(tx.execute(select(check_run.c.scope).where(here)).scalars())


# Of a rule that compares, so many of its newest counts are enough: half a year of days, a week of hours.
_MOST = 200
_COUNTED = ("row_count", "row_count_anomaly")


def counts(tx: Connection, contract: str, object: str, most: int = _MOST) -> tuple[Earlier, ...]:
    """What the newest runs of an object counted, for each rule that compares numbers of rows."""
    found = []
    for check in _COUNTED:
        rows = tx.execute(
            select(check_run.c.at, check_run.c.scope, check_result.c.clause, check_result.c.value)
            .join(check_result, check_result.c.run_id == check_run.c.id)
            .where(
                check_run.c.contract == contract,
                check_run.c.object == object,
                check_result.c.check == check,
                check_result.c.value.is_not(None),
            )
            .order_by(check_run.c.at.desc(), check_run.c.id.desc())
            .limit(most)
        )
        found += [
            Earlier(check, row.clause, row.at, int(row.value), partition)
            for row in rows
            if (partition := _partition(row.scope)) is not None
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
