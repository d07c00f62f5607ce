"""Answers of people to alarms of the check `unusual`.

Revision ID: 0047
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from dq.store.schema import UtcDateTime

revision = "0047"
down_revision = "0046"


def upgrade() -> None:
    op.create_table(
        "alarm_answer",
        sa.Column("run_id", sa.Integer, nullable=False),
        sa.Column("real", sa.Boolean, nullable=False),
        sa.Column("answered_by", sa.Text, nullable=False),
        sa.Column("answered_at", UtcDateTime, nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["check_run.id"], name="fk_alarm_answer_run_id_check_run"),
        sa.PrimaryKeyConstraint("run_id", name="pk_alarm_answer"),
    )
    op.create_index("ix_check_run_at", "check_run", ["at"])
