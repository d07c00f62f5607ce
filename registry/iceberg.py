"""Catalogs with Iceberg's REST protocol, through pyiceberg: client, types, tables and their evolution."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from itertools import count, pairwise
from typing import Any

from pydantic import ValidationError as AnswerFault
from pyiceberg import exceptions as errors
from pyiceberg import types as ice
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.io import FileIO, InputFile, OutputFile
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table, Transaction
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.update import SetLocationUpdate
from pyiceberg.table.update.schema import UpdateSchema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import IcebergType, ListType, MapType, NestedField, StructType
from pyiceberg.view import View
from requests import Session
from requests.exceptions import RequestException

from dq.contracts.access.access_policy import WEB, web_address
from dq.contracts.outcome import DqError, ReadError, UsageError
from dq.contracts.types import DataType, NotAType, parse
from dq.registry import catalog
from dq.registry.table import (
    EXACT_TYPES,
    MANAGED_BY,
    REGISTRY,
    VIEW,
    Key,
    TableColumn,
    TableSpec,
    UnsupportedReaderOptions,
    digest,
    folded,
)

_CONNECT_SECONDS = 10.0
_SHOWN = 300
_DELEGATION = "X-Iceberg-Access-Delegation"
UNKNOWN_OUTCOME = (RequestException, errors.CommitStateUnknownException, errors.ServerError)
"""Errors after which it is unknown whether the request was executed."""

_AUTH_ERRORS = (
    errors.UnauthorizedError,
    errors.ForbiddenError,
    errors.OAuthError,
    errors.AuthorizationExpiredError,
)
_REJECTIONS = (
    errors.RESTError,
    errors.CommitFailedException,
    errors.NoSuchTableError,
    errors.NoSuchNamespaceError,
    errors.ValidationError,
    NotImplementedError,
)
# Classes of errors -> message and hint; the first match wins.
_ERROR_TEXTS: tuple[tuple[tuple[type[Exception], ...], str, str], ...] = (
    (
        _AUTH_ERRORS,
        "The Iceberg catalog refused to {}",
        "Check the credentials; docs/how-to/iceberg.md lists the ones it needs.",
    ),
    (_REJECTIONS, "The Iceberg catalog refused to {}", "Fix that, then run again."),
    (
        (RequestException,),
        "The Iceberg catalog did not answer when asked to {}",
        "Try again; it is safe to retry.",
    ),
    # Raised by pydantic for a response that is not Iceberg's.
    (
        (ValueError,),
        "The server at the configured address is not an Iceberg catalog",
        "Check the address.",
    ),
)


class _NoFiles(FileIO):
    """Denies access to files: pyiceberg would load the class named in a table's properties."""

    def new_input(self, location: str) -> InputFile:
        raise NotImplementedError(location)

    def new_output(self, location: str) -> OutputFile:
        raise NotImplementedError(location)

    def delete(self, location: str | InputFile | OutputFile) -> None:
        raise NotImplementedError(location)


class MetadataCatalog(RestCatalog):
    """pyiceberg's REST catalog, with time limits, and without files and the credentials for them."""

    def __init__(self, properties: Mapping[str, str], read_seconds: float) -> None:
        self._read_seconds = read_seconds
        # No database can have this name: pyiceberg removes it as a prefix of identifiers.
        super().__init__("dq-register", **properties)

    def _create_session(self) -> Session:
        session = super()._create_session()
        session.headers.pop(_DELEGATION, None)
        # requests has no default timeout.
        limited = partial(session.request, timeout=(_CONNECT_SECONDS, self._read_seconds))
        session.request = limited  # type: ignore[method-assign]
        return session

    def _load_file_io(self, properties: Any = None, location: str | None = None) -> FileIO:
        return _NoFiles()


