"""Iceberg tables that lie in a folder: the metadata that holds, and the manifests of its snapshots.

Source: https://iceberg.apache.org/spec/, also "Manifests", "Delete Formats" and "File System Tables". A file
outside of the table's own folder `metadata` is not followed: the log is data, and may not lead anywhere else.
"""

from __future__ import annotations

import datetime as dt
import json
import posixpath
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import count
from typing import Any, NamedTuple

from dq.contracts.outcome import Unreadable
from dq.contracts.types import DataType
from dq.lake import compression, table_log
from dq.lake.storage import Files
from dq.lake.types import ICEBERG_REFUSED, from_iceberg

METADATA_FOLDER = "metadata"
_HINT = "version-hint.text"
_ENDING = r"(?:\.gz)?\.metadata\.json(?:\.gz)?"
# `v7` without a catalog, else `00007-` and mostly a UUID; a UUID alone is a file that is being written.
_VERSIONED = re.compile(rf"(?:v(?P<plain>\d{{1,19}})|(?P<listed>\d{{1,19}})-[^/]*?){_ENDING}", re.ASCII)
_UNCOMMITTED = re.compile(rf"[0-9a-f]{{8}}(?:-[0-9a-f]{{4}}){{3}}-[0-9a-f]{{12}}{_ENDING}", re.ASCII)
_VERSIONS = (1, 2, 3)
_DATA_FOLDERS = ("write.data.path", "write.object-storage.path", "write.folder-storage.path")
_GZIP = b"\x1f\x8b"
_RESTORE = "Restore the file, or name the table in its catalog."
# `replace` rearranges and `delete` takes away.
_BRINGS = frozenset({"append", "overwrite"})
_TAKES = frozenset({"delete", "overwrite"})
_ADDED, _DELETED, _DATA = 1, 2, 0
Json = Mapping[str, Any]
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


class Metadata(NamedTuple):
    """A metadata file: its path, and what it says."""

    path: str
    content: Json


def read(files: Files, place: str, known: Collection[str], since: dt.datetime) -> table_log.TableLog:
    """The snapshots that led to the current one of the main branch, each from when it became current."""
    folder = f"{place}/{METADATA_FOLDER}"
    current = current_metadata(files, place)
    if current is None:
        return table_log.TableLog()
    table = current.content
    try:
        line, times = _ancestors(table), _times(table)
        new = [
            table_log.Commit(str(number), at, *_changed(files, folder, table, one))
            for number, one in line.items()
            for at in (times.get(number, _instant(one["timestamp-ms"])),)
            if str(number) not in known and at >= since
        ]
        # What is there and leads to the current one no more was rolled back; what has expired is not there.
        there = set(map(str, _snapshots(table)))
        undone = sorted(set(known) & there - set(map(str, line)))
    except table_log.NOT_UNDERSTOOD as error:
        raise Unreadable(f"Iceberg's {current.path} cannot be understood.", "Look at this file.") from error
    oldest = next(iter(line.values()), None)
    whole = oldest is None or oldest.get("parent-snapshot-id") is None
    begins = None if whole or oldest is None else _instant(oldest["timestamp-ms"])
    return table_log.TableLog(tuple(new), tuple(map(str, line)), begins, tuple(undone))


def live(files: Files, place: str) -> set[table_log.Pairs]:
    """The partitions of the current snapshot that have files; `()` for a table without partitions.

    Raises as `read` does.
    """
    current = current_metadata(files, place)
    line = _ancestors(current.content) if current is not None else {}
    if current is None or not line:
        return set()
    table = current.content
    snapshot = line[table["current-snapshot-id"]]
    entries = _entries(files, f"{place}/{METADATA_FOLDER}", table, snapshot, own=False)
    return {tuple(sorted(one.items())) for status, _, one, _ in entries if status != _DELETED}


# A failed commit leaves a file; of more of one version than these nobody guesses.
_MOST_TWINS = 8


