"""Every physical file of a table, and the names and ids that its columns have had.

All files below the table's folder count, whatever they are named and whether or not a reader would take rows
from them. The logs of Delta and Iceberg only tell the role of a file, older names of columns, and files that
lie elsewhere, which become gaps.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import unquote

from dq.contracts.access.data_location import RFC_4180, TextFormat
from dq.contracts.layout import HIVE, Layout
from dq.contracts.outcome import DqError, ReadError
from dq.dataquality.erasure.model import Gap, PhysicalFile, Role
from dq.dataquality.model.column import Column
from dq.dataquality.model.predicate import Inside
from dq.lake import compression, delta, hudi, iceberg, table_folders
from dq.lake.storage import Files, FileStat, Folder, folder_tree, is_data_path
from dq.lake.table_log import NOT_UNDERSTOOD


@dataclass(frozen=True, slots=True)
class Names:
    """Names of a field in lower case, and its field ids in Iceberg or Delta."""

    names: frozenset[str]
    ids: frozenset[int] = frozenset()

    def fits(self, name: str, field_id: int | None = None) -> bool:
        """Return whether a field of a file is this one."""
        return name.lower() in self.names or field_id in self.ids


Step = Names | Inside


@dataclass(frozen=True, slots=True)
class IdentityColumn:
    """A column with an identity: its name in the contract, the way to it, and its spellings."""

    column: Column
    steps: tuple[Step, ...]
    normalize: str

    def __str__(self) -> str:
        return str(self.column)


def identity_column(column: Column, normalize: str) -> IdentityColumn:
    """Return a column by its names in the contract alone."""
    steps = tuple(
        step if isinstance(step, Inside) else Names(frozenset({step.lower()})) for step in column.steps
    )
    return IdentityColumn(column, steps, normalize)


@dataclass(frozen=True, slots=True)
class SearchedTable:
    """A table to search. `described` are its top-level columns in the contract, in lower case.

    `places` are further folders with files of the table, e.g. published partitions, each with its role.
    `key_fields` are the columns whose values are in record keys of Hudi, in lower case.
    """

    name: str
    location: str
    format: str
    columns: tuple[IdentityColumn, ...]
    described: frozenset[str] = frozenset()
    header: tuple[str, ...] = ()
    partitions: tuple[str, ...] = ()
    layout: Layout = HIVE
    text: TextFormat = RFC_4180
    places: tuple[tuple[str, Role], ...] = ()
    key_fields: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class SearchedFile:
    """A file with its path below the folder in which it was listed; a path that ends in `/` is a folder."""

    file: PhysicalFile
    relative: str


@dataclass(slots=True)
class TableListing:
    """The files of a table, with the columns as its log names them; `gaps` are parts that are not listed."""

    table: SearchedTable
    files: list[SearchedFile] = field(default_factory=list)
    gaps: list[Gap] = field(default_factory=list)


def list_table(files: Files, table: SearchedTable) -> TableListing:
    """List every file of a table; what cannot be listed is a gap."""
    listing = TableListing(table)
    for location, role in ((table.location, None), *table.places):
        entries = _entries(listing, location)
        role_of = _plain_role(table) if role is None else _constant(role)
        if role is None and table.format in _LOGS:
            try:
                role_of = _LOGS[table.format](files, listing, [name for name, _ in entries])
            except (DqError, *NOT_UNDERSTOOD, OSError) as error:
                reason = (
                    f"{error.message} {error.hint}" if isinstance(error, DqError) else type(error).__name__
                )
                listing.gaps.append(Gap(table.name, f"log of {location}", f"cannot be read: {reason}"))
        listing.files += [
            SearchedFile(
                PhysicalFile(
                    table.name,
                    f"{location.rstrip('/')}/{name}",
                    0 if stat is None else stat.size,
                    role_of(name),
                    None if stat is None else stat.modified_at,
                ),
                name,
            )
            for name, stat in entries
        ]
    return listing


def _entries(listing: TableListing, location: str) -> list[tuple[str, FileStat | None]]:
    """Return every file below a folder by its path; empty folders of partitions have no file."""
    try:
        tree = folder_tree(location.rstrip("/"), lambda _: True)
    except ReadError as error:
        listing.gaps.append(Gap(listing.table.name, location, error.message))
        return []
    entries: list[tuple[str, FileStat | None]] = []
    pending: list[tuple[str, Folder]] = [("", tree)]
    while pending:
        path, folder = pending.pop()
        place = f"{location.rstrip('/')}/{path}"
        for link in folder.links:
            listing.gaps.append(
                Gap(listing.table.name, f"{place}{link}", "it is a link, which is not followed")
            )
        if folder.problem and not folder.links:
            listing.gaps.append(Gap(listing.table.name, place, folder.problem))
        entries += [(f"{path}{file.name}", file) for file in folder.files]
        pending += [(f"{path}{name}/", inner) for name, inner in folder.folders.items()]
        if not folder.files and not folder.folders and "=" in path:
            entries.append((path, None))
    return sorted(entries, key=lambda pair: pair[0])


def _constant(role: Role) -> Callable[[str], Role]:
    return lambda _: role


_STAGING = re.compile(r"[._].*(?:stag|temp|tmp)|.*\._COPYING_", re.IGNORECASE)


def _plain_role(table: SearchedTable) -> Callable[[str], Role]:
    """Return the role of a file of a folder without a log, by its path."""
    partitions = {name.lower() for name in table.partitions}

    def role(path: str) -> Role:
        if any(_STAGING.match(step) for step in path.split("/")):
            return Role.STAGED
        values = table.layout.values_of_file(path) or {}
        return Role.CURRENT if is_data_path(path) and partitions <= values.keys() else Role.ORPHAN

    return role


# Roles of files in tables with a log.


@dataclass(frozen=True, slots=True)
class _Field:
    """A field of a schema: all of its names, its id, and the fields and containers inside of it."""

    names: tuple[str, ...]
    id: int | None
    inside: _Node


@dataclass(frozen=True, slots=True)
class _Node:
    fields: tuple[_Field, ...] = ()
    containers: Mapping[Inside, _Node] = field(default_factory=dict)


def with_aliases(column: IdentityColumn, schemas: Sequence[_Node]) -> IdentityColumn:
    """Return the column with all names and ids that it has had in these schemas of the table."""
    steps = list(column.steps)
    # A name gives an id, and an id other names, in any order of the schemas.
    while True:
        before = list(steps)
        for schema in schemas:
            _learn(schema, steps, 0)
        if steps == before:
            return replace(column, steps=tuple(steps))


def _learn(node: _Node, steps: list[Step], depth: int) -> None:
    if depth == len(steps):
        return
    step = steps[depth]
    if isinstance(step, Inside):
        if step in node.containers:
            _learn(node.containers[step], steps, depth + 1)
        return
    for part in node.fields:
        if any(step.fits(name, part.id) for name in part.names):
            steps[depth] = step = Names(
                step.names | {name.lower() for name in part.names},
                step.ids | ({part.id} if part.id is not None else frozenset()),
            )
            _learn(part.inside, steps, depth + 1)


def _iceberg_node(kind: Any) -> _Node:
    if isinstance(kind, str):
        return _Node()
    if kind["type"] == "struct":
        return _Node(
            tuple(_Field((part["name"],), part["id"], _iceberg_node(part["type"])) for part in kind["fields"])
        )
    if kind["type"] == "list":
        return _Node(containers={Inside.ITEM: _iceberg_node(kind["element"])})
    parts = {Inside.KEY: kind["key"], Inside.VALUE: kind["value"]}
    return _Node(containers={step: _iceberg_node(part) for step, part in parts.items()})


def _delta_node(kind: Any) -> _Node:
    if isinstance(kind, str):
        return _Node()
    if kind["type"] == "struct":
        return _Node(tuple(map(_delta_field, kind["fields"])))
    if kind["type"] == "array":
        return _Node(containers={Inside.ITEM: _delta_node(kind["elementType"])})
    parts = {Inside.KEY: kind["keyType"], Inside.VALUE: kind["valueType"]}
    return _Node(containers={step: _delta_node(part) for step, part in parts.items()})


def _delta_field(part: Any) -> _Field:
    metadata = part.get("metadata") or {}
    physical = metadata.get("delta.columnMapping.physicalName", part["name"])
    return _Field((part["name"], physical), metadata.get("delta.columnMapping.id"), _delta_node(part["type"]))


def _rename(listing: TableListing, schemas: Sequence[_Node]) -> None:
    columns = tuple(with_aliases(column, schemas) for column in listing.table.columns)
    described = {
        name.lower()
        for schema in schemas
        for part in schema.fields
        if any(name.lower() in listing.table.described for name in part.names)
        for name in part.names
    }
    listing.table = replace(
        listing.table, columns=columns, described=listing.table.described | frozenset(described)
    )


def _delta_roles(files: Files, listing: TableListing, paths: Sequence[str]) -> Callable[[str], Role]:
    location, folder = listing.table.location.rstrip("/"), delta.LOG_FOLDER
    current, removed, schemas = set[str](), set[str](), list[_Node]()
    commits = delta.commits(files.inside(f"{location}/{folder}"))
    for commit in commits:
        for action in delta.actions_of(files.read(f"{location}/{folder}/{commit.name}")):
            if remove := action.get("remove"):
                removed.add(unquote(remove["path"]))
            if add := action.get("add"):
                removed.add(unquote(add["path"]))
            if metadata := action.get("metaData"):
                schemas.append(_delta_node(json.loads(metadata["schemaString"])))
    state = delta.read_state(files, location, ("add.path", "metaData.schemaString"))
    if state is None:
        listing.gaps.append(
            Gap(listing.table.name, f"{location}/{folder}", "its log is truncated or not supported")
        )
    else:
        current = set(state.files)
        if state.metadata.get("schemaString"):
            schemas.append(_delta_node(json.loads(state.metadata["schemaString"])))
    _rename(listing, schemas)
    present = set(paths)
    for path in sorted(current - present):
        why = "the log names it, and it is not in the table's folder"
        listing.gaps.append(Gap(listing.table.name, path, why))

    def role(path: str) -> Role:
        if path.startswith(f"{folder}/"):
            return Role.LOG
        if path in current:
            return Role.CURRENT
        if path.endswith(".bin"):
            return Role.DELETES
        return Role.SNAPSHOT if path in removed or path.startswith("_change_data/") else Role.ORPHAN

    return role


def _iceberg_roles(files: Files, listing: TableListing, paths: Sequence[str]) -> Callable[[str], Role]:
    location, folder = listing.table.location.rstrip("/"), iceberg.METADATA_FOLDER
    name = listing.table.name
    in_metadata = [path for path in paths if path.startswith(f"{folder}/")]
    tables = [
        iceberg.metadata_at(files, f"{location}/{path}").content
        for path in in_metadata
        if re.search(r"\.metadata\.json(?:\.gz)?$|\.gz\.metadata\.json$", path)
    ]
    if not tables:
        listing.gaps.append(Gap(name, location, "it has no Iceberg metadata"))
    schemas = [
        _iceberg_node({"type": "struct", **schema})
        for table in tables
        for schema in (table.get("schemas") or [table.get("schema")])
        if schema
    ]
    _rename(listing, schemas)
    homes = {_plain(str(table["location"])) for table in tables}
    records = {
        posixpath.basename(path): compression.avro_records(files, f"{location}/{path}")
        for path in in_metadata
        if path.endswith(".avro")
    }
    current_list = {
        posixpath.basename(str(snapshot.get("manifest-list", "")))
        for table in filter(None, [iceberg.current_metadata(files, location, guess=True)])
        for snapshot in table.content.get("snapshots") or ()
        if snapshot["snapshot-id"] == table.content.get("current-snapshot-id")
    }
    current_manifests = {
        posixpath.basename(record["manifest_path"])
        for manifest_list in current_list
        for record in records.get(manifest_list, ())
        if "manifest_path" in record
    }
    roles: dict[str, Role] = {}
    outside: set[str] = set()
    for manifest, entries in records.items():
        for entry in entries:
            if "manifest_path" in entry:
                if posixpath.basename(entry["manifest_path"]) not in records:
                    outside.add(entry["manifest_path"])
                continue
            if "data_file" not in entry:
                continue
            path = _below(entry["data_file"]["file_path"], homes)
            if path is None:
                outside.add(entry["data_file"]["file_path"])
                continue
            is_live = manifest in current_manifests and entry["status"] != 2
            role = Role.DELETES if entry["data_file"].get("content") else Role.CURRENT
            if role is Role.DELETES or is_live:
                roles[path] = role
            else:
                roles.setdefault(path, Role.SNAPSHOT)
    live_lists = _live_manifest_lists(tables)
    for path in sorted(outside):
        # Manifests that every snapshot has dropped are deleted with them.
        if path.endswith(".avro") and not live_lists & {
            manifest_list
            for manifest_list, entries in records.items()
            if any(entry.get("manifest_path") == path for entry in entries)
        }:
            continue
        listing.gaps.append(Gap(name, path, "a manifest names it, and it is not below the table's folder"))
    for path, role in sorted(roles.items()):
        if role is Role.CURRENT and path not in set(paths):
            listing.gaps.append(Gap(name, path, "the current snapshot has it, and it is not in the folder"))

    def role_of(path: str) -> Role:
        return Role.LOG if path.startswith(f"{folder}/") else roles.get(path, Role.ORPHAN)

    return role_of


def _live_manifest_lists(tables: Iterable[Mapping[str, Any]]) -> set[str]:
    """Return the names of the manifest lists of the snapshots in the newest metadata."""
    newest = max(tables, key=lambda table: table.get("last-updated-ms", 0), default={})
    return {
        posixpath.basename(str(snapshot.get("manifest-list", "")))
        for snapshot in newest.get("snapshots") or ()
    }


def _plain(location: str) -> str:
    """Return a location without its scheme, which writers spell differently."""
    local = iceberg.local_path(location)
    return posixpath.normpath(local.partition("://")[2] or local).lstrip("/")


def _below(path: str, homes: Iterable[str]) -> str | None:
    plain = _plain(path)
    return next((plain[len(home) + 1 :] for home in homes if plain.startswith(f"{home}/")), None)


_HUDI_BASE = re.compile(r"(?P<group>[^/]+)_[^_/]+_(?P<instant>\d{14,17})\.(?:parquet|orc)")


def _hudi_roles(files: Files, listing: TableListing, paths: Sequence[str]) -> Callable[[str], Role]:
    location = listing.table.location.rstrip("/")
    listing.table = replace(listing.table, key_fields=hudi.key_fields(files, location))
    newest: dict[tuple[str, str], str] = {}
    for path in paths:
        folder, _, name = path.rpartition("/")
        if match := _HUDI_BASE.fullmatch(name):
            key = folder, match["group"]
            newest[key] = max(newest.get(key, ""), match["instant"])

    def role(path: str) -> Role:
        folder, _, name = path.rpartition("/")
        if path.startswith(f"{table_folders.HUDI_FOLDER}/") or ".log." in name:
            return Role.LOG
        match = _HUDI_BASE.fullmatch(name)
        if match is None:
            return Role.ORPHAN
        return Role.CURRENT if newest[folder, match["group"]] == match["instant"] else Role.SNAPSHOT

    return role


_LOGS: Mapping[str, Callable[[Files, TableListing, Sequence[str]], Callable[[str], Role]]] = {
    "delta": _delta_roles,
    "iceberg": _iceberg_roles,
    "hudi": _hudi_roles,
}


def changed_files(before: TableListing, after: TableListing) -> Iterator[Gap]:
    """Yield a gap for every file that appeared, vanished or changed between two listings."""
    old = {listed.file.path: listed.file for listed in before.files}
    new = {listed.file.path: listed.file for listed in after.files}
    for path in sorted(old.keys() | new.keys()):
        if path not in new:
            yield Gap(before.table.name, path, "it vanished during the search")
        elif path not in old:
            yield Gap(before.table.name, path, "it appeared during the search")
        elif (old[path].size, old[path].modified) != (new[path].size, new[path].modified):
            yield Gap(before.table.name, path, "it changed during the search")
