"""Objects and properties in normal form: types, bounds, allowed values, keys and partitions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dq.contracts import extension
from dq.contracts.diff import terms
from dq.contracts.diff.canonical import canonical, physical, unordered, written, zone
from dq.contracts.diff.element import ElementKind, FlatElement, Value
from dq.contracts.diff.reading import element, show, value, values
from dq.contracts.model import Element as Described
from dq.contracts.model import Property, Quality, Relationship, SchemaObject, TypeOptions
from dq.contracts.types import DataType

OPTIONS = "logicalTypeOptions"
# Two keys of one bound: the exclusive one is the same bound with an open end.
_EXCLUSIVE = {"exclusiveMinimum": "minimum", "exclusiveMaximum": "maximum"}


def objects(listed: list[SchemaObject]) -> Iterator[FlatElement]:
    """The tables of a contract."""
    for one in listed:
        found = values(one, ElementKind.OBJECT)
        found.pop("physicalType", None)
        if one.name == one.column:
            found.pop("name", None)
        found.update(_allowed(one, [], one.quality))
        found.update(_kind_of(one))
        dataset, _ = extension.dataset(one)
        found.update(terms.terms(dataset, "dataset"))
        columns = tuple(_property(prop, one.column, one.column, frozenset()) for prop in one.properties)
        walked = [inner for column in columns for inner in column.walk()]
        by_pointer = {prop.path(): prop for prop in one.walk()}
        found.update(_keys(one, walked, by_pointer))
        own = (_relation(relation, _joined(relation.from_), one) for relation in one.relationships)
        relations = (*own, *_inner_relations(one, walked, by_pointer))
        parts = (*columns, *terms.rules(one.quality, one.column, one.column), *relations)
        name = one.column
        yield element(one, ElementKind.OBJECT, _names(one), name, name, found, parts, object_name=name)


def _kind_of(one: SchemaObject) -> Iterator[tuple[str, Value]]:
    """Table, view …: words, whatever their case."""
    if one.physical_type is not None and one.physical_type.lower() != "table":
        yield "physicalType", value(one, "physicalType", one.physical_type.lower(), one.physical_type)


def _names(one: Described) -> tuple[tuple[str, str], ...]:
    custom = one.custom("renamedFrom")
    origin = str(custom.value) if custom is not None and isinstance(custom.value, str) else ""
    return (
        ("id", one.id or ""),
        ("column", one.column),
        ("renamedFrom", origin),
        ("name", one.name or ""),
        ("case", one.column.lower()),
    )


def _property(
    prop: Property, holder: str, object_: str, required: frozenset[str], mark: str = "", nested: bool = False
) -> FlatElement:
    """One property; `mark` stands for the name of items and of a map's key and value, which have none."""
    path = f"{holder}{mark}" if mark else f"{holder}.{prop.column}"
    found = values(prop, ElementKind.PROPERTY)
    if prop.name in required or prop.column in required:
        found["required"] = found.get("required") or Value("true", True, prop.at(), prop.path())
    if prop.name == prop.column:
        # The name of a column is its identity; only a label beside a physical name is an attribute.
        found.pop("name", None)
    if prop.physical_type is not None:
        found["physicalType"] = value(prop, "physicalType", _type(prop), prop.physical_type)
    listed = [one.value for one in prop.enum] if prop.enum else []
    found.update(_allowed(prop, listed, prop.quality))
    found.update(_enum_labels(prop))
    options = prop.logical_type_options
    inner_required: frozenset[str] = frozenset()
    if options is not None:
        found.update(_options(options))
        inner_required = frozenset(options.required or [])
    children = [_property(one, path, object_, inner_required, nested=True) for one in prop.properties]
    if prop.items is not None:
        children.append(_property(prop.items, path, object_, inner_required, "[]", nested=True))
    if prop.map is not None:
        children.append(_property(prop.map.key, path, object_, frozenset(), "{key}", nested=True))
        children.append(_property(prop.map.value, path, object_, inner_required, "{}", nested=True))
    names = (("column", mark),) if mark else _names(prop)
    parts = (*children, *terms.rules(prop.quality, path, object_))
    column = mark or prop.column
    return element(
        prop, ElementKind.PROPERTY, names, column, path, found, parts, object_name=object_, nested=nested
    )


def _type(prop: Property) -> object:
    made = physical(prop.physical_type or "")
    if made.type is not None and made.type.parts and (prop.properties or prop.items or prop.map):
        # What is inside is compared part by part below; saying it twice would be two findings.
        return type(made)(DataType(made.type.name), made.type.name)
    return made


