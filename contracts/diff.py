"""Diff of two contracts: normalized elements and their changes."""

from __future__ import annotations

import datetime as dt
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum
from functools import cache
from itertools import pairwise
from typing import Any

from dq.contracts import types
from dq.contracts.extension import Delivery
from dq.contracts.model import OPERATORS, SOURCE_MAP_KEY, CustomProperty, Extensible, Node, strip_source_maps
from dq.contracts.outcome import Location, ValueProblem
from dq.contracts.schedule.calendar import load_zone
from dq.contracts.schedule.clock import DueTime, Schedule, parse
from dq.contracts.service_levels import ServiceLevel, compare_levels
from dq.contracts.slo import build_schedule
from dq.contracts.types import DataType, NotAType

# Two schedules compared by the instants at which they fire over a year, never by their text.

_YEAR = timedelta(days=366)


class ScheduleRelation(StrEnum):
    """Relation of the second schedule to the first."""

    SAME = "same"
    EARLIER = "earlier"  # at least as many deliveries on each day, none later
    LATER = "later"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Timing:
    """Schedule of a service level, as text and parsed."""

    text: str
    schedule: Schedule | None


def parse_timing(text: str, delivery: Delivery | None) -> Timing:
    """Return the timing of a cron expression, in UTC if there are no delivery terms."""
    spelling = " ".join(text.split())
    if delivery is None:
        schedule = parse(spelling)
    else:
        schedule = build_schedule(
            spelling, delivery, delivery.calendar.holiday_calendar() if delivery.calendar else None
        )
    return Timing(spelling, None if isinstance(schedule, ValueProblem) else schedule)


def compare_timings(first: Timing, second: Timing, start: date) -> ScheduleRelation:
    """Return the relation over the year from `start`. A text that is not a schedule only equals itself."""
    if first == second:
        return ScheduleRelation.SAME
    if first.schedule is None or second.schedule is None:
        return (
            ScheduleRelation.SAME
            if first.text == second.text and first.schedule == second.schedule
            else ScheduleRelation.OTHER
        )
    dues_before, dues_after = _dues(first.schedule, start), _dues(second.schedule, start)
    instants, instants_after = [due.at for due in dues_before], [due.at for due in dues_after]
    if instants == instants_after:
        return ScheduleRelation.SAME
    # Days are those of the first schedule's zone on both sides, because promises are compared per day.
    by_day, by_day_after = (
        _days(dues_before, first.schedule, first.schedule),
        _days(dues_after, second.schedule, first.schedule),
    )
    if _covers(by_day_after, by_day):
        return ScheduleRelation.EARLIER
    if _covers(by_day, by_day_after):
        return ScheduleRelation.LATER
    return _by_gap(instants, instants_after)


def _dues(schedule: Schedule, start: date) -> list[DueTime]:
    begin = datetime(start.year, start.month, start.day, tzinfo=UTC)
    dues = schedule.between(begin, begin + _YEAR)
    # An excused delivery is not promised; a moved one is promised in addition to the regular one.
    return [due for due in dues if not schedule.excuse(due) for _ in schedule.origins(due)]


def _days(dues: list[DueTime], schedule: Schedule, first: Schedule) -> dict[date, list[datetime]]:
    zone_info = load_zone(first.timezone)
    days: dict[date, list[datetime]] = defaultdict(list)
    for due in dues:
        # In the schedule's own zone the civil date is known; computing it costs far more.
        if schedule.timezone == first.timezone:
            days[due.nominal.date()].append(due.at)
        else:
            days[due.at.astimezone(zone_info).date()].append(due.at)
    return days


def _covers(candidate: dict[date, list[datetime]], reference: dict[date, list[datetime]]) -> bool:
    """Return True if each delivery of `reference` has one of the same rank and day in `candidate`, no
    later.
    """
    return all(
        len(candidate.get(day, ())) >= len(instants)
        and all(instant <= limit for instant, limit in zip(candidate[day], instants, strict=False))
        for day, instants in reference.items()
    )


def _by_gap(instants_before: list[datetime], instants_after: list[datetime]) -> ScheduleRelation:
    longest, longest_after = _longest_gap(instants_before), _longest_gap(instants_after)
    if longest_after > longest and len(instants_after) < len(instants_before):
        return ScheduleRelation.LATER
    if longest_after < longest and len(instants_after) > len(instants_before):
        return ScheduleRelation.EARLIER
    return ScheduleRelation.OTHER


