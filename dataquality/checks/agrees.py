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
Nulls: NULL equals only NULL; NaN equals NaN, and -0.0 equals 0.0. Two sides without rows agree.
How to fix: Run `dq reconcile` to see the rows that differ. Deliver the missing rows, or ignore or rename a
column that is not to be compared. The rows are compared with Spark; `dq sample` does not evaluate the rule. A
run on the server that the rule names is skipped. In Python pass `other_objects={"orders@serverless": frame}`.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from dq.contracts.agreement import Agreement, read_agreement
from dq.contracts.outcome import CheckResult, Status, pluralize
from dq.dataquality.clauses.clause import CheckParameters, Clause, Unit, parameters_of, refuse, with_test
from dq.dataquality.clauses.kind import CheckKind, Values, ending, percent, result, subject
from dq.dataquality.clauses.quality_rule import Rule, RuleOperator, clause_from_quality
from dq.dataquality.model.metric import ComparedRows, Metric, RowDifferences, count
from dq.dataquality.model.run_context import Unusable, comparison

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
    return with_test(draft, CheckParameters(agreement))


def metrics(clause: Clause) -> tuple[Metric, ...]:
    compared = ComparedRows(replace(parameters_of(clause, Agreement), bounds=(), unit=""))
    return (compared, count()) if _in_percent(clause) else (compared,)


def judge(clause: Clause, values: Values) -> CheckResult:
    differences, *rows = values.values()
    other = parameters_of(clause, Agreement).other
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
    passes = clause.limit.threshold.holds(value) and not differences.uncompared
    message = f"{subject(clause)}: {text}{ending(clause, passes)}"
    check_result = result(clause, Status.PASS if passes else Status.FAIL, observed, message, float(value))
    return replace(check_result, unit=Unit.PERCENT if rows else Unit.ROWS)


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
