"""What the reader of YAML keeps while a document is being built, and how it gives up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dq.contracts.shared.source_map import Place, Spot
from dq.contracts.yaml.scalar import Value


class Refusal(Exception):
    """The document cannot be read as plain data: what is wrong, where, and the mend."""

    def __init__(self, message: str, mend: str, spot: Spot) -> None:
        super().__init__(message)
        self.message = message
        self.mend = mend
        self.spot = spot


@dataclass(frozen=True, slots=True)
class Twin:
    """A key that a mapping holds twice."""

    key: str
    path: str
    spot: Spot
    first: Spot


@dataclass(frozen=True, slots=True)
class OddNumber:
    """An unquoted value that some readers of YAML take for another one than others do."""

    text: str
    path: str
    spot: Spot
    made: Value
    other: Value


class Frame:
    """A mapping or sequence that is being filled."""

    __slots__ = (
        "anchor",
        "expecting",
        "key",
        "key_spot",
        "merges",
        "path",
        "place",
        "size",
        "spots",
        "target",
    )

    def __init__(self, target: Any, path: str, place: Place | None, anchor: str | None) -> None:
        self.target = target
        self.path = path
        self.place = place
        self.anchor = anchor
        self.key: str | None = None
        self.key_spot: Spot = (1, 1)
        self.spots: list[Spot] = []
        self.merges: list[Any] = []
        self.size = 1
