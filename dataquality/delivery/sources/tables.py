"""The tables of commits, on the store's shared MetaData."""

from __future__ import annotations

from sqlalchemy import Column, Table, Text

from dq.store.schema import Json, UtcDateTime, metadata

table_log = Table(
    "table_log",
    metadata,
    Column("place", Text, primary_key=True),
    # No commit since then is lacking in `table_commit`; NULL: none at all.
    Column("since", UtcDateTime),
)

table_commit = Table(
    "table_commit",
    metadata,
    Column("place", Text, primary_key=True),
    Column("ident", Text, primary_key=True),
    Column("at", UtcDateTime, nullable=False),
    # Lists of [[column, value] pairs, rows], one per partition that it brought rows into.
    Column("brought", Json, nullable=False),
    # Lists of [column, value] pairs, one per partition that it took data from; NULL: none.
    Column("took", Json),
)
