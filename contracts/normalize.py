"""Normal form of a contract: equivalent contracts compare equal, regardless of order or spelling."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from dq.contracts import diff, extension
from dq.contracts.extension import Delivery
from dq.contracts.metrics import implementation
from dq.contracts.model import (
    OPERATORS,
    SOURCE_MAP_KEY,
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
from dq.contracts.service_levels import ServiceLevel, parse_length, parse_level, service_level_name
from dq.contracts.slo import delivery_terms
from dq.contracts.types import DataType

# Numbers that a quality rule allows, as one interval for all operators.


@dataclass(frozen=True, slots=True)
class Interval:
    """From `low` to `high`; an open end excludes its bound."""

    low: float
    high: float
    low_open: bool = False
    high_open: bool = False

    def within(self, other: Interval) -> bool:
        """Return True if every number of this one is in the other."""
        low = self.low > other.low or (self.low == other.low and (self.low_open or not other.low_open))
        high = self.high < other.high or (self.high == other.high and (self.high_open or not other.high_open))
        return low and high


@dataclass(frozen=True, slots=True)
class RuleThreshold:
    """Allowed values of a rule's metric: an interval, or else a form that only equals itself."""

    interval: Interval | None
    form: tuple[str, ...]
    unit: str


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


_INTERVALS: Mapping[str, Callable[[Any], Interval]] = {
    "mustBe": lambda value: Interval(value, value),
    "mustBeLessThan": lambda value: Interval(-math.inf, value, high_open=True),
    "mustBeLessOrEqualTo": lambda value: Interval(-math.inf, value),
    "mustBeGreaterThan": lambda value: Interval(value, math.inf, low_open=True),
    "mustBeGreaterOrEqualTo": lambda value: Interval(value, math.inf),
    "mustBeBetween": lambda value: Interval(value[0], value[1]),
}
# Metrics that count rows or are a share of them: never negative, so `< 1 row` is `= 0 rows`.
_COUNTS = frozenset({"nullValues", "missingValues", "invalidValues", "duplicateValues", "rowCount"})


def rule_threshold(rule: Quality) -> RuleThreshold | None:
    """Return the rule's threshold, or None if it has no operator."""
    operators, unit_text = operators_and_unit(rule)
    unit = (unit_text or "rows").lower()
    unit = {"%": "percent", "row": "rows", "count": "rows"}.get(unit, unit)
    if not operators:
        return None
    form = tuple(sorted(f"{name} {value}" for name, value in operators))
    if len(operators) != 1:
        return RuleThreshold(None, form, unit)
    name, value = operators[0]
    numeric = all(_is_number(item) for item in value) if isinstance(value, list) else _is_number(value)
    pair = not isinstance(value, list) or len(value) == 2
    if name not in _INTERVALS or not numeric or not pair:
        return RuleThreshold(None, form, unit)
    return RuleThreshold(_tighten_count(_INTERVALS[name](value), metric_name(rule), unit), (), unit)


def _tighten_count(interval: Interval, metric_: str, unit: str) -> Interval:
    # A row count in percent is a growth rate.
    if metric_ not in _COUNTS or (metric_ == "rowCount" and unit == "percent"):
        return interval
    low, low_open = interval.low, interval.low_open
    if low < 0:
        low, low_open = 0.0, False
    high, high_open = interval.high, interval.high_open
    if unit == "rows" and high_open and float(high).is_integer():
        high, high_open = high - 1, False
    return Interval(low, high, low_open, high_open)


def metric_name(rule: Quality) -> str:
    """Return the metric's name; ODCS 3.0 called it `rule`, and a rule of dq's engine has it as its check."""
    check_name = implementation(rule).get("check")
    return rule.metric or rule.rule or (check_name if isinstance(check_name, str) else "")


def operators_and_unit(rule: Quality) -> tuple[list[tuple[str, Any]], str | None]:
    """Return the operators of a rule and its unit, from the rule or its implementation."""
    settings = implementation(rule)
    own_operators = [(name, settings[name]) for name in OPERATORS if name in settings]
    unit = settings.get("unit", rule.unit)
    return own_operators + rule.operators(), unit if isinstance(unit, str) else None


