"""A metric: a question to one object's rows whose answer is a number, as a value that can be compared."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from typing import Any

from dq.contracts.types import DataType
from dq.dataquality.column import Column
from dq.dataquality.reference import Target


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


@dataclass(frozen=True, slots=True)
class Need:
    """A column that a metric reads, and the names of the types that give it a meaning (empty: any).

    `digits` are those before and after the point of the numbers that its values are compared with.
    """

    column: Column
    types: frozenset[str] = frozenset()
    digits: tuple[int, int] = (0, 0)


@dataclass(frozen=True, slots=True)
class Metric:
    """Equal metrics are asked once.

    `aggregate` is a function that leaves NULL out, asked of `value` over the rows where `where` is true.
    `keys` are the key of the kinds DISTINCT, DUPLICATES and UNMATCHED; rows with a NULL in it are left out.
    `target` is what they are looked up in. `proof` is for statistics. Of the kind SQL, `value` is a query on
    ROWS_VIEW (see `contracts.sql.guard`), which has the rows where `where` is true. Of the kind PYTHON,
    `call` gets the rows; `aggregate` is its name, and it is known by that and its `value`. `instead` is asked
    when this has no answer: the same question in another way, which makes no difference between metrics.
    """

    kind: Kind
    aggregate: str = ""
    value: str = ""
    where: str = ""
    keys: tuple[Column, ...] = ()
    needs: tuple[Need, ...] = ()
    merge: Merge = Merge.SUM
    target: Target | None = None
    proof: Proof = Proof.NONE
    instead: Metric | None = field(default=None, compare=False)
    call: Callable[[Any], object] | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a metric has no answer, in one line."""

    message: str


Number = int | float | Decimal
# SCHEMA gives a struct type; a minimum or maximum of no rows gives None.
Value = Number | str | dt.date | DataType | None
Answer = Value | Failure
Answers = Mapping[Metric, Answer]

# What stands for the rows in a query of the kind SQL; the measurement puts a name of its own there.
ROWS_VIEW = "_dq_rows"

SCHEMA = Metric(Kind.SCHEMA, merge=Merge.NONE)


def one_number(value: object, giver: str = "the query") -> Number | Failure:
    """What a query or a function gave, when it is a number that can be compared."""
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        shown = "NULL" if value is None else f"a {type(value).__name__}"
        return Failure(f"{giver} gives {shown}; one number is needed")
    return value if math.isfinite(value) else Failure(f"{giver} gives {value}, which is no number")


def count(where: str = "", needs: tuple[Need, ...] = (), proof: Proof = Proof.NONE) -> Metric:
    """How many rows there are, or how many pass a predicate."""
    kind = Kind.ROWS if all(need.column.single for need in needs) else Kind.INTERPRETED
    return Metric(kind, "count", "1", where, (), needs, proof=proof)


def duplicates(keys: tuple[Column, ...], where: str = "") -> Metric:
    """How many rows stand beyond the first of their key."""
    return Metric(
        Kind.DUPLICATES, where=where, keys=keys, needs=tuple(Need(key) for key in keys), merge=Merge.NONE
    )


def distinct(keys: tuple[Column, ...], where: str = "") -> Metric:
    """How many different keys there are."""
    return Metric(
        Kind.DISTINCT, where=where, keys=keys, needs=tuple(Need(key) for key in keys), merge=Merge.NONE
    )


def unmatched(keys: tuple[Column, ...], target: Target, where: str = "") -> Metric:
    """How many rows have a key that the target does not have."""
    needs = tuple(Need(key) for key in keys)
    return Metric(Kind.UNMATCHED, where=where, keys=keys, needs=needs, target=target)


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
