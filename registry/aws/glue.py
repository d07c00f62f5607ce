"""AWS Glue's Data Catalog: its tables, their partitions and partition indexes."""

from __future__ import annotations

import hashlib
import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from botocore import exceptions as aws

from dq.contracts.outcome import DqError, Unreadable, UsageError
from dq.contracts.types import NotAType
from dq.registry import catalog
from dq.registry.aws.client import ABSENT, THERE, Connection, code_of, explained, is_unknown, unless
from dq.registry.aws.glue_requests import FORMATS, Raw, at_s3, changed_table, live_table, new_table, refuse
from dq.registry.table import (
    MANAGED_BY,
    PARTITION_INDEXES,
    REGISTRY,
    TableSpec,
    fold_location,
    index_keys,
    index_text,
)

_TURNS = 5
_TURN_SECONDS = 0.2
# Another writer was there between our reading and our writing, or still is.
_MOVED = frozenset({"ConcurrentModificationException", "ResourceNotReadyException"})
# An old version is kept where columns change, so that one can go back to it.
_KEEPS_VERSION = frozenset(
    {
        catalog.ChangedField.COLUMN,
        catalog.ChangedField.TYPE,
        catalog.ChangedField.ORDER,
        catalog.ChangedField.FORMAT,
        catalog.ChangedField.LOCATION,
    }
)
_OTHER_KEYS = (
    "Glue keeps the partitions of a table, and its keys with them.",
    "Give the new keys a table of their own, by another physicalName.",
)
# A partition has types and a SerDe of its own, which are those of the table when it was added.
_OF_PARTITIONS = (catalog.ChangedField.TYPE, catalog.ChangedField.READER)


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

    def read(self, database: str, name: str) -> catalog.LiveTable | None:
        with explained(f"read {database}.{name}"):
            raw = self._raw(database, name)
        return None if raw is None else live_table(raw)

    def tables(self, database: str) -> list[catalog.LiveTable]:
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

    def obstacles(self, action: catalog.Action) -> Iterator[catalog.Obstacle]:
        if action.after is not None and any(
            change.field is catalog.ChangedField.PARTITIONS for change in action.changes
        ):
            yield catalog.Obstacle("", _OTHER_KEYS[0], _OTHER_KEYS[1])

    def apply(self, action: catalog.Action) -> None:
        database, name = action.key
        with explained(f"write {database}.{name}"):
            raw = self._raw(database, name)
            if (raw is None) != (action.before is None):
                raise catalog.stale(database, name)
            if raw is not None and action.after is not None:
                self._update(action, raw)
            elif raw is not None:
                self._delete(action, live_table(raw))
            elif action.after is not None:
                self._create(action.after)

    def add_partition(self, database: str, name: str, values: catalog.Values, location: str) -> bool:
        with explained(f"add a partition to {database}.{name}"):
            raw = self._raw(database, name)
            if raw is None:
                raise catalog.no_table(database, name)
            there = place_of(self.connection, raw, values)
            if there is not None and there != fold_location(location):
                raise catalog.moved_partition(database, name, values, there, location)
            return there is None and add(self.connection, raw, catalog.Partition(values, location))

    def place_of(self, database: str, name: str, values: catalog.Values) -> str | None:
        with explained(f"read a partition of {database}.{name}"):
            raw = self._raw(database, name)
            return None if raw is None else place_of(self.connection, raw, values)

    def move_partition(self, database: str, name: str, values: catalog.Values, location: str) -> None:
        with explained(f"move a partition of {database}.{name}"):
            raw = self._raw(database, name)
            if raw is None or not move(self.connection, raw, catalog.Partition(values, location)):
                raise catalog.no_partition(database, name, values)

    def partitions(self, database: str, name: str) -> list[catalog.Partition]:
        with explained(f"list the partitions of {database}.{name}"):
            raw = self._raw(database, name)
            found = [] if raw is None else list(each(self.connection, raw))
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
            except (aws.ClientError, aws.HTTPClientError) as error:
                code = code_of(error)
                if code == ABSENT:
                    # Most databases are there: asking before each table would be a call for nothing.
                    self._create_database(spec)
                elif code == THERE:
                    # Of another process, or of our own first try: who asks compares.
                    raise catalog.stale(*spec.key) from error
                else:
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

    def _update(self, action: catalog.Action, raw: dict[str, Any]) -> None:
        database, name = action.key
        for turn in range(_TURNS):
            after = _target(action, live_table(raw))
            if not fits(raw, after):
                raise DqError(f"{database}.{name}: {_OTHER_KEYS[0]}", _OTHER_KEYS[1])
            made = changed_table(raw, after)
            kinds = {change.field for change in action.changes if not change.kept}
            if not kinds.isdisjoint(_OF_PARTITIONS):
                # First, so that a kill in between leaves the change to be planned again.
                storage, reader = made["StorageDescriptor"], catalog.ChangedField.READER in kinds
                follow(self.connection, raw, storage, reader=reader)
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
            except (aws.ClientError, aws.HTTPClientError) as error:
                if code_of(error) not in _MOVED:
                    self._unless_arrived(error, after)
                    return
            # Full jitter: two that met once should not meet again.
            self.pause(random.uniform(0, _TURN_SECONDS * 2**turn))
            found = self._raw(database, name)
            if found is None:
                raise catalog.stale(database, name)
            if not catalog.changes(live_table(found).spec, after, None):
                return
            raw = found
        raise catalog.StalePlan(
            f"{database}.{name} is written all the time by someone else.", "Try again later."
        )

    def _delete(self, action: catalog.Action, live: catalog.LiveTable) -> None:
        database, name = action.key
        if action.before is None or live.version != action.before.version:
            raise catalog.stale(database, name)
        asked = {"DatabaseName": database, "Name": name, **self.connection.catalog}
        # It may be gone by our own first try, of which the answer was lost.
        unless(ABSENT, self.connection.client.delete_table, **asked)

    def _unless_arrived(self, error: Exception, wanted: TableSpec) -> None:
        """Reads back what was written when the answer does not tell; raises the error if it is not there."""
        if not is_unknown(error):
            raise error
        raw = self._raw(*wanted.key)
        if raw is None or catalog.changes(live_table(raw).spec, wanted, None):
            raise error


