"""Terms and predicates of a row, as values that no engine has written."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from enum import Enum
from typing import Literal as OneOf

# A term: what a value of a row is computed from, as a value that no engine has written.
#
# Where it does not say otherwise, a term of NULL is NULL.

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
"""The way from a row to a value; its first step is a column's name."""

Literal = bool | int | Decimal | float | str | dt.datetime | dt.date
"""An int or a Decimal is an exact number, a float a binary one; a datetime with a zone is an instant, one
without a civil time."""

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
    """What kind of literal it is: boolean, integer, decimal, double, string, date, timestamp, timestamp_ntz.

    Python's own equality takes TRUE for 1, and 1 for 1.0: the kind tells them apart.
    """
    kind = next(name for base, name in _KINDS if isinstance(value, base))
    civil = isinstance(value, dt.datetime) and value.tzinfo is None
    return "timestamp_ntz" if civil else kind


@dataclass(frozen=True, slots=True)
class Path:
    """The subject's field at the end of a way of names; the subject itself for the empty way.

    `types` are names of types that narrow what the value may be; the nodes around it say what it must be.
    A field of NULL is NULL.
    """

    steps: tuple[str, ...] = ()
    types: frozenset[str] = field(default_factory=frozenset)


@dataclass(frozen=True, slots=True)
class Length:
    """The number of characters (code points) of a text."""

    value: Term


@dataclass(frozen=True, slots=True)
class Remainder:
    """What is left of a whole number when it is divided; it has the number's sign."""

    value: Term
    by: int


@dataclass(frozen=True, slots=True)
class Size:
    """How many items an array has, NULL ones too; `items` are the types that they must have (empty: any)."""

    value: Path
    items: frozenset[str] = field(default_factory=frozenset)


@dataclass(frozen=True, slots=True)
class Entries:
    """How many entries a map has."""

    value: Path


@dataclass(frozen=True, slots=True)
class Present:
    """How many of these fields of a struct are not NULL."""

    value: Path
    fields: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Whole:
    """A whole number as it is; TRUE as 1 and FALSE as 0."""

    value: Path


@dataclass(frozen=True, slots=True)
class Since1970:
    """The days of a date, the microseconds of a timestamp; `type` is the one that the value must have.

    It rises with the value.
    """

    value: Path
    type: str


