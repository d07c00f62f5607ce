"""A contract in normal form: what means the same compares equal, whatever its order or spelling."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from dq.contracts import extension
from dq.contracts.diff import (
    SERVER_DEFAULTS,
    ElementKind,
    FlatElement,
    PromisedLevel,
    Value,
    canonical,
    element,
    fields,
    length,
    level,
    name_of,
    physical,
    show,
    timing,
    unordered,
    value,
    values,
    written,
    zone,
)
from dq.contracts.extension import Delivery
from dq.contracts.metrics import implementation
from dq.contracts.model import (
    OPERATORS,
    PLACE,
    Contract,
    Node,
    Property,
    Quality,
    Relationship,
    Role,
    SchemaObject,
    Server,
    SlaProperty,
    SupportChannel,
    Team,
    TypeOptions,
)
from dq.contracts.model import Element as Described
from dq.contracts.types import DataType

# The numbers that a quality rule allows, as one interval, whichever operator says so.


@dataclass(frozen=True, slots=True)
class Interval:
    """From `low` to `high`; an open end leaves its bound out."""

    low: float
    high: float
    low_open: bool = False
    high_open: bool = False

    def within(self, other: Interval) -> bool:
        """Whether every number of this one is in the other."""
        low = self.low > other.low or (self.low == other.low and (self.low_open or not other.low_open))
        high = self.high < other.high or (self.high == other.high and (self.high_open or not other.high_open))
        return low and high


@dataclass(frozen=True, slots=True)
class RuleThreshold:
    """What a rule's metric may be: an interval, or a form that only equals itself."""

    interval: Interval | None
    form: tuple[str, ...]
    unit: str


def _number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


_INTERVALS: Mapping[str, Callable[[Any], Interval]] = {
    "mustBe": lambda value: Interval(value, value),
    "mustBeLessThan": lambda value: Interval(-math.inf, value, high_open=True),
    "mustBeLessOrEqualTo": lambda value: Interval(-math.inf, value),
    "mustBeGreaterThan": lambda value: Interval(value, math.inf, low_open=True),
    "mustBeGreaterOrEqualTo": lambda value: Interval(value, math.inf),
    "mustBeBetween": lambda value: Interval(value[0], value[1]),
}
# A metric counts rows or is a share of them: nothing is below zero, so `< 1 row` is `= 0 rows`.
_COUNTS = frozenset({"nullValues", "missingValues", "invalidValues", "duplicateValues", "rowCount"})


def threshold(rule: Quality) -> RuleThreshold | None:
    """The rule's threshold, or None when it has no operator."""
    operators, written = operators_of(rule)
    unit = (written or "rows").lower()
    unit = {"%": "percent", "row": "rows", "count": "rows"}.get(unit, unit)
    if not operators:
        return None
    form = tuple(sorted(f"{name} {value}" for name, value in operators))
    if len(operators) != 1:
        return RuleThreshold(None, form, unit)
    name, value = operators[0]
    numeric = all(_number(one) for one in value) if isinstance(value, list) else _number(value)
    pair = not isinstance(value, list) or len(value) == 2
    if name not in _INTERVALS or not numeric or not pair:
        return RuleThreshold(None, form, unit)
    return RuleThreshold(_counted(_INTERVALS[name](value), metric(rule), unit), (), unit)


def _counted(interval: Interval, metric_: str, unit: str) -> Interval:
    # In percent, a number of rows is how much it grew.
    if metric_ not in _COUNTS or (metric_ == "rowCount" and unit == "percent"):
        return interval
    low, low_open = interval.low, interval.low_open
    if low < 0:
        low, low_open = 0.0, False
    high, high_open = interval.high, interval.high_open
    if unit == "rows" and high_open and float(high).is_integer():
        high, high_open = high - 1, False
    return Interval(low, high, low_open, high_open)


def metric(rule: Quality) -> str:
    """The metric's name; ODCS 3.0 called it `rule`, and a rule of dq's engine names it as its check."""
    named = implementation(rule).get("check")
    return rule.metric or rule.rule or (named if isinstance(named, str) else "")


