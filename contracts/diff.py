"""Elements of a contract in normal form, its service levels as numbers, and what differs between two."""

from __future__ import annotations

import datetime as dt
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum
from functools import cache
from itertools import pairwise
from typing import Any

from dq.contracts import types
from dq.contracts.extension import Delivery
from dq.contracts.model import OPERATORS, PLACE, CustomProperty, Extensible, Node, plain
from dq.contracts.odcs import SERVICE_LEVELS, time_unit
from dq.contracts.outcome import Location, TextFault, parse_duration
from dq.contracts.schedule.calendar import known
from dq.contracts.schedule.clock import Due, Schedule, parse
from dq.contracts.slo import schedule_of
from dq.contracts.types import DataType, NotAType

# What a service level promises, as a number that can be compared: whatever its unit, offset or spelling.

# Source: "Valid Values for SLA Properties" of ODCS, which also says "latency, preferred to freshness".
_SYNONYMS = {
    "av": "availability",
    "th": "throughput",
    "er": "errorrate",
    "ga": "generalavailability",
    "es": "endofsupport",
    "el": "endoflife",
    "re": "retention",
    "fy": "frequency",
    "ly": "latency",
    "freshness": "latency",
    "td": "timetodetect",
    "tn": "timetonotify",
    "tr": "timetorepair",
    "ta": "timeofavailability",
}

_SECONDS = {"ms": 0.001, "s": 1.0, "min": 60.0, "h": 3_600.0, "d": 86_400.0, "w": 604_800.0}
# A month and a year have no fixed length, so they match a number of days within this share of it.
_CIVIL_SECONDS = {"mo": 30.436875 * 86_400, "y": 365.2425 * 86_400}
_CIVIL_SLACK = 0.02
_CLOCK = re.compile(r"(\d{1,2}):(\d{2})(?::(\d{2}))?\s*(Z|[+-]\d{2}:?\d{2})?", re.ASCII | re.IGNORECASE)
_NUMBER = re.compile(r"([+-]?\d+(?:\.\d+)?)\s*([a-z%]*)", re.ASCII | re.IGNORECASE)
# Frequencies that contracts spell as words.
_WORDS = {
    "hourly": ("1", "h"),
    "daily": ("1", "d"),
    "weekly": ("1", "w"),
    "monthly": ("1", "mo"),
    "quarterly": ("3", "mo"),
    "yearly": ("1", "y"),
    "annually": ("1", "y"),
}


@dataclass(frozen=True, slots=True)
class PromisedLevel:
    """A promised level: `measure` says in what (`seconds`, `instant`, `clock`, `percent`, a unit's name).

    `amount` is None for text that is no number. `civil` marks months and years.
    """

    measure: str
    amount: float | None
    text: str
    civil: bool = False


def name_of(property_: str) -> str:
    """The service level's name as ODCS writes it; an unknown one as it stands, lower case."""
    lower = re.sub(r"[\s_-]", "", property_).lower()
    known = SERVICE_LEVELS.get(_SYNONYMS.get(lower, lower))
    return known[0] if known else lower


def level(property_: str, value: object, unit: str | None) -> PromisedLevel:
    """The level of a service level property; never fails, what cannot be read is compared as text."""
    if isinstance(value, (dt.date, dt.datetime)):
        value = value.isoformat()
    text = str(value).strip()
    measured = _BY_NAME.get(name_of(property_), _quantity)(text, unit)
    return measured or PromisedLevel("text", None, f"{text} {unit or ''}".strip())


def compare_levels(first: PromisedLevel, second: PromisedLevel) -> int | None:
    """-1, 0 or 1 as the first is smaller, equal or larger; None when they cannot be compared."""
    if first.measure != second.measure or first.amount is None or second.amount is None:
        return 0 if first == second else None
    slack = _CIVIL_SLACK if first.civil != second.civil else 1e-9
    if abs(first.amount - second.amount) <= slack * max(abs(first.amount), abs(second.amount)):
        return 0
    return -1 if first.amount < second.amount else 1


