"""The tables of kept answers, on the store's shared MetaData."""

from __future__ import annotations

from sqlalchemy import Column, LargeBinary, String, Table, Text

from dq.store.schema import Count, Json, UtcDateTime, metadata

part_count = Table(
    "part_count",
    metadata,
    # The path of the table's data, and the address of one folder in it.
    Column("dataset", Text, primary_key=True),
    Column("folder", Text, primary_key=True),
    # Of the names, sizes and times of its files when they were counted.
    Column("print", String(64), nullable=False),
    # Answers by the digest of their question.
    Column("counts", Json, nullable=False),
    Column("at", UtcDateTime, nullable=False),
)

kept_keys = Table(
    "kept_keys",
    metadata,
    Column("dataset", Text, primary_key=True),
    # The digest of the key's columns and of all else that their codes depend on.
    Column("question", String(64), primary_key=True),
    # The address of one folder, or empty for those that stand together.
    Column("folder", Text, primary_key=True),
    Column("print", String(64), nullable=False),
    Column("rows", Count, nullable=False),
    # The prints of the folders that stand together, by their address.
    Column("members", Json),
    # A Parquet file of one column, ascending.
    Column("codes", LargeBinary, nullable=False),
    Column("at", UtcDateTime, nullable=False),
)