def operators_of(rule: Quality) -> tuple[list[tuple[str, Any]], str | None]:
    """The operators of a rule and its unit, wherever they stand."""
    inside = implementation(rule)
    own = [(name, inside[name]) for name in OPERATORS if name in inside]
    unit = inside.get("unit", rule.unit)
    return own + rule.operators(), unit if isinstance(unit, str) else None


def unfolded(rule: Quality) -> dict[str, object]:
    """What an implementation says besides its check, arguments, unit and operators."""
    folded = {"check", "arguments", "unit", *OPERATORS}
    return {key: value for key, value in implementation(rule).items() if key not in folded}


def strict(rule: Quality) -> bool:
    """Whether the rule lets no row through that breaks it: no operator, or zero."""
    allowed = threshold(rule)
    return allowed is None or (
        allowed.interval is not None and allowed.interval.high == 0 and not allowed.interval.high_open
    )


# Service levels and quality rules in normal form.

# What of the delivery terms says when a delivery is due is compared with the cron, by its fire times.
_TIMING = frozenset({"timezone", "dialect", "dst", "calendar"})
_DURATIONS = frozenset({"grace", "window", "giveUpAfter"})


def slas(contract: Contract) -> Iterator[FlatElement]:
    """The service levels of a contract."""
    for sla in contract.sla_properties:
        name = name_of(sla.property)
        about = _element(contract, sla)
        found = values(sla, ElementKind.SLA)
        if sla.value is not None:
            shown = f"{sla.value} {sla.unit}" if sla.unit else sla.value
            found["level"] = value(sla, "value", level(sla.property, sla.value, sla.unit), shown)
        if found.get("scheduler", Value("", "", sla.at())).normal == "cron":
            del found["scheduler"]
        delivery, _ = extension.delivery(contract, sla)
        if sla.schedule is not None:
            timing_terms = timing(sla.schedule, _in_zone(delivery))
            shown = f"{sla.schedule} ({delivery.timezone})" if delivery else sla.schedule
            found["schedule"] = value(sla, "schedule", timing_terms, shown)
        if about:
            found["element"] = value(sla, "element", about)
        if delivery is not None:
            found["delivery"] = Value(True, "delivery terms", delivery.at(), delivery.path())
            found.update(vendor_terms(delivery, "delivery", skip=_TIMING))
        keys = (
            ("id", sla.id or ""),
            ("full", f"{name}|{about}|{sla.driver or ''}"),
            ("element", f"{name}|{about}"),
            ("name", name),
        )
        label = sla.id or (f"{name}({about})" if sla.element else name)
        yield element(sla, ElementKind.SLA, keys, name, f"sla.{label}", found)


def _in_zone(delivery: Delivery | None) -> Delivery | None:
    if delivery is None or zone(delivery.timezone) == delivery.timezone:
        return delivery
    return delivery.model_copy(update={"timezone": "UTC"})


def _element(contract: Contract, sla: SlaProperty) -> str:
    """What the entry speaks about, with the object's name in front where there is only one."""
    named = sla.element or contract.sla_default_element or ""
    if len(contract.objects) != 1:
        return ",".join(sorted(part.strip() for part in named.split(",")))
    one = contract.objects[0]
    parts = [part.strip() for part in named.split(",")] if named else [one.name]
    own = (one.name, one.physical_name)
    full = [part if part in own or part.split(".")[0] in own else f"{one.name}.{part}" for part in parts]
    return ",".join(sorted(full))


def vendor_terms(node: Node, prefix: str, skip: frozenset[str] = frozenset()) -> Iterator[tuple[str, Value]]:
    """The values of one of our extensions that differ from their defaults."""
    for key, name, _ in fields(type(node)):
        raw = getattr(node, name)
        if key in skip or raw is None or raw == type(node).model_fields[name].default:
            continue
        yield f"{prefix}.{key}", value(node, key, _term(key, raw), show(raw))


def _term(key: str, raw: Any) -> object:
    if key in _DURATIONS and isinstance(raw, str):
        return length(raw) or PromisedLevel("text", None, raw)
    if key == "objective":
        return level("objective", raw, None)
    return canonical(raw)


