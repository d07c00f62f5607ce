"""Metrics on an object's rows, their answers, and the statistics that answer them without reading rows."""

from __future__ import annotations

import datetime as dt
import functools
import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from enum import Enum, StrEnum, auto
from fractions import Fraction
from typing import Any, ClassVar

from dq.contracts.agreement import Agreement, SumAgreement
from dq.contracts.types import DataType
from dq.dataquality.model import predicate
from dq.dataquality.model import predicate as p
from dq.dataquality.model import predicate as t
from dq.dataquality.model.column import Column, Target, merge_needs, term_needs
from dq.dataquality.model.column import Need as Need
from dq.dataquality.model.column import needs as needs_of

# Answers to metrics, and failures.


@dataclass(frozen=True, slots=True)
class Failure:
    """The reason why a metric has no answer, in one line. `late`: it timed out, and a retry would too."""

    message: str
    late: bool = False


Number = int | float | Decimal
Group = tuple[str | None, ...]
"""The values of the grouping columns; None is NULL."""
Groups = Mapping[Group, Number | None]


@dataclass(frozen=True, slots=True)
class RowDifferences:
    """Numbers of rows that differ from another side, by kind; see `reconcile.outcome.Kind`.

    `columns` are the columns of changed rows, the most frequent first, and `uncompared` those that were not
    compared, with the reason.
    """

    missing: int
    extra: int
    changed: int
    repeated: int
    columns: tuple[str, ...] = ()
    uncompared: tuple[str, ...] = ()

    @property
    def total(self) -> int:
        """Number of all rows that differ."""
        return self.missing + self.extra + self.changed + self.repeated


@dataclass(frozen=True, slots=True)
class NumberPair:
    """A number of the object and that of another side.

    `tolerance` is the largest difference of equal numbers.
    """

    number: Fraction
    other: Fraction
    tolerance: Fraction = Fraction(0)


@dataclass(frozen=True, slots=True)
class GroupPairs:
    """The number of rows of a group of both sides, and then their sums, or the reason why there is none."""

    group: Group
    numbers: tuple[NumberPair | Failure, ...]


@dataclass(frozen=True, slots=True)
class SumPairs:
    """Numbers of an object and of another side, by group; without grouping, of one group without values.

    `hidden_reasons` are, for each number of a group, the reason why it may not be shown, or "".
    """

    groups: tuple[GroupPairs, ...]
    hidden_reasons: tuple[str, ...]


# SCHEMA returns a struct type; a minimum or maximum of no rows is None. The text of ComparedRows and
# ComparedSums is the reason why there is nothing to compare.
Value = Number | str | dt.date | DataType | Groups | RowDifferences | SumPairs | None
Answer = Value | Failure


def require_number(value: object, source: str = "the query") -> Number | Failure:
    """Return the result of a query or function if it is a finite number, else a Failure."""
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        actual = "NULL" if value is None else f"a {type(value).__name__}"
        return Failure(f"{source} gives {actual}; one number is needed")
    return value if math.isfinite(value) else Failure(f"{source} gives {value}, which is not a number")


# Execution of metrics, and merging of their answers.


class MetricExecution(StrEnum):
    """Execution kind of a metric; it decides which pass the metric can share."""

    SCHEMA = "schema"  # the columns and types, known without reading
    FILES = "files"  # the sizes of the files, known from their listing
    ROWS = "rows"  # an aggregate that Spark compiles together with others
    INTERPRETED = "interpreted"  # an aggregate with a lambda, which would keep all others from being compiled
    DISTINCT = "distinct"  # exact count of distinct keys
    DUPLICATES = "duplicates"  # rows beyond the first of each key
    SQL = "sql"  # a whole query that went through the guard
    SINGLE = "single"  # how many keys stand once
    RANKED = "ranked"  # an aggregate that holds many values, which would keep all others from being compiled
    GROUPED = "grouped"  # any of them, for each group of rows
    UNMATCHED = "unmatched"  # rows whose key another object does not have
    PYTHON = "python"  # a function of another package, which gets the rows
    METADATA = "metadata"  # the table's log or listing, without reading rows
    COMPARED = "compared"  # rows that differ from those of another side
    COMPARED_SUMS = "compared_sums"  # numbers of rows and sums of an object and of another side


