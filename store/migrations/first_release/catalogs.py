"""Tables of catalogs, what was given in Lake Formation, and schedules."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from dq.store.migrations.first_release.columns import ID, filled, keyed
from dq.store.schema import Json, UtcDateTime

_TABLE = ("database_name", "name")


def make() -> None:
    """Make them."""
    _tables()
    _lake_formation()
    schedule = ["catalog", "group_name", "registry", "name"]
    details = ("contract", "promise", "digest", "modified")
    keyed("schedule_entry", schedule, filled(sa.Text, *schedule, *details))


def _tables() -> None:
    keyed(
        "catalog_table",
        _TABLE,
        [*filled(sa.Text, *_TABLE), *filled(sa.Integer, "version"), *filled(Json, "spec")],
    )
    keyed(
        "catalog_partition",
        ["database_name", "table_name", "partition_path"],
        [
            *filled(sa.Text, "database_name", "table_name", "partition_path"),
            *filled(Json, "part_values"),
            *filled(sa.Text, "location"),
        ],
        sa.ForeignKeyConstraint(
            ["database_name", "table_name"],
            [f"catalog_table.{name}" for name in _TABLE],
            name="fk_catalog_partition_table",
            ondelete="CASCADE",
        ),
    )
    keyed(
        "catalog_applied",
        ["catalog", *_TABLE],
        [*filled(sa.Text, "catalog", *_TABLE), *filled(Json, "spec")],
    )
    logged = ("registry", "catalog", *_TABLE, "kind", "grade", "ending", "before", "after", "error")
    keyed(
        "catalog_log",
        ["number"],
        [
            *filled(sa.Integer, "number"),
            *filled(ID, "run_id"),
            *filled(UtcDateTime, "at"),
            *filled(sa.Text, *logged),
        ],
    )
    op.create_index("ix_catalog_log_run", "catalog_log", ["run_id", *_TABLE])


def _lake_formation() -> None:
    keyed(
        "lake_grant",
        ["catalog", *_TABLE, "principal", "filter"],
        [
            *filled(sa.Text, "catalog", *_TABLE, "principal", "filter"),
            *filled(Json, "columns", "files"),
            *filled(sa.Text, "expression"),
            *filled(Json, "filter_columns"),
        ],
    )
    tag = ["catalog", "tag", *_TABLE]
    keyed("lake_tag", tag, [*filled(sa.Text, *tag), *filled(Json, "columns")])
