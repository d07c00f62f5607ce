"""Rows in memory with their types, from any frame that Arrow understands."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dq.contracts.types import DataType
from dq.dataquality.model.column import field
from dq.lake.types import arrow_type, from_arrow

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Rows:
    """The types of the columns (a struct), and each row as values of Python by the columns' names."""

    schema: DataType
    cells: tuple[Mapping[str, object], ...]


def of_arrow(table: pa.Table, promised: DataType) -> Rows:
    """The rows of an Arrow table. A column of nothing but NULL has the promised type, as it shows none.

    Nanoseconds are cut to microseconds, which is what Spark keeps.
    """
    return _rows(((name, table.column(at)) for at, name in enumerate(table.column_names)), promised)


def of_pandas(frame: pd.DataFrame, promised: DataType) -> Rows:
    """The rows of a pandas frame. NaN is NULL, but in columns with a type of Arrow, which know both.

    A column whose values have no common type is of the type "mixed", which carries no promise.
    """
    return _rows(((str(name), _series(frame.iloc[:, at])) for at, name in enumerate(frame.columns)), promised)


def to_pandas(rows: Rows) -> pd.DataFrame:
    """The rows as a pandas frame with types of Arrow, which keep NULL and NaN apart."""
    import pandas as pd
    import pyarrow as pa

    kinds = zip(rows.schema.names, rows.schema.parts, strict=True)
    arrays = [pa.array([cells[name] for cells in rows.cells], type=arrow_type(kind)) for name, kind in kinds]
    return pa.table(arrays, names=list(rows.schema.names)).to_pandas(types_mapper=pd.ArrowDtype)


def _series(series: pd.Series[Any]) -> pa.ChunkedArray | pa.Array | list[object]:
    import pyarrow as pa

    try:
        return pa.Array.from_pandas(series)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
        return [None if value is None or value != value else value for value in series]


def _rows(columns: Iterable[tuple[str, Any]], promised: DataType) -> Rows:
    names, types, values = [], [], []
    for name, column in columns:
        kind, listed = _column(column)
        names.append(name)
        types.append((field(promised, name) or kind) if kind.name == "void" else kind)
        values.append(listed)
    cells = tuple(dict(zip(names, row, strict=True)) for row in zip(*values, strict=True))
    return Rows(DataType("struct", (), tuple(types), tuple(names)), cells)


def _column(column: Any) -> tuple[DataType, list[object]]:
    import pyarrow as pa

    if isinstance(column, list):
        return DataType("mixed"), column
    try:
        return from_arrow(column.type), _microseconds(column).to_pylist()
    except (ValueError, OverflowError, pa.ArrowInvalid):
        # Instants that no datetime of Python can hold.
        return DataType("mixed"), [None] * len(column)


def _microseconds(column: Any) -> Any:
    import pyarrow as pa

    if pa.types.is_timestamp(column.type) and column.type.unit == "ns":
        return column.cast(pa.timestamp("us", column.type.tz), safe=False)
    return column
