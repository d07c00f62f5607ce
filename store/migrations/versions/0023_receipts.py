"""Of each message that was sent, what the channel calls it: so that a second copy of it can be told.

Revision ID: 0023
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0023"
down_revision = "0022"


def upgrade() -> None:
    """Add the column."""
    op.add_column("outbox", sa.Column("reference", sa.Text))
