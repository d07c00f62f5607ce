"""One pass over the files of a table for all keys: in threads, or in Spark tasks for many bytes."""

from __future__ import annotations

import hashlib
import json
import os
import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from dq.contracts.access.access_policy import is_remote
from dq.contracts.outcome import MissingTool
from dq.dataquality.erasure.files import SearchedFile, SearchedTable, TableListing
from dq.dataquality.erasure.keys import Keys
from dq.dataquality.erasure.model import FileResult, Gap, Role
from dq.dataquality.erasure.search import ColumnProfile, FileSearch, FoundRow, profile_file, search_file
from dq.dataquality.model.metric import Failure
from dq.dataquality.spark.session import in_tasks, worker_problem
from dq.lake.storage import ArrowFiles

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MOST_LOCAL_BYTES = 8 << 30
"""Tables with more bytes are searched by Spark, if it is installed."""
_TASK_BYTES = 256 << 20
_LOCAL_THREADS, _REMOTE_THREADS = 4, 32


@dataclass(slots=True)
class TableSearch:
    """The search of a table: results of its files, gaps, and the rows of keys."""

    files: list[FileResult] = field(default_factory=list)
    gaps: list[Gap] = field(default_factory=list)
    rows: list[FoundRow] = field(default_factory=list)

    def add(self, search: FileSearch) -> None:
        """Add the search of a file."""
        if search.result is not None:
            self.files.append(search.result)
        self.gaps += search.gaps
        self.rows += search.rows


def search_listing(
    listing: TableListing,
    keys: Keys,
    *,
    with_rows: bool = False,
    spark: Callable[[], SparkSession] | None = None,
    most_local_bytes: int = MOST_LOCAL_BYTES,
) -> TableSearch:
    """Search all files of a listing, each once for all keys.

    `spark` starts a session, and is called only for a table of more than `most_local_bytes`. Neither keys nor
    rows are in any plan or file of Spark: tasks get and return them encrypted, with a secret in the task.
    """
    search = TableSearch(gaps=list(listing.gaps))
    files = sorted(listing.files, key=lambda listed: listed.file.size, reverse=True)
    size = sum(listed.file.size for listed in files)
    session = None
    if spark is not None and size > most_local_bytes:
        with suppress(MissingTool):
            session = spark()
    if session is not None:
        _in_spark(session, search, listing.table, files, keys, with_rows)
    else:
        for result in _in_threads(listing.table, files, keys, with_rows):
            search.add(result)
    search.files.sort(key=lambda result: result.file.path)
    return search


def profile_files(listing: TableListing) -> tuple[Mapping[str, ColumnProfile], list[Gap]]:
    """Return the profiles of the identity columns of a table, and its Parquet files that cannot be read."""
    table, gaps = listing.table, list[Gap]()
    profiles = {str(column): ColumnProfile() for column in table.columns}
    storage = ArrowFiles() if is_remote(table.location) else None
    for listed in listing.files:
        if listed.file.role in (Role.CURRENT, Role.SNAPSHOT) and not listed.relative.endswith("/"):
            try:
                profile_file(table, listed, storage, profiles)
            except (OSError, ValueError) as error:
                gaps.append(Gap(table.name, listed.file.path, f"it cannot be read ({type(error).__name__})"))
    return profiles, gaps


def _in_threads(
    table: SearchedTable, files: Sequence[SearchedFile], keys: Keys, with_rows: bool
) -> Iterator[FileSearch]:
    remote = is_remote(table.location)
    storage = ArrowFiles() if remote else None
    if storage is not None:
        storage.connect(table.location)
    work = partial(search_file, table, keys=keys, storage=storage, with_rows=with_rows)
    with ThreadPoolExecutor(_REMOTE_THREADS if remote else _LOCAL_THREADS) as pool:
        yield from pool.map(work, files)


def _in_spark(
    session: SparkSession,
    search: TableSearch,
    table: SearchedTable,
    files: Sequence[SearchedFile],
    keys: Keys,
    with_rows: bool,
) -> None:
    context = session.sparkContext
    secret = os.urandom(32)
    broadcast = context.broadcast(_encrypted(json.dumps(keys.values).encode(), secret))
    work = partial(_task, table=table, keys=broadcast, secret=secret, with_rows=with_rows)
    try:
        outputs = in_tasks(session, list(_bundles(files)), work)
    finally:
        broadcast.destroy()
    if isinstance(outputs, Failure):
        # The message of a failed task may quote a key.
        why = worker_problem(session) or "a task failed; Spark's log has its error"
        search.gaps.append(Gap(table.name, table.location, f"Spark could not search it: {why}"))
        return
    for output in outputs:
        for result in pickle.loads(_decrypted(output, secret)):
            search.add(result)


def _bundles(files: Iterable[SearchedFile]) -> Iterator[list[SearchedFile]]:
    bundle: list[SearchedFile] = []
    size = 0
    for listed in files:
        bundle.append(listed)
        size += listed.file.size
        if size >= _TASK_BYTES:
            yield bundle
            bundle, size = [], 0
    if bundle:
        yield bundle


def _task(
    files: Sequence[SearchedFile],
    table: SearchedTable,
    keys: object,
    secret: bytes,
    with_rows: bool,
) -> bytes:
    """Return the encrypted searches of files. Spark writes large results to disks, as it does broadcasts."""
    values = json.loads(_decrypted(keys.value, secret))  # type: ignore[attr-defined]  # Spark's broadcast
    decrypted = Keys(tuple(values))
    storage = ArrowFiles() if is_remote(table.location) else None
    searches = [search_file(table, listed, decrypted, storage, with_rows=with_rows) for listed in files]
    return _encrypted(pickle.dumps(searches), secret)


_NONCE_BYTES = 16


def _encrypted(data: bytes, secret: bytes) -> bytes:
    nonce = os.urandom(_NONCE_BYTES)
    return nonce + _xor(data, secret + nonce)


def _decrypted(data: bytes, secret: bytes) -> bytes:
    return _xor(data[_NONCE_BYTES:], secret + data[:_NONCE_BYTES])


def _xor(data: bytes, secret: bytes) -> bytes:
    # The stream of an extendable-output function with a secret and a nonce that is used once.
    stream = hashlib.shake_256(secret).digest(len(data))
    return (int.from_bytes(data, "big") ^ int.from_bytes(stream, "big")).to_bytes(len(data), "big")
