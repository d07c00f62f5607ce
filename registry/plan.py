"""The plan for the tables of a catalog: planning, rendering, execution, and the log in the store."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import StrEnum

from sqlalchemy import insert, select

from dq.contracts.model import identity
from dq.contracts.outcome import DqError
from dq.registry.catalog import (
    Action,
    ActionKind,
    Catalog,
    CatalogPlan,
    ChangedField,
    Impact,
    ImpactAssessor,
    LiveTable,
    StalePlan,
    TableChange,
    assess_as_breaking,
    compare_tables,
    merged,
)
from dq.registry.table import (
    CONTRACT,
    CONTRACT_VERSION,
    LIFECYCLE,
    MANAGED_BY,
    OBJECT,
    OPEN_FORMATS,
    OWNED_KEYS,
    REGISTRY,
    RETIRED,
    SPEC_HASH,
    VIEW,
    Key,
    TableSpec,
    spec_from_json,
)
from dq.registry.tables import catalog_applied, catalog_log, keep_row
from dq.store.engine import Store

# Managed tables without a contract: orphans, which may be removed, and tables that are retained.

# Tables removed without confirmation: at least one, up to a tenth of the managed ones, at most five.
_MAX_PRUNED, _PRUNED_SHARE = 5, 10


@dataclass(frozen=True, slots=True)
class CompleteRegistry:
    """Proof that a run has loaded every contract of a registry.

    Tables in `retained`, and those of contracts (by id) in `retained_contracts`, stay without a contract in
    force; the values are the reasons.
    """

    registry: str
    retained: Mapping[Key, str] = field(default_factory=dict)
    retained_contracts: Mapping[str, str] = field(default_factory=dict)


def prune_limit(managed_count: int) -> int:
    """Return the default limit of tables that a run may remove, out of `managed_count`."""
    return min(_MAX_PRUNED, max(1, managed_count // _PRUNED_SHARE))


def is_managed(spec: TableSpec, registry: str) -> bool:
    """Return True if the table has the mark of this registry."""
    return bool(spec.parameter(MANAGED_BY)) and spec.parameter(REGISTRY) == registry


def orphans(
    live: Mapping[Key, LiveTable],
    desired: Set[Key],
    applied: Mapping[Key, TableSpec],
    complete: CompleteRegistry,
) -> Iterator[Action]:
    """Return an action for each undesired table of this registry: an orphan, or retained with the reason.

    An orphan must be recorded in this store for the same contract. A mark alone is not proof: copies of a
    table have it too, and a registry without policy and remote is identified by its folder only.
    """
    for key, table in live.items():
        if key in desired or not is_managed(table.spec, complete.registry):
            continue
        contract = table.spec.parameter(CONTRACT)
        reason = complete.retained.get(key) or complete.retained_contracts.get(contract)
        recorded = applied.get(key)
        if reason is None and (recorded is None or not _same_owner(recorded, table.spec)):
            reason = (
                "The state store has no record that dq created it; if it is not needed, drop it manually."
            )
        if reason is not None:
            yield Action(ActionKind.RETAINED, key, before=table, note=reason)
            continue
        note = f"Contract {contract!r} no longer declares it. Remove it from the catalog with --prune."
        yield Action(ActionKind.ORPHAN, key, before=table, note=note)


def _same_owner(recorded: TableSpec, live: TableSpec) -> bool:
    return all(recorded.parameter(name) == live.parameter(name) for name in (REGISTRY, CONTRACT))


# A table that replaces another one: the same object of the same contract under a new name.

# Kinds of existing tables: the new table is created once, the old one stays an orphan until it is pruned.
_EXISTING_KINDS = frozenset({ActionKind.NOOP, ActionKind.UPDATE, ActionKind.DRIFT, ActionKind.ADOPT})

_Tables = dict[tuple[str, str], dict[Key, TableSpec]]


def link_replacements(actions: Iterable[Action], undesired: Mapping[Key, TableSpec]) -> list[Action]:
    """Return the actions, with notes that link a new table and the table that it replaces.

    Two tables belong together if they have the same contract and object, or the same contract and location,
    and there is no other such pair. `undesired` are recorded tables without a contract: without a listing of
    the catalog, the old table is known only from there. An orphan also names an earlier replacement.
    """
    all_actions = list(actions)
    orphaned = {
        action.key: action.before.spec
        for action in all_actions
        if action.kind is ActionKind.ORPHAN and action.before
    }
    new = {
        action.key: action.desired
        for action in all_actions
        if action.kind is ActionKind.CREATE and action.desired
    }
    pairs = _pairs(_by_contract(new), _by_contract({**undesired, **orphaned}))
    unpaired = {key: spec for key, spec in orphaned.items() if key not in pairs.values()}
    standing = {
        action.key: action.desired
        for action in all_actions
        if action.kind in _EXISTING_KINDS and action.desired
    }
    earlier = _pairs(_by_contract(standing), _by_contract(unpaired)) if unpaired else {}
    after = {before: key for key, before in (pairs | earlier).items()}
    return [_with_note(action, pairs, after) for action in all_actions]


def _by_contract(tables: Mapping[Key, TableSpec]) -> _Tables:
    by_contract: _Tables = {}
    for key, spec in tables.items():
        by_contract.setdefault(_contract(spec), {})[key] = spec
    return by_contract


def _pairs(new: _Tables, old: _Tables) -> dict[Key, Key]:
    """Map new tables to the old ones that they replace, if the pair is unique."""
    pairs: dict[Key, Key] = {}
    for contract, tables in new.items():
        old_tables = old.get(contract, {})
        for key, spec in tables.items() if old_tables else ():
            replaced = [before for before, table in old_tables.items() if _same_data(table, spec)]
            rivals = [
                other
                for other in tables.values()
                if len(replaced) == 1 and _same_data(old_tables[replaced[0]], other)
            ]
            if len(replaced) == 1 and len(rivals) == 1:
                pairs[key] = replaced[0]
    return pairs


def _with_note(action: Action, before: Mapping[Key, Key], after: Mapping[Key, Key]) -> Action:
    if action.kind is ActionKind.CREATE and action.key in before:
        sentence = f"It replaces {'.'.join(before[action.key])}, which stays until it is pruned."
    elif action.kind is ActionKind.ORPHAN and action.key in after:
        sentence = f"Replaced by {'.'.join(after[action.key])}."
    else:
        return action
    if sentence in action.note:
        return action
    return replace(action, note=f"{action.note} {sentence}".strip())


def _contract(spec: TableSpec) -> tuple[str, str]:
    return spec.parameter(REGISTRY), spec.parameter(CONTRACT)


def _same_data(old: TableSpec, new: TableSpec) -> bool:
    """Return True if two tables of one contract hold the same data."""
    same_object = bool(old.parameter(OBJECT)) and old.parameter(OBJECT) == new.parameter(OBJECT)
    return same_object or (bool(old.location) and old.location == new.location)


# Properties that identify the writer of a table.
_WRITERS = {
    "UPDATED_BY_CRAWLER": "a Glue crawler",
    "CrawlerSchemaSerializerVersion": "a Glue crawler",
    "dbt_project_name": "dbt",
    "metadata_location": "an Iceberg writer",
    "last_commit_time_sync": "a Hudi writer",
    "hudi.metadata-listing-enabled": "a Hudi writer",
}


def plan(
    desired: Iterable[TableSpec],
    live: Mapping[Key, LiveTable],
    applied: Mapping[Key, TableSpec],
    *,
    creates: frozenset[str],
    adopt: bool = False,
    complete: CompleteRegistry | None = None,
    assess_impact: ImpactAssessor = assess_as_breaking,
) -> CatalogPlan:
    """Return one action per desired table, and with `complete` one per undesired managed table, by name.

    Args:
        applied: Last applied state; without it, drift is only detected if the contract did not change.
        creates: Formats that the catalog can create.
        adopt: Take over unmanaged tables, if no change would break them.
        complete: If set, `desired` are all tables of that registry.
        assess_impact: Assesses changes of columns.
    """
    terms = _PlanTerms(applied, creates, adopt, assess_impact)
    desired = list(desired)
    rivals = Counter(spec.key for spec in desired)
    owners = Counter(spec.key for spec in desired if _owns(spec, live.get(spec.key)))
    actions = []
    for spec in desired:
        table = live.get(spec.key)
        if rivals[spec.key] > 1 and not (owners[spec.key] == 1 and _owns(spec, table)):
            note = (
                f"Several contracts declare this table; one is {spec.parameter(CONTRACT)!r}. Rename "
                "one of them."
            )
            actions.append(_conflict(spec, table, note))
        else:
            actions.append(_decide(spec, table, terms))
    managed_count = 0
    if complete is not None:
        actions += orphans(live, rivals.keys(), applied, complete)
        managed_count = sum(is_managed(table.spec, complete.registry) for table in live.values())
    unchanged = {action.key for action in actions if action.kind is ActionKind.NOOP}
    actions = link_replacements(actions, {key: spec for key, spec in applied.items() if key not in rivals})
    # Unchanged tables, most of a large registry, are not kept in the plan.
    ordered = tuple(
        replace(action, before=None, after=None) if action.kind is ActionKind.NOOP else action
        for action in sorted(actions, key=lambda action: action.key)
    )
    return CatalogPlan(ordered, managed_count, frozenset(unchanged - applied.keys()))


def merge_plans(parts: Iterable[CatalogPlan]) -> CatalogPlan:
    """Merge the plans of several databases."""
    plans = list(parts)
    actions = sorted((action for part in plans for action in part.actions), key=lambda action: action.key)
    forgotten = frozenset(key for part in plans for key in part.unrecorded)
    return CatalogPlan(tuple(actions), sum(part.managed_count for part in plans), forgotten)


@dataclass(frozen=True, slots=True)
class _PlanTerms:
    """Settings for all tables of one plan."""

    applied: Mapping[Key, TableSpec]
    creates: frozenset[str]
    adopt: bool
    assess_impact: ImpactAssessor


def _decide(spec: TableSpec, live: LiveTable | None, terms: _PlanTerms) -> Action:
    last = terms.applied.get(spec.key)
    retired = spec.parameter(LIFECYCLE) == RETIRED
    if retired and not _owns(spec, live):
        note = "Its contract is retired and has no table." if live is None else _RETIRED_UNMANAGED
        return Action(ActionKind.RETAINED, spec.key, before=live, desired=spec, note=note)
    if live is None:
        return _absent(spec, last, terms.creates)
    owner = live.spec.parameter(CONTRACT)
    if not live.spec.parameter(MANAGED_BY):
        # A writer that replaces all properties removes our mark; the applied state still has the table.
        if last is not None and last.location in ("", live.spec.location):
            note = "Its dq properties are missing; " + _changed_by(live)
            return _compare(ActionKind.DRIFT, spec, live, last, note, terms)
        return _unmanaged(spec, live, terms)
    if owner != spec.parameter(CONTRACT):
        return _conflict(spec, live, f"It belongs to contract {owner!r}. Rename one of the two tables.")
    live_registry = live.spec.parameter(REGISTRY)
    if live_registry != spec.parameter(REGISTRY):
        return _conflict(spec, live, f"It belongs to the registry {live_registry!r}. Register it from there.")
    if _has_other_writer(spec, live.spec):
        return _conflict(spec, live, _OTHER_WRITER.format(spec.format, live.spec.format))
    note = "Its contract is retired: the table is kept and marked as retired." if retired else ""
    return _compare(None, spec, live, _base(spec, live, last), note, terms)


def _absent(spec: TableSpec, last: TableSpec | None, creates: frozenset[str]) -> Action:
    if spec.format == VIEW:
        note = "It is a view: its owner has to create it; dq then adds its own properties."
        return Action(ActionKind.WAIT, spec.key, desired=spec, note=note)
    if spec.format not in creates:
        note = f"Its {spec.format} writer has to create it; dq then adds its own properties."
        return Action(ActionKind.WAIT, spec.key, desired=spec, note=note)
    note = "" if last is None else "dq created it before, but someone has removed it."
    return Action(ActionKind.CREATE, spec.key, after=spec, desired=spec, note=note)


_RETIRED_UNMANAGED = "Its contract is retired, and dq does not manage the table."
_OTHER_WRITER = "The contract says {} but the table is {}. Fix the contract's format, or migrate the table."


def _has_other_writer(spec: TableSpec, live: TableSpec) -> bool:
    """Return True if the format differs and one of the two has its own writer: dq does not convert it."""
    return spec.format != live.format and not OPEN_FORMATS.isdisjoint({spec.format, live.format})


def _unmanaged(spec: TableSpec, live: LiveTable, terms: _PlanTerms) -> Action:
    if _has_other_writer(spec, live.spec):
        return _conflict(spec, live, _OTHER_WRITER.format(spec.format, live.spec.format))
    if not terms.adopt:
        return _conflict(
            spec, live, "It exists but was not created by dq. Take ownership of it with --adopt."
        )
    action = _compare(ActionKind.ADOPT, spec, live, None, "", terms)
    if action.impact.rank > Impact.ADDITIVE.rank:
        note = "It exists, was not created by dq and does not match the contract. Fix the contract."
        return Action(ActionKind.CONFLICT, spec.key, action.changes, live, desired=spec, note=note)
    return action


def _base(spec: TableSpec, live: LiveTable, last: TableSpec | None) -> TableSpec | None:
    """Return the last applied specification, or None if unknown: its digest is in the table's mark."""
    mark = live.spec.parameter(SPEC_HASH)
    return next(
        (candidate for candidate in (spec, last) if candidate and candidate.parameter(SPEC_HASH) == mark),
        None,
    )


