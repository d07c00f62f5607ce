"""The values that a search for the keys of people passes on: files, what cleared them, hits, and gaps."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime


class Role(enum.StrEnum):
    """The reason that a physical file exists."""

    CURRENT = "current"
    SNAPSHOT = "old snapshot"
    ORPHAN = "orphan"
    DELETED = "hidden by deletes"
    DELETES = "delete file"
    LOG = "log file"
    STAGED = "staged"
    QUARANTINE = "quarantine"
    RESULTS = "dq results"


class Means(enum.StrEnum):
    """The proof that a file has no row of any key."""

    EMPTY = "no rows"
    ABSENT = "no such column"
    BOUNDS = "bounds"
    DICTIONARY = "dictionary"
    BLOOM = "Bloom filter"
    SCAN = "scanned"


@dataclass(frozen=True)
class PhysicalFile:
    """A file of a table as it lies in storage.

    `path` is absolute, `modified` in UTC. `checksum` is `algorithm:hex` or an ETag as `etag:…`; empty where
    the storage has none and the file was not read.
    """

    table: str
    """`contract-id/object@server`."""
    path: str
    size: int
    role: Role
    modified: datetime | None = None
    snapshot: str = ""
    checksum: str = ""


@dataclass(frozen=True)
class Hit:
    """Rows of a key in a file; `key` is the position of the key in the file of keys, from 0."""

    key: int
    column: str
    rows: int


@dataclass(frozen=True)
class FileResult:
    """The search of a file, and the rows of keys in it. A file with hits was scanned.

    `rows` counts a row once, however many keys and columns it has of them.
    """

    file: PhysicalFile
    means: Means
    bytes_read: int
    hits: tuple[Hit, ...] = ()
    rows: int = 0


@dataclass(frozen=True)
class Gap:
    """Something of a table that was not searched, and why; with a gap nothing is proven of that table."""

    table: str
    what: str
    why: str


@dataclass(frozen=True)
class SearchOutcome:
    """All files of all tables that were searched for the keys of an identity."""

    identity: str
    keys: int
    tables: Mapping[str, tuple[str, ...]]
    """The columns with the identity, by table."""
    files: tuple[FileResult, ...]
    gaps: tuple[Gap, ...]
    started: datetime
    finished: datetime
