"""What earlier runs measured of an object, for the rules that compare with it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, and_, or_, select

from dq.contracts.shared.outcome import KEPT
from dq.dataquality.model.run_context import Earlier, EarlierMeasure, Partition
from dq.dataquality.results.check_runs import TABLE
from dq.dataquality.results.tables import check_result, check_run

# Of a rule that compares, so many of its newest counts are enough: half a year of days, a week of hours.
_MOST = 200
COUNTED = ("row_count", "row_count_anomaly")
"""The checks whose number is a count of rows, which later runs compare with."""


def measures(
    tx: Connection, contract: str, object: str, names: Mapping[str, str]
) -> tuple[EarlierMeasure, ...]:
    """What the newest runs of an object measured, for these clauses: `names` has their names by path.

    A result that an older dq kept has no name, and is found by its path.
    """
    found = []
    for clause, name in names.items():
        by_path = and_(check_result.c.name.is_(None), check_result.c.clause == clause)
        meant = and_(or_(check_result.c.name == name, by_path), check_result.c.measured.is_not(None))
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


def counts(
    tx: Connection, contract: str, object: str, names: Mapping[str, str] | None = None
) -> tuple[Earlier, ...]:
    """What the newest runs of an object counted, for each rule that compares numbers of rows.

    `names` has the names of the object's rules by their paths: each count is given under the path that its
    rule has now, those of rules that are gone are left out. Without it, paths are those of then.
    """
    found = []
    paths = {name: path for path, name in (names or {}).items()}
    for check in COUNTED:
        meant = and_(check_result.c.check == check, check_result.c.value.is_not(None))
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


def _newest(contract: str, object: str, meant: ColumnElement[bool]) -> Select[Any]:
    """The newest of these results, the last one first, of runs on what was delivered.

    What broke its promises in an audit, nobody ever got.
    """
    runs = check_run.c
    delivered = or_(runs.verdict.is_(None), runs.verdict == KEPT)
    return (
        select(runs.at, runs.scope, check_result)
        .join(check_result, check_result.c.run_id == runs.id)
        .where(runs.contract == contract, runs.object == object, delivered, meant)
        .order_by(runs.at.desc(), runs.id.desc())
        .limit(_MOST)
    )
