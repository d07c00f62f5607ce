"""Delta tables by their log: commits, live files, names of columns."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from io import BytesIO
from itertools import chain
from typing import Any, BinaryIO
from urllib.parse import unquote

from dq.contracts.install import needing
from dq.contracts.outcome import Unreadable
from dq.lake import table_log
from dq.lake.storage import Files, Seen, unescaped
from dq.lake.types import from_spark_json

# The columns' names behind those by which the log of a Delta table with column mapping knows them.
#
# Source: https://github.com/delta-io/delta/blob/master/PROTOCOL.md, "Column Mapping" and "Checkpoints".

_ANY_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint(?:\.[0-9A-Za-z.\-]+)?\.(parquet|json)")
_PHYSICAL = "delta.columnMapping.physicalName"
LOG_FOLDER = "_delta_log"

Entry = Mapping[str, Any]
"""An action of the log, as its JSON has it."""

Opener = Callable[[str], AbstractContextManager[BinaryIO]]
"""Opens a file by its path."""


def has_mapped_names(columns: Collection[str]) -> bool:
    """Whether columns have names that Delta made up for a mapping."""
    return any(column.startswith("col-") for column in columns)


def column_names(files: Files, log: str, inside: Sequence[Seen]) -> dict[str, str]:
    """The name of every top-level column by the log's name of it."""
    metadata = table_metadata(files, log, inside)
    fields = json.loads(metadata["schemaString"])["fields"] if metadata else ()
    return {field["metadata"].get(_PHYSICAL, field["name"]): field["name"] for field in fields}


def table_metadata(
    files: Files, log: str, inside: Sequence[Seen], opened: Opener | None = None
) -> Entry | None:
    """Return the newest metadata of the table, from these files of its log; None where none has it.

    Commits since the newest checkpoint are asked first, then the checkpoint, which stands for all before it,
    and the older commits last. `opened` opens checkpoints of any size; without it they are read whole.

    Raises Unreadable for a log that is damaged, MissingTool without pyarrow where a checkpoint is needed.
    """
    numbered = {one.name: match for one in inside if (match := _ANY_CHECKPOINT.fullmatch(one.name))}
    newest = max((match[1] for match in numbered.values()), default="")
    done = [f"{log}/{one.name}" for one in commits(inside)]
    since = [path for path in done if path[len(log) + 1 :][:20] > newest]
    parts = [(f"{log}/{name}", match[2]) for name, match in numbered.items() if match[1] == newest]
    read = opened or (lambda path: BytesIO(files.read(path)))
    candidates = chain(
        (_metadata_of_commit(files.read(path), path) for path in reversed(since)),
        (_metadata_of_checkpoint(read, path, form) for path, form in sorted(parts)),
        (_metadata_of_commit(files.read(path), path) for path in reversed(done[: len(done) - len(since)])),
    )
    return next(filter(None, candidates), None)


def _metadata_of_commit(content: bytes, path: str) -> Entry | None:
    for line in reversed(content.splitlines()):
        # Most lines are files, and there may be a million of them.
        if b'"metaData"' not in line:
            continue
        try:
            action = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise Unreadable(f"{path} is no JSON.", "The log is damaged: restore the table.") from error
        if isinstance(action, dict) and isinstance(action.get("metaData"), dict):
            return dict(action["metaData"])
    return None


def _metadata_of_checkpoint(opened: Opener, path: str, form: str) -> Entry | None:
    if form == "json":
        with opened(path) as file:
            return _metadata_of_commit(file.read(), path)
    with needing("A checkpoint of Delta needs pyarrow", "lakehouse"):
        import pyarrow as pa
        from pyarrow import compute, parquet
    with opened(path) as file:
        try:
            column = parquet.read_table(file, columns=["metaData"]).column("metaData")
            rows = column.filter(compute.is_valid(column)).to_pylist()
        except (pa.ArrowException, OSError, KeyError) as error:
            raise Unreadable(f"{path} is no checkpoint.", "The log is damaged: restore it.") from error
    return next((dict(row) for row in rows if row.get("schemaString")), None)


# Commits of a Delta table, from the JSON files of its log.
#
# Source: https://github.com/delta-io/delta/blob/master/PROTOCOL.md, "Actions".

_COMMIT = re.compile(r"\d{20}\.json")
_FIRST = f"{0:020}.json"