def _quantity(text: str, unit: str | None) -> PromisedLevel | None:
    text, unit = _WORDS.get(text.lower(), (text, unit))
    match = _NUMBER.fullmatch(text)
    if match is None:
        return length(text.upper()) if unit is None and text.upper().startswith("P") else None
    amount, written = float(match[1]), (match[2] or unit or "").strip()
    if written.lower() in ("%", "percent", "pct"):
        return PromisedLevel("percent", amount, text)
    word = time_unit(written) or ("ms" if written.lower() in ("ms", "milliseconds") else None)
    if word in _CIVIL_SECONDS:
        return PromisedLevel("seconds", amount * _CIVIL_SECONDS[word], text, civil=True)
    if word in _SECONDS:
        return PromisedLevel("seconds", amount * _SECONDS[word], text)
    return PromisedLevel(written.lower(), amount, text)


def length(text: str) -> PromisedLevel | None:
    """The length of time that a text means, such as `2h` or `PT2H`; None for what is none."""
    duration = parse_duration(text)
    if isinstance(duration, TextFault):
        return None
    seconds = duration.months * _CIVIL_SECONDS["mo"] + duration.elapsed.total_seconds()
    return PromisedLevel("seconds", seconds, text, civil=bool(duration.months))


def _instant(text: str, unit: str | None) -> PromisedLevel | None:  # noqa: ARG001 - one shape for the table
    day = date_of(text)
    if day is None:
        return None
    try:
        moment = dt.datetime.fromisoformat(text)
    except ValueError:
        return PromisedLevel(
            "instant", dt.datetime(day.year, day.month, day.day, tzinfo=dt.UTC).timestamp(), text
        )
    return PromisedLevel(
        "instant", (moment if moment.tzinfo else moment.replace(tzinfo=dt.UTC)).timestamp(), text
    )


def date_of(text: str) -> dt.date | None:
    """The date at the start of a text, or None."""
    try:
        return dt.date.fromisoformat(text.strip()[:10])
    except ValueError:
        return None


def _clock(text: str, unit: str | None) -> PromisedLevel | None:
    match = _CLOCK.fullmatch(text)
    if match is None:
        return None
    hours, minutes, seconds, offset = match.groups()
    total = int(hours) * 3600 + int(minutes) * 60 + int(seconds or 0)
    if offset and offset.upper() != "Z":
        sign = -1 if offset[0] == "-" else 1
        digits = offset[1:].replace(":", "")
        total -= sign * (int(digits[:2]) * 3600 + int(digits[2:]) * 60)
    # A time without an offset is in the zone that `unit` may name; it is comparable with its like only.
    return PromisedLevel("clock" if offset else f"clock {unit or ''}".strip() + " local", float(total), text)


_BY_NAME: Mapping[str, Callable[[str, str | None], PromisedLevel | None]] = {
    "timeOfAvailability": _clock,
    "generalAvailability": _instant,
    "endOfSupport": _instant,
    "endOfLife": _instant,
}


# Two schedules compared by the instants at which they fire over a year, never by their text.

_YEAR = timedelta(days=366)


class Fires(StrEnum):
    """How the second schedule relates to the first."""

    SAME = "same"
    EARLIER = "earlier"  # at least as many deliveries on each day, none later
    LATER = "later"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Timing:
    """When a service level is due: the text, and what reads it."""

    text: str
    schedule: Schedule | None


def timing(text: str, delivery: Delivery | None) -> Timing:
    """The timing of a cron; without delivery terms it is read in UTC."""
    spelling = " ".join(text.split())
    if delivery is None:
        found = parse(spelling)
    else:
        found = schedule_of(spelling, delivery, delivery.calendar.days() if delivery.calendar else None)
    return Timing(spelling, None if isinstance(found, TextFault) else found)


def compare_timings(first: Timing, second: Timing, start: date) -> Fires:
    """The relation over the year from `start`. A text that is no schedule is only equal to itself."""
    if first == second:
        return Fires.SAME
    if first.schedule is None or second.schedule is None:
        return Fires.SAME if first.text == second.text and first.schedule == second.schedule else Fires.OTHER
    before, after = _dues(first.schedule, start), _dues(second.schedule, start)
    instants, instants_after = [due.at for due in before], [due.at for due in after]
    if instants == instants_after:
        return Fires.SAME
    # A day is a day of the first schedule's zone, on both sides: promises are kept per day.
    by_day, by_day_after = (
        _days(before, first.schedule, first.schedule),
        _days(after, second.schedule, first.schedule),
    )
    if _covers(by_day_after, by_day):
        return Fires.EARLIER
    if _covers(by_day, by_day_after):
        return Fires.LATER
    return _by_gap(instants, instants_after)


