"""Iceberg: the newest metadata in the folder of a table, without its catalog."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from dq.contracts.outcome import ReadError, UsageError
from dq.contracts.types import DataType, NotAType, parse
from dq.lake.iceberg import METADATA_FOLDER, current_metadata, metadata_at
from dq.lake.storage import files_for, files_within
from dq.lake.types import ICEBERG_NANOSECONDS, from_iceberg
from dq.registry.importing import (
    STRING,
    ImportedColumn,
    ImportedTable,
    ImportKind,
    SchemaReader,
    unsupported_type,
)
from dq.registry.importing.sources import JsonObject, as_list, as_mapping, as_text, excerpt
from dq.registry.table import EXACT_TYPES

# Columns of Iceberg metadata as imported columns.


def field_id(value: object) -> int | None:
    """Return the value if it is a field id, or None."""
    return value if isinstance(value, int) else None


class IcebergReader(SchemaReader):
    """Reads the columns of a table's metadata."""

    def columns(self, schema: JsonObject) -> Iterator[tuple[int, ImportedColumn]]:
        """Yield the columns with their field ids; a column without a unique id gets a negative one."""
        used_ids: set[int] = set()
        for position, schema_field in enumerate(map(as_mapping, as_list(schema.get("fields"))), 1):
            name, self.odcs_keys = str(schema_field.get("name")), {}
            kind, note = self.type(schema_field.get("type"), name, "")
            if schema_field.get("initial-default") is not None:
                self.unsupported.append(
                    f"{name}: rows without it have {excerpt(schema_field['initial-default'])}"
                )
            number = field_id(schema_field.get("id"))
            number = -position if number is None or number in used_ids else number
            used_ids.add(number)
            required = schema_field.get("required") is True
            yield (
                number,
                ImportedColumn(name, kind, as_text(schema_field.get("doc")), required, note, self.odcs_keys),
            )

    def type(self, type_json: object, name: str, path: str) -> tuple[DataType, str]:
        """Return the type of the part at `path` of the column `name`, and its evidence."""
        self.count_field()
        if isinstance(type_json, str):
            return self._plain(type_json, name, path)
        inner = as_mapping(type_json)
        if inner.get("type") == "struct":
            fields = [as_mapping(struct_field) for struct_field in as_list(inner.get("fields"))]
            names = [str(struct_field.get("name")) for struct_field in fields]
            signs = [
                (
                    f".{below}",
                    struct_field.get("type"),
                    struct_field.get("required"),
                    as_text(struct_field.get("doc")),
                )
                for below, struct_field in zip(names, fields, strict=True)
            ]
            return self._nested("struct", name, path, signs, names)
        if inner.get("type") == "list":
            element = ("[]", inner.get("element"), inner.get("element-required"), "")
            return self._nested("array", name, path, [element])
        if inner.get("type") == "map":
            value = (".*", inner.get("value"), inner.get("value-required"), "")
            return self._nested("map", name, path, [(".^", inner.get("key"), False, ""), value])
        return STRING, "declared without a type"

    def _nested(
        self,
        word: str,
        name: str,
        path: str,
        parts: Sequence[tuple[str, object, object, str]],
        names: Sequence[str] = (),
    ) -> tuple[DataType, str]:
        """Return a nested type. Each part is (path suffix, type, required, comment)."""
        kinds, notes = [], []
        for sign, type_json, required, comment in parts:
            self.describe(f"{path}{sign}", comment, required=required is True)
            kind, note = self.type(type_json, name, f"{path}{sign}")
            kinds.append(kind)
            notes.append(note)
        return DataType(word, (), tuple(kinds), tuple(names)), "; ".join(filter(None, notes))

    def _plain(self, type_name: str, name: str, path: str) -> tuple[DataType, str]:
        spark_type = from_iceberg(type_name)
        # A column of the type unknown is NULL in every row, and Spark reads it so.
        if (spark_type is None and type_name != "unknown") or type_name in ICEBERG_NANOSECONDS:
            self.unsupported.append(
                f"{name}: type {excerpt(type_name)}; Spark cannot open a table with such a column"
            )
        if spark_type is not None:
            return spark_type
        kind, note, odcs_keys = unsupported_type(excerpt(type_name))
        self.add_keys(path, odcs_keys)
        return kind, note


_METADATA_ENDINGS = (".metadata.json", ".metadata.json.gz")