def current_metadata(
    files: Files, place: str, *, require_hint: bool = False, guess: bool = False
) -> Metadata | None:
    """Return the metadata that holds now; None for a folder without any.

    Of files with a version alone (`v7`, of tables that lie in folders) it is the one that the hint names and,
    as Iceberg itself does, those that follow it without a gap; without a hint, the last. Of files with a
    version and a word (`00007-…`, of tables that a catalog points to) it is the last. Where a folder has
    both, a catalog took the table over or gave it back, and counts anew: the one written later holds.

    Raises Unreadable where that is not certain, as for two files of one version, of which at most one was
    committed; with `require_hint` also where only a catalog knows. With `guess`, for a reader whose result a
    person looks at, the one of several that was written last is taken.
    """
    folder = f"{place}/{METADATA_FOLDER}"
    names = [one.name for one in files.inside(folder)]
    plain, listed = _by_version(names, "plain"), _by_version(names, "listed")
    hint = _hint(files, folder) if plain and _HINT in names else None
    version = _followed(hint, plain)
    if version not in plain and plain and not listed:
        what = f"{folder}/{_HINT} names version {hint}, whose metadata is not there"
        raise Unreadable(f"{what}.", _RESTORE)
    by_hint = _read(files, folder, plain[version], version, guess) if version in plain else None
    by_number = _read(files, folder, listed[max(listed)], max(listed), guess) if listed else None
    if by_hint is not None and by_number is not None and _moment(by_hint) == _moment(by_number):
        what = f"{by_hint.path} and {by_number.path} were written at one moment"
        raise Unreadable(f"{what}: which of them counts is not known.", "The next commit tells.")
    newest = max(filter(None, (by_hint, by_number)), key=_moment, default=None)
    if newest is not None and require_hint and (hint is None or newest is not by_hint):
        raise table_log.unknown(
            place, f"has no {_HINT} for its newest metadata: which one holds, only its catalog knows"
        )
    return newest


def _by_version(names: Iterable[str], style: str) -> dict[int, list[str]]:
    """The names of this style by their versions."""
    found: dict[int, list[str]] = {}
    for name in names:
        match = None if _UNCOMMITTED.fullmatch(name) else _VERSIONED.fullmatch(name)
        if match is not None and match[style]:
            found.setdefault(int(match[style]), []).append(name)
    return found


def _hint(files: Files, folder: str) -> int | None:
    """The version that the hint names; None for one that is damaged."""
    word = files.read(f"{folder}/{_HINT}").strip()
    return int(word) if re.fullmatch(rb"[0-9]{1,19}", word) else None


def _followed(hint: int | None, versions: Collection[int]) -> int | None:
    """The hinted version, or the last of those that follow it; the last of all without a hint."""
    if hint is None or hint not in versions:
        return max(versions, default=None) if hint is None else hint
    return next(version for version in count(hint) if version + 1 not in versions)


def _read(files: Files, folder: str, names: Sequence[str], version: int, guess: bool) -> Metadata:
    if len(names) > 1 and not guess:
        what = f"{folder} has {len(names)} files of version {version}."
        raise Unreadable(what, "The next commit tells which one counts. Or name the table in its catalog.")
    read = [metadata_at(files, f"{folder}/{name}") for name in sorted(names)[:_MOST_TWINS]]
    return max(read, key=_moment)


def metadata_at(files: Files, path: str) -> Metadata:
    """Return what a metadata file says. Raises Unreadable where it is none."""
    content = files.read(path)
    try:
        made = json.loads(compression.unzipped(content, path) if content[:2] == _GZIP else content)
    except (ValueError, RecursionError) as error:
        reason = "it is nested too deep" if isinstance(error, RecursionError) else str(error)[:200]
        raise Unreadable(f"{path} is no metadata of Iceberg: {reason}.", _RESTORE) from error
    if not isinstance(made, dict):
        raise Unreadable(f"{path} is no metadata of Iceberg.", _RESTORE)
    return Metadata(path, made)


def _moment(metadata: Metadata) -> int:
    written = metadata.content.get("last-updated-ms")
    return written if isinstance(written, int) else 0


def _ancestors(table: Mapping[str, Any]) -> dict[int, Mapping[str, Any]]:
    """The snapshots from the oldest that is kept to the current one."""
    kept = _snapshots(table)
    number, found = table.get("current-snapshot-id"), []
    while number in kept and number not in found:
        found.append(number)
        number = kept[number].get("parent-snapshot-id")
    return {number: kept[number] for number in reversed(found)}


def _times(table: Mapping[str, Any]) -> dict[int, dt.datetime]:
    """When each snapshot came to stand in the main branch, where its log says so.

    One that was staged, and published later, has the time of its writing for its own.
    """
    kept = _snapshots(table)
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
) -> tuple[tuple[table_log.Brought, ...], tuple[table_log.Pairs, ...]]:
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
    brought = (table_log.summed(added) or (table_log.Brought((), 0),)) if operation in _BRINGS else ()
    return brought, table_log.taken(lost, [partition for partition, _ in added])


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
    return [
        ((one["name"], columns.get(one["source-id"], one["name"])), one["transform"])
        for one in _specs(table)[number]
    ]


