"""Text files as a contract describes them: rows of CSV and objects of JSON, without an engine."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from dq.contracts.access.data_location import RFC_4180, TextFormat
from dq.contracts.shared.outcome import Unreadable
from dq.contracts.types import DataType
from dq.dataquality.text.values import ANYTHING, NoValue, of_json, shown

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
