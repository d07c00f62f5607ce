"""Avro: the schema of a file (.avsc), or the one that a data file carries."""

from __future__ import annotations

from dataclasses import replace

from dq.contracts.install import require_extras
from dq.contracts.layout import Layout
from dq.contracts.outcome import ReadError, UsageError
from dq.contracts.types import DataType
from dq.lake.storage import open_bytes
from dq.lake.types import Format, contract_type
from dq.registry.importing import STRING, ImportedColumn, ImportedTable, ImportKind, SchemaReader
from dq.registry.importing.sources import LakeFolder, as_text, list_folder, read_json, schema_fields

_SCHEMA_ENDING, _DATA_ENDING = ".avsc", ".avro"
_MAX_BYTES = 16 << 20
_MAX_DEPTH = 32


def read(source: str, layout: Layout | None = None) -> list[ImportedTable]:
    """Read one table, a column per field of the record. For a folder, the schema of the last file counts.

    Raises UsageError for a schema that is not a record.
    """
    if source.endswith(_SCHEMA_ENDING):
        schema = read_json(source, "Pass an Avro schema.", _MAX_BYTES)
        return [_table(LakeFolder(source, ()), schema)]
    return [read_files(list_folder(source, (_DATA_ENDING,), layout))]


def read_files(lake: LakeFolder) -> ImportedTable:
    """Read the table of listed files. Raises as `read`."""
    return _table(lake, _embedded_schema(lake.files[-1].path))


def _table(lake: LakeFolder, schema: object) -> ImportedTable:
    source = lake.location
    if not isinstance(schema, dict) or schema.get("type") != "record" or not schema_fields(schema):
        raise UsageError(f"{source} is not an Avro record.", "Pass the schema of one row.")
    reader = _AvroReader(source)
    columns = tuple(reader.column(field) for field in schema_fields(schema))
    table = lake.table(columns, "avro") if lake.files else ImportedTable(lake.name, columns)
    name, description = str(schema.get("name") or lake.name), str(schema.get("doc") or "")
    return replace(table, name=name, description=description)


def _embedded_schema(path: str) -> object:
    with require_extras("Avro needs fastavro", "lakehouse"):
        import fastavro
    with open_bytes(path) as file:
        try:
            return fastavro.reader(file).writer_schema
        except (ValueError, KeyError, EOFError, StopIteration) as error:
            raise ReadError(f"{path} is not an Avro file.", "Pass an Avro file.") from error


class _AvroReader(SchemaReader):
    def __init__(self, source: str) -> None:
        super().__init__(source)
        self.named_schemas: dict[str, object] = {}

    def column(self, field: dict[str, object]) -> ImportedColumn:
        """A field of the record."""
        self.odcs_keys = {}
        kind, nullable, note = self.type(field.get("type"), 0, "")
        return ImportedColumn(
            str(field.get("name")), kind, as_text(field.get("doc")), not nullable, note, self.odcs_keys
        )

    def _part(self, schema: object, depth: int, path: str, comment: str = "") -> DataType:
        """Return the type of a nested part and record its ODCS keys by path."""
        kind, nullable, _ = self.type(schema, depth + 1, path)
        self.describe(path, comment, required=not nullable)
        return kind

    def type(self, schema: object, depth: int, path: str) -> tuple[DataType, bool, str]:
        """Return the type, True if it is nullable, and the evidence ("" for none)."""
        self.count_field()
        if depth > _MAX_DEPTH:
            return STRING, True, "nested too deeply"
        if isinstance(schema, list):
            branches = [branch for branch in schema if branch != "null"]
            if len(branches) == 1:
                kind, _, note = self.type(branches[0], depth + 1, path)
                return kind, "null" in schema, note
            return (
                STRING,
                "null" in schema,
                f"declared as {' or '.join(_type_name(branch) for branch in branches)}",
            )
        if isinstance(schema, dict):
            if "name" in schema:
                self.named_schemas[str(schema["name"])] = schema
            return self._nested_type(schema, depth, path)
        word = str(schema)
        if word in self.named_schemas:
            return self.type(self.named_schemas[word], depth + 1, path)
        primitive = contract_type(Format.AVRO, word)
        return primitive or STRING, False, "" if primitive else f"declared as {word}"

    def _nested_type(self, schema: dict[str, object], depth: int, path: str) -> tuple[DataType, bool, str]:
        kind, logical = schema.get("type"), str(schema.get("logicalType", ""))
        decimal = f"decimal({schema.get('precision')}, {schema.get('scale', 0)})"
        exact = contract_type(Format.AVRO, decimal if logical == "decimal" else f"{kind} {logical}")
        if exact is not None:
            return exact, False, ""
        note = f"declared as {logical}" if logical else ""
        fields = schema_fields(schema)
        if kind == "record" and fields:
            parts = tuple(
                self._part(
                    record_field.get("type"),
                    depth,
                    f"{path}.{record_field.get('name')}",
                    as_text(record_field.get("doc")),
                )
                for record_field in fields
            )
            return (
                DataType(
                    "struct", (), parts, tuple(str(record_field.get("name")) for record_field in fields)
                ),
                False,
                note,
            )
        if kind == "array":
            return DataType("array", (), (self._part(schema.get("items"), depth, f"{path}[]"),)), False, note
        if kind == "map":
            value = self._part(schema.get("values"), depth, f"{path}.*")
            return DataType("map", (), (STRING, value)), False, note
        inner_type, nullable, inner = self.type(kind, depth + 1, path)
        return inner_type, nullable, note or inner


def _type_name(schema: object) -> str:
    return str(schema.get("type")) if isinstance(schema, dict) else str(schema)


KIND = ImportKind(
    "avro",
    "a schema (.avsc), a data file, or the folder of a table",
    read,
    (_SCHEMA_ENDING, _DATA_ENDING),
    takes_layout=True,
    read_files=read_files,
)
