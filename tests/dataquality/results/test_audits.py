"""Audits in the store, apart from what was found of delivered data, on every store."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime, timedelta

from dq.contracts.check_result import VERDICT_FAIL, VERDICT_PASS, VERDICT_UNKNOWN, CheckResult, Status
from dq.contracts.outcome import Location, Severity
from dq.dataquality import results as audits
from dq.dataquality import results as check_runs
from dq.store.engine import open_store

NOON = datetime(2026, 11, 23, 12, tzinfo=UTC)


def found(clause: str, status: Status, severity: Severity = Severity.ERROR) -> CheckResult:
    said = f"{clause}: {status}"
    return CheckResult("required", clause, "orders", clause, status, severity, "", "", said, Location("x"))


def test_the_newest_audit_of_each_scope_says_what_kept_it_back(url: str) -> None:
    one, two = "day=2026-11-20", "day=2026-11-21"
    runs = [
        (one, "run-1", VERDICT_FAIL, [found("id", Status.FAIL)]),
        (two, "run-1", VERDICT_UNKNOWN, [found("id", Status.ERROR), found("day", Status.PASS)]),
        (one, None, None, [found("id", Status.PASS)]),
        (
            one,
            "run-2",
            VERDICT_PASS,
            [found("id", Status.PASS), found("amount", Status.FAIL, Severity.WARNING)],
        ),
    ]
    with closing(open_store(url)) as store:
        for number, (scope, staged, verdict, results) in enumerate(runs):
            with store.write() as tx:
                check_runs.save_run(
                    tx,
                    contract="shop",
                    object="orders",
                    version="1.0.0",
                    scope=scope,
                    results=results,
                    jobs=1,
                    now=NOON + timedelta(hours=number),
                    staged=staged,
                    verdict=verdict,
                )
        with store.read() as tx:
            newest = audits.newest_audits(tx, "shop", "orders")
            of_others = audits.newest_audits(tx, "shop", "lines")
            standing = check_runs.latest(tx, ["shop"]).get(("shop", "orders"), [])
            tested = check_runs.fully_checked_scopes(tx, "shop", "orders")

    assert [(each.scope, each.staged, each.verdict, dict(each.counts), each.broken) for each in newest] == [
        (one, "run-2", VERDICT_PASS, {Status.PASS: 1, Status.FAIL: 1}, ()),
        (two, "run-1", VERDICT_UNKNOWN, {Status.ERROR: 1, Status.PASS: 1}, (("id required", "id: error"),)),
    ]
    assert of_others == []
    assert [(each.scope, each.status) for each in standing] == [(one, Status.PASS)]
    assert tested == {one}
