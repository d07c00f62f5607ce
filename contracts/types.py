"""Logical and physical types of columns, and schema evolution of table formats."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from dq.contracts.model import Property, SchemaObject
from dq.contracts.odcs import Version

# TABLE: logical types of ODCS and the physical types of Spark, Hive and Glue that can represent them.
#
# Sources: ODCS `logicalType`; Spark SQL "Data Types"; AWS Glue and Athena "Data types in Amazon Athena".

# Canonical name -> other spellings that Spark, Hive or Glue accept.
_SPELLINGS = {
    "string": ("text",),
    "boolean": ("bool",),
    "tinyint": ("byte",),
    "smallint": ("short",),
    "int": ("integer",),
    "bigint": ("long",),
    "float": ("real",),
    "double": ("double precision",),
    "decimal": ("numeric", "dec"),
    "date": (),
    "timestamp": ("timestamp_ltz", "timestamp with local time zone"),
    "timestamp_ntz": ("timestamp without time zone",),
    "binary": (),
    "char": (),
    "varchar": (),
    "array": (),
    "map": (),
    "struct": (),
    "variant": (),
    "interval": (),
}
CANONICAL = {spelling: name for name, spellings in _SPELLINGS.items() for spelling in (name, *spellings)}

# Logical type -> physical types that can represent it; the first is the default.
CARRIERS: dict[str, tuple[str, ...]] = {
    "string": ("string", "varchar", "char", "binary", "variant"),
    "integer": ("bigint", "int", "smallint", "tinyint", "decimal"),
    "number": ("double", "float", "decimal", "bigint", "int", "smallint", "tinyint"),
    "boolean": ("boolean",),
    "date": ("date",),
    "timestamp": ("timestamp", "timestamp_ntz"),
    "time": ("string", "varchar", "char"),
    "object": ("struct", "map", "variant", "string"),
    "array": ("array",),
    "map": ("map",),
    "vector": ("array",),
}

MAX_PRECISION = 38
MAX_FRACTION = 12
MAX_CHARACTERS = 131_072  # Glue's limit for a column's type


@dataclass(frozen=True, slots=True)
class DataType:
    """A physical type: canonical `name`, its numbers (precision and scale, or length) and its parts.

    `parts` are the element of an array, key and value of a map, or the fields of a struct; `names` are
    the struct's field names.
    """

    name: str
    numbers: tuple[int, ...] = ()
    parts: tuple[DataType, ...] = ()
    names: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Return Spark DDL in lower case: `decimal(18,2)`, `struct<a:int,b:array<string>>`."""
        if self.numbers:
            return f"{self.name}({','.join(str(number) for number in self.numbers)})"
        if self.names:
            fields = ",".join(f"{name}:{part}" for name, part in zip(self.names, self.parts, strict=True))
            return f"{self.name}<{fields}>"
        if self.parts:
            return f"{self.name}<{','.join(str(part) for part in self.parts)}>"
        return self.name


class NotAType(ValueError):
    """The text is not a type; the message says why."""


_TOKEN = re.compile(r"\s*(`[^`]+`|[A-Za-z_0-9$\-]+|[<>(),:])")


# Cached, because thousands of columns share a few types.
@lru_cache(maxsize=4096)
def parse(text: str) -> DataType:
    """Parse a physicalType, regardless of case and spelling.

    Raises NotAType with a reason. A struct's fields may be written `name:type` or `name type`.
    """
    if len(text) > MAX_CHARACTERS:
        raise NotAType(f"it has {len(text):,} characters, more than the {MAX_CHARACTERS:,} of a catalog")
    tokens: list[str] = []
    position = 0
    stripped = text.strip()
    while position < len(stripped):
        match = _TOKEN.match(stripped, position)
        if match is None:
            raise NotAType(f"unexpected {stripped[position]!r}")
        tokens.append(match.group(1))
        position = match.end()
    reader = _TypeReader(tokens)
    data_type = reader.type(0)
    if reader.peek():
        raise NotAType(f"unexpected {reader.next()!r} after {data_type}")
    return data_type


