"""Types of contracts as texts of files carry them, and such texts as values of these types."""

from __future__ import annotations

import base64
import binascii
import datetime as dt
import decimal
import json
import math
import re
import struct
from collections.abc import Callable, Mapping
from decimal import Decimal

from dq.contracts.model import Property, SchemaObject
from dq.contracts.types import DataType, catalog_type, physical_type
from dq.dataquality.sql.values import (
    CIVIL,
    DATE,
    EXPONENT,
    INSTANT,
    INTEGER,
    MOST_CHARACTERS,
    NO_NUMBER,
    PLAIN,
)

# The types that a contract promises, as texts of a file can carry them.

STRING = DataType("string")
# What may be anything that JSON knows, and is carried as its text.
ANYTHING = DataType("variant")
_TEXT_TYPES = frozenset({"varchar", "char", "variant", "interval"})


def text_row_type(one: SchemaObject) -> DataType:
    """The object's columns as one struct type; an object without fields is ANYTHING, a text is unbounded.

    Texts of bounded length are texts whose length a check counts, whether the contract gives one or not.
    """
    types = tuple(_type(prop) for prop in one.properties)
    return DataType("struct", (), types, tuple(prop.column for prop in one.properties))


def _type(prop: Property) -> DataType:
    promised = physical_type(prop)
    if promised is not None:
        free = promised == STRING and prop.logical_type in ("object", "map")
        return ANYTHING if free else carried(promised, ANYTHING)
    if prop.logical_type == "object":
        if not prop.properties:
            return ANYTHING
        parts = tuple(_type(inner) for inner in prop.properties)
        return DataType("struct", (), parts, tuple(inner.column for inner in prop.properties))
    if prop.logical_type == "array":
        return DataType("array", (), (_type(prop.items) if prop.items is not None else ANYTHING,))
    if prop.logical_type == "vector":
        return DataType("array", (), (_type(prop.items) if prop.items is not None else DataType("double"),))
    if prop.logical_type == "map":
        if prop.map is None:
            return ANYTHING
        return DataType("map", (), (_type(prop.map.key), _type(prop.map.value)))
    return carried(catalog_type(prop), ANYTHING)


def carried(kind: DataType, anything: DataType = STRING) -> DataType:
    """The type of the column that holds it; what may be `anything` is a text unless it is asked for."""
    if kind.parts:
        return DataType(
            kind.name, kind.numbers, tuple(carried(part, anything) for part in kind.parts), kind.names
        )
    if kind == ANYTHING:
        return anything
    return STRING if kind.name in _TEXT_TYPES else kind


# TABLE: texts of a CSV file and values of JSON as values of a contract's type.


class NoValue(ValueError):
    """Something that is no value of its type."""


_INTEGER = re.compile(INTEGER)
_NUMBER = re.compile(f"{PLAIN}(?:{EXPONENT})?")
_NO_NUMBER = re.compile(NO_NUMBER)
_BITS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}


def of_text(kind: DataType, text: str) -> object:
    """The value that a cell of a CSV file stands for. Raises NoValue."""
    if kind.name not in _TEXTS:
        raise NoValue(f"a cell of CSV holds no {kind.name}")
    return _TEXTS[kind.name](kind, text)


def of_json(kind: DataType, value: object) -> object:
    """The value that JSON stands for; None is NULL, a missing field of a struct too. Raises NoValue.

    Case of keys does not matter, as in Spark. Numbers that JSON has no word for are written as Spark does:
    as texts.
    """
    if value is None:
        return None
    if kind.name == "struct" and isinstance(value, dict):
        lowered = {key.lower(): inner for key, inner in value.items()}
        pairs = zip(kind.names, kind.parts, strict=True)
        return {name: of_json(part, lowered.get(name.lower())) for name, part in pairs}
    if kind.name == "array" and isinstance(value, list):
        return [of_json(kind.parts[0], one) for one in value]
    if kind.name == "map" and isinstance(value, dict):
        key, part = kind.parts
        return [(of_text(key, name), of_json(part, one)) for name, one in value.items()]
    if kind == ANYTHING:
        return shown(value)
    if kind.name == "boolean" and isinstance(value, bool):
        return value
    if kind.name in _NUMBERS and isinstance(value, int | Decimal) and not isinstance(value, bool):
        return of_text(kind, str(value))
    if kind.name in ("float", "double") and value in ("NaN", "Infinity", "-Infinity"):
        return float(str(value))
    if kind.name == "binary" and isinstance(value, str):
        return _base64(value)
    if kind.name in _TEXTS and kind.name not in (*_NUMBERS, "boolean") and isinstance(value, str):
        return of_text(kind, value)
    raise NoValue(kind.name)


