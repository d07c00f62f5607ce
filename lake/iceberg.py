"""Reads Iceberg tables in a folder: the current metadata, and the manifests of its snapshots.

Source: https://iceberg.apache.org/spec/, also "Manifests", "Delete Formats" and "File System Tables". Files
    outside
the table's own `metadata` folder are not read, since paths in the log are untrusted data.
"""

from __future__ import annotations

import datetime as dt
import json
import posixpath
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import count
from typing import Any, NamedTuple

from dq.contracts.outcome import ReadError
from dq.contracts.types import DataType
from dq.lake import compression, table_log
from dq.lake.storage import Files
from dq.lake.types import ICEBERG_REFUSED, from_iceberg

METADATA_FOLDER = "metadata"
_HINT = "version-hint.text"
_ENDING = r"(?:\.gz)?\.metadata\.json(?:\.gz)?"
# `v7` without a catalog, otherwise `00007-` and usually a UUID; a UUID alone is a file being written.
_VERSIONED = re.compile(rf"(?:v(?P<plain>\d{{1,19}})|(?P<listed>\d{{1,19}})-[^/]*?){_ENDING}", re.ASCII)
_UNCOMMITTED = re.compile(rf"[0-9a-f]{{8}}(?:-[0-9a-f]{{4}}){{3}}-[0-9a-f]{{12}}{_ENDING}", re.ASCII)
_VERSIONS = (1, 2, 3)
_DATA_FOLDERS = ("write.data.path", "write.object-storage.path", "write.folder-storage.path")
_GZIP = b"\x1f\x8b"
_RESTORE = "Restore the file, or name the table in its catalog."
# Operations that add rows; `replace` only reorganizes and `delete` only removes.
_BRINGS = frozenset({"append", "overwrite"})
_TAKES = frozenset({"delete", "overwrite"})
_ADDED, _DELETED, _DATA = 1, 2, 0
Json = Mapping[str, Any]
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_DAY_0 = _EPOCH.date()

# Text of a transformed value as Iceberg writes it in paths, by transform.
_TEXTS: Mapping[str, Callable[[Any], str]] = {
    "day": lambda value: (value if isinstance(value, dt.date) else _DAY_0 + dt.timedelta(value)).isoformat(),
    "month": lambda value: f"{1970 + value // 12:04}-{value % 12 + 1:02}",
    "year": lambda value: f"{1970 + value:04}",
    "hour": lambda value: f"{_EPOCH + dt.timedelta(hours=value):%Y-%m-%d-%H}",
    "identity": lambda value: str(value).lower() if isinstance(value, bool) else str(value),
}


class Metadata(NamedTuple):
    """A metadata file: its path and content."""

    path: str
    content: Json


def read(
    files: Files, location: str, known_commits: Collection[str], since: dt.datetime
) -> table_log.TableLog:
    """Read the lineage of the current snapshot of the main branch, with the time each one became current."""
    folder = f"{location}/{METADATA_FOLDER}"
    current = current_metadata(files, location)
    if current is None:
        return table_log.TableLog()
    table = current.content
    try:
        lineage, times = _ancestors(table), _times(table)
        new_commits = [
            table_log.Commit(str(number), committed_at, *_changes(files, folder, table, snapshot))
            for number, snapshot in lineage.items()
            for committed_at in (times.get(number, _instant(snapshot["timestamp-ms"])),)
            if str(number) not in known_commits and committed_at >= since
        ]
        # Existing snapshots outside the lineage were rolled back; expired ones do not exist.
        existing = set(map(str, _snapshots(table)))
        undone = sorted(set(known_commits) & existing - set(map(str, lineage)))
    except table_log.NOT_UNDERSTOOD as error:
        raise ReadError(f"Iceberg's {current.path} cannot be parsed.", "Check this file.") from error
    oldest = next(iter(lineage.values()), None)
    is_complete = oldest is None or oldest.get("parent-snapshot-id") is None
    begins = None if is_complete or oldest is None else _instant(oldest["timestamp-ms"])
    return table_log.TableLog(tuple(new_commits), tuple(map(str, lineage)), begins, tuple(undone))


def history(files: Files, location: str) -> table_log.History:
    """Return the times of all snapshots, those of branches and tags too. Raises as `read` does."""
    current = current_metadata(files, location)
    if current is None:
        return table_log.History((), is_complete=False)
    snapshots = _snapshots(current.content)
    times = tuple(sorted(_instant(snapshot["timestamp-ms"]) for snapshot in snapshots.values()))
    parents = {snapshot.get("parent-snapshot-id") for snapshot in snapshots.values()} - {None}
    return table_log.History(times, bool(times) and parents <= snapshots.keys())


