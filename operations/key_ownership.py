"""Ownership of contract keys, and withdrawal of SLOs of removed contracts."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import cache
from os.path import split
from pathlib import Path

from dq.contracts.access.files import FileRejected
from dq.contracts.model import Contract
from dq.contracts.outcome import Finding, Location, ReadError, Severity
from dq.contracts.slo import NOT_IN_FORCE, Slo
from dq.dataquality.delivery.key_owners import (
    KeyOwner,
    OwnershipClaim,
    key_owners,
    owner_files,
    resolve_owners,
    save_owners,
    update_owners,
)
from dq.operations.registry_files import LoadedContracts, load
from dq.operations.runtime.context import RuntimeContext, outermost_root
from dq.store.engine import Store

# Skips contracts whose id and major version another file already owns.

GONE_FOR = timedelta(minutes=10)
"""Time that a contract's file must be missing before its SLOs are withdrawn."""


def resolve_key_owners(
    context: RuntimeContext,
    store: Store,
    loaded: LoadedContracts,
    paths: Sequence[Path] = (),
    *,
    update_store: bool = False,
) -> LoadedContracts:
    """Return the contracts that own their key, with a finding for each whose key another file owns.

    `update_store`: store new and moved files, and report contracts removed from the `paths`, as the watcher
    does. A file that is given twice counts once.
    """
    home, resolved = cache(_home), cache(_resolved_folder)
    contracts_by_file: dict[str, Contract] = {contract.file: contract for contract in loaded.contracts}
    keys = {**loaded.skipped, **{file: contract.key for file, contract in contracts_by_file.items()}}
    files = {(resolved(folder), name): file for file in reversed(keys) for folder, name in (split(file),)}
    names = {place: home(place[0])[1] + place[1] for place in files}
    common = Counter(names.values())
    claims = {
        # Two registries in one run may have files of the same name; then the absolute path is used.
        OwnershipClaim(
            keys[file], names[place] if common[names[place]] == 1 else str(place[0] / place[1])
        ): file
        for place, file in reversed(files.items())
    }
    roots = {keys[file]: home(folder)[0] for (folder, _), file in files.items()}
    may_hold = cache(lambda key, file: _may_hold(roots[key] / file, key))
    with store.read() as tx:
        key_holders = key_owners(tx)
    first = {key: holder.file for key, holder in key_holders.items()}
    decision = resolve_owners(claims, first, may_hold)
    if update_store and decision.new:
        with store.write() as tx:
            # Decided again in the transaction, because of concurrent watchers.
            decision = resolve_owners(claims, owner_files(tx), may_hold)
            save_owners(tx, decision.new, context.now())
            key_holders = key_owners(tx)
    duplicates = [
        Finding(
            "duplicate-contract",
            Severity.ERROR,
            reason,
            _HINT,
            _location(contracts_by_file, file),
            "id",
            claim.key,
        )
        for claim, reason in decision.rejected.items()
        for file in (claims[claim],)
    ]
    owned = [
        contracts_by_file[file]
        for claim, file in claims.items()
        if claim not in decision.rejected and file in contracts_by_file
    ]
    removed = (
        _removal_reasons(context, store, paths, claims, decision.rejected, loaded, roots, key_holders)
        if update_store
        else {}
    )
    return replace(loaded, contracts=owned, findings=[*loaded.findings, *duplicates], removed=removed)


def _location(contracts_by_file: Mapping[str, Contract], file: str) -> Location:
    return contracts_by_file[file].locate("id") if file in contracts_by_file else Location(file)


def _removal_reasons(
    context: RuntimeContext,
    store: Store,
    paths: Sequence[Path],
    claims: Mapping[OwnershipClaim, str],
    refused: Collection[OwnershipClaim],
    loaded: LoadedContracts,
    roots: Mapping[str, Path],
    key_holders: Mapping[str, KeyOwner],
) -> dict[str, str]:
    """Return the reasons for contracts removed from the paths, by key, once missing for `GONE_FOR`.

    A file that is being replaced is missing briefly. If a file could not be read, a missing contract may have
    moved to it.
    """
    current, now = {claim.key: claim for claim in claims}, context.now()
    scope = [Path(os.path.realpath(path)) for path in paths]
    names = {claim.file: claim.key for claim in claims}
    updated: dict[str, KeyOwner] = {}
    reasons: dict[str, str] = {}
    for key, holder in key_holders.items():
        if key in current:
            if current[key] not in refused:
                updated[key] = KeyOwner(holder.file, str(roots[key]))
            continue
        file = Path(holder.registry or "/") / holder.file
        if holder.registry is None or not any(file.is_relative_to(folder) for folder in scope):
            continue
        successor = names.get(holder.file)
        if successor is None and (loaded.findings or _may_hold(file, key)):
            continue
        updated[key] = replace(holder, gone_since=holder.gone_since or now)
        if now - (holder.gone_since or now) >= GONE_FOR:
            explanation = (
                f"{holder.file} now has the contract {successor!r}"
                if successor
                else f"{holder.file} no longer exists"
            )
            reasons[key] = f"The contract was removed: {explanation}."
    moved = {key: holder for key, holder in updated.items() if holder != key_holders[key]}
    if moved:
        with store.write() as tx:
            update_owners(tx, moved)
    return reasons


_HINT = "Remove one of them, or change its id."


def _resolved_folder(folder: str) -> Path:
    # pathlib raises for links that lead to each other.
    return Path(os.path.realpath(folder))


def _home(folder: Path) -> tuple[Path, str]:
    """Return the registry root around a folder, and the prefix of file names in it.

    It is the outermost root: a policy added in a subfolder must not change the names of its files. Without a
    root, a file's name is its absolute path.
    """
    root = outermost_root(folder)
    if root is None:
        return folder, f"{folder}/"
    within = folder.relative_to(root).as_posix()
    return root, "" if within == "." else f"{within}/"


def _may_hold(file: Path, key: str) -> bool:
    try:
        loaded = load([file], lambda _: None)
    except FileRejected:
        return True
    except ReadError:
        return False
    return bool(loaded.findings) or any(contract.key == key for contract in loaded.contracts)


# Withdrawal of SLOs: their contract was removed, retired or changed.

Key = tuple[str, str, str]


def make_withdrawal_reason(
    loaded: LoadedContracts, promises: Sequence[Slo], findings: Sequence[Finding]
) -> Callable[[Key], str | None]:
    """Return a function from an SLO's key to the reason of its withdrawal, or None if active or unknown."""
    promised = {slo.key: slo for slo in promises}
    contracts = {contract.key: contract for contract in loaded.contracts}
    broken = {finding.at.file for finding in findings}

    def reason(key: Key) -> str | None:
        contract = contracts.get(key[0])
        if contract is None or key in promised:
            return loaded.removed.get(key[0])
        if contract.status in NOT_IN_FORCE:
            return f"The contract is now {contract.status}."
        if contract.file in broken:
            return None
        other_ids = [slo.id for slo in promises if slo.key[:2] == key[:2]]
        instead = f" It has {', '.join(map(repr, other_ids))}." if other_ids else ""
        return f"The contract no longer has the delivery SLO {key[2]!r} of {key[1]!r}.{instead}"

    return reason
