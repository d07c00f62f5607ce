"""YAML events to plain values with their places, in one pass, at bounded cost.

Events and not nodes: the C parser gives them from a state machine without recursion, so depth and alias
expansion can be bounded while they come, and each value is touched once.
"""

from __future__ import annotations

from typing import Any

from yaml.cyaml import CParser  # type: ignore[attr-defined]  # the stubs leave it out
from yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
    StreamEndEvent,
)

from dq.contracts.shared.outcome import Finding, Location
from dq.contracts.shared.source_map import MAX_DEPTH, PLACE, Place, Spot
from dq.contracts.type_errors import read_as
from dq.contracts.yaml.frame import Frame, Refusal, is_empty, read_number, twin
from dq.contracts.yaml.scalar import UnusableScalar, Value, other_number, value

MAX_EXPANSION = 10_000
MAX_EVENTS = 200_000
MAX_TWINS = 1_000
MERGE = "<<"
# What stands for an unquoted `<<`; no key of a file holds NUL.
_MERGING = "\0<<"


# Plain words that YAML reads as text: contracts say the same few thousand again and again.
_WORDS: set[str] = set()


def _remember(word: str) -> None:
    if len(word) < 64 and len(_WORDS) < 8_192 and word != MERGE:
        _WORDS.add(word)