def rules(listed: list[Quality], holder: str, column: str) -> Iterator[FlatElement]:
    """The quality rules of one object or property."""
    for rule in listed:
        found = values(rule, ElementKind.QUALITY)
        name = metric(rule)
        allowed = valid_values(rule)
        promise = _promise(rule)
        if promise:
            # In a rule of type text, the description is the rule.
            del found["description"]
            found["text"] = value(rule, "description", promise, str(rule.description))
        if name:
            key = "metric" if rule.metric else "rule" if rule.rule else "implementation"
            found["metric"] = value(rule, key, name)
        arguments = _arguments(rule)
        if arguments:
            key = "arguments" if rule.arguments else "implementation"
            found["arguments"] = value(rule, key, canonical(arguments), show(arguments))
        if allowed is not None and not told_by_allowed_values(rule):
            found["validValues"] = value(rule, _values_key(rule), *allowed)
        bounds = threshold(rule)
        if bounds is not None:
            operators, unit = operators_of(rule)
            shown = ", ".join(f"{key} {raw}" for key, raw in operators)
            shown += f" {unit}" if unit else ""
            at = operators[0][0] if operators[0][0] in rule.place.keys else "implementation"
            found["threshold"] = value(rule, at, bounds, shown)
        if name and isinstance(rule.implementation, dict | str) and not rule.metric and not rule.rule:
            # What the implementation says is told by its parts.
            found["implementation"] = value(rule, "implementation", canonical(unfolded(rule)), name)
        terms_, _ = extension.scope(rule)
        found.update(vendor_terms(terms_, "scope"))
        # Rules of two engines are two promises too.
        subject = f"{rule.type}|{name or rule.engine or ''}"
        content = canonical({key: one.normal for key, one in found.items() if key != "threshold"})
        keys = (
            ("id", rule.id or ""),
            ("name", rule.name or ""),
            ("whole", repr((content, bounds))),
            ("content", repr(content)),
            ("metric", f"{subject}|{rule.query or promise}"),
            # Two rules with other texts are two promises, although they are of one type.
            ("type", "" if promise else subject),
        )
        label = rule.id or rule.name or name or rule.type
        path = f"{holder}.quality.{label}"
        quiet = told_by_allowed_values(rule)
        yield element(rule, ElementKind.QUALITY, keys, name, path, found, object_name=column, quiet=quiet)


def _promise(rule: Quality) -> str:
    """Return what a rule of type text promises, without regard to case and white space."""
    return " ".join((rule.description or "").casefold().split()) if rule.type == "text" else ""


def _values_key(rule: Quality) -> str:
    return "validValues" if rule.valid_values is not None else "arguments"


def _arguments(rule: Quality) -> dict[str, object]:
    raw = rule.arguments if isinstance(rule.arguments, dict) else implementation(rule).get("arguments")
    raw = raw if isinstance(raw, dict) else {}
    return {key: inner for key, inner in raw.items() if key not in (PLACE, "validValues")}


def valid_values(rule: Quality) -> tuple[object, object] | None:
    """The values that a rule lists as valid, without order and as they stand; None without a list."""
    listed = rule.valid_values
    if listed is None and isinstance(rule.arguments, dict):
        listed = rule.arguments.get("validValues")
    return (unordered(listed), show(listed)) if isinstance(listed, list) else None


def told_by_allowed_values(rule: Quality) -> bool:
    """Whether the rule says nothing but which values are allowed, as `enum` would."""
    return (
        valid_values(rule) is not None
        and metric(rule) in ("", "invalidValues")
        and strict(rule)
        and not _arguments(rule)
    )


# Objects and properties in normal form: types, bounds, allowed values, keys and partitions.

OPTIONS = "logicalTypeOptions"
# Two keys of one bound: the exclusive one is the same bound with an open end.
_EXCLUSIVE = {"exclusiveMinimum": "minimum", "exclusiveMaximum": "maximum"}


