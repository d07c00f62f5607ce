"""The subscriptions of a registry at the base of a pull request, and which of them a branch changes."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from dq.contracts.access.discovery import SUBSCRIPTIONS, called_contract
from dq.contracts.identity import Identity
from dq.contracts.model import Contract
from dq.contracts.subscriptions.subscription import Subscription, read
from dq.contracts.yaml.parse import parse
from dq.validators.git.base import Base
from dq.validators.git.tree import TreeEntry, entry_contents
from dq.validators.git.work_tree import Content, is_same_content


def at_base(found: Base) -> tuple[list[Subscription], list[str]]:
    """Who consumes what, as the base says, and the files there that do not tell.

    The latter stop nobody: a change is judged alike whoever subscribed.
    """
    every: list[Subscription] = []
    unclear: list[str] = []
    for file, data in entry_contents(found.repo, _files(found)):
        made, wrong = read(data or b"", file)
        if made is None or any(one.severity.blocks for one in wrong):
            unclear.append(file)
        else:
            every.append(made)
    return every, unclear


def changed(found: Base, present: Mapping[str, Content]) -> frozenset[str]:
    """Which of these files of the work tree are not as they were at the base."""
    then = _files(found)
    return frozenset(file for file, data in present.items() if not is_same_content(data, then.get(file)))


def contracts_at_base(found: Base, ids: Collection[str]) -> dict[Identity, Contract]:
    """Return the contracts with one of the ids as the base has them; only they are parsed."""
    wanted = [id_.encode("utf-8", "surrogatepass") for id_ in ids]
    contracts: dict[Identity, Contract] = {}
    for file, data in entry_contents(found.repo, found.below("") if wanted else {}):
        if data is None or not any(id_ in data for id_ in wanted):
            continue
        contract = parse(data, file).contract
        if contract is not None and contract.id in ids and contract.version:
            contracts.setdefault(contract.identity, contract)
    return contracts


def _files(found: Base) -> dict[str, TreeEntry]:
    return {file: one for file, one in found.below(SUBSCRIPTIONS).items() if not called_contract(file)}
