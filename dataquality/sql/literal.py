"""Values of a contract as literals of the type that their property has."""

from __future__ import annotations

import datetime as dt
import math
import zoneinfo
from collections.abc import Callable
from decimal import Decimal

from dq.contracts.columns import physical_type
from dq.contracts.model import Property
from dq.dataquality.model.term import FLOATS, INTEGERS, TEXTS, Literal
from dq.dataquality.model.threshold import Unusable


def logical(prop: Property) -> str:
    """The logical type; where the contract has only a physical type, the logical one that it stands for."""
    if prop.logical_type is not None:
        return prop.logical_type
    promised = physical_type(prop)
    return _LOGICAL.get(promised.name, promised.name) if promised else ""


_LOGICAL = {
    **dict.fromkeys(INTEGERS, "integer"),
    **dict.fromkeys(FLOATS | {"decimal"}, "number"),
    **dict.fromkeys(TEXTS, "string"),
    "timestamp_ntz": "timestamp",
    "struct": "object",
}


def civil(prop: Property) -> bool:
    """Whether a timestamp property has no zone: physicalType timestamp_ntz, or `timezone: false`."""
    promised = physical_type(prop)
    if promised is not None:
        return promised.name == "timestamp_ntz"
    return prop.logical_type_options is not None and prop.logical_type_options.timezone is False


def literal(prop: Property, value: object) -> Literal:
    """The value as a literal of the property's type. Raises Unusable, with the reason, for one of another."""
    kind = logical(prop)
    make = _LITERALS.get(kind)
    if make is None:
        raise Unusable(f"values of {'type ' + kind if kind else 'an unknown type'} cannot be compared")
    try:
        return make(prop, value)
    except ValueError as error:
        if isinstance(error, Unusable):
            raise
        raise Unusable(f"{shown(value)} is no {kind}: {error}") from error


def shown(value: object) -> str:
    """The value for a reader."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int | float | dt.date) else repr(value)


def number(value: int | float) -> int | Decimal:
    """A number of the contract, exactly as it is written: the shortest decimal that names a float.

    Raises ValueError for NaN and infinities, which no contract can mean as a bound.
    """
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{value} is not a finite number")
    return value if isinstance(value, int) else Decimal(repr(value))


def _number(_: Property, value: object) -> Literal:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("a number is needed")
    return number(value)


def _text(_: Property, value: object) -> Literal:
    if not isinstance(value, str):
        raise ValueError("a text is needed; quote it")
    return value


def _boolean(_: Property, value: object) -> Literal:
    if not isinstance(value, bool):
        raise ValueError("true or false is needed")
    return value


def _date(_: Property, value: object) -> Literal:
    if isinstance(value, str):
        value = dt.date.fromisoformat(value)
    if isinstance(value, dt.datetime) or not isinstance(value, dt.date):
        raise ValueError("a date such as 2027-01-31 is needed")
    return value


def _timestamp(prop: Property, value: object) -> Literal:
    if isinstance(value, str):
        value = dt.datetime.fromisoformat(value)
    if isinstance(value, dt.date) and not isinstance(value, dt.datetime):
        value = dt.datetime.combine(value, dt.time())
    if not isinstance(value, dt.datetime):
        raise ValueError("a timestamp such as 2027-01-31T06:00:00Z is needed")
    if civil(prop):
        return value.replace(tzinfo=None)
    if value.tzinfo is None:
        # ODCS: `defaultTimezone` is the zone of timestamps that name none, UTC by default.
        options = prop.logical_type_options
        zone = (options and options.default_timezone) or "Etc/UTC"
        try:
            value = value.replace(tzinfo=zoneinfo.ZoneInfo(zone))
        except (zoneinfo.ZoneInfoNotFoundError, OSError) as error:
            raise ValueError(f"defaultTimezone {zone!r} is not a time zone") from error
    return value


_LITERALS: dict[str, Callable[[Property, object], Literal]] = {
    "integer": _number,
    "number": _number,
    "string": _text,
    "time": _text,
    "boolean": _boolean,
    "date": _date,
    "timestamp": _timestamp,
}