def _new(spec: TableSpec) -> dict[str, Any]:
    """The request that makes a table."""
    indexes = [_index(keys) for keys in index_keys(spec.parameter(PARTITION_INDEXES))]
    try:
        made = {"DatabaseName": spec.database, "TableInput": new_table(spec)}
    except NotAType as error:
        names = [column.name for column in (*spec.columns, *spec.partitions)]
        raise UsageError(
            f"{spec.database}.{spec.name}: a column's type is none of Glue's: {error}.",
            f"Give the column another physicalType; they are {', '.join(names)}.",
        ) from error
    return made | ({"PartitionIndexes": indexes} if indexes else {})


def _target(action: catalog.Action, live: catalog.LiveTable) -> TableSpec:
    """What to make of the table as it is now. Raises StalePlan where another changed what we would change.

    Writers of Iceberg and crawlers write all the time: what they touch beside us is merged anew.
    """
    assert action.before is not None
    assert action.after is not None
    if live.version == action.before.version:
        return action.after
    if action.wanted is None:
        raise catalog.stale(*action.key)
    before, now = (catalog.changes(table.spec, action.wanted, None) for table in (action.before, live))
    if before != now:
        raise catalog.stale(*action.key)
    return catalog.merged(live.spec, action.wanted, action.changes)


# Partitions in Glue: listed by pages, changed by batches, each with the table's own storage.

_BATCH = 100


def place_of(connection: Connection, raw: Raw, values: catalog.Values) -> str | None:
    """Where a partition lies, folded; None when there is none. Raises UsageError for other keys."""
    found = _read(connection, raw, ordered(raw, values))
    return None if found is None else _location(found)


def _read(connection: Connection, raw: Raw, values: list[str]) -> Raw | None:
    asked = {"PartitionValues": values, **_table(connection, raw)}
    found = unless(ABSENT, connection.client.get_partition, **asked)
    return None if found is None else found["Partition"]


