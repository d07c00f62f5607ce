"""Rules with a metric of dq's own engine: metrics, clauses, baselines and results."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from fractions import Fraction

from dq.contracts.check_result import CheckResult, GroupResult, Status
from dq.contracts.metrics import (
    METRICS,
    Against,
    MeasureKind,
    Measurement,
    is_unusual_rule,
    named_metric,
    read_metric_rule,
)
from dq.contracts.model import Quality, SchemaObject
from dq.contracts.outcome import Severity, pluralize
from dq.dataquality.clauses import quality_rule
from dq.dataquality.clauses.clause import CheckParameters, Clause, Unit, parameters_of, refuse, with_test
from dq.dataquality.clauses.kind import CheckKind, Values, result, subject, unmeasured
from dq.dataquality.model import metric, predicate
from dq.dataquality.model.column import MASK, Column, needs, reason_not_shown
from dq.dataquality.model.run_context import Partition, PastMeasurement, Unusable, comparison

# Common parts of dq's own metrics: requests, and measured values (a number, a ratio, no value, or a failure).

Question = metric.Aggregate | metric.DistinctKeys | metric.SingleKeys


@dataclass(frozen=True, slots=True)
class Ratio:
    """A part of a total."""

    part: int
    total: int


@dataclass(frozen=True, slots=True)
class NoValueMeasured:
    """There is no value to measure, with the reason."""

    reason: str


MeasuredValue = Fraction | Ratio | NoValueMeasured | metric.Failure


@dataclass(frozen=True, slots=True)
class MetricRequest:
    """Parameters of a rule with a metric of dq's own engine.

    `hidden_reason` is the reason for not showing its number, or "". `fingerprint` identifies the measurement.
    """

    terms: Measurement
    columns: tuple[Column, ...]
    group_by: tuple[Column, ...]
    hidden_reason: str
    fingerprint: str


def metric_request_of(clause: Clause) -> MetricRequest | None:
    """Return the metric request of a clause, or None for clauses without a metric of dq's own engine."""
    parameters = clause.test.value if isinstance(clause.test, CheckParameters) else None
    return parameters if isinstance(parameters, MetricRequest) else None


@dataclass(frozen=True, slots=True)
class ColumnMetric:
    """Definition of one metric.

    `metrics` returns the first metrics on the rows where a predicate is true, `follow_ups` those that depend
    on their values in each group, and `number` computes the number from both.
    """

    metrics: Callable[[MetricRequest, predicate.Predicate | None], tuple[Question, ...]]
    number: Callable[[MetricRequest, Sequence[metric.Value]], MeasuredValue]
    follow_ups: Callable[
        [MetricRequest, Sequence[Sequence[metric.Value]], predicate.Predicate | None], tuple[Question, ...]
    ] = lambda _request, _answer_rows, _where: ()


def exact(value: metric.Value) -> Fraction | metric.Failure:
    """Return the exact number; a float is its shortest decimal. NaN and infinities are failures."""
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return metric.Failure(f"the data gives a {type(value).__name__}; a number is needed")
    if not math.isfinite(value):
        return metric.Failure(f"the number is {value}, which cannot be compared")
    return Fraction(str(value))


def integer(value: metric.Value) -> int:
    """Return the value as a count."""
    assert isinstance(value, int), f"a count is needed, not {value!r}"
    return value


def ratio(_request: MetricRequest, answers: Sequence[metric.Value]) -> MeasuredValue:
    """Return the first answer as a part of the second."""
    part, total = answers
    return Ratio(integer(part), integer(total))


def not_a_number(count: metric.Value) -> metric.Failure | None:
    """Return the failure for values with NaN, or None if there are none."""
    nan_count = integer(count)
    verb = "value is" if nan_count == 1 else "values are"
    return metric.Failure(f"{nan_count:,} {verb} NaN (not a number)") if nan_count else None


