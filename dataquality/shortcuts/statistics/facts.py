"""What is certain of the rows of a table without reading them, file by file."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING

from dq.dataquality.model.column import Column
from dq.dataquality.spark.readers.open import Dataset

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# Of one column in one file at most so many different values are kept.
MOST_VALUES = 1_000

# As `collect()` would give them: instants are aware, in UTC; timestamps without a zone are naive.
Scalar = bool | int | Decimal | str | bytes | dt.date | dt.datetime


@dataclass(frozen=True, slots=True)
class Facts:
    """What is certain of one column in one file; None says that it is not known, never that there is none.

    `nulls` is the exact number of NULLs among all rows of the file. No value that is not NULL lies below
    `least` or above `greatest`; with `attained`, both stand in the file. `values` has every value
    that is not NULL, and perhaps more. A column of floats has no bounds: statistics leave NaN out.
    """

    nulls: int | None = None
    least: Scalar | None = None
    greatest: Scalar | None = None
    attained: bool = False
    values: frozenset[Scalar] | None = None


UNKNOWN = Facts()


def constant(value: Scalar | None, rows: int) -> Facts:
    """The facts of a column with this one value, or NULL, in every row of a file; texts have no bounds."""
    if value is None:
        return Facts(rows, values=frozenset())
    if isinstance(value, str):
        return Facts(0, values=frozenset({value}))
    return Facts(0, value, value, rows > 0, frozenset({value}))


@dataclass(frozen=True, slots=True)
class File:
    """One file that a query on the frame would read.

    `rows` counts what the file holds. With `whole`, a query sees all of these rows: none is deleted, and
    none lies outside of the partitions that are asked for. Without it, the facts speak of more rows than
    the query sees: what no row of the file does, no row of the query does, but counts do not hold.
    A column that is not in `columns` is UNKNOWN. `writers` are those whose word the facts are; the facts
    that these are not believed are left out already.
    """

    path: str
    rows: int
    whole: bool = True
    columns: Mapping[Column, Facts] = field(default_factory=dict)
    writers: tuple[str, ...] = ()

    def of(self, column: Column) -> Facts:
        """The facts of a column."""
        return self.columns.get(column, UNKNOWN)


@dataclass(frozen=True, slots=True)
class Wanted:
    """The columns about which facts are asked for: of `values` all that can be had, of `bounds` only the
    nulls and the bounds.
    """

    bounds: frozenset[Column] = frozenset()
    values: frozenset[Column] = frozenset()


Partitions = Sequence[Mapping[str, str]]
# From a table's whole data as Spark opened it, where it is (None for a frame that was handed in), the
# partitions asked for (none: all of it), and the columns wanted, to every file that a query would read; None
# when that cannot be told. It may raise an error of Spark's where the table's format cannot answer.
Source = Callable[["DataFrame", Dataset | None, Partitions, Wanted], Sequence[File] | None]
