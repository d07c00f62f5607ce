"""Verdicts and sources of results in plain words.

Revision ID: 0048
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0048"
down_revision = "0047"

_VERDICTS = {"kept": "passed", "broken": "failed", "could not tell": "unknown"}


def upgrade() -> None:
    verdict, answered_by = sa.column("verdict", sa.Text), sa.column("answered_by", sa.Text)
    runs, results = sa.table("check_run", verdict), sa.table("check_result", answered_by)
    for old, new in _VERDICTS.items():
        op.execute(sa.update(runs).where(verdict == old).values(verdict=new))
    op.execute(sa.update(results).where(answered_by == "kept").values(answered_by="cache"))
