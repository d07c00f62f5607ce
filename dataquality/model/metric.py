"""Metrics of an object's rows, their answers, and what answers them without reading a row."""

from __future__ import annotations

import datetime as dt
import functools
import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from enum import Enum, StrEnum, auto
from typing import Any, ClassVar

from dq.contracts.types import DataType
from dq.dataquality.model import predicate
from dq.dataquality.model import predicate as p
from dq.dataquality.model import predicate as t
from dq.dataquality.model.column import Column, Target, joined, term_needs
from dq.dataquality.model.column import Need as Need
from dq.dataquality.model.column import needs as needs_of

# An answer to a metric, or why there is none.


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a metric has no answer, in one line. `late`: it took too long, and so would another way."""

    message: str
    late: bool = False


Number = int | float | Decimal
Group = tuple[str | None, ...]
"""The values of the columns that make a group; None is NULL."""
Groups = Mapping[Group, Number | None]
# SCHEMA gives a struct type; a minimum or maximum of no rows gives None.
Value = Number | str | dt.date | DataType | Groups | None
Answer = Value | Failure


def one_number(value: object, giver: str = "the query") -> Number | Failure:
    """What a query or a function gave, when it is a number that can be compared."""
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        shown = "NULL" if value is None else f"a {type(value).__name__}"
        return Failure(f"{giver} gives {shown}; one number is needed")
    return value if math.isfinite(value) else Failure(f"{giver} gives {value}, which is no number")


# How metrics are asked, and how their answers merge.


class Kind(StrEnum):
    """How a metric is asked, which decides the pass that it can share."""

    SCHEMA = "schema"  # the columns and types, known without reading
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


class Merge(StrEnum):
    """How the answers for two disjoint sets of rows become the answer for both."""

    SUM = "sum"
    MIN = "min"
    MAX = "max"
    NONE = "none"


# Aggregates whose number stands at a share of the way through the sorted values: at the place below it, at
# the place above it, and near it, at most 1 / RANK_ACCURACY of the rows away.
RANKS = ("rank_below", "rank_above", "rank_near")
RANK_ACCURACY = 10_000


# TABLE: what must be known of one column to answer a count, or an extreme, without reading a row.
#
# A wrong word here is a promise that looks kept. So a node that is not known to rise, or to depend on the
# value
# alone, gives no proof, and neither does a user's own SQL.


class Proof(StrEnum):
    """What has to be known of the one column that a metric needs to answer it without a scan.

    NULLS: it counts the rows where the column is NULL. VALUES: it counts rows by the column's value alone,
    and never one with NULL. INTERVAL: besides, the values that it does not count have no gap between them.
    EXTREME: it is the least or greatest of an expression that rises with the column's value.
    """

    NONE = "none"
    NULLS = "nulls"
    VALUES = "values"
    INTERVAL = "interval"
    EXTREME = "extreme"


def of_count(where: p.Predicate | None) -> tuple[Proof, Column | None]:
    """The proof of a count of the rows where this is true, and the column that it is about."""
    if isinstance(where, p.Missing | p.IsNull) and isinstance(where.value, t.Path) and where.value.steps:
        return Proof.NULLS, Column(where.value.steps)
    columns = set[t.Path]()
    if where is None or not _by_value(where, columns) or len(columns) != 1 or _of_null(where) is True:
        return Proof.NONE, None
    (path,) = columns
    plain = _shape(where) is not _Shape.UNKNOWN
    return (Proof.INTERVAL if plain else Proof.VALUES), Column(path.steps)


def of_extreme(value: t.Term) -> tuple[Proof, Column | None]:
    """The proof of a least or greatest value over all rows, and the column that it is about."""
    if isinstance(value, t.Since1970):
        return Proof.EXTREME, Column(value.value.steps)
    return Proof.NONE, None


def _by_value(node: p.Predicate, columns: set[t.Path]) -> bool:
    """Whether it depends on the values of columns alone, which are added; nested ones have no statistics."""
    match node:
        case p.Not(part):
            return _by_value(part, columns)
        case p.And(parts) | p.Or(parts):
            return all(_by_value(part, columns) for part in parts)
        case p.Compare(value, _, other):
            return not isinstance(other, t.Term) and _column(value, columns)
        case p.In(value, _) | p.IsNull(value) | p.Matches(value, _):
            return _column(value, columns)
        case p.Missing(value) | p.IsNaN(value) | p.HasDay(value, _) | p.MultipleOf(value, _):
            return _column(value, columns)
        case _:
            return False


def _column(term: t.Term, columns: set[t.Path]) -> bool:
    match term:
        case t.Path(steps, _):
            columns.add(t.Path(steps))
            return len(steps) == 1
        case t.Length(value) | t.Remainder(value, _):
            return _column(value, columns)
        case _:
            return False


def _of_null(node: p.Predicate) -> bool | None:
    """What it is of NULL, for what `_by_value` knows."""
    match node:
        case p.Not(part):
            inner = _of_null(part)
            return None if inner is None else not inner
        case p.And(parts):
            found = {_of_null(part) for part in parts}
            return False if False in found else None if None in found else True
        case p.Or(parts):
            found = {_of_null(part) for part in parts}
            return True if True in found else None if None in found else False
        case p.IsNull() | p.Missing():
            return True
        case p.IsNaN() | p.HasDay():
            return False
        case _:
            return None


class _Shape(Enum):
    """Which values it is true for: none, all, those below a point, those above one, or both kinds."""

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
# Of texts the order depends on the column's collation.
_ORDERED = ("integer", "decimal", "double", "date", "timestamp", "timestamp_ntz")
_OPPOSITE = {
    _Shape.NONE: _Shape.ALL,
    _Shape.ALL: _Shape.NONE,
    _Shape.BELOW: _Shape.ABOVE,
    _Shape.ABOVE: _Shape.BELOW,
}
_ENDS = frozenset({_Shape.BELOW, _Shape.ABOVE, _Shape.BOTH})


def _shape(node: p.Predicate) -> _Shape:
    """Which values but NULL it is true for. NaN stands above all others, as Spark sorts it."""
    match node:
        case p.Not(part):
            return _OPPOSITE.get(_shape(part), _Shape.UNKNOWN)
        case p.Or(parts):
            return _either({_shape(part) for part in parts})
        case p.And(parts):
            # Not both: where one is true for values below and the other above, they meet in the middle.
            opposites = {_OPPOSITE.get(_shape(part), _Shape.UNKNOWN) for part in parts}
            return _OPPOSITE.get(_either(opposites), _Shape.UNKNOWN)
        case p.IsNull() | p.Missing():
            return _Shape.NONE
        case p.IsNaN():
            return _Shape.ABOVE
        case p.Compare(t.Path(), operator) if node.kind in _ORDERED:
            return _COMPARED.get(operator, _Shape.UNKNOWN)
        case _:
            return _Shape.UNKNOWN


def _either(shapes: set[_Shape]) -> _Shape:
    """The shape of what is true where one of these is."""
    if _Shape.UNKNOWN in shapes or _Shape.ALL in shapes:
        return _Shape.ALL if _Shape.ALL in shapes else _Shape.UNKNOWN
    ends = shapes & _ENDS
    if len(ends) < 2:
        return next(iter(ends), _Shape.NONE)
    return _Shape.BOTH


# A metric: a question to one object's rows whose answer is a number, as a value that can be compared.

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
    value: predicate.Term | None = None
    where: predicate.Predicate | None = None
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
            isinstance(node, predicate.Opaque) and node.interpreted
            for node in (self.value, *_nodes(self.where))
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
    where: predicate.Predicate | None = None
    instead: Metric | None = field(default=None, compare=False)
    kind: ClassVar[Kind] = Kind.DISTINCT


@dataclass(frozen=True, slots=True)
class RepeatedKeys:
    """How many rows stand beyond the first of their key where that is true."""

    keys: tuple[Column, ...]
    where: predicate.Predicate | None = None
    kind: ClassVar[Kind] = Kind.DUPLICATES


@dataclass(frozen=True, slots=True)
class SingleKeys:
    """How many keys only one of the rows has where that is true."""

    keys: tuple[Column, ...]
    where: predicate.Predicate | None = None
    kind: ClassVar[Kind] = Kind.SINGLE


@dataclass(frozen=True, slots=True)
class UnmatchedKeys:
    """How many rows have a key that the target does not have, where that is true."""

    keys: tuple[Column, ...]
    target: Target
    where: predicate.Predicate | None = None
    kind: ClassVar[Kind] = Kind.UNMATCHED


@dataclass(frozen=True, slots=True)
class Query:
    """The one number of a query on ROWS_VIEW (see `contracts.sql.text`), the rows where that is true.

    `columns` are those that it names, `fields` the names that it has behind a dot, in lower case.
    """

    sql: str
    columns: tuple[Column, ...]
    where: predicate.Predicate | None = None
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
    where: predicate.Predicate | None = None
    kind: ClassVar[Kind] = Kind.PYTHON


@dataclass(frozen=True, slots=True)
class PerGroup:
    """A metric for each group of the rows where `within` is true; the group of NULL is one.

    Only these groups are there, whatever the metric's own condition is.
    """

    by: tuple[Column, ...]
    of: Aggregate | DistinctKeys | SingleKeys
    within: predicate.Predicate | None = None
    kind: ClassVar[Kind] = Kind.GROUPED

    @property
    def where(self) -> predicate.Predicate | None:
        """The rows that it speaks about."""
        return self.within


Keyed = DistinctKeys | RepeatedKeys | SingleKeys | UnmatchedKeys
"""Of the rows whose key has no NULL."""
OfRows = Aggregate | Keyed | PerGroup | Query | Call
"""What is asked of rows."""
Metric = Schema | OfRows
"""Equal metrics are asked once."""


# What may be the name of a group: as a text it is the same in every engine.
GROUP_TYPES = predicate.TEXTS | predicate.INTEGERS | {"boolean", "date", "decimal"}
_NAMES = re.compile(r"`(?:[^`]|``)+`(?:\.`(?:[^`]|``)+`)*")
_NAME = re.compile(r"`((?:[^`]|``)+)`")


def _named(text: str) -> predicate.Path | None:
    """The path of a text that `Column.sql` made: quoted names with dots between them, and nothing else."""
    if _NAMES.fullmatch(text) is None:
        return None
    return predicate.Path(tuple(name.replace("``", "`") for name in _NAME.findall(text)))


def _predicate(where: predicate.Predicate | str | None) -> predicate.Predicate | None:
    return (predicate.Opaque(where) if where else None) if isinstance(where, str) else where


@functools.lru_cache(4096)
def _needs(
    given: tuple[Need, ...], value: predicate.Term | None, where: predicate.Predicate | None
) -> tuple[Need, ...]:
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


def count(where: predicate.Predicate | str | None = None, needs: tuple[Need, ...] = ()) -> Aggregate:
    """How many rows there are, or how many pass a predicate; `needs` are the columns of a text of SQL."""
    return aggregate("count", None, where, needs=needs)


def aggregate(
    name: str,
    value: predicate.Term | str | None,
    where: predicate.Predicate | str | None = None,
    *,
    needs: tuple[Need, ...] = (),
    instead: Metric | None = None,
) -> Aggregate:
    """An aggregate over the rows that pass; a text is Spark SQL, `needs` are the columns that it reads."""
    term = (_named(value) or predicate.Opaque(value)) if isinstance(value, str) else value
    return Aggregate(name, term, _predicate(where), needs, instead)


def of_users(metric: Metric) -> bool:
    """Whether its cost is whatever the contract's author has written: SQL, a pattern, a function."""
    if isinstance(metric, Schema):
        return False
    if isinstance(metric, PerGroup):
        return of_users(metric.of) or any(
            isinstance(node, predicate.Opaque) for node in _nodes(metric.within)
        )
    value = metric.value if isinstance(metric, Aggregate) else None
    theirs = (
        isinstance(node, predicate.Opaque | predicate.Matches) for node in (value, *_nodes(metric.where))
    )
    return isinstance(metric, Query | Call) or any(theirs)


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
    """How many rows stand beyond the first of their key."""
    return RepeatedKeys(keys, _predicate(where))


