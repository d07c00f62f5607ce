"""Texts that every YAML reader takes for the same, and keys and items added to a contract."""

from __future__ import annotations

import codecs
import datetime as dt
import math
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any, TypeGuard

from yaml.cyaml import CParser  # type: ignore[attr-defined]  # the stubs leave it out
from yaml.events import (
    AliasEvent,
    DocumentEndEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)

from dq.contracts.model import plain, with_point
from dq.contracts.outcome import UsageError
from dq.contracts.yaml import source
from dq.contracts.yaml.source import is_json

# Texts as YAML that every reader takes for the same text.

_ESCAPES = {'"': '\\"', "\\": "\\\\", "\r": "\\x0d"}
_PLAIN = re.compile(r"[A-Za-z][\w./@ -]*")


def quoted(text: str) -> str:
    """The text as a YAML value, in quotes where it could be read as something else."""
    safe = _PLAIN.fullmatch(text) and text == text.strip()
    if safe and source.value(text, None, True) == text:
        return text
    return '"' + "".join(_escaped(sign) for sign in text) + '"'


def _escaped(sign: str) -> str:
    if sign in _ESCAPES:
        return _ESCAPES[sign]
    if sign.isprintable():
        return sign
    if "\ud800" <= sign < "\ue000":
        # Half a sign, as JSON can hold it; YAML has no word for that.
        return "\ufffd"
    return sign.encode("unicode_escape").decode("ascii")


def block(value: object, indent: str) -> Iterator[str]:
    """The lines of a mapping or list in block style, its texts as `quoted` writes them.

    What YAML has no plain word for is written as its text. An empty mapping or list is one line.
    """
    if isinstance(value, Mapping) and value:
        for key, inner in value.items():
            yield from _entry(f"{indent}{quoted(str(key))}:", inner, indent + "  ")
    elif _is_list(value) and value:
        for inner in value:
            first, *rest = block(inner, indent + "  ")
            yield f"{indent}- {first.lstrip(' ')}"
            yield from rest
    else:
        yield indent + _scalar(value)


def _entry(head: str, value: object, indent: str) -> Iterator[str]:
    if value and (isinstance(value, Mapping) or _is_list(value)):
        yield head
        yield from block(value, indent)
    else:
        yield f"{head} {_scalar(value)}"


