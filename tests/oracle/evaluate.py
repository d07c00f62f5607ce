"""What a contract says about rows, worked out in plain Python from the standard and the pages of the checks.

It knows nothing of SQL, metrics or Spark: a row is a dict, a document is what YAML gives, and a clause is
named by its path in the document.
"""

from __future__ import annotations

import datetime as dt
import math
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Any

from oracle import formats, patterns
from oracle.predicates import Predicate, true_for

from dq.contracts.types import CARRIERS, DataType

Row = dict[str, Any]
Json = dict[str, Any]
FLOATS = ("float", "double")


@dataclass(frozen=True, slots=True)
class Expected:
    """How a clause ends. `value` is the count or the percentage; None where nothing is counted.

    `fewer`: if it fails, a smaller number would keep it, so that the rows that are counted are to blame.
    """

    status: str
    value: float | None = None
    fewer: bool = field(default=True, compare=False)


@dataclass(frozen=True, slots=True)
class Data:
    """The rows of one object's table: all of them, and those of the partitions that are asked for.

    `parts` are the columns that the partitions name, empty where the whole table is asked for.
    """

    columns: tuple[tuple[str, DataType], ...]
    rows: Sequence[Row]
    asked: Sequence[Row]
    parts: frozenset[str] = frozenset()

    def scope(self, clause_of_table: bool) -> Sequence[Row]:
        return self.rows if clause_of_table else self.asked


# A step into a struct's field (a text), or into every part of an array or map.
ITEM, KEY, VALUE = object(), object(), object()
Steps = tuple[object, ...]


def parts_of(value: Any, steps: Steps) -> Iterator[Any]:
    """The values at the end of the way, None among them; nothing where a holder on the way is None."""
    if not steps:
        yield value
    elif value is not None:
        step, rest = steps[0], steps[1:]
        if step is ITEM:
            inner = list(value)
        elif step in (KEY, VALUE):
            inner = [pair[0 if step is KEY else 1] for pair in value]
        else:
            inner = [value[step]]
        for one in inner:
            yield from parts_of(one, rest)


def has_gap(row: Row, steps: Steps) -> bool:
    return any(value is None for value in parts_of(row, steps))


def has_broken(row: Row, steps: Steps, breaks: Callable[[Any], bool]) -> bool:
    return any(breaks(value) for value in parts_of(row, steps) if value is not None)


def canonical(value: Any) -> Any:
    """Equal for values that are the same key: NaN is NaN, and zero has no sign."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value + 0.0
    if isinstance(value, dict):
        return tuple(canonical(inner) for inner in value.values())
    if isinstance(value, (list, tuple)):
        return tuple(canonical(inner) for inner in value)
    return value


def exact(number: int | float) -> Fraction:
    """A number of the contract as it is written."""
    return Fraction(repr(number))


def ordered(kind: DataType, options: Json, bound: Any) -> tuple[Callable[[Any], Any], Any]:
    """How values of a column become comparable with a bound of the contract, and the bound."""
    if kind.name in FLOATS:
        # The bound is the nearest number that the column can hold.
        return float, nearest(kind, bound)
    if kind.name == "date":
        return (lambda value: value), dt.date.fromisoformat(bound)
    if kind.name == "timestamp":
        found = dt.datetime.fromisoformat(bound)
        return (lambda value: value), found if found.tzinfo else found.replace(tzinfo=dt.UTC)
    if kind.name == "timestamp_ntz":
        return (lambda value: value), dt.datetime.fromisoformat(bound).replace(tzinfo=None)
    if kind.name in ("string", "boolean"):
        return (lambda value: value), bound
    return Fraction, exact(bound)


_WHOLE = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 20}


def crowded(kind: DataType, values: Sequence[Any]) -> bool:
    """Whether the column's numbers and these do not fit into one decimal of 38 digits."""
    precision, scale = kind.numbers if kind.name == "decimal" else (_WHOLE.get(kind.name, 0), 0)
    before, after = precision - scale, scale
    for value in values:
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            whole, _, fraction = format(Decimal(repr(value)), "f").lstrip("-").partition(".")
            if max(len(whole), len(fraction)) <= 38 and len((whole + fraction).lstrip("0")) <= 38:
                shown = len(whole.lstrip("0")) if fraction else len(whole)
                before, after = max(before, shown), max(after, len(fraction))
    return precision > 0 and before + after > 38


