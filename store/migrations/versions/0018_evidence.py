"""What each source said of a delivery, what is still arriving, and what was taken away again.

Revision ID: 0018
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from dq.store.schema import Json, UtcDateTime

revision = "0018"
down_revision = "0017"


def upgrade() -> None:
    """Add the columns; deliveries that are known already are not looked at again."""
    op.add_column("cycle", sa.Column("claims", Json))
    op.add_column("cycle", sa.Column("arriving_since", UtcDateTime))
    op.add_column("cycle", sa.Column("look_again_at", UtcDateTime))
    op.add_column("cycle", sa.Column("gone_since", UtcDateTime))
    op.add_column("cycle", sa.Column("anew_at", UtcDateTime))
    op.create_index("ix_cycle_look_again", "cycle", ["look_again_at"])