def in_unit(request: MetricRequest, value: MeasuredValue) -> MeasuredValue:
    """Return the number in the unit of its rule."""
    if not isinstance(value, Ratio):
        return value
    percent = request.terms.unit == "percent" and request.terms.against is None
    if not percent and not request.terms.kind.name.endswith("Ratio"):
        return Fraction(value.part)
    if value.total == 0:
        return NoValueMeasured("no rows for a ratio")
    return Fraction(value.part * (100 if percent else 1), value.total)


# More digits than any sum of decimals in Spark.
_DIGITS = 60


def shown(number: Fraction) -> str:
    """Format a number with all digits if they end, or else ten."""
    if number.denominator == 1 and abs(number) < 10**18:
        return f"{number.numerator:,}"
    remainder = number.denominator
    for prime in (2, 5):
        while remainder % prime == 0:
            remainder //= prime
    if remainder == 1 and number.denominator < 10**20 and abs(number) < 10**_DIGITS:
        scale = next(
            digits_after for digits_after in range(_DIGITS) if 10**digits_after % number.denominator == 0
        )
        digits = str(abs(number.numerator) * (10**scale // number.denominator)).rjust(scale + 1, "0")
        sign = "-" if number < 0 else ""
        return f"{sign}{int(digits[: len(digits) - scale]):,}" + (f".{digits[-scale:]}" if scale else "")
    return f"{as_float(number):,.10g}"


def as_float(number: Fraction) -> float:
    """Return the nearest float, or infinity beyond the largest float."""
    try:
        return float(number)
    except OverflowError:
        return math.copysign(math.inf, number)


Numbers = Mapping[metric.Group, MeasuredValue]
"""Measured values by group; without groups, under the empty group."""


# Metrics of one column, shared by the metrics of numbers.


def value_of(request: MetricRequest) -> predicate.Path:
    """Return the measured column as a number."""
    return predicate.Path(request.columns[0].path.steps, predicate.NUMBERS)


def aggregate_of(request: MetricRequest, name: str, where: predicate.Predicate | None) -> metric.Aggregate:
    """Return an aggregate of the measured column."""
    return metric.aggregate(name, value_of(request), where)


def present(request: MetricRequest, where: predicate.Predicate | None) -> metric.Aggregate:
    """Return the metric of rows with a value in every measured column."""
    return metric.count(
        predicate.all_of(where, *(predicate.Not(predicate.IsNull(column.path)) for column in request.columns))
    )


def nans(request: MetricRequest, where: predicate.Predicate | None) -> metric.Aggregate:
    """Return the metric of values that are NaN."""
    return metric.count(predicate.all_of(where, predicate.IsNaN(value_of(request))))


# Minimum and maximum of a column.


def extreme(name: str, page: str | None) -> CheckKind:
    """Return the check of `min` or `max`: exact, ignoring NULL, and a failure if a value is NaN."""

    def extreme_metrics(request: MetricRequest, where: predicate.Predicate | None) -> tuple[Question, ...]:
        return aggregate_of(request, name, where), nans(request, where)

    return check_kind_for(name, page, ColumnMetric(extreme_metrics, _number))


def _number(_request: MetricRequest, answers: Sequence[metric.Value]) -> MeasuredValue:
    value, nan_count = answers
    return not_a_number(nan_count) or (NoValueMeasured("no values") if value is None else exact(value))


# Metrics of keys, shared by the metrics of distinct values.


def distinct_keys(request: MetricRequest, where: predicate.Predicate | None) -> tuple[Question, ...]:
    """Return the metrics of distinct keys and of rows with a key; a key with NULL is not a key."""
    return metric.DistinctKeys(request.columns, where), present(request, where)


# Exact sum of a column, for `sum` and `mean`.


def sum_metrics(request: MetricRequest, where: predicate.Predicate | None) -> tuple[Question, ...]:
    """Return the metrics of the sum (NULL if it overflows its type), of values, and of NaN."""
    return aggregate_of(request, "try_sum", where), present(request, where), nans(request, where)


def sum_follow_ups(
    request: MetricRequest, rows: Sequence[Sequence[metric.Value]], where: predicate.Predicate | None
) -> tuple[Question, ...]:
    """Return the sum of integers as decimals of 38 digits, if their sum overflows 64 bits."""
    if not any(total is None and integer(values) > 0 for total, values, _ in rows):
        return ()
    value = predicate.Path(request.columns[0].path.steps, predicate.INTEGERS)
    return (metric.aggregate("try_sum", predicate.Function("try_decimal", (value, 38, 0)), where),)


def exact_sum(answers: Sequence[metric.Value]) -> tuple[Fraction, int] | metric.Failure:
    """Return the sum and the number of values."""
    total, values, nan_count, *wide = answers
    if (failure := not_a_number(nan_count)) is not None:
        return failure
    if integer(values) == 0:
        return Fraction(0), 0
    if total is None:
        total = wide[0] if wide else None
    if total is None:
        return metric.Failure("the sum has more than 38 digits")
    exact_total = exact(total)
    return exact_total if isinstance(exact_total, metric.Failure) else (exact_total, integer(values))


# Baselines: measurements of earlier runs that a rule compares with.


def answers_by_numbers(
    measures: Sequence[PastMeasurement],
) -> dict[tuple[Partition, frozenset[tuple[metric.Group, float]]], bool]:
    """Return the newest answers to alarms, by partition and measured numbers; of partitions only."""
    return {
        (measure.partition, frozenset(measure.groups)): measure.real
        for measure in sorted(measures, key=lambda measure: measure.measured_at)
        if measure.real is not None and measure.partition
    }


def past_measurements(clause: Clause, fingerprint: str) -> list[quality_rule.PastRun] | str:
    """Return comparable earlier runs of a clause with the same measurement, oldest first, or a reason for
    none.
    """
    occasion = clause.context
    data_time = quality_rule.data_time_of(occasion)
    if occasion.history is None:
        return "no history"
    if data_time is None:
        return "several partitions at once" if len(occasion.partitions) > 1 else "no time"
    measures = [measure for measure in occasion.history if isinstance(measure, PastMeasurement)]
    own_measures = [
        measure
        for measure in measures
        if (measure.check, measure.clause, measure.definition) == (clause.check, clause.path, fingerprint)
    ]
    # An answer is about the numbers of a partition: it holds if they are the same in a later run.
    answers = answers_by_numbers(own_measures)
    return [
        quality_rule.PastRun(
            measured_at,
            dict(measure.groups) if measure.number is None else {**dict(measure.groups), (): measure.number},
            answers.get((measure.partition, frozenset(measure.groups)), measure.real),
        )
        for measured_at, measure in quality_rule.earlier_comparable(occasion, own_measures)
    ]


def compared_with_past(
    number: Fraction,
    group: metric.Group,
    past: Sequence[quality_rule.PastRun],
    clause: Clause,
    against: Against,
) -> tuple[Status, str]:
    """Compare the number of a group with earlier ones; skipped if there are not enough."""
    data_time = quality_rule.data_time_of(clause.context)
    assert data_time is not None
    if against.mode == "usual":
        return _usual(number, group, past, data_time, against)
    previous = _previous_measurement(past, data_time, against)
    if previous is None or group not in previous.numbers:
        return Status.SKIPPED, f"{shown(number)}; no earlier number to compare with"
    assert clause.limit is not None
    previous_number = Fraction(str(previous.numbers[group]))
    change = number - previous_number
    percent = clause.limit.unit.value == "percent"
    if percent and previous_number == 0 and change != 0:
        return (
            Status.SKIPPED,
            f"{shown(number)}; no percentage of the 0 on {previous.data_time:%Y-%m-%d %H:%MZ}",
        )
    change = change * 100 / abs(previous_number) if percent and previous_number else change
    sign = "+" if change >= 0 else ""
    text = f"{sign}{shown(change)}{' %' if percent else ''}, {shown(number)} against {shown(previous_number)}"
    status = Status.PASS if clause.limit.threshold.holds(change) else Status.FAIL
    return status, f"{text} of {previous.data_time:%Y-%m-%d %H:%MZ}"


def _previous_measurement(
    past: Sequence[quality_rule.PastRun], data_time: datetime, against: Against
) -> quality_rule.PastRun | None:
    candidates = [
        measurement
        for measurement in past
        if against.mode == "previous" or measurement.data_time.weekday() == data_time.weekday()
    ]
    return candidates[-1] if candidates else None


def _usual(
    number: Fraction,
    group: metric.Group,
    past: Sequence[quality_rule.PastRun],
    data_time: datetime,
    against: Against,
) -> tuple[Status, str]:
    with_group = [measurement for measurement in past if group in measurement.numbers]
    if len(with_group) < against.minimum:
        learning = f"learning ({len(with_group)} of {against.minimum} runs)"
        return Status.SKIPPED, f"{shown(number)}; {learning}"
    recent, weekly = quality_rule.last_runs(with_group, data_time, against.runs)
    numbers = [measurement.numbers[group] for measurement in recent]
    middle, reach = quality_rule.median_and_reach(numbers, against)
    lower, upper = Fraction(str(middle)) - Fraction(str(reach)), Fraction(str(middle)) + Fraction(str(reach))
    passes = (against.direction == "more" or lower <= number) and (
        against.direction == "fewer" or number <= upper
    )
    basis = f"the last {len(numbers)} runs on this weekday" if weekly else f"the last {len(numbers)} runs"
    bounds = {"more": f"{shown(upper)} or less", "fewer": f"{shown(lower)} or more"}.get(
        against.direction, f"{shown(lower)} to {shown(upper)}"
    )
    return Status.PASS if passes else Status.FAIL, f"{shown(number)}; expected {bounds}, based on {basis}"


def missing_groups(
    current: Mapping[metric.Group, object],
    past: Sequence[quality_rule.PastRun],
    against: Against,
    clause: Clause,
) -> list[metric.Group]:
    """Return groups that the baseline has, but this run does not.

    For mode `usual`, these are groups of the last run that occur in at least `minimum` runs.
    """
    data_time = quality_rule.data_time_of(clause.context)
    assert data_time is not None
    if against.mode == "usual":
        if not past or against.direction == "more":
            return []
        last = past[-1].numbers
        return [
            group
            for group in last
            if group not in current
            and sum(group in measurement.numbers for measurement in past) >= against.minimum
        ]
    previous = _previous_measurement(past, data_time, against)
    return [group for group in previous.numbers if group not in current] if previous is not None else []


# Evaluation of measured values: one result, or one per group.

# Number of groups in a message; the result has all of them.
_NAMED = 5
_MISSING_GROUP = "gone"


def verdict(clause: Clause, request: MetricRequest, numbers: Numbers) -> CheckResult:
    """Return the result of a clause; without groups, `numbers` only has the empty group."""
    past: Sequence[quality_rule.PastRun] | str = ()
    if request.terms.against is not None:
        past = past_measurements(clause, request.fingerprint)
    group_results = tuple(_group_results(clause, request, numbers, past))
    check_result = (
        _grouped_result(clause, request, group_results)
        if request.group_by
        else _ungrouped_result(clause, request, group_results[0], numbers[()])
    )
    return replace(check_result, fingerprint="" if request.hidden_reason else request.fingerprint)


def _group_results(
    clause: Clause, request: MetricRequest, numbers: Numbers, past: Sequence[quality_rule.PastRun] | str
) -> Iterator[GroupResult]:
    against = request.terms.against
    for group in sorted(numbers, key=group_order):
        group_result = _evaluate_group(clause, request, group, in_unit(request, numbers[group]), past)
        is_hidden = request.hidden_reason and group_result.value is not None
        yield replace(group_result, observed=MASK, value=None) if is_hidden else group_result
    if against is not None and request.group_by and not isinstance(past, str):
        for group in sorted(missing_groups(numbers, past, against, clause), key=group_order):
            yield GroupResult(group, Status.FAIL, _MISSING_GROUP)


def group_order(group: metric.Group) -> tuple[tuple[bool, str], ...]:
    """Return the sort key of a group; NULL is last."""
    return tuple((value is None, value or "") for value in group)


def _evaluate_group(
    clause: Clause,
    request: MetricRequest,
    group: metric.Group,
    measured: MeasuredValue,
    past: Sequence[quality_rule.PastRun] | str,
) -> GroupResult:
    assert not isinstance(measured, Ratio)
    if isinstance(measured, metric.Failure):
        return GroupResult(group, Status.ERROR, measured.message)
    if isinstance(measured, NoValueMeasured):
        return GroupResult(group, Status.SKIPPED, measured.reason)
    value = as_float(measured)
    if request.terms.against is not None:
        if isinstance(past, str):
            text = f"{shown(measured)}; not compared: {past}"
            return GroupResult(group, Status.SKIPPED, text, value)
        status, text = compared_with_past(measured, group, past, clause, request.terms.against)
        return GroupResult(group, status, text, value)
    assert clause.limit is not None
    percent = " %" if clause.limit.unit.value == "percent" else ""
    passes = clause.limit.threshold.holds(measured)
    return GroupResult(group, Status.PASS if passes else Status.FAIL, f"{shown(measured)}{percent}", value)


def _about(clause: Clause, request: MetricRequest) -> str:
    group_text = f" by {', '.join(str(column) for column in request.group_by)}" if request.group_by else ""
    return f"{subject(clause)}: {request.terms.kind.name}{group_text}"


def _ending(clause: Clause, request: MetricRequest, status: Status) -> str:
    ending = f"; allowed: {clause.allowed}" if status is Status.FAIL else ""
    ending += f"; not shown, because {request.hidden_reason}" if request.hidden_reason else ""
    return ending + (f" ({clause.note})" if clause.note else "")


def _ungrouped_result(
    clause: Clause, request: MetricRequest, group_result: GroupResult, measured: MeasuredValue
) -> CheckResult:
    if isinstance(measured, metric.Failure):
        return unmeasured(clause, measured)
    message = (
        f"{_about(clause, request)} is {group_result.observed}{_ending(clause, request, group_result.status)}"
    )
    if group_result.status is Status.SKIPPED and group_result.value is None and not request.hidden_reason:
        message = f"{_about(clause, request)}: {group_result.observed}"
    return result(clause, group_result.status, group_result.observed, message, group_result.value)


# Status -> verb of groups; the first status here that any group has is the clause's.
_VERBS = {
    Status.FAIL: "failed",
    Status.ERROR: "could not be measured",
    Status.PASS: "passed",
    Status.SKIPPED: "could not be compared",
}


def _grouped_result(
    clause: Clause, request: MetricRequest, group_results: tuple[GroupResult, ...]
) -> CheckResult:
    about = _about(clause, request)
    status = next(
        (
            candidate
            for candidate in _VERBS
            if any(group_result.status is candidate for group_result in group_results)
        ),
        Status.SKIPPED,
    )
    if not group_results:
        check_result = result(clause, Status.SKIPPED, "no groups", f"{about}: there are no rows to group")
        return replace(check_result, group_columns=_names(request))
    matching = [group_result for group_result in group_results if group_result.status is status]
    observed = f"{len(matching):,} of {pluralize(len(group_results), 'group')}"
    message = f"{about}: {observed} {_VERBS[status]}"
    if status is not Status.PASS:
        descriptions = [
            f"{group_label(group_result.key)} {group_result.observed}" for group_result in matching[:_NAMED]
        ]
        remainder = [f"{len(matching) - _NAMED:,} more"] if len(matching) > _NAMED else []
        message += ": " + " · ".join([*descriptions, *remainder])
    failed = float(sum(group_result.status is Status.FAIL for group_result in group_results))
    errors = sum(group_result.status is Status.ERROR for group_result in group_results)
    if errors and status is not Status.ERROR:
        message += f"; {errors:,} could not be measured"
    message += _ending(clause, request, status)
    return replace(
        result(clause, status, observed, message, failed), group_columns=_names(request), groups=group_results
    )


def _names(request: MetricRequest) -> tuple[str, ...]:
    return tuple(str(column) for column in request.group_by)


# Maximum length of a group's value in messages.
_LENGTH = 60


def group_label(group: metric.Group) -> str:
    """Return the values of a group for messages."""
    return "/".join("NULL" if value is None else value[:_LENGTH] for value in group)


# From a rule to its clause, and from a metric to its check kind.


def comparing_rules(schema_object: SchemaObject) -> list[str]:
    """Return the paths of an object's valid rules that compare with earlier runs."""
    paths = []
    for rule in quality_rule.rules_of(schema_object):
        if is_unusual_rule(rule.quality):
            paths.append(rule.quality.path())
        kind = named_metric(rule.quality)
        terms = (
            read_metric_rule(kind, schema_object, rule.property, rule.quality) if kind is not None else None
        )
        if isinstance(terms, Measurement) and terms.against is not None:
            paths.append(rule.quality.path())
    return paths


def metric_clause(rule: quality_rule.Rule) -> Clause:
    """Return the clause of a rule with a metric; an invalid rule is refused, with its first fault."""
    quality, schema = rule.quality, rule.object
    kind = named_metric(quality)
    assert kind is not None
    refused = Clause(
        kind.check,
        quality.path(),
        schema.name,
        rule.column_name,
        quality.locate(),
        quality_rule.severity(quality),
        "",
    )
    terms = read_metric_rule(kind, schema, rule.property, quality)
    if not isinstance(terms, Measurement):
        first = min(terms, key=lambda fault: fault.at)
        return refuse(refused, f"{first.message} {first.hint}".rstrip("."))
    try:
        return clause_of(kind, schema, quality, rule.column_name, terms)
    except Unusable as error:
        return refuse(refused, str(error))


def clause_of(
    kind: MeasureKind,
    schema_object: SchemaObject,
    quality: Quality,
    column_name: str,
    measurement: Measurement,
) -> Clause:
    """Return the clause of a valid rule, with its metric request. Raises Unusable for an invalid scope."""
    value_columns, group_by = (tuple(map(Column, paths)) for paths in (measurement.columns, measurement.by))
    request = MetricRequest(measurement, value_columns, group_by, "", "")
    title = column_name or ", ".join(str(column) for column in request.columns)
    if measurement.bounds:
        operator = quality_rule.RuleOperator(comparison(measurement.bounds), measurement.unit or None)
        clause = quality_rule.clause_from_quality(kind.check, schema_object, quality, title, operator)
    else:
        grade = quality_rule.severity(quality) if quality.severity else Severity.WARNING
        clause = Clause(kind.check, quality.path(), schema_object.name, title, quality.locate(), grade, "")
        clause = replace(clause, row_filter=quality_rule.row_filter_of(schema_object, quality))
    if clause.refusal_reason:
        return clause
    clause = replace(clause, allowed=_allowed(clause, measurement))
    where = clause.row_filter.where
    read_columns = (*request.columns, *request.group_by, *clause.row_filter.columns)
    if where is not None:
        read_columns += tuple(need.column for need in needs(where))
    hidden_reason = reason_not_shown(
        schema_object, frozenset(str(column.steps[0]).lower() for column in read_columns)
    )
    identity = (measurement, where, clause.row_filter.window, clause.row_filter.rows)
    fingerprint = hashlib.sha256(repr(identity).encode()).hexdigest()[:16]
    return with_test(
        clause, CheckParameters(replace(request, hidden_reason=hidden_reason, fingerprint=fingerprint))
    )


def _allowed(clause: Clause, measurement: Measurement) -> str:
    if measurement.against is None or clause.limit is None:
        if clause.limit is None:
            return "similar to earlier runs"
        return f"{clause.limit.threshold}{' percent' if clause.limit.unit is Unit.PERCENT else ''}"
    percent = " percent" if measurement.unit == "percent" else ""
    than = {"previous": "the run before", "weekday": "the last run of the same weekday"}[
        measurement.against.mode
    ]
    return f"a change of {clause.limit.threshold}{percent} against {than}"


def check_kind_for(name: str, page: str | None, measure: ColumnMetric) -> CheckKind:
    """Return the check of the metric of this name."""

    def first(clause: Clause) -> tuple[metric.Metric, ...]:
        return _per_group(clause, _first(measure, clause))

    def follow_ups(clause: Clause, values: Values) -> tuple[metric.Metric, ...]:
        return _per_group(clause, _second(measure, clause, values))

    def evaluate(clause: Clause, values: Values) -> CheckResult:
        return verdict(clause, parameters_of(clause, MetricRequest), _numbers(measure, clause, values))

    check = METRICS[name].check
    return CheckKind(
        check, page or "", metrics=first, evaluate=evaluate, follow_ups=follow_ups, rule=metric_clause
    )


def _first(measure: ColumnMetric, clause: Clause) -> tuple[Question, ...]:
    request = parameters_of(clause, MetricRequest)
    return measure.metrics(request, None if request.group_by else clause.row_filter.where)


def _second(measure: ColumnMetric, clause: Clause, values: Values) -> tuple[Question, ...]:
    request = parameters_of(clause, MetricRequest)
    rows = _rows(clause, _per_group(clause, _first(measure, clause)), values)
    return measure.follow_ups(
        request, list(rows.values()), None if request.group_by else clause.row_filter.where
    )


def _per_group(clause: Clause, questions: Sequence[Question]) -> tuple[metric.Metric, ...]:
    """Return the metrics over all rows, or per group."""
    group_by = parameters_of(clause, MetricRequest).group_by
    if not group_by:
        return tuple(questions)
    return tuple(metric.PerGroup(group_by, question, clause.row_filter.where) for question in questions)


def _rows(
    clause: Clause, metrics: Sequence[metric.Metric], values: Values
) -> dict[metric.Group, list[metric.Value]]:
    """Return the answers of each group, in the order of the metrics; without groups, of the empty group.

    Groups that not all passes have are left out, because the data changed in between.
    """
    if not parameters_of(clause, MetricRequest).group_by:
        return {(): [values[question] for question in metrics]}
    answers = [_groups(values[question]) for question in metrics]
    everywhere = [group for group in answers[0] if all(group in group_answers for group_answers in answers)]
    return {group: [group_answers[group] for group_answers in answers] for group in everywhere}


def _groups(value: metric.Value) -> metric.Groups:
    assert isinstance(value, Mapping)
    return value


_CHANGED = metric.Failure("the data changed while it was read")


def _numbers(measure: ColumnMetric, clause: Clause, values: Values) -> Numbers:
    request = parameters_of(clause, MetricRequest)
    all_questions = (
        *_per_group(clause, _first(measure, clause)),
        *_per_group(clause, _second(measure, clause, values)),
    )
    numbers = {
        group: measure.number(request, row) for group, row in _rows(clause, all_questions, values).items()
    }
    if request.group_by:
        groups = {group for question in all_questions for group in _groups(values[question])}
        numbers |= dict.fromkeys(groups - numbers.keys(), _CHANGED)
    return numbers