def other_settings(rule: Quality) -> dict[str, object]:
    """Return the settings of an implementation other than its check, arguments, unit and operators."""
    compared_keys = {"check", "arguments", "unit", *OPERATORS}
    return {key: value for key, value in implementation(rule).items() if key not in compared_keys}


def allows_no_failures(rule: Quality) -> bool:
    """Return True if the rule tolerates no failing row: no operator, or zero."""
    bounds = rule_threshold(rule)
    return bounds is None or (
        bounds.interval is not None and bounds.interval.high == 0 and not bounds.interval.high_open
    )


# Service levels and quality rules in normal form.

# Delivery terms that determine due times are compared together with the cron expression, by due times.
_TIMING = frozenset({"timezone", "dialect", "dst", "calendar"})
_DURATIONS = frozenset({"grace", "window", "giveUpAfter"})
_PROMISED = ("grace", "objective")


def service_levels(contract: Contract) -> Iterator[diff.FlatElement]:
    """Yield the service levels of a contract."""
    for sla in contract.sla_properties:
        name = service_level_name(sla.property)
        element_name = _element_name(contract, sla)
        attributes = diff.attribute_values(sla, diff.ElementKind.SLA)
        if sla.value is not None:
            source_value = f"{sla.value} {sla.unit}" if sla.unit else sla.value
            attributes["level"] = diff.attribute_value(
                sla, "value", parse_level(sla.property, sla.value, sla.unit), source_value
            )
        if attributes.get("scheduler", diff.AttributeValue("", "", sla.locate())).normal == "cron":
            del attributes["scheduler"]
        delivery = delivery_terms(contract, sla)
        if sla.schedule is not None:
            schedule_timing = diff.parse_timing(sla.schedule, _with_normal_zone(delivery))
            source_value = f"{sla.schedule} ({delivery.timezone})" if delivery else sla.schedule
            attributes["schedule"] = diff.attribute_value(sla, "schedule", schedule_timing, source_value)
        if element_name:
            attributes["element"] = diff.attribute_value(sla, "element", element_name)
        if delivery is not None:
            attributes["delivery"] = diff.AttributeValue(
                True, "delivery terms", delivery.locate(), delivery.path()
            )
            attributes.update(vendor_terms(delivery, "delivery", skip=_TIMING))
            # Without the key, the default is promised: changing it is neither an addition nor a removal.
            for key in _PROMISED:
                raw = getattr(delivery, key)
                attributes.setdefault(
                    f"delivery.{key}", diff.attribute_value(delivery, key, _term(key, raw), raw)
                )
        keys = (
            ("id", sla.id or ""),
            ("full", f"{name}|{element_name}|{sla.driver or ''}"),
            ("element", f"{name}|{element_name}"),
            ("name", name),
        )
        label = sla.id or (f"{name}({element_name})" if sla.element else name)
        yield diff.flat_element(sla, diff.ElementKind.SLA, keys, name, f"sla.{label}", attributes)


def _with_normal_zone(delivery: Delivery | None) -> Delivery | None:
    if delivery is None or diff.normalize_zone(delivery.timezone) == delivery.timezone:
        return delivery
    return delivery.model_copy(update={"timezone": "UTC"})


def _element_name(contract: Contract, sla: SlaProperty) -> str:
    """Return the element of the entry, prefixed with the object's name if there is only one object."""
    element_text = sla.element or contract.sla_default_element or ""
    if len(contract.objects) != 1:
        return ",".join(sorted(part.strip() for part in element_text.split(",")))
    schema_object = contract.objects[0]
    parts = [part.strip() for part in element_text.split(",")] if element_text else [schema_object.name]
    object_names = (schema_object.name, schema_object.physical_name)
    qualified = [
        part if part in object_names or part.split(".")[0] in object_names else f"{schema_object.name}.{part}"
        for part in parts
    ]
    return ",".join(sorted(qualified))


