"""What a check of another package finds is within the bounds of its rule.

Why: Some promises need code: a checksum, a reference service, a model.
Bad: `type: custom`, `engine: dq`, `implementation: luhn` on a property, and a card number with a typing
error.
Good: The same rule, and every number ends in its check digit.
Nulls: As the check says; where it tests each row, NULL breaks nothing. A check that is not installed, cannot
be loaded, raises, or gives no number is an error of its rule alone. A contract names a check that an
installed package registers, never a module. Rules of other engines are not evaluated.
Mend: Correct the data, the arguments or the bound, or install the package.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dq.contracts.model import OPERATORS, Quality, plain
from dq.contracts.outcome import CheckResult
from dq.dataquality.clauses.clause import Clause, KindTerms, RowTest, asking, refuse, terms_of
from dq.dataquality.clauses.kind import CheckKind, Values, judge_number
from dq.dataquality.clauses.plugins import Broken, Given, Measure, Question, ask, measured, number_of
from dq.dataquality.clauses.quality_rule import Rule, Told, of_number, of_quality
from dq.dataquality.model.metric import Metric
from dq.dataquality.model.predicate import Opaque
from dq.dataquality.model.run_context import Unusable, comparison

_CHECK = "custom"


@dataclass(frozen=True, slots=True)
class _Numbered:
    """The name of a check, and how its number comes out of the metrics."""

    name: str
    metrics: tuple[Metric, ...]
    question: Question | None


def clause(rule: Rule) -> Clause:
    schema, quality = rule.object, rule.quality
    # Until its own bound is read, the one that a rule without any has.
    made = of_quality(_CHECK, schema, quality, rule.shown, Told(_NONE))
    if made.refused:
        return made
    try:
        name, arguments, told = _read(quality)
        made = of_quality(_CHECK, schema, quality, rule.shown, told or Told(_NONE))
        given = Given(schema.name, rule.column, arguments)
        answer = ask(name, given)
        if isinstance(answer, Broken):
            breaks = Opaque(answer.predicate, tuple(each.steps for each in answer.columns))
            return asking(made, RowTest(breaks, answer.complaint))
        if told is None:
            raise Unusable(f"the check {name!r} gives a number, and no operator such as mustBe bounds it")
    except Unusable as error:
        return refuse(made, str(error))
    made = of_number(made)
    if isinstance(answer, Measure):
        number = measured(name, given, answer, made.extent.where)
        return asking(made, KindTerms(_Numbered(name, (number,), None)))
    if made.extent.where:
        return refuse(made, f"the check {name!r} asks of all rows; its rule cannot have a scope with where")
    return asking(made, KindTerms(_Numbered(name, answer.metrics, answer)))


_NONE = comparison([("mustBe", 0)])
_KEYS = ("check", "arguments", "unit", *OPERATORS)


def _read(quality: Quality) -> tuple[str, Mapping[str, object], Told | None]:
    """The name, the arguments, and the bound where there is one: in the implementation, or on the rule."""
    written = plain(quality.implementation)
    if isinstance(written, str):
        written = {"check": written.strip()}
    if not isinstance(written, dict) or not isinstance(written.get("check"), str):
        raise Unusable("its implementation is neither the name of a check nor a mapping with 'check'")
    strange = [key for key in written if key not in _KEYS]
    if strange:
        raise Unusable(f"its implementation has {strange[0]!r}; it takes {', '.join(_KEYS)}")
    arguments = written.get("arguments") or {}
    if not isinstance(arguments, dict):
        raise Unusable("its arguments must be a mapping")
    operators = [(key, written[key]) for key in OPERATORS if key in written] + quality.operators()
    unit = written.get("unit", quality.unit)
    if unit is not None and not isinstance(unit, str):
        raise Unusable(f"unit {unit!r} is neither rows nor percent")
    if not operators:
        if unit is not None:
            raise Unusable("it has a unit and no operator such as mustBe")
        return written["check"], arguments, None
    return written["check"], arguments, Told(comparison(operators), unit)


def metrics(clause: Clause) -> tuple[Metric, ...]:
    return terms_of(clause, _Numbered).metrics


def judge(clause: Clause, values: Values) -> CheckResult:
    numbered = terms_of(clause, _Numbered)
    found = number_of(numbered.name, numbered.question, values)
    return judge_number(clause, found, f"the check {numbered.name!r}")


CHECK = CheckKind(_CHECK, __doc__, metrics=metrics, judge=judge, rule=clause)
