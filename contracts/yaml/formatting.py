"""A contract in its canonical form: keys in order, two spaces, comments kept, and never another meaning."""

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
from dq.contracts.model import Node, models_at, plain
from dq.contracts.outcome import Finding
from dq.contracts.yaml import source

# How a YAML document is laid out: its entries in their order, and the comments that belong to each.


class Odd(Exception):
    """YAML that is rarely written and that this reader does not take apart; says what and in which line."""


class Shape(Enum):
    """How a value is written."""

    EMPTY = "nothing"
    INLINE = "a plain or quoted scalar, or an alias"
    BLOCK = "a scalar after | or >"
    FLOW = "in brackets"
    MAP = "an indented mapping"
    SEQ = "an indented list"


@dataclass(slots=True)
class CstValue:
    """One value. `text` is the source of all but the indented collections, and `marks` its anchor and tag.

    `indent` is the column of the collection that holds it. `entries` are those of a collection; one in
    brackets has them when it can be written anew: no comments, no line breaks inside a scalar.
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

    `above` are the lines above it, an empty text for blank ones; `beside` is the comment in its first line.
    """

    key: str
    value: CstValue
    above: list[str] = field(default_factory=list)
    beside: str = ""


@dataclass(slots=True)
class Written:
    """A document: its lines above the first entry, its top mapping, and every comment in it."""

    head: list[str]
    top: CstValue
    comments: list[str]


# A YAML document as its writer left it: entries in their order, scalars as text, comments where they
# belong.
#
# Made from the scanner's tokens, whose gaps hold nothing but blanks and comments. A comment above an entry
# belongs to that entry, however deep the value before it ends; one that is indented deeper than the entry
# closes the collection before it.


def read(text: str) -> Written:
    """The document in a text that ends with a line break and has no other breaks than `\\n`.

    The text has been read as YAML before. Raises Odd for explicit keys (`? key`) and directives.
    """
    return _CstReader(text).document()


_OPEN = (yaml.FlowMappingStartToken, yaml.FlowSequenceStartToken)
_CLOSE = (yaml.FlowMappingEndToken, yaml.FlowSequenceEndToken)
_MARKS = (yaml.AnchorToken, yaml.TagToken)


