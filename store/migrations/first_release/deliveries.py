"""Promises, their cycles, what came, and what the watcher knows of contracts."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from dq.store.migrations.first_release.columns import ID, filled, keyed, nullable, reference
from dq.store.schema import Count, Json, UtcDateTime


def make() -> None:
    """Make them."""
    _promises()
    _cycles()
    _contracts()
    _evidence()


def _promises() -> None:
    promise = ["contract", "object", "slo"]
    keyed(
        "slo_watermark",
        promise,
        [
            *filled(sa.Text, *promise),
            *filled(UtcDateTime, "through"),
            *nullable(UtcDateTime, "delivered_at"),
            *nullable(sa.Text, "root"),
            *nullable(sa.String(16), "budget"),
        ],
    )
    keyed(
        "slo_terms",
        promise,
        [
            *filled(sa.Text, *promise, "product"),
            *filled(sa.String(32), "objective"),
            *filled(sa.BigInteger, "window_seconds"),
        ],
    )
    keyed(
        "cycle_month",
        [*promise, "month", "status"],
        [
            *filled(sa.Text, *promise),
            *filled(sa.String(7), "month"),
            *filled(sa.String(16), "status"),
            *filled(sa.Integer, "cycles"),
        ],
    )
    op.create_table(
        "cycle_excuse",
        sa.Column("id", sa.Integer, primary_key=True),
        *filled(sa.Text, *promise),
        *filled(UtcDateTime, "due_at", "at"),
        *filled(sa.Text, "by", "reason"),
        *filled(sa.Boolean, "undone"),
    )
    op.create_index("ix_cycle_excuse_due_at", "cycle_excuse", [*promise, "due_at"])


def _cycles() -> None:
    due = ["contract", "object", "slo", "due_at"]
    keyed(
        "cycle",
        ["id"],
        [
            *filled(sa.Integer, "id"),
            *filled(sa.Text, "contract", "object", "slo"),
            *filled(UtcDateTime, "due_at", "breach_at"),
            *filled(sa.String(32), "nominal"),
            *filled(sa.String(16), "note"),
            *filled(Json, "partitions"),
            *filled(sa.String(16), "status"),
            *filled(sa.Text, "reason"),
            *nullable(UtcDateTime, "delivered_at", "first_seen_at"),
            *nullable(sa.String(8), "source"),
            *filled(sa.Boolean, "told"),
            *filled(sa.Text, "contract_version"),
            *filled(sa.String(16), "tzdata"),
            *nullable(sa.Text, "blind", "held"),
            *nullable(UtcDateTime, "held_until"),
            *nullable(sa.String(64), "contract_hash"),
            *nullable(sa.String(32), "calendar", "dq"),
            *nullable(sa.Text, "excuse"),
            *nullable(Json, "claims"),
            *nullable(UtcDateTime, "arriving_since", "look_again_at", "gone_since", "anew_at"),
        ],
        sa.UniqueConstraint(*due, name=f"uq_cycle_{'_'.join(due)}"),
    )
    op.create_index("ix_cycle_status", "cycle", ["status", "contract"])
    op.create_index("ix_cycle_look_again", "cycle", ["look_again_at"])
    keyed(
        "cycle_event",
        ["id"],
        [
            *filled(sa.Integer, "id", "cycle_id"),
            *filled(UtcDateTime, "at"),
            *filled(sa.String(16), "before", "after"),
            *filled(sa.Text, "reason"),
            *nullable(Json, "proof"),
        ],
        reference("cycle_event", "cycle_id", "cycle"),
    )
    op.create_index("ix_cycle_event_cycle_id", "cycle_event", ["cycle_id"])


def _contracts() -> None:
    keyed(
        "contract_holder",
        ["contract"],
        [
            *filled(sa.Text, "contract", "file"),
            *filled(UtcDateTime, "since"),
            *nullable(sa.Text, "registry"),
            *nullable(UtcDateTime, "gone_since"),
        ],
    )
    keyed(
        "resting_contract",
        ["file"],
        [
            *filled(sa.Text, "file"),
            *filled(sa.String(64), "content", "terms"),
            *filled(sa.Text, "contract"),
            *filled(sa.Integer, "slos"),
            *nullable(UtcDateTime, "until", "since"),
        ],
    )
    keyed(
        "resting_part",
        ["file", "cycle_id", "part"],
        [
            *filled(sa.Text, "file"),
            sa.Column("cycle_id", sa.Integer, nullable=False, autoincrement=False),
            sa.Column("part", sa.Integer, nullable=False, autoincrement=False),
            *filled(sa.String(16), "status"),
            *filled(sa.Boolean, "told"),
            *nullable(UtcDateTime, "held_until"),
            *filled(sa.Text, "label"),
            *nullable(sa.Text, "root", "path"),
        ],
    )
    lineage = [*filled(sa.Text, "contract", "digest"), *nullable(Json, "inputs")]
    keyed("lineage", ["contract"], lineage)


def _evidence() -> None:
    keyed(
        "receipt",
        ["id"],
        [
            *filled(ID, "id"),
            *filled(sa.Text, "contract", "object", "partition"),
            *nullable(UtcDateTime, "due_at"),
            *filled(UtcDateTime, "delivered_at"),
            *nullable(Count, "rows"),
            *filled(sa.Text, "contract_version"),
            sa.Column("revision", sa.Integer, nullable=False, server_default="1"),
            *nullable(sa.Text, "server"),
        ],
    )
    op.create_index("ix_receipt_what", "receipt", ["contract", "object", "partition"])
    keyed("table_log", ["place"], [*filled(sa.Text, "place"), *nullable(UtcDateTime, "since")])
    keyed(
        "table_commit",
        ["place", "ident"],
        [
            *filled(sa.Text, "place", "ident"),
            *filled(UtcDateTime, "at"),
            *filled(Json, "brought"),
            *nullable(Json, "took"),
        ],
    )