def _dues(schedule: Schedule, start: date) -> list[Due]:
    begin = datetime(start.year, start.month, start.day, tzinfo=UTC)
    dues = schedule.between(begin, begin + _YEAR)
    # What is excused is promised no more than what is not due; what was moved is promised beside what is due.
    return [due for due in dues if not schedule.excuse(due) for _ in schedule.origins(due)]


def _days(dues: list[Due], own: Schedule, first: Schedule) -> dict[date, list[datetime]]:
    there = known(first.timezone)
    days: dict[date, list[datetime]] = defaultdict(list)
    for due in dues:
        # The civil date is at hand in the schedule's own zone; making it anew costs far more.
        if own.timezone == first.timezone:
            days[due.nominal.date()].append(due.at)
        else:
            days[due.at.astimezone(there).date()].append(due.at)
    return days


def _covers(covering: dict[date, list[datetime]], covered: dict[date, list[datetime]]) -> bool:
    """Whether every delivery of `covered` has one of the same rank and day in `covering`, no later."""
    return all(
        len(covering.get(day, ())) >= len(instants)
        and all(own <= other for own, other in zip(covering[day], instants, strict=False))
        for day, instants in covered.items()
    )


def _by_gap(before: list[datetime], after: list[datetime]) -> Fires:
    longest, longest_after = _longest_gap(before), _longest_gap(after)
    if longest_after > longest and len(after) < len(before):
        return Fires.LATER
    if longest_after < longest and len(after) > len(before):
        return Fires.EARLIER
    return Fires.OTHER


def _longest_gap(instants: list[datetime]) -> timedelta:
    return max((later - earlier for earlier, later in pairwise(instants)), default=_YEAR)


# Elements of a contract in normal form: their values, changes, and one form for what means the same.

# One form for values that mean the same: no key order, no spelling, no explicit defaults.

# (model, key) -> the value that ODCS means when the key is absent. Source: the JSON Schema of ODCS 3.2.0.
DEFAULTS: Mapping[tuple[str, str], object] = {
    ("Property", "required"): False,
    ("Property", "unique"): False,
    ("Property", "deprecated"): False,
    ("Property", "criticalDataElement"): False,
    ("Property", "semanticType"): "column",
    ("SchemaObject", "deprecated"): False,
    ("SchemaObject", "logicalType"): "object",
    ("SchemaObject", "physicalType"): "table",
    ("TypeOptions", "defaultTimezone"): "Etc/UTC",
    ("TypeOptions", "minProperties"): 0,
    ("TypeOptions", "minItems"): 0,
    ("TypeOptions", "uniqueItems"): False,
    ("TypeOptions", "elementType"): "float32",
    ("TypeOptions", "normalized"): False,
    ("Quality", "type"): "library",
    ("Relationship", "type"): "foreignKey",
}

# (server type, key) -> its default, from the same schema.
SERVER_DEFAULTS: Mapping[tuple[str, str], str] = {
    ("athena", "catalog"): "awsdatacatalog",
    ("exasol", "port"): "8563",
    ("ingres", "port"): "21064",
    ("kafka", "format"): "json",
    ("poet", "host"): "LOCAL",
    ("poet", "port"): "6001",
    ("sqlserver", "port"): "1433",
    ("teradata", "port"): "1025",
    ("vectorwise", "port"): "21064",
    ("versant", "host"): "localhost",
    ("versant", "port"): "5019",
}

# Spellings of zones that are one zone.
_UTC = frozenset({"utc", "etc/utc", "z", "gmt", "etc/gmt", "etc/zulu", "zulu", "universal", "+00:00"})

# Words for types in engines beside Spark and Hive -> ours. `timestamptz` is a type of its own here, because
# Iceberg, Trino and PostgreSQL tell it from `timestamp`.
_FOREIGN = {
    word: ours
    for ours, words in {
        "varchar": "nvarchar varchar2 nvarchar2 charactervarying",
        "char": "character nchar",
        "decimal": "number",
        "smallint": "int2 int16",
        "int": "int4 int32",
        "bigint": "int8 int64",
        "float": "float4 float32",
        "double": "float8 float64",
        "binary": "bytea varbinary bytes",
    }.items()
    for word in words.split()
}
_WITH_ZONE = frozenset({"timestamptz", "timestampwithtimezone", "timestamp_tz"})
_WORD = re.compile(r"[a-z_][a-z_0-9]*")


@dataclass(frozen=True, slots=True)
class Physical:
    """A physical type: what it is, where we know it, and how it is spelt (case and blanks aside)."""

    type: DataType | None
    spelling: str


