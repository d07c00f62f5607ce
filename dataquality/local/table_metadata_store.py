"""What metadata said, kept from one look to the next."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass

from sqlalchemy import Connection, delete, insert, select, tuple_

from dq.dataquality.local.table_metadata import NOTHING, MetadataFacts, TablePlace
from dq.dataquality.local.tables import table_metadata


@dataclass(frozen=True, slots=True)
class KnownTable:
    """An object of a contract's text, where its data lies, and what its metadata said at this print."""

    digest: str
    object: str
    contract: str
    place: TablePlace
    print: str = ""
    facts: MetadataFacts = NOTHING


def recall(tx: Connection, digests: Iterable[str]) -> Mapping[str, Sequence[KnownTable]]:
    """The tables of these texts."""
    found: dict[str, list[KnownTable]] = {}
    columns = table_metadata.c
    rows = tx.execute(select(table_metadata).where(columns.digest.in_(list(digests))))
    for digest, one, contract, print_, place, facts in rows:
        known = KnownTable(digest, one, contract, TablePlace(**place), print_, MetadataFacts(**facts))
        found.setdefault(digest, []).append(known)
    return found


def remember(tx: Connection, tables: Sequence[KnownTable]) -> None:
    """Keeps these in the place of what was kept of the same objects, also of an earlier text."""
    if not tables:
        return
    columns = table_metadata.c
    names = sorted({(one.contract, one.object) for one in tables})
    tx.execute(delete(table_metadata).where(tuple_(columns.contract, columns.object).in_(names)))
    tx.execute(insert(table_metadata), list(map(asdict, tables)))
