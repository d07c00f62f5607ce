"""Iceberg: the newest metadata in the folder of a table, without its catalog."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from dq.contracts.outcome import Unreadable, UsageError
from dq.contracts.types import DataType, NotAType, parse
from dq.lake.iceberg import METADATA_FOLDER, current_metadata, metadata_at
from dq.lake.storage import files_for, files_within
from dq.lake.types import ICEBERG_NANOSECONDS, from_iceberg
from dq.registry.importing import STRING, FoundColumn, FoundTable, ImportKind, SchemaReader, foreign
from dq.registry.importing.sources import Mapped, listed, mapped, shown, text
from dq.registry.table import EXACT_TYPES

# Iceberg's columns as an import has them, and what has to be said of them.


def field_id(value: object) -> int | None:
    """Return the id of a field as the metadata has it, or None for what is no id."""
    return value if isinstance(value, int) else None


class IcebergReader(SchemaReader):
    """Reads the columns of a table's metadata."""

    def columns(self, schema: Mapped) -> Iterator[tuple[int, FoundColumn]]:
        """The fields of the schema by their ids; one without an id of its own is counted backwards."""
        seen: set[int] = set()
        for at, one in enumerate(map(mapped, listed(schema.get("fields"))), 1):
            name, self.said = str(one.get("name")), {}
            kind, note = self.type(one.get("type"), name, "")
            if one.get("initial-default") is not None:
                self.lost.append(f"{name}: rows without it have {shown(one['initial-default'])}")
            number = field_id(one.get("id"))
            number = -at if number is None or number in seen else number
            seen.add(number)
            required = one.get("required") is True
            yield number, FoundColumn(name, kind, text(one.get("doc")), required, note, self.said)

    def type(self, written: object, name: str, path: str) -> tuple[DataType, str]:
        """The type of a part of the column with this name, and what has to be said of it."""
        self.step()
        if isinstance(written, str):
            return self._plain(written, name, path)
        inner = mapped(written)
        if inner.get("type") == "struct":
            fields = [mapped(one) for one in listed(inner.get("fields"))]
            names = [str(one.get("name")) for one in fields]
            signs = [
                (f".{below}", one.get("type"), one.get("required"), text(one.get("doc")))
                for below, one in zip(names, fields, strict=True)
            ]
            return self._nested("struct", name, path, signs, names)
        if inner.get("type") == "list":
            element = ("[]", inner.get("element"), inner.get("element-required"), "")
            return self._nested("array", name, path, [element])
        if inner.get("type") == "map":
            value = (".*", inner.get("value"), inner.get("value-required"), "")
            return self._nested("map", name, path, [(".^", inner.get("key"), False, ""), value])
        return STRING, "declared as nothing"

    def _nested(
        self,
        word: str,
        name: str,
        path: str,
        parts: Sequence[tuple[str, object, object, str]],
        names: Sequence[str] = (),
    ) -> tuple[DataType, str]:
        """A type of parts: for each its place, its type, whether it is required, and its comment."""
        kinds, notes = [], []
        for sign, written, required, comment in parts:
            self.describe(f"{path}{sign}", comment, required=required is True)
            kind, note = self.type(written, name, f"{path}{sign}")
            kinds.append(kind)
            notes.append(note)
        return DataType(word, (), tuple(kinds), tuple(names)), "; ".join(filter(None, notes))

    def _plain(self, written: str, name: str, path: str) -> tuple[DataType, str]:
        known = from_iceberg(written)
        # A column of the type unknown is NULL in every row, and Spark reads it so.
        if (known is None and written != "unknown") or written in ICEBERG_NANOSECONDS:
            self.lost.append(f"{name}: Spark opens no table with a column of the type {shown(written)}")
        if known is not None:
            return known
        kind, note, said = foreign(shown(written))
        self.say(path, said)
        return kind, note


