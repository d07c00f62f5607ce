"""A schema for pandas frames."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from pandera.pandas import Check, Column, DataFrameSchema

from dq.dataquality.answers.memory import broken
from dq.dataquality.answers.rows import of_pandas
from dq.dataquality.clauses.clause import Clause
from dq.dataquality.local.pandera._verdicts import Verdicts, in_memory, kept, parts
from dq.dataquality.local.pandera.export import Export, unaskable

if TYPE_CHECKING:
    import pandas as pd

unable = unaskable


def schema(export: Export) -> DataFrameSchema:
    """The schema; a check of single rows shows which rows break it."""
    test = partial(_test, in_memory(export, of_pandas))
    return DataFrameSchema(**parts(Column, Check, export, test, built_in=True), unique_column_names=True)


def _test(verdicts: Verdicts, clause: Clause, first: bool, frame: pd.DataFrame) -> bool | pd.Series[bool]:
    import pandas as pd

    results, rows = verdicts.of(frame, first=first)
    if kept(results[clause.path]):
        return True
    found = broken(rows, clause) if clause.limit is None else None
    return False if found is None else pd.Series([not one for one in found], index=frame.index, dtype=bool)
