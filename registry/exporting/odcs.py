"""ODCS of another version: the whole contract, in the words that this version has.

Which key and value arrived when is told by `odcs.py` and `servers.py` of the contract.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial

from dq.contracts import extension, odcs
from dq.contracts.model import (
    PLACE,
    Contract,
    Node,
    Property,
    Quality,
    SchemaObject,
    Server,
    SlaProperty,
    plain,
)
from dq.contracts.outcome import UsageError
from dq.contracts.types import catalog_type
from dq.contracts.yaml.insertion import block
from dq.registry.exporting import Exported, ExportKind, Losses

Values = dict[str, object]

# A logical type that arrived later -> the one that stands for it before, beside the exact physical type.
_INSTEAD = {"timestamp": "date", "time": "string", "map": "object", "vector": "array"}
# Key of an exclusive bound -> the bound that it was a flag of, in 3.0.
_FLAGS = {"exclusiveMinimum": "minimum", "exclusiveMaximum": "maximum"}
_LATER_METRICS = {later: earlier for earlier, later in odcs.EARLIER_METRICS.items()}
# Texts of 3.0.0 have keys that its JSON Schema lacks; they are kept.
_STRICT: odcs.Version = (3, 1, 0)


def write(target: str, contract: Contract, objects: list[SchemaObject]) -> Exported:
    """The contract. Raises UsageError for some of its objects: a contract is whole."""
    if len(objects) < len(contract.objects):
        raise UsageError("odcs is of the whole contract.", "Leave --object out.")
    converter = _Converter(odcs.of(target), contract.odcs)
    made = converter.values(contract)
    text = "\n".join(block({**made, "apiVersion": target}, "")) + "\n"
    return Exported(text, converter.losses.all())


@dataclass(slots=True)
class _Converter:
    """From one version to another, either way."""

    target: odcs.Version
    source: odcs.Version
    losses: Losses = field(default_factory=Losses)
    moved: list[Values] = field(default_factory=list)
    """Terms of deliveries, which stand at the contract where service levels take none."""

    def values(self, node: Node) -> Values:
        """The node's keys and values in the order of the file, as the target has them."""
        kind = type(node).__name__
        made: Values = {}
        for key, value in _written(node):
            since = odcs.KEY_SINCE.get((kind, key), (3, 0, 0))
            if since > self.target and since >= _STRICT:
                self._leave(node, kind, key)
                continue
            if since > self.target:
                self.losses.note(
                    node.path(key), key, "it is: the text of that version has it, its JSON Schema has not"
                )
            made[key] = self._value(value)
        if kind in _AFTER:
            _AFTER[kind](self, node, made)
        return made

    def _value(self, value: object) -> object:
        if isinstance(value, Node):
            return self.values(value)
        if isinstance(value, list):
            return [self._value(one) for one in value]
        return plain(value)

    def _leave(self, node: Node, kind: str, key: str) -> None:
        # Said by those who know what stands for it; whose terms they are, the name of a term says too.
        ours = kind == "CustomProperty" and getattr(node, "vendor", None) == extension.VENDOR
        if (kind, key) not in _REPLACED and not ours:
            self.losses.leave(node.path(key), key)

    def crosses(self, arrived: odcs.Version) -> bool:
        """Whether the target is older than a version and the source is not."""
        return self.target < arrived <= self.source

    def reaches(self, arrived: odcs.Version) -> bool:
        """Whether the target has what the source is too old for."""
        return self.source < arrived <= self.target


def _written(node: Node) -> Iterator[tuple[str, object]]:
    """Keys and values as the file has them, in its order."""
    model = type(node).model_fields
    found = {
        model[name].alias or name: getattr(node, name) for name in node.model_fields_set if name in model
    }
    found |= node.model_extra or {}
    found.pop(PLACE, None)
    order = {key: at for at, key in enumerate(node.place.keys)}
    yield from sorted(found.items(), key=lambda pair: order.get(pair[0], len(order)))


# What `values` need not tell, because a function below says what stands for it.
_REPLACED = {
    ("Property", "enum"), ("Property", "map"), ("Quality", "metric"), ("Quality", "arguments"),
    ("SlaProperty", "customProperties"),
}  # fmt: skip


def _contract(to: _Converter, node: Node, made: Values) -> None:
    assert isinstance(node, Contract)
    if to.target < (3, 2, 0) and "status" not in made:
        # A contract without one is in force, here and in 3.2.
        made["status"] = "active"
        to.losses.note("status", "no status", "active")
    team = made.get("team")
    if to.target < _STRICT and isinstance(team, dict):
        for key in team.keys() - {"members"}:
            to.losses.leave(f"team.{key}", key)
        made["team"] = team.get("members", [])
    if to.moved:
        own = made.get("customProperties")
        made["customProperties"] = [*(own if isinstance(own, list) else ()), *to.moved]


def _property(to: _Converter, node: Node, made: Values) -> None:
    assert isinstance(node, Property)
    logical = node.logical_type or ""
    since = odcs.VALUE_SINCE.get(("Property", "logicalType", logical), (3, 0, 0))
    if since > to.target:
        made["logicalType"] = _INSTEAD[logical]
        made["physicalType"] = str(catalog_type(node))
        to.losses.note(node.path("logicalType"), logical, f"{_INSTEAD[logical]} over {made['physicalType']}")
        if made.pop("logicalTypeOptions", None) is not None:
            to.losses.leave(node.path("logicalTypeOptions"), "logicalTypeOptions")
    elif to.reaches(_STRICT) and logical == "date" and catalog_type(node).name.startswith("timestamp"):
        made["logicalType"] = "timestamp"
        to.losses.note(node.path("logicalType"), "a date with a time", "timestamp")
    if node.map is not None and to.target < (3, 2, 0):
        to.losses.note(node.path("map"), "map", "the physical type alone")
        made.setdefault("physicalType", str(catalog_type(node)))
    if node.enum and to.target < (3, 2, 0):
        allowed = [one.value for one in node.enum]
        rule = {
            "type": "library",
            "metric": "invalidValues",
            "arguments": {"validValues": allowed},
            "mustBe": 0,
        }
        if to.target < _STRICT:
            rule = {"type": "library", "rule": "validValues", "validValues": allowed, "mustBe": 0}
        own = made.get("quality")
        made["quality"] = [*(own if isinstance(own, list) else ()), rule]
        to.losses.note(node.path("enum"), "enum", "a quality rule of its values")


