"""What is still missing of contracts that rest until something of it is seen.

Revision ID: 0021
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from dq.store.schema import UtcDateTime

revision = "0021"
down_revision = "0020"


def upgrade() -> None:
    """Add the column and the table; the next tick fills both."""
    op.add_column("resting_contract", sa.Column("since", UtcDateTime))
    op.create_table(
        "resting_part",
        sa.Column("file", sa.Text, nullable=False),
        sa.Column("cycle_id", sa.Integer, nullable=False, autoincrement=False),
        sa.Column("part", sa.Integer, nullable=False, autoincrement=False),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("told", sa.Boolean, nullable=False),
        sa.Column("held_until", UtcDateTime),
        sa.Column("label", sa.Text, nullable=False),
        sa.Column("root", sa.Text),
        sa.Column("path", sa.Text),
        sa.PrimaryKeyConstraint("file", "cycle_id", "part", name=op.f("pk_resting_part")),
    )
