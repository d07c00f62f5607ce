"""Text files as a contract describes them: rows of CSV, objects of JSON, and their values; no engine."""

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
from dq.contracts.outcome import Unreadable
from dq.contracts.types import DataType, catalog_type, physical_type
from dq.dataquality import sql_values

# Types of contracts as texts of files carry them, and such texts as values of these types.

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


_INTEGER = re.compile(sql_values.INTEGER)
_NUMBER = re.compile(f"{sql_values.PLAIN}(?:{sql_values.EXPONENT})?")
_NO_NUMBER = re.compile(sql_values.NO_NUMBER)
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
    if not _NUMBER.fullmatch(text) or len(text) > sql_values.MOST_CHARACTERS:
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
    made = _written(sql_values.INSTANT, text)
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
    "date": lambda _, text: _written(sql_values.DATE, text).date(),
    "timestamp": _instant,
    "timestamp_ntz": lambda _, text: _written(sql_values.CIVIL, text),
    "binary": lambda _, text: text.encode(),
    **dict.fromkeys(("string", "varchar", "char", "variant", "interval"), _string),
}


# Text files as a contract describes them: rows of CSV and objects of JSON, without an engine.

# The cells of a CSV file with the line on which each row begins, and what its header names.

Cell = str | None
"""None is NULL: nothing between two delimiters. Nothing between quotes is the empty text."""
MARK = "\ufeff"
TWO_ENDS = "the lines end in two ways, and the odd sign may be data"
ONE_END = "Write all of them with \\n, or all with \\r\\n."
_BREAK = re.compile(r"\r\n|\n|\r")


def rows(text: str, file: str, form: TextFormat = RFC_4180) -> Iterator[tuple[int, list[Cell]]]:
    """Every row that is not blank, with its line from 1. The file's own line break in quotes is \\n.

    Raises Unreadable for quotes that do not close, and for lines that do not end as the first one does.
    """
    cell, escaped = _grammar(form)
    found = _BREAK.search(text)
    own = found.group() if found else ""
    at, line, begun = 0, 1, 1
    row: list[Cell] = []
    while at < len(text) or row:
        match = cell.match(text, at)
        bare_quote = match is not None and form.quote and (match[2] or "").startswith(form.quote)
        if match is None or bare_quote:
            raise Unreadable(
                f"{file}:{line}: the quotes of a value are not closed, or something follows them.",
                'Close them; a quote inside of a value is written twice: "".',
            )
        quoted, bare, end = match.groups()
        value = escaped.sub(r"\1", quoted) if quoted is not None else bare or None
        if value and own:
            value = value.replace(own, "\n")
        row.append(None if form.null_text and value == form.null_text else value)
        line += len(_BREAK.findall(match.group()))
        at = match.end()
        if end != form.delimiter:
            if end and end != own:
                raise Unreadable(f"{file}:{line - 1}: {TWO_ENDS}.", ONE_END)
            if row != [None] or quoted is not None:
                yield begun, row
            row, begun = [], line
            if at >= len(text):
                return


def _grammar(form: TextFormat) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """A cell as (in quotes, bare, what ends it), and what is escaped in quotes."""
    sign, quote, escape = (re.escape(one) for one in (form.delimiter, form.quote, form.escape))
    rest = rf"([^{sign}\r\n]*))({sign}|\r\n|\n|\r|\Z)"
    if not quote:
        return re.compile(rf"(?:(?!)()|{rest}"), re.compile("(?!)")
    inside = rf"(?:[^{quote}]|{quote}{quote})*" if quote == escape else rf"(?:[^{quote}{escape}]|{escape}.)*"
    cell = re.compile(rf"(?:{quote}({inside}){quote}|{rest}", re.DOTALL)
    return cell, re.compile(f"{escape}([{quote}{escape}])")


def names_of(header: Sequence[Cell], file: str) -> tuple[str, ...]:
    """The names of the columns; one without a name has Spark's, `_c0`. Raises Unreadable for a name twice.

    Case does not matter for columns, and so not here.
    """
    names = tuple(name or f"_c{at}" for at, name in enumerate(header))
    lowered = [name.lower() for name in names]
    twice = next((name for at, name in enumerate(names) if name.lower() in lowered[:at]), None)
    if twice is not None:
        raise Unreadable(f"{file}:1: two columns have the name {twice!r}.", "Give each its own name.")
    return names


