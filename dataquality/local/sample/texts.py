"""TABLE: texts of a CSV file and values of JSON as values of a contract's type."""

from __future__ import annotations

import datetime as dt
import decimal
import re
from collections.abc import Callable
from decimal import Decimal

from dq.contracts.types import DataType


class NoValue(ValueError):
    """Something that is no value of its type."""


_INTEGER = re.compile(r"[+-]?[0-9]+", re.ASCII)
_FLOAT = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|NaN|[+-]?Infinity|[+-]?Inf")
_BITS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}


def of_text(kind: DataType, text: str) -> object:
    """The value that a cell of a CSV file stands for. Raises NoValue."""
    if kind.name not in _TEXTS:
        raise NoValue(f"a cell of CSV holds no {kind.name}")
    return _TEXTS[kind.name](kind, text)


def of_json(kind: DataType, value: object) -> object:
    """The value that JSON stands for; None is NULL, a missing field of a struct too. Raises NoValue."""
    if value is None:
        return None
    if kind.name == "struct" and isinstance(value, dict):
        pairs = zip(kind.names, kind.parts, strict=True)
        return {name: of_json(part, value.get(name)) for name, part in pairs}
    if kind.name == "array" and isinstance(value, list):
        return [of_json(kind.parts[0], one) for one in value]
    if kind.name == "map" and isinstance(value, dict):
        key, part = kind.parts
        return [(of_text(key, name), of_json(part, one)) for name, one in value.items()]
    if kind.name == "boolean" and isinstance(value, bool):
        return value
    if kind.name in _NUMBERS and isinstance(value, int | Decimal) and not isinstance(value, bool):
        return of_text(kind, str(value))
    if kind.name in _TEXTS and kind.name not in (*_NUMBERS, "boolean") and isinstance(value, str):
        return of_text(kind, value)
    raise NoValue(kind.name)


def _integer(kind: DataType, text: str) -> int:
    if not _INTEGER.fullmatch(text) or len(text) > 20:
        raise NoValue(text)
    limit = 1 << (_BITS[kind.name] - 1)
    if not -limit <= int(text) < limit:
        raise NoValue(text)
    return int(text)


def _float(_: DataType, text: str) -> float:
    if not _FLOAT.fullmatch(text):
        raise NoValue(text)
    return float(text)


def _decimal(kind: DataType, text: str) -> Decimal:
    """Exact: a value with more digits than the type holds would be rounded, and so is none of it."""
    precision, scale = kind.numbers
    if not _FLOAT.fullmatch(text) or len(text) > 100:
        raise NoValue(text)
    exact = decimal.Context(prec=200)
    try:
        made = exact.quantize(Decimal(text), Decimal(1).scaleb(-scale))
    except decimal.InvalidOperation as error:
        raise NoValue(text) from error
    if made != Decimal(text) or abs(made) >= Decimal(10) ** (precision - scale):
        raise NoValue(text)
    return made


def _boolean(_: DataType, text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise NoValue(text)
    return text.lower() == "true"


def _date(_: DataType, text: str) -> dt.date:
    if len(text) != 10:
        raise NoValue(text)
    try:
        return dt.date.fromisoformat(text)
    except ValueError as error:
        raise NoValue(text) from error


def _instant(_: DataType, text: str) -> dt.datetime:
    """ISO 8601; without a zone it is UTC, which is the zone of dq's sessions."""
    made = _parsed(text)
    return made if made.tzinfo else made.replace(tzinfo=dt.UTC)


def _civil(_: DataType, text: str) -> dt.datetime:
    made = _parsed(text)
    if made.tzinfo is not None:
        raise NoValue(text)
    return made


def _parsed(text: str) -> dt.datetime:
    if len(text) < 10:
        raise NoValue(text)
    try:
        return dt.datetime.fromisoformat(text)
    except ValueError as error:
        raise NoValue(text) from error


def _bytes(_: DataType, text: str) -> bytes:
    return text.encode()


_NUMBERS = (*_BITS, "float", "double", "decimal")
_TEXTS: dict[str, Callable[[DataType, str], object]] = {
    **dict.fromkeys(_BITS, _integer),
    **dict.fromkeys(("float", "double"), _float),
    "decimal": _decimal,
    "boolean": _boolean,
    "date": _date,
    "timestamp": _instant,
    "timestamp_ntz": _civil,
    "binary": _bytes,
    **dict.fromkeys(("string", "varchar", "char", "variant", "interval"), lambda _kind, text: text),
}
