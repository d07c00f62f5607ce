"""Incidents, their outbox, and what each channel holds.

Revision ID: 0001
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from dq.store.schema import Json, UtcDateTime

revision = "0001"
down_revision = None

_OPEN = sa.text("resolved_at IS NULL")


def upgrade() -> None:
    """Make the tables of the alerts room."""
    op.create_table(
        "incident",
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("contract", sa.Text, nullable=False),
        sa.Column("object", sa.Text, nullable=False),
        sa.Column("group_id", sa.Text, nullable=False),
        sa.Column("severity", sa.String(8), nullable=False),
        sa.Column("title", sa.Text, nullable=False),
        sa.Column("state", sa.String(8), nullable=False),
        sa.Column("revision", sa.Integer, nullable=False),
        sa.Column("breaches", sa.Integer, nullable=False),
        sa.Column("opened_at", UtcDateTime, nullable=False),
        sa.Column("acked_at", UtcDateTime),
        sa.Column("acked_by", sa.Text),
        sa.Column("resolved_at", UtcDateTime),
        sa.PrimaryKeyConstraint("id", name="pk_incident"),
    )
    op.create_index(
        "uq_incident_open",
        "incident",
        ["contract", "object", "group_id"],
        unique=True,
        sqlite_where=_OPEN,
        postgresql_where=_OPEN,
    )
    op.create_index("ix_incident_key", "incident", ["contract", "object", "group_id", "opened_at"])
    op.create_table(
        "incident_subject",
        sa.Column("incident_id", sa.String(36), nullable=False),
        sa.Column("subject", sa.Text, nullable=False),
        sa.Column("opened_at", UtcDateTime, nullable=False),
        sa.Column("closed_at", UtcDateTime),
        sa.Column("facts", Json, nullable=False),
        sa.Column("closing_facts", Json, nullable=False),
        sa.PrimaryKeyConstraint("incident_id", "subject", name="pk_incident_subject"),
        sa.ForeignKeyConstraint(
            ["incident_id"], ["incident.id"], name="fk_incident_subject_incident_id_incident"
        ),
    )
    op.create_table(
        "incident_event",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("incident_id", sa.String(36), nullable=False),
        sa.Column("at", UtcDateTime, nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("revision", sa.Integer, nullable=False),
        sa.Column("subject", sa.Text, nullable=False),
        sa.Column("detail", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_incident_event"),
        sa.ForeignKeyConstraint(
            ["incident_id"], ["incident.id"], name="fk_incident_event_incident_id_incident"
        ),
    )
    op.create_index("ix_incident_event_incident_id", "incident_event", ["incident_id"])
    op.create_table(
        "outbox",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("incident_id", sa.String(36), nullable=False),
        sa.Column("channel", sa.Text, nullable=False),
        sa.Column("target", sa.Text, nullable=False),
        sa.Column("operation", sa.String(32), nullable=False),
        sa.Column("revision", sa.Integer, nullable=False),
        sa.Column("state", sa.String(9), nullable=False),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("not_before", UtcDateTime, nullable=False),
        sa.Column("lease_until", UtcDateTime),
        sa.Column("tried_at", UtcDateTime),
        sa.Column("rendered", sa.Integer),
        sa.Column("looks", sa.Integer, nullable=False),
        sa.Column("repeat", sa.Boolean, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_outbox"),
        sa.ForeignKeyConstraint(["incident_id"], ["incident.id"], name="fk_outbox_incident_id_incident"),
        sa.UniqueConstraint(
            "incident_id",
            "channel",
            "target",
            "operation",
            "revision",
            name="uq_outbox_incident_id_channel_target_operation_revision",
        ),
    )
    op.create_index("ix_outbox_state", "outbox", ["state", "not_before"])
    op.create_table(
        "message",
        sa.Column("incident_id", sa.String(36), nullable=False),
        sa.Column("channel", sa.Text, nullable=False),
        sa.Column("target", sa.Text, nullable=False),
        sa.Column("place", sa.Text, nullable=False),
        sa.Column("reference", sa.Text, nullable=False),
        sa.Column("created_revision", sa.Integer, nullable=False),
        sa.Column("revision", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("incident_id", "channel", "target", name="pk_message"),
        sa.ForeignKeyConstraint(["incident_id"], ["incident.id"], name="fk_message_incident_id_incident"),
    )
    op.create_table(
        "channel_pause",
        sa.Column("channel", sa.Text, nullable=False),
        sa.Column("until", UtcDateTime, nullable=False),
        sa.PrimaryKeyConstraint("channel", name="pk_channel_pause"),
    )
