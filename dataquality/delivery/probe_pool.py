"""Probes of storage side by side, each with a time limit."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

from dq.contracts.access.access_policy import is_remote
from dq.lake.storage import AT_ONCE, ArrowFiles, Files, LocalFiles, TimedFiles, load

R = TypeVar("R")

# More roots than this at once would be more threads than a machine likes.
_MOST_ROOTS = 64
# Threads that ask at once, beside the first one of each root.
_MOST_WORKERS = AT_ONCE
# A root is asked anew as long as fewer threads than this still wait for it.
_MOST_SILENT = 4
_GLANCE_SECONDS = 0.05
# An errand may be a log of thousands of files: it has this many times the time of one answer.
_ERRAND = 60


@dataclass(frozen=True, slots=True)
class Errand(Generic[R]):
    """What is to be found out under a root; `work` asks the files that it is handed, and raises nothing."""

    root: str
    files: Files
    work: Callable[[TimedFiles], R]


@dataclass(frozen=True, slots=True)
class Silence:
    """No answer in time."""

    problem: str


@dataclass(slots=True)
class Lookout:
    """Does errands side by side: `at_once` under each root, as soon as it has answered a first question.

    A question that takes longer than `seconds` is given up, and an errand that takes sixty times as long.
    Where nothing else under the root was answered in the meantime, so is all else there. To be kept from tick
    to tick: it knows which roots are silent. `given_up` are those of this tick.
    """

    seconds: float = 10.0
    at_once: int = AT_ONCE
    clock: Callable[[], float] = time.monotonic
    given_up: set[str] | None = None
    _silent: dict[str, list[threading.Thread]] = field(default_factory=dict)

    def answers(self, errands: Sequence[Errand[R]]) -> list[R | Silence]:
        """What each errand found out, in their order."""
        return _Round(self, errands).run()

    def of_tick(self, seconds: float) -> Lookout:
        """The same one for one tick: a root that was given up once is not asked again."""
        return replace(self, seconds=seconds, given_up=set())

    def bounded(self, asked: Sequence[tuple[str, Callable[[], R]]]) -> list[R | Silence]:
        """What each question of this machine's own files gave, that is asked of a root."""
        return self.answers([Errand(root, LocalFiles(), _timed(question)) for root, question in asked])

    def is_silent(self, root: str) -> bool:
        """Whether it was given up in this tick, or so many threads wait for it that no other one should."""
        if self.given_up is not None and root in self.given_up:
            return True
        waiting = [one for one in self._silent.get(root, ()) if one.is_alive()]
        self._silent[root] = waiting
        return len(waiting) >= _MOST_SILENT

    def leave(self, root: str, thread: threading.Thread) -> None:
        """Keeps a thread that waits for its answer for ever."""
        self._silent.setdefault(root, []).append(thread)

    def silence(self, root: str) -> Silence:
        """What is known of an errand that had no answer."""
        return Silence(f"{root} did not answer within {self.seconds:g} s")


@dataclass(slots=True)
class _Worker:
    """One thread of a lane, the errand that it does, and the files that this one asks."""

    errand: int = -1
    begun_at: float | None = None
    files: TimedFiles | None = None
    left: bool = False
    over: bool = False
    thread: threading.Thread | None = None

    @property
    def asked_at(self) -> float | None:
        files = self.files
        return files.asked_at if files is not None else None

    def overdue_since(self, now: float, seconds: float) -> float | None:
        """When the question or the errand began that has taken too long; None while neither has."""
        asked = self.asked_at
        if asked is not None and now - asked > seconds:
            return asked
        begun = self.begun_at
        return begun if begun is not None and now - begun > _ERRAND * seconds else None

    @property
    def works(self) -> bool:
        return not self.left and not self.over


@dataclass(slots=True)
class _Lane:
    """The errands of one root that nobody has begun, and who works on the others."""

    root: str
    at_once: int
    waiting: deque[int] = field(default_factory=deque)
    workers: list[_Worker] = field(default_factory=list)
    done_at: float | None = None
    failed_since: float | None = None

    def working(self) -> list[_Worker]:
        return [one for one in self.workers if one.works]

    def answered_at(self) -> float | None:
        """When the root answered last."""
        times = [self.done_at, *(one.files.answered_at for one in self.workers if one.files is not None)]
        return max((one for one in times if one is not None), default=None)


