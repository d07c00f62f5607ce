"""One function over many values, in several processes where that pays, with a collector that stays out."""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")

# Below this, starting processes takes longer than they save.
WORTH_IT = 200
_CHUNK = 25

# In a forked process: the function that it was made for.
_work: list[Callable[[object], object]] = []


def parallel_map(values: Sequence[T], work: Callable[[T], R], processes: int) -> list[R]:
    """`work` of every value, in order.

    Processes are only used for many values, and only where the system can fork safely: `work` and all that
    it holds are inherited and not copied, and only results cross between processes. What `work` raises is
    raised here.
    """
    with quiet_collector():
        if processes < 2 or len(values) < WORTH_IT or not _can_fork():
            return [work(value) for value in values]
        return list(_shared_out(values, work, processes))


def _can_fork() -> bool:
    """On Linux, and while no thread could hold a lock that the child would wait for."""
    return sys.platform == "linux" and threading.active_count() == 1


def _shared_out(values: Sequence[T], work: Callable[[T], R], processes: int) -> Iterator[R]:
    # Imported here: starting up costs more than a single contract does.
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    _work[:] = [work]  # type: ignore[list-item]  # what goes in comes back out with the same types
    # What the first one imports, the others inherit.
    yield work(values[0])
    chunks = [values[start : start + _CHUNK] for start in range(1, len(values), _CHUNK)]
    try:
        with ProcessPoolExecutor(processes, get_context("fork")) as pool:
            for results in pool.map(_chunk, chunks):
                yield from results  # type: ignore[misc]  # see above
    finally:
        _work.clear()


def _chunk(values: Sequence[object]) -> list[object]:
    return [_work[0](value) for value in values]


@contextmanager
def quiet_collector() -> Iterator[None]:
    """The cycle collector runs seldom: contracts are trees, which go when they are let go.

    With its usual thresholds it looks at every contract several times, a third of the whole cost.
    """
    before = gc.get_threshold()
    gc.set_threshold(200_000, 20, 100)
    try:
        yield
    finally:
        gc.set_threshold(*before)