def connect(properties: Mapping[str, str], read_seconds: float = 60.0) -> tuple[MetadataCatalog, str]:
    """Open the catalog and return it with its id: address and warehouse, without credentials.

    Raises UsageError without an address, ReadError when the catalog does not answer.
    """
    address = properties.get("uri", "")
    if web_address(address, WEB) is None:
        if "@" in address.partition("://")[2].partition("/")[0]:
            raise UsageError(
                "The address of the Iceberg catalog contains a user or password.",
                "Set PYICEBERG_CATALOG__DEFAULT__CREDENTIAL or …__TOKEN instead.",
            )
        raise UsageError(
            "The catalog address is invalid."
            if address
            else "The address of the Iceberg catalog is missing.",
            "Set PYICEBERG_CATALOG__DEFAULT__URI=https://catalog.example.com.",
        )
    with explained("open the catalog"):
        rest_catalog = MetadataCatalog({"snapshot-loading-mode": "refs", **properties}, read_seconds)
    warehouse = properties.get("warehouse", "")
    return rest_catalog, f"iceberg:{address.rstrip('/')}{f'#{warehouse}' if warehouse else ''}"


@contextmanager
def explained(action: str) -> Iterator[None]:
    """Turn errors of the catalog during `action` into ReadError."""
    try:
        yield
    except (*_AUTH_ERRORS, *_REJECTIONS, RequestException, ValueError) as error:
        message, hint = next(
            (template, hint) for kinds, template, hint in _ERROR_TEXTS if isinstance(error, kinds)
        )
        raise ReadError(f"{message.format(action)}: {_line(error)}", hint) from error


def _line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0][:_SHOWN] if lines else type(error).__name__


# TABLE: column types in Iceberg, and in Spark's DDL as our specifications have them.
#
# Sources: Iceberg's table specification, "Schemas and Data Types" and "Schema Evolution"; Iceberg for
# Spark, "Type compatibility".

# Spark's type -> Iceberg's. Where several map to the same one, a property keeps the exact type.
_PLAIN: dict[str, ice.PrimitiveType] = {
    "boolean": ice.BooleanType(),
    **dict.fromkeys(("tinyint", "smallint", "int"), ice.IntegerType()),
    "bigint": ice.LongType(),
    "float": ice.FloatType(),
    "double": ice.DoubleType(),
    "date": ice.DateType(),
    "timestamp": ice.TimestamptzType(),
    "timestamp_ntz": ice.TimestampType(),
    **dict.fromkeys(("string", "char", "varchar"), ice.StringType()),
    "binary": ice.BinaryType(),
}
# Iceberg's type -> its name in Spark.
_NAMES = {
    str(kind): name for name, kind in _PLAIN.items() if name not in ("tinyint", "smallint", "char", "varchar")
}
# Old files keep the narrow type; readers widen it.
_WIDENED = {("int", "long"), ("float", "double")}


def iceberg_type(kind: DataType, ids: count[int]) -> ice.IcebergType:
    """Return the type in Iceberg; its parts get the next ids. Raises NotAType if Iceberg does not have it."""
    if kind.name == "decimal":
        return ice.DecimalType(*kind.numbers)
    if kind.name == "array":
        return ice.ListType(next(ids), iceberg_type(kind.parts[0], ids), element_required=False)
    if kind.name == "map":
        key, value = kind.parts
        return ice.MapType(
            next(ids), iceberg_type(key, ids), next(ids), iceberg_type(value, ids), value_required=False
        )
    if kind.name == "struct":
        fields = [
            ice.NestedField(next(ids), name, iceberg_type(part, ids), required=False)
            for name, part in zip(kind.names, kind.parts, strict=True)
        ]
        return ice.StructType(*fields)
    if kind.name not in _PLAIN:
        raise NotAType(f"Iceberg has no {kind.name}")
    return _PLAIN[kind.name]


def ddl(kind: ice.IcebergType) -> str:
    """Return the type in Spark's DDL, or Iceberg's name if Spark does not have it."""
    if isinstance(kind, ice.ListType):
        return f"array<{ddl(kind.element_type)}>"
    if isinstance(kind, ice.MapType):
        return f"map<{ddl(kind.key_type)},{ddl(kind.value_type)}>"
    if isinstance(kind, ice.StructType):
        return f"struct<{','.join(f'{field.name}:{ddl(field.field_type)}' for field in kind.fields)}>"
    if isinstance(kind, ice.DecimalType):
        return f"decimal({kind.precision},{kind.scale})"
    return _NAMES.get(str(kind), str(kind))


def stored_type(text: str) -> str:
    """Return the type as an Iceberg table stores it. Raises NotAType if Iceberg does not have it."""
    return ddl(iceberg_type(parse(text), count(1)))


