"""What the reader of YAML keeps while a document is being built, and how it gives up."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from math import isfinite
from typing import Any

from yaml.events import ScalarEvent

from dq.contracts.shared.outcome import Finding, Location, Severity, mistake
from dq.contracts.shared.source_map import Place, Spot
from dq.contracts.type_errors import read_as, spelled
from dq.contracts.yaml.scalar import Value

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
