"""The back-test of one object: which partitions are there, and in which its rules would have failed."""

from __future__ import annotations

import builtins
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from dq.contracts.model import namer
from dq.contracts.outcome import CheckResult, DqError, Location, Severity, Status, Unreadable, UsageError
from dq.contracts.sql import text as sql
from dq.contracts.types import DataType
from dq.dataquality.answers.sources import Lever, Shortcut, counted, provable, shortcut
from dq.dataquality.check import by_schema, check
from dq.dataquality.clauses.clause import Clause, RowScope
from dq.dataquality.clauses.coverage import JsonObject, in_scope
from dq.dataquality.clauses.kind import Shelf, answered, asked_by, metrics_of, then_asked, unmeasured
from dq.dataquality.clauses.metric_rule import columns_compared
from dq.dataquality.model import column
from dq.dataquality.model.metric import (
    SCHEMA,
    Aggregate,
    Answer,
    Answers,
    Failure,
    Kind,
    Merge,
    Metric,
    RepeatedKeys,
    merge_of,
    of_users,
)
from dq.dataquality.model.run_context import Earlier, EarlierMeasure, Partition
from dq.dataquality.request import Chosen, Request, choose, occasion_of, opened, others_of
from dq.dataquality.results import COUNTED
from dq.dataquality.spark import measure
from dq.dataquality.spark.columnar_files import MOST_FILES as MOST_FILES
from dq.dataquality.spark.columnar_files import NULL_PARTITION, columns_of, literal, named_folders, only
from dq.dataquality.spark.dataset import FILES, TEXTS, Dataset, files_of, gathered
from dq.dataquality.spark.schema import type_ddl, with_notes
from dq.dataquality.spark.session import attempt, time_limit
from dq.lake.storage import unescaped
from dq.lake.types import from_spark_json

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


# The partitions that a table has, oldest first, each as a path names it and as its rows hold it.

# More are no partitions but a column of its own value in nearly each row.
MOST = 100_000
# So many are asked of Spark in one list of values.
_AT_ONCE = 1_000


@dataclass(frozen=True, slots=True)
class FoundPartition:
    """A partition that is there.

    `key` has the values of its columns as Spark gives them, and is None where its text is no value of its
    column. `files` are those in its folder, None where a
    table's format keeps them to itself.
    """

    partition: Partition
    key: measure.Key | None
    files: tuple[str, ...] | None = None


def partitions(
    spark: SparkSession, table: DataFrame | Dataset, columns: Sequence[str]
) -> tuple[FoundPartition, ...]:
    """Every partition of the data, the oldest first, by its columns' values; NULL comes before all others.

    `columns` are those that the contract calls partition columns; without any, those of the names of folders,
    or of the catalog. Nothing but names is read where folders or the catalog tell; else one pass reads these
    columns. Raises UsageError, with the way out, for a table without partitions.
    """
    if isinstance(table, Dataset) and not table.placed:
        found = _of_folders(spark, table, columns) if table.format in FILES and table.path else None
        if found is not None:
            return found
        found = _of_catalog(spark, table, columns) if table.table else None
        if found is not None:
            return found
    if not columns:
        raise UsageError(
            "it has no partitions, so that there is no history to test rules on.",
            "'dq check --all' tests it as it stands; or mark its partition columns: partitioned: true.",
        )
    from dq.dataquality.request import opened

    return _of_rows(spark, opened(table, spark), columns)


def _of_folders(
    spark: SparkSession, dataset: Dataset, columns: Sequence[str]
) -> tuple[FoundPartition, ...] | None:
    """By the names of folders; None where they do not hold these columns."""
    files, fields = files_of(spark, dataset)
    types = {one.name.lower(): from_spark_json(one.dataType.jsonValue()) for one in fields}
    named = tuple(columns) or tuple(one.name for one in fields)
    if not named or any(name.lower() not in types for name in named):
        return None
    held: dict[Partition, list[str]] = {}
    for file in files:
        told = named_folders(file)
        if any(name.lower() not in told for name in named):
            return None
        held.setdefault(tuple((name, told[name.lower()]) for name in named), []).append(file)
    made = [FoundPartition(partition, None, tuple(files)) for partition, files in held.items()]
    return _in_order(_with_keys(spark, made, [types[name.lower()] for name in named]))


