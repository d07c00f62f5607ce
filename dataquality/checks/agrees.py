"""An object has the same rows as another side: a server, or an object of another contract.

Why: A copy, a migration or a ledger that silently differs from its source is found by its consumers.
Bad: `with: {server: serverless}`, and one order of a thousand has another amount there.
Good: Both servers have the same rows.
It is enabled by a rule on the object:

    quality:
      - type: custom
        engine: dq
        implementation:
          check: agrees
          arguments: {with: {server: serverless}, key: [order_id], tolerance: {amount: 0.01}}

`with` names a `server` of the contract, an `object`, or a `contract` (by its id) and an `object`; a server of
another contract is found as for relationships. `key` (the primary key by default) identifies a row; without a
key, whole rows are compared, with their number. `columns`, `ignore`, `rename` (name in this contract: name on
the other side) and `tolerance` (column: largest difference of equal numbers) are those of `dq reconcile`.
The number is that of missing, extra, changed and repeated rows; by default no row may differ. With
`unit: percent`, it is a percentage of the rows of this object and the extra ones. A column that is not
comparable, or only on one side, fails whatever the bound is. If partitions are checked, both sides are
limited to them.
With `cycles: 7`, the sides must agree in seven cycles in a row, as proof before a job moves to another
platform. The result also fails if an earlier one of the last seven compared cycles disagrees, and names the
first that does; with fewer cycles and no disagreement, it passes as "3 of 7 cycles in a row". The newest
result of each cycle counts, so that a cycle agrees once it is repaired and checked again. A cycle that could
not be compared, or was delivered and not checked, ends the streak, but is not a disagreement, nor one of the
seven. A cycle is all partitions of one date (and hour), or the runs of one day in UTC, if partitions have no
date. Another side, key, list of columns, tolerance or bound starts from zero. The incident of the rule opens
with the first disagreement and ends when the last seven agree; removing the rule or `cycles` withdraws it.
Before publishing, and without earlier results, only the compared rows decide.
Nulls: NULL equals only NULL; NaN equals NaN, and -0.0 equals 0.0. Two sides without rows agree.
How to fix: Run `dq reconcile` to see the rows that differ. Deliver the missing rows, or ignore or rename a
column that is not to be compared. The rows are compared with Spark; `dq sample` does not evaluate the rule. A
run on the server that the rule names is skipped. In Python pass `other_objects={"orders@serverless": frame}`.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from dq.contracts.agreement import Agreement, read_agreement
from dq.contracts.check_result import AgreementStreak, CheckResult, Status
from dq.contracts.outcome import pluralize
from dq.dataquality.clauses.clause import CheckParameters, Clause, Unit, parameters_of, refuse, with_test
from dq.dataquality.clauses.kind import CheckKind, Values, ending, percent, result, subject
from dq.dataquality.clauses.quality_rule import Rule, RuleOperator, clause_from_quality
from dq.dataquality.model.metric import ComparedRows, Metric, RowDifferences, count
from dq.dataquality.model.run_context import PastComparison, Unusable, comparison

_CHECK = "agrees"
# Number of columns in a message.
_NAMED = 3
_NO_ROW = (("mustBe", 0),)


def clause(rule: Rule) -> Clause:
    agreement = read_agreement(rule.object, rule.property, rule.quality)
    operator = RuleOperator(comparison(_NO_ROW))
    if not isinstance(agreement, Agreement):
        assert isinstance(agreement, tuple)
        finding = agreement[0]
        reason = f"{finding.message.rstrip('.')}; {finding.hint.rstrip('.')}"
        draft = clause_from_quality(_CHECK, rule.object, rule.quality, rule.column_name, operator)
        return refuse(draft, reason)
    try:
        operator = RuleOperator(comparison(agreement.bounds or _NO_ROW), agreement.unit)
    except Unusable as error:
        draft = clause_from_quality(_CHECK, rule.object, rule.quality, rule.column_name, operator)
        return refuse(draft, str(error))
    draft = clause_from_quality(_CHECK, rule.object, rule.quality, rule.column_name, operator)
    if draft.row_filter.where is not None or draft.row_filter.window is not None:
        return refuse(draft, f"{_CHECK} compares whole partitions; its scope cannot have where or a window")
    if agreement.cycles:
        draft = replace(draft, allowed=f"{draft.allowed}, in {pluralize(agreement.cycles, 'cycle')} in a row")
    return with_test(draft, CheckParameters(agreement))


def metrics(clause: Clause) -> tuple[Metric, ...]:
    compared = ComparedRows(replace(parameters_of(clause, Agreement), bounds=(), unit="", cycles=0))
    return (compared, count()) if _in_percent(clause) else (compared,)


def judge(clause: Clause, values: Values) -> CheckResult:
    differences, *rows = values.values()
    agreement = parameters_of(clause, Agreement)
    other = agreement.other
    if isinstance(differences, str):
        return result(clause, Status.SKIPPED, "not compared", f"{subject(clause)}: {differences}")
    assert isinstance(differences, RowDifferences)
    assert clause.limit is not None
    number, value = differences.total, Fraction(differences.total)
    observed = pluralize(number, "row")
    if rows:
        assert isinstance(rows[0], int)
        total = rows[0] + differences.extra
        value = Fraction(100 * number, total) if total else Fraction(0)
        observed = f"{percent(value)} % ({number:,} of {pluralize(total, 'row')})"
    verb = "differs" if number == 1 else "differ"
    text = f"{observed} {verb} from {other}{_details(differences)}"
    agrees = clause.limit.threshold.holds(value) and not differences.uncompared
    cycles = _streak(clause, agreement, agrees=agrees) if agreement.cycles else None
    passes = agrees
    if isinstance(cycles, str):
        text += f"; the cycles before are not known: {cycles}"
    elif cycles is not None:
        passes = agrees and not cycles.disagreement
        text += f"; {_streak_text(cycles)}"
        observed += f"; {cycles.disagreement} disagrees" if agrees and cycles.disagreement else ""
    message = f"{subject(clause)}: {text}{ending(clause, passes)}"
    check_result = result(clause, Status.PASS if passes else Status.FAIL, observed, message, float(value))
    return replace(
        check_result,
        unit=Unit.PERCENT if rows else Unit.ROWS,
        fingerprint=agreement.definition,
        agrees=agrees,
        streak=None if isinstance(cycles, str) else cycles,
    )


def _streak(clause: Clause, agreement: Agreement, *, agrees: bool) -> AgreementStreak | str:
    """Return the streak including this run, or the reason why earlier cycles are not known."""
    context = clause.context
    if context.history is None:
        return "no history"
    if context.now is None or len(context.partitions) > 1:
        return "several partitions at once" if context.now else "no time"
    earlier = (
        past for past in context.history if isinstance(past, PastComparison) and past.clause == clause.path
    )
    partition = context.partitions[0] if context.partitions else ()
    run = PastComparison(clause.path, agreement.definition, context.now, agrees, partition)
    # Imported here because it pulls in deliveries, which most contracts do not need.
    from dq.dataquality.clauses.agreement_streak import streak

    return streak(agreement, (*earlier, run))


def _streak_text(cycles: AgreementStreak) -> str:
    text = f"agrees in {cycles}"
    if cycles.gap and not cycles.is_complete:
        text += f", {cycles.gap} was not compared"
    return f"{cycles.disagreement} disagrees; {text}" if cycles.disagreement else text


def _details(differences: RowDifferences) -> str:
    """Return the numbers of rows by kind, the columns that differ, and those not compared."""
    columns = _listed(differences.columns)
    counts = {
        "missing there": differences.missing,
        "only there": differences.extra,
        f"changed{f' ({columns})' if columns else ''}": differences.changed,
        "with a repeated key": differences.repeated,
    }
    kinds = ", ".join(f"{number:,} {kind}" for kind, number in counts.items() if number)
    uncompared = _listed(differences.uncompared)
    return (f": {kinds}" if kinds else "") + (f"; not compared: {uncompared}" if uncompared else "")


def _listed(texts: tuple[str, ...]) -> str:
    remainder = f" and {len(texts) - _NAMED} more" if len(texts) > _NAMED else ""
    return ", ".join(texts[:_NAMED]) + remainder


def _in_percent(clause: Clause) -> bool:
    return clause.limit is not None and clause.limit.unit is Unit.PERCENT


CHECK = CheckKind(_CHECK, __doc__, metrics=metrics, evaluate=judge, rule=clause)
