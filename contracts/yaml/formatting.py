"""A contract in its canonical form: keys in order, two spaces, comments kept, and never another meaning.

Scalars stay as they are written, quotes and all: YAML 1.1 reads `1.10`, `yes` and `2026-01-01` as something
else than text, and a formatter that quoted or unquoted them would change the contract.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

from dq.contracts.shared.outcome import Finding
from dq.contracts.shared.source_map import plain
from dq.contracts.yaml import cst_reader, source
from dq.contracts.yaml.cst import CstEntry, CstValue, Odd, Shape, Written
from dq.contracts.yaml.key_order import kind_below, position

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
        document = cst_reader.read(text)
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
        return cst_reader.read(made).comments == document.comments
    except Odd:
        return False


def _meaning(text: str) -> tuple[str, int]:
    """The values, with 1, 1.0 and true told apart, and the number of keys that stand twice."""
    top, findings = source.read(text.encode(), "")
    return json.dumps(plain(top), sort_keys=True, default=repr), len(findings)


def _document(document: Written, sort: bool) -> str:
    writer = _Writer(sort)
    head = writer.comments(document.head, 0, first=True)
    return "\n".join([*head, *writer.block(document.top, "Contract", 0)]) + "\n"


@dataclass(frozen=True, slots=True)
class _Writer:
    """Writes values as lines. Each takes the kind of mapping it is in, see `key_order`."""

    sort: bool

    def block(self, value: CstValue, kind: str, indent: int) -> list[str]:
        """The entries of an indented collection and the comments that close it."""
        lines: list[str] = []
        for entry, above in self.entries(value, kind):
            lines += self.comments(above, indent, first=not lines)
            lines += self.entry(entry, kind, indent)
        return lines + self.comments(value.foot, indent)

    def entries(self, value: CstValue, kind: str) -> list[tuple[CstEntry, list[str]]]:
        """The entries in their order, each with the lines above it.

        Lines above the first entry of an item stand above the item's dash, for want of another place.
        """
        entries = list(value.entries or ())
        if self.sort and value.shape is Shape.MAP:
            entries.sort(key=lambda entry: position(kind, _name(entry.key)))
        return [(entry, [*entry.above, *self.hoisted(entry, kind)]) for entry in entries]

    def hoisted(self, entry: CstEntry, kind: str) -> list[str]:
        value = entry.value
        if entry.key or value.shape not in (Shape.MAP, Shape.SEQ) or value.marks or entry.beside:
            return []
        return [line for line in self.entries(value, kind)[0][1] if line]

    def entry(self, entry: CstEntry, kind: str, indent: int) -> list[str]:
        """The lines of one entry, from its key or dash on."""
        value = entry.value
        lead = " " * indent + (f"{entry.key}:" if entry.key else "-")
        below = kind_below(kind, _name(entry.key), value.shape is Shape.SEQ) if entry.key else kind
        start = f"{lead} {value.marks}" if value.marks else lead
        if value.shape is Shape.FLOW and value.entries is not None:
            line = f"{start} {self.brackets(value, self.kind_of(value, kind, entry))}"
            if not value.entries or len(line) <= WIDTH:
                return [_beside(line, entry)]
            value = _indented(value)
            entry = CstEntry(entry.key, value, [], entry.beside)
            below = self.kind_of(value, kind, entry)
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

    def collection(self, start: str, entry: CstEntry, value: CstValue, kind: str, indent: int) -> list[str]:
        lines = self.block(value, kind, indent + _STEP)
        if entry.key or value.marks or entry.beside:
            return [_beside(start, entry), *lines]
        # `- name: …`: the first entry shares the dash's line; what stood above it is above the dash already.
        lines = lines[len(self.comments(self.entries(value, kind)[0][1], 0, first=True)) :]
        return [f"{start} {lines[0].lstrip()}", *lines[1:]]

    def kind_of(self, value: CstValue, kind: str, entry: CstEntry) -> str:
        listed = value.listed or value.shape is Shape.SEQ
        return kind_below(kind, _name(entry.key), listed) if entry.key else kind

    def brackets(self, value: CstValue, kind: str) -> str:
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
