"""Rows that differ: counts by kind and column, what changed values have in common, examples, and files."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import combinations
from typing import TYPE_CHECKING, Any

from dq.contracts.outcome import ReadError
from dq.dataquality.model.metric import Failure
from dq.dataquality.reconcile.columns import (
    ComparedColumn,
    Pairing,
    partition_of,
    partition_parts,
    value_key,
)
from dq.dataquality.reconcile.equality import Family
from dq.dataquality.reconcile.outcome import ColumnDifference, Difference, Kind
from dq.dataquality.spark.dataset import count_written
from dq.dataquality.spark.failing_rows import MAX_SAMPLES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql import Row as SparkRow


# Changed columns whose patterns and swaps are looked for.
_MOST_COLUMNS, _MOST_SWAPS = 50, 12
# Characters of a sample's value.
_MOST_CHARACTERS = 200
_JSON = (
    "map('timestampFormat', 'yyyy-MM-dd HH:mm:ss.SSSSSSXXX',"
    " 'timestampNTZFormat', 'yyyy-MM-dd HH:mm:ss.SSSSSS')"
)


@dataclass(frozen=True, slots=True)
class DifferingRows:
    """A frame with a row for each key (or whole row) that differs, as `compare` selects them.

    Besides the key it has `_dq_kind`, the number of rows on each side (`_dq_left`, `_dq_right`), the normal
    forms (`_dq_row_left`, `_dq_row_right`), and the values to show (`_dq_shown_left`, `_dq_shown_right`).
    """

    frame: DataFrame
    pairing: Pairing
    partitioned_by: tuple[ComparedColumn, ...]

    def counts(self) -> Mapping[tuple[str, ...], Mapping[Kind, int]]:
        """Return the number of differing rows by partition and kind."""
        parts = partition_parts(self.partitioned_by)
        rows = (
            self.frame.groupBy(*parts, "_dq_kind")
            .agg(
                *expressions(
                    f"sum(CASE _dq_kind WHEN '{Kind.MISSING}' THEN _dq_left - _dq_right"
                    f" WHEN '{Kind.EXTRA}' THEN _dq_right - _dq_left"
                    f" WHEN '{Kind.CHANGED}' THEN 1L ELSE greatest(_dq_left, _dq_right) END) AS number"
                )
            )
            .collect()
        )
        counts: dict[tuple[str, ...], dict[Kind, int]] = {}
        for row in rows:
            counts.setdefault(value_key(row[: len(parts)]), {})[Kind(row["_dq_kind"])] = row["number"]
        return counts

    def changed_columns(self) -> tuple[tuple[ColumnDifference, ...], tuple[tuple[str, str, int], ...]]:
        """Return all columns with the number of changed rows, what they have in common, and swapped pairs."""
        values = self.pairing.values if self.pairing.key else ()
        changed = self.frame.where(f"_dq_kind = '{Kind.CHANGED}'")
        numbers = _numbers(
            changed, {column.number: column.differs("_dq_row_left", "_dq_row_right") for column in values}
        )
        differing = sorted(
            (column for column in values if numbers[column.number]),
            key=lambda column: -numbers[column.number],
        )
        questions = {
            (column.number, pattern): f"({column.differs('_dq_row_left', '_dq_row_right')}) AND {condition}"
            for column in differing[:_MOST_COLUMNS]
            for pattern, condition in _patterns(column)
        }
        swaps = {
            (first.name, second.name): _swapped(first, second)
            for first, second in combinations(differing[:_MOST_SWAPS], 2)
            if (first.left_type, first.right_type) == (second.left_type, second.right_type)
        }
        counted = _numbers(changed, {**questions, **swaps})
        patterns: dict[int, dict[str, int]] = {}
        for number, pattern in questions:
            if rows := counted[number, pattern]:
                patterns.setdefault(number, {})[pattern] = rows
        swapped = tuple((*pair, counted[pair]) for pair in swaps if counted[pair])
        return column_differences(self.pairing, numbers, patterns), swapped

    def samples(self, kinds: Collection[Kind]) -> Iterator[Difference]:
        """Yield examples of each of these kinds: the same ones for the same data."""
        identity = self.pairing.key or self.pairing.columns
        order = [part for column in identity for part in column.parts]
        parts = partition_parts(self.partitioned_by)
        values = self.pairing.values
        flags = ", ".join(column.differs("_dq_row_left", "_dq_row_right") for column in values) or "FALSE"
        columns = (
            "_dq_kind",
            "_dq_left",
            "_dq_right",
            *parts,
            f"to_json(_dq_shown_left, {_JSON}) AS _dq_left_json",
            f"to_json(_dq_shown_right, {_JSON}) AS _dq_right_json",
            f"array({flags}) AS _dq_flags",
        )
        frames = [
            self.frame.where(f"_dq_kind = '{kind}'")
            .orderBy(*order)
            .limit(MAX_SAMPLES // 4)
            .selectExpr(*columns)
            for kind in Kind
            if kind in kinds
        ]
        key_names = [column.name for column in self.pairing.key]
        for row in reduce(lambda first, second: first.unionByName(second), frames).collect():
            yield self._difference(row, parts, key_names, [column.name for column in values])

    def _difference(
        self, row: SparkRow, parts: Sequence[str], key_names: Sequence[str], value_names: Sequence[str]
    ) -> Difference:
        kind = Kind(row["_dq_kind"])
        left, right = (
            None if row[name] is None else json.loads(row[name])
            for name in ("_dq_left_json", "_dq_right_json")
        )
        present = left if left is not None else right or {}
        key = {name: _short(present.get(name)) for name in key_names}
        names = value_names
        if kind is Kind.CHANGED:
            names = [name for name, flag in zip(value_names, row["_dq_flags"], strict=True) if flag]
        sides = [
            None if side is None or (not rows) else {name: _short(side.get(name)) for name in names}
            for side, rows in ((left, row["_dq_left"]), (right, row["_dq_right"]))
        ]
        partition = partition_of(self.partitioned_by, [row[part] for part in parts])
        return Difference(kind, partition, key, row["_dq_left"], row["_dq_right"], *sides)

    def write(self, folder: str) -> str:
        """Write the differing rows, a folder for each kind, and return the folder.

        Raises ReadError if the executors wrote them elsewhere, and Spark's errors.
        """
        for kind in Kind:
            rows = self.frame.where(f"_dq_kind = '{kind}'")
            if kind in (Kind.MISSING, Kind.EXTRA):
                side = "left" if kind is Kind.MISSING else "right"
                frame = rows.selectExpr(f"_dq_shown_{side}.*", "abs(_dq_left - _dq_right) AS _dq_rows")
            else:
                frame = rows.selectExpr(
                    "_dq_left AS _dq_left_rows",
                    "_dq_right AS _dq_right_rows",
                    "_dq_shown_left AS left",
                    "_dq_shown_right AS right",
                )
            target = f"{folder.rstrip('/')}/{kind}"
            frame.write.mode("overwrite").parquet(target)
            written = count_written(frame, target)
            if isinstance(written, Failure):
                raise ReadError(
                    f"the differing rows are not in {target!r}: {written.message}", "Name that place."
                )
        return folder


def column_differences(
    pairing: Pairing, numbers: Mapping[int, int], patterns: Mapping[int, Mapping[str, int]]
) -> tuple[ColumnDifference, ...]:
    return tuple(
        ColumnDifference(
            column.name,
            column.right_name,
            str(column.left_type).replace("char(1)", "char"),
            str(column.right_type).replace("char(1)", "char"),
            column.equality.compared_as,
            None if column.tolerance is None else str(column.tolerance),
            numbers.get(column.number, 0),
            patterns.get(column.number, {}),
        )
        for column in pairing.columns
    )


def expressions(*texts: str) -> list[Any]:
    """Return SQL expressions as columns."""
    from pyspark.sql.functions import expr

    return [expr(text) for text in texts]


def _short(value: Any) -> Any:
    if isinstance(value, str):
        return value if len(value) <= _MOST_CHARACTERS else f"{value[:_MOST_CHARACTERS]}…"
    text = json.dumps(value, ensure_ascii=False)
    return value if len(text) <= _MOST_CHARACTERS else f"{text[:_MOST_CHARACTERS]}…"


# Conditions counted in one job.
_CHUNK = 200


def _numbers(frame: DataFrame, conditions: Mapping[Any, str]) -> dict[Any, int]:
    """Return the number of rows that fulfil each condition."""
    numbers: Counter[Any] = Counter()
    entries = list(conditions.items())
    for start in range(0, len(entries), _CHUNK):
        chunk = entries[start : start + _CHUNK]
        row = frame.agg(
            *expressions(*(f"count_if({text}) AS c{place}" for place, (_, text) in enumerate(chunk)))
        ).first()
        assert row is not None
        numbers.update({name: row[place] for place, (name, _) in enumerate(chunk)})
    return {name: numbers[name] for name in conditions}


def _patterns(column: ComparedColumn) -> Iterator[tuple[str, str]]:
    """Yield what a changed value can have in common with the other, each with SQL; the first that holds
    counts.
    """
    left, right = f"_dq_row_left.{column.normal}", f"_dq_row_right.{column.normal}"
    nulls = [("NULL on the right", f"{right} IS NULL"), ("NULL on the left", f"{left} IS NULL")]
    family = column.equality.family
    candidates = nulls
    if family is Family.TEXT:
        candidates = [
            ("empty instead of NULL", f"coalesce({left}, '') = coalesce({right}, '')"),
            *nulls,
            ("case or spaces", f"lower(trim({left})) = lower(trim({right}))"),
            ("truncated on the right", f"startswith({left}, {right})"),
            ("truncated on the left", f"startswith({right}, {left})"),
        ]
    elif family is Family.NUMBER:
        rounded = " OR ".join(
            f"round({left}, {digits}) = {right} OR round({right}, {digits}) = {left}" for digits in range(7)
        )
        candidates = [*nulls, ("opposite sign", f"try_add({left}, {right}) = 0"), ("rounded", f"({rounded})")]
    elif family in (Family.TIMESTAMP, Family.MICROSECONDS):
        distance = (
            f"({left} - {right})"
            if family is Family.MICROSECONDS
            else f"timestampdiff(MICROSECOND, {right}, {left})"
        )
        shifted = f"(abs({distance}) <= {14 * 3600}000000L AND {distance} % 900000000L = 0)"
        candidates = [*nulls, ("shifted by a zone's offset", shifted)]
    elif family is Family.ARRAY:
        candidates = [*nulls, ("items in another order", f"array_sort({left}) = array_sort({right})")]
    earlier: list[str] = []
    for pattern, condition in candidates:
        yield (
            pattern,
            " AND ".join(
                [f"coalesce({condition}, FALSE)", *(f"NOT coalesce({text}, FALSE)" for text in earlier)]
            ),
        )
        earlier.append(condition)


def _swapped(first: ComparedColumn, second: ComparedColumn) -> str:
    """Return SQL that is true if the values of two columns changed places."""
    left = [f"_dq_row_left.{column.normal}" for column in (first, second)]
    right = [f"_dq_row_right.{column.normal}" for column in (second, first)]
    equal = " AND ".join(f"{value} <=> {other}" for value, other in zip(left, right, strict=True))
    return f"{equal} AND NOT ({left[0]} <=> {left[1]})"
