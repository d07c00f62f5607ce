"""A table that takes the place of another: the same object of the same contract under a new name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import replace

from dq.registry.action import Action, ActionKind
from dq.registry.table import CONTRACT, OBJECT, REGISTRY, Key, TableSpec


def linked(actions: Iterable[Action], wanted: Set[Key], applied: Mapping[Key, TableSpec]) -> list[Action]:
    """The actions; a table to be made, and the one whose place it takes, name each other.

    They belong together when both are of one object of one contract, or of one contract at one place, and
    there is no other such pair. `applied` is what dq remembers: without a listing of the catalog it alone
    knows the old one.
    """
    every = list(actions)
    old = {key: spec for key, spec in applied.items() if key not in wanted}
    for action in every:
        if action.kind is ActionKind.ORPHAN and action.before is not None:
            old[action.key] = action.before.spec
    made = [one for one in every if one.kind is ActionKind.CREATE and one.wanted is not None]
    pairs: dict[Key, Key] = {}
    for one in made:
        assert one.wanted is not None
        was = [key for key, spec in old.items() if _same_data(spec, one.wanted)]
        rivals = [
            other
            for other in made
            if other.wanted and len(was) == 1 and _same_data(old[was[0]], other.wanted)
        ]
        if len(was) == 1 and len(rivals) == 1:
            pairs[one.key] = was[0]
    new = {before: after for after, before in pairs.items()}
    return [_noted(one, pairs, new) for one in every]


def _noted(action: Action, before: Mapping[Key, Key], after: Mapping[Key, Key]) -> Action:
    if action.kind is ActionKind.CREATE and action.key in before:
        said = f"It takes the place of {'.'.join(before[action.key])}, which stays until it is pruned."
    elif action.kind is ActionKind.ORPHAN and action.key in after:
        said = f"{'.'.join(after[action.key])} takes its place."
    else:
        return action
    return replace(action, note=f"{action.note} {said}".strip())


def _same_data(old: TableSpec, new: TableSpec) -> bool:
    if any(old.parameter(key) != new.parameter(key) for key in (REGISTRY, CONTRACT)):
        return False
    same_object = bool(old.parameter(OBJECT)) and old.parameter(OBJECT) == new.parameter(OBJECT)
    return same_object or (bool(old.location) and old.location == new.location)
