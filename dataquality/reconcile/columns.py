"""Pairs of columns of two sides, and the SQL of their normal forms."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from dq.contracts.outcome import UsageError, suggestion
from dq.contracts.sql import text as sql
from dq.contracts.types import DataType
from dq.dataquality.reconcile.equality import Equality, equality, is_number
from dq.dataquality.reconcile.outcome import Partition, UncomparedColumn

# Bits of one number that tell which columns are NULL.
_BITS = 62


@dataclass(frozen=True, slots=True)
class Terms:
    """Compared columns, by their names on the left, ignoring case.

    `key` identifies a row; without it, rows are compared as a whole, with their number. `columns` are the
    compared ones (empty: all) besides the key; `ignored` are left out. `renamed` maps names on the left to
    names on the right. `tolerance` is the largest difference of two numbers that are equal.
    """

    key: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    renamed: Mapping[str, str] = field(default_factory=dict)
    tolerance: Mapping[str, Decimal] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ComparedColumn:
    """A column of both sides, by its position among the compared ones."""

    number: int
    name: str
    right_name: str
    left_type: DataType
    right_type: DataType
    equality: Equality
    tolerance: Decimal | None = None
    is_key: bool = False

    @property
    def normal(self) -> str:
        """Name of the column with the normal form."""
        return f"_dq_n{self.number}"

    @property
    def parts(self) -> tuple[str, ...]:
        """Names of the columns that are equal on both sides if and only if the values are."""
        return (self.normal,) if self.equality.invalid is None else (self.normal, f"_dq_x{self.number}")

    def select(self, *, is_left: bool) -> list[str]:
        """Return SQL for `parts` from the column of a side."""
        value = sql.name(self.name if is_left else self.right_name)
        forms = [self.equality.left if is_left else self.equality.right]
        if self.equality.invalid is not None:
            forms.append(self.equality.invalid[0 if is_left else 1])
        return [f"{form(value)} AS {part}" for form, part in zip(forms, self.parts, strict=True)]

    def differs(self, left: str, right: str) -> str:
        """Return SQL that is true if the values differ; `left` and `right` are structs of the parts."""
        equal = " AND ".join(f"({left}.{part} <=> {right}.{part})" for part in self.parts)
        if self.tolerance is None:
            return f"NOT ({equal})"
        # A difference that no number can hold is NULL, and above every tolerance.
        distance = f"abs(try_subtract({left}.{self.normal}, {right}.{self.normal}))"
        return f"NOT ({equal} OR coalesce({distance} <= {sql.number(self.tolerance)}, FALSE))"


@dataclass(frozen=True, slots=True)
class Pairing:
    """Compared columns, the key's first, and those that could not be compared."""

    columns: tuple[ComparedColumn, ...]
    uncompared: tuple[UncomparedColumn, ...]

    @property
    def key(self) -> tuple[ComparedColumn, ...]:
        """Columns of the key."""
        return tuple(column for column in self.columns if column.is_key)

    @property
    def values(self) -> tuple[ComparedColumn, ...]:
        """Columns that are not of the key."""
        return tuple(column for column in self.columns if not column.is_key)

    def named(self, names: Iterable[str]) -> tuple[ComparedColumn, ...]:
        """Return the compared columns with these names on the left."""
        lowered = {name.lower() for name in names}
        return tuple(column for column in self.columns if column.name.lower() in lowered)


def pair_columns(left: DataType, right: DataType, terms: Terms) -> Pairing:
    """Pair the columns of two schemas by name, ignoring case.

    Raises:
        UsageError: A name that no side has, a key column that is missing on one side or not comparable, or a
            tolerance for a column that is not a number on both sides.
    """
    if terms.tolerance and not terms.key:
        raise UsageError("A tolerance needs a key.", "Pass the columns that identify a row.")
    left_columns, right_columns = _by_name(left, "left"), _by_name(right, "right")
    renamed = {name.lower(): other.lower() for name, other in terms.renamed.items()}
    _require_known(
        "column", (*terms.key, *terms.columns, *terms.tolerance, *renamed), left_columns, "on the left"
    )
    _require_known("column", renamed.values(), right_columns, "on the right")
    _require_known("column to ignore", terms.ignored, {**left_columns, **right_columns}, "on either side")
    key = [name.lower() for name in terms.key]
    selected = {*key, *(name.lower() for name in terms.columns)} if terms.columns else None
    ignored = {name.lower() for name in terms.ignored}
    tolerances = {name.lower(): amount for name, amount in terms.tolerance.items()}
    columns: list[ComparedColumn] = []
    uncompared: list[UncomparedColumn] = []
    selected_names = [
        name
        for name in (*key, *(name for name in left_columns if name not in key))
        if (selected is None or name in selected) and (name in key or name not in ignored)
    ]
    for name in selected_names:
        shown, left_type = left_columns[name]
        other = right_columns.get(renamed.get(name, name))
        if other is None:
            reason = f"is only on the left ({left_type})"
        else:
            form = equality(left_type, other[1])
            if isinstance(form, Equality):
                _require_tolerance(name, tolerances, left_type, other[1], form)
                columns.append(
                    ComparedColumn(
                        len(columns),
                        shown,
                        other[0],
                        left_type,
                        other[1],
                        form,
                        tolerances.get(name),
                        name in key,
                    )
                )
                continue
            reason = form
        if name in key:
            raise UsageError(
                f"the key column {shown!r} cannot be compared: {reason}.",
                "Choose a key that both sides have.",
            )
        uncompared.append(UncomparedColumn(shown, reason))
    if selected is None:
        paired = {renamed.get(name, name) for name in left_columns}
        uncompared += [
            UncomparedColumn(shown, f"is only on the right ({kind})")
            for name, (shown, kind) in right_columns.items()
            if name not in paired and name not in ignored
        ]
    return Pairing(tuple(columns), _with_renames(uncompared))


