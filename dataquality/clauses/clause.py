"""Clauses: testable statements of a contract about the data."""

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
from dq.dataquality.model.run_context import EMPTY_CONTEXT, RunContext, Threshold, Unusable
from dq.dataquality.sql_values import is_civil, logical_type_of

# Date and timestamp columns that show the age of rows.
#
# Values are measured as integers (days since 1970 for dates, microseconds for timestamps), because Python's
# datetime ends with the year 9999 and PySpark converts instants to the zone of the machine.

_EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001 - civil time, the zone is put on later
_DAY = 86_400_000_000
_TIMES = ("date", "timestamp", "timestamp_ntz")


@dataclass(frozen=True, slots=True)
class TimeColumn:
    """A date or timestamp column, and the zone of its dates and civil times."""

    column: Column
    type: str
    zone: dt.tzinfo

    def extreme(self, aggregate: str, until: dt.datetime | None = None) -> Aggregate:
        """Return the metric of the newest (`max`) or oldest (`min`) value, optionally of those up to
        `until`.
        """
        condition = Compare(self.column.path, "<=", self._literal(until)) if until else None
        return Aggregate(aggregate, Since1970(self.column.path, self.type), condition)

    def later_than(self, moment: dt.datetime) -> Predicate:
        """Return a predicate: the value is after an instant; a date is if its day has not begun."""
        return Compare(self.column.path, ">", self._literal(moment))

    def since(self, moment: dt.datetime) -> Predicate:
        """Return a predicate: the value is at or after an instant; a date is if its day had not ended."""
        return Compare(self.column.path, ">=", self._literal(moment))

    def _literal(self, moment: dt.datetime) -> dt.date:
        local_time = moment.astimezone(self.zone)
        if self.type == "date":
            return local_time.date()
        return local_time if self.type == "timestamp" else local_time.replace(tzinfo=None)

    def starts(self, number: int) -> int:
        """Return the instant of a value in microseconds since 1970; for a date, the start of its day."""
        if self.type == "timestamp":
            return number
        micros = number * _DAY if self.type == "date" else number
        try:
            local_time = (_EPOCH + dt.timedelta(microseconds=micros)).replace(tzinfo=self.zone)
            return micros_of(local_time)
        except OverflowError:
            return micros

    def ends(self, number: int) -> int:
        """Return the instant of a value in microseconds since 1970; for a date, the end of its day."""
        return self.starts(number + 1) if self.type == "date" else self.starts(number)

    def format_value(self, number: int) -> str:
        """Return the value as text for messages."""
        micros = number * _DAY if self.type == "date" else number
        try:
            moment = _EPOCH + dt.timedelta(microseconds=micros)
        except OverflowError:
            return "a value after the year 9999" if number > 0 else "a value before the year 1"
        if self.type == "date":
            return moment.date().isoformat()
        return moment.isoformat(" ", "seconds") + ("Z" if self.type == "timestamp" else "")


def micros_of(moment: dt.datetime) -> int:
    """Return an instant in microseconds since 1970."""
    return (moment - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)) // dt.timedelta(microseconds=1)


def before(moment: dt.datetime, length: Duration, zone: dt.tzinfo) -> dt.datetime:
    """Return the instant `length` before `moment`: months by the calendar of the zone, the rest elapsed
    time.
    """
    back = moment.astimezone(zone)
    if length.months:
        civil_time = add_months(back.replace(tzinfo=None), -length.months)
        back = civil_time.replace(tzinfo=zone)
    return back.astimezone(dt.UTC) - length.elapsed


def in_words(micros: int) -> str:
    """Return a length of time in its two largest units."""
    remaining = max(micros, 0) // 1_000_000
    parts = []
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1)):
        amount, remaining = divmod(remaining, size)
        if amount:
            parts.append(f"{amount:,} {unit}")
    return " ".join(parts[:2]) or "0 s"


