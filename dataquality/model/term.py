"""A term: what a value of a row is computed from, as a value that no engine has written.

Where it does not say otherwise, a term of NULL is NULL.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field
from decimal import Decimal
from enum import Enum

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
