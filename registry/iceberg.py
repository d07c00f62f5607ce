"""Catalogs that speak Iceberg's REST protocol, by pyiceberg: client, types, tables and how they change."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
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
from dq.contracts.outcome import DqError, Unreadable, UsageError
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
    UnsayableTerms,
    digest,
    folded,
)

_CONNECT_SECONDS = 10.0
_SHOWN = 300
_DELEGATION = "X-Iceberg-Access-Delegation"
UNKNOWN = (RequestException, errors.CommitStateUnknownException, errors.ServerError)
"""After these nobody can tell whether what was sent has been done."""

_WHO = (errors.UnauthorizedError, errors.ForbiddenError, errors.OAuthError, errors.AuthorizationExpiredError)
_REFUSED = (
    errors.RESTError,
    errors.CommitFailedException,
    errors.NoSuchTableError,
    errors.NoSuchNamespaceError,
    errors.ValidationError,
    NotImplementedError,
)
# The first that fits an error -> what it says of what was to be done, and how it is mended.
_FAULTS: tuple[tuple[tuple[type[Exception], ...], str, str], ...] = (
    (
        _WHO,
        "The Iceberg catalog refused to {}",
        "Look at the credentials; docs/how-to/iceberg.md says which it needs.",
    ),
    (_REFUSED, "The Iceberg catalog refused to {}", "Mend that, then run again."),
    (
        (RequestException,),
        "The Iceberg catalog did not answer when asked to {}",
        "Try again; nothing is done twice.",
    ),
    # pydantic's, of an answer that is none of Iceberg's.
    (
        (ValueError,),
        "What answers at the address of the Iceberg catalog is none",
        "Look at the address.",
    ),
)


class _NoFiles(FileIO):
    """No way to any file: pyiceberg would take the class that a table's own properties name."""

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
        # Its name is none that a database could have: pyiceberg takes it away in front of one.
        super().__init__("dq-register", **properties)

    def _create_session(self) -> Session:
        session = super()._create_session()
        session.headers.pop(_DELEGATION, None)
        # requests waits for ever, unless it is told with each call.
        limited = partial(session.request, timeout=(_CONNECT_SECONDS, self._read_seconds))
        session.request = limited  # type: ignore[method-assign]
        return session

    def _load_file_io(self, properties: Any = None, location: str | None = None) -> FileIO:
        return _NoFiles()


def connect(properties: Mapping[str, str], read_seconds: float = 60.0) -> tuple[MetadataCatalog, str]:
    """Opens the catalog, and says which it is: its address and warehouse, without credentials.

    Raises UsageError without an address, Unreadable when the catalog does not answer.
    """
    address = properties.get("uri", "")
    if web_address(address, WEB) is None:
        if "@" in address.partition("://")[2].partition("/")[0]:
            raise UsageError(
                "The address of the Iceberg catalog holds a user or a password.",
                "Set PYICEBERG_CATALOG__DEFAULT__CREDENTIAL or …__TOKEN instead.",
            )
        raise UsageError(
            "It is no address of a catalog." if address else "The address of the Iceberg catalog is missing.",
            "Set PYICEBERG_CATALOG__DEFAULT__URI=https://catalog.example.com.",
        )
    with explained("open the catalog"):
        made = MetadataCatalog({"snapshot-loading-mode": "refs", **properties}, read_seconds)
    warehouse = properties.get("warehouse", "")
    return made, f"iceberg:{address.rstrip('/')}{f'#{warehouse}' if warehouse else ''}"


@contextmanager
def explained(what: str) -> Iterator[None]:
    """Turns the catalog's errors into Unreadable while doing `what`."""
    try:
        yield
    except (*_WHO, *_REFUSED, RequestException, ValueError) as error:
        message, mend = next((said, mend) for kinds, said, mend in _FAULTS if isinstance(error, kinds))
        raise Unreadable(f"{message.format(what)}: {_line(error)}", mend) from error


def _line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0][:_SHOWN] if lines else type(error).__name__


