"""Tables in Glue: read, made and changed, never blindly. Each change names the version that was read."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from botocore import exceptions as aws

from dq.contracts.shared.outcome import DqError, Unreadable, UsageError
from dq.contracts.types import NotAType
from dq.registry.catalog import (
    Partition,
    StalePlan,
    Values,
    moved_partition,
    no_partition,
    no_table,
    stale,
)
from dq.registry.diff import Action, ChangedField, LiveTable, Obstacle, changes, merged
from dq.registry.glue import partitions as parts
from dq.registry.glue.client import ABSENT, THERE, Connection, code_of, explained, is_unknown, unless
from dq.registry.glue.conversion import FORMATS, Raw, changed_table, live_table, new_table
from dq.registry.glue.partitions import sync_indexes, wanted_indexes, with_indexes
from dq.registry.glue.validation import refuse
from dq.registry.table import MANAGED_BY, REGISTRY, TableSpec, fold_location

_TURNS = 5
_TURN_SECONDS = 0.2
# Another writer was there between our reading and our writing, or still is.
_MOVED = frozenset({"ConcurrentModificationException", "ResourceNotReadyException"})
# An old version is kept where columns change, so that one can go back to it.
_KEEPS_VERSION = frozenset(
    {ChangedField.COLUMN, ChangedField.TYPE, ChangedField.ORDER, ChangedField.FORMAT, ChangedField.LOCATION}
)
_OTHER_KEYS = (
    "Glue keeps the partitions of a table, and its keys with them.",
    "Give the new keys a table of their own, by another physicalName.",
)
# A partition has types and a SerDe of its own, which are those of the table when it was added.
_OF_PARTITIONS = (ChangedField.TYPE, ChangedField.READER)


@dataclass(frozen=True, slots=True)
class Glue:
    """A `Catalog` in AWS Glue. `pause` waits between turns when others write the same table."""

    connection: Connection
    formats: frozenset[str] = frozenset(FORMATS)
    pause: Callable[[float], None] = time.sleep

    @property
    def id(self) -> str:
        return self.connection.id

    def vet(self, spec: TableSpec) -> None:
        if spec.format in FORMATS:
            model = self.connection.client.meta.service_model.operation_model("CreateTable")
            refuse(model, _new(spec))

    def read(self, database: str, name: str) -> LiveTable | None:
        with explained(f"read {database}.{name}"):
            raw = self._raw(database, name)
        return None if raw is None else live_table(raw)

    def tables(self, database: str) -> list[LiveTable]:
        pages = self.connection.client.get_paginator("get_tables")
        asked = pages.paginate(DatabaseName=database, **self.connection.catalog)
        with explained(f"list the tables of {database}"):
            try:
                found = [
                    live_table(with_indexes(self.connection, raw))
                    for page in asked
                    for raw in page["TableList"]
                ]
            except aws.ClientError as error:
                if code_of(error) != ABSENT:
                    raise
                return []
        return sorted(found, key=lambda table: table.spec.name)

    def obstacles(self, action: Action) -> Iterator[Obstacle]:
        if action.after is not None and any(
            change.field is ChangedField.PARTITIONS for change in action.changes
        ):
            yield Obstacle("", _OTHER_KEYS[0], _OTHER_KEYS[1])

    def apply(self, action: Action) -> None:
        database, name = action.key
        with explained(f"write {database}.{name}"):
            raw = self._raw(database, name)
            if (raw is None) != (action.before is None):
                raise stale(database, name)
            if raw is not None and action.after is not None:
                self._update(action, raw)
            elif raw is not None:
                self._delete(action, live_table(raw))
            elif action.after is not None:
                self._create(action.after)

    def add_partition(self, database: str, name: str, values: Values, location: str) -> bool:
        with explained(f"add a partition to {database}.{name}"):
            raw = self._raw(database, name)
            if raw is None:
                raise no_table(database, name)
            there = parts.place_of(self.connection, raw, values)
            if there is not None and there != fold_location(location):
                raise moved_partition(database, name, values, there, location)
            return there is None and self.add_partitions(raw, [Partition(values, location)]) == 1

    def place_of(self, database: str, name: str, values: Values) -> str | None:
        with explained(f"read a partition of {database}.{name}"):
            raw = self._raw(database, name)
            return None if raw is None else parts.place_of(self.connection, raw, values)

    def move_partition(self, database: str, name: str, values: Values, location: str) -> None:
        with explained(f"move a partition of {database}.{name}"):
            raw = self._raw(database, name)
            if raw is None or not parts.move(self.connection, raw, Partition(values, location)):
                raise no_partition(database, name, values)

    def add_partitions(self, raw: Raw, wanted: list[Partition]) -> int:
        """Adds these to a table as `GetTable` gave it, and gives how many were not there yet."""
        return parts.add(self.connection, raw, wanted)

    def partitions(self, database: str, name: str) -> list[Partition]:
        with explained(f"list the partitions of {database}.{name}"):
            raw = self._raw(database, name)
            found = [] if raw is None else list(parts.each(self.connection, raw))
        return sorted(found, key=lambda partition: partition.values)

    def _raw(self, database: str, name: str) -> dict[str, Any] | None:
        asked = {"DatabaseName": database, "Name": name, **self.connection.catalog}
        found = unless(ABSENT, self.connection.client.get_table, **asked)
        return None if found is None else with_indexes(self.connection, found["Table"])

    def _create(self, spec: TableSpec) -> None:
        made = {**_new(spec), **self.connection.catalog}
        for _ in range(2):
            try:
                self.connection.client.create_table(**made)
                return
            except aws.ClientError as error:
                code = code_of(error)
                if code == ABSENT:
                    # Most databases are there: asking before each table would be a call for nothing.
                    self._create_database(spec)
                elif code == THERE:
                    # Of another process, or of our own first try: who asks compares.
                    raise stale(*spec.key) from error
                else:
                    self._unless_arrived(error, spec)
                    return
            except aws.HTTPClientError as error:
                self._unless_arrived(error, spec)
                return
        raise Unreadable(
            f"AWS does not find the database {spec.database} that it has just made.", "Try again later."
        )

    def _create_database(self, spec: TableSpec) -> None:
        marks = {MANAGED_BY: "dq", REGISTRY: spec.parameter(REGISTRY)}
        made = {"Name": spec.database, "Parameters": {key: text for key, text in marks.items() if text}}
        try:
            self.connection.client.create_database(DatabaseInput=made, **self.connection.catalog)
        except aws.ClientError as error:
            if code_of(error) != THERE and not is_unknown(error):
                raise

    def _update(self, action: Action, raw: dict[str, Any]) -> None:
        database, name = action.key
        for turn in range(_TURNS):
            after = _target(action, live_table(raw))
            if not parts.fits(raw, after):
                raise DqError(f"{database}.{name}: {_OTHER_KEYS[0]}", _OTHER_KEYS[1])
            made = changed_table(raw, after)
            kinds = {change.field for change in action.changes if not change.kept}
            if not kinds.isdisjoint(_OF_PARTITIONS):
                # First, so that a kill in between leaves the change to be planned again.
                storage, reader = made["StorageDescriptor"], ChangedField.READER in kinds
                parts.follow(self.connection, raw, storage, reader=reader)
            # These too, for the table is asked for them by what it says then.
            sync_indexes(self.connection, raw, after)
            try:
                self.connection.client.update_table(
                    DatabaseName=database,
                    TableInput=made,
                    VersionId=raw["VersionId"],
                    SkipArchive=kinds.isdisjoint(_KEEPS_VERSION),
                    **self.connection.catalog,
                )
                return
            except aws.ClientError as error:
                if code_of(error) not in _MOVED:
                    self._unless_arrived(error, after)
                    return
            except aws.HTTPClientError as error:
                self._unless_arrived(error, after)
                return
            # Full jitter: two that met once should not meet again.
            self.pause(random.uniform(0, _TURN_SECONDS * 2**turn))
            found = self._raw(database, name)
            if found is None:
                raise stale(database, name)
            if not changes(live_table(found).spec, after, None):
                return
            raw = found
        raise StalePlan(f"{database}.{name} is written all the time by someone else.", "Try again later.")

    def _delete(self, action: Action, live: LiveTable) -> None:
        database, name = action.key
        if action.before is None or live.version != action.before.version:
            raise stale(database, name)
        asked = {"DatabaseName": database, "Name": name, **self.connection.catalog}
        # It may be gone by our own first try, of which the answer was lost.
        unless(ABSENT, self.connection.client.delete_table, **asked)

    def _unless_arrived(self, error: Exception, wanted: TableSpec) -> None:
        """Reads back what was written when the answer does not tell; raises the error if it is not there."""
        if not is_unknown(error):
            raise error
        raw = self._raw(*wanted.key)
        if raw is None or changes(live_table(raw).spec, wanted, None):
            raise error


def _new(spec: TableSpec) -> dict[str, Any]:
    """The request that makes a table."""
    indexes = wanted_indexes(spec)
    made = {"DatabaseName": spec.database, "TableInput": _table_input(spec)}
    return made | ({"PartitionIndexes": indexes} if indexes else {})


def _table_input(spec: TableSpec) -> dict[str, Any]:
    try:
        return new_table(spec)
    except NotAType as error:
        names = [column.name for column in (*spec.columns, *spec.partitions)]
        raise UsageError(
            f"{spec.database}.{spec.name}: a column's type is none of Glue's: {error}.",
            f"Give the column another physicalType; they are {', '.join(names)}.",
        ) from error


def _target(action: Action, live: LiveTable) -> TableSpec:
    """What to make of the table as it is now. Raises StalePlan where another changed what we would change.

    Writers of Iceberg and crawlers write all the time: what they touch beside us is merged anew.
    """
    assert action.before is not None
    assert action.after is not None
    if live.version == action.before.version:
        return action.after
    if action.wanted is None:
        raise stale(*action.key)
    before, now = (changes(table.spec, action.wanted, None) for table in (action.before, live))
    if before != now:
        raise stale(*action.key)
    return merged(live.spec, action.wanted, action.changes)
