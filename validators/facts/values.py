"""Whether a value that a contract writes can be a value of a logical type."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable


def fits(value: object, logical: str | None) -> bool:
    """Whether a value as YAML read it is one of the logical type; containers and unknown types fit anything.

    Dates, timestamps and times may be written as ISO 8601 text.
    """
    match logical:
        case "string":
            return isinstance(value, str)
        case "boolean":
            return isinstance(value, bool)
        case "integer":
            return isinstance(value, int) and not isinstance(value, bool)
        case "number":
            # An integer may be too large to be asked whether it is finite.
            whole = isinstance(value, int) and not isinstance(value, bool)
            return whole or (isinstance(value, float) and math.isfinite(value))
        case "date":
            plain = isinstance(value, dt.date) and not isinstance(value, dt.datetime)
            return plain or _iso(value, dt.date.fromisoformat)
        case "timestamp":
            return isinstance(value, dt.date) or _iso(value, dt.datetime.fromisoformat)
        case "time":
            return _iso(value, dt.time.fromisoformat)
    return True


def shown(value: object) -> str:
    """The value as a message quotes it."""
    if isinstance(value, bool):
        return str(value).lower()
    return repr(value) if isinstance(value, str) else "null" if value is None else str(value)


def _iso(value: object, read: Callable[[str], object]) -> bool:
    if not isinstance(value, str):
        return False
    try:
        read(value)
    except ValueError:
        return False
    return True
