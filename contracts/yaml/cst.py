"""How a YAML document is laid out: its entries in their order, and the comments that belong to each."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum


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
