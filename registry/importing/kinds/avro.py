"""Avro: the schema of a file (.avsc), or the one that a data file carries."""

from __future__ import annotations

from dq.contracts.install import needing
from dq.contracts.outcome import Unreadable, UsageError
from dq.contracts.types import DataType
from dq.lake.storage import reading
from dq.lake.types import Format, contract_type
from dq.registry.importing import STRING, FoundColumn, FoundTable, ImportKind, SchemaReader
from dq.registry.importing.sources import LakeFolder, fields_of, folder, parsed, text

_MOST_BYTES = 16 << 20
_MOST_DEPTH = 32


def read(source: str) -> list[FoundTable]:
    """One table: the fields of the record. Of a folder of data files the last one's schema counts.

    Raises UsageError for a schema that is no record.
    """
    if source.endswith(".avsc"):
        lake = LakeFolder(source, ())
        schema = parsed(source, "Name a schema of Avro.", _MOST_BYTES)
    else:
        lake = folder(source, (".avro",))
        schema = _carried(lake.files[-1].path)
    if not isinstance(schema, dict) or schema.get("type") != "record" or not fields_of(schema):
        raise UsageError(f"{source} is no record of Avro.", "Name the schema of one row.")
    reader = _AvroReader(source)
    columns = tuple(reader.column(field) for field in fields_of(schema))
    partitions = lake.partitions() if lake.files else ()
    place, form = (lake.place, "avro") if lake.files else ("", "")
    description = str(schema.get("doc") or "")
    return [FoundTable(str(schema.get("name") or lake.name), columns, partitions, place, form, description)]


def _carried(path: str) -> object:
    with needing("Avro needs fastavro", "lakehouse"):
        import fastavro
    with reading(path) as file:
        try:
            return fastavro.reader(file).writer_schema
        except (ValueError, KeyError, EOFError, StopIteration) as error:
            raise Unreadable(f"{path} is not an Avro file.", "Name a file of Avro.") from error


class _AvroReader(SchemaReader):
    def __init__(self, source: str) -> None:
        super().__init__(source)
        self.known: dict[str, object] = {}

    def column(self, field: dict[str, object]) -> FoundColumn:
        """A field of the record."""
        self.said = {}
        kind, nullable, note = self.type(field.get("type"), 0, "")
        return FoundColumn(
            str(field.get("name")), kind, text(field.get("doc")), not nullable, note, self.said
        )

    def _part(self, schema: object, depth: int, path: str, comment: str = "") -> DataType:
        """The type of a part; what is said of it is kept by its path in the column."""
        kind, nullable, _ = self.type(schema, depth + 1, path)
        self.describe(path, comment, required=not nullable)
        return kind

    def type(self, schema: object, depth: int, path: str) -> tuple[DataType, bool, str]:
        """The type, whether it may be NULL, and what has to be said of it."""
        self.step()
        if depth > _MOST_DEPTH:
            return STRING, True, "nested too deep"
        if isinstance(schema, list):
            others = [one for one in schema if one != "null"]
            if len(others) == 1:
                kind, _, note = self.type(others[0], depth + 1, path)
                return kind, "null" in schema, note
            return STRING, "null" in schema, f"declared as {' or '.join(_name(one) for one in others)}"
        if isinstance(schema, dict):
            if "name" in schema:
                self.known[str(schema["name"])] = schema
            return self._made(schema, depth, path)
        word = str(schema)
        if word in self.known:
            return self.type(self.known[word], depth + 1, path)
        made = contract_type(Format.AVRO, word)
        return made or STRING, False, "" if made else f"declared as {word}"

    def _made(self, schema: dict[str, object], depth: int, path: str) -> tuple[DataType, bool, str]:
        kind, logical = schema.get("type"), str(schema.get("logicalType", ""))
        decimal = f"decimal({schema.get('precision')}, {schema.get('scale', 0)})"
        exact = contract_type(Format.AVRO, decimal if logical == "decimal" else f"{kind} {logical}")
        if exact is not None:
            return exact, False, ""
        note = f"declared as {logical}" if logical else ""
        fields = fields_of(schema)
        if kind == "record" and fields:
            parts = tuple(
                self._part(one.get("type"), depth, f"{path}.{one.get('name')}", text(one.get("doc")))
                for one in fields
            )
            return DataType("struct", (), parts, tuple(str(one.get("name")) for one in fields)), False, note
        if kind == "array":
            return DataType("array", (), (self._part(schema.get("items"), depth, f"{path}[]"),)), False, note
        if kind == "map":
            value = self._part(schema.get("values"), depth, f"{path}.*")
            return DataType("map", (), (STRING, value)), False, note
        made, nullable, inner = self.type(kind, depth + 1, path)
        return made, nullable, note or inner


def _name(schema: object) -> str:
    return str(schema.get("type")) if isinstance(schema, dict) else str(schema)


KIND = ImportKind("avro", "a schema (.avsc), a data file, or the folder of a table", read)