def flow(value: object) -> str:
    """The value in one line, mappings and lists in brackets."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{quoted(str(key))}: {flow(inner)}" for key, inner in value.items()) + "}"
    if _is_list(value):
        return "[" + ", ".join(flow(inner) for inner in value) + "]"
    return _scalar(value)


def _is_list(value: object) -> TypeGuard[Sequence[object]]:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def _scalar(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float() if math.isfinite(value):
            return with_point(repr(value))
        case dt.date():
            return value.isoformat()
        case Mapping():
            return "{}"
    return "[]" if _is_list(value) and not value else quoted(str(value))


def commented(text: str) -> str:
    """The text as one line of a comment, without its sign: signs that steer a terminal are spelled out."""
    return "".join(sign if sign.isprintable() else " " for sign in " ".join(text.split()))


# Keys and items are added to the text of a contract; everything else of it stays, byte for byte.

# Where in its text each mapping and list of a YAML document begins and ends.

Way = tuple[str | int, ...]
"""The keys and positions from the top of a document to one of its values."""


@dataclass(slots=True)
class Span:
    """One value: `begin` and `end` count the characters of the text before it and up to its end.

    `column` is that of the first key or of the dashes of an indented collection. `end` of one is that of
    the last thing in it. `anchor` is its name, `alias` the name that stands instead of it. `odd` is a
    mapping with a key after '?'.
    """

    begin: int
    end: int
    column: int = 0
    kind: str = "scalar"
    flow: bool = False
    literal: bool = False
    anchor: str = ""
    alias: str = ""
    keys: dict[str, Span] = field(default_factory=dict)
    items: list[Span] = field(default_factory=list)
    empty: bool = True
    odd: bool = False

    @property
    def last(self) -> Span:
        """What stands last inside of an indented collection, at any depth."""
        inner = [*self.keys.values(), *self.items]
        if self.kind == "scalar" or self.flow or not inner:
            return self
        return max(inner, key=lambda one: one.end).last


def spans(text: str) -> Span:
    """The top value of the first document. The text must be YAML that `source.read` takes."""
    parser = CParser(text)
    try:
        events = iter(parser.get_event, None)
        event = next(events)
        while not isinstance(event, MappingStartEvent):
            event = next(events)
        return _collection(text, event, events)
    finally:
        parser.dispose()


def at(top: Span, way: Way) -> Span | None:
    """What stands there, None where nothing does."""
    found = list(along(top, way))
    return found[-1] if len(found) > len(way) else None


def along(top: Span, way: Way) -> Iterator[Span]:
    """What is there on the way, the top first."""
    here: Span | None = top
    for step in (*way, None):
        if here is None:
            return
        yield here
        if isinstance(step, int):
            here = here.items[step] if step < len(here.items) else None
        elif step is not None:
            here = here.keys.get(step)


def shared(top: Span, way: Way, aliases: Set[str]) -> bool:
    """Whether something on the way stands for several places, so that a change there changes others."""
    return any(one.alias or one.anchor in aliases for one in along(top, way))


def aliased(top: Span) -> Set[str]:
    """The anchors that an alias leads to."""
    found, waiting = set(), [top]
    while waiting:
        one = waiting.pop()
        found.add(one.alias)
        waiting += [*one.keys.values(), *one.items]
    return found - {""}


def _collection(text: str, start: Any, events: Iterator[Any]) -> Span:
    listed = isinstance(start, SequenceStartEvent)
    begin = start.start_mark.index
    made = Span(begin, begin, start.start_mark.column, "list" if listed else "map", bool(start.flow_style))
    made.anchor = start.anchor or ""
    key: str | None = None
    first = True
    for event in events:
        if isinstance(event, MappingEndEvent | SequenceEndEvent):
            mark = event.end_mark
            if made.flow and mark is not None:
                made.end = mark.index
            break
        assert not isinstance(event, DocumentEndEvent)
        value = _value(text, event, events)
        made.empty = False
        made.end = max(made.end, value.end)
        if listed:
            made.items.append(value)
        elif key is None:
            if first and not made.flow:
                made.column = event.start_mark.column
                made.odd = "?" in text[begin : value.begin]
            key = event.value if isinstance(event, ScalarEvent) else ""
            first = False
        else:
            made.keys[key] = value
            key = None
    return made


def _value(text: str, event: Any, events: Iterator[Any]) -> Span:
    if isinstance(event, MappingStartEvent | SequenceStartEvent):
        return _collection(text, event, events)
    begin, end = event.start_mark.index, event.end_mark.index
    made = Span(begin, end, event.start_mark.column)
    if isinstance(event, AliasEvent):
        made.alias = str(event.anchor)
    else:
        made.anchor = event.anchor or ""
    made.literal = isinstance(event, ScalarEvent) and event.style in ("|", ">")
    return made


# So much is a line of a list in brackets at most.
_SHORT = 90
# So much is one that would otherwise fill a screen with a word a line.
_LONG = 200


@dataclass(frozen=True, slots=True)
class Addition:
    """A key of the mapping there, or with an empty one an item at the end of the list there.

    What is on the way and is not there is made: mappings, and a list for an item. `comment` says on what it
    stands, in one line.
    """

    way: Way
    key: str
    value: object
    comment: str = ""


class NoPlace(UsageError):
    """The text is written in a way that takes no addition."""


def reaches(data: bytes, ways: Sequence[Way]) -> list[bool]:
    """Of each place whether something can be added.

    Nothing can where an alias or anchor stands for several places, or a key has no value or another one.
    """
    top = spans(data.decode("utf-8-sig"))
    aliases = aliased(top)
    return [
        not shared(top, way, aliases) and not any(one.kind == "scalar" or one.odd for one in along(top, way))
        for way in ways
    ]


def insert(data: bytes, file: str, additions: Sequence[Addition]) -> bytes:
    """The document with the additions, which must not be there yet.

    Raises NoPlace where one cannot be written: a JSON document has no comments, and some YAML is written in
    a way that is not taken apart. Whatever comes out reads as what went in and the additions, or is not
    given.
    """
    if not additions:
        return data
    if is_json(file):
        convert = f"dq export odcs {shlex.quote(file)} --output NEW.odcs.yaml"
        raise NoPlace(f"{file} is JSON, which has no comments.", f"Convert it to YAML first: {convert}")
    mark = codecs.BOM_UTF8 if data.startswith(codecs.BOM_UTF8) else b""
    text = data.decode("utf-8-sig")
    top = spans(text)
    end = "\r\n" if "\r\n" in text else "\n"
    after = len(text)
    pieces: list[str] = []
    # From the last to the first; of several at the end of the same line, what lies deeper stands first.
    for begin, _, piece in sorted(_edits(text, top, additions), reverse=True):
        pieces += [text[begin:after], piece.replace("\n", end)]
        after = begin
    new = mark + "".join([text[:after], *reversed(pieces)]).encode()
    _proven(data, new, file, additions)
    return new


def _edits(text: str, top: Span, additions: Sequence[Addition]) -> Iterator[tuple[int, int, str]]:
    """The places where something is put in, how far out that is, and the pieces of text."""
    aliases = aliased(top)
    for way, group in _by_holder(top, additions).items():
        holder = at(top, way)
        assert holder is not None
        if shared(top, way, aliases) or holder.odd:
            raise NoPlace("a part of it stands for several places, by an anchor or alias.", "Write it out.")
        tree = _tree(way, group)
        place, piece = (_in_brackets if holder.flow else _below)(text, holder, tree)
        yield place, -len(way), piece


def _by_holder(top: Span, additions: Sequence[Addition]) -> dict[Way, list[Addition]]:
    """The additions by the deepest collection on their way that is there."""
    found: dict[Way, list[Addition]] = {}
    for one in additions:
        length = len(one.way)
        while not _holds(at(top, one.way[:length])):
            length -= 1
        found.setdefault(one.way[:length], []).append(one)
    return found


def _holds(here: Span | None) -> bool:
    return here is not None and here.kind != "scalar"


@dataclass(slots=True)
class _Made:
    """What is to be written: a key with its value, or with `inside` a collection that is made."""

    key: str
    value: object
    comment: str
    inside: list[_Made] | None = None


def _tree(way: Way, group: Sequence[Addition]) -> list[_Made]:
    made: list[_Made] = []
    for one in group:
        here = made
        for step in one.way[len(way) :]:
            known = next((each for each in here if each.key == step), None)
            if known is None:
                known = _Made(str(step), None, "", [])
                here.append(known)
            assert known.inside is not None
            here = known.inside
        here.append(_Made(one.key, one.value, commented(one.comment)))
    return made


def _below(text: str, holder: Span, tree: Sequence[_Made]) -> tuple[int, str]:
    """Lines after the last one of an indented collection."""
    lines = [line for one in tree for line in _lines(one, " " * holder.column)]
    last = holder.last
    place = last.end
    if last.literal:
        place = _without_blank_lines(text, last)
    else:
        found = re.compile(r"[^\r\n]*(\r\n|\r|\n)?").match(text, place)
        assert found is not None
        place = found.end()
    piece = "".join(line + "\n" for line in lines)
    if text[place - 1 : place] not in ("\n", "\r"):
        return place, "\n" + piece.rstrip("\n")
    return place, piece


def _without_blank_lines(text: str, literal: Span) -> int:
    """The end of a text after | or >, to which the scanner adds the blank lines that follow it."""
    head = text[literal.begin : literal.end].partition("\n")[0]
    if "+" in head:
        return literal.end
    content = text[: literal.end].rstrip(" \r\n")
    found = re.compile(r" *(\r\n|\r|\n)?").match(text, len(content))
    return found.end() if found else literal.end


def _lines(one: _Made, indent: str) -> Iterator[str]:
    beside = f"  # {one.comment}" if one.comment else ""
    if one.inside is not None:
        yield f"{indent}{one.key}:"
        for inner in one.inside:
            yield from _lines(inner, indent + "  ")
    elif not one.key:
        first, *rest = _item(one.value, indent)
        yield first + beside
        yield from rest
    else:
        short = f"{indent}{one.key}: {flow(one.value)}"
        if len(short) <= _SHORT or not isinstance(one.value, list | dict):
            yield short + beside
            return
        first, *rest = block({one.key: one.value}, indent)
        yield first + beside
        yield from rest


def _item(value: object, indent: str) -> Iterator[str]:
    """A list's item: of a mapping each key in a line, what is inside in brackets where it is short."""
    if not isinstance(value, dict) or not value:
        yield f"{indent}- {flow(value)}"
        return
    lead = f"{indent}- "
    for key, inner in value.items():
        short = f"{lead}{key}: {flow(inner)}"
        if len(short) <= _SHORT or not isinstance(inner, list | dict):
            yield short
        else:
            yield f"{lead}{key}:"
            yield from _inner(inner, f"{indent}    ")
        lead = f"{indent}  "


