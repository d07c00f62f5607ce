"""A table that takes the place of another: the same object of the same contract under a new name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from dq.registry.action import Action, ActionKind
from dq.registry.table import CONTRACT, OBJECT, REGISTRY, Key, TableSpec

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