def nearest(kind: DataType, number: int | float) -> float:
    try:
        close = float(exact(number))
        return struct.unpack("f", struct.pack("f", close))[0] if kind.name == "float" else close
    except OverflowError:
        return math.copysign(math.inf, number)


_OUTSIDE: dict[str, Callable[[Any, Any], bool]] = {
    "minimum": lambda value, bound: value < bound,
    "maximum": lambda value, bound: value > bound,
    "exclusiveMinimum": lambda value, bound: value <= bound,
    "exclusiveMaximum": lambda value, bound: value >= bound,
}


def is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def outside(kind: DataType, options: Json, key: str) -> Callable[[Any], bool]:
    convert, bound = ordered(kind, options, options[key])
    return lambda value: is_nan(value) or _OUTSIDE[key](convert(value), bound)


def listed(kind: DataType, values: Sequence[Any]) -> Callable[[Any], bool]:
    """Whether a value is one of the contract's list, in which None stands for nothing."""
    known = [ordered(kind, {}, value) for value in values if value is not None]
    return lambda value: not is_nan(value) and any(convert(value) == bound for convert, bound in known)


def no_multiple(kind: DataType, step: int | float) -> Callable[[Any], bool]:
    size = exact(step)

    def breaks(value: Any) -> bool:
        if not isinstance(value, float):
            return Fraction(value) % size != 0
        if not math.isfinite(value) or abs(value) >= 1e20:
            return True
        shown = formats.shortest(value, kind.name)
        places = Fraction(10**18)
        # To 18 places, halves away from zero.
        whole = math.floor(abs(shown) * places + Fraction(1, 2)) / places
        return whole % size != 0

    return breaks


def _repeats(items: Sequence[Any]) -> bool:
    return len({canonical(item) for item in items}) < len(items)


Breaks = Callable[[DataType, Json], Callable[[Any], bool]]
_OPTIONS: dict[str, Breaks] = {
    **{key: (lambda kind, options, key=key: outside(kind, options, key)) for key in _OUTSIDE},
    "minLength": lambda _, options: lambda value: len(value) < options["minLength"],
    "maxLength": lambda _, options: lambda value: len(value) > options["maxLength"],
    "pattern": lambda _, options: patterns.unmatched(options["pattern"]),
    "format": lambda kind, options: formats.unfit(kind, options["format"]),
    "multipleOf": lambda kind, options: no_multiple(kind, options["multipleOf"]),
    "minItems": lambda _, options: lambda value: len(value) < options["minItems"],
    "maxItems": lambda _, options: lambda value: len(value) > options["maxItems"],
    "minProperties": lambda _, options: lambda value: len(value) < options["minProperties"],
    "maxProperties": lambda _, options: lambda value: len(value) > options["maxProperties"],
    "uniqueItems": lambda _, __: _repeats,
}


def find(names: Mapping[str, Any] | Sequence[str], wanted: str) -> str | None:
    """A column's name as the data has it: case does not matter, and an exact match goes first."""
    lowered = {name.lower(): name for name in reversed(list(names))}
    return wanted if wanted in list(names) else lowered.get(wanted.lower())


def column_name(prop: Json) -> str:
    return prop.get("physicalName") or prop["name"]


def evaluate(document: Json, data: Mapping[str, Data], index: int = 0) -> dict[str, Expected]:
    """Every clause of one object of the document, by its path. `data` has each object's table by its name."""
    one = document["schema"][index]
    return dict(_Evaluation(document, one, data).clauses(f"schema[{index}]"))


