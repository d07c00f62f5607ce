"""The files of a table in a folder, without a log: those from which Spark reads rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from urllib.parse import unquote

from dq.dataquality.local.metadata.logged import unknown
from dq.lake.paths import is_data_name
from dq.lake.storage import Files, Seen

MAX_FOLDERS = 20_000
# Links may lead in a circle.
MAX_DEPTH = 32


def table_files(files: Files, root: str, keys: Sequence[str]) -> Iterator[tuple[str, Seen]]:
    """Yield the path of each file and the file.

    Source: PartitioningAwareFileIndex.allFiles and PartitioningUtils.parsePartition of Spark 3.5 and 4.0.
    Where partition folders have data, the files next to them are in no partition, and Spark reads no row of
    them; it reads those in any folder inside of a partition folder.

    Raises Unreadable where the partition folders are not those of `keys`: Spark finds other columns then.
    """
    root = root.rstrip("/")
    top = [(f"{root}/{file.name}", file) for file in files.inside(root) if is_data_name(file.name)]
    partitioned = False
    pending: list[tuple[str, tuple[str, ...], int]] = [(root, (), 0)]
    visited = 0
    while pending:
        folder, columns, depth = pending.pop()
        visited += 1
        if visited > MAX_FOLDERS or depth > MAX_DEPTH:
            raise unknown(
                root, f"has more than {MAX_FOLDERS:,} folders, or more than {MAX_DEPTH} below each other"
            )
        inside = [file for file in files.inside(folder) if is_data_name(file.name)] if depth else []
        if inside:
            partitioned = True
            _require_keys(root, columns, keys)
            yield from ((f"{folder}/{file.name}", file) for file in inside)
        for name in filter(is_data_name, files.folders(folder)):
            key, equals, _ = name.partition("=")
            if equals and len(columns) < depth:
                raise unknown(f"{folder}/{name}", "is a partition folder inside of a folder that is none")
            if equals or depth:
                below = (*columns, unquote(key)) if equals else columns
                pending.append((f"{folder}/{name}", below, depth + 1))
    if not partitioned:
        yield from top


def _require_keys(root: str, columns: Sequence[str], keys: Sequence[str]) -> None:
    if sorted(map(str.lower, columns)) != sorted(map(str.lower, keys)):
        names = ", ".join(keys) or "no partition column"
        raise unknown(root, f"has partition folders of {', '.join(columns)}, and its contract names {names}")
