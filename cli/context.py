"""What a command hands to its operation: settings, clock, registries, and a terminal that hears its notes."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from dq.cli.terminal import output, progress
from dq.operations.runtime import context
from dq.operations.runtime.context import Messages, World


class TerminalMessages(Messages):
    """Notes and progress, on stderr as they come."""

    def note(self, text: str) -> None:
        super().note(text)
        note(text)

    def step(self, what: str) -> AbstractContextManager[None]:
        return output.step(what)

    def progress(self, total: int) -> progress.Progress:
        return progress.Progress(total)

    def program_output(self) -> AbstractContextManager[None]:
        return output.others()


def note(text: str) -> None:
    """A note of an operation, on stderr."""
    output.note(f"dq: {text}")


def here(as_of: str | None = None, paths: Sequence[Path] = ()) -> World:
    """The context of this process, for a command that reads the contracts at `paths`. Raises UsageError."""
    return context.here(as_of, paths, messages=TerminalMessages())