def _compare(
    kind: ActionKind | None,
    spec: TableSpec,
    live: LiveTable,
    base: TableSpec | None,
    note: str,
    terms: _PlanTerms,
) -> Action:
    differences = compare_tables(live.spec, spec, base, terms.assess_impact, terms.creates)
    drift = any(change.drift for change in differences)
    if kind is None:
        touches = any(not change.ignored for change in differences)
        kind = ActionKind.DRIFT if drift else ActionKind.UPDATE if touches else ActionKind.NOOP
    if kind is ActionKind.DRIFT and not note:
        note = _changed_by(live)
    after = merged(live.spec, spec, differences, terms.creates)
    return Action(kind, spec.key, differences, live, after, spec, note)


def _changed_by(live: LiveTable) -> str:
    present = dict(live.spec.parameters)
    when = f" at {live.updated_at.astimezone(UTC):%Y-%m-%d %H:%M} UTC" if live.updated_at else ""
    writers = sorted({writer for key, writer in _WRITERS.items() if key in present})
    # A lakehouse table always has its writer's properties: they do not identify the change.
    if not writers or live.spec.format in OPEN_FORMATS:
        return f"someone else changed it{when}."
    return f"someone else changed it{when}; it has properties of {' and '.join(writers)}."


def _conflict(spec: TableSpec, live: LiveTable | None, note: str) -> Action:
    return Action(ActionKind.CONFLICT, spec.key, before=live, desired=spec, note=note)


