"""A contract file to a typed `Contract` and everything that is wrong with its form, all at once.

Parts that do not fit are cut out one by one and the rest is typed, so that the rules can speak about the
rest in the same run. `Parsed.cut` remembers the places, so that no rule complains about what was cut.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from dq.contracts import servers, source, versions
from dq.contracts.form import explain, keys_at, nearest
from dq.contracts.model import Contract, Server
from dq.contracts.node import Node
from dq.contracts.outcome import Finding, Location, Severity
from dq.contracts.place import PLACE, Place
from dq.contracts.tree import MAX_DEPTH

N = TypeVar("N", bound=Node)

# More mistakes of form than anyone reads at once; the rest is cut out all the same.
MAX_FINDINGS = 1_000

# Keys without which a document has no identity; a stand-in lets the rest be read all the same.
_ROOT_STAND_INS: dict[str, Any] = {"id": "", "version": "", "kind": "DataContract"}


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
    old = _other_format(top)
    if old is not None:
        return Parsed(None, [*findings, old])
    findings += _api_version(top)
    contract, form, cut = typed(Contract, top)
    findings += form
    if contract is not None:
        findings += _server_keys(contract)
        if contract.odcs < (3, 2, 0):
            findings += _too_new(contract)
    return Parsed(contract, sorted(findings, key=lambda finding: finding.at), frozenset(cut))


def _other_format(top: dict[str, Any]) -> Finding | None:
    """The one finding for the formats that came before ODCS 3."""
    place: Place = top[PLACE]
    api = top.get("apiVersion")
    if "dataContractSpecification" in top:
        message = "this is a Data Contract Specification, which ODCS has replaced."
        mend = "Convert it once with 'datacontract export odcs', then keep the result."
        return _finding("old-format", message, mend, place.at_key("dataContractSpecification"))
    if isinstance(api, str) and api.lstrip("v").startswith("2."):
        message = f"apiVersion {api!r} is ODCS 2, which has another structure."
        mend = (
            "Move it to v3.2.0: 'dq init' writes the skeleton; the standard's migration guide maps the keys."
        )
        return _finding("old-format", message, mend, place.at("apiVersion"))
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
    return [_finding("unknown-api-version", message, mend, place.at("apiVersion"), "apiVersion")]


def typed(model: type[N], top: dict[str, Any]) -> tuple[N | None, list[Finding], set[str]]:
    """`top` as a `model`, the findings about its form, and the paths that were cut out to get there.

    `top` is changed. None is given when the root itself cannot be typed.
    """
    findings: list[Finding] = []
    cut: set[str] = set()
    # Each round cuts at least one part away, and every part lies at most MAX_DEPTH deep.
    for _ in range(MAX_DEPTH):
        try:
            return model.model_validate(top), findings, cut
        except ValidationError as error:
            details = error.errors(include_url=False)
        removals: list[tuple[Any, int | str]] = []
        misspelt = _misspelt(details)
        for detail in details:
            steps = _steps(top, detail["loc"])
            holder, key, index = _spot(steps)
            path = holder.below(key if index is None else f"{key}[{index}]")
            missing = detail["type"] == "missing"
            if path not in cut and len(findings) < MAX_FINDINGS and not (missing and misspelt(detail)):
                findings.append(explain(detail, model, holder, key, index))
                if len(findings) == MAX_FINDINGS:
                    findings[-1] = replace(
                        findings[-1], message=f"{findings[-1].message} More are not listed."
                    )
            cut.add(path)
            if missing and len(steps) == 1:
                if detail["loc"][0] not in _ROOT_STAND_INS:
                    return None, findings, cut
                continue
            if missing:
                # What lacks a key goes as a whole.
                cut.add(steps[-1][0][PLACE].path)
            removals.append(steps[-2] if missing else steps[-1])
        _remove(removals)
        for key, stand_in in _ROOT_STAND_INS.items():
            if key in cut and model is Contract:
                top.setdefault(key, stand_in)
    return None, findings, cut


def _misspelt(details: list[ErrorDetails]) -> Callable[[ErrorDetails], bool]:
    """Answers whether a key that is missing stands beside an unknown one that reads like it."""
    unknown: dict[tuple[int | str, ...], list[str]] = {}
    for detail in details:
        if detail["type"] == "extra_forbidden":
            unknown.setdefault(detail["loc"][:-1], []).append(str(detail["loc"][-1]))
    return lambda missing: any(
        nearest(written, [str(missing["loc"][-1])]) for written in unknown.get(missing["loc"][:-1], ())
    )


def _steps(top: dict[str, Any], loc: tuple[int | str, ...]) -> list[tuple[Any, int | str]]:
    """The way to a place as (container, key) pairs; pydantic's union tags are not part of it."""
    steps: list[tuple[Any, int | str]] = []
    here: Any = top
    for part in loc:
        written = isinstance(here, dict) and part in here
        if isinstance(part, str) and part.startswith("~") and not written:
            continue
        steps.append((here, part))
        inside = isinstance(here, (dict, list)) and (part in here if isinstance(here, dict) else True)
        here = here[part] if inside else None
    return steps


