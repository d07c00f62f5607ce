"""Check runs as rows: what was checked when, how it ended, and what that means for the quality incident."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import ColumnElement, Connection, and_, func, insert, or_, select

from dq.contracts.shared.outcome import (
    AnsweredBy,
    Breach,
    CheckResult,
    IncidentKey,
    Recovery,
    Row,
    Severity,
    Status,
)
from dq.dataquality.results.tables import check_result, check_run

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
    rules: Sequence[str] = (),
    staged: str | None = None,
    verdict: str | None = None,
) -> int:
    """Adds a run with its results; gives the run's id. History is only ever added to.

    `rules` are the words that chose the clauses of a run that did not ask for all of them. `staged` is where
    the data lay that no reader saw, with the `verdict` on it; see `audits`.
    """
    run = tx.execute(
        insert(check_run)
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
        tx.execute(insert(check_result), rows)
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


def latest(tx: Connection, contract: str, object: str, at: datetime | None = None) -> list[Line]:
    """The standing results of each scope of an object, by scope and clause; of runs until `at`, if given.

    They are those of the newest run of all clauses, each replaced by the newest answer of a later run of
    some clauses, where that was of the same version of the contract.
    """
    return [line for _, line in _standing(tx, contract, object, at)]


def unasked(tx: Connection, run: int, contract: str, object: str, scope: str) -> list[Line]:
    """The standing results of a scope that are of an earlier run than this one."""
    found = _standing(tx, contract, object)
    return [line for made_by, line in found if line.scope == scope and made_by != run]


def _standing(
    tx: Connection, contract: str, object: str, at: datetime | None = None
) -> list[tuple[int, Line]]:
    here = _of_readers(contract, object)
    if at is not None:
        here = and_(here, check_run.c.at <= at)
    whole = (
        select(func.max(check_run.c.id).label("id"), check_run.c.scope)
        .where(here, check_run.c.rules.is_(None))
        .group_by(check_run.c.scope)
        .subquery()
    )
    rows = tx.execute(
        select(check_run, check_result)
        .join(check_result, check_result.c.run_id == check_run.c.id)
        .outerjoin(whole, whole.c.scope == check_run.c.scope)
        .where(here, or_(whole.c.id.is_(None), check_run.c.id >= whole.c.id))
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


def checked(tx: Connection, contract: str, object: str) -> set[str]:
    """The scopes of an object that have a run of all its clauses."""
    here = and_(_of_readers(contract, object), check_run.c.rules.is_(None))
    return set(tx.execute(select(check_run.c.scope).where(here)).scalars())


def _of_readers(contract: str, object: str) -> ColumnElement[bool]:
    """The runs on what readers see, and none on what was only staged."""
    return and_(check_run.c.contract == contract, check_run.c.object == object, check_run.c.staged.is_(None))
