"""What has to be done so that the catalog is as the contracts say; pure, nothing is read or written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC

from dq.contracts.identity import identity
from dq.registry.action import Action, ActionKind, CatalogPlan, Grade, LiveTable, SchemaJudge
from dq.registry.diff import breaking, changes, merged
from dq.registry.orphans import WholeRegistry, is_ours, orphans
from dq.registry.renames import linked
from dq.registry.table import (
    CONTRACT,
    CONTRACT_VERSION,
    LIFECYCLE,
    MANAGED_BY,
    OPEN_FORMATS,
    REGISTRY,
    RETIRED,
    SPEC_HASH,
    VIEW,
    Key,
    TableSpec,
)

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
