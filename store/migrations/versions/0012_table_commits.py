"""The commits of lakehouse tables as their logs told them.

Revision ID: 0012
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from dq.store.schema import Json, UtcDateTime

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    """Add the tables; the next tick fills them from the logs."""
    op.create_table(
        "table_log",
        sa.Column("place", sa.Text, nullable=False),
        sa.Column("since", UtcDateTime),
        sa.PrimaryKeyConstraint("place", name=op.f("pk_table_log")),
    )
    op.create_table(
        "table_commit",
        sa.Column("place", sa.Text, nullable=False),
        sa.Column("ident", sa.Text, nullable=False),
        sa.Column("at", UtcDateTime, nullable=False),
        sa.Column("brought", Json, nullable=False),
        sa.PrimaryKeyConstraint("place", "ident", name=op.f("pk_table_commit")),
    )