# They write files anew, and bring nothing that was not there before. The log's own sign of it, dataChange,
# is true for those that take rows away.
_BRINGS_NOTHING = frozenset({"DELETE", "UPDATE", "OPTIMIZE", "REORG", "RESTORE"})
# A write of no rows has no entry of a file.
_WRITES = frozenset({"WRITE", "CREATE TABLE AS SELECT", "CREATE OR REPLACE TABLE AS SELECT"})


def read(files: Files, place: str, known: Collection[str], since: datetime) -> table_log.TableLog:
    """The table's log; its commit times are those that it holds itself, else the files' own."""
    log = f"{place}/{LOG_FOLDER}"
    inside = files.inside(log)
    seen = commits(inside)
    new = [
        _commit(one, files.read(f"{log}/{one.name}"))
        for one in seen
        if one.modified_at >= since and _ident(one) not in known
    ]
    touched = [pairs for one in new for pairs in (*(part.partition for part in one.brought), *one.took)]
    if has_mapped_names({name for pairs in touched for name, _ in pairs}):
        new = _renamed(new, column_names(files, log, inside))
    begins = None if not seen or seen[0].name == _FIRST else seen[0].modified_at
    return table_log.TableLog(tuple(new), tuple(_ident(one) for one in seen), begins)


def commits(inside: Iterable[Seen]) -> list[Seen]:
    """The files of commits in the folder of a log, in their order."""
    return sorted((one for one in inside if _COMMIT.fullmatch(one.name)), key=lambda one: one.name)


def has_log(inside: Iterable[Seen]) -> bool:
    """Return whether files in the folder of a log are some of a table."""
    return any(_COMMIT.fullmatch(one.name) or _ANY_CHECKPOINT.fullmatch(one.name) for one in inside)


def actions_of(content: bytes) -> list[Any]:
    """The actions of a commit. Raises ValueError for what is no JSON."""
    return [json.loads(line) for line in content.splitlines() if line.strip()]


def _renamed(done: list[table_log.Commit], names: Mapping[str, str]) -> list[table_log.Commit]:
    def columns(pairs: table_log.Pairs) -> table_log.Pairs:
        return tuple((names.get(name, name), value) for name, value in pairs)

    return [
        replace(
            commit,
            brought=tuple(one._replace(partition=columns(one.partition)) for one in commit.brought),
            took=tuple(map(columns, commit.took)),
        )
        for commit in done
    ]


def _ident(file: Seen) -> str:
    # A table that was made anew at the same place counts from zero again.
    return f"{int(file.name[:20])}@{file.modified_at:%Y%m%dT%H%M%S.%f}"


def _commit(file: Seen, content: bytes) -> table_log.Commit:
    try:
        actions = actions_of(content)
        info: dict[str, Any] = next((one["commitInfo"] for one in actions if "commitInfo" in one), {})
        told = info.get("inCommitTimestamp")
        at = file.modified_at if told is None else datetime.fromtimestamp(told / 1000, UTC)
        brought = _brought(actions, str(info.get("operation", "")).upper())
        lost = [one["remove"] for one in actions if "remove" in one and one["remove"].get("dataChange", True)]
        kept = [one["add"] for one in actions if "add" in one]
        return table_log.Commit(
            _ident(file), at, brought, table_log.taken(map(partition, lost), map(partition, kept))
        )
    except (*table_log.NOT_UNDERSTOOD, OSError) as error:
        raise Unreadable(f"Delta's log has no commit in {file.name}.", "Look at this file.") from error


def _brought(actions: list[dict[str, Any]], operation: str) -> tuple[table_log.Brought, ...]:
    if operation.partition(" ")[0] in _BRINGS_NOTHING:
        return ()
    removed = {one["remove"]["path"] for one in actions if "remove" in one}
    brought = table_log.summed(_added(actions, removed))
    return brought or ((table_log.Brought((), 0),) if operation in _WRITES else ())


def _added(
    actions: list[dict[str, Any]], removed: Collection[str]
) -> Iterator[tuple[Mapping[str, str], int | None]]:
    for one in actions:
        # With a deletion vector, a file that was there before is removed and added in one commit.
        if "add" in one and one["add"].get("dataChange", True) and one["add"]["path"] not in removed:
            stats = json.loads(one["add"].get("stats") or "{}")
            yield partition(one["add"]), stats.get("numRecords")


def partition(file: Mapping[str, Any]) -> dict[str, str]:
    """The columns and values of a file's partition: those of its entry, else of its path."""
    values = file.get("partitionValues")
    if values is None:
        parts = [part.partition("=") for part in unquote(str(file["path"])).split("/")[:-1]]
        values = {unescaped(name): unescaped(value) for name, sign, value in parts if sign}
    return {str(name): str(value) for name, value in dict(values).items() if value is not None}


