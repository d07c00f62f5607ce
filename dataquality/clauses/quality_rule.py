"""Quality rules: the check each calls for, its limit and rows, lists of values, usual row counts."""

from __future__ import annotations

import builtins
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time
from statistics import median
from typing import TypeVar

from dq.contracts.extension import Scope
from dq.contracts.extension import scope as scope_of
from dq.contracts.metrics import ENGINE, Against, measure_named
from dq.contracts.model import Property, Quality, SchemaObject, plain
from dq.contracts.odcs import EARLIER_METRICS
from dq.contracts.outcome import Severity, TextFault, parse_duration
from dq.dataquality.clauses.clause import (
    Clause,
    Extent,
    Limit,
    RowScope,
    RowTest,
    TimeColumn,
    Unit,
    Window,
    asking,
    find_time_column,
    held_as,
    refuse,
    zone_of,
)
from dq.dataquality.model import run_context
from dq.dataquality.model.column import Column, columns
from dq.dataquality.model.metric import Group
from dq.dataquality.model.predicate import In, Matches, Not, Opaque, Predicate, kind_of
from dq.dataquality.sql_values import java, literal, shown

# What earlier runs counted, and which numbers of rows are usual by that. Nothing here asks the data.

# What a rule of dq's own engine calls this comparison; see `checks/row_count_anomaly.py`.
ANOMALY = "rowCountAnomaly"
# The median absolute deviation of a normal distribution is so much smaller than its standard deviation.
_NORMAL = 1.4826
# So many runs of the same weekday say more than all days together.
SAME_WEEKDAY = 3
R = TypeVar("R", run_context.Earlier, run_context.EarlierMeasure)
Run = TypeVar("Run", "Counted", "Past")
_DATE = re.compile(r"(\d{4})-(\d{2})-(\d{2})(?!\d)")
_WEEKDAYS = ("Mondays", "Tuesdays", "Wednesdays", "Thursdays", "Fridays", "Saturdays", "Sundays")


def written_as_anomaly(quality: Quality) -> dict[str, object] | None:
    """The implementation of a rule that asks for unusual numbers of rows; None for every other rule."""
    if quality.type != "custom" or quality.engine != "dq":
        return None
    written = plain(quality.implementation)
    if isinstance(written, str):
        written = {"check": written.strip()}
    return written if isinstance(written, dict) and written.get("check") == ANOMALY else None


@dataclass(frozen=True, slots=True)
class Past:
    """What one earlier run measured, by group, at the time that its rows are of."""

    of: datetime
    numbers: Mapping[Group, float]


@dataclass(frozen=True, slots=True)
class Counted:
    """One earlier count, at the time that its rows are of."""

    of: datetime
    rows: int


@dataclass(frozen=True, slots=True)
class Band:
    """The usual numbers of rows, both bounds included, and from what they were made; None: no bound."""

    least: int | None
    most: int | None
    middle: float
    counts: tuple[int, ...]
    days: str


def time_of(partition: run_context.Partition) -> datetime | None:
    """The day that a partition is of: a value with a date, or columns `year`, `month` and `day`."""
    for _, value in partition:
        found = _DATE.match(value)
        if found and (day := _day(*found.groups())):
            return day
    parts = {column.lower(): value for column, value in partition}
    return _day(parts.get("year", ""), parts.get("month", ""), parts.get("day", ""))


def _day(year: str, month: str, day: str) -> datetime | None:
    try:
        return datetime.combine(date(int(year), int(month), int(day)), time(), UTC)
    except ValueError:
        return None


def moment_of(occasion: run_context.Occasion) -> datetime | None:
    """The time that the rows of this run are of; None for several partitions, or without any time."""
    if len(occasion.partitions) > 1:
        return None
    return (time_of(occasion.partitions[0]) if occasion.partitions else None) or occasion.now


def comparable(occasion: run_context.Occasion, check: str, clause: str) -> list[Counted]:
    """The earlier counts of a clause that can be compared with this run, the oldest first."""
    counts = [one for one in occasion.history or () if isinstance(one, run_context.Earlier)]
    mine = [one for one in counts if (one.check, one.clause) == (check, clause)]
    return [Counted(of, one.rows) for of, one in before_this(occasion, mine)]