def vendor_terms(
    node: Node, prefix: str, skip: frozenset[str] = frozenset()
) -> Iterator[tuple[str, diff.AttributeValue]]:
    """Yield the values of one of our extensions that differ from their defaults."""
    for key, name, _ in diff.model_keys(type(node)):
        raw = getattr(node, name)
        if key in skip or raw is None or raw == type(node).model_fields[name].default:
            continue
        yield f"{prefix}.{key}", diff.attribute_value(node, key, _term(key, raw), diff.display_value(raw))


def _term(key: str, raw: Any) -> object:
    if key in _DURATIONS and isinstance(raw, str):
        return parse_length(raw) or ServiceLevel("text", None, raw)
    if key == "objective":
        return parse_level("objective", raw, None)
    return diff.canonical(raw)


def rules(quality_rules: list[Quality], parent_path: str, column: str) -> Iterator[diff.FlatElement]:
    """Yield the quality rules of one object or property."""
    for rule in quality_rules:
        attributes = diff.attribute_values(rule, diff.ElementKind.QUALITY)
        name = metric_name(rule)
        valid = valid_values(rule)
        rule_text = _rule_text(rule)
        if rule_text:
            # In a rule of type text, the description is the rule.
            del attributes["description"]
            attributes["text"] = diff.attribute_value(rule, "description", rule_text, str(rule.description))
        if name:
            key = "metric" if rule.metric else "rule" if rule.rule else "implementation"
            attributes["metric"] = diff.attribute_value(rule, key, name)
        arguments = _arguments(rule)
        if arguments:
            key = "arguments" if rule.arguments else "implementation"
            attributes["arguments"] = diff.attribute_value(
                rule, key, diff.canonical(arguments), diff.display_value(arguments)
            )
        if valid is not None and not is_allowed_values_rule(rule):
            attributes["validValues"] = diff.attribute_value(rule, _values_key(rule), *valid)
        bounds = rule_threshold(rule)
        if bounds is not None:
            operators, unit = operators_and_unit(rule)
            source_value = ", ".join(f"{key} {raw}" for key, raw in operators)
            source_value += f" {unit}" if unit else ""
            key_name = operators[0][0] if operators[0][0] in rule.place.keys else "implementation"
            attributes["threshold"] = diff.attribute_value(rule, key_name, bounds, source_value)
        if name and isinstance(rule.implementation, dict | str) and not rule.metric and not rule.rule:
            # The other attributes report the rest of the implementation.
            attributes["implementation"] = diff.attribute_value(
                rule, "implementation", diff.canonical(other_settings(rule)), name
            )
        terms_, _ = extension.scope(rule)
        attributes.update(vendor_terms(terms_, "scope"))
        # Rules of different engines are different rules.
        subject = f"{rule.type}|{name or rule.engine or ''}"
        content = diff.canonical(
            {key: attribute.normal for key, attribute in attributes.items() if key != "threshold"}
        )
        keys = (
            ("id", rule.id or ""),
            ("name", rule.name or ""),
            ("whole", repr((content, bounds))),
            ("content", repr(content)),
            ("metric", f"{subject}|{rule.query or rule_text}"),
            # Text rules with different texts are different rules of the same type.
            ("type", "" if rule_text else subject),
        )
        label = rule.id or rule.name or name or rule.type
        path = f"{parent_path}.quality.{label}"
        quiet = is_allowed_values_rule(rule)
        yield diff.flat_element(
            rule, diff.ElementKind.QUALITY, keys, name, path, attributes, object_name=column, quiet=quiet
        )


def _rule_text(rule: Quality) -> str:
    """Return the text of a rule of type text, without case and repeated white space, or ""."""
    return " ".join((rule.description or "").casefold().split()) if rule.type == "text" else ""


def _values_key(rule: Quality) -> str:
    return "validValues" if rule.valid_values is not None else "arguments"


def _arguments(rule: Quality) -> dict[str, object]:
    raw = rule.arguments if isinstance(rule.arguments, dict) else implementation(rule).get("arguments")
    raw = raw if isinstance(raw, dict) else {}
    return {key: inner for key, inner in raw.items() if key not in (SOURCE_MAP_KEY, "validValues")}


