"""How often an incident's promise is due, and when it broke and ended of late.

Revision ID: 0025
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from dq.store.schema import Json, UtcDateTime

revision = "0025"
down_revision = "0024"


def upgrade() -> None:
    """Add the columns; what changed before is not counted."""
    op.add_column("incident", sa.Column("period_seconds", sa.Integer))
    op.add_column("incident", sa.Column("changes", Json))
    op.add_column("incident", sa.Column("flapping_since", UtcDateTime))
