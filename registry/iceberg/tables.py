"""Tables behind Iceberg's REST protocol: read, made and changed; each change is one commit, or none."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import count, pairwise
from typing import Any

from pydantic import ValidationError as AnswerFault
from pyiceberg import exceptions as errors
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.partitioning import PartitionField
from pyiceberg.table import Table, Transaction
from pyiceberg.table.update import SetLocationUpdate
from pyiceberg.table.update.schema import UpdateSchema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import IcebergType, ListType, MapType, NestedField, StructType
from pyiceberg.view import View

from dq.contracts.shared.outcome import DqError, Unreadable, UsageError
from dq.contracts.types import NotAType, parse
from dq.registry.catalog import Partition, Values, no_table, stale
from dq.registry.diff import Action, ChangedField, LiveTable, Obstacle, changes
from dq.registry.iceberg.client import UNKNOWN, explained
from dq.registry.iceberg.conversion import (
    FORMAT,
    StrangeTable,
    ddl,
    iceberg_type,
    is_widened,
    live_table,
    partitions_of,
    properties_of,
    schema_of,
)
from dq.registry.table import MANAGED_BY, REGISTRY, VIEW, Key, TableColumn, TableSpec, UnsayableTerms

# How a table of Iceberg may become another one, and the steps that make it so, as one commit.
#
# Source: Iceberg's table specification, "Schema Evolution" and "Partition Evolution".

Path = tuple[str, ...]

_NESTED = (ListType, MapType, StructType)


def obstacles(action: Action) -> Iterator[Obstacle]:
    """What Iceberg cannot make of the table: files that are there could not be read by the new columns."""
    if action.before is None or action.after is None:
        return
    before, after = action.before.spec, action.after
    kinds = {change.field: change for change in action.changes if not change.kept}
    for change in action.changes:
        if change.field is ChangedField.TYPE and not change.kept:
            why = _no_way(change.before or "", change.after or "")
            if why:
                yield Obstacle(change.name, f"{change.name} cannot become {change.after}: {why}.", _COLUMN)
    if ChangedField.PARTITIONS in kinds:
        yield from _keys(before, after)


_COLUMN = (
    "Give the new type a column of its own, or the contract a new major version with a table of its own."
)


def _no_way(old: str, new: str) -> str:
    """Why a column of one type cannot become one of the other; "" where it can."""
    try:
        kinds = [iceberg_type(parse(text), count(1)) for text in (old, new)]
    except NotAType as error:
        return str(error)
    return next(_stuck(*kinds), "")


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


def _keys(before: TableSpec, after: TableSpec) -> Iterator[Obstacle]:
    """New keys come behind those that stay, in a table of Iceberg."""
    live = {key.name: key for key in before.partitions}
    wanted = [key.name for key in after.partitions]
    stay = [name for name in live if name in wanted]
    if wanted[: len(stay)] != stay:
        why = f"the partition keys {', '.join(live)} cannot become {', '.join(wanted)}: new ones come last."
        yield Obstacle(wanted[0], why, "Let partitionKeyPosition begin with the keys that are there.")
    for key in after.partitions:
        there = live.get(key.name) or before.column(key.name)
        why = _no_way(there.type, key.type) if there else ""
        if why:
            yield Obstacle(key.name, f"{key.name} cannot become {key.type}: {why}.", _COLUMN)


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
        _sort(update, path, [there[name].name if name in there else name for name in names])


def _sort(update: UpdateSchema, path: Path, names: Sequence[str]) -> None:
    update.move_first((*path, names[0]))
    for last, name in pairwise(names):
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
                update.add_identity(next(own for own in _spelled(transaction) if own.lower() == name))


def _spelled(transaction: Transaction) -> list[str]:
    return [field.name for field in transaction.table_metadata.schema().fields]


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

    def read(self, database: str, name: str) -> LiveTable | None:
        with explained(f"read {database}.{name}"):
            found = self._load((database, name))
        return None if found is None else live_table(found)

    def tables(self, database: str) -> list[LiveTable]:
        with explained(f"list the tables of {database}"):
            try:
                names = [*self.rest.list_tables((database,)), *self.rest.list_views((database,))]
            except errors.NoSuchNamespaceError:
                return []
            found = [self._load((database, name[-1])) for name in sorted(names)]
        return [live_table(one) for one in found if one is not None]

    def obstacles(self, action: Action) -> Iterable[Obstacle]:
        if action.after is None or action.after.format == VIEW:
            return ()
        return obstacles(action)

    def apply(self, action: Action) -> None:
        with explained(f"write {_name(action.key)}"):
            found = self._load(action.key)
            live = None if found is None else live_table(found)
            seen = action.before.version if action.before else None
            if (live.version if live else None) != seen:
                raise stale(*action.key)
            try:
                self._write(found, live, action.after)
            except (errors.CommitFailedException, errors.TableAlreadyExistsError) as error:
                # Another has written between our reading and our writing: who asks compares.
                raise stale(*action.key) from error
            except UNKNOWN:
                if not self._arrived(action):
                    raise

    def add_partition(self, database: str, name: str, values: Values, location: str) -> bool:
        if self.read(database, name) is None:
            raise no_table(database, name)
        raise _by_commits(database, name)

    def place_of(self, database: str, name: str, values: Values) -> str | None:
        raise _by_commits(database, name)

    def move_partition(self, database: str, name: str, values: Values, location: str) -> None:
        raise _by_commits(database, name)

    def partitions(self, database: str, name: str) -> list[Partition]:
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
        self, found: Table | View | StrangeTable | None, live: LiveTable | None, after: TableSpec | None
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
                self._create_namespace(spec)
        raise Unreadable(
            f"The catalog does not find the namespace {spec.database} that it has just made.",
            "Try again later.",
        )

    def _create_namespace(self, spec: TableSpec) -> None:
        marks = {MANAGED_BY: "dq", REGISTRY: spec.parameter(REGISTRY)}
        with suppress(errors.NamespaceAlreadyExistsError):
            self.rest.create_namespace((spec.database,), {key: text for key, text in marks.items() if text})

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
            raise stale(database, name)
        answer.raise_for_status()

    def _arrived(self, action: Action) -> bool:
        """Whether the catalog is as the action wants it, though nobody said that it was done."""
        found = self._load(action.key)
        if found is None or action.after is None:
            return found is None and action.after is None
        left = changes(live_table(found).spec, action.after, None, own=self.formats)
        return all(change.kept for change in left)


_CONFLICT = 409


def _name(key: Key) -> str:
    return ".".join(key)


def _by_commits(database: str, name: str) -> DqError:
    return DqError(
        f"{database}.{name}: writers of Iceberg add and drop partitions by their own commits.",
        "Leave partitions to them; dq publish and dq repair do so.",
    )