class _CstReader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens: list[Any] = list(yaml.scan(text, Loader=yaml.CSafeLoader))
        self.at = 0
        self.pending: list[tuple[int, str]] = []
        self.beside = ""
        self.comments: list[str] = []

    def document(self) -> Written:
        while isinstance(self.token, (yaml.StreamStartToken, yaml.DocumentStartToken)):
            self.take()
            self._beside_to_pending()
        if not isinstance(self.token, yaml.BlockMappingStartToken):
            raise Odd(f"line {self.line}: the document is not an indented mapping")
        head = self._claim()
        top = self.value(0)
        while not isinstance(self.token, yaml.StreamEndToken):
            self.take()
            self._beside_to_pending()
        top.foot += self._claim()
        return Written(head, top, sorted(self.comments))

    @property
    def token(self) -> Any:
        return self.tokens[self.at]

    @property
    def line(self) -> int:
        return int(self.token.start_mark.line) + 1

    def source(self, token: Any) -> str:
        return self.text[token.start_mark.index : token.end_mark.index]

    def take(self) -> Any:
        """The token, and the comments between it and the next one are at hand."""
        token = self.token
        self.at += 1
        if self.at < len(self.tokens):
            self._gap(token.end_mark.index, self.token.start_mark.index)
        return token

    def _gap(self, start: int, end: int) -> None:
        gap = self.text[start:end]
        if not gap or gap == " ":
            return
        first, *rest = gap.split("\n")
        if start == 0 or self.text[start - 1] == "\n":
            rest = [first, *rest]
        elif first.strip():
            self.beside = first.strip()
            self.comments.append(self.beside)
        for line in rest[:-1]:
            comment = line.strip()
            if comment:
                self.comments.append(comment)
            self.pending.append((len(line) - len(line.lstrip()), comment))

    def _beside_to_pending(self) -> None:
        if self.beside:
            self.pending.insert(0, (0, self._claim_beside()))

    def _claim(self) -> list[str]:
        lines = [comment for _, comment in self.pending]
        self.pending = []
        return lines

    def _claim_beside(self) -> str:
        comment, self.beside = self.beside, ""
        return comment

    def _claim_foot(self, column: int) -> list[str]:
        """The comments that are indented at least so far, up to the first that is not."""
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
        marks = []
        while isinstance(self.token, _MARKS):
            marks.append(self.source(self.take()))
        made = self._unmarked(indent, after_key)
        made.marks = " ".join(marks)
        return made

    def _unmarked(self, indent: int, after_key: bool) -> CstValue:
        token = self.token
        match token:
            case yaml.ScalarToken():
                text = self.source(self.take())
                if token.style not in ("|", ">"):
                    return CstValue(Shape.INLINE, text, indent=indent)
                if text.endswith("\n\n") and "+" not in text.partition("\n")[0]:
                    self.pending.insert(0, (0, ""))  # not part of the text, though the scanner says so
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
                raise Odd(f"line {self.line}: a key after '?'")
            begin = self.token.start_mark.index
            while not isinstance(self.token, yaml.ValueToken):
                end = self.take().end_mark.index
            key = self.text[begin:end]
            self.take()
            entries.append(self._entry(key, above, column, after_key=True))
        if not isinstance(self.token, yaml.BlockEndToken):
            raise Odd(f"line {self.line}: a value without a key")
        made = CstValue(Shape.MAP, entries=entries, foot=self._claim_foot(column))
        self.take()
        return made

    def _sequence(self, closed: bool) -> CstValue:
        """A list; one that stands in the column of its key (not `closed`) has no tokens around it."""
        column = int(self.token.start_mark.column)
        if closed:
            self.take()
        entries = []
        while isinstance(self.token, yaml.BlockEntryToken):
            above = self._claim()
            self.take()
            entries.append(self._entry("", above, column))
        made = CstValue(Shape.SEQ, entries=entries, foot=self._claim_foot(column if closed else column + 1))
        if closed:
            self.take()
        return made

    def _entry(self, key: str, above: list[str], column: int, after_key: bool = False) -> CstEntry:
        head = self._claim_beside()
        ahead = self.at
        while isinstance(self.tokens[ahead], _MARKS):
            ahead += 1
        if isinstance(self.tokens[ahead], (yaml.ScalarToken, yaml.AliasToken, *_OPEN)):
            above = [*above, *([head] if head else []), *self._claim()]
            made = self.value(column, after_key)
            return CstEntry(key, made, above, self._claim_beside())
        made = self.value(column, after_key)
        return CstEntry(key, made, above, head)

    def _flow(self, indent: int) -> CstValue:
        begin, first = self.at, self.token.start_mark.index
        depth, commented = 0, len(self.comments)
        while True:
            depth += isinstance(self.token, _OPEN) - isinstance(self.token, _CLOSE)
            if depth == 0:
                break
            self.at += 1
            self._gap(self.tokens[self.at - 1].end_mark.index, self.token.start_mark.index)
        text = self.text[first : self.token.end_mark.index]
        simple = len(self.comments) == commented
        inside = iter(self.tokens[begin + 1 : self.at + 1])
        made = _bracketed(self.text, inside, self.tokens[begin]) if simple else None
        self.pending, self.beside = [], ""  # comments inside are part of the text
        self.take()
        return made or CstValue(Shape.FLOW, text, indent=indent)


def _bracketed(text: str, tokens: Iterator[Any], opened: Any) -> CstValue | None:
    """A collection in brackets, or None when some of it cannot be written anew without changing it."""
    entries: list[CstEntry] = []
    listed = isinstance(opened, yaml.FlowSequenceStartToken)
    for token in tokens:
        if isinstance(token, _CLOSE):
            whole = text[opened.start_mark.index : token.end_mark.index]
            return CstValue(Shape.FLOW, whole, entries=entries, listed=listed)
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
    """The source of a scalar or alias, empty for other tokens and for one with a line break."""
    source = text[token.start_mark.index : token.end_mark.index]
    plain = isinstance(token, yaml.ScalarToken | yaml.AliasToken)
    return source if plain and "\n" not in source else ""


# TABLE: the order in which a contract's keys are written, by kind of mapping.
#
# The order of the sections is that of the ODCS documentation: who and what first, then where, then the
# schema, then what is promised about it. `*` stands for every key that is not named, in the writer's order.
# A mapping without a row keeps its order: it belongs to the organisation.