class MergeRule(StrEnum):
    """Rule that combines the answers for two disjoint sets of rows."""

    SUM = "sum"
    MIN = "min"
    MAX = "max"
    NONE = "none"


# Quantiles: the value at the rank below the given share, at the rank above it, and an approximation at most
# 1 / RANK_ACCURACY of the rows away.
RANKS = ("rank_below", "rank_above", "rank_near")
RANK_ACCURACY = 10_000


# TABLE: the column statistics that answer a count or an extreme without reading rows.
#
# A mistake here would hide violations. Nodes that are not known to be monotonic, or to depend on the value
# alone, therefore have no proof; neither has a user's SQL.


class Proof(StrEnum):
    """Column statistics that a metric needs to be answered without a scan.

    NULLS: the metric counts the rows where the column is NULL. VALUES: it counts rows by the column's value
        alone,
    and never NULL. INTERVAL: in addition, the values it does not count form an interval. EXTREME: it is the
    minimum or maximum of an expression that increases with the column's value.
    """

    NONE = "none"
    NULLS = "nulls"
    VALUES = "values"
    INTERVAL = "interval"
    EXTREME = "extreme"


def count_proof(where: p.Predicate | None) -> tuple[Proof, Column | None]:
    """Return the proof of a count of the rows where the predicate is true, and its column."""
    if isinstance(where, p.Missing | p.IsNull) and isinstance(where.value, t.Path) and where.value.steps:
        return Proof.NULLS, Column(where.value.steps)
    columns = set[t.Path]()
    if (
        where is None
        or not _depends_on_value(where, columns)
        or len(columns) != 1
        or _truth_of_null(where) is True
    ):
        return Proof.NONE, None
    (path,) = columns
    plain = _shape(where) is not _Shape.UNKNOWN
    return (Proof.INTERVAL if plain else Proof.VALUES), Column(path.steps)


def extreme_proof(value: t.Term) -> tuple[Proof, Column | None]:
    """Return the proof of a minimum or maximum over all rows, and its column."""
    if isinstance(value, t.Since1970):
        return Proof.EXTREME, Column(value.value.steps)
    return Proof.NONE, None


def _depends_on_value(node: p.Predicate, columns: set[t.Path]) -> bool:
    """Return whether the predicate depends on column values alone; add the columns to `columns`.

    False for nested columns, which have no statistics.
    """
    match node:
        case p.Not(part):
            return _depends_on_value(part, columns)
        case p.And(parts) | p.Or(parts):
            return all(_depends_on_value(part, columns) for part in parts)
        case p.Compare(value, _, other):
            return not isinstance(other, t.Term) and _add_column(value, columns)
        case p.In(value, _) | p.IsNull(value) | p.Matches(value, _):
            return _add_column(value, columns)
        case p.Missing(value) | p.IsNaN(value) | p.HasDay(value, _) | p.MultipleOf(value, _):
            return _add_column(value, columns)
        case _:
            return False


def _add_column(term: t.Term, columns: set[t.Path]) -> bool:
    match term:
        case t.Path(steps, _):
            columns.add(t.Path(steps))
            return len(steps) == 1
        case t.Length(value) | t.Remainder(value, _):
            return _add_column(value, columns)
        case _:
            return False


def _truth_of_null(node: p.Predicate) -> bool | None:
    """Return the truth of the predicate for NULL, for nodes supported by `_depends_on_value`."""
    match node:
        case p.Not(part):
            inner = _truth_of_null(part)
            return None if inner is None else not inner
        case p.And(parts):
            truths = {_truth_of_null(part) for part in parts}
            return False if False in truths else None if None in truths else True
        case p.Or(parts):
            truths = {_truth_of_null(part) for part in parts}
            return True if True in truths else None if None in truths else False
        case p.IsNull() | p.Missing():
            return True
        case p.IsNaN() | p.HasDay():
            return False
        case _:
            return None


class _Shape(Enum):
    """The values for which a predicate is true: none, all, those below a point, those above one, or both."""

    NONE = auto()
    ALL = auto()
    BELOW = auto()
    ABOVE = auto()
    BOTH = auto()
    UNKNOWN = auto()


