"""Folders of lakes as tables: what their listings and their metadata say, cached in the store.

One folder may hold the files of several tables, e.g. `customers.csv` next to `orders.csv`: then each group of
files with similar names is a part of its own, unless the groups have the same columns.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from sqlalchemy import delete, insert, select

from dq.contracts.access.access_policy import is_remote
from dq.contracts.access.files import printable_path
from dq.contracts.install import require_extras
from dq.contracts.layout import HIVE, Layout, parse_layout
from dq.contracts.outcome import DqError, ReadError
from dq.contracts.types import DataType
from dq.dataquality.table_metadata import SETTLED_AFTER, LoggedCounts
from dq.lake import delta, iceberg
from dq.lake.parquet import bounds_of_footers
from dq.lake.storage import FileStat, Folder, Storages, folder_tree, open_bytes
from dq.lake.table_folders import FolderTable, is_compressed, is_listed, table_folders
from dq.lake.table_log import NOT_UNDERSTOOD
from dq.operations.runtime.context import RuntimeContext
from dq.registry.importing import ColumnValues, ImportedColumn, ImportedTable, kinds
from dq.registry.importing.kinds import parquet
from dq.registry.importing.sources import MAX_FILES, LakeFolder, lake_folder
from dq.registry.table import TEXTS
from dq.registry.tables import discovered_folder
from dq.store.engine import Store

# Increased when the same files give other facts.
_VERSION = 2
_CONCURRENCY = 32
# Footers of a table with more files are not all read, so that its rows and bounds are unknown.
MAX_FOOTERS = 200
# Folders with more kinds of names hold one table, whose files have names of their own.
_MAX_GROUPS = 20
# Share of common columns from which files with different names are of one table.
_SAME_TABLE = 0.6
# Parts of a file's name that differ between the files of a table: numbers, ids, hashes.
_VARIABLE = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27}|[0-9a-f]{16,}|\d+", re.ASCII | re.IGNORECASE)
_MAGIC = {b"PAR1": "parquet", b"ORC": "orc", b"Obj\x01": "avro"}
_WITH_LIVE_FILES = ("delta", "iceberg")
_HUDI_PREFIX = "_hoodie_"


@dataclass(frozen=True, slots=True)
class ListedFolder:
    """A folder that looks like a table, as `location` below the `source` that was listed.

    `key` and `root` are their real paths or URIs. `known_files` are names of files that are tables.
    `is_shared`: the folder has files of other formats too, which are tables of their own. `metadata_location`
    is the current metadata of an Iceberg table by its catalog, or "".
    """

    root: str
    key: str
    source: str
    location: str
    folder: FolderTable
    known_files: frozenset[str] = frozenset()
    is_shared: bool = False
    metadata_location: str = ""

    @property
    def part_name(self) -> str:
        """Name of the table of all files: "" for the folder, a file or a pattern if the folder is shared."""
        names = [name for name, _ in self.folder.files]
        if not self.is_shared or not names:
            return ""
        return names[0] if len(names) == 1 else f"*.{names[0].rpartition('.')[2]}"


@dataclass(frozen=True, slots=True)
class FolderPart:
    """A table in a folder below the source `root`: the folder, one of its files, or a pattern of names.

    `table` is None if its columns are unknown. `rows` is None if unknown, `bounds` has digests of the minimum
    and the maximum by column. `sizes` are the sizes of all data files, in order.
    """

    root: str
    key: str
    location: str
    format: str
    files: int
    bytes: int
    newest: datetime | None
    partitions: int
    sizes: tuple[int, ...] = ()
    table: ImportedTable | None = None
    rows: int | None = None
    bounds: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    outside: tuple[str, ...] = ()
    problem: str = ""


@dataclass(frozen=True, slots=True)
class _Facts:
    """Metadata of some files of a folder, by their positions.

    `name` is the part's name below the folder, or "". `live` are files, bytes and newest write by a log.
    """

    name: str
    files: tuple[int, ...]
    format: str
    table: ImportedTable | None = None
    rows: int | None = None
    live: tuple[int, int, str | None] | None = None
    bounds: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    problem: str = ""


# Listing.


def list_roots(
    context: RuntimeContext,
    roots: Mapping[str, str],
    locations: Iterable[str],
    claimed: Collection[str],
) -> tuple[list[ListedFolder], list[str]]:
    """Return the folders that look like tables below the roots and at other locations of catalogs.

    `roots` are locations as the user wrote them by their keys; `claimed` are the keys of tables in contracts
    and catalogs. The second result has an error for each root that cannot be listed. A location of a catalog
    that cannot be listed is a folder with this problem.
    """
    own = {key: root for key, root in roots.items() if not _is_below_any(key, roots)}
    catalog_locations = {key for key in locations if not _is_in_any(key, own)}
    tables = {key: key for key in catalog_locations if not _is_below_any(key, catalog_locations)}
    errors: list[str] = []
    folders: list[ListedFolder] = []
    for root, listed in _list_all(context, {**own, **tables}):
        if isinstance(listed, DqError):
            if root in own:
                errors.append(str(listed).replace(root, own[root]))
            else:
                folders.append(
                    ListedFolder(root, root, root, root, FolderTable("", "", (), problem=listed.message))
                )
            continue
        below = {
            key[len(root) :].strip("/")
            for key in claimed
            if key == root or key.startswith(f"{root.rstrip('/')}/")
        }
        place = own.get(root, root)
        tables_below = list(table_folders(listed, below))
        counts = Counter(folder.path for folder in tables_below)
        for folder in tables_below:
            folder = replace(folder, problem=folder.problem.replace(root, place))
            if folder.problem and not folder.format and folder.path not in below:
                # It is unknown whether there is a table.
                errors.append(folder.problem)
                continue
            path, location = _join(root, folder.path), _join(place, folder.path)
            files = frozenset(name for name, _ in folder.files if _join(folder.path, name) in below)
            is_shared = counts[folder.path] > 1
            folders.append(ListedFolder(root, path, place, location, folder, files, is_shared))
    return folders, errors


def _list_all(context: RuntimeContext, roots: Mapping[str, str]) -> Iterator[tuple[str, Folder | DqError]]:
    def listed(root: str) -> Folder | DqError:
        try:
            with context.messages.step(printable_path(roots[root])):
                return folder_tree(root, is_listed)
        except DqError as error:
            return error

    with ThreadPoolExecutor(_CONCURRENCY) as pool:
        yield from zip(roots, pool.map(listed, roots), strict=True)


def _is_below_any(key: str, keys: Collection[str]) -> bool:
    return any(str(above) in keys for above in _parents(key))


def _is_in_any(key: str, keys: Collection[str]) -> bool:
    return key in keys or _is_below_any(key, keys)


def _parents(key: str) -> Iterator[str]:
    above = key.rpartition("/")[0]
    while above and not above.endswith(":/"):
        yield above
        above = above.rpartition("/")[0]
    if key.startswith("/") and key != "/":
        yield "/"


def _join(above: str, name: str) -> str:
    return f"{above.rstrip('/')}/{name}" if above and name else above or name


# Reading.


def read_parts(
    context: RuntimeContext, store: Store, folders: Sequence[ListedFolder], layouts: Mapping[str, str]
) -> list[FolderPart]:
    """Return the tables of the folders, in order; unchanged ones are taken from the store.

    `layouts` are the templates of tables in contracts, by their keys. Raises MissingTool without pyarrow. A
    folder that cannot be read has a problem.
    """
    with require_extras("Reading Parquet footers needs pyarrow", "sample"):
        import pyarrow  # noqa: F401
    keys = [_cache_key(folder) for folder in folders]
    prints = [_fingerprint(folder, layouts.get(folder.key), context.now()) for folder in folders]
    cached = _recall(store, {folder.root for folder in folders})
    changed = [
        number
        for number, (key, print_) in enumerate(zip(keys, prints, strict=True))
        if not print_ or cached.get(key, ("", ""))[0] != print_
    ]
    storages = Storages()

    def read(number: int) -> list[_Facts]:
        folder = folders[number]
        return _guarded(folder, lambda: _read(storages, folder, layouts.get(folder.key)))

    facts: dict[int, list[_Facts]] = {}
    is_any_remote = any(is_remote(folder.key) for folder in folders)
    with ThreadPoolExecutor(_CONCURRENCY if is_any_remote else 1) as pool:
        for number, answer in zip(changed, pool.map(read, changed), strict=True):
            facts[number] = answer
    rows = {
        keys[number]: (folders[number].root, prints[number], _to_text(facts[number]))
        for number in changed
        if prints[number]
    }
    _remember(store, {folder.root for folder in folders}, set(keys), rows)
    parts: list[FolderPart] = []
    for number, folder in enumerate(folders):
        known_facts = facts[number] if number in facts else _from_text(cached[keys[number]][1])
        parts += (_part(folder, part) for part in known_facts)
    return parts


def _guarded(folder: ListedFolder, read: Callable[[], list[_Facts]]) -> list[_Facts]:
    every = tuple(range(len(folder.folder.files)))
    try:
        return [_require_columns(folder, facts) for facts in read()]
    except Exception as error:  # noqa: BLE001  # one guard per table: no file may end the whole listing
        message = error.message if isinstance(error, DqError) else f"{folder.key}: {type(error).__name__}"
        problem = message.replace(folder.key, folder.location)
    return [_Facts(folder.part_name, every, folder.folder.format, problem=problem)]


def _read(storages: Storages, folder: ListedFolder, template: str | None) -> list[_Facts]:
    listed = folder.folder
    every = tuple(range(len(listed.files)))
    if listed.problem and not listed.files:
        return [_Facts("", every, listed.format, problem=listed.problem)]
    form = listed.format or (_sniff(folder) if listed.files else "")
    if not form:
        # Files without an ending that are of no known format are not a table, unless something says so.
        return [] if listed.files and template is None else [_Facts("", every, "")]
    groups = _groups(folder)
    if len(groups) == 1:
        return [_facts(storages, folder, form, folder.part_name, every, template)]
    parts = [_guarded_group(storages, folder, form, name, positions) for name, positions in groups.items()]
    if not folder.known_files and _are_one_table(parts):
        return [_facts(storages, folder, form, folder.part_name, every, template)]
    return parts


def _require_columns(folder: ListedFolder, facts: _Facts) -> _Facts:
    if facts.table is None or facts.table.columns or facts.problem:
        return facts
    return replace(facts, table=None, problem=f"{folder.location} has no columns.")


def _guarded_group(
    storages: Storages, folder: ListedFolder, form: str, name: str, positions: tuple[int, ...]
) -> _Facts:
    [facts] = _guarded(folder, lambda: [_facts(storages, folder, form, name, positions, None)])
    return replace(facts, name=name, files=positions)


def _groups(folder: ListedFolder) -> dict[str, tuple[int, ...]]:
    """Return the positions of files with similar names, by the name of the file or a pattern of names."""
    listed = folder.folder
    every = tuple(range(len(listed.files)))
    if listed.log or listed.partitions or (not folder.known_files and len(every) == 1):
        return {"": every}
    stems: dict[str, list[int]] = defaultdict(list)
    for position, (name, _) in enumerate(listed.files):
        stem = name if name in folder.known_files else _VARIABLE.sub("*", name)
        stems[stem].append(position)
    if (len(stems) == 1 and not folder.known_files) or len(stems) > _MAX_GROUPS:
        return {"": every}
    return {
        stem if len(positions) > 1 else listed.files[positions[0]][0]: tuple(positions)
        for stem, positions in stems.items()
    }


def _are_one_table(parts: Sequence[_Facts]) -> bool:
    """Return True if the groups that can be read have mostly the same columns."""
    names = [
        {column.name.lower() for column in part.table.columns} for part in parts if part.table is not None
    ]
    return all(len(names[0] & other) >= _SAME_TABLE * len(names[0] | other) for other in names[1:])


def _facts(
    storages: Storages,
    folder: ListedFolder,
    form: str,
    name: str,
    positions: tuple[int, ...],
    template: str | None,
) -> _Facts:
    listed = folder.folder
    facts = _Facts(name, positions, form, problem=listed.problem)
    if form in _WITH_LIVE_FILES:
        return _with_bounds(folder, _read_log(storages, folder, facts))
    names = [listed.files[position][0] for position in positions if listed.files[position][1].size]
    if not names:
        return replace(facts, problem=f"{folder.location} has only empty files.") if positions else facts
    kind = kinds.load().get("parquet" if form == "hudi" else form)
    if kind is None or kind.read_files is None or (form in TEXTS and any(map(is_compressed, names))):
        return facts
    # A layout of a contract holds for its whole folder, and none for single files of it.
    layout = parse_layout(template) if template else None
    lake = lake_folder(
        folder.key,
        [f"{folder.key}/{name}" for name in names],
        layout if isinstance(layout, Layout) else HIVE if form == "hudi" else None,
    )
    if form == "hudi":
        return replace(facts, table=_hudi_table(lake))
    if form == "parquet":
        return _read_parquet(lake, facts)
    return replace(facts, table=kind.read_files(lake))


def _read_parquet(lake: LakeFolder, facts: _Facts) -> _Facts:
    sample = lake.sample() if len(lake.files) > MAX_FOOTERS else lake.files
    footers = {file.path: parquet.read_footer(file.path) for file in sample}
    shown = {file.path: footers[file.path] for file in lake.sample()}
    facts = replace(facts, table=parquet.table_from_footers(lake, shown))
    if len(sample) < len(lake.files):
        return facts
    rows = sum(footer.num_rows for footer in footers.values())
    return replace(facts, rows=rows, bounds=_digests(bounds_of_footers(footers.values())))


def _digests(bounds: Mapping[str, tuple[object, object]]) -> dict[str, tuple[str, str]]:
    """Return digests, because values of the data are not kept."""
    return {name: (_digest(low), _digest(high)) for name, (low, high) in bounds.items()}


def _digest(value: object) -> str:
    return hashlib.sha256(repr(value).encode("utf-8", "surrogateescape")).hexdigest()[:16]


def _hudi_table(lake: LakeFolder) -> ImportedTable:
    table = parquet.read_files(replace(lake, files=lake.files[-MAX_FILES:]))
    columns = tuple(column for column in table.columns if not column.name.startswith(_HUDI_PREFIX))
    return replace(table, columns=columns, format="hudi")


def _read_log(storages: Storages, folder: ListedFolder, facts: _Facts) -> _Facts:
    import pyarrow as pa

    kind = kinds.load()[facts.format]
    facts = replace(facts, table=kind.read(folder.key)[0])
    try:
        files = storages.of(folder.key)
        live = (
            iceberg.live_table(files, folder.key, folder.metadata_location)
            if facts.format == "iceberg"
            else delta.live_table(files, folder.key)
        )
        counts = LoggedCounts.from_table(live)
    except (*NOT_UNDERSTOOD, ReadError, pa.ArrowException) as error:
        # Its columns are readable; without the live files, all files are shown.
        reason = (
            error.message
            if isinstance(error, ReadError)
            else f"{folder.location}: its log cannot be understood."
        )
        return facts if folder.folder.files else replace(facts, problem=reason)
    newest = live.newest_at.isoformat() if live.newest_at else None
    return replace(facts, rows=counts.rows, live=(counts.files, counts.bytes, newest))


def _with_bounds(folder: ListedFolder, facts: _Facts) -> _Facts:
    """Add the bounds of a table with a log whose files are all live."""
    files = folder.folder.files
    is_complete = facts.live is not None and facts.live[0] == len(files) <= MAX_FOOTERS
    if not is_complete or not all(name.endswith(".parquet") for name, _ in files):
        return facts
    footers = [parquet.read_footer(f"{folder.key}/{name}") for name, _ in files]
    return replace(facts, bounds=_digests(bounds_of_footers(footers)))


def _sniff(folder: ListedFolder) -> str:
    """Return the format of files without an ending by their first bytes, or ""."""
    name = next((name for name, file in folder.folder.files if file.size), None)
    if name is None:
        return ""
    with open_bytes(f"{folder.key}/{name}") as file:
        head = file.read(4)
    return next((form for magic, form in _MAGIC.items() if head.startswith(magic)), "")


def _part(folder: ListedFolder, facts: _Facts) -> FolderPart:
    listed = folder.folder
    files = [listed.files[position] for position in facts.files]
    newest = max((file.modified_at for _, file in files), default=None)
    count, size = len(files), sum(file.size for _, file in files)
    if facts.live is not None:
        count, size = facts.live[:2]
        newest = datetime.fromisoformat(facts.live[2]) if facts.live[2] else newest
    return FolderPart(
        folder.source,
        _join(folder.key, facts.name),
        _join(folder.location, facts.name),
        facts.format,
        count,
        size,
        newest,
        len({name.rpartition("/")[0] for name, _ in files} - {""}),
        tuple(sorted(file.size for _, file in files)),
        facts.table,
        facts.rows,
        facts.bounds,
        listed.outside,
        facts.problem,
    )


# Cache.


def _cache_key(folder: ListedFolder) -> str:
    text = f"{folder.key}\n{folder.folder.format}"
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def _fingerprint(folder: ListedFolder, template: str | None, now: datetime) -> str:
    """Return a hash of everything that the facts depend on; "" while files are being written."""
    files: Sequence[tuple[str, FileStat]] = (*folder.folder.files, *folder.folder.log)
    if folder.folder.problem or any(now - file.modified_at < SETTLED_AFTER for _, file in files):
        return ""
    facts = (_VERSION, template, sorted(folder.known_files), folder.is_shared, folder.metadata_location)
    hashed = hashlib.sha256(repr(facts).encode("utf-8", "surrogateescape"))
    for name, file in files:
        hashed.update(f"{name}\n{file.identity}\n\n".encode("utf-8", "surrogateescape"))
    return hashed.hexdigest()


def _recall(store: Store, roots: Collection[str]) -> dict[str, tuple[str, str]]:
    """Return fingerprint and facts by key."""
    columns = discovered_folder.c
    rows: dict[str, tuple[str, str]] = {}
    with store.read() as connection:
        for root in roots:
            query = select(columns.key, columns.print, columns.parts).where(
                columns.root == printable_path(root)
            )
            rows |= {row.key: (row.print, row.parts) for row in connection.execute(query)}
    return rows


_BATCH = 500


def _remember(
    store: Store, roots: Collection[str], keys: Collection[str], rows: Mapping[str, tuple[str, str, str]]
) -> None:
    """Replace the rows of changed folders, and delete those of folders that no longer exist."""
    columns = discovered_folder.c
    with store.read() as connection:
        stored: set[str] = set()
        for root in roots:
            query = select(columns.key).where(columns.root == printable_path(root))
            stored |= set(connection.execute(query).scalars())
    replaced = sorted((stored - set(keys)) | rows.keys())
    if not replaced:
        return
    values = [
        {"key": key, "root": printable_path(root), "print": print_, "parts": parts}
        for key, (root, print_, parts) in sorted(rows.items())
    ]
    with store.write() as connection:
        for start in range(0, len(replaced), _BATCH):
            connection.execute(
                delete(discovered_folder).where(columns.key.in_(replaced[start : start + _BATCH]))
            )
        for start in range(0, len(values), _BATCH):
            connection.execute(insert(discovered_folder), values[start : start + _BATCH])


def _to_text(parts: Sequence[_Facts]) -> str:
    return json.dumps([
        {
            "name": part.name,
            "files": part.files,
            "format": part.format,
            "table": _table_to_json(part.table) if part.table else None,
            "rows": part.rows,
            "live": part.live,
            "bounds": {name: list(pair) for name, pair in part.bounds.items()},
            "problem": part.problem,
        }
        for part in parts
    ])  # fmt: skip


def _from_text(text: str) -> list[_Facts]:
    return [
        _Facts(
            part["name"],
            tuple(part["files"]),
            part["format"],
            _table_from_json(part["table"]) if part["table"] else None,
            part["rows"],
            tuple(part["live"]) if part["live"] else None,
            {name: (pair[0], pair[1]) for name, pair in part["bounds"].items()},
            part["problem"],
        )
        for part in json.loads(text)
    ]


def _table_to_json(table: ImportedTable) -> dict[str, object]:
    return {
        "name": table.name,
        "columns": [_column_to_json(column) for column in table.columns],
        "partitions": [_column_to_json(column) for column in table.partitions],
        "location": table.location,
        "format": table.format,
        "layout": table.layout,
        "absence": table.absence,
    }


def _column_to_json(column: ImportedColumn) -> list[object]:
    values = _values_to_json(column.values) if column.values else None
    return [column.name, _type_to_json(column.type), column.evidence, values]


def _values_to_json(values: ColumnValues) -> list[object]:
    parts = {name: _values_to_json(part) for name, part in values.parts.items()}
    return [sorted(values.kinds or ()), _type_to_json(values.type), values.evidence, parts, values.is_text]


def _type_to_json(kind: DataType) -> list[object]:
    return [kind.name, kind.numbers, [_type_to_json(part) for part in kind.parts], kind.names]


def _type_from_json(value: list[Any]) -> DataType:
    name, numbers, parts, names = value
    return DataType(name, tuple(numbers), tuple(map(_type_from_json, parts)), tuple(names))


def _column_from_json(value: list[Any]) -> ImportedColumn:
    name, kind, evidence, values = value
    return ImportedColumn(
        name,
        _type_from_json(kind),
        evidence=evidence,
        values=_values_from_json(values) if values else None,
    )


def _values_from_json(value: list[Any]) -> ColumnValues:
    kinds, kind, evidence, parts, is_text = value
    inside = {name: _values_from_json(part) for name, part in parts.items()}
    return ColumnValues(frozenset(kinds), _type_from_json(kind), evidence, inside, is_text)


def _table_from_json(value: dict[str, Any]) -> ImportedTable:
    return ImportedTable(
        value["name"],
        tuple(map(_column_from_json, value["columns"])),
        tuple(map(_column_from_json, value["partitions"])),
        value["location"],
        value["format"],
        layout=value["layout"],
        absence=value["absence"],
    )