def _of_catalog(
    spark: SparkSession, dataset: Dataset, columns: Sequence[str]
) -> tuple[FoundPartition, ...] | None:
    """By the catalog's list; None where the catalog has none for such a table."""
    shown = attempt(lambda: spark.sql(f"SHOW PARTITIONS {dataset.table}").collect())
    if isinstance(shown, Failure) or not shown:
        return None
    schema = from_spark_json(spark.table(str(dataset.table)).schema.jsonValue())
    found: dict[Partition, None] = {}
    for (text,) in shown:
        pairs = [part.partition("=") for part in text.split("/")]
        told = {unescaped(name).lower(): (unescaped(name), unescaped(value)) for name, _, value in pairs}
        if any(name.lower() not in told for name in columns):
            return None
        named = columns or [name for name, _ in told.values()]
        found[tuple((name, told[name.lower()][1]) for name in named)] = None
    kinds = [column.field(schema, name) for name, _ in next(iter(found))]
    if any(kind is None for kind in kinds):
        return None
    return _in_order(_with_keys(spark, [FoundPartition(one, None) for one in found], kinds))  # type: ignore[arg-type]


def _of_rows(spark: SparkSession, frame: DataFrame, columns: Sequence[str]) -> tuple[FoundPartition, ...]:
    """By the different values of the columns in all rows."""
    schema = from_spark_json(frame.schema.jsonValue())
    kinds = []
    for name in columns:
        kind = column.field(schema, name)
        if kind is None:
            raise UsageError(
                f"its data has no column {name!r}, which the contract calls a partition column.",
                "Correct the contract, or deliver the column.",
            )
        kinds.append(kind)
    texts = [f"CAST({sql.name(name)} AS STRING)" for name in columns]
    rows = attempt(lambda: frame.selectExpr(*texts).distinct().limit(MOST + 1).collect())
    if isinstance(rows, Failure):
        raise UsageError(f"its partitions cannot be listed: {rows.message}.", "Check its partition columns.")
    if len(rows) > MOST:
        raise UsageError(
            f"{', '.join(columns)} has more than {MOST:,} different values, which are no partitions.",
            "Mark the columns that the table is partitioned by: partitioned: true.",
        )
    # Not the values of the rows: a check of a partition is told its text.
    named: dict[Partition, None] = {
        tuple(
            (name, NULL_PARTITION if text is None else str(text))
            for name, text in zip(columns, row, strict=True)
        ): None
        for row in rows
    }
    return _in_order(_with_keys(spark, [FoundPartition(one, None) for one in named], kinds))


def key_sql(value: str, kind: DataType) -> str:
    """What Spark gives for the value of a partition column, so that Python compares it as Spark does."""
    # Python would read an instant in the zone of its own machine.
    return f"unix_micros({value})" if kind.name == "timestamp" else value


def _with_keys(
    spark: SparkSession, found: Sequence[FoundPartition], kinds: Sequence[DataType]
) -> Iterable[FoundPartition]:
    """The partitions with the values that their texts stand for; of several with the same values, one."""
    asked: list[tuple[FoundPartition, str]] = []
    for one in found:
        texts = [_literal(text, kind) for (_, text), kind in zip(one.partition, kinds, strict=True)]
        if None in texts:
            yield one
        else:
            asked.append((one, f"({', '.join(str(text) for text in texts)})"))
    names = [f"_dq_p{at}" for at in range(len(kinds))]
    keys = [key_sql(name, kind) for name, kind in zip(names, kinds, strict=True)]
    same: dict[measure.Key, FoundPartition] = {}
    for begin in range(0, len(asked), _AT_ONCE):
        some = asked[begin : begin + _AT_ONCE]
        rows = [f"({at}, {text[1:]}" for at, (_, text) in enumerate(some)]
        table = f"VALUES {', '.join(rows)} AS t(_dq_at, {', '.join(names)})"
        # Texts of paths stand in it as literals of their columns' types.
        query = f"SELECT _dq_at, {', '.join(keys)} FROM {table}"  # noqa: S608
        for at, *key in spark.sql(query).collect():
            one = some[at][0]
            known = same.get(tuple(key))
            # Two folders may name one value, such as month=1 and month=01: Spark reads both for either.
            files = one.files if known is None else (*(known.files or ()), *(one.files or ()))
            same[tuple(key)] = replace(known or one, key=tuple(key), files=files)
    yield from same.values()


