"""Commits of an Iceberg table, from its newest metadata file and the manifests of each snapshot.

Source: https://iceberg.apache.org/spec/. A file outside of the table's own folder `metadata` is not followed:
the log is data, and may not lead anywhere else.
"""

from __future__ import annotations

import datetime as dt
import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from dq.contracts.shared.outcome import Unreadable
from dq.lake import compression
from dq.lake.commits import NOT_UNDERSTOOD, Brought, Commit, Pairs, TableLog, summed, taken
from dq.lake.compression import unzipped
from dq.lake.storage import Files

# `v7` without a catalog, else `00007-` and a UUID; a UUID alone is a file that is being written.
_UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_NUMBERED = re.compile(rf"(?:v(\d+)|(\d{{5,}})-{_UUID})(?:\.gz)?\.metadata\.json(?:\.gz)?")
# `replace` rearranges and `delete` takes away.
_BRINGS = frozenset({"append", "overwrite"})
_TAKES = frozenset({"delete", "overwrite"})
_ADDED, _DELETED, _DATA = 1, 2, 0
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_DAY_0 = _EPOCH.date()

# From a value of a transform to the text that Iceberg writes in a path.
_TEXTS: Mapping[str, Callable[[Any], str]] = {
    "day": lambda value: (value if isinstance(value, dt.date) else _DAY_0 + dt.timedelta(value)).isoformat(),
    "month": lambda value: f"{1970 + value // 12:04}-{value % 12 + 1:02}",
    "year": lambda value: f"{1970 + value:04}",
    "hour": lambda value: f"{_EPOCH + dt.timedelta(hours=value):%Y-%m-%d-%H}",
    "identity": lambda value: str(value).lower() if isinstance(value, bool) else str(value),
}


def read(files: Files, place: str, known: Collection[str], since: dt.datetime) -> TableLog:
    """The snapshots that led to the current one of the main branch, each from when it became current."""
    folder = f"{place}/metadata"
    newest = newest_of(files, folder)
    if newest is None:
        return TableLog()
    try:
        table = metadata(files, folder, newest)
        line, times = _ancestors(table), _times(table)
        new = [
            Commit(str(number), at, *_changed(files, folder, table, one))
            for number, one in line.items()
            for at in (times.get(number, _instant(one["timestamp-ms"])),)
            if str(number) not in known and at >= since
        ]
        # What is there and leads to the current one no more was rolled back; what has expired is not there.
        there = {str(one["snapshot-id"]) for one in table.get("snapshots") or ()}
        undone = sorted(set(known) & there - set(map(str, line)))
    except NOT_UNDERSTOOD as error:
        raise Unreadable(f"Iceberg's {newest} cannot be understood.", "Look at this file.") from error
    oldest = next(iter(line.values()), None)
    whole = oldest is None or oldest.get("parent-snapshot-id") is None
    begins = None if whole or oldest is None else _instant(oldest["timestamp-ms"])
    return TableLog(tuple(new), tuple(map(str, line)), begins, tuple(undone))


def live(files: Files, place: str) -> set[Pairs]:
    """The partitions of the current snapshot that have files; `()` for a table without partitions.

    Raises as `read` does.
    """
    folder = f"{place}/metadata"
    newest = newest_of(files, folder)
    if newest is None:
        return set()
    table = metadata(files, folder, newest)
    line = _ancestors(table)
    if not line:
        return set()
    entries = _entries(files, folder, table, line[table["current-snapshot-id"]], own=False)
    return {tuple(sorted(one.items())) for status, _, one, _ in entries if status != _DELETED}


def metadata(files: Files, folder: str, name: str) -> Any:
    """What a metadata file says. Raises ValueError where it is no JSON, and what the storage raises."""
    content = files.read(f"{folder}/{name}")
    return json.loads(unzipped(content, name) if content[:2] == b"\x1f\x8b" else content)


def newest_of(files: Files, folder: str) -> str | None:
    """The name of the current metadata file, which has the highest number.

    Of two with one number at most one was committed, and the next commit tells.
    """
    names = [one.name for one in files.inside(folder)]
    numbered = {name: int(match[1] or match[2]) for name in names if (match := _NUMBERED.fullmatch(name))}
    top = max(numbered.values(), default=0)
    newest = [name for name, number in numbered.items() if number == top]
    if len(newest) > 1:
        what = f"{folder} has {len(newest)} files of version {top}."
        raise Unreadable(what, "The next commit tells which one counts.")
    return newest[0] if newest else None