_COMPARED = {
    "<": _Shape.BELOW,
    "<=": _Shape.BELOW,
    ">": _Shape.ABOVE,
    ">=": _Shape.ABOVE,
    "<>": _Shape.BOTH,
}
# Not texts, whose order depends on the column's collation.
_ORDERED = ("integer", "decimal", "double", "date", "timestamp", "timestamp_ntz")
_OPPOSITE = {
    _Shape.NONE: _Shape.ALL,
    _Shape.ALL: _Shape.NONE,
    _Shape.BELOW: _Shape.ABOVE,
    _Shape.ABOVE: _Shape.BELOW,
}
_ENDS = frozenset({_Shape.BELOW, _Shape.ABOVE, _Shape.BOTH})


def _shape(node: p.Predicate) -> _Shape:
    """Return the shape of the non-NULL values for which the predicate is true. NaN is greatest, as in
    Spark.
    """
    match node:
        case p.Not(part):
            return _OPPOSITE.get(_shape(part), _Shape.UNKNOWN)
        case p.Or(parts):
            return _union({_shape(part) for part in parts})
        case p.And(parts):
            # By De Morgan, since BELOW and ABOVE may intersect in an interval.
            opposites = {_OPPOSITE.get(_shape(part), _Shape.UNKNOWN) for part in parts}
            return _OPPOSITE.get(_union(opposites), _Shape.UNKNOWN)
        case p.IsNull() | p.Missing():
            return _Shape.NONE
        case p.IsNaN():
            return _Shape.ABOVE
        case p.Compare(t.Path(), operator) if node.kind in _ORDERED:
            return _COMPARED.get(operator, _Shape.UNKNOWN)
        case _:
            return _Shape.UNKNOWN


def _union(shapes: set[_Shape]) -> _Shape:
    """Return the shape of the union."""
    if _Shape.UNKNOWN in shapes or _Shape.ALL in shapes:
        return _Shape.ALL if _Shape.ALL in shapes else _Shape.UNKNOWN
    ends = shapes & _ENDS
    if len(ends) < 2:
        return next(iter(ends), _Shape.NONE)
    return _Shape.BOTH


# A metric is a hashable question on one object's rows whose answer is a number.

# Sums are not merged: float sums depend on the order, and only the data shows whether a sum is one of floats.
_MERGES = {"count": MergeRule.SUM, "min": MergeRule.MIN, "max": MergeRule.MAX}


@dataclass(frozen=True, slots=True)
class Schema:
    """The metric whose answer is the table's columns and types."""

    kind: ClassVar[MetricExecution] = MetricExecution.SCHEMA


@dataclass(frozen=True, slots=True)
class FileBytes:
    """The metric whose answer is the size of the files in bytes, or None if it is unknown."""

    kind: ClassVar[MetricExecution] = MetricExecution.FILES


@dataclass(frozen=True, slots=True)
class Aggregate:
    """A SQL aggregate, which ignores NULL, of a value (None: each row) over the rows where `where` is true.

    `needs` are the columns that SQL of another package reads; the requirements of terms and predicates are
    added, and only these determine the proof. `instead` is an equivalent metric for the case that this one
    has no answer; it is ignored by equality. `share` is the quantile's share for RANKS.
    """

    name: str
    value: predicate.Term | None = None
    where: predicate.Predicate | None = None
    needs: tuple[Need, ...] = ()
    instead: Metric | None = field(default=None, compare=False)
    share: Decimal | None = None
    kind: MetricExecution = field(init=False, compare=False, repr=False)
    proof: Proof = field(init=False, compare=False, repr=False)
    proven_by: Column | None = field(init=False, compare=False, repr=False)
    _hash: int = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        needs = _needs(self.needs, self.value, self.where)
        walks = not all(need.column.single for need in needs) or any(
            isinstance(node, predicate.Opaque) and node.interpreted
            for node in (self.value, *_nodes(self.where))
        )
        kind = (
            MetricExecution.RANKED
            if self.name in RANKS
            else MetricExecution.INTERPRETED
            if walks
            else MetricExecution.ROWS
        )
        proof, column = Proof.NONE, None
        if kind is MetricExecution.ROWS and self.value is None and self.name == "count":
            proof, column = count_proof(self.where)
        elif (
            kind is MetricExecution.ROWS
            and self.value is not None
            and not self.where
            and self.name in ("min", "max")
        ):
            proof, column = extreme_proof(self.value)
        # The hash is cached: metrics are dictionary keys, and a predicate may have thousands of literals.
        number = hash((self.name, self.value, self.where, needs, self.share))
        attributes = {"needs": needs, "kind": kind, "proof": proof, "proven_by": column, "_hash": number}
        for name, value in attributes.items():
            object.__setattr__(self, name, value)

    def __hash__(self) -> int:
        return self._hash


