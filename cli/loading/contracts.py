"""Contracts from paths, for commands that use contracts rather than judge them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from dq.contracts import extension
from dq.contracts import slo as promise
from dq.contracts.access.access_policy import Reach
from dq.contracts.access.alert_target import route_terms
from dq.contracts.access.data_location import DataPlace, other_servers, resolve
from dq.contracts.access.discovery import discover, told
from dq.contracts.access.files import FileRefused, read
from dq.contracts.model import Contract, SchemaObject
from dq.contracts.shared.outcome import Finding, Unreadable, UsageError
from dq.contracts.slo import NOT_IN_FORCE as NOT_IN_FORCE
from dq.contracts.slo import Slo
from dq.contracts.yaml.parse import parse
from dq.dataquality.delivery.cycle import DeliveryPlace
from dq.lake.storage import Files

if TYPE_CHECKING:
    from dq.dataquality.delivery.cycle import Watched


@dataclass(frozen=True, slots=True)
class Loaded:
    """The contracts that could be read, by file order, and what kept the others out."""

    contracts: list[Contract]
    findings: list[Finding]
    gone: Mapping[str, str] = field(default_factory=dict)
    """Why contracts that were watched are no more, by their keys; found out where identities are kept."""
    resting: Mapping[str, str] = field(default_factory=dict)
    """The keys of contracts that were not read, because nothing is due, by their files."""


def load(
    paths: Iterable[Path],
    note: Callable[[str], None],
    rests: Callable[[Path, bytes], str | None] = lambda *_: None,
) -> Loaded:
    """Every contract at or below the paths. One that cannot be read is left out, with its findings.

    The YAML files that are none are told to `note`. `rests` gives the key of a contract
    that need not be read.

    Raises Unreadable for a path that does not exist, and for one that holds no contract.
    """
    contracts: list[Contract] = []
    findings: list[Finding] = []
    resting: dict[str, str] = {}
    found = discover(paths)
    if found.passed:
        note(told(found.passed))
    for file in found.contracts:
        try:
            content = read(file)
        except FileRefused as refused:
            findings.append(refused.finding(str(file)))
            continue
        if (key := rests(file.path, content)) is not None:
            resting[str(file)] = key
            continue
        parsed = parse(content, str(file))
        wrong = [finding for finding in parsed.findings if finding.severity.blocks]
        findings += wrong
        if parsed.contract is not None and not wrong:
            contracts.append(parsed.contract)
    return Loaded(contracts, findings, resting=resting)


def only(loaded: Loaded) -> Contract:
    """The one contract that a command is about.

    Raises Unreadable, with every finding, where a contract has errors, and UsageError where it is not clear.
    """
    if loaded.findings:
        # Also beside one that can be read: nobody knows which of them was meant.
        files = ", ".join(dict.fromkeys(finding.at.file for finding in loaded.findings))
        raise Unreadable(
            f"{files} cannot be used as it is:",
            "Run 'dq validate' after mending that.",
            [str(finding) for finding in loaded.findings],
        )
    if len(loaded.contracts) != 1:
        ids = ", ".join(contract.id for contract in loaded.contracts)
        raise UsageError(f"one contract is wanted here, and these were found: {ids}.", "Name its file.")
    return loaded.contracts[0]


def chosen(loaded: Loaded, name: str | None) -> tuple[Contract, SchemaObject]:
    """The one contract and object that a command is about. Raises as `only` does, and for an object."""
    contract = only(loaded)
    names = [one.name for one in contract.objects]
    if name is None and len(names) == 1:
        return contract, contract.objects[0]
    found = contract.object(name) if name else None
    if found is None:
        raise UsageError(
            f"contract {contract.id!r} has the objects {', '.join(names) or '(none)'}.",
            f"Choose one with --object {names[0] if names else 'NAME'}.",
        )
    return contract, found


def slos(loaded: Loaded, note: Callable[[str], None]) -> tuple[list[Slo], list[Finding]]:
    """The delivery promises of all contracts that are in force, and what is wrong with the rest."""
    found: list[Slo] = []
    findings: list[Finding] = []
    for contract in loaded.contracts:
        if contract.status in NOT_IN_FORCE:
            note(f"{contract.id} is {contract.status}, so its deliveries are not judged.")
            continue
        ready, wrong = promise.read(contract)
        found += ready
        findings += wrong
        findings += [finding for one in contract.support for finding in route_terms(one)[1]]
    return found, list(dict.fromkeys(findings))


def watched(slo: Slo, server: str | None, reach: Reach, files: Callable[[str], Files]) -> Watched:
    """An SLO with the place of its data, and what reads it.

    Raises UsageError where the place cannot be known.
    """
    # It brings the state with it, which who only reads contracts does not need.
    from dq.dataquality.delivery.cycle import Watched

    place = resolve(slo.contract, slo.object, server, reach)
    if not place.path:
        raise UsageError(
            f"server {place.server!r} of {slo.contract.id!r} has no location to look at.",
            "Add 'location' to the server.",
            at=slo.contract.at("servers"),
        )
    return Watched(slo, marked(place, slo.contract, slo.object), files(place.path))


def marked(place: DataPlace, contract: Contract, one: SchemaObject) -> DeliveryPlace:
    """Where the watcher looks: the data's place and the marker's name."""
    terms, _ = extension.dataset(one)
    return DeliveryPlace(place.path, place.format, terms.marker, other_servers(contract, place.server))
