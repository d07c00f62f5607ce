"""A metric: a question to one object's rows whose answer is a number, as a value that can be compared."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, ClassVar

from dq.dataquality.model.answer import Answer as Answer
from dq.dataquality.model.answer import Failure as Failure
from dq.dataquality.model.answer import Number as Number
from dq.dataquality.model.answer import Value as Value
from dq.dataquality.model.answer import one_number as one_number
from dq.dataquality.model.column import Column
from dq.dataquality.model.how_asked import RANKS, Merge
from dq.dataquality.model.how_asked import Kind as Kind
from dq.dataquality.model.needs import Need as Need
from dq.dataquality.model.needs import joined, term_needs
from dq.dataquality.model.needs import needs as needs_of
from dq.dataquality.model.predicate import And, Exists, Matches, Not, Or, Predicate
from dq.dataquality.model.proof import Proof, of_count, of_extreme
from dq.dataquality.model.target import Target
from dq.dataquality.model.term import INTEGERS, TEXTS, Opaque, Path, Term

# A sum of floats depends on the order, and whether it is one shows only in the data.
_MERGES = {"count": Merge.SUM, "min": Merge.MIN, "max": Merge.MAX}


@dataclass(frozen=True, slots=True)
class Schema:
    """The columns and types."""

    kind: ClassVar[Kind] = Kind.SCHEMA


@dataclass(frozen=True, slots=True)
class Aggregate:
    """A function that leaves NULL out, by its name in SQL, of a value (None: each row), where that is true.

    `needs` are the columns that SQL of another package reads; what terms and predicates need is added, and
    what would prove the answer is told by these alone. `instead` is asked when this has no answer: the same
    question in another way, which makes no difference between metrics. `share` is that of the RANKS.
    """

    name: str
    value: Term | None = None
    where: Predicate | None = None
    needs: tuple[Need, ...] = ()
    instead: Metric | None = field(default=None, compare=False)
    share: Decimal | None = None
    kind: Kind = field(init=False, compare=False, repr=False)
    proof: Proof = field(init=False, compare=False, repr=False)
    proven_by: Column | None = field(init=False, compare=False, repr=False)
    _hash: int = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        needs = _needs(self.needs, self.value, self.where)
        walks = not all(need.column.single for need in needs) or any(
            isinstance(node, Opaque) and node.interpreted for node in (self.value, *_nodes(self.where))
        )
        kind = Kind.RANKED if self.name in RANKS else Kind.INTERPRETED if walks else Kind.ROWS
        proof, column = Proof.NONE, None
        if kind is Kind.ROWS and self.value is None and self.name == "count":
            proof, column = of_count(self.where)
        elif kind is Kind.ROWS and self.value is not None and not self.where and self.name in ("min", "max"):
            proof, column = of_extreme(self.value)
        # Metrics are keys of many tables, and a predicate may hold thousands of literals.
        number = hash((self.name, self.value, self.where, needs, self.share))
        told = {"needs": needs, "kind": kind, "proof": proof, "proven_by": column, "_hash": number}
        for name, value in told.items():
            object.__setattr__(self, name, value)

    def __hash__(self) -> int:
        return self._hash


@dataclass(frozen=True, slots=True)
class DistinctKeys:
    """How many different keys the rows have where that is true; `instead` as of `Aggregate`."""

    keys: tuple[Column, ...]
    where: Predicate | None = None
    instead: Metric | None = field(default=None, compare=False)
    kind: ClassVar[Kind] = Kind.DISTINCT


@dataclass(frozen=True, slots=True)
class RepeatedKeys:
    """How many rows stand beyond the first of their key where that is true."""

    keys: tuple[Column, ...]
    where: Predicate | None = None
    kind: ClassVar[Kind] = Kind.DUPLICATES


@dataclass(frozen=True, slots=True)
class SingleKeys:
    """How many keys only one of the rows has where that is true."""

    keys: tuple[Column, ...]
    where: Predicate | None = None
    kind: ClassVar[Kind] = Kind.SINGLE


@dataclass(frozen=True, slots=True)
class UnmatchedKeys:
    """How many rows have a key that the target does not have, where that is true."""

    keys: tuple[Column, ...]
    target: Target
    where: Predicate | None = None
    kind: ClassVar[Kind] = Kind.UNMATCHED


@dataclass(frozen=True, slots=True)
class Query:
    """The one number of a query on ROWS_VIEW (see `contracts.sql.text`), the rows where that is true.

    `columns` are those that it names, `fields` the names that it has behind a dot, in lower case.
    """

    sql: str
    columns: tuple[Column, ...]
    where: Predicate | None = None
    fields: tuple[str, ...] = ()
    kind: ClassVar[Kind] = Kind.SQL


@dataclass(frozen=True, slots=True)
class Call:
    """The number that a function of another package makes of the rows where that is true.

    It is known by its name and by what it is told.
    """

    name: str
    told: str
    number: Callable[[Any], object] = field(compare=False)
    where: Predicate | None = None
    kind: ClassVar[Kind] = Kind.PYTHON


@dataclass(frozen=True, slots=True)
class PerGroup:
    """A metric for each group of the rows where `within` is true; the group of NULL is one.

    Only these groups are there, whatever the metric's own condition is.
    """

    by: tuple[Column, ...]
    of: Aggregate | DistinctKeys | SingleKeys
    within: Predicate | None = None
    kind: ClassVar[Kind] = Kind.GROUPED

    @property
    def where(self) -> Predicate | None:
        """The rows that it speaks about."""
        return self.within


Keyed = DistinctKeys | RepeatedKeys | SingleKeys | UnmatchedKeys
"""Of the rows whose key has no NULL."""
OfRows = Aggregate | Keyed | PerGroup | Query | Call
"""What is asked of rows."""
Metric = Schema | OfRows
"""Equal metrics are asked once."""


# What may be the name of a group: as a text it is the same in every engine.
GROUP_TYPES = TEXTS | INTEGERS | {"boolean", "date", "decimal"}
_NAMES = re.compile(r"`(?:[^`]|``)+`(?:\.`(?:[^`]|``)+`)*")
_NAME = re.compile(r"`((?:[^`]|``)+)`")


def _named(text: str) -> Path | None:
    """The path of a text that `Column.sql` made: quoted names with dots between them, and nothing else."""
    if _NAMES.fullmatch(text) is None:
        return None
    return Path(tuple(name.replace("``", "`") for name in _NAME.findall(text)))


def _predicate(where: Predicate | str | None) -> Predicate | None:
    return (Opaque(where) if where else None) if isinstance(where, str) else where


@functools.lru_cache(4096)
def _needs(given: tuple[Need, ...], value: Term | None, where: Predicate | None) -> tuple[Need, ...]:
    of_value = () if value is None else term_needs(value)
    return joined((*given, *of_value, *(() if where is None else needs_of(where))))


def reads(metric: Metric) -> tuple[Need, ...]:
    """The columns that a metric reads, and what they must be for that."""
    match metric:
        case Schema():
            return ()
        case Aggregate():
            return metric.needs
        case PerGroup(by, of):
            names = tuple(Need(column, GROUP_TYPES) for column in by)
            return _needs((*names, *reads(of)), None, metric.within)
        case (
            Query(_, columns)
            | SingleKeys(columns)
            | DistinctKeys(columns)
            | RepeatedKeys(columns)
            | UnmatchedKeys(columns)
        ):
            return _needs(tuple(Need(column) for column in columns), None, metric.where)
        case Call():
            return _needs((), None, metric.where)


Answers = Mapping[Metric, Answer]
SCHEMA = Schema()


def count(where: Predicate | str | None = None, needs: tuple[Need, ...] = ()) -> Aggregate:
    """How many rows there are, or how many pass a predicate; `needs` are the columns of a text of SQL."""
    return aggregate("count", None, where, needs=needs)


def aggregate(
    name: str,
    value: Term | str | None,
    where: Predicate | str | None = None,
    *,
    needs: tuple[Need, ...] = (),
    instead: Metric | None = None,
) -> Aggregate:
    """An aggregate over the rows that pass; a text is Spark SQL, `needs` are the columns that it reads."""
    term = (_named(value) or Opaque(value)) if isinstance(value, str) else value
    return Aggregate(name, term, _predicate(where), needs, instead)


def of_users(metric: Metric) -> bool:
    """Whether its cost is whatever the contract's author has written: SQL, a pattern, a function."""
    if isinstance(metric, Schema):
        return False
    if isinstance(metric, PerGroup):
        return of_users(metric.of) or any(isinstance(node, Opaque) for node in _nodes(metric.within))
    value = metric.value if isinstance(metric, Aggregate) else None
    theirs = (isinstance(node, Opaque | Matches) for node in (value, *_nodes(metric.where)))
    return isinstance(metric, Query | Call) or any(theirs)


