"""Numbers of an object or a column are as earlier runs let expect, with a promised rate of false alarms.

Why: Good fixed bounds are hard to find for every table, and half a delivery still passes `rowCount > 0`.
Bad: About 1,000,000 rows on each of the last Sundays, and 512,000 on this one.
Good: 990,000 rows.
A rule on the object takes rowCount, bytes (of its files) and arrival (minutes from due to delivered, from the
cycles of `dq watch`), a rule on a column nullShare, distinctCount, mean, sum, stddev and quantiles, e.g. p99:

    quality:
      - type: custom
        engine: dq
        implementation: {check: unusual, arguments: {of: [rowCount, arrival], falseAlarms: 1/year}}

Each number is compared with a forecast from earlier runs, which knows weekdays, hours, trends and the turn of
the month. `falseAlarms` (1/year; also per month or week) are accepted per object: all numbers of its rules
share them. A rule learns during its first 20 runs and two weeks, and is skipped. A number that was reported
does not change what is expected later, unless it persists: a level that lasts for three runs is the new one.
Data of the dates in `expected: [2026-11-27]` is right, however unusual.
[Unusual numbers](../explanation/unusual.md) explains the method. Partitions are compared with those that
differ only in their date, the table with the table.
All numbers come from passes that other rules need, or from the pass that counts: for distinctCount and
quantiles, which need one of their own, another rule must measure the same number. bytes come from the listing
or the metadata that is read anyway, and are skipped where it has none, e.g. a frame or Spark Connect.
Nulls: nullShare is the share of NULL among all rows, without rows there is none; other numbers ignore NULL. A
missing number is skipped. With a NaN among the values, mean, sum, stddev and quantiles are an error. Without
a history, or with several partitions in one run, the rule is skipped.
How to fix: Look at the delivery; if the number is right, add its date to `expected`. It is a warning unless
the rule has a `severity`. In Python pass the history: `check(…, history=…)`.
"""

from __future__ import annotations

import datetime as dt
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING

from dq.contracts.check_result import CheckResult, GroupResult, Status
from dq.contracts.install import require_extras
from dq.contracts.metrics import (
    METRICS,
    UNUSUAL,
    ColumnPath,
    Measurement,
    UnusualRule,
    is_unusual_rule,
    named_metric,
    quantile_of,
    read_unusual_rule,
)
from dq.contracts.outcome import MissingTool, Severity, pluralize
from dq.contracts.schedule.calendar import HolidayCalendar
from dq.dataquality.checks import mean, quantile, stddev
from dq.dataquality.checks import sum as total
from dq.dataquality.clauses import metric_rule, quality_rule
from dq.dataquality.clauses.clause import CheckParameters, Clause, parameters_of, refuse, with_test
from dq.dataquality.clauses.kind import CheckKind, Values, result, subject
from dq.dataquality.model.column import Column
from dq.dataquality.model.metric import FILE_BYTES, Failure, Metric, count
from dq.dataquality.model.predicate import Predicate, all_of
from dq.dataquality.model.run_context import PastMeasurement, Unusable

if TYPE_CHECKING:
    from dq.dataquality.unusual import Judged

_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
# Number of earlier numbers in a message.
_SHOWN = 4


def _null_metrics(
    request: metric_rule.MetricRequest, where: Predicate | None
) -> tuple[metric_rule.Question, ...]:
    return count(all_of(where, request.columns[0].missing())), count(where)


def _row_metrics(
    _request: metric_rule.MetricRequest, where: Predicate | None
) -> tuple[metric_rule.Question, ...]:
    return (count(where),)


