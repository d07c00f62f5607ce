"""Where a value stands in a row: a column, a struct's field, an array's items, a map's keys or values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from dq.contracts.model import Property, SchemaObject
from dq.contracts.sql import text as sql
from dq.contracts.types import DataType
from dq.dataquality.model import predicate as p
from dq.dataquality.model.term import Inside, Path, Steps, Term

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
