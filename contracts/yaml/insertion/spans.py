"""Where in its text each mapping and list of a YAML document begins and ends."""

from __future__ import annotations

from collections.abc import Iterator, Set
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
