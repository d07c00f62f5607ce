"""The terms of each promise that is watched, so that its standing can be counted without its contract.

Revision ID: 0024
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0024"
down_revision = "0023"


def upgrade() -> None:
    """Make the table; the next tick fills it, for which every contract is read once."""
    op.create_table(
        "slo_terms",
        sa.Column("contract", sa.Text, nullable=False),
        sa.Column("object", sa.Text, nullable=False),
        sa.Column("slo", sa.Text, nullable=False),
        sa.Column("product", sa.Text, nullable=False),
        sa.Column("objective", sa.String(32), nullable=False),
        sa.Column("window_seconds", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("contract", "object", "slo", name=op.f("pk_slo_terms")),
    )
    op.execute("DELETE FROM resting_part")
    op.execute("DELETE FROM resting_contract")
