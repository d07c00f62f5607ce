"""A predicate: what is true, false or unknown of a row, as a value that no engine has written.

A predicate speaks about a subject: the row, or inside of `Exists` one of the parts that are walked over.
Every node is frozen and hashable, and its literals are values of Python. How it is written for an engine,
and what follows from it, is told elsewhere, once for each: `spark_predicate` (Spark SQL), `kernels.condition`
(Arrow), `offline.expression` (rows of Python), `model.needs` and `model.proof`.

Logic is that of SQL, with three values. A node says what it is for NULL; where it does not, it is NULL. A row
breaks a clause where its predicate is true: false and NULL do not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Literal as OneOf

from dq.dataquality.model.term import Inside, Literal, Opaque, Path, Steps, Term, kind_of

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
