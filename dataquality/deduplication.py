"""Precedence of rows that repeat a key: the newest or the first by a column is kept, the others break the
key.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dq.contracts.model import Contract, Property, SchemaObject
from dq.contracts.outcome import Location, ReadError, UsageError, suggestion
from dq.contracts.sql import text as sql
from dq.contracts.types import DataType, catalog_type
from dq.dataquality.clauses.clause import Clause, UniqueKey
from dq.dataquality.model.column import Column, resolve, single_columns
from dq.dataquality.model.metric import RepeatedKeys
from dq.dataquality.model.predicate import FLOATS, NUMBERS, TEXTS
from dq.dataquality.spark.measure import select_keys

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_TEXT = re.compile(r"(newest|first) by (\S(?:.*\S)?)")
_HINT = "Write 'newest by COLUMN' or 'first by COLUMN', e.g. 'newest by updated_at'."
# Types with an order. Variants, calendar intervals and unknown types have none.
_ORDERED = NUMBERS | TEXTS | {"boolean", "date", "timestamp", "timestamp_ntz", "binary"}
_NESTED = ("array", "struct")


@dataclass(frozen=True, slots=True)
class Precedence:
    """The row that is kept of those with the same key: the newest or the first (oldest) by `column`.

    NULL is older than every value. Rows that are equal in the column are compared by the partition columns,
    then by all columns in the order of the data, so that the kept row does not depend on files and tasks.
    """

    newest: bool
    column: str

    @staticmethod
    def parse(text: str) -> Precedence:
        """Parse `newest by COLUMN` or `first by COLUMN`. Raises UsageError."""
        match = _TEXT.fullmatch(text.strip())
        if match is None:
            raise UsageError(f"invalid keep {text!r}.", _HINT)
        return Precedence(match[1] == "newest", match[2])

    def __str__(self) -> str:
        return f"{'newest' if self.newest else 'first'} by {self.column}"


@dataclass(frozen=True, slots=True)
class OrderColumn:
    """Column that orders the rows, and its type in the contract."""

    column: Column
    type: DataType


def precedence_column(
    contract: Contract, schema_object: SchemaObject, clauses: Sequence[Clause], precedence: Precedence
) -> OrderColumn:
    """Return the column that orders the rows, by its name or physical name in the contract.

    Raises UsageError if no clause is a key, the contract has no such column, or its type has no order.
    """
    place = f"{contract.id} {schema_object.name}"
    if not any(isinstance(clause.test, UniqueKey) for clause in clauses):
        raise UsageError(
            f"{place}: no primary or unique key is checked, so that '{precedence}' has no effect.",
            "Declare primaryKey or unique in the contract.",
            at=schema_object.locate(),
        )
    by_name: dict[str, tuple[Property, Column]] = {}
    columns = [
        (path[-1], _dotted_name(path), column) for path, column in single_columns(schema_object.properties)
    ]
    for prop, name, column in columns:
        by_name.setdefault(name, (prop, column))
    for prop, _, column in columns:
        by_name.setdefault(str(column), (prop, column))
    if precedence.column not in by_name:
        raise UsageError(
            f"{place}: '{precedence}' names an unknown column {precedence.column!r}.",
            suggestion(precedence.column, by_name, f"Its columns: {', '.join(sorted(by_name))}."),
            at=schema_object.locate(),
        )
    prop, column = by_name[precedence.column]
    _require_order(place, precedence, catalog_type(prop), prop.locate())
    return OrderColumn(column, catalog_type(prop))


def _dotted_name(path: Sequence[Property]) -> str:
    return ".".join(prop.name or prop.column for prop in path)


def _require_order(place: str, precedence: Precedence, kind: DataType, location: Location) -> None:
    if not _is_ordered(kind):
        raise UsageError(
            f"{place}: '{precedence}' is not possible: the column is {kind}, which has no order.",
            "Name a column of a date, timestamp or number.",
            at=location,
        )


def _is_ordered(kind: DataType) -> bool:
    return kind.name in _ORDERED or (kind.name in _NESTED and all(map(_is_ordered, kind.parts)))


@dataclass(frozen=True, slots=True)
class RowOrder:
    """Total order of the rows of a frame with the columns `schema`; only identical rows are equal in it.

    The last row in ascending order takes precedence if `newest`, else the first. NULL is the smallest value.
    """

    newest: bool
    terms: tuple[str, ...]

    @staticmethod
    def for_data(
        contract: Contract,
        schema_object: SchemaObject,
        by: OrderColumn,
        precedence: Precedence,
        schema: DataType,
    ) -> RowOrder:
        """Return the order by the column, then by the partition columns, then by all columns.

        The files of one partition may lack columns of another one. Partition columns come first, so that rows
        of two partitions are in the same order, whichever partition is checked.

        Raises UsageError for a type without order, and ReadError if the data has texts instead of the type in
        the contract, whose order is not that of the values.
        """
        place = f"{contract.id} {schema_object.name}"
        kind = resolve(schema, by.column)
        if isinstance(kind, str):
            raise UsageError(
                f"{place}: '{precedence}' is not possible: {kind}.", "Name a column of the data."
            )
        if kind.name in TEXTS and by.type.name not in TEXTS:
            raise ReadError(
                f"{place}: '{precedence}' is not possible: the data has texts that are not {by.type}.",
                "Correct the values, or the type in the contract.",
            )
        _require_order(place, precedence, kind, schema_object.locate())
        partition_keys = (Column((prop.column,)) for prop in schema_object.partition_keys())
        present = (key for key in partition_keys if isinstance(resolve(schema, key), DataType))
        terms = [by.column.sql(), *(key.sql() for key in present)]
        for name, part in zip(schema.names, schema.parts, strict=True):
            value = sql.name(name)
            terms += [value] if _is_ordered(part) else []
            # Equal in Spark's order, but not the same: 0.0 and -0.0; and maps have only a text.
            terms += [f"CAST({value} AS STRING)"] if _has_floats(part) or not _is_ordered(part) else []
        return RowOrder(precedence.newest, tuple(terms))

    @property
    def value(self) -> str:
        """SQL of a struct with the order of its rows."""
        fields = (f"{sql.text(str(index))}, {term}" for index, term in enumerate(self.terms))
        return f"named_struct({', '.join(fields)})"

    def rank(self, keys: Sequence[Column], applies: str) -> str:
        """Return the SQL of a row's rank among the rows with its key, from 1; NULL unless `applies` is true.

        Rows to which it does not apply are spread over tasks: all rows without a key may be too many for one.
        """
        partition = ", ".join(key.sql() for key in keys)
        direction = "DESC NULLS LAST" if self.newest else "ASC NULLS FIRST"
        order = ", ".join(f"{term} {direction}" for term in self.terms)
        spread = f"CASE WHEN {applies} THEN NULL ELSE spark_partition_id() END"
        window = f"PARTITION BY {partition}, {spread} ORDER BY {order}"
        return f"CASE WHEN {applies} THEN row_number() OVER ({window}) END"

    def best(self, source: DataFrame, clause: Clause, repeated: DataFrame) -> DataFrame:
        """Return the repeated keys (columns 0, 1, …) with `best`, the order of the row that is kept."""
        names = [str(index) for index in range(len(clause.keys))]
        metric = RepeatedKeys(clause.keys, clause.row_filter.where)
        rows = select_keys(source, metric, f"{self.value} AS best").join(repeated, on=names)
        best = f"{'max' if self.newest else 'min'}(best) AS best"
        keys = [sql.name(name) for name in names]
        from pyspark.sql.functions import expr

        return rows.groupBy(*keys).agg(expr(best))

    def is_superseded_by(self, best: str) -> str:
        """Return the SQL predicate that another row, with the order `best`, takes precedence."""
        return f"{self.value} {'<' if self.newest else '>'} {best}"


def _has_floats(kind: DataType) -> bool:
    return kind.name in FLOATS or any(map(_has_floats, kind.parts))
