"""The plan for the tables of a catalog: made, shown, carried out, and logged in the store."""

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
    Grade,
    LiveTable,
    SchemaJudge,
    StalePlan,
    TableChange,
    breaking,
    changes,
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
    spec_of,
)
from dq.registry.tables import catalog_applied, catalog_log, keep_row
from dq.store.engine import Store

# Tables of ours that no contract wants: which of them may go, and which stay whatever is asked for.

# So many tables go without a word: one always, then up to a tenth of ours, and never more than five.
_MOST, _SHARE = 5, 10


@dataclass(frozen=True, slots=True)
class WholeRegistry:
    """What a run knows that has read and understood every contract of a registry.

    Tables of `held` and of the contracts (by id) in `held_contracts` stay though nobody wants them now,
    each for the reason that stands there.
    """

    registry: str
    held: Mapping[Key, str] = field(default_factory=dict)
    held_contracts: Mapping[str, str] = field(default_factory=dict)


def limit(ours: int) -> int:
    """How many of `ours` tables a run may remove when nobody says."""
    return min(_MOST, max(1, ours // _SHARE))


def is_ours(spec: TableSpec, registry: str) -> bool:
    """Whether the table carries the mark of this registry."""
    return bool(spec.parameter(MANAGED_BY)) and spec.parameter(REGISTRY) == registry


def orphans(
    live: Mapping[Key, LiveTable], wanted: Set[Key], applied: Mapping[Key, TableSpec], whole: WholeRegistry
) -> Iterator[Action]:
    """One action for each table of this registry that is not wanted: an orphan, or held with the reason.

    An orphan is one that this store remembers to have made for the same contract. A mark alone is no proof:
    copies of a table carry it, and a registry without policy and remote is told apart by its folder only.
    """
    for key, table in live.items():
        if key in wanted or not is_ours(table.spec, whole.registry):
            continue
        contract = table.spec.parameter(CONTRACT)
        reason = whole.held.get(key) or whole.held_contracts.get(contract)
        made = applied.get(key)
        if reason is None and (made is None or not _same(made, table.spec)):
            reason = "This store does not remember that dq made it; if it is not needed, drop it by hand."
        if reason is not None:
            yield Action(ActionKind.HELD, key, before=table, note=reason)
            continue
        note = f"Contract {contract!r} does not want it any more. Remove it from the catalog with --prune."
        yield Action(ActionKind.ORPHAN, key, before=table, note=note)


def _same(made: TableSpec, live: TableSpec) -> bool:
    return all(made.parameter(name) == live.parameter(name) for name in (REGISTRY, CONTRACT))


# A table that takes the place of another: the same object of the same contract under a new name.

# The new table is made once, and the old one stays an orphan for as long as it is not pruned.
_STANDING = frozenset({ActionKind.NOOP, ActionKind.UPDATE, ActionKind.DRIFT, ActionKind.ADOPT})

_Tables = dict[tuple[str, str], dict[Key, TableSpec]]


def linked(actions: Iterable[Action], forgone: Mapping[Key, TableSpec]) -> list[Action]:
    """The actions; a table to be made, and the one whose place it takes, name each other.

    They belong together when both are of one object of one contract, or of one contract at one place, and
    there is no other such pair. `forgone` is what dq remembers and nobody wants now: without a listing of
    the catalog it alone knows the old one. An orphan also names the table that took its place before.
    """
    every = list(actions)
    left = {one.key: one.before.spec for one in every if one.kind is ActionKind.ORPHAN and one.before}
    new = {one.key: one.wanted for one in every if one.kind is ActionKind.CREATE and one.wanted}
    pairs = _pairs(_by_contract(new), _by_contract({**forgone, **left}))
    unpaired = {key: spec for key, spec in left.items() if key not in pairs.values()}
    standing = {one.key: one.wanted for one in every if one.kind in _STANDING and one.wanted}
    earlier = _pairs(_by_contract(standing), _by_contract(unpaired)) if unpaired else {}
    after = {before: key for key, before in (pairs | earlier).items()}
    return [_noted(one, pairs, after) for one in every]


def _by_contract(tables: Mapping[Key, TableSpec]) -> _Tables:
    found: _Tables = {}
    for key, spec in tables.items():
        found.setdefault(_contract(spec), {})[key] = spec
    return found


def _pairs(new: _Tables, old: _Tables) -> dict[Key, Key]:
    """The new tables with the old ones whose place they take, where there is one of each."""
    pairs: dict[Key, Key] = {}
    for contract, tables in new.items():
        gone = old.get(contract, {})
        for key, spec in tables.items() if gone else ():
            was = [before for before, table in gone.items() if _same_data(table, spec)]
            rivals = [other for other in tables.values() if len(was) == 1 and _same_data(gone[was[0]], other)]
            if len(was) == 1 and len(rivals) == 1:
                pairs[key] = was[0]
    return pairs


def _noted(action: Action, before: Mapping[Key, Key], after: Mapping[Key, Key]) -> Action:
    if action.kind is ActionKind.CREATE and action.key in before:
        said = f"It takes the place of {'.'.join(before[action.key])}, which stays until it is pruned."
    elif action.kind is ActionKind.ORPHAN and action.key in after:
        said = f"{'.'.join(after[action.key])} takes its place."
    else:
        return action
    if said in action.note:
        return action
    return replace(action, note=f"{action.note} {said}".strip())


def _contract(spec: TableSpec) -> tuple[str, str]:
    return spec.parameter(REGISTRY), spec.parameter(CONTRACT)


def _same_data(old: TableSpec, new: TableSpec) -> bool:
    """Whether two tables of one contract hold the same."""
    same_object = bool(old.parameter(OBJECT)) and old.parameter(OBJECT) == new.parameter(OBJECT)
    return same_object or (bool(old.location) and old.location == new.location)


# A property that only one writer leaves behind says who was here.
_WRITERS = {
    "UPDATED_BY_CRAWLER": "a Glue crawler",
    "CrawlerSchemaSerializerVersion": "a Glue crawler",
    "dbt_project_name": "dbt",
    "metadata_location": "an Iceberg writer",
    "last_commit_time_sync": "a Hudi writer",
    "hudi.metadata-listing-enabled": "a Hudi writer",
}


def plan(
    wanted: Iterable[TableSpec],
    live: Mapping[Key, LiveTable],
    applied: Mapping[Key, TableSpec],
    *,
    creates: frozenset[str],
    adopt: bool = False,
    whole: WholeRegistry | None = None,
    judge: SchemaJudge = breaking,
) -> CatalogPlan:
    """One action per wanted table, and with `whole` one per table of ours that nobody wants, by name.

    `applied` is what dq remembers to have applied last; without it drift is only seen where the contract
    did not change. `creates` are the formats that the catalog can create. `adopt`: take over tables that
    are nobody's, when nothing in them would break. `whole`: `wanted` are all tables of that registry.
    `judge` grades what becomes of columns.
    """
    terms = _PlanTerms(applied, creates, adopt, judge)
    wanted = list(wanted)
    rivals = Counter(spec.key for spec in wanted)
    owners = Counter(spec.key for spec in wanted if _owns(spec, live.get(spec.key)))
    actions = []
    for spec in wanted:
        table = live.get(spec.key)
        if rivals[spec.key] > 1 and not (owners[spec.key] == 1 and _owns(spec, table)):
            note = (
                f"Several contracts want this table; one is {spec.parameter(CONTRACT)!r}. Rename one of them."
            )
            actions.append(_conflict(spec, table, note))
        else:
            actions.append(_decide(spec, table, terms))
    ours = 0
    if whole is not None:
        actions += orphans(live, rivals.keys(), applied, whole)
        ours = sum(is_ours(table.spec, whole.registry) for table in live.values())
    same = {action.key for action in actions if action.kind is ActionKind.NOOP}
    actions = linked(actions, {key: spec for key, spec in applied.items() if key not in rivals})
    # Of one that is as it should be, which most are in a large registry, the tables are not asked for.
    ordered = tuple(
        replace(action, before=None, after=None) if action.kind is ActionKind.NOOP else action
        for action in sorted(actions, key=lambda action: action.key)
    )
    return CatalogPlan(ordered, ours, frozenset(same - applied.keys()))


def together(parts: Iterable[CatalogPlan]) -> CatalogPlan:
    """One plan of those of several databases."""
    every = list(parts)
    actions = sorted((action for part in every for action in part.actions), key=lambda action: action.key)
    forgotten = frozenset(key for part in every for key in part.forgotten)
    return CatalogPlan(tuple(actions), sum(part.ours for part in every), forgotten)


@dataclass(frozen=True, slots=True)
class _PlanTerms:
    """What holds for every table of one plan."""

    applied: Mapping[Key, TableSpec]
    creates: frozenset[str]
    adopt: bool
    judge: SchemaJudge


def _decide(spec: TableSpec, live: LiveTable | None, terms: _PlanTerms) -> Action:
    last = terms.applied.get(spec.key)
    retired = spec.parameter(LIFECYCLE) == RETIRED
    if retired and not _owns(spec, live):
        note = "Its contract is retired, and there is no table of it." if live is None else _RETIRED
        return Action(ActionKind.HELD, spec.key, before=live, wanted=spec, note=note)
    if live is None:
        return _absent(spec, last, terms.creates)
    owner = live.spec.parameter(CONTRACT)
    if not live.spec.parameter(MANAGED_BY):
        # A writer that replaces all properties wipes our mark; the memory of the store tells.
        if last is not None and last.location in ("", live.spec.location):
            note = "Its dq properties are gone; " + _who(live)
            return _compare(ActionKind.DRIFT, spec, live, last, note, terms)
        return _nobodys(spec, live, terms)
    if owner != spec.parameter(CONTRACT):
        return _conflict(spec, live, f"It belongs to contract {owner!r}. Rename one of the two tables.")
    theirs = live.spec.parameter(REGISTRY)
    if theirs != spec.parameter(REGISTRY):
        return _conflict(spec, live, f"It belongs to the registry {theirs!r}. Register it from there.")
    if _other_writer(spec, live.spec):
        return _conflict(spec, live, _OTHER_WRITER.format(spec.format, live.spec.format))
    note = "Its contract is retired: the table stays, and says so." if retired else ""
    return _compare(None, spec, live, _base(spec, live, last), note, terms)


def _absent(spec: TableSpec, last: TableSpec | None, creates: frozenset[str]) -> Action:
    if spec.format == VIEW:
        note = "It is a view: who owns it has to create it; dq adds its own properties then."
        return Action(ActionKind.WAIT, spec.key, wanted=spec, note=note)
    if spec.format not in creates:
        note = f"Its {spec.format} writer has to create it; dq adds its own properties then."
        return Action(ActionKind.WAIT, spec.key, wanted=spec, note=note)
    note = "" if last is None else "dq created it before, and someone has removed it."
    return Action(ActionKind.CREATE, spec.key, after=spec, wanted=spec, note=note)


_RETIRED = "Its contract is retired, and the table is not ours."
_OTHER_WRITER = "The contract says {} and the table is {}. Mend the contract's format, or migrate the table."


def _other_writer(spec: TableSpec, live: TableSpec) -> bool:
    """Whether the format differs and one of the two is kept by its own writer: not ours to convert."""
    return spec.format != live.format and not OPEN_FORMATS.isdisjoint({spec.format, live.format})


def _nobodys(spec: TableSpec, live: LiveTable, terms: _PlanTerms) -> Action:
    if _other_writer(spec, live.spec):
        return _conflict(spec, live, _OTHER_WRITER.format(spec.format, live.spec.format))
    if not terms.adopt:
        return _conflict(spec, live, "It exists and dq did not make it. Take it over with --adopt.")
    action = _compare(ActionKind.ADOPT, spec, live, None, "", terms)
    if action.grade.rank > Grade.ADDITIVE.rank:
        note = "It exists, dq did not make it, and the contract does not fit it. Mend the contract."
        return Action(ActionKind.CONFLICT, spec.key, action.changes, live, wanted=spec, note=note)
    return action


def _base(spec: TableSpec, live: LiveTable, last: TableSpec | None) -> TableSpec | None:
    """What dq last made of the table, if that can be known: the table's own mark names its digest."""
    mark = live.spec.parameter(SPEC_HASH)
    return next((one for one in (spec, last) if one and one.parameter(SPEC_HASH) == mark), None)


def _compare(
    kind: ActionKind | None,
    spec: TableSpec,
    live: LiveTable,
    base: TableSpec | None,
    note: str,
    terms: _PlanTerms,
) -> Action:
    found = changes(live.spec, spec, base, terms.judge, terms.creates)
    drift = any(change.drift for change in found)
    if kind is None:
        touches = any(not change.kept for change in found)
        kind = ActionKind.DRIFT if drift else ActionKind.UPDATE if touches else ActionKind.NOOP
    if kind is ActionKind.DRIFT and not note:
        note = _who(live)
    after = merged(live.spec, spec, found, terms.creates)
    return Action(kind, spec.key, found, live, after, spec, note)


def _who(live: LiveTable) -> str:
    present = dict(live.spec.parameters)
    when = f" at {live.updated.astimezone(UTC):%Y-%m-%d %H:%M} UTC" if live.updated else ""
    writers = sorted({writer for key, writer in _WRITERS.items() if key in present})
    # An open table always carries its writer's properties: they accuse nobody.
    if not writers or live.spec.format in OPEN_FORMATS:
        return f"someone else changed it{when}."
    return f"someone else changed it{when}; {' and '.join(writers)} was here."


def _conflict(spec: TableSpec, live: LiveTable | None, note: str) -> Action:
    return Action(ActionKind.CONFLICT, spec.key, before=live, wanted=spec, note=note)


def _owns(spec: TableSpec, live: LiveTable | None) -> bool:
    """Whether the table was made for this contract and major, whoever else wants it too."""
    return (
        live is not None
        and live.spec.parameter(REGISTRY) == spec.parameter(REGISTRY)
        and _identity(live.spec) == _identity(spec)
    )


def _identity(spec: TableSpec) -> tuple[str, str]:
    return identity(spec.parameter(CONTRACT), spec.parameter(CONTRACT_VERSION))


# A plan as lines for a reader, marked + (new), ~ (changed), - (removed) and ! (look here).

# The digest of the contract's table differs, and nothing that the catalog has of it.
_UNSEEN = "~ dq's own mark alone: what changed in the contract, e.g. the order of columns, is not kept here"

_MARKS = {
    ActionKind.CREATE: "+",
    ActionKind.UPDATE: "~",
    ActionKind.ADOPT: "~",
    ActionKind.DRIFT: "!",
    ActionKind.CONFLICT: "!",
    ActionKind.ORPHAN: "-",
    ActionKind.WAIT: " ",
    ActionKind.HELD: " ",
}
# They follow from the rest; showing them would only be noise.
_BOOKKEEPING = (SPEC_HASH, OWNED_KEYS)
_SHOWN = 120
# So many lines of one table are read.
_MOST_LINES = 40


def render(plan: CatalogPlan) -> list[str]:
    """The plan's lines: each table that is not as it should be, its changes indented, and the counts."""
    lines = [
        line for action in plan.actions if action.kind is not ActionKind.NOOP for line in _action(action)
    ]
    counts = Counter(action.kind for action in plan.actions)
    said = ", ".join(f"{counts[kind]} {kind}" for kind in ActionKind if counts[kind])
    tables = "1 table" if len(plan.actions) == 1 else f"{len(plan.actions)} tables"
    return [*lines, f"{tables}: {said or 'nothing to do'}."]


def _action(action: Action) -> Iterator[str]:
    database, name = action.key
    grade = f" ({action.grade})" if action.writes else ""
    note = f": {action.note}" if action.note else ""
    yield f"{_MARKS[action.kind]} {action.kind} {database}.{name}{grade}{note}"
    yield from (f"    {line}" for line in change_lines(action))


def change_lines(action: Action) -> Iterator[str]:
    """What is made or changed of one table, a line for each part; of very many, the gravest."""
    lines = list(_created(action.after)) if action.kind is ActionKind.CREATE and action.after else []
    changes = [change for change in action.changes if change.name not in _BOOKKEEPING]
    if len(changes) > _MOST_LINES:
        changes.sort(key=lambda change: (change.kept, -change.grade.rank))
    lines += [_change(change) for change in changes]
    if action.changes and not lines:
        lines.append(_UNSEEN)
    yield from lines[:_MOST_LINES]
    if len(lines) > _MOST_LINES:
        yield f"… and {len(lines) - _MOST_LINES:,} more"


def _created(spec: TableSpec) -> Iterator[str]:
    yield f"+ {spec.format} at {spec.location or 'a place that the catalog chooses'}"
    for name, text in spec.reader:
        yield f"+ reader's {name}: {text!r}"
    for column in spec.columns:
        yield f"+ column {column.name}: {_cut(column.type)}"
    for column in spec.partitions:
        yield f"+ partition key {column.name}: {column.type}"


def _change(change: TableChange) -> str:
    mark = "+" if change.before is None else "-" if change.after is None else "~"
    what = f"{change.field} {change.name}".rstrip()
    if change.kept and change.field is ChangedField.NULLS:
        return f"! {what}: {_shown(change.before)}, and no table can forbid them once it has rows"
    if change.kept:
        return f"! {what}: {_shown(change.before)} is not in the contract and is left alone"
    told = " -> ".join(_shown(text) for text in (change.before, change.after) if text is not None)
    # A changed nested type reads best with only the two texts; the grade tells how grave it is.
    grade = (
        ""
        if change.field in (ChangedField.PARAMETER, ChangedField.COMMENT, ChangedField.DESCRIPTION)
        else f" [{change.grade}{f': {change.rule}' if change.rule else ''}]"
    )
    drift = " (changed by someone else)" if change.drift else ""
    return f"{mark} {what}: {told}{grade}{drift}"


def _shown(text: str | None) -> str:
    return repr(text if text is None else _cut(text))


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"


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
    here = {"catalog": catalog, "database_name": key[0], "name": key[1]}
    keep_row(store, catalog_applied, here, None if spec is None else {"spec": spec.as_json()})


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
# The columns of the log that a line has under the same name.
_TEXTS = ("kind", "grade", "ending", "before", "after", "error")


def latest(store: Store, catalog: str, most: int) -> list[Logged]:
    """The last lines about a catalog, oldest first: of what has ended, how; of the rest, that it began."""
    return _lines(store, catalog, most)


def _add(store: Store, line: Logged) -> None:
    database, name = line.key
    run = {"run_id": line.run.id, "at": line.run.at, "registry": line.run.registry}
    table = {"catalog": line.catalog, "database_name": database, "name": name}
    row = {**run, **table, **{column: getattr(line, column) for column in _TEXTS}}
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
            *(getattr(row, column) for column in _TEXTS),
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
    parts = []
    # Where all contracts of a database are gone, only the memory knows that it was ours.
    for database in sorted(by_database.keys() | (known if whole else ())):
        tables = by_database.get(database, [])
        if whole:
            live = {table.spec.key: table for table in catalog.tables(database)}
        else:
            live = {spec.key: table for spec in tables if (table := catalog.read(*spec.key)) is not None}
        applied = recall(store, catalog.id, database, None if whole else {spec.name for spec in tables})
        formats = catalog.formats
        parts.append(plan(tables, live, applied, creates=formats, adopt=adopt, whole=whole, judge=judge))
    made = together(parts)
    made = replace(made, actions=tuple(_possible(catalog, action) for action in made.actions))
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


def _possible(catalog: Catalog, action: Action) -> Action:
    """The action, or a conflict where the catalog cannot do it, whatever is allowed."""
    found = tuple(catalog.obstacles(action)) if action.writes and action.before and action.after else ()
    if not found:
        return action
    why = " ".join(one.why for one in found)
    return replace(action, kind=ActionKind.CONFLICT, after=None, note=why, obstacles=found)


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
    changer = _Changer(catalog, store, run)
    if run is not None:
        changer.complete_log()
    results: dict[int, Result] = {}
    for number, action in sorted(enumerate(made.actions), key=lambda one: one[1].kind is ActionKind.ORPHAN):
        if action.kind is not ActionKind.ORPHAN:
            result = changer.change(action, allow)
        elif not prune:
            result = Result(action, Ending.UNCHANGED)
        elif all(one.error is None or one.action.kind is ActionKind.ORPHAN for one in results.values()):
            result = changer.change(action, frozenset(Grade))
        else:
            # What should take its place may be just what was refused.
            message = f"{_name(action)}: it stays, because another change was refused or failed."
            result = Result(action, Ending.REFUSED, DqError(message, "Mend that, then prune again."))
        results[number] = result
        if result.ending is not Ending.UNCHANGED:
            changer.log(action, result.ending, str(result.error or ""))
        if action.key in made.forgotten:
            # A kill came between making it and noting so.
            remember(store, catalog.id, action.key, action.wanted)
    return [results[number] for number in sorted(results)]


@dataclass(frozen=True, slots=True)
class _Changer:
    """Changes tables of a catalog, and notes what it does: in the log only as a `run`."""

    catalog: Catalog
    store: Store
    run: RegisterRun | None

    def log(self, action: Action, ending: str, error: str = "") -> None:
        if self.run is not None:
            before = action.before.version if action.before else ""
            after = action.after.parameter(SPEC_HASH) if action.after else ""
            texts = (action.kind.value, action.grade.value, ending, before, after, error)
            _add(self.store, Logged(self.run, self.catalog.id, action.key, *texts))

    def complete_log(self) -> None:
        """Adds the lines that earlier runs could not write any more."""
        for line in _lines(self.store, self.catalog.id, only_begun=True):
            live = self.catalog.read(*line.key)
            done = (live.spec.parameter(SPEC_HASH) if live else "") == line.after
            ending = Ending.DONE if done else Ending.FAILED
            _add(self.store, replace(line, ending=ending, error=_CUT_OFF))

    def change(self, action: Action, allow: frozenset[Grade]) -> Result:
        """Does what the action says, and notes it."""
        if action.kind is ActionKind.CONFLICT:
            return Result(action, Ending.REFUSED, DqError(f"{_name(action)}: {action.note}"))
        if not action.writes:
            return Result(action, Ending.UNCHANGED)
        refusal = _refusal(action, allow)
        if refusal is not None:
            return Result(action, Ending.REFUSED, refusal)
        # Before the table is written: a kill in between must not lose that it was.
        self.log(action, BEGUN)
        ending = Ending.DONE
        try:
            self.catalog.apply(action)
        except StalePlan as error:
            if not _arrived(self.catalog, action):
                return Result(action, Ending.FAILED, error)
            # Another run made the same change: it is that run's.
            ending = Ending.UNCHANGED
        except DqError as error:
            return Result(action, Ending.FAILED, error)
        remember(self.store, self.catalog.id, action.key, action.wanted)
        if ending is Ending.UNCHANGED:
            self.log(action, ending)
        return Result(action, ending)


def _refusal(action: Action, allow: frozenset[Grade]) -> DqError | None:
    needed = {change.grade for change in action.changes if not change.kept} & _FLAGS.keys() - allow
    if not needed:
        return None
    gravest = max(needed, key=lambda grade: grade.rank)
    said = ", ".join(
        f"{change.field} {change.name}".rstrip() for change in action.changes if change.grade in needed
    )
    message = f"{_name(action)}: {gravest} changes need your word ({said})."
    mend = "Make a new major version of the contract with a table of its own, or apply"
    if all(change.drift for change in action.changes if change.grade in needed and not change.kept):
        # The contract is as it was: no version of it would help.
        mend = "Ask who changed the table, then put it back"
        return DqError(message, f"{mend} with {_FLAGS[gravest]}, or change the contract.")
    return DqError(message, f"{mend} with {_FLAGS[gravest]}.")


def _arrived(catalog: Catalog, action: Action) -> bool:
    """Whether another process has just made the same change: nothing is left to do."""
    live = catalog.read(*action.key)
    if live is None or action.after is None:
        return live is None and action.after is None
    return all(change.kept for change in changes(live.spec, action.after, None, own=catalog.formats))


def _name(action: Action) -> str:
    return ".".join(action.key)
