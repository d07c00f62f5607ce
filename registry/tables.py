"""Tables of the registry package, on the store's shared MetaData."""

from __future__ import annotations

from collections.abc import Mapping

import sqlalchemy as sa

from dq.store.engine import Store
from dq.store.schema import Count, Json, UtcDateTime, metadata

_WAITING = sa.text("sent_at IS NULL")


def _keys(*names: str) -> list[sa.Column[str]]:
    return [sa.Column(name, sa.Text, primary_key=True) for name in names]


def _texts(*names: str) -> list[sa.Column[str]]:
    return [sa.Column(name, sa.Text, nullable=False) for name in names]


def keep_row(
    store: Store, table: sa.Table, key: Mapping[str, str], values: Mapping[str, object] | None
) -> None:
    """Replace the row with this key, or delete it if `values` is None."""
    with store.write() as connection:
        connection.execute(sa.delete(table).filter_by(**key))
        if values is not None:
            connection.execute(sa.insert(table).values(**key, **values))


# The local catalog.
catalog_table = sa.Table(
    "catalog_table",
    metadata,
    *_keys("database_name", "name"),
    # Grows by one with every write; a writer checks the version it has read.
    sa.Column("version", sa.Integer, nullable=False),
    sa.Column("spec", Json, nullable=False),
)

catalog_partition = sa.Table(
    "catalog_partition",
    metadata,
    *_keys("database_name", "table_name"),
    # As in a path: `flight_date=2026-11-20/hour=3`, escaped.
    sa.Column("partition_path", sa.Text, primary_key=True),
    sa.Column("part_values", Json, nullable=False),
    sa.Column("location", sa.Text, nullable=False),
    sa.ForeignKeyConstraint(
        ["database_name", "table_name"],
        ["catalog_table.database_name", "catalog_table.name"],
        name="fk_catalog_partition_table",
        ondelete="CASCADE",
    ),
)

# What `dq discover` has read of a folder's files, until they change.
discovered_folder = sa.Table(
    "discovered_folder",
    metadata,
    # Hash of the folder's location and the format of its files.
    sa.Column("key", sa.String(64), primary_key=True),
    # The location that was listed.
    *_texts("root"),
    # Hash of the names, sizes and times of the files, and of what determines how they are read.
    sa.Column("print", sa.String(64), nullable=False),
    # JSON as text, because names in a lake can have characters that JSONB rejects.
    *_texts("parts"),
)

# Counts of runs of `dq discover`, as JSON texts like those of `discovered_folder`.
discovery_run = sa.Table(
    "discovery_run",
    metadata,
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("at", UtcDateTime, nullable=False),
    sa.Column("errors", sa.Integer, nullable=False),
    *_texts("sources", "domains", "owners", "shortfalls"),
    # Tables without a contract, of the newest run only.
    sa.Column("uncovered", sa.Text),
)

# Last applied state per catalog: tells drift from a changed contract, and detects removed marks.
catalog_applied = sa.Table(
    "catalog_applied",
    metadata,
    *_keys("catalog", "database_name", "name"),
    sa.Column("spec", Json, nullable=False),
)

# Append-only log of runs.
catalog_log = sa.Table(
    "catalog_log",
    metadata,
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("run_id", sa.String(36), nullable=False),
    sa.Column("at", UtcDateTime, nullable=False),
    *_texts(
        "registry", "catalog", "database_name", "name", "kind", "grade", "ending", "before", "after", "error"
    ),
    # Finds the later line with the outcome of a begun action.
    sa.Index("ix_catalog_log_run", "run_id", "database_name", "name"),
)

# Delivery state of objects in a catalog, as the watcher writes it.
catalog_delivery = sa.Table(
    "catalog_delivery",
    metadata,
    *_keys("catalog", "contract", "object"),
    # Its table, and the id of its contract as in the table's marks.
    *_texts("database_name", "name", "contract_id"),
    # Number of known changes, and how many of them the catalog has.
    sa.Column("changes", sa.Integer, nullable=False),
    sa.Column("settled", sa.Integer, nullable=False),
    # The properties that the catalog has; NULL: unknown, or the table is not registered.
    sa.Column("properties", Json),
    # End of the writer's lease, its fencing token, and the number of failures in a row.
    sa.Column("lease_until", UtcDateTime),
    sa.Column("attempt", sa.Integer, nullable=False),
    sa.Column("failures", sa.Integer, nullable=False),
)

