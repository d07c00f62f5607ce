"""From YAML events to plain values with their locations, in one pass, at bounded cost.

Events instead of nodes: the C parser emits them from a state machine without recursion, so depth and alias
expansion can be limited while parsing, and each value is visited once.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from math import isfinite
from typing import Any

import yaml
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

from dq.contracts.access.files import is_json
from dq.contracts.model import MAX_DEPTH, SOURCE_MAP_KEY, Position, SourceMap, describe_value, format_number
from dq.contracts.outcome import Finding, Location, Severity, error_finding
from dq.contracts.yaml.scalars import UnusableScalar, Value, other_number, value

NUMBER_KEYS = frozenset(
    {
        *("mustBe", "mustNotBe", "mustBeGreaterThan", "mustBeGreaterOrEqualTo", "mustBeLessThan"),
        *("mustBeLessOrEqualTo", "mustBeBetween", "mustNotBeBetween"),
        *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
        *("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties", "dimensions"),
        *("primaryKeyPosition", "partitionKeyPosition", "priceAmount", "port"),
    }
)
"""Keys of ODCS that take numbers, or lists of numbers."""

# The item's number at the end of a path.
_KEY = re.compile(r"\[\d+\]$")


class YamlRejected(Exception):
    """The document cannot be read as plain data: message, hint and location."""

    def __init__(self, message: str, hint: str, spot: Position) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.spot = spot


def duplicate_key(key: str, path: str, location: Location, first: Position) -> Finding:
    """Return the finding for a duplicate key of the mapping at this path."""
    message = f"duplicate key {key!r} (first in line {first[0]})."
    return error_finding(
        "duplicate-key", message, "Keep one of the two.", location, f"{path}.{key}" if path else key
    )


def read_number(
    text: str, path: str, location: Location, parsed: Value, other: Value
) -> tuple[Value, Finding | None]:
    """Return the value of an unquoted text that YAML 1.1 reads as `parsed` and YAML 1.2 as `other`.

    In JSON it is not ambiguous. Elsewhere it is an error, unless its key takes a number and only one of the
    two is a number: then that number is used, with a warning. `1:30` is always an error, as it may be a time.
    """
    numbers = [
        candidate
        for candidate in (other, parsed)
        if isinstance(candidate, (int, float)) and isfinite(candidate)
    ]
    if is_json(location.file) and other in numbers:
        return other, None
    spellings = " or ".join(format_number(number) for number in numbers)
    message = (
        f"{text} is read as {describe_value(parsed)}, but as {describe_value(other)} by YAML 1.2 parsers."
    )
    hint = f"Write {spellings} for a number, or use quotes for text: '{text}'."
    if not numbers:
        hint = f"Write a smaller number, or use quotes for text: '{text}'."
    finding = error_finding("ambiguous-number", message, hint, location, path)
    if len(numbers) == 1 and ":" not in text and _KEY.sub("", path).rpartition(".")[2] in NUMBER_KEYS:
        message = (
            f"{text} is read as the number {format_number(numbers[0])}, but as text by some YAML parsers."
        )
        hint = f"Write {format_number(numbers[0])}."
        return numbers[0], replace(finding, severity=Severity.WARNING, message=message, hint=hint)
    return parsed, finding


@dataclass(slots=True, eq=False)
class Frame:
    """A mapping or sequence that is being filled."""

    target: Any
    path: str
    place: SourceMap | None
    anchor: str | None
    key: str | None = None
    key_spot: Position = (1, 1)
    spots: list[Position] = field(default_factory=list)
    merges: list[Any] = field(default_factory=list)
    size: int = 1

    def next_path(self) -> str:
        """Return the path of the value that is added next."""
        if self.place is None:
            return f"{self.path}[{len(self.target)}]"
        return f"{self.path}.{self.key}" if self.path else f"{self.key}"


def is_empty(event: Any) -> bool:
    """Return True for the parser's event of a document without content."""
    if event.__class__ is not ScalarEvent or event.tag or event.anchor:
        return False
    return bool(not event.value and event.implicit[0])


