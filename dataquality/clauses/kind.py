"""Check kinds, and the evaluation of their measured numbers to check results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from operator import attrgetter

from dq.contracts.check_result import CheckResult, Status
from dq.contracts.model import Contract, SchemaObject
from dq.contracts.outcome import pluralize
from dq.contracts.types import DataType
from dq.dataquality.clauses.clause import (
    CheckParameters,
    Clause,
    ForeignKey,
    NoResult,
    PropertyKeys,
    RowTest,
    UniqueKey,
    Unit,
    parameters_of,
    refuse,
)
from dq.dataquality.clauses.foreign_key import NO_NEIGHBOURS, ContractSet, follow_reference
from dq.dataquality.clauses.quality_rule import Rule, check_of, clause_from_quality, rules_of
from dq.dataquality.model.column import Column, columns, resolve
from dq.dataquality.model.metric import (
    SCHEMA,
    Answers,
    DistinctKeys,
    Failure,
    Metric,
    Number,
    UnmatchedKeys,
    Value,
    count,
    distinct,
    duplicates,
)
from dq.dataquality.model.predicate import IsNull, Not, all_of
from dq.dataquality.model.run_context import OPERATORS, Unusable

# Evaluation of the measured numbers of one clause.

Values = Mapping[Metric, Value]


def row_metrics(clause: Clause) -> tuple[Metric, ...]:
    """Return the metrics of a clause that counts rows: all, failing, with repeated keys, or unmatched.

    The deciding metric comes first. Keys only need the total number of rows for a percentage, because it
    would require a pass in addition to the one for repeated keys. If most rows may repeat a key, distinct
    keys and rows with a key are counted instead.
    """
    where = clause.row_filter.where
    all_rows = count(where)
    match clause.test:
        case ForeignKey(keys, target):
            return (UnmatchedKeys(keys, target, where),)
        case UniqueKey(keys) if _expects_few_keys(clause):
            present = all_of(where, *(Not(IsNull(key.path)) for key in keys))
            return distinct(keys, where), count(present), all_rows
        case UniqueKey(keys):
            repeated = duplicates(keys, where)
            return (repeated, all_rows) if _in_percent(clause) else (repeated,)
        case RowTest(breaks):
            return count(all_of(where, breaks)), all_rows
        case _:
            return (all_rows,)


def schema_metrics(_: Clause) -> tuple[Metric, ...]:
    """Return the metric of a clause that only needs columns and types."""
    return (SCHEMA,)


def schema_in(values: Values) -> DataType:
    """Return the columns and types from the values of `schema_metrics`."""
    schema = values[SCHEMA]
    assert isinstance(schema, DataType)
    return schema


# Operators whose last operand is the expected or maximum number of rows with repeated keys.
_EXPECT = frozenset(OPERATORS) - {"mustNotBe", "mustNotBeBetween"}
# Percentage of repeated keys from which distinct keys are counted. CPU seconds of sorting and of counting
# distinct keys, a million rows, two tasks: 37 % repeated 2.9 and 2.0, 57 % 2.2 and 1.3, 80 % 1.8 and 0.9;
# none repeated about 1 to 2. With more tasks, each sees fewer repetitions, so it is not below a half.
FEW_KEYS = 50


def _expects_few_keys(clause: Clause) -> bool:
    """Return True if the rule expects or allows few distinct keys: each task then drops most rows early."""
    if clause.limit is None or clause.limit.unit is not Unit.PERCENT:
        return False
    threshold = clause.limit.threshold
    return threshold.operator in _EXPECT and threshold.operands[-1] >= FEW_KEYS


def _in_percent(clause: Clause) -> bool:
    return clause.limit is not None and clause.limit.unit is Unit.PERCENT


def evaluate_rows(clause: Clause, values: Values) -> CheckResult:
    """Return the result of a clause that counts rows.

    Without any rows, a percentage is SKIPPED, and a number of failing rows is zero.
    """
    metrics = row_metrics(clause)
    matching = _integer(values[metrics[0]])
    if isinstance(metrics[0], DistinctKeys):
        matching = _integer(values[metrics[1]]) - matching
    total = (
        _integer(values[metrics[-1]])
        if len(metrics) > 1 or metrics[0] == count(clause.row_filter.where)
        else None
    )
    if _in_percent(clause) and total == 0:
        message = f"{subject(clause)}: there are no rows to take a percentage of"
        return result(clause, Status.SKIPPED, "no rows", message)
    value = Fraction(100 * matching, total) if _in_percent(clause) and total else Fraction(matching)
    passes = clause.limit.threshold.holds(value) if clause.limit else matching == 0
    observed = _observed(clause, matching, total, value)
    message = f"{subject(clause)}: {observed}{_complaint(clause, observed)}{ending(clause, passes)}"
    check_result = result(clause, Status.PASS if passes else Status.FAIL, observed, message, float(value))
    rows, failed = (total, matching) if clause.is_row_level else (matching, None)
    return replace(
        check_result, rows=rows, failed_rows=failed, unit=Unit.PERCENT if _in_percent(clause) else Unit.ROWS
    )


def result(
    clause: Clause, status: Status, observed: str, message: str, value: float | None = None
) -> CheckResult:
    """Return a check result with the clause's identity and location."""
    no_row = {"mustBe": 0} if clause.is_row_level else {}
    return CheckResult(
        check=clause.check,
        clause=clause.path,
        object=clause.object,
        property=clause.property,
        status=status,
        severity=clause.severity,
        observed=observed,
        allowed=clause.allowed,
        message=message,
        at=clause.at,
        value=value,
        threshold=clause.limit.threshold.as_odcs() if clause.limit else no_row,
    )


