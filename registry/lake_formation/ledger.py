"""What dq gave in Lake Formation, kept in the store: only this is ever taken back.

A grant is noted before it is given and forgotten after it was taken back, so that a kill in between leaves a
note without a grant, and never a grant without a note.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from sqlalchemy import delete, insert, select

from dq.registry.lake_formation.steps import DataFilter, GrantKey
from dq.registry.table import Key
from dq.registry.tables import lake_grant, lake_tag
from dq.store.engine import Store


@dataclass(frozen=True, slots=True)
class NotedGrant:
    """The columns that dq gave, the subscriptions that asked for it, and the filter behind it, if any."""

    columns: frozenset[str]
    files: frozenset[str]
    filter: DataFilter | None = None


def noted_grants(store: Store, catalog: str) -> dict[GrantKey, NotedGrant]:
    """Every grant that dq gave in this catalog and has not taken back."""
    with store.read() as connection:
        rows = connection.execute(select(lake_grant).where(lake_grant.c.catalog == catalog)).all()
    found = {}
    for row in rows:
        key = GrantKey(row.database_name, row.name, row.principal, row.filter)
        made = None
        if row.filter:
            made = DataFilter(*key.on, row.filter, row.expression, tuple(row.filter_columns))
        found[key] = NotedGrant(frozenset(row.columns), frozenset(row.files), made)
    return found


def note_grant(store: Store, catalog: str, key: GrantKey, noted: NotedGrant | None) -> None:
    """Keeps what dq gave under a key; None, and no columns, forget it."""
    here = {
        "catalog": catalog,
        "database_name": key.database,
        "name": key.table,
        "principal": key.principal,
        "filter": key.filter,
    }
    with store.write() as connection:
        connection.execute(delete(lake_grant).filter_by(**here))
        if noted is not None and noted.columns:
            connection.execute(
                insert(lake_grant).values(
                    **here,
                    columns=sorted(noted.columns),
                    files=sorted(noted.files),
                    expression=noted.filter.expression if noted.filter else "",
                    filter_columns=list(noted.filter.columns) if noted.filter else [],
                )
            )


def noted_tags(store: Store, catalog: str, key: str) -> dict[Key, frozenset[str]]:
    """The columns to which dq gave a value of this tag, by table."""
    query = select(lake_tag).where(lake_tag.c.catalog == catalog, lake_tag.c.tag == key)
    with store.read() as connection:
        rows = connection.execute(query).all()
    return {(row.database_name, row.name): frozenset(row.columns) for row in rows}


def note_tags(store: Store, catalog: str, key: str, on: Key, columns: Collection[str]) -> None:
    """Keeps to which columns of a table dq gave a value of this tag."""
    here = {"catalog": catalog, "tag": key, "database_name": on[0], "name": on[1]}
    with store.write() as connection:
        connection.execute(delete(lake_tag).filter_by(**here))
        if columns:
            connection.execute(insert(lake_tag).values(**here, columns=sorted(columns)))
