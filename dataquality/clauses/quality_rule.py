"""Quality rules: their check, limit and rows, lists of values, and usual row counts."""

from __future__ import annotations

import builtins
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time
from statistics import median
from typing import TypeVar

from dq.contracts.agreement import AGREEMENTS, is_agreement
from dq.contracts.extension import Scope
from dq.contracts.extension import scope as scope_of
from dq.contracts.metrics import ENGINE, UNUSUAL, Against, implementation, is_unusual_rule, named_metric
from dq.contracts.model import Property, Quality, SchemaObject, strip_source_maps
from dq.contracts.odcs import EARLIER_METRICS
from dq.contracts.outcome import Severity, ValueProblem, parse_duration
from dq.dataquality.clauses.clause import (
    Clause,
    Limit,
    RowFilter,
    RowScope,
    RowTest,
    TimeColumn,
    Unit,
    Window,
    find_time_column,
    refuse,
    time_type_of,
    with_test,
    zone_of,
)
from dq.dataquality.model import run_context
from dq.dataquality.model.column import Column, columns
from dq.dataquality.model.metric import Group
from dq.dataquality.model.predicate import In, Matches, Not, Opaque, Predicate, kind_of
from dq.dataquality.sql_values import display_text, literal

# Row counts of earlier runs, and the usual range derived from them. Nothing here reads data.

# Ratio of standard deviation to median absolute deviation of a normal distribution.
_NORMAL = 1.4826
# With this many runs of the same weekday, only these are compared.
SAME_WEEKDAY = 3
R = TypeVar("R", run_context.PastRowCount, run_context.PastMeasurement)
Run = TypeVar("Run", "PastCount", "PastRun")
_DATE = re.compile(r"(\d{4})-(\d{2})-(\d{2})(?!\d)")
_WEEKDAYS = ("Mondays", "Tuesdays", "Wednesdays", "Thursdays", "Fridays", "Saturdays", "Sundays")


@dataclass(frozen=True, slots=True)
class PastRun:
    """Numbers of one earlier run by group, at the time of its data; `real` is the answer to its alarm."""

    data_time: datetime
    numbers: Mapping[Group, float]
    real: bool | None = None


@dataclass(frozen=True, slots=True)
class PastCount:
    """Row count of one earlier run, at the time of its data."""

    data_time: datetime
    rows: int


@dataclass(frozen=True, slots=True)
class ExpectedRange:
    """Usual range of row counts, bounds inclusive (None: no bound), and the counts it is derived from."""

    minimum: int | None
    maximum: int | None
    middle: float
    counts: tuple[int, ...]
    days: str


def partition_time(partition: run_context.Partition) -> datetime | None:
    """Return the day of a partition from a value with a date, or from columns `year`, `month` and `day`."""
    for _, value in partition:
        match = _DATE.match(value)
        if match and (day := _day(*match.groups())):
            return day
    parts = {column.lower(): value for column, value in partition}
    return _day(parts.get("year", ""), parts.get("month", ""), parts.get("day", ""))


def _day(year: str, month: str, day: str) -> datetime | None:
    try:
        return datetime.combine(date(int(year), int(month), int(day)), time(), UTC)
    except ValueError:
        return None


def data_time_of(context: run_context.RunContext) -> datetime | None:
    """Return the time of the data of this run, or None for several partitions or without a time."""
    if len(context.partitions) > 1:
        return None
    return (partition_time(context.partitions[0]) if context.partitions else None) or context.now


def comparable_counts(context: run_context.RunContext, check: str, clause: str) -> list[PastCount]:
    """Return the earlier counts of a clause that are comparable with this run, oldest first."""
    counts = [run for run in context.history or () if isinstance(run, run_context.PastRowCount)]
    own_counts = [run for run in counts if (run.check, run.clause) == (check, clause)]
    return [PastCount(data_time, run.rows) for data_time, run in earlier_comparable(context, own_counts)]