def find_time_column(schema_object: SchemaObject, part: str) -> tuple[Property, Column] | str:
    """Return the column at this path; for an empty path the only timestamp column, or else the only date
    column.

    Returns the reason as a string if there is none.
    """
    time_candidates = [(properties[-1], ".".join(prop.name or "" for prop in properties), column)
             for properties, column in single_columns(schema_object.properties)]  # fmt: skip
    if part:
        for prop, names, column in time_candidates:
            if part in (names, str(column)):
                return prop, column
        return f"{schema_object.name} has no column {part!r} that has a single value per row"
    for types in (("timestamp", "timestamp_ntz"), ("date",)):
        candidates = [(prop, column) for prop, _, column in time_candidates if time_type_of(prop) in types]
        if len(candidates) == 1:
            return candidates[0]
        if candidates:
            names = ", ".join(str(column) for _, column in candidates)
            return (
                f"{schema_object.name} has several date columns: {names}; write element: "
                f"{schema_object.name}.<column>"
            )
    return f"{schema_object.name} has no date or timestamp column to measure the age"


def time_type_of(prop: Property) -> str | None:
    """Return the date or timestamp type of the column, or None if it has another type."""
    promised_type = physical_type(prop)
    if promised_type is not None:
        return promised_type.name if promised_type.name in _TIMES else None
    kind = logical_type_of(prop)
    if kind == "timestamp":
        return "timestamp_ntz" if is_civil(prop) else "timestamp"
    return "date" if kind == "date" else None


def zone_of(prop: Property) -> dt.tzinfo:
    options = prop.logical_type_options
    name = (options and options.default_timezone) or "UTC"
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise Unusable(f"defaultTimezone {name!r} is not a time zone") from error


class RowScope(StrEnum):
    """Rows that a clause applies to: those of the requested partitions, or the whole table.

    A clause with a window applies to the rows of the table within the window.
    """

    PARTITION = "partition"
    TABLE = "table"


class Unit(StrEnum):
    ROWS = "rows"
    PERCENT = "percent"


@dataclass(frozen=True, slots=True)
class Window:
    """Rows of a recent period, by a time column."""

    time: TimeColumn
    length: Duration


@dataclass(frozen=True, slots=True)
class RowFilter:
    """Rows that a clause applies to: a part of the data, filtered by `where`, within a window.

    `columns` are the columns in the rule's scope, `fields` the names after a dot in it.
    """

    rows: RowScope = RowScope.PARTITION
    where: Predicate | None = None
    columns: tuple[Column, ...] = ()
    window: Window | None = None
    fields: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Limit:
    """Threshold of the measured number of rows, or percentage of rows."""

    threshold: Threshold
    unit: Unit


@dataclass(frozen=True, slots=True)
class RowTest:
    """A row breaks the clause if the predicate is true; messages read "3 of 100 rows <complaint>"."""

    breaks: Predicate
    complaint: str


@dataclass(frozen=True, slots=True)
class UniqueKey:
    """The values of these columns must be unique."""

    keys: tuple[Column, ...]
    complaint: str


@dataclass(frozen=True, slots=True)
class ForeignKey:
    """The values of these columns must exist in the target's columns."""

    keys: tuple[Column, ...]
    target: Target
    complaint: str


@dataclass(frozen=True, slots=True)
class RowCount:
    """The clause counts the rows."""


@dataclass(frozen=True, slots=True)
class CheckParameters:
    """Parameters that a check kind passes from its clause to its own metrics and evaluation."""

    value: object


@dataclass(frozen=True, slots=True)
class Untestable:
    """The clause cannot be tested as written, which is an error."""

    reason: str


@dataclass(frozen=True, slots=True)
class ExternalKeys:
    """Columns whose values must exist in another contract's object, given by these references."""

    keys: tuple[Column, ...]
    references: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NoResult:
    """The clause has no result and only appears in the coverage.

    `proven` is True if no data can break it, and False if nothing evaluates it. `external_keys` is the
    foreign key to test if the other contract is available.
    """

    reason: str
    proven: bool
    external_keys: ExternalKeys | None = None


ClauseTest = RowTest | UniqueKey | ForeignKey | RowCount | CheckParameters | Untestable | NoResult
"""The test of a clause, or the reason why it has none."""


