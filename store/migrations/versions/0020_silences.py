"""What is silenced, until when, by whom and why.

Revision ID: 0020
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from dq.store.schema import UtcDateTime

revision = "0020"
down_revision = "0019"


def upgrade() -> None:
    """Add the table and the columns; nothing is silenced before somebody does."""
    op.add_column("incident", sa.Column("silenced_until", UtcDateTime))
    op.add_column("incident", sa.Column("silenced_why", sa.Text))
    op.create_table(
        "silence",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("contract", sa.Text, nullable=False),
        sa.Column("object", sa.Text, nullable=False),
        sa.Column("group_id", sa.Text, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("by", sa.Text, nullable=False),
        sa.Column("at", UtcDateTime, nullable=False),
        sa.Column("until", UtcDateTime, nullable=False),
        sa.Column("ended_at", UtcDateTime),
        sa.Column("ended_by", sa.Text),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_silence")),
    )
    op.create_index(op.f("ix_silence_until"), "silence", ["until"])