def _owns(spec: TableSpec, live: LiveTable | None) -> bool:
    """Return True if the table was created for this contract and major version."""
    return (
        live is not None
        and live.spec.parameter(REGISTRY) == spec.parameter(REGISTRY)
        and _identity(live.spec) == _identity(spec)
    )


def _identity(spec: TableSpec) -> tuple[str, str]:
    return identity(spec.parameter(CONTRACT), spec.parameter(CONTRACT_VERSION))


# A plan as lines for a reader, marked + (new), ~ (changed), - (removed) and ! (attention).

# Line for a table whose digest differs, but nothing that the catalog stores.
_MARK_ONLY = (
    "~ only dq's own mark: the change in the contract, e.g. column order, is not stored in this catalog"
)

_MARKS = {
    ActionKind.CREATE: "+",
    ActionKind.UPDATE: "~",
    ActionKind.ADOPT: "~",
    ActionKind.DRIFT: "!",
    ActionKind.CONFLICT: "!",
    ActionKind.ORPHAN: "-",
    ActionKind.WAIT: " ",
    ActionKind.RETAINED: " ",
}
# Not shown: they follow from the other properties.
_BOOKKEEPING = (SPEC_HASH, OWNED_KEYS)
_SHOWN = 120
# Maximum of lines for one table.
_MAX_LINES = 40


