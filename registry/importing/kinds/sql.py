"""SQL: what `CREATE TABLE` statements of a file declare."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from dq.contracts.outcome import Unreadable, UsageError
from dq.lake.storage import content
from dq.registry.importing import FoundColumn, FoundTable, ImportKind, Said, declared

if TYPE_CHECKING:
    from dq.contracts.sql.ddl import DdlColumn, DdlPart, DdlTable

_MOST_BYTES = 16 << 20
_SPARK = "spark"


def read(source: str) -> list[FoundTable]:
    """Every table of the file. `FILE@DIALECT` names a dialect that is not Spark's, such as `@postgres`.

    A type that Spark does not have is a text. Raises UsageError for a file that creates no table.
    """
    from dq.contracts.sql import ddl

    file, _, dialect = source.rpartition("@")
    if not file or dialect not in ddl.dialects():
        file, dialect = source, _SPARK
    data = content(file, _MOST_BYTES)
    try:
        made, unread = ddl.tables(data.decode(), dialect)
    except (ddl.NotDdl, UnicodeDecodeError) as error:
        told = ", ".join(ddl.dialects())
        raise Unreadable(
            f"{file} is no SQL of {dialect}: {error}.", f"Name its dialect, such as {file}@postgres: {told}."
        ) from error
    if not made:
        told = f": {unread[0]}" if unread else ""
        raise UsageError(f"{file} creates no table with columns{told}.", "Export it with its columns.")
    found = [_table(one) for one in made]
    missing = tuple(f"a table is created without columns that can be read: {one}" for one in unread)
    return [replace(found[0], lost=found[0].lost + missing), *found[1:]]


def _table(one: DdlTable) -> FoundTable:
    columns = [_column(column, one.keys) for column in one.columns]
    by_name = {column.name.lower(): column for column in columns}
    partitions = tuple(by_name[name.lower()] for name in one.partitions if name.lower() in by_name)
    return FoundTable(
        one.name,
        tuple(column for column in columns if column not in partitions),
        partitions,
        one.location,
        one.format,
        one.comment,
        one.keys,
        lost=one.unsaid,
    )


def _column(column: DdlColumn, keys: tuple[str, ...]) -> FoundColumn:
    kind, evidence = declared(column.type, column.written or "nothing", column.notes)
    parts = {path: _said(part) for path, part in column.inside.items()} if column.type else {}
    own: Mapping[str, Said] = {"": {"logicalType": column.logical}} if column.logical else {}
    required = column.required or column.name in keys
    return FoundColumn(column.name, kind, column.comment, required, evidence, {**parts, **own})


def _said(part: DdlPart) -> Said:
    comment: Said = {"description": part.comment} if part.comment else {}
    return {**comment, "required": True} if part.required else comment


KIND = ImportKind("sql", "a file with CREATE TABLE statements; FILE@DIALECT where it is not Spark's", read)
