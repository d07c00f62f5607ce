"""ODCS of another version: the whole contract, with the keys of that version.

`dq.contracts.odcs` has the versions in which keys and values were introduced.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial

from dq.contracts import extension, odcs
from dq.contracts.model import (
    SOURCE_MAP_KEY,
    Contract,
    Node,
    Property,
    Quality,
    SchemaObject,
    Server,
    SlaProperty,
    strip_source_maps,
)
from dq.contracts.outcome import UsageError
from dq.contracts.types import catalog_type
from dq.contracts.yaml.portable import block
from dq.registry.exporting import Exported, ExportKind, LossReport

Values = dict[str, object]

# A newer logical type -> its replacement in earlier versions, together with the exact physical type.
_INSTEAD = {"timestamp": "date", "time": "string", "map": "object", "vector": "array"}
# Key of an exclusive bound -> the bound for which it was a flag in 3.0.
_FLAGS = {"exclusiveMinimum": "minimum", "exclusiveMaximum": "maximum"}
_LATER_METRICS = {later: earlier for earlier, later in odcs.EARLIER_METRICS.items()}
# The text of 3.0.0 has keys that its JSON Schema lacks; they are kept.
_STRICT: odcs.Version = (3, 1, 0)


def write(target: str, contract: Contract, objects: list[SchemaObject]) -> Exported:
    """Return the contract. Raises UsageError for a selection of its objects."""
    if len(objects) < len(contract.objects):
        raise UsageError("odcs exports the whole contract.", "Remove --object.")
    converter = _Converter(odcs.parse_version(target), contract.odcs)
    document = converter.values(contract)
    text = "\n".join(block({**document, "apiVersion": target}, "")) + "\n"
    return Exported(text, converter.losses.all())


@dataclass(slots=True)
class _Converter:
    """Conversion from one version to another, older or newer."""

    target: odcs.Version
    source: odcs.Version
    losses: LossReport = field(default_factory=LossReport)
    moved: list[Values] = field(default_factory=list)
    """Delivery properties moved to the contract, for versions without custom properties of service levels."""

    def values(self, node: Node) -> Values:
        """Return the node's keys and values in the order of the file, converted to the target version."""
        kind = type(node).__name__
        result: Values = {}
        for key, value in _written_items(node):
            since = odcs.KEY_SINCE.get((kind, key), (3, 0, 0))
            if since > self.target and since >= _STRICT:
                self._leave(node, kind, key)
                continue
            if since > self.target:  # kept, see `_STRICT`
                self.losses.note(
                    node.path(key), key, "is: the text of that version has it, but its JSON Schema does not"
                )
            result[key] = self._value(value)
        if kind in _AFTER:
            _AFTER[kind](self, node, result)
        return result

    def _value(self, value: object) -> object:
        if isinstance(value, Node):
            return self.values(value)
        if isinstance(value, list):
            return [self._value(item) for item in value]
        return strip_source_maps(value)

    def _leave(self, node: Node, kind: str, key: str) -> None:
        # Replaced keys are reported by their functions; the vendor is also in the name of our properties.
        is_managed = kind == "CustomProperty" and getattr(node, "vendor", None) == extension.VENDOR
        if (kind, key) not in _REPLACED and not is_managed:
            self.losses.leave(node.path(key), key)

    def crosses(self, since: odcs.Version) -> bool:
        """Return True if the target is older than the version `since` and the source is not."""
        return self.target < since <= self.source

    def reaches(self, since: odcs.Version) -> bool:
        """Return True if the source is older than the version `since` and the target is not."""
        return self.source < since <= self.target


def _written_items(node: Node) -> Iterator[tuple[str, object]]:
    """Yield keys and values in the order of the file."""
    model = type(node).model_fields
    values = {
        model[name].alias or name: getattr(node, name) for name in node.model_fields_set if name in model
    }
    values |= node.model_extra or {}
    values.pop(SOURCE_MAP_KEY, None)
    order = {key: index for index, key in enumerate(node.place.keys)}
    yield from sorted(values.items(), key=lambda pair: order.get(pair[0], len(order)))


