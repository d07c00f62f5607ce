"""What an incident was called, and how severe it was, after each of its events.

Revision ID: 0039
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0039"
down_revision = "0038"


def upgrade() -> None:
    """Add the columns; what was written before stays without."""
    op.add_column("incident_event", sa.Column("severity", sa.String(8)))
    op.add_column("incident_event", sa.Column("title", sa.Text))
