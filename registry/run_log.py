"""What runs of `dq register` did, table by table: kept as it happens, never changed, oldest first."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import insert, select

from dq.registry.action import Action
from dq.registry.table import SPEC_HASH, Key
from dq.registry.tables import catalog_log
from dq.store.engine import Store


@dataclass(frozen=True, slots=True)
class RegisterRun:
    """One run that applies a plan: who it is for the log, when it began, and for which registry."""

    id: str
    at: datetime
    registry: str


@dataclass(frozen=True, slots=True)
class Logged:
    """One line of the log: what a run did with a table of a catalog, and how it ended.

    `before` is the version that the catalog had, `after` the digest of what was to be; "" for none.
    """

    run: RegisterRun
    catalog: str
    key: Key
    kind: str
    grade: str
    ending: str
    before: str
    after: str
    error: str


def record(store: Store, run: RegisterRun, catalog: str, action: Action, ending: str, error: str) -> None:
    """Adds a line."""
    database, name = action.key
    row = {
        "run_id": run.id,
        "at": run.at,
        "registry": run.registry,
        "catalog": catalog,
        "database_name": database,
        "name": name,
        "kind": action.kind.value,
        "grade": action.grade.value,
        "ending": ending,
        "before": action.before.version if action.before else "",
        "after": action.after.parameter(SPEC_HASH) if action.after else "",
        "error": error,
    }
    with store.write() as connection:
        connection.execute(insert(catalog_log).values(row))


def latest(store: Store, catalog: str, most: int) -> list[Logged]:
    """The last lines about a catalog, oldest first."""
    query = (
        select(catalog_log)
        .where(catalog_log.c.catalog == catalog)
        .order_by(catalog_log.c.number.desc())
        .limit(most)
    )
    with store.read() as connection:
        rows = connection.execute(query).all()
    return [
        Logged(
            RegisterRun(row.run_id, row.at, row.registry),
            row.catalog,
            (row.database_name, row.name),
            row.kind,
            row.grade,
            row.ending,
            row.before,
            row.after,
            row.error,
        )
        for row in reversed(rows)
    ]