# The changes of the store that `catalog_delivery` knows of.
catalog_delivery_mark = sa.Table(
    "catalog_delivery_mark",
    metadata,
    *_keys("catalog"),
    sa.Column("marks", Json, nullable=False),
)

# Grants in Lake Formation made by dq and not revoked. dq never revokes other grants.
lake_grant = sa.Table(
    "lake_grant",
    metadata,
    *_keys("catalog", "database_name", "name"),
    # An account, or the ARN of a role or user.
    sa.Column("principal", sa.Text, primary_key=True),
    # The data filter of the grant; "" for a grant on columns.
    sa.Column("filter", sa.Text, primary_key=True),
    sa.Column("columns", Json, nullable=False),
    # The subscriptions that require it.
    sa.Column("files", Json, nullable=False),
    sa.Column("expression", sa.Text, nullable=False),
    sa.Column("filter_columns", Json, nullable=False),
)

# The columns that dq tagged.
lake_tag = sa.Table(
    "lake_tag",
    metadata,
    *_keys("catalog", "tag", "database_name", "name"),
    sa.Column("columns", Json, nullable=False),
)

# EventBridge schedules created by dq. dq never deletes other schedules.
schedule_entry = sa.Table(
    "schedule_entry",
    metadata,
    *_keys("catalog", "group_name", "registry", "name"),
    # The contract's key; contract, object and SLO as text for people.
    *_texts("contract", "promise"),
    # Digest of the written schedule, and its modification time in AWS; "" while unknown.
    *_texts("digest", "modified"),
)

# Publications: one row for each revision of a delivery.
publication_revision = sa.Table(
    "publication",
    metadata,
    # The event's id.
    sa.Column("id", sa.String(36), primary_key=True),
    # The same for all revisions of a delivery.
    sa.Column("delivery", sa.String(36), nullable=False),
    sa.Column("revision", sa.Integer, nullable=False),
    sa.Column("rows", Count),
    # Row count of the previous revision.
    sa.Column("previous_rows", Count),
    # Folder of its files, if not the one that the layout names.
    sa.Column("folder", sa.Text),
    # The producer's run, or "" if not given.
    sa.Column("run", sa.Text, nullable=False),
    sa.Column("begun_at", UtcDateTime, nullable=False),
    sa.Column("published_at", UtcDateTime, nullable=False, index=True),
    sa.UniqueConstraint("delivery", "revision", name="uq_publication_revision"),
)


def staged_deliveries() -> sa.Select[tuple[str]]:
    """Select the ids of the newest revisions in folders outside of their table."""
    columns, other_revision = publication_revision.c, publication_revision.alias("later")
    newer = sa.select(other_revision.c.id).where(
        other_revision.c.delivery == columns.delivery, other_revision.c.revision > columns.revision
    )
    return sa.select(columns.id).where(columns.folder.is_not(None), ~newer.exists())


# Start of publications that are not finished.
publication_begun = sa.Table(
    "publication_begun",
    metadata,
    sa.Column("delivery", sa.String(36), primary_key=True),
    sa.Column("at", UtcDateTime, nullable=False),
)

# Outbox of notices to consumers, from the commit of the receipt until a target has accepted them.
consumer_notice = sa.Table(
    "consumer_notice",
    metadata,
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("event_id", sa.String(36), nullable=False),
    # `file:` and a path, or the ARN of a topic.
    *_texts("target", "body"),
    # Texts by name, as lists of pairs.
    sa.Column("attributes", Json, nullable=False),
    sa.Column("written_at", UtcDateTime, nullable=False),
    # End of the sender's lease.
    sa.Column("taken_until", UtcDateTime),
    sa.Column("attempts", sa.Integer, nullable=False),
    sa.Column("problem", sa.Text, nullable=False),
    sa.Column("sent_at", UtcDateTime, index=True),
    sa.UniqueConstraint("event_id", "target", name="uq_consumer_notice_target"),
    sa.Index("ix_consumer_notice_waiting", "target", sqlite_where=_WAITING, postgresql_where=_WAITING),
)
