"""The tables of deliveries on the store's shared MetaData, and how rows are found by their SLO."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, TypeVar

import sqlalchemy as sa

from dq.store.schema import Count, Json, UtcDateTime, metadata

# SLOs by their keys, and statements about many of them.

T = TypeVar("T")
Key = tuple[str, str, str]
"""The contract's key, the object and the SLO."""
KEY = ("contract", "object", "slo")
# Databases bound how many values a statement may have.
AT_ONCE = 500


@cache
def key_of(table: sa.Table) -> list[sa.Column[Any]]:
    """The columns that name the SLO of a row."""
    return [table.c[name] for name in KEY]


def is_of(table: sa.Table, key: Sequence[object]) -> sa.ColumnElement[bool]:
    """Whether a row is of an SLO; by a shorter key, of an object. Columns may stand for values."""
    return sa.and_(*(column == value for column, value in zip(key_of(table), key, strict=False)))


def parts(items: Sequence[T]) -> list[Sequence[T]]:
    """All of them, so many at once as a statement may have."""
    return [items[start : start + AT_ONCE] for start in range(0, len(items), AT_ONCE)]


# The tables of deliveries, on the store's shared MetaData.


def _slo(**said: Any) -> list[sa.Column[str]]:
    return [sa.Column(name, sa.Text, **said) for name in KEY]


contract_holder = sa.Table(
    "contract_holder",
    metadata,
    # The contract's key, and the file that was first to be it.
    sa.Column("contract", sa.Text, primary_key=True),
    sa.Column("file", sa.Text, nullable=False),
    sa.Column("since", UtcDateTime, nullable=False),
    # The folder of its registry, and since when the file is not the contract any more.
    sa.Column("registry", sa.Text),
    sa.Column("gone_since", UtcDateTime),
)

watermark = sa.Table(
    "slo_watermark",
    metadata,
    *_slo(primary_key=True),
    # Every cycle due up to here has a row.
    sa.Column("through", UtcDateTime, nullable=False),
    # The newest delivery that is known; NULL: there was none.
    sa.Column("delivered_at", UtcDateTime),
    # Under which lake root or bucket its data lies.
    sa.Column("root", sa.Text),
    # How far its error budget was told to be used: `half`, `exhausted`; NULL: not told.
    sa.Column("budget", sa.String(16)),
)

slo_terms = sa.Table(
    "slo_terms",
    metadata,
    # What is watched, with what its standing is counted by: the contract itself may be elsewhere.
    *_slo(primary_key=True),
    sa.Column("product", sa.Text, nullable=False),
    # A fraction, such as `19/20`.
    sa.Column("objective", sa.String(32), nullable=False),
    sa.Column("window_seconds", sa.BigInteger, nullable=False),
)

heartbeat = sa.Table(
    "heartbeat",
    metadata,
    # `watch`, at the instant as of which the last tick judged; `complete`, where it judged and sent all.
    sa.Column("name", sa.String(16), primary_key=True),
    sa.Column("at", UtcDateTime, nullable=False),
)

past_tick = sa.Table(
    "past_tick",
    metadata,
    # The instants of all ticks, `watch` and `complete` as in the heartbeat.
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("name", sa.String(16), nullable=False),
    sa.Column("at", UtcDateTime, nullable=False),
    sa.Index("ix_past_tick", "name", "at"),
)

resting_contract = sa.Table(
    "resting_contract",
    metadata,
    # The contract's file, and the hashes of its content and of the terms under which it was understood.
    sa.Column("file", sa.Text, primary_key=True),
    sa.Column("content", sa.String(64), nullable=False),
    sa.Column("terms", sa.String(64), nullable=False),
    sa.Column("contract", sa.Text, nullable=False),
    sa.Column("slos", sa.Integer, nullable=False),
    # When it was laid down, and when it is to be judged again at the latest; NULL: never.
    sa.Column("since", UtcDateTime),
    sa.Column("until", UtcDateTime),
)

