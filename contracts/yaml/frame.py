"""What the reader of YAML keeps while a document is being built, and how it gives up."""

from __future__ import annotations

from dataclasses import dataclass, field
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
