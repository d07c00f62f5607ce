"""Drift: differences between the objects of a contract and their source as it is now, one line each.

Every path is compared: fields of objects, items of arrays (`[]`), keys (`^`) and values (`*`) of maps. A type
that the source declares has to be the promised one. Of values without a declared type, only the kinds are
compared: object, array, string, number, integer, boolean.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from dq.contracts.extension import csv
from dq.contracts.model import Contract, Property, SchemaObject
from dq.contracts.types import DataType, catalog_type, physical_type
from dq.registry.importing import (
    DOUBLE,
    DOUBT,
    GUESS,
    NULL_WORDS,
    STRING,
    ColumnValues,
    ImportedTable,
    struct_of,
)

# TABLE: types of a contract and the values and types that can have them.

_INTEGERS = ("tinyint", "smallint", "int", "bigint")
_NUMBERS = (*_INTEGERS, "decimal", "float", "double")
_INSTANTS = ("date", "timestamp", "timestamp_ntz")
_TEXTS = ("string", "char", "varchar", "binary", "interval")
_CONTAINERS = {"struct": "object", "map": "object", "array": "array"}
# Promised type -> kinds of JSON values, and of texts in CSV and in names of folders. Text formats also write
# dates as numbers, e.g. 20260501. A decimal without fraction is an integer.
_KINDS: dict[str, frozenset[str]] = {
    **dict.fromkeys(_NUMBERS, frozenset({"integer", "number"})),
    **dict.fromkeys(_INTEGERS, frozenset({"integer"})),
    **dict.fromkeys(_INSTANTS, frozenset({"string", "integer"})),
    **dict.fromkeys(_TEXTS, frozenset({"string"})),
    "boolean": frozenset({"boolean"}),
}
# Promised type -> types whose declaration leaves open whether they are the same. MySQL writes BOOLEAN as
# TINYINT(1).
_IN_DOUBT: dict[str, frozenset[str]] = {
    **dict.fromkeys(_NUMBERS, frozenset(_NUMBERS)),
    **dict.fromkeys(_INSTANTS, frozenset((*_INSTANTS, *_INTEGERS, "decimal"))),
    "boolean": frozenset({"boolean", "tinyint"}),
}


def differences(contract: Contract, tables: Sequence[ImportedTable]) -> list[str]:
    """Return the differences between contract and source, one line each.

    Names are compared case-insensitively, and ignored if both sides have exactly one table.
    """
    if len(contract.objects) == len(tables) == 1:
        return list(object_differences(contract, contract.objects[0], tables[0]))
    tables_by_name = {table.physical_name.lower(): table for table in tables}
    objects_by_name = {schema_object.column.lower(): schema_object for schema_object in contract.objects}
    lines = [
        f"+ object {table.name}" for name, table in tables_by_name.items() if name not in objects_by_name
    ]
    lines += [
        f"- object {schema_object.column}"
        for name, schema_object in objects_by_name.items()
        if name not in tables_by_name
    ]
    for name, schema_object in objects_by_name.items():
        if name in tables_by_name:
            lines += object_differences(contract, schema_object, tables_by_name[name])
    return lines


def object_differences(
    contract: Contract, schema_object: SchemaObject, table: ImportedTable
) -> Iterator[str]:
    """Yield the differences between an object of the contract and its table.

    `+` is a column or field that the contract lacks, `-` one that the source lacks, `~` one of another kind
    or type. An object is shown by its fields. The inside of values that are all NULL is not compared.
    """
    null_texts = {terms.null_text for terms, _ in map(csv, contract.servers)} - {None, *NULL_WORDS}
    comparison = _Comparison(table.absence, has_null_text=bool(null_texts))
    columns = (*table.columns, *table.partitions)
    promised = [_Promised(prop.column, catalog_type(prop), prop) for prop in schema_object.properties]
    values = {
        column.name: column.values or ColumnValues.declared(column.type, column.evidence)
        for column in columns
    }
    yield from comparison.fields(schema_object.column, promised, values)
    order = [prop.column.lower() for prop in schema_object.partition_keys()]
    keys = [column.name.lower() for column in table.partitions]
    if order != keys:
        yield (
            f"~ {schema_object.column} partition keys: {', '.join(order) or 'none'} → "
            f"{', '.join(keys) or 'none'}"
        )


@dataclass(frozen=True, slots=True)
class _Promised:
    """A column or a part of it in the contract; `prop` is None if only a physicalType describes it."""

    name: str
    type: DataType
    prop: Property | None

    def parts(self) -> list[_Promised]:
        prop = self.prop
        if self.type.name == "struct":
            properties = {inner.column.lower(): inner for inner in prop.properties} if prop else {}
            return [
                _Promised(name, part, properties.get(name.lower()))
                for name, part in zip(self.type.names, self.type.parts, strict=True)
            ]
        if self.type.name == "array":
            if prop and prop.logical_type == "array" and not prop.items and physical_type(prop) is None:
                return []  # The contract leaves the items open.
            return [_Promised("[]", self.type.parts[0], prop.items if prop else None)]
        if self.type.name == "map":
            key, value = self.type.parts
            inside = prop.map if prop else None
            return [
                _Promised("^", key, inside.key if inside else None),
                _Promised("*", value, inside.value if inside else None),
            ]
        return []

    @property
    def is_open(self) -> bool:
        """True if the contract leaves the type open."""
        if self.type.name == "variant":
            return True
        return self.prop is not None and not self.prop.logical_type and physical_type(self.prop) is None

    def is_json_text_of(self, actual: ColumnValues) -> bool:
        """Return True for an object without fields: it is stored as any object, or as text."""
        is_open_object = self.prop is not None and self.prop.logical_type in ("object", "map")
        is_text_or_object = actual.kinds is not None and actual.kinds <= {"object", "string"}
        return is_open_object and self.type.name in _TEXTS and is_text_or_object


@dataclass(frozen=True, slots=True)
class _Comparison:
    """Comparison of an object with one table; `absence` is the table's."""

    absence: str
    has_null_text: bool

    def fields(
        self, path: str, promised: Sequence[_Promised], actual: Mapping[str, ColumnValues]
    ) -> Iterator[str]:
        """Yield the differences of columns, or of the fields of an object, by name regardless of case."""
        fields = {field.name.lower(): field for field in promised}
        spellings: dict[str, str] = {}
        for name in actual:
            spellings.setdefault(name.lower(), name)
        values = {
            key: _merge([part for name, part in actual.items() if name.lower() == key]) for key in spellings
        }
        for key, part in values.items():
            if key not in fields:
                yield from _added(f"{path}.{spellings[key]}", part)
        for key, field in fields.items():
            if key in values:
                yield from self.part(f"{path}.{field.name}", field, values[key])
            else:
                yield from self._removed(f"{path}.{field.name}", field)

    def part(self, path: str, promised: _Promised, actual: ColumnValues) -> Iterator[str]:
        """Yield the differences of a column or of a part of it."""
        is_null = actual.kinds is not None and not actual.kinds
        if is_null or promised.is_open or promised.is_json_text_of(actual):
            return
        if _CONTAINERS.get(promised.type.name) != actual.container or not _same_container(promised, actual):
            if not self._fits(promised.type, actual):
                yield f"~ {path}: {promised.type} → {actual.type}{_note(actual)}"
        elif promised.type.name == "struct":
            yield from self.fields(path, promised.parts(), actual.parts)
            names, actual_names = _lower(promised.type.names), _lower(actual.type.names)
            if actual.kinds is None and names != actual_names and sorted(names) == sorted(actual_names):
                # Some readers match the fields of declared structs by position.
                yield f"~ {path}: {promised.type} → {actual.type}{_note(actual)}"
        else:
            parts = actual.parts
            if promised.type.name == "map" and actual.kinds is not None:
                # The names of fields are keys of the map.
                parts = {"*": _merge(list(parts.values()))} if parts else {}
            for inner in promised.parts():
                if inner.name in parts:
                    sign = "[]" if inner.name == "[]" else f".{inner.name}"
                    yield from self.part(f"{path}{sign}", inner, parts[inner.name])

    def _removed(self, path: str, promised: _Promised) -> Iterator[str]:
        parts = promised.parts()
        if promised.type.name == "struct":
            for inner in parts:
                yield from self._removed(f"{path}.{inner.name}", inner)
        elif parts and parts[-1].type.name in _CONTAINERS:
            yield from self._removed(f"{path}{'[]' if promised.type.name == 'array' else '.*'}", parts[-1])
        else:
            is_key = promised.prop is not None and promised.prop.partitioned
            note = f" ({self.absence})" if self.absence and not is_key else ""
            yield f"- {path}: {promised.type}{note}"

    def _fits(self, promised: DataType, actual: ColumnValues) -> bool:
        """Return True if values of this kind, or of this declared type, can have the promised type."""
        if actual.kinds is None:
            is_uncertain = actual.evidence.startswith((DOUBT, GUESS))
            return _is_same_type(promised, actual.type) or (is_uncertain and _may_be(promised, actual.type))
        if promised.name in _TEXTS:
            # Values of several kinds, and objects that no struct can represent, are read as text.
            return actual.is_text or actual.kinds == {"string"} or actual.type == STRING
        if promised.name in _CONTAINERS:
            return actual.is_text and actual.kinds == {"string"}
        is_whole = promised.name == "decimal" and promised.numbers[1:] == (0,)
        kinds = actual.kinds
        if actual.is_text and self.has_null_text:
            # A text among the values may be the contract's own word for NULL.
            kinds -= {"string"}
        return kinds <= _KINDS["bigint" if is_whole else promised.name]


