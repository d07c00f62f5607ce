"""Many partitions at once: each question is put to all of them, and answered for each.

Partitions go together that a check of one would open with the same columns. What has no answer here is left
to a check of the partition alone, so that nothing is told here that such a check would not tell.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dq.contracts.shared.errors import DqError
from dq.contracts.sql import text as sql
from dq.contracts.types import DataType
from dq.dataquality.backtest.alike import MOST_FILES, alike, plain
from dq.dataquality.backtest.partitions import FoundPartition, key_sql
from dq.dataquality.clauses.clause import Clause
from dq.dataquality.clauses.kind import metrics_of, then_asked
from dq.dataquality.model import column
from dq.dataquality.model.how_asked import Kind, Merge
from dq.dataquality.model.metric import (
    SCHEMA,
    Aggregate,
    Answer,
    Answers,
    Failure,
    Metric,
    RepeatedKeys,
    merge_of,
    of_users,
)
from dq.dataquality.request import Chosen, Request, opened, others_of
from dq.dataquality.shortcuts.levers import Lever
from dq.dataquality.shortcuts.shortcut import Shortcut, shortcut
from dq.dataquality.shortcuts.statistics.prove import counted, provable
from dq.dataquality.spark.measure import COUNT, Key, Others, by_partition, of_no_rows, schema_of, separable
from dq.dataquality.spark.partitions import only
from dq.dataquality.spark.plan import Pass, plan
from dq.dataquality.spark.readers.open import Dataset, gathered
from dq.dataquality.spark.session import time_limit

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# The filter of so many partitions is planned in no time.
MOST_AT_ONCE = 300
# Values of a column that are held at once, as `checks.quantile` says for one check.
MOST_RANKED = 200_000
# So many more failures than successes show that most partitions fail: each alone is cheaper then.
_PATIENCE = 8


@dataclass(frozen=True, slots=True)
class ToldTogether:
    """What was told of a partition: answers by question, and the data that has its columns."""

    table: DataFrame
    answers: Answers


@dataclass(frozen=True, slots=True)
class _Asking:
    """What is asked of partitions; `clauses` has it as a check of one has it, by the columns of its data."""

    request: Request
    chosen: Chosen
    clauses: Callable[[FoundPartition, DataType], Sequence[Clause]]
    present: int
    outcomes: list[bool] = field(default_factory=list)

    def patient(self) -> bool:
        return len(self.outcomes) < _PATIENCE + 2 * sum(self.outcomes)


def together(
    request: Request,
    chosen: Chosen,
    found: Sequence[FoundPartition],
    clauses: Callable[[FoundPartition, DataType], Sequence[Clause]],
    present: int,
) -> dict[FoundPartition, ToldTogether]:
    """What can be told of these partitions at once; one of which nothing can is left out.

    `clauses` gives what is asked of a partition, by the schema of its data; `present` is how many partitions
    the table has. A partition that fails is looked for by halves, and left out with what none can answer.
    """
    asking = _Asking(request, chosen, clauses, present)
    told: dict[FoundPartition, ToldTogether] = {}
    sound = [one for one in found if one.key is not None and one.key == tuple(map(_itself, one.key))]
    for group in alike(request.data, sound):
        for some in _parts(group):
            told |= dict(_tell(asking, some))
    return told


def _itself(value: object) -> object:
    """The value; of NaN, which equals nothing and so is found nowhere, none."""
    return value if value == value else None


def _parts(group: Sequence[FoundPartition]) -> Iterator[list[FoundPartition]]:
    """Not more partitions and files at once than are looked at in the same way for one."""
    part: list[FoundPartition] = []
    files = 0
    for one in group:
        more = len(one.files or ())
        if part and (len(part) == MOST_AT_ONCE or files + more > MOST_FILES):
            yield part
            part, files = [], 0
        part.append(one)
        files += more
    if part:
        yield part


def _tell(asking: _Asking, group: Sequence[FoundPartition]) -> Iterator[tuple[FoundPartition, ToldTogether]]:
    if len(group) < 2 or not asking.patient():
        return
    told = _told(asking, group)
    asking.outcomes.append(told is not None)
    if told is not None:
        yield from told.items()
        return
    middle = len(group) // 2
    yield from _tell(asking, group[:middle])
    yield from _tell(asking, group[middle:])


def _told(asking: _Asking, group: Sequence[FoundPartition]) -> dict[FoundPartition, ToldTogether] | None:
    """What is told of all of these partitions; None where one of them keeps the others from it."""
    request = asking.request
    scope = [dict(one.partition) for one in group]
    everything = len(group) == asking.present
    try:
        table = opened(request.data, request.spark, scope)
        # Without a filter, where it would choose everything, Spark plans faster.
        rows = table if everything else only(table, scope)
    except DqError:
        return None
    schema = schema_of(table)
    by = _by(group, schema)
    if by is None or not plain(request.data, table):
        return None
    asked = {one: list(asking.clauses(one, schema)) for one in group}
    shelf = asking.chosen.kinds
    first = dict.fromkeys(metric for each in asked.values() for metric in metrics_of(each, shelf))
    metrics = [one for one in (*first, COUNT) if separable(one, schema)]
    known = _known(request, table, () if everything else scope, metrics, group)
    others = others_of(request, asking.chosen.one, table)
    partitions = _Rows(rows, by, group, others, request.limit_seconds)
    if not partitions.ask(metrics, known):
        return None
    second: dict[Metric, None] = {}
    for one, each in asked.items():
        for clause in each:
            if all(metric in known[one] for metric in metrics_of([clause], shelf)):
                second |= dict.fromkeys(then_asked(clause, known[one], shelf))
    ranked = sum(_integer(known[one].get(COUNT)) for one in group) <= MOST_RANKED
    more = [one for one in second if separable(one, schema) and (ranked or one.kind is not Kind.RANKED)]
    if more and not partitions.ask(more, known):
        return None
    return {one: ToldTogether(table, answers) for one, answers in known.items()}


def _by(group: Sequence[FoundPartition], schema: DataType) -> list[str] | None:
    """What tells the partitions apart, as Spark gives their keys; None where the data has no such column."""
    kinds = [(name, column.field(schema, name)) for name, _ in group[0].partition]
    made = [key_sql(sql.name(name), kind) for name, kind in kinds if kind is not None]
    return made if len(made) == len(kinds) else None


def _known(
    request: Request,
    table: DataFrame,
    parts: Sequence[Mapping[str, str]],
    metrics: Sequence[Metric],
    group: Sequence[FoundPartition],
) -> dict[FoundPartition, dict[Metric, Answer]]:
    """What needs no scan by partition: what no row of all breaks, and what files tell of themselves."""
    data = request.data
    source = data if isinstance(data, Dataset) and not data.placed else None
    levers, limit = request.levers, request.limit_seconds
    made = shortcut(metrics, table, source, parts, levers, request.tasks_from, limit)
    nothing: dict[Metric, Answer] = {
        one: 0
        for one, answer in made.answers.items()
        if answer == 0 and (merge_of(one) is Merge.SUM or isinstance(one, RepeatedKeys))
    }
    schema = schema_of(table)
    told = _by_files(made, group, provable(metrics, schema)) if Lever.STATISTICS in levers else {}
    return {one: {SCHEMA: schema, **nothing, **told.get(one, {})} for one in group}


def _by_files(
    made: Shortcut, group: Sequence[FoundPartition], asked: Sequence[Aggregate]
) -> dict[FoundPartition, dict[Metric, Answer]]:
    """What the files of each partition tell; nothing, where one of its files is not known."""
    files = {file.path: file for file in made.files}
    return {
        one: counted(asked, [files[path] for path in one.files])
        for one in group
        if files and one.files is not None and all(path in files for path in one.files)
    }


@dataclass(frozen=True, slots=True)
class _Rows:
    """The rows of partitions that are asked together."""

    frame: DataFrame
    by: Sequence[str]
    group: Sequence[FoundPartition]
    others: Others
    limit_seconds: float | None

    def ask(self, metrics: Iterable[Metric], known: dict[FoundPartition, dict[Metric, Answer]]) -> bool:
        """Puts the answers to these metrics into `known`; False where what is not a user's has none."""
        missing = [one for one in metrics if any(one not in answers for answers in known.values())]
        made = plan(missing, schema_of(self.frame))
        for metric, failure in made.failures:
            # Another way to ask it is the check's own.
            if getattr(metric, "instead", None) is None:
                for answers in known.values():
                    answers[metric] = failure
        return all(self._pass(one, known) for one in made.passes)

    def _pass(self, one: Pass, known: dict[FoundPartition, dict[Metric, Answer]]) -> bool:
        theirs = tuple(metric for metric in one.metrics if of_users(metric))
        told = self._answers(one, known, self.limit_seconds if theirs else None)
        if isinstance(told, Failure) and theirs:
            ours = tuple(metric for metric in one.metrics if metric not in theirs)
            if not ours:
                return True
            one = Pass(one.kind, ours)
            told = self._answers(one, known, None)
        if isinstance(told, Failure) or not told.keys() <= {each.key for each in known}:
            return False
        for each, answers in known.items():
            here = told.get(each.key or (), {})
            if not here and isinstance(one.metrics[0], Aggregate) and answers.get(COUNT):
                # The data has changed since its rows were counted.
                return False
            answers |= {metric: here.get(metric, of_no_rows(metric)) for metric in one.metrics}
        return True

    def _answers(
        self,
        one: Pass,
        known: Mapping[FoundPartition, Mapping[Metric, Answer]],
        limit_seconds: float | None,
    ) -> Mapping[Key, Mapping[Metric, Answer]] | Failure:
        counts = [answers.get(COUNT) for answers in known.values()]
        total = sum(map(_integer, counts)) if None not in counts else None
        apart = isinstance(one.metrics[0], Aggregate) or one.kind is Kind.UNMATCHED
        frame = self.frame if apart else gathered(self.frame, total)
        with time_limit(frame.sparkSession, limit_seconds):
            return by_partition(frame, self.by, one, self.others)


def _integer(value: object) -> int:
    return value if isinstance(value, int) else 0
