"""What a check kind is: one file on the shelf `checks/`, without Spark in it.

A kind's module docstring is the user's page: a summary sentence, then `Why:`, `Bad:`, `Good:`, `Nulls:` and
`Mend:`. Its examples are its own test: a shared test runs them on Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from dq.contracts.model import Contract, SchemaObject
from dq.contracts.shared.outcome import CheckResult, Status
from dq.dataquality.clauses.clause import Clause, KindTerms
from dq.dataquality.clauses.foreign_key import ALONE, Neighbours, followed
from dq.dataquality.clauses.judge import Values, judged, questions, result, subject, unmeasured
from dq.dataquality.model.metric import Answers, Failure, Metric
from dq.dataquality.model.run_context import Earlier


@dataclass(frozen=True, slots=True)
class Example:
    """Rows, and how every clause of the kind ends on them.

    `contract` is YAML of one object (without its name). `columns` is the frame's schema as Spark DDL.
    `ends` has one word per clause, in the order of the contract: pass, fail, error or skipped. `observed`
    are the texts that the results must show, where they matter. `levels` is a YAML list of service levels
    of the contract; `now` and `history` are what the run is told.
    """

    name: str
    contract: str
    columns: str
    rows: tuple[tuple[object, ...], ...]
    ends: str
    observed: tuple[str, ...] = ()
    levels: str = ""
    now: datetime | None = None
    history: tuple[Earlier, ...] | None = None


@dataclass(frozen=True, slots=True)
class CheckKind:
    """How one kind of promise is found in a contract, asked and judged.

    Most kinds only find their clauses. A kind says how its clauses with KindTerms are asked and judged; all
    others count rows, and are asked and judged alike. `then` are questions that only the first answers call
    for; they cost a job more where there are any.
    """

    id: str
    page: str
    clauses: Callable[[Contract, SchemaObject], Iterator[Clause]]
    examples: tuple[Example, ...]
    metrics: Callable[[Clause], tuple[Metric, ...]] = questions
    judge: Callable[[Clause, Values], CheckResult] = judged
    then: Callable[[Clause, Values], tuple[Metric, ...]] = lambda _clause, _values: ()

    @property
    def summary(self) -> str:
        """The first sentence of the page."""
        return self.page.strip().splitlines()[0]


Shelf = Mapping[str, CheckKind]


def clauses_of(
    contract: Contract, one: SchemaObject, kinds: Shelf, neighbours: Neighbours = ALONE
) -> list[Clause]:
    """Every clause of an object that some kind knows, in the order of the file.

    Relationships into one of the neighbours are followed.
    """
    found = [clause for kind in kinds.values() for clause in kind.clauses(contract, one)]
    return sorted((followed(clause, contract, neighbours) for clause in found), key=lambda clause: clause.at)


_COUNTS_ROWS = CheckKind("", "", lambda _contract, _one: iter(()), ())


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