MAX_EXPANSION = 10_000
MAX_EVENTS = 200_000
MAX_DUPLICATE_KEYS = 1_000
MERGE = "<<"
# Internal key for an unquoted `<<`; keys of a file cannot contain NUL.
_MERGING = "\0<<"


# Cache of plain words that YAML reads as text: contracts repeat the same few thousand.
_PLAIN_WORDS: set[str] = set()


def _cache_word(word: str) -> None:
    if len(word) < 64 and len(_PLAIN_WORDS) < 8_192 and word != MERGE:
        _PLAIN_WORDS.add(word)


def build(text: str, file: str) -> tuple[dict[str, Any] | None, list[Finding]]:
    """Return the top mapping of a YAML document and the findings; None if it has no mapping."""
    builder = Builder(file)
    try:
        top = builder.build(text)
    except YamlRejected as refusal:
        return None, [
            error_finding("yaml-refused", refusal.message, refusal.hint, Location(file, *refusal.spot))
        ]
    except yaml.YAMLError as error:
        return None, [_syntax(error, file, text)]
    wrong_values = [*builder.ambiguous_numbers, *builder.duplicate_keys]
    if not isinstance(top, dict):
        kind = "empty" if top is None else f"a {'list' if isinstance(top, list) else 'single value'}"
        hint = "Begin with 'apiVersion: v3.2.0' and 'kind: DataContract', or run 'dq init'."
        return None, [
            *wrong_values,
            error_finding("not-a-contract", f"the document is {kind}.", hint, Location(file)),
        ]
    return top, wrong_values


