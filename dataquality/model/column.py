"""Columns that predicates and keys read, what they need of them, and which may not be shown."""

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

# Where a value stands in a row: a column, a struct's field, an array's items, a map's keys or values.

# Spark's expression for the array that an Inside step walks over.
WALKED = {Inside.ITEM: "{}", Inside.KEY: "map_keys({})", Inside.VALUE: "map_values({})"}
HOLDERS = {Inside.ITEM: "array", Inside.KEY: "map", Inside.VALUE: "map"}

Test = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class Column:
    """The way from the row to a value; its first step is a column's name."""

    steps: Steps

    def __str__(self) -> str:
        """For a reader: `address.zip`, `tags[]`, `prices{value}.amount`."""
        shown = ""
        for step in self.steps:
            shown += step.value if isinstance(step, Inside) else f".{step}" if shown else step
        return shown

    @property
    def single(self) -> bool:
        """Whether a row has exactly one such value (or NULL): nothing repeated lies on the way."""
        return not any(isinstance(step, Inside) for step in self.steps)

    def sql(self) -> str:
        """The value as an expression; only where it is single."""
        return ".".join(sql.name(step) for step in self.steps if isinstance(step, str))

    def where(self, test: Callable[[Path], p.Predicate]) -> p.Predicate:
        """A predicate: the value, or at least one of the repeated values, passes `test`."""
        return p.some(self.steps, test)

    def missing(self) -> p.Predicate:
        """A predicate: the value, or one of the repeated values, is NULL although its holder is not."""
        return p.some(self.steps, p.Missing)

    @property
    def path(self) -> Path:
        """The value as a term; only where it is single."""
        return Path(tuple(str(step) for step in self.steps))

    def rows_where(self, test: Test) -> str:
        """As `where`, for a check of another package that writes Spark SQL: `test` makes SQL of a value's."""
        return _walk("", self.steps, test, 0)


def _walk(value: str, steps: tuple[str | Inside, ...], test: Test, depth: int) -> str:
    for position, step in enumerate(steps):
        if isinstance(step, Inside):
            item = f"_dq_{depth}"
            inner = _walk(item, steps[position + 1 :], test, depth + 1)
            return f"exists({WALKED[step].format(value)}, {item} -> {inner})"
        value = f"{value}.{sql.name(step)}" if value else sql.name(step)
    return test(value)


# Every check of an object asks for its columns.
@lru_cache(maxsize=16)
def columns(schema: SchemaObject) -> Sequence[tuple[Property, Column]]:
    """Every property of an object with its column, nested ones after the one that holds them."""
    made: list[tuple[Property, Column]] = []
    for prop in schema.properties:
        _add(made, prop, (prop.column,))
    return tuple(made)


def _add(made: list[tuple[Property, Column]], prop: Property, steps: tuple[str | Inside, ...]) -> None:
    made.append((prop, Column(steps)))
    for inner in prop.properties:
        _add(made, inner, (*steps, inner.column))
    if prop.items is not None:
        _add(made, prop.items, (*steps, Inside.ITEM))
    if prop.map is not None:
        _add(made, prop.map.key, (*steps, Inside.KEY))
        _add(made, prop.map.value, (*steps, Inside.VALUE))


def single_columns(
    properties: Sequence[Property], above: tuple[Property, ...] = ()
) -> Iterator[tuple[tuple[Property, ...], Column]]:
    """The columns that stand once in a row, with the properties on the way to them."""
    for prop in properties:
        way = (*above, prop)
        yield way, Column(tuple(part.column for part in way))
        yield from single_columns(prop.properties, way)


def resolve(schema: DataType, column: Column) -> DataType | str:
    """The type of the column in data of this schema (a struct), or why there is none, as a sentence's end."""
    here, shown = schema, Column(())
    for step in column.steps:
        if isinstance(step, Inside):
            if here.name != HOLDERS[step]:
                return f"{shown} is {here}, not {HOLDERS[step]}"
            here = here.parts[1 if step is Inside.VALUE else 0]
        else:
            if here.name != "struct":
                return f"{shown} is {here}, not struct"
            found = field(here, step)
            if found is None:
                return f"column {str(Column((*shown.steps, step)))!r} is missing"
            here = found
        shown = Column((*shown.steps, step))
    return here


def type_below(kind: DataType | None, term: Term) -> DataType | None:
    """The type of a path below something of this type; None where it is not known, or the term no path."""
    if not isinstance(term, Path):
        return None
    for step in term.steps:
        kind = field(kind, step) if kind is not None and kind.name == "struct" else None
    return kind


def part_of(kind: DataType | None, inside: Inside) -> DataType | None:
    """The type of the parts that a container of this type is walked over by; None where it is not known."""
    if kind is None or kind.name != HOLDERS[inside]:
        return None
    return kind.parts[1 if inside is Inside.VALUE else 0]


