"""An object has as many rows, and the same sums of columns, as another side: in total or by group.

Why: A stage of a pipeline that loses rows, or amounts, reports no error; its consumers find out.
Bad: `with: {contract: raw, object: events}`, and the join of this stage dropped 0.1 % of the events.
Good: In each region, the stage has the rows and the amounts of its source.
It is enabled by a rule on the object:

    quality:
      - type: custom
        engine: dq
        implementation:
          check: agreesInSum
          arguments: {with: {contract: raw, object: events, where: is_valid}, by: [region], sums: [amount]}

`with` is that of `agrees`. Its `where` limits the rows of the other side, and `where` in the scope of the
rule those of this object, for a stage that filters rows. The numbers of rows are always compared; `sums`
names columns whose sums are compared too, and `by` up to three columns whose values form groups (at most
1,000). `rename` (name in this contract: name on the other side) applies to all columns, and `tolerance`
(column: largest difference of equal sums) to sums. By default nothing may differ; an operator bounds the
largest difference. With `unit: percent`, it is a percentage of the number of the other side (100 if that is
0), of rows and sums in each group. `unit: rows` bounds the numbers of rows and is only allowed without
`sums`. If partitions are checked, both sides are limited to them.
Nulls: NULL is a group of its own, and sums ignore NULL. Two sides without rows agree. Sums of integers and
decimals are exact. Those of floats do not depend on the order of the rows; next to another type of numbers, a
difference that rounding explains is none. A sum with NaN or infinity is an error.
How to fix: Run `dq reconcile` to see the rows that differ. Deliver the missing rows, or allow a difference
that is intended. The sums are computed with Spark; `dq sample` does not evaluate the rule. A run on the
server that the rule names is skipped. In Python pass `other_objects={"raw/events": frame}`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from dq.contracts.agreement import SumAgreement, read_agreement
from dq.contracts.check_result import CheckResult, GroupResult, Status
from dq.contracts.outcome import pluralize
from dq.dataquality.clauses.clause import CheckParameters, Clause, Unit, parameters_of, refuse, with_test
from dq.dataquality.clauses.kind import CheckKind, Values, ending, percent, result, subject
from dq.dataquality.clauses.metric_rule import as_float, group_label, group_order, shown
from dq.dataquality.clauses.quality_rule import Rule, RuleOperator, clause_from_quality
from dq.dataquality.model.column import MASK, reason_not_shown
from dq.dataquality.model.metric import ComparedSums, Failure, GroupPairs, Metric, NumberPair, SumPairs
from dq.dataquality.model.run_context import Unusable, comparison

_CHECK = "agrees_in_sum"
# Number of groups in a message; the result has all of them.
_NAMED = 3
_NO_DIFFERENCE = (("mustBe", 0),)
# Status of groups -> verb of one group and of several; the first status that a group has is the clause's.
_VERBS = {
    Status.FAIL: ("differs from", "differ from"),
    Status.ERROR: ("could not be compared with",) * 2,
    Status.PASS: ("agrees with", "agree with"),
}


@dataclass(frozen=True, slots=True)
class _Request:
    """A parsed rule, and for each number of a group the reason why this contract hides it, or ""."""

    agreement: SumAgreement
    hidden_reasons: tuple[str, ...]


def clause(rule: Rule) -> Clause:
    agreement = read_agreement(rule.object, rule.property, rule.quality)
    draft = clause_from_quality(
        _CHECK, rule.object, rule.quality, rule.column_name, RuleOperator(comparison(_NO_DIFFERENCE))
    )
    if not isinstance(agreement, SumAgreement):
        assert isinstance(agreement, tuple)
        finding = min(agreement, key=lambda finding: finding.at)
        return refuse(draft, f"{finding.message.rstrip('.')}; {finding.hint.rstrip('.')}")
    try:
        operator = RuleOperator(comparison(agreement.bounds or _NO_DIFFERENCE), agreement.unit)
    except Unusable as error:
        return refuse(draft, str(error))
    draft = clause_from_quality(_CHECK, rule.object, rule.quality, rule.column_name, operator)
    if draft.refusal_reason:
        return draft
    if draft.row_filter.window is not None:
        return refuse(draft, "agreesInSum compares whole partitions; its scope cannot have a window")
    draft = replace(draft, allowed=_allowed(operator, agreement))
    read = {*agreement.by, *(str(column.steps[0]) for column in draft.row_filter.columns)}
    reasons = (
        reason_not_shown(rule.object, frozenset(name.lower() for name in {*read, *summed}))
        for summed in ((), *((name,) for name in agreement.sums))
    )
    return with_test(draft, CheckParameters(_Request(agreement, tuple(reasons))))


def _allowed(operator: RuleOperator, agreement: SumAgreement) -> str:
    if not agreement.bounds or operator.threshold.as_odcs() == {"mustBe": 0}:
        return "no difference"
    return f"a difference of {operator.threshold} {agreement.unit}"


def metrics(clause: Clause) -> tuple[Metric, ...]:
    agreement = parameters_of(clause, _Request).agreement
    return (ComparedSums(replace(agreement, bounds=(), unit=""), clause.row_filter.where),)


@dataclass(frozen=True, slots=True)
class _Judged:
    """A group with its largest difference, in the unit of the rule, if that is known and may be shown."""

    pairs: GroupPairs
    status: Status
    difference: Fraction
    text: str
    is_shown: bool

    @property
    def result(self) -> GroupResult:
        value = as_float(self.difference) if self.is_shown else None
        return GroupResult(self.pairs.group, self.status, self.text, value)


def judge(clause: Clause, values: Values) -> CheckResult:
    (answer,) = values.values()
    request = parameters_of(clause, _Request)
    agreement = request.agreement
    if isinstance(answer, str):
        return result(clause, Status.SKIPPED, "not compared", f"{subject(clause)}: {answer}")
    assert isinstance(answer, SumPairs)
    reasons = [own or other for own, other in zip(request.hidden_reasons, answer.hidden_reasons, strict=True)]
    ordered = sorted(answer.groups, key=lambda pairs: group_order(pairs.group))
    judged = [_judged(clause, agreement, pairs, reasons) for pairs in ordered]
    judged.sort(key=lambda group: -group.difference)
    status = next(
        (status for status in _VERBS if any(group.status is status for group in judged)), Status.PASS
    )
    observed = _by_group(agreement, judged, status) if agreement.by else judged[0].text
    message = f"{subject(clause)}: {observed}{ending(clause, status is not Status.FAIL)}"
    if hidden := [reason for reason in reasons if reason]:
        message += f"; not shown, because {hidden[0]}"
    value = as_float(max((group.difference for group in judged), default=Fraction(0)))
    is_known = status is not Status.ERROR and not hidden
    check_result = result(clause, status, observed, message, value if is_known else None)
    check_result = replace(check_result, unit=Unit(agreement.unit))
    if not agreement.by:
        return check_result
    groups = sorted((group.result for group in judged), key=lambda group: group_order(group.key))
    return replace(check_result, group_columns=agreement.by, groups=tuple(groups))


def _by_group(agreement: SumAgreement, judged: Sequence[_Judged], status: Status) -> str:
    """Return the number of groups with the status, and those that differ most."""
    matching = [group for group in judged if group.status is status]
    total = pluralize(len(judged), "group")
    verb = _VERBS[status][0 if len(matching) == 1 else 1]
    text = f"{len(matching):,} of {total} by {', '.join(agreement.by)} {verb} {agreement.other}"
    named = [group for group in matching if group.difference or status is Status.ERROR][:_NAMED]
    if named:
        text += ": " + " · ".join(f"{group_label(group.pairs.group)} {group.text}" for group in named)
        if status is not Status.PASS and len(matching) > len(named):
            text += f" · {len(matching) - len(named):,} more"
    return text


def _judged(clause: Clause, agreement: SumAgreement, pairs: GroupPairs, reasons: Sequence[str]) -> _Judged:
    """Compare the numbers of a group."""
    assert clause.limit is not None
    place = "there" if agreement.by else f"in {agreement.other}"
    texts: dict[Status, list[str]] = {status: [] for status in _VERBS}
    differences = [Fraction(0)]
    names = ("", *agreement.sums)
    for name, pair, reason in zip(names, pairs.numbers, reasons, strict=True):
        if isinstance(pair, Failure):
            texts[Status.ERROR].append(pair.message)
            continue
        difference = _difference(pair, in_percent=clause.limit.unit is Unit.PERCENT)
        differences.append(difference)
        status = Status.PASS if clause.limit.threshold.holds(difference) else Status.FAIL
        texts[status].append(_text(name, pair, place, is_hidden=bool(reason)))
    status = next(status for status in _VERBS if texts[status])
    is_shown = status is not Status.ERROR and not any(reasons)
    return _Judged(pairs, status, max(differences), "; ".join(texts[status]), is_shown)


def _difference(pair: NumberPair, *, in_percent: bool) -> Fraction:
    """Return how far two numbers are apart; 0 for numbers that are equal."""
    difference = abs(pair.number - pair.other)
    if difference <= pair.tolerance:
        return Fraction(0)
    if not in_percent:
        return difference
    return 100 * difference / abs(pair.other) if pair.other else Fraction(100)


def _text(name: str, pair: NumberPair, place: str, *, is_hidden: bool) -> str:
    """Return both numbers with their difference; of the number of rows if there is no name of a column."""
    if is_hidden:
        return f"sum of {name} {MASK}, {MASK} {place}" if name else f"{MASK} rows, {MASK} {place}"
    own = f"sum of {name} {shown(pair.number)}" if name else pluralize(int(pair.number), "row")
    if pair.number == pair.other:
        return f"{own}, the same {place}"
    change = pair.number - pair.other
    sign = "-" if change < 0 else "+"
    text = f"{sign}{shown(abs(change))}"
    if pair.other:
        text += f", {sign}{percent(100 * abs(change) / abs(pair.other))} %"
    return f"{own}, {shown(pair.other)} {place} ({text})"


CHECK = CheckKind(_CHECK, __doc__, metrics=metrics, evaluate=judge, rule=clause)
