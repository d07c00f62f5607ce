"""Whether a run may say which tables no contract wants: only when it has read and understood them all."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from dq.cli.loading.contracts import NOT_IN_FORCE, Loaded
from dq.cli.world.environment import is_root, registry_root
from dq.contracts.access.data_location import is_lake
from dq.contracts.access.files import POLICY_FILE
from dq.contracts.model import Contract
from dq.contracts.shared.outcome import DqError, Finding
from dq.contracts.shared.wording import counted, first_of
from dq.registry.plan import WholeRegistry
from dq.registry.table import Key, TableSpec

# In force, or known not to be; of any other word nobody knows what it means for the tables.
_STATUSES = (None, "active", "deprecated", *NOT_IN_FORCE)
_NAMED = 3

Specify = Callable[[Contract, str | None], list[TableSpec]]
"""The tables that a contract wants on a server. Raises DqError where that cannot be told."""


ServerOf = Callable[[Contract], str | None]
"""The server of a contract that is registered: None for its only one. Raises UsageError where it is open."""


def doubts(paths: Sequence[Path], loaded: Loaded, findings: Sequence[Finding]) -> list[str]:
    """Why nobody can say which tables are orphans; empty when all of the registry is understood."""
    found = [reason for reason in (_not_whole(paths),) if reason]
    broken = list(dict.fromkeys(finding.at.file for finding in findings))
    if broken:
        count = counted(len(broken), "contract")
        found.append(f"{count} could not be read or registered: {first_of(broken, _NAMED)}")
    found += [
        f"{one.at('status')}: nobody knows what status {one.status!r} means"
        for one in loaded.contracts
        if one.status not in _STATUSES
    ]
    return found


def _not_whole(paths: Sequence[Path]) -> str:
    if len(paths) != 1:
        return f"{len(paths)} paths were named, and only one can be the whole registry"
    (path,) = paths
    root = registry_root(path)
    if not is_root(root):
        return f"nothing says where the registry begins: {root} holds neither {POLICY_FILE} nor .git"
    # pathlib raises for links that lead to each other.
    if Path(os.path.realpath(path)) != root:
        return f"{path} is not the whole registry, which begins at {root}"
    return ""


def whole(
    registry: str, contracts: Sequence[Contract], server_of: ServerOf, specify: Specify
) -> WholeRegistry:
    """The registry, with the tables that stay although this run does not want them.

    Those of contracts that are not in force or have no object now, and those that a contract has on
    another of its servers.
    """
    held: dict[Key, str] = {}
    by_contract: dict[str, str] = {}
    for contract in contracts:
        if contract.status in NOT_IN_FORCE:
            by_contract[contract.id] = f"Contract {contract.id!r} is {contract.status}, and its tables stay."
        elif not contract.objects:
            by_contract[contract.id] = f"Contract {contract.id!r} has no schema, and its tables stay."
        elif (server := server_of(contract)) is not None:
            for other in contract.servers:
                if other.server != server and is_lake(other):
                    _elsewhere(contract, other.server, specify, held, by_contract)
    return WholeRegistry(registry, held, by_contract)


def _elsewhere(
    contract: Contract, server: str, specify: Specify, held: dict[Key, str], by_contract: dict[str, str]
) -> None:
    try:
        specs = specify(contract, server)
    except DqError as error:
        by_contract[contract.id] = f"What contract {contract.id!r} has on {server!r} cannot be told: {error}"
        return
    held |= {spec.key: f"Contract {contract.id!r} has it on server {server!r}." for spec in specs}
