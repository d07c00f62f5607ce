"""Rules with a metric of dq's own engine: their questions, clauses, baselines and verdicts."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from fractions import Fraction

from dq.contracts.metrics import MEASURES, Against, MeasureKind, Measurement, measure_named, read
from dq.contracts.model import Quality, SchemaObject
from dq.contracts.outcome import CheckResult, GroupResult, Severity, Status, counted
from dq.dataquality.clauses import quality_rule
from dq.dataquality.clauses.clause import Clause, KindTerms, Unit, asking, refuse, terms_of
from dq.dataquality.clauses.kind import CheckKind, Values, result, subject, unmeasured
from dq.dataquality.model import metric, predicate
from dq.dataquality.model.column import MASK, Column, needs, untold
from dq.dataquality.model.run_context import EarlierMeasure, Unusable, comparison

# What the metrics of dq's own engine share: what is asked of a column, and what was measured.

# What was measured: a number, a share of something, nothing at all, or no answer.

Question = metric.Aggregate | metric.DistinctKeys | metric.SingleKeys


@dataclass(frozen=True, slots=True)
class Share:
    """So many of so many."""

    part: int
    whole: int


@dataclass(frozen=True, slots=True)
class Nothing:
    """There is nothing to measure, and why."""

    reason: str


Found = Fraction | Share | Nothing | metric.Failure


@dataclass(frozen=True, slots=True)
class MeasureAsked:
    """A rule with a metric of dq's own engine, as its check takes it.

    `untold` says why its number is not shown, where it is not; `of` tells what is measured.
    """

    terms: Measurement
    columns: tuple[Column, ...]
    by: tuple[Column, ...]
    untold: str
    of: str


def measured_by(clause: Clause) -> MeasureAsked | None:
    """What a clause asks of a metric of dq's own engine; None for every other clause."""
    told = clause.ask.value if isinstance(clause.ask, KindTerms) else None
    return told if isinstance(told, MeasureAsked) else None


@dataclass(frozen=True, slots=True)
class ColumnMeasure:
    """How one metric is asked and what its number is.

    `asks` gives the first questions about the rows where a predicate is true, `then` those that only their
    answers call for, of each group; `number` makes the number of both.
    """

    asks: Callable[[MeasureAsked, predicate.Predicate | None], tuple[Question, ...]]
    number: Callable[[MeasureAsked, Sequence[metric.Value]], Found]
    then: Callable[
        [MeasureAsked, Sequence[Sequence[metric.Value]], predicate.Predicate | None], tuple[Question, ...]
    ] = lambda _asked, _rows, _where: ()


def exact(value: metric.Value) -> Fraction | metric.Failure:
    """A number as it is read: a float is the shortest decimal that names it. NaN and infinity are none."""
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return metric.Failure(f"the data gives a {type(value).__name__}; a number is needed")
    if not math.isfinite(value):
        return metric.Failure(f"the number is {value}, which nothing is compared with")
    return Fraction(str(value))


def integer(value: metric.Value) -> int:
    """A count."""
    assert isinstance(value, int), f"a count is needed, not {value!r}"
    return value


def share(_asked: MeasureAsked, answers: Sequence[metric.Value]) -> Found:
    """The first answer as a part of the second."""
    part, whole = answers
    return Share(integer(part), integer(whole))


def not_a_number(count: metric.Value) -> metric.Failure | None:
    """Why values with NaN have no number; None where there is no NaN."""
    found = integer(count)
    verb = "value is" if found == 1 else "values are"
    return metric.Failure(f"{found:,} {verb} NaN, which is no number") if found else None


def in_unit(asked: MeasureAsked, found: Found) -> Found:
    """The number in the unit of its rule."""
    if not isinstance(found, Share):
        return found
    percent = asked.terms.unit == "percent" and asked.terms.against is None
    if not percent and not asked.terms.kind.name.endswith("Ratio"):
        return Fraction(found.part)
    if found.whole == 0:
        return Nothing("nothing to take a share of")
    return Fraction(found.part * (100 if percent else 1), found.whole)


