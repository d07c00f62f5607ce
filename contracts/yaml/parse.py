"""Parses a contract file to a typed `Contract` and all findings about its form."""

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
    SOURCE_MAP_KEY,
    Contract,
    Node,
    Property,
    Quality,
    Server,
    SourceMap,
    Team,
    describe_value,
    empty_value_finding,
    keys_at,
    parse_model,
)
from dq.contracts.odcs import OLD_KEY, Version, known_format
from dq.contracts.outcome import (
    FORMATS,
    DqError,
    Finding,
    ReadError,
    Severity,
    error_finding,
    nearest,
    suggestion,
)
from dq.contracts.yaml import source

# Requirements of the standard beyond the form of single values: by version, by server type, and empty keys.

# Keys that may have no value.
_MAY_BE_EMPTY = {
    ("SlaProperty", "value"), ("SlaProperty", "valueExt"), ("CustomProperty", "value"),
    ("EnumValue", "value"), ("Quality", "mustBe"), ("Quality", "mustNotBe"),
}  # fmt: skip

_ENUM = "Write 'enum: [{value: …}]', or remove it."


def form_problems(contract: Contract) -> Iterator[Finding]:
    """Return findings about parts that the contract's version of ODCS does not allow, unordered."""
    odcs = contract.odcs
    for node in nodes(contract):
        yield from _empty(node)
        if odcs < (3, 2, 0):
            yield from _too_new(node, odcs)
        if odcs >= (3, 2, 0) and isinstance(node, Property) and _is_empty_enum(node):
            message = "an enum needs a value; without one, no value would be allowed."
            yield error_finding("wrong-type", message, _ENUM, node.locate("enum"), node.path("enum"))
    for server in contract.servers:
        yield from _server(server, odcs)
    if odcs < (3, 2, 0) and contract.status is None and not contract.has("status"):
        message = f"a contract of ODCS {versions.format_version(odcs)} needs 'status'."
        yield error_finding("missing-key", message, "Add 'status: active'.", contract.locate(), "status")
    if odcs < (3, 1, 0) and isinstance(contract.team, Team):
        message = f"a team with a name requires ODCS v3.1.0; this contract uses {contract.api_version}."
        hint = "List the members under 'team', or write 'apiVersion: v3.1.0' or later."
        yield error_finding("later-version", message, hint, contract.locate("team"), "team")


def nodes(node: Node) -> Iterator[Node]:
    """Yield this node and all nodes inside it that are in the file."""
    stack: list[Any] = [node]
    while stack:
        current = stack.pop()
        if isinstance(current, Node):
            yield current
            values = current.__dict__
            for name in current.model_fields_set:
                value = values.get(name)
                if name != "place" and value.__class__ not in _PLAIN:
                    stack.append(value)
        elif isinstance(current, list):
            stack.extend(current)


_PLAIN = (str, bool, int, float, type(None))


def _empty(node: Node) -> list[Finding]:
    values = node.__dict__
    names = [name for name in node.model_fields_set if values.get(name, "") is None]
    if not names:
        return []
    keys = [type(node).model_fields[name].alias or name for name in names]
    return [
        empty_value_finding(node.place, key)
        for key in keys
        if (type(node).__name__, key) not in _MAY_BE_EMPTY
    ]


def _too_new(node: Node, odcs: versions.Version) -> Iterable[Finding]:
    keys = _LATER.get(type(node).__name__)
    return () if keys is None or keys.isdisjoint(node.place.keys) else _later(node, odcs)


def _later(node: Node, odcs: versions.Version) -> Iterator[Finding]:
    kind = type(node).__name__
    for key in _LATER[kind] & node.place.keys.keys():
        value = getattr(node, "logical_type", None) if key == "logicalType" else None
        since = versions.KEY_SINCE.get((kind, key)) or (
            versions.LATER_KEYS.get(key)
            if kind == "Server"
            else versions.VALUE_SINCE.get((kind, key, value or ""))
        )
        if since is not None and since > odcs and _is_metric_alone(node, key):
            arrived = versions.format_version(since)
            message = (
                f"a library rule needs 'rule' in ODCS {versions.format_version(odcs)}; 'metric' "
                f"requires {arrived}."
            )
            hint = f"Write 'rule: {getattr(node, 'metric', '…')}', or 'apiVersion: {arrived}' or later."
            yield error_finding("missing-key", message, hint, node.place.locate_key(key), node.path(key))
        elif since is not None and since > odcs:
            subject = f"{key}: {value}" if value else repr(key)
            arrived = versions.format_version(since)
            message = (
                f"{subject} requires ODCS {arrived}; this contract uses {versions.format_version(odcs)}."
            )
            hint = f"Write 'apiVersion: {arrived}' or later, or remove it."
            finding = error_finding(
                "later-version", message, hint, node.place.locate_key(key), node.path(key)
            )
            # The text of 3.0.0 has these keys, its JSON Schema does not.
            yield replace(finding, severity=Severity.WARNING) if since < (3, 1, 0) else finding