def valid_values(rule: Quality) -> tuple[object, object] | None:
    """Return the valid values of a rule in normal form and as written, or None without a list."""
    values = rule.valid_values
    if values is None and isinstance(rule.arguments, dict):
        values = rule.arguments.get("validValues")
    return (diff.canonical_set(values), diff.display_value(values)) if isinstance(values, list) else None


def is_allowed_values_rule(rule: Quality) -> bool:
    """Return True if the rule only lists allowed values, as `enum` would."""
    return (
        valid_values(rule) is not None
        and metric_name(rule) in ("", "invalidValues")
        and allows_no_failures(rule)
        and not _arguments(rule)
    )


# Objects and properties in normal form: types, bounds, allowed values, keys and partitions.

OPTIONS = "logicalTypeOptions"
# An exclusive bound is the same bound with an open end.
_EXCLUSIVE = {"exclusiveMinimum": "minimum", "exclusiveMaximum": "maximum"}


def schema_objects(objects: list[SchemaObject]) -> Iterator[diff.FlatElement]:
    """Yield the tables of a contract."""
    for schema_object in objects:
        attributes = diff.attribute_values(schema_object, diff.ElementKind.OBJECT)
        attributes.pop("physicalType", None)
        if schema_object.name == schema_object.column:
            attributes.pop("name", None)
        attributes.update(_allowed_values(schema_object, [], schema_object.quality))
        attributes.update(_physical_kind(schema_object))
        dataset, _ = extension.dataset(schema_object)
        attributes.update(vendor_terms(dataset, "dataset"))
        columns = tuple(
            _property(prop, schema_object.column, schema_object.column, frozenset())
            for prop in schema_object.properties
        )
        flat_properties = [inner for column in columns for inner in column.walk()]
        by_pointer = {prop.path(): prop for prop in schema_object.walk()}
        attributes.update(_keys_and_partition(schema_object, flat_properties, by_pointer))
        own_relations = (
            _relation(relation, _join_names(relation.from_), schema_object)
            for relation in schema_object.relationships
        )
        relations = (*own_relations, *_property_relations(schema_object, flat_properties, by_pointer))
        parts = (
            *columns,
            *rules(schema_object.quality, schema_object.column, schema_object.column),
            *relations,
        )
        name = schema_object.column
        yield diff.flat_element(
            schema_object,
            diff.ElementKind.OBJECT,
            _element_keys(schema_object),
            name,
            name,
            attributes,
            parts,
            object_name=name,
        )


def _physical_kind(schema_object: SchemaObject) -> Iterator[tuple[str, diff.AttributeValue]]:
    """Yield the physical type of an object (table, view …) in lower case."""
    if schema_object.physical_type is not None and schema_object.physical_type.lower() != "table":
        yield (
            "physicalType",
            diff.attribute_value(
                schema_object,
                "physicalType",
                schema_object.physical_type.lower(),
                schema_object.physical_type,
            ),
        )


def _element_keys(described: Described) -> tuple[tuple[str, str], ...]:
    custom = described.custom("renamedFrom")
    origin = str(custom.value) if custom is not None and isinstance(custom.value, str) else ""
    return (
        ("id", described.id or ""),
        ("column", described.column),
        ("renamedFrom", origin),
        ("name", described.name or ""),
        ("case", described.column.lower()),
    )