resting_part = sa.Table(
    "resting_part",
    metadata,
    # What is still missing of a contract that rests: a row for each part of a cycle that is looked for.
    sa.Column("file", sa.Text, primary_key=True),
    sa.Column("cycle_id", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("part", sa.Integer, primary_key=True, autoincrement=False),
    # The cycle as it stood.
    sa.Column("status", sa.String(16), nullable=False),
    sa.Column("told", sa.Boolean, nullable=False),
    sa.Column("held_until", UtcDateTime),
    # The partition as receipts call it, and where it would lie; NULL: nothing but a receipt would show it.
    sa.Column("label", sa.Text, nullable=False),
    sa.Column("root", sa.Text),
    sa.Column("path", sa.Text),
)

cycle = sa.Table(
    "cycle",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    *_slo(nullable=False),
    sa.Column("due_at", UtcDateTime, nullable=False),
    sa.Column("breach_at", UtcDateTime, nullable=False),
    # The civil time in the schedule's zone, as text: it has no zone of its own.
    sa.Column("nominal", sa.String(32), nullable=False),
    sa.Column("note", sa.String(16), nullable=False),
    # Lists of [column, value], one per expected partition.
    sa.Column("partitions", Json, nullable=False),
    sa.Column("status", sa.String(16), nullable=False),
    sa.Column("reason", sa.Text, nullable=False),
    sa.Column("delivered_at", UtcDateTime),
    sa.Column("first_seen_at", UtcDateTime),
    sa.Column("source", sa.String(8)),
    # Lists of [source, delivered_at, rows]: what each source said when it was judged last.
    sa.Column("claims", Json),
    # Since when data is seen there that is still being written.
    sa.Column("arriving_since", UtcDateTime),
    # When what was delivered is looked at again, and since when nothing of it is left.
    sa.Column("look_again_at", UtcDateTime),
    sa.Column("gone_since", UtcDateTime),
    # When it was delivered anew, which changes no status.
    sa.Column("anew_at", UtcDateTime),
    # What the platform team is told cannot be seen, where that is why it is unknown.
    sa.Column("blind", sa.Text),
    # The lake root under which so much was missing at once that its owners are told at `held_until` only.
    sa.Column("held", sa.Text),
    sa.Column("held_until", UtcDateTime),
    # The breach is known to the alerts room, so a recovery must reach it too.
    sa.Column("told", sa.Boolean, nullable=False),
    sa.Column("contract_version", sa.Text, nullable=False),
    # What the cycle was computed with, so that it can be computed again: the SHA-256 of the contract's file,
    # the release of public holidays where they took part, and of dq.
    sa.Column("contract_hash", sa.String(64)),
    sa.Column("tzdata", sa.String(16), nullable=False),
    sa.Column("calendar", sa.String(32)),
    sa.Column("dq", sa.String(32)),
    # Why the calendar does not count it.
    sa.Column("excuse", sa.Text),
    # As of when the row was written; NULL: by an older dq.
    sa.Column("recorded_at", UtcDateTime),
    sa.UniqueConstraint("contract", "object", "slo", "due_at"),
    sa.Index("ix_cycle_status", "status", "contract"),
    sa.Index("ix_cycle_look_again", "look_again_at"),
)

cycle_event = sa.Table(
    "cycle_event",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("cycle_id", sa.ForeignKey("cycle.id"), nullable=False, index=True),
    sa.Column("at", UtcDateTime, nullable=False),
    sa.Column("before", sa.String(16), nullable=False),
    sa.Column("after", sa.String(16), nullable=False),
    sa.Column("reason", sa.Text, nullable=False),
    # What the verdict rests on, as `proof` writes it; NULL: it was no verdict, or an older dq's.
    sa.Column("proof", Json),
)

cycle_state = sa.Table(
    "cycle_state",
    metadata,
    # What is shown of a cycle, each time that it changed: past instants are read from here.
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("cycle_id", sa.ForeignKey("cycle.id"), nullable=False, index=True),
    sa.Column("at", UtcDateTime, nullable=False),
    sa.Column("status", sa.String(16), nullable=False),
    sa.Column("reason", sa.Text, nullable=False),
    sa.Column("delivered_at", UtcDateTime),
    sa.Column("first_seen_at", UtcDateTime),
    sa.Column("source", sa.String(8)),
    sa.Column("claims", Json),
    sa.Column("arriving_since", UtcDateTime),
    sa.Column("gone_since", UtcDateTime),
    sa.Column("anew_at", UtcDateTime),
)

cycle_excuse = sa.Table(
    "cycle_excuse",
    metadata,
    # Rows are added only: the newest of a cycle says whether it is excused, by whom and why.
    sa.Column("id", sa.Integer, primary_key=True),
    *_slo(nullable=False),
    sa.Column("due_at", UtcDateTime, nullable=False),
    sa.Column("at", UtcDateTime, nullable=False),
    sa.Column("by", sa.Text, nullable=False),
    sa.Column("reason", sa.Text, nullable=False),
    sa.Column("undone", sa.Boolean, nullable=False),
    sa.Index("ix_cycle_excuse_due_at", "contract", "object", "slo", "due_at"),
)

cycle_month = sa.Table(
    "cycle_month",
    metadata,
    # What is left of cycles that were pruned: how many of a month had each status.
    *_slo(primary_key=True),
    # `2026-05`, of the due instant in UTC.
    sa.Column("month", sa.String(7), primary_key=True),
    sa.Column("status", sa.String(16), primary_key=True),
    sa.Column("cycles", sa.Integer, nullable=False),
)

receipt = sa.Table(
    "receipt",
    metadata,
    # Made from what was delivered, so that a second publish of the same is the same row.
    sa.Column("id", sa.String(36), primary_key=True),
    sa.Column("contract", sa.Text, nullable=False),
    sa.Column("object", sa.Text, nullable=False),
    sa.Column("partition", sa.Text, nullable=False),
    sa.Column("due_at", UtcDateTime),
    sa.Column("delivered_at", UtcDateTime, nullable=False),
    sa.Column("rows", Count),
    sa.Column("contract_version", sa.Text, nullable=False),
    # Grows by one when the same is delivered again.
    sa.Column("revision", sa.Integer, nullable=False, server_default="1"),
    # The server of the contract that it was delivered to; NULL: an older dq's.
    sa.Column("server", sa.Text),
    sa.Index("ix_receipt_what", "contract", "object", "partition"),
)


# The tables of commits, on the store's shared MetaData.

table_log = sa.Table(
    "table_log",
    metadata,
    sa.Column("place", sa.Text, primary_key=True),
    # No commit since then is lacking in `table_commit`; NULL: none at all.
    sa.Column("since", UtcDateTime),
)

table_commit = sa.Table(
    "table_commit",
    metadata,
    sa.Column("place", sa.Text, primary_key=True),
    sa.Column("ident", sa.Text, primary_key=True),
    sa.Column("at", UtcDateTime, nullable=False),
    # Lists of [[column, value] pairs, rows], one per partition that it brought rows into.
    sa.Column("brought", Json, nullable=False),
    # Lists of [column, value] pairs, one per partition that it took data from; NULL: none.
    sa.Column("took", Json),
)