# TABLE: types of columns in Iceberg, against Spark's DDL, which our specifications hold.
#
# Sources: Iceberg's table specification, "Schemas and Data Types" and "Schema Evolution"; Iceberg for
# Spark, "Type compatibility".

# Spark's type -> Iceberg's. Some of Spark's have no other of their own; a property keeps the exact ones.
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
# Iceberg's type -> what a reader calls it.
_NAMES = {
    str(kind): name for name, kind in _PLAIN.items() if name not in ("tinyint", "smallint", "char", "varchar")
}
# Files keep what they have, and readers widen it as they read.
_WIDENED = {("int", "long"), ("float", "double")}


def iceberg_type(kind: DataType, ids: count[int]) -> ice.IcebergType:
    """The type in Iceberg; its parts get the next ids. Raises NotAType for one that Iceberg has not."""
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
    """The type as Spark's DDL; one that Spark has not, as Iceberg writes it."""
    if isinstance(kind, ice.ListType):
        return f"array<{ddl(kind.element_type)}>"
    if isinstance(kind, ice.MapType):
        return f"map<{ddl(kind.key_type)},{ddl(kind.value_type)}>"
    if isinstance(kind, ice.StructType):
        return f"struct<{','.join(f'{field.name}:{ddl(field.field_type)}' for field in kind.fields)}>"
    if isinstance(kind, ice.DecimalType):
        return f"decimal({kind.precision},{kind.scale})"
    return _NAMES.get(str(kind), str(kind))


def kept_as(text: str) -> str:
    """What a table of Iceberg says of a column of this type. Raises NotAType for one that Iceberg has not."""
    return ddl(iceberg_type(parse(text), count(1)))


def exact(live: str, told: str | None) -> str:
    """The type as our specifications write it: `told`, if that is what the live one stands for."""
    try:
        return told if told is not None and kept_as(told).lower() == live.lower() else live
    except NotAType:
        return live


def is_widened(old: ice.IcebergType, new: ice.IcebergType) -> bool:
    """Whether a plain type can become the other one: readers of Iceberg widen what old files hold."""
    if isinstance(old, ice.DecimalType) and isinstance(new, ice.DecimalType):
        return old.scale == new.scale and old.precision <= new.precision
    return old == new or (str(old), str(new)) in _WIDENED


# Between our specification of a table and Iceberg's metadata: both ways.

FORMAT = "iceberg"
DESCRIPTION = "comment"
"""The property in which Spark, Trino and Flink keep what a table is."""

_OURS = (DESCRIPTION, EXACT_TYPES)
_FIRST_FIELD = 1000
_UNREAD = "one that pyiceberg does not understand"


@dataclass(frozen=True, slots=True)
class StrangeTable:
    """A table that is there, and that pyiceberg does not understand, such as one with a newer type."""

    key: Key

    def name(self) -> Key:
        return self.key


def live_table(found: Table | View | StrangeTable) -> catalog.LiveTable:
    """A table or a view as the catalog answers it, folded.

    Its version is the digest of what is read: commits of data, which come all the time, do not change it.
    """
    key = found.name()[-2], found.name()[-1]
    if isinstance(found, StrangeTable):
        # Nobody's, and of no format of ours: a conflict for who wants it, and no obstacle for others.
        return catalog.LiveTable(folded(TableSpec(*key, "", _UNREAD, ())), "")
    spec = _view(key, found) if isinstance(found, View) else _table(key, found.metadata)
    return catalog.LiveTable(
        spec, digest(spec), None if isinstance(found, View) else _changed_at(found.metadata)
    )


def _changed_at(metadata: TableMetadata) -> datetime | None:
    """When the table was changed last; None where that was a commit of data, which hides the change."""
    at = metadata.last_updated_ms
    if any(snapshot.timestamp_ms == at for snapshot in metadata.snapshots):
        return None
    return datetime.fromtimestamp(at / 1000, UTC)


