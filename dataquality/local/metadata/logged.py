"""What a log tells of a table: its columns, and of every file that it has now the rows and NULLs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from dq.contracts.shared.errors import Unreadable
from dq.contracts.types import DataType
from dq.dataquality.shortcuts.statistics.writers import Statistic, counts_rows, distrusted

CHECK = "Ask 'dq check' about it."


@dataclass(frozen=True, slots=True)
class LoggedFile:
    """A data file: its bytes, the rows that are not deleted and its NULLs by column, None where not known."""

    size: int
    rows: int | None
    nulls: Mapping[str, int | None]


@dataclass(frozen=True, slots=True)
class LoggedTable:
    """A table by its log: its columns, those of them without parts, its files, and when the newest file was
    added, None where there is none or it is not known.
    """

    schema: DataType
    plain: Sequence[str]
    files: Sequence[LoggedFile]
    newest: datetime | None

    @property
    def rows(self) -> int | None:
        """All rows, if those of each file are known."""
        return _sum(one.rows for one in self.files)

    @property
    def nulls(self) -> dict[str, int | None]:
        """By column, as `rows`."""
        return {name: _sum(one.nulls.get(name) for one in self.files) for name in self.plain}


def unknown(place: str, why: str) -> Unreadable:
    """What is raised for a table of which nothing is certain."""
    return Unreadable(f"{place} {why}.", CHECK)


def count(told: object, most: int | None = None) -> int | None:
    """A number of rows as a log says it, of at most so many; None for what is none."""
    if isinstance(told, bool) or not isinstance(told, int) or told < 0:
        return None
    return told if most is None or told <= most else None


def file(
    size: int,
    written: object,
    deleted: int | None,
    nulls: Mapping[str, tuple[str, object, bool]],
    writers: Collection[str],
) -> LoggedFile:
    """A file with so many rows written and so many of them deleted since, None: nobody knows how many.

    `nulls` are by column its type, the number that is told, and whether it is exact but for what was deleted.
    """
    rows = count(written) if counts_rows(writers) else None
    left = None if rows is None or deleted is None or deleted > rows else rows - deleted
    known: dict[str, int | None] = {}
    for name, (kind, told, exact) in nulls.items():
        number = count(told, rows)
        if any(Statistic.NULLS in distrusted(writer, kind) for writer in writers):
            number = None
        if rows is None or number is None:
            known[name] = None
        elif number == 0:
            known[name] = 0
        elif number == rows:
            # All are, whichever are left.
            known[name] = left
        else:
            known[name] = number if exact and deleted == 0 else None
    return LoggedFile(size, left, known)


def _sum(numbers: Iterable[int | None]) -> int | None:
    total = 0
    for one in numbers:
        if one is None:
            return None
        total += one
    return total
