"""The metrics of dq's own engine, as contracts write them: what each takes, and what a rule asks with it."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from dq.contracts.model import OPERATORS, PLACE, Place, Property, Quality, SchemaObject, plain
from dq.contracts.outcome import Finding, Location, mistake, suggestion

# TABLE: the metrics of dq's own engine: what they are asked of, and which arguments and units they take.

_NUMBERS = ("integer", "number")
_ROWS = ("rows", "percent")


@dataclass(frozen=True, slots=True)
class MeasureKind:
    """One metric: its name in a contract, and its check on the shelf.

    `types` are the logical types that its column may have (empty: any); one without a logical type is told by
    the data. `own` are arguments besides those that every metric takes. `units` are those that make sense
    without a comparison with earlier runs. `columns` is how many columns a rule on the object names: 0 where
    it stands on a property alone, None for one or more. `by_size`: its number grows with the table, so that
    a sample does not show it.
    """

    name: str
    check: str
    types: tuple[str, ...] = _NUMBERS
    own: tuple[str, ...] = ()
    units: tuple[str, ...] = ()
    columns: int | None = 0
    by_size: bool = False


_KINDS = (
    MeasureKind("min", "min"),
    MeasureKind("max", "max"),
    MeasureKind("mean", "mean"),
    MeasureKind("sum", "sum", by_size=True),
    MeasureKind("stddev", "stddev"),
    MeasureKind("quantile", "quantile", own=("q",)),
    MeasureKind("distinctCount", "distinct_count", (), ("properties",), _ROWS, None, by_size=True),
    MeasureKind("distinctRatio", "distinct_ratio", (), ("properties",), ("percent",), None),
    MeasureKind("uniqueRatio", "unique_ratio", (), ("properties",), ("percent",), None),
    MeasureKind("compareColumns", "compare_columns", (), ("properties", "property", "operator"), _ROWS, 2),
    MeasureKind(
        "sequenceGaps", "sequence_gaps", ("integer", "date"), ("step", "start"), _ROWS, 0, by_size=True
    ),
)
MEASURES: Mapping[str, MeasureKind] = {kind.name: kind for kind in _KINDS}

# What a comparison with earlier runs takes: key -> (default, least, most).
BAND: Mapping[str, tuple[float, float, float]] = {
    "runs": (28, 1, 1_000),
    "minimum": (7, 1, 1_000),
    "deviations": (3.5, 0, 1_000),
    "slack": (20, 0, 1_000),
}
DIRECTIONS = ("both", "fewer", "more")
AGAINST = ("previous", "weekday", "usual")
SHARED = ("by", "against", *BAND, "direction")
COMPARISONS: Mapping[str, str] = {"<": "<", "<=": "<=", ">": ">", ">=": ">=", "=": "=", "!=": "<>"}
UNITS: Mapping[str, str] = {"rows": "rows", "percent": "percent", "%": "percent"}
# Types whose values are few and exact enough to be the name of a group.
BY_TYPES = ("string", "integer", "number", "boolean", "date")
MOST_BY = 3


# What a rule of dq's own engine asks, understood; nothing here looks at data.

Way = tuple[str, ...]
"""The names from a row to a column, as they are in the data."""


@dataclass(frozen=True, slots=True)
class Against:
    """What a number is compared with instead of a fixed bound.

    `mode`: `previous` is the run before, `weekday` the last one of the same weekday, `usual` the median of
    the last `runs`, where at least `minimum` are known, give or take what is larger: `deviations` times their
    robust standard deviation, or the share `slack` of the median. `direction` both, fewer or more.
    """

    mode: str
    runs: int = 28
    minimum: int = 7
    deviations: float = 3.5
    slack: float = 0.2
    direction: str = "both"


@dataclass(frozen=True, slots=True)
class Measurement:
    """A metric, and all that its rule says of it.

    `columns` are those that are measured: the property's own for a rule on a property. `by` are the columns
    that make groups. `share` is a quantile's. `start` is a day since 1970 where `dated`. `bounds` are the
    operators with their operands as they are written; empty for what is compared with the usual.
    """

    kind: MeasureKind
    columns: tuple[Way, ...]
    by: tuple[Way, ...] = ()
    against: Against | None = None
    share: Decimal = Decimal("0.5")
    step: int = 1
    start: int = 0
    dated: bool = False
    comparison: str = ""
    family: str = ""
    bounds: tuple[tuple[str, object], ...] = ()
    unit: str = ""


# The arguments of a metric, one by one: each is read where it stands, and all that is wrong is told.


_RULE = "measure-invalid"


class Holder:
    """A mapping of the contract whose values are read, with the faults that were found in it."""

    __slots__ = ("_at", "_unknown", "faults", "path", "place", "written")

    def __init__(self, raw: object, at: Location, path: str, faults: list[Finding]) -> None:
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
        self.faults.append(mistake(_RULE, message, mend, self.at(key or None, index), path))

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
            self.faults.append(mistake(_RULE, f"{whose} takes no {key!r}.", mend, at, f"{self.path}.{key}"))


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


# From a quality rule with a metric of dq's own engine to what it asks, or to all that is wrong with it.

ENGINE = "dq"
_KEYS = ("check", "arguments", "unit", *OPERATORS)
# Logical types that are compared with each other.
_FAMILIES = {"integer": "number", "number": "number"}


def measure_named(quality: Quality) -> MeasureKind | None:
    """The metric that a rule of the engine dq names; None for every other rule."""
    name = implementation(quality).get("check")
    return MEASURES.get(name) if isinstance(name, str) else None


def implementation(quality: Quality) -> dict[str, object]:
    """What the implementation of a rule of dq's own engine says; empty for every other rule."""
    if quality.type != "custom" or quality.engine != ENGINE:
        return {}
    written = plain(quality.implementation)
    if isinstance(written, str):
        return {"check": written.strip()}
    return written if isinstance(written, dict) else {}


