"""The contract of tables that exist, as text: what is known, and at each guess on what it stands."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dq.contracts.access.data_location import SERVERS
from dq.contracts.types import DataType
from dq.contracts.yaml.writing import commented, quoted
from dq.registry.importing.found import FoundColumn, FoundTable

# A physical type -> the logical one that its values have.
_LOGICAL = {
    **dict.fromkeys(("string", "char", "varchar", "binary", "interval"), "string"),
    **dict.fromkeys(("tinyint", "smallint", "int", "bigint"), "integer"),
    **dict.fromkeys(("float", "double"), "number"),
    **dict.fromkeys(("timestamp", "timestamp_ntz"), "timestamp"),
    **dict.fromkeys(("struct", "variant"), "object"),
    "boolean": "boolean",
    "date": "date",
    "array": "array",
    "map": "map",
}


@dataclass(frozen=True, slots=True)
class Imported:
    """What a contract says beside its tables. `domain` and `owner` may be ""."""

    id: str
    domain: str = ""
    owner: str = ""
    source: str = ""


def contract_text(head: Imported, tables: Sequence[FoundTable]) -> str:
    """A contract of ODCS 3.2 in draft. All tables lie where the first one does that says so."""
    lines = [
        f"# Made by 'dq import' from {commented(head.source)}." if head.source else "",
        "apiVersion: v3.2.0",
        "kind: DataContract",
        f"id: {quoted(head.id)}",
        "version: 0.1.0",
        "status: draft",
        f"domain: {quoted(head.domain)}" if head.domain else "",
    ]
    made = [line for line in lines if line]
    place = next((table for table in tables if table.location), None)
    if place is not None:
        made += ["", *_server(place, several=len(tables) > 1)]
    if head.owner:
        member = [f"    - username: {quoted(head.owner)}", "      role: owner"]
        made += ["", "team:", f"  name: {quoted(head.domain or head.id)}", "  members:", *member]
    made += ["", "schema:"]
    for table in tables:
        made += _object(table)
    return "\n".join(made) + "\n"


def _server(table: FoundTable, several: bool) -> Iterator[str]:
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
    if table.reader:
        yield "    customProperties:"
        yield "      - property: csv"
        yield "        vendor: dq"
        yield "        value:"
        yield from (f"          {name}: {quoted(value)}" for name, value in table.reader)


def _object(table: FoundTable) -> Iterator[str]:
    yield f"  - name: {quoted(table.name)}"
    yield "    physicalType: table"
    if table.description:
        yield f"    description: {quoted(table.description)}"
    for one in table.lost:
        yield f"    # The source says more: {commented(one)}."
    yield "    properties:"
    keys = {name.lower(): at for at, name in enumerate(table.keys, 1)}
    for column in table.columns:
        yield from _column(column, keys.get(column.name.lower()))
    for at, column in enumerate(table.partitions, 1):
        yield from _column(column, keys.get(column.name.lower()))
        yield "        partitioned: true"
        yield f"        partitionKeyPosition: {at}"


def _column(column: FoundColumn, key: int | None) -> Iterator[str]:
    yield f"      - name: {quoted(column.name)}"
    if column.evidence:
        yield f"        # {commented(column.evidence[:1].upper() + column.evidence[1:])}."
    yield from _type(column.type, "        ")
    if column.comment:
        yield f"        description: {quoted(column.comment)}"
    if column.required:
        yield "        required: true"
    if key is not None:
        yield "        primaryKey: true"
        yield f"        primaryKeyPosition: {key}"


def _type(kind: DataType, indent: str) -> Iterator[str]:
    yield f"{indent}logicalType: {_logical(kind)}"
    if kind.name == "struct":
        yield f"{indent}properties:"
        for name, part in zip(kind.names, kind.parts, strict=True):
            yield f"{indent}  - name: {quoted(name)}"
            yield from _type(part, f"{indent}    ")
    elif kind.name == "array":
        yield f"{indent}items:"
        yield from _type(kind.parts[0], f"{indent}  ")
    elif kind.name == "map":
        yield f"{indent}map:"
        for word, part in zip(("key", "value"), kind.parts, strict=True):
            yield f"{indent}  {word}:"
            yield from _type(part, f"{indent}    ")
    else:
        yield f"{indent}physicalType: {quoted(str(kind))}"


def _logical(kind: DataType) -> str:
    if kind.name == "decimal":
        return "number" if kind.numbers[1:] != (0,) else "integer"
    return _LOGICAL[kind.name]


def identifier(text: str) -> str:
    """A name as an id: small letters, digits and underscores."""
    word = re.sub(r"[^a-z0-9]+", "_", text.lower()).strip("_") or "table"
    return f"_{word}" if word[0].isdigit() else word
