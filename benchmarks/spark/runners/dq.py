"""dq itself, through its public door. The variant names the optimizations: none, all, all but one."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dq.contracts.access.access_policy import build_access_policy
from dq.contracts.check_result import Status
from dq.dataquality.answers.python_tasks import WORTH_ROWS
from dq.dataquality.answers.sources import ALL, NONE, Optimization
from dq.dataquality.check import check
from dq.dataquality.checks import built_in
from dq.dataquality.clauses.kind import clauses_of
from dq.dataquality.request import Request
from dq.dataquality.spark.dataset import locate
from spark import terms
from spark.contract import clause_of, contract
from spark.data import BROKEN_SCALE


def build(
    place: str, scale: float, variant: str, session: Any
) -> tuple[tuple[str, ...], Callable[[], list[str]]]:
    document = contract(scale)
    schema_object = document.objects[0]
    data = locate(
        document,
        schema_object,
        None,
        build_access_policy(Path.cwd(), [place], names=["C40_DATA"], environment={"C40_DATA": place}),
    )
    covers = {
        clause_of(document, clause.check, clause.property, clause.path)
        for clause in clauses_of(document, schema_object, built_in())
    }
    optimizations = {"none": NONE, "all": ALL} | {
        f"but-{schema_object}": ALL - {schema_object} for schema_object in Optimization
    }
    # On the small broken tables, too, the tasks must find what is broken.
    least = 0 if scale == BROKEN_SCALE else WORTH_ROWS
    now = dt.datetime.fromisoformat(terms.NOW).replace(tzinfo=dt.UTC)

    def run() -> list[str]:
        report = check(
            Request(
                document, data, spark=session, now=now, optimizations=optimizations[variant], tasks_from=least
            )
        )
        run.details = {"passes": report.passes, "proven": report.from_statistics}  # type: ignore[attr-defined]
        unknown = report.with_status(Status.ERROR, Status.SKIPPED)
        if unknown:
            raise AssertionError(f"not measured: {unknown[0].message}")
        return sorted(
            {
                clause_of(document, result.check, result.property, result.clause)
                for result in report.with_status(Status.FAIL)
            }
        )

    return tuple(covers), run
