"""The embedded catalog: rows in the state store. Works with many processes and without a JVM."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlalchemy import ColumnElement, Connection, and_, delete, insert, select, update

from dq.contracts.layout import partition_folder
from dq.contracts.outcome import FORMATS, DqError, UsageError
from dq.registry import catalog
from dq.registry.table import TableSpec, fold_location, spec_from_json
from dq.registry.tables import catalog_partition, catalog_table
from dq.store.engine import Store

# Partitions of one transaction: a query may have a limited number of values.
_BATCH = 500


@dataclass(frozen=True, slots=True)
class Local:
    """A `Catalog` in the store. Every row has a version; a write checks the version it has read."""

    store: Store
    formats: frozenset[str] = frozenset(FORMATS)
    id: str = "local"

    def vet(self, spec: TableSpec) -> None:
        """Accept every specification."""

    def read(self, database: str, name: str) -> catalog.LiveTable | None:
        with self.store.read() as connection:
            return _read(connection, database, name)

    def databases(self) -> list[str]:
        name = catalog_table.c.database_name
        with self.store.read() as connection:
            return list(connection.execute(select(name).distinct().order_by(name)).scalars())

    def tables(self, database: str) -> list[catalog.LiveTable]:
        query = (
            select(catalog_table.c.spec, catalog_table.c.version)
            .where(catalog_table.c.database_name == database)
            .order_by(catalog_table.c.name)
        )
        with self.store.read() as connection:
            return [
                catalog.LiveTable(spec_from_json(row.spec), str(row.version))
                for row in connection.execute(query)
            ]

    def table_names(self, database: str) -> list[str]:
        return [table.spec.name for table in self.tables(database)]

    def blockers(self, action: catalog.Action) -> tuple[catalog.Blocker, ...]:
        return ()

    def apply(self, action: catalog.Action) -> None:
        database, name = action.key
        matches = (catalog_table.c.database_name == database) & (catalog_table.c.name == name)
        with self.store.write() as connection:
            # One writer at a time: the row read here cannot change before the write below.
            live = _read(connection, database, name)
            planned_version = action.before.version if action.before else None
            if (live.version if live else None) != planned_version:
                raise catalog.stale_plan(database, name)
            if action.after is None:
                connection.execute(delete(catalog_table).where(matches))
            elif live is None:
                row = {"database_name": database, "name": name, "version": 1, "spec": action.after.as_json()}
                connection.execute(insert(catalog_table).values(row))
            else:
                values = {"version": int(live.version) + 1, "spec": action.after.as_json()}
                connection.execute(update(catalog_table).where(matches).values(values))
                if live.spec.partitions != action.after.partitions:
                    connection.execute(delete(catalog_partition).where(_in_table(database, name)))

    def add_partition(self, database: str, name: str, values: catalog.Values, location: str) -> bool:
        (result,) = self.add_partitions(database, name, [catalog.Partition(values, location)])
        if isinstance(result, DqError):
            raise result
        return result

    def add_partitions(
        self, database: str, name: str, partitions: Sequence[catalog.Partition]
    ) -> list[bool | DqError]:
        results: list[bool | DqError] = []
        for start in range(0, len(partitions), _BATCH):
            with self.store.write() as connection:
                if _read(connection, database, name) is None:
                    raise catalog.no_table(database, name)
                results += _add(connection, database, name, partitions[start : start + _BATCH])
        return results

    def partition_location(self, database: str, name: str, values: catalog.Values) -> str | None:
        query = select(catalog_partition.c.location).where(_partition(database, name, values))
        with self.store.read() as connection:
            location: str | None = connection.execute(query).scalar_one_or_none()
        return None if location is None else fold_location(location)

    def move_partition(self, database: str, name: str, values: catalog.Values, location: str) -> None:
        matches = _partition(database, name, values)
        with self.store.write() as connection:
            if (
                connection.execute(
                    update(catalog_partition).where(matches).values(location=location)
                ).rowcount
                == 0
            ):
                raise catalog.no_partition(database, name, values)

    def partitions(self, database: str, name: str) -> list[catalog.Partition]:
        query = select(catalog_partition.c.part_values, catalog_partition.c.location).where(
            _in_table(database, name)
        )
        with self.store.read() as connection:
            rows = connection.execute(query).all()
        partitions = [catalog.Partition(tuple((key, value) for key, value in row[0]), row[1]) for row in rows]
        return sorted(partitions, key=lambda partition: partition.values)


def _add(
    connection: Connection, database: str, name: str, partitions: Sequence[catalog.Partition]
) -> Iterator[bool | DqError]:
    part = catalog_partition.c
    paths = [partition_folder(partition.values) for partition in partitions]
    query = select(part.partition_path, part.location).where(
        _in_table(database, name), part.partition_path.in_(paths)
    )
    locations = {row.partition_path: row.location for row in connection.execute(query)}
    rows = []
    for path, partition in zip(paths, partitions, strict=True):
        current = locations.get(path)
        if current is not None and current != partition.location:
            yield catalog.moved_partition(database, name, partition.values, current, partition.location)
            continue
        if current is None:
            locations[path] = partition.location
            rows.append(
                {
                    "database_name": database,
                    "table_name": name,
                    "partition_path": path,
                    "part_values": [list(pair) for pair in partition.values],
                    "location": partition.location,
                }
            )
        yield current is None
    if rows:
        connection.execute(insert(catalog_partition), rows)


def _in_table(database: str, name: str) -> ColumnElement[bool]:
    part = catalog_partition.c
    return and_(part.database_name == database, part.table_name == name)


def _partition(database: str, name: str, values: catalog.Values) -> ColumnElement[bool]:
    path = partition_folder(values)
    return and_(_in_table(database, name), catalog_partition.c.partition_path == path)


def _read(connection: Connection, database: str, name: str) -> catalog.LiveTable | None:
    query = select(catalog_table.c.spec, catalog_table.c.version).where(
        catalog_table.c.database_name == database, catalog_table.c.name == name
    )
    row = connection.execute(query).one_or_none()
    return None if row is None else catalog.LiveTable(spec_from_json(row.spec), str(row.version))


def _open(settings: catalog.CatalogSettings) -> Local:
    if settings.store is None:
        raise UsageError("The local catalog needs the state store.", "Set DQ_STORE_URL.")
    return Local(settings.store)


CATALOG = catalog.CatalogKind("local", _open)