def _specs(table: Mapping[str, Any]) -> dict[int, Any]:
    """The fields of each partition spec by its id."""
    specs = table.get("partition-specs") or [{"spec-id": 0, "fields": table["partition-spec"]}]
    return {spec["spec-id"]: spec["fields"] for spec in specs}


def _snapshots(table: Mapping[str, Any]) -> dict[int, Json]:
    """The snapshots that are kept, by their ids."""
    return {snapshot["snapshot-id"]: snapshot for snapshot in table.get("snapshots") or ()}


def _partition(fields: list[tuple[tuple[str, ...], str]], values: list[Any]) -> dict[str, str]:
    return {
        name: _TEXTS[transform](value)
        for (names, transform), value in zip(fields, values, strict=True)
        if transform in _TEXTS and value is not None
        for name in names
    }


def _instant(milliseconds: int) -> dt.datetime:
    return _EPOCH + dt.timedelta(milliseconds=milliseconds)


def live_table(files: Files, place: str) -> table_log.LiveTable:
    """The current snapshot. Raises Unreadable where it is not certain which that is, or what it holds."""
    current = current_metadata(files, place, require_hint=True)
    if current is None:
        raise table_log.unknown(place, "has no metadata of Iceberg")
    table = current.content
    _require_known(table, place)
    schemas = table.get("schemas") or [table["schema"]]
    schema = next(one for one in schemas if one.get("schema-id") == table.get("current-schema-id"))
    columns = {one["name"]: one for one in schema["fields"] if isinstance(one["type"], str)}
    snapshots = _snapshots(table)
    number = table.get("current-snapshot-id")
    data: list[Json] = []
    deletes: list[Json] = []
    if number not in (None, -1):
        if table.get("refs", {}).get("main", {}).get("snapshot-id", number) != number:
            raise table_log.unknown(place, "has a main branch that is not at its current snapshot")
        data, deletes = _live_entries(files, place, snapshots[number])
    live_files = _live_files(table, columns, snapshots, data, _deleted(deletes))
    return table_log.LiveTable(
        _type(place, schema, ""), tuple(columns), _newest_at(data, snapshots), live_files
    )


def _require_known(table: Json, place: str) -> None:
    if table["format-version"] not in _VERSIONS:
        raise table_log.unknown(place, f"has the format version {table['format-version']!r} of Iceberg")
    if table.get("encryption-keys"):
        raise table_log.unknown(place, "is encrypted")
    home = _unschemed(table["location"])
    if not f"/{home}".endswith(f"/{_unschemed(place)}"):
        raise table_log.unknown(place, f"was moved: its metadata says that it lies at {table['location']}")


def _unschemed(place: str) -> str:
    return posixpath.normpath(local_path(place).partition("://")[2] or local_path(place)).lstrip("/")


def _type(place: str, kind: Any, path: str) -> DataType:
    """The type of a field; `path` is where it stands in the table."""
    if isinstance(kind, str):
        known = from_iceberg(kind)
        if kind in ICEBERG_REFUSED:
            message = f"{place}: its column {path} is of the type {kind}, and Spark opens no such table."
            raise Unreadable(message, "Store the column as a type that Spark has.")
        if known is None:
            raise table_log.unknown(place, f"has a column {path} of the type {kind}, which is not known here")
        return known[0]
    if kind["type"] == "struct":
        parts = [_type(place, one["type"], f"{path}.{one['name']}".lstrip(".")) for one in kind["fields"]]
        return DataType("struct", (), tuple(parts), tuple(one["name"] for one in kind["fields"]))
    if kind["type"] == "list":
        return DataType("array", (), (_type(place, kind["element"], f"{path}[]"),))
    key, value = _type(place, kind["key"], f"{path}.^"), _type(place, kind["value"], f"{path}.*")
    return DataType("map", (), (key, value))


