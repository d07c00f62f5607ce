"""The table of what metadata said, on the store's shared MetaData."""

from __future__ import annotations

from sqlalchemy import Column, String, Table, Text

from dq.store.schema import Json, metadata

table_metadata = Table(
    "table_metadata",
    metadata,
    # Of the contract's text and of all that decides where its data lies.
    Column("digest", String(64), primary_key=True),
    Column("object", Text, primary_key=True),
    # The contract's key.
    Column("contract", Text, nullable=False),
    # Of the names, sizes and times of the table's files; empty: to be looked at again.
    Column("print", String(64), nullable=False),
    Column("place", Json, nullable=False),
    Column("facts", Json, nullable=False),
)
