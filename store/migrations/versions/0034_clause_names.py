"""Results by the names of their clauses: a path means another clause when a column or a rule moves.

Revision ID: 0034
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0034"
down_revision = "0033"


def upgrade() -> None:
    """Add the column; results of before have no name, and are found by their path as they were."""
    op.add_column("check_result", sa.Column("name", sa.Text))
