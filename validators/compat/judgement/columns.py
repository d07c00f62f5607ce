"""What it means when columns and tables come, go, move or change their name."""

from __future__ import annotations

from datetime import date, timedelta

from dq.contracts.diff.element import Change, FlatElement, Motion
from dq.contracts.diff.level import date_of
from dq.validators.compat.judgement.setting import Setting
from dq.validators.compat.judgement.words import Judgement, Level, neutral, replace, strengthen, weaken

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
