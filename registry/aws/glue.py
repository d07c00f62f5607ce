"""AWS Glue's Data Catalog: its tables, their partitions and partition indexes."""

from __future__ import annotations

import hashlib
import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from botocore import exceptions as aws

from dq.contracts.outcome import DqError, ReadError, UsageError
from dq.contracts.types import NotAType
from dq.registry import catalog
from dq.registry.aws.client import (
    ALREADY_EXISTS,
    NOT_FOUND,
    Connection,
    call_ignoring,
    error_code,
    explained,
    is_outcome_unknown,
)
from dq.registry.aws.glue_requests import (
    FORMATS,
    Raw,
    changed_table,
    live_table,
    new_table,
    refuse,
    with_s3_location,
)
from dq.registry.table import (
    MANAGED_BY,
    PARTITION_INDEXES,
    REGISTRY,
    TableSpec,
    fold_location,
    index_keys,
    index_text,
)

_ATTEMPTS = 5
_BACKOFF_SECONDS = 0.2
# Another writer has changed the table since it was read, or is still changing it.
_CONFLICT_CODES = frozenset({"ConcurrentModificationException", "ResourceNotReadyException"})
# Changes that archive the old version of the table, so that it can be restored.
_ARCHIVED_FIELDS = frozenset(
    {
        catalog.ChangedField.COLUMN,
        catalog.ChangedField.TYPE,
        catalog.ChangedField.ORDER,
        catalog.ChangedField.FORMAT,
        catalog.ChangedField.LOCATION,
    }
)
_KEYS_CHANGED = (
    "Glue cannot change the partition keys of an existing table.",
    "Create a new table for the new keys, with another physicalName.",
)
# A partition has its own types and SerDe, copied from the table when it was added.
_PARTITION_FIELDS = (catalog.ChangedField.TYPE, catalog.ChangedField.READER)


