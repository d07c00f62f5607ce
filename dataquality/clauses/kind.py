"""What a check kind is, and how its measured numbers become a check result."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from operator import attrgetter

from dq.contracts.model import Contract, SchemaObject
from dq.contracts.outcome import CheckResult, Status, counted
from dq.contracts.types import DataType
from dq.dataquality.clauses.clause import (
    Clause,
    ForeignKey,
    KindTerms,
    NoResult,
    PropertyKeys,
    RowTest,
    UniqueKey,
    Unit,
    refuse,
    terms_of,
)
from dq.dataquality.clauses.foreign_key import ALONE, Neighbours, followed
from dq.dataquality.clauses.quality_rule import Rule, check_of, of_quality, rules_of
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

# The measured numbers of one clause to its check result.

Values = Mapping[Metric, Value]


def questions(clause: Clause) -> tuple[Metric, ...]:
    """What to ask for a clause that counts: all rows, or those that break it, repeat a key or match none.

    The metric that decides comes first. Keys need the number of all rows only for a percentage, because
    the pass that finds repeated keys would otherwise stand alone. Where most rows may repeat a key, the
    different keys are counted, and the rows that have one.
    """
    where = clause.extent.where
    everything = count(where)
    match clause.ask:
        case ForeignKey(keys, target):
            return (UnmatchedKeys(keys, target, where),)
        case UniqueKey(keys) if _few_keys(clause):
            present = all_of(where, *(Not(IsNull(key.path)) for key in keys))
            return distinct(keys, where), count(present), everything
        case UniqueKey(keys):
            repeated = duplicates(keys, where)
            return (repeated, everything) if _in_percent(clause) else (repeated,)
        case RowTest(breaks):
            return count(all_of(where, breaks)), everything
        case _:
            return (everything,)


def of_schema(_: Clause) -> tuple[Metric, ...]:
    """What to ask for a clause about columns and types alone."""
    return (SCHEMA,)


def schema_in(values: Values) -> DataType:
    """The columns and types, where `of_schema` was asked."""
    schema = values[SCHEMA]
    assert isinstance(schema, DataType)
    return schema


# Operators whose last operand says how many rows are expected to repeat a key, or may at most.
_EXPECT = frozenset(OPERATORS) - {"mustNotBe", "mustNotBeBetween"}
# Percent of all rows. CPU seconds of sorting and of counting different keys, a million rows, two tasks: 37 %
# repeated 2.9 and 2.0, 57 % 2.2 and 1.3, 80 % 1.8 and 0.9; none repeated about 1 to 2. With more tasks each
# sees fewer repetitions, so not below a half.
FEW_KEYS = 50


def _few_keys(clause: Clause) -> bool:
    """Whether the rule expects few different keys, or allows them: then each task drops most rows at once."""
    if clause.limit is None or clause.limit.unit is not Unit.PERCENT:
        return False
    threshold = clause.limit.threshold
    return threshold.operator in _EXPECT and threshold.operands[-1] >= FEW_KEYS


def _in_percent(clause: Clause) -> bool:
    return clause.limit is not None and clause.limit.unit is Unit.PERCENT


def judged(clause: Clause, values: Values) -> CheckResult:
    """The result of a clause that counts.

    No row at all makes a percentage SKIPPED, because there is nothing to take it of; a count of broken
    rows is then zero.
    """
    asked = questions(clause)
    found = _integer(values[asked[0]])
    if isinstance(asked[0], DistinctKeys):
        found = _integer(values[asked[1]]) - found
    total = _integer(values[asked[-1]]) if len(asked) > 1 or asked[0] == count(clause.extent.where) else None
    if _in_percent(clause) and total == 0:
        message = f"{subject(clause)}: there are no rows to take a percentage of"
        return result(clause, Status.SKIPPED, "no rows", message)
    measured = Fraction(100 * found, total) if _in_percent(clause) and total else Fraction(found)
    kept = clause.limit.threshold.holds(measured) if clause.limit else found == 0
    observed = _observed(clause, found, total, measured)
    message = f"{subject(clause)}: {observed}{_complaint(clause, observed)}{ending(clause, kept)}"
    made = result(clause, Status.PASS if kept else Status.FAIL, observed, message, float(measured))
    rows, failed = (total, found) if clause.of_rows else (found, None)
    return replace(
        made, rows=rows, failed_rows=failed, unit=Unit.PERCENT if _in_percent(clause) else Unit.ROWS
    )


def result(
    clause: Clause, status: Status, observed: str, message: str, value: float | None = None
) -> CheckResult:
    """A check result with the clause's identity and place."""
    no_row = {"mustBe": 0} if clause.of_rows else {}
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


