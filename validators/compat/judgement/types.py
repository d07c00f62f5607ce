"""What a change of a column's type means to those who read it and to files that are already written."""

from __future__ import annotations

import math

from dq.contracts.diff.canonical import Physical
from dq.contracts.diff.element import Change, Motion
from dq.contracts.diff.formats import STRUCTURES
from dq.contracts.types import DataType
from dq.validators.compat.judgement.matrix import narrows, readable
from dq.validators.compat.judgement.setting import Setting
from dq.validators.compat.judgement.words import (
    Bump,
    Effect,
    Judgement,
    Level,
    neutral,
    replace,
    strengthen,
    weaken,
)

_TEXT = frozenset({"string", "varchar", "char"})
_HARM = {Effect.NEUTRAL: 0, Effect.STRENGTHEN: 1, Effect.WEAKEN: 1, Effect.REPLACE: 2, Effect.POLICY: 2}


def physical(change: Change, setting: Setting) -> Judgement:
    """A change of physicalType, by the format's and the engines' own rules."""
    before, after = change.before, change.after
    if change.action is Motion.ADDED:
        return strengthen("type-declared", Level.INFO)
    if change.action is Motion.REMOVED:
        return weaken("type-undeclared", Level.WARN)
    if not isinstance(before, Physical) or not isinstance(after, Physical):
        return replace("type-changed")
    if before.type is None or after.type is None:
        return _elsewhere(change, setting, replace("type-changed", note="dq does not know this type."))
    if before.type == after.type:
        return neutral("type-alias", Bump.PATCH)
    element = change.old or change.new
    format_ = setting.format_of(element.object_name if element else "")
    return _elsewhere(change, setting, _types(before.type, after.type, format_, setting))


def _types(before: DataType, after: DataType, format_: str, setting: Setting) -> Judgement:
    if before == after:
        return neutral("type-alias", Bump.PATCH)
    if before.name == after.name and before.parts:
        return _nested(before, after, format_, setting)
    if before.name in _TEXT and after.name in _TEXT:
        return _length(before, after)
    if narrows(before, after):
        return replace("type-narrowed", note=f"{before} does not fit into {after}.")
    found = readable(before, after, format_, setting.engines)
    if not found.yes:
        note = f"{found.reader or format_} cannot read {before} as {after} ({found.source})."
        return replace("type-changed", note=note)._replace(engine=found.reader)
    # A table format hands every reader the current type. Where files speak for themselves, a reader that
    # still expects the old type meets files that are wider than it can take.
    shared = STRUCTURES[format_].shared if format_ in STRUCTURES else False
    return weaken("type-widened", Level.WARN if shared else Level.ERROR)


def _length(before: DataType, after: DataType) -> Judgement:
    first, second = (one.numbers[0] if one.numbers else math.inf for one in (before, after))
    if first == second:
        return replace("type-changed", note="char pads its values, varchar does not.")
    if second > first:
        return weaken("type-length-increased", Level.WARN)
    return strengthen("type-length-decreased")


def _nested(before: DataType, after: DataType, format_: str, setting: Setting) -> Judgement:
    """The worst of the parts. The key of a map may not change at all."""
    if before.name == "map" and before.parts[0] != after.parts[0]:
        return replace("type-changed", note="The key of a map cannot change its type in any format.")
    parts = zip(before.parts, after.parts, strict=False)
    found = [_types(first, second, format_, setting) for first, second in parts if first != second]
    if before.name == "struct":
        found += _fields(before, after)
    return max(found, key=lambda one: (_HARM[one.effect], one.level is Level.ERROR))


def _fields(before: DataType, after: DataType) -> list[Judgement]:
    shared = min(len(before.names), len(after.names))
    if before.names[:shared] != after.names[:shared]:
        return [replace("type-changed", note="Fields of the struct changed their name or place.")]
    if len(after.names) > shared:
        return [neutral("column-added-optional")]
    return [weaken("column-removed")] if len(before.names) > shared else [neutral("type-alias", Bump.PATCH)]


def _elsewhere(change: Change, setting: Setting, judged: Judgement) -> Judgement:
    """The same judgement where the column's place makes it another one: a partition key, a reused name."""
    if judged.effect is Effect.NEUTRAL or judged.rule.startswith("type-length"):
        return judged
    if is_partition_key(change, setting):
        return replace("partition-type-changed", note=judged.note)
    if reused(change):
        return replace("column-name-reused", note="Another column had this name before: its id differs.")
    return judged


def reused(change: Change) -> bool:
    """Whether the two columns share a name but not their ids."""
    if change.old is None or change.new is None:
        return False
    first, second = dict(change.old.keys).get("id"), dict(change.new.keys).get("id")
    return bool(first) and bool(second) and first != second


def is_partition_key(change: Change, setting: Setting) -> bool:
    """Whether the changed column is one that the data was laid out by."""
    if setting.before is None or change.old is None:
        return False
    for one in setting.before.parts:
        partition = one.normal("partition")
        if one.object_name == change.old.object_name and isinstance(partition, tuple):
            path = change.old.path.removeprefix(f"{one.column}.")
            return any(path == name for name, _ in partition)
    return False


def logical(change: Change, setting: Setting) -> Judgement:
    """A change of logicalType; where physical types stand on both sides, they say what can be read."""
    if change.action is Motion.ADDED:
        return strengthen("type-declared", Level.INFO)
    if change.action is Motion.REMOVED:
        return weaken("type-undeclared", Level.WARN)
    pair = (change.before, change.after)
    if pair == ("integer", "number"):
        return _elsewhere(change, setting, weaken("type-generalized"))
    if pair == ("number", "integer"):
        return _elsewhere(change, setting, strengthen("type-specialized"))
    if (pair == ("date", "timestamp") or change.after == "string") and _carried(change, setting):
        return _elsewhere(change, setting, weaken("type-generalized"))
    return _elsewhere(change, setting, replace("type-changed"))


def _carried(change: Change, setting: Setting) -> bool:
    """Whether the physical types on both sides make the exchange readable."""
    before = change.old.normal("physicalType") if change.old else None
    after = change.new.normal("physicalType") if change.new else None
    if not isinstance(before, Physical) or not isinstance(after, Physical):
        return False
    if before.type is None or after.type is None or change.old is None:
        return False
    if before.type == after.type:
        return True
    format_ = setting.format_of(change.old.object_name)
    return readable(before.type, after.type, format_, setting.engines).yes