def _table(key: Key, metadata: TableMetadata) -> TableSpec:
    told = _told(metadata.properties)
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
            tuple(_table_column(field, told) for number, field in fields.items() if number not in keys),
            tuple(_table_column(fields[number], told) for number in keys),
            _parameters(metadata.properties),
            metadata.properties.get(DESCRIPTION, ""),
        )
    )


def _view(key: Key, view: View) -> TableSpec:
    columns = tuple(_table_column(field, {}) for field in view.schema().fields)
    description = view.properties.get(DESCRIPTION, "")
    return folded(TableSpec(*key, "", VIEW, columns, (), _parameters(view.properties), description))


def _parameters(properties: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple((key, text) for key, text in properties.items() if key not in _OURS)


def _told(properties: Mapping[str, str]) -> dict[str, str]:
    """The exact types that the table keeps; none where another has written something else there."""
    try:
        told = json.loads(properties.get(EXACT_TYPES, "{}"))
    except (ValueError, RecursionError):
        return {}
    return (
        {key: text for key, text in told.items() if isinstance(text, str)} if isinstance(told, dict) else {}
    )


def _table_column(field: NestedField, told: Mapping[str, str]) -> TableColumn:
    kind = exact(ddl(field.field_type), told.get(field.name.lower()))
    return TableColumn(field.name, kind, field.doc or "", required=field.required)


def schema_of(spec: TableSpec) -> Schema:
    """The schema of a new table: the columns, then the keys. Raises NotAType for what Iceberg has not."""
    ids = count(1)
    fields = []
    for column in (*spec.columns, *spec.partitions):
        number = next(ids)
        kind = iceberg_type(parse(column.type), ids)
        doc = column.comment or None
        fields.append(NestedField(number, column.name, kind, required=column.required, doc=doc))
    return Schema(*fields)


def partitions_of(spec: TableSpec, schema: Schema) -> PartitionSpec:
    """One part for each key, in their order, by the value as it is."""
    keys = [schema.find_field(column.name).field_id for column in spec.partitions]
    parts = zip(count(_FIRST_FIELD), keys, spec.partitions, strict=False)
    return PartitionSpec(
        *(PartitionField(source, number, IdentityTransform(), key.name) for number, source, key in parts)
    )


def properties_of(spec: TableSpec) -> dict[str, str]:
    """All properties that are the specification's: parameters, description, exact types."""
    told = {}
    for column in (*spec.columns, *spec.partitions):
        # Of its own types that we have no word for, Iceberg keeps no other.
        with suppress(NotAType):
            if kept_as(column.type) != column.type:
                told[column.name] = column.type
    made = dict(spec.parameters)
    if spec.description:
        made[DESCRIPTION] = spec.description
    if told:
        made[EXACT_TYPES] = json.dumps(told, sort_keys=True)
    return made


# How a table of Iceberg may become another one, and the steps that make it so, as one commit.
#
# Source: Iceberg's table specification, "Schema Evolution" and "Partition Evolution".

Path = tuple[str, ...]

_NESTED = (ListType, MapType, StructType)


def obstacles(action: catalog.Action) -> Iterator[catalog.Obstacle]:
    """What Iceberg cannot make of the table: files that are there could not be read by the new columns."""
    if action.before is None or action.after is None:
        return
    before, after = action.before.spec, action.after
    changed = [change for change in action.changes if not change.kept]
    for change in changed:
        if change.field is catalog.ChangedField.TYPE:
            yield from _no_way(change.name, change.before or "", change.after or "")
    if any(change.field is catalog.ChangedField.PARTITIONS for change in changed):
        yield from _keys(before, after)


_COLUMN = (
    "Give the new type a column of its own, or the contract a new major version with a table of its own."
)


def _no_way(column: str, old: str, new: str) -> Iterator[catalog.Obstacle]:
    """The obstacle where a column of one type cannot become one of the other."""
    try:
        kinds = [iceberg_type(parse(text), count(1)) for text in (old, new)]
        why = next(_stuck(*kinds), "")
    except NotAType as error:
        why = str(error)
    if why:
        yield catalog.Obstacle(column, f"{column} cannot become {new}: {why}.", _COLUMN)


def _stuck(old: IcebergType, new: IcebergType) -> Iterator[str]:
    """Each part of a type that cannot become what stands at its place in the other one."""
    if isinstance(old, StructType) and isinstance(new, StructType):
        there = _by_name(old)
        for field in new.fields:
            if field.name.lower() in there:
                yield from _stuck(there[field.name.lower()].field_type, field.field_type)
    elif isinstance(old, ListType) and isinstance(new, ListType):
        yield from _stuck(old.element_type, new.element_type)
    elif isinstance(old, MapType) and isinstance(new, MapType):
        if ddl(old.key_type) != ddl(new.key_type):
            yield "Iceberg does not change the keys of a map"
        yield from _stuck(old.value_type, new.value_type)
    elif old.is_primitive != new.is_primitive or not is_widened(old, new):
        yield f"Iceberg widens numbers alone, and this is {ddl(old)}"


def _keys(before: TableSpec, after: TableSpec) -> Iterator[catalog.Obstacle]:
    """New keys come behind those that stay, in a table of Iceberg."""
    live = {key.name: key for key in before.partitions}
    wanted = [key.name for key in after.partitions]
    stay = [name for name in live if name in wanted]
    if wanted[: len(stay)] != stay:
        why = f"the partition keys {', '.join(live)} cannot become {', '.join(wanted)}: new ones come last."
        yield catalog.Obstacle(wanted[0], why, "Let partitionKeyPosition begin with the keys that are there.")
    for key in after.partitions:
        there = live.get(key.name) or before.column(key.name)
        if there:
            yield from _no_way(key.name, there.type, key.type)


def evolve(transaction: Transaction, live: TableSpec, after: TableSpec) -> None:
    """Makes the transaction turn the live table into `after`: columns, keys, place, properties."""
    wanted = (*after.columns, *after.partitions)
    names = {column.name for column in wanted}
    fields = {field.name.lower(): field for field in transaction.table_metadata.schema().fields}
    with transaction.update_schema(case_sensitive=False) as update:
        for column in wanted:
            _column(update, fields.get(column.name), column, live)
    _partition(transaction, after)
    gone = [field.name for name, field in fields.items() if name not in names]
    if gone:
        # After the keys: a column that the table is parted by cannot go.
        with transaction.update_schema() as update:
            for name in gone:
                update.delete_column((name,))
    if after.location != live.location:
        # pyiceberg has no other word for it.
        transaction._apply((SetLocationUpdate(location=after.location),))
    _properties(transaction, live, after)


def _column(update: UpdateSchema, field: NestedField | None, column: TableColumn, live: TableSpec) -> None:
    if field is None:
        # No old row has a value: a new column cannot be required.
        kind = iceberg_type(parse(column.type), count(1))
        update.add_column((column.name,), kind, column.comment or None)
        return
    path = (field.name,)
    there = next(one for one in (*live.columns, *live.partitions) if one.name == column.name)
    if there.type != column.type:
        _retype(update, path, field.field_type, iceberg_type(parse(column.type), count(1)))
    if there.comment != column.comment:
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
    there = _by_name(old)
    names = [field.name.lower() for field in new.fields]
    for name, field in there.items():
        if name not in names:
            update.delete_column((*path, field.name))
    for field in new.fields:
        if field.name.lower() in there:
            same = there[field.name.lower()]
            _retype(update, (*path, same.name), same.field_type, field.field_type)
        else:
            update.add_column((*path, field.name), field.field_type)
    order = [name for name in there if name in names] + [name for name in names if name not in there]
    if order != names:
        spelled = [there[name].name if name in there else name for name in names]
        update.move_first((*path, spelled[0]))
        for last, name in pairwise(spelled):
            update.move_after((*path, name), (*path, last))


def _by_name(struct: StructType) -> dict[str, NestedField]:
    return {field.name.lower(): field for field in struct.fields}


def _partition(transaction: Transaction, after: TableSpec) -> None:
    """Keys by value follow; how the table is parted otherwise is its writer's."""
    metadata = transaction.table_metadata
    columns = {field.field_id: field.name.lower() for field in metadata.schema().fields}
    live: dict[str, PartitionField] = {
        columns[part.source_id]: part
        for part in metadata.spec().fields
        if isinstance(part.transform, IdentityTransform) and part.source_id in columns
    }
    wanted = [key.name for key in after.partitions]
    if list(live) == wanted:
        return
    with transaction.update_spec() as update:
        for name, part in live.items():
            if name not in wanted:
                update.remove_field(part.name)
        for name in wanted:
            if name not in live:
                # By now the schema has the new columns, each as it is spelled there.
                fields = transaction.table_metadata.schema().fields
                update.add_identity(next(field.name for field in fields if field.name.lower() == name))


def _properties(transaction: Transaction, live: TableSpec, after: TableSpec) -> None:
    """Sets what differs, and takes away what was there: the properties of others are in neither."""
    is_, should = dict(transaction.table_metadata.properties), properties_of(after)
    gone = [key for key in properties_of(live) if key not in should and key in is_]
    if gone:
        transaction.remove_properties(*gone)
    changed = {key: text for key, text in should.items() if is_.get(key) != text}
    if changed:
        transaction.set_properties(changed)


_ABSENT = (errors.NoSuchTableError, errors.NoSuchViewError, errors.NoSuchNamespaceError)


@dataclass(frozen=True, slots=True)
class Iceberg:
    """A `Catalog` behind Iceberg's REST protocol, which makes and evolves the tables of its contracts.

    What a table is not by its contract, such as how it is sorted or hidden parts of it, stays its writers'.
    """

    rest: RestCatalog
    id: str
    formats: frozenset[str] = frozenset({FORMAT})

    def vet(self, spec: TableSpec) -> None:
        if spec.format == VIEW:
            return
        if spec.format not in self.formats:
            raise UnsayableTerms(
                f"{_name(spec.key)}: a catalog of Iceberg holds no tables of {spec.format}.",
                "Register it with the catalog glue, hive or local; or deliver Iceberg.",
            )
        try:
            schema_of(spec)
        except NotAType as error:
            raise UsageError(
                f"{_name(spec.key)}: {error}.", "Give the column another physicalType."
            ) from error

    def read(self, database: str, name: str) -> catalog.LiveTable | None:
        with explained(f"read {database}.{name}"):
            found = self._load((database, name))
        return None if found is None else live_table(found)

    def tables(self, database: str) -> list[catalog.LiveTable]:
        with explained(f"list the tables of {database}"):
            try:
                names = [*self.rest.list_tables((database,)), *self.rest.list_views((database,))]
            except errors.NoSuchNamespaceError:
                return []
            found = [self._load((database, name[-1])) for name in sorted(names)]
        return [live_table(one) for one in found if one is not None]

    def obstacles(self, action: catalog.Action) -> Iterable[catalog.Obstacle]:
        if action.after is None or action.after.format == VIEW:
            return ()
        return obstacles(action)

    def apply(self, action: catalog.Action) -> None:
        with explained(f"write {_name(action.key)}"):
            found = self._load(action.key)
            live = None if found is None else live_table(found)
            seen = action.before.version if action.before else None
            if (live.version if live else None) != seen:
                raise catalog.stale(*action.key)
            try:
                self._write(found, live, action.after)
            except (errors.CommitFailedException, errors.TableAlreadyExistsError) as error:
                # Another has written between our reading and our writing: who asks compares.
                raise catalog.stale(*action.key) from error
            except UNKNOWN:
                if not self._arrived(action):
                    raise

    def add_partition(self, database: str, name: str, values: catalog.Values, location: str) -> bool:
        if self.read(database, name) is None:
            raise catalog.no_table(database, name)
        raise _by_commits(database, name)

    def place_of(self, database: str, name: str, values: catalog.Values) -> str | None:
        raise _by_commits(database, name)

    def move_partition(self, database: str, name: str, values: catalog.Values, location: str) -> None:
        raise _by_commits(database, name)

    def partitions(self, database: str, name: str) -> list[catalog.Partition]:
        if self.read(database, name) is None:
            return []
        raise _by_commits(database, name)

    def _load(self, key: Key) -> Table | View | StrangeTable | None:
        try:
            with suppress(*_ABSENT):
                table: Table = self.rest.load_table(key)
                return table
            view: View = self.rest.load_view(key)
            return view
        except (*_ABSENT, NotImplementedError):
            # The last where the catalog knows no views.
            return None
        except AnswerFault:
            return StrangeTable(key)

    def _write(
        self,
        found: Table | View | StrangeTable | None,
        live: catalog.LiveTable | None,
        after: TableSpec | None,
    ) -> None:
        if found is None or live is None:
            if after is not None:
                self._create(after)
        elif after is None:
            self._drop(found)
        elif isinstance(found, View):
            self._describe(found, live.spec, after)
        elif isinstance(found, Table):
            with found.transaction() as transaction:
                evolve(transaction, live.spec, after)

    def _create(self, spec: TableSpec) -> None:
        schema = schema_of(spec)
        for _ in range(2):
            try:
                self.rest.create_table(
                    spec.key,
                    schema,
                    spec.location or None,
                    partitions_of(spec, schema),
                    properties=properties_of(spec),
                )
                return
            except errors.NoSuchNamespaceError:
                # Most are there: asking before each table would be a call for nothing.
                marks = {MANAGED_BY: "dq", REGISTRY: spec.parameter(REGISTRY)}
                written = {key: text for key, text in marks.items() if text}
                with suppress(errors.NamespaceAlreadyExistsError):
                    self.rest.create_namespace((spec.database,), written)
        raise Unreadable(
            f"The catalog does not find the namespace {spec.database} that it has just made.",
            "Try again later.",
        )

    def _drop(self, found: Table | View | StrangeTable) -> None:
        """From the catalog alone: no file is purged."""
        # It may be gone: by our own first try, of which the answer was lost, or by another.
        with suppress(*_ABSENT):
            if isinstance(found, View):
                self.rest.drop_view(found.name())
            else:
                self.rest.drop_table(found.name())

    def _describe(self, view: View, live: TableSpec, after: TableSpec) -> None:
        """Sets the properties of a view, which is all that is ours; pyiceberg has no word for it."""
        is_, should = properties_of(live), properties_of(after)
        gone = sorted(is_.keys() - should.keys())
        changed = {key: text for key, text in should.items() if is_.get(key) != text}
        updates: list[dict[str, Any]] = []
        if gone:
            updates.append({"action": "remove-properties", "removals": gone})
        if changed:
            updates.append({"action": "set-properties", "updates": changed})
        commit = {
            "requirements": [{"type": "assert-view-uuid", "uuid": view.metadata.view_uuid}],
            "updates": updates,
        }
        database, name = view.name()[-2:]
        url = self.rest.url("namespaces/{namespace}/views/{view}", namespace=database, view=name)
        answer = self.rest._session.post(url, json=commit)
        if answer.status_code == _CONFLICT:
            raise catalog.stale(database, name)
        answer.raise_for_status()

    def _arrived(self, action: catalog.Action) -> bool:
        """Whether the catalog is as the action wants it, though nobody said that it was done."""
        found = self._load(action.key)
        if found is None or action.after is None:
            return found is None and action.after is None
        left = catalog.changes(live_table(found).spec, action.after, None, own=self.formats)
        return all(change.kept for change in left)


_CONFLICT = 409


def _name(key: Key) -> str:
    return ".".join(key)


def _by_commits(database: str, name: str) -> DqError:
    return DqError(
        f"{database}.{name}: writers of Iceberg add and drop partitions by their own commits.",
        "Leave partitions to them; dq publish and dq repair do so.",
    )