class _Evaluation:
    def __init__(self, document: Json, one: Json, data: Mapping[str, Data]) -> None:
        self.document, self.one, self.all, self.data = document, one, data, data[one["name"]]
        self.types = dict(self.data.columns)

    def clauses(self, path: str) -> Iterator[tuple[str, Expected]]:
        properties = self.one.get("properties", [])
        if properties:
            known = {column_name(prop).lower() for prop in properties}
            more = [name for name in self.types if name.lower() not in known]
            yield f"{path}.additionalColumns", Expected("fail" if more else "pass", float(len(more)))
        for number, prop in enumerate(properties):
            yield from self._column(f"{path}.properties[{number}]", prop)
        keys = sorted(
            (prop for prop in properties if prop.get("primaryKey")),
            key=lambda prop: prop.get("primaryKeyPosition", math.inf),
        )
        if keys:
            yield f"{path}.primaryKey", self._once([column_name(prop) for prop in keys])
        for number, rule in enumerate(self.one.get("quality", [])):
            yield f"{path}.quality[{number}]", self._object_rule(rule)
        for number, relation in enumerate(self.one.get("relationships", [])):
            named = [self._named(text) for text in relation["from"]]
            yield f"{path}.relationships[{number}]", self._refers(named, relation["to"])

    def _named(self, text: str) -> str:
        """The column of `object.property`."""
        holder, _, name = text.partition(".")
        one = next(one for one in self.document["schema"] if one["name"] == holder)
        return next(column_name(prop) for prop in one["properties"] if prop["name"] == name)

    def _column(self, path: str, prop: Json) -> Iterator[tuple[str, Expected]]:
        name = find(self.types, column_name(prop))
        if name is None:
            yield from self._absent(path, prop, "fail")
            return
        yield from self._property(path, prop, self.types[name], (name,))

    def _absent(self, path: str, prop: Json, status: str) -> Iterator[tuple[str, Expected]]:
        """A column that is not there fails once; what is promised of it or inside of it cannot be told."""
        yield path, Expected(status)
        if _broken_decimals(prop):
            yield f"{path}.logicalType", Expected("error")
        promised = [f"{path}.{key}" for key in ("required", "unique", "primaryKey") if prop.get(key)]
        promised += [f"{path}.enum"] if prop.get("enum") else []
        promised += [f"{path}.logicalTypeOptions.{key}" for key in _clauses_of(prop)]
        promised += [f"{path}.quality[{number}]" for number, _ in enumerate(prop.get("quality", []))]
        promised += [f"{path}.relationships[{n}]" for n, _ in enumerate(prop.get("relationships", []))]
        yield from ((one, Expected("error")) for one in promised)
        for below, inner in _inside(path, prop):
            yield from self._absent(below, inner, "skipped")

    def _property(
        self, path: str, prop: Json, kind: DataType, steps: Steps
    ) -> Iterator[tuple[str, Expected]]:
        yield path, Expected("pass" if _kept(prop, kind) else "fail")
        if _broken_decimals(prop):
            yield f"{path}.logicalType", self._none(_breaking(steps, lambda value: value % 1 != 0))
        if prop.get("required"):
            yield f"{path}.required", self._none(lambda row: has_gap(row, steps))
        if prop.get("primaryKey"):
            yield f"{path}.primaryKey", self._none(lambda row: has_gap(row, steps))
        if prop.get("unique"):
            yield f"{path}.unique", self._once([".".join(map(str, steps))], steps)
        if prop.get("enum"):
            given = [entry["value"] for entry in prop["enum"]]
            known = listed(kind, given)
            found = self._none(_breaking(steps, lambda value: not known(value)))
            yield f"{path}.enum", Expected("error") if crowded(kind, given) else found
        for key in _clauses_of(prop):
            options = prop["logicalTypeOptions"]
            found = self._none(_breaking(steps, _OPTIONS[key](kind, options)))
            unfit = key in _OUTSIDE and crowded(kind, [options[key]])
            yield f"{path}.logicalTypeOptions.{key}", Expected("error") if unfit else found
        for number, rule in enumerate(prop.get("quality", [])):
            yield f"{path}.quality[{number}]", self._rule(rule, kind, steps)
        for number, relation in enumerate(prop.get("relationships", [])):
            yield f"{path}.relationships[{number}]", self._refers([str(steps[0])], [relation["to"]])
        for below, inner in _inside(path, prop):
            part, step = _part(kind, below, inner)
            if part is None:
                yield from self._absent(below, inner, "fail")
            else:
                yield from self._property(below, inner, part, (*steps, step))

    def _none(self, breaks: Callable[[Row], bool]) -> Expected:
        found = sum(breaks(row) for row in self.data.asked)
        return Expected("fail" if found else "pass", float(found))

    def _once(self, names: Sequence[str], steps: Steps | None = None) -> Expected:
        """No key twice in the table; where the key holds the partition, the asked ones suffice."""
        ways = [steps] if steps else [(find(self.types, name),) for name in names]
        if any(way[0] is None for way in ways):
            return Expected("error")
        held = bool(self.data.parts) and self.data.parts <= {name.lower() for name in names}
        found = _repeated(self.data.scope(not held), ways)
        return Expected("fail" if found else "pass", float(found))

    def _refers(self, names: Sequence[str], to: Sequence[str]) -> Expected:
        other = self.all[to[0].partition(".")[0]]
        theirs = {_key(row, [(self._named(text),) for text in to]) for row in other.rows}
        keys = (_key(row, [(find(self.types, name),) for name in names]) for row in self.data.asked)
        found = sum(key is not None and key not in theirs for key in keys)
        return Expected("fail" if found else "pass", float(found))

    def _rows_of(self, rule: Json) -> Sequence[Row]:
        scope = next((each["value"] for each in rule.get("customProperties", [])), {})
        rows = self.data.scope(scope.get("rows") == "table")
        where: Predicate | None = rule.get("_where")
        return rows if where is None else [row for row in rows if true_for(where, row)]

    def _object_rule(self, rule: Json) -> Expected:
        rows = self._rows_of(rule)
        if rule["metric"] == "rowCount":
            return _bounded(rule, len(rows), len(rows), percent=False)
        named = {prop["name"]: column_name(prop) for prop in self.one["properties"]}
        names = [named[name] for name in rule["arguments"]["properties"]]
        ways = [(find(self.types, name),) for name in names]
        if any(way[0] is None for way in ways):
            return Expected("error")
        return self._counted(rule, self._narrowed(rule, names), lambda some: _repeated(some, ways))

    def _narrowed(self, rule: Json, names: Sequence[str]) -> Json:
        """Where the key of a rule on the table holds the partition, the asked ones suffice."""
        if not self.data.parts or not self.data.parts <= {name.lower() for name in names}:
            return rule
        scopes = [
            {**each, "value": {**each["value"], "rows": "partition"}}
            for each in rule.get("customProperties", [])
        ]
        return {**rule, "customProperties": scopes}

    def _counted(self, rule: Json, scope: Json, count: Callable[[Sequence[Row]], int]) -> Expected:
        rows = self._rows_of(scope)
        return _bounded(rule, count(rows), len(rows), percent=rule.get("unit") in ("percent", "%"))

    def _rule(self, rule: Json, kind: DataType, steps: Steps) -> Expected:
        metric, given = rule["metric"], rule.get("arguments", {})
        if metric == "duplicateValues":
            narrowed = self._narrowed(rule, [".".join(map(str, steps))])
            return self._counted(rule, narrowed, lambda rows: _repeated(rows, [steps]))
        if crowded(kind, [*given.get("missingValues", []), *given.get("validValues", [])]):
            return Expected("error")
        tests: list[Callable[[Any], bool]] = []
        if metric == "missingValues":
            tests.append(listed(kind, given.get("missingValues", [])))
        if "validValues" in given:
            known = listed(kind, given["validValues"])
            tests.append(lambda value: not known(value))
        if "pattern" in given:
            tests.append(patterns.unmatched(given["pattern"]))
        gaps = metric in ("nullValues", "missingValues")

        def breaks(row: Row) -> bool:
            if gaps and has_gap(row, steps):
                return True
            return any(has_broken(row, steps, test) for test in tests)

        return self._counted(rule, rule, lambda rows: sum(map(breaks, rows)))