@dataclass(frozen=True, slots=True)
class DistinctKeys:
    """The number of distinct keys of the rows where `where` is true; `instead` as in `Aggregate`."""

    keys: tuple[Column, ...]
    where: predicate.Predicate | None = None
    instead: Metric | None = field(default=None, compare=False)
    kind: ClassVar[MetricExecution] = MetricExecution.DISTINCT


@dataclass(frozen=True, slots=True)
class RepeatedKeys:
    """The number of rows beyond the first of each key, among the rows where `where` is true."""

    keys: tuple[Column, ...]
    where: predicate.Predicate | None = None
    kind: ClassVar[MetricExecution] = MetricExecution.DUPLICATES


@dataclass(frozen=True, slots=True)
class SingleKeys:
    """The number of keys that occur once among the rows where `where` is true."""

    keys: tuple[Column, ...]
    where: predicate.Predicate | None = None
    kind: ClassVar[MetricExecution] = MetricExecution.SINGLE


@dataclass(frozen=True, slots=True)
class UnmatchedKeys:
    """The number of rows whose key is not among the target's keys, among the rows where `where` is true."""

    keys: tuple[Column, ...]
    target: Target
    where: predicate.Predicate | None = None
    kind: ClassVar[MetricExecution] = MetricExecution.UNMATCHED


@dataclass(frozen=True, slots=True)
class Query:
    """The number that a query returns on ROWS_VIEW (see `contracts.sql.text`), the rows where `where` is
    true.

    `columns` are the columns it names, `fields` the names after a dot, in lower case.
    """

    sql: str
    columns: tuple[Column, ...]
    where: predicate.Predicate | None = None
    fields: tuple[str, ...] = ()
    kind: ClassVar[MetricExecution] = MetricExecution.SQL


@dataclass(frozen=True, slots=True)
class Call:
    """The number that a function of another package computes from the rows where `where` is true.

    Identified by its name and arguments.
    """

    name: str
    arguments: str
    number: Callable[[Any], object] = field(compare=False)
    where: predicate.Predicate | None = None
    kind: ClassVar[MetricExecution] = MetricExecution.PYTHON


@dataclass(frozen=True, slots=True)
class PerGroup:
    """A metric for each group of the rows where `within` is true; NULL is a group too.

    These rows determine the groups, regardless of the metric's own condition.
    """

    by: tuple[Column, ...]
    of: Aggregate | DistinctKeys | SingleKeys
    within: predicate.Predicate | None = None
    kind: ClassVar[MetricExecution] = MetricExecution.GROUPED

    @property
    def where(self) -> predicate.Predicate | None:
        """The condition of the rows that form the groups."""
        return self.within


@dataclass(frozen=True, slots=True)
class ComparedRows:
    """The rows that differ from those of another side."""

    agreement: Agreement
    where: ClassVar[None] = None
    kind: ClassVar[MetricExecution] = MetricExecution.COMPARED


@dataclass(frozen=True, slots=True)
class ComparedSums:
    """Numbers of rows and sums where `where` is true, and those of another side."""

    agreement: SumAgreement
    where: predicate.Predicate | None = None
    kind: ClassVar[MetricExecution] = MetricExecution.COMPARED_SUMS


class TableAge(StrEnum):
    """Times of a table's history: the oldest snapshot besides the current one, the oldest snapshot if
    earlier ones were removed, and the oldest file.
    """

    SNAPSHOT = "oldest snapshot"
    HISTORY = "begin of the history"
    FILE = "oldest file"


