"""What was shown of a cycle at each instant, since when it is recorded, and all ticks.

Revision ID: 0040
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from dq.store.migrations.first_release.columns import filled, keyed, nullable, reference
from dq.store.schema import Json, UtcDateTime

revision = "0040"
down_revision = "0039"


def upgrade() -> None:
    """Make the tables; cycles that changed before are read from their events."""
    keyed(
        "cycle_state",
        ["id"],
        [
            *filled(sa.Integer, "id", "cycle_id"),
            *filled(UtcDateTime, "at"),
            *filled(sa.String(16), "status"),
            *filled(sa.Text, "reason"),
            *nullable(UtcDateTime, "delivered_at", "first_seen_at"),
            *nullable(sa.String(8), "source"),
            *nullable(Json, "claims"),
            *nullable(UtcDateTime, "arriving_since", "gone_since", "anew_at"),
        ],
        reference("cycle_state", "cycle_id", "cycle"),
    )
    keyed(
        "past_tick",
        ["id"],
        [*filled(sa.Integer, "id"), *filled(sa.String(16), "name"), *filled(UtcDateTime, "at")],
    )
    op.create_index("ix_past_tick", "past_tick", ["name", "at"])
    op.add_column("cycle", sa.Column("recorded_at", UtcDateTime))
    op.create_index("ix_cycle_state_cycle_id", "cycle_state", ["cycle_id"])
