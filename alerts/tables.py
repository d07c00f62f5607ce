"""The tables of this room, on the store's shared MetaData."""

from __future__ import annotations

from enum import StrEnum

from sqlalchemy import (
    Boolean,
    Column,
    ForeignKey,
    Index,
    Integer,
    String,
    Table,
    Text,
    UniqueConstraint,
    false,
    text,
)

from dq.store.schema import Json, UtcDateTime, metadata

_OPEN = text("resolved_at IS NULL")
# SQLite does not enforce lengths, so that its column stays as the first release made it.
_END = String(9).with_variant(String(16), "postgresql")

incident = Table(
    "incident",
    metadata,
    Column("id", String(36), primary_key=True),
    Column("contract", Text, nullable=False),
    Column("object", Text, nullable=False),
    Column("group_id", Text, nullable=False),
    Column("severity", String(8), nullable=False),
    Column("title", Text, nullable=False),
    Column("state", _END, nullable=False),
    # Grows by one with every change that a reader may see.
    Column("revision", Integer, nullable=False),
    # How many breaches it has seen; subjects that broke twice count twice.
    Column("breaches", Integer, nullable=False),
    Column("opened_at", UtcDateTime, nullable=False),
    Column("acked_at", UtcDateTime),
    Column("acked_by", Text),
    Column("resolved_at", UtcDateTime),
    # When it was opened or reopened, by our clock.
    Column("open_since", UtcDateTime),
    # How often the promise is due.
    Column("period_seconds", Integer),
    # When it last began and ended, and since when it does so too often.
    Column("changes", Json),
    Column("flapping_since", UtcDateTime),
    # The incident whose product this one waits for; how long it is given when that has ended.
    Column("root_id", String(36), index=True),
    Column("grace_seconds", Integer),
    # The names of those that wait for this one.
    Column("holds_up", Json),
    # Until when nobody is told anything but ends, and who wanted it and why.
    Column("silenced_until", UtcDateTime),
    Column("silenced_why", Text),
    Index(
        "uq_incident_open",
        "contract",
        "object",
        "group_id",
        unique=True,
        sqlite_where=_OPEN,
        postgresql_where=_OPEN,
    ),
    Index("ix_incident_key", "contract", "object", "group_id", "opened_at"),
)

incident_subject = Table(
    "incident_subject",
    metadata,
    Column("incident_id", ForeignKey("incident.id"), primary_key=True),
    Column("subject", Text, primary_key=True),
    Column("opened_at", UtcDateTime, nullable=False),
    Column("closed_at", UtcDateTime),
    # Lists of [label, value].
    Column("facts", Json, nullable=False),
    Column("closing_facts", Json, nullable=False),
    # How it was closed: kept, excused, withdrawn, given_up, handed_over.
    Column("ended", _END),
)

incident_event = Table(
    "incident_event",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("incident_id", ForeignKey("incident.id"), nullable=False, index=True),
    Column("at", UtcDateTime, nullable=False),
    Column("kind", String(16), nullable=False),
    Column("revision", Integer, nullable=False),
    Column("subject", Text, nullable=False),
    Column("detail", Text, nullable=False),
    # Of the incident after the event; NULL where the event changes neither, and in what an older dq wrote.
    Column("severity", String(8)),
    Column("title", Text),
)

lineage = Table(
    "lineage",
    metadata,
    Column("contract", Text, primary_key=True),
    Column("digest", Text, nullable=False),
    # Lists of [object, [[contract, object], ...]]; NULL where it declares no input.
    Column("inputs", Json),
)

silence = Table(
    "silence",
    metadata,
    Column("id", Integer, primary_key=True),
    # Patterns of the shell, one for each part of an incident's key.
    Column("contract", Text, nullable=False),
    Column("object", Text, nullable=False),
    Column("group_id", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("by", Text, nullable=False),
    Column("at", UtcDateTime, nullable=False),
    Column("until", UtcDateTime, nullable=False, index=True),
    # Set where somebody ended it before its time.
    Column("ended_at", UtcDateTime),
    Column("ended_by", Text),
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


outbox = Table(
    "outbox",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("incident_id", ForeignKey("incident.id"), nullable=False),
    Column("channel", Text, nullable=False),
    Column("target", Text, nullable=False),
    # create, update or reply:<step>
    Column("operation", String(32), nullable=False),
    Column("revision", Integer, nullable=False),
    Column("state", String(9), nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("not_before", UtcDateTime, nullable=False),
    # Why it was put off until then: escalation, quiet, reminder, calm; empty for what is to be said at once.
    Column("wait", String(10), nullable=False, server_default=""),
    # The quiet hours of its place, where they hold for it.
    Column("quiet", Text, nullable=False, server_default=""),
    Column("lease_until", UtcDateTime),
    # When it was first on its way: where reconciling starts to look.
    Column("tried_at", UtcDateTime),
    # The incident's revision that was last put on the wire.
    Column("rendered", Integer),
    # How often the channel was searched for a lost message in vain.
    Column("looks", Integer, nullable=False),
    # A copy may have arrived already, and nobody can look.
    Column("repeat", Boolean, nullable=False),
    # It takes the place of one that somebody took away, and is said even when all is over.
    Column("again", Boolean, nullable=False, server_default=false()),
    # What the channel calls the message that it became.
    Column("reference", Text),
    # The digest that it is said in.
    Column("digest", ForeignKey("incident.id")),
    Column("reason", Text, nullable=False),
    UniqueConstraint("incident_id", "channel", "target", "operation", "revision"),
    Index("ix_outbox_state", "state", "not_before"),
    Index("ix_outbox_digest", "digest"),
)

message = Table(
    "message",
    metadata,
    Column("incident_id", ForeignKey("incident.id"), primary_key=True),
    Column("channel", Text, primary_key=True),
    Column("target", Text, primary_key=True),
    # Where the channel keeps it: Slack's channel id and ts.
    Column("place", Text, nullable=False),
    Column("reference", Text, nullable=False),
    # The reference of the message below which it stands; empty for a root.
    Column("thread", Text, nullable=False, server_default=""),
    Column("created_revision", Integer, nullable=False),
    Column("revision", Integer, nullable=False),
)

channel_pause = Table(
    "channel_pause",
    metadata,
    Column("channel", Text, primary_key=True),
    # Empty for all that goes through the channel.
    Column("target", Text, primary_key=True),
    Column("until", UtcDateTime, nullable=False),
)
