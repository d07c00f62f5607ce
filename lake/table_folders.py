"""Folders of a lake that look like tables, from the names of everything below a root.

A folder is a table if it has the log of a table format, folders of partitions (`column=value`, or dates as in
`2026/05/01`), or files of a data format. Every file belongs to one table: the innermost around it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from dq.contracts.layout import TIME_FOLDERS
from dq.lake import delta, iceberg
from dq.lake.storage import FileStat, Folder, is_data_name

HUDI_FOLDER = ".hoodie"
# Folder of a log -> format; its files are not data.
_LOGS = {delta.LOG_FOLDER: "delta", HUDI_FOLDER: "hudi"}
_ICEBERG_METADATA = (".metadata.json", ".metadata.json.gz")

# Ending of a file's name -> format.
_ENDINGS = {
    ".parquet": "parquet", ".parq": "parquet", ".pq": "parquet", ".orc": "orc", ".avro": "avro",
    ".csv": "csv", ".tsv": "csv", ".json": "json", ".jsonl": "json", ".ndjson": "json",
}  # fmt: skip
_COMPRESSED = (".gz", ".bz2", ".zst", ".snappy", ".lz4", ".deflate", ".xz")
# Names of files that Spark and Hive write without an ending.
_PART = re.compile(r"part-[\w-]+|\d{6}_\d+(?:_copy_\d+)?", re.ASCII)


@dataclass(frozen=True, slots=True)
class FolderTable:
    """A folder that looks like a table.

    `path` is relative to the root, "" for the root itself. `format` is "" if only the content of the files
    tells it. `files` are the data files by their path below the folder, in order, and `log` those of its log.
    `outside` are data files next to the folders of partitions, and of other formats, which readers ignore.
    `problem` is why a part of it cannot be listed, or "".
    """

    path: str
    format: str
    files: tuple[tuple[str, FileStat], ...]
    log: tuple[tuple[str, FileStat], ...] = ()
    outside: tuple[str, ...] = ()
    problem: str = ""

    @property
    def partitions(self) -> int:
        """Number of folders with data files below the table's own."""
        return len({file.rpartition("/")[0] for file, _ in self.files} - {""})


def is_listed(name: str) -> bool:
    """Return True for a folder in which tables, their data or their logs can be."""
    return is_data_name(name) or name in _LOGS


def is_compressed(name: str) -> bool:
    """Return True for a text file that its importer does not read, because it is compressed."""
    return name.lower().endswith(_COMPRESSED)


def format_of(name: str) -> str | None:
    """Return the format of a file by its name: "" for names without ending, None if it is not data."""
    lowered = name.lower()
    for ending in _COMPRESSED:
        lowered = lowered.removesuffix(ending)
    stem, dot, ending = lowered.rpartition(".")
    if dot and stem:
        return _ENDINGS.get(f".{ending}")
    return "" if _PART.fullmatch(lowered) else None


def table_folders(tree: Folder, claimed: Collection[str] = ()) -> Iterator[FolderTable]:
    """Yield the tables of a tree in order of their paths.

    `claimed` are paths of tables, from contracts or catalogs: if one has neither files nor folders of
    partitions, everything below it belongs to it, whatever its folders are named.
    """
    yield from _Finder(frozenset(claimed)).tables("", tree)


@dataclass(frozen=True, slots=True)
class _Finder:
    claimed: frozenset[str]

    def tables(self, path: str, folder: Folder) -> Iterator[FolderTable]:
        log, is_claimed = _log_format(folder), path in self.claimed
        partitions = [] if log else _partition_folders(folder)
        has_files = any(format_of(file.name) is not None for file in _data_files(folder))
        if log or (is_claimed and not partitions and not has_files):
            inside = [name for name in folder.folders if is_data_name(name)]
            if log == "iceberg":
                inside.remove(iceberg.METADATA_FOLDER)
            yield from self._table(path, folder, inside, log, own_files=True)
            return
        if partitions:
            yield from self._table(path, folder, partitions, "", own_files=False)
        elif is_claimed:
            yield from self._table(path, folder, [], "", own_files=True)
        elif has_files:
            yield from _folder_of_files(path, folder)
        elif folder.problem:
            yield FolderTable(path, "", (), problem=folder.problem)
        for name, inner in sorted(folder.folders.items()):
            if is_data_name(name) and name not in partitions:
                yield from self.tables(_join(path, name), inner)

    def _table(
        self, path: str, folder: Folder, partitions: Sequence[str], log: str, *, own_files: bool
    ) -> Iterator[FolderTable]:
        files: list[tuple[str, FileStat]] = []
        nested: list[tuple[str, Folder]] = []
        problems = [folder.problem]
        for name in sorted(partitions):
            self._gather(path, name, folder.folders[name], files, nested, problems)
        top = [(file.name, file) for file in _data_files(folder)]
        outside = [] if own_files or not files else [name for name, _ in top]
        files += [] if outside else top
        formats = Counter(kind for name, _ in files if (kind := format_of(name)) is not None)
        kind = _data_format(log) or max(formats, key=lambda name: (formats[name], name), default="")
        data = [(name, file) for name, file in files if format_of(name) == kind]
        outside += [name for name, _ in files if format_of(name) not in (kind, None)]
        if data or log or path in self.claimed or any(problems):
            yield FolderTable(
                path,
                log or kind,
                tuple(sorted(data, key=lambda pair: pair[0])),
                tuple(_log_files(folder)),
                tuple(sorted(outside)),
                next(filter(None, problems), ""),
            )
        for inner_path, inner in nested:
            yield from self.tables(inner_path, inner)

    def _gather(
        self,
        table: str,
        inner_path: str,
        folder: Folder,
        files: list[tuple[str, FileStat]],
        nested: list[tuple[str, Folder]],
        problems: list[str],
    ) -> None:
        """Add the files of a folder of a table, except those of tables inside of it."""
        path = _join(table, inner_path)
        if path in self.claimed or _log_format(folder):
            nested.append((path, folder))
            return
        problems.append(folder.problem)
        files += ((f"{inner_path}/{file.name}", file) for file in _data_files(folder))
        for name, inner in sorted(folder.folders.items()):
            if is_data_name(name):
                self._gather(table, f"{inner_path}/{name}", inner, files, nested, problems)