def _is_metric_alone(node: Node, key: str) -> bool:
    """Return True for the `metric` of a library rule without `rule`, which versions before 3.1 require."""
    if not isinstance(node, Quality) or key != "metric" or node.metric is None:
        return False
    return node.type == "library" and not node.has("rule")


def _is_empty_enum(prop: Property) -> bool:
    """Return True if the file has `[]`. A list whose entries were all cut out has findings already."""
    return prop.enum == [] and not prop.place.items.get("enum")


# Type of node -> its keys that are newer than 3.0.0, or have values that are.
_LATER: dict[str, set[str]] = {"Server": set(versions.LATER_KEYS)}
for _kind, _newer, *_ in (*versions.KEY_SINCE, *versions.VALUE_SINCE):
    _LATER.setdefault(_kind, set()).add(_newer)


# Names of server types in other tools -> those of ODCS.
_OTHER_NAMES = {
    **dict.fromkeys(("file", "files", "filesystem", "folder", "fs", "path", "disk"), "local"),
    **dict.fromkeys(("s3a", "minio"), "s3"),
    "pg": "postgres",
}


def _server(server: Server, odcs: versions.Version) -> Iterator[Finding]:
    kind = versions.SERVER_TYPES.get(server.type)
    if kind is None:
        similar_type = _OTHER_NAMES.get(server.type.lower()) or nearest(server.type, versions.SERVER_TYPES)
        message = f"ODCS has no server type {server.type!r}."
        fix = (
            f"Write {similar_type!r}." if similar_type else "Use 'custom' for a type that ODCS does not have."
        )
        yield error_finding("unknown-server-type", message, fix, server.locate("type"), server.path("type"))
        return
    if kind.since > odcs:
        arrived = versions.format_version(kind.since)
        message = f"server type {server.type!r} requires ODCS {arrived}."
        fix = f"Write 'apiVersion: {arrived}' or later, or 'type: custom'."
        yield error_finding("later-version", message, fix, server.locate("type"), server.path("type"))
    extra = server.model_extra or {}
    names = {key: _name(server.type, key, odcs) for key in (*kind.required, *kind.optional)}
    known_keys = set(names.values())
    for key, value in extra.items():
        if key == SOURCE_MAP_KEY:
            continue
        if key not in known_keys:
            message = f"a server of type {server.type!r} has no key {key!r}."
            fix = suggestion(
                key, [*known_keys, *Server.model_fields], f"It takes {', '.join(sorted(known_keys))}."
            )
            yield error_finding("unknown-key", message, fix, server.place.locate_key(key), server.path(key))
        elif value is None:
            yield empty_value_finding(server.place, key)
        elif key == "format" and isinstance(value, str) and value.lower() not in FORMATS:
            similar_format = nearest(value, FORMATS)
            if similar_format is not None:
                finding = error_finding(
                    "unknown-value",
                    f"format {value!r} cannot be read by dq.",
                    f"Did you mean {similar_format!r}?",
                    server.locate(key),
                    server.path(key),
                )
                yield replace(finding, severity=Severity.WARNING)
        elif not _fits(key, value, odcs):
            raw = server.place.raw.get(key, "…")
            message = f"{key} must be text, and YAML reads {raw} as {describe_value(value)}."
            fix = f'Quote it: {key}: "{raw}".'
            if key == "port":
                message, fix = (
                    f"port must be a whole number, not {describe_value(value)}.",
                    "Write e.g. port: 5432.",
                )
            elif isinstance(value, (dict, list)):
                message, fix = f"{key} must be text, not {describe_value(value)}.", f"Write '{key}: …'."
            yield error_finding("wrong-type", message, fix, server.locate(key), server.path(key))
    required = kind.required
    if server.type in versions.EARLIER_REQUIRED and odcs < versions.EARLIER_REQUIRED[server.type][1]:
        required += versions.EARLIER_REQUIRED[server.type][0]
    unknown_keys = [key for key in extra if key not in known_keys and key != SOURCE_MAP_KEY]
    for key in (names[key] for key in required):
        # A similar unknown key has a finding already, except where the standard allows any key: there it is
        # only a warning.
        if key not in extra and (
            odcs < (3, 1, 0) or not any(nearest(unknown, [key]) for unknown in unknown_keys)
        ):
            message = f"a server of type {server.type!r} needs {key!r}."
            yield error_finding("missing-key", message, f"Add '{key}: …'.", server.locate(), server.path(key))