def _nodes(where: Predicate | None) -> Iterator[Predicate]:
    waiting = [] if where is None else [where]
    while waiting:
        node = waiting.pop()
        yield node
        if isinstance(node, And | Or):
            waiting += node.parts
        elif isinstance(node, Not):
            waiting.append(node.part)
        elif isinstance(node, Exists):
            waiting.append(node.holds)


def duplicates(keys: tuple[Column, ...], where: Predicate | str | None = None) -> RepeatedKeys:
    """How many rows stand beyond the first of their key."""
    return RepeatedKeys(keys, _predicate(where))


def distinct(
    keys: tuple[Column, ...], where: Predicate | str | None = None, instead: Metric | None = None
) -> DistinctKeys:
    """How many different keys there are."""
    return DistinctKeys(keys, _predicate(where), instead)


def merge_of(metric: Metric) -> Merge:
    """How the answers of a metric merge."""
    if isinstance(metric, Aggregate):
        return _MERGES.get(metric.name, Merge.NONE)
    return Merge.SUM if isinstance(metric, UnmatchedKeys) else Merge.NONE


def merged(metric: Metric, one: Answer, other: Answer) -> Answer:
    """The answer for the rows of both. A Failure stays one; a metric that does not merge gives a Failure."""
    for answer in (one, other):
        if isinstance(answer, Failure):
            return answer
    merge = merge_of(metric)
    if merge is Merge.NONE:
        return one if one == other else Failure("answers of this metric do not merge")
    if one is None or other is None:
        return other if one is None else one
    if merge is Merge.SUM:
        return one + other  # type: ignore[operator]  # SUM stands for numbers only
    return (min if merge is Merge.MIN else max)(one, other)  # type: ignore[type-var]
