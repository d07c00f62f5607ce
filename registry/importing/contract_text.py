"""The contract of tables that exist, as text: what is known, and at each guess on what it stands."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from dq.contracts.access.data_location import SERVERS
from dq.contracts.types import DataType, logical_type
from dq.contracts.yaml.insertion import block, commented, quoted
from dq.registry.importing.documents import listed
from dq.registry.importing.model import FoundColumn, FoundTable, Said

# What of an object is written before what else the source says of it.
_FIRST = ("physicalName", "physicalType", "businessName", "description")


@dataclass(frozen=True, slots=True)
class Imported:
    """What a contract says beside its tables. `domain` and `owner` may be ""."""

    id: str
    domain: str = ""
    owner: str = ""
    source: str = ""


def contract_text(head: Imported, tables: Sequence[FoundTable]) -> str:
    """A contract of ODCS 3.2 in draft. All tables lie where the first one does that says so.

    What the source says beside its tables stands where the head does not say it.
    """
    whole = tables[0].whole
    said = dict(whole.said)
    lines = [
        f"# Made by 'dq import' from {commented(head.source)}." if head.source else "",
        *(f"# The source says more: {commented(one)}." for one in whole.lost),
        "apiVersion: v3.2.0",
        "kind: DataContract",
        f"id: {quoted(head.id)}",
        f"version: {_version(str(said.pop('version', '0.1.0')))}",
        f"status: {said.pop('status', 'draft')}",
        f"domain: {quoted(head.domain)}" if head.domain else "",
    ]
    said.pop("id", None)
    made = [line for line in lines if line]
    servers = said.pop("servers", None)
    place = next((table for table in tables if table.location), None)
    after: dict[str, object] = {"servers": servers} if servers else {}
    if place is not None and not servers:
        made += ["", *_server(place, several=len(tables) > 1)]
    team = said.pop("team", None)
    if head.owner:
        member = [f"    - username: {quoted(head.owner)}", "      role: owner"]
        made += ["", "team:", f"  name: {quoted(head.domain or head.id)}", "  members:", *member]
    elif team:
        after["team"] = team
    levels = [*listed(said.pop("slaProperties", ())), *(level for table in tables for level in table.levels)]
    for key in ("name", "description", "tags"):
        if key in said:
            made += block({key: said.pop(key)}, "")
    for key, value in {**after, **said}.items():
        made += ["", *block({key: value}, "")]
    made += ["", "schema:"]
    for table in tables:
        made += _object(table)
    if levels:
        made += ["", *block({"slaProperties": levels}, "")]
    return "\n".join(made) + "\n"


def _version(text: str) -> str:
    return text if re.fullmatch(r"\d+\.\d+\.\d+", text, re.ASCII) else quoted(text)


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
    if table.reader and table.format == "json":
        # Its encoding is all that can differ, and a key of the server's own.
        yield from block(dict(table.reader), "    ")
    elif table.reader:
        yield "    customProperties:"
        yield "      - property: csv"
        yield "        vendor: dq"
        yield "        value:"
        yield from block(dict(table.reader), "          ")


def _object(table: FoundTable) -> Iterator[str]:
    yield f"  - name: {quoted(table.name)}"
    said = {"physicalType": "table", **table.said}
    if table.description:
        said.setdefault("description", table.description)
    yield from block({key: said.pop(key) for key in _FIRST if key in said}, "    ")
    for one in table.lost:
        yield f"    # The source says more: {commented(one)}."
    if said:
        yield from block(said, "    ")
    yield "    properties:"
    keys = {name.lower(): at for at, name in enumerate(table.keys, 1)}
    for column in table.columns:
        yield from _column(column, keys.get(column.name.lower()))
    for at, column in enumerate(table.partitions, 1):
        yield from _column(column, keys.get(column.name.lower()))
        yield "        partitioned: true"
        yield f"        partitionKeyPosition: {at}"


def _column(column: FoundColumn, key: int | None) -> Iterator[str]:
    own = {
        "description": column.comment,
        "required": column.required,
        "primaryKey": key is not None,
        "primaryKeyPosition": key,
    }
    said = {**column.said, "": {**{name: one for name, one in own.items() if one}, **column.said.get("", {})}}
    yield f"      - name: {quoted(column.name)}"
    if column.evidence:
        yield f"        # {commented(column.evidence[:1].upper() + column.evidence[1:])}."
    yield from _type(column.type, "        ", said, "")


def _type(kind: DataType, indent: str, said: Mapping[str, Said], path: str) -> Iterator[str]:
    """The keys of a property from its type on. `path` is where it stands in its column."""
    here = dict(said.get(path, {}))
    yield f"{indent}logicalType: {here.pop('logicalType', logical_type(kind))}"
    inside = []
    if kind.name == "struct":
        inside = [f"{indent}properties:"]
        for name, part in zip(kind.names, kind.parts, strict=True):
            inside.append(f"{indent}  - name: {quoted(name)}")
            inside += _type(part, f"{indent}    ", said, f"{path}.{name}".lstrip("."))
    elif kind.name == "array":
        inside = [f"{indent}items:", *_type(kind.parts[0], f"{indent}  ", said, f"{path}[]")]
    elif kind.name == "map":
        inside = [f"{indent}map:"]
        for word, sign, part in zip(("key", "value"), ("^", "*"), kind.parts, strict=True):
            inside += [
                f"{indent}  {word}:",
                *_type(part, f"{indent}    ", said, f"{path}.{sign}".lstrip(".")),
            ]
    else:
        yield f"{indent}physicalType: {quoted(str(here.pop('physicalType', kind)))}"
    if here:
        yield from block(here, indent)
    yield from inside


def identifier(text: str) -> str:
    """A name as an id: small letters, digits and underscores."""
    word = re.sub(r"[^a-z0-9]+", "_", text.lower()).strip("_") or "table"
    return f"_{word}" if word[0].isdigit() else word
