"""Runs of checks on what is staged, with their verdict: no reader sees that data yet.

Revision ID: 0032
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0032"
down_revision = "0031"


def upgrade() -> None:
    """Add the columns; all runs before were on what readers saw."""
    op.add_column("check_run", sa.Column("staged", sa.Text))
    op.add_column("check_run", sa.Column("verdict", sa.String(16)))