def _folder_of_files(path: str, folder: Folder) -> Iterator[FolderTable]:
    """Yield a table for each format of the files directly in a folder."""
    by_format: dict[str, list[tuple[str, FileStat]]] = {}
    for file in _data_files(folder):
        if (kind := format_of(file.name)) is not None:
            by_format.setdefault(kind, []).append((file.name, file))
    for kind, files in sorted(by_format.items()):
        # Without an ending, a file counts only if none has one.
        if kind or len(by_format) == 1:
            yield FolderTable(path, kind, tuple(sorted(files)), problem=folder.problem)


def _partition_folders(folder: Folder) -> list[str]:
    """Return the names of the folders that hold partitions: `column=value`, else dates and times."""
    named = [name for name, inner in folder.folders.items() if "=" in name[1:] and _has_data(inner)]
    if named:
        return named
    for pattern, _ in TIME_FOLDERS:
        first, *below = pattern.split("/")
        dated = [
            name
            for name, inner in folder.folders.items()
            if re.fullmatch(first, name, re.ASCII) and _is_dated(inner, below)
        ]
        if dated:
            return dated
    return []


def _is_dated(folder: Folder, patterns: Sequence[str]) -> bool:
    """Return True if the folders below a folder have these names, and the last ones have data."""
    if not patterns:
        return any(format_of(file.name) is not None for file in _data_files(folder)) or any(
            "=" in name[1:] and _has_data(inner) for name, inner in folder.folders.items()
        )
    inside = [(name, inner) for name, inner in folder.folders.items() if _has_data(inner)]
    return (
        bool(inside)
        and not any(format_of(file.name) is not None for file in _data_files(folder))
        and all(
            re.fullmatch(patterns[0], name, re.ASCII) and _is_dated(inner, patterns[1:])
            for name, inner in inside
        )
    )


def _has_data(folder: Folder) -> bool:
    return any(format_of(file.name) is not None for file in _data_files(folder)) or any(
        is_data_name(name) and _has_data(inner) for name, inner in folder.folders.items()
    )


def _log_format(folder: Folder) -> str:
    """Return the table format whose log a folder has, or ""."""
    for name, kind in _LOGS.items():
        if name in folder.folders:
            return kind
    metadata = folder.folders.get(iceberg.METADATA_FOLDER)
    is_iceberg = metadata is not None and any(
        file.name.endswith(_ICEBERG_METADATA) for file in metadata.files
    )
    return "iceberg" if is_iceberg else ""


def _data_format(log: str) -> str:
    """Return the format of the data files of a table with a log, or "" if there may be several."""
    return "parquet" if log in ("delta", "hudi") else ""


def _log_files(folder: Folder) -> Iterator[tuple[str, FileStat]]:
    names = [*_LOGS, *([iceberg.METADATA_FOLDER] if _log_format(folder) == "iceberg" else [])]
    for name in names:
        if name in folder.folders:
            yield from ((f"{name}/{file.name}", file) for file in folder.folders[name].files)
            timeline = folder.folders[name].folders.get("timeline", Folder())
            yield from ((f"{name}/timeline/{file.name}", file) for file in timeline.files)


def _data_files(folder: Folder) -> Iterator[FileStat]:
    return (file for file in folder.files if is_data_name(file.name))


def _join(above: str, name: str) -> str:
    return f"{above}/{name}" if above else name