def _breaking(steps: Steps, breaks: Callable[[Any], bool]) -> Callable[[Row], bool]:
    return lambda row: has_broken(row, steps, breaks)


def _clauses_of(prop: Json) -> list[str]:
    """The options that promise something of the column's values."""
    options = prop.get("logicalTypeOptions", {})
    kept = [key for key in options if key in _OPTIONS and options[key] is not False]
    return [key for key in kept if key != "format" or formats.testable(prop, options["format"])]


def _inside(path: str, prop: Json) -> Iterator[tuple[str, Json]]:
    for number, inner in enumerate(prop.get("properties", [])):
        yield f"{path}.properties[{number}]", inner
    if "items" in prop:
        yield f"{path}.items", prop["items"]
    for key, inner in prop.get("map", {}).items():
        yield f"{path}.map.{key}", inner


def _part(kind: DataType, path: str, inner: Json) -> tuple[DataType | None, object]:
    """The type of what is inside, and the step that leads to it."""
    if kind.name == "array":
        return kind.parts[0], ITEM
    if kind.name == "map":
        return (kind.parts[0], KEY) if path.endswith(".key") else (kind.parts[1], VALUE)
    name = find(kind.names, column_name(inner))
    return (None, "") if name is None else (kind.parts[kind.names.index(name)], name)