class _TypeReader:
    def __init__(self, tokens: list[str]) -> None:
        self._tokens = tokens
        self._position = 0

    def peek(self) -> str:
        """Return the next token, or "" at the end."""
        return self._tokens[self._position] if self._position < len(self._tokens) else ""

    def next(self) -> str:
        token = self.peek()
        self._position += 1
        return token

    def expect(self, token: str) -> None:
        token_found = self.next()
        if token_found != token:
            raise NotAType(
                f"{token!r} is missing" if not token_found else f"expected {token!r}, not {token_found!r}"
            )

    def type(self, depth: int) -> DataType:
        if depth > 32:
            raise NotAType("it is nested deeper than 32")
        word = self.next().lower()
        if not word:
            raise NotAType("it is empty")
        # `double precision`, `timestamp without time zone`: words that belong together.
        while f"{word} {self.peek().lower()}" in _PREFIXES:
            word += " " + self.next().lower()
        name = CANONICAL.get(word)
        if name is None:
            raise NotAType(f"{word!r} is not a type")
        if name in ("array", "map", "struct"):
            return self._nested(name, depth)
        if self.peek() == "(":
            return self._numbered(name)
        return DataType("decimal", (10, 0)) if name == "decimal" else DataType(name)

    def _nested(self, name: str, depth: int) -> DataType:
        self.expect("<")
        parts: list[DataType] = []
        names: list[str] = []
        names_seen: set[str] = set()
        while True:
            if name == "struct":
                names.append(self._field(names_seen))
                if self.peek() == ":":
                    self.next()
            parts.append(self.type(depth + 1))
            if self.peek() != ",":
                break
            self.next()
        self.expect(">")
        expected = {"array": 1, "map": 2}.get(name, len(parts))
        if len(parts) != expected:
            raise NotAType(f"{name} takes {expected} type(s), not {len(parts)}")
        return DataType(name, (), tuple(parts), tuple(names))

    def _field(self, names_seen: set[str]) -> str:
        token = self.next()
        if not token or token in "<>(),:":
            raise NotAType("struct has a field without a name")
        name = token.strip("`")
        if name.lower() in names_seen:
            raise NotAType(f"struct has two fields {name!r}")
        names_seen.add(name.lower())
        return name

    def _numbered(self, name: str) -> DataType:
        self.expect("(")
        numbers: list[int] = []
        while True:
            token = self.next()
            if not token.isdecimal() or len(token) > 9:
                raise NotAType(f"{token[:40]!r} is not a number")
            numbers.append(int(token))
            if self.peek() != ",":
                break
            self.next()
        self.expect(")")
        if name in ("timestamp", "timestamp_ntz") and len(numbers) == 1 and numbers[0] <= MAX_FRACTION:
            # Athena's and Trino's `timestamp(6)`: fractional digits of a second, which lakes keep anyway.
            return DataType(name)
        if name not in ("decimal", "char", "varchar"):
            raise NotAType(f"{name} takes no number in parentheses")
        if name == "decimal":
            if len(numbers) > 2:
                raise NotAType("decimal takes a precision and a scale")
            numbers = [*numbers, 0][:2]
            if not 1 <= numbers[0] <= MAX_PRECISION or numbers[1] > numbers[0]:
                raise NotAType(f"decimal({numbers[0]}, {numbers[1]}) is outside 1 to {MAX_PRECISION} digits")
        elif len(numbers) != 1:
            raise NotAType(f"{name} takes one length")
        elif not numbers[0]:
            raise NotAType(f"{name} takes a length of 1 or more")
        return DataType(name, tuple(numbers))


_PREFIXES = {
    " ".join(words[: count + 1])
    for spelling in CANONICAL
    for words in [spelling.split()]
    for count in range(1, len(words))
}


def carriers(logical: str, odcs: Version) -> tuple[str, ...]:
    """Return the physical types that can represent a logical type in a version of ODCS.

    In 3.0, `date` is also the logical type of timestamps.
    """
    if logical == "date" and odcs < _WITH_TIMESTAMPS:
        return CARRIERS["date"] + CARRIERS["timestamp"]
    return CARRIERS.get(logical, ())


_WITH_TIMESTAMPS = (3, 1, 0)


def carries(physical: DataType, logical: str, odcs: Version) -> bool:
    """Return True if a physical type can represent a logical type in a version of ODCS."""
    return physical.name in carriers(logical, odcs)


