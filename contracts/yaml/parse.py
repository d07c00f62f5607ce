"""A contract file to a typed `Contract` and everything that is wrong with its form, all at once.

Parts that do not fit are cut out one by one and the rest is typed, so that the rules can speak about the
rest in the same run. `Parsed.cut` remembers the places, so that no rule complains about what was cut.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from dq.contracts import versions
from dq.contracts.model import Contract
from dq.contracts.node import Node
from dq.contracts.shared.outcome import Finding, Location, Severity
from dq.contracts.yaml import odcs_rules, source
from dq.contracts.yaml.source_map import PLACE, Place
from dq.contracts.yaml.type_errors import explain, keys_at, nearest
from dq.contracts.yaml.yaml_builder import MAX_DEPTH

N = TypeVar("N", bound=Node)

# More mistakes of form than anyone reads at once; the rest is cut out all the same.
MAX_FINDINGS = 1_000
# With more errors of form than this, a file is none of ours.
MAX_ERRORS = 20_000

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
        findings += odcs_rules.faults(contract)
    # One mistake, one finding: where another kind of value is wanted, the form says so already.
    told = {finding.at for finding in findings if finding.rule == "wrong-type"}
    findings = [one for one in findings if one.rule != "ambiguous-number" or one.at not in told]
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
            if len(details) > MAX_ERRORS:
                return None, [*findings, _hopeless(top, len(details))], cut
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


def _hopeless(top: dict[str, Any], count: int) -> Finding:
    message = f"{count:,} values or keys are not those of a contract; perhaps it is another kind of file."
    mend = "Compare it with a contract that 'dq init' writes."
    return _finding("not-a-contract", message, mend, top[PLACE].at())


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


def _finding(rule: str, message: str, mend: str, at: Location, path: str = "") -> Finding:
    return Finding(rule, Severity.ERROR, message, mend, at, path)
