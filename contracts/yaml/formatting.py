"""Formats a contract: keys in order, indent of two spaces, comments kept, values unchanged."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import lru_cache
from typing import Any

import yaml

from dq.contracts import model
from dq.contracts.model import Node, models_at, strip_source_maps
from dq.contracts.outcome import Finding
from dq.contracts.yaml import source

# Layout of a YAML document: its entries in order, each with its comments.


class UnsupportedYaml(Exception):
    """Rare YAML syntax that this reader does not support; the message has the line."""


class Shape(Enum):
    """Syntax of a value."""

    EMPTY = "nothing"
    INLINE = "a plain or quoted scalar, or an alias"
    BLOCK = "a scalar after | or >"
    FLOW = "in brackets"
    MAP = "an indented mapping"
    SEQ = "an indented list"


@dataclass(slots=True)
class CstValue:
    """One value. `text` is its source, except for indented collections, `marks` its anchor and tag.

    `indent` is the column of the collection that holds it. `entries` are those of a collection; a flow
    collection has them only if it can be reformatted: no comments, no line breaks inside a scalar.
    """

    shape: Shape
    text: str = ""
    marks: str = ""
    indent: int = 0
    entries: list[CstEntry] | None = None
    foot: list[str] = field(default_factory=list)
    listed: bool = False


@dataclass(slots=True)
class CstEntry:
    """A key with its value, or an item of a list, whose key is empty.

    `above` are the lines above it, "" for blank ones; `inline_comment` is the comment in its first line.
    """

    key: str
    value: CstValue
    above: list[str] = field(default_factory=list)
    inline_comment: str = ""


@dataclass(slots=True)
class CstDocument:
    """A document: the lines above the first entry, its top mapping, and all its comments."""

    head: list[str]
    top: CstValue
    comments: list[str]


# Concrete syntax tree of a YAML document: entries in order, scalars as text, comments at their entries.
#
# Built from the scanner's tokens, whose gaps have only blanks and comments. A comment above an entry belongs
# to that entry, however deep the value before it ends; one that is indented deeper than the entry belongs to
# the end of the collection before it.


def read(text: str) -> CstDocument:
    """Return the document of a text that ends with a line break and has no other line breaks than `\\n`.

    The text must be valid YAML. Raises UnsupportedYaml for explicit keys (`? key`) and directives.
    """
    return _CstReader(text).document()


_OPEN = (yaml.FlowMappingStartToken, yaml.FlowSequenceStartToken)
_CLOSE = (yaml.FlowMappingEndToken, yaml.FlowSequenceEndToken)
_MARKS = (yaml.AnchorToken, yaml.TagToken)


class _CstReader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens: list[Any] = list(yaml.scan(text, Loader=yaml.CSafeLoader))
        self.index = 0
        self.pending: list[tuple[int, str]] = []
        self.inline_comment = ""
        self.comments: list[str] = []

    def document(self) -> CstDocument:
        while isinstance(self.token, (yaml.StreamStartToken, yaml.DocumentStartToken)):
            self.take()
            self._inline_to_pending()
        if not isinstance(self.token, yaml.BlockMappingStartToken):
            raise UnsupportedYaml(f"line {self.line}: the document is not an indented mapping")
        head = self._claim()
        top = self.value(0)
        while not isinstance(self.token, yaml.StreamEndToken):
            self.take()
            self._inline_to_pending()
        top.foot += self._claim()
        return CstDocument(head, top, sorted(self.comments))

    @property
    def token(self) -> Any:
        return self.tokens[self.index]

    @property
    def line(self) -> int:
        return int(self.token.start_mark.line) + 1

    def source(self, token: Any) -> str:
        return self.text[token.start_mark.index : token.end_mark.index]

    def take(self) -> Any:
        """Return the token and advance, collecting the comments before the next one."""
        token = self.token
        self.index += 1
        if self.index < len(self.tokens):
            self._gap(token.end_mark.index, self.token.start_mark.index)
        return token

    def _gap(self, start: int, end: int) -> None:
        gap = self.text[start:end]
        if not gap or gap == " ":
            return
        first, *following = gap.split("\n")
        if start == 0 or self.text[start - 1] == "\n":
            following = [first, *following]
        elif first.strip():
            self.inline_comment = first.strip()
            self.comments.append(self.inline_comment)
        for line in following[:-1]:
            comment = line.strip()
            if comment:
                self.comments.append(comment)
            self.pending.append((len(line) - len(line.lstrip()), comment))

    def _inline_to_pending(self) -> None:
        if self.inline_comment:
            self.pending.insert(0, (0, self._claim_inline_comment()))

    def _claim(self) -> list[str]:
        lines = [comment for _, comment in self.pending]
        self.pending = []
        return lines

    def _claim_inline_comment(self) -> str:
        comment, self.inline_comment = self.inline_comment, ""
        return comment

    def _claim_foot(self, column: int) -> list[str]:
        """Return the leading comments that are indented at least to `column`."""
        last = 0
        for index, (indent, comment) in enumerate(self.pending):
            if comment and indent < column:
                break
            if comment:
                last = index + 1
        foot = [comment for _, comment in self.pending[:last]]
        self.pending = self.pending[last:]
        return foot

    def value(self, indent: int, after_key: bool = False) -> CstValue:
        """Parse the value that begins at the current token, with its anchor and tag."""
        marks = []
        while isinstance(self.token, _MARKS):
            marks.append(self.source(self.take()))
        value = self._unmarked(indent, after_key)
        value.marks = " ".join(marks)
        return value

    def _unmarked(self, indent: int, after_key: bool) -> CstValue:
        token = self.token
        match token:
            case yaml.ScalarToken():
                text = self.source(self.take())
                if token.style not in ("|", ">"):
                    return CstValue(Shape.INLINE, text, indent=indent)
                if text.endswith("\n\n") and "+" not in text.partition("\n")[0]:
                    self.pending.insert(0, (0, ""))  # the scanner includes it, but it is not part of the text
                return CstValue(Shape.BLOCK, text, indent=indent)
            case yaml.AliasToken():
                return CstValue(Shape.INLINE, self.source(self.take()), indent=indent)
            case yaml.FlowMappingStartToken() | yaml.FlowSequenceStartToken():
                return self._flow(indent)
            case yaml.BlockMappingStartToken():
                return self._mapping()
            case yaml.BlockSequenceStartToken():
                return self._sequence(closed=True)
            case yaml.BlockEntryToken() if after_key:
                return self._sequence(closed=False)
        return CstValue(Shape.EMPTY)

    def _mapping(self) -> CstValue:
        column = int(self.take().start_mark.column)
        entries = []
        while isinstance(self.token, yaml.KeyToken):
            above = self._claim()
            if self.source(self.take()):
                raise UnsupportedYaml(f"line {self.line}: a key after '?'")
            begin = self.token.start_mark.index
            while not isinstance(self.token, yaml.ValueToken):
                end = self.take().end_mark.index
            key = self.text[begin:end]
            self.take()
            entries.append(self._entry(key, above, column, after_key=True))
        if not isinstance(self.token, yaml.BlockEndToken):
            raise UnsupportedYaml(f"line {self.line}: a value without a key")
        mapping = CstValue(Shape.MAP, entries=entries, foot=self._claim_foot(column))
        self.take()
        return mapping

    def _sequence(self, closed: bool) -> CstValue:
        """Return a list; one in the column of its key (not `closed`) has no start and end tokens."""
        column = int(self.token.start_mark.column)
        if closed:
            self.take()
        entries = []
        while isinstance(self.token, yaml.BlockEntryToken):
            above = self._claim()
            self.take()
            entries.append(self._entry("", above, column))
        sequence = CstValue(
            Shape.SEQ, entries=entries, foot=self._claim_foot(column if closed else column + 1)
        )
        if closed:
            self.take()
        return sequence

    def _entry(self, key: str, above: list[str], column: int, after_key: bool = False) -> CstEntry:
        head = self._claim_inline_comment()
        ahead = self.index
        while isinstance(self.tokens[ahead], _MARKS):
            ahead += 1
        if isinstance(self.tokens[ahead], (yaml.ScalarToken, yaml.AliasToken, *_OPEN)):
            above = [*above, *([head] if head else []), *self._claim()]
            value = self.value(column, after_key)
            return CstEntry(key, value, above, self._claim_inline_comment())
        value = self.value(column, after_key)
        return CstEntry(key, value, above, head)

    def _flow(self, indent: int) -> CstValue:
        """Parse a value in brackets; one with comments inside keeps its text."""
        first_index, text_start = self.index, self.token.start_mark.index
        depth, comment_count = 0, len(self.comments)
        while True:
            depth += isinstance(self.token, _OPEN) - isinstance(self.token, _CLOSE)
            if depth == 0:
                break
            self.index += 1
            self._gap(self.tokens[self.index - 1].end_mark.index, self.token.start_mark.index)
        text = self.text[text_start : self.token.end_mark.index]
        has_comments = len(self.comments) != comment_count
        inner_tokens = iter(self.tokens[first_index + 1 : self.index + 1])
        value = None if has_comments else _bracketed(self.text, inner_tokens, self.tokens[first_index])
        self.pending, self.inline_comment = [], ""  # comments inside are part of the text
        self.take()
        return value or CstValue(Shape.FLOW, text, indent=indent)


def _bracketed(text: str, tokens: Iterator[Any], opened: Any) -> CstValue | None:
    """Return a flow collection, or None if it cannot be reformatted without a change."""
    entries: list[CstEntry] = []
    listed = isinstance(opened, yaml.FlowSequenceStartToken)
    for token in tokens:
        if isinstance(token, _CLOSE):
            flow_text = text[opened.start_mark.index : token.end_mark.index]
            return CstValue(Shape.FLOW, flow_text, entries=entries, listed=listed)
        if isinstance(token, yaml.FlowEntryToken):
            continue
        key, inner = "", token
        if not listed:
            key = _on_one_line(text, next(tokens)) if isinstance(token, yaml.KeyToken) else ""
            if not key or not isinstance(next(tokens), yaml.ValueToken):
                return None
            inner = next(tokens)
        if isinstance(inner, _OPEN):
            value = _bracketed(text, tokens, inner)
        else:
            source = _on_one_line(text, inner)
            value = CstValue(Shape.INLINE, source) if source else None
        if value is None:
            return None
        entries.append(CstEntry(key, value))
    return None


def _on_one_line(text: str, token: Any) -> str:
    """Return the source of a scalar or alias, or "" for other tokens and those with a line break."""
    source = text[token.start_mark.index : token.end_mark.index]
    plain = isinstance(token, yaml.ScalarToken | yaml.AliasToken)
    return source if plain and "\n" not in source else ""


# TABLE: the order of a contract's keys, by kind of mapping.
#
# The order of the sections is that of the ODCS documentation: identity first, then servers, then the schema,
# then its service levels. `*` stands for every key that is not listed, in the writer's order. A mapping
# without a row keeps its order: it is an extension of the organisation.

OTHER_KEYS = "*"
_TAIL = "tags authoritativeDefinitions customProperties"


def _keys(text: str) -> tuple[str, ...]:
    keys = tuple(text.split())
    return keys if OTHER_KEYS in keys else (*keys, OTHER_KEYS)


Kind = type[Node] | None
"""The model of a mapping, or None if it is an extension of the organisation."""

# Model of a mapping -> its keys. The merge key `<<` always comes first.
ORDER: dict[Kind, tuple[str, ...]] = {
    model.Contract: _keys(
        "apiVersion kind id name version status tenant domain dataProduct contractCreatedTs tags description "
        "context servers team roles support price schema slaDefaultElement slaProperties "
        "authoritativeDefinitions * customProperties"
    ),
    model.Description: _keys("purpose usage limitations authoritativeDefinitions customProperties"),
    model.Instructions: _keys("instructions verifiedStatements constraints"),
    model.VerifiedStatement: _keys(f"id question answer {_TAIL}"),
    model.Constraint: _keys(f"id constraint {_TAIL}"),
    model.Server: _keys("id server type environment description * roles customProperties"),
    model.Team: _keys(f"id name description members {_TAIL}"),
    model.Member: _keys(
        f"id username name role description dateIn dateOut replacedByUsername comment {_TAIL}"
    ),
    model.Role: _keys("id role access description firstLevelApprovers secondLevelApprovers customProperties"),
    model.SupportChannel: _keys("id channel tool scope url invitationUrl description customProperties"),
    model.Price: _keys("id priceAmount priceCurrency priceUnit"),
    model.SchemaObject: _keys(
        "id name physicalName logicalType physicalType businessName description deprecated "
        "dataGranularityDescription context synonyms tags authoritativeDefinitions customProperties "
        "relationships * properties quality"
    ),
    model.Property: _keys(
        "id name physicalName logicalType physicalType businessName description deprecated required unique "
        "partitioned partitionKeyPosition primaryKey primaryKeyPosition classification encryptedName "
        "criticalDataElement semanticType logicalTypeOptions enum examples synonyms transformSourceObjects "
        "transformLogic transformDescription tags authoritativeDefinitions customProperties relationships "
        "* items map properties quality"
    ),
    model.MapTypes: _keys("key value"),
    model.TypeOptions: _keys(
        "minLength maxLength pattern format minimum exclusiveMinimum maximum exclusiveMaximum multipleOf "
        "timezone defaultTimezone minItems maxItems uniqueItems required minProperties maxProperties "
        "elementType dimensions distanceMetric embeddingModel embeddingModelVersion normalized"
    ),
    model.EnumValue: _keys(f"id value label description {_TAIL}"),
    model.Synonym: _keys("id synonym locale source status description customProperties"),
    model.Relationship: _keys("id type from to customProperties"),
    model.Quality: _keys(
        "id name type metric rule engine query implementation arguments validValues mustBe mustNotBe "
        "mustBeGreaterThan mustBeGreaterOrEqualTo mustBeLessThan mustBeLessOrEqualTo mustBeBetween "
        "mustNotBeBetween unit dimension severity description businessImpact method scheduler schedule "
        f"{_TAIL}"
    ),
    model.SlaProperty: _keys(
        "id property value valueExt unit element driver description scheduler schedule "
        "authoritativeDefinitions customProperties"
    ),
    model.CustomProperty: _keys("id property vendor description value"),
    model.AuthoritativeDefinition: _keys("id url type description"),
}


@lru_cache(4096)
def kind_below(kind: Kind, key: str, listed: bool) -> Kind:
    """Return the kind of the mapping under this key, or None if any value is allowed.

    With `listed`, the mapping is an item of a list.
    """
    models = models_at(kind, (key,)) if kind is not None else []
    # ODCS 3.0 lists the members of a team.
    return models[-1 if listed else 0] if models else None


def position(kind: Kind, key: str) -> int:
    """Return the position of a key in a mapping of this kind, for a stable sort."""
    order = ORDER.get(kind)
    if key == "<<":
        return -1
    if order is None:
        return 0
    return order.index(key) if key in order else order.index(OTHER_KEYS)


# The formatter: keys in order, indent of two spaces, comments kept, values unchanged.
#
# Scalars stay as written, including quotes: YAML 1.1 does not read `1.10`, `yes` and `2026-01-01` as text, so
# quoting or unquoting them would change the contract.

WIDTH = 100
_STEP = 2
_HEADER = re.compile(r"^[|>][+-]?([1-9])?")


@dataclass(frozen=True, slots=True)
class Formatted:
    """The file's new bytes; `unchanged_reason` tells why an unsupported file stays as it is, or ""."""

    data: bytes
    unchanged_reason: str = ""