def before_this(occasion: run_context.Occasion, runs: Iterable[R]) -> list[tuple[datetime, R]]:
    """Those earlier runs that can be compared with this one, by the time that their rows are of.

    Those of the table with the table; those of partitions with partitions that differ in the date alone,
    of each the newest. Only what is of an earlier time counts.
    """
    here = moment_of(occasion)
    if here is None:
        return []
    mine = occasion.partitions[0] if occasion.partitions else ()
    found: dict[object, tuple[datetime, R]] = {}
    for one in sorted(runs, key=lambda one: one.at):
        of = time_of(one.partition) or one.at
        if of < here and same_kind(one.partition, mine) and (not mine or one.partition != mine):
            found[one.partition or one.at] = of, one
    return sorted(found.values(), key=lambda pair: pair[0])


def same_kind(one: run_context.Partition, other: run_context.Partition) -> bool:
    """Whether two partitions differ in nothing but what tells their date."""
    return _kind(one) == _kind(other)


def _kind(partition: run_context.Partition) -> run_context.Partition:
    """The partition without what tells its date."""
    if time_of(partition) is None:
        return tuple(sorted(partition))
    parts = ((column, "" if _of_date(column, value) else value) for column, value in partition)
    return tuple(sorted(parts))


def _of_date(column: str, value: str) -> bool:
    return _DATE.match(value) is not None or column.lower() in ("year", "month", "day")


def usual(earlier: Sequence[Counted], here: datetime, against: Against) -> Band:
    """The band of usual counts, by `last_of`. `earlier` must not be empty."""
    last, weekly = last_of(earlier, here, against.runs)
    counts = tuple(one.rows for one in last)
    middle, reach = reach_of(counts, against)
    return Band(
        least=max(math.ceil(middle - reach), 0) if against.direction != "more" else None,
        most=math.floor(middle + reach) if against.direction != "fewer" else None,
        middle=middle,
        counts=counts,
        days=f"{len(counts)} {_WEEKDAYS[here.weekday()]}" if weekly else f"{len(counts)} runs",
    )


def last_of(runs: Sequence[Run], here: datetime, most: int) -> tuple[Sequence[Run], bool]:
    """The last runs, so many at most, and whether they are of this weekday alone: where there are enough."""
    same = [one for one in runs if one.of.weekday() == here.weekday()]
    weekly = SAME_WEEKDAY <= len(same) < len(runs)
    return (same if weekly else runs)[-most:], weekly


def reach_of(numbers: Sequence[float], against: Against) -> tuple[float, float]:
    """The median, and how far from it is usual: `deviations` times the robust standard deviation, or the
    share `slack` of the median, whichever is larger. There is at least one number."""
    middle = median(numbers)
    spread = _NORMAL * median(abs(number - middle) for number in numbers)
    return middle, max(against.deviations * spread, against.slack * abs(middle))


def nearest(earlier: Iterable[Counted], wanted: datetime, within: float) -> Counted | None:
    """The count nearest to a time, at most so many seconds away; of two as near, the earlier one."""
    near = [one for one in earlier if abs((one.of - wanted).total_seconds()) <= within]
    return min(near, key=lambda one: abs((one.of - wanted).total_seconds()), default=None)


# Quality rules: the limit and the rows that they mean, library metrics, lists of values and patterns.

# From a quality rule to its clause: the severity, the limit and the rows that it means.

# Free text in ODCS. What is not listed is an error: a rule that nobody graded must not pass in silence.
_SEVERITIES = {
    **dict.fromkeys(("info", "information", "trivial", "none"), Severity.INFO),
    **dict.fromkeys(("warning", "warn", "low", "minor"), Severity.WARNING),
    **dict.fromkeys(("critical", "blocker", "fatal"), Severity.CRITICAL),
}


def severity(quality: Quality) -> Severity:
    """The severity that a quality rule's free text stands for."""
    return _SEVERITIES.get((quality.severity or "").strip().lower(), Severity.ERROR)