def objects(listed: list[SchemaObject]) -> Iterator[FlatElement]:
    """The tables of a contract."""
    for one in listed:
        found = values(one, ElementKind.OBJECT)
        found.pop("physicalType", None)
        if one.name == one.column:
            found.pop("name", None)
        found.update(_allowed(one, [], one.quality))
        found.update(_kind_of(one))
        dataset, _ = extension.dataset(one)
        found.update(vendor_terms(dataset, "dataset"))
        columns = tuple(_property(prop, one.column, one.column, frozenset()) for prop in one.properties)
        walked = [inner for column in columns for inner in column.walk()]
        by_pointer = {prop.path(): prop for prop in one.walk()}
        found.update(_keys(one, walked, by_pointer))
        own = (_relation(relation, _joined(relation.from_), one) for relation in one.relationships)
        relations = (*own, *_inner_relations(one, walked, by_pointer))
        parts = (*columns, *rules(one.quality, one.column, one.column), *relations)
        name = one.column
        yield element(one, ElementKind.OBJECT, _names(one), name, name, found, parts, object_name=name)


def _kind_of(one: SchemaObject) -> Iterator[tuple[str, Value]]:
    """Table, view …: words, whatever their case."""
    if one.physical_type is not None and one.physical_type.lower() != "table":
        yield "physicalType", value(one, "physicalType", one.physical_type.lower(), one.physical_type)


def _names(one: Described) -> tuple[tuple[str, str], ...]:
    custom = one.custom("renamedFrom")
    origin = str(custom.value) if custom is not None and isinstance(custom.value, str) else ""
    return (
        ("id", one.id or ""),
        ("column", one.column),
        ("renamedFrom", origin),
        ("name", one.name or ""),
        ("case", one.column.lower()),
    )


def _property(
    prop: Property, holder: str, object_: str, required: frozenset[str], mark: str = "", nested: bool = False
) -> FlatElement:
    """One property; `mark` stands for the name of items and of a map's key and value, which have none."""
    path = f"{holder}{mark}" if mark else f"{holder}.{prop.column}"
    found = values(prop, ElementKind.PROPERTY)
    if prop.name in required or prop.column in required:
        found["required"] = found.get("required") or Value("true", True, prop.at(), prop.path())
    if prop.name == prop.column:
        # The name of a column is its identity; only a label beside a physical name is an attribute.
        found.pop("name", None)
    if prop.physical_type is not None:
        found["physicalType"] = value(prop, "physicalType", _type(prop), prop.physical_type)
    listed = [one.value for one in prop.enum] if prop.enum else []
    found.update(_allowed(prop, listed, prop.quality))
    found.update(_enum_labels(prop))
    options = prop.logical_type_options
    inner_required: frozenset[str] = frozenset()
    if options is not None:
        found.update(_options(options))
        inner_required = frozenset(options.required or [])
    children = [_property(one, path, object_, inner_required, nested=True) for one in prop.properties]
    if prop.items is not None:
        children.append(_property(prop.items, path, object_, inner_required, "[]", nested=True))
    if prop.map is not None:
        children.append(_property(prop.map.key, path, object_, frozenset(), "{key}", nested=True))
        children.append(_property(prop.map.value, path, object_, inner_required, "{}", nested=True))
    names = (("column", mark),) if mark else _names(prop)
    parts = (*children, *rules(prop.quality, path, object_))
    column = mark or prop.column
    return element(
        prop, ElementKind.PROPERTY, names, column, path, found, parts, object_name=object_, nested=nested
    )


def _type(prop: Property) -> object:
    made = physical(prop.physical_type or "")
    if made.type is not None and made.type.parts and (prop.properties or prop.items or prop.map):
        # What is inside is compared part by part below; saying it twice would be two findings.
        return type(made)(DataType(made.type.name), made.type.name)
    return made


