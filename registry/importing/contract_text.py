"""The contract of an imported table as text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from dq.contracts.access.data_location import SERVERS
from dq.contracts.types import DataType, logical_type
from dq.contracts.yaml.portable import block, commented, quoted
from dq.registry.importing import ImportedColumn, ImportedTable, OdcsKeys
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
