"""Metrics that are asked together, and apart where that fails."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from dq.dataquality.model.answer import Answer, Failure
from dq.dataquality.model.metric import Metric
from dq.dataquality.spark.error_redaction import answered
from dq.dataquality.spark.time_limit import Watch

M = TypeVar("M", bound=Metric)
# Of a failed aggregation at most so many halves are tried: with one broken column that is plenty for a
# thousand metrics, and on a table that is broken everywhere it ends soon.
MAX_HALVES = 64


def halved(
    metrics: tuple[M, ...], watch: Watch, ask: Callable[[tuple[M, ...]], list[Answer]]
) -> dict[Metric, Answer]:
    """Asks all at once; where that fails, halves, until those that have no answer stand alone."""
    answers: dict[Metric, Answer] = {}
    stack, failed = [metrics], 0
    while stack:
        asked = stack.pop()
        if watch.over:
            answers |= dict.fromkeys(asked, watch.failure())
            continue
        values = answered(lambda asked=asked: ask(asked))  # type: ignore[misc]  # bound at once
        if not isinstance(values, Failure):
            answers |= dict(zip(asked, values, strict=True))
            continue
        failed += 1
        if len(asked) == 1 or failed > MAX_HALVES or watch.over:
            answers |= dict.fromkeys(asked, values)
        else:
            middle = len(asked) // 2
            stack += [asked[middle:], asked[:middle]]
    return answers