def _options(options: TypeOptions) -> Iterator[tuple[str, Value]]:
    for key, raw in written(options).items():
        if key == "required":
            continue
        bound = _EXCLUSIVE.get(key, key)
        normal: object = (raw, key in _EXCLUSIVE) if bound in ("minimum", "maximum") else canonical(raw)
        if key == "defaultTimezone":
            normal = zone(str(raw))
            if normal == "UTC":
                continue
        name = f"{OPTIONS}.{bound}"
        if bound != key and options.has(bound):
            # Both keys are written: the tighter one holds, and at the same number that is the open end.
            normal = _tighter(bound, (getattr(options, bound), False), (raw, True))
        elif key in ("minimum", "maximum") and options.has(f"exclusive{key.capitalize()}"):
            continue
        shown = f"{raw} (exclusive)" if key in _EXCLUSIVE else raw
        yield name, value(options, key, normal, shown)


def _tighter(bound: str, closed: tuple[Any, bool], open_: tuple[Any, bool]) -> tuple[Any, bool]:
    first, second = closed[0], open_[0]
    if type(first) is not type(second):
        first, second = str(first), str(second)
    if bound == "minimum":
        return open_ if second >= first else closed
    return open_ if second <= first else closed


def _allowed(holder: Described, enum: list[Any], quality: list[Quality]) -> Iterator[tuple[str, Value]]:
    """The values that an enum or a rule without tolerance allows; what both allow where there are several."""
    sets: list[tuple[set[object], Value]] = []
    if enum:
        sets.append((set(_items(unordered(enum))), value(holder, "enum", unordered(enum), show(enum))))
    for rule in quality:
        found = valid_values(rule)
        if found is not None and told_by_allowed_values(rule):
            key = "validValues" if rule.valid_values is not None else "arguments"
            sets.append((set(_items(found[0])), value(rule, key, *found)))
    if sets:
        common = set.intersection(*(one for one, _ in sets))
        first = sets[0][1]
        shown = first.shown if len(sets) == 1 else sorted(common, key=repr)
        yield "allowedValues", Value(tuple(sorted(common, key=repr)), shown, first.at, first.pointer)


def _enum_labels(prop: Property) -> Iterator[tuple[str, Value]]:
    """What an enum says of its values besides the values themselves."""
    labels = unordered([one for one in prop.enum or () if len(written(one)) > 1])
    if labels:
        yield "enumLabels", value(prop, "enum", labels, show(prop.enum))


def _items(normal: object) -> tuple[object, ...]:
    return normal if isinstance(normal, tuple) else ()


def _keys(
    one: SchemaObject, walked: list[FlatElement], by_pointer: Mapping[str, Property]
) -> Iterator[tuple[str, Value]]:
    """The primary key and the partition as sequences of columns."""
    rows = [(flat, by_pointer[flat.pointer]) for flat in walked if flat.pointer in by_pointer]
    primary = [row for row in rows if row[1].primary_key]
    primary.sort(key=lambda row: _position(row[1].primary_key_position))
    if primary:
        normal = tuple(_inside(flat, one) for flat, _ in primary)
        yield "primaryKey", value(primary[0][1], "primaryKey", normal, list(normal))
    keys = [row for row in rows if row[1].partitioned]
    keys.sort(key=lambda row: _position(row[1].partition_key_position))
    if keys:
        parts = tuple((_inside(flat, one), _transform(prop)) for flat, prop in keys)
        shown = [f"{transform}({name})" if transform else name for name, transform in parts]
        yield "partition", value(keys[0][1], "partitioned", parts, shown)


def _position(position: int | None) -> int:
    return 1 << 30 if position is None or position < 0 else position


def _inside(flat: FlatElement, one: SchemaObject) -> str:
    return flat.path.removeprefix(f"{one.column}.")


def _transform(prop: Property) -> str:
    custom = prop.custom("partitionTransform")
    return str(custom.value) if custom is not None else ""


def _inner_relations(
    one: SchemaObject, walked: list[FlatElement], by_pointer: Mapping[str, Property]
) -> Iterator[FlatElement]:
    """Those of the properties, said as the object would: what they come from is where they stand."""
    for flat in walked:
        prop = by_pointer.get(flat.pointer)
        for relation in prop.relationships if prop else ():
            yield _relation(relation, flat.path, one)