def _same_container(promised: _Promised, actual: ColumnValues) -> bool:
    """Return True unless one side is a struct and the other one a declared map."""
    return actual.kinds is not None or promised.type.name == actual.type.name


def _added(path: str, actual: ColumnValues) -> Iterator[str]:
    items = actual.parts.get("*", actual.parts.get("[]"))
    if actual.container == "object" and actual.parts and actual.type.name != "map":
        for name, part in actual.parts.items():
            yield from _added(f"{path}.{name}", part)
    elif actual.container and items is not None and items.container:
        yield from _added(f"{path}{'[]' if actual.container == 'array' else '.*'}", items)
    else:
        yield f"+ {path}: {actual.type}{_note(actual)}"


def _lower(names: Sequence[str]) -> list[str]:
    return [name.lower() for name in names]


def _note(values: ColumnValues) -> str:
    return f" ({values.evidence})" if values.evidence else ""


def _merge(values: Sequence[ColumnValues]) -> ColumnValues:
    """Return the values of several parts as those of one part."""
    if len(values) == 1 or values[0].kinds is None:
        return values[0]
    kinds = frozenset(kind for value in values for kind in value.kinds or ())
    groups: dict[str, list[ColumnValues]] = {}
    for value in values:
        for name, part in value.parts.items():
            groups.setdefault(name, []).append(part)
    parts = {name: _merge(group) for name, group in groups.items()}
    first = next((value for value in values if value.kinds), values[0])
    types = {value.type for value in values if value.kinds}
    kind = first.type
    if kinds == {"object"} and parts:
        kind = struct_of(parts)
    elif kinds == {"array"}:
        kind = DataType("array", (), (parts["[]"].type,))
    elif len(types) > 1:
        kind = DOUBLE if kinds == {"integer", "number"} else STRING
    return replace(first, kinds=kinds, type=kind, parts=parts)


def _may_be(promised: DataType, actual: DataType) -> bool:
    """Return True if a type that is uncertain in its source may be the promised one."""
    if promised.name in _TEXTS or actual.name in _TEXTS:
        return True
    if promised.name in _CONTAINERS or actual.name in _CONTAINERS:
        return False
    return actual.name in _IN_DOUBT.get(promised.name, {promised.name})


def _is_same_type(promised: DataType, actual: DataType) -> bool:
    """Return True if the source's type matches the promised one.

    Files do not store the length of a string, and catalogs do not store the case of a name.
    """
    if promised.name in ("char", "varchar") and actual.name == "string":
        return True
    names = _lower(promised.names) == _lower(actual.names)
    same_shape = (promised.name, promised.numbers, len(promised.parts)) == (
        actual.name,
        actual.numbers,
        len(actual.parts),
    )
    return names and same_shape and all(map(_is_same_type, promised.parts, actual.parts))
