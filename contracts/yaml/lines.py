"""Reads the common part of YAML line by line: `key: value` and `- item` with values on one line.

Contracts repeat their lines, so a line is parsed once and then looked up, which takes a third of the time of
PyYAML's parser. Everything else, and every mistake, is left to `builder.Builder`. For the texts that this
module reads, both return the same values and locations.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, NamedTuple

from dq.contracts.model import SOURCE_MAP_KEY, Position, SourceMap
from dq.contracts.yaml.scalars import UnusableScalar, Value, undisputed_value

MAX_CHARACTERS = 100_000
"""Limit of a text; together with the next two, it is below the builder's limits of values and depth."""
_MAX_LINE = 500
_MAX_BLOCKS = 50
_MAX_NESTED = 8

# Indentation, "- ", key, and the value or item.
_LINE = re.compile(r"( *)(- +)?(?:([A-Za-z_][A-Za-z0-9_.-]*):(?: +|$))?(.*)")
# Beginnings of values without quotes that have no other meaning.
_PLAIN = re.compile(r"-?[A-Za-z0-9]|[_./$(^~+]")
# Parts of `[a, b]` and `{key: value}`.
_OPENING = re.compile(r" *([\[{])")
_KEY = re.compile(r" *([A-Za-z_][A-Za-z0-9_.-]*): +")
_SCALAR = re.compile(r""" *('[^']*'|"[^"\\]*"|(?:[^][{},:#?'"\\]|:(?=[A-Za-z0-9/]))+)""")
_NEXT = re.compile(r" *([],}])")


class _Part(NamedTuple):
    """A value with its column, from 1. `raw` is its text if YAML converts it."""

    value: Value | _List | _Mapping
    column: int
    raw: str | None = None


class _List(NamedTuple):
    """`[a, b]`"""

    items: tuple[_Part, ...]


class _Mapping(NamedTuple):
    """`{key: value}`, each with the column of the key."""

    items: tuple[tuple[str, int, _Part], ...]


class _Line(NamedTuple):
    """A line with a key or an item, or both.

    `indent` is the number of characters before the key or value, and `dash` that before "- ", or -1 without
    it. `part` is None for a key without a value on its line. `end` is the column after the colon.
    """

    indent: int
    dash: int
    key: str
    part: _Part | None
    end: int


class _Unusual(Exception):
    """A text that is left to the builder."""


def read(text: str, file: str) -> dict[str, Any] | None:
    """Return the top mapping of a document like `builder.Builder`, or None if that has to read the text."""
    if len(text) > MAX_CHARACTERS:
        return None
    try:
        return _Document(file).read(text[3:] if text.startswith("---\n") else text)
    except _Unusual:
        return None


class _Block:
    """A mapping or list over several lines. `place` is None for a list; `spots` are those of its items."""

    __slots__ = ("indent", "path", "place", "spots", "target")

    def __init__(self, indent: int, path: str, target: Any, place: SourceMap | None) -> None:
        self.indent = indent
        self.path = path
        self.target = target
        self.place = place
        self.spots: list[Position] = []


