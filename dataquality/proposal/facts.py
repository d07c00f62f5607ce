"""What was seen of a table, and how strong the evidence for a rule is."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from dq.contracts.shared.wording import counted
from dq.contracts.types import DataType
from dq.contracts.yaml.insertion import Way
from dq.dataquality.proposal import policy
from dq.dataquality.proposal.policy import room

# What was seen of a table: of each column in each partition, as values that no engine has made.

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


# Strength of the evidence for a rule: an error, a warning where it is weak, or no rule.
#
# The statistics are simple enough to check by hand:
#
# - Rule of three: after `n` rows without an exception, up to `3 / n` of all rows may be exceptions (at 95
# %).
#   `policy.ROWS_OF_AN_ERROR` rows bound that share at 3 %.
# - Rule of succession: after `n` partitions without an exception, the chance of one in the next partition
# is
#   about `1 / (n + 2)`. Rows of one partition resemble each other, so that the number of partitions counts
# and
#   not that of rows; `policy.PARTITIONS_OF_AN_ERROR` partitions bring the chance to about 3 %.
# - Rare values announce rarer ones: a list is an error only if each of its values has at least
#   `policy.SHARE_OF_A_VALUE` percent of the rows. Good-Turing's estimate (values seen once by rows) is zero
# for
#   every list, because values in fewer than `policy.ROWS_OF_A_VALUE` rows rule a list out.
# - Leave one out: a bound that the most extreme partition would have broken, had the bound been learnt from
# the
#   other partitions, is a warning.
# - A column with a single distinct value shows no range, length or list, and is promised none.

OPTIONS = "logicalTypeOptions"
# schema, its position, properties, its position: a rule of a struct's field would count the struct's NULLs.
TOP = 4


def where(table: TableFacts) -> str:
    """How much history the evidence is: partitions, or the rows of the one snapshot."""
    if not table.partitioned:
        return f"in {table.rows:,} rows"
    count = len(table.sizes)
    return f"in {count:,} of {counted(count, 'partition')}"


def few_seen(column: ColumnFacts, table: TableFacts) -> str:
    """Return why the history is too short for an error, or "" if it is long enough."""
    if table.partitioned and len(table.sizes) < policy.PARTITIONS_OF_AN_ERROR:
        return f"fewer than {policy.PARTITIONS_OF_AN_ERROR} partitions"
    if column.filled < policy.ROWS_OF_AN_ERROR:
        return f"fewer than {policy.ROWS_OF_AN_ERROR} rows"
    return ""


def incomplete_list(column: ColumnFacts, table: TableFacts) -> str:
    """Return why the values seen may not be all values, or "" if nothing suggests more."""
    values = column.values or {}
    if len(values) < policy.VALUES_OF_AN_ERROR:
        return f"fewer than {policy.VALUES_OF_AN_ERROR} values"
    if 100 * min(rows for _, rows in values.values()) < policy.SHARE_OF_A_VALUE * column.filled:
        return f"a value in less than {policy.SHARE_OF_A_VALUE} % of the rows"
    return few_seen(column, table)


def is_constant(column: ColumnFacts) -> bool:
    """Return True if all rows with a value have the same one."""
    ends = {end for part in column.seen for end in (part.least, part.greatest) if end is not None}
    return column.different == 1 or len(ends) == 1 or len(column.values or ()) == 1


def unstable_ends(least: Sequence[Any], greatest: Sequence[Any]) -> tuple[str, str]:
    """Return for the lower and the upper bound why one partition alone moves it, or ""."""
    if len(least) < 2:
        return "", ""
    rest_low, rest_high = sorted(least)[1], sorted(greatest)[-2]
    low, _ = room(rest_low, max(greatest))
    _, high = room(min(least), rest_high)
    reason = "one partition lies far from the others"
    return reason if min(least) < low else "", reason if max(greatest) > high else ""


def with_reason(evidence: str, reason: str) -> str:
    """Return the evidence, followed by why it supports a warning only."""
    return f"{evidence}; a warning: {reason}" if reason else evidence


def warning_count(metric: str, arguments: Mapping[str, object] | None = None) -> dict[str, object]:
    """Return a library rule that warns of any row that `metric` counts."""
    given = {"arguments": dict(arguments)} if arguments else {}
    return {"metric": metric, **given, "mustBe": 0, "severity": "warning"}


def warning_bound(check: str, operator: str, bound: int | float) -> dict[str, object]:
    """Return a rule of dq's own, `min` or `max`, that warns of a number beyond `bound`."""
    implementation = {"check": check, operator: bound}
    return {"type": "custom", "engine": "dq", "implementation": implementation, "severity": "warning"}


def warning_query(condition: str) -> dict[str, object]:
    """Return a rule that warns of rows that meet `condition`, in SQL of `{property}`."""
    query = f"SELECT count(*) FROM {{object}} WHERE {condition}"  # noqa: S608
    return {"type": "sql", "query": query, "mustBe": 0, "severity": "warning"}
