"""What a frame reads, where it is one table and nothing else, as Spark's own objects tell it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

T = TypeVar("T")


def relation(frame: DataFrame, kind: str) -> Any | None:
    """The leaf of the frame's plan when it is of this class and nothing but names stands above it.

    A view that filters, renames or joins has more, and what is known of its table is not true of its rows.
    """
    plan: Any = frame._jdf.queryExecution().analyzed()
    while plan.getClass().getSimpleName() == "SubqueryAlias":
        plan = plan.child()
    return plan if plan.getClass().getSimpleName() == kind else None


def cached(frame: DataFrame) -> bool:
    """Whether Spark answers from rows that it keeps: these may be older than the files."""
    level = frame.storageLevel
    return bool(level.useMemory or level.useDisk or level.useOffHeap)


def certain(question: Callable[[], T]) -> T | None:
    """What the question gives; None when Spark or the table's format cannot answer, whatever the reason.

    The format's own classes change with its version: a method that is gone is no answer either.
    """
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # has no stubs
    from pyspark.errors import PySparkException

    try:
        return question()
    except (PySparkException, Py4JError):
        return None