def exact(live: str, declared: str | None) -> str:
    """Return the type as in our specifications: `declared`, if the live type is its translation."""
    try:
        return declared if declared is not None and stored_type(declared).lower() == live.lower() else live
    except NotAType:
        return live


def is_widened(old: ice.IcebergType, new: ice.IcebergType) -> bool:
    """Return True if a primitive type can become the other one: Iceberg readers widen values of old files."""
    if isinstance(old, ice.DecimalType) and isinstance(new, ice.DecimalType):
        return old.scale == new.scale and old.precision <= new.precision
    return old == new or (str(old), str(new)) in _WIDENED


# Conversion between our table specification and Iceberg's metadata.

FORMAT = "iceberg"
DESCRIPTION = "comment"
"""The property in which Spark, Trino and Flink keep a table's description."""

_MANAGED_PROPERTIES = (DESCRIPTION, EXACT_TYPES)
_FIRST_FIELD = 1000
_UNREAD = "unreadable by pyiceberg"


@dataclass(frozen=True, slots=True)
class UnreadableTable:
    """An existing table that pyiceberg cannot parse, e.g. one with a newer type."""

    key: Key

    def name(self) -> Key:
        return self.key


def live_table(loaded: Table | View | UnreadableTable) -> catalog.LiveTable:
    """Return a loaded table or view as folded specification.

    Its version is the digest of the specification: the frequent commits of data do not change it.
    """
    *namespace, name = loaded.name()
    key = ".".join(namespace), name
    if isinstance(loaded, UnreadableTable):
        # Unmanaged and of an unknown format: a conflict for its contract, ignored otherwise.
        return catalog.LiveTable(folded(TableSpec(*key, "", _UNREAD, ())), "")
    if isinstance(loaded, View):
        spec = _view(key, loaded)
        return catalog.LiveTable(spec, digest(spec))
    spec = _table(key, loaded.metadata)
    changed_at = _changed_at(loaded.metadata)
    return catalog.LiveTable(spec, digest(spec), changed_at, metadata_location=loaded.metadata_location or "")


def _changed_at(metadata: TableMetadata) -> datetime | None:
    """Return the instant of the last change, or None if that was a commit of data, which hides the change."""
    updated_ms = metadata.last_updated_ms
    if any(snapshot.timestamp_ms == updated_ms for snapshot in metadata.snapshots):
        return None
    return datetime.fromtimestamp(updated_ms / 1000, UTC)


def _table(key: Key, metadata: TableMetadata) -> TableSpec:
    exact_types = _exact_types(metadata.properties)
    fields = {field.field_id: field for field in metadata.schema().fields}
    keys = [
        part.source_id
        for part in metadata.spec().fields
        if isinstance(part.transform, IdentityTransform) and part.source_id in fields
    ]
    return folded(
        TableSpec(
            *key,
            metadata.location,
            FORMAT,
            tuple(
                _table_column(field, exact_types) for number, field in fields.items() if number not in keys
            ),
            tuple(_table_column(fields[number], exact_types) for number in keys),
            _parameters(metadata.properties),
            metadata.properties.get(DESCRIPTION, ""),
        )
    )


def _view(key: Key, view: View) -> TableSpec:
    columns = tuple(_table_column(field, {}) for field in view.schema().fields)
    description = view.properties.get(DESCRIPTION, "")
    return folded(TableSpec(*key, "", VIEW, columns, (), _parameters(view.properties), description))


