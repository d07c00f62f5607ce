"""Decisions on early warnings of deliveries, and the warnings.

Revision ID: 0046
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from dq.store.schema import UtcDateTime

revision = "0046"
down_revision = "0045"


def upgrade() -> None:
    op.create_table(
        "cycle_warning",
        sa.Column("contract", sa.Text, nullable=False),
        sa.Column("object", sa.Text, nullable=False),
        sa.Column("slo", sa.Text, nullable=False),
        sa.Column("due_at", UtcDateTime, nullable=False),
        sa.Column("breach_at", UtcDateTime, nullable=False),
        sa.Column("budget", sa.String(16), nullable=False),
        sa.Column("planned_at", UtcDateTime, nullable=False),
        sa.Column("warn_at", UtcDateTime),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("warned_at", UtcDateTime),
        sa.Column("closed_at", UtcDateTime),
        sa.PrimaryKeyConstraint("contract", "object", "slo", "due_at", name="pk_cycle_warning"),
    )
    for column in ("breach_at", "warned_at"):
        op.create_index(f"ix_cycle_warning_{column}", "cycle_warning", [column])