def _live_files(
    table: Json,
    columns: Mapping[str, Json],
    snapshots: Mapping[int, Json],
    data: Iterable[Json],
    deleted: Mapping[str, int] | None,
) -> Iterator[table_log.LiveFile]:
    folders = own_folders(table["location"], table.get("properties") or {})
    keys = _keys(table)
    for entry in data:
        file = entry["data_file"]
        path = file["file_path"]
        # Of a file that another program wrote, only the rows are believed.
        own = columns if local_path(path).startswith(folders) else {}
        yield table_log.LiveFile(
            file["file_size_in_bytes"],
            file["record_count"],
            None if deleted is None else deleted.get(path, 0),
            {name: _stated_nulls(one, entry, keys) for name, one in own.items()},
            writers_of(snapshots.get(entry["snapshot_id"], {}).get("summary") or {}),
        )


def _live_entries(files: Files, place: str, snapshot: Json) -> tuple[list[Json], list[Json]]:
    """The entries of data files and of delete files that the snapshot has, with what they inherit."""
    folder = f"{place}/{METADATA_FOLDER}"
    if "manifest-list" not in snapshot or snapshot.get("key-id"):
        raise table_log.unknown(place, "has a snapshot without a list of manifests that can be read")
    found: tuple[list[Json], list[Json]] = ([], [])
    for manifest in compression.avro_records(files, within(folder, snapshot["manifest-list"])):
        for entry in compression.avro_records(files, within(folder, manifest["manifest_path"])):
            if entry["status"] == _DELETED:
                continue
            inherited = {
                "snapshot_id": _first(entry["snapshot_id"], manifest["added_snapshot_id"]),
                "spec": manifest["partition_spec_id"],
                "number": _first(entry.get("file_sequence_number"), manifest.get("sequence_number"), 0),
            }
            found[bool(manifest.get("content"))].append({**entry, **inherited})
    return found


def _first(*told: Any) -> Any:
    return next((one for one in told if one is not None), None)


def _deleted(entries: Sequence[Json]) -> dict[str, int] | None:
    """How many rows of each data file are deleted, as deletion vectors say; other deletes may speak of the
    same row twice, or of none: None.
    """
    found: dict[str, int] = {}
    for one in (entry["data_file"] for entry in entries):
        path = one.get("referenced_data_file")
        if str(one["file_format"]).lower() != "puffin" or not path or path in found:
            return None
        found[path] = one["record_count"]
    return found


def _keys(table: Json) -> dict[int, dict[int, str]]:
    """By the id of a partition spec: the names of its fields that hold a column as it is, by its id."""
    return {
        number: {one["source-id"]: one["name"] for one in fields if one["transform"] == "identity"}
        for number, fields in _specs(table).items()
    }


def _stated_nulls(column: Json, entry: Json, keys: Mapping[int, Mapping[int, str]]) -> table_log.StatedNulls:
    file, number = entry["data_file"], column["id"]
    kind, rows = column["type"].partition("(")[0], file["record_count"]
    values, nulls = _by_id(file.get("value_counts")), _by_id(file.get("null_value_counts"))
    stated = nulls.get(number) if values.get(number) == rows else None
    placed = keys[entry["spec"]].get(number)
    # Spark reads such a column from the manifest, which must say the same.
    if placed is not None and stated != (rows if file["partition"][placed] is None else 0):
        stated = None
    return table_log.StatedNulls(kind, stated)


def _by_id(pairs: Any) -> dict[int, int]:
    return {one["key"]: one["value"] for one in pairs or ()}


def _newest_at(data: Collection[Json], snapshots: Mapping[int, Json]) -> dt.datetime | None:
    """When the newest file was added; None where the snapshot that did has expired."""
    last = max((one["number"] for one in data), default=0)
    added = {one["snapshot_id"] for one in data if one["number"] == last}
    if not added or not added <= snapshots.keys():
        return None
    return _instant(max(snapshots[one]["timestamp-ms"] for one in added))


def own_folders(location: str, properties: Any) -> tuple[str, ...]:
    """The folders that the writers of a table at this place use, by its properties."""
    named = (str(place) for name in _DATA_FOLDERS if (place := properties.get(name)))
    return tuple(f"{local_path(one).rstrip('/')}/" for one in (f"{location.rstrip('/')}/data", *named))


def local_path(place: str) -> str:
    """The same text for a place on this machine, whoever wrote it."""
    return re.sub("^file:/+", "/", place)


def writers_of(told: Any) -> tuple[str, ...]:
    """The engine and the library that it used, by a snapshot's summary, either of which may be wrong; nobody
    when it is empty, as that of one that expired.
    """
    engine = " ".join(str(told.get(name) or "") for name in ("engine-name", "engine-version")).strip()
    library = str(told.get("iceberg-version") or "")
    return tuple(name for name in (engine, library) if name) or ("",)