@dataclass(frozen=True, slots=True)
class Rule:
    """A quality rule and what it belongs to: an object, or one property of it with its column."""

    quality: Quality
    object: SchemaObject
    property: Property | None = None
    column: Column | None = None

    @builtins.property
    def shown(self) -> str:
        """The column, as results name it; the empty text for a rule of the object."""
        return "" if self.column is None else str(self.column)


def rules_of(schema: SchemaObject) -> list[Rule]:
    """The quality rules of an object, then those of its properties."""
    rules = [Rule(quality, schema) for quality in schema.quality]
    for prop, column in columns(schema):
        rules += [Rule(quality, schema, prop, column) for quality in prop.quality]
    return rules


# Library metric -> the check that evaluates it.
_LIBRARY_CHECKS = {
    "rowCount": "row_count",
    "nullValues": "null_values",
    "missingValues": "missing_values",
    "invalidValues": "invalid_values",
    "duplicateValues": "duplicate_values",
}


def check_of(quality: Quality) -> str | None:
    """The check that evaluates a quality rule; None if no check does."""
    if quality.type == "library":
        return _LIBRARY_CHECKS.get(metric(quality) or "")
    if quality.type == "sql":
        return "sql_rule"
    if quality.type != "custom" or quality.engine != ENGINE:
        return None
    if written_as_anomaly(quality) is not None:
        return "row_count_anomaly"
    measure = measure_named(quality)
    return measure.check if measure is not None else "custom"


_UNITS = {"": Unit.ROWS, "rows": Unit.ROWS, "percent": Unit.PERCENT, "%": Unit.PERCENT}


@dataclass(frozen=True, slots=True)
class Told:
    """What a rule is measured by."""

    threshold: run_context.Threshold
    unit: str | None = None


def of_quality(
    check: str, one: SchemaObject, quality: Quality, name: str, told: Told | None = None
) -> Clause:
    """The clause of a library rule: its threshold, unit, scope and severity, still without a question.

    `told` are threshold and unit that stand in another place than the rule's own keys. Where one of them
    cannot be used, the clause says so in `refused`.
    """
    grade = severity(quality)
    made = Clause(check, quality.path(), one.name, name, quality.at(), grade, "")
    try:
        said = told.unit if told else quality.unit
        unit = _UNITS.get((said or "").strip().lower())
        if unit is None:
            raise run_context.Unusable(f"unit {said!r} is neither rows nor percent")
        limit = Limit(told.threshold if told else run_context.threshold(quality), unit)
        made = replace(made, extent=extent_of(one, quality))
    except run_context.Unusable as error:
        return refuse(made, str(error))
    percent = " percent of the rows" if unit is Unit.PERCENT else " rows"
    return replace(made, allowed=f"{limit.threshold}{percent}", limit=limit)


def of_number(made: Clause) -> Clause:
    """The clause of a rule whose limit bounds a number, and not how many rows break it."""
    assert made.limit is not None
    percent = " percent" if made.limit.unit is Unit.PERCENT else ""
    return replace(made, allowed=f"{made.limit.threshold}{percent}")


def extent_of(one: SchemaObject, quality: Quality) -> Extent:
    """The rows that a rule means. Raises Unusable, with the reason."""
    terms, findings = scope_of(quality)
    if findings:
        raise run_context.Unusable(f"its scope: {findings[0].message}")
    made = _narrowed(terms.where) if terms.where is not None else Extent()
    if terms.rows == "window" or terms.window or terms.time:
        return replace(made, rows=RowScope.TABLE, window=_window(one, terms))
    return replace(made, rows=RowScope.TABLE if terms.rows == "table" else RowScope.PARTITION)


def _narrowed(text: str) -> Extent:
    # Only who has a predicate pays for the parser.
    from dq.contracts.sql.guard import Refused, guarded_predicate

    found = guarded_predicate(text)
    if isinstance(found, Refused):
        raise run_context.Unusable(
            f"its scope: where is refused: {found.reason}. {found.instead.rstrip('.')}"
        )
    named = tuple(Column((name,)) for name in found.columns)
    return Extent(where=Opaque(found.sql), narrows=named, fields=found.fields)


