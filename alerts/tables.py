"""Tables of alerts on the store's shared MetaData."""

from __future__ import annotations

from enum import StrEnum

import sqlalchemy as sa

from dq.store.schema import Json, UtcDateTime, metadata

_OPEN = sa.text("resolved_at IS NULL")
# SQLite does not enforce lengths, so its column keeps the length of the first release.
_END = sa.String(9).with_variant(sa.String(16), "postgresql")

incident = sa.Table(
    "incident",
    metadata,
    sa.Column("id", sa.String(36), primary_key=True),
    sa.Column("contract", sa.Text, nullable=False),
    sa.Column("object", sa.Text, nullable=False),
    sa.Column("group_id", sa.Text, nullable=False),
    sa.Column("severity", sa.String(8), nullable=False),
    sa.Column("title", sa.Text, nullable=False),
    sa.Column("state", _END, nullable=False),
    # Incremented with every visible change.
    sa.Column("revision", sa.Integer, nullable=False),
    # Number of breaches; a subject that was breached twice counts twice.
    sa.Column("breaches", sa.Integer, nullable=False),
    sa.Column("opened_at", UtcDateTime, nullable=False),
    sa.Column("acked_at", UtcDateTime),
    sa.Column("acked_by", sa.Text),
    sa.Column("resolved_at", UtcDateTime),
    # When it was opened or reopened, by this machine's clock.
    sa.Column("open_since", UtcDateTime),
    # Interval of the promise's due instants.
    sa.Column("period_seconds", sa.Integer),
    # Instants of its last openings and closings, and since when it flaps.
    sa.Column("changes", Json),
    sa.Column("flapping_since", UtcDateTime),
    # The upstream incident that inhibits this one, and the grace after its end.
    sa.Column("root_id", sa.String(36), index=True),
    sa.Column("grace_seconds", sa.Integer),
    # The names of downstream products inhibited by this incident.
    sa.Column("holds_up", Json),
    # End of the silence, and its user and reason.
    sa.Column("silenced_until", UtcDateTime),
    sa.Column("silenced_why", sa.Text),
    sa.Index(
        "uq_incident_open",
        "contract",
        "object",
        "group_id",
        unique=True,
        sqlite_where=_OPEN,
        postgresql_where=_OPEN,
    ),
    sa.Index("ix_incident_key", "contract", "object", "group_id", "opened_at"),
)

incident_subject = sa.Table(
    "incident_subject",
    metadata,
    sa.Column("incident_id", sa.ForeignKey("incident.id"), primary_key=True),
    sa.Column("subject", sa.Text, primary_key=True),
    sa.Column("opened_at", UtcDateTime, nullable=False),
    sa.Column("closed_at", UtcDateTime),
    # Lists of [label, value].
    sa.Column("facts", Json, nullable=False),
    sa.Column("closing_facts", Json, nullable=False),
    # Kind of its end: recovered, excused, withdrawn, given_up, handed_over.
    sa.Column("ended", _END),
)

incident_event = sa.Table(
    "incident_event",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("incident_id", sa.ForeignKey("incident.id"), nullable=False, index=True),
    sa.Column("at", UtcDateTime, nullable=False),
    sa.Column("kind", sa.String(16), nullable=False),
    sa.Column("revision", sa.Integer, nullable=False),
    sa.Column("subject", sa.Text, nullable=False),
    sa.Column("detail", sa.Text, nullable=False),
    # The incident's after the event; NULL if unchanged, or written by an older dq.
    sa.Column("severity", sa.String(8)),
    sa.Column("title", sa.Text),
)

lineage = sa.Table(
    "lineage",
    metadata,
    sa.Column("contract", sa.Text, primary_key=True),
    sa.Column("digest", sa.Text, nullable=False),
    # Lists of [object, [[contract, object], ...]]; NULL if it declares no inputs.
    sa.Column("inputs", Json),
)