def _broken_decimals(prop: Json) -> bool:
    """Whether integers are promised of a type that holds more; the generator writes no other such pair."""
    name = prop.get("physicalType", "")
    return prop["logicalType"] == "integer" and name.startswith("decimal") and not name.endswith(",0)")


def _kept(prop: Json, kind: DataType) -> bool:
    if "physicalType" in prop:
        return bool(prop["physicalType"].replace(" ", "") == str(kind))
    if prop["logicalType"] == "integer" and kind.name == "decimal" and kind.numbers[1]:
        return False
    return kind.name in CARRIERS[prop["logicalType"]]


def _key(row: Row, ways: Sequence[Steps]) -> tuple[Any, ...] | None:
    """The key of a row, or None where a column of it has no value."""
    found: list[Any] = []
    for way in ways:
        values = [value for value in parts_of(row, way) if value is not None]
        if not values:
            return None
        found.append(canonical(values[0]))
    return tuple(found)


def _repeated(rows: Sequence[Row], ways: Sequence[Steps]) -> int:
    keys = [key for row in rows if (key := _key(row, ways)) is not None]
    return len(keys) - len(set(keys))


_HOLDS: dict[str, Callable[[Fraction, list[Fraction]], bool]] = {
    "mustBe": lambda value, to: value == to[0],
    "mustNotBe": lambda value, to: value != to[0],
    "mustBeGreaterThan": lambda value, to: value > to[0],
    "mustBeGreaterOrEqualTo": lambda value, to: value >= to[0],
    "mustBeLessThan": lambda value, to: value < to[0],
    "mustBeLessOrEqualTo": lambda value, to: value <= to[0],
    "mustBeBetween": lambda value, to: to[0] <= value <= to[1],
    "mustNotBeBetween": lambda value, to: value < to[0] or value > to[1],
}

_FEWER: dict[str, Callable[[Fraction, list[Fraction]], bool]] = {
    "mustBe": lambda value, to: value > to[0],
    "mustNotBe": lambda value, to: value > 0,
    "mustBeGreaterThan": lambda value, to: False,
    "mustBeGreaterOrEqualTo": lambda value, to: False,
    "mustBeLessThan": lambda value, to: to[0] > 0,
    "mustBeLessOrEqualTo": lambda value, to: to[0] >= 0,
    "mustBeBetween": lambda value, to: value > to[1],
    "mustNotBeBetween": lambda value, to: to[0] > 0,
}


def _bounded(rule: Json, found: int, total: int, *, percent: bool) -> Expected:
    """A count, or its percentage, against the rule's one operator; of no rows there is no percentage."""
    if percent and not total:
        return Expected("skipped")
    value = Fraction(100 * found, total) if percent else Fraction(found)
    operator = next(key for key in rule if key in _HOLDS)
    operands = rule[operator] if isinstance(rule[operator], list) else [rule[operator]]
    to = [exact(one) for one in operands]
    kept = _HOLDS[operator](value, to)
    return Expected("pass" if kept else "fail", float(value), _FEWER[operator](value, to))
