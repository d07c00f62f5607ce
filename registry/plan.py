"""What has to be done so that the catalog is as the contracts say; pure, nothing is read or written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field, replace
from datetime import UTC

from dq.contracts.model import identity
from dq.registry.diff import (
    Action,
    ActionKind,
    CatalogPlan,
    ChangedField,
    Grade,
    LiveTable,
    SchemaJudge,
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
)

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
    actions = [
        _twin(spec, live.get(spec.key))
        if rivals[spec.key] > 1 and not (owners[spec.key] == 1 and _owns(spec, live.get(spec.key)))
        else _decide(spec, live.get(spec.key), terms)
        for spec in wanted
    ]
    ours = 0
    if whole is not None:
        actions += orphans(live, {spec.key for spec in wanted}, applied, whole)
        ours = sum(is_ours(table.spec, whole.registry) for table in live.values())
    same = {action.key for action in actions if action.kind is ActionKind.NOOP}
    keys = {spec.key for spec in wanted}
    actions = linked(actions, {key: spec for key, spec in applied.items() if key not in keys})
    ordered = tuple(_light(action) for action in sorted(actions, key=lambda action: action.key))
    return CatalogPlan(ordered, ours, frozenset(same - applied.keys()))


def together(parts: Iterable[CatalogPlan]) -> CatalogPlan:
    """One plan of those of several databases."""
    every = list(parts)
    actions = [action for part in every for action in part.actions]
    ordered = tuple(sorted(actions, key=lambda action: action.key))
    forgotten = frozenset(key for part in every for key in part.forgotten)
    return CatalogPlan(ordered, sum(part.ours for part in every), forgotten)


def _light(action: Action) -> Action:
    """Without the tables of one that is as it should be: of most, in a large registry, no more is asked."""
    return replace(action, before=None, after=None) if action.kind is ActionKind.NOOP else action


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


def _conflict(spec: TableSpec, live: LiveTable, note: str) -> Action:
    return Action(ActionKind.CONFLICT, spec.key, before=live, wanted=spec, note=note)


def _twin(spec: TableSpec, live: LiveTable | None) -> Action:
    note = f"Several contracts want this table; one is {spec.parameter(CONTRACT)!r}. Rename one of them."
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