def live_partitions(files: Files, location: str) -> set[table_log.Pairs]:
    """Return the partitions of the current snapshot that have files; `()` for an unpartitioned table.

    Raises as `read` does.
    """
    current = current_metadata(files, location)
    lineage = _ancestors(current.content) if current is not None else {}
    if current is None or not lineage:
        return set()
    table = current.content
    snapshot = lineage[table["current-snapshot-id"]]
    entries = _entries(files, f"{location}/{METADATA_FOLDER}", table, snapshot, own=False)
    return {tuple(sorted(partition.items())) for status, _, partition, _ in entries if status != _DELETED}


# A failed commit leaves a metadata file; of one version, at most this many are read.
_MOST_TWINS = 8


def current_metadata(
    files: Files, location: str, *, require_hint: bool = False, guess: bool = False
) -> Metadata | None:
    """Return the current metadata, or None for a folder without metadata.

    Of files with only a version (`v7`, tables without a catalog) it is the last one that follows the hinted
    version without a gap, as in Iceberg itself, or the last of all without a hint. Of files with a version
    and a suffix (`00007-…`, tables in a catalog) it is the last one. If a folder has both, the table was
    moved into or out of a catalog, which restarts the versions; the file written later is current.

    Raises ReadError if that is uncertain, e.g. for two files of one version, at most one of them
    committed.

    Args:
        require_hint: Also raise if only a catalog knows the current metadata.
        guess: Take the latest of several candidates; for results that a person reviews.
    """
    folder = f"{location}/{METADATA_FOLDER}"
    names = [file.name for file in files.inside(folder)]
    plain, listed = _by_version(names, "plain"), _by_version(names, "listed")
    hint = _hint(files, folder) if plain and _HINT in names else None
    version = _followed(hint, plain)
    if version not in plain and plain and not listed:
        what = f"{folder}/{_HINT} names version {hint}, whose metadata does not exist"
        raise ReadError(f"{what}.", _RESTORE)
    by_hint = _newest_of(files, folder, plain[version], version, guess) if version in plain else None
    by_number = _newest_of(files, folder, listed[max(listed)], max(listed), guess) if listed else None
    if by_hint is not None and by_number is not None and _updated_ms(by_hint) == _updated_ms(by_number):
        what = f"{by_hint.path} and {by_number.path} were written at the same time"
        raise ReadError(f"{what}: which one is current is unknown.", "The next commit resolves this.")
    newest = max(filter(None, (by_hint, by_number)), key=_updated_ms, default=None)
    if newest is not None and require_hint and (hint is None or newest is not by_hint):
        raise table_log.unknown(
            location, f"has no {_HINT} for its newest metadata: only its catalog knows which one is current"
        )
    return newest


def _by_version(names: Iterable[str], style: str) -> dict[int, list[str]]:
    """Return the names of this style by version."""
    by_version: dict[int, list[str]] = {}
    for name in names:
        match = None if _UNCOMMITTED.fullmatch(name) else _VERSIONED.fullmatch(name)
        if match is not None and match[style]:
            by_version.setdefault(int(match[style]), []).append(name)
    return by_version


def _hint(files: Files, folder: str) -> int | None:
    """Return the version that the hint names, or None if it is damaged."""
    word = files.read(f"{folder}/{_HINT}").strip()
    return int(word) if re.fullmatch(rb"[0-9]{1,19}", word) else None


def _followed(hint: int | None, versions: Collection[int]) -> int | None:
    """Return the last version that follows the hint without a gap, or the last of all without a hint.

    A hint that is not one of the versions is returned itself.
    """
    if hint is None or hint not in versions:
        return max(versions, default=None) if hint is None else hint
    return next(version for version in count(hint) if version + 1 not in versions)


def _newest_of(files: Files, folder: str, names: Sequence[str], version: int, guess: bool) -> Metadata:
    """Return the metadata written last, of the files of one version; raise for several unless `guess`."""
    if len(names) > 1 and not guess:
        what = f"{folder} has {len(names)} files of version {version}."
        raise ReadError(what, "Wait for the next commit, or name the table in its catalog.")
    candidates = [metadata_at(files, f"{folder}/{name}") for name in sorted(names)[:_MOST_TWINS]]
    return max(candidates, key=_updated_ms)


