"""CSV and JSON files: rows, objects and their values by the contract's types, without an engine."""

from __future__ import annotations

import base64
import binascii
import datetime as dt
import decimal
import json
import math
import re
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from dq.contracts.access.data_location import RFC_4180, TextFormat
from dq.contracts.model import Property, SchemaObject
from dq.contracts.outcome import ReadError
from dq.contracts.types import DataType, catalog_type, physical_type
from dq.dataquality import sql_values

# The contract's types, as text files can carry them.

STRING = DataType("string")
# Any JSON value, carried as its text.
ANYTHING = DataType("variant")
_TEXT_TYPES = frozenset({"varchar", "char", "variant", "interval"})


def text_row_type(schema_object: SchemaObject) -> DataType:
    """Return the object's columns as a struct type; objects without fields are ANYTHING, strings are
    unbounded.

    String lengths are tested by a check instead.
    """
    types = tuple(_type(prop) for prop in schema_object.properties)
    return DataType("struct", (), types, tuple(prop.column for prop in schema_object.properties))


def _type(prop: Property) -> DataType:
    promised_type = physical_type(prop)
    if promised_type is not None:
        is_free_form = promised_type == STRING and prop.logical_type in ("object", "map")
        return ANYTHING if is_free_form else carrier_type(promised_type, ANYTHING)
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
    return carrier_type(catalog_type(prop), ANYTHING)


def carrier_type(kind: DataType, anything: DataType = STRING) -> DataType:
    """Return the type of a column that carries values of this type; ANYTHING becomes `anything`."""
    if kind.parts:
        return DataType(
            kind.name, kind.numbers, tuple(carrier_type(part, anything) for part in kind.parts), kind.names
        )
    if kind == ANYTHING:
        return anything
    return STRING if kind.name in _TEXT_TYPES else kind


# TABLE: CSV strings and JSON values as values of the contract's types.


class NotAValue(ValueError):
    """Input that is not a valid value of its type."""


_INTEGER = re.compile(sql_values.INTEGER)
_NUMBER = re.compile(f"{sql_values.PLAIN}(?:{sql_values.EXPONENT})?")
_NO_NUMBER = re.compile(sql_values.NO_NUMBER)
_BITS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}


def value_from_text(kind: DataType, text: str) -> object:
    """Parse a cell of a CSV file. Raises NotAValue."""
    if kind.name not in _TEXTS:
        raise NotAValue(f"a cell of CSV holds no {kind.name}")
    return _TEXTS[kind.name](kind, text)


def value_from_json(kind: DataType, value: object) -> object:
    """Convert a JSON value; None and missing struct fields are NULL. Raises NotAValue.

    Keys are case-insensitive, as in Spark. NaN and infinities are strings, as Spark writes them.
    """
    if value is None:
        return None
    if kind.name == "struct" and isinstance(value, dict):
        by_lower_name = {key.lower(): inner for key, inner in value.items()}
        pairs = zip(kind.names, kind.parts, strict=True)
        return {name: value_from_json(part, by_lower_name.get(name.lower())) for name, part in pairs}
    if kind.name == "array" and isinstance(value, list):
        return [value_from_json(kind.parts[0], item) for item in value]
    if kind.name == "map" and isinstance(value, dict):
        key, part = kind.parts
        return [(value_from_text(key, name), value_from_json(part, item)) for name, item in value.items()]
    if kind == ANYTHING:
        return text_from_json(value)
    if kind.name == "boolean" and isinstance(value, bool):
        return value
    if kind.name in _NUMBERS and isinstance(value, int | Decimal) and not isinstance(value, bool):
        return value_from_text(kind, str(value))
    if kind.name in ("float", "double") and value in ("NaN", "Infinity", "-Infinity"):
        return float(str(value))
    if kind.name == "binary" and isinstance(value, str):
        return _base64(value)
    if kind.name in _TEXTS and kind.name not in (*_NUMBERS, "boolean") and isinstance(value, str):
        return value_from_text(kind, value)
    raise NotAValue(kind.name)


