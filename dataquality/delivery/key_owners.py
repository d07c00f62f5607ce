"""Ownership of contract keys: if several files have the same key, the first one owns it.

Deliveries, incidents and alerts belong to a contract's key. Without owners in the store, any file could take
them over by using another contract's id.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, delete, insert, select, update

from dq.dataquality.delivery import tables


@dataclass(frozen=True, slots=True)
class OwnershipClaim:
    """A file's claim to a contract key; `file` is its name within its registry."""

    key: str
    file: str


@dataclass(frozen=True, slots=True)
class OwnershipDecision:
    """Ownership of keys. `rejected` has the reason for each rejected claim, `new` the files of newly owned
    keys.
    """

    rejected: Mapping[OwnershipClaim, str]
    new: Mapping[str, str]


def resolve_owners(
    claims: Iterable[OwnershipClaim], owners: Mapping[str, str], may_own: Callable[[str, str], bool]
) -> OwnershipDecision:
    """Resolve the owner of each key from the claims of this run and the recorded owners.

    A recorded owner keeps its key. If it is gone, or has become another contract, a single claimant takes
    over: the file has moved. `may_own` is called for a recorded owner without claim, and returns whether it
    may still own the key, e.g. because it cannot be read. Several claimants without a recorded owner are all
    rejected, because their order is unknown.
    """
    files: dict[str, dict[str, None]] = {}
    for claim in claims:
        files.setdefault(claim.key, {})[claim.file] = None
    rejected: dict[OwnershipClaim, str] = {}
    new: dict[str, str] = {}
    for key, claimants in files.items():
        owner = owners.get(key)
        if owner is not None and (owner in claimants or may_own(key, owner)):
            reason = f"{owner} declared the contract {key!r} first and keeps its deliveries and alerts."
            rejected |= {OwnershipClaim(key, file): reason for file in claimants if file != owner}
        elif len(claimants) == 1:
            new[key] = next(iter(claimants))
        else:
            reason = (
                f"{', '.join(claimants)} declare the same contract {key!r}; it is unknown which was first."
            )
            rejected |= {OwnershipClaim(key, file): reason for file in claimants}
    return OwnershipDecision(rejected, new)


@dataclass(frozen=True, slots=True)
class KeyOwner:
    """The file that owns a contract key.

    `registry` is its folder, or None if an older dq wrote it. `gone_since` is when it ceased to be the
    contract.
    """

    file: str
    registry: str | None = None
    gone_since: datetime | None = None


def key_owners(tx: Connection) -> dict[str, KeyOwner]:
    """Return the owner of each contract key."""
    rows = tx.execute(select(tables.contract_holder))
    return {row.contract: KeyOwner(row.file, row.registry, row.gone_since) for row in rows}


def owner_files(tx: Connection) -> dict[str, str]:
    """Return the owning file of each contract key."""
    return {key: owner.file for key, owner in key_owners(tx).items()}


def update_owners(tx: Connection, owners: Mapping[str, KeyOwner]) -> None:
    """Update the registry and `gone_since` of owners, by key."""
    table = tables.contract_holder
    for key, owner in owners.items():
        statement = update(table).where(table.c.contract == key)
        tx.execute(statement.values(registry=owner.registry, gone_since=owner.gone_since))


def delete_owners(tx: Connection, keys: Collection[str]) -> None:
    """Delete the owners of these keys."""
    tx.execute(delete(tables.contract_holder).where(tables.contract_holder.c.contract.in_(keys)))


def save_owners(tx: Connection, new: Mapping[str, str], now: datetime) -> None:
    """Store the owning file of each key. `tx` must be the transaction in which it was resolved."""
    stored = owner_files(tx)
    table = tables.contract_holder
    added = [{"contract": key, "file": file, "since": now} for key, file in new.items() if key not in stored]
    if added:
        tx.execute(insert(table), added)
    for key, file in new.items():
        if stored.get(key, file) != file:
            tx.execute(update(table).where(table.c.contract == key).values(file=file, since=now))
