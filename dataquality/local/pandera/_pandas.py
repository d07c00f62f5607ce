"""A schema for pandas frames."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from pandera.pandas import Check, Column, DataFrameSchema

from dq.contracts.columns import row_type
from dq.dataquality.clauses.clause import Clause
from dq.dataquality.local.offline.answers import broken
from dq.dataquality.local.offline.rows import Rows, of_pandas
from dq.dataquality.local.pandera._verdicts import Verdicts, kept, parts, results_of
from dq.dataquality.local.pandera.export import Export, unaskable

if TYPE_CHECKING:
    import pandas as pd

unable = unaskable


def schema(export: Export) -> DataFrameSchema:
    """The schema; a check of single rows shows which rows break it."""
    promised = row_type(export.one)

    def measured(frame: pd.DataFrame) -> tuple[Any, Rows]:
        rows = of_pandas(frame, promised)
        return results_of(rows, export.clauses, export.kinds), rows

    verdicts = Verdicts(measured)
    made = parts(Column, Check, export, partial(_test, verdicts))
    return DataFrameSchema(**made, unique_column_names=True)


def _test(verdicts: Verdicts, clause: Clause, first: bool, frame: pd.DataFrame) -> bool | pd.Series[bool]:
    import pandas as pd

    results, rows = verdicts.of(frame, first=first)
    if kept(results[clause.path]):
        return True
    found = broken(rows, clause) if clause.limit is None else None
    return False if found is None else pd.Series([not one for one in found], index=frame.index, dtype=bool)
