"""Audits: runs on what was staged, which readers saw afterwards, or never."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, func, select

from dq.contracts.shared.outcome import Severity, Status
from dq.dataquality.results.check_runs import BROKEN
from dq.dataquality.results.tables import check_result, check_run


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


def newest(tx: Connection, contract: str, object: str, at: datetime | None = None) -> list[StagedRun]:
    """The newest audit of each scope of an object, by scope; `contract` is the contract's key.

    Only of audits until `at`, if given.
    """
    here = (check_run.c.contract == contract) & (check_run.c.object == object)
    if at is not None:
        here &= check_run.c.at <= at
    last = (
        select(func.max(check_run.c.id))
        .where(here, check_run.c.staged.is_not(None))
        .group_by(check_run.c.scope)
        .scalar_subquery()
    )
    runs = tx.execute(select(check_run).where(check_run.c.id.in_(last)).order_by(check_run.c.scope)).all()
    rows = tx.execute(
        select(check_result).where(check_result.c.run_id.in_(last)).order_by(check_result.c.clause)
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