def physical(text: str) -> Physical:
    """The normal form of a physicalType; a type that we do not know is compared by its spelling."""
    spelling = re.sub(r"\s+", "", text.lower())
    if spelling in _WITH_ZONE:
        return Physical(DataType("timestamptz"), spelling)
    for attempt in (text, _WORD.sub(lambda found: _FOREIGN.get(found[0], found[0]), spelling)):
        try:
            return Physical(types.parse(attempt), spelling)
        except NotAType:
            continue
    return Physical(None, spelling)


def zone(name: str) -> str:
    """A zone's name; the many names of UTC are one."""
    return "UTC" if name.lower() in _UTC else name


def canonical(value: Any) -> object:
    """The value with keys sorted, lists as tuples, dates as text, and nodes without what is absent."""
    if isinstance(value, Node):
        return tuple((key, canonical(inner)) for key, inner in written(value).items())
    if isinstance(value, Mapping):
        pairs = ((str(key), canonical(inner)) for key, inner in value.items() if key != PLACE)
        return tuple(sorted(pairs, key=lambda pair: pair[0]))
    if isinstance(value, (list, tuple)):
        return tuple(canonical(inner) for inner in value)
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (dt.date, dt.datetime)):
        return value.isoformat()
    return value


def unordered(value: Any) -> object:
    """The same for a list whose order says nothing."""
    items = canonical(value)
    return tuple(sorted(set(items), key=repr)) if isinstance(items, tuple) else items


def written(node: Node) -> dict[str, Any]:
    """The keys of a node that say something: not absent, not empty, not a default; sorted by key."""
    held = node.__dict__
    return {
        key: value
        for key, name, default in fields(type(node))
        if (value := held[name]) is not None and value != default and value not in ([], {})
    }


@cache
def fields(model: type[Node]) -> tuple[tuple[str, str, object], ...]:
    """The keys of a model as contracts write them, sorted: (key, attribute, what absence means)."""
    listed = ((info.alias or name, name) for name, info in model.model_fields.items())
    kind = model.__name__
    return tuple(
        (key, name, DEFAULTS.get((kind, key), _NEVER)) for key, name in sorted(listed) if key != PLACE
    )


_NEVER = object()


# The words of a diff: an element of a contract in normal form, its values, and a change.


class ElementKind(StrEnum):
    """What an element of a contract is."""

    CONTRACT = "contract"
    OBJECT = "object"
    PROPERTY = "property"
    QUALITY = "quality"
    SLA = "sla"
    SERVER = "server"
    ROLE = "role"
    SUPPORT = "support"
    PRICE = "price"
    RELATIONSHIP = "relationship"


class Motion(StrEnum):
    """What happened to an element or to one of its attributes."""

    ADDED = "added"
    REMOVED = "removed"
    CHANGED = "changed"
    MOVED = "moved"


@dataclass(frozen=True, slots=True)
class Value:
    """One attribute: `normal` is compared, `shown` is what a reader recognises."""

    normal: object
    shown: object
    at: Location
    pointer: str = ""


@dataclass(frozen=True, slots=True)
class FlatElement:
    """One part of a contract whose values are normalised; attributes at their default are absent.

    `keys` identify it among its siblings, surest first; `column` is its name in the data. `path` is the
    way a reader names it (`orders.customer.street`, `orders.tags[]`), `pointer` its place in the document.
    A `quiet` element's coming and going is told by an attribute of its holder.
    """

    kind: ElementKind
    keys: tuple[tuple[str, str], ...]
    column: str
    path: str
    pointer: str
    at: Location
    values: Mapping[str, Value]
    parts: tuple[FlatElement, ...] = ()
    object_name: str = ""
    nested: bool = False
    quiet: bool = False

    def of(self, kind: ElementKind) -> tuple[FlatElement, ...]:
        """The parts of one kind, in the order of the file."""
        return tuple(part for part in self.parts if part.kind is kind)

    def normal(self, attribute: str) -> object:
        """The normal form of an attribute, or None."""
        value = self.values.get(attribute)
        return None if value is None else value.normal

    def shown(self, attribute: str) -> object:
        """An attribute as the file has it, or None."""
        value = self.values.get(attribute)
        return None if value is None else value.shown

    def walk(self) -> Iterator[FlatElement]:
        """This element and all properties below it."""
        yield self
        for part in self.of(ElementKind.PROPERTY):
            yield from part.walk()


