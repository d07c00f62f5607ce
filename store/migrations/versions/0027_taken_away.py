"""Which partitions a commit of a table took data from.

Revision ID: 0027
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from dq.store.schema import Json

revision = "0027"
down_revision = "0026"


def upgrade() -> None:
    """Add the column; of commits that are known already nothing was taken away."""
    op.add_column("table_commit", sa.Column("took", Json))