def _property(
    prop: Property,
    parent_path: str,
    object_: str,
    required: frozenset[str],
    suffix: str = "",
    nested: bool = False,
) -> diff.FlatElement:
    """Return one property; `suffix` replaces the name of items and of a map's key and value, which have
    none.
    """
    path = f"{parent_path}{suffix}" if suffix else f"{parent_path}.{prop.column}"
    attributes = diff.attribute_values(prop, diff.ElementKind.PROPERTY)
    if prop.name in required or prop.column in required:
        attributes["required"] = attributes.get("required") or diff.AttributeValue(
            "true", True, prop.locate(), prop.path()
        )
    if prop.name == prop.column:
        # The name of a column is its identity; it is an attribute only in addition to a physical name.
        attributes.pop("name", None)
    if prop.physical_type is not None:
        attributes["physicalType"] = diff.attribute_value(
            prop, "physicalType", _physical_type(prop), prop.physical_type
        )
    enum_values = [enum_value.value for enum_value in prop.enum] if prop.enum else []
    attributes.update(_allowed_values(prop, enum_values, prop.quality))
    attributes.update(_enum_labels(prop))
    options = prop.logical_type_options
    inner_required: frozenset[str] = frozenset()
    if options is not None:
        attributes.update(_options(options))
        inner_required = frozenset(options.required or [])
    children = [_property(child, path, object_, inner_required, nested=True) for child in prop.properties]
    if prop.items is not None:
        children.append(_property(prop.items, path, object_, inner_required, "[]", nested=True))
    if prop.map is not None:
        children.append(_property(prop.map.key, path, object_, frozenset(), "{key}", nested=True))
        children.append(_property(prop.map.value, path, object_, inner_required, "{}", nested=True))
    names = (("column", suffix),) if suffix else _element_keys(prop)
    parts = (*children, *rules(prop.quality, path, object_))
    column = suffix or prop.column
    return diff.flat_element(
        prop,
        diff.ElementKind.PROPERTY,
        names,
        column,
        path,
        attributes,
        parts,
        object_name=object_,
        nested=nested,
    )


def _physical_type(prop: Property) -> object:
    physical_type = diff.normalize_physical_type(prop.physical_type or "")
    if (
        physical_type.type is not None
        and physical_type.type.parts
        and (prop.properties or prop.items or prop.map)
    ):
        # Nested properties are compared separately, so that a change is reported once.
        return type(physical_type)(DataType(physical_type.type.name), physical_type.type.name)
    return physical_type


def _options(options: TypeOptions) -> Iterator[tuple[str, diff.AttributeValue]]:
    for key, raw in diff.explicit_values(options).items():
        if key == "required":
            continue
        bound = _EXCLUSIVE.get(key, key)
        normal: object = (raw, key in _EXCLUSIVE) if bound in ("minimum", "maximum") else diff.canonical(raw)
        if key == "defaultTimezone":
            normal = diff.normalize_zone(str(raw))
            if normal == "UTC":
                continue
        name = f"{OPTIONS}.{bound}"
        if bound != key and options.has(bound):
            # If both keys are set, the tighter one applies, which for equal numbers is the exclusive one.
            normal = _tighter_bound(bound, (getattr(options, bound), False), (raw, True))
        elif key in ("minimum", "maximum") and options.has(f"exclusive{key.capitalize()}"):
            continue
        source_value = f"{raw} (exclusive)" if key in _EXCLUSIVE else raw
        yield name, diff.attribute_value(options, key, normal, source_value)


def _tighter_bound(bound: str, closed: tuple[Any, bool], open_: tuple[Any, bool]) -> tuple[Any, bool]:
    first, second = closed[0], open_[0]
    if type(first) is not type(second):
        first, second = str(first), str(second)
    if bound == "minimum":
        return open_ if second >= first else closed
    return open_ if second <= first else closed


def _allowed_values(
    node: Described, enum: list[Any], quality: list[Quality]
) -> Iterator[tuple[str, diff.AttributeValue]]:
    """Yield the values allowed by an enum and by rules without tolerance; their intersection if there are
    several.
    """
    sets: list[tuple[set[object], diff.AttributeValue]] = []
    if enum:
        sets.append(
            (
                set(_items(diff.canonical_set(enum))),
                diff.attribute_value(node, "enum", diff.canonical_set(enum), diff.display_value(enum)),
            )
        )
    for rule in quality:
        valid = valid_values(rule)
        if valid is not None and is_allowed_values_rule(rule):
            key = "validValues" if rule.valid_values is not None else "arguments"
            sets.append((set(_items(valid[0])), diff.attribute_value(rule, key, *valid)))
    if sets:
        common = set.intersection(*(allowed for allowed, _ in sets))
        first = sets[0][1]
        source_value = first.source_value if len(sets) == 1 else sorted(common, key=repr)
        yield (
            "allowedValues",
            diff.AttributeValue(tuple(sorted(common, key=repr)), source_value, first.location, first.pointer),
        )