def formatted(data: bytes, file: str) -> Formatted | list[Finding]:
    """Format the contract, or return findings if it is not a YAML mapping.

    Line endings stay, a byte order mark is removed. The result is verified to have the same values and
    comments; otherwise the file stays as it is.
    """
    top, findings = source.read(data, file)
    if top is None:
        return findings
    decoded = data.decode("utf-8-sig")
    crlf = "\r\n" in decoded
    text = decoded.replace("\r\n", "\n")
    text += "" if text.endswith("\n") else "\n"
    try:
        document = read(text)
    except UnsupportedYaml as error:
        return Formatted(data, f"{error}.")
    for sort in (True, False):  # an alias may not come before its anchor, so not every order is possible
        result = _document(document, sort)
        if result == text or _same(text, document, result):
            return Formatted((result.replace("\n", "\r\n") if crlf else result).encode())
    return Formatted(data, "its comments or line breaks cannot be preserved.")


def _same(text: str, document: CstDocument, result: str) -> bool:
    if _meaning(text) != _meaning(result):
        return False
    try:
        return read(result).comments == document.comments
    except UnsupportedYaml:
        return False


def _meaning(text: str) -> tuple[str, int]:
    """Return the values, distinguishing 1, 1.0 and true, and the number of duplicate keys."""
    top, findings = source.read(text.encode(), "")
    return json.dumps(strip_source_maps(top), sort_keys=True, default=repr), len(findings)


