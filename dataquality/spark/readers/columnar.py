"""Parquet, ORC and Avro files as pyarrow opens them, and their columns, without a read of a row."""

from __future__ import annotations

import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, BinaryIO
from urllib.parse import unquote, urlsplit

from dq.contracts.access.address import is_remote
from dq.contracts.shared.errors import MissingTool, Unreadable
from dq.lake.compression import avro_header
from dq.lake.parquet import columns as parquet_columns
from dq.lake.storage import file_system, split

_AT_A_TIME = 16
# What pyarrow raises for a file that it cannot open, or for a system of files that it does not know.
NOT_OPENED = (OSError, ValueError, NotImplementedError, MissingTool)


@dataclass(frozen=True, slots=True)
class FileColumns:
    """The columns of one file, in their order: names, and types in any words.

    Two files whose types differ here may still mean the same type to another reader.
    """

    address: str
    names: tuple[str, ...]
    types: tuple[str, ...]


def opened(path: str) -> Any:
    """A file of a file system that pyarrow knows, by the address that Spark has for it.

    Raises OSError or ValueError when it cannot be opened.
    """
    if not is_remote(path):
        from pyarrow.fs import LocalFileSystem

        return LocalFileSystem().open_input_file(unquote(urlsplit(path).path))
    # The address is encoded, the path is not: a name with a `?` is a name and no query.
    root, inside = split(path)
    system, before = file_system(root)
    return system.open_input_file(before + unquote(inside))


def columns_of(files: Sequence[str], form: str) -> list[FileColumns]:
    """The columns of each file but the empty ones, of which a reader takes nothing.

    Raises Unreadable for one that cannot be looked at: it may hold any column.
    """
    remote = any(is_remote(file) for file in files)
    with ThreadPoolExecutor(_AT_A_TIME if remote else 1) as pool:
        return [told for told in pool.map(lambda file: _columns_of(file, form), files) if told is not None]


def _columns_of(file: str, form: str) -> FileColumns | None:
    import pyarrow.orc as orc
    import pyarrow.parquet as pq

    try:
        with opened(file) as source:
            if source.size() == 0:
                return None
            if form == "orc":
                schema = orc.ORCFile(source).schema
                return FileColumns(file, tuple(schema.names), tuple(map(str, schema.types)))
            if form == "avro":
                return _avro_columns(file, source)
            columns = parquet_columns(pq.read_metadata(source).schema)
    except NOT_OPENED as error:
        raise Unreadable(
            f"{file} cannot be looked at, and may hold any column.",
            "Write it anew, or take it away; a file that is no data has a name that begins with _ or a dot.",
        ) from error
    types = tuple(str(column.type or column.problem) for column in columns)
    return FileColumns(file, tuple(column.name for column in columns), types)


def _avro_columns(file: str, source: BinaryIO) -> FileColumns:
    """The fields of the records; as their types the whole schema, because one may name another one's type."""
    try:
        _, schema, _ = avro_header(source)
    except (EOFError, LookupError) as error:
        raise ValueError("it is no Avro") from error
    names = tuple(field["name"] for field in schema.get("fields", ())) if isinstance(schema, dict) else ()
    return FileColumns(file, names, (json.dumps(schema),) * len(names))