def shown(value: object) -> str:
    """Return a JSON value as the text that Spark reads into a column of texts.

    Texts stay as they are, all else is JSON without spaces. Numbers with a point or exponent become doubles
    as Java writes them: `1.50` is 1.5, and `1e7` is 1.0E7.
    """
    text = value if isinstance(value, str) else _json(value)
    # Half of a surrogate pair is no text that could be written anywhere.
    return text.encode(errors="replace").decode()


def _json(value: object) -> str:
    match value:
        case Decimal() | float():
            return _java_double(float(value))
        case Mapping():
            return f"{{{','.join(f'{_json(key)}:{_json(item)}' for key, item in value.items())}}}"
        case list() | tuple():
            return f"[{','.join(map(_json, value))}]"
        case _:
            return json.dumps(value, default=str, ensure_ascii=False)


def _java_double(number: float) -> str:
    """Return what `Double.toString` of Java gives for a finite number: its shortest digits."""
    sign, digits, exponent = Decimal(repr(number)).as_tuple()
    if not isinstance(exponent, int):
        return str(number)
    text = "".join(map(str, digits)).rstrip("0") or "0"
    # The number is 0.text × 10^point.
    point = len(digits) + exponent if number else 1
    minus = "-" * sign
    if number and not 1e-3 <= abs(number) < 1e7:
        return f"{minus}{text[0]}.{text[1:] or '0'}E{point - 1}"
    if point <= 0:
        return f"{minus}0.{'0' * -point}{text}"
    return f"{minus}{text[:point].ljust(point, '0')}.{text[point:] or '0'}"


def _base64(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise NoValue(text) from error


def _integer(kind: DataType, text: str) -> int:
    if not _INTEGER.fullmatch(text):
        raise NoValue(text)
    limit = 1 << (_BITS[kind.name] - 1)
    if not -limit <= int(text) < limit:
        raise NoValue(text)
    return int(text)


def _float(kind: DataType, text: str) -> float:
    """The nearest float; a number beyond the largest one is none, rather than infinity."""
    if _NO_NUMBER.fullmatch(text):
        return float(text)
    if not _NUMBER.fullmatch(text):
        raise NoValue(text)
    made = float(text)
    try:
        if not math.isfinite(made):
            raise NoValue(text)
        return made if kind.name == "double" else float(struct.unpack("f", struct.pack("f", made))[0])
    except OverflowError as error:
        raise NoValue(text) from error


def _decimal(kind: DataType, text: str) -> Decimal:
    """Exact: a value with more digits than the type holds would be rounded, and so is none of it."""
    precision, scale = kind.numbers
    if not _NUMBER.fullmatch(text) or len(text) > MOST_CHARACTERS:
        raise NoValue(text)
    # Any exponent that the text may have.
    exact = decimal.Context(prec=200, Emin=-99_999, Emax=99_999)
    try:
        made = exact.quantize(Decimal(text), Decimal(1).scaleb(-scale))
    except decimal.InvalidOperation as error:
        raise NoValue(text) from error
    if made != Decimal(text) or made.copy_abs() >= Decimal(1).scaleb(precision - scale):
        raise NoValue(text)
    return made


def _boolean(_: DataType, text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise NoValue(text)
    return text.lower() == "true"


def _instant(_: DataType, text: str) -> dt.datetime:
    """ISO 8601; without a zone it is UTC, which is the zone of dq's sessions."""
    made = _written(INSTANT, text)
    try:
        return made.astimezone(dt.UTC) if made.tzinfo else made.replace(tzinfo=dt.UTC)
    except OverflowError as error:
        raise NoValue(text) from error


def _written(pattern: str, text: str) -> dt.datetime:
    """What is finer than a microsecond is cut off, as Spark does."""
    if not re.fullmatch(pattern, text):
        raise NoValue(text)
    try:
        return dt.datetime.fromisoformat(text)
    except ValueError as error:
        raise NoValue(text) from error


def _string(_: DataType, text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise NoValue("half of a surrogate pair") from error
    return text


_NUMBERS = (*_BITS, "float", "double", "decimal")
_TEXTS: dict[str, Callable[[DataType, str], object]] = {
    **dict.fromkeys(_BITS, _integer),
    **dict.fromkeys(("float", "double"), _float),
    "decimal": _decimal,
    "boolean": _boolean,
    "date": lambda _, text: _written(DATE, text).date(),
    "timestamp": _instant,
    "timestamp_ntz": lambda _, text: _written(CIVIL, text),
    "binary": lambda _, text: text.encode(),
    **dict.fromkeys(("string", "varchar", "char", "variant", "interval"), _string),
}
