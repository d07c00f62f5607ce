"""A schema for polars frames."""

from __future__ import annotations

from functools import partial

import polars as pl
from pandera.polars import Check, Column, DataFrameSchema, PolarsData

from dq.contracts.model import SchemaObject
from dq.dataquality.answers.memory import broken
from dq.dataquality.answers.rows import of_arrow
from dq.dataquality.clauses.clause import Clause
from dq.dataquality.clauses.kind import Shelf
from dq.dataquality.local.pandera._verdicts import FrameBroken, Verdicts, in_memory, kept, parts
from dq.dataquality.local.pandera.export import Export, unaskable
from dq.dataquality.model.column import columns


def unable(one: SchemaObject, clause: Clause, kinds: Shelf) -> str | None:
    """Why polars cannot test a clause, or None: it has no maps, and rows in memory answer no queries."""
    for prop, _ in columns(one):
        path = prop.path()
        if prop.map is not None and (clause.path == path or clause.path.startswith(f"{path}.")):
            return "polars has no type for a map"
    return unaskable(one, clause, kinds)


def schema(export: Export) -> DataFrameSchema:
    """The schema; a check of single rows shows which rows break it."""
    verdicts = in_memory(export, lambda frame, promised: of_arrow(frame.collect().to_arrow(), promised))
    return DataFrameSchema(**parts(Column, Check, export, partial(_test, verdicts), built_in=True))


def _test(verdicts: Verdicts, clause: Clause, first: bool, data: PolarsData) -> bool | pl.LazyFrame:
    results, rows = verdicts.of(data.lazyframe, first=first)
    if kept(results[clause.path]):
        return True
    nested = any(kind.is_nested() for kind in data.lazyframe.collect_schema().dtypes())
    found = broken(rows, clause) if clause.limit is None and not nested else None
    if found is None:
        # Nor can it show the rows of a frame with nested columns.
        # A bare False makes pandera 0.35 mix flags and texts in one column of its list of failures.
        raise FrameBroken(results[clause.path].message)
    return pl.LazyFrame({"kept": [not one for one in found]})
