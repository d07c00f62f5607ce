"""Copy of a whole store into an empty one, also between SQLite and PostgreSQL."""

from __future__ import annotations

from contextlib import closing

import sqlalchemy as sa
from sqlalchemy.exc import DataError, IntegrityError

from dq.contracts.outcome import StoreError
from dq.store import engine, schema

# Rows read and inserted at once.
_BATCH = 1000
_TARGET_HINT = "Name a new file, or an empty database."


def copy_store(source_url: str, target_url: str) -> dict[str, int]:
    """Copy all rows of the store at `source_url` into the one at `target_url`, in one transaction.

    The source is read as of one moment and not changed. Tables are created in an empty target. Returns the
    number of rows by table.

    Raises StoreError if there is no source, if either has not this dq's schema, and if the target has rows;
    otherwise as `open_store`.
    """
    version = engine.stored_version(source_url)
    if version is None:
        raise StoreError(
            f"{engine.store_name(engine.parse_url(source_url))} does not exist.",
            "Pass the URL of an existing store first, and of the new one second.",
        )
    with (
        closing(engine.open_without_migrating(source_url)) as source,
        closing(engine.connect_store(target_url)) as target,
        source.read() as reader,
        target.write() as writer,
    ):
        target_name = engine.store_name(target.engine.url)
        _prepare_target(writer, target_name)
        copied = {table.name: _copy_table(reader, writer, table, target_name) for table in _tables()}
        _advance_sequences(writer)
    return copied


def _tables() -> list[sa.Table]:
    """Return all tables, those that others refer to first."""
    return schema.complete_metadata().sorted_tables


def _prepare_target(target: sa.Connection, name: str) -> None:
    """Create the tables of an empty target. Raises StoreError for another schema version, or rows."""
    version = engine.current_version(target)
    if version is None:
        engine.upgrade(target)
    elif version != engine.head():
        raise StoreError(f"{name} has schema {version}, but this dq requires {engine.head()}.", _TARGET_HINT)
    for table in _tables():
        if target.execute(sa.select(sa.exists(sa.select(table)))).scalar_one():
            raise StoreError(f"{name} is not empty: its table {table.name} has rows.", _TARGET_HINT)


def _copy_table(source: sa.Connection, target: sa.Connection, table: sa.Table, target_name: str) -> int:
    """Copy the rows of a table and return their number. Raises StoreError if the target rejects a row."""
    copied = 0
    # Rows have the names of the columns, and an insert takes their keys.
    keys = table.columns.keys()
    query = sa.select(table).execution_options(yield_per=_BATCH)
    for rows in source.execute(query).partitions():
        try:
            target.execute(table.insert(), [dict(zip(keys, row, strict=True)) for row in rows])
        except (DataError, IntegrityError) as error:
            # SQLite does not enforce the length of a text, for example.
            raise StoreError(
                f"{target_name} rejects a row of the table {table.name}; nothing was copied.",
                "Run 'dq store check' with the old store.",
            ) from error
        copied += len(rows)
    return copied


def _advance_sequences(target: sa.Connection) -> None:
    """Let PostgreSQL number new rows after the copied ones. SQLite does so by itself."""
    if target.dialect.name != "postgresql":
        return
    for table in _tables():
        column = table.autoincrement_column
        if column is not None:
            sequence = sa.func.pg_get_serial_sequence(table.name, column.name)
            highest = sa.select(sa.func.max(column)).scalar_subquery()
            # Not called: the next number is 1 if there are no rows.
            target.execute(sa.select(sa.func.setval(sequence, sa.func.coalesce(highest, 0) + 1, False)))