def _ancestors(table: Mapping[str, Any]) -> dict[int, Mapping[str, Any]]:
    """The snapshots from the oldest that is kept to the current one."""
    kept = {one["snapshot-id"]: one for one in table.get("snapshots") or ()}
    number, found = table.get("current-snapshot-id"), []
    while number in kept and number not in found:
        found.append(number)
        number = kept[number].get("parent-snapshot-id")
    return {number: kept[number] for number in reversed(found)}


def _times(table: Mapping[str, Any]) -> dict[int, dt.datetime]:
    """When each snapshot came to stand in the main branch, where its log says so.

    One that was staged, and published later, has the time of its writing for its own.
    """
    kept = {one["snapshot-id"]: one for one in table.get("snapshots") or ()}
    found: dict[int, dt.datetime] = {}
    for place, entry in enumerate(table.get("snapshot-log") or ()):
        number, at = entry["snapshot-id"], _instant(entry["timestamp-ms"])
        while number in kept and number not in found:
            # Before the log begins, nobody knows better than the snapshot.
            own = place == 0 and number != entry["snapshot-id"]
            found[number] = _instant(kept[number]["timestamp-ms"]) if own else at
            number = kept[number].get("parent-snapshot-id")
    return found


def _changed(
    files: Files, folder: str, table: Mapping[str, Any], snapshot: Mapping[str, Any]
) -> tuple[tuple[Brought, ...], tuple[Pairs, ...]]:
    """What a snapshot brought, and where it took data away."""
    operation = (snapshot.get("summary") or {}).get("operation", "append")
    if operation not in _BRINGS | _TAKES:
        return (), ()
    number = snapshot["snapshot-id"]
    entries = [
        (status, partition, rows)
        for status, of, partition, rows in _entries(files, folder, table, snapshot, own=True)
        if of in (None, number)
    ]
    added = [(partition, rows) for status, partition, rows in entries if status == _ADDED]
    lost = [partition for status, partition, _ in entries if status == _DELETED]
    brought = (summed(added) or (Brought((), 0),)) if operation in _BRINGS else ()
    return brought, taken(lost, [partition for partition, _ in added])


def _entries(
    files: Files, folder: str, table: Mapping[str, Any], snapshot: Mapping[str, Any], *, own: bool
) -> Iterator[tuple[int, int | None, Mapping[str, str], int | None]]:
    """Status, snapshot, partition and rows of every data file that a snapshot names; `own` leaves out the
    manifests of others."""
    number = snapshot["snapshot-id"]
    manifests = (
        [(path, 0) for path in snapshot["manifests"]]
        if "manifests" in snapshot
        else [
            (one["manifest_path"], one["partition_spec_id"])
            for one in compression.avro_records(files, within(folder, snapshot["manifest-list"]))
            if (not own or one["added_snapshot_id"] == number) and one.get("content", _DATA) == _DATA
        ]
    )
    for path, spec in manifests:
        named = _fields(table, spec)
        for entry in compression.avro_records(files, within(folder, path)):
            file = entry["data_file"]
            partition = _partition(named, list((file["partition"] or {}).values()))
            yield entry["status"], entry["snapshot_id"], partition, file["record_count"]


def within(folder: str, path: str) -> str:
    """The path of a manifest in the table's own folder. Raises Unreadable for one that lies elsewhere."""
    above, _, name = path.rpartition("/")
    if above.rpartition("/")[2] != "metadata" or name in ("", "..", "."):
        raise Unreadable(f"Iceberg's {name} lies outside of {folder}.", "Such tables need 'dq publish'.")
    return f"{folder}/{name}"


def _fields(table: Mapping[str, Any], number: int) -> list[tuple[tuple[str, ...], str]]:
    """By position: the names of a partition field, its own and its column's, and its transform."""
    schemas = table.get("schemas") or [table["schema"]]
    columns = {field["id"]: field["name"] for schema in schemas for field in schema["fields"]}
    specs = table.get("partition-specs") or [{"spec-id": 0, "fields": table["partition-spec"]}]
    fields = next(one["fields"] for one in specs if one["spec-id"] == number)
    return [((one["name"], columns.get(one["source-id"], one["name"])), one["transform"]) for one in fields]


def _partition(fields: list[tuple[tuple[str, ...], str]], values: list[Any]) -> dict[str, str]:
    return {
        name: _TEXTS[transform](value)
        for (names, transform), value in zip(fields, values, strict=True)
        if transform in _TEXTS and value is not None
        for name in names
    }


def _instant(milliseconds: int) -> dt.datetime:
    return _EPOCH + dt.timedelta(milliseconds=milliseconds)
