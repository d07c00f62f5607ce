"""Runs of checks, their results, and counts that are kept."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from dq.store.migrations.first_release.columns import filled, keyed, nullable, reference
from dq.store.schema import Json, UtcDateTime


def make() -> None:
    """Make them."""
    keyed(
        "check_run",
        ["id"],
        [
            *filled(sa.Integer, "id"),
            *filled(sa.Text, "contract", "object", "contract_version", "scope"),
            *filled(UtcDateTime, "at"),
            *filled(sa.Integer, "jobs"),
            *nullable(Json, "rules"),
            *nullable(sa.Text, "staged"),
            *nullable(sa.String(16), "verdict"),
        ],
    )
    op.create_index("ix_check_run_what", "check_run", ["contract", "object", "at"])
    keyed(
        "statistics_trial",
        ["run_id"],
        filled(sa.Integer, "run_id", "proofs", "scans", "disagreements"),
        reference("statistics_trial", "run_id", "check_run"),
    )
    keyed(
        "check_result",
        ["run_id", "clause", "check"],
        [
            *filled(sa.Integer, "run_id"),
            *filled(sa.Text, "clause", "check", "property"),
            *filled(sa.String(8), "status", "severity"),
            *filled(sa.Text, "observed", "allowed", "message"),
            *nullable(sa.Float, "value"),
            *filled(Json, "samples"),
            *nullable(Json, "measured"),
            *nullable(sa.Text, "name"),
        ],
        reference("check_result", "run_id", "check_run"),
    )
    keyed(
        "part_count",
        ["dataset", "folder"],
        [
            *filled(sa.Text, "dataset", "folder"),
            *filled(sa.String(64), "print"),
            *filled(Json, "counts"),
            *filled(UtcDateTime, "at"),
        ],
    )
