"""Bytes of a contract file to plain values with places, at bounded cost, or to findings."""

from __future__ import annotations

import codecs
import datetime as dt
import json
import re
from dataclasses import dataclass, field, replace
from functools import lru_cache
from math import isfinite
from typing import Any

import yaml
from yaml.constructor import ConstructorError, SafeConstructor
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
from yaml.nodes import ScalarNode
from yaml.resolver import Resolver

from dq.contracts.access.files import MAX_BYTES
from dq.contracts.model import MAX_DEPTH, PLACE, Place, Spot, read_as, spelled
from dq.contracts.outcome import Finding, Location, Severity, mistake

# What YAML 1.1 makes of a plain scalar, exactly as PyYAML's safe loader would.

_BY_FIRST_CHARACTER = {
    first: [(tag, pattern.match) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:merge"]
    for first, resolvers in Resolver.yaml_implicit_resolvers.items()
}
_STR = "tag:yaml.org,2002:str"
_CORE = {f"tag:yaml.org,2002:{name}" for name in ("str", "int", "float", "bool", "null", "timestamp")}
_FAST: dict[str, object] = {"true": True, "false": False, "null": None, "~": None, "": None}

Value = str | int | float | bool | None | dt.date | dt.datetime


class UnusableScalar(ValueError):
    """The text has a type that YAML knows and Python cannot hold, or a tag that is not plain data."""


def value(text: str, tag: str | None, plain: bool) -> Value:
    """The Python value of a scalar; `plain` says that it was written without quotes.

    Raises UnusableScalar for a value out of range (`2026-13-45`, an integer of a million digits) and for a
    tag that does not stand for plain data.
    """
    if tag is None or tag == "!":
        if not plain:
            return text
        if text in _FAST:
            return _FAST[text]  # type: ignore[return-value]  # the table holds only scalars
        tag = _resolved(text) if len(text) < 64 else _matched(text)
    if tag == _STR:
        return text
    if tag not in _CORE:
        raise UnusableScalar(f"tag {tag.replace('tag:yaml.org,2002:', '!!')!r} is not allowed")
    return _construct(tag, text)


# Beginnings of what YAML 1.2 may read as a number.
_NUMERIC = frozenset("0123456789+-.")
_ORDINARY = re.compile(r"[-+]?(?:0|[1-9][0-9]*)(?:\.[0-9]*)?(?:[eE][-+][0-9]+)?")
_INTEGER = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")


def other_number(text: str, made: Value) -> Value:
    """What a reader of YAML 1.2 makes of an unquoted scalar that is `made` to YAML 1.1, where that differs.

    Gives `made` where the two agree, as they do about all that is written as people write numbers. Older
    YAML knows octal `0123`, `1_000` and `1:30`, which is 90; the newer one `0o17`, `1e3` and 123 for `0123`.
    """
    if text[:1] not in _NUMERIC or len(text) > 64 or not isinstance(made, (str, int, float)):
        return made
    if isinstance(made, str) or not _ORDINARY.fullmatch(text):
        if _INTEGER.fullmatch(text):
            return int(text, 0 if text[1:2] in ("o", "x") else 10)
        if _FLOAT.fullmatch(text):
            return float(text)
        return made if text.lstrip("+-").lower() in (".inf", ".nan") else text
    return made


# What YAML calls a kind of value -> what a reader calls it.
_WORDS = {"int": "a whole number", "float": "a number", "bool": "true or false", "timestamp": "a date"}


def _matched(text: str) -> str:
    """The tag of a plain scalar."""
    for tag, match in _BY_FIRST_CHARACTER.get(text[0], ()):
        if match(text):
            # `=` alone is YAML 1.1's "default value" type, which nobody means.
            return _STR if tag.endswith(":value") else tag
    return _STR


# Contracts say the same words again and again, and the patterns are slow.
_resolved = lru_cache(4096)(_matched)


def _construct(tag: str, text: str) -> Value:
    kind = tag.rpartition(":")[2]
    if len(text) > 1000:
        raise UnusableScalar(f"what reads like {_WORDS.get(kind, kind)} has {len(text)} characters")
    if kind == "int" and text.isdecimal() and text.isascii() and text[0] != "0":
        return int(text)
    constructor = SafeConstructor()
    node = ScalarNode(tag, text)
    try:
        return getattr(constructor, f"construct_yaml_{kind}")(node)  # type: ignore[no-any-return]
    except (ValueError, OverflowError, KeyError, TypeError, AttributeError, ConstructorError) as error:
        raise UnusableScalar(f"{text!r} reads like {_WORDS.get(kind, kind)} and is not") from error


# What the reader of YAML keeps while a document is being built, and how it gives up.

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


class Refusal(Exception):
    """The document cannot be read as plain data: what is wrong, where, and the mend."""

    def __init__(self, message: str, mend: str, spot: Spot) -> None:
        super().__init__(message)
        self.message = message
        self.mend = mend
        self.spot = spot


def twin(key: str, path: str, at: Location, first: Spot) -> Finding:
    """The finding for a key that a mapping at this path holds twice."""
    message = f"key {key!r} stands here a second time (first in line {first[0]})."
    return mistake("duplicate-key", message, "Keep one of the two.", at, f"{path}.{key}" if path else key)


def is_json(file: str) -> bool:
    """Whether a file's name says that it is JSON, which is YAML too, but not the other way round."""
    return file.lower().endswith(".json")


def read_number(
    text: str, path: str, at: Location, made: Value, other: Value
) -> tuple[Value, Finding | None]:
    """Return the value of an unquoted text that YAML 1.1 reads as `made` and YAML 1.2 as `other`.

    JSON has one reading of it. Elsewhere it is a mistake, but for a key that takes a number, where only one
    of the two is a number: that number counts, with a warning. `1:30` is a time to its author.
    """
    numbers = [each for each in (other, made) if isinstance(each, (int, float)) and isfinite(each)]
    if is_json(at.file) and other in numbers:
        return other, None
    spellings = " or ".join(spelled(number) for number in numbers)
    message = f"{text} is read as {read_as(made)}, and by readers of YAML 1.2 as {read_as(other)}."
    mend = f"Write {spellings} where a number is meant, and quotes where a text is: '{text}'."
    if not numbers:
        mend = f"Write a smaller number, or quotes where a text is meant: '{text}'."
    finding = mistake("ambiguous-number", message, mend, at, path)
    if len(numbers) == 1 and ":" not in text and _KEY.sub("", path).rpartition(".")[2] in NUMBER_KEYS:
        message = (
            f"{text} is taken as the number {spelled(numbers[0])}; some readers of YAML take it as text."
        )
        mend = f"Write {spelled(numbers[0])}."
        return numbers[0], replace(finding, severity=Severity.WARNING, message=message, mend=mend)
    return made, finding


@dataclass(slots=True, eq=False)
class Frame:
    """A mapping or sequence that is being filled."""

    target: Any
    path: str
    place: Place | None
    anchor: str | None
    key: str | None = None
    key_spot: Spot = (1, 1)
    spots: list[Spot] = field(default_factory=list)
    merges: list[Any] = field(default_factory=list)
    size: int = 1

    def next_path(self) -> str:
        """Return the path of the value that is added next."""
        if self.place is None:
            return f"{self.path}[{len(self.target)}]"
        return f"{self.path}.{self.key}" if self.path else f"{self.key}"


def is_empty(event: Any) -> bool:
    """Return whether an event of the parser is all that a document without content has."""
    if event.__class__ is not ScalarEvent or event.tag or event.anchor:
        return False
    return bool(not event.value and event.implicit[0])


# YAML events to plain values with their places, in one pass, at bounded cost.
#
# Events and not nodes: the C parser gives them from a state machine without recursion, so depth and alias
# expansion can be bounded while they come, and each value is touched once.

MAX_EXPANSION = 10_000
MAX_EVENTS = 200_000
MAX_TWINS = 1_000
MERGE = "<<"
# What stands for an unquoted `<<`; no key of a file holds NUL.
_MERGING = "\0<<"


# Plain words that YAML reads as text: contracts say the same few thousand again and again.
_PLAIN_WORDS: set[str] = set()


def _remember(word: str) -> None:
    if len(word) < 64 and len(_PLAIN_WORDS) < 8_192 and word != MERGE:
        _PLAIN_WORDS.add(word)


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
                if event.value in _PLAIN_WORDS and event.implicit[0] and event.anchor is None and self._stack:
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


# Bytes of a contract file to plain values with places; what cannot be read becomes findings.


def read(data: bytes, file: str) -> tuple[dict[str, Any] | None, list[Finding]]:
    """The top mapping of a YAML document, each mapping inside with its `Place`, and what is wrong.

    UTF-8 with or without a byte order mark, any line ending. Gives None, and one finding, for what cannot
    be read at all: another encoding, NUL, more than 5 MB, broken YAML, several documents, depth over 64,
    more than 10,000 values from aliases, tags that are not plain data, and where the file is named `.json`,
    what is no JSON. Duplicate keys are findings; the last of twins wins, as in every other YAML reader. So
    are numbers that readers of YAML disagree about.
    """
    text = _text(data, file)
    if isinstance(text, Finding):
        return None, [text]
    if is_json(file) and (wrong := _not_json(text, file)) is not None:
        return None, [wrong]
    builder = Builder(file)
    try:
        top = builder.build(text)
    except Refusal as refusal:
        return None, [mistake("yaml-refused", refusal.message, refusal.mend, Location(file, *refusal.spot))]
    except yaml.YAMLError as error:
        return None, [_syntax(error, file, text)]
    wrong_values = [*builder.odd_numbers, *builder.twins]
    if not isinstance(top, dict):
        was = "empty" if top is None else f"a {'list' if isinstance(top, list) else 'single value'}"
        mend = "Begin with 'apiVersion: v3.2.0' and 'kind: DataContract', or run 'dq init'."
        return None, [
            *wrong_values,
            mistake("not-a-contract", f"the document is {was}.", mend, Location(file)),
        ]
    return top, wrong_values


def _not_json(text: str, file: str) -> Finding | None:
    try:
        json.loads(text, parse_constant=_no_json)
    except json.JSONDecodeError as error:
        said, at = error.msg[0].lower() + error.msg[1:], Location(file, error.lineno, error.colno)
    except _NoJson as error:
        said, at = f"{error} is no value", Location(file)
    except (RecursionError, ValueError):
        # Too deep, or a number of a million digits: the reader of YAML says so, with the place.
        return None
    else:
        return None
    mend = "JSON has no comments, and no comma before a closing bracket. YAML has; its files end in .yaml."
    return mistake("yaml-syntax", f"the file is named JSON and is not: {said}.", mend, at)


class _NoJson(ValueError):
    """NaN or an infinity, which Python reads and JSON does not have."""


def _no_json(word: str) -> None:
    raise _NoJson(word)


def _text(data: bytes, file: str) -> str | Finding:
    if len(data) > MAX_BYTES:
        message = f"the file has {len(data):,} bytes, more than {MAX_BYTES:,}."
        return mistake(
            "file-too-large", message, "Split it into one contract per data product.", Location(file)
        )
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return mistake("not-utf8", "the file is encoded as UTF-16.", "Save it as UTF-8.", Location(file))
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        message = f"byte 0x{data[error.start]:02x} is not UTF-8."
        at = Location(file, *_end_of(data[: error.start].decode("latin-1")))
        return mistake("not-utf8", message, "Save the file as UTF-8.", at)
    before, nul, _ = text.partition("\0")
    if nul:
        at = Location(file, *_end_of(before))
        return mistake("not-utf8", "the file holds a NUL character.", "Remove it; it is not text.", at)
    return text


def _end_of(text: str) -> Spot:
    return text.count("\n") + 1, len(text) - text.rfind("\n")


# What libyaml says, and what helps. The first match wins.
_MENDS = (
    ("cannot start any token", "Indent with spaces, and quote a value that begins with a special character."),
    ("mapping values are not allowed", "Quote a value that holds ': ', and check the indentation."),
    ("did not find expected key", "Check the indentation of this line against the lines above."),
    ("did not find expected '-' indicator", "Indent the list's items alike."),
    ("could not find expected ':'", "Write 'key: value'; quote a text that spans lines."),
    ("found unexpected end of stream", "Close the quote or bracket."),
    ("control characters are not allowed", "Remove the control character."),
    ("found undefined alias", "Write the value out."),
    ("found undefined tag handle", "Write plain YAML values, without tags."),
)


def _syntax(error: yaml.YAMLError, file: str, text: str) -> Finding:
    problem = str(getattr(error, "problem", None) or getattr(error, "reason", None) or error).splitlines()[0]
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    at = Location(file, mark.line + 1, mark.column + 1) if mark else Location(file)
    lines = text.splitlines()
    line = lines[at.line - 1] if at.line <= len(lines) else ""
    if "\t" in line[: max(at.column, len(line) - len(line.lstrip()))]:
        problem, mend = "a tab stands where YAML wants spaces", "Indent with spaces."
    else:
        mend = next((mend for part, mend in _MENDS if part in problem), "Mend the YAML at this place.")
    return mistake("yaml-syntax", f"this is not YAML: {problem}.", mend, at)
