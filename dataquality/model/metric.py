"""A metric: a question to one object's rows whose answer is a number, as a value that can be compared."""

from __future__ import annotations

import datetime as dt
import functools
import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from enum import StrEnum
from typing import Any

from dq.contracts.types import DataType
from dq.dataquality.model.column import Column
from dq.dataquality.model.needs import Need as Need
from dq.dataquality.model.needs import joined, term_needs
from dq.dataquality.model.needs import needs as needs_of
from dq.dataquality.model.predicate import And, Exists, Matches, Not, Or, Predicate
from dq.dataquality.model.proof import Proof, of_count, of_extreme
from dq.dataquality.model.target import Target
from dq.dataquality.model.term import Opaque, Path, Term


class Kind(StrEnum):
    """How a metric is asked, which decides the pass that it can share."""

    SCHEMA = "schema"  # the columns and types, known without reading
    ROWS = "rows"  # an aggregate that Spark compiles together with others
    INTERPRETED = "interpreted"  # an aggregate with a lambda, which would keep all others from being compiled
    DISTINCT = "distinct"  # exact count of distinct keys
    DUPLICATES = "duplicates"  # rows beyond the first of each key
    SQL = "sql"  # a whole query that went through the guard
    UNMATCHED = "unmatched"  # rows whose key another object does not have
    PYTHON = "python"  # a function of another package, which gets the rows


class Merge(StrEnum):
    """How the answers for two disjoint sets of rows become the answer for both."""

    SUM = "sum"
    MIN = "min"
    MAX = "max"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Metric:
    """Equal metrics are asked once.

    `aggregate` is a function that leaves NULL out, asked of `value` (None: of each row) over the rows where
    `where` is true. `keys` are the key of the kinds DISTINCT, DUPLICATES and UNMATCHED; rows with a NULL in
    it are left out. `target` is what they are looked up in. Of the kind SQL, `value` is a query on ROWS_VIEW
    (see `contracts.sql.text`), which has the rows where `where` is true. Of the kind PYTHON, `call` gets the
    rows; `aggregate` is its name, and it is known by that and its `value`. `instead` is asked when this has
    no answer: the same question in another way, which makes no difference between metrics.

    Everywhere else a text is SQL of another package, and `needs` are the columns that it reads. What terms
    and predicates need is added to them, and what would prove the answer is told by these alone.
    """

    kind: Kind
    aggregate: str = ""
    value: Term | str | None = None
    where: Predicate | str | None = None
    keys: tuple[Column, ...] = ()
    needs: tuple[Need, ...] = ()
    merge: Merge = Merge.SUM
    target: Target | None = None
    instead: Metric | None = field(default=None, compare=False)
    call: Callable[[Any], object] | None = field(default=None, compare=False)
    proof: Proof = field(init=False, compare=False, repr=False)
    proven_by: Column | None = field(init=False, compare=False, repr=False)
    _hash: int = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        value, where = self.value, self.where
        if self.kind in (Kind.SQL, Kind.PYTHON):
            value = str(value)
        elif isinstance(value, str):
            value = None if value in ("", EACH_ROW) else _named(value) or Opaque(value)
        if isinstance(where, str):
            where = Opaque(where) if where else None
        proof, column = Proof.NONE, None
        if self.kind is Kind.ROWS and not isinstance(value, str):
            if value is None:
                proof, column = of_count(where) if self.aggregate == "count" else (Proof.NONE, None)
            elif where is None and self.aggregate in ("min", "max"):
                proof, column = of_extreme(value)
        for name, told in (
            ("value", value),
            ("where", where),
            ("needs", _needs(self.needs, self.keys, value, where)),
            ("proof", proof),
            ("proven_by", column),
        ):
            object.__setattr__(self, name, told)
        # Metrics are keys of many tables, and a predicate may hold thousands of literals.
        asked = (self.kind, self.aggregate, value, where, self.keys, self.needs, self.merge, self.target)
        object.__setattr__(self, "_hash", hash(asked))

    def __hash__(self) -> int:
        return self._hash

    @property
    def term(self) -> Term | None:
        """The value that is aggregated, None for each row; of no other use for a whole query or function."""
        return None if isinstance(self.value, str) else self.value

    @property
    def condition(self) -> Predicate | None:
        """What is true of the rows that count; None for all of them."""
        assert not isinstance(self.where, str)
        return self.where


# What stands for a row in the SQL of an aggregate.
EACH_ROW = "1"
_NAMES = re.compile(r"`(?:[^`]|``)+`(?:\.`(?:[^`]|``)+`)*")
_NAME = re.compile(r"`((?:[^`]|``)+)`")