# Number -> metric of the catalog, and how it is measured.
_NUMBERS: Mapping[str, tuple[str, metric_rule.ColumnMetric]] = {
    "rowCount": (
        "distinctCount",
        metric_rule.ColumnMetric(_row_metrics, lambda _, answers: Fraction(metric_rule.integer(answers[0]))),
    ),
    "nullShare": ("distinctRatio", metric_rule.ColumnMetric(_null_metrics, metric_rule.ratio)),
    "distinctCount": (
        "distinctCount",
        metric_rule.ColumnMetric(
            metric_rule.distinct_keys, lambda _, answers: Fraction(metric_rule.integer(answers[0]))
        ),
    ),
    "mean": (
        "mean",
        metric_rule.ColumnMetric(metric_rule.sum_metrics, mean.number, metric_rule.sum_follow_ups),
    ),
    "sum": (
        "sum",
        metric_rule.ColumnMetric(metric_rule.sum_metrics, total.number, metric_rule.sum_follow_ups),
    ),
    "stddev": ("stddev", metric_rule.ColumnMetric(stddev.metrics, stddev.number)),
}
_QUANTILE = ("quantile", metric_rule.ColumnMetric(quantile.metrics, quantile.number, quantile.then))
# Numbers that need a pass of their own, with the metrics of rules that take it anyway.
_OWN_PASS = {"distinctCount": ("distinctCount", "distinctRatio"), "quantile": ("quantile",)}


@dataclass(frozen=True, slots=True)
class _RowNumber:
    """A number that is measured on rows."""

    name: str
    measure: metric_rule.ColumnMetric
    request: metric_rule.MetricRequest

    def first(self, where: Predicate | None) -> tuple[Metric, ...]:
        return self.measure.metrics(self.request, where)

    def second(self, where: Predicate | None, values: Values) -> tuple[metric_rule.Question, ...]:
        answers = [values[question] for question in self.measure.metrics(self.request, where)]
        return self.measure.follow_ups(self.request, [answers], where)

    def value(self, clause: Clause, values: Values) -> metric_rule.MeasuredValue:
        where = clause.row_filter.where
        answers = [values[question] for question in (*self.first(where), *self.second(where, values))]
        return metric_rule.in_unit(self.request, self.measure.number(self.request, answers))


@dataclass(frozen=True, slots=True)
class _DeliveryNumber:
    """A number of the delivery, which is known without its rows."""

    name: str

    def first(self, _where: Predicate | None) -> tuple[Metric, ...]:
        return (FILE_BYTES,) if self.name == "bytes" else ()

    def second(self, _where: Predicate | None, _values: Values) -> tuple[Metric, ...]:
        return ()

    def value(self, clause: Clause, values: Values) -> metric_rule.MeasuredValue:
        if self.name == "bytes":
            size = values[FILE_BYTES]
            unknown = metric_rule.NoValueMeasured("the listing of the data has no sizes of files")
            return Fraction(size) if isinstance(size, int) else unknown
        context = clause.context
        if len(context.partitions) > 1:
            return metric_rule.NoValueMeasured("several partitions at once")
        minutes = context.arrivals.get(context.partitions[0] if context.partitions else ())
        if minutes is None:
            return metric_rule.NoValueMeasured("no delivery of it is recorded")
        return Fraction(str(round(minutes, 3)))


_Number = _RowNumber | _DeliveryNumber


@dataclass(frozen=True, slots=True)
class _Terms:
    """Numbers of a rule; `sharing` is the number of all numbers of the object, which share the alarms."""

    rule: UnusualRule
    numbers: tuple[_Number, ...]
    sharing: int
    fingerprint: str


