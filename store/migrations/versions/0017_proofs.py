"""What each verdict rests on, who excused a cycle, and what is left of pruned ones.

Revision ID: 0017
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from dq.store.schema import Json, UtcDateTime

revision = "0017"
down_revision = "0016"


def upgrade() -> None:
    """Add columns and tables; cycles of before have no proof."""
    op.add_column("cycle", sa.Column("contract_hash", sa.String(64)))
    op.add_column("cycle", sa.Column("calendar", sa.String(32)))
    op.add_column("cycle", sa.Column("dq", sa.String(32)))
    op.add_column("cycle", sa.Column("excuse", sa.Text))
    op.add_column("cycle_event", sa.Column("proof", Json))
    op.create_table(
        "cycle_excuse",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("contract", sa.Text, nullable=False),
        sa.Column("object", sa.Text, nullable=False),
        sa.Column("slo", sa.Text, nullable=False),
        sa.Column("due_at", UtcDateTime, nullable=False),
        sa.Column("at", UtcDateTime, nullable=False),
        sa.Column("by", sa.Text, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("undone", sa.Boolean, nullable=False),
    )
    columns = ["contract", "object", "slo", "due_at"]
    op.create_index("ix_cycle_excuse_due_at", "cycle_excuse", columns)
    op.create_table(
        "cycle_month",
        sa.Column("contract", sa.Text, nullable=False),
        sa.Column("object", sa.Text, nullable=False),
        sa.Column("slo", sa.Text, nullable=False),
        sa.Column("month", sa.String(7), nullable=False),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("cycles", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("contract", "object", "slo", "month", "status", name=op.f("pk_cycle_month")),
    )
