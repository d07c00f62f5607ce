"""A contract file to a typed `Contract` and everything that is wrong with its form, all at once."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from dq.contracts import odcs as versions
from dq.contracts.access import files
from dq.contracts.model import (
    PLACE,
    Contract,
    Node,
    Place,
    Property,
    Quality,
    Server,
    Team,
    empty,
    keys_at,
    read_as,
    typed,
)
from dq.contracts.odcs import OLD_KEY, Version, foreign
from dq.contracts.outcome import DqError, Finding, Severity, Unreadable, mistake, nearest, suggestion
from dq.contracts.yaml import source

# What the standard asks beyond the form of single values: by version, by server type, and no empty keys.

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
            versions.LATER_KEYS.get(key)
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


# Type of node -> the keys of it that did not come with 3.0.0, or have values that did not.
_LATER: dict[str, set[str]] = {"Server": set(versions.LATER_KEYS)}
for _kind, _later, *_ in (*versions.KEY_SINCE, *versions.VALUE_SINCE):
    _LATER.setdefault(_kind, set()).add(_later)
_NONE: set[str] = set()


def _server(server: Server, odcs: versions.Version) -> Iterator[Finding]:
    kind = versions.SERVER_TYPES.get(server.type)
    if kind is None:
        hint = nearest(server.type, versions.SERVER_TYPES)
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
        if key == PLACE:
            continue
        if key not in known:
            message = f"a server of type {server.type!r} has no key {key!r}."
            mend = suggestion(key, [*known, *Server.model_fields], f"It takes {', '.join(sorted(known))}.")
            yield mistake("unknown-key", message, mend, server.place.at_key(key), server.path(key))
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
            yield mistake("wrong-type", message, mend, server.at(key), server.path(key))
    required = kind.required
    if server.type in versions.EARLIER_REQUIRED and odcs < versions.EARLIER_REQUIRED[server.type][1]:
        required += versions.EARLIER_REQUIRED[server.type][0]
    strange = [key for key in written if key not in known and key != PLACE]
    for key in (names[key] for key in required):
        # An unknown key that reads like it says it all.
        # Where the standard allows any key, its warning lets the contract pass.
        if key not in written and (odcs < (3, 1, 0) or not any(nearest(one, [key]) for one in strange)):
            message = f"a server of type {server.type!r} needs {key!r}."
            yield mistake("missing-key", message, f"Add '{key}: …'.", server.at(), server.path(key))


def _name(server: str, key: str, odcs: versions.Version) -> str:
    """What a key of a server was called in this version."""
    earlier, until = versions.EARLIER_NAMES.get((server, key), ("", odcs))
    return earlier if odcs < until else key


def _fits(key: str, value: object, odcs: versions.Version) -> bool:
    """A port is a number, from 3.2 on also text such as `${PORT}`; everything else is text."""
    if key == "port" and isinstance(value, int):
        return not isinstance(value, bool)
    return isinstance(value, str) and (key != "port" or odcs >= (3, 2, 0))


# TABLE: where the JSON Schema of a version takes more, or asks for less, than the standard names.
#
# What stands there is told all the same, as a warning: a misspelt key promises nothing. Source: the JSON
# Schemas of ODCS 3.0.0 to 3.2.0 (`additionalProperties`, `unevaluatedProperties`, `required`).

# Of every version: the mapping that takes any key.
_OPEN = re.compile(r"description")
# Of 3.0: the mappings that take no key but their own. Everything else took any key before 3.1.
_CLOSED_IN_3_0 = re.compile(r"(schema\[\d+\](\.properties\[\d+\]|\.items)*(\.logicalTypeOptions)?)?")
# Of 3.0: what lacked the keys that 3.1 asks for.
_ASKS_LESS_IN_3_0 = re.compile(r"(.*\.)?(customProperties|team)\[\d+\]")
_KEYS = ("unknown-key", "later-version")
# Keys of which a later version has more values: a value that the version has not is no further key.
_LATER_VALUES = ("logicalType", "type")


def softened(findings: Iterable[Finding], odcs: Version, cut: Iterable[str]) -> list[Finding]:
    """The findings, those as warnings that the schema of the contract's own version does not share.

    `cut` are the paths that were left out of the contract, among them those of required keys that are
    missing.
    """
    absent: dict[str, list[str]] = defaultdict(list)
    for path in cut:
        holder, _, key = path.rpartition(".")
        absent[holder].append(key)
    return [
        replace(finding, severity=Severity.WARNING) if _allowed(finding, odcs, absent) else finding
        for finding in findings
    ]


def _allowed(finding: Finding, odcs: Version, absent: Mapping[str, list[str]]) -> bool:
    if finding.rule not in (*_KEYS, "missing-key"):
        return False
    holder, _, key = finding.path.rpartition(".")
    if odcs < (3, 1, 0) and _ASKS_LESS_IN_3_0.fullmatch(holder):
        return True
    if finding.rule == "missing-key" or any(_means(key, name) for name in absent.get(holder, ())):
        # The key that was meant is required: its absence is told by this finding alone.
        return False
    if _OPEN.fullmatch(holder):
        return True
    if odcs >= (3, 1, 0) or _CLOSED_IN_3_0.fullmatch(holder):
        return False
    return finding.rule == "unknown-key" or key not in _LATER_VALUES


def _means(key: str, absent: str) -> bool:
    return key != absent and (key == "$ref" or nearest(key, [absent]) is not None)


# A contract file to a typed `Contract` and everything that is wrong with its form, all at once.
#
# Parts that do not fit are cut out one by one and the rest is typed, so that the rules can speak about the
# rest in the same run. `Parsed.cut` remembers the places, so that no rule complains about what was cut.


@dataclass(frozen=True, slots=True)
class Parsed:
    """What a file holds. `contract` is None when nothing of it could be typed.

    `cut` are the paths that were left out because their form is wrong.
    """

    contract: Contract | None
    findings: list[Finding]
    cut: frozenset[str] = field(default=frozenset())


def parse(data: bytes, file: str) -> Parsed:
    """The contract in `data`; never raises for what the file says.

    `file` is only used for places. Findings come sorted by place.
    """
    top, findings = source.read(data, file)
    if top is None:
        return Parsed(None, findings)
    place: Place = top[PLACE]
    place.digest = sha256(data).hexdigest()
    old = _other_format(top)
    if old is not None:
        return Parsed(None, [*findings, old])
    findings += _api_version(top)
    contract, form, cut = typed(Contract, top)
    findings += form
    if contract is not None:
        findings += faults(contract)
        findings = softened(findings, contract.odcs, cut)
    # One mistake, one finding: where another kind of value is wanted, the form says so already.
    told = {finding.at for finding in findings if finding.rule == "wrong-type"}
    findings = [one for one in findings if one.rule != "ambiguous-number" or one.at not in told]
    return Parsed(contract, sorted(findings, key=lambda finding: finding.at), frozenset(cut))


def _other_format(top: dict[str, Any]) -> Finding | None:
    """The one finding for the formats that came before ODCS 3."""
    place: Place = top[PLACE]
    api = top.get("apiVersion")
    if OLD_KEY in top:
        message = "this is a Data Contract Specification, which ODCS has replaced."
        mend = "Convert it once with 'dq import dcs FILE --output NEW.odcs.yaml', then keep that."
        return mistake("old-format", message, mend, place.at_key(OLD_KEY))
    kind = foreign(top)
    if kind is not None:
        message = f"this looks like {kind}, and is no data contract."
        return mistake("not-a-contract", message, "Name the folder of the contracts alone.", place.at())
    if isinstance(api, str) and api.lstrip("v").startswith("2."):
        message = f"apiVersion {api!r} is ODCS 2, which has another structure."
        mend = (
            "Move it to v3.2.0: 'dq init' writes the skeleton; the standard's migration guide maps the keys."
        )
        return mistake("old-format", message, mend, place.at("apiVersion"))
    return None


def _api_version(top: dict[str, Any]) -> list[Finding]:
    """What is wrong with apiVersion; afterwards `top` holds a supported one."""
    place: Place = top[PLACE]
    api = top.get("apiVersion")
    if api in versions.SUPPORTED:
        return []
    known = ", ".join(versions.SUPPORTED)
    mend = f"Write 'apiVersion: {versions.NEWEST}'."
    if "apiVersion" not in top:
        if any(nearest(key, ["apiVersion"]) for key in place.keys.keys() - keys_at(Contract)):
            # The unknown key says it all.
            top["apiVersion"] = versions.NEWEST
            return []
        message = "apiVersion is missing."
    elif not isinstance(api, str):
        written = place.raw.get("apiVersion", repr(api))
        message = f"apiVersion {written} is not text."
    else:
        message = f"apiVersion {api!r} is not one of {known}."
        if "v" + api in versions.SUPPORTED:
            mend = f"Write 'apiVersion: v{api}'."
    top["apiVersion"] = versions.NEWEST
    return [mistake("unknown-api-version", message, mend, place.at("apiVersion"), "apiVersion")]


# The contract that a caller of the Python interface means: a file, a text, or one already read.

# What findings in a text name as its file.
TEXT = "(text)"


class BrokenContract(DqError):
    """The contract has errors, all of which are in `findings`: nothing can be tested by it."""

    exit_code = 3

    def __init__(self, message: str, mend: str, findings: tuple[Finding, ...]) -> None:
        super().__init__(message, mend)
        self.findings = findings


def read(given: Contract | Path | str) -> Contract:
    """The contract. A `str` with a line break is YAML, every other one a path.

    Raises Unreadable for a file that cannot be read, and BrokenContract, with every finding, for one that
    has errors.
    """
    if isinstance(given, Contract):
        return given
    if isinstance(given, str) and "\n" in given:
        return parsed(given.encode("utf-8", "surrogatepass"), TEXT)
    try:
        data = files.read_own(Path(given))
    except files.FileRefused as error:
        raise Unreadable(
            f"the contract {str(given)!r} cannot be read: {error.message}",
            "Give the path of a contract's file, its text, or a Contract.",
        ) from error
    return parsed(data, str(given))


def parsed(data: bytes, file: str) -> Contract:
    """The contract in the bytes of a file. Raises BrokenContract for one that has errors."""
    found = parse(data, file)
    wrong = tuple(finding for finding in found.findings if finding.severity.blocks)
    if found.contract is not None and not wrong:
        return found.contract
    number = f"{len(wrong)} error{'' if len(wrong) == 1 else 's'}"
    listed = "".join(f"\n    {finding}" for finding in wrong)
    where = "the contract" if file == TEXT else file
    raise BrokenContract(f"{where} has {number}:{listed}", "Run 'dq validate' after mending them.", wrong)