def evaluate_number(clause: Clause, measured: Number | Failure, source: str) -> CheckResult:
    """Return the result of a clause whose threshold bounds a number from `source`, e.g. a query or
    function.
    """
    if isinstance(measured, Failure):
        return unmeasured(clause, measured)
    assert clause.limit is not None
    # The shortest decimal of a float, like the bound: 0.1 equals 0.1.
    number = Fraction(str(measured))
    passes = clause.limit.threshold.holds(number)
    text = f"{measured:,}" if isinstance(measured, int) else str(measured)
    message = f"{subject(clause)}: {source} gives {text}{ending(clause, passes)}"
    return result(clause, Status.PASS if passes else Status.FAIL, text, message, float(number))


@dataclass(frozen=True, slots=True)
class AllowedTypes:
    """Types that a column may have in the data, and message formats with its type for pass and fail."""

    column: Column
    types: tuple[str, ...]
    pass_message: str
    fail_message: str


def evaluate_type(clause: Clause, values: Values) -> CheckResult:
    """Return the result of a clause with AllowedTypes."""
    allowed_types = parameters_of(clause, AllowedTypes)
    actual = resolve(schema_in(values), allowed_types.column)
    if isinstance(actual, str):
        return result(clause, Status.ERROR, "not measured", f"{subject(clause)}: {actual}")
    if actual.name in allowed_types.types:
        message = f"{subject(clause)}: {allowed_types.pass_message.format(actual)}"
        return result(clause, Status.PASS, str(actual), message)
    expected = f"allowed: {clause.allowed}, stored by Spark as {' or '.join(allowed_types.types)}"
    message = f"{subject(clause)}: {allowed_types.fail_message.format(actual)}; {expected}"
    return result(clause, Status.FAIL, str(actual), message)


def unmeasured(clause: Clause, failure: Failure) -> CheckResult:
    """Return the result of a clause whose metric could not be measured."""
    return result(clause, Status.ERROR, "not measured", f"{subject(clause)}: {failure.message}")


def subject(clause: Clause) -> str:
    """Return the object or property of the clause, for messages."""
    return f"{clause.object}.{clause.property}" if clause.property else clause.object


def ending(clause: Clause, passes: bool) -> str:
    """Return the end of a message: the allowed value unless the clause passes, and the tested rows."""
    return ("" if passes else f"; allowed: {clause.allowed}") + (f" ({clause.note})" if clause.note else "")


def _complaint(clause: Clause, observed: str) -> str:
    """Return the complaint as a predicate of the row count, in singular or plural: `1 row is NULL`, `2 rows
    are`.
    """
    ask = clause.test
    if not isinstance(ask, RowTest | UniqueKey | ForeignKey) or not ask.complaint:
        return ""
    verb, space, complement = ask.complaint.partition(" ")
    if observed.rstrip(")").endswith(" row"):
        verb = _SINGULAR.get(verb, verb)
    return f" {verb}{space}{complement}"


# Plural verb of a complaint (ours, and likely ones of plug-ins) -> its singular.
_SINGULAR = {
    "are": "is", "break": "breaks", "do": "does", "have": "has", "lack": "lacks", "refer": "refers",
    "repeat": "repeats",
}  # fmt: skip


def _observed(clause: Clause, matching: int, total: int | None, value: Fraction) -> str:
    if not clause.is_row_level:
        return pluralize(matching, "row")
    text = f"{matching:,} of {pluralize(total, 'row')}" if total is not None else pluralize(matching, "row")
    return f"{percent(value)} % ({text})" if _in_percent(clause) else text


def percent(value: Fraction) -> str:
    """Format with four significant digits, but never round to 0 or 100: one bad row in a billion stays
    visible.
    """
    text = f"{float(value):.4g}"
    if (text == "0" and value > 0) or (text == "100" and value < 100):
        text = f"{float(value):.12g}"
    return text


def _integer(value: Value) -> int:
    assert isinstance(value, int), f"a count is needed, not {value!r}"
    return value


# Check kinds: one file each in `checks/`, without Spark.
#
# A kind's module docstring is the user's page: a summary sentence, then `Why:`, `Bad:`, `Good:`, `Nulls:` and
# `How to fix:`. Its examples are in `tests/dataquality/checks/examples/`: a shared test runs them on Spark.