def render(plan: CatalogPlan) -> list[str]:
    """Return the plan's lines: each table with changes, its changes indented, and the counts."""
    lines = [
        line for action in plan.actions if action.kind is not ActionKind.NOOP for line in _action(action)
    ]
    counts = Counter(action.kind for action in plan.actions)
    summary = ", ".join(f"{counts[kind]} {kind}" for kind in ActionKind if counts[kind])
    tables = "1 table" if len(plan.actions) == 1 else f"{len(plan.actions)} tables"
    return [*lines, f"{tables}: {summary or 'nothing to do'}."]


def _action(action: Action) -> Iterator[str]:
    database, name = action.key
    impact = f" ({action.impact})" if action.writes else ""
    note = f": {action.note}" if action.note else ""
    yield f"{_MARKS[action.kind]} {action.kind} {database}.{name}{impact}{note}"
    yield from (f"    {line}" for line in change_lines(action))


def change_lines(action: Action) -> Iterator[str]:
    """Yield a line for each created or changed part of a table; of very many, those of highest impact."""
    lines = list(_created(action.after)) if action.kind is ActionKind.CREATE and action.after else []
    changes = [change for change in action.changes if change.name not in _BOOKKEEPING]
    if len(changes) > _MAX_LINES:
        changes.sort(key=lambda change: (change.ignored, -change.impact.rank))
    lines += [_change(change) for change in changes]
    if action.changes and not lines:
        lines.append(_MARK_ONLY)
    yield from lines[:_MAX_LINES]
    if len(lines) > _MAX_LINES:
        yield f"… and {len(lines) - _MAX_LINES:,} more"