# Physical type of a property's column.

# Oracle's and Snowflake's decimal.
_FOREIGN_DECIMAL = re.compile(r"number\s*(\(\s*[0-9]+\s*(?:,\s*[0-9]+\s*)?\))", re.ASCII | re.IGNORECASE)


def physical_type(prop: Property) -> DataType | None:
    """Return the exact type that the contract specifies, or None if it leaves the choice open.

    That is `physicalType` if it is a Spark type, else a struct, array or map if all of its parts have an
    exact type. A physicalType of another engine is ignored.
    """
    if prop.physical_type is not None:
        try:
            return parse(prop.physical_type)
        except NotAType:
            return None
    if prop.logical_type == "object" and prop.properties:
        parts = [part for inner in prop.properties if (part := physical_type(inner)) is not None]
        return _struct(prop.properties, parts) if len(parts) == len(prop.properties) else None
    if prop.logical_type == "array" and prop.items is not None:
        item = physical_type(prop.items)
        return None if item is None else DataType("array", (), (item,))
    if prop.map is not None:
        key, value = physical_type(prop.map.key), physical_type(prop.map.value)
        return None if key is None or value is None else DataType("map", (), (key, value))
    return None


def _struct(properties: Sequence[Property], parts: Iterable[DataType]) -> DataType:
    return DataType("struct", (), tuple(parts), tuple(inner.column for inner in properties))


def catalog_type(prop: Property) -> DataType:
    """Return the type for creating a table: the exact type, else the default type of the logical type."""
    exact = physical_type(prop)
    if exact is not None:
        return exact
    if prop.logical_type == "object" and prop.properties:
        return _struct(prop.properties, map(catalog_type, prop.properties))
    declared = _FOREIGN_DECIMAL.fullmatch(prop.physical_type or "")
    if declared is not None and prop.logical_type in (None, "number", "integer"):
        try:
            return parse(f"decimal{declared[1]}")
        except NotAType:
            return DataType(CARRIERS[prop.logical_type or "string"][0])
    if prop.logical_type in ("array", "vector"):
        # The items of a vector are numbers; embeddings have 32 bits each.
        default_item = DataType("float" if prop.logical_type == "vector" else "string")
        item = catalog_type(prop.items) if prop.items is not None else default_item
        return DataType("array", (), (item,))
    if prop.logical_type == "map" and prop.map is not None:
        return DataType("map", (), (catalog_type(prop.map.key), catalog_type(prop.map.value)))
    if prop.logical_type in ("object", "map"):
        # Without fields the structure is unknown; it is stored as JSON text.
        return DataType("string")
    return DataType(CARRIERS[prop.logical_type or "string"][0])


# Physical type -> default logical type.
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


def logical_type(kind: DataType) -> str:
    """Return the default logical type of a physical type."""
    if kind.name == "decimal":
        return "number" if kind.numbers[1:] != (0,) else "integer"
    return _LOGICAL[kind.name]


def row_type(schema_object: SchemaObject) -> DataType:
    """Return the object's columns as one struct type, by their names in the data."""
    return _struct(schema_object.properties, map(catalog_type, schema_object.properties))


# TABLE: schema evolution of table formats: added, removed, reordered and renamed columns, with sources.
#
# The flags say if files that were written before the change are still read correctly. A query that names a
# removed or renamed column fails with all formats. Unlisted formats and flags without a source are False.

ATHENA = "Athena User Guide, Handle schema updates"
ICEBERG = "Iceberg spec, Schema Evolution and Partition Evolution"
DELTA = "Delta docs, delta-column-mapping (reader 2, writer 5)"
HUDI = "Hudi docs schema_evolution; hudi#19381"
TRINO = "Trino docs file-formats; CoercionUtils.createCoercerForStruct pairs fields by index"


@dataclass(frozen=True, slots=True)
class SchemaEvolution:
    """Schema evolution of a format. Each flag: old files stay readable after this change.

    Attributes:
        partition: Effect of a change of the partition keys: `new layout` (paths and filters change), `hidden`
            (old and new coexist), `hidden v1` (fields may only be added).
        shared: True if the schema is stored with the table, so that every reader sees the current types.
    """

    add_middle: bool
    remove: bool
    rename: bool
    reorder: bool
    defaults: bool
    partition: str
    shared: bool
    source: str