def _document(document: CstDocument, sort: bool) -> str:
    writer = _Writer(sort)
    head = writer.comments(document.head, 0, first=True)
    return "\n".join([*head, *writer.block(document.top, model.Contract, 0)]) + "\n"


@dataclass(frozen=True, slots=True)
class _Writer:
    """Writes values as lines. The methods take the kind of the enclosing mapping, see `ORDER`."""

    sort: bool

    def block(self, value: CstValue, kind: Kind, indent: int) -> list[str]:
        """Return the lines of an indented collection, including the comments at its end."""
        lines: list[str] = []
        for entry, above in self.entries(value, kind):
            lines += self.comments(above, indent, first=not lines)
            lines += self.entry(entry, kind, indent)
        return lines + self.comments(value.foot, indent)

    def entries(self, value: CstValue, kind: Kind) -> list[tuple[CstEntry, list[str]]]:
        """Return the entries in order, each with the lines above it.

        Lines above the first entry of a list item are written above the item's dash.
        """
        entries = list(value.entries or ())
        if self.sort and value.shape is Shape.MAP:
            entries.sort(key=lambda entry: position(kind, _name(entry.key)))
        return [(entry, [*entry.above, *self.hoisted(entry, kind)]) for entry in entries]

    def hoisted(self, entry: CstEntry, kind: Kind) -> list[str]:
        value = entry.value
        if entry.key or value.shape not in (Shape.MAP, Shape.SEQ) or value.marks or entry.inline_comment:
            return []
        return [line for line in self.entries(value, kind)[0][1] if line]

    def entry(self, entry: CstEntry, kind: Kind, indent: int) -> list[str]:
        """Return the lines of one entry, starting at its key or dash."""
        value = entry.value
        lead = " " * indent + (f"{entry.key}:" if entry.key else "-")
        below = self.kind_of(value, kind, entry)
        start = f"{lead} {value.marks}" if value.marks else lead
        if value.shape is Shape.FLOW and value.entries is not None:
            line = f"{start} {self.brackets(value, below)}"
            if not value.entries or len(line) <= WIDTH:
                return [_with_inline_comment(line, entry)]
            value = _indented(value)
            entry = CstEntry(entry.key, value, [], entry.inline_comment)
        match value.shape:
            case Shape.EMPTY:
                return [_with_inline_comment(start, entry)]
            case Shape.BLOCK:
                return _literal(start, value, indent)
            case Shape.MAP | Shape.SEQ:
                return self.collection(start, entry, value, below, indent)
        first, *following = value.text.split("\n")
        if value.shape is Shape.FLOW:
            continuation = [_shifted(line, indent - value.indent) for line in following]
        else:
            continuation = [
                " " * (indent + _STEP) + line.lstrip() if line.strip() else "" for line in following
            ]
        lines = [f"{start} {first}", *continuation]
        return [*lines[:-1], _with_inline_comment(lines[-1], entry)]

    def collection(self, start: str, entry: CstEntry, value: CstValue, kind: Kind, indent: int) -> list[str]:
        lines = self.block(value, kind, indent + _STEP)
        if entry.key or value.marks or entry.inline_comment:
            return [_with_inline_comment(start, entry), *lines]
        # `- name: …`: the first entry shares the dash's line; its comments are above the dash already.
        lines = lines[len(self.comments(self.entries(value, kind)[0][1], 0, first=True)) :]
        return [f"{start} {lines[0].lstrip()}", *lines[1:]]

    def kind_of(self, value: CstValue, kind: Kind, entry: CstEntry) -> Kind:
        listed = value.listed or value.shape is Shape.SEQ
        return kind_below(kind, _name(entry.key), listed) if entry.key else kind

    def brackets(self, value: CstValue, kind: Kind) -> str:
        """Return a flow collection in one line."""
        if value.entries is None:
            return value.text
        entries = list(value.entries)
        if self.sort and not value.listed:
            entries.sort(key=lambda entry: position(kind, _name(entry.key)))
        items = [
            (f"{entry.key}: " if entry.key else "")
            + self.brackets(entry.value, self.kind_of(entry.value, kind, entry))
            for entry in entries
        ]
        return f"[{', '.join(items)}]" if value.listed else f"{{{', '.join(items)}}}"

    def comments(self, lines: Sequence[str], indent: int, first: bool = False) -> list[str]:
        """Return comments at this indent, without consecutive blank lines and without leading ones if
        `first`.
        """
        result: list[str] = []
        for line in lines:
            if line:
                result.append(" " * indent + line)
            elif (result or not first) and (not result or result[-1]):
                result.append("")
        return result


