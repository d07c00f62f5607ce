"""One form for values that mean the same: no key order, no spelling, no explicit defaults."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from dq.contracts import types
from dq.contracts.node import Node
from dq.contracts.shared.source_map import PLACE
from dq.contracts.types import DataType, NotAType

# (model, key) -> the value that ODCS means when the key is absent. Source: the JSON Schema of ODCS 3.2.0.
DEFAULTS: Mapping[tuple[str, str], object] = {
    ("Property", "required"): False,
    ("Property", "unique"): False,
    ("Property", "deprecated"): False,
    ("Property", "criticalDataElement"): False,
    ("Property", "semanticType"): "column",
    ("SchemaObject", "deprecated"): False,
    ("SchemaObject", "logicalType"): "object",
    ("SchemaObject", "physicalType"): "table",
    ("TypeOptions", "defaultTimezone"): "Etc/UTC",
    ("TypeOptions", "minProperties"): 0,
    ("TypeOptions", "minItems"): 0,
    ("TypeOptions", "uniqueItems"): False,
    ("TypeOptions", "elementType"): "float32",
    ("TypeOptions", "normalized"): False,
    ("Quality", "type"): "library",
    ("Relationship", "type"): "foreignKey",
}

# (server type, key) -> its default, from the same schema.
SERVER_DEFAULTS: Mapping[tuple[str, str], str] = {
    ("athena", "catalog"): "awsdatacatalog",
    ("exasol", "port"): "8563",
    ("ingres", "port"): "21064",
    ("kafka", "format"): "json",
    ("poet", "host"): "LOCAL",
    ("poet", "port"): "6001",
    ("sqlserver", "port"): "1433",
    ("teradata", "port"): "1025",
    ("vectorwise", "port"): "21064",
    ("versant", "host"): "localhost",
    ("versant", "port"): "5019",
}

# Spellings of zones that are one zone.
_UTC = frozenset({"utc", "etc/utc", "z", "gmt", "etc/gmt", "etc/zulu", "zulu", "universal", "+00:00"})

# Words for types in engines beside Spark and Hive -> ours. `timestamptz` is a type of its own here, because
# Iceberg, Trino and PostgreSQL tell it from `timestamp`.
_FOREIGN = {
    "nvarchar": "varchar",
    "varchar2": "varchar",
    "nvarchar2": "varchar",
    "charactervarying": "varchar",
    "character": "char",
    "nchar": "char",
    "number": "decimal",
    "int2": "smallint",
    "int4": "int",
    "int8": "bigint",
    "int16": "smallint",
    "int32": "int",
    "int64": "bigint",
    "float4": "float",
    "float8": "double",
    "float32": "float",
    "float64": "double",
    "bytea": "binary",
    "varbinary": "binary",
    "bytes": "binary",
}
_WITH_ZONE = frozenset({"timestamptz", "timestampwithtimezone", "timestamp_tz"})
_WORD = re.compile(r"[a-z_][a-z_0-9]*")


@dataclass(frozen=True, slots=True)
class Physical:
    """A physical type: what it is, where we know it, and how it is spelt (case and blanks aside)."""

    type: DataType | None
    spelling: str


def physical(text: str) -> Physical:
    """The normal form of a physicalType; a type that we do not know is compared by its spelling."""
    spelling = re.sub(r"\s+", "", text.lower())
    if spelling in _WITH_ZONE:
        return Physical(DataType("timestamptz"), spelling)
    for attempt in (text, _WORD.sub(lambda found: _FOREIGN.get(found[0], found[0]), spelling)):
        try:
            return Physical(types.parse(attempt), spelling)
        except NotAType:
            continue
    return Physical(None, spelling)


def zone(name: str) -> str:
    """A zone's name; the many names of UTC are one."""
    return "UTC" if name.lower() in _UTC else name


def canonical(value: Any) -> object:
    """The value with keys sorted, lists as tuples, dates as text, and nodes without what is absent."""
    if isinstance(value, Node):
        return tuple((key, canonical(inner)) for key, inner in written(value).items())
    if isinstance(value, Mapping):
        pairs = ((str(key), canonical(inner)) for key, inner in value.items() if key != PLACE)
        return tuple(sorted(pairs, key=lambda pair: pair[0]))
    if isinstance(value, (list, tuple)):
        return tuple(canonical(inner) for inner in value)
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (dt.date, dt.datetime)):
        return value.isoformat()
    return value


def unordered(value: Any) -> object:
    """The same for a list whose order says nothing."""
    items = canonical(value)
    return tuple(sorted(set(items), key=repr)) if isinstance(items, tuple) else items


def written(node: Node) -> dict[str, Any]:
    """The keys of a node that say something: not absent, not empty, not a default; sorted by key."""
    held = node.__dict__
    return {
        key: value
        for key, name, default in fields(type(node))
        if (value := held[name]) is not None and value != default and value not in ([], {})
    }


@cache
def fields(model: type[Node]) -> tuple[tuple[str, str, object], ...]:
    """The keys of a model as contracts write them, sorted: (key, attribute, what absence means)."""
    listed = ((info.alias or name, name) for name, info in model.model_fields.items())
    kind = model.__name__
    return tuple(
        (key, name, DEFAULTS.get((kind, key), _NEVER)) for key, name in sorted(listed) if key != PLACE
    )


_NEVER = object()
