"""The subscriptions of a registry, and the contracts that they name, found among all by their ids."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from dq.contracts.access.discovery import candidates, subscriptions
from dq.contracts.access.files import FileRefused, read
from dq.contracts.model import Contract, Identity
from dq.contracts.shared.document_kind import is_contract
from dq.contracts.shared.outcome import Finding
from dq.contracts.subscriptions import Subscription
from dq.contracts.subscriptions import read as typed
from dq.contracts.yaml.parse import parse

Content = bytes | FileRefused


@dataclass(frozen=True, slots=True)
class NamedContracts:
    """Contracts of a registry by identity, and the ids of files that seem to have one and cannot be read."""

    contracts: Mapping[Identity, Contract] = field(default_factory=dict)
    unclear: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class AgreedSubscriptions:
    """Subscriptions that may be acted on: the gate has nothing against them, or they are over.

    `findings` are what it has against the others, and `unclear` the files of these.
    """

    subscriptions: tuple[Subscription, ...] = ()
    findings: tuple[Finding, ...] = ()
    unclear: frozenset[str] = frozenset()


def contents(root: Path) -> dict[str, Content]:
    """What the subscription files below a registry's root hold, by their names from there, in order."""
    found: dict[str, Content] = {}
    for one in subscriptions(root):
        try:
            data = read(one)
        except FileRefused as refused:
            found[one.name] = refused
            continue
        if not is_contract(data):
            found[one.name] = data
    return found


def load_subscriptions(root: Path) -> tuple[list[Subscription], list[Finding]]:
    """The subscriptions of a registry whose form is right, by file, and what is wrong with the others."""
    found: list[Subscription] = []
    findings: list[Finding] = []
    for name, data in contents(root).items():
        if isinstance(data, FileRefused):
            findings.append(data.finding(name))
            continue
        made, wrong = typed(data, name)
        wrong = [one for one in wrong if one.severity.blocks]
        findings += wrong
        found += [made] if made is not None and not wrong else []
    return found, findings


def ids_in(files: Mapping[str, Content], told: Collection[str]) -> set[str]:
    """The ids of contracts that these subscription files name."""
    made = (typed(data, name)[0] for name in told if isinstance(data := files[name], bytes))
    return {one.contract for one in made if one is not None}


def named_contracts(root: Path, ids: Collection[str]) -> NamedContracts:
    """The contracts below a registry's root that have one of these ids; only they are parsed."""
    if not ids:
        return NamedContracts()
    found = _parsed(root, ids, lambda data: {one.decode("utf-8", "replace") for one in _IDS.findall(data)})
    missing = set(ids) - {id_ for id_, _ in found.contracts} - found.unclear
    if not missing:
        return found
    # An id may be written in another way than on a line with its key: below it, or with spaces in quotes.
    more = _parsed(
        root, missing, lambda data: {one for one in missing if one.encode("utf-8", "surrogatepass") in data}
    )
    return NamedContracts({**found.contracts, **more.contracts}, found.unclear | more.unclear)


_IDS = re.compile(rb"""\bid["']?[ \t]*:[ \t]*(?:&\S+[ \t]+)?["']?([^"'\s,{}#]+)""")


def _parsed(root: Path, ids: Collection[str], said: Callable[[bytes], set[str]]) -> NamedContracts:
    """The contracts with one of the ids, of those whose bytes seem to say one."""
    found: dict[Identity, Contract] = {}
    unclear: set[str] = set()
    for data, name in _texts(root):
        if (told := said(data)).isdisjoint(ids):
            continue
        contract = parse(data, name).contract
        if contract is None or (contract.id in ids and not contract.version):
            unclear |= told & set(ids)
        elif contract.id in ids:
            found.setdefault(contract.identity, contract)
    return NamedContracts(found, frozenset(unclear))


def _texts(root: Path) -> Iterator[tuple[bytes, str]]:
    """The bytes of every contract that can be read, with its name from the root."""
    for one, data in candidates(root):
        if data is None:
            try:
                data = read(one)
            except FileRefused:
                continue
        elif not is_contract(data):
            continue
        yield data, one.name
