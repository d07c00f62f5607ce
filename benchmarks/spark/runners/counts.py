"""Number of rows of every month, and of NULLs in each column: by a scan, or from file statistics.

The table is open in both cases, as it is once in a check.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.functions import expr

from dq.contracts.access.access_policy import build_access_policy
from dq.dataquality.answers.sources import source_of
from dq.dataquality.answers.statistics import StatisticsRequest
from dq.dataquality.model.column import Column
from dq.dataquality.spark.dataset import Dataset, locate, open_table
from spark import terms
from spark.contract import contract

MONTH = "month"
Counted = dict[str, list[int]]


def build(
    place: str, scale: float, variant: str, session: Any
) -> tuple[tuple[str, ...], Callable[[], list[str]]]:
    document = contract(scale)
    # The contract is that of the table without partitions.
    data = replace(
        locate(
            document,
            document.objects[0],
            None,
            build_access_policy(Path.cwd(), [place], names=["C40_DATA"], environment={"C40_DATA": place}),
        ),
        partitions=(MONTH,),
    )
    frame = open_table(session, data)

    def run() -> list[str]:
        counted = _READERS[variant](frame, data)
        shown = str(sorted(counted.items())).encode()
        run.details = {  # type: ignore[attr-defined]
            "partitions": len(counted),
            "rows": sum(counts[0] for counts in counted.values()),
            "answer": hashlib.sha256(shown).hexdigest()[:16],
        }
        return []

    return (), run


def _scan(frame: DataFrame, _data: Dataset) -> Counted:
    nulls = [expr(f"count(CASE WHEN {column} IS NULL THEN 1 END)") for column in terms.COLUMNS]
    rows = frame.groupBy(MONTH).agg(expr("count(1)"), *nulls).collect()
    return {row[MONTH]: list(row)[1:] for row in rows}


def _statistics(frame: DataFrame, data: Dataset) -> Counted:
    source = source_of(frame, data)
    assert source is not None
    columns = [Column((name,)) for name in terms.COLUMNS]
    files = source(frame, data, (), StatisticsRequest(bounds=frozenset(columns)))
    if files is None:
        raise AssertionError("the files do not say")
    counted: Counted = {}
    for file in files:
        nulls = [file.statistics_of(column).nulls for column in columns]
        assert file.is_complete
        assert None not in nulls
        (month,) = map(str, file.statistics_of(Column((MONTH,))).values or ())
        counts = [file.rows, *(count or 0 for count in nulls)]
        counted[month] = [
            count + other for count, other in zip(counted.get(month, [0] * 17), counts, strict=True)
        ]
    return counted


_READERS = {"scan": _scan, "statistics": _statistics}