def metadata_at(files: Files, path: str) -> Metadata:
    """Return the content of a metadata file. Raises ReadError for other files."""
    content = files.read(path)
    try:
        metadata = json.loads(compression.unzipped(content, path) if content[:2] == _GZIP else content)
    except (ValueError, RecursionError) as error:
        reason = "nested too deeply" if isinstance(error, RecursionError) else str(error)[:200]
        raise ReadError(f"{path} is not Iceberg metadata: {reason}.", _RESTORE) from error
    if not isinstance(metadata, dict):
        raise ReadError(f"{path} is not Iceberg metadata.", _RESTORE)
    return Metadata(path, metadata)


def _updated_ms(metadata: Metadata) -> int:
    updated_ms = metadata.content.get("last-updated-ms")
    return updated_ms if isinstance(updated_ms, int) else 0


def _ancestors(table: Mapping[str, Any]) -> dict[int, Mapping[str, Any]]:
    """Return the snapshots from the oldest existing ancestor to the current one, by id."""
    snapshots = _snapshots(table)
    number, chain = table.get("current-snapshot-id"), []
    while number in snapshots and number not in chain:
        chain.append(number)
        number = snapshots[number].get("parent-snapshot-id")
    return {number: snapshots[number] for number in reversed(chain)}


def _times(table: Mapping[str, Any]) -> dict[int, dt.datetime]:
    """Return when each snapshot became part of the main branch, if the table's log says so.

    This differs from a snapshot's own time if it was staged first and published later.
    """
    snapshots = _snapshots(table)
    times: dict[int, dt.datetime] = {}
    for index, entry in enumerate(table.get("snapshot-log") or ()):
        number, logged_at = entry["snapshot-id"], _instant(entry["timestamp-ms"])
        while number in snapshots and number not in times:
            # For snapshots before the start of the log, their own time is the best known.
            own = index == 0 and number != entry["snapshot-id"]
            times[number] = _instant(snapshots[number]["timestamp-ms"]) if own else logged_at
            number = snapshots[number].get("parent-snapshot-id")
    return times


def _changes(
    files: Files, folder: str, table: Mapping[str, Any], snapshot: Mapping[str, Any]
) -> tuple[tuple[table_log.PartitionAppend, ...], tuple[table_log.Pairs, ...]]:
    """Return the rows that a snapshot added per partition, and the partitions from which it only removed
    files.
    """
    operation = (snapshot.get("summary") or {}).get("operation", "append")
    if operation not in _BRINGS | _TAKES:
        return (), ()
    number = snapshot["snapshot-id"]
    entries = [
        (status, partition, rows)
        for status, snapshot_id, partition, rows in _entries(files, folder, table, snapshot, own=True)
        if snapshot_id in (None, number)
    ]
    added = [(partition, rows) for status, partition, rows in entries if status == _ADDED]
    removed_from = [partition for status, partition, _ in entries if status == _DELETED]
    appends = (
        (table_log.sum_by_partition(added) or (table_log.PartitionAppend((), 0),))
        if operation in _BRINGS
        else ()
    )
    return appends, table_log.partitions_only_reduced(removed_from, [partition for partition, _ in added])


def _entries(
    files: Files, folder: str, table: Mapping[str, Any], snapshot: Mapping[str, Any], *, own: bool
) -> Iterator[tuple[int, int | None, Mapping[str, str], int | None]]:
    """Yield status, snapshot, partition and rows of every data file in a snapshot's manifests.

    With `own`, only the manifests that the snapshot itself added.
    """
    number = snapshot["snapshot-id"]
    manifests = (
        [(path, 0) for path in snapshot["manifests"]]
        if "manifests" in snapshot
        else [
            (manifest["manifest_path"], manifest["partition_spec_id"])
            for manifest in compression.avro_records(files, manifest_in(folder, snapshot["manifest-list"]))
            if (not own or manifest["added_snapshot_id"] == number)
            and manifest.get("content", _DATA) == _DATA
        ]
    )
    for path, spec in manifests:
        named = _fields(table, spec)
        for entry in compression.avro_records(files, manifest_in(folder, path)):
            file = entry["data_file"]
            partition = _partition(named, list((file["partition"] or {}).values()))
            yield entry["status"], entry["snapshot_id"], partition, file["record_count"]


def manifest_in(folder: str, path: str) -> str:
    """Return the path of a manifest in the table's own folder. Raises ReadError if it lies elsewhere."""
    above, _, name = path.rpartition("/")
    if above.rpartition("/")[2] != "metadata" or name in ("", "..", "."):
        raise ReadError(f"Iceberg's {name} is outside {folder}.", "Such tables need 'dq publish'.")
    return f"{folder}/{name}"