class Builder:
    """Builds the value of the first document and collects duplicate keys; raises YamlRejected otherwise."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.duplicate_keys: list[Finding] = []
        self.ambiguous_numbers: list[Finding] = []
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
                raise YamlRejected(message, "Split it into one contract per data product.", _spot(event))
            kind = event.__class__
            if kind is ScalarEvent:
                if event.value in _PLAIN_WORDS and event.implicit[0] and event.anchor is None and self._stack:
                    self._word(event, self._stack[-1])
                else:
                    self._scalar(event)
            elif kind is MappingStartEvent or kind is SequenceStartEvent:
                self._start_collection(event, is_mapping=kind is MappingStartEvent)
            elif kind is MappingEndEvent or kind is SequenceEndEvent:
                self._end()
            elif kind is AliasEvent:
                self._alias(event)
            elif kind is DocumentStartEvent:
                documents += 1
                # A separator at the end starts an empty document.
                if documents > 1 and not is_empty(next_event()):
                    raise YamlRejected(
                        "the file contains several documents.", "Keep one contract per file.", _spot(event)
                    )
            elif kind is StreamEndEvent:
                return self._root

    def _word(self, event: Any, top: Frame) -> None:
        """Add a cached plain word to the open mapping or sequence: the fast path for most scalars."""
        mark = event.start_mark
        spot = (mark.line + 1, mark.column + 1)
        word, place, key = event.value, top.place, top.key
        if place is None:  # a sequence
            top.size += 1
            top.target.append(word)
            top.spots.append(spot)
        elif key is None:
            if word in place.keys:  # a duplicate, reported by `_key`
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
            # Possible only by an escape. Our internal keys begin with NUL, and no database can store it.
            raise YamlRejected("a string contains a NUL character.", "Remove the escape.", spot)
        top = self._stack[-1] if self._stack else None
        if top is not None and top.place is not None and top.key is None:
            self._key(top, text, tag, plain, spot)
            return
        try:
            parsed = value(text, tag, plain)
        except UnusableScalar as error:
            hint = "Write the plain value, without a tag." if tag else f"Quote it: {_quoted(text)}."
            raise YamlRejected(f"{error}.", hint, spot) from error
        if plain and not tag:
            other = other_number(text, parsed)
            if other is not parsed and other != parsed:
                parsed = self._ambiguous_number(text, spot, parsed, other)
            elif parsed is text:
                _cache_word(event.value)
        # A long text counts as many values, so that aliases cannot multiply megabytes.
        weight = len(text) // 100
        if event.anchor:
            self._anchors[event.anchor] = (parsed, 1 + weight)
        if weight and top is not None:
            top.size += weight
        raw = (
            text
            if plain and parsed is not text and not (parsed is None or text in ("true", "false"))
            else None
        )
        self._add(parsed, spot, raw)

    def _ambiguous_number(self, text: str, spot: Position, parsed: Value, other: Value) -> Value:
        if not self._stack:
            return parsed
        number, finding = read_number(
            text, self._stack[-1].next_path(), Location(self.file, *spot), parsed, other
        )
        if finding is not None and len(self.ambiguous_numbers) < MAX_DUPLICATE_KEYS:
            self.ambiguous_numbers.append(finding)
        return number

    def _key(self, top: Frame, text: str, tag: str | None, plain: bool, spot: Position) -> None:
        assert top.place is not None
        top.key_spot = spot
        if text == MERGE and plain:
            top.key = _MERGING
            return
        parsed: object = text
        if plain or tag:
            try:
                parsed = value(text, tag, plain)
            except UnusableScalar:
                parsed = None
        if parsed.__class__ is not str:
            raise YamlRejected(
                f"the key {text!r} is read as {describe_value(parsed)}, not as text.",
                f"Quote it: {_quoted(text)}.",
                spot,
            )
        if plain:
            _cache_word(text)
        if text in top.place.keys:
            if len(self.duplicate_keys) == MAX_DUPLICATE_KEYS:
                raise YamlRejected(
                    f"more than {MAX_DUPLICATE_KEYS:,} keys are duplicated.", "Keep one of each.", spot
                )
            self.duplicate_keys.append(
                duplicate_key(text, top.path, Location(self.file, *spot), top.place.keys[text])
            )
        top.key = text

    def _start_collection(self, event: Any, *, is_mapping: bool) -> None:
        """Push the mapping or sequence that an event starts. Raises YamlRejected."""
        spot = _spot(event)
        if len(self._stack) >= MAX_DEPTH:
            raise YamlRejected(f"values are nested deeper than {MAX_DEPTH}.", "Flatten the structure.", spot)
        tag = event.tag
        if tag and tag not in ("!", "tag:yaml.org,2002:map", "tag:yaml.org,2002:seq"):
            name = tag.replace("tag:yaml.org,2002:", "!!")
            raise YamlRejected(f"tag {name!r} is not allowed.", "Write plain YAML values.", spot)
        path = ""
        if self._stack:
            top = self._stack[-1]
            if top.place is not None and top.key is None:
                if is_mapping and getattr(event, "flow_style", False):
                    # YAML reads `{{title}}` as a mapping whose key is a mapping.
                    message = "this is a template that has not been rendered: {{…}}."
                    raise YamlRejected(message, "Render it, or put it in quotes.", spot)
                raise YamlRejected("a key is not text.", "Write the key as a word.", spot)
            path = top.next_path()
        if event.anchor:
            self._open.add(event.anchor)
        if is_mapping:
            place = SourceMap(self.file, path, spot)
            self._stack.append(Frame({SOURCE_MAP_KEY: place}, path, place, event.anchor))
        else:
            self._stack.append(Frame([], path, None, event.anchor))
        # The start of a collection is the location of the value in its parent.
        self._stack[-1].key_spot = spot

    def _end(self) -> None:
        frame = self._stack.pop()
        spot = frame.key_spot if frame.place is None else frame.place.position
        if frame.merges:
            _merge(frame)
        if frame.anchor:
            self._open.discard(frame.anchor)
            self._anchors[frame.anchor] = (frame.target, frame.size)
        if self._stack:
            self._stack[-1].size += frame.size - 1
        self._add(frame.target, spot, None, frame.spots if frame.place is None else None)

    def _alias(self, event: Any) -> None:
        spot = _spot(event)
        if event.anchor in self._open:
            raise YamlRejected(f"alias '*{event.anchor}' contains itself.", "Write the value out.", spot)
        if event.anchor not in self._anchors:
            raise YamlRejected(
                f"alias '*{event.anchor}' has no anchor '&{event.anchor}' before it.",
                "Write the value out.",
                spot,
            )
        target, size = self._anchors[event.anchor]
        self._expansion += size
        if self._expansion > MAX_EXPANSION:
            raise YamlRejected(
                f"aliases expand to more than {MAX_EXPANSION:,} values.",
                "Write the values out, or use fewer.",
                spot,
            )
        top = self._stack[-1] if self._stack else None
        if top is not None:
            top.size += size - 1
            if top.place is not None and top.key is None:
                raise YamlRejected("a key is an alias.", "Write the key as a word.", spot)
        self._add(target, spot, None)

    def _add(
        self, new_value: Any, spot: Position, raw: str | None, items: list[Position] | None = None
    ) -> None:
        if not self._stack:
            self._root = new_value
            return
        top = self._stack[-1]
        top.size += 1
        place = top.place
        if place is None:
            top.target.append(new_value)
            top.spots.append(spot)
            return
        key = top.key
        assert key is not None
        top.key = None
        if key == _MERGING:
            top.merges.append((new_value, spot))
            return
        place.keys[key] = top.key_spot
        place.values[key] = spot
        if items is not None:
            place.items[key] = items
        if raw is not None:
            place.raw[key] = raw
        top.target[key] = new_value


def _merge(frame: Frame) -> None:
    """Apply YAML's `<<`: add keys of the merged mappings that the mapping does not have."""
    assert frame.place is not None
    for merged, spot in frame.merges:
        for source in merged if isinstance(merged, list) else [merged]:
            if not isinstance(source, dict):
                raise YamlRejected(
                    "'<<' merges something that is not a mapping.", "Write the keys out.", spot
                )
            merged_place: SourceMap = source[SOURCE_MAP_KEY]
            for key, inner in source.items():
                if key not in frame.target:
                    frame.target[key] = inner
                    frame.place.keys[key] = merged_place.keys[key]
                    frame.place.values[key] = merged_place.values[key]
                    if key in merged_place.items:
                        frame.place.items[key] = merged_place.items[key]
                    if key in merged_place.raw:
                        frame.place.raw[key] = merged_place.raw[key]


