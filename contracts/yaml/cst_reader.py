"""A YAML document as its writer left it: entries in their order, scalars as text, comments where they belong.

Made from the scanner's tokens, whose gaps hold nothing but blanks and comments. A comment above an entry
belongs to that entry, however deep the value before it ends; one that is indented deeper than the entry
closes the collection before it.
"""

from __future__ import annotations

from typing import Any

import yaml

from dq.contracts.yaml.cst import CstEntry, CstValue, Odd, Shape, Written


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
        made = _Brackets(self.text, self.tokens[begin : self.at + 1]).value() if simple else None
        self.pending, self.beside = [], ""  # comments inside are part of the text
        self.take()
        return made or CstValue(Shape.FLOW, text, indent=indent)


class _Brackets:
    """The entries of a collection in brackets, from its tokens."""

    def __init__(self, text: str, tokens: list[Any]) -> None:
        self.text = text
        self.tokens = tokens
        self.at = 0

    def value(self) -> CstValue | None:
        """The collection, or None when some of it cannot be written anew without changing it."""
        opened = self._next()
        entries: list[CstEntry] = []
        listed = isinstance(opened, yaml.FlowSequenceStartToken)
        while not isinstance(self.tokens[self.at], _CLOSE):
            key = ""
            if not listed:
                key_token = self._next()
                key = self._scalar() or "" if isinstance(key_token, yaml.KeyToken) else ""
                if not key or not isinstance(self._next(), yaml.ValueToken):
                    return None
            inner = self._inner()
            if inner is None:
                return None
            entries.append(CstEntry(key, inner))
            if isinstance(self.tokens[self.at], yaml.FlowEntryToken):
                self.at += 1
        closed = self._next()
        text = self.text[opened.start_mark.index : closed.end_mark.index]
        return CstValue(Shape.FLOW, text, entries=entries, listed=listed)

    def _next(self) -> Any:
        self.at += 1
        return self.tokens[self.at - 1]

    def _inner(self) -> CstValue | None:
        if isinstance(self.tokens[self.at], _OPEN):
            return self.value()
        text = self._scalar()
        return None if text is None else CstValue(Shape.INLINE, text)

    def _scalar(self) -> str | None:
        token = self.tokens[self.at]
        if not isinstance(token, (yaml.ScalarToken, yaml.AliasToken)):
            return None
        self.at += 1
        text = self.text[token.start_mark.index : token.end_mark.index]
        return text if text and "\n" not in text else None