def _name(server: str, key: str, odcs: versions.Version) -> str:
    """Return the name of a server's key in this version."""
    earlier, until = versions.EARLIER_NAMES.get((server, key), ("", odcs))
    return earlier if odcs < until else key


def _fits(key: str, value: object, odcs: versions.Version) -> bool:
    """Return True if the type fits: a port is a number, since 3.2 also text (`${PORT}`); others are text."""
    if key == "port" and isinstance(value, int):
        return not isinstance(value, bool)
    return isinstance(value, str) and (key != "port" or odcs >= (3, 2, 0))


# TABLE: where the JSON Schema of a version allows more, or requires less, than the standard.
#
# Findings there are warnings, because a misspelt key has no effect. Source: the JSON Schemas of ODCS 3.0.0 to
# 3.2.0 (`additionalProperties`, `unevaluatedProperties`, `required`).

# In every version: the mapping that allows any key.
_OPEN = re.compile(r"description")
# In 3.0: the mappings that allow only their own keys. All others allowed any key before 3.1.
_CLOSED_IN_3_0 = re.compile(r"(schema\[\d+\](\.properties\[\d+\]|\.items)*(\.logicalTypeOptions)?)?")
# In 3.0: the mappings without the keys that 3.1 requires.
_ASKS_LESS_IN_3_0 = re.compile(r"(.*\.)?(customProperties|team)\[\d+\]")
_KEYS = ("unknown-key", "later-version")
# Keys with more values in later versions: an unknown value is not an additional key.
_LATER_VALUES = ("logicalType", "type")


