"""What metadata says of a table, kept from one look to the next."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field

from sqlalchemy import Column, Connection, String, Table, Text, delete, insert, select, tuple_

from dq.store.schema import Json, metadata

table_metadata = Table(
    "table_metadata",
    metadata,
    # Of the contract's text and of all that decides where its data lies.
    Column("digest", String(64), primary_key=True),
    Column("object", Text, primary_key=True),
    # The contract's key.
    Column("contract", Text, nullable=False),
    # Of the names, sizes and times of the table's files; empty: to be looked at again.
    Column("print", String(64), nullable=False),
    Column("place", Json, nullable=False),
    Column("facts", Json, nullable=False),
)


@dataclass(frozen=True, slots=True)
class TablePlace:
    """Where a table lies and in which format; `keys` are the columns that the names of its folders hold."""

    path: str
    format: str
    keys: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class MetadataFacts:
    """What metadata says. `newest` is when the newest file was written, in UTC as ISO 8601. Of a table with a
    log, `files`, `bytes` and `newest` are those of the data files that it has now.

    `rows` and each number of `nulls`, by column, are None where it is not known; `broken` are the promises
    about columns and types that are not kept, if any file was `judged` by them; `problem` is why nothing is
    known.
    """

    files: int = 0
    bytes: int = 0
    newest: str | None = None
    rows: int | None = None
    nulls: Mapping[str, int | None] = field(default_factory=dict)
    broken: Sequence[str] = ()
    judged: bool = False
    problem: str = ""


NOTHING = MetadataFacts()


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
