"""Tables of deliveries on the store's shared MetaData, and conditions on SLO keys."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, TypeVar

import sqlalchemy as sa

from dq.store.schema import Count, Json, UtcDateTime, metadata

# SLO keys, and chunked statements.

T = TypeVar("T")
Key = tuple[str, str, str]
"""Contract key, object name and SLO id."""
KEY = ("contract", "object", "slo")
# Databases limit the number of values in a statement.
MAX_VALUES = 500


@cache
def key_of(table: sa.Table) -> list[sa.Column[Any]]:
    """Return the key columns of a table."""
    return [table.c[name] for name in KEY]


def matches_key(table: sa.Table, key: Sequence[object]) -> sa.ColumnElement[bool]:
    """Return the condition that a row belongs to an SLO, or with a key of two parts to an object.

    `key` may contain values or columns.
    """
    return sa.and_(*(column == value for column, value in zip(key_of(table), key, strict=False)))


def chunks(items: Sequence[T]) -> list[Sequence[T]]:
    """Split items into chunks that fit into a statement."""
    return [items[start : start + MAX_VALUES] for start in range(0, len(items), MAX_VALUES)]


def _slo(**options: Any) -> list[sa.Column[str]]:
    return [sa.Column(name, sa.Text, **options) for name in KEY]


contract_holder = sa.Table(
    "contract_holder",
    metadata,
    # The contract's key, and the file that owns it.
    sa.Column("contract", sa.Text, primary_key=True),
    sa.Column("file", sa.Text, nullable=False),
    sa.Column("since", UtcDateTime, nullable=False),
    # The folder of its registry, and when the file ceased to be the contract.
    sa.Column("registry", sa.Text),
    sa.Column("gone_since", UtcDateTime),
)

watermark = sa.Table(
    "slo_watermark",
    metadata,
    *_slo(primary_key=True),
    # Every cycle due up to this instant has a row.
    sa.Column("through", UtcDateTime, nullable=False),
    # The newest known delivery; NULL: none.
    sa.Column("delivered_at", UtcDateTime),
    # The lake root or bucket of its data.
    sa.Column("root", sa.Text),
    # The notified level of its error budget: `half`, `exhausted`; NULL: not notified.
    sa.Column("budget", sa.String(16)),
)

slo_terms = sa.Table(
    "slo_terms",
    metadata,
    # Watched SLOs with the terms of their compliance: the contract itself may be unavailable to readers.
    *_slo(primary_key=True),
    sa.Column("product", sa.Text, nullable=False),
    # A fraction, e.g. `19/20`.
    sa.Column("objective", sa.String(32), nullable=False),
    sa.Column("window_seconds", sa.BigInteger, nullable=False),
    # Any new data meets it, so that it proves no partition to be complete.
    sa.Column("expects_new_data", sa.Boolean, nullable=False),
)

heartbeat = sa.Table(
    "heartbeat",
    metadata,
    # `watch`: the instant as of which the last tick evaluated; `complete`: the last that evaluated and sent
    # all.
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
    # The contract's file, and the hashes of its content and of everything else its evaluation depends on.
    sa.Column("file", sa.Text, primary_key=True),
    sa.Column("content", sa.String(64), nullable=False),
    sa.Column("terms", sa.String(64), nullable=False),
    sa.Column("contract", sa.Text, nullable=False),
    sa.Column("slos", sa.Integer, nullable=False),
    # When it was evaluated, and when it must be evaluated again at the latest; NULL: never.
    sa.Column("since", UtcDateTime),
    sa.Column("until", UtcDateTime),
)

resting_part = sa.Table(
    "resting_part",
    metadata,
    # Missing partitions of skipped contracts: one row per partition of a cycle.
    sa.Column("file", sa.Text, primary_key=True),
    sa.Column("cycle_id", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("part", sa.Integer, primary_key=True, autoincrement=False),
    # The state of the cycle.
    sa.Column("status", sa.String(16), nullable=False),
    sa.Column("told", sa.Boolean, nullable=False, key="notified"),
    sa.Column("held_until", UtcDateTime, key="inhibited_until"),
    # The partition's label in receipts, and where its files are expected; NULL: only a receipt can show it.
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
    # The civil time in the schedule's zone, as text without zone.
    sa.Column("nominal", sa.String(32), nullable=False),
    sa.Column("note", sa.String(16), nullable=False),
    # Lists of [column, value], one per expected partition.
    sa.Column("partitions", Json, nullable=False),
    sa.Column("status", sa.String(16), nullable=False),
    sa.Column("reason", sa.Text, nullable=False),
    sa.Column("delivered_at", UtcDateTime),
    sa.Column("first_seen_at", UtcDateTime),
    sa.Column("source", sa.String(8)),
    # Lists of [source, delivered_at, rows]: the sources' answers at the last evaluation.
    sa.Column("claims", Json),
    # Since when there is data that is still being written.
    sa.Column("arriving_since", UtcDateTime),
    # When the delivery is re-checked, and since when its data is gone.
    sa.Column("look_again_at", UtcDateTime),
    sa.Column("gone_since", UtcDateTime),
    # When it was rewritten, which changes no status.
    sa.Column("anew_at", UtcDateTime),
    # The source of the outage that makes it unknown.
    sa.Column("blind", sa.Text),
    # The lake root of correlated misses, for which the owners' alerts are inhibited until `held_until`.
    sa.Column("held", sa.Text, key="inhibiting_root"),
    sa.Column("held_until", UtcDateTime, key="inhibited_until"),
    # The breach was passed to the alerts, so its recovery must be passed too.
    sa.Column("told", sa.Boolean, nullable=False, key="notified"),
    sa.Column("contract_version", sa.Text, nullable=False),
    # Inputs of the cycle's computation, so that it can be repeated: the SHA-256 of the contract's file, the
    # release of the public holidays if they were used, and of dq.
    sa.Column("contract_hash", sa.String(64)),
    sa.Column("tzdata", sa.String(16), nullable=False),
    sa.Column("calendar", sa.String(32)),
    sa.Column("dq", sa.String(32)),
    # The calendar's reason for not counting it.
    sa.Column("excuse", sa.Text),
    # The tick that wrote the row; NULL: an older dq.
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
    # Inputs of the verdict (`cycle_store.inputs_as_json`); NULL: not a verdict, or written by an older dq.
    sa.Column("proof", Json),
)

cycle_state = sa.Table(
    "cycle_state",
    metadata,
    # The state of a cycle after each change, for reads as of past instants.
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
    # Append-only: the newest row of a cycle is in force.
    sa.Column("id", sa.Integer, primary_key=True),
    *_slo(nullable=False),
    sa.Column("due_at", UtcDateTime, nullable=False),
    sa.Column("at", UtcDateTime, nullable=False),
    sa.Column("by", sa.Text, nullable=False),
    sa.Column("reason", sa.Text, nullable=False),
    sa.Column("undone", sa.Boolean, nullable=False),
    sa.Index("ix_cycle_excuse_due_at", "contract", "object", "slo", "due_at"),
)

cycle_warning = sa.Table(
    "cycle_warning",
    metadata,
    # The decision on the early warning of a cycle, made before it is due, and its warning.
    *_slo(primary_key=True),
    sa.Column("due_at", UtcDateTime, primary_key=True),
    sa.Column("breach_at", UtcDateTime, nullable=False),
    # The budget of false warnings that it was made for, e.g. `1/quarter`.
    sa.Column("budget", sa.String(16), nullable=False),
    sa.Column("planned_at", UtcDateTime, nullable=False),
    # When it warns if nothing is there; NULL: it does not, for this reason.
    sa.Column("warn_at", UtcDateTime),
    sa.Column("reason", sa.Text, nullable=False),
    # When the warning was passed to the alerts, and when its end was.
    sa.Column("warned_at", UtcDateTime),
    sa.Column("closed_at", UtcDateTime),
    sa.Index("ix_cycle_warning_breach_at", "breach_at"),
    sa.Index("ix_cycle_warning_warned_at", "warned_at"),
)

cycle_month = sa.Table(
    "cycle_month",
    metadata,
    # Pruned cycles: their number by month and status.
    *_slo(primary_key=True),
    # `2026-05`, of the due instant in UTC.
    sa.Column("month", sa.String(7), primary_key=True),
    sa.Column("status", sa.String(16), primary_key=True),
    sa.Column("cycles", sa.Integer, nullable=False),
)

receipt = sa.Table(
    "receipt",
    metadata,
    # Derived from the delivery, so that publishing the same twice gives one row.
    sa.Column("id", sa.String(36), primary_key=True),
    sa.Column("contract", sa.Text, nullable=False),
    sa.Column("object", sa.Text, nullable=False),
    sa.Column("partition", sa.Text, nullable=False),
    sa.Column("due_at", UtcDateTime),
    sa.Column("delivered_at", UtcDateTime, nullable=False),
    sa.Column("rows", Count),
    # Lists of [column, groups], each group a list of [value or null, rows]; NULL: no counts by group.
    sa.Column("rows_by", Json),
    sa.Column("contract_version", sa.Text, nullable=False),
    # Incremented with each redelivery.
    sa.Column("revision", sa.Integer, nullable=False, server_default="1"),
    # The contract's server that received it; NULL: written by an older dq.
    sa.Column("server", sa.Text),
    sa.Index("ix_receipt_what", "contract", "object", "partition"),
)

storage_event = sa.Table(
    "storage_event",
    metadata,
    # Objects in a partition's folder, as the storage's events say: markers and data apart.
    sa.Column("contract", sa.Text, primary_key=True),
    sa.Column("object", sa.Text, primary_key=True),
    sa.Column("server", sa.Text, primary_key=True),
    # The partition's label; empty for the table's own folder.
    sa.Column("partition", sa.Text, primary_key=True),
    sa.Column("marker", sa.Boolean, primary_key=True, key="is_marker"),
    # The first and the newest creation, and the newest removal; NULL: none.
    sa.Column("first_at", UtcDateTime),
    sa.Column("newest_at", UtcDateTime),
    sa.Column("removed_at", UtcDateTime),
    sa.Column("recorded_at", UtcDateTime, nullable=False),
)


# Tables of commits.

table_log = sa.Table(
    "table_log",
    metadata,
    sa.Column("place", sa.Text, primary_key=True),
    # `table_commit` is complete from this instant on; NULL: it is complete.
    sa.Column("since", UtcDateTime),
)

table_commit = sa.Table(
    "table_commit",
    metadata,
    sa.Column("place", sa.Text, primary_key=True),
    sa.Column("ident", sa.Text, primary_key=True),
    sa.Column("at", UtcDateTime, nullable=False),
    # Lists of [[column, value] pairs, rows], one per partition that it added rows to.
    sa.Column("brought", Json, nullable=False),
    # Lists of [column, value] pairs, one per partition that it removed data from; NULL: none.
    sa.Column("took", Json),
)