def soften(findings: Iterable[Finding], odcs: Version, cut: Iterable[str]) -> list[Finding]:
    """Return the findings, as warnings where the JSON Schema of the contract's version has none.

    `cut` are the paths that were left out of the contract, including missing required keys.
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
        # A misspelt required key: this finding is the only one about its absence.
        return False
    if _OPEN.fullmatch(holder):
        return True
    if odcs >= (3, 1, 0) or _CLOSED_IN_3_0.fullmatch(holder):
        return False
    return finding.rule == "unknown-key" or key not in _LATER_VALUES


def _means(key: str, absent: str) -> bool:
    return key != absent and (key == "$ref" or nearest(key, [absent]) is not None)


# Parsing of a contract file to a typed `Contract` and all findings about its form.
#
# Parts that do not fit are cut out one by one and the remaining contract is typed, so that rules check it in
# the same run. `Parsed.cut` has the paths, so that no rule reports parts that were cut.


@dataclass(frozen=True, slots=True)
class Parsed:
    """Content of a file. `contract` is None if it could not be typed at all.

    `cut` are the paths that were left out because their form is wrong.
    """

    contract: Contract | None
    findings: list[Finding]
    cut: frozenset[str] = field(default=frozenset())


def parse(data: bytes, file: str) -> Parsed:
    """Parse the contract in `data`; never raises for its content.

    `file` is only used for locations. Findings are sorted by location.
    """
    top, findings = source.read(data, file)
    if top is None:
        return Parsed(None, findings)
    place: SourceMap = top[SOURCE_MAP_KEY]
    place.digest = sha256(data).hexdigest()
    problem = _other_format(top)
    if problem is not None:
        return Parsed(None, [*findings, problem])
    findings += _api_version(top)
    contract, form_findings, cut = parse_model(Contract, top)
    findings += form_findings
    if contract is not None:
        findings += form_problems(contract)
        findings = soften(findings, contract.odcs, cut)
    # One mistake, one finding: a value of the wrong type has a finding already.
    wrong_type_locations = {finding.at for finding in findings if finding.rule == "wrong-type"}
    findings = [
        finding
        for finding in findings
        if finding.rule != "ambiguous-number" or finding.at not in wrong_type_locations
    ]
    return Parsed(contract, sorted(findings, key=lambda finding: finding.at), frozenset(cut))


def _other_format(top: dict[str, Any]) -> Finding | None:
    """Return the finding for a format before ODCS 3 or a file of another kind, or None."""
    place: SourceMap = top[SOURCE_MAP_KEY]
    api = top.get("apiVersion")
    if OLD_KEY in top:
        message = "this is a Data Contract Specification, which was replaced by ODCS."
        hint = "Convert it with 'dq import dcs FILE --output NEW.odcs.yaml'."
        return error_finding("old-format", message, hint, place.locate_key(OLD_KEY))
    kind = known_format(top)
    if kind is not None:
        message = f"this looks like {kind}, not a data contract."
        return error_finding(
            "not-a-contract", message, "Pass only the folder that contains the contracts.", place.locate()
        )
    if isinstance(api, str) and api.lstrip("v").startswith("2."):
        message = f"apiVersion {api!r} is ODCS 2, which has a different structure."
        hint = (
            "Migrate it to v3.2.0: 'dq init' creates a skeleton, and the ODCS migration guide maps the keys."
        )
        return error_finding("old-format", message, hint, place.locate("apiVersion"))
    return None


def _api_version(top: dict[str, Any]) -> list[Finding]:
    """Return findings about apiVersion, and set a supported one in `top`."""
    place: SourceMap = top[SOURCE_MAP_KEY]
    api = top.get("apiVersion")
    if api in versions.SUPPORTED:
        return []
    supported = ", ".join(versions.SUPPORTED)
    hint = f"Write 'apiVersion: {versions.NEWEST}'."
    if "apiVersion" not in top:
        if any(nearest(key, ["apiVersion"]) for key in place.keys.keys() - keys_at(Contract)):
            # The unknown key has a finding already.
            top["apiVersion"] = versions.NEWEST
            return []
        message = "apiVersion is missing."
    elif not isinstance(api, str):
        raw = place.raw.get("apiVersion", repr(api))
        message = f"apiVersion {raw} is not text."
    else:
        message = f"apiVersion {api!r} is not one of {supported}."
        if "v" + api in versions.SUPPORTED:
            hint = f"Write 'apiVersion: v{api}'."
    top["apiVersion"] = versions.NEWEST
    return [error_finding("unknown-api-version", message, hint, place.locate("apiVersion"), "apiVersion")]


# The contract of a call of the Python API: a file, a text, or a `Contract`.

# File name in findings about a text.
TEXT = "(text)"


class BrokenContract(DqError):
    """The contract has errors and cannot be used for checks; `findings` has all of them."""

    exit_code = 3

    def __init__(self, message: str, hint: str, findings: tuple[Finding, ...]) -> None:
        super().__init__(message, hint, tuple(map(str, findings)))
        self.findings = findings

    def __str__(self) -> str:
        return "\n    ".join((self.message, *self.details, self.hint))


def read(contract: Contract | Path | str) -> Contract:
    """Return the contract. A `str` with a line break is YAML, every other one a path.

    Raises ReadError for a file that cannot be read, and BrokenContract, with all findings, for a contract
    with errors.
    """
    if isinstance(contract, Contract):
        return contract
    if isinstance(contract, str) and "\n" in contract:
        return parse_valid(contract.encode("utf-8", "surrogatepass"), TEXT)
    try:
        data = files.read_own(Path(contract))
    except files.FileRejected as error:
        raise ReadError(
            f"the contract {str(contract)!r} cannot be read: {error.message}",
            "Pass the path of a contract, its text, or a Contract.",
        ) from error
    return parse_valid(data, str(contract))


def parse_valid(data: bytes, file: str) -> Contract:
    """Return the contract in the bytes of a file. Raises BrokenContract if it has errors."""
    result = parse(data, file)
    errors = tuple(finding for finding in result.findings if finding.severity.blocks)
    if result.contract is not None and not errors:
        return result.contract
    number = f"{len(errors)} error{'' if len(errors) == 1 else 's'}"
    subject = "the contract" if file == TEXT else file
    raise BrokenContract(f"{subject} has {number}:", "Fix them, then run 'dq validate'.", errors)
