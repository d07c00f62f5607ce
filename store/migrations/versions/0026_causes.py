"""Which product is made from which, and which incident waits for which.

Revision ID: 0026
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from dq.store.schema import Json

revision = "0026"
down_revision = "0025"


def upgrade() -> None:
    """Add the columns and the table; the next tick fills them."""
    op.add_column("incident", sa.Column("root_id", sa.String(36)))
    op.add_column("incident", sa.Column("grace_seconds", sa.Integer))
    op.add_column("incident", sa.Column("holds_up", Json))
    op.create_index(op.f("ix_incident_root_id"), "incident", ["root_id"])
    op.create_table(
        "lineage",
        sa.Column("contract", sa.Text, nullable=False),
        sa.Column("digest", sa.Text, nullable=False),
        sa.Column("inputs", Json),
        sa.PrimaryKeyConstraint("contract", name=op.f("pk_lineage")),
    )