def earlier_comparable(context: run_context.RunContext, runs: Iterable[R]) -> list[tuple[datetime, R]]:
    """Return the earlier runs that are comparable with this one, by the time of their data.

    Runs of the table are compared with the table, and runs of a partition with partitions that only differ in
    the date, using the newest run of each. Only earlier data is considered.
    """
    data_time = data_time_of(context)
    if data_time is None:
        return []
    own_partition = context.partitions[0] if context.partitions else ()
    newest: dict[object, tuple[datetime, R]] = {}
    for run in sorted(runs, key=lambda run: run.measured_at):
        run_time = partition_time(run.partition) or run.measured_at
        if (
            run_time < data_time
            and differ_only_in_date(run.partition, own_partition)
            and (not own_partition or run.partition != own_partition)
        ):
            newest[run.partition or run.measured_at] = run_time, run
    return sorted(newest.values(), key=lambda pair: pair[0])


def differ_only_in_date(first: run_context.Partition, second: run_context.Partition) -> bool:
    """Return True if two partitions only differ in their date."""
    return _without_date(first) == _without_date(second)


def _without_date(partition: run_context.Partition) -> run_context.Partition:
    """Return the partition without its date values."""
    if partition_time(partition) is None:
        return tuple(sorted(partition))
    parts = ((column, "" if is_date_part(column, value) else value) for column, value in partition)
    return tuple(sorted(parts))


def is_date_part(column: str, value: str) -> bool:
    """Return True if a value of a partition is a date or a part of one."""
    return _DATE.match(value) is not None or column.lower() in ("year", "month", "day")


def usual_range(earlier: Sequence[PastCount], data_time: datetime, against: Against) -> ExpectedRange:
    """Return the usual range of counts, using `last_runs`. `earlier` must not be empty."""
    recent, weekly = last_runs(earlier, data_time, against.runs)
    counts = tuple(run.rows for run in recent)
    middle, reach = median_and_reach(counts, against)
    return ExpectedRange(
        minimum=max(math.ceil(middle - reach), 0) if against.direction != "more" else None,
        maximum=math.floor(middle + reach) if against.direction != "fewer" else None,
        middle=middle,
        counts=counts,
        days=f"{len(counts)} {_WEEKDAYS[data_time.weekday()]}" if weekly else f"{len(counts)} runs",
    )


def last_runs(runs: Sequence[Run], data_time: datetime, limit: int) -> tuple[Sequence[Run], bool]:
    """Return at most `limit` last runs, of the same weekday if there are enough, and True if they are."""
    same_weekday = [run for run in runs if run.data_time.weekday() == data_time.weekday()]
    weekly = SAME_WEEKDAY <= len(same_weekday) < len(runs)
    return (same_weekday if weekly else runs)[-limit:], weekly


def median_and_reach(numbers: Sequence[float], against: Against) -> tuple[float, float]:
    """Return the median and the usual distance from it. There must be at least one number.

    The distance is `deviations` times the robust standard deviation, or the share `slack` of the median,
    whichever is larger.
    """
    middle = median(numbers)
    spread = _NORMAL * median(abs(number - middle) for number in numbers)
    return middle, max(against.deviations * spread, against.slack * abs(middle))


def nearest(earlier: Iterable[PastCount], target_time: datetime, within: float) -> PastCount | None:
    """Return the count nearest to a time, at most `within` seconds away (the earlier one of two), or None."""
    candidates = [past for past in earlier if abs((past.data_time - target_time).total_seconds()) <= within]
    return min(candidates, key=lambda past: abs((past.data_time - target_time).total_seconds()), default=None)


# From a quality rule to its clause: severity, limit and rows.

# Severities are free text in ODCS. Unknown and missing severities are errors, so that failures are not
# missed.
_SEVERITIES = {
    **dict.fromkeys(("info", "information", "trivial", "none"), Severity.INFO),
    **dict.fromkeys(("warning", "warn", "low", "minor"), Severity.WARNING),
    **dict.fromkeys(("critical", "blocker", "fatal"), Severity.CRITICAL),
}


def severity(quality: Quality) -> Severity:
    """Return the severity of a quality rule from its free text."""
    return _SEVERITIES.get((quality.severity or "").strip().lower(), Severity.ERROR)


@dataclass(frozen=True, slots=True)
class Rule:
    """A quality rule with its object, and its property and column if it is on a property."""

    quality: Quality
    object: SchemaObject
    property: Property | None = None
    column: Column | None = None

    @builtins.property
    def column_name(self) -> str:
        """Name of the column in results, or "" for a rule on the object."""
        return "" if self.column is None else str(self.column)