# Not reported by `values`, because a function below reports the replacement.
_REPLACED = {
    ("Property", "enum"), ("Property", "map"), ("Quality", "metric"), ("Quality", "arguments"),
    ("SlaProperty", "customProperties"),
}  # fmt: skip


def _contract(converter: _Converter, node: Node, values: Values) -> None:
    assert isinstance(node, Contract)
    if converter.target < (3, 2, 0) and "status" not in values:
        # A contract without status is in force, also in 3.2.
        values["status"] = "active"
        converter.losses.note("status", "no status", "active")
    team = values.get("team")
    if converter.target < _STRICT and isinstance(team, dict):
        for key in team.keys() - {"members"}:
            converter.losses.leave(f"team.{key}", key)
        values["team"] = team.get("members", [])
    if converter.moved:
        own = values.get("customProperties")
        values["customProperties"] = [*(own if isinstance(own, list) else ()), *converter.moved]


def _property(converter: _Converter, node: Node, values: Values) -> None:
    assert isinstance(node, Property)
    logical = node.logical_type or ""
    since = odcs.VALUE_SINCE.get(("Property", "logicalType", logical), (3, 0, 0))
    if since > converter.target:
        values["logicalType"] = _INSTEAD[logical]
        values["physicalType"] = str(catalog_type(node))
        converter.losses.note(
            node.path("logicalType"), logical, f"{_INSTEAD[logical]} over {values['physicalType']}"
        )
        if values.pop("logicalTypeOptions", None) is not None:
            converter.losses.leave(node.path("logicalTypeOptions"), "logicalTypeOptions")
    elif converter.reaches(_STRICT) and logical == "date" and catalog_type(node).name.startswith("timestamp"):
        values["logicalType"] = "timestamp"
        converter.losses.note(node.path("logicalType"), "a date with a time", "timestamp")
    if node.map is not None and converter.target < (3, 2, 0):
        converter.losses.note(node.path("map"), "map", "the physical type only")
        values.setdefault("physicalType", str(catalog_type(node)))
    if node.enum and converter.target < (3, 2, 0):
        allowed = [entry.value for entry in node.enum]
        rule = {
            "type": "library",
            "metric": "invalidValues",
            "arguments": {"validValues": allowed},
            "mustBe": 0,
        }
        if converter.target < _STRICT:
            rule = {"type": "library", "rule": "validValues", "validValues": allowed, "mustBe": 0}
        own = values.get("quality")
        values["quality"] = [*(own if isinstance(own, list) else ()), rule]
        converter.losses.note(node.path("enum"), "enum", "a quality rule with its values")


def _object(converter: _Converter, node: Node, values: Values) -> None:
    assert isinstance(node, SchemaObject)
    if node.logical_type == "blob" and converter.target < _STRICT:
        values["logicalType"] = "object"
        converter.losses.note(node.path("logicalType"), "blob", "object")


def _quality(converter: _Converter, node: Node, values: Values) -> None:
    assert isinstance(node, Quality)
    if converter.target < _STRICT and node.metric is not None:
        values["rule"] = _LATER_METRICS.get(node.metric, node.metric)
        arguments = strip_source_maps(node.arguments)
        for key, value in arguments.items() if isinstance(arguments, dict) else ():
            if key == "validValues":
                values["validValues"] = value
            else:
                converter.losses.leave(node.path(f"arguments.{key}"), key)
    elif converter.target < _STRICT and node.arguments is not None:
        converter.losses.leave(node.path("arguments"), "arguments")
    elif (
        converter.reaches(_STRICT)
        and node.metric is None
        and node.rule is not None
        and node.type == "library"
    ):
        del values["rule"]
        if not node.operators():
            # Newer versions require a bound, and the contract does not have one.
            values |= {"type": "text", "description": node.description or node.rule}
            converter.losses.note(node.path("rule"), f"{node.rule} without a bound", "a text")
            return
        values["metric"] = odcs.EARLIER_METRICS.get(node.rule, node.rule)
        if values.get("validValues") is not None:
            values["arguments"] = {"validValues": values.pop("validValues")}