@dataclass(frozen=True, slots=True)
class Change:
    """One fact that differs. `attribute` is empty when the element itself came, went or moved.

    `before` and `after` are normal forms (None: absent). `old` and `new` are the element on either side.
    What has no place on one side stands at its nearest surviving parent there. `facts` are what the
    siblings add: where among them it came or went, and who was renamed.
    """

    kind: ElementKind
    attribute: str
    action: Motion
    path: str
    before: object
    after: object
    at_before: Location
    at_after: Location
    pointer: str
    old: FlatElement | None
    new: FlatElement | None
    facts: Mapping[str, object] = field(default_factory=dict)

    @property
    def object_name(self) -> str:
        """The name in the data of the object that it lies in, or nothing."""
        element = self.new or self.old
        return element.object_name if element else ""

    def shown(self) -> tuple[object, object]:
        """Before and after as the files have them."""
        if not self.attribute:
            return (self.old.path if self.old else None, self.new.path if self.new else None)
        return (
            self.facts.get("shown_before", self.old.shown(self.attribute) if self.old else None),
            self.facts.get("shown_after", self.new.shown(self.attribute) if self.new else None),
        )


# From the keys of one node to normalised values, for every kind of element alike.

# TABLE: the attribute, part or key that keys become which are not compared as they stand.
_BECOMES: Mapping[ElementKind, Mapping[str, str]] = {
    ElementKind.CONTRACT: {
        "server": "servers",
        "object": "schema",
        "support": "support",
        "price": "price",
        "role": "roles",
        "sla": "slaProperties",
        "sla.element": "slaDefaultElement",
        "the same for every contract": "kind",
    },
    ElementKind.OBJECT: {
        "key": "id",
        "column": "physicalName",
        "property": "properties",
        "quality": "quality",
        "relationship": "relationships",
    },
    ElementKind.PROPERTY: {
        "key": "id",
        "column": "physicalName",
        "property": "properties items map",
        "quality": "quality",
        "relationship": "relationships",
        "logicalTypeOptions.*": "logicalTypeOptions",
        "object.primaryKey": "primaryKey primaryKeyPosition",
        "object.partition": "partitioned partitionKeyPosition",
        "allowedValues": "enum",
    },
    ElementKind.QUALITY: {
        "key": "id",
        "metric": "metric rule",
        "arguments": "arguments",
        "validValues": "validValues",
        "threshold": f"unit {' '.join(OPERATORS)}",
    },
    ElementKind.SLA: {
        "key": "id property",
        "level": "value unit",
        "schedule": "schedule",
        "element": "element",
    },
    ElementKind.SERVER: {"key": "id", "role": "roles"},
    ElementKind.ROLE: {"key": "id role"},
    ElementKind.SUPPORT: {"key": "id channel"},
    ElementKind.PRICE: {"key": "id"},
    ElementKind.RELATIONSHIP: {"key": "id from to"},
}
# Kind of element -> key -> what it becomes.
FOLDED: Mapping[ElementKind, Mapping[str, str]] = {
    kind: {
        "customProperties": "customProperties.*",
        **{key: attribute for attribute, keys in rows.items() for key in keys.split()},
    }
    for kind, rows in _BECOMES.items()
}

# Custom properties with a meaning of their own, read elsewhere.
_READ_ELSEWHERE = frozenset({"delivery", "dataset", "scope", "route", "renamedFrom", "partitionTransform"})
_UNORDERED = frozenset({"tags", "authoritativeDefinitions", "synonyms", "transformSourceObjects", "examples"})


def values(node: Node, kind: ElementKind) -> dict[str, Value]:
    """The attributes that stand in a node as they are compared, without the folded ones.

    Keys that the standard does not have are among them, so that no change is silent.
    """
    found = {
        key: value(node, key, unordered(raw) if key in _UNORDERED else canonical(raw), show(raw))
        for key, raw in written(node).items()
        if key not in FOLDED[kind]
    }
    found.update(_unknown(node))
    if isinstance(node, Extensible):
        found.update(custom_values(node))
    return found


def value(node: Node, key: str, normal: object, shown: object = None) -> Value:
    """An attribute that stands under a key of a node."""
    return Value(normal, normal if shown is None else shown, node.at(key), node.path(key))