@dataclass(frozen=True, slots=True)
class Clause:
    """A statement of the contract, with everything needed to measure and evaluate it.

    `path` identifies it in the contract; `covers` are further paths that it enforces. `limit` bounds the
    measured number; without it, no row may break the clause. `note` describes the tested rows, and `context`
    is the run.
    """

    check: str
    path: str
    object: str
    property: str
    at: Location
    severity: Severity
    allowed: str
    test: ClauseTest = RowCount()
    row_filter: RowFilter = RowFilter()
    limit: Limit | None = None
    covers: tuple[str, ...] = ()
    note: str = ""
    context: RunContext = EMPTY_CONTEXT

    @builtins.property
    def paths(self) -> tuple[str, ...]:
        """Its own path, and the further paths that it enforces."""
        return (self.path, *self.covers)

    @builtins.property
    def refusal_reason(self) -> str:
        """Reason why it cannot be tested, or ""."""
        return self.test.reason if isinstance(self.test, Untestable) else ""

    @builtins.property
    def breaks(self) -> Predicate | None:
        """Predicate that is true for a row that breaks it, or None if it is not tested row by row."""
        return self.test.breaks if isinstance(self.test, RowTest) else None

    @builtins.property
    def keys(self) -> tuple[Column, ...]:
        """Columns of its unique or foreign key."""
        return self.test.keys if isinstance(self.test, UniqueKey | ForeignKey) else ()

    @builtins.property
    def columns(self) -> tuple[Column, ...]:
        """Columns that determine if a row breaks it."""
        read = needs(self.test.breaks) if isinstance(self.test, RowTest) else ()
        return self.keys or tuple(need.column for need in read)

    @builtins.property
    def is_row_level(self) -> bool:
        """True if each row passes or fails individually."""
        return isinstance(self.test, RowTest | UniqueKey | ForeignKey)

    def exceeds_limit(self, value: float) -> bool:
        """Return True if this number of failing rows is more than it allows, rather than fewer than it
        requires.
        """
        return self.limit is None or self.limit.threshold.exceeded_by(Fraction(value))

    @builtins.property
    def allows_zero(self) -> bool:
        """True if it passes without failing rows, so that these may be separated."""
        return self.limit is None or self.limit.threshold.holds(0)


@dataclass(frozen=True, slots=True)
class PropertyKeys:
    """Keys of one property, from which a check builds its clauses; `options` are `logicalTypeOptions`."""

    check: str
    object: SchemaObject
    property: Property
    column: Column

    @builtins.property
    def options(self) -> TypeOptions | None:
        return self.property.logical_type_options

    def clause(self, key: str, allowed: str) -> Clause:
        """Return the clause of a key of the property, still without a test."""
        return self._clause(self.property, key, allowed)

    def option(self, key: str, allowed: str) -> Clause:
        """Return the clause of a key of its options, still without a test."""
        assert self.options is not None
        return self._clause(self.options, key, allowed)

    def _clause(self, node: Node, key: str, allowed: str) -> Clause:
        name, column = self.object.name, str(self.column)
        return Clause(self.check, node.path(key), name, column, node.locate(key), Severity.ERROR, allowed)


def refuse(clause: Clause, reason: str) -> Clause:
    """Return the clause as one that cannot be tested, which is an error."""
    return replace(clause, test=Untestable(reason))


T = TypeVar("T")


def parameters_of(clause: Clause, parameters_type: type[T]) -> T:
    """Return the parameters that the clause's check kind has set."""
    assert isinstance(clause.test, CheckParameters)
    assert isinstance(clause.test.value, parameters_type)
    return clause.test.value


def with_test(clause: Clause, test: ClauseTest) -> Clause:
    """Return the clause with this test; a refused clause stays refused."""
    return clause if clause.refusal_reason else replace(clause, test=test)


def documented_only(clause: Clause, reason: str) -> Clause:
    """Return the clause as one that no data can break."""
    return with_test(clause, NoResult(reason, proven=True))


def not_evaluated(clause: Clause, reason: str) -> Clause:
    """Return the clause as one that is not evaluated."""
    return with_test(clause, NoResult(reason, proven=False))
