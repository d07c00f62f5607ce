"""What a YAML document is by its top keys, and what ODCS has in place of keys of other formats."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Callable, Container, Mapping
from typing import Any

# What a YAML document is, by its top keys: a data contract, or one of what people keep beside contracts.
#
# A repository holds thousands of YAML files, so the first question is put to the bytes alone: a regular
# expression for a line `kind: DataContract` at the depth of the top keys. Only what passes is parsed.

CONTRACT = "DataContract"
OTHER = "of another kind"
ASIDE = "a subscription that lies outside of the registry's own folder subscriptions, and has no effect"

_KIND = rb"""["']?kind["']?[ \t]*:\s+(?:[!&]\S*[ \t]+)*["']?([^"'\s#,{}]+)"""
_VERSION = rb"""["']?apiVersion["']?[ \t]*:\s+["']?v?([0-9][^"'\s#,{}]*)"""
_FLOW_KIND = re.compile(rb"""[{,]\s*""" + _KIND.replace(rb":\s+", rb":\s*"))
_FIRST = re.compile(rb"^(?![ \t]*(?:\r?$|#|---|%))([ \t]*)(\S)", re.MULTILINE)
_KEY = re.compile(rb"""^["']?([A-Za-z$][\w.$-]*)["']?[ \t]*:(?:[ \t]+["']?([^"'\s#]+))?""", re.MULTILINE)
_UTF16 = {codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
_ODCS = re.compile(rb"[23]\.\d+(?:\.\d+)?")

# The top keys stand near the beginning of what people write; this is only asked to give a name to it.
_LOOKED_AT = 65_536


def is_contract(data: bytes) -> bool:
    """Whether the document says that it is a data contract, whatever the name of its file.

    So does a document with the version of ODCS whose `kind` is missing or misspelt: it is a mistake to be
    told, not a file to be passed over.
    """
    data = _as_utf8(data)
    if b"kind" not in data and b"apiVersion" not in data:
        return False
    first = _FIRST.search(data)
    if first is None:
        return False
    if first[2] == b"{":
        kinds = _FLOW_KIND.findall(data)
        return any(_near(kind) for kind in kinds)
    kind = _value(_KIND, first[1], data)
    if kind is not None:
        return _near(kind)
    version = _value(_VERSION, first[1], data)
    return version is not None and _ODCS.fullmatch(version) is not None and b"schema" in data


def looks_like(data: bytes) -> str:
    """What a document that is no contract seems to be, in the words of `foreign`; else `OTHER`."""
    keys = {match[1].decode(): _read(match[2]) for match in _KEY.finditer(_as_utf8(data[:_LOOKED_AT]))}
    return foreign(keys) or ("an older format of contracts" if OLD_KEY in keys else OTHER)


OLD_KEY = "dataContractSpecification"


def foreign(top: Mapping[str, Any]) -> str | None:
    """What a mapping with these top keys is, where it is something else that we know."""
    return next((name for name, is_one in _FOREIGN.items() if is_one(top)), None)


def _is_kubernetes(top: Mapping[str, Any]) -> bool:
    kind = top.get("kind")
    return "metadata" in top and isinstance(kind, str) and "apiVersion" in top and kind != CONTRACT


# What people keep beside contracts, and how it is known.
_FOREIGN: dict[str, Callable[[Mapping[str, Any]], bool]] = {
    "dbt": lambda top: top.get("version") == 2 and not top.keys().isdisjoint(("models", "sources", "seeds")),
    "a dbt project": lambda top: "model-paths" in top or "config-version" in top,
    "Kubernetes": _is_kubernetes,
    "the Open Data Product Specification": lambda top: "product" in top and "kind" not in top,
    ASIDE: lambda top: {"contract", "major", "consumer"} <= top.keys(),
    "the Open Data Product Standard": lambda top: top.get("kind") == "DataProduct",
    "OpenAPI": lambda top: "openapi" in top and "paths" in top,
    "JSON Schema": lambda top: "json-schema.org" in str(top.get("$schema")) and "kind" not in top,
}


def _value(key: bytes, indent: bytes, data: bytes) -> bytes | None:
    found = re.search(rb"^" + re.escape(indent) + key, data, re.MULTILINE)
    return None if found is None else found[1]


def _near(kind: bytes) -> bool:
    """Whether a word is `DataContract`, in any case and with the usual slips: one letter too many, say."""
    word = re.sub(r"[^a-z]", "", kind.decode("utf-8", "replace").lower())
    return word.startswith("datacontr") or (word.startswith("dat") and word.endswith("contract"))


def _read(value: bytes | None) -> str | int:
    text = (value or b"").decode("utf-8", "replace")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 5 else text


def _as_utf8(data: bytes) -> bytes:
    encoding = _UTF16.get(data[:2])
    if encoding is not None:
        return data.decode(encoding, "replace").encode("utf-8", "replace")
    return data.removeprefix(codecs.BOM_UTF8)


# TABLE: keys of other formats that people write into contracts, and what ODCS has in their place.
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


def hint(key: str, value: object, known: Container[str], written: Container[str]) -> str | None:
    """Return what to write instead of a key of another format, or None where no format that we know has it.

    Args:
        key: The unknown key.
        value: Its value as YAML gave it.
        known: The keys that the mapping may have.
        written: The keys that it has.
    """
    row = _ROWS.get(key)
    if row is None or row[0] not in known:
        return None
    return row[1](value, known, written)


def _editor_schema(value: object, _known: Container[str], _written: Container[str]) -> str:
    shown = value if isinstance(value, str) and _URL.fullmatch(value) else "…"
    return f"Write it as a comment, which editors read: '# yaml-language-server: $schema={shown}'."


def _null_allowed(value: object, _known: Container[str], _written: Container[str]) -> str:
    if value is True:
        return "Leave it out: a value may be NULL unless the property says 'required: true'."
    if value is False:
        return "Write 'required: true'."
    return "Write 'required: true' where no value may be NULL, and leave it out elsewhere."


def _null_refused(value: object, _known: Container[str], _written: Container[str]) -> str:
    return _null_allowed(not value if isinstance(value, bool) else value, _known, _written)


def _type(value: object, known: Container[str], written: Container[str]) -> str:
    if not isinstance(value, str) or not value.strip():
        return "Write 'logicalType: …', and 'physicalType: …' for the type in the table."
    shown = value if re.fullmatch(r"[\w(), <>:]{1,60}", value) else "…"
    physical = f"physicalType: {shown}" if re.fullmatch(r"[\w()<>…]+", shown) else f'physicalType: "{shown}"'
    if "required" not in known:
        # An object, whose logical type is no matter of choice.
        return f"Write '{physical}'."
    if "physicalType" in written:
        return "Remove it: 'logicalType' and 'physicalType' name the type."
    if "logicalType" in written:
        return f"Write '{physical}'."
    word = re.split(r"[^a-z]", value.strip().lower())[0]
    logical = _LOGICAL_TYPES.get(word, "…")
    if logical == value:
        return f"Write 'logicalType: {logical}'."
    return f"Write 'logicalType: {logical}' and '{physical}'."


def _renamed(name: str) -> Callable[[object, Container[str], Container[str]], str]:
    def renamed(value: object, _known: Container[str], _written: Container[str]) -> str:
        plain = isinstance(value, (bool, int)) or (isinstance(value, str) and len(value) < 40)
        return f"Write '{name}: {json.dumps(value, ensure_ascii=False) if plain else '…'}'."

    return renamed


def _properties(value: object, _known: Container[str], _written: Container[str]) -> str:
    if isinstance(value, list):
        return "ODCS calls it 'properties'."
    return "ODCS calls it 'properties', a list: 'properties: [{name: …, logicalType: …}]'."


# Key -> a key of ODCS that the mapping must be able to have for the row to hold, and what to write.
_ROWS: dict[str, tuple[str, Callable[[object, Container[str], Container[str]], str]]] = {
    "$schema": ("apiVersion", _editor_schema),
    "nullable": ("required", _null_allowed),
    "isNullable": ("required", _null_allowed),
    "is_nullable": ("required", _null_allowed),
    "optional": ("primaryKey", _null_allowed),
    "notNull": ("required", _null_refused),
    "not_null": ("required", _null_refused),
    "type": ("logicalType", _type),
    "dataType": ("logicalType", _type),
    "data_type": ("logicalType", _type),
    "columns": ("properties", _properties),
    "fields": ("properties", _properties),
    "isPrimary": ("primaryKey", _renamed("primaryKey")),
    "isPrimaryKey": ("primaryKey", _renamed("primaryKey")),
    "isUnique": ("unique", _renamed("unique")),
}
