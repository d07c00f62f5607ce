"""Insertion of keys and items into the text of a contract; everything else stays unchanged, byte for byte."""

from __future__ import annotations

import codecs
import re
import shlex
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

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

from dq.contracts.access.files import is_json
from dq.contracts.model import strip_source_maps
from dq.contracts.outcome import UsageError
from dq.contracts.yaml import source
from dq.contracts.yaml.portable import block, commented, flow

# Positions of mappings and lists in the text of a YAML document.

YamlPath = tuple[str | int, ...]
"""Keys and indexes from the top of a document to one of its values."""


@dataclass(slots=True)
class Span:
    """One value: `begin` and `end` are its offsets in the text, in characters.

    `column` is that of the first key, or of the dashes, of an indented collection, whose `end` is that of its
    last value. `anchor` is the name of its anchor, `alias` the anchor that an alias refers to.
    `has_explicit_key`: a mapping with a key after '?'.
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
    has_explicit_key: bool = False

    @property
    def last(self) -> Span:
        """The last value of an indented collection, at any depth."""
        inner = [*self.keys.values(), *self.items]
        if self.kind == "scalar" or self.flow or not inner:
            return self
        return max(inner, key=lambda span: span.end).last


def spans(text: str) -> Span:
    """Return the top value of the first document. The text must be YAML that `source.read` accepts."""
    parser = CParser(text)
    try:
        events = iter(parser.get_event, None)
        event = next(events)
        while not isinstance(event, MappingStartEvent):
            event = next(events)
        return _collection(text, event, events)
    finally:
        parser.dispose()


def find(top: Span, path: YamlPath) -> Span | None:
    """Return the value at the path, or None if there is none."""
    visited = list(along(top, path))
    return visited[-1] if len(visited) > len(path) else None


def along(top: Span, path: YamlPath) -> Iterator[Span]:
    """Yield the existing values on the path, from the top."""
    current: Span | None = top
    for step in (*path, None):
        if current is None:
            return
        yield current
        if isinstance(step, int):
            current = current.items[step] if step < len(current.items) else None
        elif step is not None:
            current = current.keys.get(step)


def is_shared(top: Span, path: YamlPath, aliases: Set[str]) -> bool:
    """Return True if a value on the path is shared by an alias, so that a change affects other places."""
    return any(span.alias or span.anchor in aliases for span in along(top, path))


def aliased_anchors(top: Span) -> Set[str]:
    """Return the anchors that have an alias."""
    anchors, pending = set(), [top]
    while pending:
        span = pending.pop()
        anchors.add(span.alias)
        pending += [*span.keys.values(), *span.items]
    return anchors - {""}


def _collection(text: str, start: Any, events: Iterator[Any]) -> Span:
    is_list = isinstance(start, SequenceStartEvent)
    begin = start.start_mark.index
    span = Span(begin, begin, start.start_mark.column, "list" if is_list else "map", bool(start.flow_style))
    span.anchor = start.anchor or ""
    key: str | None = None
    first = True
    for event in events:
        if isinstance(event, MappingEndEvent | SequenceEndEvent):
            mark = event.end_mark
            if span.flow and mark is not None:
                span.end = mark.index
            break
        assert not isinstance(event, DocumentEndEvent)
        value = _value(text, event, events)
        span.empty = False
        span.end = max(span.end, value.end)
        if is_list:
            span.items.append(value)
        elif key is None:
            if first and not span.flow:
                span.column = event.start_mark.column
                span.has_explicit_key = "?" in text[begin : value.begin]
            key = event.value if isinstance(event, ScalarEvent) else ""
            first = False
        else:
            span.keys[key] = value
            key = None
    return span


def _value(text: str, event: Any, events: Iterator[Any]) -> Span:
    if isinstance(event, MappingStartEvent | SequenceStartEvent):
        return _collection(text, event, events)
    begin, end = event.start_mark.index, event.end_mark.index
    span = Span(begin, end, event.start_mark.column)
    if isinstance(event, AliasEvent):
        span.alias = str(event.anchor)
    else:
        span.anchor = event.anchor or ""
    span.literal = isinstance(event, ScalarEvent) and event.style in ("|", ">")
    return span


# Maximum width of a line in flow style.
_SHORT = 90
# Maximum width of a nested value in flow style, which would need many short lines otherwise.
_LONG = 200


@dataclass(frozen=True, slots=True)
class Addition:
    """A key to add to the mapping at `path`, or with an empty key an item to append to the list there.

    Missing parts of the path are created: mappings, and a list for an item. `comment` is one line with the
    origin of the value.
    """

    path: YamlPath
    key: str
    value: object
    comment: str = ""


class InsertionNotSupported(UsageError):
    """Additions to this text are not supported."""


def can_insert(data: bytes, paths: Sequence[YamlPath]) -> list[bool]:
    """Return for each path whether an addition is possible.

    It is not possible in values shared by an alias, or if a key on the path has no value or a scalar.
    """
    top = spans(data.decode("utf-8-sig"))
    aliases = aliased_anchors(top)
    return [
        not is_shared(top, path, aliases)
        and not any(span.kind == "scalar" or span.has_explicit_key for span in along(top, path))
        for path in paths
    ]


def insert(data: bytes, file: str, additions: Sequence[Addition]) -> bytes:
    """Return the document with the additions, which must not exist yet.

    The result is verified: it has the old values and the additions. Raises InsertionNotSupported for JSON,
    which has no comments, and for YAML syntax that is not supported.
    """
    if not additions:
        return data
    if is_json(file):
        convert = f"dq export odcs {shlex.quote(file)} --output NEW.odcs.yaml"
        raise InsertionNotSupported(
            f"{file} is JSON, which has no comments.", f"Convert it to YAML first: {convert}"
        )
    byte_order_mark = codecs.BOM_UTF8 if data.startswith(codecs.BOM_UTF8) else b""
    text = data.decode("utf-8-sig")
    top = spans(text)
    end = "\r\n" if "\r\n" in text else "\n"
    after = len(text)
    pieces: list[str] = []
    # From last to first; at the same position, deeper additions come first.
    for begin, _, piece in sorted(_edits(text, top, additions), reverse=True):
        pieces += [text[begin:after], piece.replace("\n", end)]
        after = begin
    new = byte_order_mark + "".join([text[:after], *reversed(pieces)]).encode()
    _verify(data, new, file, additions)
    return new


def _edits(text: str, top: Span, additions: Sequence[Addition]) -> Iterator[tuple[int, int, str]]:
    """Yield the offset, the negated depth and the text of each insertion."""
    aliases = aliased_anchors(top)
    for path, group in _by_holder(top, additions).items():
        holder = find(top, path)
        assert holder is not None
        if is_shared(top, path, aliases) or holder.has_explicit_key:
            raise InsertionNotSupported("a part of it is shared by an anchor or alias.", "Write it out.")
        tree = _tree(path, group)
        place, piece = (_in_brackets if holder.flow else _below)(text, holder, tree)
        yield place, -len(path), piece


def _by_holder(top: Span, additions: Sequence[Addition]) -> dict[YamlPath, list[Addition]]:
    """Group the additions by the deepest existing collection on their path."""
    by_holder: dict[YamlPath, list[Addition]] = {}
    for addition in additions:
        length = len(addition.path)
        while not _is_collection(find(top, addition.path[:length])):
            length -= 1
        by_holder.setdefault(addition.path[:length], []).append(addition)
    return by_holder


def _is_collection(span: Span | None) -> bool:
    return span is not None and span.kind != "scalar"


@dataclass(slots=True)
class _NewNode:
    """A new key with its value, or with `children` a new collection."""

    key: str
    value: object
    comment: str
    children: list[_NewNode] | None = None


def _tree(path: YamlPath, group: Sequence[Addition]) -> list[_NewNode]:
    nodes: list[_NewNode] = []
    for addition in group:
        siblings = nodes
        for step in addition.path[len(path) :]:
            node = next((child for child in siblings if child.key == step), None)
            if node is None:
                node = _NewNode(str(step), None, "", [])
                siblings.append(node)
            assert node.children is not None
            siblings = node.children
        siblings.append(_NewNode(addition.key, addition.value, commented(addition.comment)))
    return nodes


def _below(text: str, holder: Span, tree: Sequence[_NewNode]) -> tuple[int, str]:
    """Return the offset and the lines after an indented collection."""
    lines = [line for node in tree for line in _lines(node, " " * holder.column)]
    last = holder.last
    place = last.end
    if last.literal:
        place = _without_blank_lines(text, last)
    else:
        match = re.compile(r"[^\r\n]*(\r\n|\r|\n)?").match(text, place)
        assert match is not None
        place = match.end()
    piece = "".join(line + "\n" for line in lines)
    if text[place - 1 : place] not in ("\n", "\r"):
        return place, "\n" + piece.rstrip("\n")
    return place, piece


def _without_blank_lines(text: str, literal: Span) -> int:
    """Return the end of a block scalar without the blank lines after it, which the scanner includes."""
    head = text[literal.begin : literal.end].partition("\n")[0]
    if "+" in head:
        return literal.end
    content = text[: literal.end].rstrip(" \r\n")
    match = re.compile(r" *(\r\n|\r|\n)?").match(text, len(content))
    return match.end() if match else literal.end


def _lines(node: _NewNode, indent: str) -> Iterator[str]:
    suffix = f"  # {node.comment}" if node.comment else ""
    if node.children is not None:
        yield f"{indent}{node.key}:"
        for inner in node.children:
            yield from _lines(inner, indent + "  ")
    elif not node.key:
        first, *following = _item(node.value, indent)
        yield first + suffix
        yield from following
    else:
        short = f"{indent}{node.key}: {flow(node.value)}"
        if len(short) <= _SHORT or not isinstance(node.value, list | dict):
            yield short + suffix
            return
        first, *following = block({node.key: node.value}, indent)
        yield first + suffix
        yield from following


def _item(value: object, indent: str) -> Iterator[str]:
    """Yield the lines of a list item: one per key of a mapping, with short values in flow style."""
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
    for key, item in value.items() if isinstance(value, dict) else ():
        short = f"{indent}{key}: {flow(item)}"
        if len(short) <= _LONG:
            yield short
        else:
            yield from block({key: item}, indent)
    if not isinstance(value, dict):
        yield from block(value, indent)


def _in_brackets(text: str, holder: Span, tree: Sequence[_NewNode]) -> tuple[int, str]:
    """Return the offset and the lines before the closing bracket of a flow collection."""
    indent = " " * (holder.column + 1)
    close = holder.end - 1
    inner = [*holder.keys.values(), *holder.items]
    after = text[max((span.end for span in inner), default=holder.begin + 1) : close]
    bare = re.sub(r"(^|\s)#[^\r\n]*", "", after)
    piece = "" if holder.empty or "," in bare else ","
    if piece and after.strip():
        # A comma after a comment would be part of it.
        piece = f"\n{indent},"
    lines = []
    for number, node in enumerate(tree, 1):
        comma = "," if number < len(tree) else ""
        suffix = f"  # {_comment(node)}" if _comment(node) else ""
        lines.append(f"{indent}{_short(node)}{comma}{suffix}")
    return close, piece + "\n" + "\n".join(lines) + f"\n{indent}"


def _comment(node: _NewNode) -> str:
    comments = [_comment(child) for child in node.children or ()]
    return "; ".join(text for text in (node.comment, *comments) if text)


def _short(node: _NewNode) -> str:
    if node.children is None:
        return f"{node.key}: {flow(node.value)}" if node.key else flow(node.value)
    items = [_short(child) for child in node.children]
    is_list = all(not child.key for child in node.children)
    joined = ", ".join(items)
    return f"{node.key}: [{joined}]" if is_list else f"{node.key}: {{{joined}}}"


def _verify(old: bytes, new: bytes, file: str, additions: Sequence[Addition]) -> None:
    before, _ = source.read(old, file)
    after, findings = source.read(new, file)
    expected = strip_source_maps(before)
    for addition in additions:
        _put(expected, addition)
    if after is None or findings or strip_source_maps(after) != expected:
        raise InsertionNotSupported(
            f"{file} is in a format that cannot be extended.", "Run 'dq fmt' on it first."
        )


def _put(top: object, addition: Addition) -> None:
    target: object = top
    for position, step in enumerate(addition.path):
        if isinstance(target, list):
            target = target[int(step)]
            continue
        assert isinstance(target, dict)
        if target.get(str(step)) is None:
            last = position == len(addition.path) - 1
            target[str(step)] = [] if last and not addition.key else {}
        target = target[str(step)]
    if isinstance(target, list):
        target.append(addition.value)
    elif isinstance(target, dict):
        target[addition.key] = addition.value
