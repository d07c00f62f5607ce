"""Incidents, what is said of them, and silences."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from dq.store.migrations.first_release.columns import ID, filled, keyed, nullable, partial_index, reference
from dq.store.schema import Json, UtcDateTime


def make() -> None:
    """Make them."""
    _incidents()
    _messages()


def _incidents() -> None:
    keyed(
        "incident",
        ["id"],
        [
            *filled(ID, "id"),
            *filled(sa.Text, "contract", "object", "group_id"),
            *filled(sa.String(8), "severity"),
            *filled(sa.Text, "title"),
            *filled(sa.String(9), "state"),
            *filled(sa.Integer, "revision", "breaches"),
            *filled(UtcDateTime, "opened_at"),
            *nullable(UtcDateTime, "acked_at"),
            *nullable(sa.Text, "acked_by"),
            *nullable(UtcDateTime, "resolved_at", "silenced_until"),
            *nullable(sa.Text, "silenced_why"),
            *nullable(UtcDateTime, "open_since"),
            *nullable(sa.Integer, "period_seconds"),
            *nullable(Json, "changes"),
            *nullable(UtcDateTime, "flapping_since"),
            *nullable(ID, "root_id"),
            *nullable(sa.Integer, "grace_seconds"),
            *nullable(Json, "holds_up"),
        ],
    )
    open_one = ["contract", "object", "group_id"]
    partial_index("uq_incident_open", "incident", open_one, "resolved_at IS NULL", unique=True)
    op.create_index("ix_incident_key", "incident", [*open_one, "opened_at"])
    op.create_index("ix_incident_root_id", "incident", ["root_id"])
    keyed(
        "incident_subject",
        ["incident_id", "subject"],
        [
            *filled(ID, "incident_id"),
            *filled(sa.Text, "subject"),
            *filled(UtcDateTime, "opened_at"),
            *nullable(UtcDateTime, "closed_at"),
            *filled(Json, "facts", "closing_facts"),
            *nullable(sa.String(9), "ended"),
        ],
        reference("incident_subject", "incident_id", "incident"),
    )
    keyed(
        "incident_event",
        ["id"],
        [
            *filled(sa.Integer, "id"),
            *filled(ID, "incident_id"),
            *filled(UtcDateTime, "at"),
            *filled(sa.String(16), "kind"),
            *filled(sa.Integer, "revision"),
            *filled(sa.Text, "subject", "detail"),
        ],
        reference("incident_event", "incident_id", "incident"),
    )
    op.create_index("ix_incident_event_incident_id", "incident_event", ["incident_id"])
    keyed(
        "silence",
        ["id"],
        [
            *filled(sa.Integer, "id"),
            *filled(sa.Text, "contract", "object", "group_id", "reason", "by"),
            *filled(UtcDateTime, "at", "until"),
            *nullable(UtcDateTime, "ended_at"),
            *nullable(sa.Text, "ended_by"),
        ],
    )
    op.create_index("ix_silence_until", "silence", ["until"])


def _messages() -> None:
    once = ["incident_id", "channel", "target", "operation", "revision"]
    keyed(
        "outbox",
        ["id"],
        [
            *filled(sa.Integer, "id"),
            *filled(ID, "incident_id"),
            *filled(sa.Text, "channel", "target"),
            *filled(sa.String(32), "operation"),
            *filled(sa.Integer, "revision"),
            *filled(sa.String(9), "state"),
            *filled(sa.Integer, "attempt"),
            *filled(UtcDateTime, "not_before"),
            *nullable(UtcDateTime, "lease_until", "tried_at"),
            *nullable(sa.Integer, "rendered"),
            *filled(sa.Integer, "looks"),
            *filled(sa.Boolean, "repeat"),
            *filled(sa.Text, "reason"),
            sa.Column("again", sa.Boolean, nullable=False, server_default=sa.false()),
            sa.Column("digest", ID, sa.ForeignKey("incident.id")),
            sa.Column("wait", sa.String(10), nullable=False, server_default=""),
            sa.Column("quiet", sa.Text, nullable=False, server_default=""),
            *nullable(sa.Text, "reference"),
        ],
        reference("outbox", "incident_id", "incident"),
        sa.UniqueConstraint(*once, name=f"uq_outbox_{'_'.join(once)}"),
    )
    op.create_index("ix_outbox_state", "outbox", ["state", "not_before"])
    op.create_index("ix_outbox_digest", "outbox", ["digest"])
    keyed(
        "message",
        ["incident_id", "channel", "target"],
        [
            *filled(ID, "incident_id"),
            *filled(sa.Text, "channel", "target", "place", "reference"),
            *filled(sa.Integer, "created_revision", "revision"),
            sa.Column("thread", sa.Text, nullable=False, server_default=""),
        ],
        reference("message", "incident_id", "incident"),
    )
    pause = [*filled(sa.Text, "channel", "target"), *filled(UtcDateTime, "until")]
    keyed("channel_pause", ["channel", "target"], pause)
    keyed("heartbeat", ["name"], [*filled(sa.String(16), "name"), *filled(UtcDateTime, "at")])
