"""What is said later, and why: escalations, quiet hours, reminders.

Revision ID: 0022
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from dq.store.schema import UtcDateTime

revision = "0022"
down_revision = "0021"


def upgrade() -> None:
    """Add the columns; what waits in the outbox already is said at once."""
    op.add_column("incident", sa.Column("open_since", UtcDateTime))
    op.add_column("outbox", sa.Column("wait", sa.String(10), nullable=False, server_default=""))
    op.add_column("outbox", sa.Column("quiet", sa.Text, nullable=False, server_default=""))
