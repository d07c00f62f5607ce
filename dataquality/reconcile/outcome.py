"""Result of a comparison of two sides."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from dq.contracts.check_result import Row
from dq.dataquality.clauses.coverage import JsonObject


class Kind(StrEnum):
    """Kind of a difference: a row without a partner on the right or left, a row with other values, or a key
    that occurs more than once with different rows on both sides.
    """

    MISSING = "missing"
    EXTRA = "extra"
    CHANGED = "changed"
    REPEATED = "repeated"


class Decision(StrEnum):
    """Proof by which a partition was decided, the cheapest first.

    SAME_FILES: both sides are the same files, nothing was read. ONE_SIDE: the partition exists on one side
    only, and its rows were counted. STATISTICS: column statistics differ, nothing else was read. HASHES: all
    hashes are equal. ROWS: rows were compared.
    """

    SAME_FILES = "same files"
    ONE_SIDE = "one side"
    STATISTICS = "statistics"
    HASHES = "hashes"
    ROWS = "rows"


Partition = tuple[tuple[str, str | None], ...]
"""Names and values of partition columns, as in paths; None is NULL. Empty: the whole table."""

Counts = Mapping[Kind, int]
"""Rows that differ by kind; of repeated keys, the rows of the side that has more."""


@dataclass(frozen=True, slots=True)
class ColumnDifference:
    """A compared column: its types, how it was compared, and in how many changed rows it differs.

    `patterns` has the number of these rows by what they have in common, e.g. `rounded`.
    """

    name: str
    right_name: str
    left_type: str
    right_type: str
    compared_as: str
    tolerance: str | None = None
    differing: int = 0
    patterns: Mapping[str, int] = field(default_factory=dict)

    def as_dict(self) -> JsonObject:
        """As JSON values."""
        return {
            "name": self.name,
            "right_name": self.right_name,
            "left_type": self.left_type,
            "right_type": self.right_type,
            "compared_as": self.compared_as,
            "tolerance": self.tolerance,
            "differing": self.differing,
            "patterns": dict(self.patterns),
        }


@dataclass(frozen=True, slots=True)
class UncomparedColumn:
    """A column that could not be compared, which is a difference: it is on one side only, or of another
    kind of type.
    """

    name: str
    reason: str

    def as_dict(self) -> JsonObject:
        """As JSON values."""
        return {"name": self.name, "reason": self.reason}


@dataclass(frozen=True, slots=True)
class PartitionResult:
    """A partition (empty for a table without partitions): how it was decided, and what differs.

    Row counts are None if nothing was read. `reason` is the difference of statistics, if that decided.
    """

    partition: Partition
    decision: Decision
    left_rows: int | None = None
    right_rows: int | None = None
    differences: Counts = field(default_factory=dict)
    reason: str = ""

    @property
    def agrees(self) -> bool:
        """True if no row differs."""
        return not any(self.differences.values()) and not self.reason

    def __str__(self) -> str:
        return "/".join(f"{name}={'NULL' if value is None else value}" for name, value in self.partition)

    def as_dict(self) -> JsonObject:
        """As JSON values."""
        return {
            "partition": dict(self.partition),
            "decided_by": self.decision,
            "left_rows": self.left_rows,
            "right_rows": self.right_rows,
            **{kind.value: self.differences.get(kind, 0) for kind in Kind},
            "reason": self.reason or None,
        }


@dataclass(frozen=True, slots=True)
class Difference:
    """A row that differs: its kind, its key, and the values of each side, as JSON; classified ones masked.

    Of a changed row only the columns that differ. Values are None for a side without the row.
    """

    kind: Kind
    partition: Partition
    key: Row
    left_rows: int
    right_rows: int
    left: Mapping[str, Any] | None
    right: Mapping[str, Any] | None

    def as_dict(self) -> JsonObject:
        """As JSON values."""
        return {
            "kind": self.kind,
            "partition": dict(self.partition),
            "key": dict(self.key),
            "left_rows": self.left_rows,
            "right_rows": self.right_rows,
            "left": None if self.left is None else dict(self.left),
            "right": None if self.right is None else dict(self.right),
        }


@dataclass(frozen=True, slots=True)
class Reconciliation:
    """Comparison of two sides.

    `key` is empty if rows were compared as a whole, with their number. `partitions` has every compared
    partition; a table without partitions is one without values. `differences` are examples. `is_detailed` is
    False if rows were not compared, and counts by kind are then unknown. `swapped` are pairs of columns whose
    values changed places, with the number of rows. `written` is the folder of the differing rows.
    """

    left: str
    right: str
    key: tuple[str, ...]
    columns: tuple[ColumnDifference, ...]
    partitions: tuple[PartitionResult, ...]
    uncompared: tuple[UncomparedColumn, ...] = ()
    differences: tuple[Difference, ...] = ()
    swapped: tuple[tuple[str, str, int], ...] = ()
    is_detailed: bool = True
    notes: tuple[str, ...] = ()
    written: str | None = None

    @property
    def counts(self) -> Counts:
        """Rows that differ by kind, of all partitions."""
        totals: Counter[Kind] = Counter()
        for result in self.partitions:
            totals.update(result.differences)
        return {kind: totals[kind] for kind in Kind}

    @property
    def decisions(self) -> Mapping[Decision, int]:
        """Number of partitions by decision."""
        numbers = Counter(result.decision for result in self.partitions)
        return {decision: numbers[decision] for decision in Decision}

    @property
    def agrees(self) -> bool:
        """True if no row differs and every column was compared."""
        return not self.uncompared and all(result.agrees for result in self.partitions)

    @property
    def exit_code(self) -> int:
        """Exit code of `dq reconcile`: 0 the sides agree, 1 they differ."""
        return 0 if self.agrees else 1

    def as_dict(self) -> JsonObject:
        """As JSON values."""
        return {
            "left": self.left,
            "right": self.right,
            "agrees": self.agrees,
            "detailed": self.is_detailed,
            "key": list(self.key),
            "rows": {kind.value: number for kind, number in self.counts.items()}
            if self.is_detailed
            else None,
            "columns": [column.as_dict() for column in self.columns],
            "not_compared": [column.as_dict() for column in self.uncompared],
            "swapped": [{"columns": [first, second], "rows": rows} for first, second, rows in self.swapped],
            "decided_by": {decision.value: number for decision, number in self.decisions.items()},
            "partitions": [result.as_dict() for result in self.partitions if not result.agrees],
            "differences": [difference.as_dict() for difference in self.differences],
            "written": self.written,
            "notes": list(self.notes),
        }
