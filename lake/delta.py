"""Delta tables by their log: commits, live files, names of columns."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from io import BytesIO
from typing import Any
from urllib.parse import unquote

from dq.contracts.shared.install import install_command
from dq.contracts.shared.outcome import MissingTool, Unreadable
from dq.lake.commits import NOT_UNDERSTOOD, Brought, Commit, Pairs, TableLog, summed, taken
from dq.lake.paths import unescaped
from dq.lake.storage import Files, Seen

# The columns' names behind those by which the log of a Delta table with column mapping knows them.
#
# Source: https://github.com/delta-io/delta/blob/master/PROTOCOL.md, "Column Mapping" and "Checkpoints".

_ANY_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint(?:\.[0-9A-Za-z.\-]+)?\.(parquet|json)")
_PHYSICAL = "delta.columnMapping.physicalName"


def has_mapped_names(columns: Collection[str]) -> bool:
    """Whether columns have names that Delta made up for a mapping."""
    return any(column.startswith("col-") for column in columns)


def column_names(files: Files, log: str, inside: Sequence[Seen], commits: Sequence[Seen]) -> dict[str, str]:
    """The name of every top-level column by the log's name of it, from the newest entry that tells.

    Commits since the newest checkpoint are asked first, then the checkpoint, which stands for all before it.
    Raises MissingTool without pyarrow where a checkpoint is needed.
    """
    numbered = {one.name: match for one in inside if (match := _ANY_CHECKPOINT.fullmatch(one.name))}
    newest = max((match[1] for match in numbered.values()), default="")
    for one in reversed([one for one in commits if one.name[:20] > newest]):
        for line in files.read(f"{log}/{one.name}").splitlines():
            if b'"metaData"' in line and (told := json.loads(line).get("metaData")):
                return _named(told)
    for name, match in numbered.items():
        if match[1] == newest:
            for told in _metadata_of_checkpoint(files.read(f"{log}/{name}"), match[2]):
                return _named(told)
    return {}


def _metadata_of_checkpoint(content: bytes, form: str) -> Iterator[Mapping[str, Any]]:
    if form == "json":
        told = (json.loads(line).get("metaData") for line in content.splitlines() if line.strip())
    else:
        try:
            from pyarrow import parquet
        except ImportError as error:
            what = "Checkpoints of Delta need pyarrow, which is not installed."
            raise MissingTool(what, install_command("lakehouse")) from error
        file = parquet.ParquetFile(BytesIO(content))
        if "metaData" not in file.schema_arrow.names:
            return
        told = iter(file.read(columns=["metaData"]).column(0).to_pylist())
    yield from (one for one in told if one and one.get("schemaString"))


def _named(metadata: Mapping[str, Any]) -> dict[str, str]:
    fields = json.loads(metadata["schemaString"])["fields"]
    return {field["metadata"].get(_PHYSICAL, field["name"]): field["name"] for field in fields}


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


def read(files: Files, place: str, known: Collection[str], since: datetime) -> TableLog:
    """The table's log; its commit times are those that it holds itself, else the files' own."""
    log = f"{place}/_delta_log"
    inside = files.inside(log)
    seen = commits(inside)
    new = [
        _commit(one, files.read(f"{log}/{one.name}"))
        for one in seen
        if one.modified_at >= since and _ident(one) not in known
    ]
    touched = [pairs for one in new for pairs in (*(part.partition for part in one.brought), *one.took)]
    if has_mapped_names({name for pairs in touched for name, _ in pairs}):
        new = _renamed(new, column_names(files, log, inside, seen))
    begins = None if not seen or seen[0].name == _FIRST else seen[0].modified_at
    return TableLog(tuple(new), tuple(_ident(one) for one in seen), begins)


def commits(inside: Iterable[Seen]) -> list[Seen]:
    """The files of commits in the folder of a log, in their order."""
    return sorted((one for one in inside if _COMMIT.fullmatch(one.name)), key=lambda one: one.name)


def actions_of(content: bytes) -> list[Any]:
    """The actions of a commit. Raises ValueError for what is no JSON."""
    return [json.loads(line) for line in content.splitlines() if line.strip()]


def _renamed(done: list[Commit], names: Mapping[str, str]) -> list[Commit]:
    def columns(pairs: Pairs) -> Pairs:
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


def _commit(file: Seen, content: bytes) -> Commit:
    try:
        actions = actions_of(content)
        info: dict[str, Any] = next((one["commitInfo"] for one in actions if "commitInfo" in one), {})
        told = info.get("inCommitTimestamp")
        at = file.modified_at if told is None else datetime.fromtimestamp(told / 1000, UTC)
        brought = _brought(actions, str(info.get("operation", "")).upper())
        lost = [one["remove"] for one in actions if "remove" in one and one["remove"].get("dataChange", True)]
        kept = [one["add"] for one in actions if "add" in one]
        return Commit(_ident(file), at, brought, taken(map(partition, lost), map(partition, kept)))
    except (*NOT_UNDERSTOOD, OSError) as error:
        raise Unreadable(f"Delta's log has no commit in {file.name}.", "Look at this file.") from error


def _brought(actions: list[dict[str, Any]], operation: str) -> tuple[Brought, ...]:
    if operation.partition(" ")[0] in _BRINGS_NOTHING:
        return ()
    removed = {one["remove"]["path"] for one in actions if "remove" in one}
    brought = summed(_added(actions, removed))
    return brought or ((Brought((), 0),) if operation in _WRITES else ())


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

Entry = Mapping[str, Any]
"""An action of the log, as its JSON has it."""


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


def live(files: Files, place: str) -> set[Pairs] | None:
    """The partitions with files, as pairs of column and value; `()` for a table without partitions.

    None where it cannot be told, and raises, as `state` does.
    """
    found = state(files, place, ("add.path", "add.partitionValues"))
    if found is None:
        return None
    pairs = {tuple(sorted(partition(one).items())) for one in found.files.values()}
    if has_mapped_names({name for each in pairs for name, _ in each}):
        log = f"{place}/_delta_log"
        inside = files.inside(log)
        names = column_names(files, log, inside, commits(inside))
        return {tuple((names.get(name, name), value) for name, value in each) for each in pairs}
    return pairs


def state(files: Files, place: str, columns: Sequence[str]) -> DeltaState | None:
    """The newest version; of a checkpoint no more is read than these columns.

    None where it cannot be told: the log is cut or lacks a commit, and its checkpoint is not whole, too large
    or lies in files of its own (version 2). Raises Unreadable for a commit that is cut off, what the storage
    raises, and ImportError without pyarrow where a checkpoint is needed.
    """
    log = f"{place}/_delta_log"
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