@dataclass(frozen=True, slots=True)
class Glue:
    """A `Catalog` in AWS Glue. `pause` waits between attempts when others write the same table."""

    connection: Connection
    formats: frozenset[str] = frozenset(FORMATS)
    pause: Callable[[float], None] = time.sleep

    @property
    def id(self) -> str:
        return self.connection.id

    def vet(self, spec: TableSpec) -> None:
        if spec.format in FORMATS:
            model = self.connection.client.meta.service_model.operation_model("CreateTable")
            refuse(model, _create_request(spec))

    def read(self, database: str, name: str) -> catalog.LiveTable | None:
        with explained(f"read {database}.{name}"):
            raw = self._raw(database, name)
        return None if raw is None else live_table(raw)

    def databases(self) -> list[str]:
        pages = self.connection.client.get_paginator("get_databases")
        with explained("list the databases"):
            listed = pages.paginate(**self.connection.catalog)
            return sorted(raw["Name"] for page in listed for raw in page["DatabaseList"])

    def tables(self, database: str) -> list[catalog.LiveTable]:
        pages = self.connection.client.get_paginator("get_tables")
        page_iterator = pages.paginate(DatabaseName=database, **self.connection.catalog)
        with explained(f"list the tables of {database}"):
            try:
                live_tables = [
                    live_table(with_indexes(self.connection, raw))
                    for page in page_iterator
                    for raw in page["TableList"]
                ]
            except aws.ClientError as error:
                if error_code(error) != NOT_FOUND:
                    raise
                return []
        return sorted(live_tables, key=lambda table: table.spec.name)

    def table_names(self, database: str) -> list[str]:
        return [table.spec.name for table in self.tables(database)]

    def blockers(self, action: catalog.Action) -> Iterator[catalog.Blocker]:
        if action.after is not None and any(
            change.field is catalog.ChangedField.PARTITIONS for change in action.changes
        ):
            yield catalog.Blocker("", _KEYS_CHANGED[0], _KEYS_CHANGED[1])

    def apply(self, action: catalog.Action) -> None:
        database, name = action.key
        with explained(f"write {database}.{name}"):
            raw = self._raw(database, name)
            if (raw is None) != (action.before is None):
                raise catalog.stale_plan(database, name)
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
            current = partition_location(self.connection, raw, values)
            if current is not None and current != fold_location(location):
                raise catalog.moved_partition(database, name, values, current, location)
            if current is not None:
                return False
            (result,) = add_partitions(self.connection, raw, [catalog.Partition(values, location)])
            if isinstance(result, DqError):
                raise result
            return result

    def add_partitions(
        self, database: str, name: str, partitions: Sequence[catalog.Partition]
    ) -> list[bool | DqError]:
        with explained(f"add partitions to {database}.{name}"):
            raw = self._raw(database, name)
            if raw is None:
                raise catalog.no_table(database, name)
            return add_partitions(self.connection, raw, partitions)

    def partition_location(self, database: str, name: str, values: catalog.Values) -> str | None:
        with explained(f"read a partition of {database}.{name}"):
            raw = self._raw(database, name)
            return None if raw is None else partition_location(self.connection, raw, values)

    def move_partition(self, database: str, name: str, values: catalog.Values, location: str) -> None:
        with explained(f"move a partition of {database}.{name}"):
            raw = self._raw(database, name)
            if raw is None or not move_partition(self.connection, raw, catalog.Partition(values, location)):
                raise catalog.no_partition(database, name, values)

    def partitions(self, database: str, name: str) -> list[catalog.Partition]:
        with explained(f"list the partitions of {database}.{name}"):
            raw = self._raw(database, name)
            partitions = [] if raw is None else list(list_partitions(self.connection, raw))
        return sorted(partitions, key=lambda partition: partition.values)

    def _raw(self, database: str, name: str) -> dict[str, Any] | None:
        request = {"DatabaseName": database, "Name": name, **self.connection.catalog}
        answer = call_ignoring(NOT_FOUND, self.connection.client.get_table, **request)
        return None if answer is None else with_indexes(self.connection, answer["Table"])

    def _create(self, spec: TableSpec) -> None:
        request = {**_create_request(spec), **self.connection.catalog}
        for _ in range(2):
            try:
                self.connection.client.create_table(**request)
                return
            except (aws.ClientError, aws.HTTPClientError) as error:
                code = error_code(error)
                if code == NOT_FOUND:
                    # Most databases exist: checking before each table would waste a call.
                    self._create_database(spec)
                elif code == ALREADY_EXISTS:
                    # Created by another process or by our first attempt: the caller compares.
                    raise catalog.stale_plan(*spec.key) from error
                else:
                    self._raise_unless_written(error, spec)
                    return
        raise ReadError(
            f"AWS does not find the database {spec.database} that it has just created.", "Try again later."
        )

    def _create_database(self, spec: TableSpec) -> None:
        marks = {MANAGED_BY: "dq", REGISTRY: spec.parameter(REGISTRY)}
        database_input = {
            "Name": spec.database,
            "Parameters": {key: text for key, text in marks.items() if text},
        }
        try:
            self.connection.client.create_database(DatabaseInput=database_input, **self.connection.catalog)
        except aws.ClientError as error:
            if error_code(error) != ALREADY_EXISTS and not is_outcome_unknown(error):
                raise

    def _update(self, action: catalog.Action, raw: dict[str, Any]) -> None:
        database, name = action.key
        for attempt in range(_ATTEMPTS):
            after = _target(action, live_table(raw))
            if not keeps_partition_keys(raw, after):
                raise DqError(f"{database}.{name}: {_KEYS_CHANGED[0]}", _KEYS_CHANGED[1])
            table_input = changed_table(raw, after)
            kinds = {change.field for change in action.changes if not change.ignored}
            if not kinds.isdisjoint(_PARTITION_FIELDS):
                # Partitions first: after a kill in between, the next plan has the change again.
                storage, reader = table_input["StorageDescriptor"], catalog.ChangedField.READER in kinds
                update_partition_schemas(self.connection, raw, storage, reader=reader)
            # Indexes also before the table, whose parameter names them.
            sync_indexes(self.connection, raw, after)
            try:
                self.connection.client.update_table(
                    DatabaseName=database,
                    TableInput=table_input,
                    VersionId=raw["VersionId"],
                    SkipArchive=kinds.isdisjoint(_ARCHIVED_FIELDS),
                    **self.connection.catalog,
                )
                return
            except (aws.ClientError, aws.HTTPClientError) as error:
                if error_code(error) not in _CONFLICT_CODES:
                    self._raise_unless_written(error, after)
                    return
            # Full jitter, so that concurrent writers do not collide again.
            self.pause(random.uniform(0, _BACKOFF_SECONDS * 2**attempt))
            current = self._raw(database, name)
            if current is None:
                raise catalog.stale_plan(database, name)
            if not catalog.compare_tables(live_table(current).spec, after, None):
                return
            raw = current
        raise catalog.StalePlan(
            f"{database}.{name} is being changed continuously by someone else.", "Try again later."
        )

    def _delete(self, action: catalog.Action, live: catalog.LiveTable) -> None:
        database, name = action.key
        if action.before is None or live.version != action.before.version:
            raise catalog.stale_plan(database, name)
        request = {"DatabaseName": database, "Name": name, **self.connection.catalog}
        # Our first attempt may have deleted it although its response was lost.
        call_ignoring(NOT_FOUND, self.connection.client.delete_table, **request)

    def _raise_unless_written(self, error: Exception, desired: TableSpec) -> None:
        """Read the table back if the outcome is unknown. Raises the error unless it was written."""
        if not is_outcome_unknown(error):
            raise error
        raw = self._raw(*desired.key)
        if raw is None or catalog.compare_tables(live_table(raw).spec, desired, None):
            raise error


