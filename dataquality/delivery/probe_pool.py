"""Concurrent storage probes with time limits."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

from dq.contracts.access.access_policy import is_remote
from dq.lake.storage import MAX_REQUESTS, ArrowFiles, Files, LocalFiles, TimedFiles, load

R = TypeVar("R")

# Roots probed concurrently; limits the number of threads.
_MAX_ROOTS = 64
# Concurrent worker threads, in addition to the first one of each root.
_MAX_WORKERS = MAX_REQUESTS
# A root is probed as long as fewer threads than this are stuck waiting for it.
_MAX_STUCK_THREADS = 4
_POLL_SECONDS = 0.05
# A task may read a log of thousands of files: its time limit is this many times that of one request.
_TASK_TIMEOUT_FACTOR = 60


@dataclass(frozen=True, slots=True)
class ProbeTask(Generic[R]):
    """A probe to run under a root. `probe` reads through the files it is passed, and raises nothing."""

    root: str
    files: Files
    probe: Callable[[TimedFiles], R]


@dataclass(frozen=True, slots=True)
class ProbeTimeout:
    """The probe got no answer within the time limit."""

    problem: str


@dataclass(slots=True)
class ProbePool:
    """Runs probes concurrently, up to `concurrency` per root once the root has answered a first request.

    A request that takes longer than `seconds` is abandoned, and so is a task that takes sixty times as long.
    If the root answered nothing else in the meantime, all its remaining tasks are abandoned too. Reuse the
    pool across ticks: it tracks the roots that do not respond. `unresponsive_roots` are those of this tick.
    """

    seconds: float = 10.0
    concurrency: int = MAX_REQUESTS
    clock: Callable[[], float] = time.monotonic
    unresponsive_roots: set[str] | None = None
    _stuck_threads: dict[str, list[threading.Thread]] = field(default_factory=dict)

    def run(self, tasks: Sequence[ProbeTask[R]]) -> list[R | ProbeTimeout]:
        """Run tasks and return their results in the same order."""
        return _ProbeRun(self, tasks).run()

    def for_tick(self, seconds: float) -> ProbePool:
        """Return this pool for one tick, in which unresponsive roots are not probed a second time."""
        return replace(self, seconds=seconds, unresponsive_roots=set())

    def run_local(self, probes: Sequence[tuple[str, Callable[[], R]]]) -> list[R | ProbeTimeout]:
        """Run probes of local files, given as (root, probe)."""
        return self.run([ProbeTask(root, LocalFiles(), _timed(probe)) for root, probe in probes])

    def is_unresponsive(self, root: str) -> bool:
        """True if the root timed out in this tick, or if too many threads are stuck waiting for it."""
        if self.unresponsive_roots is not None and root in self.unresponsive_roots:
            return True
        stuck = [thread for thread in self._stuck_threads.get(root, ()) if thread.is_alive()]
        self._stuck_threads[root] = stuck
        return len(stuck) >= _MAX_STUCK_THREADS

    def abandon(self, root: str, thread: threading.Thread) -> None:
        """Record a thread that may be stuck waiting for its answer."""
        self._stuck_threads.setdefault(root, []).append(thread)

    def timeout_result(self, root: str) -> ProbeTimeout:
        """Return the result of a task without answer."""
        return ProbeTimeout(f"{root} did not answer within {self.seconds:g} s")


@dataclass(slots=True)
class _Worker:
    """One thread of a queue, with its current task and the files that the task reads."""

    task_index: int = -1
    started_at: float | None = None
    files: TimedFiles | None = None
    abandoned: bool = False
    finished: bool = False
    thread: threading.Thread | None = None

    @property
    def request_started_at(self) -> float | None:
        files = self.files
        return files.pending_since if files is not None else None

    def overdue_since(self, now: float, seconds: float) -> float | None:
        """Return when the overdue request or task began, or None if neither is overdue."""
        requested_at = self.request_started_at
        if requested_at is not None and now - requested_at > seconds:
            return requested_at
        started_at = self.started_at
        return (
            started_at
            if started_at is not None and now - started_at > _TASK_TIMEOUT_FACTOR * seconds
            else None
        )

    @property
    def is_working(self) -> bool:
        return not self.abandoned and not self.finished


@dataclass(slots=True)
class _RootQueue:
    """The pending tasks of one root, and its workers."""

    root: str
    concurrency: int
    pending: deque[int] = field(default_factory=deque)
    workers: list[_Worker] = field(default_factory=list)
    done_at: float | None = None
    failed_since: float | None = None

    def active_workers(self) -> list[_Worker]:
        return [worker for worker in self.workers if worker.is_working]

    def last_answer_at(self) -> float | None:
        """Return when the root answered last, or None if it never did."""
        times = [
            self.done_at,
            *(worker.files.answered_at for worker in self.workers if worker.files is not None),
        ]
        return max((instant for instant in times if instant is not None), default=None)


class _ProbeRun(Generic[R]):
    """All tasks of one call of `ProbePool.run`."""

    def __init__(self, pool: ProbePool, tasks: Sequence[ProbeTask[R]]) -> None:
        self.pool, self.tasks = pool, tasks
        self.results: dict[int, R | ProbeTimeout] = {}
        self.errors: list[BaseException] = []
        self.wakeup = threading.Condition()
        self.queues: dict[str, _RootQueue] = {}
        for index, task in enumerate(tasks):
            if task.root not in self.queues:
                # Local files answer immediately; more threads would not be faster.
                concurrency = 4 if isinstance(task.files, LocalFiles) else pool.concurrency
                self.queues[task.root] = _RootQueue(task.root, concurrency)
            self.queues[task.root].pending.append(index)

    def run(self) -> list[R | ProbeTimeout]:
        upcoming = deque(self._responsive_queues())
        if any(is_remote(queue.root) for queue in upcoming):
            load()
            self._connect()
        active_queues: list[_RootQueue] = []
        with self.wakeup:
            while upcoming or active_queues:
                while upcoming and len(active_queues) < _MAX_ROOTS:
                    active_queues.append(upcoming.popleft())
                    self._start_worker(active_queues[-1])
                self.wakeup.wait(self._wait_seconds(active_queues))
                for queue in active_queues:
                    self._supervise(queue)
                active_queues = [
                    queue
                    for queue in active_queues
                    if queue.active_workers() or (queue.pending and not self.errors)
                ]
        if self.errors:
            raise self.errors[0]
        return [
            self.results[index] if index in self.results else self.pool.timeout_result(task.root)
            for index, task in enumerate(self.tasks)
        ]

    def _connect(self) -> None:
        """Open the file systems of all roots before the first probe.

        No S3 client can be created while a request of another one is in flight, so a bucket that never
        answers would block the first request to any other bucket.
        """
        unconnected = {
            task.root: task.files
            for task in self.tasks
            if isinstance(task.files, ArrowFiles) and not task.files.is_connected(task.root)
        }
        connectors = [
            threading.Thread(target=files.connect, args=(root,), daemon=True)
            for root, files in unconnected.items()
        ]
        for start in range(0, len(connectors), _MAX_ROOTS):
            threads = connectors[start : start + _MAX_ROOTS]
            deadline = time.monotonic() + self.pool.seconds
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(max(0.0, deadline - time.monotonic()))

    def _responsive_queues(self) -> Iterator[_RootQueue]:
        for queue in self.queues.values():
            if self.pool.is_unresponsive(queue.root):
                self._give_up(queue)
            else:
                yield queue

    def _wait_seconds(self, active_queues: list[_RootQueue]) -> float:
        """Return the seconds until a request can be overdue, or few if a queue may start another worker."""
        if any(queue.pending and len(queue.workers) < queue.concurrency for queue in active_queues):
            return _POLL_SECONDS
        now, seconds = self.pool.clock(), self.pool.seconds
        open_requests = [
            worker.request_started_at for queue in active_queues for worker in queue.active_workers()
        ]
        oldest_at = min((started_at for started_at in open_requests if started_at is not None), default=now)
        return max(oldest_at + seconds - now, 0.0) + _POLL_SECONDS

    def _supervise(self, queue: _RootQueue) -> None:
        """Abandon overdue workers and start others, or give up on a root that does not answer at all.

        A root is given up if it has answered nothing since the start of an overdue request or task, or since
        its failure.
        """
        now, failed_since = self.pool.clock(), queue.failed_since
        if failed_since is not None and (queue.last_answer_at() or 0.0) < failed_since:
            self._give_up(queue)
            return
        for worker in queue.active_workers():
            overdue_since = worker.overdue_since(now, self.pool.seconds)
            if overdue_since is None:
                continue
            answered_at = queue.last_answer_at()
            if answered_at is None or answered_at < overdue_since:
                self._give_up(queue)
                return
            self._abandon(queue, worker)
        if queue.pending and (queue.last_answer_at() is not None or not queue.active_workers()):
            free_workers = _MAX_WORKERS - sum(len(other.active_workers()) for other in self.queues.values())
            worker_count = min(
                queue.concurrency - len(queue.active_workers()), len(queue.pending), free_workers
            )
            # A queue without workers gets one even if there are too many in total.
            for _ in range(worker_count if queue.active_workers() else max(worker_count, 1)):
                self._start_worker(queue)

    def _give_up(self, queue: _RootQueue) -> None:
        if self.pool.unresponsive_roots is not None:
            self.pool.unresponsive_roots.add(queue.root)
        for index in queue.pending:
            self.results[index] = self.pool.timeout_result(queue.root)
        queue.pending.clear()
        for worker in queue.active_workers():
            self._abandon(queue, worker)

    def _abandon(self, queue: _RootQueue, worker: _Worker) -> None:
        worker.abandoned = True
        self.results.setdefault(worker.task_index, self.pool.timeout_result(queue.root))
        if worker.thread is not None:
            self.pool.abandon(queue.root, worker.thread)

    def _start_worker(self, queue: _RootQueue) -> None:
        worker = _Worker()
        queue.workers.append(worker)
        # Daemon threads, so that the process can exit while a storage does not respond.
        worker.thread = threading.Thread(target=self._run_worker, args=(queue, worker), daemon=True)
        worker.thread.start()

    def _run_worker(self, queue: _RootQueue, worker: _Worker) -> None:
        try:
            while worker.is_working and (index := _next(queue.pending)) is not None:
                task = self.tasks[index]
                files = TimedFiles(task.files, self.pool.clock, self.pool.seconds)
                worker.task_index, worker.started_at, worker.files = index, self.pool.clock(), files
                answer = task.probe(files)
                if worker.is_working:
                    self.results[index] = answer
                if files.failed_since is not None:
                    # The supervising thread decides whether to probe this root further.
                    queue.failed_since = files.failed_since
                    break
                queue.done_at = self.pool.clock()
        except BaseException as error:  # noqa: BLE001  # raised again in the calling thread
            self.errors.append(error)
        finally:
            worker.finished = True
            with self.wakeup:
                self.wakeup.notify()


def _timed(probe: Callable[[], R]) -> Callable[[TimedFiles], R]:
    return lambda files: files.timed(probe)


def _next(pending: deque[int]) -> int | None:
    try:
        return pending.popleft()
    except IndexError:
        return None
