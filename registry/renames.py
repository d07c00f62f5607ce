"""A table that takes the place of another: the same object of the same contract under a new name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from dq.registry.action import Action, ActionKind
from dq.registry.table import CONTRACT, OBJECT, REGISTRY, Key, TableSpec


def linked(actions: Iterable[Action], forgone: Mapping[Key, TableSpec]) -> list[Action]:
    """The actions; a table to be made, and the one whose place it takes, name each other.

    They belong together when both are of one object of one contract, or of one contract at one place, and
    there is no other such pair. `forgone` is what dq remembers and nobody wants now: without a listing of
    the catalog it alone knows the old one.
    """
    every = list(actions)
    old: dict[tuple[str, str], dict[Key, TableSpec]] = {}
    left = {one.key: one.before.spec for one in every if one.kind is ActionKind.ORPHAN and one.before}
    for key, spec in {**forgone, **left}.items():
        old.setdefault(_contract(spec), {})[key] = spec
    made: dict[tuple[str, str], list[TableSpec]] = {}
    for one in every:
        if one.kind is ActionKind.CREATE and one.wanted is not None:
            made.setdefault(_contract(one.wanted), []).append(one.wanted)
    pairs: dict[Key, Key] = {}
    for contract, specs in made.items():
        gone = old.get(contract, {})
        for spec in specs if gone else ():
            was = [key for key, before in gone.items() if _same_data(before, spec)]
            rivals = [other for other in specs if len(was) == 1 and _same_data(gone[was[0]], other)]
            if len(was) == 1 and len(rivals) == 1:
                pairs[spec.key] = was[0]
    new = {before: after for after, before in pairs.items()}
    return [_noted(one, pairs, new) for one in every]


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