def _literal(text: str, kind: DataType) -> str | None:
    """A text of a path as a value of its column, None where it is none."""
    if text == NULL_PARTITION:
        return f"CAST(NULL AS {type_ddl(kind)})"
    try:
        made = literal(text, kind)
    except (ValueError, ArithmeticError):
        return None
    return None if made is None else f"CAST({made} AS {type_ddl(kind)})"


def _in_order(found: Iterable[FoundPartition]) -> tuple[FoundPartition, ...]:
    return tuple(sorted(found, key=lambda one: (one.key is not None, _sortable(one))))


def _sortable(one: FoundPartition) -> tuple[Any, ...]:
    if one.key is None:
        return tuple(text for _, text in one.partition)
    return tuple((value is not None, value if value is not None else 0) for value in one.key)


# Which partitions a check of one opens with the same columns: those that may be asked together.


def alike(data: DataFrame | Dataset, found: Sequence[FoundPartition]) -> list[Sequence[FoundPartition]]:
    """The partitions in groups, each of those whose columns are the same.

    A table's columns are those of all of its partitions. Of plain files each tells its own, and a partition
    whose files differ, or cannot be looked at, is in no group. Of CSV only the values tell (see `plain`), and
    of JSON each partition alone.
    """
    if not isinstance(data, Dataset) or data.table is not None or data.format not in FILES:
        return [found]
    if data.format in TEXTS:
        return [found] if data.format == "csv" else []
    groups: dict[object, list[FoundPartition]] = {}
    for one in found:
        told = _columns(one, data.format)
        if told is not None:
            groups.setdefault(told, []).append(one)
    return list(groups.values())


def _columns(one: FoundPartition, form: str) -> object:
    """The columns of a partition's files, None where they differ or are not known."""
    if one.files is None:
        return ()
    try:
        told = {(file.names, file.types) for file in columns_of(one.files, form)}
    except Unreadable:
        return None
    return told.pop() if len(told) == 1 else None


def plain(data: DataFrame | Dataset, table: DataFrame) -> bool:
    """Whether partitions that were opened together have the columns that each has when it is opened alone.

    A reader of CSV notes on a column that a value is none of its type, or that a file lacks it. Without any
    such note, no part of the data has one.
    """
    if not isinstance(data, Dataset) or data.table is not None or data.format not in TEXTS:
        return True
    return not any(each.metadata for each in table.schema.fields)


# What a back-test found: of each rule, in which partitions it would have failed.


@dataclass(frozen=True, slots=True)
class UnreadPartition:
    """A partition that could not be tested at all, and why: there every rule could not tell."""

    partition: Partition
    reason: str


@dataclass(frozen=True, slots=True)
class Untold:
    """A rule that history says nothing about, and why."""

    check: str
    clause: str
    property: str
    at: Location
    reason: str


@dataclass(frozen=True, slots=True)
class RuleHistory:
    """What one rule would have said of each partition, the oldest first. `name` is it by ids and names.

    In so many partitions it was tested by one pass over all, `together`; in the others one by one.
    """

    check: str
    clause: str
    name: str
    property: str
    severity: Severity
    allowed: str
    at: Location
    results: tuple[tuple[Partition, CheckResult], ...]
    together: int = 0

    def of(self, status: Status) -> list[tuple[Partition, CheckResult]]:
        """The partitions where it ended so."""
        return [(partition, result) for partition, result in self.results if result.status is status]

    @builtins.property
    def counts(self) -> dict[str, int]:
        """How many partitions ended how."""
        counted = Counter(result.status for _, result in self.results)
        return {status.value: counted[status] for status in Status}

    def as_dict(self) -> JsonObject:
        """As JSON values: all partitions that it would not have kept, with what was found there."""
        failed = self.of(Status.FAIL)
        return {
            "check": self.check,
            "clause": self.clause,
            "name": self.name,
            "property": self.property or None,
            "severity": self.severity.value,
            "threshold": self.allowed,
            "at": str(self.at),
            "total": len(self.results),
            "counts": self.counts,
            "together": self.together,
            "first": dict(failed[0][0]) if failed else None,
            "last": dict(failed[-1][0]) if failed else None,
            "failed": [_entry(*one) for one in failed],
            "untold": [_entry(*one) for one in self.of(Status.ERROR)],
            "skipped": [_entry(*one) for one in self.of(Status.SKIPPED)],
        }