# More digits than any decimal that Spark sums.
_DIGITS = 60


def shown(number: Fraction) -> str:
    """A number for a reader: all its digits where they end, else ten."""
    if number.denominator == 1 and abs(number) < 10**18:
        return f"{number.numerator:,}"
    rest = number.denominator
    for prime in (2, 5):
        while rest % prime == 0:
            rest //= prime
    if rest == 1 and number.denominator < 10**20 and abs(number) < 10**_DIGITS:
        scale = next(at for at in range(_DIGITS) if 10**at % number.denominator == 0)
        digits = str(abs(number.numerator) * (10**scale // number.denominator)).rjust(scale + 1, "0")
        sign = "-" if number < 0 else ""
        return f"{sign}{int(digits[: len(digits) - scale]):,}" + (f".{digits[-scale:]}" if scale else "")
    return f"{as_float(number):,.10g}"


def as_float(number: Fraction) -> float:
    """The nearest float; beyond the largest one there is infinity."""
    try:
        return float(number)
    except OverflowError:
        return math.copysign(math.inf, number)


Numbers = Mapping[metric.Group, Found]
"""What was measured, by group; without groups, under the empty one."""


# The questions about one column that the metrics of numbers share.


def value_of(asked: MeasureAsked) -> predicate.Path:
    """The column that is measured, as a number."""
    return predicate.Path(asked.columns[0].path.steps, predicate.NUMBERS)


def of_values(asked: MeasureAsked, name: str, where: predicate.Predicate | None) -> metric.Aggregate:
    """An aggregate of the column."""
    return metric.aggregate(name, value_of(asked), where)


def present(asked: MeasureAsked, where: predicate.Predicate | None) -> metric.Aggregate:
    """How many rows have a value in every column that is measured."""
    return metric.count(
        predicate.all_of(where, *(predicate.Not(predicate.IsNull(column.path)) for column in asked.columns))
    )


def nans(asked: MeasureAsked, where: predicate.Predicate | None) -> metric.Aggregate:
    """How many values are NaN."""
    return metric.count(predicate.all_of(where, predicate.IsNaN(value_of(asked))))


# The measure of the value at one end of a column: the least or the greatest.


def extreme(name: str, page: str | None) -> CheckKind:
    """The check of `min` or `max`: exact, without NULL, and none where a value is NaN."""

    def asks(asked: MeasureAsked, where: predicate.Predicate | None) -> tuple[Question, ...]:
        return of_values(asked, name, where), nans(asked, where)

    return kind_of(name, page, ColumnMeasure(asks, _number))


def _number(_asked: MeasureAsked, answers: Sequence[metric.Value]) -> Found:
    value, strange = answers
    return not_a_number(strange) or (Nothing("no values") if value is None else exact(value))


# The questions about keys that the metrics of different values share.


def different(asked: MeasureAsked, where: predicate.Predicate | None) -> tuple[Question, ...]:
    """How many different keys there are, and how many rows have one; a key with NULL is none."""
    return metric.DistinctKeys(asked.columns, where), present(asked, where)


# The exact sum of a column, which both `sum` and `mean` ask for.


def asks(asked: MeasureAsked, where: predicate.Predicate | None) -> tuple[Question, ...]:
    """The sum, which is NULL where it does not fit into its type; how many values; how many are NaN."""
    return of_values(asked, "try_sum", where), present(asked, where), nans(asked, where)


def then(
    asked: MeasureAsked, rows: Sequence[Sequence[metric.Value]], where: predicate.Predicate | None
) -> tuple[Question, ...]:
    """Integers once more as decimals of 38 digits, where 64 bits do not hold their sum."""
    if not any(total is None and integer(values) > 0 for total, values, _ in rows):
        return ()
    value = predicate.Path(asked.columns[0].path.steps, predicate.INTEGERS)
    return (metric.aggregate("try_sum", predicate.Function("try_decimal", (value, 38, 0)), where),)


def summed(answers: Sequence[metric.Value]) -> tuple[Fraction, int] | metric.Failure:
    """The sum and the number of values."""
    total, values, strange, *wide = answers
    if (failure := not_a_number(strange)) is not None:
        return failure
    if integer(values) == 0:
        return Fraction(0), 0
    if total is None:
        total = wide[0] if wide else None
    if total is None:
        return metric.Failure("the sum has more than 38 digits")
    found = exact(total)
    return found if isinstance(found, metric.Failure) else (found, integer(values))


# Rules with a metric of dq's own engine: their clauses, their baselines and their verdicts.

# What earlier runs measured for a clause, and what of it a rule compares with.


def past_of(clause: Clause, of: str) -> list[quality_rule.Past] | str:
    """Earlier runs of a clause that measured the same on comparable rows, the oldest first; or why none."""
    occasion = clause.occasion
    here = quality_rule.moment_of(occasion)
    if occasion.history is None:
        return "no history"
    if here is None:
        return "several partitions at once" if len(occasion.partitions) > 1 else "no time"
    measured = [one for one in occasion.history if isinstance(one, EarlierMeasure)]
    mine = [one for one in measured if (one.check, one.clause, one.of) == (clause.check, clause.path, of)]
    return [
        quality_rule.Past(
            at, dict(one.groups) if one.number is None else {**dict(one.groups), (): one.number}
        )
        for at, one in quality_rule.before_this(occasion, mine)
    ]


def compared_with_past(
    number: Fraction, group: metric.Group, past: Sequence[quality_rule.Past], clause: Clause, against: Against
) -> tuple[Status, str]:
    """A number of a group against earlier ones, in words; skipped where there are none to tell it by."""
    here = quality_rule.moment_of(clause.occasion)
    assert here is not None
    if against.mode == "usual":
        return _usual(number, group, past, here, against)
    before = _before(past, here, against)
    if before is None or group not in before.numbers:
        return Status.SKIPPED, f"{shown(number)}; no earlier number to compare with"
    assert clause.limit is not None
    then = Fraction(str(before.numbers[group]))
    change = number - then
    percent = clause.limit.unit.value == "percent"
    if percent and then == 0 and change != 0:
        return Status.SKIPPED, f"{shown(number)}; no percentage of the 0 of {before.of:%Y-%m-%d %H:%MZ}"
    change = change * 100 / abs(then) if percent and then else change
    sign = "+" if change >= 0 else ""
    said = f"{sign}{shown(change)}{' %' if percent else ''}, {shown(number)} against {shown(then)}"
    status = Status.PASS if clause.limit.threshold.holds(change) else Status.FAIL
    return status, f"{said} of {before.of:%Y-%m-%d %H:%MZ}"


def _before(past: Sequence[quality_rule.Past], here: datetime, against: Against) -> quality_rule.Past | None:
    same = [one for one in past if against.mode == "previous" or one.of.weekday() == here.weekday()]
    return same[-1] if same else None


def _usual(
    number: Fraction, group: metric.Group, past: Sequence[quality_rule.Past], here: datetime, against: Against
) -> tuple[Status, str]:
    known = [one for one in past if group in one.numbers]
    if len(known) < against.minimum:
        learning = f"learning ({len(known)} of {against.minimum} runs)"
        return Status.SKIPPED, f"{shown(number)}; {learning}"
    last, weekly = quality_rule.last_of(known, here, against.runs)
    numbers = [one.numbers[group] for one in last]
    middle, reach = quality_rule.reach_of(numbers, against)
    least, most = Fraction(str(middle)) - Fraction(str(reach)), Fraction(str(middle)) + Fraction(str(reach))
    kept = (against.direction == "more" or least <= number) and (
        against.direction == "fewer" or number <= most
    )
    of = f"the last {len(numbers)} of this weekday" if weekly else f"the last {len(numbers)} runs"
    bounds = {"more": f"{shown(most)} or less", "fewer": f"{shown(least)} or more"}.get(
        against.direction, f"{shown(least)} to {shown(most)}"
    )
    return Status.PASS if kept else Status.FAIL, f"{shown(number)}; usual are {bounds}, by {of}"


def gone(
    here: Mapping[metric.Group, object], past: Sequence[quality_rule.Past], against: Against, clause: Clause
) -> list[metric.Group]:
    """Groups that the run compared with had, and this one has not.

    Of what is usual: those that were in the last run, and in enough runs to be known.
    """
    moment = quality_rule.moment_of(clause.occasion)
    assert moment is not None
    if against.mode == "usual":
        if not past or against.direction == "more":
            return []
        last = past[-1].numbers
        return [
            one
            for one in last
            if one not in here and sum(one in each.numbers for each in past) >= against.minimum
        ]
    before = _before(past, moment, against)
    return [one for one in before.numbers if one not in here] if before is not None else []


# What was measured to the result of its clause: one verdict, or one for each group.

# So many groups are named in a message; all of them are in the result.
_NAMED = 5
_GONE = "gone"


def verdict(clause: Clause, asked: MeasureAsked, numbers: Numbers) -> CheckResult:
    """The result of a clause; `numbers` has the empty group alone where the rule has no groups."""
    past: Sequence[quality_rule.Past] | str = ()
    if asked.terms.against is not None:
        past = past_of(clause, asked.of)
    judged = tuple(_each(clause, asked, numbers, past))
    made = _grouped(clause, asked, judged) if asked.by else _alone(clause, asked, judged[0], numbers[()])
    return replace(made, of="" if asked.untold else asked.of)


def _each(
    clause: Clause, asked: MeasureAsked, numbers: Numbers, past: Sequence[quality_rule.Past] | str
) -> Iterator[GroupResult]:
    against = asked.terms.against
    for group in sorted(numbers, key=_order):
        one = _one(clause, asked, group, in_unit(asked, numbers[group]), past)
        hidden = asked.untold and one.value is not None
        yield replace(one, observed=MASK, value=None) if hidden else one
    if against is not None and asked.by and not isinstance(past, str):
        for group in sorted(gone(numbers, past, against, clause), key=_order):
            yield GroupResult(group, Status.FAIL, _GONE)


def _order(group: metric.Group) -> tuple[tuple[bool, str], ...]:
    return tuple((value is None, value or "") for value in group)


def _one(
    clause: Clause,
    asked: MeasureAsked,
    group: metric.Group,
    found: Found,
    past: Sequence[quality_rule.Past] | str,
) -> GroupResult:
    assert not isinstance(found, Share)
    if isinstance(found, metric.Failure):
        return GroupResult(group, Status.ERROR, found.message)
    if isinstance(found, Nothing):
        return GroupResult(group, Status.SKIPPED, found.reason)
    value = as_float(found)
    if asked.terms.against is not None:
        if isinstance(past, str):
            said = f"{shown(found)}; not compared: {past}"
            return GroupResult(group, Status.SKIPPED, said, value)
        status, said = compared_with_past(found, group, past, clause, asked.terms.against)
        return GroupResult(group, status, said, value)
    assert clause.limit is not None
    percent = " %" if clause.limit.unit.value == "percent" else ""
    kept = clause.limit.threshold.holds(found)
    return GroupResult(group, Status.PASS if kept else Status.FAIL, f"{shown(found)}{percent}", value)


def _about(clause: Clause, asked: MeasureAsked) -> str:
    by = f" by {', '.join(str(column) for column in asked.by)}" if asked.by else ""
    return f"{subject(clause)}: {asked.terms.kind.name}{by}"


def _ending(clause: Clause, asked: MeasureAsked, status: Status) -> str:
    said = f"; allowed: {clause.allowed}" if status is Status.FAIL else ""
    said += f"; not shown, because {asked.untold}" if asked.untold else ""
    return said + (f" ({clause.note})" if clause.note else "")


def _alone(clause: Clause, asked: MeasureAsked, one: GroupResult, found: Found) -> CheckResult:
    if isinstance(found, metric.Failure):
        return unmeasured(clause, found)
    message = f"{_about(clause, asked)} is {one.observed}{_ending(clause, asked, one.status)}"
    if one.status is Status.SKIPPED and one.value is None and not asked.untold:
        message = f"{_about(clause, asked)}: {one.observed}"
    return result(clause, one.status, one.observed, message, one.value)


# What groups do; the first of these that a group has is the clause's.
_VERBS = {
    Status.FAIL: "break it",
    Status.ERROR: "could not be measured",
    Status.PASS: "keep it",
    Status.SKIPPED: "could not be compared",
}


def _grouped(clause: Clause, asked: MeasureAsked, judged: tuple[GroupResult, ...]) -> CheckResult:
    about = _about(clause, asked)
    status = next((one for one in _VERBS if any(each.status is one for each in judged)), Status.SKIPPED)
    if not judged:
        made = result(clause, Status.SKIPPED, "no groups", f"{about}: there are no rows to group")
        return replace(made, by=_names(asked))
    of_status = [one for one in judged if one.status is status]
    observed = f"{len(of_status):,} of {counted(len(judged), 'group')}"
    message = f"{about}: {observed} {_VERBS[status]}"
    if status is not Status.PASS:
        named = [f"{_named(one.key)} {one.observed}" for one in of_status[:_NAMED]]
        more = [f"{len(of_status) - _NAMED:,} more"] if len(of_status) > _NAMED else []
        message += ": " + " · ".join([*named, *more])
    broken = float(sum(one.status is Status.FAIL for one in judged))
    errors = sum(one.status is Status.ERROR for one in judged)
    if errors and status is not Status.ERROR:
        message += f"; {errors:,} could not be measured"
    message += _ending(clause, asked, status)
    return replace(result(clause, status, observed, message, broken), by=_names(asked), groups=judged)


def _names(asked: MeasureAsked) -> tuple[str, ...]:
    return tuple(str(column) for column in asked.by)


# Of the name of a group, which may be a text of any length.
_LENGTH = 60


def _named(group: metric.Group) -> str:
    return "/".join("NULL" if value is None else value[:_LENGTH] for value in group)


# From a rule with a metric of dq's own engine to its clause, and from a metric to its kind of check.


def columns_compared(one: SchemaObject) -> list[str]:
    """The paths of an object's rules that compare with earlier runs, as far as they can be read."""
    paths = []
    for rule in quality_rule.rules_of(one):
        kind = measure_named(rule.quality)
        terms = read(kind, one, rule.property, rule.quality) if kind is not None else None
        if isinstance(terms, Measurement) and terms.against is not None:
            paths.append(rule.quality.path())
    return paths


def metric_clause(rule: quality_rule.Rule) -> Clause:
    """The clause of a rule with a metric; one that cannot be used is refused, with its first fault."""
    quality, schema = rule.quality, rule.object
    kind = measure_named(quality)
    assert kind is not None
    refused = Clause(
        kind.check, quality.path(), schema.name, rule.shown, quality.at(), quality_rule.severity(quality), ""
    )
    terms = read(kind, schema, rule.property, quality)
    if not isinstance(terms, Measurement):
        first = min(terms, key=lambda fault: fault.at)
        return refuse(refused, f"{first.message} {first.mend}".rstrip("."))
    try:
        return clause_of(kind, schema, quality, rule.shown, terms)
    except Unusable as error:
        return refuse(refused, str(error))


def clause_of(
    kind: MeasureKind, one: SchemaObject, quality: Quality, shown: str, found: Measurement
) -> Clause:
    """The clause of a rule that can be used, with what it asks. Raises Unusable for its scope."""
    measured, by = (tuple(map(Column, ways)) for ways in (found.columns, found.by))
    asked = MeasureAsked(found, measured, by, "", "")
    title = shown or ", ".join(str(column) for column in asked.columns)
    if found.bounds:
        told = quality_rule.Told(comparison(found.bounds), found.unit or None)
        made = quality_rule.of_quality(kind.check, one, quality, title, told)
    else:
        grade = quality_rule.severity(quality) if quality.severity else Severity.WARNING
        made = Clause(kind.check, quality.path(), one.name, title, quality.at(), grade, "")
        made = replace(made, extent=quality_rule.extent_of(one, quality))
    if made.refused:
        return made
    made = replace(made, allowed=_allowed(made, found))
    where = made.extent.where
    columns_ = (*asked.columns, *asked.by, *made.extent.narrows)
    if where is not None:
        columns_ += tuple(need.column for need in needs(where))
    said = untold(one, frozenset(str(column.steps[0]).lower() for column in columns_))
    told_of = (found, where, made.extent.window, made.extent.rows)
    of = hashlib.sha256(repr(told_of).encode()).hexdigest()[:16]
    return asking(made, KindTerms(replace(asked, untold=said, of=of)))


def _allowed(made: Clause, found: Measurement) -> str:
    if found.against is None or made.limit is None:
        if made.limit is None:
            return "about as in earlier runs"
        return f"{made.limit.threshold}{' percent' if made.limit.unit is Unit.PERCENT else ''}"
    percent = " percent" if found.unit == "percent" else ""
    than = {"previous": "the run before", "weekday": "the last run of the same weekday"}[found.against.mode]
    return f"a change of {made.limit.threshold}{percent} against {than}"


def kind_of(name: str, page: str | None, measure: ColumnMeasure) -> CheckKind:
    """The check of the metric of this name."""

    def first(clause: Clause) -> tuple[metric.Metric, ...]:
        return _put(clause, _first(measure, clause))

    def then(clause: Clause, values: Values) -> tuple[metric.Metric, ...]:
        return _put(clause, _second(measure, clause, values))

    def judge(clause: Clause, values: Values) -> CheckResult:
        return verdict(clause, terms_of(clause, MeasureAsked), _numbers(measure, clause, values))

    check = MEASURES[name].check
    return CheckKind(check, page or "", metrics=first, judge=judge, then=then, rule=metric_clause)


def _first(measure: ColumnMeasure, clause: Clause) -> tuple[Question, ...]:
    asked = terms_of(clause, MeasureAsked)
    return measure.asks(asked, None if asked.by else clause.extent.where)


def _second(measure: ColumnMeasure, clause: Clause, values: Values) -> tuple[Question, ...]:
    asked = terms_of(clause, MeasureAsked)
    rows = _rows(clause, _put(clause, _first(measure, clause)), values)
    return measure.then(asked, list(rows.values()), None if asked.by else clause.extent.where)


def _put(clause: Clause, questions: Sequence[Question]) -> tuple[metric.Metric, ...]:
    """The questions about all rows, or about each group."""
    by = terms_of(clause, MeasureAsked).by
    if not by:
        return tuple(questions)
    return tuple(metric.PerGroup(by, question, clause.extent.where) for question in questions)


def _rows(
    clause: Clause, asked: Sequence[metric.Metric], values: Values
) -> dict[metric.Group, list[metric.Value]]:
    """The answers of each group, in the order of the questions; without groups, of the empty one.

    A group that one pass saw and another did not is left out here: the data changed in between.
    """
    if not terms_of(clause, MeasureAsked).by:
        return {(): [values[one] for one in asked]}
    answers = [_groups(values[one]) for one in asked]
    everywhere = [group for group in answers[0] if all(group in one for one in answers)]
    return {group: [one[group] for one in answers] for group in everywhere}


def _groups(value: metric.Value) -> metric.Groups:
    assert isinstance(value, Mapping)
    return value


_CHANGED = metric.Failure("the data changed while it was read")


def _numbers(measure: ColumnMeasure, clause: Clause, values: Values) -> Numbers:
    asked = terms_of(clause, MeasureAsked)
    every = (*_put(clause, _first(measure, clause)), *_put(clause, _second(measure, clause, values)))
    found = {group: measure.number(asked, row) for group, row in _rows(clause, every, values).items()}
    if asked.by:
        seen = {group for one in every for group in _groups(values[one])}
        found |= dict.fromkeys(seen - found.keys(), _CHANGED)
    return found
