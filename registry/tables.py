"""The tables of this room, on the store's shared MetaData."""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy import (
    Column,
    ForeignKeyConstraint,
    Index,
    Integer,
    String,
    Table,
    Text,
    UniqueConstraint,
    delete,
    insert,
    text,
)

from dq.store.engine import Store
from dq.store.schema import Count, Json, UtcDateTime, metadata

_WAITING = text("sent_at IS NULL")


def _keys(*names: str) -> list[Column[str]]:
    return [Column(name, Text, primary_key=True) for name in names]


def _texts(*names: str) -> list[Column[str]]:
    return [Column(name, Text, nullable=False) for name in names]


def keep_row(store: Store, table: Table, key: Mapping[str, str], values: Mapping[str, object] | None) -> None:
    """Puts the values in the row with this key; None removes it."""
    with store.write() as connection:
        connection.execute(delete(table).filter_by(**key))
        if values is not None:
            connection.execute(insert(table).values(**key, **values))


# The local catalog.
catalog_table = Table(
    "catalog_table",
    metadata,
    *_keys("database_name", "name"),
    # Grows by one with every write: who writes says which version was read.
    Column("version", Integer, nullable=False),
    Column("spec", Json, nullable=False),
)

catalog_partition = Table(
    "catalog_partition",
    metadata,
    *_keys("database_name", "table_name"),
    # As in a path: `flight_date=2026-11-20/hour=3`, escaped.
    Column("partition_path", Text, primary_key=True),
    Column("part_values", Json, nullable=False),
    Column("location", Text, nullable=False),
    ForeignKeyConstraint(
        ["database_name", "table_name"],
        ["catalog_table.database_name", "catalog_table.name"],
        name="fk_catalog_partition_table",
        ondelete="CASCADE",
    ),
)

# What dq applied last, per catalog: tells drift from a changed contract, and finds marks that were wiped.
catalog_applied = Table(
    "catalog_applied",
    metadata,
    *_keys("catalog", "database_name", "name"),
    Column("spec", Json, nullable=False),
)

# What runs did, as it happened: rows are only added.
catalog_log = Table(
    "catalog_log",
    metadata,
    Column("number", Integer, primary_key=True, autoincrement=True),
    Column("run_id", String(36), nullable=False),
    Column("at", UtcDateTime, nullable=False),
    *_texts(
        "registry", "catalog", "database_name", "name", "kind", "grade", "ending", "before", "after", "error"
    ),
    # How a line that a run began has ended.
    Index("ix_catalog_log_run", "run_id", "database_name", "name"),
)

# What dq gave in Lake Formation and has not taken back: nothing else is ever taken back.
lake_grant = Table(
    "lake_grant",
    metadata,
    *_keys("catalog", "database_name", "name"),
    # An account, or the ARN of a role or user.
    Column("principal", Text, primary_key=True),
    # The data filter behind it; "" for a grant on columns.
    Column("filter", Text, primary_key=True),
    Column("columns", Json, nullable=False),
    # The subscriptions that asked for it.
    Column("files", Json, nullable=False),
    Column("expression", Text, nullable=False),
    Column("filter_columns", Json, nullable=False),
)

# The columns to which dq gave a value of a tag.
lake_tag = Table(
    "lake_tag",
    metadata,
    *_keys("catalog", "tag", "database_name", "name"),
    Column("columns", Json, nullable=False),
)

# The schedules of EventBridge that dq made: nothing else is ever removed.
schedule_entry = Table(
    "schedule_entry",
    metadata,
    *_keys("catalog", "group_name", "registry", "name"),
    # The contract's key, and contract, object and SLO for people.
    *_texts("contract", "promise"),
    # Of what was written, and when AWS says that was; "" while nobody knows.
    *_texts("digest", "modified"),
)

# What was published: one row for each revision of a delivery that consumers were to hear of.
publication = Table(
    "publication",
    metadata,
    # The event's id.
    Column("id", String(36), primary_key=True),
    # The same for all revisions of a delivery.
    Column("delivery", String(36), nullable=False),
    Column("revision", Integer, nullable=False),
    Column("rows", Count),
    # Those of the revision before.
    Column("previous_rows", Count),
    # Where its files lie, if not where Hive would put them.
    Column("folder", Text),
    # Whose run it was, where the producer says; "" where not.
    Column("run", Text, nullable=False),
    Column("begun_at", UtcDateTime, nullable=False),
    Column("published_at", UtcDateTime, nullable=False, index=True),
    UniqueConstraint("delivery", "revision", name="uq_publication_revision"),
)

# When publishing of a delivery began that has not come to its end.
publication_begun = Table(
    "publication_begun",
    metadata,
    Column("delivery", String(36), primary_key=True),
    Column("at", UtcDateTime, nullable=False),
)

# What consumers are told, from the commit of the receipt until a place has taken it.
consumer_notice = Table(
    "consumer_notice",
    metadata,
    Column("number", Integer, primary_key=True, autoincrement=True),
    Column("event_id", String(36), nullable=False),
    # `file:` and a path, or the ARN of a topic.
    *_texts("target", "body"),
    # Texts by name, as lists of pairs.
    Column("attributes", Json, nullable=False),
    Column("written_at", UtcDateTime, nullable=False),
    # Until then it is being sent by whoever took it.
    Column("taken_until", UtcDateTime),
    Column("attempts", Integer, nullable=False),
    Column("problem", Text, nullable=False),
    Column("sent_at", UtcDateTime, index=True),
    UniqueConstraint("event_id", "target", name="uq_consumer_notice_target"),
    Index("ix_consumer_notice_waiting", "target", sqlite_where=_WAITING, postgresql_where=_WAITING),
)
