"""A contract file to a typed `Contract` and everything that is wrong with its form, all at once.

Parts that do not fit are cut out one by one and the rest is typed, so that the rules can speak about the
rest in the same run. `Parsed.cut` remembers the places, so that no rule complains about what was cut.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from dq.contracts import versions
from dq.contracts.model import Contract
from dq.contracts.shared.document_kind import OLD_KEY, foreign
from dq.contracts.shared.outcome import Finding, mistake
from dq.contracts.shared.source_map import PLACE, Place
from dq.contracts.shared.spelling import nearest
from dq.contracts.type_errors import keys_at
from dq.contracts.typed import typed
from dq.contracts.yaml import odcs_rules, open_places, source


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
        findings += odcs_rules.faults(contract)
        findings = open_places.softened(findings, contract.odcs, cut)
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
