"""TABLE: keys of other formats that people write into contracts, and what ODCS has in their place.

Sources: dbt's and Avro's column keys, the Data Contract Specification, ODCS 2.2, OpenAPI and JSON Schema.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Container

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
