"""The tables of this room, on the store's shared MetaData."""

from __future__ import annotations

from enum import StrEnum

import sqlalchemy as sa

from dq.store.schema import Json, UtcDateTime, metadata

_OPEN = sa.text("resolved_at IS NULL")
# SQLite does not enforce lengths, so that its column stays as the first release made it.
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
    # Grows by one with every change that a reader may see.
    sa.Column("revision", sa.Integer, nullable=False),
    # How many breaches it has seen; subjects that broke twice count twice.
    sa.Column("breaches", sa.Integer, nullable=False),
    sa.Column("opened_at", UtcDateTime, nullable=False),
    sa.Column("acked_at", UtcDateTime),
    sa.Column("acked_by", sa.Text),
    sa.Column("resolved_at", UtcDateTime),
    # When it was opened or reopened, by our clock.
    sa.Column("open_since", UtcDateTime),
    # How often the promise is due.
    sa.Column("period_seconds", sa.Integer),
    # When it last began and ended, and since when it does so too often.
    sa.Column("changes", Json),
    sa.Column("flapping_since", UtcDateTime),
    # The incident whose product this one waits for; how long it is given when that has ended.
    sa.Column("root_id", sa.String(36), index=True),
    sa.Column("grace_seconds", sa.Integer),
    # The names of those that wait for this one.
    sa.Column("holds_up", Json),
    # Until when nobody is told anything but ends, and who wanted it and why.
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
    # How it was closed: kept, excused, withdrawn, given_up, handed_over.
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
    # Of the incident after the event; NULL where the event changes neither, and in what an older dq wrote.
    sa.Column("severity", sa.String(8)),
    sa.Column("title", sa.Text),
)

lineage = sa.Table(
    "lineage",
    metadata,
    sa.Column("contract", sa.Text, primary_key=True),
    sa.Column("digest", sa.Text, nullable=False),
    # Lists of [object, [[contract, object], ...]]; NULL where it declares no input.
    sa.Column("inputs", Json),
)

silence = sa.Table(
    "silence",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    # Patterns of the shell, one for each part of an incident's key.
    sa.Column("contract", sa.Text, nullable=False),
    sa.Column("object", sa.Text, nullable=False),
    sa.Column("group_id", sa.Text, nullable=False),
    sa.Column("reason", sa.Text, nullable=False),
    sa.Column("by", sa.Text, nullable=False),
    sa.Column("at", UtcDateTime, nullable=False),
    sa.Column("until", UtcDateTime, nullable=False, index=True),
    # Set where somebody ended it before its time.
    sa.Column("ended_at", UtcDateTime),
    sa.Column("ended_by", sa.Text),
)


class OutboxStatus(StrEnum):
    """Where an outbox row stands; the last three are final."""

    READY = "ready"
    SENDING = "sending"
    AMBIGUOUS = "ambiguous"
    SENT = "sent"
    DROPPED = "dropped"  # not needed any more
    DEAD = "dead"  # refused, or tried for too long


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
    # Why it was put off until then: escalation, quiet, reminder, calm; empty for what is to be said at once.
    sa.Column("wait", sa.String(10), nullable=False, server_default=""),
    # The quiet hours of its place, where they hold for it.
    sa.Column("quiet", sa.Text, nullable=False, server_default=""),
    sa.Column("lease_until", UtcDateTime),
    # When it was first on its way: where reconciling starts to look.
    sa.Column("tried_at", UtcDateTime),
    # The incident's revision that was last put on the wire.
    sa.Column("rendered", sa.Integer),
    # How often the channel was searched for a lost message in vain.
    sa.Column("looks", sa.Integer, nullable=False),
    # A copy may have arrived already, and nobody can look.
    sa.Column("repeat", sa.Boolean, nullable=False),
    # It takes the place of one that somebody took away, and is said even when all is over.
    sa.Column("again", sa.Boolean, nullable=False, server_default=sa.false()),
    # What the channel calls the message that it became.
    sa.Column("reference", sa.Text),
    # The digest that it is said in.
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
    # Where the channel keeps it: Slack's channel id and ts.
    sa.Column("place", sa.Text, nullable=False),
    sa.Column("reference", sa.Text, nullable=False),
    # The reference of the message below which it stands; empty for a root.
    sa.Column("thread", sa.Text, nullable=False, server_default=""),
    sa.Column("created_revision", sa.Integer, nullable=False),
    sa.Column("revision", sa.Integer, nullable=False),
)

channel_pause = sa.Table(
    "channel_pause",
    metadata,
    sa.Column("channel", sa.Text, primary_key=True),
    # Empty for all that goes through the channel.
    sa.Column("target", sa.Text, primary_key=True),
    sa.Column("until", UtcDateTime, nullable=False),
)