def _inner(value: object, indent: str) -> Iterator[str]:
    for key, one in value.items() if isinstance(value, dict) else ():
        short = f"{indent}{key}: {flow(one)}"
        if len(short) <= _LONG:
            yield short
        else:
            yield from block({key: one}, indent)
    if not isinstance(value, dict):
        yield from block(value, indent)


def _in_brackets(text: str, holder: Span, tree: Sequence[_Made]) -> tuple[int, str]:
    """Lines before the closing bracket of a collection in brackets."""
    indent = " " * (holder.column + 1)
    close = holder.end - 1
    inner = [*holder.keys.values(), *holder.items]
    after = text[max((one.end for one in inner), default=holder.begin + 1) : close]
    bare = re.sub(r"(^|\s)#[^\r\n]*", "", after)
    piece = "" if holder.empty or "," in bare else ","
    if piece and after.strip():
        # A comment stands between, behind which a comma would be part of it.
        piece = f"\n{indent},"
    lines = []
    for number, one in enumerate(tree, 1):
        comma = "," if number < len(tree) else ""
        beside = f"  # {_comment(one)}" if _comment(one) else ""
        lines.append(f"{indent}{_short(one)}{comma}{beside}")
    return close, piece + "\n" + "\n".join(lines) + f"\n{indent}"


