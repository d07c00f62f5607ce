"""What was published, by revision, and what consumers are still to be told.

Revision ID: 0028
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from dq.store.schema import Count, Json, UtcDateTime

revision = "0028"
down_revision = "0027"

# Until now an event was told once all four steps were done. Its id was the delivery's too; publishing knows
# that old id again, so that nothing is told twice.
_KEEP = """
    INSERT INTO publication (id, delivery, revision, rows, run, begun_at, published_at)
    SELECT done.event_id, done.event_id, 1, receipt.rows, '', COALESCE(begun.at, done.at), done.at
    FROM publish_step AS done
    LEFT JOIN publish_step AS begun ON begun.event_id = done.event_id AND begun.step = 'begun'
    LEFT JOIN receipt ON receipt.id = done.event_id
    WHERE done.step = 'notify'
"""


def upgrade() -> None:
    """Make the tables, keep what was published, and let the journal of steps go."""
    if op.get_bind().dialect.name == "postgresql":
        op.alter_column("receipt", "rows", type_=Count)
    op.add_column("receipt", sa.Column("revision", sa.Integer, nullable=False, server_default="1"))
    op.create_table(
        "publication",
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("delivery", sa.String(36), nullable=False),
        sa.Column("revision", sa.Integer, nullable=False),
        sa.Column("rows", Count),
        sa.Column("previous_rows", Count),
        sa.Column("run", sa.Text, nullable=False),
        sa.Column("begun_at", UtcDateTime, nullable=False),
        sa.Column("published_at", UtcDateTime, nullable=False),
        sa.UniqueConstraint("delivery", "revision", name="uq_publication_revision"),
        sa.PrimaryKeyConstraint("id", name="pk_publication"),
    )
    op.create_index("ix_publication_published_at", "publication", ["published_at"])
    op.create_table(
        "publication_begun",
        sa.Column("delivery", sa.String(36), nullable=False),
        sa.Column("at", UtcDateTime, nullable=False),
        sa.PrimaryKeyConstraint("delivery", name="pk_publication_begun"),
    )
    op.create_table(
        "consumer_notice",
        sa.Column("number", sa.Integer, nullable=False, autoincrement=True),
        sa.Column("event_id", sa.String(36), nullable=False),
        sa.Column("target", sa.Text, nullable=False),
        sa.Column("body", sa.Text, nullable=False),
        sa.Column("attributes", Json, nullable=False),
        sa.Column("written_at", UtcDateTime, nullable=False),
        sa.Column("taken_until", UtcDateTime),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("problem", sa.Text, nullable=False),
        sa.Column("sent_at", UtcDateTime),
        sa.UniqueConstraint("event_id", "target", name="uq_consumer_notice_target"),
        sa.PrimaryKeyConstraint("number", name="pk_consumer_notice"),
    )
    op.create_index("ix_consumer_notice_sent_at", "consumer_notice", ["sent_at"])
    waiting = sa.text("sent_at IS NULL")
    op.create_index(
        "ix_consumer_notice_waiting",
        "consumer_notice",
        ["target"],
        sqlite_where=waiting,
        postgresql_where=waiting,
    )
    op.execute(_KEEP)
    op.drop_table("publish_step")