def _entry(partition: Partition, result: CheckResult) -> JsonObject:
    return {
        "partition": dict(partition),
        "value": result.value,
        "observed": result.observed,
        "message": result.message,
    }


@dataclass(frozen=True, slots=True)
class Backtest:
    """What the rules of an object would have said of its partitions, the oldest first.

    `present` is how many partitions the table has, of which `partitions` are the last. `untold` are rules
    that were not tested, and `unread` are partitions that could not be.
    """

    contract: str
    version: str
    object: str
    partitions: tuple[Partition, ...]
    present: int
    rules: tuple[RuleHistory, ...]
    untold: tuple[Untold, ...]
    unread: tuple[UnreadPartition, ...]
    at: datetime | None = None

    def of(self, status: Status) -> tuple[RuleHistory, ...]:
        """The rules that ended so in some partition."""
        return tuple(rule for rule in self.rules if rule.of(status))

    @property
    def exit_code(self) -> int:
        """1 where a rule that is more than a warning would have failed, 3 where one could not tell, else 0.

        Failed goes before what could not be told. Rules that history says nothing about change nothing,
        unless they are all that was asked.
        """
        if _grave(self.of(Status.FAIL)):
            return 1
        if _grave(self.of(Status.ERROR)) or (self.untold and not self.rules):
            return Unreadable.exit_code
        return 0

    def as_dict(self) -> JsonObject:
        """As JSON values. No row of the data is in it."""
        return {
            "contract": self.contract,
            "version": self.version,
            "object": self.object,
            "at": self.at.isoformat() if self.at else None,
            "partitions": [dict(one) for one in self.partitions],
            "present": self.present,
            "rules": [rule.as_dict() for rule in self.rules],
            "not_tested": [
                {
                    "check": one.check,
                    "clause": one.clause,
                    "property": one.property or None,
                    "at": str(one.at),
                    "reason": one.reason,
                }
                for one in self.untold
            ],
            "unread": [{"partition": dict(one.partition), "reason": one.reason} for one in self.unread],
        }


def _grave(rules: Iterable[RuleHistory]) -> bool:
    return any(rule.severity.blocks for rule in rules)


# The back-test of one object: what its rules would have said of each partition that is there.

# Many partitions at once: each question is put to all of them, and answered for each.
#
# Partitions go together that a check of one would open with the same columns. What has no answer here is
# left
# to a check of the partition alone, so that nothing is told here that such a check would not tell.

# The filter of so many partitions is planned in no time.
MOST_AT_ONCE = 300
# Values of a column that are held at once, as `checks.quantile` says for one check.
MOST_RANKED = 200_000
# So many more failures than successes show that most partitions fail: each alone is cheaper then.
_PATIENCE = 8


Past = Sequence[Earlier | EarlierMeasure]


@dataclass(frozen=True, slots=True)
class ToldTogether:
    """What was told of a partition: answers by question, and the data that has its columns."""

    table: DataFrame
    answers: Answers


@dataclass(frozen=True, slots=True)
class _Tested:
    """The partitions of a table that are tested, of so many, and by what; and which groups of them could be
    asked together."""

    request: Request
    chosen: Chosen
    partitions: Sequence[FoundPartition]
    present: int
    outcomes: list[bool] = field(default_factory=list)

    def of(self, partition: FoundPartition, past: Past = ()) -> Request:
        """A check of this partition."""
        return replace(self.request, partitions=[dict(partition.partition)], history=tuple(past))

    def clauses(self, partition: FoundPartition, schema: DataType, past: Past = ()) -> tuple[Clause, ...]:
        """The clauses as a check of this partition has them."""
        asked = self.of(partition, past)
        return self.chosen.on(asked, schema, occasion_of(asked))

    @property
    def patient(self) -> bool:
        """Whether not most of the groups failed."""
        return len(self.outcomes) < _PATIENCE + 2 * sum(self.outcomes)


