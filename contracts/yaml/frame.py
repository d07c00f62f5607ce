"""What the reader of YAML keeps while a document is being built, and how it gives up."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from yaml.events import ScalarEvent

from dq.contracts.shared.outcome import Finding, Location, mistake
from dq.contracts.shared.source_map import Place, Spot
from dq.contracts.type_errors import read_as
from dq.contracts.yaml.scalar import Value


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


def odd_number(text: str, path: str, at: Location, made: Value, other: Value) -> Finding:
    """The finding for an unquoted value that some readers of YAML take for another one than others do."""
    numbers = " or ".join(f"{each:.15g}" for each in (other, made) if isinstance(each, (int, float)))
    message = f"{text} is read as {read_as(made)}, and by readers of YAML 1.2 as {read_as(other)}."
    mend = f"Write {numbers} where a number is meant, and quotes where a text is: '{text}'."
    return mistake("ambiguous-number", message, mend, at, path)


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


def is_empty(event: Any) -> bool:
    """Return whether an event of the parser is all that a document without content has."""
    if event.__class__ is not ScalarEvent or event.tag or event.anchor:
        return False
    return bool(not event.value and event.implicit[0])
