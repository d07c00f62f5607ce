"""What was seen of a table: of each column in each partition, as values that no engine has made."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

from dq.contracts.types import DataType
from dq.contracts.yaml.insertion.spans import Way

Bound = int | float | Decimal | dt.date | dt.datetime
"""The least or greatest value; instants are as the session's clock shows them, without a zone."""


@dataclass(frozen=True, slots=True)
class SeenValues:
    """One column in one partition. `least` and `greatest` are of numbers and times, the lengths of texts.

    None stands where there is no value, or none that a bound could be: NaN, an infinity, a year beyond 9999.
    """

    rows: int
    nulls: int = 0
    least: Bound | None = None
    greatest: Bound | None = None
    shortest: int | None = None
    longest: int | None = None


@dataclass(frozen=True, slots=True)
class ColumnFacts:
    """One column over all partitions that were looked at, the oldest first.

    `way` leads to its property. `different` is an estimate of how many values it has. `forms` are named
    formats that every value has, `shape` the one outline of all values (`A99` for a capital and two digits)
    or "", and `plain` says that all are printable ASCII. `values` are all of them, where they are few, with
    the number of partitions and rows that have each. `written` are the keys that the contract has for it,
    such as `required` and `logicalTypeOptions.minimum`, and `quality nullValues` for a rule of this metric.
    """

    way: Way
    name: str
    type: DataType
    seen: tuple[SeenValues, ...]
    different: int = 0
    forms: frozenset[str] = frozenset()
    shape: str = ""
    plain: bool = False
    values: Mapping[str, tuple[int, int]] | None = None
    written: frozenset[str] = frozenset()
    sensitive: bool = False
    partition: bool = False

    @property
    def rows(self) -> int:
        """The rows of all partitions."""
        return sum(one.rows for one in self.seen)

    @property
    def nulls(self) -> int:
        """The rows without a value."""
        return sum(one.nulls for one in self.seen)

    @property
    def filled(self) -> int:
        """The rows with a value."""
        return self.rows - self.nulls


@dataclass(frozen=True, slots=True)
class TableFacts:
    """A table: `sizes` are the rows of each partition, the oldest first; one of an unpartitioned table.

    `keys` are the names of its partition columns, `present` how many partitions there are in all. `pairs` are
    columns that together have about as many different values as there are rows, with that number.
    """

    way: Way
    name: str
    sizes: tuple[int, ...]
    columns: tuple[ColumnFacts, ...]
    keys: tuple[str, ...] = ()
    present: int = 1
    alike: int = 0
    pairs: tuple[tuple[str, ...], ...] = ()
    written: frozenset[str] = frozenset()
    now: dt.datetime | None = None

    @property
    def rows(self) -> int:
        """All rows that were looked at."""
        return sum(self.sizes)

    @property
    def partitioned(self) -> bool:
        """Whether there is more than one partition to compare."""
        return len(self.sizes) > 1 or bool(self.keys)


@dataclass(frozen=True, slots=True)
class Proposal:
    """One rule: a key with its value of the mapping at `way`, or with an empty key an item of the list there.

    `says` is it in a few words, and `evidence` on what it stands; no value of a sensitive column is in them.
    """

    way: Way
    key: str
    value: object
    evidence: str
    says: str
    column: str = ""