def _spot(steps: list[tuple[Any, int | str]]) -> tuple[Place, str, int | None]:
    """The mapping that a place is in, the key there, and the index if it is about an item of a list."""
    holder, key = steps[-1]
    if isinstance(holder, dict):
        return holder[PLACE], str(key), None
    mapping, list_key = next(step for step in reversed(steps) if isinstance(step[0], dict))
    return mapping[PLACE], str(list_key), int(key)


def _remove(removals: list[tuple[Any, int | str]]) -> None:
    """Takes the parts out; items of one list from the back, so that indices stay true."""
    indices: dict[int, tuple[list[Any], set[int]]] = {}
    for holder, key in removals:
        if isinstance(holder, dict):
            if key in holder:
                place: Place = holder[PLACE]
                place.cut = {**(place.cut or {}), str(key): holder.pop(key)}
        else:
            indices.setdefault(id(holder), (holder, set()))[1].add(int(key))
    for items, gone in indices.values():
        for index in sorted(gone, reverse=True):
            del items[index]


def _server_keys(contract: Contract) -> Iterator[Finding]:
    for server in contract.servers:
        kind = servers.SERVER_TYPES.get(server.type)
        if kind is None:
            hint = nearest(server.type, servers.SERVER_TYPES)
            message = f"server type {server.type!r} is not one of ODCS."
            mend = f"Write {hint!r}." if hint else "Use 'custom' for a type that ODCS does not name."
            yield _finding("unknown-server-type", message, mend, server.at("type"), server.path("type"))
            continue
        yield from _keys_of(server, kind, contract.odcs)


def _keys_of(server: Server, kind: servers.ServerType, odcs: versions.Version) -> Iterator[Finding]:
    written = server.model_extra or {}
    known = {*kind.required, *kind.optional}
    for key in written:
        if key not in known:
            hint = nearest(key, known | keys_at(Server))
            message = f"a server of type {server.type!r} has no key {key!r}."
            mend = f"Did you mean {hint!r}?" if hint else f"It takes {', '.join(sorted(known))}."
            yield _finding("unknown-key", message, mend, server.place.at_key(key), server.path(key))
        elif isinstance(written[key], (dict, list)):
            yield _finding(
                "wrong-type", f"{key} must be text.", f"Write '{key}: …'.", server.at(key), server.path(key)
            )
    required = kind.required
    if server.type in servers.EARLIER_REQUIRED and odcs < servers.EARLIER_REQUIRED[server.type][1]:
        required += servers.EARLIER_REQUIRED[server.type][0]
    for key in required:
        if key not in written:
            message = f"a server of type {server.type!r} needs {key!r}."
            yield _finding("missing-key", message, f"Add '{key}: …'.", server.at(), server.path(key))


def _too_new(contract: Contract) -> Iterator[Finding]:
    """Keys and values of a later version of the standard than the contract's own."""
    for node in nodes(contract):
        kind = type(node).__name__
        for key in node.place.keys:
            since = versions.KEY_SINCE.get((kind, key))
            if since is None and kind == "Server" and key in servers.LATER_KEYS:
                since = servers.LATER_KEYS[key]
            if since is None:
                value = getattr(node, "logical_type", None) if key == "logicalType" else None
                since = versions.VALUE_SINCE.get((kind, key, value)) if value else None
                shown = f"{key}: {value}"
            else:
                shown = repr(key)
            if since is not None and since > contract.odcs:
                arrived = versions.text(since)
                message = f"{shown} arrives with ODCS {arrived}; this contract says {contract.api_version}."
                mend = f"Write 'apiVersion: {arrived}' or later, or leave it out."
                yield _finding("later-version", message, mend, node.place.at_key(key), node.path(key))


def nodes(node: Node) -> Iterator[Node]:
    """This node and every node inside it, in the order of the model."""
    stack: list[Any] = [node]
    while stack:
        here = stack.pop()
        if isinstance(here, Node):
            yield here
            stack.extend(reversed([value for key, value in here.__dict__.items() if key != "place"]))
        elif isinstance(here, list):
            stack.extend(reversed(here))


def _finding(rule: str, message: str, mend: str, at: Location, path: str = "") -> Finding:
    return Finding(rule, Severity.ERROR, message, mend, at, path)
