"""Row counts that producers hand in when they publish, compared with the rows that a check counts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from dq.contracts.access.data_location import other_servers
from dq.contracts.model import SchemaObject
from dq.contracts.shared.outcome import CheckResult, GroupResult, Severity, Status
from dq.contracts.shared.wording import counted
from dq.dataquality import Report, Request
from dq.dataquality.delivery.cycle import label
from dq.dataquality.delivery.receipts import RowClaim, row_claims
from dq.dataquality.request import opened, pick
from dq.dataquality.spark.partitions import only
from dq.dataquality.spark.readers.open import FILES, Dataset
from dq.store.engine import Store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CHECK = "delivered_rows"
# Of the partitions that contradict their receipts, a message names so many.
_NAMED = 3


def with_delivered_rows(
    report: Report, request: Request, store: Store, server: str | None, begin: Callable[[], SparkSession]
) -> Report:
    """The report with a result for the numbers in receipts, where there are any for this scope.

    A run of chosen rules compares none.
    """
    contract, one = request.contract, pick(request.contract, request.object)
    if request.rules or request.now is None:
        return report
    with store.read() as tx:
        claims = row_claims(tx, contract.key, one.name, other_servers(contract, server), request.now)
    compared = _compared(claims, report, request, one, begin)
    if not compared:
        return report
    return replace(report, results=(*report.results, _result(one, compared)))


Compared = Sequence[tuple[RowClaim, int]]
"""Claims, each with the number of rows that are there."""


def _compared(
    claims: Sequence[RowClaim],
    report: Report,
    request: Request,
    one: SchemaObject,
    begin: Callable[[], SparkSession],
) -> Compared:
    keys = [prop.column for prop in one.partition_keys()]
    if not keys:
        # Rows of other deliveries stay in a table with a log, so that its count is of all of them.
        replaced = isinstance(request.data, Dataset) and request.data.format in FILES
        newest = max(
            (claim for claim in claims if replaced), key=lambda claim: claim.delivered_at, default=None
        )
        return [(newest, _rows(report, request, begin))] if newest is not None else []
    scopes = [_folded(scope) for scope in request.partitions or ()]
    if scopes:
        asked = [claim for claim in claims if _folded(dict(claim.partition)) in scopes]
        return [(claim, _rows(report, request, begin)) for claim in asked]
    whole = [
        claim for claim in claims if _folded(dict(claim.partition)).keys() == {key.lower() for key in keys}
    ]
    if not whole:
        return []
    table = only(opened(request.data, begin()), [dict(claim.partition) for claim in whole])
    rows = table.groupBy(*(table[key].cast("string").alias(key.lower()) for key in keys)).count().collect()
    found = {tuple(row[: len(keys)]): int(row[len(keys)]) for row in rows}
    # A partition that is gone was removed since, which is no contradiction of what was delivered.
    order = [key.lower() for key in keys]
    values = [(claim, _folded(dict(claim.partition))) for claim in whole]
    pairs = [(claim, tuple(named[key] for key in order)) for claim, named in values]
    return [(claim, found[key]) for claim, key in pairs if key in found]


def _rows(report: Report, request: Request, begin: Callable[[], SparkSession]) -> int:
    if report.rows is not None:
        return report.rows
    table = opened(request.data, begin(), request.partitions)
    return (only(table, request.partitions) if request.partitions else table).count()


def _folded(partition: Mapping[str, str]) -> dict[str, str]:
    return {key.lower(): value for key, value in partition.items()}


def _result(one: SchemaObject, compared: Compared) -> CheckResult:
    wrong = [(claim, rows) for claim, rows in compared if claim.rows != rows]
    status = Status.FAIL if wrong else Status.PASS
    if wrong:
        message = f"{one.name}: {'; '.join(_contradiction(claim, rows) for claim, rows in wrong[:_NAMED])}"
        message += f"; and {len(wrong) - _NAMED:,} more" if len(wrong) > _NAMED else ""
    else:
        message = f"{one.name}: as many rows as {counted(len(compared), 'receipt')} of 'dq publish' say"
    alone = compared[0] if len(compared) == 1 else None
    by = tuple(key for key, _ in compared[0][0].partition)
    groups = tuple(
        GroupResult(
            tuple(value for _, value in claim.partition),
            Status.PASS if claim.rows == rows else Status.FAIL,
            counted(rows, "row"),
            float(rows),
        )
        for claim, rows in compared
    )
    return CheckResult(
        check=CHECK,
        clause="receipt",
        object=one.name,
        property="",
        status=status,
        severity=Severity.ERROR,
        observed=counted(alone[1], "row")
        if alone
        else f"{len(wrong):,} of {counted(len(compared), 'partition')}",
        allowed=_claim(alone[0]) if alone else "the rows that receipts say",
        message=message,
        at=one.at(),
        value=float(alone[1]) if alone else float(len(wrong)),
        by=() if alone else by,
        groups=() if alone else groups,
        threshold={"mustBe": alone[0].rows if alone else 0},
        unit="rows" if alone else "",
        name=f"schema/{one.name}/receipt",
    )


def _contradiction(claim: RowClaim, rows: int) -> str:
    where = f"{label(claim.partition)} has " if claim.partition else ""
    return f"{where}{counted(rows, 'row')}, and its receipt says {claim.rows:,} ({_source(claim)})"


def _claim(claim: RowClaim) -> str:
    return f"{counted(claim.rows, 'row')} by its receipt ({_source(claim)})"


def _source(claim: RowClaim) -> str:
    server = f" on {claim.server}" if claim.server else ""
    return f"revision {claim.revision}, published {claim.delivered_at:%Y-%m-%d %H:%MZ}{server}"
