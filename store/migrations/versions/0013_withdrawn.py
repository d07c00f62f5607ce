"""Where a contract was, since when it is gone, and what keeps a delivery from being seen.

Revision ID: 0013
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from dq.store.schema import UtcDateTime

revision = "0013"
down_revision = "0012"


def upgrade() -> None:
    """Add the columns; the next tick fills them."""
    op.add_column("contract_holder", sa.Column("registry", sa.Text))
    op.add_column("contract_holder", sa.Column("gone_since", UtcDateTime))
    op.add_column("cycle", sa.Column("blind", sa.Text))
