"""Words to write a JSON Schema with, so that a form reads as a table."""

from __future__ import annotations

Schema = dict[str, object]

TEXT: Schema = {"type": "string"}
WHOLE: Schema = {"type": "integer"}
NUMBER: Schema = {"type": "number"}
YES_NO: Schema = {"type": "boolean"}
INSTANT: Schema = {"type": "string", "format": "date-time"}
ANY: Schema = {}


def maybe(form: Schema) -> Schema:
    """The form, or null."""
    return {"anyOf": [form, {"type": "null"}]}


def one_of(*forms: Schema) -> Schema:
    return {"anyOf": list(forms)}


def words(*known: str) -> Schema:
    """One of these texts."""
    return {"enum": list(known)}


def many(form: Schema) -> Schema:
    return {"type": "array", "items": form}


def keyed(form: Schema) -> Schema:
    """An object whose keys are names of others, such as columns."""
    return {"type": "object", "additionalProperties": form}


def row(parts: dict[str, Schema]) -> Schema:
    """An object with these keys; one that ends in a question mark may be absent.

    Further keys may come with a later version.
    """
    return {
        "type": "object",
        "required": [key for key in parts if not key.endswith("?")],
        "properties": {key.removesuffix("?"): form for key, form in parts.items()},
    }
