"""Room for the name of one more end of an incident: handed over.

Revision ID: 0038
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0038"
down_revision = "0037"


def upgrade() -> None:
    """Widen the columns where a database enforces their length; SQLite does not."""
    if op.get_bind().dialect.name == "postgresql":
        op.alter_column("incident", "state", type_=sa.String(16), existing_type=sa.String(9))
        op.alter_column("incident_subject", "ended", type_=sa.String(16), existing_type=sa.String(9))