class _Document:
    """A document that is being read: its blocks that are not yet complete, from the outermost."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._blocks: list[_Block] = []

    def read(self, text: str) -> dict[str, Any]:
        """Return the top mapping. Raises _Unusual."""
        blocks = self._blocks
        top = self._mapping(0, "", (1, 1))
        # A key without a value on its line, and where an empty value would be.
        open_key, open_spot = "", (0, 0)
        for number, content in enumerate(text.split("\n"), 1):
            line = _line(content)
            if line is None:
                continue
            indent, dash, key, part, end = line
            level = indent if dash < 0 else dash
            block = blocks[-1]
            if open_key:
                # The items of a list may have the same indentation as its key.
                if level > block.indent or dash == block.indent:
                    block = self._open(block, open_key, level, dash >= 0, (number, level + 1))
                else:
                    _set(block, open_key, None, open_spot)
                open_key = ""
            while level < block.indent or (level == block.indent and dash < 0 and block.place is None):
                blocks.pop()
                block = blocks[-1]
            if level != block.indent or (dash >= 0) is not (block.place is None):
                raise _Unusual
            if dash >= 0:
                path = f"{block.path}[{len(block.target)}]"
                if not key:
                    assert part is not None
                    block.target.append(self._value(part, number, path))
                    block.spots.append((number, part.column))
                    continue
                block.spots.append((number, indent + 1))
                item = self._mapping(indent, path, (number, indent + 1))
                block.target.append(item.target)
                block = item
            place = block.place
            assert place is not None
            if key in place.keys:
                raise _Unusual
            place.keys[key] = (number, indent + 1)
            if part is None:
                open_key, open_spot = key, (number, end)
            else:
                self._assign(block.target, place, key, part, number)
        if open_key:
            _set(blocks[-1], open_key, None, open_spot)
        assert top.place is not None
        top.place.position = next(iter(top.place.keys.values()), (0, 0))
        if not top.place.keys:
            raise _Unusual
        mapping: dict[str, Any] = top.target
        return mapping

    def _open(self, parent: _Block, key: str, indent: int, is_list: bool, spot: Position) -> _Block:
        """Return the block of a key whose value begins in this line."""
        path = f"{parent.path}.{key}" if parent.path else key
        block = self._push(_Block(indent, path, [], None)) if is_list else self._mapping(indent, path, spot)
        _set(parent, key, block.target, spot)
        if is_list:
            assert parent.place is not None
            parent.place.items[key] = block.spots
        return block

    def _mapping(self, indent: int, path: str, spot: Position) -> _Block:
        place = SourceMap(self._file, path, spot)
        return self._push(_Block(indent, path, {SOURCE_MAP_KEY: place}, place))

    def _push(self, block: _Block) -> _Block:
        if len(self._blocks) == _MAX_BLOCKS:
            raise _Unusual
        self._blocks.append(block)
        return block

    def _assign(self, target: dict[str, Any], place: SourceMap, key: str, part: _Part, number: int) -> None:
        """Set a key to a value in this line; the location of the key is set already."""
        value, column, raw = part
        place.values[key] = (number, column)
        if value.__class__ is _List or value.__class__ is _Mapping:
            target[key] = self._value(part, number, place.child_path(key))
            if isinstance(value, _List):
                place.items[key] = [(number, item.column) for item in value.items]
        else:
            target[key] = value
            if raw is not None:
                place.raw[key] = raw

    def _value(self, part: _Part, number: int, path: str) -> Any:
        """Return the value of a part of this line, with the source maps of its mappings."""
        value = part.value
        if isinstance(value, _List):
            return [self._value(item, number, f"{path}[{index}]") for index, item in enumerate(value.items)]
        if isinstance(value, _Mapping):
            place = SourceMap(self._file, path, (number, part.column))
            target: dict[str, Any] = {SOURCE_MAP_KEY: place}
            for key, column, inner in value.items:
                place.keys[key] = (number, column)
                self._assign(target, place, key, inner, number)
            return target
        return value


def _set(block: _Block, key: str, value: Any, spot: Position) -> None:
    assert block.place is not None
    block.place.values[key] = spot
    block.target[key] = value


# Lines, without their context.


@lru_cache(8192)
def _line(text: str) -> _Line | None:
    """Return the parts of a line, or None for a blank line or a comment. Raises _Unusual."""
    # Without control characters, tabs, line breaks of YAML 1.1, and all that YAML does not allow.
    if len(text) > _MAX_LINE or not text.isprintable():
        raise _Unusual
    match = _LINE.fullmatch(text)
    assert match is not None
    spaces, dash, key, tail = match.groups("")
    begin = match.start(4)
    if not dash and not key:
        if tail and tail[0] != "#":
            raise _Unusual
        return None
    if key:
        _require_text(key)
    part = None if not tail or tail[0] == "#" else _part(text, begin)
    if part is None and not key:
        raise _Unusual
    indent = match.start(3) if key else begin
    return _Line(indent, len(spaces) if dash else -1, key, part, match.end(3) + 2)


@lru_cache(1024)
def _require_text(key: str) -> None:
    """Raise _Unusual for a key like `on`, which is not text."""
    if undisputed_value(key) is not key:
        raise _Unusual


def _part(text: str, begin: int) -> _Part:
    """Return the value of a line from `begin` on, without a comment after it. Raises _Unusual."""
    if text[begin] in "[{":
        part, end = _nested(text, begin, 0)
    elif text[begin] in "'\"":
        part, end = _item(text, begin, 0)
    else:
        comment = text.find(" #", begin)
        plain = (text if comment < 0 else text[:comment])[begin:].rstrip(" ")
        if ": " in plain or plain[-1] == ":":
            raise _Unusual
        return _plain(plain, begin)
    tail = text[end:].lstrip(" ")
    if tail and (tail[0] != "#" or text[end] != " "):
        raise _Unusual
    return part


def _plain(text: str, begin: int) -> _Part:
    """Return a value without quotes."""
    if not _PLAIN.match(text):
        raise _Unusual
    try:
        parsed = undisputed_value(text)
    except UnusableScalar as error:
        raise _Unusual from error
    is_raw = parsed is not text and not (parsed is None or text in ("true", "false"))
    return _Part(parsed, begin + 1, text if is_raw else None)


def _nested(text: str, begin: int, depth: int) -> tuple[_Part, int]:
    """Return the list or mapping in brackets that begins there, and where it ends."""
    if depth == _MAX_NESTED:
        raise _Unusual
    is_list = text[begin] == "["
    closing = "]" if is_list else "}"
    parts: list[_Part] = []
    columns: dict[str, int] = {}
    follows = _NEXT.match(text, begin + 1)
    if follows is None or follows[1] != closing:
        at = begin + 1
        while True:
            if not is_list:
                key = _KEY.match(text, at)
                if key is None or key[1] in columns:
                    raise _Unusual
                _require_text(key[1])
                columns[key[1]] = key.start(1) + 1
                at = key.end()
            part, at = _item(text, at, depth)
            parts.append(part)
            follows = _NEXT.match(text, at)
            if follows is None or (follows[1] != "," and follows[1] != closing):
                raise _Unusual
            at = follows.end()
            if follows[1] == closing:
                break
    items = tuple(parts)
    keys = zip(columns, columns.values(), items, strict=True)
    return _Part(_List(items) if is_list else _Mapping(tuple(keys)), begin + 1), follows.end()


def _item(text: str, begin: int, depth: int) -> tuple[_Part, int]:
    """Return the item or value in brackets that begins there, and where it ends."""
    opening = _OPENING.match(text, begin)
    if opening is not None:
        return _nested(text, opening.start(1), depth + 1)
    match = _SCALAR.match(text, begin)
    if match is None:
        raise _Unusual
    return _scalar(match), match.end()


def _scalar(match: re.Match[str]) -> _Part:
    word, begin = match[1].rstrip(" "), match.start(1)
    return _Part(word[1:-1], begin + 1) if word[:1] in ("'", '"') else _plain(word, begin)