def element(
    node: Node,
    kind: ElementKind,
    keys: tuple[tuple[str, str], ...],
    column: str,
    path: str,
    found: Mapping[str, Value],
    parts: tuple[FlatElement, ...] = (),
    **more: Any,
) -> FlatElement:
    """The element that a node is; `more` are further fields of it."""
    return FlatElement(kind, keys, column, path, node.path(), node.at(), found, parts, **more)


def _unknown(node: Node) -> Iterator[tuple[str, Value]]:
    unknown = node.place.keys.keys() - _known(type(node)) - (node.model_extra or {}).keys()
    for key in sorted(unknown):
        yield key, value(node, key, canonical((node.place.cut or {}).get(key, "written")))


@cache
def _known(model: type[Node]) -> frozenset[str]:
    return frozenset(key for key, _, _ in fields(model)) | {PLACE}


def custom_values(node: Extensible) -> Iterator[tuple[str, Value]]:
    """The custom properties that dq does not read itself, one attribute each."""
    for custom in node.custom_properties:
        if custom.vendor in (None, "dq") and read_elsewhere(custom.property):
            continue
        owner = f"{custom.vendor}:" if custom.vendor else ""
        yield f"customProperties.{owner}{custom.property}", _custom(custom)


def read_elsewhere(name: str) -> bool:
    """Whether a custom property of this name is one of ours."""
    return name in _READ_ELSEWHERE or name.startswith("delivery:")


def _custom(custom: CustomProperty) -> Value:
    normal = (canonical(custom.value), custom.description)
    return Value(normal, show(custom.value), custom.at("value"), custom.path("value"))


def show(raw: Any) -> object:
    """A value for a reader: plain, as another YAML reader would give it."""
    if isinstance(raw, Node):
        return {key: show(inner) for key, inner in written(raw).items()}
    if isinstance(raw, list):
        return [show(inner) for inner in raw]
    return plain(raw)


# The facts that differ between two contracts, in the order of the new file, with both places.

# Which element of the old contract is which of the new: by stable id first, by name last.


@dataclass(frozen=True, slots=True)
class Pairs:
    """Siblings matched up; `same` has (old, new), the others have no counterpart. All in file order."""

    same: list[tuple[FlatElement, FlatElement]]
    removed: list[FlatElement]
    added: list[FlatElement]


def pair(before: Sequence[FlatElement], after: Sequence[FlatElement]) -> Pairs:
    """Siblings of one kind matched by their keys: every element by its surest key, then by the next.

    A key that several elements share on a side matches them in file order, except the ids, of which
    twins are a mistake that the gate reports. `renamedFrom` is matched against the old column or name.
    """
    partner: dict[int, int] = {}
    taken: set[int] = set()
    names = _key_names(before, after)
    for name in names:
        index: dict[str, list[int]] = {}
        for number, element in enumerate(before):
            if number not in partner:
                for text in _old_texts(element, name):
                    index.setdefault(text, []).append(number)
        for number, element in enumerate(after):
            text = _key(element, name)
            if number in taken or not text:
                continue
            found = next((old for old in index.get(text, ()) if old not in partner), None)
            if found is not None:
                partner[found] = number
                taken.add(number)
    same = [(before[old], after[partner[old]]) for old in range(len(before)) if old in partner]
    removed = [element for number, element in enumerate(before) if number not in partner]
    added = [element for number, element in enumerate(after) if number not in taken]
    return Pairs(same, removed, added)


def _key_names(before: Sequence[FlatElement], after: Sequence[FlatElement]) -> list[str]:
    """The keys in the order of trust; an element without one of them does not take part in that step."""
    names: list[str] = []
    for element in (*before, *after):
        for name, _ in element.keys:
            if name not in names:
                names.append(name)
        if names:
            break
    return names


def _key(element: FlatElement, name: str) -> str:
    return next((text for key, text in element.keys if key == name), "")


def _old_texts(element: FlatElement, name: str) -> list[str]:
    if name == "renamedFrom":
        return [text for key, text in element.keys if key in ("column", "name") and text]
    text = _key(element, name)
    return [text] if text else []


_KEYED_BY_COLUMN = (
    ElementKind.OBJECT,
    ElementKind.PROPERTY,
    ElementKind.SERVER,
    ElementKind.ROLE,
    ElementKind.SUPPORT,
    ElementKind.SLA,
)


