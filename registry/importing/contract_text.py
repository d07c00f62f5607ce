"""The contract of an imported table: written as text, or compared with the source as it is now."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from dq.contracts.access.data_location import SERVERS
from dq.contracts.model import Contract, SchemaObject
from dq.contracts.types import DataType, catalog_type, logical_type
from dq.contracts.yaml.insertion import block, commented, quoted
from dq.registry.importing import DOUBT, GUESS, FoundColumn, FoundTable, Said
from dq.registry.importing.sources import listed

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


# Whether values whose type is only guessed, or in doubt, can be of the type that a contract promises.

_INTEGERS = frozenset({"tinyint", "smallint", "int", "bigint"})
_NUMBERS = _INTEGERS | {"decimal", "float", "double"}
_TIMES = frozenset({"date", "timestamp", "timestamp_ntz"})
_NESTED = frozenset({"struct", "array", "map"})
# Formats of texts write dates as numbers, too: 20260501.
_FROM: dict[str, frozenset[str]] = {
    **dict.fromkeys(_NUMBERS, _NUMBERS),
    **dict.fromkeys(_TIMES, _TIMES | _INTEGERS | {"string", "decimal"}),
    # MySQL writes BOOLEAN as TINYINT(1).
    "boolean": frozenset({"boolean", "tinyint"}),
}


def is_plausible(promised: DataType, column: FoundColumn, *, texts: bool) -> bool:
    """Whether the column can be what is promised.

    `texts`: its values are texts whatever they mean, as in CSV and in names of folders, so that a guess of
    text excludes no plain type.
    """
    return _Comparison(column.unseen, column.evidence.startswith(GUESS), texts).fits(
        promised, column.type, ""
    )


@dataclass(frozen=True, slots=True)
class _Comparison:
    unseen: frozenset[str]
    measured: bool
    texts: bool

    def fits(self, promised: DataType, guessed: DataType, path: str) -> bool:
        if path.lstrip(".") in self.unseen or promised.name in ("string", "char", "varchar", "variant"):
            # Readers take whatever stands there as text.
            return True
        if promised.name in _NESTED:
            return self._nested(promised, guessed, path)
        if guessed.name in _NESTED:
            return False
        if guessed.name == "string" and (self.texts or not self.measured):
            return True
        if promised.name in _INTEGERS and self.measured and not _is_whole(guessed):
            return False
        return guessed.name in _FROM.get(promised.name, {guessed.name})

    def _nested(self, promised: DataType, guessed: DataType, path: str) -> bool:
        if guessed.name == "string" and (self.texts or not self.measured):
            return True
        if promised.name == "map" and guessed.name == "struct":
            # Objects of JSON are maps as well; their keys are texts.
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


def differences(contract: Contract, tables: Sequence[FoundTable]) -> list[str]:
    """What the source has that the contract does not say, and the other way about, a line each.

    Names are compared without case; of one object and one table they do not matter. A guessed type, or one
    in doubt, is a difference only where its values cannot be what the contract says.
    """
    if len(contract.objects) == len(tables) == 1:
        return list(_of_object(contract.objects[0], tables[0]))
    found = {table.column.lower(): table for table in tables}
    known = {one.column.lower(): one for one in contract.objects}
    lines = [f"+ object {table.name}" for name, table in found.items() if name not in known]
    lines += [f"- object {one.column}" for name, one in known.items() if name not in found]
    for name, one in known.items():
        if name in found:
            lines += _of_object(one, found[name])
    return lines


def _of_object(one: SchemaObject, table: FoundTable) -> Iterator[str]:
    keys = [column.name.lower() for column in table.partitions]
    columns = {column.name.lower(): column for column in (*table.columns, *table.partitions)}
    promised = {prop.column.lower(): prop for prop in one.properties}
    for name, column in columns.items():
        if name not in promised:
            yield f"+ {one.column}.{column.name}: {column.type}{_why(column)}"
    for name, prop in promised.items():
        there, said = columns.get(name), catalog_type(prop)
        if there is None:
            yield f"- {one.column}.{prop.column}: {said}"
        elif not _same(said, there.type):
            # Values of CSV and names of folders are texts; a source without rows says nothing of its values.
            texts = table.format != "json" or name in keys
            if there.evidence.startswith((GUESS, DOUBT)) and is_plausible(said, there, texts=texts):
                continue
            yield f"~ {one.column}.{prop.column}: {said} → {there.type}{_why(there)}"
    order = [prop.column.lower() for prop in one.partition_keys()]
    if order != keys:
        yield f"~ {one.column} partition keys: {', '.join(order) or 'none'} → {', '.join(keys) or 'none'}"


def _same(said: DataType, there: DataType) -> bool:
    """Whether a source that has a type can be one that is promised: files have no word for the length of a
    text, and catalogs none for the case of a name."""
    if said.name in _TEXTS and there.name == "string":
        return True
    names = [name.lower() for name in said.names] == [name.lower() for name in there.names]
    alike = (said.name, said.numbers, len(said.parts)) == (there.name, there.numbers, len(there.parts))
    return names and alike and all(map(_same, said.parts, there.parts))


_TEXTS = ("char", "varchar")


def _why(column: FoundColumn) -> str:
    return f" ({column.evidence})" if column.evidence else ""
