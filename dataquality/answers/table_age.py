"""Answers about a table's history from its log or from the listing of its files, without reading rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from dq.contracts.outcome import ReadError
from dq.dataquality.clauses.clause import micros_of
from dq.dataquality.model.metric import TableAge
from dq.lake import delta, hudi, iceberg
from dq.lake.storage import Files, FileStat, files_for, folder_tree
from dq.lake.table_log import NOT_UNDERSTOOD, History

# Format -> reader of its history, and the folder of its log.
READERS: Mapping[str, tuple[Callable[[Files, str], History], str]] = {
    "delta": (delta.history, delta.LOG_FOLDER),
    "hudi": (hudi.history, hudi.HOME),
    "iceberg": (iceberg.history, iceberg.METADATA_FOLDER),
}


def oldest_instant(of: TableAge, location: str, form: str) -> int | None:
    """Return the instant in microseconds since 1970, or None if there is none.

    Times are those of commits, for files the modification times in the storage.

    Raises ReadError if the location does not exist, its files cannot be listed, or its log cannot be parsed.
    """
    files, location = files_for(location), location.rstrip("/")
    if of is TableAge.FILE:
        log = READERS[form][1] if form in READERS else ""
        single = files.stat(location) if location.endswith(f".{form}") else None
        if single is None or any(files.entries(location)):
            stats = list(_files_below(location, log))
        else:
            stats = [single]
        instants = [file.modified_at for file in stats]
        return micros_of(min(instants)) if instants else None
    if form not in READERS:
        raise ReadError(f"{location} is {form}, which has no snapshots.", "Write 'of: files'.")
    try:
        history = READERS[form][0](files, location)
    except NOT_UNDERSTOOD as error:
        raise ReadError(f"The log of {location} cannot be parsed.", "Check its files.") from error
    if not history.times:
        raise ReadError(f"{location} has no log of {form}.", "Check the path and the format.")
    if of is TableAge.HISTORY:
        return None if history.is_complete else micros_of(history.times[0])
    return micros_of(history.times[0]) if len(history.times) > 1 else None


def _files_below(location: str, log: str) -> Iterator[FileStat]:
    """Yield all files below a location, hidden ones too, except those of its log."""
    tree = folder_tree(location, lambda _: True)
    tree.folders.pop(log, None)
    pending = [tree]
    while pending:
        folder = pending.pop()
        if folder.problem:
            raise ReadError(folder.problem, "Check its permissions, and put the files themselves there.")
        yield from folder.files
        pending += folder.folders.values()
