"""Of each receipt, the server that it was delivered to.

Revision ID: 0031
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0031"
down_revision = "0030"


def upgrade() -> None:
    """Add the column; what an older dq wrote counts for every server, as it did."""
    op.add_column("receipt", sa.Column("server", sa.Text))
