"""Sends events beside the work: a thread of its own, which is waited for at the end, and not for long.

Whoever takes the events may be down, slow or hostile: that costs one line on stderr, and changes nothing.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from typing import Any

# What waits beyond this is thrown away: a backend that is slow for hours must not fill the memory.
_MOST_WAITING = 10_000


class EventSender:
    """Events in the order in which they were given. `emit` hands one over, and raises whatever it likes."""

    def __init__(self, emit: Callable[[Any], object]) -> None:
        self._emit = emit
        self._waiting: queue.Queue[Any] = queue.Queue(_MOST_WAITING)
        self._given = self._sent = 0
        self._reason = ""
        self._lock = threading.Lock()
        self._idle = threading.Event()
        self._idle.set()
        self._thread: threading.Thread | None = None

    def send(self, event: Any) -> None:
        """Takes the event, and never waits."""
        with self._lock:
            self._given += 1
            try:
                self._waiting.put_nowait(event)
            except queue.Full:
                return
            self._idle.clear()
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="lineage", daemon=True)
                self._thread.start()

    def close(self, seconds: float) -> str | None:
        """Waits at most so long for what is left, and tells what was not sent and why; None: all was."""
        begun = time.monotonic()
        over = not self._idle.wait(seconds)
        with self._lock:
            missing = self._given - self._sent
            if not missing:
                return None
            waited = f"no answer within {time.monotonic() - begun:.0f} s"
            return f"{missing} of {self._given} events were not sent: {waited if over else self._reason}"

    def _run(self) -> None:
        while True:
            event = self._waiting.get()
            reason = self._try(event)
            with self._lock:
                if reason is None:
                    self._sent += 1
                else:
                    self._reason = reason
                if self._waiting.empty():
                    self._idle.set()

    def _try(self, event: Any) -> str | None:
        try:
            self._emit(event)
        # The one guard around code that is not ours: no error of it may become one of the check. Its words
        # may quote the address, and a key in it.
        except Exception as error:  # noqa: BLE001
            status = getattr(getattr(error, "response", None), "status_code", None)
            return f"HTTP {status}" if status else _said(error)
        return None


def _said(error: Exception) -> str:
    reason = getattr(error, "strerror", None)
    return f"{type(error).__name__}: {reason}" if reason else type(error).__name__
