"""Terms and predicates on a row, independent of any engine."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from enum import Enum
from typing import Literal as OneOf

# A term computes a value of a row.
#
# Unless stated otherwise, a term of NULL is NULL.

# Names of types, as `contracts.types` has them.
INTEGERS = frozenset({"tinyint", "smallint", "int", "bigint"})
FLOATS = frozenset({"float", "double"})
NUMBERS = INTEGERS | FLOATS | {"decimal"}
TEXTS = frozenset({"string", "varchar", "char"})


class Inside(Enum):
    """A step from a container to each of its parts."""

    ITEM = "[]"
    KEY = "{key}"
    VALUE = "{value}"


Steps = tuple[str | Inside, ...]
"""The path from a row to a value; its first step is a column name."""

Literal = bool | int | Decimal | float | str | dt.datetime | dt.date
"""An int or a Decimal is an exact number, a float a binary one. A datetime with a zone is an instant, one
without is a local time.
"""

_KINDS: tuple[tuple[type, str], ...] = (
    (bool, "boolean"),
    (int, "integer"),
    (Decimal, "decimal"),
    (float, "double"),
    (str, "string"),
    (dt.datetime, "timestamp"),
    (dt.date, "date"),
)


def kind_of(value: Literal) -> str:
    """Return the kind of a literal: boolean, integer, decimal, double, string, date, timestamp or
    timestamp_ntz.

    In Python True == 1 == 1.0; the kind distinguishes them.
    """
    kind = next(name for base, name in _KINDS if isinstance(value, base))
    civil = isinstance(value, dt.datetime) and value.tzinfo is None
    return "timestamp_ntz" if civil else kind


@dataclass(frozen=True, slots=True)
class Path:
    """The field of the subject at a path of names; the subject itself for the empty path.

    `types` restrict the type of the value further than the enclosing node does. A field of NULL is NULL.
    """

    steps: tuple[str, ...] = ()
    types: frozenset[str] = field(default_factory=frozenset)


@dataclass(frozen=True, slots=True)
class Length:
    """The number of characters (code points) of a text."""

    value: Term


@dataclass(frozen=True, slots=True)
class Remainder:
    """The remainder of an integer division; it has the sign of the dividend."""

    value: Term
    by: int


@dataclass(frozen=True, slots=True)
class Size:
    """The number of items of an array, including NULLs; `items` are their allowed types (empty: any)."""

    value: Path
    items: frozenset[str] = field(default_factory=frozenset)


@dataclass(frozen=True, slots=True)
class Entries:
    """The number of entries of a map."""

    value: Path


@dataclass(frozen=True, slots=True)
class Present:
    """The number of these fields of a struct that are not NULL."""

    value: Path
    fields: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class IntegerValue:
    """An integer as it is; TRUE as 1 and FALSE as 0."""

    value: Path


@dataclass(frozen=True, slots=True)
class Since1970:
    """Days of a date or microseconds of a timestamp since 1970; `type` is the required type of the value.

    Strictly increasing in the value.
    """

    value: Path
    type: str


# Functions allowed in `Function`. Except for coalesce, each is NULL if an argument is.
FUNCTIONS = (
    "array_distinct", "coalesce", "concat", "div", "endswith", "instr", "left", "lower", "map_keys",
    "map_values", "mod", "negative", "plus", "regexp_extract", "size", "startswith", "try_date",
    "try_decimal", "upper",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Function:
    """A SQL function, one of FUNCTIONS; None as an argument is NULL.

    Raises ValueError for another name, since names are written into SQL unquoted.
    """

    name: str
    arguments: tuple[Term | Literal | None, ...]

    def __post_init__(self) -> None:
        if self.name not in FUNCTIONS:
            raise ValueError(f"{self.name!r} is not a predicate function; available: {', '.join(FUNCTIONS)}")


@dataclass(frozen=True, slots=True)
class Opaque:
    """A user's SQL value or predicate that passed the guard or comes from an installed package.

    `columns` are the columns that must exist. With `interpreted`, Spark does not compile it to bytecode.
    Nothing is derived from it; engines other than Spark evaluate it only if they can parse it.
    """

    sql: str
    columns: tuple[Steps, ...] = ()
    interpreted: bool = False


Term = Path | Length | Remainder | Size | Entries | Present | IntegerValue | Since1970 | Function | Opaque


# A predicate is true, false or NULL for a row.
#
# Its subject is the row or, inside `Exists`, an element of a container. Every node is frozen and hashable,
# and its literals are Python values. Each engine translates it in one place: `sql_predicate` (Spark SQL),
# `answers.python_tasks` (Arrow), `answers.rows` (Python rows); `model.column` and `model.metric` derive the
# columns it needs and the statistics that prove it.
#
# Logic is SQL's three-valued logic. Unless a node states otherwise, it is NULL for NULL. A row breaks a
# clause if the clause's predicate is true, not if it is false or NULL.

Operator = OneOf["<", "<=", ">", ">=", "=", "<>"]


@dataclass(frozen=True, slots=True)
class Constant:
    """TRUE, FALSE or NULL, whatever the subject is."""

    truth: bool | None


@dataclass(frozen=True, slots=True)
class Holds:
    """A flag, or a function that gives one."""

    value: Term


@dataclass(frozen=True, slots=True)
class IsNull:
    """True if the value is NULL; never NULL itself."""

    value: Term


@dataclass(frozen=True, slots=True)
class Missing:
    """True if the value is NULL although its holder is not; never NULL itself.

    A field of a NULL struct is not missing: the struct is.
    """

    value: Path


@dataclass(frozen=True, slots=True)
class IsNaN:
    """True if a float is NaN; false for NULL and for every other number."""

    value: Path


@dataclass(frozen=True, slots=True)
class Compare:
    """A comparison of a value with a literal or another value.

    A float32 column is compared with the float32 value nearest to the number. NaN equals NaN and is greater
    than every number; -0.0 equals 0.0. Exact numbers are compared exactly, texts byte by byte.
    """

    value: Term
    operator: Operator
    other: Literal | Term
    kind: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        kind = "" if isinstance(self.other, Term) else kind_of(self.other)
        object.__setattr__(self, "kind", kind)


@dataclass(frozen=True, slots=True)
class In:
    """True if the value equals one of `values`, compared as in `Compare`. There is at least one."""

    value: Term
    values: tuple[Literal, ...]
    kinds: tuple[str, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "kinds", tuple(kind_of(value) for value in self.values))


@dataclass(frozen=True, slots=True)
class Matches:
    """True if a Java pattern is found in a text.

    A text of more than `longest` characters is an error, since Java's stack would overflow.
    """

    value: Term
    pattern: str
    longest: int | None = None


@dataclass(frozen=True, slots=True)
class DayShape:
    """A Java pattern with the group numbers of year, month and day.

    `century` is prepended to a two-digit year. `months` concatenates the three-letter month names; empty if
    months are numbers.
    """

    pattern: str
    year: int
    month: int
    day: int
    century: str = ""
    months: str = ""


@dataclass(frozen=True, slots=True)
class HasDay:
    """True if a text has the shape and names a day that exists; false for NULL."""

    value: Path
    shape: DayShape


@dataclass(frozen=True, slots=True)
class MultipleOf:
    """True if a number is an exact multiple of the step.

    A float counts as its shortest decimal, to 18 places. NaN, the infinities and floats from 1e20 on are not
    multiples.
    """

    value: Path
    step: int | Decimal


@dataclass(frozen=True, slots=True)
class Repeats:
    """True if an array contains an item twice; NULL equals NULL, and NaN equals NaN."""

    value: Path


@dataclass(frozen=True, slots=True)
class HasKey:
    """True if a map has this text as a key."""

    value: Path
    key: str


@dataclass(frozen=True, slots=True)
class Normalized:
    """True if the Euclidean norm of a float array is 1 within `tolerance`; an array with a NULL has no
    norm.
    """

    value: Path
    tolerance: float


@dataclass(frozen=True, slots=True)
class Not:
    """The negation; NULL stays NULL."""

    part: Predicate


@dataclass(frozen=True, slots=True)
class And:
    """False if a part is false, else NULL if one is NULL, else true."""

    parts: tuple[Predicate, ...]


@dataclass(frozen=True, slots=True)
class Or:
    """True if a part is true, else NULL if one is NULL, else false."""

    parts: tuple[Predicate, ...]


@dataclass(frozen=True, slots=True)
class Exists:
    """True if the predicate is true for an element of a container; the element is the predicate's subject.

    Else NULL if it is NULL for an element, or if the container is NULL; false for an empty container.
    """

    value: Path
    part: Inside
    holds: Predicate


Predicate = (
    Constant | Holds | IsNull | Missing | IsNaN | Compare | In | Matches | HasDay | MultipleOf | Repeats
    | HasKey | Normalized | Not | And | Or | Exists | Opaque
)  # fmt: skip


def any_value(steps: Steps, test: Callable[[Path], Predicate]) -> Predicate:
    """Return the predicate that the value at the path, or at least one of the repeated values, passes the
    test.
    """
    for index, step in enumerate(steps):
        if isinstance(step, Inside):
            return Exists(Path(_names(steps[:index])), step, any_value(steps[index + 1 :], test))
    return test(Path(_names(steps)))


def _names(steps: Steps) -> tuple[str, ...]:
    return tuple(str(step) for step in steps)


def all_of(*parts: Predicate | None) -> Predicate | None:
    """Return the conjunction of the parts that are not None, or None if there is none."""
    present = tuple(part for part in parts if part is not None)
    return And(present) if len(present) > 1 else next(iter(present), None)


def any_of(first: Predicate, *alternatives: Predicate) -> Predicate:
    """Return the disjunction of the predicates."""
    return Or((first, *alternatives)) if alternatives else first


# Raised by engines other than Spark.


class UnsupportedPredicate(ValueError):
    """Only Spark can evaluate the predicate; the message says which part of it."""
