"""Runs of some clauses only, and counts of the folders of a table.

Revision ID: 0004
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from dq.store.schema import Json, UtcDateTime

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Let a run say which clauses it asked for, and keep what was counted."""
    op.add_column("check_run", sa.Column("rules", Json))
    op.create_table(
        "part_count",
        sa.Column("dataset", sa.Text, nullable=False),
        sa.Column("folder", sa.Text, nullable=False),
        sa.Column("print", sa.String(64), nullable=False),
        sa.Column("counts", Json, nullable=False),
        sa.Column("at", UtcDateTime, nullable=False),
        sa.PrimaryKeyConstraint("dataset", "folder", name="pk_part_count"),
    )