def rules_of(schema: SchemaObject) -> list[Rule]:
    """Return the quality rules of an object, then those of its properties."""
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
    """Return the check that evaluates a quality rule, or None if no check does."""
    if quality.type == "library":
        return _LIBRARY_CHECKS.get(metric(quality) or "")
    if quality.type == "sql":
        return "sql_rule"
    if quality.type != "custom" or quality.engine != ENGINE:
        return None
    if is_unusual_rule(quality):
        return UNUSUAL
    if is_agreement(quality):
        return AGREEMENTS[str(implementation(quality)["check"])]
    measure = named_metric(quality)
    return measure.check if measure is not None else "custom"


_UNITS = {"": Unit.ROWS, "rows": Unit.ROWS, "percent": Unit.PERCENT, "%": Unit.PERCENT}


@dataclass(frozen=True, slots=True)
class RuleOperator:
    """Threshold and unit of a rule."""

    threshold: run_context.Threshold
    unit: str | None = None


def clause_from_quality(
    check: str, schema_object: SchemaObject, quality: Quality, name: str, operator: RuleOperator | None = None
) -> Clause:
    """Return the clause of a quality rule with threshold, unit, scope and severity, still without a test.

    `operator` has threshold and unit if they are not in the rule's own keys. If one of them is invalid, the
    clause is refused.
    """
    grade = severity(quality)
    clause = Clause(check, quality.path(), schema_object.name, name, quality.locate(), grade, "")
    try:
        unit_text = operator.unit if operator else quality.unit
        unit = _UNITS.get((unit_text or "").strip().lower())
        if unit is None:
            raise run_context.Unusable(f"unit {unit_text!r} is neither rows nor percent")
        limit = Limit(operator.threshold if operator else run_context.threshold(quality), unit)
        clause = replace(clause, row_filter=row_filter_of(schema_object, quality))
    except run_context.Unusable as error:
        return refuse(clause, str(error))
    percent = " percent of the rows" if unit is Unit.PERCENT else " rows"
    return replace(clause, allowed=f"{limit.threshold}{percent}", limit=limit)


def with_number_limit(clause: Clause) -> Clause:
    """Return the clause of a rule whose limit bounds a number instead of the number of failing rows."""
    assert clause.limit is not None
    percent = " percent" if clause.limit.unit is Unit.PERCENT else ""
    return replace(clause, allowed=f"{clause.limit.threshold}{percent}")


def row_filter_of(schema_object: SchemaObject, quality: Quality) -> RowFilter:
    """Return the rows that a rule applies to. Raises Unusable, with the reason."""
    terms, findings = scope_of(quality)
    if findings:
        raise run_context.Unusable(f"its scope: {findings[0].message}")
    row_filter = _filter_from_sql(terms.where) if terms.where is not None else RowFilter()
    if terms.rows == "window" or terms.window or terms.time:
        return replace(row_filter, rows=RowScope.TABLE, window=_window(schema_object, terms))
    return replace(row_filter, rows=RowScope.TABLE if terms.rows == "table" else RowScope.PARTITION)


def _filter_from_sql(text: str) -> RowFilter:
    # Imported here, because only rules with a predicate need the SQL parser.
    from dq.contracts.sql.guard import RejectedSql, validate_predicate

    guarded = validate_predicate(text)
    if isinstance(guarded, RejectedSql):
        raise run_context.Unusable(
            f"its scope: where is refused: {guarded.reason}. {guarded.hint.rstrip('.')}"
        )
    filter_columns = tuple(Column((name,)) for name in guarded.columns)
    return RowFilter(where=Opaque(guarded.sql), columns=filter_columns, fields=guarded.fields)


def _window(schema_object: SchemaObject, terms: Scope) -> Window:
    if terms.rows != "window" or not terms.window:
        raise run_context.Unusable("its scope: rows: window and a window, e.g. 7d, require each other")
    length = parse_duration(terms.window)
    if isinstance(length, ValueProblem):
        raise run_context.Unusable(f"its scope: {length.message}")
    prop, column = _time_column(schema_object, terms.time)
    kind = time_type_of(prop)
    if kind is None:
        raise run_context.Unusable(f"its scope: time names {column}, which is not a date or timestamp")
    return Window(TimeColumn(column, kind, zone_of(prop)), length)


