"""How far many pieces of work are, on stderr: one line that is rewritten, or one line per finished piece."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from dq.cli.terminal import output


@dataclass(slots=True)
class Progress:
    """Told by many threads what begins and ends; `total` is how many pieces there are."""

    total: int
    clock: Callable[[], float] = time.monotonic
    live: bool = field(default_factory=output.is_live)
    _running: list[str] = field(default_factory=list)
    _done: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @contextmanager
    def step(self, what: str) -> Iterator[None]:
        """One piece, from its beginning to its end, however it ends."""
        begun = self.clock()
        with self._lock:
            self._running.append(what)
            self._draw()
        try:
            yield
        finally:
            with self._lock:
                self._running.remove(what)
                self._done += 1
                if not self.live:
                    output.note(f"  done: checking {what} ({self.clock() - begun:.1f} s)")
                self._draw()

    def close(self) -> None:
        """Wipes the line, so that what follows stands alone."""
        if self.live:
            output.live("")

    def _draw(self) -> None:
        if self.live:
            output.live(f"  … {self._done} of {self.total} checked; now {', '.join(self._running)}")
