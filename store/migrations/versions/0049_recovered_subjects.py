"""The end of a recovered subject in plain words.

Revision ID: 0049
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0049"
down_revision = "0048"


def upgrade() -> None:
    ended = sa.column("ended", sa.Text)
    subjects = sa.table("incident_subject", ended)
    op.execute(sa.update(subjects).where(ended == "kept").values(ended="recovered"))
