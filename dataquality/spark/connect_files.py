"""Files that a Spark Connect server reads for a frame, if this process reads the same ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from dq.contracts.access.access_policy import is_remote
from dq.contracts.layout import named_folders
from dq.dataquality.spark.columnar_files import connected_storage
from dq.dataquality.spark.file_listing import data_files

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# Options of readers with which folders are no partitions, or files are left out that the listing has.
_OTHER_OPTIONS = frozenset({"recursivefilelookup", "pathglobfilter", "modifiedbefore", "modifiedafter"})
# More files are left to the server: one request of this process is needed for each.
_MOST_FILES = 2_000

_Version = tuple[int, int]
"""Size in bytes, and time of the last change in milliseconds."""


def files_read(frame: DataFrame) -> list[str] | None:
    """Return the addresses of the files of a frame that only reads Parquet files, each once, or None.

    None also if a file is not the same for this process and for the server: paths of a server may be other
    files here. They are the same if they have the same size and the same time of change.

    Raises PySparkException if the server cannot list them.
    """
    source = _parquet_source(frame)
    if source is None:
        return None
    addresses = sorted(data_files(frame.inputFiles()))
    if not addresses or len(addresses) > _MOST_FILES or len(set(addresses)) != len(addresses):
        return None
    # Relative paths are relative to a folder of the server.
    if not all(_below(source, address) for address in addresses):
        return None
    on_server = _versions_on_server(frame, list(source._paths or ()))
    own = _own_versions(addresses)
    is_same = own is not None and all(
        own[address] == on_server.get(_place(unquote(address))) for address in addresses
    )
    return addresses if is_same else None


def partition_columns(frame: DataFrame) -> list[str]:
    """Return the columns in the names of the folders that the frame reads, below the paths that it names."""
    source = _parquet_source(frame)
    if source is None:
        return []
    names: dict[str, None] = {}
    for address in frame.inputFiles():
        names |= dict.fromkeys(named_folders(_below(source, address)))
    return list(names)


def _below(source: Any, address: str) -> str:
    """Return the path of a file below the folder that a data source names, or "" if it is elsewhere."""
    options = {name.lower(): text for name, text in (source._options or {}).items()}
    roots = [options["basepath"]] if "basepath" in options else source._paths or []
    place = _place(unquote(address))
    for root in map(_place, roots):
        if place == root:
            return place.rpartition("/")[2]
        if place.startswith(f"{root.rstrip('/')}/"):
            return place[len(root.rstrip("/")) + 1 :]
    return ""


def _parquet_source(frame: Any) -> Any | None:
    """Return the data source that the frame's plan reads, or None if it does anything else."""
    from pyspark.sql.connect.plan import DataSource, SubqueryAlias

    plan = frame._plan
    while isinstance(plan, SubqueryAlias):
        plan = plan._child
    if not isinstance(plan, DataSource) or (plan._format or "parquet") != "parquet" or plan._predicates:
        return None
    options = {name.lower() for name in plan._options or {}}
    return plan if options.isdisjoint(_OTHER_OPTIONS) else None


def _versions_on_server(frame: DataFrame, paths: list[str]) -> Mapping[str, _Version]:
    """Return the versions of all files below the paths, by place; no file is opened."""
    files = frame.sparkSession.read.format("binaryFile").option("recursiveFileLookup", "true").load(paths)
    rows = files.selectExpr("path", "length", "unix_millis(modificationTime) AS modified").collect()
    return {_place(row.path): (row.length, row.modified) for row in rows}


def _own_versions(addresses: Iterable[str]) -> Mapping[str, _Version] | None:
    """Return the versions of the files for this process, or None if one is not there."""
    from pyarrow.fs import LocalFileSystem

    addresses = list(addresses)
    storage = connected_storage(addresses)
    versions = {}
    for address in addresses:
        if is_remote(address):
            assert storage is not None
            system, inside = storage.opened(address)
            info = system.get_file_info(unquote(inside))
        else:
            info = LocalFileSystem().get_file_info(unquote(urlsplit(address).path))
        if not info.is_file or info.mtime is None:
            return None
        versions[address] = (info.size, _milliseconds(info.mtime))
    return versions


def _milliseconds(instant: datetime) -> int:
    utc = instant if instant.tzinfo is not None else instant.replace(tzinfo=UTC)
    return int(utc.timestamp() * 1000)


def _place(address: str) -> str:
    """Return an address without escapes as Spark's and other programs write it: `file:///a` is `file:/a`."""
    scheme, colon, path = address.partition(":")
    if colon and scheme in ("s3", "s3n"):
        scheme = "s3a"
    return f"{scheme}:/{path.lstrip('/')}" if colon else f"file:/{address.lstrip('/')}"