def _create_request(spec: TableSpec) -> dict[str, Any]:
    """Return the request that creates a table."""
    indexes = [_index(keys) for keys in index_keys(spec.parameter(PARTITION_INDEXES))]
    try:
        request = {"DatabaseName": spec.database, "TableInput": new_table(spec)}
    except NotAType as error:
        names = [column.name for column in (*spec.columns, *spec.partitions)]
        raise UsageError(
            f"{spec.database}.{spec.name}: Glue does not support the type of a column: {error}.",
            f"Give the column another physicalType; the columns are {', '.join(names)}.",
        ) from error
    return request | ({"PartitionIndexes": indexes} if indexes else {})


def _target(action: catalog.Action, live: catalog.LiveTable) -> TableSpec:
    """Return the target for the live table. Raises StalePlan if another writer changed the same fields.

    Iceberg writers and crawlers write all the time: their other changes are merged.
    """
    assert action.before is not None
    assert action.after is not None
    if live.version == action.before.version:
        return action.after
    if action.desired is None:
        raise catalog.stale_plan(*action.key)
    before, now = (
        catalog.compare_tables(table.spec, action.desired, None) for table in (action.before, live)
    )
    if before != now:
        raise catalog.stale_plan(*action.key)
    return catalog.merged(live.spec, action.desired, action.changes)


# Partitions in Glue: listed in pages, changed in batches, created with the table's storage.

_BATCH = 100


def partition_location(connection: Connection, raw: Raw, values: catalog.Values) -> str | None:
    """Return the folded location of a partition, or None if it does not exist.

    Raises UsageError for other partition keys.
    """
    partition = _read(connection, raw, ordered_values(raw, values))
    return None if partition is None else _location(partition)


def _read(connection: Connection, raw: Raw, values: list[str]) -> Raw | None:
    request = {"PartitionValues": values, **_table(connection, raw)}
    answer = call_ignoring(NOT_FOUND, connection.client.get_partition, **request)
    return None if answer is None else answer["Partition"]


def ordered_values(raw: Raw, values: catalog.Values) -> list[str]:
    """Return the values in the order of the table's keys. Raises UsageError unless each key has one."""
    keys = _keys(raw)
    by_key = dict(values)
    if sorted(by_key) != sorted(keys) or len(by_key) != len(values):
        raise UsageError(
            f"{raw['DatabaseName']}.{raw['Name']} has the partition keys {', '.join(keys) or 'none'}, "
            f"not {', '.join(by_key) or 'none'}.",
            "Give each key one value.",
        )
    return [by_key[key] for key in keys]


def list_partitions(connection: Connection, raw: Raw) -> Iterator[catalog.Partition]:
    """Iterate over all partitions, page by page."""
    keys = _keys(raw)
    for partition in _raw_partitions(connection, raw, ExcludeColumnSchema=True):
        values = tuple(zip(keys, partition["Values"], strict=True))
        yield catalog.Partition(values, _location(partition), partition.get("CreationTime"))


