"""Results with where their answers were found: in the schema, in statistics, in the rows.

Revision ID: 0036
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0036"
down_revision = "0035"


def upgrade() -> None:
    """Add the column; of results of before, nobody noted it."""
    op.add_column("check_result", sa.Column("answered_by", sa.String(10)))
