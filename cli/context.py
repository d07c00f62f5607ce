"""What a command hands to its operation: settings, clock, registries, and a terminal that shows its notes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from functools import partial
from pathlib import Path

from dq.cli.terminal import output, progress
from dq.operations.runtime import context
from dq.operations.runtime.context import MESSAGES, Messages, World, instant


class TerminalMessages(Messages):
    """Notes, alerts and progress as they come: on stderr, or alerts where `show` writes."""

    def __init__(self, show: Callable[[str], object] = output.aside) -> None:
        super().__init__()
        self._show = show

    def note(self, text: str) -> None:
        super().note(text)
        note(text)

    def alert(self, text: str) -> None:
        # Imported here: most commands send none.
        from dq.cli.shown.alerts import painted

        super().alert(text)
        painted(self._show)(text)

    def step(self, what: str) -> AbstractContextManager[None]:
        return output.step(what)

    def progress(self, total: int) -> progress.Progress:
        return progress.Progress(total)

    def program_output(self) -> AbstractContextManager[None]:
        return output.others()


def alerts_are_results() -> None:
    """From now on, this command line shows alerts on stdout."""
    MESSAGES.set(partial(TerminalMessages, output.block))


def note(text: str) -> None:
    """A note of an operation, on stderr."""
    output.note(f"dq: {text}")


def at(as_of: str | None) -> datetime | None:
    """The instant of `--as-of`, None without it. Raises UsageError for what is none."""
    return instant(as_of) if as_of else None


def here(as_of: str | None = None, paths: Sequence[Path] = ()) -> World:
    """The context of this process, for a command that reads the contracts at `paths`. Raises UsageError."""
    return context.here(as_of, paths, messages=TerminalMessages())
