"""Commits of a Hudi table, from the completed instants of its timeline.

Source: https://hudi.apache.org/docs/timeline. Up to table version 6 the timeline lies in `.hoodie` and is
JSON; from 8 on it lies in `.hoodie/timeline` and is Avro, and the names have the time of completion.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from dq.contracts.outcome import Unreadable
from dq.lake import compression
from dq.lake.storage import Files, Seen, unescaped
from dq.lake.table_log import NOT_UNDERSTOOD, Brought, Commit, Pairs, TableLog, summed, taken

_COMPLETED = re.compile(r"(\d{14,17})(?:_(\d{17}))?\.(?:commit|deltacommit|replacecommit)")
# The folder of the timeline, and where its older part is put.
_LAYOUTS = (("timeline", "timeline/history"), ("", "archived"))
# All others rearrange (cluster, compact), take away, or concern the table as such.
_BRINGS = frozenset(
    {"INSERT", "UPSERT", "BULK_INSERT", "INSERT_OVERWRITE", "INSERT_OVERWRITE_TABLE"}
    | {"INSERT_PREPPED", "UPSERT_PREPPED", "BULK_INSERT_PREPPED", "BOOTSTRAP"}
)
# A partition whose file groups all are replaced by none is empty.
_REPLACES = frozenset({"DELETE_PARTITION", "INSERT_OVERWRITE", "INSERT_OVERWRITE_TABLE"})


def read(files: Files, place: str, known: Collection[str], since: datetime) -> TableLog:
    """The timeline; the time of an instant is that of its completion, else that of its file.

    The times in the names of a timeline that is not in UTC are of the writer's zone, which nobody knows.
    """
    home = f"{place}/.hoodie"
    if files.stat(f"{home}/hoodie.properties") is None:
        return TableLog()
    terms = _terms(files.read(f"{home}/hoodie.properties"))
    folder, archive = _LAYOUTS[terms.get("hoodie.timeline.layout.version", "1") != "2"]
    folder = f"{home}/{folder}".rstrip("/")
    seen = [one for one in files.inside(folder) if _COMPLETED.fullmatch(one.name)]
    timed = sorted(((_at(one, terms), one) for one in seen), key=lambda pair: (pair[0], pair[1].name))
    new = [
        Commit(one.name, at, *_changed(files.read(f"{folder}/{one.name}"), one.name, terms))
        for at, one in timed
        if at >= since and one.name not in known
    ]
    cut = bool(timed) and bool(files.inside(f"{home}/{archive}"))
    held = tuple(one.name for _, one in timed)
    # What was rolled back or restored is gone from the midst; what was archived is older than all there is.
    oldest = min((_requested(name) for name in held), default="")
    undone = tuple(sorted(name for name in set(known) - set(held) if held and _requested(name) > oldest))
    return TableLog(tuple(new), held, timed[0][0] if cut else None, undone)


def _requested(name: str) -> str:
    # Older tables count in seconds.
    return name.partition(".")[0].partition("_")[0].ljust(17, "0")


def _terms(content: bytes) -> dict[str, str]:
    lines = [line.partition("=") for line in content.decode(errors="replace").splitlines()]
    # Java escapes colons in its properties.
    return {name.strip(): value.strip().replace("\\:", ":") for name, sign, value in lines if sign}


def _at(file: Seen, terms: Mapping[str, str]) -> datetime:
    match = _COMPLETED.fullmatch(file.name)
    completed = match[2] if match else None
    if completed is None or terms.get("hoodie.table.timeline.timezone", "LOCAL").upper() != "UTC":
        return file.modified_at
    try:
        return datetime.strptime(completed, "%Y%m%d%H%M%S%f").replace(tzinfo=UTC)
    except ValueError as error:
        raise Unreadable(f"Hudi's {file.name} names no time.", "Look at this file.") from error


def _changed(
    content: bytes, name: str, terms: Mapping[str, str]
) -> tuple[tuple[Brought, ...], tuple[Pairs, ...]]:
    """What an instant brought, and which partitions it emptied."""
    try:
        told = (
            compression.parse_avro(content, name)[0]
            if content[:4] == compression.MAGIC
            else json.loads(content or b"{}")
        )
        operation = str(told.get("operationType")).upper()
        written = list(_written(told, terms))
        replaced = told.get("partitionToReplaceFileIds") or {} if operation in _REPLACES else {}
        lost = [_partition(path, terms) for path, groups in replaced.items() if groups]
        brought = (summed(written) or (Brought((), 0),)) if operation in _BRINGS else ()
        return brought, taken(lost, [partition for partition, _ in written])
    except NOT_UNDERSTOOD as error:
        raise Unreadable(f"Hudi's {name} cannot be understood.", "Look at this file.") from error


def _written(
    told: Mapping[str, Any], terms: Mapping[str, str]
) -> Iterator[tuple[Mapping[str, str], int | None]]:
    for path, stats in (told.get("partitionToWriteStats") or {}).items():
        rows = sum((one["numInserts"] or 0) + (one["numUpdateWrites"] or 0) for one in stats)
        # Only rows that were taken away.
        if rows:
            yield _partition(path, terms), rows


def _partition(path: str, terms: Mapping[str, str]) -> dict[str, str]:
    """The columns and values of a partition's path; none of them where the path does not tell."""
    listed = terms.get("hoodie.table.partition.fields", "")
    fields = [one.strip().partition(":")[0] for one in listed.split(",") if one.strip()]
    parts = [path] if len(fields) == 1 else path.split("/")
    if len(parts) != len(fields):
        return {}
    return {
        field: unescaped(part.removeprefix(f"{field}=")) for field, part in zip(fields, parts, strict=True)
    }
