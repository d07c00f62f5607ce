"""How often a family of operations may be called: token buckets, refilled as time goes by."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Rate:
    """So many calls a second in the long run, and `burst` of them at once."""

    per_second: float
    burst: int


@dataclass(slots=True)
class Bucket:
    """A bucket of tokens, full at first; `take` waits until there is one. For many threads."""

    rate: Rate
    clock: Callable[[], float] = time.monotonic
    pause: Callable[[float], None] = time.sleep
    _tokens: float = field(init=False)
    _at: float = field(init=False)
    _lock: threading.Lock = field(init=False, default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self._tokens, self._at = float(self.rate.burst), self.clock()

    def take(self) -> None:
        """Takes one token. Who comes when there is none is served in turn, not all at once."""
        with self._lock:
            now = self.clock()
            self._tokens = min(self.rate.burst, self._tokens + (now - self._at) * self.rate.per_second) - 1
            self._at = now
            wait = -self._tokens / self.rate.per_second
        if wait > 0:
            self.pause(wait)