def judge_number(clause: Clause, found: Number | Failure, giver: str) -> CheckResult:
    """The result of a clause whose threshold bounds a number that `giver` (a query, a function) gave."""
    if isinstance(found, Failure):
        return unmeasured(clause, found)
    assert clause.limit is not None
    # The shortest decimal of a float, as the bound is read: 0.1 is 0.1.
    number = Fraction(str(found))
    kept = clause.limit.threshold.holds(number)
    shown = f"{found:,}" if isinstance(found, int) else str(found)
    message = f"{subject(clause)}: {giver} gives {shown}{ending(clause, kept)}"
    return result(clause, Status.PASS if kept else Status.FAIL, shown, message, float(number))


@dataclass(frozen=True, slots=True)
class TypeAsked:
    """The types that a column may have in the data; `kept` and `broken` say of which type it is."""

    column: Column
    types: tuple[str, ...]
    kept: str
    broken: str


def judge_type(clause: Clause, values: Values) -> CheckResult:
    """The result of a clause with TypeAsked."""
    asked = terms_of(clause, TypeAsked)
    found = resolve(schema_in(values), asked.column)
    if isinstance(found, str):
        return result(clause, Status.ERROR, "not measured", f"{subject(clause)}: {found}")
    if found.name in asked.types:
        message = f"{subject(clause)}: {asked.kept.format(found)}"
        return result(clause, Status.PASS, str(found), message)
    kept_as = f"allowed: {clause.allowed}, which Spark keeps as {' or '.join(asked.types)}"
    message = f"{subject(clause)}: {asked.broken.format(found)}; {kept_as}"
    return result(clause, Status.FAIL, str(found), message)


def unmeasured(clause: Clause, failure: Failure) -> CheckResult:
    """The result of a clause whose question has no answer."""
    return result(clause, Status.ERROR, "not measured", f"{subject(clause)}: {failure.message}")


def subject(clause: Clause) -> str:
    """What the clause is about, as a message names it."""
    return f"{clause.object}.{clause.property}" if clause.property else clause.object


def ending(clause: Clause, kept: bool) -> str:
    """How a message ends: with what is allowed, where it is not kept, and with the rows that were asked."""
    return ("" if kept else f"; allowed: {clause.allowed}") + (f" ({clause.note})" if clause.note else "")


def _complaint(clause: Clause, observed: str) -> str:
    """What is wrong with the rows, as the verb of a sentence about them: `1 row is NULL`, `2 rows are`."""
    ask = clause.ask
    if not isinstance(ask, RowTest | UniqueKey | ForeignKey) or not ask.complaint:
        return ""
    verb, space, complement = ask.complaint.partition(" ")
    if observed.rstrip(")").endswith(" row"):
        verb = _SINGULAR.get(verb, verb)
    return f" {verb}{space}{complement}"


# Verbs of complaints, our own and those that plug-ins are likely to use -> what one row does.
_SINGULAR = {
    "are": "is", "break": "breaks", "do": "does", "have": "has", "lack": "lacks", "refer": "refers",
    "repeat": "repeats",
}  # fmt: skip


def _observed(clause: Clause, found: int, total: int | None, measured: Fraction) -> str:
    if not clause.of_rows:
        return counted(found, "row")
    shown = f"{found:,} of {counted(total, 'row')}" if total is not None else counted(found, "row")
    return f"{percent(measured)} % ({shown})" if _in_percent(clause) else shown


def percent(value: Fraction) -> str:
    """Four significant digits, but never a rounded 0 or 100: one bad row in a billion stays visible."""
    shown = f"{float(value):.4g}"
    if (shown == "0" and value > 0) or (shown == "100" and value < 100):
        shown = f"{float(value):.12g}"
    return shown


def _integer(value: Value) -> int:
    assert isinstance(value, int), f"a count is needed, not {value!r}"
    return value