def _fields(table: Mapping[str, Any], spec_id: int) -> list[tuple[tuple[str, ...], str]]:
    """Return the partition fields of a spec in order: the names of the field and of its column, and the
    transform.
    """
    schemas = table.get("schemas") or [table["schema"]]
    columns = {field["id"]: field["name"] for schema in schemas for field in schema["fields"]}
    return [
        ((field["name"], columns.get(field["source-id"], field["name"])), field["transform"])
        for field in _specs(table)[spec_id]
    ]


def _specs(table: Mapping[str, Any]) -> dict[int, Any]:
    """Return the fields of each partition spec by its id."""
    specs = table.get("partition-specs") or [{"spec-id": 0, "fields": table["partition-spec"]}]
    return {spec["spec-id"]: spec["fields"] for spec in specs}


def _snapshots(table: Mapping[str, Any]) -> dict[int, Json]:
    """Return the existing snapshots by id."""
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


def live_table(files: Files, location: str, metadata_location: str = "") -> table_log.LiveTable:
    """Return the table at its current snapshot. Raises ReadError if the snapshot or its content is
    uncertain.

    Args:
        metadata_location: Current metadata by the table's catalog. Ignored outside of the table's `metadata`
            folder.
    """
    path = f"{location}/{METADATA_FOLDER}/{posixpath.basename(metadata_location)}"
    if metadata_location and _unschemed(path) == _unschemed(metadata_location):
        current: Metadata | None = metadata_at(files, path)
    else:
        current = current_metadata(files, location, require_hint=True)
    if current is None:
        raise table_log.unknown(location, "has no Iceberg metadata")
    table = current.content
    _require_known(table, location)
    schemas = table.get("schemas") or [table["schema"]]
    schema = next(
        candidate for candidate in schemas if candidate.get("schema-id") == table.get("current-schema-id")
    )
    columns = {field["name"]: field for field in schema["fields"] if isinstance(field["type"], str)}
    snapshots = _snapshots(table)
    number = table.get("current-snapshot-id")
    data: list[Json] = []
    deletes: list[Json] = []
    if number not in (None, -1):
        if table.get("refs", {}).get("main", {}).get("snapshot-id", number) != number:
            raise table_log.unknown(location, "has a main branch that does not point to the current snapshot")
        data, deletes = _live_entries(files, location, snapshots[number])
    live_files = _live_files(table, columns, snapshots, data, _deleted_rows(deletes))
    return table_log.LiveTable(
        _type(location, schema, ""), tuple(columns), _newest_at(data, snapshots), live_files
    )


def _require_known(table: Json, location: str) -> None:
    if table["format-version"] not in _VERSIONS:
        raise table_log.unknown(
            location, f"has the unsupported Iceberg format version {table['format-version']!r}"
        )
    if table.get("encryption-keys"):
        raise table_log.unknown(location, "is encrypted")
    home = _unschemed(table["location"])
    if not f"/{home}".endswith(f"/{_unschemed(location)}"):
        raise table_log.unknown(location, f"was moved: its metadata has the location {table['location']}")


def _unschemed(location: str) -> str:
    return posixpath.normpath(local_path(location).partition("://")[2] or local_path(location)).lstrip("/")


def _type(location: str, kind: Any, path: str) -> DataType:
    """Return the type of a field; `path` is its position in the table."""
    if isinstance(kind, str):
        resolved = from_iceberg(kind)
        if kind in ICEBERG_REFUSED:
            message = f"{location}: column {path} has the type {kind}; Spark cannot open such a table."
            raise ReadError(message, "Store the column as a type that Spark has.")
        if resolved is None:
            raise table_log.unknown(location, f"has a column {path} of the unsupported type {kind}")
        return resolved[0]
    if kind["type"] == "struct":
        parts = [
            _type(location, field["type"], f"{path}.{field['name']}".lstrip(".")) for field in kind["fields"]
        ]
        return DataType("struct", (), tuple(parts), tuple(field["name"] for field in kind["fields"]))
    if kind["type"] == "list":
        return DataType("array", (), (_type(location, kind["element"], f"{path}[]"),))
    key, value = _type(location, kind["key"], f"{path}.^"), _type(location, kind["value"], f"{path}.*")
    return DataType("map", (), (key, value))


def _live_files(
    table: Json,
    columns: Mapping[str, Json],
    snapshots: Mapping[int, Json],
    data_entries: Iterable[Json],
    deleted: Mapping[str, int] | None,
) -> Iterator[table_log.LiveFile]:
    """Yield the data files of manifest entries; `deleted` counts the deleted rows by file, if known."""
    folders = own_folders(table["location"], table.get("properties") or {})
    keys = _keys(table)
    for entry in data_entries:
        file = entry["data_file"]
        path = file["file_path"]
        # For a file written by another program, only the row count is trusted.
        own = columns if local_path(path).startswith(folders) else {}
        yield table_log.LiveFile(
            file["file_size_in_bytes"],
            file["record_count"],
            None if deleted is None else deleted.get(path, 0),
            {name: _stated_nulls(column, entry, keys) for name, column in own.items()},
            writers_of(snapshots.get(entry["snapshot_id"], {}).get("summary") or {}),
        )


