"""What a rule of dq's own engine asks, understood; nothing here looks at data."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from dq.contracts.measures.table import MeasureKind
from dq.contracts.shared.outcome import Location

Way = tuple[str, ...]
"""The names from a row to a column, as they are in the data."""


@dataclass(frozen=True, slots=True)
class Against:
    """What a number is compared with instead of a fixed bound.

    `mode`: `previous` is the run before, `weekday` the last one of the same weekday, `usual` the median of
    the last `runs`, where at least `minimum` are known, give or take what is larger: `deviations` times their
    robust standard deviation, or the share `slack` of the median. `direction` both, fewer or more.
    """

    mode: str
    runs: int = 28
    minimum: int = 7
    deviations: float = 3.5
    slack: float = 0.2
    direction: str = "both"


@dataclass(frozen=True, slots=True)
class Measurement:
    """A metric, and all that its rule says of it.

    `columns` are those that are measured: the property's own for a rule on a property. `by` are the columns
    that make groups. `share` is a quantile's. `start` is a day since 1970 where `dated`. `bounds` are the
    operators with their operands as they are written; empty for what is compared with the usual.
    """

    kind: MeasureKind
    columns: tuple[Way, ...]
    by: tuple[Way, ...] = ()
    against: Against | None = None
    share: Decimal = Decimal("0.5")
    step: int = 1
    start: int = 0
    dated: bool = False
    comparison: str = ""
    family: str = ""
    bounds: tuple[tuple[str, object], ...] = ()
    unit: str = ""


@dataclass(frozen=True, slots=True)
class MeasureFault:
    """What is wrong with a rule, where it stands, what to write instead; `path` is inside the document."""

    at: Location
    path: str
    message: str
    mend: str