@dataclass(frozen=True, slots=True)
class OldestInstant:
    """An instant of a table's history in microseconds since 1970, or None if there is none."""

    of: TableAge
    where: ClassVar[None] = None
    kind: ClassVar[MetricExecution] = MetricExecution.METADATA


KeyMetric = DistinctKeys | RepeatedKeys | SingleKeys | UnmatchedKeys
"""Metrics on the rows whose key has no NULL."""
RowMetric = Aggregate | KeyMetric | PerGroup | Query | Call | OldestInstant | ComparedRows | ComparedSums
"""Metrics that read rows."""
Metric = Schema | FileBytes | RowMetric
"""Equal metrics are computed once."""


# Types allowed for grouping columns: their text is the same in every engine.
GROUP_TYPES = predicate.TEXTS | predicate.INTEGERS | {"boolean", "date", "decimal"}
_NAMES = re.compile(r"`(?:[^`]|``)+`(?:\.`(?:[^`]|``)+`)*")
_NAME = re.compile(r"`((?:[^`]|``)+)`")


def _parse_path(text: str) -> predicate.Path | None:
    """Parse the output of `Column.sql`, i.e. quoted names separated by dots. None if the SQL is anything
    else.
    """
    if _NAMES.fullmatch(text) is None:
        return None
    return predicate.Path(tuple(name.replace("``", "`") for name in _NAME.findall(text)))


def _predicate(where: predicate.Predicate | str | None) -> predicate.Predicate | None:
    return (predicate.Opaque(where) if where else None) if isinstance(where, str) else where


@functools.lru_cache(4096)
def _needs(
    explicit: tuple[Need, ...], value: predicate.Term | None, where: predicate.Predicate | None
) -> tuple[Need, ...]:
    value_needs = () if value is None else term_needs(value)
    return merge_needs((*explicit, *value_needs, *(() if where is None else needs_of(where))))


def reads(metric: Metric) -> tuple[Need, ...]:
    """Return the columns that a metric reads, with their required types."""
    match metric:
        case Schema() | FileBytes() | OldestInstant() | ComparedRows():
            return ()
        case Aggregate():
            return metric.needs
        case PerGroup(by, inner):
            names = tuple(Need(column, GROUP_TYPES) for column in by)
            return _needs((*names, *reads(inner)), None, metric.within)
        case (
            Query(_, columns)
            | SingleKeys(columns)
            | DistinctKeys(columns)
            | RepeatedKeys(columns)
            | UnmatchedKeys(columns)
        ):
            return _needs(tuple(Need(column) for column in columns), None, metric.where)
        case Call() | ComparedSums():
            return _needs((), None, metric.where)


Answers = Mapping[Metric, Answer]
SCHEMA = Schema()
FILE_BYTES = FileBytes()


def count(where: predicate.Predicate | str | None = None, needs: tuple[Need, ...] = ()) -> Aggregate:
    """Return the metric for the number of rows that satisfy a predicate; `needs` are the columns of SQL
    text.
    """
    return aggregate("count", None, where, needs=needs)


def aggregate(
    name: str,
    value: predicate.Term | str | None,
    where: predicate.Predicate | str | None = None,
    *,
    needs: tuple[Need, ...] = (),
    instead: Metric | None = None,
) -> Aggregate:
    """Return an aggregate over the rows that satisfy `where`.

    Texts are Spark SQL; `needs` are the columns that they read.
    """
    term = (_parse_path(value) or predicate.Opaque(value)) if isinstance(value, str) else value
    return Aggregate(name, term, _predicate(where), needs, instead)


def is_user_defined(metric: Metric) -> bool:
    """Return whether the metric runs code of the contract's author (SQL, a pattern, a function) at unknown
    cost.
    """
    if isinstance(metric, Schema | FileBytes):
        return False
    if isinstance(metric, PerGroup):
        return is_user_defined(metric.of) or any(
            isinstance(node, predicate.Opaque) for node in _nodes(metric.within)
        )
    value = metric.value if isinstance(metric, Aggregate) else None
    user_nodes = (
        isinstance(node, predicate.Opaque | predicate.Matches) for node in (value, *_nodes(metric.where))
    )
    return isinstance(metric, Query | Call) or any(user_nodes)