REST = "*"
_TAIL = "tags authoritativeDefinitions customProperties"


def _keys(text: str) -> tuple[str, ...]:
    keys = tuple(text.split())
    return keys if REST in keys else (*keys, REST)


Kind = type[Node] | None
"""The model of a mapping; None for one that belongs to the organisation."""

# Model of a mapping -> its keys. `<<`, where YAML merges another mapping, stands first everywhere.
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
    """The kind of the mapping that stands under this key, or None where anything may stand.

    `listed` says that it is an item of a list there.
    """
    models = models_at(kind, (key,)) if kind is not None else []
    # ODCS 3.0 lists the members of a team.
    return models[-1 if listed else 0] if models else None


def position(kind: Kind, key: str) -> int:
    """Where the key stands among the keys of such a mapping; for sorting, which must be stable."""
    order = ORDER.get(kind)
    if key == "<<":
        return -1
    if order is None:
        return 0
    return order.index(key) if key in order else order.index(REST)


# A contract in its canonical form: keys in order, two spaces, comments kept, and never another meaning.
#
# Scalars stay as they are written, quotes and all: YAML 1.1 reads `1.10`, `yes` and `2026-01-01` as
# something else than text, and a formatter that quoted or unquoted them would change the contract.

WIDTH = 100
_STEP = 2
_HEADER = re.compile(r"^[|>][+-]?([1-9])?")


@dataclass(frozen=True, slots=True)
class Formatted:
    """The file's new bytes; `why_not` says why they are the old ones, where the form is beyond us."""

    data: bytes
    why_not: str = ""


