"""Answers and keys of a table's folders, as rows of the store."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

import sqlalchemy
from sqlalchemy import LargeBinary, String, Table, Text, delete, insert, select

from dq.store.schema import Count, Json, UtcDateTime, metadata

if TYPE_CHECKING:
    from dq.store.engine import Store

part_count = Table(
    "part_count",
    metadata,
    # The path of the table's data, and the address of one folder in it.
    sqlalchemy.Column("dataset", Text, primary_key=True),
    sqlalchemy.Column("folder", Text, primary_key=True),
    # Of the names, sizes and times of its files when they were counted.
    sqlalchemy.Column("print", String(64), nullable=False),
    # Answers by the digest of their question.
    sqlalchemy.Column("counts", Json, nullable=False),
    sqlalchemy.Column("at", UtcDateTime, nullable=False),
)

kept_keys = Table(
    "kept_keys",
    metadata,
    sqlalchemy.Column("dataset", Text, primary_key=True),
    # The digest of the key's columns and of all else that their codes depend on.
    sqlalchemy.Column("question", String(64), primary_key=True),
    # The address of one folder, or empty for those that stand together.
    sqlalchemy.Column("folder", Text, primary_key=True),
    sqlalchemy.Column("print", String(64), nullable=False),
    sqlalchemy.Column("rows", Count, nullable=False),
    # The prints of the folders that stand together, by their address.
    sqlalchemy.Column("members", Json),
    # A Parquet file of one column, ascending.
    sqlalchemy.Column("codes", LargeBinary, nullable=False),
    sqlalchemy.Column("at", UtcDateTime, nullable=False),
)


@dataclass(frozen=True, slots=True)
class Part:
    """What is kept of one folder: the print of its files, and answers, as JSON, by `Circumstances.of`."""

    print: str
    counts: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class HeldKeys:
    """What is kept of a folder's keys: its print, how many rows have a key, and their codes, packed.

    `members` are the prints of the folders whose codes stand together, None for a folder of its own; the
    print is made of theirs then.
    """

    print: str
    rows: int
    members: Mapping[str, str] | None = None
    codes: bytes = b""


@dataclass(frozen=True, slots=True)
class PartLedger:
    """Answers of folders, and at most `most_keys` keys of one question (0: none), by the dataset's path.

    Each is replaced as a whole. Raises StoreError when the database fails.
    """

    store: Store
    now: datetime
    most_keys: int = 0

    def recall(self, dataset: str) -> Mapping[str, Part]:
        """Every part of a dataset, by folder."""
        with self.store.read() as tx:
            rows = tx.execute(select(part_count).where(part_count.c.dataset == dataset))
            return {row.folder: Part(row.print, row.counts) for row in rows}

    def remember(self, dataset: str, parts: Mapping[str, Part], gone: Set[str]) -> None:
        """Keeps parts in the place of earlier ones of the same folders, and forgets folders that are gone."""
        columns = part_count.c
        with self.store.write() as tx:
            for folder in sorted(parts.keys() | gone):
                tx.execute(delete(part_count).where(columns.dataset == dataset, columns.folder == folder))
            for folder, part in parts.items():
                values = {"print": part.print, "counts": dict(part.counts), "at": self.now}
                tx.execute(insert(part_count).values(dataset=dataset, folder=folder, **values))

    def forget(self, dataset: str) -> None:
        """Forgets all that is kept of a dataset, keys too."""
        with self.store.write() as tx:
            for table in (part_count, kept_keys):
                tx.execute(delete(table).where(table.c.dataset == dataset))

    def recall_keys(self, dataset: str, question: str) -> Mapping[str, HeldKeys]:
        """What is kept of every folder's keys, without the codes."""
        columns = kept_keys.c
        keys = select(columns.folder, columns.print, columns.rows, columns.members)
        with self.store.read() as tx:
            rows = tx.execute(keys.where(columns.dataset == dataset, columns.question == question))
            return {row.folder: HeldKeys(row.print, row.rows, row.members) for row in rows}

    def recall_codes(self, dataset: str, question: str, prints: Mapping[str, str]) -> Mapping[str, bytes]:
        """The codes of these folders, as they were packed, where their prints are still these."""
        columns = kept_keys.c
        codes = select(columns.folder, columns.print, columns.codes)
        asked = columns.dataset == dataset, columns.question == question
        with self.store.read() as tx:
            found = (tx.execute(codes.where(*asked, columns.folder == folder)) for folder in prints)
            rows = [row for result in found for row in result]
        return {row.folder: row.codes for row in rows if row.print == prints[row.folder]}

    def remember_keys(
        self, dataset: str, question: str, keys: Mapping[str, HeldKeys], gone: Set[str]
    ) -> None:
        """Keeps keys in the place of earlier ones of the same folders, and forgets folders that are gone."""
        columns = kept_keys.c
        asked = columns.dataset == dataset, columns.question == question
        with self.store.write() as tx:
            for folder in sorted(keys.keys() | gone):
                tx.execute(delete(kept_keys).where(*asked, columns.folder == folder))
            for folder, held in keys.items():
                members = None if held.members is None else dict(held.members)
                values = {"print": held.print, "rows": held.rows, "codes": held.codes, "members": members}
                row = {"dataset": dataset, "question": question, "folder": folder, "at": self.now}
                tx.execute(insert(kept_keys).values(**row, **values))