def _longest_gap(instants: list[datetime]) -> timedelta:
    return max((later - earlier for earlier, later in pairwise(instants)), default=_YEAR)


# Normal form of elements: their values and changes.

# Equivalent values have one form: no key order, no spelling, no explicit defaults.

# (model, key) -> the default of ODCS. Source: the JSON Schema of ODCS 3.2.0.
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

# Names of the UTC zone.
_UTC = frozenset({"utc", "etc/utc", "z", "gmt", "etc/gmt", "etc/zulu", "zulu", "universal", "+00:00"})

# Types of other engines than Spark and Hive -> ours. `timestamptz` is a separate type here, because Iceberg,
# Trino and PostgreSQL distinguish it from `timestamp`.
_FOREIGN_TYPES = {
    word: spark_type
    for spark_type, words in {
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
class PhysicalType:
    """A physical type, or None if unknown, and its spelling without case and blanks."""

    type: DataType | None
    spelling: str


def normalize_physical_type(text: str) -> PhysicalType:
    """Return the normal form of a physicalType; an unknown type is compared by its spelling."""
    spelling = re.sub(r"\s+", "", text.lower())
    if spelling in _WITH_ZONE:
        return PhysicalType(DataType("timestamptz"), spelling)
    for attempt in (text, _WORD.sub(lambda match: _FOREIGN_TYPES.get(match[0], match[0]), spelling)):
        try:
            return PhysicalType(types.parse(attempt), spelling)
        except NotAType:
            continue
    return PhysicalType(None, spelling)


def normalize_zone(name: str) -> str:
    """Return a zone's name, with one name for all spellings of UTC."""
    return "UTC" if name.lower() in _UTC else name


def canonical(value: Any) -> object:
    """Return the value with sorted keys, lists as tuples, dates as text, and nodes without absent keys."""
    if isinstance(value, Node):
        return tuple((key, canonical(inner)) for key, inner in explicit_values(value).items())
    if isinstance(value, Mapping):
        pairs = ((str(key), canonical(inner)) for key, inner in value.items() if key != SOURCE_MAP_KEY)
        return tuple(sorted(pairs, key=lambda pair: pair[0]))
    if isinstance(value, (list, tuple)):
        return tuple(canonical(inner) for inner in value)
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (dt.date, dt.datetime)):
        return value.isoformat()
    return value


def canonical_set(value: Any) -> object:
    """Return the canonical form of a list whose order has no meaning."""
    items = canonical(value)
    return tuple(sorted(set(items), key=repr)) if isinstance(items, tuple) else items


def explicit_values(node: Node) -> dict[str, Any]:
    """Return the keys of a node that are not absent, empty or the default, sorted."""
    attributes = node.__dict__
    return {
        key: value
        for key, name, default in model_keys(type(node))
        if (value := attributes[name]) is not None and value != default and value not in ([], {})
    }


@cache
def model_keys(model: type[Node]) -> tuple[tuple[str, str, object], ...]:
    """Return the keys of a model as contracts write them, sorted: (key, attribute, default)."""
    keys = ((info.alias or name, name) for name, info in model.model_fields.items())
    kind = model.__name__
    return tuple(
        (key, name, DEFAULTS.get((kind, key), _NO_DEFAULT))
        for key, name in sorted(keys)
        if key != SOURCE_MAP_KEY
    )


_NO_DEFAULT = object()


# Data model of a diff: elements in normal form, their values, and changes.


class ElementKind(StrEnum):
    """Kind of element of a contract."""

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


class ChangeKind(StrEnum):
    """Kind of change of an element or of one of its attributes."""

    ADDED = "added"
    REMOVED = "removed"
    CHANGED = "changed"
    MOVED = "moved"


@dataclass(frozen=True, slots=True)
class AttributeValue:
    """One attribute: `normal` is compared, `source_value` is shown to users."""

    normal: object
    source_value: object
    location: Location
    pointer: str = ""


@dataclass(frozen=True, slots=True)
class FlatElement:
    """One element of a contract with normalized values; attributes at their default are absent.

    Attributes:
        keys: Keys that identify it among its siblings, most reliable first.
        column: Name in the data.
        path: Path for users (`orders.customer.street`, `orders.tags[]`).
        pointer: Path in the document.
        quiet: True if an attribute of the parent reports its addition and removal.
    """

    kind: ElementKind
    keys: tuple[tuple[str, str], ...]
    column: str
    path: str
    pointer: str
    location: Location
    values: Mapping[str, AttributeValue]
    parts: tuple[FlatElement, ...] = ()
    object_name: str = ""
    nested: bool = False
    quiet: bool = False

    def parts_of(self, kind: ElementKind) -> tuple[FlatElement, ...]:
        """Return the parts of one kind, in the order of the file."""
        return tuple(part for part in self.parts if part.kind is kind)

    def normal(self, attribute: str) -> object:
        """Return the normal form of an attribute, or None."""
        value = self.values.get(attribute)
        return None if value is None else value.normal

    def source_value(self, attribute: str) -> object:
        """Return an attribute as written in the file, or None."""
        value = self.values.get(attribute)
        return None if value is None else value.source_value

    def walk(self) -> Iterator[FlatElement]:
        """Yield this element and all properties below it."""
        yield self
        for part in self.parts_of(ElementKind.PROPERTY):
            yield from part.walk()


@dataclass(frozen=True, slots=True)
class Change:
    """One difference. `attribute` is "" if the element itself was added, removed or moved.

    `before` and `after` are normal forms (None: absent). `old` and `new` are the element on either side.
    On the side where it is absent, its location is that of the nearest remaining parent. `facts` describe its
    siblings: the position of an added or removed element, and renamed elements.
    """

    kind: ElementKind
    attribute: str
    action: ChangeKind
    path: str
    before: object
    after: object
    location_before: Location
    location_after: Location
    pointer: str
    old: FlatElement | None
    new: FlatElement | None
    facts: Mapping[str, object] = field(default_factory=dict)

    @property
    def object_name(self) -> str:
        """Name in the data of the object that it belongs to, or ""."""
        element = self.new or self.old
        return element.object_name if element else ""

    def source_values(self) -> tuple[object, object]:
        """Return the values before and after as written in the files."""
        if not self.attribute:
            return (self.old.path if self.old else None, self.new.path if self.new else None)
        return (
            self.facts.get("shown_before", self.old.source_value(self.attribute) if self.old else None),
            self.facts.get("shown_after", self.new.source_value(self.attribute) if self.new else None),
        )


# Normalized values of a node's keys, for every kind of element.

# TABLE: keys that are not compared as written -> the attribute, part or identifying key that they become.
_TARGETS: Mapping[ElementKind, Mapping[str, str]] = {
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
# Kind of element -> key -> attribute, part or identifying key.
MAPPED_KEYS: Mapping[ElementKind, Mapping[str, str]] = {
    kind: {
        "customProperties": "customProperties.*",
        **{key: attribute for attribute, keys in rows.items() for key in keys.split()},
    }
    for kind, rows in _TARGETS.items()
}

# Custom properties that dq interprets.
_READ_ELSEWHERE = frozenset({"delivery", "dataset", "scope", "route", "renamedFrom", "partitionTransform"})
_UNORDERED = frozenset({"tags", "authoritativeDefinitions", "synonyms", "transformSourceObjects", "examples"})


def attribute_values(node: Node, kind: ElementKind) -> dict[str, AttributeValue]:
    """Return the attributes of a node in normal form, without those in `MAPPED_KEYS`.

    Keys that are not in the standard are included, so that every change is reported.
    """
    attributes = {
        key: attribute_value(
            node, key, canonical_set(raw) if key in _UNORDERED else canonical(raw), display_value(raw)
        )
        for key, raw in explicit_values(node).items()
        if key not in MAPPED_KEYS[kind]
    }
    attributes.update(_unknown_values(node))
    if isinstance(node, Extensible):
        attributes.update(custom_values(node))
    return attributes


def attribute_value(node: Node, key: str, normal: object, source_value: object = None) -> AttributeValue:
    """Return the attribute for a key of a node."""
    return AttributeValue(
        normal, normal if source_value is None else source_value, node.locate(key), node.path(key)
    )


def flat_element(
    node: Node,
    kind: ElementKind,
    keys: tuple[tuple[str, str], ...],
    column: str,
    path: str,
    attributes: Mapping[str, AttributeValue],
    parts: tuple[FlatElement, ...] = (),
    **extra: Any,
) -> FlatElement:
    """Return the element of a node; `extra` are further fields of it."""
    return FlatElement(kind, keys, column, path, node.path(), node.locate(), attributes, parts, **extra)


def _unknown_values(node: Node) -> Iterator[tuple[str, AttributeValue]]:
    unknown_keys = node.place.keys.keys() - _known_keys(type(node)) - (node.model_extra or {}).keys()
    for key in sorted(unknown_keys):
        yield key, attribute_value(node, key, canonical((node.place.removed or {}).get(key, "written")))


@cache
def _known_keys(model: type[Node]) -> frozenset[str]:
    return frozenset(key for key, _, _ in model_keys(model)) | {SOURCE_MAP_KEY}


def custom_values(node: Extensible) -> Iterator[tuple[str, AttributeValue]]:
    """Yield the custom properties that dq does not interpret, one attribute each."""
    for custom in node.custom_properties:
        if custom.vendor in (None, "dq") and is_interpreted(custom.property):
            continue
        owner = f"{custom.vendor}:" if custom.vendor else ""
        yield f"customProperties.{owner}{custom.property}", _custom_value(custom)


def is_interpreted(name: str) -> bool:
    """Return True if dq interprets a custom property of this name."""
    return name in _READ_ELSEWHERE or name.startswith("delivery:")


def _custom_value(custom: CustomProperty) -> AttributeValue:
    normal = (canonical(custom.value), custom.description)
    return AttributeValue(normal, display_value(custom.value), custom.locate("value"), custom.path("value"))


def display_value(raw: Any) -> object:
    """Return a value for display: plain, as another YAML reader would return it."""
    if isinstance(raw, Node):
        return {key: display_value(inner) for key, inner in explicit_values(raw).items()}
    if isinstance(raw, list):
        return [display_value(inner) for inner in raw]
    return strip_source_maps(raw)


# Changes between two contracts, in the order of the new file, with both locations.

# Matching of elements of the old and the new contract: by stable id first, by name last.


@dataclass(frozen=True, slots=True)
class ElementMatch:
    """Matched siblings: `matched` has (old, new), the others have no counterpart. All in file order."""

    matched: list[tuple[FlatElement, FlatElement]]
    removed: list[FlatElement]
    added: list[FlatElement]


def match_elements(before: Sequence[FlatElement], after: Sequence[FlatElement]) -> ElementMatch:
    """Match siblings of one kind by their keys: every element by its most reliable key, then by the next.

    If several elements on a side share a key, they are matched in file order, except for ids: duplicate ids
    are an error that validation reports. `renamedFrom` is matched against the old column or name.
    """
    match_of: dict[int, int] = {}
    matched_after: set[int] = set()
    names = _key_names(before, after)
    for name in names:
        index: dict[str, list[int]] = {}
        for number, element in enumerate(before):
            if number not in match_of:
                for text in _old_texts(element, name):
                    index.setdefault(text, []).append(number)
        for number, element in enumerate(after):
            text = _key_text(element, name)
            if number in matched_after or not text:
                continue
            match = next((candidate for candidate in index.get(text, ()) if candidate not in match_of), None)
            if match is not None:
                match_of[match] = number
                matched_after.add(number)
    matched = [(before[old], after[match_of[old]]) for old in range(len(before)) if old in match_of]
    removed = [element for number, element in enumerate(before) if number not in match_of]
    added = [element for number, element in enumerate(after) if number not in matched_after]
    return ElementMatch(matched, removed, added)


def _key_names(before: Sequence[FlatElement], after: Sequence[FlatElement]) -> list[str]:
    """Return the keys, most reliable first; an element without a key is skipped in that step."""
    names: list[str] = []
    for element in (*before, *after):
        for name, _ in element.keys:
            if name not in names:
                names.append(name)
        if names:
            break
    return names


def _key_text(element: FlatElement, name: str) -> str:
    return next((text for key, text in element.keys if key == name), "")


def _old_texts(element: FlatElement, name: str) -> list[str]:
    if name == "renamedFrom":
        return [text for key, text in element.keys if key in ("column", "name") and text]
    text = _key_text(element, name)
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
    """Yield the changes between two contracts in normal form. Schedules are compared over the year from
    `start`.

    Equivalent files have no changes.
    """
    yield from _value_changes(old, new, start)
    for kind in ElementKind:
        old_parts, new_parts = old.parts_of(kind), new.parts_of(kind)
        if old_parts or new_parts:
            pairs = match_elements(old_parts, new_parts)
            if kind is ElementKind.PROPERTY:
                yield from _order_change(old, new, pairs)
            yield from _sibling_changes(old, new, kind, pairs, start)


def _sibling_changes(
    old: FlatElement, new: FlatElement, kind: ElementKind, pairs: ElementMatch, start: date
) -> Iterator[Change]:
    removed, added, moved = pairs.removed, pairs.added, []
    if kind is ElementKind.PROPERTY and not old.nested:
        moved = _moves(old, new, removed, added)
        moved_from = {id(change.old) for change in moved}
        moved_to = {id(change.new) for change in moved}
        removed = [element for element in removed if id(element) not in moved_from]
        added = [element for element in added if id(element) not in moved_to]
    for first, second in pairs.matched:
        yield from _identity_changes(first, second)
        yield from changes(_with_new_names(first, second), second, start)
    yield from moved
    hint = _rename_hint(removed, added)
    for element in removed:
        if not element.quiet:
            facts = {"last": element is old.parts_of(kind)[-1], "hint": hint}
            yield _element_change(ChangeKind.REMOVED, element, None, new, facts)
    survivors = {id(second) for _, second in pairs.matched}
    for element in added:
        if not element.quiet:
            facts = {
                "middle": _is_before_survivor(new.parts_of(kind), element, survivors),
                "reused": any(candidate.column == element.column for candidate in old.parts_of(kind)),
            }
            yield _element_change(ChangeKind.ADDED, None, element, old, facts)


def _with_new_names(old: FlatElement, new: FlatElement) -> FlatElement:
    """Return the old element with its keys and partition in the new names of its columns.

    A renamed column is one change; it must not also count as a change of the key.
    """
    if old.kind is not ElementKind.OBJECT:
        return old
    pairs = match_elements(old.parts_of(ElementKind.PROPERTY), new.parts_of(ElementKind.PROPERTY)).matched
    names = {first.column: second.column for first, second in pairs if first.column != second.column}
    if not names and old.column == new.column:
        return old
    attributes = dict(old.values)
    for key in ("primaryKey", "partition"):
        value = attributes.get(key)
        if value is not None and isinstance(value.normal, tuple):
            attributes[key] = replace(
                value, normal=tuple(_renamed_item(item, names) for item in value.normal)
            )
    return replace(old, values=attributes)


def _renamed_item(item: object, names: dict[str, str]) -> object:
    if isinstance(item, tuple):
        return (names.get(str(item[0]), item[0]), *item[1:])
    return names.get(str(item), item)


def _identity_changes(old: FlatElement, new: FlatElement) -> Iterator[Change]:
    """Yield changes of the name in the data and of the stable id.

    Adding or removing an id is not a change, because the name still identifies the element.
    """
    ids = dict(old.keys).get("id"), dict(new.keys).get("id")
    if ids[0] and ids[1] and ids[0] != ids[1]:
        yield _identity_change(old, new, "id", ids)
    if old.kind in _KEYED_BY_COLUMN and old.column != new.column:
        yield _identity_change(old, new, "column", (old.column, new.column))


def _identity_change(
    old: FlatElement, new: FlatElement, attribute: str, names: tuple[object, object]
) -> Change:
    facts: dict[str, object] = {"shown_before": names[0], "shown_after": names[1]}
    sides = (old.location, new.location, new.pointer, old, new)
    return Change(old.kind, attribute, ChangeKind.CHANGED, old.path, names[0], names[1], *sides, facts)


def _value_changes(old: FlatElement, new: FlatElement, start: date) -> Iterator[Change]:
    for key in (*new.values, *(key for key in old.values if key not in new.values)):
        first, second = old.values.get(key), new.values.get(key)
        if key.startswith("delivery.") and ("delivery" in old.values) != ("delivery" in new.values):
            # If the delivery itself was added or removed, its terms are not reported separately.
            continue
        facts = _difference(first, second, start)
        if facts is None:
            continue
        action = (
            ChangeKind.ADDED
            if first is None
            else ChangeKind.REMOVED
            if second is None
            else ChangeKind.CHANGED
        )
        before, after = (value.normal if value else None for value in (first, second))
        pointer = second.pointer if second and second.pointer else new.pointer
        sides = (
            first.location if first else old.location,
            second.location if second else new.location,
            pointer,
            old,
            new,
        )
        yield Change(new.kind, key, action, new.path, before, after, *sides, facts)


def _difference(
    first: AttributeValue | None, second: AttributeValue | None, start: date
) -> dict[str, object] | None:
    """Return facts about the difference of two values, or None if they are equal."""
    if first is None or second is None:
        return {}
    before, after = first.normal, second.normal
    if isinstance(before, ServiceLevel) and isinstance(after, ServiceLevel):
        order = compare_levels(before, after)
        return None if order == 0 else {"order": order}
    if isinstance(before, Timing) and isinstance(after, Timing):
        fires = compare_timings(before, after, start)
        return None if fires is ScheduleRelation.SAME else {"fires": fires}
    return None if before == after else {}


def _element_change(
    action: ChangeKind,
    old: FlatElement | None,
    new: FlatElement | None,
    other: FlatElement,
    facts: dict[str, object],
) -> Change:
    """Return the change for an added or removed element; where absent, its location is its nearest
    parent's.
    """
    element = new or old
    assert element is not None
    before, after = old or other, new or other
    sides = (before.location, after.location, after.pointer, old, new)
    return Change(element.kind, "", action, element.path, None, None, *sides, facts)


def _order_change(old: FlatElement, new: FlatElement, pairs: ElementMatch) -> Iterator[Change]:
    """Yield a change if the order of the remaining columns differs."""
    new_positions = {id(element): number for number, element in enumerate(new.parts_of(ElementKind.PROPERTY))}
    positions = [new_positions[id(second)] for _, second in pairs.matched]
    if all(first < second for first, second in pairwise(positions)):
        return
    before = [first.column for first, _ in pairs.matched]
    after = [
        second.column
        for _, second in sorted(pairs.matched, key=lambda matched_pair: new_positions[id(matched_pair[1])])
    ]
    facts: dict[str, object] = {"shown_before": before, "shown_after": after, "added": bool(pairs.added)}
    sides = (old.location, new.location, new.pointer, old, new)
    yield Change(new.kind, "order", ChangeKind.CHANGED, new.path, tuple(before), tuple(after), *sides, facts)


def _is_before_survivor(siblings: Sequence[FlatElement], added: FlatElement, survivors: set[int]) -> bool:
    """Return True if an existing column follows the added one."""
    index = next(number for number, element in enumerate(siblings) if element is added)
    return any(id(element) in survivors for element in siblings[index + 1 :])


def _moves(
    old: FlatElement, new: FlatElement, removed: Sequence[FlatElement], added: Sequence[FlatElement]
) -> list[Change]:
    """Return the properties of an object that moved into or out of a struct."""
    removed_elements = [inner for element in removed for inner in element.walk()]
    added_elements = [inner for element in added for inner in element.walk()]
    new_elements = [inner for element in new.parts_of(ElementKind.PROPERTY) for inner in element.walk()]
    old_elements = [inner for element in old.parts_of(ElementKind.PROPERTY) for inner in element.walk()]
    paths_before, paths_after = (
        {element.path for element in old_elements},
        {element.path for element in new_elements},
    )
    move_targets = added_elements or [inner for inner in new_elements if inner.path not in paths_before]
    move_sources = removed_elements or [inner for inner in old_elements if inner.path not in paths_after]
    moves: list[Change] = []
    used: set[int] = set()
    for first in move_sources if added_elements else removed_elements:
        match = next(
            (
                second
                for second in (move_targets if removed_elements else added_elements)
                if id(second) not in used and _is_move(first, second)
            ),
            None,
        )
        if match is not None:
            used.add(id(match))
            facts: dict[str, object] = {"shown_before": first.path, "shown_after": match.path}
            moves.append(
                replace(_element_change(ChangeKind.MOVED, first, match, new, facts), path=first.path)
            )
    return moves


def _is_move(first: FlatElement, second: FlatElement) -> bool:
    if first.nested == second.nested or first.column != second.column or first.column[0] in "[{":
        return False
    types = ("physicalType", "logicalType")
    return all(first.normal(key) == second.normal(key) for key in types)


def _rename_hint(removed: Sequence[FlatElement], added: Sequence[FlatElement]) -> str:
    """Return the new name if one removed and one similar added column look like a rename, else "".

    The hint does not change how the difference is classified.
    """
    if (
        len(removed) != 1
        or len(added) != 1
        or removed[0].kind not in (ElementKind.PROPERTY, ElementKind.OBJECT)
    ):
        return ""
    removed_element, added_element = removed[0], added[0]
    compared = ("physicalType", "logicalType", "required", "classification")
    if any(removed_element.normal(key) != added_element.normal(key) for key in compared):
        return ""
    has_description = removed_element.normal("description") is not None
    if has_description and removed_element.normal("description") == added_element.normal("description"):
        return added_element.column
    return added_element.column if _similar(removed_element.column, added_element.column) else ""


def _similar(first: str, second: str) -> bool:
    from difflib import SequenceMatcher

    return SequenceMatcher(None, first.lower(), second.lower()).ratio() >= 0.6
