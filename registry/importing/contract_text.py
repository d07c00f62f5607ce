"""The contract of an imported table: written as text, or compared with the source as it is now."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from dq.contracts.access.data_location import SERVERS
from dq.contracts.model import Contract, SchemaObject
from dq.contracts.types import DataType, catalog_type, logical_type
from dq.contracts.yaml.insertion import block, commented, quoted
from dq.registry.importing import DOUBT, GUESS, ImportedColumn, ImportedTable, OdcsKeys
from dq.registry.importing.sources import as_list

# Keys of an object that are written first.
_FIRST_KEYS = ("physicalName", "physicalType", "businessName", "description")


@dataclass(frozen=True, slots=True)
class ContractHead:
    """Head of the contract to write. `domain` and `owner` may be ""."""

    id: str
    domain: str = ""
    owner: str = ""
    source: str = ""


def contract_text(head: ContractHead, tables: Sequence[ImportedTable]) -> str:
    """Return the YAML of an ODCS 3.2 contract in draft.

    The server is that of the first table with a location. Metadata of the source fills in what the head
    leaves open.
    """
    metadata = tables[0].metadata
    top_keys = dict(metadata.odcs_keys)
    lines = [
        f"# Made by 'dq import' from {commented(head.source)}." if head.source else "",
        *(f"# Not in the contract: {commented(note)}." for note in metadata.unsupported),
        "apiVersion: v3.2.0",
        "kind: DataContract",
        f"id: {quoted(head.id)}",
        f"version: {_version(str(top_keys.pop('version', '0.1.0')))}",
        f"status: {top_keys.pop('status', 'draft')}",
        f"domain: {quoted(head.domain)}" if head.domain else "",
    ]
    top_keys.pop("id", None)
    text_lines = [line for line in lines if line]
    servers = top_keys.pop("servers", None)
    located_table = next((table for table in tables if table.location), None)
    trailing_keys: dict[str, object] = {"servers": servers} if servers else {}
    if located_table is not None and not servers:
        text_lines += ["", *_server_lines(located_table, several=len(tables) > 1)]
    team = top_keys.pop("team", None)
    if head.owner:
        member = [f"    - username: {quoted(head.owner)}", "      role: owner"]
        text_lines += ["", "team:", f"  name: {quoted(head.domain or head.id)}", "  members:", *member]
    elif team:
        trailing_keys["team"] = team
    levels = [
        *as_list(top_keys.pop("slaProperties", ())),
        *(level for table in tables for level in table.service_levels),
    ]
    for key in ("name", "description", "tags"):
        if key in top_keys:
            text_lines += block({key: top_keys.pop(key)}, "")
    for key, value in {**trailing_keys, **top_keys}.items():
        text_lines += ["", *block({key: value}, "")]
    text_lines += ["", "schema:"]
    for table in tables:
        text_lines += _object_lines(table)
    if levels:
        text_lines += ["", *block({"slaProperties": levels}, "")]
    return "\n".join(text_lines) + "\n"


def _version(text: str) -> str:
    return text if re.fullmatch(r"\d+\.\d+\.\d+", text, re.ASCII) else quoted(text)


def _server_lines(table: ImportedTable, several: bool) -> Iterator[str]:
    scheme = table.location.partition("://")[0] if "://" in table.location else ""
    kind, key = SERVERS.get(scheme, ("custom", "location"))
    place = table.location
    if several and place.rstrip("/").endswith(f"/{table.name}"):
        place = place.rstrip("/")[: -len(table.name)] + "{object}"
    yield "servers:"
    yield "  - server: production"
    yield f"    type: {kind}"
    yield f"    {key}: {quoted(place)}"
    if table.format:
        yield f"    format: {table.format}"
    if table.reader and table.format == "json":
        # JSON has only one option, the encoding, which is a key of the server itself.
        yield from block(dict(table.reader), "    ")
    terms = {
        "csv": {} if table.format == "json" else dict(table.reader),
        "layout": {"path": table.layout} if table.layout else {},
    }
    if any(terms.values()):
        yield "    customProperties:"
    for name, values in terms.items():
        if values:
            yield f"      - property: {name}"
            yield "        vendor: dq"
            yield "        value:"
            yield from block(values, "          ")


def _object_lines(table: ImportedTable) -> Iterator[str]:
    yield f"  - name: {quoted(table.name)}"
    odcs_keys = {"physicalType": "table", **table.odcs_keys}
    if table.description:
        odcs_keys.setdefault("description", table.description)
    yield from block({key: odcs_keys.pop(key) for key in _FIRST_KEYS if key in odcs_keys}, "    ")
    for note in table.unsupported:
        yield f"    # Not in the contract: {commented(note)}."
    if odcs_keys:
        yield from block(odcs_keys, "    ")
    yield "    properties:"
    keys = {name.lower(): key_position for key_position, name in enumerate(table.keys, 1)}
    for column in table.columns:
        yield from _column_lines(column, keys.get(column.name.lower()))
    for partition_position, column in enumerate(table.partitions, 1):
        yield from _column_lines(column, keys.get(column.name.lower()))
        yield "        partitioned: true"
        yield f"        partitionKeyPosition: {partition_position}"


def _column_lines(column: ImportedColumn, key: int | None) -> Iterator[str]:
    own = {
        "description": column.comment,
        "required": column.required,
        "primaryKey": key is not None,
        "primaryKeyPosition": key,
    }
    odcs_keys = {
        **column.odcs_keys,
        "": {**{name: value for name, value in own.items() if value}, **column.odcs_keys.get("", {})},
    }
    yield f"      - name: {quoted(column.name)}"
    if column.evidence:
        yield f"        # {commented(column.evidence[:1].upper() + column.evidence[1:])}."
    yield from _type_lines(column.type, "        ", odcs_keys, "")


def _type_lines(kind: DataType, indent: str, odcs_keys: Mapping[str, OdcsKeys], path: str) -> Iterator[str]:
    """Yield the YAML lines of a property, from its type on. `path` is its path in the column."""
    own_keys = dict(odcs_keys.get(path, {}))
    yield f"{indent}logicalType: {own_keys.pop('logicalType', logical_type(kind))}"
    inside = []
    if kind.name == "struct":
        inside = [f"{indent}properties:"]
        for name, part in zip(kind.names, kind.parts, strict=True):
            inside.append(f"{indent}  - name: {quoted(name)}")
            inside += _type_lines(part, f"{indent}    ", odcs_keys, f"{path}.{name}".lstrip("."))
    elif kind.name == "array":
        inside = [f"{indent}items:", *_type_lines(kind.parts[0], f"{indent}  ", odcs_keys, f"{path}[]")]
    elif kind.name == "map":
        inside = [f"{indent}map:"]
        for word, sign, part in zip(("key", "value"), ("^", "*"), kind.parts, strict=True):
            inside += [
                f"{indent}  {word}:",
                *_type_lines(part, f"{indent}    ", odcs_keys, f"{path}.{sign}".lstrip(".")),
            ]
    else:
        yield f"{indent}physicalType: {quoted(str(own_keys.pop('physicalType', kind)))}"
    if own_keys:
        yield from block(own_keys, indent)
    yield from inside


def identifier(text: str) -> str:
    """Return the name as an id: lower-case letters, digits and underscores."""
    word = re.sub(r"[^a-z0-9]+", "_", text.lower()).strip("_") or "table"
    return f"_{word}" if word[0].isdigit() else word


# Compatibility of inferred or uncertain types with the type that a contract promises.

_INTEGERS = frozenset({"tinyint", "smallint", "int", "bigint"})
_NUMBERS = _INTEGERS | {"decimal", "float", "double"}
_DATES_AND_INSTANTS = frozenset({"date", "timestamp", "timestamp_ntz"})
_NESTED = frozenset({"struct", "array", "map"})
# Text formats also write dates as numbers, e.g. 20260501.
_COMPATIBLE_TYPES: dict[str, frozenset[str]] = {
    **dict.fromkeys(_NUMBERS, _NUMBERS),
    **dict.fromkeys(_DATES_AND_INSTANTS, _DATES_AND_INSTANTS | _INTEGERS | {"string", "decimal"}),
    # MySQL writes BOOLEAN as TINYINT(1).
    "boolean": frozenset({"boolean", "tinyint"}),
}


def is_plausible(promised: DataType, column: ImportedColumn, *, text_values: bool) -> bool:
    """Return True if the column can have the promised type.

    `text_values`: all values are stored as text, as in CSV and in folder names, so that an inferred string
    does not rule out any scalar type.
    """
    return _Comparison(column.empty_paths, column.evidence.startswith(GUESS), text_values).fits(
        promised, column.type, ""
    )


@dataclass(frozen=True, slots=True)
class _Comparison:
    empty_paths: frozenset[str]
    is_guess: bool
    text_values: bool

    def fits(self, promised: DataType, guessed: DataType, path: str) -> bool:
        if path.lstrip(".") in self.empty_paths or promised.name in ("string", "char", "varchar", "variant"):
            # Readers accept any value as text.
            return True
        if promised.name in _NESTED:
            return self._nested(promised, guessed, path)
        if guessed.name in _NESTED:
            return False
        if guessed.name == "string" and (self.text_values or not self.is_guess):
            return True
        if promised.name in _INTEGERS and self.is_guess and not _is_whole(guessed):
            return False
        return guessed.name in _COMPATIBLE_TYPES.get(promised.name, {guessed.name})

    def _nested(self, promised: DataType, guessed: DataType, path: str) -> bool:
        if guessed.name == "string" and (self.text_values or not self.is_guess):
            return True
        if promised.name == "map" and guessed.name == "struct":
            # JSON objects are also maps with string keys.
            pairs = zip(guessed.names, guessed.parts, strict=True)
            return all(self.fits(promised.parts[1], part, f"{path}.{name}") for name, part in pairs)
        if promised.name != guessed.name:
            return False
        if promised.name != "struct":
            signs = ("[]",) if promised.name == "array" else (".^", ".*")
            parts = zip(promised.parts, guessed.parts, signs, strict=True)
            return all(self.fits(first, second, f"{path}{sign}") for first, second, sign in parts)
        fields = {name.lower(): part for name, part in zip(promised.names, promised.parts, strict=True)}
        values = {name.lower(): (name, part) for name, part in zip(guessed.names, guessed.parts, strict=True)}
        return fields.keys() == values.keys() and all(
            self.fits(part, values[key][1], f"{path}.{values[key][0]}") for key, part in fields.items()
        )


def _is_whole(kind: DataType) -> bool:
    return kind.name in _INTEGERS or (kind.name == "decimal" and kind.numbers[1:] == (0,))


def differences(contract: Contract, tables: Sequence[ImportedTable]) -> list[str]:
    """Return the differences between contract and source, one line each.

    Names are compared case-insensitively, and ignored if both sides have exactly one table. An inferred or
    uncertain type is a difference only if its values cannot be of the promised type.
    """
    if len(contract.objects) == len(tables) == 1:
        return list(object_differences(contract.objects[0], tables[0]))
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
            lines += object_differences(schema_object, tables_by_name[name])
    return lines


def object_differences(schema_object: SchemaObject, table: ImportedTable) -> Iterator[str]:
    """Yield the differences between an object and its table, as `differences` does."""
    keys = [column.name.lower() for column in table.partitions]
    columns = {column.name.lower(): column for column in (*table.columns, *table.partitions)}
    promised = {prop.column.lower(): prop for prop in schema_object.properties}
    for name, column in columns.items():
        if name not in promised:
            yield f"+ {schema_object.column}.{column.name}: {column.type}{_evidence_note(column)}"
    for name, prop in promised.items():
        source_column, promised_type = columns.get(name), catalog_type(prop)
        if source_column is None:
            yield f"- {schema_object.column}.{prop.column}: {promised_type}"
        elif not _is_same_type(promised_type, source_column.type):
            # Values of CSV and folder names are text; a source without rows gives no evidence of its values.
            text_values = table.format != "json" or name in keys
            if source_column.evidence.startswith((GUESS, DOUBT)) and is_plausible(
                promised_type, source_column, text_values=text_values
            ):
                continue
            yield (
                f"~ {schema_object.column}.{prop.column}: {promised_type} → "
                f"{source_column.type}{_evidence_note(source_column)}"
            )
    order = [prop.column.lower() for prop in schema_object.partition_keys()]
    if order != keys:
        yield (
            f"~ {schema_object.column} partition keys: {', '.join(order) or 'none'} → "
            f"{', '.join(keys) or 'none'}"
        )


def _is_same_type(promised: DataType, actual: DataType) -> bool:
    """Return True if the source's type matches the promised one.

    Files do not store the length of a string, and catalogs do not store the case of a name.
    """
    if promised.name in _TEXTS and actual.name == "string":
        return True
    names = [name.lower() for name in promised.names] == [name.lower() for name in actual.names]
    same_shape = (promised.name, promised.numbers, len(promised.parts)) == (
        actual.name,
        actual.numbers,
        len(actual.parts),
    )
    return names and same_shape and all(map(_is_same_type, promised.parts, actual.parts))


_TEXTS = ("char", "varchar")


def _evidence_note(column: ImportedColumn) -> str:
    return f" ({column.evidence})" if column.evidence else ""
