"""What differs between a live table and the wanted one, by three-way comparison with the last applied."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from dq.contracts.diff.formats import STRUCTURES, profile
from dq.registry.action import ChangedField, Grade, SchemaJudge, TableChange
from dq.registry.table import LIFECYCLE, OPEN_FORMATS, OWNED_KEYS, RETIRED, TableColumn, TableSpec

Formats = frozenset[str]

_TERMS = frozenset({"delimiter", "quote", "escape", "header", "encoding", "null_text"})
FORMAT_RULE = "server-format-changed"
"""What `dq diff` calls a change of how the files are written."""


REQUIRED_RULE = "required-removed"
"""What `dq diff` calls it when a column may be without a value."""


def is_positional(format: str) -> bool:
    """Whether readers find the columns of this format by their position, so that the order is the schema."""
    row = STRUCTURES.get(profile(format))
    return row is not None and not row.reorder


def breaking(live: TableSpec, wanted: TableSpec) -> dict[str, tuple[Grade, str]]:
    """The judge who knows no more than that a new column hurts nobody, and every other change may."""
    grades: dict[str, tuple[Grade, str]] = {}
    for column in (*live.columns, *wanted.columns):
        before, after = live.column(column.name), wanted.column(column.name)
        if before is None or after is None or before.type != after.type:
            grades[column.name] = (Grade.ADDITIVE if before is None else Grade.BREAKING), ""
    return grades


def changes(
    live: TableSpec,
    wanted: TableSpec,
    base: TableSpec | None,
    judge: SchemaJudge = breaking,
    own: Formats = frozenset(),
) -> tuple[TableChange, ...]:
    """How the live table must change to be the wanted one; `base` is what dq last applied, if known.

    `own` are the formats whose tables the catalog makes: of other lakehouse tables only our properties are
    ours.

    What is in neither `wanted` nor `base` belongs to someone else: parameters are not mentioned, columns
    are shown as kept. An empty text in the contract says nothing about a text that someone else wrote.
    """
    found: list[TableChange] = []
    if not only_properties(wanted, own):
        found += _shape(live, wanted, base)
        found += _reader(live, wanted, base)
        found += _columns(live, wanted, base, judge)
        found += _nulls(live, wanted, base)
        found += _comments(live, wanted, base)
    was = None if base is None else base.description
    if _says(wanted.description, live.description, was):
        drift = was is not None and was != live.description
        before, after = live.description or None, wanted.description or None
        found.append(TableChange(ChangedField.DESCRIPTION, "", before, after, Grade.METADATA, drift))
    found += _parameters(live, wanted, base)
    return tuple(found)


def merged(
    live: TableSpec, wanted: TableSpec, found: tuple[TableChange, ...], own: Formats = frozenset()
) -> TableSpec:
    """The table after the changes: the wanted one, with what belongs to others."""
    texts = {(change.field, change.name) for change in found}
    description = wanted.description if (ChangedField.DESCRIPTION, "") in texts else live.description
    parameters = dict(live.parameters)
    for change in found:
        if change.field is ChangedField.PARAMETER:
            parameters.pop(change.name, None)
            if change.after is not None:
                parameters[change.name] = change.after
    pairs = tuple(sorted(parameters.items()))
    if only_properties(wanted, own):
        return replace(live, description=description, parameters=pairs)
    gone = {change.name for change in found if change.field is ChangedField.COLUMN and change.after is None}
    kept = {change.name for change in found if change.kept}
    by_name = {column.name: column for column in wanted.columns}
    gone |= {column.name for column in wanted.partitions}
    names = [column.name for column in live.columns if column.name not in gone - kept]
    names += [column.name for column in wanted.columns if column.name not in names]
    if (ChangedField.ORDER, "") in texts:
        names = [column.name for column in wanted.columns] + [name for name in names if name not in by_name]
    columns = tuple(
        _text(by_name.get(name), live.column(name), (ChangedField.COMMENT, name) in texts) for name in names
    )
    # A key's comment is written with the table and then left alone: Hive cannot change it later.
    replaced = (ChangedField.PARTITIONS, "") in texts or (ChangedField.FORMAT, "") in texts
    return replace(
        wanted,
        location=wanted.location or live.location,
        columns=columns,
        partitions=wanted.partitions if replaced else live.partitions,
        description=description,
        parameters=pairs,
    )


def _text(wanted: TableColumn | None, live: TableColumn | None, changed: bool) -> TableColumn:
    """The wanted column, with the live comment where that is to stay."""
    if wanted is None or live is None:
        made = wanted or live
        assert made is not None
        return made
    return wanted if changed else replace(wanted, comment=live.comment)


def _shape(live: TableSpec, wanted: TableSpec, base: TableSpec | None) -> Iterator[TableChange]:
    """What makes it another table: place, format, partition keys."""
    pairs = (
        (ChangedField.LOCATION, live.location, wanted.location, base.location if base else None),
        (ChangedField.FORMAT, live.format, wanted.format, base.format if base else None),
        (ChangedField.PARTITIONS, _keys(live), _keys(wanted), _keys(base) if base else None),
    )
    for field, is_, should, was in pairs:
        # A contract that leaves the place to the catalog agrees with any.
        if is_ != should and not (field is ChangedField.LOCATION and not should):
            drift = was is not None and was != is_
            yield TableChange(field, "", is_, should, Grade.DESTRUCTIVE, drift)


def _reader(live: TableSpec, wanted: TableSpec, base: TableSpec | None) -> Iterator[TableChange]:
    """How texts are read. What only the catalog's own words for the same terms are harms nobody."""
    if live.format != wanted.format:
        return
    is_, should = dict(live.reader), dict(wanted.reader)
    was = dict(base.reader) if base else None
    for name in sorted({*is_, *should}):
        before, after = is_.get(name), should.get(name)
        if before != after:
            term = name in _TERMS
            drift = was is not None and was.get(name) != before
            grade, rule = (Grade.BREAKING, FORMAT_RULE) if term else (Grade.METADATA, "")
            yield TableChange(ChangedField.READER, name, before, after, grade, drift, rule=rule)
    for column in wanted.columns:
        there = live.column(column.name)
        if there is not None and there.spelled != column.spelled:
            before, after = there.spelled or None, column.spelled or None
            yield TableChange(ChangedField.SPELLING, column.name, before, after, Grade.ADDITIVE)


