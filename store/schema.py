"""The MetaData on which each package declares its tables, and the column types that they share."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from importlib import import_module
from typing import Any

from sqlalchemy import JSON, BigInteger, Dialect, Integer, MetaData, String
from sqlalchemy.dialects.postgresql import JSONB, TIMESTAMP
from sqlalchemy.engine.processors import str_to_datetime
from sqlalchemy.types import TypeDecorator

# Every constraint has a name, so that a later migration can drop it on both databases.
metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
        "pk": "pk_%(table_name)s",
    }
)

TABLE_MODULES = (
    "dq.alerts.tables",
    "dq.dataquality.delivery.tables",
    "dq.dataquality.table_metadata",
    "dq.dataquality.results",
    "dq.dataquality.answers.partition_cache",
    "dq.registry.tables",
)
"""Modules that declare tables, by name, because these packages import the store and not the reverse."""

_TEXT_FORMAT = "%Y-%m-%dT%H:%M:%S.%fZ"
_WIDTH = len("2026-05-01T08:00:00.000000Z")

Json = JSON(none_as_null=True).with_variant(JSONB(none_as_null=True), "postgresql")
"""Lists, maps, strings, numbers. PostgreSQL does not keep the order of a map's keys: use lists of pairs."""

Count = BigInteger().with_variant(Integer(), "sqlite")
"""A number of rows, 64 bits on both databases."""


def complete_metadata() -> MetaData:
    """Return the MetaData with the tables of all packages, importing those that were not imported yet."""
    for name in TABLE_MODULES:
        import_module(name)
    return metadata


class UtcDateTime(TypeDecorator[datetime]):
    """Instants: aware datetimes in, UTC datetimes out. None is NULL; a naive datetime is a ValueError.

    Stored as timestamptz on PostgreSQL, and on SQLite as fixed-width text with microseconds, so that text
    order is time order.
    """

    impl = String(_WIDTH).with_variant(TIMESTAMP(timezone=True), "postgresql")
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | str | None:
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError(f"{value!r} has no zone. The store takes aware datetimes only.")
        instant = value.astimezone(UTC)
        if dialect.name == "postgresql":
            return instant
        # strftime's %Y does not pad years before 1000 on Linux.
        return instant.strftime(_TEXT_FORMAT).rjust(_WIDTH, "0")

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:  # noqa: ARG002
        return value if value is None else value.astimezone(UTC)

    def result_processor(self, dialect: Dialect, coltype: object) -> Callable[[Any], Any] | None:
        # SQLAlchemy parses text in C, which matters because most rows have several instants.
        return str_to_datetime if dialect.name == "sqlite" else super().result_processor(dialect, coltype)
