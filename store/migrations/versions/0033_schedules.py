"""The schedules of EventBridge that dq made.

Revision ID: 0033
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0033"
down_revision = "0032"


def upgrade() -> None:
    """Add the table; of the schedules that stand there already none is dq's."""
    op.create_table(
        "schedule_entry",
        sa.Column("catalog", sa.Text, nullable=False),
        sa.Column("group_name", sa.Text, nullable=False),
        sa.Column("registry", sa.Text, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("contract", sa.Text, nullable=False),
        sa.Column("promise", sa.Text, nullable=False),
        sa.Column("digest", sa.Text, nullable=False),
        sa.Column("modified", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("catalog", "group_name", "registry", "name", name=op.f("pk_schedule_entry")),
    )
