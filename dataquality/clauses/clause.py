"""A clause: one promise of a contract about the data, made testable but not yet tested."""

from __future__ import annotations

import builtins
from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction
from typing import TypeVar

from dq.contracts.model import Property, SchemaObject
from dq.contracts.shared.outcome import Location, Severity
from dq.contracts.shared.units import Duration
from dq.dataquality.clauses.time_column import TimeColumn
from dq.dataquality.model.column import Column
from dq.dataquality.model.needs import needs
from dq.dataquality.model.predicate import Predicate
from dq.dataquality.model.run_context import NOWHEN, Occasion
from dq.dataquality.model.target import Target
from dq.dataquality.model.threshold import Threshold


class RowScope(StrEnum):
    """Which rows a clause speaks about: those of the partitions that are asked for, or all of the table.

    A clause with a window speaks of those of the table that are not older than it.
    """

    PARTITION = "partition"
    TABLE = "table"


class Unit(StrEnum):
    ROWS = "rows"
    PERCENT = "percent"


@dataclass(frozen=True, slots=True)
class Window:
    """The rows of the last so many days, by a column that tells when they are of."""

    time: TimeColumn
    length: Duration


@dataclass(frozen=True, slots=True)
class Extent:
    """The rows that a clause speaks about: where `where` is true, of a part of the data, within a window.

    `narrows` are the columns that the scope of its rule names, `fields` the names that it has behind a dot.
    """

    rows: RowScope = RowScope.PARTITION
    where: Predicate | None = None
    narrows: tuple[Column, ...] = ()
    window: Window | None = None
    fields: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Limit:
    """What the number that is measured must be: of rows, or of percent of them."""

    threshold: Threshold
    unit: Unit


@dataclass(frozen=True, slots=True)
class RowTest:
    """A row breaks the clause where the predicate is true; "3 of 100 rows <complaint>"."""

    breaks: Predicate
    complaint: str


@dataclass(frozen=True, slots=True)
class UniqueKey:
    """The values of these columns may not repeat."""

    keys: tuple[Column, ...]
    complaint: str


@dataclass(frozen=True, slots=True)
class ForeignKey:
    """The values of these columns must stand in those of the target."""

    keys: tuple[Column, ...]
    target: Target
    complaint: str


@dataclass(frozen=True, slots=True)
class RowCount:
    """The rows are counted."""


@dataclass(frozen=True, slots=True)
class KindTerms:
    """What a kind hands from finding the clause to its own questions and its own judge."""

    value: object


@dataclass(frozen=True, slots=True)
class Untestable:
    """It cannot be tested as it is written, which is an error."""

    reason: str


@dataclass(frozen=True, slots=True)
class OutsideKeys:
    """Columns whose values must stand where these references lead: into another contract."""

    keys: tuple[Column, ...]
    references: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NoResult:
    """It makes no result and stands in the account alone.

    `proven`: because no data can break it; else nothing evaluates it. `outside` is what would be looked up,
    were the other contract at hand.
    """

    reason: str
    proven: bool
    outside: OutsideKeys | None = None


Ask = RowTest | UniqueKey | ForeignKey | RowCount | KindTerms | Untestable | NoResult
"""What is asked of the data for a clause, or why nothing is."""


@dataclass(frozen=True, slots=True)
class Clause:
    """What a check promises, and all that is needed to ask for it and to judge the answer.

    `path` is its identity inside the contract, `covers` are further paths that it enforces. `limit` bounds
    the number that is measured; without one, no row may break the clause. `note` says of which rows it was
    asked, and `occasion` is what the run was told.
    """

    check: str
    path: str
    object: str
    property: str
    at: Location
    severity: Severity
    allowed: str
    ask: Ask = RowCount()
    extent: Extent = Extent()
    limit: Limit | None = None
    covers: tuple[str, ...] = ()
    note: str = ""
    occasion: Occasion = NOWHEN

    @builtins.property
    def refused(self) -> str:
        """Why it cannot be tested, or nothing."""
        return self.ask.reason if isinstance(self.ask, Untestable) else ""

    @builtins.property
    def breaks(self) -> Predicate | None:
        """What is true of a row that breaks it by itself; None where no single row does."""
        return self.ask.breaks if isinstance(self.ask, RowTest) else None

    @builtins.property
    def keys(self) -> tuple[Column, ...]:
        """The columns whose values may not repeat, or must stand elsewhere."""
        return self.ask.keys if isinstance(self.ask, UniqueKey | ForeignKey) else ()

    @builtins.property
    def columns(self) -> tuple[Column, ...]:
        """The columns that say whether a row breaks it."""
        read = needs(self.ask.breaks) if isinstance(self.ask, RowTest) else ()
        return self.keys or tuple(need.column for need in read)

    @builtins.property
    def of_rows(self) -> bool:
        """Whether it can be told of each row whether it is good."""
        return isinstance(self.ask, RowTest | UniqueKey | ForeignKey)

    def too_many(self, value: float) -> bool:
        """Whether so many rows that break it are more than it allows, and not fewer than it asks for."""
        return self.limit is None or self.limit.threshold.exceeded_by(Fraction(value))

    @builtins.property
    def allows_none(self) -> bool:
        """Whether it is kept where no row breaks it, so that the rows that do may be taken away."""
        return self.limit is None or self.limit.threshold.holds(0)


def of_property(
    check: str, one: SchemaObject, prop: Property, column: Column, key: str, allowed: str
) -> Clause:
    """The clause that a key of a property makes, still without a question."""
    return Clause(check, prop.path(key), one.name, str(column), prop.at(key), Severity.ERROR, allowed)


def of_option(
    check: str, one: SchemaObject, prop: Property, column: Column, key: str, allowed: str
) -> Clause:
    """The clause that a key of a property's `logicalTypeOptions` makes."""
    options = prop.logical_type_options
    assert options is not None
    at, path = options.at(key), options.path(key)
    return Clause(check, path, one.name, str(column), at, Severity.ERROR, allowed)


def refuse(clause: Clause, reason: str) -> Clause:
    """The clause as one that cannot be tested."""
    return replace(clause, ask=Untestable(reason))


T = TypeVar("T")


def terms_of(clause: Clause, kind: type[T]) -> T:
    """What the clause's own kind has handed on."""
    assert isinstance(clause.ask, KindTerms)
    assert isinstance(clause.ask.value, kind)
    return clause.ask.value


def asking(clause: Clause, ask: Ask) -> Clause:
    """The clause with what is asked for it; one that was refused stays so."""
    return clause if clause.refused else replace(clause, ask=ask)


def documented(clause: Clause, reason: str) -> Clause:
    """The clause as one that no data can break."""
    return asking(clause, NoResult(reason, proven=True))


def left_out(clause: Clause, reason: str) -> Clause:
    """The clause as one that nothing evaluates."""
    return asking(clause, NoResult(reason, proven=False))