def distinct(
    keys: tuple[Column, ...], where: predicate.Predicate | str | None = None, instead: Metric | None = None
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


# What came of statistics that were put to the test: proofs, scans, and where the rows say otherwise.


@dataclass(frozen=True, slots=True)
class Tally:
    """How many answers statistics proved, how many of these were counted again, and how many were wrong."""

    proofs: int = 0
    scans: int = 0
    disagreements: int = 0


@dataclass(frozen=True, slots=True)
class SuspectFile:
    """A file whose statistics say something else than its rows, and who wrote them ("": nobody says it)."""

    path: str
    writer: str

    def __str__(self) -> str:
        return f"{self.path} ({self.writer or 'of no writer that is named'})"


@dataclass(frozen=True, slots=True)
class Disagreement:
    """An answer that statistics prove and the rows do not give.

    `clauses` are the paths of those that ask it. `proven` and `found` are texts without any value of the
    data. `files` are at most twenty of the suspects, `suspects` is the number of all; none where no file
    could be told from the others. `kept`: it is no proof, but was made with what earlier runs kept.
    """

    clauses: tuple[str, ...]
    proven: str
    found: str
    files: tuple[SuspectFile, ...]
    suspects: int
    kept: bool = False

    @property
    def said(self) -> str:
        """What is wrong, where, and what to do."""
        if self.kept:
            return (
                f"what earlier checks kept of its folders is wrong: with it there are {self.proven}, its rows"
                f" give {self.found}. It is forgotten, and the next check counts all folders anew. A file may"
                " have changed and kept its name, size and time: ask who writes the table"
            )
        shown = "; ".join(str(file) for file in self.files[:3]) or "no single file"
        more = f"; {self.suspects - 3} more" if self.suspects > 3 else ""
        return (
            f"its statistics are wrong: they prove {self.proven}, its rows give {self.found}."
            f" Files and writers: {shown}{more}. Nothing was proven by statistics in this run."
            " Have these files written anew by another version of the writer, or check with --scan"
        )


@dataclass(frozen=True, slots=True)
class Verification:
    """A share of what statistics proved in one run, counted from the rows.

    `ever` adds up all runs that the store knows, this one included; None where there is no store.
    """

    share: float
    tally: Tally
    disagreements: tuple[Disagreement, ...] = ()
    ever: Tally | None = None