# Which files a Delta table has now, and in which partitions: its newest checkpoint, and the commits since.
#
# Source: https://github.com/delta-io/delta/blob/master/PROTOCOL.md, "Action Reconciliation".

# Of a larger checkpoint nobody knows what its columns unpack to.
_MOST_FILES, _MOST_BYTES = 1_000_000, 256 * 2**20
_NUMBERED = re.compile(r"(\d{20})\.(?:json|crc|checkpoint\..+)")
_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint(?:\.\d{10}\.(\d{10}))?\.parquet")


@dataclass(slots=True)
class DeltaState:
    """A table's newest version: the entries of its files by their paths, its metadata and protocol.

    `engines` says by path who added a file, where its commit is still there and tells.
    """

    files: dict[str, Entry] = field(default_factory=dict)
    engines: dict[str, str] = field(default_factory=dict)
    metadata: Entry = field(default_factory=dict)
    protocol: Entry = field(default_factory=dict)

    def add(self, actions: Sequence[Entry]) -> None:
        """One commit more, or a part of the checkpoint."""
        engine = next((one["commitInfo"].get("engineInfo") for one in actions if one.get("commitInfo")), None)
        for one in actions:
            # With a deletion vector, a file is removed and added in one commit.
            if one.get("remove"):
                self.files.pop(unquote(one["remove"]["path"]), None)
            self.metadata = one.get("metaData") or self.metadata
            self.protocol = one.get("protocol") or self.protocol
        for one in actions:
            if one.get("add"):
                path = unquote(one["add"]["path"])
                self.files[path], self.engines[path] = one["add"], str(engine or "")


def live(files: Files, place: str) -> set[table_log.Pairs] | None:
    """The partitions with files, as pairs of column and value; `()` for a table without partitions.

    None where it cannot be told, and raises, as `state` does.
    """
    found = state(files, place, ("add.path", "add.partitionValues"))
    if found is None:
        return None
    pairs = {tuple(sorted(partition(one).items())) for one in found.files.values()}
    if has_mapped_names({name for each in pairs for name, _ in each}):
        log = f"{place}/{LOG_FOLDER}"
        inside = files.inside(log)
        names = column_names(files, log, inside)
        return {tuple((names.get(name, name), value) for name, value in each) for each in pairs}
    return pairs


def state(files: Files, place: str, columns: Sequence[str]) -> DeltaState | None:
    """The newest version; of a checkpoint no more is read than these columns.

    None where it cannot be told: the log is cut or lacks a commit, and its checkpoint is not whole, too large
    or lies in files of its own (version 2). Raises Unreadable for a commit that is cut off, what the storage
    raises, and ImportError without pyarrow where a checkpoint is needed.
    """
    log = f"{place}/{LOG_FOLDER}"
    inside = files.inside(log)
    number, parts = _checkpoint(inside)
    since = [one for one in commits(inside) if one.name[:20] > number]
    first = int(number) + 1 if parts else 0
    numbers = [int(one.name[:20]) for one in since]
    # Of a checkpoint that is half there, or of a kind that is not read, the commits may be gone.
    newest = max((int(match[1]) for one in inside if (match := _NUMBERED.fullmatch(one.name))), default=0)
    if not (parts or since) or numbers != [*range(first, newest + 1)]:
        return None
    found = DeltaState()
    for name in parts:
        actions = _checkpointed(files.read(f"{log}/{name}"), columns)
        if actions is None:
            return None
        found.add(actions)
    for one in since:
        actions = actions_of(files.read(f"{log}/{one.name}"))
        if not actions:
            raise Unreadable(f"Delta's log has no commit in {one.name}.", "Look at this file.")
        found.add(actions)
    return found


def _checkpoint(inside: Sequence[Seen]) -> tuple[str, list[str]]:
    """The number of the newest whole checkpoint, and the names of its files; none: before all numbers."""
    by_number: dict[str, list[tuple[str, int]]] = {}
    for one in inside:
        if match := _CHECKPOINT.fullmatch(one.name):
            by_number.setdefault(match[1], []).append((one.name, int(match[2] or 1)))
    for number in sorted(by_number, reverse=True):
        for count in {parts for _, parts in by_number[number]}:
            names = sorted(name for name, parts in by_number[number] if parts == count)
            if len(names) == count:
                return number, names
    return "", []


