"""The kinds of values that dq's own terms hold: dates, texts, templates of partitions, markers, signs."""

from __future__ import annotations

import datetime as dt
import re
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema

from dq.contracts.shared.source_map import PLACE

_LONGEST_NAME = 255


def _date(value: object) -> object:
    if isinstance(value, str):
        try:
            return dt.date.fromisoformat(value)
        except ValueError:
            raise ValueError(f"{value!r} is not a date such as 2027-01-31") from None
    return value


def _partition(value: object) -> object:
    """`{key: template}` or `{key: [template, …]}`, without the places that the reader left inside."""
    if not isinstance(value, dict):
        raise ValueError("it must be a mapping from partition columns to values")
    made = {}
    for key, templates in value.items():
        if key == PLACE:
            continue
        listed = templates if isinstance(templates, list) else [templates]
        if not listed or not all(isinstance(one, str) for one in listed):
            raise ValueError(f"{key} must be text or a list of texts; quote numbers and dates")
        made[key] = listed
    if not made:
        raise ValueError("it names no partition column")
    return made


# A marker of such a name would be taken for data, or for what a table format keeps of itself.
_DATA = re.compile(
    r"(?i).*\.(parquet|orc|avro|json|csv|txt|gz|zst|snappy|lz4|bz2|crc)|.*=.*|_temporary|_delta_log|_metadata"
    r"|_common_metadata|metadata|\.hoodie"
)


def _marker(value: object) -> object:
    """One file name that is no name of data."""
    if not isinstance(value, str):
        return value
    unseen = not value.isprintable() or value != value.strip()
    if unseen or re.search(r"[/\\:*?\[\]{}#%~]", value) or not value.strip(". "):
        raise ValueError(f"{value!r} is not one file name such as _SUCCESS")
    if len(value.encode()) > _LONGEST_NAME:
        raise ValueError(f"it is longer than {_LONGEST_NAME} bytes")
    if _DATA.fullmatch(value):
        raise ValueError(f"{value!r} is a name that data has; a marker is such as _SUCCESS")
    return value


def _filled(text: str) -> str:
    if not text.strip():
        raise ValueError("it must not be empty")
    return text


Date = Annotated[dt.date, BeforeValidator(_date)]

Filled = Annotated[str, AfterValidator(_filled)]

Marker = Annotated[str, BeforeValidator(_marker), WithJsonSchema({"type": "string"})]

_TEXTS = {"type": "array", "items": {"type": "string"}, "minItems": 1}
Partition = Annotated[
    dict[str, list[str]],
    BeforeValidator(_partition),
    WithJsonSchema({"type": "object", "additionalProperties": {"anyOf": [{"type": "string"}, _TEXTS]}}),
]


Sign = Annotated[str, Field(min_length=1, max_length=1)]
