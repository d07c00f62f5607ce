"""SQL: the tables of the `CREATE TABLE` statements in a file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from dq.contracts.outcome import ReadError, UsageError
from dq.lake.storage import read_limited
from dq.registry.importing import ImportedColumn, ImportedTable, ImportKind, OdcsKeys, declared_type

if TYPE_CHECKING:
    from dq.contracts.sql.ddl import DdlColumn, DdlPart, DdlTable

_MAX_BYTES = 16 << 20
_SPARK = "spark"


def read(source: str) -> list[ImportedTable]:
    """Read all tables of the file. `FILE@DIALECT` names a dialect other than Spark's, e.g. `@postgres`.

    A type that Spark does not have becomes a string. Raises UsageError for a file that creates no table.
    """
    from dq.contracts.sql import ddl

    file, _, dialect = source.rpartition("@")
    if not file or dialect not in ddl.dialects():
        file, dialect = source, _SPARK
    data = read_limited(file, _MAX_BYTES)
    try:
        ddl_tables, unread = ddl.tables(data.decode(), dialect)
    except (ddl.NotDdl, UnicodeDecodeError) as error:
        dialects = ", ".join(ddl.dialects())
        raise ReadError(
            f"{file} is not valid {dialect} SQL: {error}.",
            f"Pass its dialect, e.g. {file}@postgres: {dialects}.",
        ) from error
    if not ddl_tables:
        reason = f": {unread[0]}" if unread else ""
        raise UsageError(f"{file} creates no table with columns{reason}.", "Export it with its columns.")
    imported = [_table(ddl_table) for ddl_table in ddl_tables]
    missing = tuple(f"a table is created without readable columns: {statement}" for statement in unread)
    return [replace(imported[0], unsupported=imported[0].unsupported + missing), *imported[1:]]


def _table(ddl_table: DdlTable) -> ImportedTable:
    columns = [_column(column, ddl_table.keys) for column in ddl_table.columns]
    by_name = {column.name.lower(): column for column in columns}
    partitions = tuple(by_name[name.lower()] for name in ddl_table.partitions if name.lower() in by_name)
    return ImportedTable(
        ddl_table.name,
        tuple(column for column in columns if column not in partitions),
        partitions,
        ddl_table.location,
        ddl_table.format,
        ddl_table.comment,
        ddl_table.keys,
        unsupported=ddl_table.unsupported,
    )


def _column(column: DdlColumn, keys: tuple[str, ...]) -> ImportedColumn:
    kind, evidence = declared_type(column.type, column.sql_type or "nothing", column.notes)
    parts = {path: _part_keys(part) for path, part in column.nested.items()} if column.type else {}
    own: Mapping[str, OdcsKeys] = {"": {"logicalType": column.logical}} if column.logical else {}
    required = column.required or column.name in keys
    return ImportedColumn(column.name, kind, column.comment, required, evidence, {**parts, **own})


def _part_keys(part: DdlPart) -> OdcsKeys:
    comment: OdcsKeys = {"description": part.comment} if part.comment else {}
    return {**comment, "required": True} if part.required else comment


KIND = ImportKind(
    "sql", "a file with CREATE TABLE statements; FILE@DIALECT if it is not Spark SQL", read, (".sql",)
)
