"""What was published, by revision, and what consumers are still to be told."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from dq.store.migrations.first_release.columns import ID, filled, keyed, nullable, partial_index
from dq.store.schema import Count, Json, UtcDateTime


def make() -> None:
    """Make them."""
    keyed(
        "publication",
        ["id"],
        [
            *filled(ID, "id", "delivery"),
            *filled(sa.Integer, "revision"),
            *nullable(Count, "rows", "previous_rows"),
            *filled(sa.Text, "run"),
            *filled(UtcDateTime, "begun_at", "published_at"),
            *nullable(sa.Text, "folder"),
        ],
        sa.UniqueConstraint("delivery", "revision", name="uq_publication_revision"),
    )
    op.create_index("ix_publication_published_at", "publication", ["published_at"])
    keyed("publication_begun", ["delivery"], [*filled(ID, "delivery"), *filled(UtcDateTime, "at")])
    keyed(
        "consumer_notice",
        ["number"],
        [
            *filled(sa.Integer, "number"),
            *filled(ID, "event_id"),
            *filled(sa.Text, "target", "body"),
            *filled(Json, "attributes"),
            *filled(UtcDateTime, "written_at"),
            *nullable(UtcDateTime, "taken_until"),
            *filled(sa.Integer, "attempts"),
            *filled(sa.Text, "problem"),
            *nullable(UtcDateTime, "sent_at"),
        ],
        sa.UniqueConstraint("event_id", "target", name="uq_consumer_notice_target"),
    )
    op.create_index("ix_consumer_notice_sent_at", "consumer_notice", ["sent_at"])
    partial_index("ix_consumer_notice_waiting", "consumer_notice", ["target"], "sent_at IS NULL")