def read(source: str) -> list[FoundTable]:
    """One table, as its newest metadata describes it; no data file is opened. `source` may be that file.

    Raises UsageError for a folder without metadata, Unreadable for metadata that does not say.
    """
    place, found, file = _metadata(source)
    schema = _schema(found, file)
    reader = IcebergReader(file)
    columns = dict(reader.columns(schema))
    columns |= dict(_exact(found, columns))
    keys, unsaid = _partitions(found, columns)
    properties = mapped(found.get("properties"))
    identifiers = [field_id(one) for one in listed(schema.get("identifier-field-ids"))]
    return [
        FoundTable(
            place.rpartition("/")[2],
            tuple(column for number, column in columns.items() if number not in keys),
            tuple(columns[number] for number in keys),
            place,
            "iceberg",
            text(properties.get("comment")),
            tuple(columns[number].name for number in identifiers if number is not None and number in columns),
            lost=(*unsaid, *reader.lost),
        )
    ]


def _metadata(source: str) -> tuple[str, Mapped, str]:
    """The table's place, its metadata that holds now, and the file of that."""
    place = source.rstrip("/")
    if place.endswith((".metadata.json", ".metadata.json.gz")):
        named = metadata_at(files_for(place), place)
        place = place.rpartition("/")[0].removesuffix(METADATA_FOLDER).rstrip("/") or "."
        return place, dict(named.content), named.path
    current = current_metadata(files_within(place, METADATA_FOLDER), place, guess=True)
    if current is None:
        raise UsageError(
            f"{place} is no Iceberg table: its {METADATA_FOLDER} folder has no *.metadata.json.",
            "Name the folder of one.",
        )
    return place, dict(current.content), current.path


def _schema(found: Mapped, file: str) -> Mapped:
    """The schema of now; version 1 of the format may have but one."""
    if "view-uuid" in found:
        raise UsageError(f"{file} is of a view.", "Name the folder of a table.")
    current = found.get("current-schema-id")
    schemas = [mapped(one) for one in listed(found.get("schemas"))]
    made = next((one for one in schemas if one.get("schema-id") == current), mapped(found.get("schema")))
    if not listed(made.get("fields")):
        raise Unreadable(f"{file} names no columns.", "Restore the file, or name the table in its catalog.")
    return made


def _partitions(found: Mapped, columns: Mapping[int, FoundColumn]) -> tuple[list[int], list[str]]:
    """The columns whose values are partitions, and how the table is parted otherwise."""
    current = found.get("default-spec-id")
    specs = [mapped(one) for one in listed(found.get("partition-specs"))]
    fields = next((one.get("fields") for one in specs if one.get("spec-id") == current), None)
    keys: list[int] = []
    unsaid = []
    for one in map(mapped, listed(fields if fields is not None else found.get("partition-spec"))):
        number, transform = field_id(one.get("source-id")), text(one.get("transform"))
        known = columns.get(number) if number is not None else None
        if transform == "identity" and number is not None and known is not None and number not in keys:
            keys.append(number)
        elif transform not in ("void", "identity"):
            unsaid.append(f"partitioned by {transform} of {known.name if known else text(one.get('name'))}")
    return keys, unsaid


def _exact(found: Mapped, columns: Mapping[int, FoundColumn]) -> Iterator[tuple[int, FoundColumn]]:
    """The columns for which the table keeps the contract's type, which is Iceberg's own word for it still."""
    try:
        told = mapped(json.loads(text(mapped(found.get("properties")).get(EXACT_TYPES)) or "{}"))
    except (ValueError, RecursionError):
        return
    for number, column in columns.items():
        try:
            kind = parse(text(told.get(column.name.lower())))
        except NotAType:
            continue
        if _kept(kind) == _kept(column.type):
            yield number, replace(column, type=kind)


# What Iceberg has no word of its own for -> the one that it keeps.
_KEPT = {"tinyint": "int", "smallint": "int", "char": "string", "varchar": "string"}


def _kept(kind: DataType) -> DataType:
    names = tuple(name.lower() for name in kind.names)
    numbers = () if kind.name in _KEPT else kind.numbers
    return DataType(_KEPT.get(kind.name, kind.name), numbers, tuple(map(_kept, kind.parts)), names)


KIND = ImportKind("iceberg", "the folder of an Iceberg table", read)