def clause(rule: quality_rule.Rule) -> Clause | None:
    quality, schema = rule.quality, rule.object
    severity = quality_rule.severity(quality) if quality.severity else Severity.WARNING
    allowed = "like earlier runs"
    draft = Clause(
        UNUSUAL, quality.path(), schema.name, rule.column_name, quality.locate(), severity, allowed
    )
    terms = read_unusual_rule(schema, rule.property, quality)
    if not isinstance(terms, UnusualRule):
        first = min(terms, key=lambda finding: finding.at)
        return refuse(draft, f"{first.message} {first.hint}".rstrip("."))
    try:
        draft = replace(draft, row_filter=quality_rule.row_filter_of(schema, quality))
    except Unusable as error:
        return refuse(draft, str(error))
    columns = (Column(terms.column),) if terms.column else ()
    paths = (terms.column,) if terms.column else ()
    numbers = tuple(_number(name, columns, paths) for name in terms.numbers)
    for number in numbers:
        if (reason := _why_not_measured(number, draft, rule)) is not None:
            return refuse(draft, reason)
    where = draft.row_filter.where
    identity = (terms.column, where, draft.row_filter.window, draft.row_filter.rows)
    fingerprint = hashlib.sha256(repr((UNUSUAL, identity)).encode()).hexdigest()[:16]
    return with_test(draft, CheckParameters(_Terms(terms, numbers, _numbers_of_object(rule), fingerprint)))


def _number(name: str, columns: tuple[Column, ...], paths: tuple[ColumnPath, ...]) -> _Number:
    if name in ("bytes", "arrival"):
        return _DeliveryNumber(name)
    share = quantile_of(name)
    metric_name, measure = _NUMBERS.get(name, _QUANTILE)
    measurement = Measurement(METRICS[metric_name], paths, share=share) if share is not None else None
    measurement = measurement or Measurement(METRICS[metric_name], paths)
    return _RowNumber(name, measure, metric_rule.MetricRequest(measurement, columns, (), "", ""))


def _why_not_measured(number: _Number, draft: Clause, rule: quality_rule.Rule) -> str | None:
    """Return why no pass measures a number, or None if one does."""
    if isinstance(number, _DeliveryNumber):
        return None
    name = number.request.terms.kind.name if number.name not in ("rowCount", "nullShare") else ""
    if name not in _OWN_PASS:
        return None
    for other in quality_rule.rules_of(rule.object):
        kind = named_metric(other.quality)
        if kind is None or kind.name not in _OWN_PASS[name]:
            continue
        request = metric_rule.metric_request_of(measured := metric_rule.metric_clause(other))
        if (
            request is not None
            and not request.group_by
            and measured.row_filter == draft.row_filter
            and request.columns == number.request.columns
            and request.terms.share == number.request.terms.share
        ):
            return None
    share = number.request.terms.share
    arguments = f", arguments: {{q: {share.normalize():f}}}" if name == "quantile" else ""
    bound = "mustBeGreaterThan: 0"
    return (
        f"{number.name} needs a pass of its own, and no other rule of {draft.property} takes it; add one: "
        f"{{check: {name}{arguments}, {bound}}}"
    )


def _numbers_of_object(rule: quality_rule.Rule) -> int:
    """Return the number of all numbers of valid rules of the object."""
    rules = [other for other in quality_rule.rules_of(rule.object) if is_unusual_rule(other.quality)]
    parsed = [read_unusual_rule(other.object, other.property, other.quality) for other in rules]
    return sum(len(terms.numbers) for terms in parsed if isinstance(terms, UnusualRule))


def metrics(clause: Clause) -> tuple[Metric, ...]:
    where = clause.row_filter.where
    numbers = parameters_of(clause, _Terms).numbers
    return tuple(dict.fromkeys(question for number in numbers for question in number.first(where)))


def follow_ups(clause: Clause, values: Values) -> tuple[Metric, ...]:
    where = clause.row_filter.where
    numbers = parameters_of(clause, _Terms).numbers
    return tuple(dict.fromkeys(question for number in numbers for question in number.second(where, values)))


def judge(clause: Clause, values: Values) -> CheckResult:
    terms = parameters_of(clause, _Terms)
    measured = {number.name: number.value(clause, values) for number in terms.numbers}
    outcomes = _outcomes(clause, terms, measured)
    groups = tuple(
        outcome.group for outcome in sorted(outcomes, key=lambda outcome: _rank(outcome.group, outcome.p))
    )
    status = groups[0].status
    observed = "; ".join(f"{group.key[0]} {group.observed}" for group in groups if group.status is status)
    message = f"{subject(clause)}: {observed}"
    if status is Status.FAIL:
        alarms, _, period = terms.rule.false_alarms.partition("/")
        message += f"; {pluralize(int(alarms), 'false alarm')} a {period} accepted"
    p = min((outcome.p for outcome in outcomes if outcome.p is not None), default=None)
    checked = result(clause, status, observed, message, p)
    return replace(checked, groups=groups, group_columns=("number",), fingerprint=terms.fingerprint)