class Builder:
    """Builds the value of the first document, collecting twin keys; raises Refusal for the rest."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.twins: list[Finding] = []
        self.odd_numbers: list[Finding] = []
        self._stack: list[Frame] = []
        self._anchors: dict[str, tuple[Any, int]] = {}
        self._open: set[str] = set()
        self._expansion = 0
        self._root: Any = None

    def build(self, text: str) -> Any:
        next_event = CParser(text).get_event
        documents = events = 0
        while True:
            event: Any = next_event()
            events += 1
            if events > MAX_EVENTS:
                message = f"the file has more than {MAX_EVENTS // 2:,} keys and values."
                raise Refusal(message, "Split it into one contract per data product.", _spot(event))
            kind = event.__class__
            if kind is ScalarEvent:
                if event.value in _WORDS and event.implicit[0] and event.anchor is None and self._stack:
                    self._word(event, self._stack[-1])
                else:
                    self._scalar(event)
            elif kind is MappingStartEvent or kind is SequenceStartEvent:
                self._start(event, kind is MappingStartEvent)
            elif kind is MappingEndEvent or kind is SequenceEndEvent:
                self._end()
            elif kind is AliasEvent:
                self._alias(event)
            elif kind is DocumentStartEvent:
                documents += 1
                # A separator at the end begins a document of nothing.
                if documents > 1 and not is_empty(next_event()):
                    raise Refusal(
                        "the file holds several documents.", "Keep one contract per file.", _spot(event)
                    )
            elif kind is StreamEndEvent:
                return self._root

    def _word(self, event: Any, top: Frame) -> None:
        """A plain word that is known to be text, as a key or as a value: two of three scalars."""
        mark = event.start_mark
        spot = (mark.line + 1, mark.column + 1)
        word, place, key = event.value, top.place, top.key
        if place is None:
            top.size += 1
            top.target.append(word)
            top.spots.append(spot)
        elif key is None:
            if word in place.keys:
                self._key(top, word, None, True, spot)
            else:
                top.key = word
                top.key_spot = spot
        elif key == _MERGING:
            self._add(word, spot, None)
        else:
            top.key = None
            top.size += 1
            place.keys[key] = top.key_spot
            place.values[key] = spot
            top.target[key] = word

    def _scalar(self, event: Any) -> None:
        mark = event.start_mark
        spot = (mark.line + 1, mark.column + 1)
        text, tag, plain = event.value, event.tag, event.implicit[0]
        if "\0" in text:
            # Only an escape gives it; the keys that are ours begin with it, and no database keeps it.
            raise Refusal("a text holds a NUL character.", "Remove the escape.", spot)
        top = self._stack[-1] if self._stack else None
        if top is not None and top.place is not None and top.key is None:
            self._key(top, text, tag, plain, spot)
            return
        try:
            made = value(text, tag, plain)
        except UnusableScalar as error:
            mend = "Write the plain value, without a tag." if tag else f"Quote it: {_quoted(text)}."
            raise Refusal(f"{error}.", mend, spot) from error
        if plain and not tag:
            other = other_number(text, made)
            if other is not made and other != made:
                made = self._odd_number(text, spot, made, other)
            elif made is text:
                _remember(event.value)
        # A long text weighs as much as many values: aliases of it must not multiply megabytes.
        weight = len(text) // 100
        if event.anchor:
            self._anchors[event.anchor] = (made, 1 + weight)
        if weight and top is not None:
            top.size += weight
        raw = text if plain and made is not text and not (made is None or text in ("true", "false")) else None
        self._add(made, spot, raw)

    def _odd_number(self, text: str, spot: Spot, made: Value, other: Value) -> Value:
        if not self._stack:
            return made
        number, finding = read_number(
            text, self._stack[-1].next_path(), Location(self.file, *spot), made, other
        )
        if finding is not None and len(self.odd_numbers) < MAX_TWINS:
            self.odd_numbers.append(finding)
        return number

    def _key(self, top: Frame, text: str, tag: str | None, plain: bool, spot: Spot) -> None:
        assert top.place is not None
        top.key_spot = spot
        if text == MERGE and plain:
            top.key = _MERGING
            return
        made: object = text
        if plain or tag:
            try:
                made = value(text, tag, plain)
            except UnusableScalar:
                made = None
        if made.__class__ is not str:
            raise Refusal(
                f"the key {text!r} is not read as text but as {read_as(made)}.",
                f"Quote it: {_quoted(text)}.",
                spot,
            )
        if plain:
            _remember(text)
        if text in top.place.keys:
            if len(self.twins) == MAX_TWINS:
                raise Refusal(f"more than {MAX_TWINS:,} keys stand twice.", "Keep one of each.", spot)
            self.twins.append(twin(text, top.path, Location(self.file, *spot), top.place.keys[text]))
        top.key = text

    def _start(self, event: Any, mapping: bool) -> None:
        spot = _spot(event)
        if len(self._stack) >= MAX_DEPTH:
            raise Refusal(f"values are nested deeper than {MAX_DEPTH}.", "Flatten the structure.", spot)
        tag = event.tag
        if tag and tag not in ("!", "tag:yaml.org,2002:map", "tag:yaml.org,2002:seq"):
            name = tag.replace("tag:yaml.org,2002:", "!!")
            raise Refusal(f"tag {name!r} is not allowed.", "Write plain YAML values.", spot)
        path = ""
        if self._stack:
            top = self._stack[-1]
            if top.place is not None and top.key is None:
                if mapping and getattr(event, "flow_style", False):
                    # `{{title}}` is to YAML a mapping whose key is a mapping.
                    said = "this is a template that is not filled yet: {{…}}."
                    raise Refusal(said, "Fill it in, or put quotes around it.", spot)
                raise Refusal("a key is not text.", "Write the key as a word.", spot)
            path = top.next_path()
        if event.anchor:
            self._open.add(event.anchor)
        if mapping:
            place = Place(self.file, path, spot)
            self._stack.append(Frame({PLACE: place}, path, place, event.anchor))
        else:
            self._stack.append(Frame([], path, None, event.anchor))
        # Where a collection was begun is where its value stands in the parent.
        self._stack[-1].key_spot = spot

    def _end(self) -> None:
        done = self._stack.pop()
        begun = done.key_spot if done.place is None else done.place.spot
        if done.merges:
            _merge(done)
        if done.anchor:
            self._open.discard(done.anchor)
            self._anchors[done.anchor] = (done.target, done.size)
        if self._stack:
            self._stack[-1].size += done.size - 1
        self._add(done.target, begun, None, done.spots if done.place is None else None)

    def _alias(self, event: Any) -> None:
        spot = _spot(event)
        if event.anchor in self._open:
            raise Refusal(f"alias '*{event.anchor}' contains itself.", "Write the value out.", spot)
        if event.anchor not in self._anchors:
            raise Refusal(
                f"alias '*{event.anchor}' has no anchor '&{event.anchor}' before it.",
                "Write the value out.",
                spot,
            )
        made, size = self._anchors[event.anchor]
        self._expansion += size
        if self._expansion > MAX_EXPANSION:
            raise Refusal(
                f"aliases expand to more than {MAX_EXPANSION:,} values.",
                "Write the values out, or fewer.",
                spot,
            )
        top = self._stack[-1] if self._stack else None
        if top is not None:
            top.size += size - 1
            if top.place is not None and top.key is None:
                raise Refusal("a key is an alias.", "Write the key as a word.", spot)
        self._add(made, spot, None)

    def _add(self, made: Any, spot: Spot, raw: str | None, items: list[Spot] | None = None) -> None:
        if not self._stack:
            self._root = made
            return
        top = self._stack[-1]
        top.size += 1
        place = top.place
        if place is None:
            top.target.append(made)
            top.spots.append(spot)
            return
        key = top.key
        assert key is not None
        top.key = None
        if key == _MERGING:
            top.merges.append((made, spot))
            return
        place.keys[key] = top.key_spot
        place.values[key] = spot
        if items is not None:
            place.items[key] = items
        if raw is not None:
            place.raw[key] = raw
        top.target[key] = made


def _merge(frame: Frame) -> None:
    """YAML's `<<`: keys of the merged mappings, where the mapping has none of its own."""
    assert frame.place is not None
    for merged, spot in frame.merges:
        for source in merged if isinstance(merged, list) else [merged]:
            if not isinstance(source, dict):
                raise Refusal("'<<' merges something that is not a mapping.", "Write the keys out.", spot)
            theirs: Place = source[PLACE]
            for key, inner in source.items():
                if key not in frame.target:
                    frame.target[key] = inner
                    frame.place.keys[key] = theirs.keys[key]
                    frame.place.values[key] = theirs.values[key]
                    if key in theirs.items:
                        frame.place.items[key] = theirs.items[key]
                    if key in theirs.raw:
                        frame.place.raw[key] = theirs.raw[key]


def _spot(event: Any) -> Spot:
    mark = event.start_mark
    return (mark.line + 1, mark.column + 1)


def _quoted(text: str) -> str:
    shown = text if len(text) <= 40 else text[:40] + "…"
    return "'" + shown.replace("'", "''") + "'"