def _keys(spec: TableSpec) -> str:
    return ", ".join(f"{column.name} {column.type}" for column in spec.partitions)


def only_properties(wanted: TableSpec, own: Formats) -> bool:
    """Whether only our properties are ours: others keep the table, or its contract is retired."""
    return wanted.format in OPEN_FORMATS - own or wanted.parameter(LIFECYCLE) == RETIRED


def _columns(
    live: TableSpec, wanted: TableSpec, base: TableSpec | None, judge: SchemaJudge
) -> Iterator[TableChange]:
    if [(column.name, column.type) for column in live.columns] == [
        (column.name, column.type) for column in wanted.columns
    ]:
        return
    grades = judge(live, wanted)
    unchanged = (Grade.METADATA, "")
    for column in wanted.columns:
        there = live.column(column.name)
        was = base.column(column.name) if base else None
        grade, rule = grades.get(column.name, unchanged)
        if there is None:
            yield TableChange(
                ChangedField.COLUMN, column.name, None, column.type, grade, was is not None, rule=rule
            )
        elif there.type != column.type:
            drift = was is not None and was.type != there.type
            yield TableChange(
                ChangedField.TYPE, column.name, there.type, column.type, grade, drift, rule=rule
            )
    keys = {column.name for column in wanted.partitions}
    others = set()
    for column in live.columns:
        if wanted.column(column.name) is None and column.name not in keys:
            ours = base is not None and base.column(column.name) is not None
            others |= set() if ours else {column.name}
            drift = base is not None and not ours
            grade, rule = grades.get(column.name, unchanged)
            yield TableChange(
                ChangedField.COLUMN, column.name, column.type, None, grade, drift, kept=not ours, rule=rule
            )
    if is_positional(wanted.format) and live.format == wanted.format:
        _, rule = grades.get("", unchanged)
        yield from _order(live, wanted, others, rule)


def _nulls(live: TableSpec, wanted: TableSpec, base: TableSpec | None) -> Iterator[TableChange]:
    """Columns that may be without a value, or may not. No table with rows can forbid it later."""
    for column in (*wanted.columns, *wanted.partitions):
        there = _named(live, column.name)
        if there is None or there.required == column.required:
            continue
        words = {True: "forbidden", False: "allowed"}
        before, after = words[there.required], words[column.required]
        last = None if base is None else _named(base, column.name)
        if column.required:
            grade, rule = Grade.METADATA, ""
        else:
            grade, rule = Grade.BREAKING, REQUIRED_RULE
        drift = last is not None and last.required != there.required and not column.required
        yield TableChange(
            ChangedField.NULLS, column.name, before, after, grade, drift, kept=column.required, rule=rule
        )


def _named(spec: TableSpec, name: str) -> TableColumn | None:
    return next((column for column in (*spec.columns, *spec.partitions) if column.name == name), None)


def _order(live: TableSpec, wanted: TableSpec, others: set[str], rule: str) -> Iterator[TableChange]:
    """New columns may only follow the ones that are there, also those of `others` that stay."""
    should = [column.name for column in wanted.columns]
    is_ = [column.name for column in live.columns if column.name in should or column.name in others]
    shared = min(len(is_), len(should))
    if is_[:shared] != should[:shared]:
        before, after = ", ".join(is_), ", ".join(should)
        yield TableChange(ChangedField.ORDER, "", before, after, Grade.BREAKING, rule=rule)


def _comments(live: TableSpec, wanted: TableSpec, base: TableSpec | None) -> Iterator[TableChange]:
    for column in wanted.columns:
        there = live.column(column.name)
        last = base.column(column.name) if base else None
        was = last.comment if last else None
        if there is not None and _says(column.comment, there.comment, was):
            drift = was is not None and was != there.comment
            before, after = there.comment or None, column.comment or None
            yield TableChange(ChangedField.COMMENT, column.name, before, after, Grade.METADATA, drift)


def _says(wanted: str, live: str, was: str | None) -> bool:
    """Whether a text must change: silence removes only what we wrote ourselves."""
    return wanted != live and (bool(wanted) or bool(was))


def _parameters(live: TableSpec, wanted: TableSpec, base: TableSpec | None) -> Iterator[TableChange]:
    is_, should = dict(live.parameters), dict(wanted.parameters)
    was = dict(base.parameters) if base else None
    owned = {key for key in is_.get(OWNED_KEYS, "").split(",") if key}
    for key in sorted({*should, *owned}):
        before, after = is_.get(key), should.get(key)
        if before != after:
            drift = was is not None and was.get(key) != before
            yield TableChange(ChangedField.PARAMETER, key, before, after, Grade.METADATA, drift)