def _parameters(properties: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple((key, text) for key, text in properties.items() if key not in _MANAGED_PROPERTIES)


def _exact_types(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the exact types from the table's property; empty if its value is invalid."""
    try:
        exact_types = json.loads(properties.get(EXACT_TYPES, "{}"))
    except (ValueError, RecursionError):
        return {}
    return (
        {key: text for key, text in exact_types.items() if isinstance(text, str)}
        if isinstance(exact_types, dict)
        else {}
    )


def _table_column(field: NestedField, exact_types: Mapping[str, str]) -> TableColumn:
    kind = exact(ddl(field.field_type), exact_types.get(field.name.lower()))
    return TableColumn(field.name, kind, field.doc or "", required=field.required)


def schema_of(spec: TableSpec) -> Schema:
    """Return the schema of a new table: columns, then keys.

    Raises NotAType for a type Iceberg does not have.
    """
    ids = count(1)
    fields = []
    for column in (*spec.columns, *spec.partitions):
        number = next(ids)
        kind = iceberg_type(parse(column.type), ids)
        doc = column.comment or None
        fields.append(NestedField(number, column.name, kind, required=column.required, doc=doc))
    return Schema(*fields)


def partitions_of(spec: TableSpec, schema: Schema) -> PartitionSpec:
    """Return the partition spec: an identity field for each key, in order."""
    keys = [schema.find_field(column.name).field_id for column in spec.partitions]
    parts = zip(count(_FIRST_FIELD), keys, spec.partitions, strict=False)
    return PartitionSpec(
        *(PartitionField(source, number, IdentityTransform(), key.name) for number, source, key in parts)
    )


def properties_of(spec: TableSpec) -> dict[str, str]:
    """Return all properties of the specification: parameters, description, exact types."""
    exact_types = {}
    for column in (*spec.columns, *spec.partitions):
        # Iceberg types without an equivalent are stored as they are.
        with suppress(NotAType):
            if stored_type(column.type) != column.type:
                exact_types[column.name] = column.type
    properties = dict(spec.parameters)
    if spec.description:
        properties[DESCRIPTION] = spec.description
    if exact_types:
        properties[EXACT_TYPES] = json.dumps(exact_types, sort_keys=True)
    return properties


# Evolution of Iceberg tables: allowed changes, and their execution in one commit.
#
# Source: Iceberg's table specification, "Schema Evolution" and "Partition Evolution".

Path = tuple[str, ...]

_NESTED = (ListType, MapType, StructType)


def evolution_blockers(action: catalog.Action) -> Iterator[catalog.Blocker]:
    """Return the changes that Iceberg cannot make, because existing files could not be read afterwards."""
    if action.before is None or action.after is None:
        return
    before, after = action.before.spec, action.after
    changed = [change for change in action.changes if not change.ignored]
    for change in changed:
        if change.field is catalog.ChangedField.TYPE:
            yield from _type_blocker(change.name, change.before or "", change.after or "")
    if any(change.field is catalog.ChangedField.PARTITIONS for change in changed):
        yield from _keys(before, after)


_COLUMN = "Add a new column with this type, or create a new major version of the contract with its own table."


def _type_blocker(column: str, old: str, new: str) -> Iterator[catalog.Blocker]:
    """Return the blocker if a column cannot change from the old type to the new one."""
    try:
        kinds = [iceberg_type(parse(text), count(1)) for text in (old, new)]
        reason = next(_impossible_changes(*kinds), "")
    except NotAType as error:
        reason = str(error)
    if reason:
        yield catalog.Blocker(column, f"{column} cannot become {new}: {reason}.", _COLUMN)


def _impossible_changes(old: IcebergType, new: IcebergType) -> Iterator[str]:
    """Return the reasons for parts of a type that cannot change to those of the new type."""
    if isinstance(old, StructType) and isinstance(new, StructType):
        old_fields = _by_name(old)
        for field in new.fields:
            if field.name.lower() in old_fields:
                yield from _impossible_changes(old_fields[field.name.lower()].field_type, field.field_type)
    elif isinstance(old, ListType) and isinstance(new, ListType):
        yield from _impossible_changes(old.element_type, new.element_type)
    elif isinstance(old, MapType) and isinstance(new, MapType):
        if ddl(old.key_type) != ddl(new.key_type):
            yield "Iceberg cannot change the keys of a map"
        yield from _impossible_changes(old.value_type, new.value_type)
    elif old.is_primitive != new.is_primitive or not is_widened(old, new):
        yield f"Iceberg can only widen numbers, and this is {ddl(old)}"


def _keys(before: TableSpec, after: TableSpec) -> Iterator[catalog.Blocker]:
    """Return blockers of partition keys: in Iceberg, new keys come after the remaining ones."""
    live = {key.name: key for key in before.partitions}
    desired = [key.name for key in after.partitions]
    stay = [name for name in live if name in desired]
    if desired[: len(stay)] != stay:
        reason = (
            f"the partition keys {', '.join(live)} cannot become {', '.join(desired)}: new keys must "
            "come last."
        )
        yield catalog.Blocker(desired[0], reason, "Number the existing keys first in partitionKeyPosition.")
    for key in after.partitions:
        current = live.get(key.name) or before.column(key.name)
        if current:
            yield from _type_blocker(key.name, current.type, key.type)


def evolve(transaction: Transaction, live: TableSpec, after: TableSpec) -> None:
    """Add the changes from the live table to `after`: columns, keys, location, properties."""
    desired = (*after.columns, *after.partitions)
    names = {column.name for column in desired}
    fields = {field.name.lower(): field for field in transaction.table_metadata.schema().fields}
    with transaction.update_schema(case_sensitive=False) as update:
        for column in desired:
            _change_column(update, fields.get(column.name), column, live)
    _change_partition_fields(transaction, after)
    removed = [field.name for name, field in fields.items() if name not in names]
    if removed:
        # After the keys, because a partition column cannot be deleted.
        with transaction.update_schema() as update:
            for name in removed:
                update.delete_column((name,))
    if after.location != live.location:
        # pyiceberg has no public method for it.
        transaction._apply((SetLocationUpdate(location=after.location),))
    _change_properties(transaction, live, after)


def _change_column(
    update: UpdateSchema, field: NestedField | None, column: TableColumn, live: TableSpec
) -> None:
    if field is None:
        # Existing rows have no value, so a new column cannot be required.
        kind = iceberg_type(parse(column.type), count(1))
        update.add_column((column.name,), kind, column.comment or None)
        return
    path = (field.name,)
    current = next(
        live_column for live_column in (*live.columns, *live.partitions) if live_column.name == column.name
    )
    if current.type != column.type:
        _retype(update, path, field.field_type, iceberg_type(parse(column.type), count(1)))
    if current.comment != column.comment:
        update.update_column(path, doc=column.comment)
    if field.required and not column.required:
        update.make_column_optional(path)


def _retype(update: UpdateSchema, path: Path, old: IcebergType, new: IcebergType) -> None:
    if isinstance(old, ListType) and isinstance(new, ListType):
        _retype(update, (*path, "element"), old.element_type, new.element_type)
    elif isinstance(old, MapType) and isinstance(new, MapType):
        _retype(update, (*path, "value"), old.value_type, new.value_type)
    elif isinstance(old, StructType) and isinstance(new, StructType):
        _restruct(update, path, old, new)
    elif isinstance(new, _NESTED) or not is_widened(old, new):
        raise NotAType(f"{ddl(old)} cannot become {ddl(new)}")
    elif old != new:
        update.update_column(path, new)


def _restruct(update: UpdateSchema, path: Path, old: StructType, new: StructType) -> None:
    old_fields = _by_name(old)
    names = [field.name.lower() for field in new.fields]
    for name, field in old_fields.items():
        if name not in names:
            update.delete_column((*path, field.name))
    for field in new.fields:
        if field.name.lower() in old_fields:
            old_field = old_fields[field.name.lower()]
            _retype(update, (*path, old_field.name), old_field.field_type, field.field_type)
        else:
            update.add_column((*path, field.name), field.field_type)
    order = [name for name in old_fields if name in names] + [
        name for name in names if name not in old_fields
    ]
    if order != names:
        spelled = [old_fields[name].name if name in old_fields else name for name in names]
        update.move_first((*path, spelled[0]))
        for last, name in pairwise(spelled):
            update.move_after((*path, name), (*path, last))


def _by_name(struct: StructType) -> dict[str, NestedField]:
    return {field.name.lower(): field for field in struct.fields}


def _change_partition_fields(transaction: Transaction, after: TableSpec) -> None:
    """Update the identity partition fields; other transforms belong to the table's writer."""
    metadata = transaction.table_metadata
    columns = {field.field_id: field.name.lower() for field in metadata.schema().fields}
    live: dict[str, PartitionField] = {
        columns[part.source_id]: part
        for part in metadata.spec().fields
        if isinstance(part.transform, IdentityTransform) and part.source_id in columns
    }
    desired = [key.name for key in after.partitions]
    if list(live) == desired:
        return
    with transaction.update_spec() as update:
        for name, part in live.items():
            if name not in desired:
                update.remove_field(part.name)
        for name in desired:
            if name not in live:
                # The schema already has the new columns, with their spelling.
                fields = transaction.table_metadata.schema().fields
                update.add_identity(next(field.name for field in fields if field.name.lower() == name))


def _change_properties(transaction: Transaction, live: TableSpec, after: TableSpec) -> None:
    """Set changed properties and remove obsolete ones; properties of others are not touched."""
    current, desired = dict(transaction.table_metadata.properties), properties_of(after)
    removed = [key for key in properties_of(live) if key not in desired and key in current]
    if removed:
        transaction.remove_properties(*removed)
    changed = {key: text for key, text in desired.items() if current.get(key) != text}
    if changed:
        transaction.set_properties(changed)


def _namespace(database: str) -> tuple[str, ...]:
    """Return the levels of a namespace, which are joined by dots in names of databases."""
    return tuple(database.split("."))


def _identifier(key: Key) -> tuple[str, ...]:
    return (*_namespace(key[0]), key[1])


_NOT_FOUND = (errors.NoSuchTableError, errors.NoSuchViewError, errors.NoSuchNamespaceError)


@dataclass(frozen=True, slots=True)
class Iceberg:
    """A `Catalog` with Iceberg's REST protocol, which creates and evolves the tables of contracts.

    Settings outside of the contract, e.g. sort order or hidden partitioning, belong to the writers.
    """

    rest_catalog: RestCatalog
    id: str
    formats: frozenset[str] = frozenset({FORMAT})

    def vet(self, spec: TableSpec) -> None:
        if spec.format == VIEW:
            return
        if spec.format not in self.formats:
            raise UnsupportedReaderOptions(
                f"{_name(spec.key)}: an Iceberg catalog cannot hold {spec.format} tables.",
                "Register it in the catalog glue, hive or local, or deliver Iceberg.",
            )
        try:
            schema_of(spec)
        except NotAType as error:
            raise UsageError(
                f"{_name(spec.key)}: {error}.", "Give the column another physicalType."
            ) from error

    def read(self, database: str, name: str) -> catalog.LiveTable | None:
        with explained(f"read {database}.{name}"):
            loaded = self._load((database, name))
        return None if loaded is None else live_table(loaded)

    def databases(self) -> list[str]:
        with explained("list the namespaces"):
            namespaces = self.rest_catalog.list_namespaces()
            for namespace in namespaces:
                # A server without nested namespaces may ignore the parent, and answer with all again.
                namespaces += [
                    child
                    for child in self.rest_catalog.list_namespaces(namespace)
                    if len(child) > len(namespace) and child not in namespaces
                ]
        return sorted(".".join(namespace) for namespace in namespaces)

    def tables(self, database: str) -> list[catalog.LiveTable]:
        live_tables = (self.read(database, name) for name in self.table_names(database))
        return [table for table in live_tables if table is not None]

    def table_names(self, database: str) -> list[str]:
        with explained(f"list the tables of {database}"):
            try:
                names = [
                    *self.rest_catalog.list_tables(_namespace(database)),
                    *self.rest_catalog.list_views(_namespace(database)),
                ]
            except errors.NoSuchNamespaceError:
                return []
        return sorted(name[-1] for name in names)

    def blockers(self, action: catalog.Action) -> Iterable[catalog.Blocker]:
        if action.after is None or action.after.format == VIEW:
            return ()
        return evolution_blockers(action)

    def apply(self, action: catalog.Action) -> None:
        with explained(f"write {_name(action.key)}"):
            loaded = self._load(action.key)
            live = None if loaded is None else live_table(loaded)
            planned_version = action.before.version if action.before else None
            if (live.version if live else None) != planned_version:
                raise catalog.stale_plan(*action.key)
            try:
                self._write(loaded, live, action.after)
            except (errors.CommitFailedException, errors.TableAlreadyExistsError) as error:
                # Another writer has changed the table since it was read: the caller compares.
                raise catalog.stale_plan(*action.key) from error
            except UNKNOWN_OUTCOME:
                if not self._is_applied(action):
                    raise

    def add_partition(self, database: str, name: str, values: catalog.Values, location: str) -> bool:
        if self.read(database, name) is None:
            raise catalog.no_table(database, name)
        raise _by_commits(database, name)

    def add_partitions(
        self, database: str, name: str, partitions: Sequence[catalog.Partition]
    ) -> list[bool | DqError]:
        raise _by_commits(database, name)

    def partition_location(self, database: str, name: str, values: catalog.Values) -> str | None:
        raise _by_commits(database, name)

    def move_partition(self, database: str, name: str, values: catalog.Values, location: str) -> None:
        raise _by_commits(database, name)

    def partitions(self, database: str, name: str) -> list[catalog.Partition]:
        if self.read(database, name) is None:
            return []
        raise _by_commits(database, name)

    def _load(self, key: Key) -> Table | View | UnreadableTable | None:
        """Return the table or view of this name, or None if the catalog has neither."""
        try:
            with suppress(*_NOT_FOUND):
                table: Table = self.rest_catalog.load_table(_identifier(key))
                return table
            view: View = self.rest_catalog.load_view(_identifier(key))
            return view
        except (*_NOT_FOUND, NotImplementedError):
            # NotImplementedError if the catalog does not support views.
            return None
        except AnswerFault:
            return UnreadableTable(key)

    def _write(
        self,
        loaded: Table | View | UnreadableTable | None,
        live: catalog.LiveTable | None,
        after: TableSpec | None,
    ) -> None:
        if loaded is None or live is None:
            if after is not None:
                self._create(after)
        elif after is None:
            self._drop(loaded)
        elif isinstance(loaded, View):
            self._describe(loaded, live.spec, after)
        elif isinstance(loaded, Table):
            with loaded.transaction() as transaction:
                evolve(transaction, live.spec, after)

    def _create(self, spec: TableSpec) -> None:
        schema = schema_of(spec)
        for _ in range(2):
            try:
                self.rest_catalog.create_table(
                    _identifier(spec.key),
                    schema,
                    spec.location or None,
                    partitions_of(spec, schema),
                    properties=properties_of(spec),
                )
                return
            except errors.NoSuchNamespaceError:
                # Most namespaces exist: checking before each table would waste a call.
                marks = {MANAGED_BY: "dq", REGISTRY: spec.parameter(REGISTRY)}
                properties = {key: text for key, text in marks.items() if text}
                with suppress(errors.NamespaceAlreadyExistsError):
                    self.rest_catalog.create_namespace(_namespace(spec.database), properties)
        raise ReadError(
            f"The catalog does not find the namespace {spec.database} that it has just created.",
            "Try again later.",
        )

    def _drop(self, loaded: Table | View | UnreadableTable) -> None:
        """Drop the table from the catalog; files are not deleted."""
        # It may not exist: dropped by our first attempt, whose response was lost, or by another process.
        with suppress(*_NOT_FOUND):
            if isinstance(loaded, View):
                self.rest_catalog.drop_view(loaded.name())
            else:
                self.rest_catalog.drop_table(loaded.name())

    def _describe(self, view: View, live: TableSpec, after: TableSpec) -> None:
        """Set the properties of a view, the only part that dq manages; pyiceberg has no method for it."""
        current, desired = properties_of(live), properties_of(after)
        removed = sorted(current.keys() - desired.keys())
        changed = {key: text for key, text in desired.items() if current.get(key) != text}
        updates: list[dict[str, Any]] = []
        if removed:
            updates.append({"action": "remove-properties", "removals": removed})
        if changed:
            updates.append({"action": "set-properties", "updates": changed})
        commit = {
            "requirements": [{"type": "assert-view-uuid", "uuid": view.metadata.view_uuid}],
            "updates": updates,
        }
        *namespace, name = view.name()
        path = self.rest_catalog._encode_namespace_path(tuple(namespace))
        url = self.rest_catalog.url("namespaces/{namespace}/views/{view}", namespace=path, view=name)
        answer = self.rest_catalog._session.post(url, json=commit)
        if answer.status_code == _CONFLICT:
            raise catalog.stale_plan(".".join(namespace), name)
        answer.raise_for_status()

    def _is_applied(self, action: catalog.Action) -> bool:
        """Return True if the catalog has the result of the action, after an unknown outcome."""
        loaded = self._load(action.key)
        if loaded is None or action.after is None:
            return loaded is None and action.after is None
        remaining = catalog.compare_tables(
            live_table(loaded).spec, action.after, None, managed_formats=self.formats
        )
        return all(change.ignored for change in remaining)


_CONFLICT = 409


def _name(key: Key) -> str:
    return ".".join(key)


def _by_commits(database: str, name: str) -> DqError:
    return DqError(
        f"{database}.{name}: Iceberg writers add and drop partitions in their own commits.",
        "Leave partitions to them, as dq publish and dq repair do.",
    )
