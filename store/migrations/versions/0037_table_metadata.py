"""What the metadata of each table said when it was looked at last.

Revision ID: 0037
"""

from __future__ import annotations

import sqlalchemy as sa

from dq.store.migrations.first_release.columns import filled, keyed
from dq.store.schema import Json

revision = "0037"
down_revision = "0036"


def upgrade() -> None:
    """Make the table."""
    keyed(
        "table_metadata",
        ["digest", "object"],
        [
            *filled(sa.String(64), "digest"),
            *filled(sa.Text, "object", "contract"),
            *filled(sa.String(64), "print"),
            *filled(Json, "place", "facts"),
        ],
    )