def read(source: str) -> list[ImportedTable]:
    """Read one table from its newest metadata; no data file is opened. `source` may be the metadata file.

    Raises UsageError for a folder without metadata, ReadError for metadata without columns.
    """
    place, metadata, file = _load_metadata(source)
    schema = _current_schema(metadata, file)
    reader = IcebergReader(file)
    columns = dict(reader.columns(schema))
    columns |= dict(_exact_types(metadata, columns))
    keys, unsupported = _partitions(metadata, columns)
    properties = as_mapping(metadata.get("properties"))
    identifiers = [field_id(value) for value in as_list(schema.get("identifier-field-ids"))]
    return [
        ImportedTable(
            place.rpartition("/")[2],
            tuple(column for number, column in columns.items() if number not in keys),
            tuple(columns[number] for number in keys),
            place,
            "iceberg",
            as_text(properties.get("comment")),
            tuple(columns[number].name for number in identifiers if number is not None and number in columns),
            unsupported=(*unsupported, *reader.unsupported),
        )
    ]


def _load_metadata(source: str) -> tuple[str, JsonObject, str]:
    """Return the table's location, its current metadata, and the path of the metadata file."""
    place = source.rstrip("/")
    if place.endswith(_METADATA_ENDINGS):
        named = metadata_at(files_for(place), place)
        place = place.rpartition("/")[0].removesuffix(METADATA_FOLDER).rstrip("/") or "."
        return place, dict(named.content), named.path
    current = current_metadata(files_within(place, METADATA_FOLDER), place, guess=True)
    if current is None:
        raise UsageError(
            f"{place} is not an Iceberg table: its {METADATA_FOLDER} folder has no *.metadata.json.",
            "Pass the folder of an Iceberg table.",
        )
    return place, dict(current.content), current.path


def _current_schema(metadata: JsonObject, file: str) -> JsonObject:
    """Return the current schema; format version 1 may have a single one."""
    if "view-uuid" in metadata:
        raise UsageError(f"{file} describes a view.", "Pass the folder of a table.")
    current = metadata.get("current-schema-id")
    schemas = [as_mapping(candidate) for candidate in as_list(metadata.get("schemas"))]
    schema = next(
        (candidate for candidate in schemas if candidate.get("schema-id") == current),
        as_mapping(metadata.get("schema")),
    )
    if not as_list(schema.get("fields")):
        raise ReadError(f"{file} has no columns.", "Restore the file, or name the table in its catalog.")
    return schema


def _partitions(metadata: JsonObject, columns: Mapping[int, ImportedColumn]) -> tuple[list[int], list[str]]:
    """Return the ids of identity partition columns, and a note for each other partition transform."""
    current = metadata.get("default-spec-id")
    specs = [as_mapping(spec) for spec in as_list(metadata.get("partition-specs"))]
    fields = next((spec.get("fields") for spec in specs if spec.get("spec-id") == current), None)
    keys: list[int] = []
    unsupported = []
    for partition_field in map(
        as_mapping, as_list(fields if fields is not None else metadata.get("partition-spec"))
    ):
        number, transform = (
            field_id(partition_field.get("source-id")),
            as_text(partition_field.get("transform")),
        )
        column = columns.get(number) if number is not None else None
        if transform == "identity" and number is not None and column is not None and number not in keys:
            keys.append(number)
        elif transform not in ("void", "identity"):
            unsupported.append(
                f"partitioned by {transform} of "
                f"{column.name if column else as_text(partition_field.get('name'))}"
            )
    return keys, unsupported


def _exact_types(
    metadata: JsonObject, columns: Mapping[int, ImportedColumn]
) -> Iterator[tuple[int, ImportedColumn]]:
    """Yield the columns whose contract type is stored in the table properties and still matches."""
    try:
        exact_types = as_mapping(
            json.loads(as_text(as_mapping(metadata.get("properties")).get(EXACT_TYPES)) or "{}")
        )
    except (ValueError, RecursionError):
        return
    for number, column in columns.items():
        try:
            kind = parse(as_text(exact_types.get(column.name.lower())))
        except NotAType:
            continue
        if _stored_type(kind) == _stored_type(column.type):
            yield number, replace(column, type=kind)


# Type that Iceberg does not have -> the type that it stores instead.
_STORED_TYPES = {"tinyint": "int", "smallint": "int", "char": "string", "varchar": "string"}


def _stored_type(kind: DataType) -> DataType:
    names = tuple(name.lower() for name in kind.names)
    numbers = () if kind.name in _STORED_TYPES else kind.numbers
    return DataType(
        _STORED_TYPES.get(kind.name, kind.name), numbers, tuple(map(_stored_type, kind.parts)), names
    )


KIND = ImportKind("iceberg", "the folder of an Iceberg table", read, _METADATA_ENDINGS)
