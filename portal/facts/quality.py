"""What checks found of many products, and how many rows their deliveries had."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, select

from dq.dataquality.checks.row_count_anomaly import Tolerance
from dq.dataquality.clauses.row_count_range import Band, Counted, same_kind, time_of, usual
from dq.dataquality.delivery.tables import parts
from dq.dataquality.results import check_runs
from dq.dataquality.results import check_runs as earlier_runs
from dq.dataquality.results.check_runs import Line
from dq.dataquality.results.tables import check_run

# The band as the rule of unusual row counts draws it, when it says nothing else.
_TERMS = Tolerance()


@dataclass(frozen=True, slots=True)
class RowCounts:
    """How many rows each partition (or the table at each run) had, oldest first, and what is usual by that;
    `usual` is None for too few."""

    counts: tuple[Counted, ...]
    usual: Band | None


@dataclass(frozen=True, slots=True)
class ObjectQuality:
    """What is known of an object's data. `at` is when it was last checked; None: never."""

    lines: tuple[Line, ...] = ()
    rows: RowCounts | None = None
    at: datetime | None = None

    @property
    def newest(self) -> tuple[Line, ...]:
        """The standing results of the scope that was checked last."""
        last = max(self.lines, key=lambda line: line.at, default=None)
        return tuple(line for line in self.lines if last is not None and line.scope == last.scope)


NOTHING = ObjectQuality()


def quality(
    tx: Connection, contracts: Collection[str], now: datetime, as_of: datetime | None = None
) -> dict[tuple[str, str], ObjectQuality]:
    """What is known of each object that was ever checked, by its contract's key and its name."""
    found = {}
    for contract, one in _checked(tx, contracts):
        lines = tuple(check_runs.latest(tx, contract, one, as_of))
        at = max((line.at for line in lines), default=None)
        found[contract, one] = ObjectQuality(lines, _rows(tx, contract, one, now), at)
    return found


def _checked(tx: Connection, contracts: Collection[str]) -> list[tuple[str, str]]:
    names, found = sorted(contracts), []
    asked = select(check_run.c.contract, check_run.c.object).distinct()
    for some in parts(names):
        rows = tx.execute(asked.where(check_run.c.contract.in_(some)))
        found += [(row.contract, row.object) for row in rows]
    return sorted(found)


def _rows(tx: Connection, contract: str, one: str, now: datetime) -> RowCounts | None:
    counted = earlier_runs.earlier_counts(tx, contract, one)
    if not counted:
        return None
    newest = max(counted, key=lambda each: each.at)
    alike = [
        each
        for each in sorted(counted, key=lambda each: each.at)
        if same_kind(each.partition, newest.partition)
    ]
    # Of a partition that was checked again, the newest count; of the table, each run.
    by_time = {
        (each.partition or each.at): Counted(time_of(each.partition) or each.at, each.rows) for each in alike
    }
    series = sorted(by_time.values(), key=lambda each: each.of)
    return RowCounts(tuple(series), _band(series[:-1], series[-1], now))


def _band(earlier: Sequence[Counted], last: Counted, now: datetime) -> Band | None:
    if len(earlier) < _TERMS.minimum:
        return None
    here = min(last.of, now)
    return usual(
        earlier,
        here,
        runs=_TERMS.runs,
        deviations=_TERMS.deviations,
        slack=_TERMS.slack,
        direction=_TERMS.direction,
    )
