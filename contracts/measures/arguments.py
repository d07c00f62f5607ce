"""The arguments of a metric, one by one: each is read where it stands, and all that is wrong is told."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal

from dq.contracts.measures.terms import MeasureFault, Way
from dq.contracts.model import OPERATORS, Property, SchemaObject
from dq.contracts.shared.outcome import Location
from dq.contracts.shared.source_map import PLACE, Place, plain
from dq.contracts.shared.spelling import suggestion


class Holder:
    """A mapping of the contract whose values are read, with the faults that were found in it."""

    __slots__ = ("_at", "_unknown", "faults", "path", "place", "written")

    def __init__(self, raw: object, at: Location, path: str, faults: list[MeasureFault]) -> None:
        self.written: Mapping[str, object] = {}
        self.place: Place | None = None
        self._unknown = 0
        self._at, self.path, self.faults = at, path, faults
        if isinstance(raw, dict):
            place = raw.get(PLACE)
            self.place = place if isinstance(place, Place) else None
            self.written = {key: value for key, value in raw.items() if key != PLACE}

    def get(self, key: str, default: object = None) -> object:
        """The value of a key, as plain values."""
        return plain(self.written.get(key, default))

    def at(self, key: str | None = None, index: int | None = None) -> Location:
        """Where a value stands."""
        return self._at if self.place is None else self.place.at(key, index)

    def wrong(self, key: str, message: str, mend: str, index: int | None = None) -> None:
        """Tells what is wrong with the value of a key, or with one item of its list."""
        item = "" if index is None else f"[{index}]"
        path = f"{self.path}.{key}{item}" if key else self.path
        self.faults.append(MeasureFault(self.at(key or None, index), path, message, mend))

    def missing(self, key: str, mend: str) -> None:
        """Tells that an argument is needed, unless a key that is none is there in its place."""
        if self._unknown:
            self._unknown -= 1
        else:
            self.wrong("", f"it needs the argument {key!r}.", mend)

    def unknown(self, known: Iterable[str], whose: str) -> None:
        """Tells every key that is none of these, at the key."""
        listed = tuple(known)
        for key in self.written:
            if key in listed:
                continue
            self._unknown += 1
            mend = suggestion(key, listed, f"It takes {', '.join(listed)}.")
            at = self._at if self.place is None else self.place.at_key(key)
            self.faults.append(MeasureFault(at, f"{self.path}.{key}", f"{whose} takes no {key!r}.", mend))


def number(value: object) -> bool:
    """Whether it is a finite number, and no flag."""
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, int) and not isinstance(value, bool)


def within(holder: Holder, key: str, least: float, most: float, default: float, *, whole: bool) -> float:
    """A number between two others, both included."""
    value = holder.get(key, default)
    fits = number(value) and least <= value <= most  # type: ignore[operator]  # a number
    if fits and not (whole and not isinstance(value, int)):
        return value  # type: ignore[return-value]  # a number
    kind = "a whole number" if whole else "a number"
    holder.wrong(key, f"{key} is {value!r}.", f"Write {kind} from {least:g} to {most:,.0f}.")
    return default


def quantile_share(holder: Holder) -> Decimal:
    """The share of a quantile, from 0 to 1."""
    value = holder.get("q")
    if number(value) and 0 <= value <= 1:  # type: ignore[operator]  # a number
        return Decimal(repr(value))
    if "q" not in holder.written:
        holder.missing("q", "Add to the arguments, for the median: q: 0.5")
    else:
        holder.wrong("q", f"the share of a quantile is {value!r}.", "Write a number from 0 to 1: q: 0.95")
    return Decimal("0.5")


def sequence_start(holder: Holder, dated: bool) -> int:
    """Where a sequence starts: a whole number, or the days since 1970 of a date."""
    value = holder.get("start")
    if value is None and "start" not in holder.written:
        return 0
    if dated:
        try:
            day = value if isinstance(value, dt.date) else dt.date.fromisoformat(str(value))
            return (dt.date(day.year, day.month, day.day) - dt.date(1970, 1, 1)).days
        except ValueError:
            holder.wrong("start", f"start is {value!r}.", "Write a date of the sequence: start: 2026-01-01")
    elif isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63:
        return value
    else:
        holder.wrong("start", f"start is {value!r}.", "Write a whole number of the sequence: start: 1")
    return 0


def operands(holder: Holder, found: Sequence[tuple[str, object]]) -> None:
    """Tells what is wrong with operators and their operands: one operator, one finite number or a range."""
    if len(found) > 1:
        names = ", ".join(name for name, _ in found)
        holder.wrong(found[1][0], f"the rule has {len(found)} operators ({names}).", "Keep one of them.")
        return
    for name, operand in found:
        if name in ("mustBeBetween", "mustNotBeBetween"):
            pair = isinstance(operand, list) and len(operand) == 2 and all(number(one) for one in operand)
            if not pair or operand[0] > operand[1]:  # type: ignore[index]  # a list
                holder.wrong(name, f"{name} is {operand!r}.", f"Write two numbers in order: {name}: [1, 9]")
        elif not number(operand):
            holder.wrong(name, f"{name} is {operand!r}.", f"Write a number: {name}: 1")


def operators(holder: Holder) -> list[tuple[str, object]]:
    """The operators that a mapping holds, by their names of ODCS."""
    return [(name, holder.get(name)) for name in OPERATORS if name in holder.written]


Known = Mapping[str, tuple[Way, tuple[Property, ...]]]


def single_properties(one: SchemaObject) -> Known:
    """What stands once in a row, by its name in the contract and in the data: its way, and who holds it."""
    found: dict[str, tuple[Way, tuple[Property, ...]]] = {}
    for holders in one.single():
        way = tuple(prop.column for prop in holders)
        found.setdefault(".".join(prop.name or prop.column for prop in holders), (way, holders))
        found.setdefault(".".join(way), (way, holders))
    return found


def is_classified(holders: tuple[Property, ...]) -> bool:
    """Whether the column of a property, as a whole, is classified or holds something that is."""
    todo = [holders[0]]
    while todo:
        prop = todo.pop()
        if prop.classification is not None:
            return True
        todo += prop.children()
    return False
