"""Messages of operations, and the settings file of a command line: what the two exchange besides arguments.

The command line imports nothing else of the runtime before it has imported its command.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar

CONFIG: ContextVar[str | None] = ContextVar("CONFIG", default=None)
"""File of the global option `--config` during one command line."""


class Messages:
    """Messages of an operation besides its outcome: notes, alerts and progress.

    Notes and alerts are collected in order. The command line shows them immediately, in a subclass.
    """

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.alerts: list[str] = []

    def note(self, text: str) -> None:
        """Add information for the caller that is neither a finding nor an error."""
        self.notes.append(text)

    def finding(self, finding: object) -> None:
        """Report a problem of a contract, which is also in the outcome."""

    def alert(self, text: str) -> None:
        """Add a block of the console channel. Raises OSError if it cannot be shown."""
        self.alerts.append(text)

    def step(self, activity: str) -> AbstractContextManager[None]:  # noqa: ARG002
        """Context manager around an activity that takes time."""
        return nullcontext()

    def progress(self, total: int, activity: str) -> Progress:  # noqa: ARG002
        """Return the progress of an activity on `total` items by concurrent threads, e.g. `checking`."""
        return Progress()

    def program_output(self) -> AbstractContextManager[None]:
        """Context manager around the start of a program that may write to the terminal."""
        return nullcontext()


MESSAGES: ContextVar[Callable[[], Messages]] = ContextVar("MESSAGES", default=Messages)
"""Factory of the messages of each call; a command line sets its terminal for the duration of one command."""


class Progress:
    """Progress of many work items, reported by their threads. This class shows nothing."""

    __slots__ = ()

    def step(self, item: str) -> AbstractContextManager[None]:  # noqa: ARG002
        """Context manager around one item."""
        return nullcontext()

    def close(self) -> None:
        """End the progress."""
