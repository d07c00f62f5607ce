"""A check of another package passes, or gives a number within the bounds of its rule.

Why: Some promises need code: a checksum, a reference service, a model.
Bad: `type: custom`, `engine: dq`, `implementation: luhn` on a property, and a card number with a typing
error.
Good: The same rule, and every number ends in its check digit.
Nulls: Defined by the check; if it tests each row, NULL passes. A check that is not installed, cannot
be loaded, raises, or does not give a number is an error of its rule only. A contract names a check that an
installed package registers, never a module. Rules of other engines are not evaluated.
How to fix: Correct the data, the arguments or the bound, or install the package.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dq.contracts.check_result import CheckResult
from dq.contracts.model import OPERATORS, Quality, strip_source_maps
from dq.dataquality.clauses.clause import CheckParameters, Clause, RowTest, parameters_of, refuse, with_test
from dq.dataquality.clauses.kind import CheckKind, Values, evaluate_number
from dq.dataquality.clauses.quality_rule import Rule, RuleOperator, clause_from_quality, with_number_limit
from dq.dataquality.model.metric import Metric
from dq.dataquality.model.predicate import Opaque
from dq.dataquality.model.run_context import Unusable, comparison

if TYPE_CHECKING:
    from dq.dataquality.clauses.plugins import Question

_CHECK = "custom"


@dataclass(frozen=True, slots=True)
class _NumberCheck:
    """A check that returns a number: its name, its metrics, and the plug-in that evaluates them."""

    name: str
    metrics: tuple[Metric, ...]
    question: Question | None


def clause(rule: Rule) -> Clause:
    # Imported here: few contracts have checks of other packages.
    from dq.dataquality.clauses.plugins import Broken, Measure, RuleInput, apply_check, call_metric

    schema, quality = rule.object, rule.quality
    # Starts with the default bound, until the rule's own bound is parsed.
    draft = clause_from_quality(_CHECK, schema, quality, rule.column_name, RuleOperator(_NONE))
    if draft.refusal_reason:
        return draft
    try:
        name, arguments, bound = _parse_implementation(quality)
        draft = clause_from_quality(_CHECK, schema, quality, rule.column_name, bound or RuleOperator(_NONE))
        rule_input = RuleInput(schema.name, rule.column, arguments)
        answer = apply_check(name, rule_input)
        if isinstance(answer, Broken):
            breaks = Opaque(answer.predicate, tuple(column.steps for column in answer.columns))
            return with_test(draft, RowTest(breaks, answer.complaint))
        if bound is None:
            raise Unusable(f"the check {name!r} gives a number and needs an operator, e.g. mustBe")
    except Unusable as error:
        return refuse(draft, str(error))
    draft = with_number_limit(draft)
    if isinstance(answer, Measure):
        number = call_metric(name, rule_input, answer, draft.row_filter.where)
        return with_test(draft, CheckParameters(_NumberCheck(name, (number,), None)))
    if draft.row_filter.where:
        return refuse(draft, f"the check {name!r} measures all rows; its rule cannot have a scope with where")
    return with_test(draft, CheckParameters(_NumberCheck(name, answer.metrics, answer)))


_NONE = comparison([("mustBe", 0)])
_KEYS = ("check", "arguments", "unit", *OPERATORS)


def _parse_implementation(quality: Quality) -> tuple[str, Mapping[str, object], RuleOperator | None]:
    """Return the name, the arguments, and the bound (from the implementation or the rule) or None."""
    implementation = strip_source_maps(quality.implementation)
    if isinstance(implementation, str):
        implementation = {"check": implementation.strip()}
    if not isinstance(implementation, dict) or not isinstance(implementation.get("check"), str):
        raise Unusable("its implementation is neither the name of a check nor a mapping with 'check'")
    unknown_keys = [key for key in implementation if key not in _KEYS]
    if unknown_keys:
        raise Unusable(f"its implementation has {unknown_keys[0]!r}; it takes {', '.join(_KEYS)}")
    arguments = implementation.get("arguments") or {}
    if not isinstance(arguments, dict):
        raise Unusable("its arguments must be a mapping")
    operators = [
        (key, implementation[key]) for key in OPERATORS if key in implementation
    ] + quality.operators()
    unit = implementation.get("unit", quality.unit)
    if unit is not None and not isinstance(unit, str):
        raise Unusable(f"unit {unit!r} is neither rows nor percent")
    if not operators:
        if unit is not None:
            raise Unusable("it has a unit but no operator, e.g. mustBe")
        return implementation["check"], arguments, None
    return implementation["check"], arguments, RuleOperator(comparison(operators), unit)


def metrics(clause: Clause) -> tuple[Metric, ...]:
    return parameters_of(clause, _NumberCheck).metrics


def judge(clause: Clause, values: Values) -> CheckResult:
    from dq.dataquality.clauses.plugins import number_of

    numbered = parameters_of(clause, _NumberCheck)
    number = number_of(numbered.name, numbered.question, values)
    return evaluate_number(clause, number, f"the check {numbered.name!r}")


CHECK = CheckKind(_CHECK, __doc__, metrics=metrics, evaluate=judge, rule=clause)
