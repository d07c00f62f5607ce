"""What the standard asks beyond the form of single values: by version, by server type, and no empty keys."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from dq.contracts import servers, versions
from dq.contracts.model import Contract, Property, Quality, Server, Team
from dq.contracts.node import Node
from dq.contracts.shared.outcome import Finding, Severity, mistake
from dq.contracts.shared.source_map import PLACE
from dq.contracts.shared.spelling import nearest, suggestion
from dq.contracts.type_errors import empty, read_as

# Where the standard allows a key without a value.
_MAY_BE_EMPTY = {
    ("SlaProperty", "value"), ("SlaProperty", "valueExt"), ("CustomProperty", "value"),
    ("EnumValue", "value"), ("Quality", "mustBe"), ("Quality", "mustNotBe"),
}  # fmt: skip

_ENUM = "Write 'enum: [{value: …}]', or leave it out."


def faults(contract: Contract) -> Iterator[Finding]:
    """What a typed contract has that its own version of ODCS does not allow, in no particular order."""
    odcs = contract.odcs
    for node in nodes(contract):
        yield from _empty(node)
        if odcs < (3, 2, 0):
            yield from _too_new(node, odcs)
        if odcs >= (3, 2, 0) and isinstance(node, Property) and _is_empty_enum(node):
            message = "an enum needs a value; without one, no value would be allowed."
            yield mistake("wrong-type", message, _ENUM, node.at("enum"), node.path("enum"))
    for server in contract.servers:
        yield from _server(server, odcs)
    if odcs < (3, 2, 0) and contract.status is None and not contract.has("status"):
        message = f"a contract of ODCS {versions.text(odcs)} needs 'status'."
        yield mistake("missing-key", message, "Add 'status: active'.", contract.at(), "status")
    if odcs < (3, 1, 0) and isinstance(contract.team, Team):
        message = f"a team with a name arrives with ODCS v3.1.0; this contract says {contract.api_version}."
        mend = "List the members under 'team', or write 'apiVersion: v3.1.0' or later."
        yield mistake("later-version", message, mend, contract.at("team"), "team")


def nodes(node: Node) -> Iterator[Node]:
    """This node and every node inside it that the file writes."""
    stack: list[Any] = [node]
    while stack:
        here = stack.pop()
        if isinstance(here, Node):
            yield here
            values = here.__dict__
            for name in here.model_fields_set:
                value = values.get(name)
                if name != "place" and value.__class__ not in _PLAIN:
                    stack.append(value)
        elif isinstance(here, list):
            stack.extend(here)


_PLAIN = (str, bool, int, float, type(None))


def _empty(node: Node) -> Iterator[Finding]:
    written = node.__dict__
    for name in node.model_fields_set:
        if written.get(name, "") is not None:
            continue
        key = type(node).model_fields[name].alias or name
        if (type(node).__name__, key) not in _MAY_BE_EMPTY:
            yield empty(node.place, key)


def _too_new(node: Node, odcs: versions.Version) -> Iterator[Finding]:
    kind = type(node).__name__
    for key in _LATER.get(kind, _NONE) & node.place.keys.keys():
        value = getattr(node, "logical_type", None) if key == "logicalType" else None
        since = versions.KEY_SINCE.get((kind, key)) or (
            servers.LATER_KEYS.get(key)
            if kind == "Server"
            else versions.VALUE_SINCE.get((kind, key, value or ""))
        )
        if since is not None and since > odcs and _is_metric_alone(node, key):
            arrived = versions.text(since)
            message = (
                f"a library rule needs 'rule' in ODCS {versions.text(odcs)}; 'metric' arrives with {arrived}."
            )
            mend = f"Write 'rule: {getattr(node, 'metric', '…')}', or 'apiVersion: {arrived}' or later."
            yield mistake("missing-key", message, mend, node.place.at_key(key), node.path(key))
        elif since is not None and since > odcs:
            shown = f"{key}: {value}" if value else repr(key)
            arrived = versions.text(since)
            message = f"{shown} arrives with ODCS {arrived}; this contract says {versions.text(odcs)}."
            mend = f"Write 'apiVersion: {arrived}' or later, or leave it out."
            found = mistake("later-version", message, mend, node.place.at_key(key), node.path(key))
            # The text of 3.0.0 had these already, its schema not yet.
            yield replace(found, severity=Severity.WARNING) if since < (3, 1, 0) else found


def _is_metric_alone(node: Node, key: str) -> bool:
    """Whether it is the `metric` of a library rule that has no `rule`, which is asked for before 3.1."""
    if not isinstance(node, Quality) or key != "metric" or node.metric is None:
        return False
    return node.type == "library" and not node.has("rule")


def _is_empty_enum(prop: Property) -> bool:
    """Whether the file writes `[]`; a list of entries that were all cut out has findings already."""
    return prop.enum == [] and not prop.place.items.get("enum")


def _later_keys() -> dict[str, set[str]]:
    """Type of node -> the keys of it that did not come with 3.0.0, or have values that did not."""
    found: dict[str, set[str]] = {"Server": set(servers.LATER_KEYS)}
    for kind, key, *_ in [*versions.KEY_SINCE, *versions.VALUE_SINCE]:
        found.setdefault(kind, set()).add(key)
    return found


_LATER = _later_keys()
_NONE: set[str] = set()


def _server(server: Server, odcs: versions.Version) -> Iterator[Finding]:
    kind = servers.SERVER_TYPES.get(server.type)
    if kind is None:
        hint = nearest(server.type, servers.SERVER_TYPES)
        message = f"server type {server.type!r} is not one of ODCS."
        mend = f"Write {hint!r}." if hint else "Use 'custom' for a type that ODCS does not name."
        yield mistake("unknown-server-type", message, mend, server.at("type"), server.path("type"))
        return
    if kind.since > odcs:
        arrived = versions.text(kind.since)
        message = f"server type {server.type!r} arrives with ODCS {arrived}."
        mend = f"Write 'apiVersion: {arrived}' or later, or 'type: custom'."
        yield mistake("later-version", message, mend, server.at("type"), server.path("type"))
    written = server.model_extra or {}
    names = {key: _name(server.type, key, odcs) for key in (*kind.required, *kind.optional)}
    known = set(names.values())
    for key, value in written.items():
        at, path = server.at(key), server.path(key)
        if key == PLACE:
            continue
        if key not in known:
            message = f"a server of type {server.type!r} has no key {key!r}."
            mend = suggestion(key, [*known, *Server.model_fields], f"It takes {', '.join(sorted(known))}.")
            yield mistake("unknown-key", message, mend, server.place.at_key(key), path)
        elif value is None:
            yield empty(server.place, key)
        elif not _fits(key, value, odcs):
            raw = server.place.raw.get(key, "…")
            message = f"{key} must be text, and YAML reads {raw} as {read_as(value)}."
            mend = f'Quote it: {key}: "{raw}".'
            if key == "port":
                message, mend = f"port must be a whole number, not {read_as(value)}.", "Write port: 5432."
            elif isinstance(value, (dict, list)):
                message, mend = f"{key} must be text, not {read_as(value)}.", f"Write '{key}: …'."
            yield mistake("wrong-type", message, mend, at, path)
    required = kind.required
    if server.type in servers.EARLIER_REQUIRED and odcs < servers.EARLIER_REQUIRED[server.type][1]:
        required += servers.EARLIER_REQUIRED[server.type][0]
    strange = [key for key in written if key not in known and key != PLACE]
    for key in (names[key] for key in required):
        # An unknown key that reads like it says it all.
        # Where the standard allows any key, its warning lets the contract pass.
        if key not in written and (odcs < (3, 1, 0) or not any(nearest(one, [key]) for one in strange)):
            message = f"a server of type {server.type!r} needs {key!r}."
            yield mistake("missing-key", message, f"Add '{key}: …'.", server.at(), server.path(key))


def _name(server: str, key: str, odcs: versions.Version) -> str:
    """What a key of a server was called in this version."""
    earlier, until = servers.EARLIER_NAMES.get((server, key), ("", odcs))
    return earlier if odcs < until else key


def _fits(key: str, value: object, odcs: versions.Version) -> bool:
    """A port is a number, from 3.2 on also text such as `${PORT}`; everything else is text."""
    if key == "port" and isinstance(value, int):
        return not isinstance(value, bool)
    return isinstance(value, str) and (key != "port" or odcs >= (3, 2, 0))
