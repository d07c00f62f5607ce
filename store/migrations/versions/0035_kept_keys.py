"""Keys that are kept of the folders of a table.

Revision ID: 0035
"""

from __future__ import annotations

import sqlalchemy as sa

from dq.store.migrations.first_release.columns import filled, keyed, nullable
from dq.store.schema import Count, Json, UtcDateTime

revision = "0035"
down_revision = "0034"


def upgrade() -> None:
    """Make their table."""
    keyed(
        "kept_keys",
        ["dataset", "question", "folder"],
        [
            *filled(sa.Text, "dataset"),
            *filled(sa.String(64), "question"),
            *filled(sa.Text, "folder"),
            *filled(sa.String(64), "print"),
            *filled(Count, "rows"),
            *nullable(Json, "members"),
            *filled(sa.LargeBinary, "codes"),
            *filled(UtcDateTime, "at"),
        ],
    )
