"""Reads the commits of a Hudi table from the completed instants of its timeline.

Source: https://hudi.apache.org/docs/timeline. Up to table version 6 the timeline is JSON in `.hoodie`; from
version 8 on it is Avro in `.hoodie/timeline`, and file names include the completion time.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from dq.contracts.layout import unescaped
from dq.contracts.outcome import ReadError
from dq.lake import compression
from dq.lake.storage import Files, FileStat
from dq.lake.table_log import (
    NOT_UNDERSTOOD,
    Commit,
    History,
    Pairs,
    PartitionAppend,
    TableLog,
    partitions_only_reduced,
    sum_by_partition,
)

HOME = ".hoodie"
_COMPLETED = re.compile(r"(\d{14,17})(?:_(\d{17}))?\.(?:commit|deltacommit|replacecommit)")
# The folder of the timeline, and that of its archive.
_LAYOUTS = (("timeline", "timeline/history"), ("", "archived"))
# Operations that add rows. Others reorganize (cluster, compact), delete, or concern the table itself.
_ADDS_ROWS = frozenset(
    {"INSERT", "UPSERT", "BULK_INSERT", "INSERT_OVERWRITE", "INSERT_OVERWRITE_TABLE"}
    | {"INSERT_PREPPED", "UPSERT_PREPPED", "BULK_INSERT_PREPPED", "BOOTSTRAP"}
)
# A partition whose file groups are replaced by none becomes empty.
_REPLACES_FILES = frozenset({"DELETE_PARTITION", "INSERT_OVERWRITE", "INSERT_OVERWRITE_TABLE"})


def read(files: Files, location: str, known_commits: Collection[str], since: datetime) -> TableLog:
    """Read the timeline. The time of an instant is its completion time, else the time of its file.

    Unless the timeline is in UTC, the times in its file names are in the writer's zone, which is unknown.
    """
    home = f"{location}/{HOME}"
    if files.stat(f"{home}/hoodie.properties") is None:
        return TableLog()
    properties = table_properties(files, location)
    folder, archive = _LAYOUTS[properties.get("hoodie.timeline.layout.version", "1") != "2"]
    folder = f"{home}/{folder}".rstrip("/")
    completed = [file for file in files.inside(folder) if _COMPLETED.fullmatch(file.name)]
    timed = sorted(
        ((_completed_at(file, properties), file) for file in completed),
        key=lambda pair: (pair[0], pair[1].name),
    )
    new_commits = [
        Commit(file.name, completed_at, *_changes(files.read(f"{folder}/{file.name}"), file.name, properties))
        for completed_at, file in timed
        if completed_at >= since and file.name not in known_commits
    ]
    cut = bool(timed) and bool(files.inside(f"{home}/{archive}"))
    names = tuple(file.name for _, file in timed)
    # Rolled back instants disappear from the middle; archived ones are older than all that remain.
    oldest = min((_requested(name) for name in names), default="")
    undone = tuple(
        sorted(name for name in set(known_commits) - set(names) if names and _requested(name) > oldest)
    )
    return TableLog(tuple(new_commits), names, timed[0][0] if cut else None, undone)


def history(files: Files, location: str) -> History:
    """Return the times of the completed instants in the active timeline."""
    log = read(files, location, (), datetime.min.replace(tzinfo=UTC))
    return History(tuple(commit.committed_at for commit in log.new_commits), log.starts_at is None)


def _requested(name: str) -> str:
    # Instants of older tables have a resolution of seconds.
    return name.partition(".")[0].partition("_")[0].ljust(17, "0")


def table_properties(files: Files, location: str) -> dict[str, str]:
    """Return the properties of a table. Raises ReadError if it has none."""
    content = files.read(f"{location}/{HOME}/hoodie.properties")
    lines = [line.partition("=") for line in content.decode(errors="replace").splitlines()]
    # Java escapes colons in its properties.
    return {name.strip(): value.strip().replace("\\:", ":") for name, sign, value in lines if sign}


def _completed_at(file: FileStat, properties: Mapping[str, str]) -> datetime:
    """Return the completion time in the name of an instant's file, if it is in UTC, else the file's time."""
    match = _COMPLETED.fullmatch(file.name)
    completed = match[2] if match else None
    if completed is None or properties.get("hoodie.table.timeline.timezone", "LOCAL").upper() != "UTC":
        return file.modified_at
    try:
        return datetime.strptime(completed, "%Y%m%d%H%M%S%f").replace(tzinfo=UTC)
    except ValueError as error:
        raise ReadError(f"Hudi's {file.name} has no valid time.", "Check this file.") from error


def _changes(
    content: bytes, name: str, properties: Mapping[str, str]
) -> tuple[tuple[PartitionAppend, ...], tuple[Pairs, ...]]:
    """Return the rows that an instant added per partition, and the partitions from which it only removed
    files.
    """
    try:
        metadata = (
            compression.parse_avro(content, name)[0]
            if content[:4] == compression.MAGIC
            else json.loads(content or b"{}")
        )
        operation = str(metadata.get("operationType")).upper()
        writes = list(_writes(metadata, properties))
        replaced = metadata.get("partitionToReplaceFileIds") or {} if operation in _REPLACES_FILES else {}
        emptied = [_partition(path, properties) for path, groups in replaced.items() if groups]
        # A write without rows has no files: it is an append of 0 rows.
        appends = (sum_by_partition(writes) or (PartitionAppend((), 0),)) if operation in _ADDS_ROWS else ()
        return appends, partitions_only_reduced(emptied, [partition for partition, _ in writes])
    except NOT_UNDERSTOOD as error:
        raise ReadError(f"Hudi's {name} cannot be parsed.", "Check this file.") from error


def _writes(
    metadata: Mapping[str, Any], properties: Mapping[str, str]
) -> Iterator[tuple[Mapping[str, str], int | None]]:
    for path, stats in (metadata.get("partitionToWriteStats") or {}).items():
        rows = sum((stat["numInserts"] or 0) + (stat["numUpdateWrites"] or 0) for stat in stats)
        # 0 if rows were only deleted.
        if rows:
            yield _partition(path, properties), rows


def key_fields(files: Files, location: str) -> frozenset[str]:
    """Return the fields whose values are in record keys and in keys of secondary indexes, in lower case.

    Raises ReadError without properties of a table, or for definitions of indexes that cannot be parsed.
    """
    properties = table_properties(files, location)
    fields = properties.get("hoodie.table.recordkey.fields", "").split(",")
    path = f"{location}/{properties.get('hoodie.table.index.defs.path', f'{HOME}/.index_defs/index.json')}"
    if files.stat(path) is not None:
        try:
            for definition in json.loads(files.read(path))["indexDefinitions"].values():
                if definition["indexType"] == "secondary_index":
                    fields += definition["sourceFields"]
        except NOT_UNDERSTOOD as error:
            raise ReadError(f"Hudi's {path} cannot be parsed.", "Check this file.") from error
    return frozenset(field.strip().lower() for field in fields if field.strip())


def _partition(path: str, properties: Mapping[str, str]) -> dict[str, str]:
    """Return the columns and values in a partition's path; empty if the path does not contain them."""
    field_list = properties.get("hoodie.table.partition.fields", "")
    fields = [text.strip().partition(":")[0] for text in field_list.split(",") if text.strip()]
    parts = [path] if len(fields) == 1 else path.split("/")
    if len(parts) != len(fields):
        return {}
    return {
        field: unescaped(part.removeprefix(f"{field}=")) for field, part in zip(fields, parts, strict=True)
    }
