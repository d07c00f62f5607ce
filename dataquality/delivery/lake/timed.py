"""Files that tell since when a question to their storage has been waiting for its answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from dq.dataquality.delivery.lake.files import Files, Seen

R = TypeVar("R")


@dataclass(slots=True)
class TimedFiles:
    """The same files; `asked_at` is the clock's seconds at which the question began that is open, or None."""

    files: Files
    clock: Callable[[], float]
    asked_at: float | None = None
    answered_at: float | None = field(default=None)

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

    def _asked(self, question: Callable[[str], R], path: str) -> R:
        self.asked_at = self.clock()
        try:
            return question(path)
        finally:
            self.asked_at, self.answered_at = None, self.clock()