def changes(old: FlatElement, new: FlatElement, start: date) -> Iterator[Change]:
    """What differs between two contracts in normal form. Schedules are compared over the year from `start`.

    There is nothing between two files that say the same in other words.
    """
    yield from _values(old, new, start)
    for kind in ElementKind:
        first, second = old.of(kind), new.of(kind)
        if first or second:
            pairs = pair(first, second)
            if kind is ElementKind.PROPERTY:
                yield from _order(old, new, pairs)
            yield from _siblings(old, new, kind, pairs, start)


def _siblings(
    old: FlatElement, new: FlatElement, kind: ElementKind, pairs: Pairs, start: date
) -> Iterator[Change]:
    removed, added, moved = pairs.removed, pairs.added, []
    if kind is ElementKind.PROPERTY and not old.nested:
        moved = _moved(old, new, removed, added)
        gone = {id(change.old) for change in moved}
        come = {id(change.new) for change in moved}
        removed = [element for element in removed if id(element) not in gone]
        added = [element for element in added if id(element) not in come]
    for first, second in pairs.same:
        yield from _named(first, second)
        yield from changes(_renamed(first, second), second, start)
    yield from moved
    hint = _hint(removed, added)
    for element in removed:
        if not element.quiet:
            facts = {"last": element is old.of(kind)[-1], "hint": hint}
            yield _whole(Motion.REMOVED, element, None, new, facts)
    survivors = {id(second) for _, second in pairs.same}
    for element in added:
        if not element.quiet:
            facts = {
                "middle": _followed(new.of(kind), element, survivors),
                "reused": any(one.column == element.column for one in old.of(kind)),
            }
            yield _whole(Motion.ADDED, None, element, old, facts)


def _renamed(old: FlatElement, new: FlatElement) -> FlatElement:
    """The old element with its own keys and partition in the names that its columns have now.

    A renamed column is one finding; it must not change the key that it is part of as well.
    """
    if old.kind is not ElementKind.OBJECT:
        return old
    pairs = pair(old.of(ElementKind.PROPERTY), new.of(ElementKind.PROPERTY)).same
    names = {first.column: second.column for first, second in pairs if first.column != second.column}
    if not names and old.column == new.column:
        return old
    found = dict(old.values)
    for key in ("primaryKey", "partition"):
        value = found.get(key)
        if value is not None and isinstance(value.normal, tuple):
            found[key] = replace(value, normal=tuple(_renamed_item(item, names) for item in value.normal))
    return replace(old, values=found)


def _renamed_item(item: object, names: dict[str, str]) -> object:
    if isinstance(item, tuple):
        return (names.get(str(item[0]), item[0]), *item[1:])
    return names.get(str(item), item)


def _named(old: FlatElement, new: FlatElement) -> Iterator[Change]:
    """The name in the data and the stable id as attributes of their own.

    An id that is given or taken away is no change: the name still says who it is.
    """
    ids = dict(old.keys).get("id"), dict(new.keys).get("id")
    if ids[0] and ids[1] and ids[0] != ids[1]:
        yield _renaming(old, new, "id", ids)
    if old.kind in _KEYED_BY_COLUMN and old.column != new.column:
        yield _renaming(old, new, "column", (old.column, new.column))


def _renaming(old: FlatElement, new: FlatElement, attribute: str, names: tuple[object, object]) -> Change:
    facts: dict[str, object] = {"shown_before": names[0], "shown_after": names[1]}
    ends = (old.at, new.at, new.pointer, old, new)
    return Change(old.kind, attribute, Motion.CHANGED, old.path, names[0], names[1], *ends, facts)


def _values(old: FlatElement, new: FlatElement, start: date) -> Iterator[Change]:
    for key in (*new.values, *(key for key in old.values if key not in new.values)):
        first, second = old.values.get(key), new.values.get(key)
        if key.startswith("delivery.") and ("delivery" in old.values) != ("delivery" in new.values):
            # Terms of a delivery that comes or goes are told by its coming or going.
            continue
        facts = _relation(first, second, start)
        if facts is None:
            continue
        action = Motion.ADDED if first is None else Motion.REMOVED if second is None else Motion.CHANGED
        before, after = (value.normal if value else None for value in (first, second))
        pointer = second.pointer if second and second.pointer else new.pointer
        ends = (first.at if first else old.at, second.at if second else new.at, pointer, old, new)
        yield Change(new.kind, key, action, new.path, before, after, *ends, facts)