LAYOUT, HIDDEN, HIDDEN_V1 = "new layout", "hidden", "hidden v1"

#                                middle  remove  rename  reorder defaults
SCHEMA_EVOLUTION: Mapping[str, SchemaEvolution] = {
    "csv": SchemaEvolution(False, False, True, False, False, LAYOUT, False, ATHENA),
    "json": SchemaEvolution(True, True, False, True, False, LAYOUT, False, ATHENA),
    "avro": SchemaEvolution(
        True, True, False, True, True, LAYOUT, False, f"{ATHENA}; Avro spec, Schema Resolution"
    ),
    "parquet-name": SchemaEvolution(True, True, False, True, False, LAYOUT, False, ATHENA),
    "parquet-index": SchemaEvolution(False, False, True, False, False, LAYOUT, False, ATHENA),
    "orc-index": SchemaEvolution(False, False, True, False, False, LAYOUT, False, f"{ATHENA}; {TRINO}"),
    "orc-name": SchemaEvolution(True, True, False, True, False, LAYOUT, False, ATHENA),
    "iceberg-v1": SchemaEvolution(True, True, True, True, False, HIDDEN_V1, True, ICEBERG),
    "iceberg-v2": SchemaEvolution(True, True, True, True, False, HIDDEN, True, ICEBERG),
    "iceberg-v3": SchemaEvolution(True, True, True, True, True, HIDDEN, True, ICEBERG),
    "delta-3": SchemaEvolution(True, True, True, True, False, LAYOUT, True, DELTA),
    "delta-4": SchemaEvolution(True, True, True, True, False, LAYOUT, True, DELTA),
    "hudi": SchemaEvolution(True, True, False, False, False, LAYOUT, True, HUDI),
}

# Format as contracts write it -> default profile. Sources: ORC by index is the default of Athena and Trino,
# Parquet by name that of all; Iceberg writes v2 by default.
_DEFAULT_PROFILES = {
    "": "parquet-name",
    "any": "parquet-name",
    "parquet": "parquet-name",
    "orc": "orc-index",
    "iceberg": "iceberg-v2",
    "delta": "delta-4",
    "deltalake": "delta-4",
    "tsv": "csv",
    "text": "csv",
    "jsonl": "json",
    "ndjson": "json",
    "json-lines": "json",
}
# Family -> prefix of its profiles, oldest and newest version.
_VERSIONED = {"iceberg": ("iceberg-v", 1, 3), "delta": ("delta-", 3, 4)}
_VERSION = re.compile(r"(iceberg|delta)[ _-]?v?(\d+)(?:\.\d+)*", re.ASCII)

# Formats with renames that only these engines support.
_RENAME_ENGINES = {"hudi": frozenset({"spark", "spark-3"})}
# Engines that pair the fields of a struct by position in partitioned tables of files.
_STRUCT_BY_INDEX = frozenset({"trino"})


def format_profile(text: str) -> str:
    """Return the profile of a format such as `parquet`, `iceberg v3`, `delta-3.2`; an unknown one as
    written.
    """
    word = text.strip().lower().replace("_", "-").replace(" ", "-")
    match = _VERSION.fullmatch(word)
    if match is not None:
        prefix, oldest, newest = _VERSIONED[match[1]]
        return f"{prefix}{min(max(int(match[2]), oldest), newest)}"
    return _DEFAULT_PROFILES.get(word, word)


_UNKNOWN_FORMAT = SchemaEvolution(False, False, False, False, False, LAYOUT, False, "no source")


def schema_evolution(format_: str, engines: tuple[str, ...], *, nested: bool) -> SchemaEvolution:
    """Return the schema evolution of a format as these engines read it; `nested` for fields of a struct."""
    row = SCHEMA_EVOLUTION.get(format_, _UNKNOWN_FORMAT)
    if nested and not row.shared and _STRUCT_BY_INDEX & set(engines):
        return SchemaEvolution(False, False, True, False, row.defaults, row.partition, False, TRINO)
    engines_with_rename = _RENAME_ENGINES.get(format_)
    if engines_with_rename is not None and engines and set(engines) <= engines_with_rename:
        return replace(row, rename=True)
    return row
