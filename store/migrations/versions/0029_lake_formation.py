"""What dq gave and tagged in Lake Formation.

Revision ID: 0029
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from dq.store.schema import Json

revision = "0029"
down_revision = "0028"


def upgrade() -> None:
    """Add the two tables; of what stands there already nothing is dq's."""
    op.create_table(
        "lake_grant",
        sa.Column("catalog", sa.Text, nullable=False),
        sa.Column("database_name", sa.Text, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("principal", sa.Text, nullable=False),
        sa.Column("filter", sa.Text, nullable=False),
        sa.Column("columns", Json, nullable=False),
        sa.Column("files", Json, nullable=False),
        sa.Column("expression", sa.Text, nullable=False),
        sa.Column("filter_columns", Json, nullable=False),
        sa.PrimaryKeyConstraint(
            "catalog", "database_name", "name", "principal", "filter", name=op.f("pk_lake_grant")
        ),
    )
    op.create_table(
        "lake_tag",
        sa.Column("catalog", sa.Text, nullable=False),
        sa.Column("tag", sa.Text, nullable=False),
        sa.Column("database_name", sa.Text, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("columns", Json, nullable=False),
        sa.PrimaryKeyConstraint("catalog", "tag", "database_name", "name", name=op.f("pk_lake_tag")),
    )