def _relation(first: Value | None, second: Value | None, start: date) -> dict[str, object] | None:
    """How two values differ, with what only their normal forms can tell; None where they do not."""
    if first is None or second is None:
        return {}
    before, after = first.normal, second.normal
    if isinstance(before, PromisedLevel) and isinstance(after, PromisedLevel):
        order = compare_levels(before, after)
        return None if order == 0 else {"order": order}
    if isinstance(before, Timing) and isinstance(after, Timing):
        fires = compare_timings(before, after, start)
        return None if fires is Fires.SAME else {"fires": fires}
    return None if before == after else {}


def _whole(
    action: Motion,
    old: FlatElement | None,
    new: FlatElement | None,
    other: FlatElement,
    facts: dict[str, object],
) -> Change:
    """An element that came or went; on the side where it is not, it stands at its nearest parent."""
    element = new or old
    assert element is not None
    before, after = old or other, new or other
    ends = (before.at, after.at, after.pointer, old, new)
    return Change(element.kind, "", action, element.path, None, None, *ends, facts)


def _order(old: FlatElement, new: FlatElement, pairs: Pairs) -> Iterator[Change]:
    """Whether the columns that stayed stand in another order."""
    position = {id(element): number for number, element in enumerate(new.of(ElementKind.PROPERTY))}
    stayed = [position[id(second)] for _, second in pairs.same]
    if all(first < second for first, second in pairwise(stayed)):
        return
    before = [first.column for first, _ in pairs.same]
    after = [second.column for _, second in sorted(pairs.same, key=lambda one: position[id(one[1])])]
    facts: dict[str, object] = {"shown_before": before, "shown_after": after, "added": bool(pairs.added)}
    ends = (old.at, new.at, new.pointer, old, new)
    yield Change(new.kind, "order", Motion.CHANGED, new.path, tuple(before), tuple(after), *ends, facts)


def _followed(siblings: Sequence[FlatElement], added: FlatElement, survivors: set[int]) -> bool:
    """Whether a column that was there before stands behind the added one."""
    place = next(number for number, element in enumerate(siblings) if element is added)
    return any(id(element) in survivors for element in siblings[place + 1 :])


def _moved(
    old: FlatElement, new: FlatElement, removed: Sequence[FlatElement], added: Sequence[FlatElement]
) -> list[Change]:
    """Properties of an object that went from one level to another: into a struct, or out of one."""
    gone = [inner for element in removed for inner in element.walk()]
    come = [inner for element in added for inner in element.walk()]
    stayed = [inner for element in new.of(ElementKind.PROPERTY) for inner in element.walk()]
    left = [inner for element in old.of(ElementKind.PROPERTY) for inner in element.walk()]
    paths_before, paths_after = {one.path for one in left}, {one.path for one in stayed}
    come_anywhere = come or [inner for inner in stayed if inner.path not in paths_before]
    gone_anywhere = gone or [inner for inner in left if inner.path not in paths_after]
    found: list[Change] = []
    used: set[int] = set()
    for first in gone_anywhere if come else gone:
        match = next(
            (
                second
                for second in (come_anywhere if gone else come)
                if id(second) not in used and _same_elsewhere(first, second)
            ),
            None,
        )
        if match is not None:
            used.add(id(match))
            facts: dict[str, object] = {"shown_before": first.path, "shown_after": match.path}
            found.append(replace(_whole(Motion.MOVED, first, match, new, facts), path=first.path))
    return found


def _same_elsewhere(first: FlatElement, second: FlatElement) -> bool:
    if first.nested == second.nested or first.column != second.column or first.column[0] in "[{":
        return False
    types = ("physicalType", "logicalType")
    return all(first.normal(key) == second.normal(key) for key in types)


def _hint(removed: Sequence[FlatElement], added: Sequence[FlatElement]) -> str:
    """The new name of what looks like a rename: one column went and one like it came. Never a verdict."""
    if (
        len(removed) != 1
        or len(added) != 1
        or removed[0].kind not in (ElementKind.PROPERTY, ElementKind.OBJECT)
    ):
        return ""
    first, second = removed[0], added[0]
    alike = ("physicalType", "logicalType", "required", "classification")
    if any(first.normal(key) != second.normal(key) for key in alike):
        return ""
    described = first.normal("description") is not None
    if described and first.normal("description") == second.normal("description"):
        return second.column
    return second.column if _similar(first.column, second.column) else ""


def _similar(first: str, second: str) -> bool:
    from difflib import SequenceMatcher

    return SequenceMatcher(None, first.lower(), second.lower()).ratio() >= 0.6
