"""An Iceberg table that lies in a folder, by its current metadata file and the manifests of its snapshot.

Source: https://iceberg.apache.org/spec/, "Manifests", "Delete Formats" and "File System Tables".
"""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from dq.contracts.shared.outcome import Unreadable
from dq.dataquality.answers.statistics.iceberg import own_folders, plain, writers_of
from dq.dataquality.local.metadata.logged import LoggedTable, unknown
from dq.dataquality.spark.schema import data_type
from dq.lake import compression, iceberg
from dq.lake.storage import Files

FOLDER = "metadata"
_HINT = "version-hint.text"
_VERSIONS = (1, 2, 3)
_DELETED = 2
# Iceberg's name of a type -> that of Spark's reader, where they differ.
_TYPES = {
    **{name: name for name in ("boolean", "int", "long", "float", "double", "date", "string", "binary")},
    "timestamp": "timestamp_ntz",
    "timestamptz": "timestamp",
    "uuid": "string",
}
# With a column of one of these, Spark reads none of the others either.
_REFUSED = frozenset({"time", "timestamp_ns", "timestamptz_ns"})

Json = Mapping[str, Any]


def read(files: Files, place: str) -> LoggedTable:
    """The current snapshot. Raises Unreadable where it is not certain which that is, or what it holds."""
    table = _current(files, place)
    schemas = table.get("schemas") or [table["schema"]]
    schema = next(one for one in schemas if one.get("schema-id") == table.get("current-schema-id"))
    row = data_type(_spark(place, schema, ""))
    columns = {one["name"]: one for one in schema["fields"] if isinstance(one["type"], str)}
    found = LoggedTable(row, dict.fromkeys(columns, 0))
    snapshots = {one["snapshot-id"]: one for one in table.get("snapshots") or ()}
    current = table.get("current-snapshot-id")
    if current in (None, -1):
        return found
    if table.get("refs", {}).get("main", {}).get("snapshot-id", current) != current:
        raise unknown(place, "has a main branch that is not at its current snapshot")
    data, deletes = _entries(files, place, snapshots[current])
    deleted = _deleted(deletes)
    folders = own_folders(table["location"], table.get("properties") or {})
    keys = _keys(table)
    found.newest = _newest(data, snapshots)
    for entry in data:
        file = entry["data_file"]
        path = file["file_path"]
        gone = None if deleted is None else deleted.get(path, 0)
        writers = writers_of(snapshots.get(entry["snapshot_id"], {}).get("summary") or {})
        # Of a file that another program wrote, only the rows are believed.
        own = columns if plain(path).startswith(folders) else {}
        told = {name: _nulls(one, entry, keys) for name, one in own.items()}
        found.add(file["file_size_in_bytes"], file["record_count"], gone, told, writers)
    return found


def _current(files: Files, place: str) -> Json:
    """The metadata that holds now, which the table's hint names."""
    folder = f"{place}/{FOLDER}"
    newest = iceberg.newest_of(files, folder)
    if newest is None:
        raise unknown(place, "has no metadata of Iceberg")
    if files.stat(f"{folder}/{_HINT}") is None:
        raise unknown(place, "has no version-hint.text: which metadata holds, only its catalog knows")
    hint = files.read(f"{folder}/{_HINT}").decode("utf-8").strip()
    if not newest.startswith(f"v{hint}."):
        raise unknown(place, f"has a version hint {hint!r} that does not name its newest metadata {newest}")
    table: Json = iceberg.metadata(files, folder, newest)
    if table["format-version"] not in _VERSIONS:
        raise unknown(place, f"has the format version {table['format-version']!r} of Iceberg")
    if table.get("encryption-keys"):
        raise unknown(place, "is encrypted")
    home = _unschemed(table["location"])
    if not f"/{home}".endswith(f"/{_unschemed(place)}"):
        raise unknown(place, f"was moved: its metadata says that it lies at {table['location']}")
    return table


def _unschemed(place: str) -> str:
    return posixpath.normpath(plain(place).partition("://")[2] or plain(place)).lstrip("/")


def _spark(place: str, kind: Any, path: str) -> Any:
    """A type as Spark's JSON has it; `path` is where it stands in the table."""
    if isinstance(kind, str):
        if kind.startswith("decimal("):
            return kind
        known = "binary" if kind.startswith("fixed[") else _TYPES.get(kind)
        if known is None and kind in _REFUSED:
            message = f"{place}: its column {path} is of the type {kind}, and Spark opens no such table."
            raise Unreadable(message, "Store the column as a type that Spark has.")
        if known is None:
            raise unknown(place, f"has a column {path} of the type {kind}, which is not known here")
        return known
    if kind["type"] == "struct":
        fields = [
            {"name": one["name"], "type": _spark(place, one["type"], f"{path}.{one['name']}".lstrip("."))}
            for one in kind["fields"]
        ]
        return {"type": "struct", "fields": fields}
    if kind["type"] == "list":
        return {"type": "array", "elementType": _spark(place, kind["element"], f"{path}[]")}
    key, value = _spark(place, kind["key"], f"{path}.^"), _spark(place, kind["value"], f"{path}.*")
    return {"type": "map", "keyType": key, "valueType": value}


def _entries(files: Files, place: str, snapshot: Json) -> tuple[list[Json], list[Json]]:
    """The entries of data files and of delete files that the snapshot has, with what they inherit."""
    folder = f"{place}/{FOLDER}"
    if "manifest-list" not in snapshot or snapshot.get("key-id"):
        raise unknown(place, "has a snapshot without a list of manifests that can be read")
    found: tuple[list[Json], list[Json]] = ([], [])
    for manifest in compression.avro_records(files, iceberg.within(folder, snapshot["manifest-list"])):
        for entry in compression.avro_records(files, iceberg.within(folder, manifest["manifest_path"])):
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
    specs = table.get("partition-specs") or [{"spec-id": 0, "fields": table["partition-spec"]}]
    return {
        spec["spec-id"]: {
            one["source-id"]: one["name"] for one in spec["fields"] if one["transform"] == "identity"
        }
        for spec in specs
    }


def _nulls(column: Json, entry: Json, keys: Mapping[int, Mapping[int, str]]) -> tuple[str, object, bool]:
    file, number = entry["data_file"], column["id"]
    kind, rows = column["type"].partition("(")[0], file["record_count"]
    values, nulls = _by_id(file.get("value_counts")), _by_id(file.get("null_value_counts"))
    told = nulls.get(number) if values.get(number) == rows else None
    placed = keys[entry["spec"]].get(number)
    # Spark reads such a column from the manifest, which must say the same.
    if placed is not None and told != (rows if file["partition"][placed] is None else 0):
        told = None
    return kind, told, True


def _by_id(pairs: Any) -> dict[int, int]:
    return {one["key"]: one["value"] for one in pairs or ()}


def _newest(data: Collection[Json], snapshots: Mapping[int, Json]) -> datetime | None:
    """When the newest file was added; None where the snapshot that did has expired."""
    last = max((one["number"] for one in data), default=0)
    added = {one["snapshot_id"] for one in data if one["number"] == last}
    if not added or not added <= snapshots.keys():
        return None
    at = max(snapshots[one]["timestamp-ms"] for one in added)
    return datetime.fromtimestamp(at / 1000, UTC)
