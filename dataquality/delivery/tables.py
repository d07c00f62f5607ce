"""The tables of deliveries on the store's shared MetaData, and how rows are found by their SLO."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, TypeVar

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ColumnElement,
    ForeignKey,
    Index,
    Integer,
    String,
    Table,
    Text,
    UniqueConstraint,
    and_,
)

from dq.store.schema import Count, Json, UtcDateTime, metadata

# SLOs by their keys, and statements about many of them.

T = TypeVar("T")
Key = tuple[str, str, str]
"""The contract's key, the object and the SLO."""
KEY = ("contract", "object", "slo")
# Databases bound how many values a statement may have.
AT_ONCE = 500


@cache
def key_of(table: Table) -> list[Column[Any]]:
    """The columns that name the SLO of a row."""
    return [table.c[name] for name in KEY]


def is_of(table: Table, key: Sequence[object]) -> ColumnElement[bool]:
    """Whether a row is of an SLO; by a shorter key, of an object. Columns may stand for values."""
    return and_(*(column == value for column, value in zip(key_of(table), key, strict=False)))


def parts(items: Sequence[T]) -> list[Sequence[T]]:
    """All of them, so many at once as a statement may have."""
    return [items[start : start + AT_ONCE] for start in range(0, len(items), AT_ONCE)]


# The tables of deliveries, on the store's shared MetaData.


def _slo(**said: Any) -> list[Column[str]]:
    return [Column(name, Text, **said) for name in KEY]


contract_holder = Table(
    "contract_holder",
    metadata,
    # The contract's key, and the file that was first to be it.
    Column("contract", Text, primary_key=True),
    Column("file", Text, nullable=False),
    Column("since", UtcDateTime, nullable=False),
    # The folder of its registry, and since when the file is not the contract any more.
    Column("registry", Text),
    Column("gone_since", UtcDateTime),
)

watermark = Table(
    "slo_watermark",
    metadata,
    *_slo(primary_key=True),
    # Every cycle due up to here has a row.
    Column("through", UtcDateTime, nullable=False),
    # The newest delivery that is known; NULL: there was none.
    Column("delivered_at", UtcDateTime),
    # Under which lake root or bucket its data lies.
    Column("root", Text),
    # How far its error budget was told to be used: `half`, `exhausted`; NULL: not told.
    Column("budget", String(16)),
)

slo_terms = Table(
    "slo_terms",
    metadata,
    # What is watched, with what its standing is counted by: the contract itself may be elsewhere.
    *_slo(primary_key=True),
    Column("product", Text, nullable=False),
    # A fraction, such as `19/20`.
    Column("objective", String(32), nullable=False),
    Column("window_seconds", BigInteger, nullable=False),
)

heartbeat = Table(
    "heartbeat",
    metadata,
    # `watch`, at the instant as of which the last tick judged; `complete`, where it judged and sent all.
    Column("name", String(16), primary_key=True),
    Column("at", UtcDateTime, nullable=False),
)

past_tick = Table(
    "past_tick",
    metadata,
    # The instants of all ticks, `watch` and `complete` as in the heartbeat.
    Column("id", Integer, primary_key=True),
    Column("name", String(16), nullable=False),
    Column("at", UtcDateTime, nullable=False),
    Index("ix_past_tick", "name", "at"),
)

resting_contract = Table(
    "resting_contract",
    metadata,
    # The contract's file, and the hashes of its content and of the terms under which it was understood.
    Column("file", Text, primary_key=True),
    Column("content", String(64), nullable=False),
    Column("terms", String(64), nullable=False),
    Column("contract", Text, nullable=False),
    Column("slos", Integer, nullable=False),
    # When it was laid down, and when it is to be judged again at the latest; NULL: never.
    Column("since", UtcDateTime),
    Column("until", UtcDateTime),
)

resting_part = Table(
    "resting_part",
    metadata,
    # What is still missing of a contract that rests: a row for each part of a cycle that is looked for.
    Column("file", Text, primary_key=True),
    Column("cycle_id", Integer, primary_key=True, autoincrement=False),
    Column("part", Integer, primary_key=True, autoincrement=False),
    # The cycle as it stood.
    Column("status", String(16), nullable=False),
    Column("told", Boolean, nullable=False),
    Column("held_until", UtcDateTime),
    # The partition as receipts call it, and where it would lie; NULL: nothing but a receipt would show it.
    Column("label", Text, nullable=False),
    Column("root", Text),
    Column("path", Text),
)

