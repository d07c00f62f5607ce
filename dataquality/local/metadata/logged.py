"""What a log tells of a table: its columns, and the rows and NULLs of the files that it has now."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime

from dq.contracts.shared.outcome import Unreadable
from dq.contracts.types import DataType
from dq.dataquality.answers.statistics.writers import Statistic, counts_rows, distrusted

CHECK = "Ask 'dq check' about it."


@dataclass(slots=True)
class LoggedTable:
    """A table by its log: its columns, and its data files added up.

    `nulls` has every column without parts. It and `rows` are None where they are not known, as is `newest`,
    when the newest file was added, and where there is none.
    """

    schema: DataType
    nulls: dict[str, int | None]
    newest: datetime | None = None
    files: int = 0
    bytes: int = 0
    rows: int | None = 0

    def add(
        self,
        size: int,
        written: object,
        deleted: int | None,
        nulls: Mapping[str, tuple[str, object, bool]],
        writers: Collection[str],
    ) -> None:
        """A file more, with so many rows written and so many of them deleted since, None: nobody knows.

        `nulls` are by column its type, the number that is told, and whether it is exact but for what was
        deleted.
        """
        rows = count(written) if counts_rows(writers) else None
        left = None if rows is None or deleted is None or deleted > rows else rows - deleted
        self.files += 1
        self.bytes += size
        self.rows = _plus(self.rows, left)
        for name, before in self.nulls.items():
            kind, told, exact = nulls.get(name, ("", None, False))
            number = None if rows is None else count(told, rows)
            if any(Statistic.NULLS in distrusted(writer, kind) for writer in writers):
                number = None
            if number and number == rows:
                # All are, whichever are left.
                number = left
            elif number and not (exact and deleted == 0):
                number = None
            self.nulls[name] = _plus(before, number)


def unknown(place: str, why: str) -> Unreadable:
    """What is raised for a table of which nothing is certain."""
    return Unreadable(f"{place} {why}.", CHECK)


def count(told: object, most: int | None = None) -> int | None:
    """A number of rows as a log says it, of at most so many; None for what is none."""
    if isinstance(told, bool) or not isinstance(told, int) or told < 0:
        return None
    return told if most is None or told <= most else None


def _plus(before: int | None, more: int | None) -> int | None:
    return None if before is None or more is None else before + more
