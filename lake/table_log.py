"""Model of a table's log: its commits with the partitions they changed, and its live files."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from dq.contracts.outcome import ReadError
from dq.contracts.types import DataType
from dq.lake.storage import Files

Pairs = tuple[tuple[str, str], ...]
# Errors raised while parsing a log that violates its specification.
NOT_UNDERSTOOD = (
    *(ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError, StopIteration),
)


class PartitionAppend(NamedTuple):
    """Rows that a commit added to one partition; `rows` is None if the log has no count.

    `partition` are the columns with their values as text, as in a path. It may lack columns that the log
    names differently.
    """

    partition: Pairs
    rows: int | None


@dataclass(frozen=True, slots=True)
class Commit:
    """One commit of a table. A commit that only reorganizes, deletes or cleans up has no `appends`.

    `ident` is unique among all commits at this location, including those of an earlier table. `removed_from`
    are the partitions from which it removed files without adding any; they may be empty now.
    """

    ident: str
    committed_at: datetime
    appends: tuple[PartitionAppend, ...] = ()
    removed_from: tuple[Pairs, ...] = ()


@dataclass(frozen=True, slots=True)
class TableLog:
    """The content of a log: the requested new commits, and the ids of all commits that it still contains.

    `starts_at` is the time of its oldest commit if older ones were removed, or None if the log is complete.
    `rolled_back` are known commits that were rolled back.
    """

    new_commits: tuple[Commit, ...] = ()
    commit_ids: tuple[str, ...] = ()
    starts_at: datetime | None = None
    rolled_back: tuple[str, ...] = ()


class History(NamedTuple):
    """Times of the snapshots or commits that a log still has, ascending, in UTC.

    `is_complete` is True if none was removed since the table was created.
    """

    times: tuple[datetime, ...]
    is_complete: bool


@dataclass(frozen=True, slots=True)
class StatedNulls:
    """The NULL count of a column in a file as stated by the log, and the column's type as spelled by the
    format.

    `exact`: the count is exact except for rows that were deleted since.
    """

    type: str
    count: object
    exact: bool = True


@dataclass(frozen=True, slots=True)
class LiveFile:
    """A live data file of a table as stated by its log, unverified.

    `deleted` is the number of rows deleted since, or None if unknown. `writers` are the programs that wrote
    the file, as far as they are named.
    """

    size: int
    rows: object
    deleted: int | None
    nulls: Mapping[str, StatedNulls]
    writers: Collection[str]


@dataclass(frozen=True, slots=True)
class LiveTable:
    """A table as stated by its log: its schema, the names of its columns that are not nested, and its live
    files.

    `newest_at` is when the newest file was added; None if unknown or if there are no files.
    """

    schema: DataType
    columns: tuple[str, ...]
    newest_at: datetime | None
    files: Iterable[LiveFile]


def unknown(location: str, reason: str) -> ReadError:
    """Return the error for a table whose state is uncertain."""
    return ReadError(f"{location} {reason}.", "Run 'dq check' on it.")


def row_count(stated: object, limit: int | None = None) -> int | None:
    """Return a row count stated by a log if it is a valid number of at most `limit`, or None."""
    if isinstance(stated, bool) or not isinstance(stated, int) or stated < 0:
        return None
    return stated if limit is None or stated <= limit else None


# Reads a log. Takes the table's location, the ids of commits that are already known, and the instant before
# which commits are not needed. Raises ReadError if the log cannot be parsed.
Reader = Callable[[Files, str, Collection[str], datetime], TableLog]


def sum_by_partition(parts: Iterable[tuple[Mapping[str, str], int | None]]) -> tuple[PartitionAppend, ...]:
    """Sum the added rows of files by partition."""
    totals: dict[Pairs, int | None] = {}
    for partition, rows in parts:
        key = tuple(sorted(partition.items()))
        previous = totals.get(key, 0)
        totals[key] = None if previous is None or rows is None else previous + rows
    return tuple(PartitionAppend(key, rows) for key, rows in totals.items())


def partitions_only_reduced(
    removed: Iterable[Mapping[str, str]], added: Iterable[Mapping[str, str]]
) -> tuple[Pairs, ...]:
    """Return the partitions from which a commit removed files without adding any."""
    added_partitions = {tuple(sorted(partition.items())) for partition in added}
    return tuple(sorted({tuple(sorted(partition.items())) for partition in removed} - added_partitions))
