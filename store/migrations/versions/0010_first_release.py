"""The schema of the first release.

The numbers before it were schemas of development versions, which nobody migrates from.

Revision ID: 0010
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from dq.store.schema import Json, UtcDateTime

revision = "0010"
down_revision = None

_LOGGED = ("registry", "catalog", "database_name", "name", "kind", "grade", "ending", "before", "after")
_OPEN = sa.text("resolved_at IS NULL")


def upgrade() -> None:
    """Make the tables of all rooms."""
    _alerts()
    _deliveries()
    _checks()
    _catalog()


def _alerts() -> None:
    op.create_table(
        "incident",
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("contract", sa.Text, nullable=False),
        sa.Column("object", sa.Text, nullable=False),
        sa.Column("group_id", sa.Text, nullable=False),
        sa.Column("severity", sa.String(8), nullable=False),
        sa.Column("title", sa.Text, nullable=False),
        sa.Column("state", sa.String(9), nullable=False),
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
        sa.Column("ended", sa.String(9), nullable=True),
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


def _deliveries() -> None:
    op.create_table(
        "contract_holder",
        sa.Column("contract", sa.Text, nullable=False),
        sa.Column("file", sa.Text, nullable=False),
        sa.Column("since", UtcDateTime, nullable=False),
        sa.PrimaryKeyConstraint("contract", name="pk_contract_holder"),
    )
    op.create_table(
        "slo_watermark",
        sa.Column("contract", sa.Text, nullable=False),
        sa.Column("object", sa.Text, nullable=False),
        sa.Column("slo", sa.Text, nullable=False),
        sa.Column("through", UtcDateTime, nullable=False),
        sa.PrimaryKeyConstraint("contract", "object", "slo", name="pk_slo_watermark"),
    )
    op.create_table(
        "cycle",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("contract", sa.Text, nullable=False),
        sa.Column("object", sa.Text, nullable=False),
        sa.Column("slo", sa.Text, nullable=False),
        sa.Column("due_at", UtcDateTime, nullable=False),
        sa.Column("breach_at", UtcDateTime, nullable=False),
        sa.Column("nominal", sa.String(32), nullable=False),
        sa.Column("note", sa.String(16), nullable=False),
        sa.Column("partitions", Json, nullable=False),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("delivered_at", UtcDateTime),
        sa.Column("first_seen_at", UtcDateTime),
        sa.Column("source", sa.String(8)),
        sa.Column("told", sa.Boolean, nullable=False),
        sa.Column("contract_version", sa.Text, nullable=False),
        sa.Column("tzdata", sa.String(16), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_cycle"),
        sa.UniqueConstraint(
            "contract", "object", "slo", "due_at", name="uq_cycle_contract_object_slo_due_at"
        ),
    )
    op.create_index("ix_cycle_status", "cycle", ["status", "contract"])
    op.create_table(
        "cycle_event",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("cycle_id", sa.Integer, nullable=False),
        sa.Column("at", UtcDateTime, nullable=False),
        sa.Column("before", sa.String(16), nullable=False),
        sa.Column("after", sa.String(16), nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_cycle_event"),
        sa.ForeignKeyConstraint(["cycle_id"], ["cycle.id"], name="fk_cycle_event_cycle_id_cycle"),
    )
    op.create_index("ix_cycle_event_cycle_id", "cycle_event", ["cycle_id"])
    op.create_table(
        "receipt",
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("contract", sa.Text, nullable=False),
        sa.Column("object", sa.Text, nullable=False),
        sa.Column("partition", sa.Text, nullable=False),
        sa.Column("due_at", UtcDateTime),
        sa.Column("delivered_at", UtcDateTime, nullable=False),
        sa.Column("rows", sa.Integer),
        sa.Column("contract_version", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_receipt"),
    )
    op.create_index("ix_receipt_what", "receipt", ["contract", "object", "partition"])


def _checks() -> None:
    op.create_table(
        "check_run",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("contract", sa.Text, nullable=False),
        sa.Column("object", sa.Text, nullable=False),
        sa.Column("contract_version", sa.Text, nullable=False),
        sa.Column("scope", sa.Text, nullable=False),
        sa.Column("at", UtcDateTime, nullable=False),
        sa.Column("jobs", sa.Integer, nullable=False),
        sa.Column("rules", Json),
        sa.PrimaryKeyConstraint("id", name="pk_check_run"),
    )
    op.create_index("ix_check_run_what", "check_run", ["contract", "object", "at"])
    op.create_table(
        "statistics_trial",
        sa.Column("run_id", sa.Integer, nullable=False),
        sa.Column("proofs", sa.Integer, nullable=False),
        sa.Column("scans", sa.Integer, nullable=False),
        sa.Column("disagreements", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("run_id", name="pk_statistics_trial"),
        sa.ForeignKeyConstraint(["run_id"], ["check_run.id"], name="fk_statistics_trial_run_id_check_run"),
    )
    op.create_table(
        "check_result",
        sa.Column("run_id", sa.Integer, nullable=False),
        sa.Column("clause", sa.Text, nullable=False),
        sa.Column("check", sa.Text, nullable=False),
        sa.Column("property", sa.Text, nullable=False),
        sa.Column("status", sa.String(8), nullable=False),
        sa.Column("severity", sa.String(8), nullable=False),
        sa.Column("observed", sa.Text, nullable=False),
        sa.Column("allowed", sa.Text, nullable=False),
        sa.Column("message", sa.Text, nullable=False),
        sa.Column("value", sa.Float),
        sa.Column("samples", Json, nullable=False),
        sa.PrimaryKeyConstraint("run_id", "clause", "check", name="pk_check_result"),
        sa.ForeignKeyConstraint(["run_id"], ["check_run.id"], name="fk_check_result_run_id_check_run"),
    )
    op.create_table(
        "part_count",
        sa.Column("dataset", sa.Text, nullable=False),
        sa.Column("folder", sa.Text, nullable=False),
        sa.Column("print", sa.String(64), nullable=False),
        sa.Column("counts", Json, nullable=False),
        sa.Column("at", UtcDateTime, nullable=False),
        sa.PrimaryKeyConstraint("dataset", "folder", name="pk_part_count"),
    )


def _catalog() -> None:
    op.create_table(
        "catalog_table",
        sa.Column("database_name", sa.Text, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("spec", Json, nullable=False),
        sa.PrimaryKeyConstraint("database_name", "name", name="pk_catalog_table"),
    )
    op.create_table(
        "catalog_partition",
        sa.Column("database_name", sa.Text, nullable=False),
        sa.Column("table_name", sa.Text, nullable=False),
        sa.Column("partition_path", sa.Text, nullable=False),
        sa.Column("part_values", Json, nullable=False),
        sa.Column("location", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("database_name", "table_name", "partition_path", name="pk_catalog_partition"),
        sa.ForeignKeyConstraint(
            ["database_name", "table_name"],
            ["catalog_table.database_name", "catalog_table.name"],
            name="fk_catalog_partition_table",
            ondelete="CASCADE",
        ),
    )
    op.create_table(
        "catalog_applied",
        sa.Column("catalog", sa.Text, nullable=False),
        sa.Column("database_name", sa.Text, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("spec", Json, nullable=False),
        sa.PrimaryKeyConstraint("catalog", "database_name", "name", name="pk_catalog_applied"),
    )
    op.create_table(
        "catalog_log",
        sa.Column("number", sa.Integer, nullable=False, autoincrement=True),
        sa.Column("run_id", sa.String(36), nullable=False),
        sa.Column("at", UtcDateTime, nullable=False),
        *(sa.Column(name, sa.Text, nullable=False) for name in (*_LOGGED, "error")),
        sa.PrimaryKeyConstraint("number", name="pk_catalog_log"),
    )
    op.create_index("ix_catalog_log_run", "catalog_log", ["run_id", "database_name", "name"])
    op.create_table(
        "publish_step",
        sa.Column("event_id", sa.String(36), nullable=False),
        sa.Column("step", sa.String(12), nullable=False),
        sa.Column("at", UtcDateTime, nullable=False),
        sa.PrimaryKeyConstraint("event_id", "step", name="pk_publish_step"),
    )