def header_of(text: str, file: str, form: TextFormat) -> tuple[str, ...] | None:
    """The names that the first row of a file gives, None of a file without a row. Raises Unreadable."""
    first = next(rows(text.removeprefix(MARK), file, form), None)
    return None if first is None else names_of(first[1], file)


# The objects of a JSON file, read strictly, and what was seen in them: keys, types, values of no type.
#
# `dq sample` and the tasks of Spark both read with this module, so that they cannot come to two verdicts.

# So many values that are none of their type are shown.
MOST = 20
_BLANK = re.compile(r"[ \t\r\n]*")


class MalformedJson(ValueError):
    """What is no JSON of objects; the message says why, without the data. `line` counts from 1."""

    def __init__(self, reason: str, line: int = 0) -> None:
        super().__init__(reason)
        self.line = line


def _pairs(pairs: list[tuple[str, object]]) -> dict[str, object]:
    made = dict(pairs)
    if len(made) < len(pairs):
        raise MalformedJson("an object has one key twice, and readers differ in which value they take")
    return made


_DECODER = json.JSONDecoder(object_pairs_hook=_pairs, parse_float=Decimal)


def is_array(text: str) -> bool:
    """Whether the text, or its beginning, is an array of objects rather than one object a line."""
    return text.removeprefix(MARK).lstrip(" \t\r\n").startswith("[")


