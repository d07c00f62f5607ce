"""A clause: one promise of a contract about the data, made testable but not yet tested."""

from __future__ import annotations

import builtins
import datetime as dt
import zoneinfo
from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction
from typing import TypeVar

from dq.contracts.model import Node, Property, SchemaObject, TypeOptions
from dq.contracts.outcome import Duration, Location, Severity
from dq.contracts.slo import add_months
from dq.contracts.types import physical_type
from dq.dataquality.model.column import Column, Target, needs, single_columns
from dq.dataquality.model.metric import Aggregate
from dq.dataquality.model.predicate import Compare, Predicate, Since1970
from dq.dataquality.model.run_context import NOWHEN, Occasion, Threshold, Unusable
from dq.dataquality.sql_values import civil, logical

# Columns of dates and timestamps: which one shows the age of a row, and when a value of it was.
#
# A value is asked for as a whole number, because Python's datetime ends with the year 9999 and PySpark
# reads
# instants in the zone of the machine: days since 1970 for dates, microseconds for timestamps.

_EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001 - civil time, the zone is put on later
_DAY = 86_400_000_000
_TIMES = ("date", "timestamp", "timestamp_ntz")


@dataclass(frozen=True, slots=True)
class TimeColumn:
    """A column of dates or timestamps, and the zone in which its dates and civil times are meant."""

    column: Column
    type: str
    zone: dt.tzinfo

    def extreme(self, aggregate: str, until: dt.datetime | None = None) -> Aggregate:
        """The question for the newest (`max`) or oldest (`min`) value, of those up to an instant."""
        where = Compare(self.column.path, "<=", self._literal(until)) if until else None
        return Aggregate(aggregate, Since1970(self.column.path, self.type), where)

    def later_than(self, moment: dt.datetime) -> Predicate:
        """A predicate: the value lies after an instant; a date does when its day has not begun."""
        return Compare(self.column.path, ">", self._literal(moment))

    def since(self, moment: dt.datetime) -> Predicate:
        """A predicate: the value lies at an instant or after it; a date, when its day had not ended."""
        return Compare(self.column.path, ">=", self._literal(moment))

    def _literal(self, moment: dt.datetime) -> dt.date:
        here = moment.astimezone(self.zone)
        if self.type == "date":
            return here.date()
        return here if self.type == "timestamp" else here.replace(tzinfo=None)

    def starts(self, number: int) -> int:
        """The instant that a value names, in microseconds since 1970; a date's is its first."""
        if self.type == "timestamp":
            return number
        micros = number * _DAY if self.type == "date" else number
        try:
            there = (_EPOCH + dt.timedelta(microseconds=micros)).replace(tzinfo=self.zone)
            return micros_of(there)
        except OverflowError:
            return micros

    def ends(self, number: int) -> int:
        """As `starts`; a date's is the end of its day, because it stands for all of it."""
        return self.starts(number + 1) if self.type == "date" else self.starts(number)

    def shown(self, number: int) -> str:
        """The value for a reader."""
        micros = number * _DAY if self.type == "date" else number
        try:
            moment = _EPOCH + dt.timedelta(microseconds=micros)
        except OverflowError:
            return "a value after the year 9999" if number > 0 else "a value before the year 1"
        if self.type == "date":
            return moment.date().isoformat()
        return moment.isoformat(" ", "seconds") + ("Z" if self.type == "timestamp" else "")


def micros_of(moment: dt.datetime) -> int:
    """An instant as microseconds since 1970."""
    return (moment - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)) // dt.timedelta(microseconds=1)


def before(moment: dt.datetime, length: Duration, zone: dt.tzinfo) -> dt.datetime:
    """The instant that lies so long before: months by the calendar of the zone, the rest elapsed."""
    back = moment.astimezone(zone)
    if length.months:
        civil_time = add_months(back.replace(tzinfo=None), -length.months)
        back = civil_time.replace(tzinfo=zone)
    return back.astimezone(dt.UTC) - length.elapsed


def in_words(micros: int) -> str:
    """A length of time by its two largest units."""
    left = max(micros, 0) // 1_000_000
    parts = []
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1)):
        amount, left = divmod(left, size)
        if amount:
            parts.append(f"{amount:,} {unit}")
    return " ".join(parts[:2]) or "0 s"


def find_time_column(one: SchemaObject, part: str) -> tuple[Property, Column] | str:
    """The column of this path; for the empty text the object's only timestamp, or else its only date.

    When there is none, the reason as a sentence.
    """
    known = [(way[-1], ".".join(prop.name or "" for prop in way), column)
             for way, column in single_columns(one.properties)]  # fmt: skip
    if part:
        for prop, names, column in known:
            if part in (names, str(column)):
                return prop, column
        return f"{one.name} has no column {part!r} that stands once in a row"
    for wanted in (("timestamp", "timestamp_ntz"), ("date",)):
        fitting = [(prop, column) for prop, _, column in known if held_as(prop) in wanted]
        if len(fitting) == 1:
            return fitting[0]
        if fitting:
            names = ", ".join(str(column) for _, column in fitting)
            return f"it does not say which column shows the age: {names}; write element: {one.name}.<column>"
    return f"{one.name} has no column of dates or timestamps that could show the age"


def held_as(prop: Property) -> str | None:
    """The physical type that holds the column's times; None for texts and what is no time."""
    promised_type = physical_type(prop)
    if promised_type is not None:
        return promised_type.name if promised_type.name in _TIMES else None
    kind = logical(prop)
    if kind == "timestamp":
        return "timestamp_ntz" if civil(prop) else "timestamp"
    return "date" if kind == "date" else None


def zone_of(prop: Property) -> dt.tzinfo:
    options = prop.logical_type_options
    name = (options and options.default_timezone) or "UTC"
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise Unusable(f"defaultTimezone {name!r} is not a time zone") from error


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
    def paths(self) -> tuple[str, ...]:
        """Its own path, and the further ones that it enforces."""
        return (self.path, *self.covers)

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


@dataclass(frozen=True, slots=True)
class PropertyKeys:
    """The keys of one property, from which a check takes its clauses; `options` are `logicalTypeOptions`."""

    check: str
    object: SchemaObject
    property: Property
    column: Column

    @builtins.property
    def options(self) -> TypeOptions | None:
        return self.property.logical_type_options

    def clause(self, key: str, allowed: str) -> Clause:
        """The clause that a key of the property makes, still without a question."""
        return self._clause(self.property, key, allowed)

    def option(self, key: str, allowed: str) -> Clause:
        """The clause that a key of its options makes."""
        assert self.options is not None
        return self._clause(self.options, key, allowed)

    def _clause(self, node: Node, key: str, allowed: str) -> Clause:
        name, column = self.object.name, str(self.column)
        return Clause(self.check, node.path(key), name, column, node.at(key), Severity.ERROR, allowed)


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
