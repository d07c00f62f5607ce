"""A schema for Spark's frames: all clauses in the few passes that `dq check` takes."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from pandera.pyspark import Check, Column, DataFrameSchema

from dq.contracts.model import SchemaObject
from dq.dataquality.check import check
from dq.dataquality.clauses.clause import Clause
from dq.dataquality.clauses.kind import Shelf
from dq.dataquality.local.pandera._verdicts import Verdicts, kept, parts
from dq.dataquality.local.pandera.export import Export
from dq.dataquality.request import Request

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def unable(_one: SchemaObject, _clause: Clause, _kinds: Shelf) -> str | None:
    """None: Spark answers every clause of one frame."""
    return None


def schema(export: Export) -> DataFrameSchema:
    """The schema. Its errors stand in `frame.pandera.errors`, as always with Spark."""

    def measured(frame: DataFrame) -> tuple[Any, None]:
        report = check(Request(export.contract, frame, export.one.name))
        return {result.clause: result for result in report.results}, None

    return DataFrameSchema(**parts(Column, Check, export, partial(_test, Verdicts(measured))))


def _test(verdicts: Verdicts, clause: Clause, first: bool, frame: DataFrame) -> bool:
    results, _ = verdicts.of(frame, first=first)
    return kept(results[clause.path])