def objects(text: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Each object with its line: one a line, or those of one array. Raises MalformedJson."""
    text = text.removeprefix(MARK)
    if is_array(text):
        yield from _array(text)
        return
    for line, each in enumerate(text.split("\n"), 1):
        made = in_line(each, line)
        if made is not None:
            yield line, made


def in_line(text: str, line: int = 0) -> dict[str, Any] | None:
    """The object of a line, None of a blank one. Raises MalformedJson for all else, and what follows."""
    at = _after_blank(text, 0)
    if at == len(text):
        return None
    made, at = _value(text, at, line)
    if _after_blank(text, at) != len(text):
        raise MalformedJson("something follows the object on its line", line)
    return _object(made, line)


def _array(text: str) -> Iterator[tuple[int, dict[str, Any]]]:
    at, line = _after_blank(text, 0) + 1, 1
    begun, first = 0, True
    while True:
        at = _after_blank(text, at)
        line, begun = line + text.count("\n", begun, at), at
        if text[at : at + 1] == "]" and first:
            break
        made, at = _value(text, at, line)
        yield line, _object(made, line)
        first = False
        at = _after_blank(text, at)
        if text[at : at + 1] == ",":
            at += 1
        elif text[at : at + 1] == "]":
            break
        else:
            raise MalformedJson("the array of objects is not closed", line)
    if _after_blank(text, at + 1) != len(text):
        raise MalformedJson("something follows the array of objects", line)


def _after_blank(text: str, at: int) -> int:
    match = _BLANK.match(text, at)
    return match.end() if match else at


def _value(text: str, at: int, line: int) -> tuple[object, int]:
    try:
        return _DECODER.raw_decode(text, at)
    except MalformedJson as error:
        raise MalformedJson(str(error), line) from error
    except json.JSONDecodeError as error:
        raise MalformedJson(f"not JSON: {error.msg} at character {error.pos + 1}", line) from error
    except (ValueError, RecursionError) as error:
        raise MalformedJson("not JSON: nested too deep, or a number of thousands of digits", line) from error


def _object(made: object, line: int) -> dict[str, Any]:
    if not isinstance(made, dict):
        raise MalformedJson("not an object", line)
    return made


@dataclass(slots=True)
class KeyTree:
    """Which keys objects had: `fields` by their lower case, with the spelling; `inside` arrays and maps."""

    seen: int = 0
    fields: dict[str, tuple[str, KeyTree]] = field(default_factory=dict)
    inside: KeyTree | None = None

    def add(self, kind: DataType, value: object) -> None:
        """Notes the keys of a value, where the type has fields. Raises MalformedJson for two spellings."""
        if kind.name == "struct" and isinstance(value, dict):
            self.seen += 1
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
            raise MalformedJson("two spellings of one key, which differ in case alone, would be one column")
        return below

    def plain(self) -> list[Any]:
        """As JSON, for `of`."""
        fields = [[spelling, below.plain()] for spelling, below in self.fields.values()]
        return [self.seen, fields, None if self.inside is None else self.inside.plain()]

    @staticmethod
    def of(plain: list[Any]) -> KeyTree:
        """What `plain` gave."""
        seen, fields, inside = plain
        held = {spelling.lower(): (spelling, KeyTree.of(below)) for spelling, below in fields}
        return KeyTree(seen, held, None if inside is None else KeyTree.of(inside))

    def merge(self, other: KeyTree) -> None:
        """Adds what was seen elsewhere. Raises MalformedJson for two spellings of a key."""
        self.seen += other.seen
        for spelling, below in other.fields.values():
            self._field(spelling).merge(below)
        if other.inside is not None:
            self.inside = self.inside or KeyTree()
            self.inside.merge(other.inside)

    def type(self, kind: DataType, *, spelt: bool = False) -> DataType:
        """The type of what was seen: fields that no object had are left out, and others are ANYTHING.

        With `spelt`, names are as the files write them, else as the contract does.
        """
        inside = self.inside or KeyTree()
        if kind.name == "struct" and self.seen:
            own = {name.lower(): (name, part) for name, part in zip(kind.names, kind.parts, strict=True)}
            names, parts = [], []
            others = (lower for lower in self.fields if lower not in own)
            for lower in [*(lower for lower in own if lower in self.fields), *others]:
                spelling, below = self.fields[lower]
                name, part = own.get(lower, (spelling, ANYTHING))
                names.append(spelling if spelt else name)
                parts.append(below.type(part, spelt=spelt))
            return DataType("struct", (), tuple(parts), tuple(names))
        if kind.name in ("array", "map"):
            return DataType(kind.name, (), (*kind.parts[:-1], inside.type(kind.parts[-1], spelt=spelt)))
        return kind


@dataclass(slots=True)
class Unfit:
    """The values of a column that are none of its type: how many, and the first with their places."""

    count: int = 0
    first: list[tuple[object, str]] = field(default_factory=list)

    def add(self, place: object, text: str) -> None:
        self.count += 1
        if len(self.first) < MOST:
            self.first.append((place, text))


@dataclass(slots=True)
class SeenObjects:
    """What was seen in some objects, against the types of a contract's row."""

    rows: int = 0
    shape: KeyTree = field(default_factory=KeyTree)
    unfit: dict[str, Unfit] = field(default_factory=dict)

    def add(self, kind: DataType, made: dict[str, Any], place: object) -> None:
        """Notes one object. Raises MalformedJson."""
        self.rows += 1
        self.shape.add(kind, made)
        types = {name.lower(): (name, part) for name, part in zip(kind.names, kind.parts, strict=True)}
        for key, value in made.items():
            if key.lower() in types:
                name, part = types[key.lower()]
                try:
                    of_json(part, value)
                except NoValue:
                    self.unfit.setdefault(name, Unfit()).add(place, shown(value))

    def plain(self) -> dict[str, Any]:
        """As JSON, for `of`; places become texts."""
        unfit = {
            name: [bad.count, [[str(place), text] for place, text in bad.first]]
            for name, bad in self.unfit.items()
        }
        return {"rows": self.rows, "shape": self.shape.plain(), "unfit": unfit}

    @staticmethod
    def of(plain: dict[str, Any]) -> SeenObjects:
        """What `plain` gave."""
        unfit = {
            name: Unfit(count, [(place, text) for place, text in first])
            for name, (count, first) in plain["unfit"].items()
        }
        return SeenObjects(plain["rows"], KeyTree.of(plain["shape"]), unfit)

    def merge(self, other: SeenObjects) -> None:
        """Adds what was seen elsewhere. Raises MalformedJson."""
        self.rows += other.rows
        self.shape.merge(other.shape)
        for name, more in other.unfit.items():
            mine = self.unfit.setdefault(name, Unfit())
            mine.count += more.count
            mine.first = [*mine.first, *more.first][:MOST]