def _indented(value: CstValue) -> CstValue:
    """Convert a flow collection that is too long for its line to an indented one."""
    return CstValue(Shape.SEQ if value.listed else Shape.MAP, marks=value.marks, entries=value.entries)


def _name(key: str) -> str:
    """Return the key without quotes, for the table of keys."""
    return key.strip("'\"")


def _with_inline_comment(line: str, entry: CstEntry) -> str:
    return f"{line}  {entry.inline_comment}" if entry.inline_comment else line


def _shifted(line: str, offset: int) -> str:
    if not line.strip():
        return ""
    spaces = len(line) - len(line.lstrip())
    return " " * max(0, spaces + offset) + line.lstrip()


def _literal(start: str, value: CstValue, indent: int) -> list[str]:
    """Return a block scalar with its lines shifted; an indentation digit is relative to the holder's
    indent.
    """
    header, *lines = value.text.split("\n")
    lines = lines[:-1] if lines and not lines[-1] else lines
    match = _HEADER.match(header)
    digit = match[1] if match else None
    texts = [line for line in lines if line.strip()]
    if digit:
        old, new = value.indent + int(digit), indent + int(digit)
    else:
        old = len(texts[0]) - len(texts[0].lstrip(" ")) if texts else 0
        new = indent + _STEP
    shifted = [" " * new + line[old:] if len(line) > old else "" for line in lines]
    if "+" not in header:
        while shifted and not shifted[-1]:
            shifted.pop()
    return [f"{start} {header}", *shifted]
