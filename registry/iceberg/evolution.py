"""How a table of Iceberg may become another one, and the steps that make it so, as one commit.

Source: Iceberg's table specification, "Schema Evolution" and "Partition Evolution".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count, pairwise

from pyiceberg.partitioning import PartitionField
from pyiceberg.table import Transaction
from pyiceberg.table.update import SetLocationUpdate
from pyiceberg.table.update.schema import UpdateSchema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import IcebergType, ListType, MapType, NestedField, StructType

from dq.contracts.types import NotAType, parse
from dq.registry.action import Action, ChangedField, Obstacle
from dq.registry.iceberg.shapes import properties_of
from dq.registry.iceberg.types import ddl, iceberg_type, is_widened
from dq.registry.table import TableColumn, TableSpec

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
