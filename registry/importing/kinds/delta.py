"""Delta Lake: the newest metadata in the log of a table.

Source: the Delta transaction log protocol, "Change Metadata" and "Schema Serialization Format".
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

from dq.contracts.outcome import Unreadable, UsageError
from dq.contracts.types import DataType
from dq.lake.delta import LOG_FOLDER, has_log, table_metadata
from dq.lake.storage import files_within, reading
from dq.lake.types import Format, contract_type
from dq.registry.importing import STRING, FoundColumn, FoundTable, ImportKind, SchemaReader
from dq.registry.importing.sources import fields_of, mapped, shown, text

# Where Spark keeps that texts have a length; and what it fills in where a writer says nothing.
_LENGTH = re.compile(r"\b(var)?char\(\d+\)", re.ASCII)
_EXACT = "__CHAR_VARCHAR_TYPE_STRING"
_MADE = {"delta.generationExpression", "delta.identity.start", "CURRENT_DEFAULT"}

JsonObject = dict[str, object]


def read(source: str) -> list[FoundTable]:
    """One table, as its log describes it; no data file is opened.

    Raises UsageError for a folder without a log, Unreadable for a log that does not say.
    """
    place = source.rstrip("/")
    files, log = files_within(place, LOG_FOLDER), f"{place}/{LOG_FOLDER}"
    inside = files.inside(log)
    if not has_log(inside):
        raise UsageError(f"{source} is no Delta table: it has no {LOG_FOLDER}.", "Name the folder of one.")
    # A checkpoint may be larger than what is read whole.
    found = table_metadata(files, log, inside, reading)
    if found is None:
        raise Unreadable(f"{source}: its log names no columns.", "Write a checkpoint of it, and try again.")
    schema = _object(found.get("schemaString"))
    keys = found.get("partitionColumns")
    partitions = [str(key) for key in keys] if isinstance(keys, list | tuple) else []
    reader = _DeltaReader(source)
    columns = {one.name: one for one in reader.columns(schema)}
    name = str(found.get("name") or place.rpartition("/")[2])
    return [
        FoundTable(
            name,
            tuple(one for one in columns.values() if one.name not in partitions),
            tuple(columns[key] for key in partitions if key in columns),
            place,
            "delta",
            str(found.get("description") or ""),
            lost=tuple(reader.lost),
        )
    ]


def _object(text: object) -> JsonObject:
    try:
        made = json.loads(str(text))
    except (ValueError, RecursionError):
        return {}
    return made if isinstance(made, dict) else {}


class _DeltaReader(SchemaReader):
    def columns(self, schema: JsonObject) -> Iterable[FoundColumn]:
        """The fields of a struct."""
        for field in fields_of(schema):
            self.said = {}
            kind, note = self.type(field.get("type"), "")
            metadata = mapped(field.get("metadata"))
            exact = contract_type(Format.SPARK, text(metadata.get(_EXACT)))
            if exact is not None and _LENGTH.sub("string", str(exact)) == str(kind):
                kind = exact
            for key in _MADE & metadata.keys():
                self.lost.append(f"{field.get('name')}: {key} {shown(metadata[key])}")
            required = field.get("nullable") is False
            comment = text(metadata.get("comment"))
            yield FoundColumn(str(field.get("name")), kind, comment, required, note, self.said)

    def type(self, written: object, path: str) -> tuple[DataType, str]:
        """The type, and what has to be said of it."""
        self.step()
        if isinstance(written, str):
            made = contract_type(Format.SPARK, written)
            return (made, "") if made else (STRING, f"declared as {written}")
        if not isinstance(written, dict):
            return STRING, "declared as nothing"
        if written.get("type") == "struct":
            fields = fields_of(written)
            parts = [
                self._part(
                    one.get("type"), f"{path}.{one.get('name')}", one.get("nullable"), one.get("metadata")
                )
                for one in fields
            ]
            return DataType("struct", (), tuple(parts), tuple(str(one.get("name")) for one in fields)), ""
        if written.get("type") == "array":
            element = self._part(written.get("elementType"), f"{path}[]", written.get("containsNull"))
            return DataType("array", (), (element,)), ""
        if written.get("type") == "map":
            key = self._part(written.get("keyType"), f"{path}.^")
            value = self._part(written.get("valueType"), f"{path}.*", written.get("valueContainsNull"))
            return DataType("map", (), (key, value)), ""
        return STRING, f"declared as {written.get('type')}"

    def _part(self, written: object, path: str, nullable: object = None, metadata: object = None) -> DataType:
        self.describe(path, text(mapped(metadata).get("comment")), required=nullable is False)
        return self.type(written, path)[0]


KIND = ImportKind("delta", "the folder of a Delta table", read)
