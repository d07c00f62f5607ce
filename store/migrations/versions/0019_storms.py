"""Digests of many incidents, pauses of one target, and messages that take another's place.

Revision ID: 0019
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from dq.store.schema import UtcDateTime

revision = "0019"
down_revision = "0018"


def upgrade() -> None:
    """Add the columns; a pause that stands is forgotten, and learnt again from the channel."""
    op.add_column("outbox", sa.Column("again", sa.Boolean, nullable=False, server_default=sa.false()))
    # SQLite takes a foreign key with a new column in no other way.
    op.execute("ALTER TABLE outbox ADD COLUMN digest VARCHAR(36) REFERENCES incident (id)")
    op.create_index("ix_outbox_digest", "outbox", ["digest"])
    op.add_column("message", sa.Column("thread", sa.Text, nullable=False, server_default=""))
    op.drop_table("channel_pause")
    op.create_table(
        "channel_pause",
        sa.Column("channel", sa.Text, nullable=False),
        sa.Column("target", sa.Text, nullable=False),
        sa.Column("until", UtcDateTime, nullable=False),
        sa.PrimaryKeyConstraint("channel", "target", name=op.f("pk_channel_pause")),
    )
