"""From a rule with a metric of dq's own engine to its clause, and from a metric to its kind of check."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from dq.contracts.measures.read import measure_named, read
from dq.contracts.measures.table import MeasureKind
from dq.contracts.measures.terms import Measurement
from dq.contracts.model import Contract, Quality, SchemaObject
from dq.contracts.shared.outcome import CheckResult, Severity
from dq.dataquality.clauses.clause import Clause, KindTerms, Unit, asking, refuse, terms_of
from dq.dataquality.clauses.judge import Values
from dq.dataquality.clauses.kind import CheckKind, Example
from dq.dataquality.clauses.measured.found import ColumnMeasure, MeasureAsked, Numbers, Question
from dq.dataquality.clauses.measured.verdict import verdict
from dq.dataquality.clauses.quality_rule import Told, extent_of, of_quality, rules_of, severity
from dq.dataquality.model.answer import Failure, Group, Groups, Value
from dq.dataquality.model.classification import untold
from dq.dataquality.model.column import Column
from dq.dataquality.model.metric import Metric, PerGroup
from dq.dataquality.model.needs import needs
from dq.dataquality.model.threshold import Unusable, comparison


def compared(one: SchemaObject) -> list[str]:
    """The paths of an object's rules that compare with earlier runs, as far as they can be read."""
    found = []
    for quality, prop, _ in rules_of(one):
        kind = measure_named(quality)
        made = read(kind, one, prop, quality) if kind is not None else None
        if isinstance(made, Measurement) and made.against is not None:
            found.append(quality.path())
    return found


def clauses(measure: ColumnMeasure, one: SchemaObject) -> Iterator[Clause]:
    """The clause of each rule with this metric; one that cannot be used is refused, with its first fault."""
    for quality, prop, column in rules_of(one):
        if measure_named(quality) is not measure.kind:
            continue
        shown = "" if column is None else str(column)
        at = quality.at()
        made = Clause(measure.kind.check, quality.path(), one.name, shown, at, severity(quality), "")
        found = read(measure.kind, one, prop, quality)
        if not isinstance(found, Measurement):
            first = min(found, key=lambda fault: fault.at)
            yield refuse(made, f"{first.message} {first.mend}".rstrip("."))
            continue
        try:
            yield clause_of(measure.kind, one, quality, shown, found)
        except Unusable as error:
            yield refuse(made, str(error))


def clause_of(
    kind: MeasureKind, one: SchemaObject, quality: Quality, shown: str, found: Measurement
) -> Clause:
    """The clause of a rule that can be used, with what it asks. Raises Unusable for its scope."""
    measured, by = (tuple(map(Column, ways)) for ways in (found.columns, found.by))
    asked = MeasureAsked(found, measured, by, "", "")
    title = shown or ", ".join(str(column) for column in asked.columns)
    if found.bounds:
        told = Told(comparison(found.bounds), found.unit or None)
        made = of_quality(kind.check, one, quality, title, told)
    else:
        grade = severity(quality) if quality.severity else Severity.WARNING
        made = Clause(kind.check, quality.path(), one.name, title, quality.at(), grade, "")
        made = replace(made, extent=extent_of(one, quality))
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


def kind_of(measure: ColumnMeasure, page: str | None, examples: tuple[Example, ...]) -> CheckKind:
    """The check of a metric."""

    def found(_contract: Contract, one: SchemaObject) -> Iterator[Clause]:
        return clauses(measure, one)

    def first(clause: Clause) -> tuple[Metric, ...]:
        return _put(clause, _first(measure, clause))

    def then(clause: Clause, values: Values) -> tuple[Metric, ...]:
        return _put(clause, _second(measure, clause, values))

    def judge(clause: Clause, values: Values) -> CheckResult:
        return verdict(clause, terms_of(clause, MeasureAsked), _numbers(measure, clause, values))

    return CheckKind(measure.kind.check, page or "", found, examples, first, judge, then)


def _first(measure: ColumnMeasure, clause: Clause) -> tuple[Question, ...]:
    asked = terms_of(clause, MeasureAsked)
    return measure.asks(asked, None if asked.by else clause.extent.where)


def _second(measure: ColumnMeasure, clause: Clause, values: Values) -> tuple[Question, ...]:
    asked = terms_of(clause, MeasureAsked)
    rows = _rows(clause, _put(clause, _first(measure, clause)), values)
    return measure.then(asked, list(rows.values()), None if asked.by else clause.extent.where)


def _put(clause: Clause, questions: Sequence[Question]) -> tuple[Metric, ...]:
    """The questions about all rows, or about each group."""
    by = terms_of(clause, MeasureAsked).by
    if not by:
        return tuple(questions)
    return tuple(PerGroup(by, question, clause.extent.where) for question in questions)


def _rows(clause: Clause, asked: Sequence[Metric], values: Values) -> dict[Group, list[Value]]:
    """The answers of each group, in the order of the questions; without groups, of the empty one.

    A group that one pass saw and another did not is left out here: the data changed in between.
    """
    if not terms_of(clause, MeasureAsked).by:
        return {(): [values[one] for one in asked]}
    answers = [_groups(values[one]) for one in asked]
    everywhere = [group for group in answers[0] if all(group in one for one in answers)]
    return {group: [one[group] for one in answers] for group in everywhere}


def _groups(value: Value) -> Groups:
    assert isinstance(value, Mapping)
    return value


_CHANGED = Failure("the data changed while it was read")


def _numbers(measure: ColumnMeasure, clause: Clause, values: Values) -> Numbers:
    asked = terms_of(clause, MeasureAsked)
    every = (*_put(clause, _first(measure, clause)), *_put(clause, _second(measure, clause, values)))
    found = {group: measure.number(asked, row) for group, row in _rows(clause, every, values).items()}
    if asked.by:
        seen = {group for one in every for group in _groups(values[one])}
        found |= dict.fromkeys(seen - found.keys(), _CHANGED)
    return found
