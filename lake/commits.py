"""A commit of a table as deliveries need it: its time, and the partitions that it brought rows into."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

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
