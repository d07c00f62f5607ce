"""Delta Lake: the newest metadata in the log of a table.

Source: the Delta transaction log protocol, "Change Metadata" and "Schema Serialization Format".
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

from dq.contracts.outcome import ReadError, UsageError
from dq.contracts.types import DataType
from dq.lake.delta import LOG_FOLDER, has_log, table_metadata
from dq.lake.storage import files_within, open_bytes
from dq.lake.types import Format, contract_type
from dq.registry.importing import STRING, ImportedColumn, ImportedTable, ImportKind, SchemaReader
from dq.registry.importing.sources import as_mapping, as_text, excerpt, schema_fields

# Metadata keys: the length of strings, and values that Spark generates for missing columns.
_LENGTH = re.compile(r"\b(var)?char\(\d+\)", re.ASCII)
_EXACT = "__CHAR_VARCHAR_TYPE_STRING"
_GENERATED_KEYS = {"delta.generationExpression", "delta.identity.start", "CURRENT_DEFAULT"}

JsonObject = dict[str, object]


def read(source: str) -> list[ImportedTable]:
    """Read one table from its log; no data file is opened.

    Raises UsageError for a folder without a log, ReadError for a log without columns.
    """
    place = source.rstrip("/")
    files, log = files_within(place, LOG_FOLDER), f"{place}/{LOG_FOLDER}"
    inside = files.inside(log)
    if not has_log(inside):
        raise UsageError(
            f"{source} is not a Delta table: it has no {LOG_FOLDER}.", "Pass the folder of a Delta table."
        )
    # Checkpoints may exceed the size limit for reading a file in one piece, so they are streamed.
    metadata = table_metadata(files, log, inside, open_bytes)
    if metadata is None:
        raise ReadError(f"{source}: its log has no columns.", "Write a checkpoint of it, and try again.")
    schema = _json_object(metadata.get("schemaString"))
    keys = metadata.get("partitionColumns")
    partitions = [str(key) for key in keys] if isinstance(keys, list | tuple) else []
    reader = _DeltaReader(source)
    columns = {column.name: column for column in reader.columns(schema)}
    name = str(metadata.get("name") or place.rpartition("/")[2])
    return [
        ImportedTable(
            name,
            tuple(column for column in columns.values() if column.name not in partitions),
            tuple(columns[key] for key in partitions if key in columns),
            place,
            "delta",
            str(metadata.get("description") or ""),
            unsupported=tuple(reader.unsupported),
        )
    ]


def _json_object(text: object) -> JsonObject:
    try:
        value = json.loads(str(text))
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


class _DeltaReader(SchemaReader):
    def columns(self, schema: JsonObject) -> Iterable[ImportedColumn]:
        """The fields of a struct."""
        for field in schema_fields(schema):
            self.odcs_keys = {}
            kind, note = self.type(field.get("type"), "")
            metadata = as_mapping(field.get("metadata"))
            exact = contract_type(Format.SPARK, as_text(metadata.get(_EXACT)))
            if exact is not None and _LENGTH.sub("string", str(exact)) == str(kind):
                kind = exact
            for key in _GENERATED_KEYS & metadata.keys():
                self.unsupported.append(f"{field.get('name')}: {key} {excerpt(metadata[key])}")
            required = field.get("nullable") is False
            comment = as_text(metadata.get("comment"))
            yield ImportedColumn(str(field.get("name")), kind, comment, required, note, self.odcs_keys)

    def type(self, type_json: object, path: str) -> tuple[DataType, str]:
        """Return the type and its evidence ("" for none)."""
        self.count_field()
        if isinstance(type_json, str):
            primitive = contract_type(Format.SPARK, type_json)
            return (primitive, "") if primitive else (STRING, f"declared as {type_json}")
        if not isinstance(type_json, dict):
            return STRING, "declared without a type"
        if type_json.get("type") == "struct":
            fields = schema_fields(type_json)
            parts = [
                self._part(
                    struct_field.get("type"),
                    f"{path}.{struct_field.get('name')}",
                    struct_field.get("nullable"),
                    struct_field.get("metadata"),
                )
                for struct_field in fields
            ]
            return DataType(
                "struct", (), tuple(parts), tuple(str(struct_field.get("name")) for struct_field in fields)
            ), ""
        if type_json.get("type") == "array":
            element = self._part(type_json.get("elementType"), f"{path}[]", type_json.get("containsNull"))
            return DataType("array", (), (element,)), ""
        if type_json.get("type") == "map":
            key = self._part(type_json.get("keyType"), f"{path}.^")
            value = self._part(type_json.get("valueType"), f"{path}.*", type_json.get("valueContainsNull"))
            return DataType("map", (), (key, value)), ""
        return STRING, f"declared as {type_json.get('type')}"

    def _part(
        self, type_json: object, path: str, nullable: object = None, metadata: object = None
    ) -> DataType:
        self.describe(path, as_text(as_mapping(metadata).get("comment")), required=nullable is False)
        return self.type(type_json, path)[0]


KIND = ImportKind("delta", "the folder of a Delta table", read, (f"{LOG_FOLDER}/",))