def formatted(data: bytes, file: str) -> Formatted | list[Finding]:
    """The contract in its canonical form, or what is wrong when it is no YAML mapping.

    Line endings stay, a byte order mark goes. The result has the same values and the same comments; that
    is looked at before it is given, and a file where it does not hold stays as it is.
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
    except Odd as odd:
        return Formatted(data, f"{odd}.")
    for sort in (True, False):  # an alias may not come before its anchor, so not every order is possible
        made = _document(document, sort)
        if made == text or _same(text, document, made):
            return Formatted((made.replace("\n", "\r\n") if crlf else made).encode())
    return Formatted(data, "its comments or line breaks stand where they cannot be kept.")


def _same(text: str, document: Written, made: str) -> bool:
    if _meaning(text) != _meaning(made):
        return False
    try:
        return read(made).comments == document.comments
    except Odd:
        return False


def _meaning(text: str) -> tuple[str, int]:
    """The values, with 1, 1.0 and true told apart, and the number of keys that stand twice."""
    top, findings = source.read(text.encode(), "")
    return json.dumps(plain(top), sort_keys=True, default=repr), len(findings)


def _document(document: Written, sort: bool) -> str:
    writer = _Writer(sort)
    head = writer.comments(document.head, 0, first=True)
    return "\n".join([*head, *writer.block(document.top, model.Contract, 0)]) + "\n"


@dataclass(frozen=True, slots=True)
class _Writer:
    """Writes values as lines. Each takes the kind of mapping it is in, see `ORDER`."""

    sort: bool

    def block(self, value: CstValue, kind: Kind, indent: int) -> list[str]:
        """The entries of an indented collection and the comments that close it."""
        lines: list[str] = []
        for entry, above in self.entries(value, kind):
            lines += self.comments(above, indent, first=not lines)
            lines += self.entry(entry, kind, indent)
        return lines + self.comments(value.foot, indent)

    def entries(self, value: CstValue, kind: Kind) -> list[tuple[CstEntry, list[str]]]:
        """The entries in their order, each with the lines above it.

        Lines above the first entry of an item stand above the item's dash, for want of another place.
        """
        entries = list(value.entries or ())
        if self.sort and value.shape is Shape.MAP:
            entries.sort(key=lambda entry: position(kind, _name(entry.key)))
        return [(entry, [*entry.above, *self.hoisted(entry, kind)]) for entry in entries]

    def hoisted(self, entry: CstEntry, kind: Kind) -> list[str]:
        value = entry.value
        if entry.key or value.shape not in (Shape.MAP, Shape.SEQ) or value.marks or entry.beside:
            return []
        return [line for line in self.entries(value, kind)[0][1] if line]

    def entry(self, entry: CstEntry, kind: Kind, indent: int) -> list[str]:
        """The lines of one entry, from its key or dash on."""
        value = entry.value
        lead = " " * indent + (f"{entry.key}:" if entry.key else "-")
        below = self.kind_of(value, kind, entry)
        start = f"{lead} {value.marks}" if value.marks else lead
        if value.shape is Shape.FLOW and value.entries is not None:
            line = f"{start} {self.brackets(value, below)}"
            if not value.entries or len(line) <= WIDTH:
                return [_beside(line, entry)]
            value = _indented(value)
            entry = CstEntry(entry.key, value, [], entry.beside)
        match value.shape:
            case Shape.EMPTY:
                return [_beside(start, entry)]
            case Shape.BLOCK:
                return _literal(start, value, indent)
            case Shape.MAP | Shape.SEQ:
                return self.collection(start, entry, value, below, indent)
        first, *rest = value.text.split("\n")
        if value.shape is Shape.FLOW:
            more = [_shifted(line, indent - value.indent) for line in rest]
        else:
            more = [" " * (indent + _STEP) + line.lstrip() if line.strip() else "" for line in rest]
        lines = [f"{start} {first}", *more]
        return [*lines[:-1], _beside(lines[-1], entry)]

    def collection(self, start: str, entry: CstEntry, value: CstValue, kind: Kind, indent: int) -> list[str]:
        lines = self.block(value, kind, indent + _STEP)
        if entry.key or value.marks or entry.beside:
            return [_beside(start, entry), *lines]
        # `- name: …`: the first entry shares the dash's line; what stood above it is above the dash already.
        lines = lines[len(self.comments(self.entries(value, kind)[0][1], 0, first=True)) :]
        return [f"{start} {lines[0].lstrip()}", *lines[1:]]

    def kind_of(self, value: CstValue, kind: Kind, entry: CstEntry) -> Kind:
        listed = value.listed or value.shape is Shape.SEQ
        return kind_below(kind, _name(entry.key), listed) if entry.key else kind

    def brackets(self, value: CstValue, kind: Kind) -> str:
        """A collection in brackets, in one line."""
        if value.entries is None:
            return value.text
        entries = list(value.entries)
        if self.sort and not value.listed:
            entries.sort(key=lambda entry: position(kind, _name(entry.key)))
        shown = [
            (f"{entry.key}: " if entry.key else "")
            + self.brackets(entry.value, self.kind_of(entry.value, kind, entry))
            for entry in entries
        ]
        return f"[{', '.join(shown)}]" if value.listed else f"{{{', '.join(shown)}}}"

    def comments(self, lines: Sequence[str], indent: int, first: bool = False) -> list[str]:
        """Comments at this indent; never two blank lines, and none at the beginning of a collection."""
        made: list[str] = []
        for line in lines:
            if line:
                made.append(" " * indent + line)
            elif (made or not first) and (not made or made[-1]):
                made.append("")
        return made


def _indented(value: CstValue) -> CstValue:
    """A collection in brackets as an indented one: for one that is too long for its line."""
    return CstValue(Shape.SEQ if value.listed else Shape.MAP, marks=value.marks, entries=value.entries)


def _name(key: str) -> str:
    """The key without quotes and anchor, for the table of keys."""
    return key.strip("'\"")


def _beside(line: str, entry: CstEntry) -> str:
    return f"{line}  {entry.beside}" if entry.beside else line


def _shifted(line: str, by: int) -> str:
    if not line.strip():
        return ""
    spaces = len(line) - len(line.lstrip())
    return " " * max(0, spaces + by) + line.lstrip()


def _literal(start: str, value: CstValue, indent: int) -> list[str]:
    """A scalar after `|` or `>` with its lines moved; a digit there counts from the holder's indent."""
    header, *lines = value.text.split("\n")
    lines = lines[:-1] if lines and not lines[-1] else lines
    found = _HEADER.match(header)
    digit = found[1] if found else None
    texts = [line for line in lines if line.strip()]
    if digit:
        old, new = value.indent + int(digit), indent + int(digit)
    else:
        old = len(texts[0]) - len(texts[0].lstrip(" ")) if texts else 0
        new = indent + _STEP
    made = [" " * new + line[old:] if len(line) > old else "" for line in lines]
    if "+" not in header:
        while made and not made[-1]:
            made.pop()
    return [f"{start} {header}", *made]