def add_partitions(
    connection: Connection, raw: Raw, partitions: Sequence[catalog.Partition]
) -> list[bool | DqError]:
    """Add partitions. Return for each True, False if it exists, or the error.

    It is an error if an existing one has another location, and if Glue rejects it. Raises ReadError if Glue's
    answer does not say which one it rejects.
    """
    results: list[bool | DqError] = []
    for start in range(0, len(partitions), _BATCH):
        batch = {
            tuple(ordered_values(raw, partition.values)): partition
            for partition in partitions[start : start + _BATCH]
        }
        answer = connection.client.batch_create_partition(
            PartitionInputList=[_new_partition(raw, *entry) for entry in batch.items()],
            **_table(connection, raw),
        )
        # The call succeeds even when single partitions fail.
        failures = {
            tuple(failure.get("PartitionValues") or ()): failure["ErrorDetail"]
            for failure in answer.get("Errors") or []
        }
        for unmatched in failures.keys() - batch.keys():
            raise _rejected(raw, failures[unmatched])
        for values, partition in batch.items():
            error = failures.get(values)
            results.append(error is None or _existing_or_rejected(connection, raw, partition, error))
    return results


def _new_partition(raw: Raw, values: Sequence[str], partition: catalog.Partition) -> Raw:
    storage = {**(raw.get("StorageDescriptor") or {}), "Location": f"{fold_location(partition.location)}/"}
    return {"Values": list(values), "StorageDescriptor": storage}


def _existing_or_rejected(
    connection: Connection, raw: Raw, partition: catalog.Partition, error: Raw
) -> bool | DqError:
    """Return False if the partition exists at its location, else the error."""
    if error["ErrorCode"] != ALREADY_EXISTS:
        return _rejected(raw, error)
    current = partition_location(connection, raw, partition.values)
    if current is None or current == fold_location(partition.location):
        return False
    return catalog.moved_partition(
        raw["DatabaseName"], raw["Name"], partition.values, current, partition.location
    )


def move_partition(connection: Connection, raw: Raw, partition: catalog.Partition) -> bool:
    """Change only the location of a partition. Return False if it does not exist."""
    current = _read(connection, raw, ordered_values(raw, partition.values))
    if current is None:
        return False
    storage = {
        **(current.get("StorageDescriptor") or {}),
        "Location": f"{fold_location(partition.location)}/",
    }
    _update(connection, raw, [_entry(current, storage)])
    return True


def keeps_partition_keys(raw: Raw, after: TableSpec) -> bool:
    """Return True if names and types of the partition keys do not change."""
    live = live_table(raw).spec
    return [(key.name, key.type) for key in live.partitions] == [
        (key.name, key.type) for key in after.partitions
    ]


def update_partition_schemas(connection: Connection, raw: Raw, table: Raw, *, reader: bool) -> None:
    """Set the types of all partitions to those of `table`, which Athena compares; with `reader` the SerDe
    too.
    """
    types = {column["Name"]: column["Type"] for column in table["Columns"]}
    serde = {"SerdeInfo": table["SerdeInfo"]} if reader else {}
    entries: list[dict[str, Any]] = []
    for partition in _raw_partitions(connection, raw):
        storage = dict(partition.get("StorageDescriptor") or {})
        changed = [
            {**column, "Type": types.get(column["Name"], column["Type"])}
            for column in storage.get("Columns") or []
        ]
        desired = storage | {"Columns": changed} | serde
        if desired == storage:
            continue
        entries.append(_entry(partition, with_s3_location(desired)))
    _update(connection, raw, entries)


def _entry(live: Raw, storage: Raw) -> dict[str, Any]:
    """Return the update entry that changes only the storage of a partition."""
    unchanged = {key: live[key] for key in ("Values", "Parameters") if live.get(key)}
    return {
        "PartitionValueList": live["Values"],
        "PartitionInput": {**unchanged, "StorageDescriptor": storage},
    }


def _update(connection: Connection, raw: Raw, entries: Sequence[dict[str, Any]]) -> None:
    for start in range(0, len(entries), _BATCH):
        answer = connection.client.batch_update_partition(
            Entries=entries[start : start + _BATCH], **_table(connection, raw)
        )
        for error in answer.get("Errors") or []:
            raise _rejected(raw, error.get("ErrorDetail", {}))


