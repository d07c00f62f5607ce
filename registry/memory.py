"""What dq applied last to each table, kept in the store."""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import delete, insert, select

from dq.registry.table import Key, TableSpec, spec_of
from dq.registry.tables import catalog_applied
from dq.store.engine import Store

# Databases take so many values in one statement, and more.
_FEW = 500


def databases(store: Store, catalog: str) -> list[str]:
    """The databases of this catalog in which something was applied, sorted."""
    query = select(catalog_applied.c.database_name).where(catalog_applied.c.catalog == catalog).distinct()
    with store.read() as connection:
        return sorted(connection.execute(query).scalars())


def recall(
    store: Store, catalog: str, database: str | None = None, names: Collection[str] | None = None
) -> dict[Key, TableSpec]:
    """What was applied last to every table of this catalog, or of one of its databases.

    With `names` at least to those of that database: a few are asked for, and many are read together.
    """
    query = select(catalog_applied.c.spec).where(catalog_applied.c.catalog == catalog)
    if database is not None:
        query = query.where(catalog_applied.c.database_name == database)
    if names is not None and len(names) <= _FEW:
        query = query.where(catalog_applied.c.name.in_(sorted(names)))
    with store.read() as connection:
        specs = [spec_of(row.spec) for row in connection.execute(query)]
    return {spec.key: spec for spec in specs}


def remember(store: Store, catalog: str, key: Key, spec: TableSpec | None) -> None:
    """Keeps what was applied to a table; None forgets it."""
    database, name = key
    here = {"catalog": catalog, "database_name": database, "name": name}
    with store.write() as connection:
        connection.execute(delete(catalog_applied).filter_by(**here))
        if spec is not None:
            connection.execute(insert(catalog_applied).values(**here, spec=spec.as_json()))
