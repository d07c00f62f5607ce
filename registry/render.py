"""A plan as lines for a reader, marked + (new), ~ (changed), - (removed) and ! (look here)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from dq.registry.action import Action, ActionKind, CatalogPlan, ChangedField, TableChange
from dq.registry.table import OWNED_KEYS, SPEC_HASH, TableSpec

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