def _enum_labels(prop: Property) -> Iterator[tuple[str, diff.AttributeValue]]:
    """Yield the labels and other keys of an enum's values."""
    labels = diff.canonical_set(
        [enum_value for enum_value in prop.enum or () if len(diff.explicit_values(enum_value)) > 1]
    )
    if labels:
        yield "enumLabels", diff.attribute_value(prop, "enum", labels, diff.display_value(prop.enum))


def _items(normal: object) -> tuple[object, ...]:
    return normal if isinstance(normal, tuple) else ()


def _keys_and_partition(
    schema_object: SchemaObject, flat_properties: list[diff.FlatElement], by_pointer: Mapping[str, Property]
) -> Iterator[tuple[str, diff.AttributeValue]]:
    """Yield the primary key and the partition as sequences of columns."""
    rows = [(flat, by_pointer[flat.pointer]) for flat in flat_properties if flat.pointer in by_pointer]
    primary = [row for row in rows if row[1].primary_key]
    primary.sort(key=lambda row: _position(row[1].primary_key_position))
    if primary:
        normal = tuple(_path_in_object(flat, schema_object) for flat, _ in primary)
        yield "primaryKey", diff.attribute_value(primary[0][1], "primaryKey", normal, list(normal))
    keys = [row for row in rows if row[1].partitioned]
    keys.sort(key=lambda row: _position(row[1].partition_key_position))
    if keys:
        parts = tuple((_path_in_object(flat, schema_object), _transform(prop)) for flat, prop in keys)
        source_value = [f"{transform}({name})" if transform else name for name, transform in parts]
        yield "partition", diff.attribute_value(keys[0][1], "partitioned", parts, source_value)


def _position(position: int | None) -> int:
    return 1 << 30 if position is None or position < 0 else position


def _path_in_object(flat: diff.FlatElement, schema_object: SchemaObject) -> str:
    return flat.path.removeprefix(f"{schema_object.column}.")


def _transform(prop: Property) -> str:
    custom = prop.custom("partitionTransform")
    return str(custom.value) if custom is not None else ""


def _property_relations(
    schema_object: SchemaObject, flat_properties: list[diff.FlatElement], by_pointer: Mapping[str, Property]
) -> Iterator[diff.FlatElement]:
    """Yield the relationships of properties in the object's form, with the property as the source."""
    for flat in flat_properties:
        prop = by_pointer.get(flat.pointer)
        for relation in prop.relationships if prop else ():
            yield _relation(relation, flat.path, schema_object)


def _relation(relation: Relationship, source: str, schema_object: SchemaObject) -> diff.FlatElement:
    start = (
        source
        if source.startswith(f"{schema_object.name}.") or "." in source
        else f"{schema_object.column}.{source}"
    )
    name = f"{start} -> {_join_names(relation.to)}"
    kind, path = diff.ElementKind.RELATIONSHIP, f"{schema_object.column}.relationships.{name}"
    attributes = diff.attribute_values(relation, kind)
    return diff.flat_element(
        relation, kind, (("column", name),), name, path, attributes, object_name=schema_object.column
    )


def _join_names(names: str | list[str] | None) -> str:
    return ",".join(names) if isinstance(names, list) else names or ""


# Location of the data. Servers with equal values are the same server under another name.
COORDINATES = (
    "account", "catalog", "catalogUrl", "database", "dataset", "endpointUrl", "host", "location", "namespace",
    "path", "port", "project", "region", "regionName", "schema", "serviceName", "stream", "warehouse",
)  # fmt: skip
_S3 = re.compile(r"^s3[an]://")