def together(tested: _Tested) -> dict[FoundPartition, ToldTogether]:
    """What can be told of the partitions at once; one of which nothing can is left out.

    A partition that fails is looked for by halves, and left out with what none can answer.
    """
    told: dict[FoundPartition, ToldTogether] = {}
    found = tested.partitions
    sound = [one for one in found if one.key is not None and one.key == tuple(map(_itself, one.key))]
    for group in alike(tested.request.data, sound):
        for some in _parts(group):
            told |= dict(_tell(tested, some))
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


def _tell(tested: _Tested, group: Sequence[FoundPartition]) -> Iterator[tuple[FoundPartition, ToldTogether]]:
    if len(group) < 2 or not tested.patient:
        return
    told = _told(tested, group)
    tested.outcomes.append(told is not None)
    if told is not None:
        yield from told.items()
        return
    middle = len(group) // 2
    yield from _tell(tested, group[:middle])
    yield from _tell(tested, group[middle:])


def _told(tested: _Tested, group: Sequence[FoundPartition]) -> dict[FoundPartition, ToldTogether] | None:
    """What is told of all of these partitions; None where one of them keeps the others from it."""
    request = tested.request
    scope = [dict(one.partition) for one in group]
    everything = len(group) == tested.present
    try:
        table = opened(request.data, request.spark, scope)
        # Without a filter, where it would choose everything, Spark plans faster.
        rows = table if everything else only(table, scope)
    except DqError:
        return None
    schema = measure.schema_of(table)
    by = _by(group, schema)
    if by is None or not plain(request.data, table):
        return None
    asked = {one: list(tested.clauses(one, schema)) for one in group}
    shelf = tested.chosen.kinds
    first = dict.fromkeys(metric for each in asked.values() for metric in metrics_of(each, shelf))
    metrics = [one for one in (*first, measure.COUNT) if measure.separable(one, schema)]
    known = _known(request, table, () if everything else scope, metrics, group)
    others = others_of(request, tested.chosen.one, lambda: table)
    partitions = _Rows(rows, by, others, request.limit_seconds)
    if not partitions.ask(metrics, known):
        return None
    second: dict[Metric, None] = {}
    for one, each in asked.items():
        for clause in each:
            if all(metric in known[one] for metric in metrics_of([clause], shelf)):
                second |= dict.fromkeys(then_asked(clause, known[one], shelf))
    ranked = sum(_integer(known[one].get(measure.COUNT)) for one in group) <= MOST_RANKED
    more = [
        one for one in second if measure.separable(one, schema) and (ranked or one.kind is not Kind.RANKED)
    ]
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
    made = shortcut(metrics, table, source, parts, request.options)
    nothing: dict[Metric, Answer] = {
        one: 0
        for one, answer in made.answers.items()
        if answer == 0 and (merge_of(one) is Merge.SUM or isinstance(one, RepeatedKeys))
    }
    schema = measure.schema_of(table)
    told = _by_files(made, group, provable(metrics, schema)) if Lever.STATISTICS in request.levers else {}
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
    others: measure.Others
    limit_seconds: float | None

    def ask(self, metrics: Iterable[Metric], known: dict[FoundPartition, dict[Metric, Answer]]) -> bool:
        """Puts the answers to these metrics into `known`; False where what is not a user's has none."""
        missing = [one for one in metrics if any(one not in answers for answers in known.values())]
        made = measure.plan(missing, measure.schema_of(self.frame))
        for metric, failure in made.failures:
            # Another way to ask it is the check's own.
            if getattr(metric, "instead", None) is None:
                for answers in known.values():
                    answers[metric] = failure
        return all(self._pass(one, known) for one in made.passes)

    def _pass(self, one: measure.Pass, known: dict[FoundPartition, dict[Metric, Answer]]) -> bool:
        theirs = tuple(metric for metric in one.metrics if of_users(metric))
        told = self._answers(one, known, self.limit_seconds if theirs else None)
        if isinstance(told, Failure) and theirs:
            ours = tuple(metric for metric in one.metrics if metric not in theirs)
            if not ours:
                return True
            one = measure.Pass(one.kind, ours)
            told = self._answers(one, known, None)
        if isinstance(told, Failure) or not told.keys() <= {each.key for each in known}:
            return False
        for each, answers in known.items():
            here = told.get(each.key or (), {})
            if not here and isinstance(one.metrics[0], Aggregate) and answers.get(measure.COUNT):
                # The data has changed since its rows were counted.
                return False
            answers |= {metric: here.get(metric, measure.of_no_rows(metric)) for metric in one.metrics}
        return True

    def _answers(
        self,
        one: measure.Pass,
        known: Mapping[FoundPartition, Mapping[Metric, Answer]],
        limit_seconds: float | None,
    ) -> Mapping[measure.Key, Mapping[Metric, Answer]] | Failure:
        counts = [answers.get(measure.COUNT) for answers in known.values()]
        total = sum(map(_integer, counts)) if None not in counts else None
        apart = isinstance(one.metrics[0], Aggregate) or one.kind is Kind.UNMATCHED
        frame = self.frame if apart else gathered(self.frame, total)
        with time_limit(frame.sparkSession, limit_seconds):
            return measure.by_partition(frame, self.by, one, self.others)