class _Round(Generic[R]):
    """All errands of one call."""

    def __init__(self, lookout: Lookout, errands: Sequence[Errand[R]]) -> None:
        self.lookout, self.errands = lookout, errands
        self.found: dict[int, R | Silence] = {}
        self.wrong: list[BaseException] = []
        self.woken = threading.Condition()
        self.lanes: dict[str, _Lane] = {}
        for number, one in enumerate(errands):
            if one.root not in self.lanes:
                # This machine answers at once, and more threads would only take turns.
                at_once = 4 if isinstance(one.files, LocalFiles) else lookout.at_once
                self.lanes[one.root] = _Lane(one.root, at_once)
            self.lanes[one.root].waiting.append(number)

    def run(self) -> list[R | Silence]:
        coming = deque(self._heard())
        if any(is_remote(lane.root) for lane in coming):
            load()
            self._connect()
        active: list[_Lane] = []
        with self.woken:
            while coming or active:
                while coming and len(active) < _MOST_ROOTS:
                    active.append(coming.popleft())
                    self._start(active[-1])
                self.woken.wait(self._pause(active))
                for lane in active:
                    self._look_after(lane)
                active = [lane for lane in active if lane.working() or (lane.waiting and not self.wrong)]
        if self.wrong:
            raise self.wrong[0]
        return [
            self.found[number] if number in self.found else self.lookout.silence(one.root)
            for number, one in enumerate(self.errands)
        ]

    def _connect(self) -> None:
        """Open the file systems of all roots, before any of them is asked.

        S3's client lets no other be made while one of its questions is under way, so that a bucket that never
        answers would hold up one that is asked for the first time.
        """
        closed = {
            errand.root: errand.files
            for errand in self.errands
            if isinstance(errand.files, ArrowFiles) and not errand.files.is_connected(errand.root)
        }
        opening = [
            threading.Thread(target=files.connect, args=(root,), daemon=True)
            for root, files in closed.items()
        ]
        for begin in range(0, len(opening), _MOST_ROOTS):
            threads = opening[begin : begin + _MOST_ROOTS]
            until = time.monotonic() + self.lookout.seconds
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(max(0.0, until - time.monotonic()))

    def _heard(self) -> Iterator[_Lane]:
        for lane in self.lanes.values():
            if self.lookout.is_silent(lane.root):
                self._give_up(lane)
            else:
                yield lane

    def _pause(self, active: list[_Lane]) -> float:
        if any(lane.waiting and len(lane.workers) < lane.at_once for lane in active):
            return _GLANCE_SECONDS
        now, seconds = self.lookout.clock(), self.lookout.seconds
        open_since = [one.asked_at for lane in active for one in lane.working()]
        oldest = min((one for one in open_since if one is not None), default=now)
        return max(oldest + seconds - now, 0.0) + _GLANCE_SECONDS

    def _look_after(self, lane: _Lane) -> None:
        now, failed = self.lookout.clock(), lane.failed_since
        if failed is not None and (lane.answered_at() or 0.0) < failed:
            self._give_up(lane)
            return
        for worker in lane.working():
            asked = worker.overdue_since(now, self.lookout.seconds)
            if asked is None:
                continue
            answered = lane.answered_at()
            if answered is None or answered < asked:
                self._give_up(lane)
                return
            self._leave(lane, worker)
        if lane.waiting and (lane.answered_at() is not None or not lane.working()):
            room = _MOST_WORKERS - sum(len(one.working()) for one in self.lanes.values())
            more = min(lane.at_once - len(lane.working()), len(lane.waiting), room)
            for _ in range(more if lane.working() else max(more, 1)):
                self._start(lane)

    def _give_up(self, lane: _Lane) -> None:
        if self.lookout.given_up is not None:
            self.lookout.given_up.add(lane.root)
        for number in lane.waiting:
            self.found[number] = self.lookout.silence(lane.root)
        lane.waiting.clear()
        for worker in lane.working():
            self._leave(lane, worker)

    def _leave(self, lane: _Lane, worker: _Worker) -> None:
        worker.left = True
        self.found.setdefault(worker.errand, self.lookout.silence(lane.root))
        if worker.thread is not None:
            self.lookout.leave(lane.root, worker.thread)

    def _start(self, lane: _Lane) -> None:
        worker = _Worker()
        lane.workers.append(worker)
        # A process must be able to end while a storage is silent.
        worker.thread = threading.Thread(target=self._work, args=(lane, worker), daemon=True)
        worker.thread.start()

    def _work(self, lane: _Lane, worker: _Worker) -> None:
        try:
            while worker.works and (number := _next(lane.waiting)) is not None:
                errand = self.errands[number]
                files = TimedFiles(errand.files, self.lookout.clock, self.lookout.seconds)
                worker.errand, worker.begun_at, worker.files = number, self.lookout.clock(), files
                answer = errand.work(files)
                if worker.works:
                    self.found[number] = answer
                if files.failed_since is not None:
                    # Whoever looks after the lane decides whether it is worth another question.
                    lane.failed_since = files.failed_since
                    break
                lane.done_at = self.lookout.clock()
        except BaseException as error:  # noqa: BLE001  # whoever waits for the answer raises it
            self.wrong.append(error)
        finally:
            worker.over = True
            with self.woken:
                self.woken.notify()


def _timed(question: Callable[[], R]) -> Callable[[TimedFiles], R]:
    return lambda files: files.timed(question)


def _next(waiting: deque[int]) -> int | None:
    try:
        return waiting.popleft()
    except IndexError:
        return None