def _spot(event: Any) -> Position:
    mark = event.start_mark
    return (mark.line + 1, mark.column + 1)


def _quoted(text: str) -> str:
    shown = text if len(text) <= 40 else text[:40] + "…"
    return "'" + shown.replace("'", "''") + "'"


# Part of libyaml's message -> hint. The first match wins.
_HINTS = (
    ("cannot start any token", "Indent with spaces, and quote a value that begins with a special character."),
    ("mapping values are not allowed", "Quote a value that contains ': ', and check the indentation."),
    ("did not find expected key", "Check the indentation of this line against the lines above."),
    ("did not find expected '-' indicator", "Indent the list's items alike."),
    ("could not find expected ':'", "Write 'key: value'; quote a text that spans lines."),
    ("found unexpected end of stream", "Close the quote or bracket."),
    ("control characters are not allowed", "Remove the control character."),
    ("found undefined alias", "Write the value out, or quote it if it begins with *."),
    ("alphabetic or numeric character", 'Quote a value that begins with * or &, e.g. "*/5 * * * *".'),
    ("found undefined tag handle", "Write plain YAML values, without tags."),
)


def _syntax(error: yaml.YAMLError, file: str, text: str) -> Finding:
    problem = str(getattr(error, "problem", None) or getattr(error, "reason", None) or error).splitlines()[0]
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    location = Location(file, mark.line + 1, mark.column + 1) if mark else Location(file)
    lines = text.splitlines()
    line = lines[location.line - 1] if location.line <= len(lines) else ""
    if "\t" in line[: max(location.column, len(line) - len(line.lstrip()))]:
        problem, hint = "a tab is used where YAML requires spaces", "Indent with spaces."
    else:
        hint = next((hint for part, hint in _HINTS if part in problem), "Fix the YAML syntax here.")
    return error_finding("yaml-syntax", f"this is not YAML: {problem}.", hint, location)
