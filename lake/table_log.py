"""What the log of a table says: its commits, with the partitions that got rows by them, and its files."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from dq.contracts.outcome import Unreadable
from dq.contracts.types import DataType
from dq.lake.storage import Files

Pairs = tuple[tuple[str, str], ...]
# What is raised for a log that is not as its specification has it.
NOT_UNDERSTOOD = (
    *(ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError, StopIteration),
)


class Brought(NamedTuple):
    """Rows that a commit brought into one partition; `rows` is None where the log does not count them.

    `partition` are columns with their values as text, as a path writes them, and may lack a column that the
    log names otherwise.
    """

    partition: Pairs
    rows: int | None


@dataclass(frozen=True, slots=True)
class Commit:
    """One commit of a table; what only rearranges, deletes or cleans up has brought nothing.

    `ident` tells it from every other commit of this place, of an earlier table there too. `took` are the
    partitions that it took data from and brought none into: they may be empty afterwards.
    """

    ident: str
    at: datetime
    brought: tuple[Brought, ...] = ()
    took: tuple[Pairs, ...] = ()


@dataclass(frozen=True, slots=True)
class TableLog:
    """What a log says now: the commits that were asked for, and the names of all that it still holds.

    `begins` is the time of its oldest commit where older ones were cut off, None where it is whole. `undone`
    are known commits that were rolled back.
    """

    new: tuple[Commit, ...] = ()
    held: tuple[str, ...] = ()
    begins: datetime | None = None
    undone: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StatedNulls:
    """How many NULLs a log says that a column of a file has, and the column's type in the format's words.

    `exact`: no more and no less, but for rows that were deleted since.
    """

    type: str
    count: object
    exact: bool = True


@dataclass(frozen=True, slots=True)
class LiveFile:
    """A data file that a table has now, as its log states it; nothing of it is checked.

    `deleted` is None where nobody knows how many of the rows were deleted since. `writers` are the programs
    that wrote it, as far as they are named.
    """

    size: int
    rows: object
    deleted: int | None
    nulls: Mapping[str, StatedNulls]
    writers: Collection[str]


@dataclass(frozen=True, slots=True)
class LiveTable:
    """A table by its log: its columns, the names of those without parts, and the files that it has now.

    `newest_at` is when the newest file was added; None where that is not known, and without any file.
    """

    schema: DataType
    columns: tuple[str, ...]
    newest_at: datetime | None
    files: Iterable[LiveFile]


def unknown(place: str, why: str) -> Unreadable:
    """Return what is raised for a table of which nothing is certain."""
    return Unreadable(f"{place} {why}.", "Ask 'dq check' about it.")


def row_count(stated: object, most: int | None = None) -> int | None:
    """A number of rows as a log says it, of at most so many; None for what is none."""
    if isinstance(stated, bool) or not isinstance(stated, int) or stated < 0:
        return None
    return stated if most is None or stated <= most else None


# From the table's place, the names of the commits that need not be read again, and the instant before which
# none need be read. Raises Unreadable where the log cannot be understood.
Reader = Callable[[Files, str, Collection[str], datetime], TableLog]


def summed(parts: Iterable[tuple[Mapping[str, str], int | None]]) -> tuple[Brought, ...]:
    """What was brought by partition, from what was brought by file."""
    found: dict[Pairs, int | None] = {}
    for partition, rows in parts:
        key = tuple(sorted(partition.items()))
        before = found.get(key, 0)
        found[key] = None if before is None or rows is None else before + rows
    return tuple(Brought(key, rows) for key, rows in found.items())


def taken(lost: Iterable[Mapping[str, str]], kept: Iterable[Mapping[str, str]]) -> tuple[Pairs, ...]:
    """The partitions that lost a file, and got none in the same commit."""
    there = {tuple(sorted(one.items())) for one in kept}
    return tuple(sorted({tuple(sorted(one.items())) for one in lost} - there))
