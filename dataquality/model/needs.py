"""TABLE: what a predicate needs of the columns that it reads, to mean what it says."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from decimal import Decimal

from dq.contracts.sql.text import digits
from dq.dataquality.model import predicate as p
from dq.dataquality.model import term as t
from dq.dataquality.model.column import Column
from dq.dataquality.model.term import FLOATS, INTEGERS, NUMBERS, TEXTS


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
