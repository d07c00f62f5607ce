"""Which file is a contract when several say so: the one that was there first, which the store remembers.

Deliveries, incidents and alerts are filed under a contract's key. Without this memory, a stranger's file
would take them over by writing down another contract's id.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, delete, insert, select, update

from dq.dataquality.delivery.tables import contract_holder


@dataclass(frozen=True, slots=True)
class Claim:
    """A file that says that it is the contract of a key; `file` is its name within its registry."""

    key: str
    file: str


@dataclass(frozen=True, slots=True)
class Decision:
    """`refused` has the reason for each claim that does not hold, `new` the file of each key to remember."""

    refused: Mapping[Claim, str]
    new: Mapping[str, str]


def decide(
    claims: Iterable[Claim], remembered: Mapping[str, str], may_hold: Callable[[str, str], bool]
) -> Decision:
    """Who holds each key, from the files of this run and those that were first.

    The remembered file keeps its key, whatever the others are called. When it is gone, or has become
    another contract, one single file takes over: it has moved. `may_hold` says of a remembered file that
    is not among the claims whether it still holds the key, or cannot be read. Of several files without a
    remembered one among them, none holds it: nobody knows which was first.
    """
    files: dict[str, dict[str, None]] = {}
    for claim in claims:
        files.setdefault(claim.key, {})[claim.file] = None
    refused: dict[Claim, str] = {}
    new: dict[str, str] = {}
    for key, rivals in files.items():
        first = remembered.get(key)
        if first is not None and (first in rivals or may_hold(key, first)):
            why = f"{first} was the contract {key!r} first, and keeps its deliveries and alerts."
            refused |= {Claim(key, file): why for file in rivals if file != first}
        elif len(rivals) == 1:
            new[key] = next(iter(rivals))
        else:
            why = f"{', '.join(rivals)} are the same contract {key!r}, and nobody knows which was first."
            refused |= {Claim(key, file): why for file in rivals}
    return Decision(refused, new)


@dataclass(frozen=True, slots=True)
class KeyHolder:
    """The file that is a contract, the folder of its registry (None: not seen since that is kept), and since
    when it is not the contract any more."""

    file: str
    registry: str | None = None
    gone_since: datetime | None = None


def holders(tx: Connection) -> dict[str, KeyHolder]:
    """Who holds each contract, by its key."""
    rows = tx.execute(select(contract_holder))
    return {row.contract: KeyHolder(row.file, row.registry, row.gone_since) for row in rows}


def remembered(tx: Connection) -> dict[str, str]:
    """The file of each contract by its key."""
    return {key: holder.file for key, holder in holders(tx).items()}


def note(tx: Connection, seen: Mapping[str, KeyHolder]) -> None:
    """Keeps where these contracts are, and since when they are gone."""
    table = contract_holder
    for key, one in seen.items():
        where = update(table).where(table.c.contract == key)
        tx.execute(where.values(registry=one.registry, gone_since=one.gone_since))


def forget(tx: Connection, keys: Collection[str]) -> None:
    """Leaves these keys to whoever is next."""
    tx.execute(delete(contract_holder).where(contract_holder.c.contract.in_(keys)))


def remember(tx: Connection, new: Mapping[str, str], now: datetime) -> None:
    """Keeps the file of each key; `tx` is the transaction in which it was decided."""
    known = remembered(tx)
    table = contract_holder
    added = [{"contract": key, "file": file, "since": now} for key, file in new.items() if key not in known]
    if added:
        tx.execute(insert(table), added)
    for key, file in new.items():
        if known.get(key, file) != file:
            tx.execute(update(table).where(table.c.contract == key).values(file=file, since=now))
