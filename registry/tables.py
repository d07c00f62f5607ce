"""The tables of this room, on the store's shared MetaData."""

from __future__ import annotations

from sqlalchemy import Column, ForeignKeyConstraint, Index, Integer, String, Table, Text

from dq.store.schema import Json, UtcDateTime, metadata

# The local catalog.
catalog_table = Table(
    "catalog_table",
    metadata,
    Column("database_name", Text, primary_key=True),
    Column("name", Text, primary_key=True),
    # Grows by one with every write: who writes says which version was read.
    Column("version", Integer, nullable=False),
    Column("spec", Json, nullable=False),
)

catalog_partition = Table(
    "catalog_partition",
    metadata,
    Column("database_name", Text, primary_key=True),
    Column("table_name", Text, primary_key=True),
    # As in a path: `flight_date=2026-11-20/hour=3`, escaped.
    Column("partition_path", Text, primary_key=True),
    Column("part_values", Json, nullable=False),
    Column("location", Text, nullable=False),
    ForeignKeyConstraint(
        ["database_name", "table_name"],
        ["catalog_table.database_name", "catalog_table.name"],
        name="fk_catalog_partition_table",
        ondelete="CASCADE",
    ),
)

# What dq applied last, per catalog: tells drift from a changed contract, and finds marks that were wiped.
catalog_applied = Table(
    "catalog_applied",
    metadata,
    Column("catalog", Text, primary_key=True),
    Column("database_name", Text, primary_key=True),
    Column("name", Text, primary_key=True),
    Column("spec", Json, nullable=False),
)

# What runs did, as it happened: rows are only added.
catalog_log = Table(
    "catalog_log",
    metadata,
    Column("number", Integer, primary_key=True, autoincrement=True),
    Column("run_id", String(36), nullable=False),
    Column("at", UtcDateTime, nullable=False),
    Column("registry", Text, nullable=False),
    Column("catalog", Text, nullable=False),
    Column("database_name", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("grade", Text, nullable=False),
    Column("ending", Text, nullable=False),
    Column("before", Text, nullable=False),
    Column("after", Text, nullable=False),
    Column("error", Text, nullable=False),
    # How a line that a run began has ended.
    Index("ix_catalog_log_run", "run_id", "database_name", "name"),
)

# The journal of publishing: one row per step that is done.
publish_step = Table(
    "publish_step",
    metadata,
    Column("event_id", String(36), primary_key=True),
    Column("step", String(12), primary_key=True),
    Column("at", UtcDateTime, nullable=False),
)