def normalize(contract: Contract) -> diff.FlatElement:
    """Return the contract as elements. Complete: every key that is set is in an attribute or a part."""
    attributes = diff.attribute_values(contract, diff.ElementKind.CONTRACT)
    attributes.pop("team", None)
    attributes.update(_team(contract))
    parts: list[diff.FlatElement] = [
        *schema_objects(contract.objects),
        *service_levels(contract),
        *(_server_element(server) for server in contract.servers),
        *_roles(contract.roles, ""),
        *(_support(channel) for channel in contract.support),
        *_price(contract),
    ]
    keys = (("id", contract.id),)
    return diff.FlatElement(
        diff.ElementKind.CONTRACT, keys, contract.id, "", "", contract.locate(), attributes, tuple(parts)
    )


def _team(contract: Contract) -> Iterator[tuple[str, diff.AttributeValue]]:
    """Yield the team; a list of members is equivalent to an object that contains it."""
    team = contract.team
    if not team:
        return
    raw: Any = team if isinstance(team, Team) else {"members": team}
    normal = diff.canonical(raw)
    if normal:
        yield "team", diff.attribute_value(contract, "team", normal, diff.display_value(raw))


def _server_element(server: Server) -> diff.FlatElement:
    """Return a server with its locations, CSV options and layout in normal form."""
    attributes = diff.attribute_values(server, diff.ElementKind.SERVER)
    for key in server.model_extra or {}:
        text = server.get(key)
        if text is not None and diff.SERVER_DEFAULTS.get((server.type, key)) != text:
            attributes[key] = diff.attribute_value(
                server, key, _normalize_location(text) if key in COORDINATES else text, text
            )
    for key in ("customProperties.csv", "customProperties.dq:csv"):
        if key in attributes:
            raw = attributes.pop(key)
            csv_options, csv_findings = extension.csv(server)
            non_defaults = csv_options.model_dump(exclude_defaults=True)
            # Explicit defaults change nothing; invalid terms are compared as written.
            if csv_findings or non_defaults:
                attributes["csv"] = replace(
                    raw, normal=raw.normal if csv_findings else diff.canonical(non_defaults)
                )
    for key in ("customProperties.layout", "customProperties.dq:layout"):
        if key in attributes:
            layout, layout_findings = extension.layout(server)
            raw = attributes.pop(key)
            attributes["layout"] = (
                raw if layout_findings else replace(raw, normal=layout.template, source_value=layout.template)
            )
    coordinates = "|".join(str(attributes[key].normal) for key in COORDINATES if key in attributes)
    keys = (
        ("id", server.id or ""),
        ("column", server.server),
        ("place", f"{server.type}|{coordinates}" if coordinates else ""),
    )
    path = f"servers.{server.server}"
    parts = tuple(_roles(server.roles, f"{path}."))
    return diff.flat_element(server, diff.ElementKind.SERVER, keys, server.server, path, attributes, parts)


def _normalize_location(text: str) -> str:
    return _S3.sub("s3://", text).rstrip("/")


def _roles(roles: list[Role], prefix: str) -> Iterator[diff.FlatElement]:
    for role in roles:
        keys = (("id", role.id or ""), ("column", role.role))
        attributes = diff.attribute_values(role, diff.ElementKind.ROLE)
        yield diff.flat_element(
            role, diff.ElementKind.ROLE, keys, role.role, f"{prefix}roles.{role.role}", attributes
        )


def _support(channel: SupportChannel) -> diff.FlatElement:
    attributes = diff.attribute_values(channel, diff.ElementKind.SUPPORT)
    route, _ = extension.route(channel)
    attributes.update(vendor_terms(route, "route"))
    keys = (("id", channel.id or ""), ("column", channel.channel))
    path = f"support.{channel.channel}"
    return diff.flat_element(channel, diff.ElementKind.SUPPORT, keys, channel.channel, path, attributes)


def _price(contract: Contract) -> Iterator[diff.FlatElement]:
    if contract.price is not None:
        attributes = diff.attribute_values(contract.price, diff.ElementKind.PRICE)
        keys = (("column", "price"),)
        yield diff.flat_element(contract.price, diff.ElementKind.PRICE, keys, "price", "price", attributes)
