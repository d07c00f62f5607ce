"""The newest delivery of each promise, and the contracts of which nothing is due.

Revision ID: 0014
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from dq.store.schema import UtcDateTime

revision = "0014"
down_revision = "0013"

_FILLED = """
UPDATE slo_watermark SET delivered_at = (
    SELECT max(cycle.delivered_at) FROM cycle
    WHERE cycle.contract = slo_watermark.contract AND cycle.object = slo_watermark.object
        AND cycle.slo = slo_watermark.slo
)
"""


def upgrade() -> None:
    """Add the column, and fill it from the cycles; the next tick fills the table."""
    op.add_column("slo_watermark", sa.Column("delivered_at", UtcDateTime))
    op.execute(_FILLED)
    op.create_table(
        "resting_contract",
        sa.Column("file", sa.Text, nullable=False),
        sa.Column("content", sa.String(64), nullable=False),
        sa.Column("terms", sa.String(64), nullable=False),
        sa.Column("contract", sa.Text, nullable=False),
        sa.Column("slos", sa.Integer, nullable=False),
        sa.Column("until", UtcDateTime),
        sa.PrimaryKeyConstraint("file", name=op.f("pk_resting_contract")),
    )
