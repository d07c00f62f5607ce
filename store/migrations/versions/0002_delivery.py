"""Cycles with their events and receipts, and the results of checks.

Revision ID: 0002
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from dq.store.schema import Json, UtcDateTime

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Make the tables of the dataquality room."""
    _deliveries()
    _checks()


def _deliveries() -> None:
    op.create_table(
        "slo_watermark",
        sa.Column("contract", sa.Text, nullable=False),
        sa.Column("object", sa.Text, nullable=False),
        sa.Column("slo", sa.Text, nullable=False),
        sa.Column("through", UtcDateTime, nullable=False),
        sa.PrimaryKeyConstraint("contract", "object", "slo", name="pk_slo_watermark"),
    )
    op.create_table(
        "cycle",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("contract", sa.Text, nullable=False),
        sa.Column("object", sa.Text, nullable=False),
        sa.Column("slo", sa.Text, nullable=False),
        sa.Column("due_at", UtcDateTime, nullable=False),
        sa.Column("breach_at", UtcDateTime, nullable=False),
        sa.Column("nominal", sa.String(32), nullable=False),
        sa.Column("note", sa.String(16), nullable=False),
        sa.Column("partitions", Json, nullable=False),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("delivered_at", UtcDateTime),
        sa.Column("first_seen_at", UtcDateTime),
        sa.Column("source", sa.String(8)),
        sa.Column("told", sa.Boolean, nullable=False),
        sa.Column("contract_version", sa.Text, nullable=False),
        sa.Column("tzdata", sa.String(16), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_cycle"),
        sa.UniqueConstraint(
            "contract", "object", "slo", "due_at", name="uq_cycle_contract_object_slo_due_at"
        ),
    )
    op.create_index("ix_cycle_status", "cycle", ["status", "contract"])
    op.create_table(
        "cycle_event",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("cycle_id", sa.Integer, nullable=False),
        sa.Column("at", UtcDateTime, nullable=False),
        sa.Column("before", sa.String(16), nullable=False),
        sa.Column("after", sa.String(16), nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_cycle_event"),
        sa.ForeignKeyConstraint(["cycle_id"], ["cycle.id"], name="fk_cycle_event_cycle_id_cycle"),
    )
    op.create_index("ix_cycle_event_cycle_id", "cycle_event", ["cycle_id"])
    op.create_table(
        "receipt",
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("contract", sa.Text, nullable=False),
        sa.Column("object", sa.Text, nullable=False),
        sa.Column("partition", sa.Text, nullable=False),
        sa.Column("due_at", UtcDateTime),
        sa.Column("delivered_at", UtcDateTime, nullable=False),
        sa.Column("rows", sa.Integer),
        sa.Column("contract_version", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_receipt"),
    )
    op.create_index("ix_receipt_what", "receipt", ["contract", "object", "partition"])


def _checks() -> None:
    op.create_table(
        "check_run",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("contract", sa.Text, nullable=False),
        sa.Column("object", sa.Text, nullable=False),
        sa.Column("contract_version", sa.Text, nullable=False),
        sa.Column("scope", sa.Text, nullable=False),
        sa.Column("at", UtcDateTime, nullable=False),
        sa.Column("jobs", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_check_run"),
    )
    op.create_index("ix_check_run_what", "check_run", ["contract", "object", "at"])
    op.create_table(
        "check_result",
        sa.Column("run_id", sa.Integer, nullable=False),
        sa.Column("clause", sa.Text, nullable=False),
        sa.Column("check", sa.Text, nullable=False),
        sa.Column("property", sa.Text, nullable=False),
        sa.Column("status", sa.String(8), nullable=False),
        sa.Column("severity", sa.String(8), nullable=False),
        sa.Column("observed", sa.Text, nullable=False),
        sa.Column("allowed", sa.Text, nullable=False),
        sa.Column("message", sa.Text, nullable=False),
        sa.Column("value", sa.Float),
        sa.Column("samples", Json, nullable=False),
        sa.PrimaryKeyConstraint("run_id", "clause", "check", name="pk_check_result"),
        sa.ForeignKeyConstraint(["run_id"], ["check_run.id"], name="fk_check_result_run_id_check_run"),
    )
