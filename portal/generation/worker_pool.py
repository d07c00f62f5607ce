"""The processes that share the work of a build; none but this one where there is little."""

from __future__ import annotations

import copyreg
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context, parent_process
from multiprocessing.process import BaseProcess
from types import MappingProxyType, TracebackType
from typing import Any, TypeVar

from dq.contracts.shared.outcome import Unreadable

T = TypeVar("T")
R = TypeVar("R")

_WORTH_IT = 4
"""Fewer pieces are done sooner than processes start."""


def _frozen(held: dict[Any, Any]) -> MappingProxyType[Any, Any]:
    return MappingProxyType(held)


# What is frozen in facts, such as the subjects of an incident, goes to other processes as well.
copyreg.pickle(MappingProxyType, lambda held: (_frozen, (dict(held),)))


def _end_with_parent() -> None:
    """Ends this process with the one that started it, also where that was killed: its lock is free then, and
    another build may be writing."""
    parent = parent_process()
    if parent is not None:
        threading.Thread(target=_wait_and_end, args=(parent,), daemon=True).start()


def _wait_and_end(parent: BaseProcess) -> None:
    parent.join()
    os._exit(1)


class Crew:
    """So many processes, which start when there is enough to do for them."""

    def __init__(self, workers: int) -> None:
        self._workers = workers
        self._pool: ProcessPoolExecutor | None = None

    def __enter__(self) -> Crew:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=kind is None, cancel_futures=True)

    def each(self, work: Callable[[T], R], pieces: Sequence[T]) -> Iterator[R]:
        """What `work` gives for each piece, in order. Both must be picklable.

        Raises Unreadable where one of the processes is killed.
        """
        if self._workers < 2 or (self._pool is None and len(pieces) < _WORTH_IT):
            yield from map(work, pieces)
            return
        if self._pool is None:
            # A process that is forked beside a database driver's threads may hang; a new one cannot.
            context = get_context("spawn")
            self._pool = ProcessPoolExecutor(self._workers, mp_context=context, initializer=_end_with_parent)
        started = [self._pool.submit(work, piece) for piece in pieces]
        try:
            for number, one in enumerate(started):
                yield one.result()
                # What was given is not held: there may be a hundred thousand of them.
                started[number] = one.__class__()
        except BrokenProcessPool:
            raise Unreadable(
                "A process that helps to build the portal was ended from outside.",
                "The system may have lacked memory. Build with one process: taskset -c 0 dq portal build …",
            ) from None