def field(struct: DataType, wanted: str) -> DataType | None:
    """A struct's field by its name; as in Spark, case does not matter, and an exact match goes first."""
    if wanted in struct.names:
        return struct.parts[struct.names.index(wanted)]
    lowered = [one.lower() for one in struct.names]
    return struct.parts[lowered.index(wanted.lower())] if wanted.lower() in lowered else None


# What keys are looked up in: the columns of another object, and whether the keys can be compared.


@dataclass(frozen=True, slots=True)
class Target:
    """The columns of an object, by its name, that hold the keys which others refer to.

    Where one of them is `classified`, so is what refers to it.
    """

    object: str
    keys: tuple[Column, ...]
    classified: bool = False

    def __str__(self) -> str:
        shown = ", ".join(str(key) for key in self.keys)
        return f"{self.object}.{shown}" if len(self.keys) == 1 else f"{self.object} ({shown})"


# Types that can be compared without a cast that may fail or round; every other type only with itself.
_FAMILIES = {
    **dict.fromkeys(INTEGERS | {"decimal"}, "exact number"),
    **dict.fromkeys(FLOATS, "float"),
    **dict.fromkeys(TEXTS, "text"),
    **{name: name for name in ("boolean", "date", "timestamp", "timestamp_ntz", "binary")},
}
_DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 20}


def key_digits(kind: DataType) -> tuple[int, ...]:
    """The precision and the scale that Spark needs for numbers of a type; (0, 0) where they are not exact."""
    return kind.numbers if kind.name == "decimal" else (_DIGITS.get(kind.name, 0), 0)


def incomparable(schema: DataType, keys: Sequence[Column], other: DataType, found: Target) -> str | None:
    """Why keys in data of one schema cannot be looked up in data of the other one, or None."""
    for key, column in zip(keys, found.keys, strict=True):
        here, there = resolve(schema, key), resolve(other, column)
        if isinstance(here, str):
            return here
        if isinstance(there, str):
            return f"in {found.object}: {there}"
        family = _FAMILIES.get(here.name)
        if family is None or family != _FAMILIES.get(there.name) or _too_wide(here, there):
            there_ = f"{found.object}.{column} is {there}"
            return f"column {str(key)!r} is {here} and {there_}; they cannot be compared"
    return None


def _too_wide(*types: DataType) -> bool:
    if all(one.name != "decimal" for one in types):
        return False
    sizes = [key_digits(one) for one in types]
    # Beyond Spark's largest decimal, a common type of two would round them.
    return max(size[0] - size[1] for size in sizes) + max(size[1] for size in sizes) > MAX_PRECISION


# TABLE: what a predicate needs of the columns that it reads, to mean what it says.


@dataclass(frozen=True, slots=True)
class Need:
    """A column that is read, and the names of the types that give the reading a meaning (empty: any).

    `digits` are those before and after the point of the numbers that its values are compared with.
    """

    column: Column
    types: frozenset[str] = frozenset()
    digits: tuple[int, int] = (0, 0)


_ANY: frozenset[str] = frozenset()
# The kind of a literal -> the types that are compared with it without a cast that may fail or round.
_COMPARED = {
    **dict.fromkeys(("integer", "decimal", "double"), NUMBERS),
    "string": TEXTS,
    **{name: frozenset({name}) for name in ("boolean", "date", "timestamp", "timestamp_ntz")},
}
_SIGNLESS = INTEGERS | {"boolean"}


def needs(predicate: p.Predicate) -> tuple[Need, ...]:
    """Every column that the predicate reads, in the order of reading; those of one column as one.

    Types that exclude each other stay apart, so that one of them is missed by any data.
    """
    return joined(_of(predicate, ()))


def term_needs(term: t.Term) -> tuple[Need, ...]:
    """Every column that the term reads, as `needs`."""
    return joined(_read(term, (), _ANY))


def joined(found: Iterator[Need] | tuple[Need, ...]) -> tuple[Need, ...]:
    """The needs, those of one column as one where their types allow it."""
    known: list[Need] = []
    for need in found:
        for at, other in enumerate(known):
            types = other.types & need.types or other.types | need.types
            apart = other.types and need.types and not other.types & need.types
            if other.column == need.column and not apart:
                most = (max(other.digits[0], need.digits[0]), max(other.digits[1], need.digits[1]))
                known[at] = Need(need.column, types, most)
                break
        else:
            known.append(need)
    return tuple(known)