def _comment(one: _Made) -> str:
    told = [_comment(each) for each in one.inside or ()]
    return "; ".join(text for text in (one.comment, *told) if text)


def _short(one: _Made) -> str:
    if one.inside is None:
        return f"{one.key}: {flow(one.value)}" if one.key else flow(one.value)
    items = [_short(each) for each in one.inside]
    listed = all(not each.key for each in one.inside)
    inside = ", ".join(items)
    return f"{one.key}: [{inside}]" if listed else f"{one.key}: {{{inside}}}"


def _proven(old: bytes, new: bytes, file: str, additions: Sequence[Addition]) -> None:
    before, _ = source.read(old, file)
    after, findings = source.read(new, file)
    wanted = plain(before)
    for one in additions:
        _put(wanted, one)
    if after is None or findings or plain(after) != wanted:
        raise NoPlace(f"{file} is written in a way that takes no addition.", "Run 'dq fmt' on it first.")


def _put(top: object, one: Addition) -> None:
    here: object = top
    for position, step in enumerate(one.way):
        if isinstance(here, list):
            here = here[int(step)]
            continue
        assert isinstance(here, dict)
        if here.get(str(step)) is None:
            last = position == len(one.way) - 1
            here[str(step)] = [] if last and not one.key else {}
        here = here[str(step)]
    if isinstance(here, list):
        here.append(one.value)
    elif isinstance(here, dict):
        here[one.key] = one.value
