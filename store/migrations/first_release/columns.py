"""The words that the tables of the first release are written in. They stay as they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.types import TypeEngine

ID = sa.String(36)

_Kind = type[TypeEngine[Any]] | TypeEngine[Any]


def filled(kind: _Kind, *names: str) -> list[sa.Column[Any]]:
    """Columns that always have a value."""
    return [sa.Column(name, kind, nullable=False) for name in names]


def nullable(kind: _Kind, *names: str) -> list[sa.Column[Any]]:
    """Columns that may be NULL."""
    return [sa.Column(name, kind) for name in names]


def keyed(table: str, key: Sequence[str], columns: list[sa.Column[Any]], *more: sa.Constraint) -> None:
    """Make a table with a primary key that has a name; columns stand in the order of `columns`."""
    op.create_table(table, *columns, sa.PrimaryKeyConstraint(*key, name=f"pk_{table}"), *more)


def reference(table: str, column: str, to: str) -> sa.Constraint:
    """The foreign key of a column to the `id` of another table."""
    return sa.ForeignKeyConstraint([column], [f"{to}.id"], name=f"fk_{table}_{column}_{to}")


def partial_index(name: str, table: str, columns: list[str], where: str, *, unique: bool = False) -> None:
    """Make an index of the rows that `where` (SQL of both databases) holds for."""
    rows = sa.text(where)
    op.create_index(name, table, columns, unique=unique, sqlite_where=rows, postgresql_where=rows)