def _created(spec: TableSpec) -> Iterator[str]:
    yield f"+ {spec.format} at {spec.location or 'a location chosen by the catalog'}"
    for name, text in spec.reader:
        yield f"+ reader's {name}: {text!r}"
    for column in spec.columns:
        yield f"+ column {column.name}: {_cut(column.type)}"
    for column in spec.partitions:
        yield f"+ partition key {column.name}: {column.type}"


def _change(change: TableChange) -> str:
    mark = "+" if change.before is None else "-" if change.after is None else "~"
    subject = f"{change.field} {change.name}".rstrip()
    if change.ignored and change.field is ChangedField.NULLS:
        return f"! {subject}: {_quoted(change.before)}; a table that has rows cannot disallow them"
    if change.ignored:
        return f"! {subject}: {_quoted(change.before)} is not in the contract and is left alone"
    values = " -> ".join(_quoted(text) for text in (change.before, change.after) if text is not None)
    # A changed nested type is best shown as the two texts with the impact.
    impact = (
        ""
        if change.field in (ChangedField.PARAMETER, ChangedField.COMMENT, ChangedField.DESCRIPTION)
        else f" [{change.impact}{f': {change.rule}' if change.rule else ''}]"
    )
    drift = " (changed by someone else)" if change.drift else ""
    return f"{mark} {subject}: {values}{impact}{drift}"


def _quoted(text: str | None) -> str:
    return repr(text if text is None else _cut(text))


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"


# The last applied state of each table, in the store.

# Every database accepts this many values in one statement.
_MAX_NAMES = 500


def databases(store: Store, catalog: str) -> list[str]:
    """Return the databases of this catalog with applied tables, sorted."""
    query = select(catalog_applied.c.database_name).where(catalog_applied.c.catalog == catalog).distinct()
    with store.read() as connection:
        return sorted(connection.execute(query).scalars())


