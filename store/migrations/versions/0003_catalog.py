"""The local catalog, what was applied to any catalog, and the journal of publishing.

Revision ID: 0003
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from dq.store.schema import Json, UtcDateTime

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Make the tables of the registry room."""
    op.create_table(
        "catalog_table",
        sa.Column("database_name", sa.Text, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("spec", Json, nullable=False),
        sa.PrimaryKeyConstraint("database_name", "name", name="pk_catalog_table"),
    )
    op.create_table(
        "catalog_partition",
        sa.Column("database_name", sa.Text, nullable=False),
        sa.Column("table_name", sa.Text, nullable=False),
        sa.Column("partition_path", sa.Text, nullable=False),
        sa.Column("part_values", Json, nullable=False),
        sa.Column("location", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("database_name", "table_name", "partition_path", name="pk_catalog_partition"),
        sa.ForeignKeyConstraint(
            ["database_name", "table_name"],
            ["catalog_table.database_name", "catalog_table.name"],
            name="fk_catalog_partition_table",
            ondelete="CASCADE",
        ),
    )
    op.create_table(
        "catalog_applied",
        sa.Column("catalog", sa.Text, nullable=False),
        sa.Column("database_name", sa.Text, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("spec", Json, nullable=False),
        sa.PrimaryKeyConstraint("catalog", "database_name", "name", name="pk_catalog_applied"),
    )
    op.create_table(
        "publish_step",
        sa.Column("event_id", sa.String(36), nullable=False),
        sa.Column("step", sa.String(12), nullable=False),
        sa.Column("at", UtcDateTime, nullable=False),
        sa.PrimaryKeyConstraint("event_id", "step", name="pk_publish_step"),
    )
