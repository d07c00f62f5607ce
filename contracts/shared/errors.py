"""Broken promises of the world, as one tree.

A user's mistake in a contract is a `Finding`, never an exception. What stands here is raised when the
world does not answer as it should, always `from` its cause, and the command line turns it into one
sentence and an exit code::

    DqError
    ├── UsageError           2  the command or its configuration cannot be understood
    │   └── MissingTool      2  Java, an extra or a jar is not installed
    ├── Unreadable           3  a path, base, catalog, lake or store could not be read
    │   └── StoreError       3  the state store refused or is of another version
    └── Undeliverable        4  an alert could not be handed over
"""

from __future__ import annotations

from collections.abc import Sequence

from dq.contracts.shared.outcome import Location


class DqError(Exception):
    """What went wrong in the world, and how to mend it.

    `message` says what and where, on one line; `details` are further lines, where there are several things
    wrong; `mend` is one sentence or a command to paste. None of them may hold a secret. `at` is the place in
    a contract that it is about, which `message` begins with; `what` is the rest.
    """

    exit_code = 3

    def __init__(
        self, message: str, mend: str = "", details: Sequence[str] = (), *, at: Location | None = None
    ) -> None:
        super().__init__(message)
        self.what = message
        self.at = at
        self.message = message if at is None else f"{at}: {message}"
        self.mend = mend
        self.details = tuple(details)

    def __str__(self) -> str:
        return " ".join(part for part in (self.message, *self.details, self.mend) if part)


class UsageError(DqError):
    """The command, its options or the configuration cannot be understood."""

    exit_code = 2


class MissingTool(UsageError):
    """Java, an extra of this package or a jar is missing; `mend` is the command that installs it."""


class Unreadable(DqError):
    """Something that had to be read could not be: the answer is unknown, never fine."""


class StoreError(Unreadable):
    """The state store cannot be opened, is locked for too long or has another schema version."""


class Undeliverable(DqError):
    """A notification could not be handed to its channel and will not be tried again by itself."""

    exit_code = 4
