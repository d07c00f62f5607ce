"""The tables of kept counts, on the store's shared MetaData."""

from __future__ import annotations

from sqlalchemy import Column, String, Table, Text

from dq.store.schema import Json, UtcDateTime, metadata

part_count = Table(
    "part_count",
    metadata,
    # The path of the table's data, and the address of one folder in it.
    Column("dataset", Text, primary_key=True),
    Column("folder", Text, primary_key=True),
    # Of the names, sizes and times of its files when they were counted.
    Column("print", String(64), nullable=False),
    # Counts of rows by the digest of their question.
    Column("counts", Json, nullable=False),
    Column("at", UtcDateTime, nullable=False),
)