_FIRST = (Status.FAIL, Status.ERROR, Status.PASS, Status.SKIPPED)


@dataclass(frozen=True, slots=True)
class _Outcome:
    group: GroupResult
    p: float | None = None


def _rank(group: GroupResult, p: float | None) -> tuple[int, float]:
    return _FIRST.index(group.status), 1.0 if p is None else p


def _outcomes(
    clause: Clause, terms: _Terms, measured: Mapping[str, metric_rule.MeasuredValue]
) -> list[_Outcome]:
    """Return the outcome of each number."""
    numbers = {name: value for name, value in measured.items() if isinstance(value, Fraction)}
    outcomes = []
    for name, value in measured.items():
        if isinstance(value, Failure):
            outcomes.append(_Outcome(GroupResult((name,), Status.ERROR, value.message)))
        elif not isinstance(value, Fraction):
            reason = value.reason if isinstance(value, metric_rule.NoValueMeasured) else "no rows"
            outcomes.append(_Outcome(GroupResult((name,), Status.SKIPPED, reason)))
    past = metric_rule.past_measurements(clause, terms.fingerprint)
    if isinstance(past, str):
        return outcomes + [
            _outcome(name, value, Status.SKIPPED, f"not compared: {past} to compare it with")
            for name, value in numbers.items()
        ]
    return outcomes + _compared(clause, terms, numbers, past)


def _outcome(name: str, value: Fraction, status: Status, text: str, p: float | None = None) -> _Outcome:
    observed = f"{_shown(name, float(value))} {text}" if text else _shown(name, float(value))
    return _Outcome(GroupResult((name,), status, observed, metric_rule.as_float(value)), p)


def _compared(
    clause: Clause, terms: _Terms, numbers: Mapping[str, Fraction], past: Sequence[quality_rule.PastRun]
) -> list[_Outcome]:
    """Return the outcomes of numbers by the forecasts from earlier runs."""
    data_time = quality_rule.data_time_of(clause.context)
    assert data_time is not None
    try:
        with require_extras(f"The check {UNUSUAL} needs NumPy", "spark"):
            from dq.dataquality import unusual
    except MissingTool as error:
        # The numbers are kept for later runs; how to install it is said once.
        texts = [f"not compared: {error.message} {error.hint}"] + ["not compared"] * len(numbers)
        pairs = zip(numbers.items(), texts, strict=False)
        return [_outcome(name, value, Status.ERROR, text) for (name, value), text in pairs]
    if not numbers:
        return []
    times = [*(run.data_time for run in past), data_time]
    judged, yearly = unusual.judge_runs(
        times,
        {
            name: [None if run.real else run.numbers.get((name,)) for run in past]
            + [metric_rule.as_float(value)]
            for name, value in numbers.items()
        },
        terms.rule.alarms_a_year / max(terms.sharing, 1),
        terms.rule.expected,
        _free_days(clause.context.calendar, times),
        [*(run.real is False for run in past), False],
    )
    # The limit of all tables is divided by the numbers of the rule, and lowered as that of the table.
    own_level = min(terms.rule.alarms_a_year / max(terms.sharing, 1) / yearly, unusual.MAX_LEVEL)
    fleet_level = clause.context.unusual_level
    limits = (
        None if fleet_level is None else judged.level[:, -1] / own_level * fleet_level / len(terms.numbers)
    )
    accepted = ""
    if data_time.date() in terms.rule.expected:
        accepted = "accepted by the rule for this date"
    elif _is_answered_as_normal(clause, terms, numbers):
        accepted = "its alarm was answered as not real"
    day = _WEEKDAYS[data_time.weekday()] if unusual.is_daily(yearly) else ""
    outcomes = []
    for index, (name, value) in enumerate(numbers.items()):
        earlier = [
            (run.data_time, run.numbers[name,]) for run in past if (name,) in run.numbers and not run.real
        ]
        reason = accepted
        if not reason and limits is not None and judged.p[index, -1] >= limits[index]:
            reason = "not reported: the accepted false alarms of all tables (unusual_false_alarms) are fewer"
        outcomes.append(_judged_outcome(name, value, judged, index, earlier, day, data_time, reason))
    return outcomes