def text_from_json(value: object) -> str:
    """Return a JSON value as the text that Spark reads into a column of texts.

    Texts stay as they are, all else is JSON without spaces. Numbers with a point or exponent become doubles
    as Java writes them: `1.50` is 1.5, and `1e7` is 1.0E7.
    """
    text = value if isinstance(value, str) else _json(value)
    # An unpaired surrogate cannot be encoded.
    return text.encode(errors="replace").decode()


def _json(value: object) -> str:
    match value:
        case Decimal() | float():
            return java_double(float(value))
        case Mapping():
            return f"{{{','.join(f'{_json(key)}:{_json(item)}' for key, item in value.items())}}}"
        case list() | tuple():
            return f"[{','.join(map(_json, value))}]"
        case _:
            return json.dumps(value, default=str, ensure_ascii=False)


def java_double(number: float) -> str:
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
        raise NotAValue(text) from error


def _integer(kind: DataType, text: str) -> int:
    if not _INTEGER.fullmatch(text):
        raise NotAValue(text)
    limit = 1 << (_BITS[kind.name] - 1)
    if not -limit <= int(text) < limit:
        raise NotAValue(text)
    return int(text)


def _float(kind: DataType, text: str) -> float:
    """Parse the nearest float; numbers beyond the largest float are invalid, not infinity."""
    if _NO_NUMBER.fullmatch(text):
        return float(text)
    if not _NUMBER.fullmatch(text):
        raise NotAValue(text)
    number = float(text)
    try:
        if not math.isfinite(number):
            raise NotAValue(text)
        return number if kind.name == "double" else float(struct.unpack("f", struct.pack("f", number))[0])
    except OverflowError as error:
        raise NotAValue(text) from error


def _decimal(kind: DataType, text: str) -> Decimal:
    """Parse exactly: values with more digits than the type holds are invalid, not rounded."""
    precision, scale = kind.numbers
    if not _NUMBER.fullmatch(text) or len(text) > sql_values.MOST_CHARACTERS:
        raise NotAValue(text)
    # Allows any exponent that the text may have.
    exact = decimal.Context(prec=200, Emin=-99_999, Emax=99_999)
    try:
        rounded = exact.quantize(Decimal(text), Decimal(1).scaleb(-scale))
    except decimal.InvalidOperation as error:
        raise NotAValue(text) from error
    if rounded != Decimal(text) or rounded.copy_abs() >= Decimal(1).scaleb(precision - scale):
        raise NotAValue(text)
    return rounded