# What a check kind is: one file on the shelf `checks/`, without Spark in it.
#
# A kind's module docstring is the user's page: a summary sentence, then `Why:`, `Bad:`, `Good:`, `Nulls:`
# and
# `Mend:`. Its examples are in `tests/dataquality/checks/examples/`: a shared test runs them on Spark.


@dataclass(frozen=True, slots=True)
class CheckKind:
    """How one kind of promise is found in a contract, asked and judged.

    `clauses` finds what the keys of a contract promise, `rule` makes the clause of a quality rule that calls
    for this kind (None: such a rule means nothing where it stands; Unusable: with the reason). A kind has one
    of the two. Most kinds only find their clauses. A kind says how its clauses with KindTerms are asked and
    judged; all others count rows, and are asked and judged alike. `then` are questions that only the first
    answers call for; they cost a job more where there are any.
    """

    id: str
    page: str
    clauses: Callable[[Contract, SchemaObject], Iterable[Clause]] = lambda _contract, _schema: ()
    metrics: Callable[[Clause], tuple[Metric, ...]] = questions
    judge: Callable[[Clause, Values], CheckResult] = judged
    then: Callable[[Clause, Values], tuple[Metric, ...]] = lambda _clause, _values: ()
    rule: Callable[[Rule], Clause | None] | None = None

    @property
    def summary(self) -> str:
        """The first sentence of the page."""
        return self.page.strip().splitlines()[0]


def of_properties(id: str, page: str | None, find: Callable[[PropertyKeys], Iterable[Clause]]) -> CheckKind:
    """The check whose clauses come from the keys of single properties."""

    def clauses(_contract: Contract, schema: SchemaObject) -> Iterator[Clause]:
        for prop, column in columns(schema):
            yield from find(PropertyKeys(id, schema, prop, column))

    return CheckKind(id, page or "", clauses)


Shelf = Mapping[str, CheckKind]


def clauses_of(
    contract: Contract, schema: SchemaObject, kinds: Shelf, neighbours: Neighbours = ALONE
) -> list[Clause]:
    """Every clause of an object that some kind knows, in the order of the file.

    Relationships into one of the neighbours are followed.
    """
    clauses = [
        followed(clause, contract, neighbours) if isinstance(clause.ask, NoResult) else clause
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
        return refuse(of_quality(kind.id, rule.object, rule.quality, rule.shown), str(error))


_COUNTS_ROWS = CheckKind("", "")


def _kind_of(clause: Clause, kinds: Shelf) -> CheckKind:
    return kinds[clause.check] if isinstance(clause.ask, KindTerms) else _COUNTS_ROWS


def asked_by(clause: Clause, kinds: Shelf) -> tuple[Metric, ...]:
    """What a clause asks at first; nothing where it is refused."""
    return () if clause.refused else _kind_of(clause, kinds).metrics(clause)


def metrics_of(clauses: Iterable[Clause], kinds: Shelf) -> dict[Metric, None]:
    """What these clauses ask at first, each question once."""
    return dict.fromkeys(metric for clause in clauses for metric in asked_by(clause, kinds))


def then_asked(clause: Clause, answers: Answers, kinds: Shelf) -> tuple[Metric, ...]:
    """What the first answers to a clause call for; nothing where one of them failed."""
    first = {metric: answers[metric] for metric in asked_by(clause, kinds)}
    values = {metric: answer for metric, answer in first.items() if not isinstance(answer, Failure)}
    return _kind_of(clause, kinds).then(clause, values) if first and len(values) == len(first) else ()


def second_of(clauses: Iterable[Clause], answers: Answers, kinds: Shelf) -> list[Metric]:
    """What the first answers to these clauses call for, and is not answered yet."""
    more = (one for clause in clauses for one in then_asked(clause, answers, kinds))
    return [one for one in dict.fromkeys(more) if one not in answers]


def answered(clause: Clause, answers: Answers, kinds: Shelf) -> CheckResult:
    """The result of a clause from the answers to its questions; an error where one of them has none."""
    if clause.refused:
        return result(clause, Status.ERROR, "not tested", f"{subject(clause)}: {clause.refused}")
    values = {}
    for metric in (*asked_by(clause, kinds), *then_asked(clause, answers, kinds)):
        answer = answers[metric]
        if isinstance(answer, Failure):
            return unmeasured(clause, answer)
        values[metric] = answer
    return _kind_of(clause, kinds).judge(clause, values)