def _relation(relation: Relationship, origin: str, one: SchemaObject) -> FlatElement:
    start = origin if origin.startswith(f"{one.name}.") or "." in origin else f"{one.column}.{origin}"
    name = f"{start} -> {_joined(relation.to)}"
    kind, path = ElementKind.RELATIONSHIP, f"{one.column}.relationships.{name}"
    found = values(relation, kind)
    return element(relation, kind, (("column", name),), name, path, found, object_name=one.column)


def _joined(names: str | list[str] | None) -> str:
    return ",".join(names) if isinstance(names, list) else names or ""


# Where data lives. A server is the same under another label when these are.
COORDINATES = (
    "account", "catalog", "catalogUrl", "database", "dataset", "endpointUrl", "host", "location", "namespace",
    "path", "port", "project", "region", "regionName", "schema", "serviceName", "stream", "warehouse",
)  # fmt: skip
_S3 = re.compile(r"^s3[an]://")


def normalise(contract: Contract) -> FlatElement:
    """The contract as elements. Total: every key that says something is in a value or in a part."""
    found = values(contract, ElementKind.CONTRACT)
    found.pop("team", None)
    found.update(_team(contract))
    parts: list[FlatElement] = [
        *objects(contract.objects),
        *slas(contract),
        *(_server(server) for server in contract.servers),
        *_roles(contract.roles, ""),
        *(_support(channel) for channel in contract.support),
        *_price(contract),
    ]
    keys = (("id", contract.id),)
    return FlatElement(ElementKind.CONTRACT, keys, contract.id, "", "", contract.at(), found, tuple(parts))


def _team(contract: Contract) -> Iterator[tuple[str, Value]]:
    """The team in one of its two forms; a list of members says the same as an object that holds it."""
    team = contract.team
    if not team:
        return
    raw: Any = team if isinstance(team, Team) else {"members": team}
    normal = canonical(raw)
    if normal:
        yield "team", value(contract, "team", normal, show(raw))


def _server(server: Server) -> FlatElement:
    found = values(server, ElementKind.SERVER)
    for key in server.model_extra or {}:
        text = server.get(key)
        if text is not None and SERVER_DEFAULTS.get((server.type, key)) != text:
            found[key] = value(server, key, _coordinate(text) if key in COORDINATES else text, text)
    for key in ("customProperties.csv", "customProperties.dq:csv"):
        if key in found:
            raw = found.pop(key)
            form, wrong = extension.csv(server)
            stated = form.model_dump(exclude_defaults=True)
            # To say what holds anyway changes nothing; what is not understood is compared as it is written.
            if wrong or stated:
                found["csv"] = replace(raw, normal=raw.normal if wrong else canonical(stated))
    place = "|".join(str(found[key].normal) for key in COORDINATES if key in found)
    keys = (
        ("id", server.id or ""),
        ("column", server.server),
        ("place", f"{server.type}|{place}" if place else ""),
    )
    path = f"servers.{server.server}"
    parts = tuple(_roles(server.roles, f"{path}."))
    return element(server, ElementKind.SERVER, keys, server.server, path, found, parts)


def _coordinate(text: str) -> str:
    return _S3.sub("s3://", text).rstrip("/")


def _roles(roles: list[Role], prefix: str) -> Iterator[FlatElement]:
    for role in roles:
        keys = (("id", role.id or ""), ("column", role.role))
        found = values(role, ElementKind.ROLE)
        yield element(role, ElementKind.ROLE, keys, role.role, f"{prefix}roles.{role.role}", found)


def _support(channel: SupportChannel) -> FlatElement:
    found = values(channel, ElementKind.SUPPORT)
    route, _ = extension.route(channel)
    found.update(vendor_terms(route, "route"))
    keys = (("id", channel.id or ""), ("column", channel.channel))
    path = f"support.{channel.channel}"
    return element(channel, ElementKind.SUPPORT, keys, channel.channel, path, found)


def _price(contract: Contract) -> Iterator[FlatElement]:
    if contract.price is not None:
        found = values(contract.price, ElementKind.PRICE)
        keys = (("column", "price"),)
        yield element(contract.price, ElementKind.PRICE, keys, "price", "price", found)