def _of(node: p.Predicate, above: t.Steps) -> Iterator[Need]:
    match node:
        case p.Not(part):
            yield from _of(part, above)
        case p.And(parts) | p.Or(parts):
            for part in parts:
                yield from _of(part, above)
        case p.Exists(value, part, holds):
            yield from _of(holds, (*above, *value.steps, part))
        case p.Compare(value, _, other):
            yield from _numbered(value, above, (node.kind,), (other,))
            if isinstance(other, t.Term):
                yield from _read(other, above, _ANY)
        case p.In(value, values):
            yield from _numbered(value, above, node.kinds, values)
        case p.IsNull(value) | p.Missing(value) | p.Holds(value):
            yield from _read(value, above, _ANY)
        case p.IsNaN(value) | p.MultipleOf(value, _):
            yield from _read(value, above, NUMBERS)
        case p.Matches(value, _) | p.HasDay(value, _):
            yield from _read(value, above, TEXTS)
        case p.Repeats(value):
            yield from _read(value, above, frozenset({"array"}))
        case p.HasKey(value, _):
            yield from _read(value, above, frozenset({"map"}))
        case p.Normalized(value, _):
            yield from _read(t.Size(value, FLOATS), above, _ANY)
        case t.Opaque():
            yield from _read(node, above, _ANY)
        case p.Constant():
            pass


def _numbered(
    value: t.Term, above: t.Steps, kinds: tuple[str, ...], others: tuple[t.Literal | t.Term, ...]
) -> Iterator[Need]:
    """What a comparison with literals needs; digits matter where the column's own numbers are compared."""
    types = dict.fromkeys(_COMPARED.get(kind, _ANY) for kind in kinds)
    sizes = [
        digits(other)
        for other in others
        if isinstance(other, int | Decimal) and not isinstance(other, bool) and isinstance(value, t.Path)
    ]
    most = tuple(max((size[at] for size in sizes), default=0) for at in (0, 1))
    for each in types:
        for need in _read(value, above, each):
            yield replace(need, digits=(most[0], most[1]))


def _read(term: t.Term, above: t.Steps, types: frozenset[str]) -> Iterator[Need]:
    """What a term needs whose value must be of these types."""
    match term:
        case t.Path(steps, own):
            column = Column((*above, *steps))
            yield Need(column, types)
            if own:
                yield Need(column, own)
        case t.Length(value):
            yield from _read(value, above, TEXTS)
        case t.Remainder(value, _):
            yield from _read(value, above, types)
        case t.Size(value, items):
            yield from _read(value, above, frozenset({"array"}))
            if items:
                yield Need(Column((*above, *value.steps, t.Inside.ITEM)), items)
        case t.Entries(value):
            yield from _read(value, above, frozenset({"map"}))
        case t.Present(value, fields):
            yield from _read(value, above, frozenset({"struct"}))
            for name in fields:
                yield Need(Column((*above, *value.steps, name)))
        case t.Whole(value):
            yield from _read(value, above, _SIGNLESS)
        case t.Since1970(value, type):
            yield from _read(value, above, frozenset({type}))
        case t.Function(_, arguments):
            for each in arguments:
                if isinstance(each, t.Term):
                    yield from _read(each, above, _ANY)
        case t.Opaque(_, columns, _):
            for way in columns:
                yield Need(Column(way))


# Which columns of the data may not be shown: those that are classified, or that nobody has described.

MASK = "***"


def classified(one: SchemaObject) -> frozenset[str]:
    """Top-level columns that are classified, or hold something that is, in lower case as Spark compares."""
    return frozenset(
        str(column.steps[0]).lower() for prop, column in columns(one) if prop.classification is not None
    )


def untold(one: SchemaObject, shown: frozenset[str]) -> str:
    """Why a number that is made of these columns is not shown, or nothing.

    Beside a classified column, one that the contract leaves out may be a copy of it: nobody has said that it
    is harmless. `*` are all columns.
    """
    secret = classified(one)
    if (found := sorted(shown & secret)) or ("*" in shown and secret):
        return f"{(found or sorted(secret))[0]!r} is classified"
    strange = sorted(shown - _named(one.properties).keys()) if secret else []
    if strange == ["*"]:
        return "it looks at all columns, and not all need be described"
    return f"the contract does not describe {strange[0]!r}" if strange else ""


def hidden(one: SchemaObject, schema: DataType) -> frozenset[str]:
    """Top-level columns of data of this schema that a copy may not show, in lower case.

    They are classified, or hold something that is, or something that the contract does not describe: that
    it is harmless, nobody has said.
    """
    known = _named(one.properties)
    strange = {
        name.lower()
        for name, part in zip(schema.names, schema.parts, strict=True)
        if name.lower() not in known or not _described(known[name.lower()], part)
    }
    return classified(one) | strange


def _described(prop: Property, found: DataType) -> bool:
    """Whether all that is in a column is described; a property without parts speaks for all of them."""
    if found.name == "struct" and prop.properties:
        known = _named(prop.properties)
        return all(
            name.lower() in known and _described(known[name.lower()], part)
            for name, part in zip(found.names, found.parts, strict=True)
        )
    if found.name == "array" and prop.items is not None:
        return _described(prop.items, found.parts[0])
    if found.name == "map" and prop.map is not None:
        return _described(prop.map.key, found.parts[0]) and _described(prop.map.value, found.parts[1])
    return True


def _named(properties: list[Property]) -> dict[str, Property]:
    return {prop.column.lower(): prop for prop in properties}
