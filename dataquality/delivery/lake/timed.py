"""Files that tell since when a question to their storage has been waiting for its answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from dq.dataquality.delivery.lake.files import Files, Seen

R = TypeVar("R")


@dataclass(slots=True)
class TimedFiles:
    """The same files, with what the clock said: `asked_at` when the question began that is open, and
    `answered_at` when the last one was answered. `failed_since` is when one began that failed after more than
    half of `seconds`: a storage's own client has given up waiting.
    """

    files: Files
    clock: Callable[[], float]
    seconds: float
    asked_at: float | None = None
    answered_at: float | None = None
    failed_since: float | None = None

    def stat(self, path: str) -> Seen | None:
        return self._asked(self.files.stat, path)

    def inside(self, path: str) -> list[Seen]:
        return self._asked(self.files.inside, path)

    def read(self, path: str) -> bytes:
        return self._asked(self.files.read, path)

    def folders(self, path: str) -> list[str]:
        return self._asked(self.files.folders, path)

    def holds(self, path: str) -> bool:
        return self._asked(self.files.holds, path)

    def root(self, path: str) -> str:
        return self._asked(self.files.root, path)

    def nothing(self, path: str) -> bool:
        return self._asked(self.files.nothing, path)

    def timed(self, question: Callable[[], R]) -> R:
        """What a question of one's own gave, that is no longer than one to these files."""
        return self._asked(lambda _: question(), "")

    def _asked(self, question: Callable[[str], R], path: str) -> R:
        self.asked_at = asked = self.clock()
        try:
            answer = question(path)
        except BaseException:
            if self.clock() - asked > self.seconds / 2:
                self.failed_since = asked
            else:
                self.answered_at = self.clock()
            raise
        else:
            self.answered_at = self.clock()
            return answer
        finally:
            self.asked_at = None