def _integer(value: object) -> int:
    return value if isinstance(value, int) else 0


# The back-test of one object: what its rules would have said of each partition that is there.
#
# All partitions are asked together, and one alone where that has no answer. Every verdict is that of a
# check of
# the partition alone.

LAST = 90
_TABLE = "it speaks of the whole table, not of one partition; 'dq check --all' tests it"


@dataclass(frozen=True, slots=True)
class RuleResult:
    """The result of a rule in a partition, and whether all partitions were asked together for it."""

    result: CheckResult
    together: bool


Outcome = dict[str, RuleResult] | DqError
"""What one partition came to: the result of each rule by its path, or why it could not be tested."""

SideBySide = Callable[[Callable[[FoundPartition], Outcome], Sequence[FoundPartition]], Iterable[Outcome]]


def backtest(request: Request, last: int = LAST, side_by_side: SideBySide = map) -> Backtest:
    """What every rule that is asked for would have said of each of the last partitions.

    Takes what `check` takes; `partitions` must not be given, and `history` is not looked at: rules that
    compare with earlier runs compare with the partitions before. All partitions are asked together; where
    that tells nothing, one is checked alone, and `side_by_side` says how many of these at once. Rules about
    the whole table are not tested, and said so. Raises UsageError for a table without partitions, a number
    below 1, an unknown object or rule, and Unreadable where the partitions cannot be listed.
    """
    if last < 1:
        raise UsageError(f"the last {last} partitions are none.", "Give a number from 1.")
    if request.partitions:
        raise UsageError("a back-test finds its partitions by itself.", "Give last=… instead.")
    contract, chosen = request.contract, choose(request)
    one = chosen.one
    found = partitions(request.session(), request.data, [prop.column for prop in one.partition_keys()])
    last_ones = found[-last:]
    # Those that a check of a partition tests there: so is a key that holds the partition's column.
    newest = tuple(each.partition for each in last_ones[-1:])
    told = [one for one in chosen.clauses if in_scope(one, newest).extent.rows is RowScope.PARTITION]
    asked = replace(
        request, object=one.name, rules=tuple(clause.path for clause in told), samples=False, memory=None
    )
    tested = _Tested(asked, choose(asked), last_ones, len(found)) if told else None
    outcomes = _outcomes(tested, side_by_side) if tested else []
    name = namer(one)
    return Backtest(
        contract=contract.id,
        version=contract.version,
        object=one.name,
        partitions=tuple(each.partition for each in last_ones),
        present=len(found),
        rules=tuple(_history(name(clause.path), clause, last_ones, outcomes) for clause in told),
        untold=tuple(
            Untold(clause.check, clause.path, clause.property, clause.at, _TABLE)
            for clause in chosen.clauses
            if clause not in told
        ),
        unread=tuple(
            UnreadPartition(each.partition, f"{outcome.message} {outcome.mend}".strip())
            for each, outcome in zip(last_ones, outcomes, strict=False)
            if isinstance(outcome, DqError)
        ),
        at=request.now,
    )