def _by_name(schema: DataType, side: str) -> dict[str, tuple[str, DataType]]:
    """Return the name and type of each column by its lower-case name. Raises UsageError for a duplicate."""
    columns: dict[str, tuple[str, DataType]] = {}
    for name, kind in zip(schema.names, schema.parts, strict=True):
        if name.lower() in columns:
            raise UsageError(
                f"the {side} side has two columns {name!r} (ignoring case).", "Give each a unique name."
            )
        columns[name.lower()] = (name, kind)
    return columns


def _require_known(
    what: str, names: Iterable[str], columns: Mapping[str, tuple[str, DataType]], where: str
) -> None:
    for name in names:
        if name.lower() not in columns:
            names_shown = [shown for shown, _ in columns.values()]
            raise UsageError(
                f"unknown {what} {name!r} {where}.",
                suggestion(name, names_shown, f"Columns: {', '.join(names_shown)}."),
            )


def _require_tolerance(
    name: str, tolerances: Mapping[str, Decimal], left: DataType, right: DataType, form: Equality
) -> None:
    if name in tolerances and (form.is_nested or not (is_number(left) or is_number(right))):
        raise UsageError(
            f"{name!r} has a tolerance, but is {left} on the left and {right} on the right.",
            "Give tolerances to numbers only.",
        )


def _with_renames(uncompared: Sequence[UncomparedColumn]) -> tuple[UncomparedColumn, ...]:
    """Return the columns with the hint that the only two columns of one side each may be one column."""
    left = [column for column in uncompared if column.reason.startswith("is only on the left")]
    right = [column for column in uncompared if column.reason.startswith("is only on the right")]
    if (
        len(left) != 1
        or len(right) != 1
        or left[0].reason.rpartition("(")[2] != right[0].reason.rpartition("(")[2]
    ):
        return tuple(uncompared)
    hint = f"; if it was renamed, compare it with --rename {left[0].name}={right[0].name}"
    return tuple(
        UncomparedColumn(column.name, f"{column.reason}{hint}") if column is left[0] else column
        for column in uncompared
    )


def hash_of(columns: Sequence[ComparedColumn]) -> str:
    """Return SQL for a 64-bit hash of the normal forms, which is equal for equal rows.

    Spark's `xxhash64` skips NULLs; numbers that tell which values are NULL are hashed with them.
    """
    parts = [(part, column.equality.hashed(part)) for column in columns for part in column.parts]
    masks = [
        " | ".join(
            f"IF({part} IS NULL, {1 << bit}L, 0L)"
            for bit, (part, _) in enumerate(parts[start : start + _BITS])
        )
        for start in range(0, len(parts), _BITS)
    ]
    return f"xxhash64({', '.join([*masks, *(text for _, text in parts)])})" if parts else "0L"


def partition_parts(columns: Sequence[ComparedColumn]) -> list[str]:
    """Return the names of the normal forms of the partition columns."""
    return [part for column in columns for part in column.parts]


def value_key(values: Sequence[Any]) -> tuple[str, ...]:
    """Return the normal forms of a partition as a key of a mapping; NaN equals itself."""
    return tuple(map(repr, values))


def partition_of(columns: Sequence[ComparedColumn], values: Sequence[Any]) -> Partition:
    """Return the partition with these normal forms, with values as in paths."""
    numbers = iter(values)
    partition = []
    for column in columns:
        value, *_ = [next(numbers) for _ in column.parts]
        partition.append((column.name, None if value is None else _as_path(value)))
    return tuple(partition)


def _as_path(value: Any) -> str:
    """Return a partition value as text in a path."""
    return str(value).lower() if isinstance(value, bool) else str(value)