def _raw_partitions(connection: Connection, raw: Raw, **options: Any) -> Iterator[dict[str, Any]]:
    pages = connection.client.get_paginator("get_partitions")
    for page in pages.paginate(**_table(connection, raw), **options):
        yield from page["Partitions"]


def _table(connection: Connection, raw: Raw) -> dict[str, str]:
    return {"DatabaseName": raw["DatabaseName"], "TableName": raw["Name"], **connection.catalog}


def _keys(raw: Raw) -> list[str]:
    return [key["Name"].lower() for key in raw.get("PartitionKeys") or []]


def _location(raw: Raw) -> str:
    return fold_location((raw.get("StorageDescriptor") or {}).get("Location") or "")


def _rejected(raw: Raw, error: Raw) -> DqError:
    reason = f"{error.get('ErrorCode')}: {error.get('ErrorMessage', '')}"
    return ReadError(f"Glue refused partitions of {raw['DatabaseName']}.{raw['Name']}: {reason}")


# Partition indexes in Glue.
#
# The table's parameter `dq.partition-indexes` has the indexes of the contract. Glue lists the existing ones
# separately, so only tables with that parameter are asked. Source: AWS, "Creating partition indexes".

Index = dict[str, Any]

_PREFIX = "dq_"
_MAX_NAME_LENGTH = 255
_PRESENT_STATUSES = ("ACTIVE", "CREATING")


def with_indexes(connection: Connection, raw: dict[str, Any]) -> dict[str, Any]:
    """Return the table with its parameter set to the managed indexes that exist."""
    parameter = (raw.get("Parameters") or {}).get(PARTITION_INDEXES)
    if parameter is None:
        return raw
    requested = set(index_keys(parameter))
    live = [
        _index_keys(index)
        for index in _raw_indexes(connection, raw)
        if index["IndexStatus"] in _PRESENT_STATUSES
        and (_index_keys(index) in requested or index["IndexName"].startswith(_PREFIX))
    ]
    return {**raw, "Parameters": {**raw["Parameters"], PARTITION_INDEXES: index_text(live)}}


def sync_indexes(connection: Connection, raw: dict[str, Any], after: TableSpec) -> None:
    """Create the missing indexes of a table, and delete managed ones that are no longer desired.

    Raises DqError for an index that Glue could not fill.
    """
    desired = index_keys(after.parameter(PARTITION_INDEXES))
    if index_text(desired) == raw["Parameters"].get(PARTITION_INDEXES, ""):
        return
    live = list(_raw_indexes(connection, raw))
    table = _table(connection, raw)
    for index in live:
        if index["IndexName"].startswith(_PREFIX) and _index_keys(index) not in desired:
            # Delete first: a table can have three indexes only.
            connection.client.delete_partition_index(IndexName=index["IndexName"], **table)
    existing = {_index_keys(index): index for index in live}
    for keys in desired:
        if keys not in existing:
            # An existing one was created by another process or by our first attempt.
            create = connection.client.create_partition_index
            call_ignoring(ALREADY_EXISTS, create, PartitionIndex=_index(keys), **table)
        elif existing[keys]["IndexStatus"] == "FAILED":
            codes = sorted({error.get("Code", "") for error in existing[keys].get("BackfillErrors") or []})
            raise DqError(
                f"{raw['DatabaseName']}.{raw['Name']}: Glue could not fill the index over {', '.join(keys)}: "
                f"{', '.join(codes) or 'no reason given'}.",
                "Fix the partitions, delete the index, and run again.",
            )


def _raw_indexes(connection: Connection, raw: dict[str, Any]) -> Iterator[Index]:
    pages = connection.client.get_paginator("get_partition_indexes")
    for page in pages.paginate(**_table(connection, raw)):
        yield from page.get("PartitionIndexDescriptorList") or []


def _index_keys(index: Index) -> tuple[str, ...]:
    return tuple(key["Name"].lower() for key in index["Keys"])


def _index(keys: tuple[str, ...]) -> Index:
    name = _PREFIX + "_".join(keys)
    if len(name) > _MAX_NAME_LENGTH:
        name = _PREFIX + hashlib.sha256(name.encode()).hexdigest()
    return {"IndexName": name, "Keys": list(keys)}