# What `Function` may name; each is NULL as soon as an argument is, but for coalesce.
FUNCTIONS = (
    "array_distinct", "coalesce", "concat", "div", "endswith", "instr", "left", "lower", "map_keys",
    "map_values", "mod", "negative", "plus", "regexp_extract", "size", "startswith", "try_date",
    "try_decimal", "upper",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Function:
    """A plain function of SQL by its name, one of FUNCTIONS; None stands for NULL.

    Raises ValueError for another name: it would be written into SQL as it is.
    """

    name: str
    arguments: tuple[Term | Literal | None, ...]

    def __post_init__(self) -> None:
        if self.name not in FUNCTIONS:
            raise ValueError(f"{self.name!r} is no function of predicates; there are {', '.join(FUNCTIONS)}")


@dataclass(frozen=True, slots=True)
class Opaque:
    """A user's own SQL, a value or a predicate, that went through a guard or comes from an installed package.

    `columns` are those of its columns that must be there. `interpreted` says that Spark does not compile it.
    Nothing is derived from it; engines other than Spark answer what they can read of it.
    """

    sql: str
    columns: tuple[Steps, ...] = ()
    interpreted: bool = False


Term = Path | Length | Remainder | Size | Entries | Present | Whole | Since1970 | Function | Opaque


# A predicate: what is true, false or unknown of a row, as a value that no engine has written.
#
# A predicate speaks about a subject: the row, or inside of `Exists` one of the parts that are walked over.
# Every node is frozen and hashable, and its literals are values of Python. How it is written for an engine,
# and what follows from it, is told elsewhere, once for each: `spark_predicate` (Spark SQL),
# `kernels.condition`
# (Arrow), `offline.expression` (rows of Python), `model.needs` and `model.proof`.
#
# Logic is that of SQL, with three values. A node says what it is for NULL; where it does not, it is NULL. A
# row
# breaks a clause where its predicate is true: false and NULL do not.

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
    """Whether the value is NULL; never NULL itself."""

    value: Term


@dataclass(frozen=True, slots=True)
class Missing:
    """Whether the value is NULL although its holder is not; never NULL itself.

    A field of a NULL struct is not missing: the struct is.
    """

    value: Path


@dataclass(frozen=True, slots=True)
class IsNaN:
    """Whether a float is NaN; false for NULL and for every other number."""

    value: Path


@dataclass(frozen=True, slots=True)
class Compare:
    """A value against a literal or another value.

    A column of floats is compared with the float nearest to the number; NaN equals NaN and stands above every
    number, -0.0 equals 0.0. Exact numbers are compared exactly, texts byte by byte.
    """

    value: Term
    operator: Operator
    other: Literal | Term
    kind: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        known = "" if isinstance(self.other, Term) else kind_of(self.other)
        object.__setattr__(self, "kind", known)


@dataclass(frozen=True, slots=True)
class In:
    """Whether the value equals one of these, as `Compare` does; there is at least one."""

    value: Term
    values: tuple[Literal, ...]
    kinds: tuple[str, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "kinds", tuple(kind_of(value) for value in self.values))


@dataclass(frozen=True, slots=True)
class Matches:
    """Whether a pattern of Java is found in a text.

    In a text of more than `longest` characters it cannot be told, which is an error: Java's stack would end.
    """

    value: Term
    pattern: str
    longest: int | None = None


@dataclass(frozen=True, slots=True)
class DayShape:
    """A pattern of Java with the groups of year, month and day.

    `century` is put before a year of two digits. `months` are the beginnings of the names of months, three
    letters each in one text; empty where months are numbers.
    """

    pattern: str
    year: int
    month: int
    day: int
    century: str = ""
    months: str = ""


@dataclass(frozen=True, slots=True)
class HasDay:
    """Whether a text has the shape and names a day that exists; false for NULL."""

    value: Path
    shape: DayShape


@dataclass(frozen=True, slots=True)
class MultipleOf:
    """Whether a number is a multiple of the step, exactly.

    A float counts as the shortest decimal that names it, to 18 places; NaN, the infinities and floats from
    1e20 on are no multiples.
    """

    value: Path
    step: int | Decimal


@dataclass(frozen=True, slots=True)
class Repeats:
    """Whether an array has an item twice; NULL equals NULL, and NaN NaN."""

    value: Path


@dataclass(frozen=True, slots=True)
class HasKey:
    """Whether a map has this text as a key."""

    value: Path
    key: str


@dataclass(frozen=True, slots=True)
class Normalized:
    """Whether the Euclidean norm of an array of floats is 1, give or take; one with a NULL has none."""

    value: Path
    tolerance: float


@dataclass(frozen=True, slots=True)
class Not:
    """NULL stays NULL."""

    part: Predicate


@dataclass(frozen=True, slots=True)
class And:
    """False where one is, else NULL where one is, else true."""

    parts: tuple[Predicate, ...]


@dataclass(frozen=True, slots=True)
class Or:
    """True where one is, else NULL where one is, else false."""

    parts: tuple[Predicate, ...]


@dataclass(frozen=True, slots=True)
class Exists:
    """Whether the predicate is true for one of the parts of a container; inside, that part is the subject.

    Else NULL where it is NULL for one of them, or where the container is; false without parts.
    """

    value: Path
    part: Inside
    holds: Predicate


Predicate = (
    Constant | Holds | IsNull | Missing | IsNaN | Compare | In | Matches | HasDay | MultipleOf | Repeats
    | HasKey | Normalized | Not | And | Or | Exists | Opaque
)  # fmt: skip


def some(steps: Steps, test: Callable[[Path], Predicate]) -> Predicate:
    """The value at the end of the way, or at least one of the repeated values there, passes the test."""
    for at, step in enumerate(steps):
        if isinstance(step, Inside):
            return Exists(Path(_names(steps[:at])), step, some(steps[at + 1 :], test))
    return test(Path(_names(steps)))


def _names(steps: Steps) -> tuple[str, ...]:
    return tuple(str(step) for step in steps)


def all_of(*parts: Predicate | None) -> Predicate | None:
    """True where all are; None, which is left out, says nothing."""
    said = tuple(part for part in parts if part is not None)
    return And(said) if len(said) > 1 else next(iter(said), None)


def any_of(first: Predicate, *more: Predicate) -> Predicate:
    """True where one is."""
    return Or((first, *more)) if more else first


# What an engine says of a predicate that it cannot answer.


class NoReading(ValueError):
    """A predicate that only Spark can compute; the message says what of it."""