def _time_column(schema_object: SchemaObject, column_name: str | None) -> tuple[Property, Column]:
    """Return the time column of a rule's rows. It is not guessed, because a date may be e.g. a birthday."""
    if column_name:
        time_column = find_time_column(schema_object, column_name)
        if isinstance(time_column, str):
            raise run_context.Unusable(f"its scope: {time_column}")
        return time_column
    # With a partition column, only the partitions within the window are read.
    keys = [(key, Column((key.column,))) for key in schema_object.partition_keys() if time_type_of(key)]
    if len(keys) == 1:
        return keys[0]
    which = "several date columns" if keys else "no date column"
    raise run_context.Unusable(
        f"its scope: a window needs the date of each row, and {schema_object.name} is partitioned by {which};"
        " name the column with time:"
    )


# Library rules of ODCS (`quality` with a `metric`): their metrics and arguments.


def metric(quality: Quality) -> str | None:
    """Return the library metric of a rule by its ODCS 3.1 name, or None for rules of another type."""
    if quality.type != "library":
        return None
    metric_name = quality.metric or quality.rule
    return EARLIER_METRICS.get(metric_name, metric_name) if metric_name else None


def arguments(quality: Quality, *allowed: str) -> dict[str, object]:
    """Return the rule's arguments. Raises Unusable for an unknown argument."""
    values = strip_source_maps(quality.arguments)
    if values is None:
        values = {}
    if not isinstance(values, dict):
        raise run_context.Unusable("its arguments must be a mapping")
    for name in values:
        if name not in allowed:
            takes = f"this metric takes {', '.join(allowed)}" if allowed else "this metric takes none"
            raise run_context.Unusable(f"unknown argument {name!r}; {takes}")
    return values


def require_list(value: object, name: str) -> list[object]:
    """Return an argument that must be a non-empty list. Raises Unusable otherwise."""
    if not isinstance(value, list) or not value:
        raise run_context.Unusable(f"the argument {name!r} must be a list of values")
    return value


def row_test_clause(check: str, rule: Rule, complaint: str, breaks: Predicate) -> Clause:
    """Return the clause of a rule that counts failing rows by a predicate."""
    clause = clause_from_quality(check, rule.object, rule.quality, rule.column_name)
    return with_test(clause, RowTest(breaks, complaint))


# Clauses on lists of values and on patterns, shared by several kinds of check.

# Number of values of a list to show.
_MAX_LISTED = 10


def accepted_values_clause(clause: Clause, prop: Property, column: Column, values: list[object]) -> Clause:
    """Return the clause "every value is one of these"; NULL in the list is ignored, since NULL always
    passes.
    """
    present = [value for value in values if value is not None]
    try:
        literals = [literal(prop, value) for value in present]
    except run_context.Unusable as error:
        return refuse(clause, str(error))
    if not literals:
        return refuse(clause, "its list of values is empty")
    names = values_in_words(present)
    unique_literals = tuple({(kind_of(value), value): value for value in literals}.values())
    breaks = column.where(lambda value: Not(In(value, unique_literals)))
    tested = with_test(clause, RowTest(breaks, f"are not one of {names}"))
    return replace(tested, allowed=clause.allowed or f"one of {names}")


def values_in_words(values: list[object]) -> str:
    """Return the first ten values, and the number of further ones."""
    remainder = f" and {len(values) - _MAX_LISTED} more" if len(values) > _MAX_LISTED else ""
    return ", ".join(display_text(value) for value in values[:_MAX_LISTED]) + remainder


def pattern_clause(clause: Clause, column: Column, pattern: str) -> Clause:
    """Return the clause "every string matches this ECMA-262 pattern"."""
    # Imported here: most contracts have no patterns.
    from dq.dataquality.java_pattern import to_java

    try:
        regex = to_java(pattern)
    except run_context.Unusable as error:
        return refuse(clause, str(error))
    breaks = column.where(lambda value: Not(Matches(value, regex.text, regex.longest)))
    return with_test(clause, RowTest(breaks, f"do not match {pattern}"))