def load_applied_state(
    store: Store, catalog: str, database: str | None = None, names: Collection[str] | None = None
) -> dict[Key, TableSpec]:
    """Return the last applied state of the tables of this catalog, or of one of its databases.

    With `names`, at least of those tables: few are selected by name, many are read with all others.
    """
    query = select(catalog_applied.c.spec).where(catalog_applied.c.catalog == catalog)
    if database is not None:
        query = query.where(catalog_applied.c.database_name == database)
    if names is not None and len(names) <= _MAX_NAMES:
        query = query.where(catalog_applied.c.name.in_(sorted(names)))
    with store.read() as connection:
        specs = [spec_from_json(row.spec) for row in connection.execute(query)]
    return {spec.key: spec for spec in specs}


def save_applied_state(store: Store, catalog: str, key: Key, spec: TableSpec | None) -> None:
    """Save the applied state of a table; None deletes it."""
    row_key = {"catalog": catalog, "database_name": key[0], "name": key[1]}
    keep_row(store, catalog_applied, row_key, None if spec is None else {"spec": spec.as_json()})


# Append-only log of `dq register` runs, table by table, oldest first.


@dataclass(frozen=True, slots=True)
class RegisterRun:
    """One run that applies a plan: its id for the log, its start, and its registry."""

    id: str
    started_at: datetime
    registry: str