def ordered(raw: Raw, values: catalog.Values) -> list[str]:
    """The values in the order of the table's keys. Raises UsageError unless each key has one."""
    keys = _keys(raw)
    given = dict(values)
    if sorted(given) != sorted(keys) or len(given) != len(values):
        raise UsageError(
            f"{raw['DatabaseName']}.{raw['Name']} has the partition keys {', '.join(keys) or 'none'}, "
            f"not {', '.join(given) or 'none'}.",
            "Give each key one value.",
        )
    return [given[key] for key in keys]


def each(connection: Connection, raw: Raw) -> Iterator[catalog.Partition]:
    """Every partition, page by page."""
    keys = _keys(raw)
    for one in _listed(connection, raw, ExcludeColumnSchema=True):
        yield catalog.Partition(tuple(zip(keys, one["Values"], strict=True)), _location(one))


def add(connection: Connection, raw: Raw, one: catalog.Partition) -> bool:
    """Adds a partition; False where another process has done so.

    Raises DqError where that one lies at another place, and where Glue refuses it.
    """
    values = ordered(raw, one.values)
    storage = {**(raw.get("StorageDescriptor") or {}), "Location": f"{fold_location(one.location)}/"}
    made = {"Values": values, "StorageDescriptor": storage}
    answer = connection.client.batch_create_partition(PartitionInputList=[made], **_table(connection, raw))
    # Errors of single partitions come in an answer that says all is well.
    for failure in answer.get("Errors") or []:
        error = failure["ErrorDetail"]
        if error["ErrorCode"] != THERE:
            raise _refused(raw, error)
        there = place_of(connection, raw, one.values)
        if there is not None and there != fold_location(one.location):
            raise catalog.moved_partition(raw["DatabaseName"], raw["Name"], one.values, there, one.location)
        return False
    return True


def move(connection: Connection, raw: Raw, one: catalog.Partition) -> bool:
    """Gives a partition another place, and keeps all else that it says; False where there is none."""
    found = _read(connection, raw, ordered(raw, one.values))
    if found is None:
        return False
    storage = {**(found.get("StorageDescriptor") or {}), "Location": f"{fold_location(one.location)}/"}
    _update(connection, raw, [_entry(found, storage)])
    return True


def fits(raw: Raw, after: TableSpec) -> bool:
    """Whether the partition keys stay what they are, names and types."""
    live = live_table(raw).spec
    return [(key.name, key.type) for key in live.partitions] == [
        (key.name, key.type) for key in after.partitions
    ]


def follow(connection: Connection, raw: Raw, table: Raw, *, reader: bool) -> None:
    """Gives every partition the types of this storage, which Athena compares; with `reader` its SerDe too."""
    types = {column["Name"]: column["Type"] for column in table["Columns"]}
    serde = {"SerdeInfo": table["SerdeInfo"]} if reader else {}
    entries: list[dict[str, Any]] = []
    for one in _listed(connection, raw):
        storage = dict(one.get("StorageDescriptor") or {})
        changed = [
            {**column, "Type": types.get(column["Name"], column["Type"])}
            for column in storage.get("Columns") or []
        ]
        wanted = storage | {"Columns": changed} | serde
        if wanted == storage:
            continue
        entries.append(_entry(one, at_s3(wanted)))
    _update(connection, raw, entries)


def _entry(live: Raw, storage: Raw) -> dict[str, Any]:
    """The change of a partition to this storage, with all else that it says kept."""
    kept = {key: live[key] for key in ("Values", "Parameters") if live.get(key)}
    return {"PartitionValueList": live["Values"], "PartitionInput": {**kept, "StorageDescriptor": storage}}


def _update(connection: Connection, raw: Raw, entries: Sequence[dict[str, Any]]) -> None:
    for start in range(0, len(entries), _BATCH):
        answer = connection.client.batch_update_partition(
            Entries=entries[start : start + _BATCH], **_table(connection, raw)
        )
        for error in answer.get("Errors") or []:
            raise _refused(raw, error.get("ErrorDetail", {}))