def _options(converter: _Converter, node: Node, values: Values) -> None:
    for key, bound in _FLAGS.items():
        value = values.get(key)
        if converter.crosses(_STRICT) and value is not None:
            if bound in values:
                # Only one of the two can be kept, and the type decides which one is stricter.
                converter.losses.leave(node.path(key), key)
                del values[key]
            else:
                values[bound], values[key] = value, True
        elif converter.reaches(_STRICT) and isinstance(value, bool):
            del values[key]
            if value and bound in values:
                values[key] = values.pop(bound)


def _server(converter: _Converter, node: Node, values: Values) -> None:
    assert isinstance(node, Server)
    for (kind, later), (earlier, until) in odcs.EARLIER_NAMES.items():
        if node.type == kind and converter.crosses(until) and later in values:
            values[earlier] = values.pop(later)
        elif node.type == kind and converter.reaches(until) and earlier in values:
            values[later] = values.pop(earlier)
    for key, since in odcs.LATER_KEYS.items():
        if since > converter.target and key in values:
            converter.losses.leave(node.path(key), key)
            del values[key]
    if converter.crosses((3, 2, 0)) and isinstance(values.get("port"), str):
        # A variable, while a port is a number before 3.2.
        converter.losses.leave(node.path("port"), f"port {values.pop('port')}")
    server_type = odcs.SERVER_TYPES[node.type]
    earlier_keys, until = odcs.EARLIER_REQUIRED.get(node.type, ((), (3, 0, 0)))
    required = {*server_type.required, *(earlier_keys if converter.crosses(until) else ())}
    names = {
        later: earlier
        for (_, later), (earlier, last) in odcs.EARLIER_NAMES.items()
        if converter.target < last
    }
    if server_type.since <= converter.target and not any(
        names.get(key, key) not in values for key in required
    ):
        return
    values["type"] = "custom"
    converter.losses.note(node.path("type"), f"type {node.type}", "custom")
    allowed = {*odcs.SERVER_TYPES["custom"].optional, *Server.model_fields, "customProperties"}
    for key in [key for key in values if key not in allowed]:
        converter.losses.leave(node.path(key), key)
        del values[key]


def _channel(converter: _Converter, node: Node, values: Values) -> None:
    if converter.target < _STRICT and "url" not in values:
        converter.losses.add(f"{node.path()}: the channel has no url, but the version requires one")


def _move_sla_properties(converter: _Converter, node: Node, _: Values) -> None:
    """Move dq's custom properties of an SLA property to the contract, for versions before 3.2."""
    assert isinstance(node, SlaProperty)
    if converter.target >= (3, 2, 0):
        return
    for index, custom in enumerate(node.custom_properties):
        name = custom.property
        if name in extension.SLA_NAMES and node.id is not None and converter.target >= _STRICT:
            converter.moved.append(
                {"property": f"{name}:{node.id}", "value": strip_source_maps(custom.value)}
            )
            place = f"{node.path('customProperties')}[{index}]"
            converter.losses.note(place, name, f"{name}:{node.id} of the contract")
        else:
            converter.losses.leave(f"{node.path('customProperties')}[{index}]", custom.property)


_AFTER: dict[str, Callable[[_Converter, Node, Values], None]] = {
    "Contract": _contract,
    "Property": _property,
    "Quality": _quality,
    "SchemaObject": _object,
    "Server": _server,
    "SlaProperty": _move_sla_properties,
    "SupportChannel": _channel,
    "TypeOptions": _options,
}

KIND = ExportKind(
    "odcs",
    "the contract in another version of ODCS",
    partial(write, odcs.NEWEST),
    variants={name: partial(write, name) for name in odcs.SUPPORTED},
    comment="#",
)