@dataclass(frozen=True, slots=True)
class RunLogEntry:
    """One line of the log: an action of a run on a table of a catalog, and its outcome.

    `before` is the version in the catalog, `after` the digest of the target; "" for none.
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
"""Outcome in a line that is written before the change: its run may have been killed then."""

_CUT_OFF = "The run was interrupted before it recorded the outcome; a later run checked it."
# Columns of the log with the same name as a field of `RunLogEntry`.
_TEXTS = ("kind", "grade", "ending", "before", "after", "error")


def latest(store: Store, catalog: str, limit: int) -> list[RunLogEntry]:
    """Return the last lines of a catalog, oldest first: outcomes, and begun actions without an outcome."""
    return _lines(store, catalog, limit)


def _append(store: Store, line: RunLogEntry) -> None:
    database, name = line.key
    run = {"run_id": line.run.id, "at": line.run.started_at, "registry": line.run.registry}
    table = {"catalog": line.catalog, "database_name": database, "name": name}
    row = {**run, **table, **{column: getattr(line, column) for column in _TEXTS}}
    with store.write() as connection:
        connection.execute(insert(catalog_log).values(row))


def _lines(
    store: Store, catalog: str, limit: int | None = None, *, only_begun: bool = False
) -> list[RunLogEntry]:
    later_entry = catalog_log.alias("later")
    ended = (
        select(later_entry.c.number)
        .where(
            later_entry.c.run_id == catalog_log.c.run_id,
            later_entry.c.catalog == catalog_log.c.catalog,
            later_entry.c.database_name == catalog_log.c.database_name,
            later_entry.c.name == catalog_log.c.name,
            later_entry.c.number > catalog_log.c.number,
        )
        .exists()
    )
    query = (
        select(catalog_log)
        .where(catalog_log.c.catalog == catalog, (catalog_log.c.ending != BEGUN) | ~ended)
        .order_by(catalog_log.c.number.desc())
        .limit(limit)
    )
    if only_begun:
        query = query.where(catalog_log.c.ending == BEGUN)
    with store.read() as connection:
        rows = connection.execute(query).all()
    return [
        RunLogEntry(
            RegisterRun(row.run_id, row.at, row.registry),
            row.catalog,
            (row.database_name, row.name),
            *(getattr(row, column) for column in _TEXTS),
        )
        for row in reversed(rows)
    ]


# Executes a plan: in order, idempotent, resumable; destructive and breaking changes must be allowed.


class ActionOutcome(StrEnum):
    """Outcome of one action."""

    DONE = "done"
    UNCHANGED = "unchanged"
    REFUSED = "refused"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class ActionResult:
    """Result of one action; `error` has the reason of a refusal or failure, and a hint."""

    action: Action
    outcome: ActionOutcome
    error: DqError | None = None


_FLAGS = {Impact.BREAKING: "--allow-breaking", Impact.DESTRUCTIVE: "--allow-destructive"}


def propose(
    catalog: Catalog,
    desired: Iterable[TableSpec],
    store: Store,
    *,
    adopt: bool = False,
    complete: CompleteRegistry | None = None,
    assess_impact: ImpactAssessor = assess_as_breaking,
) -> CatalogPlan:
    """Plan these tables against the live catalog. Read-only.

    With `complete`, these are all tables of that registry: each database is listed once, and managed tables
    without a contract become orphans. `assess_impact` assesses changes of columns.
    Raises ReadError when the catalog does not answer.
    """
    by_database: dict[str, list[TableSpec]] = {}
    for spec in desired:
        by_database.setdefault(spec.database, []).append(spec)
    recorded_databases = databases(store, catalog.id)
    parts = []
    # A database without contracts is only known from the applied state.
    for database in sorted(by_database.keys() | (recorded_databases if complete else ())):
        tables = by_database.get(database, [])
        if complete:
            live = {table.spec.key: table for table in catalog.tables(database)}
        else:
            live = {spec.key: table for spec in tables if (table := catalog.read(*spec.key)) is not None}
        applied = load_applied_state(
            store, catalog.id, database, None if complete else {spec.name for spec in tables}
        )
        formats = catalog.formats
        parts.append(
            plan(
                tables,
                live,
                applied,
                creates=formats,
                adopt=adopt,
                complete=complete,
                assess_impact=assess_impact,
            )
        )
    proposed = merge_plans(parts)
    proposed = replace(
        proposed, actions=tuple(_with_blockers(catalog, action) for action in proposed.actions)
    )
    if not any(action.kind in (ActionKind.CREATE, ActionKind.ORPHAN) for action in proposed.actions):
        return proposed
    keys = {spec.key for specs in by_database.values() for spec in specs}
    old = {
        key: spec
        for database in recorded_databases
        for key, spec in load_applied_state(store, catalog.id, database).items()
        if key not in keys
    }
    return replace(proposed, actions=tuple(link_replacements(proposed.actions, old)))


def _with_blockers(catalog: Catalog, action: Action) -> Action:
    """Return the action, or a conflict if the catalog cannot do it, even if allowed."""
    blockers = tuple(catalog.blockers(action)) if action.writes and action.before and action.after else ()
    if not blockers:
        return action
    reasons = " ".join(blocker.reason for blocker in blockers)
    return replace(action, kind=ActionKind.CONFLICT, after=None, note=reasons, blockers=blockers)


def apply(
    catalog: Catalog,
    catalog_plan: CatalogPlan,
    store: Store,
    *,
    allow: frozenset[Impact] = frozenset(),
    prune: bool = False,
    run: RegisterRun | None = None,
) -> list[ActionResult]:
    """Execute the plan and return one result per action, in its order. A failure does not stop the others.

    Metadata and additive changes are always allowed, breaking and destructive ones with `allow`, removal of
    orphans with `prune`: after all others, and only if none was refused or failed. A table that changed since
    the plan results in a StalePlan, unless it has the target state already. Can be repeated after a kill at
    any point. Unchanged tables cost no write. The outcomes of the others are logged for `run`.
    """
    executor = _PlanExecutor(catalog, store, run)
    if run is not None:
        executor.complete_log()
    results: dict[int, ActionResult] = {}
    for number, action in sorted(
        enumerate(catalog_plan.actions), key=lambda pair: pair[1].kind is ActionKind.ORPHAN
    ):
        if action.kind is not ActionKind.ORPHAN:
            result = executor.change(action, allow)
        elif not prune:
            result = ActionResult(action, ActionOutcome.UNCHANGED)
        elif all(
            previous.error is None or previous.action.kind is ActionKind.ORPHAN
            for previous in results.values()
        ):
            result = executor.change(action, frozenset(Impact))
        else:
            # Its replacement may be among the refused or failed changes.
            message = f"{_name(action)}: not removed, because another change was refused or failed."
            result = ActionResult(
                action, ActionOutcome.REFUSED, DqError(message, "Fix that, then prune again.")
            )
        results[number] = result
        if result.outcome is not ActionOutcome.UNCHANGED:
            executor.log(action, result.outcome, str(result.error or ""))
        if action.key in catalog_plan.unrecorded:
            # An earlier run was killed between the change and recording it.
            save_applied_state(store, catalog.id, action.key, action.desired)
    return [results[number] for number in sorted(results)]


@dataclass(frozen=True, slots=True)
class _PlanExecutor:
    """Executes actions on a catalog and records them; in the log only with a `run`."""

    catalog: Catalog
    store: Store
    run: RegisterRun | None

    def log(self, action: Action, outcome: str, error: str = "") -> None:
        if self.run is not None:
            before = action.before.version if action.before else ""
            after = action.after.parameter(SPEC_HASH) if action.after else ""
            texts = (action.kind.value, action.impact.value, outcome, before, after, error)
            _append(self.store, RunLogEntry(self.run, self.catalog.id, action.key, *texts))

    def complete_log(self) -> None:
        """Add the outcomes that killed runs could not log."""
        for line in _lines(self.store, self.catalog.id, only_begun=True):
            live = self.catalog.read(*line.key)
            done = (live.spec.parameter(SPEC_HASH) if live else "") == line.after
            outcome = ActionOutcome.DONE if done else ActionOutcome.FAILED
            _append(self.store, replace(line, ending=outcome, error=_CUT_OFF))

    def change(self, action: Action, allow: frozenset[Impact]) -> ActionResult:
        """Execute an action and record it."""
        if action.kind is ActionKind.CONFLICT:
            return ActionResult(action, ActionOutcome.REFUSED, DqError(f"{_name(action)}: {action.note}"))
        if not action.writes:
            return ActionResult(action, ActionOutcome.UNCHANGED)
        refusal = _refusal(action, allow)
        if refusal is not None:
            return ActionResult(action, ActionOutcome.REFUSED, refusal)
        # Log before the change, so that a kill in between leaves a trace.
        self.log(action, BEGUN)
        outcome = ActionOutcome.DONE
        try:
            self.catalog.apply(action)
        except StalePlan as error:
            if not _is_applied(self.catalog, action):
                return ActionResult(action, ActionOutcome.FAILED, error)
            # Another run has made the same change.
            outcome = ActionOutcome.UNCHANGED
        except DqError as error:
            return ActionResult(action, ActionOutcome.FAILED, error)
        save_applied_state(self.store, self.catalog.id, action.key, action.desired)
        if outcome is ActionOutcome.UNCHANGED:
            self.log(action, outcome)
        return ActionResult(action, outcome)


def _refusal(action: Action, allow: frozenset[Impact]) -> DqError | None:
    needed = {change.impact for change in action.changes if not change.ignored} & _FLAGS.keys() - allow
    if not needed:
        return None
    gravest = max(needed, key=lambda grade: grade.rank)
    names = ", ".join(
        f"{change.field} {change.name}".rstrip() for change in action.changes if change.impact in needed
    )
    message = f"{_name(action)}: {gravest} changes need your approval ({names})."
    hint = "Create a new major version of the contract with its own table, or apply"
    if all(change.drift for change in action.changes if change.impact in needed and not change.ignored):
        # The contract has not changed, so a new version would not help.
        hint = "Find out who changed the table, then revert it"
        return DqError(message, f"{hint} with {_FLAGS[gravest]}, or change the contract.")
    return DqError(message, f"{hint} with {_FLAGS[gravest]}.")


def _is_applied(catalog: Catalog, action: Action) -> bool:
    """Return True if another process has made the same change, so that nothing is left to do."""
    live = catalog.read(*action.key)
    if live is None or action.after is None:
        return live is None and action.after is None
    return all(
        change.ignored
        for change in compare_tables(live.spec, action.after, None, managed_formats=catalog.formats)
    )


def _name(action: Action) -> str:
    return ".".join(action.key)
