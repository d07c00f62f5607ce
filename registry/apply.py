"""Carries a plan out, and keeps what was applied and the log of each run in the store."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from functools import partial

from sqlalchemy import delete, insert, select

from dq.contracts.shared.outcome import DqError
from dq.registry.catalog import Catalog, StalePlan
from dq.registry.diff import Action, ActionKind, CatalogPlan, Grade, LiveTable, SchemaJudge, breaking, changes
from dq.registry.plan import WholeRegistry, linked, plan, together
from dq.registry.table import SPEC_HASH, Key, TableSpec, spec_of
from dq.registry.tables import catalog_applied, catalog_log
from dq.store.engine import Store

# What dq applied last to each table, kept in the store.

# Databases take so many values in one statement, and more.
_FEW = 500


def databases(store: Store, catalog: str) -> list[str]:
    """The databases of this catalog in which something was applied, sorted."""
    query = select(catalog_applied.c.database_name).where(catalog_applied.c.catalog == catalog).distinct()
    with store.read() as connection:
        return sorted(connection.execute(query).scalars())


def recall(
    store: Store, catalog: str, database: str | None = None, names: Collection[str] | None = None
) -> dict[Key, TableSpec]:
    """What was applied last to every table of this catalog, or of one of its databases.

    With `names` at least to those of that database: a few are asked for, and many are read together.
    """
    query = select(catalog_applied.c.spec).where(catalog_applied.c.catalog == catalog)
    if database is not None:
        query = query.where(catalog_applied.c.database_name == database)
    if names is not None and len(names) <= _FEW:
        query = query.where(catalog_applied.c.name.in_(sorted(names)))
    with store.read() as connection:
        specs = [spec_of(row.spec) for row in connection.execute(query)]
    return {spec.key: spec for spec in specs}


def remember(store: Store, catalog: str, key: Key, spec: TableSpec | None) -> None:
    """Keeps what was applied to a table; None forgets it."""
    database, name = key
    here = {"catalog": catalog, "database_name": database, "name": name}
    with store.write() as connection:
        connection.execute(delete(catalog_applied).filter_by(**here))
        if spec is not None:
            connection.execute(insert(catalog_applied).values(**here, spec=spec.as_json()))


# What runs of `dq register` did, table by table: kept as it happens, never changed, oldest first.


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


# Carries a plan out: in order, idempotent, resumable; nothing is removed or broken without being allowed.


class Ending(StrEnum):
    """How one action ended."""

    DONE = "done"
    UNCHANGED = "unchanged"
    REFUSED = "refused"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Result:
    """What became of one action; `error` says why it was refused or failed, and how to mend it."""

    action: Action
    ending: Ending
    error: DqError | None = None


_FLAGS = {Grade.BREAKING: "--allow-breaking", Grade.DESTRUCTIVE: "--allow-destructive"}


def propose(
    catalog: Catalog,
    wanted: Iterable[TableSpec],
    store: Store,
    *,
    adopt: bool = False,
    whole: WholeRegistry | None = None,
    judge: SchemaJudge = breaking,
) -> CatalogPlan:
    """The plan for these tables against the catalog as it is now. Writes nothing.

    `whole`: these are all tables of that registry, so each database is listed once, and tables of ours
    that no contract wants are shown as orphans. `judge` grades what becomes of columns.
    Raises Unreadable when the catalog does not answer.
    """
    by_database: dict[str, list[TableSpec]] = {}
    for spec in wanted:
        by_database.setdefault(spec.database, []).append(spec)
    known = databases(store, catalog.id)
    # Where all contracts of a database are gone, only the memory knows that it was ours.
    parts = [
        plan(
            by_database.get(database, []),
            _live(catalog, database, None if whole else by_database[database]),
            recall(store, catalog.id, database, _names(by_database[database]) if whole is None else None),
            creates=catalog.formats,
            adopt=adopt,
            whole=whole,
            judge=judge,
        )
        for database in sorted(by_database.keys() | (known if whole else ()))
    ]
    whole_plan = together(parts)
    made = replace(whole_plan, actions=tuple(_possible(catalog, one) for one in whole_plan.actions))
    if not any(action.kind in (ActionKind.CREATE, ActionKind.ORPHAN) for action in made.actions):
        return made
    keys = {spec.key for specs in by_database.values() for spec in specs}
    old = {
        key: spec
        for database in known
        for key, spec in recall(store, catalog.id, database).items()
        if key not in keys
    }
    return replace(made, actions=tuple(linked(made.actions, old)))


def _names(specs: Iterable[TableSpec]) -> set[str]:
    return {spec.name for spec in specs}


def _possible(catalog: Catalog, action: Action) -> Action:
    """The action, or a conflict where the catalog cannot do it, whatever is allowed."""
    found = tuple(catalog.obstacles(action)) if action.writes and action.before and action.after else ()
    if not found:
        return action
    why = " ".join(one.why for one in found)
    return replace(action, kind=ActionKind.CONFLICT, after=None, note=why, obstacles=found)


def _live(catalog: Catalog, database: str, only: list[TableSpec] | None) -> dict[Key, LiveTable]:
    """The tables of a database as they are now, or only these of it."""
    if only is None:
        return {table.spec.key: table for table in catalog.tables(database)}
    found = {spec.key: catalog.read(*spec.key) for spec in only}
    return {key: table for key, table in found.items() if table is not None}


def apply(
    catalog: Catalog,
    made: CatalogPlan,
    store: Store,
    *,
    allow: frozenset[Grade] = frozenset(),
    prune: bool = False,
    run: RegisterRun | None = None,
) -> list[Result]:
    """One result per action, in the plan's order. One that fails does not stop the others.

    Metadata and additive changes are always allowed, breaking and destructive ones with `allow`, removing
    orphans with `prune`: last of all, and only when nothing else was refused or failed. A table that moved
    since the plan gives a StalePlan, unless it moved to where the plan wanted it. Can be run again after a
    kill at any point. Unchanged tables cost no write. What becomes of the others is logged as the `run`'s.
    """
    results: dict[int, Result] = {}
    hand = _Hand(catalog, store, run)
    if run is not None:
        complete(store, catalog.id, partial(_digest, catalog), (Ending.DONE, Ending.FAILED))

    def keep(number: int, result: Result) -> None:
        results[number] = result
        if run is not None and result.ending is not Ending.UNCHANGED:
            record(store, run, catalog.id, result.action, result.ending, str(result.error or ""))

    for number, action in enumerate(made.actions):
        if action.kind is not ActionKind.ORPHAN:
            keep(number, hand.carry_out(action, allow))
            if action.key in made.forgotten:
                # A kill came between making it and noting so.
                remember(store, catalog.id, action.key, action.wanted)
    clean = all(result.error is None for result in results.values())
    for number, action in enumerate(made.actions):
        if action.kind is ActionKind.ORPHAN:
            keep(number, hand.prune(action, clean=clean) if prune else Result(action, Ending.UNCHANGED))
    return [results[number] for number in sorted(results)]


def _digest(catalog: Catalog, key: Key) -> str | None:
    live = catalog.read(*key)
    return None if live is None else live.spec.parameter(SPEC_HASH)


@dataclass(frozen=True, slots=True)
class _Hand:
    catalog: Catalog
    store: Store
    run: RegisterRun | None

    def prune(self, action: Action, *, clean: bool) -> Result:
        """Removes an orphan, unless something else was refused or failed."""
        if not clean:
            # What should take its place may be just what was refused.
            message = f"{_name(action)}: it stays, because another change was refused or failed."
            return Result(action, Ending.REFUSED, DqError(message, "Mend that, then prune again."))
        return self.carry_out(action, frozenset(Grade))

    def carry_out(self, action: Action, allow: frozenset[Grade]) -> Result:
        """Does what the action says, and notes it."""
        if action.kind is ActionKind.CONFLICT:
            return Result(action, Ending.REFUSED, DqError(f"{_name(action)}: {action.note}"))
        if not action.writes:
            return Result(action, Ending.UNCHANGED)
        refusal = _refusal(action, allow)
        if refusal is not None:
            return Result(action, Ending.REFUSED, refusal)
        if self.run is not None:
            # Before the table is written: a kill in between must not lose that it was.
            begin(self.store, self.run, self.catalog.id, action)
        try:
            self.catalog.apply(action)
        except StalePlan as error:
            if not _arrived(self.catalog, action):
                return Result(action, Ending.FAILED, error)
            # Another run made the same change: it is that run's.
            remember(self.store, self.catalog.id, action.key, action.wanted)
            if self.run is not None:
                record(self.store, self.run, self.catalog.id, action, Ending.UNCHANGED, "")
            return Result(action, Ending.UNCHANGED)
        except DqError as error:
            return Result(action, Ending.FAILED, error)
        remember(self.store, self.catalog.id, action.key, action.wanted)
        return Result(action, Ending.DONE)


def _refusal(action: Action, allow: frozenset[Grade]) -> DqError | None:
    needed = {change.grade for change in action.changes if not change.kept} & _FLAGS.keys() - allow
    if not needed:
        return None
    gravest = max(needed, key=lambda grade: grade.rank)
    said = ", ".join(
        f"{change.field} {change.name}".rstrip() for change in action.changes if change.grade in needed
    )
    message = f"{_name(action)}: {gravest} changes need your word ({said})."
    if all(change.drift for change in action.changes if change.grade in needed and not change.kept):
        # The contract is as it was: no version of it would help.
        return DqError(
            message,
            f"Ask who changed the table, then put it back with {_FLAGS[gravest]}, or change the contract.",
        )
    return DqError(
        message,
        f"Make a new major version of the contract with a table of its own, or apply with {_FLAGS[gravest]}.",
    )


def _arrived(catalog: Catalog, action: Action) -> bool:
    """Whether another process has just made the same change: nothing is left to do."""
    live = catalog.read(*action.key)
    if live is None or action.after is None:
        return live is None and action.after is None
    return all(change.kept for change in changes(live.spec, action.after, None, own=catalog.formats))


def _name(action: Action) -> str:
    return ".".join(action.key)