def _listed(connection: Connection, raw: Raw, **options: Any) -> Iterator[dict[str, Any]]:
    pages = connection.client.get_paginator("get_partitions")
    for page in pages.paginate(**_table(connection, raw), **options):
        yield from page["Partitions"]


def _table(connection: Connection, raw: Raw) -> dict[str, str]:
    return {"DatabaseName": raw["DatabaseName"], "TableName": raw["Name"], **connection.catalog}


def _keys(raw: Raw) -> list[str]:
    return [key["Name"].lower() for key in raw.get("PartitionKeys") or []]


def _location(raw: Raw) -> str:
    return fold_location((raw.get("StorageDescriptor") or {}).get("Location") or "")


def _refused(raw: Raw, error: Raw) -> DqError:
    why = f"{error.get('ErrorCode')}: {error.get('ErrorMessage', '')}"
    return Unreadable(f"Glue refused partitions of {raw['DatabaseName']}.{raw['Name']}: {why}")


# Partition indexes in Glue, by which partitions are found without reading all of them.
#
# What a contract asks for stands in the table's parameter `dq.partition-indexes`; what there is, Glue alone
# knows, so tables with that parameter are asked for it. Source: AWS, "Creating partition indexes".

Index = dict[str, Any]

_PREFIX = "dq_"
_LONGEST = 255
_THERE = ("ACTIVE", "CREATING")


def with_indexes(connection: Connection, raw: dict[str, Any]) -> dict[str, Any]:
    """The table, its parameter saying which of our indexes are there."""
    told = (raw.get("Parameters") or {}).get(PARTITION_INDEXES)
    if told is None:
        return raw
    asked = set(index_keys(told))
    live = [
        _index_keys(one)
        for one in _listed_indexes(connection, raw)
        if one["IndexStatus"] in _THERE
        and (_index_keys(one) in asked or one["IndexName"].startswith(_PREFIX))
    ]
    return {**raw, "Parameters": {**raw["Parameters"], PARTITION_INDEXES: index_text(live)}}


def sync_indexes(connection: Connection, raw: dict[str, Any], after: TableSpec) -> None:
    """Makes the missing indexes of a table, and deletes ours that are not wanted any more.

    Raises DqError for one that Glue could not fill.
    """
    wanted = index_keys(after.parameter(PARTITION_INDEXES))
    if index_text(wanted) == raw["Parameters"].get(PARTITION_INDEXES, ""):
        return
    live = list(_listed_indexes(connection, raw))
    table = _table(connection, raw)
    for one in live:
        if one["IndexName"].startswith(_PREFIX) and _index_keys(one) not in wanted:
            # First, for there can be three.
            connection.client.delete_partition_index(IndexName=one["IndexName"], **table)
    there = {_index_keys(one): one for one in live}
    for keys in wanted:
        if keys not in there:
            # One that is there is of another process, or of our own first try.
            create = connection.client.create_partition_index
            unless(THERE, create, PartitionIndex=_index(keys), **table)
        elif there[keys]["IndexStatus"] == "FAILED":
            codes = sorted({one.get("Code", "") for one in there[keys].get("BackfillErrors") or []})
            raise DqError(
                f"{raw['DatabaseName']}.{raw['Name']}: Glue could not fill the index over {', '.join(keys)}: "
                f"{', '.join(codes) or 'it says no more'}.",
                "Mend the partitions, delete the index, and run again.",
            )


def _listed_indexes(connection: Connection, raw: dict[str, Any]) -> Iterator[Index]:
    pages = connection.client.get_paginator("get_partition_indexes")
    for page in pages.paginate(**_table(connection, raw)):
        yield from page.get("PartitionIndexDescriptorList") or []


def _index_keys(index: Index) -> tuple[str, ...]:
    return tuple(key["Name"].lower() for key in index["Keys"])


def _index(keys: tuple[str, ...]) -> Index:
    name = _PREFIX + "_".join(keys)
    if len(name) > _LONGEST:
        name = _PREFIX + hashlib.sha256(name.encode()).hexdigest()
    return {"IndexName": name, "Keys": list(keys)}
