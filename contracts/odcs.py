"""TABLE: kinds of YAML documents, and the versions of ODCS with the keys of each."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Callable, Container, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

# TABLE: versions of ODCS, and the server types, service levels and keys of each.

# TABLE: supported versions of ODCS, and the version that introduced each key and value.
#
# Source: the changelog and the JSON Schemas of ODCS 3.0.2, 3.1.0 and 3.2.0.

Version = tuple[int, int, int]

SUPPORTED = ("v3.0.0", "v3.0.1", "v3.0.2", "v3.1.0", "v3.2.0")
NEWEST = "v3.2.0"

# Version -> node type -> keys that it added. Keys that are not listed exist since 3.0.0.
_KEYS_ADDED: dict[Version, dict[str, str]] = {
    (3, 0, 1): {"Contract": "authoritativeDefinitions"},
    (3, 0, 2): {"Property": "physicalName"},
    (3, 1, 0): {
        "SchemaObject": "id relationships",
        "Property": "id relationships",
        "SlaProperty": "id description schedule scheduler",
        "CustomProperty": "id description",
        "Quality": "id metric arguments",
        "Server": "id",
        "SupportChannel": "id customProperties",
        "Price": "id",
        "Member": "id tags customProperties authoritativeDefinitions",
        "Role": "id",
        "TypeOptions": "timezone defaultTimezone",
    },
    (3, 2, 0): {
        "Contract": "context",
        "SchemaObject": "context deprecated synonyms",
        "Property": "deprecated synonyms semanticType enum map",
        "SlaProperty": "customProperties authoritativeDefinitions",
        "CustomProperty": "vendor",
        "Relationship": "id",
    },
}
# (node type, key) -> first version that has it.
KEY_SINCE = {
    (kind, key): version
    for version, kinds in _KEYS_ADDED.items()
    for kind, keys in kinds.items()
    for key in keys.split()
}

# (node type, key, value) -> first version in which the key may have this value.
VALUE_SINCE: dict[tuple[str, str, str], Version] = {
    ("Property", "logicalType", "timestamp"): (3, 1, 0),
    ("Property", "logicalType", "time"): (3, 1, 0),
    ("Property", "logicalType", "map"): (3, 2, 0),
    ("Property", "logicalType", "vector"): (3, 2, 0),
    ("SchemaObject", "logicalType", "blob"): (3, 1, 0),
}

# Until 3.0.2 the metric of a library rule was its `rule`, and some metrics had other names.
EARLIER_METRICS = {
    "duplicateCount": "duplicateValues",
    "nullCheck": "nullValues",
    "validValues": "invalidValues",
}


@lru_cache(64)
def parse_version(text: str) -> Version:
    """Parse a version as contracts write it, e.g. (3, 2, 0) for `v3.2.0`."""
    major, minor, patch = text.removeprefix("v").split(".")
    return int(major), int(minor), int(patch)


def format_version(version: Version) -> str:
    """Return the version as contracts write it."""
    return "v" + ".".join(str(part) for part in version)


# TABLE: server types of ODCS, the version each arrived in, and the keys each takes.
#
# Source: the `Server` section of ODCS 3.0.2, 3.1.0 and 3.2.0. `custom` takes every key.


class ServerType(NamedTuple):
    required: tuple[str, ...]
    optional: tuple[str, ...]
    since: Version


def _row(required: str, optional: str = "", since: str = "3.0.0") -> ServerType:
    return ServerType(tuple(required.split()), tuple(optional.split()), parse_version(since))


SERVER_TYPES: dict[str, ServerType] = {
    "api": _row("location"),
    "athena": _row("schema", "stagingDir catalog regionName workgroup"),
    "azure": _row("location format", "encoding delimiter"),
    "bigquery": _row("project dataset"),
    "btrieve": _row("host database", "port", "3.2.0"),
    "clickhouse": _row("host port database"),
    "cloudsql": _row("host port database schema"),
    "custom": _row(
        "",
        "account catalog database dataset delimiter encoding endpointUrl format host location path port "
        "project region regionName schema serviceName stagingDir stream warehouse",
    ),
    "databricks": _row("catalog schema", "host"),
    "db2": _row("host port database", "schema"),
    "denodo": _row("host port", "database"),
    "dremio": _row("host port", "schema"),
    "duckdb": _row("database", "schema"),
    "exasol": _row("host", "port schema", "3.2.0"),
    "fastobjects": _row("database", "host port", "3.2.0"),
    "glue": _row("account database", "location format encoding"),
    "hana": _row("host", "port database schema", "3.2.0"),
    "hive": _row("host database", "port", "3.1.0"),
    "iceberg": _row("catalog catalogUrl", "namespace warehouse", "3.2.0"),
    "impala": _row("host database", "port", "3.1.0"),
    "informix": _row("host database", "port"),
    "ingres": _row("database host", "port", "3.2.0"),
    "kafka": _row("host", "format encoding"),
    "kinesis": _row("", "region format encoding"),
    "local": _row("path format", "encoding"),
    "mysql": _row("host port database"),
    "oracle": _row("host port serviceName"),
    "poet": _row("database", "host port", "3.2.0"),
    "postgres": _row("host port database schema"),
    "postgresql": _row("host port database schema"),
    "presto": _row("host", "catalog schema"),
    "pubsub": _row("project"),
    "redshift": _row("database schema", "host region account"),
    "s3": _row("location", "endpointUrl format encoding delimiter"),
    "sftp": _row("location", "format encoding delimiter"),
    "snowflake": _row("account database schema", "host port warehouse"),
    "sqlserver": _row("host database schema", "port"),
    "synapse": _row("host port database"),
    "teradata": _row("host", "port database", "3.2.0"),
    "trino": _row("host port catalog schema"),
    "vectorwise": _row("database host", "port", "3.2.0"),
    "versant": _row("database", "host port", "3.2.0"),
    "vertica": _row("host port database schema"),
    "zen": _row("host database", "port", "3.1.0"),
}

# 3.2.0 added `encoding` to every type that has it, and `workgroup` to athena, whose `stagingDir` was required
# before.
LATER_KEYS = {"encoding": (3, 2, 0), "workgroup": (3, 2, 0)}
# Until 3.0.2 the key had another name.
EARLIER_NAMES = {("athena", "stagingDir"): ("staging_dir", (3, 0, 2))}
EARLIER_REQUIRED = {"athena": (("stagingDir",), (3, 2, 0))}


# TABLE: service levels of ODCS and the units that their values may have.
#
# ODCS names the properties ("case-insensitive", and others are allowed) and specifies no units except days
# and years. Source: the section "Service-Level Agreement" of ODCS 3.1.

_LEVELS = "availability errorRate throughput generalAvailability endOfSupport endOfLife timeOfAvailability"
_TIMED_LEVELS = "frequency freshness latency retention timeToDetect timeToNotify timeToRepair"
# Lower-case name -> (the name as ODCS writes it, whether its value is a length of time).
SERVICE_LEVELS: dict[str, tuple[str, bool]] = {
    **{name.lower(): (name, False) for name in _LEVELS.split()},
    **{name.lower(): (name, True) for name in _TIMED_LEVELS.split()},
}

# Unit of time in our durations -> other spellings that contracts use.
_SPELLINGS = {
    "s": ("sec", "secs", "second", "seconds"),
    "min": ("mins", "minute", "minutes"),
    "h": ("hr", "hrs", "hour", "hours"),
    "d": ("day", "days"),
    "w": ("wk", "week", "weeks"),
    "mo": ("mon", "month", "months"),
    "y": ("yr", "yrs", "year", "years"),
}
TIME_UNITS: dict[str, str] = {
    spelling: unit for unit, spellings in _SPELLINGS.items() for spelling in (unit, *spellings)
}


def time_unit(text: str) -> str | None:
    """Return the unit of time of a spelling, ignoring case, or None for `m` and unknown units."""
    return TIME_UNITS.get(text.strip().lower())


# Kind of a YAML document by its top-level keys: a data contract, or another common format.
#
# A repository holds thousands of YAML files, so the raw bytes are checked first: with a regular expression
# for a line `kind: DataContract` at the indentation of the top-level keys. Only matching files are parsed.

CONTRACT = "DataContract"
OTHER = "of another kind"
MISPLACED_SUBSCRIPTION = "a subscription outside the registry's folder subscriptions, which has no effect"

_KIND = rb"""["']?kind["']?[ \t]*:\s+(?:[!&]\S*[ \t]+)*["']?([^"'\s#,{}]+)"""
_VERSION = rb"""["']?apiVersion["']?[ \t]*:\s+["']?v?([0-9][^"'\s#,{}]*)"""
_FLOW_KIND = re.compile(rb"""[{,]\s*""" + _KIND.replace(rb":\s+", rb":\s*"))
_FIRST = re.compile(rb"^(?![ \t]*(?:\r?$|#|---|%))([ \t]*)(\S)", re.MULTILINE)
_KEY = re.compile(rb"""^["']?([A-Za-z$][\w.$-]*)["']?[ \t]*:(?:[ \t]+["']?([^"'\s#]+))?""", re.MULTILINE)
_UTF16 = {codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
_ODCS = re.compile(rb"[23]\.\d+(?:\.\d+)?")

# Only the start of a file is searched for the top-level keys, to name its format.
_PREFIX_BYTES = 65_536


def is_contract(data: bytes) -> bool:
    """Return True if the document declares itself a data contract, regardless of its file name.

    A document with a version of ODCS whose `kind` is missing or misspelt counts too, so that the mistake is
    reported instead of skipping the file.
    """
    data = _as_utf8(data)
    if b"kind" not in data and b"apiVersion" not in data:
        return False
    first = _FIRST.search(data)
    if first is None:
        return False
    if first[2] == b"{":
        kinds = _FLOW_KIND.findall(data)
        return any(_is_contract_kind(kind) for kind in kinds)
    kind = _value(_KIND, first[1], data)
    if kind is not None:
        return _is_contract_kind(kind)
    version = _value(_VERSION, first[1], data)
    return version is not None and _ODCS.fullmatch(version) is not None and b"schema" in data


def describe_format(data: bytes) -> str:
    """Return the apparent format of a document that is not a contract, as `known_format` names it, else
    `OTHER`.
    """
    keys = {
        match[1].decode(): _parse_scalar(match[2]) for match in _KEY.finditer(_as_utf8(data[:_PREFIX_BYTES]))
    }
    return known_format(keys) or ("an older format of contracts" if OLD_KEY in keys else OTHER)


OLD_KEY = "dataContractSpecification"


def known_format(top: Mapping[str, Any]) -> str | None:
    """Return the name of the other known format that a mapping with these top-level keys has, or None."""
    return next((name for name, matches in _FORMATS.items() if matches(top)), None)


def _is_kubernetes(top: Mapping[str, Any]) -> bool:
    kind = top.get("kind")
    return "metadata" in top and isinstance(kind, str) and "apiVersion" in top and kind != CONTRACT


# Other common formats, and how they are recognized.
_FORMATS: dict[str, Callable[[Mapping[str, Any]], bool]] = {
    "dbt": lambda top: top.get("version") == 2 and not top.keys().isdisjoint(("models", "sources", "seeds")),
    "a dbt project": lambda top: "model-paths" in top or "config-version" in top,
    "Kubernetes": _is_kubernetes,
    "the Open Data Product Specification": lambda top: "product" in top and "kind" not in top,
    MISPLACED_SUBSCRIPTION: lambda top: {"contract", "major", "consumer"} <= top.keys(),
    "the Open Data Product Standard": lambda top: top.get("kind") == "DataProduct",
    "OpenAPI": lambda top: "openapi" in top and "paths" in top,
    "JSON Schema": lambda top: "json-schema.org" in str(top.get("$schema")) and "kind" not in top,
}


def _value(key: bytes, indent: bytes, data: bytes) -> bytes | None:
    match = re.search(rb"^" + re.escape(indent) + key, data, re.MULTILINE)
    return None if match is None else match[1]


def _is_contract_kind(kind: bytes) -> bool:
    """Return True if a word is `DataContract`, ignoring case and common typos."""
    word = re.sub(r"[^a-z]", "", kind.decode("utf-8", "replace").lower())
    return word.startswith("datacontr") or (word.startswith("dat") and word.endswith("contract"))


def _parse_scalar(value: bytes | None) -> str | int:
    text = (value or b"").decode("utf-8", "replace")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 5 else text


def _as_utf8(data: bytes) -> bytes:
    encoding = _UTF16.get(data[:2])
    if encoding is not None:
        return data.decode(encoding, "replace").encode("utf-8", "replace")
    return data.removeprefix(codecs.BOM_UTF8)


# TABLE: keys of other formats that users write into contracts, and their equivalents in ODCS.
#
# Sources: dbt's and Avro's column keys, the Data Contract Specification, ODCS 2.2, OpenAPI and JSON Schema.

# Words for a type, without numbers in parentheses -> logical types of every version of ODCS.
_LOGICAL_TYPES = {
    "string": "string", "text": "string", "varchar": "string", "char": "string", "str": "string",
    "integer": "integer", "int": "integer", "bigint": "integer", "smallint": "integer", "long": "integer",
    "number": "number", "decimal": "number", "numeric": "number", "double": "number", "float": "number",
    "boolean": "boolean", "bool": "boolean",
    "date": "date", "timestamp": "timestamp", "datetime": "timestamp", "time": "time",
    "object": "object", "struct": "object", "record": "object", "array": "array", "list": "array",
    "map": "map",
}  # fmt: skip
_URL = re.compile(r"[\w:/.\-#?=%&@+]{1,200}")


def migration_hint(
    key: str, value: object, allowed_keys: Container[str], present_keys: Container[str]
) -> str | None:
    """Return what to write instead of a key of another format, or None if no known format has it.

    Args:
        key: The unknown key.
        value: Its value as read from YAML.
        allowed_keys: The keys that the mapping may have.
        present_keys: The keys that it has.
    """
    row = _ROWS.get(key)
    if row is None or row[0] not in allowed_keys:
        return None
    return row[1](value, allowed_keys, present_keys)


def _editor_schema(value: object, _allowed_keys: Container[str], _present_keys: Container[str]) -> str:
    url = value if isinstance(value, str) and _URL.fullmatch(value) else "…"
    return f"Write it as a comment for editors: '# yaml-language-server: $schema={url}'."


def _null_allowed(value: object, _allowed_keys: Container[str], _present_keys: Container[str]) -> str:
    if value is True:
        return "Remove it: a value may be NULL unless the property has 'required: true'."
    if value is False:
        return "Write 'required: true'."
    return "Write 'required: true' if no value may be NULL, or remove it."


def _null_refused(value: object, _allowed_keys: Container[str], _present_keys: Container[str]) -> str:
    return _null_allowed(not value if isinstance(value, bool) else value, _allowed_keys, _present_keys)


def _type(value: object, allowed_keys: Container[str], present_keys: Container[str]) -> str:
    if not isinstance(value, str) or not value.strip():
        return "Write 'logicalType: …', and 'physicalType: …' for the type in the table."
    type_text = value if re.fullmatch(r"[\w(), <>:]{1,60}", value) else "…"
    physical = (
        f"physicalType: {type_text}"
        if re.fullmatch(r"[\w()<>…]+", type_text)
        else f'physicalType: "{type_text}"'
    )
    if "required" not in allowed_keys:
        # An object, whose logical type is fixed.
        return f"Write '{physical}'."
    if "physicalType" in present_keys:
        return "Remove it: 'logicalType' and 'physicalType' name the type."
    if "logicalType" in present_keys:
        return f"Write '{physical}'."
    word = re.split(r"[^a-z]", value.strip().lower())[0]
    logical = _LOGICAL_TYPES.get(word, "…")
    if logical == value:
        return f"Write 'logicalType: {logical}'."
    return f"Write 'logicalType: {logical}' and '{physical}'."


def _rename_hint(name: str) -> Callable[[object, Container[str], Container[str]], str]:
    def rename_hint(value: object, _allowed_keys: Container[str], _present_keys: Container[str]) -> str:
        is_short = isinstance(value, (bool, int)) or (isinstance(value, str) and len(value) < 40)
        return f"Write '{name}: {json.dumps(value, ensure_ascii=False) if is_short else '…'}'."

    return rename_hint


def _properties(value: object, _allowed_keys: Container[str], _present_keys: Container[str]) -> str:
    if isinstance(value, list):
        return "ODCS calls it 'properties'."
    return "ODCS calls it 'properties', a list: 'properties: [{name: …, logicalType: …}]'."


# Key -> ODCS key that the mapping must allow for the row to apply, and function for the hint.
_ROWS: dict[str, tuple[str, Callable[[object, Container[str], Container[str]], str]]] = {
    "$schema": ("apiVersion", _editor_schema),
    **dict.fromkeys(("nullable", "isNullable", "is_nullable"), ("required", _null_allowed)),
    "optional": ("primaryKey", _null_allowed),
    **dict.fromkeys(("notNull", "not_null"), ("required", _null_refused)),
    **dict.fromkeys(("type", "dataType", "data_type"), ("logicalType", _type)),
    **dict.fromkeys(("columns", "fields"), ("properties", _properties)),
    **dict.fromkeys(("isPrimary", "isPrimaryKey"), ("primaryKey", _rename_hint("primaryKey"))),
    "isUnique": ("unique", _rename_hint("unique")),
}