def _live_entries(files: Files, location: str, snapshot: Json) -> tuple[list[Json], list[Json]]:
    """Return the entries of the snapshot's data files and delete files, with the fields inherited from
    manifests.
    """
    folder = f"{location}/{METADATA_FOLDER}"
    if "manifest-list" not in snapshot or snapshot.get("key-id"):
        raise table_log.unknown(location, "has a snapshot without a readable manifest list")
    entries: tuple[list[Json], list[Json]] = ([], [])
    for manifest in compression.avro_records(files, manifest_in(folder, snapshot["manifest-list"])):
        for entry in compression.avro_records(files, manifest_in(folder, manifest["manifest_path"])):
            if entry["status"] == _DELETED:
                continue
            inherited = {
                "snapshot_id": _first(entry["snapshot_id"], manifest["added_snapshot_id"]),
                "spec": manifest["partition_spec_id"],
                "number": _first(entry.get("file_sequence_number"), manifest.get("sequence_number"), 0),
            }
            entries[bool(manifest.get("content"))].append({**entry, **inherited})
    return entries


def _first(*values: Any) -> Any:
    return next((value for value in values if value is not None), None)


def _deleted_rows(entries: Sequence[Json]) -> dict[str, int] | None:
    """Return the number of deleted rows per data file, from deletion vectors.

    None if there are other delete files, which may delete the same row twice, or none.
    """
    deleted_rows: dict[str, int] = {}
    for file in (entry["data_file"] for entry in entries):
        path = file.get("referenced_data_file")
        if str(file["file_format"]).lower() != "puffin" or not path or path in deleted_rows:
            return None
        deleted_rows[path] = file["record_count"]
    return deleted_rows


def _keys(table: Json) -> dict[int, dict[int, str]]:
    """Return the names of identity partition fields by column id, for each partition spec id."""
    return {
        number: {field["source-id"]: field["name"] for field in fields if field["transform"] == "identity"}
        for number, fields in _specs(table).items()
    }


def _stated_nulls(column: Json, entry: Json, keys: Mapping[int, Mapping[int, str]]) -> table_log.StatedNulls:
    file, number = entry["data_file"], column["id"]
    kind, rows = column["type"].partition("(")[0], file["record_count"]
    values, nulls = _by_id(file.get("value_counts")), _by_id(file.get("null_value_counts"))
    stated = nulls.get(number) if values.get(number) == rows else None
    partition_field = keys[entry["spec"]].get(number)
    # Spark reads such a column from the manifest, so both must agree.
    if partition_field is not None and stated != (rows if file["partition"][partition_field] is None else 0):
        stated = None
    return table_log.StatedNulls(kind, stated)


def _by_id(pairs: Any) -> dict[int, int]:
    return {pair["key"]: pair["value"] for pair in pairs or ()}


def _newest_at(data: Collection[Json], snapshots: Mapping[int, Json]) -> dt.datetime | None:
    """Return when the newest file was added, or None if the snapshot that added it has expired."""
    last = max((entry["number"] for entry in data), default=0)
    added = {entry["snapshot_id"] for entry in data if entry["number"] == last}
    if not added or not added <= snapshots.keys():
        return None
    return _instant(max(snapshots[snapshot_id]["timestamp-ms"] for snapshot_id in added))


def own_folders(location: str, properties: Any) -> tuple[str, ...]:
    """Return the data folders of a table at this location, by its properties."""
    named = (str(folder) for name in _DATA_FOLDERS if (folder := properties.get(name)))
    return tuple(f"{local_path(base).rstrip('/')}/" for base in (f"{location.rstrip('/')}/data", *named))


def local_path(location: str) -> str:
    """Return the location with `file:`

    URIs normalized to plain paths, since writers spell them differently.
    """
    return re.sub("^file:/+", "/", location)


def writers_of(summary: Any) -> tuple[str, ...]:
    """Return the engine and the Iceberg library named in a snapshot's summary; either may write wrong
    statistics.

    `("",)` if the summary is empty, e.g. because the snapshot has expired.
    """
    engine = " ".join(str(summary.get(name) or "") for name in ("engine-name", "engine-version")).strip()
    library = str(summary.get("iceberg-version") or "")
    return tuple(name for name in (engine, library) if name) or ("",)