def read(
    kind: MeasureKind, one: SchemaObject, prop: Property | None, quality: Quality
) -> Measurement | tuple[Finding, ...]:
    """What a rule on an object, or on one of its properties, asks; or every fault of it, in no order."""
    faults: list[Finding] = []
    path = quality.path("implementation")
    rule = Holder(quality.implementation, quality.at("implementation"), path, faults)
    rule.unknown(_KEYS, "the implementation")
    raw = rule.written.get("arguments")
    given = Holder(raw, rule.at("arguments"), f"{path}.arguments", faults)
    if raw is not None and not isinstance(raw, dict):
        rule.wrong("arguments", "its arguments are no mapping.", "Write: arguments: {by: [country]}")
    given.unknown((*kind.own, *SHARED), kind.name)
    known = single_properties(one)
    way = next((way for way, holders in known.values() if holders[-1] is prop), None)
    made = Measurement(kind, _columns(kind, rule, given, known, prop, way), _by(given, known, one))
    made = replace(made, against=_against(given))
    made = _own(kind, made, given, known, prop)
    made = _bounded(made, rule, quality)
    _fit(made, rule, given, known)
    return made if not faults else tuple(faults)


def _columns(
    kind: MeasureKind, rule: Holder, given: Holder, known: Known, prop: Property | None, way: Way | None
) -> tuple[Way, ...]:
    """The columns that are measured: that of the property, or those that a rule on the object names."""
    if prop is not None:
        if way is None:
            said = "a value inside of an array or map is no column of its own."
            rule.wrong("", said, "Move the rule to a column.")
        if "properties" in given.written:
            mend = "Leave it out, or move the rule to the object."
            given.wrong("properties", "a rule on a property measures that property.", mend)
        other = _named(given, "property", known) if kind.name == "compareColumns" else ()
        return (*([way] if way else ()), *other)
    if kind.columns == 0:
        rule.wrong("", f"{kind.name} measures one column.", "Move the rule to the property that it is about.")
        return ()
    if "property" in given.written:
        given.wrong("property", "a rule on an object names its columns in properties.", "Write properties.")
    found = _named(given, "properties", known)
    if kind.columns and len(found) not in (0, kind.columns):
        said = f"{kind.name} takes {kind.columns} columns, not {len(found)}."
        given.wrong("properties", said, "Write two: properties: [ordered_on, shipped_on]")
    return found


def _named(given: Holder, key: str, known: Known) -> tuple[Way, ...]:
    """The columns that an argument names: a name, or a list of names."""
    value = given.get(key)
    single = isinstance(value, str)
    listed = [value] if single else value
    if not isinstance(listed, list) or not listed:
        if key in given.written:
            given.wrong(key, f"{key} is {value!r}.", f"Write names of properties: {key}: [country]")
        else:
            given.missing(key, f"Add to the arguments: {key}: …")
        return ()
    found: list[Way] = []
    for index, name in enumerate(listed):
        at = None if single else index
        if not isinstance(name, str) or name not in known:
            mend = suggestion(name, known, "Write a property of the object.")
            given.wrong(key, f"{name!r} is no column of the object.", mend, at)
        elif known[name][0] in found:
            given.wrong(key, f"{name!r} stands twice.", "Write it once.", at)
        else:
            found.append(known[name][0])
    return tuple(found)


def _by(given: Holder, known: Known, one: SchemaObject) -> tuple[Way, ...]:
    if "by" not in given.written:
        return ()
    found = _named(given, "by", known)
    if len(found) > MOST_BY:
        given.wrong("by", f"by has {len(found)} columns.", f"Write at most {MOST_BY}.")
    holders = dict(known.values())
    written = given.get("by")
    listed = written if isinstance(written, list) else []
    ways = [known[name][0] if isinstance(name, str) and name in known else None for name in listed]
    for way in found:
        at = ways.index(way) if way in ways else None
        name, prop = ".".join(way), holders[way][-1]
        if is_classified(holders[way]):
            said = f"{name!r} is classified, and its values would be shown as names of groups."
            given.wrong("by", said, "Group by a column that may be shown.", at)
        elif prop.logical_type not in (None, *BY_TYPES):
            said = f"{name!r} is of the type {prop.logical_type}, which makes no groups."
            given.wrong("by", said, f"Group by a column of {one.name} that is {', '.join(BY_TYPES)}.", at)
    return found


