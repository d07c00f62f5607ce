"""Kept answers of folders as rows."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import delete, insert, select

from dq.dataquality.answers.partition_cache.cache import HeldKeys, Part
from dq.dataquality.answers.partition_cache.tables import kept_keys, part_count
from dq.store.engine import Store


@dataclass(frozen=True, slots=True)
class PartLedger:
    """Parts in the store; each is replaced as a whole. Raises StoreError when the database fails."""

    store: Store
    now: datetime
    most_keys: int = 0

    @property
    def keys(self) -> KeyLedger | None:
        """Where keys are kept, None where none are."""
        return KeyLedger(self.store, self.now, self.most_keys) if self.most_keys else None

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
                told = {"print": part.print, "counts": dict(part.counts), "at": self.now}
                tx.execute(insert(part_count).values(dataset=dataset, folder=folder, **told))

    def forget(self, dataset: str) -> None:
        """Forgets all that is kept of a dataset, keys too."""
        with self.store.write() as tx:
            for table in (part_count, kept_keys):
                tx.execute(delete(table).where(table.c.dataset == dataset))


@dataclass(frozen=True, slots=True)
class KeyLedger:
    """Keys in the store, at most so many of one question. Raises StoreError when the database fails."""

    store: Store
    now: datetime
    most: int

    def held(self, dataset: str, question: str) -> Mapping[str, HeldKeys]:
        """What is kept of every folder, without the codes."""
        columns = kept_keys.c
        wanted = select(columns.folder, columns.print, columns.rows, columns.members)
        with self.store.read() as tx:
            rows = tx.execute(wanted.where(columns.dataset == dataset, columns.question == question))
            return {row.folder: HeldKeys(row.print, row.rows, row.members) for row in rows}

    def codes(self, dataset: str, question: str, prints: Mapping[str, str]) -> Mapping[str, bytes]:
        """The codes of these folders, as they were packed, where their prints are still these."""
        columns = kept_keys.c
        wanted = select(columns.print, columns.codes)
        found = {}
        with self.store.read() as tx:
            for folder, print in prints.items():
                of_it = (columns.dataset == dataset, columns.question == question, columns.folder == folder)
                row = tx.execute(wanted.where(*of_it)).one_or_none()
                if row is not None and row.print == print:
                    found[folder] = row.codes
        return found

    def hold(self, dataset: str, question: str, keys: Mapping[str, HeldKeys], gone: Set[str]) -> None:
        """Keeps keys in the place of earlier ones of the same folders, and forgets folders that are gone."""
        columns = kept_keys.c
        with self.store.write() as tx:
            for folder in sorted(keys.keys() | gone):
                of_it = (columns.dataset == dataset, columns.question == question, columns.folder == folder)
                tx.execute(delete(kept_keys).where(*of_it))
            for folder, one in keys.items():
                told = {"print": one.print, "rows": one.rows, "codes": one.codes, "at": self.now}
                told["members"] = None if one.members is None else dict(one.members)
                tx.execute(
                    insert(kept_keys).values(dataset=dataset, question=question, folder=folder, **told)
                )