cycle = Table(
    "cycle",
    metadata,
    Column("id", Integer, primary_key=True),
    *_slo(nullable=False),
    Column("due_at", UtcDateTime, nullable=False),
    Column("breach_at", UtcDateTime, nullable=False),
    # The civil time in the schedule's zone, as text: it has no zone of its own.
    Column("nominal", String(32), nullable=False),
    Column("note", String(16), nullable=False),
    # Lists of [column, value], one per expected partition.
    Column("partitions", Json, nullable=False),
    Column("status", String(16), nullable=False),
    Column("reason", Text, nullable=False),
    Column("delivered_at", UtcDateTime),
    Column("first_seen_at", UtcDateTime),
    Column("source", String(8)),
    # Lists of [source, delivered_at, rows]: what each source said when it was judged last.
    Column("claims", Json),
    # Since when data is seen there that is still being written.
    Column("arriving_since", UtcDateTime),
    # When what was delivered is looked at again, and since when nothing of it is left.
    Column("look_again_at", UtcDateTime),
    Column("gone_since", UtcDateTime),
    # When it was delivered anew, which changes no status.
    Column("anew_at", UtcDateTime),
    # What the platform team is told cannot be seen, where that is why it is unknown.
    Column("blind", Text),
    # The lake root under which so much was missing at once that its owners are told at `held_until` only.
    Column("held", Text),
    Column("held_until", UtcDateTime),
    # The breach is known to the alerts room, so a recovery must reach it too.
    Column("told", Boolean, nullable=False),
    Column("contract_version", Text, nullable=False),
    # What the cycle was computed with, so that it can be computed again: the SHA-256 of the contract's file,
    # the release of public holidays where they took part, and of dq.
    Column("contract_hash", String(64)),
    Column("tzdata", String(16), nullable=False),
    Column("calendar", String(32)),
    Column("dq", String(32)),
    # Why the calendar does not count it.
    Column("excuse", Text),
    # As of when the row was written; NULL: by an older dq.
    Column("recorded_at", UtcDateTime),
    UniqueConstraint("contract", "object", "slo", "due_at"),
    Index("ix_cycle_status", "status", "contract"),
    Index("ix_cycle_look_again", "look_again_at"),
)

cycle_event = Table(
    "cycle_event",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("cycle_id", ForeignKey("cycle.id"), nullable=False, index=True),
    Column("at", UtcDateTime, nullable=False),
    Column("before", String(16), nullable=False),
    Column("after", String(16), nullable=False),
    Column("reason", Text, nullable=False),
    # What the verdict rests on, as `proof` writes it; NULL: it was no verdict, or an older dq's.
    Column("proof", Json),
)

cycle_state = Table(
    "cycle_state",
    metadata,
    # What is shown of a cycle, each time that it changed: past instants are read from here.
    Column("id", Integer, primary_key=True),
    Column("cycle_id", ForeignKey("cycle.id"), nullable=False, index=True),
    Column("at", UtcDateTime, nullable=False),
    Column("status", String(16), nullable=False),
    Column("reason", Text, nullable=False),
    Column("delivered_at", UtcDateTime),
    Column("first_seen_at", UtcDateTime),
    Column("source", String(8)),
    Column("claims", Json),
    Column("arriving_since", UtcDateTime),
    Column("gone_since", UtcDateTime),
    Column("anew_at", UtcDateTime),
)

cycle_excuse = Table(
    "cycle_excuse",
    metadata,
    # Rows are added only: the newest of a cycle says whether it is excused, by whom and why.
    Column("id", Integer, primary_key=True),
    *_slo(nullable=False),
    Column("due_at", UtcDateTime, nullable=False),
    Column("at", UtcDateTime, nullable=False),
    Column("by", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("undone", Boolean, nullable=False),
    Index("ix_cycle_excuse_due_at", "contract", "object", "slo", "due_at"),
)

cycle_month = Table(
    "cycle_month",
    metadata,
    # What is left of cycles that were pruned: how many of a month had each status.
    *_slo(primary_key=True),
    # `2026-05`, of the due instant in UTC.
    Column("month", String(7), primary_key=True),
    Column("status", String(16), primary_key=True),
    Column("cycles", Integer, nullable=False),
)

receipt = Table(
    "receipt",
    metadata,
    # Made from what was delivered, so that a second publish of the same is the same row.
    Column("id", String(36), primary_key=True),
    Column("contract", Text, nullable=False),
    Column("object", Text, nullable=False),
    Column("partition", Text, nullable=False),
    Column("due_at", UtcDateTime),
    Column("delivered_at", UtcDateTime, nullable=False),
    Column("rows", Count),
    Column("contract_version", Text, nullable=False),
    # Grows by one when the same is delivered again.
    Column("revision", Integer, nullable=False, server_default="1"),
    # The server of the contract that it was delivered to; NULL: an older dq's.
    Column("server", Text),
    Index("ix_receipt_what", "contract", "object", "partition"),
)


# The tables of commits, on the store's shared MetaData.

table_log = Table(
    "table_log",
    metadata,
    Column("place", Text, primary_key=True),
    # No commit since then is lacking in `table_commit`; NULL: none at all.
    Column("since", UtcDateTime),
)

table_commit = Table(
    "table_commit",
    metadata,
    Column("place", Text, primary_key=True),
    Column("ident", Text, primary_key=True),
    Column("at", UtcDateTime, nullable=False),
    # Lists of [[column, value] pairs, rows], one per partition that it brought rows into.
    Column("brought", Json, nullable=False),
    # Lists of [column, value] pairs, one per partition that it took data from; NULL: none.
    Column("took", Json),
)