def _window(one: SchemaObject, terms: Scope) -> Window:
    if terms.rows != "window" or not terms.window:
        raise run_context.Unusable("its scope: rows: window and a window such as 7d go together")
    length = parse_duration(terms.window)
    if isinstance(length, TextFault):
        raise run_context.Unusable(f"its scope: {length.message}")
    prop, column = _time(one, terms.time)
    kind = held_as(prop)
    if kind is None:
        raise run_context.Unusable(f"its scope: time names {column}, which is no date or timestamp")
    return Window(TimeColumn(column, kind, zone_of(prop)), length)


def _time(one: SchemaObject, named: str | None) -> tuple[Property, Column]:
    """The column that tells when a row is of; none is guessed, because it may be a birthday."""
    if named:
        found = find_time_column(one, named)
        if isinstance(found, str):
            raise run_context.Unusable(f"its scope: {found}")
        return found
    # Of a partition column only the partitions within the window need be read.
    keys = [(key, Column((key.column,))) for key in one.partition_keys() if held_as(key)]
    if len(keys) == 1:
        return keys[0]
    which = "several dates" if keys else "no date"
    raise run_context.Unusable(
        f"its scope: a window needs to know when a row is of, and {one.name} is partitioned by {which};"
        " write time: and the column"
    )


# Library rules of ODCS (`quality` with a `metric`): where they stand and what arguments they bring.


def metric(quality: Quality) -> str | None:
    """The library metric that a rule asks for, by its name of ODCS 3.1; None for rules of another type."""
    if quality.type != "library":
        return None
    named = quality.metric or quality.rule
    return EARLIER_METRICS.get(named, named) if named else None


def arguments(quality: Quality, *known: str) -> dict[str, object]:
    """The rule's arguments. Raises Unusable for one that the metric does not take."""
    given = plain(quality.arguments)
    if given is None:
        given = {}
    if not isinstance(given, dict):
        raise run_context.Unusable("its arguments must be a mapping")
    for name in given:
        if name not in known:
            takes = f"it takes {', '.join(known)}" if known else "it takes none"
            raise run_context.Unusable(f"the argument {name!r} is not one of this metric; {takes}")
    return given


def listed(value: object, name: str) -> list[object]:
    """An argument that must be a list with something in it."""
    if not isinstance(value, list) or not value:
        raise run_context.Unusable(f"the argument {name!r} must be a list of values")
    return value


def counting(check: str, rule: Rule, complaint: str, breaks: Predicate) -> Clause:
    """The clause of a rule that counts rows by a predicate."""
    made = of_quality(check, rule.object, rule.quality, rule.shown)
    return asking(made, RowTest(breaks, complaint))


# Predicates on lists of values and on patterns, which several kinds of check share.

# Of a long list the reader sees the beginning.
_SHOWN = 10


def one_of(clause: Clause, prop: Property, column: Column, values: list[object]) -> Clause:
    """The clause as "every value is one of these"; NULL in the list is left out, as NULL breaks nothing."""
    given = [value for value in values if value is not None]
    try:
        literals = [literal(prop, value) for value in given]
    except run_context.Unusable as error:
        return refuse(clause, str(error))
    if not literals:
        return refuse(clause, "its list of values is empty")
    names = values_in_words(given)
    known = tuple({(kind_of(value), value): value for value in literals}.values())
    breaks = column.where(lambda value: Not(In(value, known)))
    asked = asking(clause, RowTest(breaks, f"are not one of {names}"))
    return replace(asked, allowed=clause.allowed or f"one of {names}")


def values_in_words(values: list[object]) -> str:
    """The first ten values, and how many more there are."""
    more = f" and {len(values) - _SHOWN} more" if len(values) > _SHOWN else ""
    return ", ".join(shown(value) for value in values[:_SHOWN]) + more


def matching(clause: Clause, column: Column, pattern: str) -> Clause:
    """The clause as "every text holds a match of this ECMA-262 pattern"."""
    try:
        regex = java(pattern)
    except run_context.Unusable as error:
        return refuse(clause, str(error))
    breaks = column.where(lambda value: Not(Matches(value, regex.text, regex.longest)))
    return asking(clause, RowTest(breaks, f"do not match {pattern}"))