def _boolean(_: DataType, text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise NotAValue(text)
    return text.lower() == "true"


def _instant_from_text(_: DataType, text: str) -> dt.datetime:
    """Parse ISO 8601; without a zone it is UTC, the zone of dq's sessions."""
    moment = _parse_datetime(sql_values.INSTANT, text)
    try:
        return moment.astimezone(dt.UTC) if moment.tzinfo else moment.replace(tzinfo=dt.UTC)
    except OverflowError as error:
        raise NotAValue(text) from error


def _parse_datetime(pattern: str, text: str) -> dt.datetime:
    """Parse a date or time; fractions below a microsecond are truncated, as in Spark."""
    if not re.fullmatch(pattern, text):
        raise NotAValue(text)
    try:
        return dt.datetime.fromisoformat(text)
    except ValueError as error:
        raise NotAValue(text) from error


def _string(_: DataType, text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise NotAValue("half of a surrogate pair") from error
    return text


_NUMBERS = (*_BITS, "float", "double", "decimal")
_TEXTS: dict[str, Callable[[DataType, str], object]] = {
    **dict.fromkeys(_BITS, _integer),
    **dict.fromkeys(("float", "double"), _float),
    "decimal": _decimal,
    "boolean": _boolean,
    "date": lambda _, text: _parse_datetime(sql_values.DATE, text).date(),
    "timestamp": _instant_from_text,
    "timestamp_ntz": lambda _, text: _parse_datetime(sql_values.CIVIL, text),
    "binary": lambda _, text: text.encode(),
    **dict.fromkeys(("string", "varchar", "char", "variant", "interval"), _string),
}


# Rows of CSV files with the line on which each begins, and the names in the header.

Cell = str | None
"""None (nothing between two delimiters) is NULL; two quotes are the empty string."""
MARK = "\ufeff"
TWO_ENDS = "line endings are mixed, and the odd character may be data"
ONE_END = "Use \\n or \\r\\n for all lines."
_BREAK = re.compile(r"\r\n|\n|\r")


def rows(text: str, file: str, text_format: TextFormat = RFC_4180) -> Iterator[tuple[int, list[Cell]]]:
    """Yield every non-blank row with its line, from 1. Line breaks in quotes become \\n.

    Raises ReadError for unclosed quotes and for mixed line endings.
    """
    cell, escaped = _cell_patterns(text_format)
    first_break = _BREAK.search(text)
    line_break = first_break.group() if first_break else ""
    position, line, row_line = 0, 1, 1
    row: list[Cell] = []
    while position < len(text) or row:
        match = cell.match(text, position)
        bare_quote = (
            match is not None and text_format.quote and (match[2] or "").startswith(text_format.quote)
        )
        if match is None or bare_quote:
            raise ReadError(
                f"{file}:{line}: the quotes of a value are not closed, or something follows them.",
                'Close them, and double quotes inside a value: "".',
            )
        quoted, bare, end = match.groups()
        value = escaped.sub(r"\1", quoted) if quoted is not None else bare or None
        if value and line_break:
            value = value.replace(line_break, "\n")
        row.append(None if text_format.null_text and value == text_format.null_text else value)
        line += len(_BREAK.findall(match.group()))
        position = match.end()
        if end != text_format.delimiter:
            if end and end != line_break:
                raise ReadError(f"{file}:{line - 1}: {TWO_ENDS}.", ONE_END)
            if row != [None] or quoted is not None:
                yield row_line, row
            row, row_line = [], line
            if position >= len(text):
                return


def _cell_patterns(text_format: TextFormat) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return the pattern of a cell, with groups (quoted, bare, end), and that of escapes in quotes."""
    sign, quote, escape = (
        re.escape(character) for character in (text_format.delimiter, text_format.quote, text_format.escape)
    )
    bare_cell = rf"([^{sign}\r\n]*))({sign}|\r\n|\n|\r|\Z)"
    if not quote:
        return re.compile(rf"(?:(?!)()|{bare_cell}"), re.compile("(?!)")
    inside = rf"(?:[^{quote}]|{quote}{quote})*" if quote == escape else rf"(?:[^{quote}{escape}]|{escape}.)*"
    cell = re.compile(rf"(?:{quote}({inside}){quote}|{bare_cell}", re.DOTALL)
    return cell, re.compile(f"{escape}([{quote}{escape}])")


def column_names(header: Sequence[Cell], file: str) -> tuple[str, ...]:
    """Return the column names; columns without a name get Spark's, e.g. `_c0`.

    Raises ReadError for duplicate names, ignoring case.
    """
    names = tuple(name or f"_c{index}" for index, name in enumerate(header))
    lowered = [name.lower() for name in names]
    twice = next((name for index, name in enumerate(names) if name.lower() in lowered[:index]), None)
    if twice is not None:
        raise ReadError(f"{file}:1: duplicate column name {twice!r}.", "Give each column a unique name.")
    return names


def read_header(text: str, file: str, text_format: TextFormat) -> tuple[str, ...] | None:
    """Return the column names in the first row of a file, or None if it has no rows. Raises ReadError."""
    first = next(rows(text.removeprefix(MARK), file, text_format), None)
    return None if first is None else column_names(first[1], file)


# Objects of JSON files, parsed strictly, and observations on them: keys, types, invalid values.
#
# `dq sample` and Spark tasks both use this module, so that their verdicts agree.

# Maximum number of invalid values to show.
MAX_EXAMPLES = 20
_BLANK = re.compile(r"[ \t\r\n]*")


class MalformedJson(ValueError):
    """Invalid JSON of objects; the message gives the reason, without data. `line` counts from 1."""

    def __init__(self, reason: str, line: int = 0) -> None:
        super().__init__(reason)
        self.line = line


def _unique_keys(pairs: list[tuple[str, object]]) -> dict[str, object]:
    record = dict(pairs)
    if len(record) < len(pairs):
        raise MalformedJson("an object has a duplicate key, and readers differ in which value they take")
    return record


_DECODER = json.JSONDecoder(object_pairs_hook=_unique_keys, parse_float=Decimal)


def is_array(text: str) -> bool:
    """Return True if the text, or its beginning, is an array of objects rather than one object per line."""
    return text.removeprefix(MARK).lstrip(" \t\r\n").startswith("[")


def objects(text: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield each object with its line, from JSON lines or one array. Raises MalformedJson."""
    text = text.removeprefix(MARK)
    if is_array(text):
        yield from _array(text)
        return
    for line, row_text in enumerate(text.split("\n"), 1):
        record = object_in_line(row_text, line)
        if record is not None:
            yield line, record


def object_in_line(text: str, line: int = 0) -> dict[str, Any] | None:
    """Return the object of a line, or None if the line is blank. Raises MalformedJson for anything else."""
    position = _after_blank(text, 0)
    if position == len(text):
        return None
    value, position = _value(text, position, line)
    if _after_blank(text, position) != len(text):
        raise MalformedJson("unexpected text after the object on its line", line)
    return _require_object(value, line)


def _array(text: str) -> Iterator[tuple[int, dict[str, Any]]]:
    position, line = _after_blank(text, 0) + 1, 1
    counted_to, is_first = 0, True
    while True:
        position = _after_blank(text, position)
        line, counted_to = line + text.count("\n", counted_to, position), position
        if text[position : position + 1] == "]" and is_first:
            break
        value, position = _value(text, position, line)
        yield line, _require_object(value, line)
        is_first = False
        position = _after_blank(text, position)
        if text[position : position + 1] == ",":
            position += 1
        elif text[position : position + 1] == "]":
            break
        else:
            raise MalformedJson("unclosed array of objects", line)
    if _after_blank(text, position + 1) != len(text):
        raise MalformedJson("unexpected text after the array of objects", line)


def _after_blank(text: str, position: int) -> int:
    match = _BLANK.match(text, position)
    return match.end() if match else position


def _value(text: str, position: int, line: int) -> tuple[object, int]:
    try:
        return _DECODER.raw_decode(text, position)
    except MalformedJson as error:
        raise MalformedJson(str(error), line) from error
    except json.JSONDecodeError as error:
        raise MalformedJson(f"not JSON: {error.msg} at character {error.pos + 1}", line) from error
    except (ValueError, RecursionError) as error:
        raise MalformedJson("not JSON: nested too deep, or a number of thousands of digits", line) from error


def _require_object(value: object, line: int) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise MalformedJson("not an object", line)
    return value


@dataclass(slots=True)
class KeyTree:
    """Keys observed in objects: `fields` by lower-case name, with the spelling; `inside` is for arrays and
    maps.
    """

    count: int = 0
    fields: dict[str, tuple[str, KeyTree]] = field(default_factory=dict)
    inside: KeyTree | None = None

    def add(self, kind: DataType, value: object) -> None:
        """Record the keys of a value whose type has fields.

        Raises MalformedJson for two spellings of a key.
        """
        if kind.name == "struct" and isinstance(value, dict):
            self.count += 1
            types = {name.lower(): part for name, part in zip(kind.names, kind.parts, strict=True)}
            for key, inner in value.items():
                below = self._field(key)
                if inner is not None and key.lower() in types:
                    below.add(types[key.lower()], inner)
        elif kind.name in ("array", "map") and isinstance(value, list | dict):
            self.inside = self.inside or KeyTree()
            for inner in value.values() if isinstance(value, dict) else value:
                self.inside.add(kind.parts[-1], inner)

    def _field(self, key: str) -> KeyTree:
        spelling, below = self.fields.setdefault(key.lower(), (key, KeyTree()))
        if spelling != key:
            raise MalformedJson("two keys differ only in case and would be one column")
        return below

    def to_json(self) -> list[Any]:
        """Return JSON values for `from_json`."""
        fields = [[spelling, below.to_json()] for spelling, below in self.fields.values()]
        return [self.count, fields, None if self.inside is None else self.inside.to_json()]

    @staticmethod
    def from_json(document: list[Any]) -> KeyTree:
        """Restore the result of `to_json`."""
        count, fields, inside = document
        subtrees = {spelling.lower(): (spelling, KeyTree.from_json(below)) for spelling, below in fields}
        return KeyTree(count, subtrees, None if inside is None else KeyTree.from_json(inside))

    def merge(self, other: KeyTree) -> None:
        """Add the observations of `other`. Raises MalformedJson for two spellings of a key."""
        self.count += other.count
        for spelling, below in other.fields.values():
            self._field(spelling).merge(below)
        if other.inside is not None:
            self.inside = self.inside or KeyTree()
            self.inside.merge(other.inside)

    def type(self, kind: DataType, *, spelt: bool = False) -> DataType:
        """Return the observed type: without fields that no object had; undeclared fields are ANYTHING.

        With `spelt`, names are spelled as in the files, else as in the contract.
        """
        inside = self.inside or KeyTree()
        if kind.name == "struct" and self.count:
            declared = {name.lower(): (name, part) for name, part in zip(kind.names, kind.parts, strict=True)}
            names, parts = [], []
            undeclared = (lower for lower in self.fields if lower not in declared)
            for lower in [*(lower for lower in declared if lower in self.fields), *undeclared]:
                spelling, below = self.fields[lower]
                name, part = declared.get(lower, (spelling, ANYTHING))
                names.append(spelling if spelt else name)
                parts.append(below.type(part, spelt=spelt))
            return DataType("struct", (), tuple(parts), tuple(names))
        if kind.name in ("array", "map"):
            return DataType(kind.name, (), (*kind.parts[:-1], inside.type(kind.parts[-1], spelt=spelt)))
        return kind


@dataclass(slots=True)
class InvalidValues:
    """Invalid values of a column: their number, and the first ones with their location."""

    count: int = 0
    examples: list[tuple[object, str]] = field(default_factory=list)

    def add(self, place: object, text: str) -> None:
        self.count += 1
        if len(self.examples) < MAX_EXAMPLES:
            self.examples.append((place, text))


@dataclass(slots=True)
class JsonObservations:
    """Observations on some objects, compared with the types of the contract."""

    rows: int = 0
    shape: KeyTree = field(default_factory=KeyTree)
    invalid: dict[str, InvalidValues] = field(default_factory=dict)

    def add(self, kind: DataType, record: dict[str, Any], place: object) -> None:
        """Record one object. Raises MalformedJson."""
        self.rows += 1
        self.shape.add(kind, record)
        types = {name.lower(): (name, part) for name, part in zip(kind.names, kind.parts, strict=True)}
        for key, value in record.items():
            if key.lower() in types:
                name, part = types[key.lower()]
                try:
                    value_from_json(part, value)
                except NotAValue:
                    self.invalid.setdefault(name, InvalidValues()).add(place, text_from_json(value))

    def to_json(self) -> dict[str, Any]:
        """Return JSON values for `from_json`; locations become strings."""
        invalid = {
            name: [values.count, [[str(place), text] for place, text in values.examples]]
            for name, values in self.invalid.items()
        }
        return {"rows": self.rows, "shape": self.shape.to_json(), "unfit": invalid}

    @staticmethod
    def from_json(document: dict[str, Any]) -> JsonObservations:
        """Restore the result of `to_json`."""
        invalid = {
            name: InvalidValues(count, [(place, text) for place, text in examples])
            for name, (count, examples) in document["unfit"].items()
        }
        return JsonObservations(document["rows"], KeyTree.from_json(document["shape"]), invalid)

    def merge(self, other: JsonObservations) -> None:
        """Add the observations of `other`. Raises MalformedJson."""
        self.rows += other.rows
        self.shape.merge(other.shape)
        for name, other_values in other.invalid.items():
            values = self.invalid.setdefault(name, InvalidValues())
            values.count += other_values.count
            values.examples = [*values.examples, *other_values.examples][:MAX_EXAMPLES]