def _checkpointed(content: bytes, columns: Sequence[str]) -> list[Entry] | None:
    from pyarrow import parquet

    file = parquet.ParquetFile(BytesIO(content))
    groups = [file.metadata.row_group(number) for number in range(file.metadata.num_row_groups)]
    size = sum(
        group.column(number).total_uncompressed_size
        for group in groups
        for number in range(group.num_columns)
    )
    if file.metadata.num_rows > _MOST_FILES or size > _MOST_BYTES:
        return None
    if "sidecar" in file.schema_arrow.names and any(file.read(columns=["sidecar"]).column(0).to_pylist()):
        return None
    actions: list[Entry] = file.read(columns=list(columns)).to_pylist()
    return actions


# The table as its log states it.
#
# Source: the protocol, "Per-file Statistics", "Deletion Vectors" and "Valid Feature Names in Table Features".

# What a reader must understand, and which of it changes nothing here or is understood.
_FEATURES_FROM = 3
_UNDERSTOOD = frozenset(
    {"columnMapping", "deletionVectors", "timestampNtz", "typeWidening", "typeWidening-preview"}
    | {"v2Checkpoint", "vacuumProtocolCheck"}
)
# Somebody else has the newest commits; of some of these only writers must know.
_ELSEWHERE = ("coordinatedCommits", "catalog")
_LIVE_COLUMNS = (
    *("protocol.minReaderVersion", "protocol.readerFeatures", "protocol.writerFeatures"),
    *("metaData.schemaString", "metaData.partitionColumns", "add.path", "add.partitionValues", "add.size"),
    *("add.modificationTime", "add.stats", "add.deletionVector.cardinality"),
)


def live_table(files: Files, place: str) -> table_log.LiveTable:
    """The newest version. Raises Unreadable where that is not certain."""
    found = state(files, place, _LIVE_COLUMNS)
    if found is None:
        raise table_log.unknown(place, "has a log of Delta that is cut, or whose checkpoint is not read here")
    version = found.protocol["minReaderVersion"]
    asked = found.protocol.get("readerFeatures") or () if version >= _FEATURES_FROM else ()
    written = found.protocol.get("writerFeatures") or ()
    elsewhere = {one for one in written if one.startswith(_ELSEWHERE)}
    strange = sorted({*asked} - _UNDERSTOOD | elsewhere)
    if version > _FEATURES_FROM or strange:
        what = ", ".join(strange) or f"version {version}"
        raise table_log.unknown(place, f"needs what is not known here of Delta's protocol: {what}")
    schema = json.loads(found.metadata["schemaString"])
    keys = frozenset(found.metadata.get("partitionColumns") or ())
    plain = dict(_plain(schema))
    newest = max((one["modificationTime"] for one in found.files.values()), default=None)
    newest_at = None if newest is None else datetime.fromtimestamp(newest / 1000, UTC)
    live_files = (_live_file(one, found.engines[path], plain, keys) for path, one in found.files.items())
    return table_log.LiveTable(from_spark_json(schema), tuple(plain), newest_at, live_files)


def _plain(schema: Mapping[str, Any]) -> Iterator[tuple[str, tuple[str, str]]]:
    """The type of every column without parts, and the name by which the log knows it."""
    for column in schema["fields"]:
        if isinstance(column["type"], str):
            stored = column["metadata"].get(_PHYSICAL, column["name"])
            yield column["name"], (column["type"].partition("(")[0], stored)


def _live_file(
    entry: Entry, engine: str, columns: Mapping[str, tuple[str, str]], keys: frozenset[str]
) -> table_log.LiveFile:
    stats = json.loads(entry.get("stats") or "{}")
    rows, stated = stats.get("numRecords"), stats.get("nullCount") or {}
    vector = entry.get("deletionVector")
    deleted = table_log.row_count(vector["cardinality"]) if vector else 0
    placed = dict(entry["partitionValues"])
    tight = stats.get("tightBounds") is not False

    def nulls(name: str, kind: str, stored: str) -> table_log.StatedNulls:
        if name not in keys:
            return table_log.StatedNulls(kind, stated.get(stored), tight)
        value = placed.get(stored, "")
        # Empty, it is NULL by the protocol; some writers mean the empty text.
        return table_log.StatedNulls(kind, rows if value is None else 0 if value else None)

    by_column = {name: nulls(name, *both) for name, both in columns.items()}
    return table_log.LiveFile(entry["size"], rows, deleted, by_column, (engine,))