def _outcomes(tested: _Tested, side_by_side: SideBySide) -> list[Outcome]:
    """What was told of all partitions together, and by a check of each alone what was not."""
    chosen = tested.chosen
    told = together(tested)
    left = {
        one: tuple(
            clause.path
            for clause in chosen.clauses
            if one not in told or not _answers(clause, told[one].answers, chosen.kinds)
        )
        for one in tested.partitions
    }
    alone = [one for one in tested.partitions if left[one]]
    waits = {*columns_compared(chosen.one), *(one.path for one in chosen.clauses if one.check in COUNTED)}
    checked: dict[FoundPartition, Outcome] = {}
    if all(waits.isdisjoint(left[one]) for one in alone):
        found = side_by_side(lambda one: _alone(tested, one, left[one]), alone)
        checked = dict(zip(alone, found, strict=True))
    past: list[Earlier | EarlierMeasure] = []
    outcomes: list[Outcome] = []
    for one in tested.partitions:
        outcome = checked.get(one) or (_alone(tested, one, left[one], past) if left[one] else {})
        if not isinstance(outcome, DqError):
            judged = _judged(tested, one, told[one], set(left[one]), past) if one in told else {}
            outcome = judged | outcome
            results = (each.result for each in outcome.values())
            past += _measures(results, one.partition, tested.request.now or datetime.now(UTC))
        outcomes.append(outcome)
    return outcomes


def _answers(clause: Clause, answers: Answers, kinds: Shelf) -> bool:
    """Whether all that the clause asks is answered."""
    asked = asked_by(clause, kinds)
    return all(one in answers for one in asked) and all(
        one in answers for one in then_asked(clause, answers, kinds)
    )


def _judged(
    tested: _Tested, one: FoundPartition, told: ToldTogether, alone: Set[str], past: Past
) -> dict[str, RuleResult]:
    """The results of a partition's clauses by what was told of all partitions together."""
    kinds = tested.chosen.kinds
    clauses = tested.clauses(one, measure.schema_of(told.table), past)
    judged = {each.path: answered(each, told.answers, kinds) for each in clauses if each.path not in alone}
    noted = with_notes(judged, told.table, tested.chosen.one, partial(by_schema, clauses, kinds))
    return {path: RuleResult(result, together=True) for path, result in noted.items()}


def _alone(tested: _Tested, one: FoundPartition, paths: Sequence[str], past: Past = ()) -> Outcome:
    try:
        report = check(replace(tested.of(one, past), rules=tuple(paths)))
    except DqError as error:
        return error
    return {result.clause: RuleResult(result, together=False) for result in report.results}


def _measures(
    results: Iterable[CheckResult], partition: Partition, now: datetime
) -> Iterable[Earlier | EarlierMeasure]:
    """What the rules of later partitions compare with, as the store would keep it of a run of this one."""
    for one in results:
        if one.check in COUNTED and one.value is not None:
            yield Earlier(one.check, one.clause, now, int(one.value), partition)
        if not one.of:
            continue
        groups = tuple((each.key, each.value) for each in one.groups if each.value is not None)
        if one.by or one.value is not None:
            number = None if one.by else one.value
            yield EarlierMeasure(one.check, one.clause, one.of, now, number, groups, partition)


def _history(
    name: str, clause: Clause, tested: Sequence[FoundPartition], outcomes: Sequence[Outcome]
) -> RuleHistory:
    results, together = [], 0
    for one, outcome in zip(tested, outcomes, strict=True):
        if isinstance(outcome, DqError):
            result = unmeasured(clause, Failure("the partition could not be tested"))
        elif clause.path in outcome:
            result = outcome[clause.path].result
            together += outcome[clause.path].together
        else:
            result = unmeasured(clause, Failure("the check has no result of it"))
        results.append((one.partition, result))
    allowed = next(
        (result.allowed for _, result in results if result.status is not Status.ERROR), clause.allowed
    )
    return RuleHistory(
        check=clause.check,
        clause=clause.path,
        name=name,
        property=clause.property,
        severity=clause.severity,
        allowed=allowed,
        at=clause.at,
        results=tuple(results),
        together=together,
    )