def _is_answered_as_normal(clause: Clause, terms: _Terms, numbers: Mapping[str, Fraction]) -> bool:
    """Return True if the last alarm about these numbers of this partition was answered as not real."""
    own = [
        past
        for past in clause.context.history or ()
        if isinstance(past, PastMeasurement)
        and (past.check, past.clause, past.definition) == (clause.check, clause.path, terms.fingerprint)
    ]
    answers = {
        (tuple(sorted(partition)), groups): real
        for (partition, groups), real in metric_rule.answers_by_numbers(own).items()
    }
    groups = frozenset(((name,), metric_rule.as_float(value)) for name, value in numbers.items())
    partition = clause.context.partitions[0] if clause.context.partitions else ()
    return answers.get((partition, groups)) is False


def _free_days(calendar: HolidayCalendar | None, times: Sequence[dt.datetime]) -> set[dt.date]:
    """Return the weekdays on which the calendar of the deliveries has an effect."""
    days = {time.date() for time in times} if calendar else set()
    return {day for day in days if day.weekday() < 5 and calendar and calendar.effect(day)}


def _judged_outcome(
    name: str,
    value: Fraction,
    judged: Judged,
    index: int,
    earlier: Sequence[tuple[dt.datetime, float]],
    day: str,
    data_time: dt.datetime,
    accepted: str,
) -> _Outcome:
    p = float(judged.p[index, -1])
    if p != p:
        from dq.dataquality.unusual import MIN_RUNS

        runs = len(earlier)
        text = f"learning ({runs} of {MIN_RUNS} runs)" if runs < MIN_RUNS else "learning the calendar"
        return _outcome(name, value, Status.SKIPPED, f"not compared: {text}")
    lower, upper = float(judged.lower[index]), float(judged.upper[index])
    expected = f"expected {_shown(name, lower)} to {_shown(name, upper)}"
    if not judged.unusual[index, -1]:
        return _outcome(name, value, Status.PASS, f"({expected})", p)
    if accepted:
        return _outcome(name, value, Status.PASS, f"({expected}; {accepted})", p)
    same_day = [number for time, number in earlier if not day or time.weekday() == data_time.weekday()]
    last = ", ".join(_shown(name, number) for number in same_day[-_SHOWN:])
    days = f"{day}s" if day else "runs"
    article = f" for a {day}" if day else ""
    text = f"is unusual{article}: {expected} (the last {days}: {last})"
    return _outcome(name, value, Status.FAIL, text, p)


def _shown(name: str, value: float) -> str:
    if name == "nullShare":
        return f"{100 * value:.4g} %"
    if name in ("rowCount", "distinctCount", "bytes"):
        return f"{round(value):,}"
    if name == "arrival":
        return _arrival_text(value)
    return f"{value:,.6g}"


def _arrival_text(minutes: float) -> str:
    """Return minutes after due as text, e.g. `1 h 20 min late`."""
    distance = abs(round(minutes))
    length = f"{distance // 60:,} h {distance % 60} min" if distance >= 60 else f"{distance} min"
    return f"{length} {'late' if minutes > 0 else 'early'}" if distance else "on time"


CHECK = CheckKind(UNUSUAL, __doc__, metrics=metrics, evaluate=judge, follow_ups=follow_ups, rule=clause)
