"""What runs of `dq register` did, table by table: kept as it happens, never changed, oldest first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
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


BEGUN = "begun"
"""The ending of a line that is written before the table is: its run may have been cut off there."""

_CUT_OFF = "The run was cut off before it could say so; a later one has looked."


def begin(store: Store, run: RegisterRun, catalog: str, action: Action) -> None:
    """Adds the line that says what is about to be done; `record` says how it ended."""
    record(store, run, catalog, action, BEGUN, "")


def record(store: Store, run: RegisterRun, catalog: str, action: Action, ending: str, error: str) -> None:
    """Adds a line."""
    before = action.before.version if action.before else ""
    after = action.after.parameter(SPEC_HASH) if action.after else ""
    kind, grade = action.kind.value, action.grade.value
    _add(store, Logged(run, catalog, action.key, kind, grade, ending, before, after, error))


def complete(
    store: Store, catalog: str, digest_of: Callable[[Key], str | None], ended: tuple[str, str]
) -> None:
    """Adds the lines that runs could not write any more.

    `digest_of` gives the digest that a table has now, None without a table. `ended` are the words for what
    was done and for what was not.
    """
    for line in _lines(store, catalog, only_begun=True):
        done = (digest_of(line.key) or "") == line.after
        _add(store, replace(line, ending=ended[0] if done else ended[1], error=_CUT_OFF))


def latest(store: Store, catalog: str, most: int) -> list[Logged]:
    """The last lines about a catalog, oldest first: of what has ended, how; of the rest, that it began."""
    return _lines(store, catalog, most)


def _add(store: Store, line: Logged) -> None:
    database, name = line.key
    row = {
        "run_id": line.run.id,
        "at": line.run.at,
        "registry": line.run.registry,
        "catalog": line.catalog,
        "database_name": database,
        "name": name,
        "kind": line.kind,
        "grade": line.grade,
        "ending": line.ending,
        "before": line.before,
        "after": line.after,
        "error": line.error,
    }
    with store.write() as connection:
        connection.execute(insert(catalog_log).values(row))


def _lines(store: Store, catalog: str, most: int | None = None, *, only_begun: bool = False) -> list[Logged]:
    later = catalog_log.alias("later")
    ended = (
        select(later.c.number)
        .where(
            later.c.run_id == catalog_log.c.run_id,
            later.c.catalog == catalog_log.c.catalog,
            later.c.database_name == catalog_log.c.database_name,
            later.c.name == catalog_log.c.name,
            later.c.number > catalog_log.c.number,
        )
        .exists()
    )
    query = (
        select(catalog_log)
        .where(catalog_log.c.catalog == catalog, (catalog_log.c.ending != BEGUN) | ~ended)
        .order_by(catalog_log.c.number.desc())
        .limit(most)
    )
    if only_begun:
        query = query.where(catalog_log.c.ending == BEGUN)
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
