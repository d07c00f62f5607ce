"""Columns read by predicates and keys: their types, the requirements on them, and which may not be shown."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import lru_cache

from dq.contracts.model import Property, SchemaObject
from dq.contracts.sql import text as sql
from dq.contracts.sql.text import digits
from dq.contracts.types import MAX_PRECISION, DataType
from dq.dataquality.model import predicate as p
from dq.dataquality.model import predicate as t
from dq.dataquality.model.predicate import FLOATS, INTEGERS, NUMBERS, TEXTS, Inside, Path, Steps, Term

# Position of a value in a row: a column, a struct field, array items, map keys or map values.

# Spark expression for the array that an Inside step iterates over.
WALKED = {Inside.ITEM: "{}", Inside.KEY: "map_keys({})", Inside.VALUE: "map_values({})"}
HOLDERS = {Inside.ITEM: "array", Inside.KEY: "map", Inside.VALUE: "map"}

Test = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class Column:
    """The path from the row to a value; its first step is a column name."""

    steps: Steps

    def __str__(self) -> str:
        """Return the display text: `address.zip`, `tags[]`, `prices{value}.amount`."""
        text = ""
        for step in self.steps:
            text += step.value if isinstance(step, Inside) else f".{step}" if text else step
        return text

    @property
    def single(self) -> bool:
        """True if a row has exactly one such value (or NULL), i.e. the path has no repeated element."""
        return not any(isinstance(step, Inside) for step in self.steps)

    def sql(self) -> str:
        """Return the value as a SQL expression; only valid if it is single."""
        return ".".join(sql.name(step) for step in self.steps if isinstance(step, str))

    def where(self, test: Callable[[Path], p.Predicate]) -> p.Predicate:
        """Return the predicate that the value, or at least one of the repeated values, passes `test`."""
        return p.any_value(self.steps, test)

    def missing(self) -> p.Predicate:
        """Return the predicate that the value, or one of the repeated values, is NULL although its holder is
        not.
        """
        return p.any_value(self.steps, p.Missing)

    @property
    def path(self) -> Path:
        """The value as a term; only valid if it is single."""
        return Path(tuple(str(step) for step in self.steps))

    def rows_where(self, test: Test) -> str:
        """Return a SQL condition as `where` does, for checks of other packages; `test` maps a SQL value to
        SQL.
        """
        return _walk("", self.steps, test, 0)


def _walk(value: str, steps: tuple[str | Inside, ...], test: Test, depth: int) -> str:
    for position, step in enumerate(steps):
        if isinstance(step, Inside):
            item = f"_dq_{depth}"
            inner = _walk(item, steps[position + 1 :], test, depth + 1)
            return f"exists({WALKED[step].format(value)}, {item} -> {inner})"
        value = f"{value}.{sql.name(step)}" if value else sql.name(step)
    return test(value)


# Cached, because every check of an object needs its columns.
@lru_cache(maxsize=16)
def columns(schema: SchemaObject) -> Sequence[tuple[Property, Column]]:
    """Return every property of an object with its column, nested ones after their parent."""
    pairs: list[tuple[Property, Column]] = []
    for prop in schema.properties:
        _add(pairs, prop, (prop.column,))
    return tuple(pairs)


def _add(pairs: list[tuple[Property, Column]], prop: Property, steps: tuple[str | Inside, ...]) -> None:
    pairs.append((prop, Column(steps)))
    for inner in prop.properties:
        _add(pairs, inner, (*steps, inner.column))
    if prop.items is not None:
        _add(pairs, prop.items, (*steps, Inside.ITEM))
    if prop.map is not None:
        _add(pairs, prop.map.key, (*steps, Inside.KEY))
        _add(pairs, prop.map.value, (*steps, Inside.VALUE))


def single_columns(
    properties: Sequence[Property], above: tuple[Property, ...] = ()
) -> Iterator[tuple[tuple[Property, ...], Column]]:
    """Yield the columns that have one value per row, with the properties on the path to them."""
    for prop in properties:
        path = (*above, prop)
        yield path, Column(tuple(part.column for part in path))
        yield from single_columns(prop.properties, path)


def resolve(schema: DataType, column: Column) -> DataType | str:
    """Return the type of the column in data of this schema (a struct), or the reason why it has none, as
    text.
    """
    current, walked = schema, Column(())
    for step in column.steps:
        if isinstance(step, Inside):
            if current.name != HOLDERS[step]:
                return f"{walked} is {current}, not {HOLDERS[step]}"
            current = current.parts[1 if step is Inside.VALUE else 0]
        else:
            if current.name != "struct":
                return f"{walked} is {current}, not struct"
            member = struct_field(current, step)
            if member is None:
                return f"column {str(Column((*walked.steps, step)))!r} is missing"
            current = member
        walked = Column((*walked.steps, step))
    return current


def type_at(kind: DataType | None, term: Term) -> DataType | None:
    """Return the type of a path below a value of this type, or None if unknown or the term is not a path."""
    if not isinstance(term, Path):
        return None
    for step in term.steps:
        kind = struct_field(kind, step) if kind is not None and kind.name == "struct" else None
    return kind


def element_type(kind: DataType | None, step: Inside) -> DataType | None:
    """Return the type of the elements (items, keys or values) of a container, or None if unknown."""
    if kind is None or kind.name != HOLDERS[step]:
        return None
    return kind.parts[1 if step is Inside.VALUE else 0]


def struct_field(struct: DataType, name: str) -> DataType | None:
    """Return a struct's field by name, or None. As in Spark, case is ignored; an exact match takes
    precedence.
    """
    if name in struct.names:
        return struct.parts[struct.names.index(name)]
    lowered = [field_name.lower() for field_name in struct.names]
    return struct.parts[lowered.index(name.lower())] if name.lower() in lowered else None


# Targets of foreign keys, and the comparability of keys.


@dataclass(frozen=True, slots=True)
class Target:
    """The key columns of an object that foreign keys refer to.

    If one of them is `classified`, the keys that refer to it are too.
    """

    object: str
    keys: tuple[Column, ...]
    classified: bool = False

    def __str__(self) -> str:
        key_list = ", ".join(str(key) for key in self.keys)
        return f"{self.object}.{key_list}" if len(self.keys) == 1 else f"{self.object} ({key_list})"


# Types that can be compared without a cast that may fail or round. Other types are compared only with
# themselves.
_FAMILIES = {
    **dict.fromkeys(INTEGERS | {"decimal"}, "exact number"),
    **dict.fromkeys(FLOATS, "float"),
    **dict.fromkeys(TEXTS, "text"),
    **{name: name for name in ("boolean", "date", "timestamp", "timestamp_ntz", "binary")},
}
_DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 20}


def key_digits(kind: DataType) -> tuple[int, ...]:
    """Return the precision and scale that Spark needs for numbers of a type; (0, 0) if they are not exact."""
    return kind.numbers if kind.name == "decimal" else (_DIGITS.get(kind.name, 0), 0)


def incomparable(schema: DataType, keys: Sequence[Column], other: DataType, target: Target) -> str | None:
    """Return why keys in data of one schema cannot be looked up in data of the other, or None."""
    for key, column in zip(keys, target.keys, strict=True):
        key_type, target_type = resolve(schema, key), resolve(other, column)
        if isinstance(key_type, str):
            return key_type
        if isinstance(target_type, str):
            return f"in {target.object}: {target_type}"
        family = _FAMILIES.get(key_type.name)
        if family is None or family != _FAMILIES.get(target_type.name) or _too_wide(key_type, target_type):
            target_text = f"{target.object}.{column} is {target_type}"
            return f"column {str(key)!r} is {key_type} and {target_text}; they cannot be compared"
    return None


def _too_wide(*types: DataType) -> bool:
    if all(kind.name != "decimal" for kind in types):
        return False
    sizes = [key_digits(kind) for kind in types]
    # A common type larger than Spark's largest decimal would round.
    return max(size[0] - size[1] for size in sizes) + max(size[1] for size in sizes) > MAX_PRECISION


# TABLE: the types that a predicate requires of the columns it reads.


@dataclass(frozen=True, slots=True)
class Need:
    """A column that is read, and its allowed types (empty: any).

    `digits` are the digits before and after the decimal point of the numbers that its values are compared
    with.
    """

    column: Column
    types: frozenset[str] = frozenset()
    digits: tuple[int, int] = (0, 0)


_ANY: frozenset[str] = frozenset()
# Kind of a literal -> types that can be compared with it without a cast that may fail or round.
_COMPARED = {
    **dict.fromkeys(("integer", "decimal", "double"), NUMBERS),
    "string": TEXTS,
    **{name: frozenset({name}) for name in ("boolean", "date", "timestamp", "timestamp_ntz")},
}
_SIGNLESS = INTEGERS | {"boolean"}


def needs(predicate: p.Predicate) -> tuple[Need, ...]:
    """Return the requirements on all columns that the predicate reads, merged per column.

    Requirements with disjoint types stay separate, so that any data violates one of them.
    """
    return merge_needs(_predicate_needs(predicate, ()))


def term_needs(term: t.Term) -> tuple[Need, ...]:
    """Return the requirements on all columns that the term reads; see `needs`."""
    return merge_needs(_read_needs(term, (), _ANY))


def merge_needs(requirements: Iterator[Need] | tuple[Need, ...]) -> tuple[Need, ...]:
    """Merge the requirements on one column if their types are compatible."""
    merged: list[Need] = []
    for need in requirements:
        for index, other in enumerate(merged):
            types = other.types & need.types or other.types | need.types
            is_disjoint = other.types and need.types and not other.types & need.types
            if other.column == need.column and not is_disjoint:
                max_digits = (max(other.digits[0], need.digits[0]), max(other.digits[1], need.digits[1]))
                merged[index] = Need(need.column, types, max_digits)
                break
        else:
            merged.append(need)
    return tuple(merged)


def _predicate_needs(node: p.Predicate, above: t.Steps) -> Iterator[Need]:
    match node:
        case p.Not(part):
            yield from _predicate_needs(part, above)
        case p.And(parts) | p.Or(parts):
            for part in parts:
                yield from _predicate_needs(part, above)
        case p.Exists(value, part, holds):
            yield from _predicate_needs(holds, (*above, *value.steps, part))
        case p.Compare(value, _, other):
            yield from _comparison_needs(value, above, (node.kind,), (other,))
            if isinstance(other, t.Term):
                yield from _read_needs(other, above, _ANY)
        case p.In(value, values):
            yield from _comparison_needs(value, above, node.kinds, values)
        case p.IsNull(value) | p.Missing(value) | p.Holds(value):
            yield from _read_needs(value, above, _ANY)
        case p.IsNaN(value) | p.MultipleOf(value, _):
            yield from _read_needs(value, above, NUMBERS)
        case p.Matches(value, _) | p.HasDay(value, _):
            yield from _read_needs(value, above, TEXTS)
        case p.Repeats(value):
            yield from _read_needs(value, above, frozenset({"array"}))
        case p.HasKey(value, _):
            yield from _read_needs(value, above, frozenset({"map"}))
        case p.Normalized(value, _):
            yield from _read_needs(t.Size(value, FLOATS), above, _ANY)
        case t.Opaque():
            yield from _read_needs(node, above, _ANY)
        case p.Constant():
            pass


def _comparison_needs(
    value: t.Term, above: t.Steps, kinds: tuple[str, ...], operands: tuple[t.Literal | t.Term, ...]
) -> Iterator[Need]:
    """Yield the requirements of a comparison with literals; digits matter if the column itself is
    compared.
    """
    types = dict.fromkeys(_COMPARED.get(kind, _ANY) for kind in kinds)
    sizes = [
        digits(other)
        for other in operands
        if isinstance(other, int | Decimal) and not isinstance(other, bool) and isinstance(value, t.Path)
    ]
    max_digits = tuple(max((size[index] for size in sizes), default=0) for index in (0, 1))
    for type_names in types:
        for need in _read_needs(value, above, type_names):
            yield replace(need, digits=(max_digits[0], max_digits[1]))


def _read_needs(term: t.Term, above: t.Steps, types: frozenset[str]) -> Iterator[Need]:
    """Yield the requirements of a term whose value must have one of these types."""
    match term:
        case t.Path(steps, own):
            column = Column((*above, *steps))
            yield Need(column, types)
            if own:
                yield Need(column, own)
        case t.Length(value):
            yield from _read_needs(value, above, TEXTS)
        case t.Remainder(value, _):
            yield from _read_needs(value, above, types)
        case t.Size(value, items):
            yield from _read_needs(value, above, frozenset({"array"}))
            if items:
                yield Need(Column((*above, *value.steps, t.Inside.ITEM)), items)
        case t.Entries(value):
            yield from _read_needs(value, above, frozenset({"map"}))
        case t.Present(value, fields):
            yield from _read_needs(value, above, frozenset({"struct"}))
            for name in fields:
                yield Need(Column((*above, *value.steps, name)))
        case t.IntegerValue(value):
            yield from _read_needs(value, above, _SIGNLESS)
        case t.Since1970(value, type):
            yield from _read_needs(value, above, frozenset({type}))
        case t.Function(_, arguments):
            for argument in arguments:
                if isinstance(argument, t.Term):
                    yield from _read_needs(argument, above, _ANY)
        case t.Opaque(_, columns, _):
            for path in columns:
                yield Need(Column(path))


# Columns that may not be shown: those that are classified or that the contract does not describe.

MASK = "***"


def classified(schema_object: SchemaObject) -> frozenset[str]:
    """Return the top-level columns that are or contain something classified, in lower case."""
    return frozenset(
        str(column.steps[0]).lower()
        for prop, column in columns(schema_object)
        if prop.classification is not None
    )


def reason_not_shown(schema_object: SchemaObject, names: frozenset[str]) -> str:
    """Return why a number computed from these columns may not be shown, or an empty text.

    If an object has a classified column, a column that the contract does not describe may be a copy of it.

    Args:
        names: The columns in lower case; `*` means all columns.
    """
    secret = classified(schema_object)
    if (classified_names := sorted(names & secret)) or ("*" in names and secret):
        return f"{(classified_names or sorted(secret))[0]!r} is classified"
    undescribed = sorted(names - _named(schema_object.properties).keys()) if secret else []
    if undescribed == ["*"]:
        return "it reads all columns, which may include undescribed ones"
    return f"the contract does not describe {undescribed[0]!r}" if undescribed else ""


def hidden_columns(schema_object: SchemaObject, schema: DataType) -> frozenset[str]:
    """Return the top-level columns of this schema that a copy of the data may not show, in lower case.

    They are or contain something that is classified or that the contract does not describe.
    """
    described = _named(schema_object.properties)
    undescribed = {
        name.lower()
        for name, part in zip(schema.names, schema.parts, strict=True)
        if name.lower() not in described or not _is_described(described[name.lower()], part)
    }
    return classified(schema_object) | undescribed


def _is_described(prop: Property, kind: DataType) -> bool:
    """Return whether everything in a column is described; a property without parts covers all of them."""
    if kind.name == "struct" and prop.properties:
        described = _named(prop.properties)
        return all(
            name.lower() in described and _is_described(described[name.lower()], part)
            for name, part in zip(kind.names, kind.parts, strict=True)
        )
    if kind.name == "array" and prop.items is not None:
        return _is_described(prop.items, kind.parts[0])
    if kind.name == "map" and prop.map is not None:
        return _is_described(prop.map.key, kind.parts[0]) and _is_described(prop.map.value, kind.parts[1])
    return True


def _named(properties: list[Property]) -> dict[str, Property]:
    return {prop.column.lower(): prop for prop in properties}
