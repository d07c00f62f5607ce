"""Kept answers of folders as rows."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import delete, insert, select

from dq.dataquality.shortcuts.kept.recall import Part
from dq.dataquality.shortcuts.tables import part_count
from dq.store.engine import Store


@dataclass(frozen=True, slots=True)
class PartLedger:
    """Parts in the store; each is replaced as a whole. Raises StoreError when the database fails."""

    store: Store
    now: datetime

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
                tx.execute(
                    insert(part_count).values(
                        dataset=dataset,
                        folder=folder,
                        print=part.print,
                        counts=dict(part.counts),
                        at=self.now,
                    )
                )
