"""What a clause measured, by groups, for later runs to compare with.

Revision ID: 0011
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from dq.store.schema import Json

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    """Add the column; earlier results have nothing in it."""
    op.add_column("check_result", sa.Column("measured", Json))