def _options(options: TypeOptions) -> Iterator[tuple[str, Value]]:
    for key, raw in written(options).items():
        if key == "required":
            continue
        bound = _EXCLUSIVE.get(key, key)
        normal: object = (raw, key in _EXCLUSIVE) if bound in ("minimum", "maximum") else canonical(raw)
        if key == "defaultTimezone":
            normal = zone(str(raw))
            if normal == "UTC":
                continue
        name = f"{OPTIONS}.{bound}"
        if bound != key and options.has(bound):
            # Both keys are written: the tighter one holds, and at the same number that is the open end.
            normal = _tighter(bound, (getattr(options, bound), False), (raw, True))
        elif key in ("minimum", "maximum") and options.has(f"exclusive{key.capitalize()}"):
            continue
        shown = f"{raw} (exclusive)" if key in _EXCLUSIVE else raw
        yield name, value(options, key, normal, shown)


def _tighter(bound: str, closed: tuple[Any, bool], open_: tuple[Any, bool]) -> tuple[Any, bool]:
    first, second = closed[0], open_[0]
    if type(first) is not type(second):
        first, second = str(first), str(second)
    if bound == "minimum":
        return open_ if second >= first else closed
    return open_ if second <= first else closed


def _allowed(holder: Described, enum: list[Any], quality: list[Quality]) -> Iterator[tuple[str, Value]]:
    """The values that an enum or a rule without tolerance allows; what both allow where there are several."""
    sets: list[tuple[set[object], Value]] = []
    if enum:
        sets.append((set(_items(unordered(enum))), value(holder, "enum", unordered(enum), show(enum))))
    for rule in quality:
        found = terms.valid_values(rule)
        if found is not None and terms.told_by_allowed_values(rule):
            key = "validValues" if rule.valid_values is not None else "arguments"
            sets.append((set(_items(found[0])), value(rule, key, *found)))
    if sets:
        common = set.intersection(*(one for one, _ in sets))
        first = sets[0][1]
        shown = first.shown if len(sets) == 1 else sorted(common, key=repr)
        yield "allowedValues", Value(tuple(sorted(common, key=repr)), shown, first.at, first.pointer)


def _enum_labels(prop: Property) -> Iterator[tuple[str, Value]]:
    """What an enum says of its values besides the values themselves."""
    labels = unordered([one for one in prop.enum or () if len(written(one)) > 1])
    if labels:
        yield "enumLabels", value(prop, "enum", labels, show(prop.enum))


def _items(normal: object) -> tuple[object, ...]:
    return normal if isinstance(normal, tuple) else ()


def _keys(
    one: SchemaObject, walked: list[FlatElement], by_pointer: Mapping[str, Property]
) -> Iterator[tuple[str, Value]]:
    """The primary key and the partition as sequences of columns."""
    rows = [(flat, by_pointer[flat.pointer]) for flat in walked if flat.pointer in by_pointer]
    primary = sorted(
        (row for row in rows if row[1].primary_key),
        key=lambda row: _position(row[1].primary_key_position),
    )
    if primary:
        normal = tuple(_inside(flat, one) for flat, _ in primary)
        yield "primaryKey", value(primary[0][1], "primaryKey", normal, list(normal))
    keys = sorted(
        (row for row in rows if row[1].partitioned),
        key=lambda row: _position(row[1].partition_key_position),
    )
    if keys:
        parts = tuple((_inside(flat, one), _transform(prop)) for flat, prop in keys)
        shown = [f"{transform}({name})" if transform else name for name, transform in parts]
        yield "partition", value(keys[0][1], "partitioned", parts, shown)


def _position(position: int | None) -> int:
    return 1 << 30 if position is None or position < 0 else position


def _inside(flat: FlatElement, one: SchemaObject) -> str:
    return flat.path.removeprefix(f"{one.column}.")


def _transform(prop: Property) -> str:
    custom = prop.custom("partitionTransform")
    return str(custom.value) if custom is not None else ""


def _inner_relations(
    one: SchemaObject, walked: list[FlatElement], by_pointer: Mapping[str, Property]
) -> Iterator[FlatElement]:
    """Those of the properties, said as the object would: what they come from is where they stand."""
    for flat in walked:
        prop = by_pointer.get(flat.pointer)
        for relation in prop.relationships if prop else ():
            yield _relation(relation, flat.path, one)


def _relation(relation: Relationship, origin: str, one: SchemaObject) -> FlatElement:
    start = origin if origin.startswith(f"{one.name}.") or "." in origin else f"{one.column}.{origin}"
    name = f"{start} -> {_joined(relation.to)}"
    kind, path = ElementKind.RELATIONSHIP, f"{one.column}.relationships.{name}"
    found = values(relation, kind)
    return element(relation, kind, (("column", name),), name, path, found, object_name=one.column)


def _joined(names: str | list[str] | None) -> str:
    return ",".join(names) if isinstance(names, list) else names or ""