def _object(to: _Converter, node: Node, made: Values) -> None:
    assert isinstance(node, SchemaObject)
    if node.logical_type == "blob" and to.target < _STRICT:
        made["logicalType"] = "object"
        to.losses.note(node.path("logicalType"), "blob", "object")


def _quality(to: _Converter, node: Node, made: Values) -> None:
    assert isinstance(node, Quality)
    if to.target < _STRICT and node.metric is not None:
        made["rule"] = _LATER_METRICS.get(node.metric, node.metric)
        arguments = plain(node.arguments)
        for key, value in arguments.items() if isinstance(arguments, dict) else ():
            if key == "validValues":
                made["validValues"] = value
            else:
                to.losses.leave(node.path(f"arguments.{key}"), key)
    elif to.target < _STRICT and node.arguments is not None:
        to.losses.leave(node.path("arguments"), "arguments")
    elif to.reaches(_STRICT) and node.metric is None and node.rule is not None and node.type == "library":
        del made["rule"]
        if not node.operators():
            # Later rules have a bound, and which one was meant nobody said.
            made |= {"type": "text", "description": node.description or node.rule}
            to.losses.note(node.path("rule"), f"{node.rule} without a bound", "a text")
            return
        made["metric"] = odcs.EARLIER_METRICS.get(node.rule, node.rule)
        if made.get("validValues") is not None:
            made["arguments"] = {"validValues": made.pop("validValues")}


def _options(to: _Converter, node: Node, made: Values) -> None:
    for key, bound in _FLAGS.items():
        value = made.get(key)
        if to.crosses(_STRICT) and value is not None:
            if bound in made:
                # Only one of the two can be said, and which of them is stricter the type decides.
                to.losses.leave(node.path(key), key)
                del made[key]
            else:
                made[bound], made[key] = value, True
        elif to.reaches(_STRICT) and isinstance(value, bool):
            del made[key]
            if value and bound in made:
                made[key] = made.pop(bound)


def _server(to: _Converter, node: Node, made: Values) -> None:
    assert isinstance(node, Server)
    for (kind, later), (earlier, until) in odcs.EARLIER_NAMES.items():
        if node.type == kind and to.crosses(until) and later in made:
            made[earlier] = made.pop(later)
        elif node.type == kind and to.reaches(until) and earlier in made:
            made[later] = made.pop(earlier)
    for key, since in odcs.LATER_KEYS.items():
        if since > to.target and key in made:
            to.losses.leave(node.path(key), key)
            del made[key]
    if to.crosses((3, 2, 0)) and isinstance(made.get("port"), str):
        # A variable: until 3.2 a port is a number.
        to.losses.leave(node.path("port"), f"port {made.pop('port')}")
    known = odcs.SERVER_TYPES[node.type]
    earlier_keys, until = odcs.EARLIER_REQUIRED.get(node.type, ((), (3, 0, 0)))
    required = {*known.required, *(earlier_keys if to.crosses(until) else ())}
    names = {later: earlier for (_, later), (earlier, when) in odcs.EARLIER_NAMES.items() if to.target < when}
    if known.since <= to.target and not any(names.get(key, key) not in made for key in required):
        return
    made["type"] = "custom"
    to.losses.note(node.path("type"), f"type {node.type}", "custom")
    taken = {*odcs.SERVER_TYPES["custom"].optional, *Server.model_fields, "customProperties"}
    for key in [key for key in made if key not in taken]:
        to.losses.leave(node.path(key), key)
        del made[key]


def _channel(to: _Converter, node: Node, made: Values) -> None:
    if to.target < _STRICT and "url" not in made:
        to.losses.tell(f"{node.path()}: the channel has no url, and the version wants one")


def _level(to: _Converter, node: Node, _: Values) -> None:
    assert isinstance(node, SlaProperty)
    if to.target >= (3, 2, 0):
        return
    for at, custom in enumerate(node.custom_properties):
        if custom.property == "delivery" and node.id is not None and to.target >= _STRICT:
            to.moved.append({"property": f"delivery:{node.id}", "value": plain(custom.value)})
            to.losses.note(f"{node.path('customProperties')}[{at}]", "delivery",
                           f"delivery:{node.id} of the contract")  # fmt: skip
        else:
            to.losses.leave(f"{node.path('customProperties')}[{at}]", custom.property)


_AFTER: dict[str, Callable[[_Converter, Node, Values], None]] = {
    "Contract": _contract,
    "Property": _property,
    "Quality": _quality,
    "SchemaObject": _object,
    "Server": _server,
    "SlaProperty": _level,
    "SupportChannel": _channel,
    "TypeOptions": _options,
}

KIND = ExportKind(
    "odcs",
    "the contract in another version of ODCS",
    partial(write, odcs.NEWEST),
    others={name: partial(write, name) for name in odcs.SUPPORTED},
    comment="#",
)