def _against(given: Holder) -> Against | None:
    value = given.get("against")
    band = [key for key in (*BAND, "direction") if key in given.written]
    if "against" not in given.written:
        for key in band:
            given.wrong(key, f"{key} is for a comparison with earlier runs.", "Add: against: usual")
        return None
    if not isinstance(value, str) or value not in AGAINST:
        mend = suggestion(value, AGAINST, f"Write one of {', '.join(AGAINST)}.")
        given.wrong("against", f"against is {value!r}.", mend)
        return None
    if value != "usual":
        for key in band:
            given.wrong(key, f"{key} goes with against: usual.", f"Leave it out, or against: {value}.")
        return Against(value)
    read = {
        key: within(given, key, least, most, default, whole=key in ("runs", "minimum"))
        for key, (default, least, most) in BAND.items()
    }
    direction = given.get("direction", "both")
    if direction not in DIRECTIONS:
        given.wrong("direction", f"direction is {direction!r}.", f"Write one of {', '.join(DIRECTIONS)}.")
        direction = "both"
    if read["minimum"] > read["runs"]:
        said = f"minimum {read['minimum']} is more than runs {read['runs']}: it would never end learning."
        given.wrong("minimum", said, "Write a smaller minimum.")
    slack = read["slack"] / 100
    runs, minimum = int(read["runs"]), int(read["minimum"])
    return Against(value, runs, minimum, read["deviations"], slack, str(direction))


def _own(
    kind: MeasureKind, made: Measurement, given: Holder, known: Known, prop: Property | None
) -> Measurement:
    """The arguments that only this metric has."""
    if kind.name == "quantile":
        return replace(made, share=quantile_share(given))
    if kind.name == "sequenceGaps":
        dated = prop is not None and prop.logical_type == "date"
        step = int(within(given, "step", 1, 10**9, 1, whole=True))
        return replace(made, step=step, start=sequence_start(given, dated), dated=dated)
    if kind.name != "compareColumns":
        return made
    written = given.get("operator")
    if written not in COMPARISONS:
        if "operator" in given.written:
            given.wrong("operator", f"operator is {written!r}.", f"Write one of {' '.join(COMPARISONS)}.")
        else:
            given.missing("operator", 'Add to the arguments: operator: "<="')
        return made
    families = [_family(way, known) for way in made.columns]
    told = {family for family in families if family}
    if len(told) > 1:
        shown = " and ".join(sorted(told))
        given.wrong("", f"a column of {shown} are not compared.", "Name two columns of one type.")
    return replace(made, comparison=COMPARISONS[str(written)], family=next(iter(told), ""))


def _family(way: Way, known: Known) -> str:
    logical = known[".".join(way)][1][-1].logical_type or ""
    return _FAMILIES.get(logical, logical)


def _bounded(made: Measurement, rule: Holder, quality: Quality) -> Measurement:
    """With its operator and unit: in the implementation, or on the rule."""
    own = operators(rule)
    found = own + quality.operators()
    operands(rule, found)
    usual = made.against is not None and made.against.mode == "usual"
    if found and usual:
        rule.wrong(found[0][0], "what is usual is told by earlier runs.", "Leave the operator out.")
    elif not found and not usual and made.kind.name == "compareColumns" and made.against is None:
        found = [("mustBe", 0)]
    elif not found and not usual:
        rule.wrong("", f"nothing bounds the number of {made.kind.name}.", "Add one: mustBeGreaterThan: 0")
    written = rule.get("unit", quality.unit)
    unit = "" if written is None else UNITS.get(str(written).strip().lower(), "?")
    units = ("percent",) if made.against else made.kind.units
    if usual and unit:
        rule.wrong("unit", "what is usual has the unit of the number.", "Leave the unit out.")
    elif unit and unit not in units:
        takes = f"It takes {' or '.join(units)}." if units else "Leave it out."
        if not units:
            takes += " A change against an earlier run can be in percent: against: previous"
        rule.wrong("unit", f"{made.kind.name} has no unit {written!r}.", takes)
    return replace(made, bounds=tuple(found), unit=unit)


def _fit(made: Measurement, rule: Holder, arguments: Holder, known: Known) -> None:
    """Tells which of the measured columns are of another type than the metric, or may not be compared."""
    kind = made.kind
    for way in made.columns:
        name = ".".join(way)
        _, holders = known[name]
        logical = holders[-1].logical_type
        if kind.types and logical is not None and logical not in kind.types:
            message = f"{name!r} is of the type {logical}, and {kind.name} is of {' and '.join(kind.types)}."
            rule.wrong("check", message, "Move the rule to such a column.")
        if made.against and is_classified(holders):
            # Values that may not be shown are not kept.
            message = f"{name!r} is classified, so that no number of it is kept to compare with."
            arguments.wrong("against", message, "Write a fixed bound.")
