"""What it means when columns, their types and the partition change."""

from __future__ import annotations

import math
import re
from datetime import date, timedelta

from dq.contracts.diff.element import Change, FlatElement, Motion, Physical
from dq.contracts.diff.promises import date_of
from dq.contracts.types import HIDDEN, HIDDEN_V1, STRUCTURES, DataType
from dq.validators.compat.classification.model import (
    Bump,
    Effect,
    Judgement,
    Level,
    Setting,
    narrows,
    neutral,
    readable,
    replace,
    strengthen,
    weaken,
)

# What it means when columns and tables come, go, move or change their name.

_PARTS = ("[]", "{key}", "{}")


def presence(change: Change, setting: Setting) -> Judgement:
    """A column that came, went, or went to another level."""
    if change.action is Motion.MOVED:
        return replace("column-moved", note="No table format moves a column into or out of a struct.")
    if change.action is Motion.ADDED and change.new is not None:
        return _added(change, change.new, setting)
    assert change.old is not None
    return _removed(change, change.old, setting)


def _added(change: Change, new: FlatElement, setting: Setting) -> Judgement:
    if new.column in _PARTS:
        return strengthen("type-declared", Level.INFO)
    row = setting.structure_of(new)
    if change.facts.get("reused"):
        return replace("column-name-reused", note="Another column had this name before.")
    if change.facts.get("middle") and not row.add_middle:
        return replace("column-added-middle", note=f"Columns are found by position ({row.source}).")
    if new.normal("required") is None:
        return neutral("column-added-optional")
    if new.normal("customProperties.default") is None:
        return strengthen("column-added-required")
    if row.defaults:
        return neutral("column-added-defaulted")
    format_ = setting.format_of(new.object_name)
    return strengthen("column-added-required", note=f"{format_} does not fill a default into old rows.")


def _removed(change: Change, old: FlatElement, setting: Setting) -> Judgement:
    if old.column in _PARTS:
        return weaken("type-undeclared", Level.WARN)
    row = setting.structure_of(old)
    hint = change.facts.get("hint")
    note = f"It looks like a rename to {hint!r}: give both the same id." if hint else ""
    rule = "column-removed"
    since = _deprecated_since(old, setting)
    if since is not None:
        waited = since + timedelta(days=setting.notice_days) <= setting.today
        rule = "column-removed-deprecated" if waited else rule
        kept = "at least" if waited else "less than"
        note = f"It is deprecated since {since}, {kept} {setting.notice_days} days ago."
    if row.remove:
        return weaken(rule, note=note)
    return replace(rule, note=f"{note} Columns behind it shift ({row.source}).".strip())


def _deprecated_since(old: FlatElement, setting: Setting) -> date | None:
    if old.normal("deprecated") is None:
        return None
    shown = old.shown("customProperties.deprecatedSince")
    written = date_of(str(shown)) if shown is not None else None
    return setting.deprecated_since.get(old.path, written)


def renamed(change: Change, setting: Setting) -> Judgement:
    """A column under another name in the data."""
    if str(change.before).lower() == str(change.after).lower():
        return replace("column-case-changed", Level.WARN)
    assert change.old is not None
    row = setting.structure_of(change.old)
    if row.rename:
        return weaken("column-renamed", note="Old queries name the old column; its data stays readable.")
    return replace("column-renamed", note=f"Old files are read as null ({row.source}).")


def ordered(change: Change, setting: Setting) -> Judgement:
    """The same columns in another order."""
    element = change.new or change.old
    assert element is not None
    children = element.parts[0] if element.parts else element
    row = setting.structure_of(children)
    if row.reorder:
        return neutral("column-reordered")
    return replace("column-reordered", note=f"Columns are found by position ({row.source}).")


def table_presence(change: Change, _: Setting) -> Judgement:
    """A table that came or went."""
    if change.action is Motion.ADDED:
        return neutral("table-added")
    hint = change.facts.get("hint")
    return weaken("table-removed", note=f"It looks like a rename to {hint!r}." if hint else "")


def table_renamed(change: Change, _: Setting) -> Judgement:
    """A table under another name in the catalog."""
    same = str(change.before).lower() == str(change.after).lower()
    return replace("table-renamed", Level.WARN if same else Level.ERROR)


# What a change of a column's type means to those who read it and to files that are already written.

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


# What a change of the partition means: a new layout for files in folders, little for hidden partitions.

_PART_OF_TIME = re.compile(
    r"(^|_)(year|month|week|day|date|dt|ds|hour|minute|hh|mm|yyyy|dd)s?(_|$)", re.IGNORECASE
)

Keys = tuple[tuple[str, str], ...]


def partition(change: Change, setting: Setting) -> Judgement:
    """The keys by which the data is laid out, each with its transform where it has one."""
    rule = _rule(_keys(change.before), _keys(change.after))
    row = STRUCTURES.get(setting.format_of(change.object_name))
    kind = row.partition if row else ""
    if kind == HIDDEN or (kind == HIDDEN_V1 and rule == "partition-added"):
        return neutral(rule, note="Old and new partitions coexist, and queries do not name them.")
    if kind == HIDDEN_V1:
        return replace(rule, Level.WARN, "Iceberg v1 should not reorder or drop partition fields.")
    return replace(rule, note="Paths and filters change, and the table is laid out anew.")


def _keys(value: object) -> Keys:
    return value if isinstance(value, tuple) else ()


def _rule(before: Keys, after: Keys) -> str:
    first, second = [name for name, _ in before], [name for name, _ in after]
    came, went = [one for one in second if one not in first], [one for one in first if one not in second]
    if came or went:
        # Days that are split into hours are the same time at another grain, not a new dimension.
        finer = all(_PART_OF_TIME.search(one) for one in (*came, *went))
        timed = any(_PART_OF_TIME.search(one) for one in first) and any(
            _PART_OF_TIME.search(one) for one in second
        )
        if finer and timed:
            return "partition-granularity-changed"
        return "partition-removed" if went else "partition-added"
    return "partition-reordered" if first != second else "partition-granularity-changed"


def grain(change: Change, setting: Setting) -> Judgement:
    """The format of a partition column says how fine the partitions are."""
    row = STRUCTURES.get(setting.format_of(change.object_name))
    rule = "partition-granularity-changed"
    return neutral(rule) if row and row.partition == HIDDEN else replace(rule)