def _nodes(where: predicate.Predicate | None) -> Iterator[predicate.Predicate]:
    waiting = [] if where is None else [where]
    while waiting:
        node = waiting.pop()
        yield node
        if isinstance(node, predicate.And | predicate.Or):
            waiting += node.parts
        elif isinstance(node, predicate.Not):
            waiting.append(node.part)
        elif isinstance(node, predicate.Exists):
            waiting.append(node.holds)


def duplicates(keys: tuple[Column, ...], where: predicate.Predicate | str | None = None) -> RepeatedKeys:
    """Return the metric for the number of rows beyond the first of each key."""
    return RepeatedKeys(keys, _predicate(where))


def distinct(
    keys: tuple[Column, ...], where: predicate.Predicate | str | None = None, instead: Metric | None = None
) -> DistinctKeys:
    """Return the metric for the number of distinct keys."""
    return DistinctKeys(keys, _predicate(where), instead)


def merge_rule(metric: Metric) -> MergeRule:
    """Return the rule that merges the answers of a metric."""
    if isinstance(metric, Aggregate):
        return _MERGES.get(metric.name, MergeRule.NONE)
    return MergeRule.SUM if isinstance(metric, UnmatchedKeys) else MergeRule.NONE


def merge_answers(metric: Metric, left: Answer, right: Answer) -> Answer:
    """Merge the answers for two sets of rows. A Failure stays one; a metric that cannot be merged gives a
    Failure.
    """
    for answer in (left, right):
        if isinstance(answer, Failure):
            return answer
    merge = merge_rule(metric)
    if merge is MergeRule.NONE:
        return left if left == right else Failure("answers of this metric do not merge")
    if left is None or right is None:
        return right if left is None else left
    if merge is MergeRule.SUM:
        return left + right  # type: ignore[operator]  # SUM stands for numbers only
    return (min if merge is MergeRule.MIN else max)(left, right)  # type: ignore[type-var]


# Results of verifying statistics against the rows.


@dataclass(frozen=True, slots=True)
class Tally:
    """Number of answers proven by statistics, of those recounted by a scan, and of wrong ones."""

    proofs: int = 0
    scans: int = 0
    disagreements: int = 0


@dataclass(frozen=True, slots=True)
class SuspectFile:
    """A file whose statistics contradict its rows, and the writer of the statistics ("": unknown)."""

    path: str
    writer: str

    def __str__(self) -> str:
        return f"{self.path} ({self.writer or 'unknown writer'})"


@dataclass(frozen=True, slots=True)
class Disagreement:
    """An answer from statistics that the rows contradict.

    `clauses` are the paths of the affected clauses. `proven` and `recounted` are texts without values of the
    data. `files` are at most twenty of the suspect files, `suspects` is the number of all of them; empty if
    no file could be singled out. `from_cache`: the answer came from the partition cache instead of
    statistics.
    """

    clauses: tuple[str, ...]
    proven: str
    recounted: str
    files: tuple[SuspectFile, ...]
    suspects: int
    from_cache: bool = False

    @property
    def message(self) -> str:
        """The problem, its location, and a hint."""
        if self.from_cache:
            return (
                f"its partition cache is wrong: it gives {self.proven}, the rows give "
                f"{self.recounted}. The cache is"
                " cleared, and the next check counts all folders again. A file may have changed and kept its"
                " name, size and time: ask the team that writes the table"
            )
        file_list = "; ".join(str(file) for file in self.files[:3]) or "no single file"
        remaining_text = f"; {self.suspects - 3} more" if self.suspects > 3 else ""
        return (
            f"its statistics are wrong: they give {self.proven}, the rows give {self.recounted}."
            f" Files and writers: {file_list}{remaining_text}. No statistics were used in this run."
            " Rewrite these files with another version of the writer, or check with --scan"
        )


@dataclass(frozen=True, slots=True)
class Verification:
    """The recount of a share of the answers that statistics proved in one run.

    `ever` is the total of all runs in the store, including this one; None without a store.
    """

    share: float
    tally: Tally
    disagreements: tuple[Disagreement, ...] = ()
    ever: Tally | None = None