@dataclass(frozen=True, slots=True)
class CheckKind:
    """A check: finds its clauses in a contract, measures and evaluates them.

    A kind has either `clauses`, which builds clauses from the keys of a contract, or `rule`, which builds the
    clause of a quality rule (None if the rule has no meaning there; raises Unusable with the reason).

    `metrics`, `evaluate` and `follow_ups` apply to clauses with CheckParameters; all other clauses count rows
    and are evaluated alike. `follow_ups` are metrics that depend on the first values; they cost another job.
    """

    id: str
    page: str
    clauses: Callable[[Contract, SchemaObject], Iterable[Clause]] = lambda _contract, _schema: ()
    metrics: Callable[[Clause], tuple[Metric, ...]] = row_metrics
    evaluate: Callable[[Clause, Values], CheckResult] = evaluate_rows
    follow_ups: Callable[[Clause, Values], tuple[Metric, ...]] = lambda _clause, _values: ()
    rule: Callable[[Rule], Clause | None] | None = None

    @property
    def summary(self) -> str:
        """The first sentence of the page."""
        return self.page.strip().splitlines()[0]


def property_check(id: str, page: str | None, find: Callable[[PropertyKeys], Iterable[Clause]]) -> CheckKind:
    """Return a check whose clauses come from the keys of single properties."""

    def clauses(_contract: Contract, schema: SchemaObject) -> Iterator[Clause]:
        for prop, column in columns(schema):
            yield from find(PropertyKeys(id, schema, prop, column))

    return CheckKind(id, page or "", clauses)


CheckKinds = Mapping[str, CheckKind]


def clauses_of(
    contract: Contract, schema: SchemaObject, kinds: CheckKinds, neighbours: ContractSet = NO_NEIGHBOURS
) -> list[Clause]:
    """Return every clause of an object that some kind finds, in file order.

    Relationships to neighbouring contracts are resolved.
    """
    clauses = [
        follow_reference(clause, contract, neighbours) if isinstance(clause.test, NoResult) else clause
        for kind in kinds.values()
        if kind.rule is None
        for clause in kind.clauses(contract, schema)
    ]
    for rule in rules_of(schema):
        kind = kinds.get(check_of(rule.quality) or "")
        clause = _clause_of_rule(kind, rule) if kind is not None else None
        if clause is not None:
            clauses.append(clause)
    return sorted(clauses, key=BY_PLACE)


BY_PLACE = attrgetter("at.file", "at.line", "at.column")


def _clause_of_rule(kind: CheckKind, rule: Rule) -> Clause | None:
    assert kind.rule is not None, f"the check {kind.id} takes no quality rules"
    try:
        return kind.rule(rule)
    except Unusable as error:
        return refuse(clause_from_quality(kind.id, rule.object, rule.quality, rule.column_name), str(error))


_COUNTS_ROWS = CheckKind("", "")


def _kind_of(clause: Clause, kinds: CheckKinds) -> CheckKind:
    return kinds[clause.check] if isinstance(clause.test, CheckParameters) else _COUNTS_ROWS


def metrics_for(clause: Clause, kinds: CheckKinds) -> tuple[Metric, ...]:
    """Return the first metrics of a clause; none if it is refused."""
    return () if clause.refusal_reason else _kind_of(clause, kinds).metrics(clause)


def metrics_for_all(clauses: Iterable[Clause], kinds: CheckKinds) -> dict[Metric, None]:
    """Return the distinct first metrics of these clauses."""
    return dict.fromkeys(metric for clause in clauses for metric in metrics_for(clause, kinds))


def follow_up_metrics(clause: Clause, answers: Answers, kinds: CheckKinds) -> tuple[Metric, ...]:
    """Return the follow-up metrics of a clause; none if a first metric failed."""
    first = {metric: answers[metric] for metric in metrics_for(clause, kinds)}
    values = {metric: answer for metric, answer in first.items() if not isinstance(answer, Failure)}
    return _kind_of(clause, kinds).follow_ups(clause, values) if first and len(values) == len(first) else ()


def follow_up_metrics_for_all(clauses: Iterable[Clause], answers: Answers, kinds: CheckKinds) -> list[Metric]:
    """Return the unanswered follow-up metrics of these clauses."""
    follow_ups = (metric for clause in clauses for metric in follow_up_metrics(clause, answers, kinds))
    return [metric for metric in dict.fromkeys(follow_ups) if metric not in answers]


def evaluate_clause(clause: Clause, answers: Answers, kinds: CheckKinds) -> CheckResult:
    """Return the result of a clause from the answers to its metrics; an error if one of them failed."""
    if clause.refusal_reason:
        return result(clause, Status.ERROR, "not tested", f"{subject(clause)}: {clause.refusal_reason}")
    values = {}
    for metric in (*metrics_for(clause, kinds), *follow_up_metrics(clause, answers, kinds)):
        answer = answers[metric]
        if isinstance(answer, Failure):
            return unmeasured(clause, answer)
        values[metric] = answer
    return _kind_of(clause, kinds).evaluate(clause, values)