silence = sa.Table(
    "silence",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    # Shell patterns, one for each part of an incident's key.
    sa.Column("contract", sa.Text, nullable=False),
    sa.Column("object", sa.Text, nullable=False),
    sa.Column("group_id", sa.Text, nullable=False),
    sa.Column("reason", sa.Text, nullable=False),
    sa.Column("by", sa.Text, nullable=False),
    sa.Column("at", UtcDateTime, nullable=False),
    sa.Column("until", UtcDateTime, nullable=False, index=True),
    # Set if it was ended early.
    sa.Column("ended_at", UtcDateTime),
    sa.Column("ended_by", sa.Text),
)


class OutboxStatus(StrEnum):
    """State of an outbox row; the last three are final."""

    READY = "ready"
    SENDING = "sending"
    AMBIGUOUS = "ambiguous"
    SENT = "sent"
    DROPPED = "dropped"  # obsolete
    DEAD = "dead"  # rejected, or retried for too long


WAITING = (OutboxStatus.READY, OutboxStatus.SENDING, OutboxStatus.AMBIGUOUS)
IN_FLIGHT = (OutboxStatus.SENDING, OutboxStatus.AMBIGUOUS)


outbox = sa.Table(
    "outbox",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("incident_id", sa.ForeignKey("incident.id"), nullable=False),
    sa.Column("channel", sa.Text, nullable=False),
    sa.Column("target", sa.Text, nullable=False),
    # create, update or reply:<step>
    sa.Column("operation", sa.String(32), nullable=False),
    sa.Column("revision", sa.Integer, nullable=False),
    sa.Column("state", sa.String(9), nullable=False),
    sa.Column("attempt", sa.Integer, nullable=False),
    sa.Column("not_before", UtcDateTime, nullable=False),
    # Reason of its deferral: escalation, quiet, reminder, calm; empty if not deferred.
    sa.Column("wait", sa.String(10), nullable=False, server_default=""),
    # The quiet hours of its target, if they apply.
    sa.Column("quiet", sa.Text, nullable=False, server_default=""),
    sa.Column("lease_until", UtcDateTime),
    # First attempt; lookups start there.
    sa.Column("tried_at", UtcDateTime),
    # The revision of the incident that was sent last.
    sa.Column("rendered", sa.Integer),
    # Number of lookup misses.
    sa.Column("looks", sa.Integer, nullable=False),
    # A copy may have been delivered already, and cannot be looked up.
    sa.Column("repeat", sa.Boolean, nullable=False),
    # It replaces a deleted message, and is sent even if the incident is closed.
    sa.Column("again", sa.Boolean, nullable=False, server_default=sa.false()),
    # The channel's reference of the sent message.
    sa.Column("reference", sa.Text),
    # The digest of which it is a member.
    sa.Column("digest", sa.ForeignKey("incident.id")),
    sa.Column("reason", sa.Text, nullable=False),
    sa.UniqueConstraint("incident_id", "channel", "target", "operation", "revision"),
    sa.Index("ix_outbox_state", "state", "not_before"),
    sa.Index("ix_outbox_digest", "digest"),
)

message = sa.Table(
    "message",
    metadata,
    sa.Column("incident_id", sa.ForeignKey("incident.id"), primary_key=True),
    sa.Column("channel", sa.Text, primary_key=True),
    sa.Column("target", sa.Text, primary_key=True),
    # The channel's ids of the message, e.g. Slack's channel id and ts.
    sa.Column("place", sa.Text, nullable=False),
    sa.Column("reference", sa.Text, nullable=False),
    # The reference of the thread's root message; empty for a root message.
    sa.Column("thread", sa.Text, nullable=False, server_default=""),
    sa.Column("created_revision", sa.Integer, nullable=False),
    sa.Column("revision", sa.Integer, nullable=False),
)

channel_pause = sa.Table(
    "channel_pause",
    metadata,
    sa.Column("channel", sa.Text, primary_key=True),
    # Empty for the whole channel.
    sa.Column("target", sa.Text, primary_key=True),
    sa.Column("until", UtcDateTime, nullable=False),
)