def _named(text: str) -> Path | None:
    """The path of a text that `Column.sql` made: quoted names with dots between them, and nothing else."""
    if _NAMES.fullmatch(text) is None:
        return None
    return Path(tuple(name.replace("``", "`") for name in _NAME.findall(text)))


@functools.lru_cache(4096)
def _needs(
    given: tuple[Need, ...],
    keys: tuple[Column, ...],
    value: Term | str | None,
    where: Predicate | None,
) -> tuple[Need, ...]:
    found = [*given, *(Need(key) for key in keys)]
    if value is not None and not isinstance(value, str):
        found += term_needs(value)
    if where is not None:
        found += needs_of(where)
    return joined(tuple(found))


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a metric has no answer, in one line. `late`: it took too long, and so would another way."""

    message: str
    late: bool = False


Number = int | float | Decimal
# SCHEMA gives a struct type; a minimum or maximum of no rows gives None.
Value = Number | str | dt.date | DataType | None
Answer = Value | Failure
Answers = Mapping[Metric, Answer]

SCHEMA = Metric(Kind.SCHEMA, merge=Merge.NONE)


def one_number(value: object, giver: str = "the query") -> Number | Failure:
    """What a query or a function gave, when it is a number that can be compared."""
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        shown = "NULL" if value is None else f"a {type(value).__name__}"
        return Failure(f"{giver} gives {shown}; one number is needed")
    return value if math.isfinite(value) else Failure(f"{giver} gives {value}, which is no number")


def count(where: Predicate | str | None = None, needs: tuple[Need, ...] = ()) -> Metric:
    """How many rows there are, or how many pass a predicate; `needs` are the columns of a text of SQL."""
    return aggregate("count", None, where, needs=needs)


def aggregate(
    name: str,
    value: Term | str | None,
    where: Predicate | str | None = None,
    merge: Merge = Merge.SUM,
    *,
    needs: tuple[Need, ...] = (),
    instead: Metric | None = None,
) -> Metric:
    """An aggregate over the rows that pass, in the pass that is right for what it reads."""
    made = Metric(Kind.ROWS, name, value, where, needs=needs, merge=merge, instead=instead)
    walks = not all(need.column.single for need in made.needs) or _interpreted(made)
    return replace(made, kind=Kind.INTERPRETED) if walks else made


def _interpreted(metric: Metric) -> bool:
    return any(isinstance(one, Opaque) and one.interpreted for one in _nodes(metric))


def of_users(metric: Metric) -> bool:
    """Whether its cost is whatever the contract's author has written: SQL, a pattern, a function."""
    foreign = metric.kind in (Kind.SQL, Kind.PYTHON)
    return foreign or any(isinstance(one, Opaque | Matches) for one in _nodes(metric))


def _nodes(metric: Metric) -> Iterator[object]:
    yield metric.term
    waiting: list[Predicate | None] = [metric.condition]
    while waiting:
        node = waiting.pop()
        yield node
        if isinstance(node, And | Or):
            waiting += node.parts
        elif isinstance(node, Not):
            waiting.append(node.part)
        elif isinstance(node, Exists):
            waiting.append(node.holds)


def duplicates(keys: tuple[Column, ...], where: Predicate | str | None = None) -> Metric:
    """How many rows stand beyond the first of their key."""
    return Metric(Kind.DUPLICATES, where=where, keys=keys, merge=Merge.NONE)


def distinct(keys: tuple[Column, ...], where: Predicate | str | None = None) -> Metric:
    """How many different keys there are."""
    return Metric(Kind.DISTINCT, where=where, keys=keys, merge=Merge.NONE)


def unmatched(keys: tuple[Column, ...], target: Target, where: Predicate | None = None) -> Metric:
    """How many rows have a key that the target does not have."""
    return Metric(Kind.UNMATCHED, where=where, keys=keys, target=target)


def merged(metric: Metric, one: Answer, other: Answer) -> Answer:
    """The answer for the rows of both. A Failure stays one; a metric that does not merge gives a Failure."""
    for answer in (one, other):
        if isinstance(answer, Failure):
            return answer
    if metric.merge is Merge.NONE:
        return one if one == other else Failure("answers of this metric do not merge")
    if one is None or other is None:
        return other if one is None else one
    if metric.merge is Merge.SUM:
        return one + other  # type: ignore[operator]  # SUM stands for numbers only
    return (min if metric.merge is Merge.MIN else max)(one, other)  # type: ignore[type-var]
