"""How far each error budget was told to be used.

Revision ID: 0016
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"


def upgrade() -> None:
    """Add the column; what was used before is told at the next change."""
    op.add_column("slo_watermark", sa.Column("budget", sa.String(16)))
