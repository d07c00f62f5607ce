"""What is held back of many misses at once, where data lies, and the watcher's last tick.

Revision ID: 0015
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from dq.store.schema import UtcDateTime

revision = "0015"
down_revision = "0014"


def upgrade() -> None:
    """Add the columns and the table; the next tick fills them."""
    op.add_column("cycle", sa.Column("held", sa.Text))
    op.add_column("cycle", sa.Column("held_until", UtcDateTime))
    op.add_column("slo_watermark", sa.Column("root", sa.Text))
    op.create_table(
        "heartbeat",
        sa.Column("name", sa.String(16), nullable=False),
        sa.Column("at", UtcDateTime, nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_heartbeat")),
    )
