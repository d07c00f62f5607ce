"""A file that was found or named, why the door for files refuses one, and how both are said."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePath

from dq.contracts.access import open_beneath
from dq.contracts.shared.errors import Unreadable
from dq.contracts.shared.outcome import Finding, Location, mistake

NOT_PLAIN, TOO_LARGE, UNREADABLE = "not-a-plain-file", "file-too-large", "file-unreadable"


class FileRefused(Unreadable):
    """A file that the door does not read; `rule` is the id of the finding that says so."""

    rule = UNREADABLE

    def finding(self, file: str) -> Finding:
        """The same as a finding about the file."""
        return mistake(self.rule, self.message, self.mend, Location(file))


class NotPlain(FileRefused):
    """A link, a device, a FIFO, a socket or a folder, where a file was expected."""

    rule = NOT_PLAIN


class TooLarge(FileRefused):
    """More bytes than the limit."""

    rule = TOO_LARGE


class Absent(FileRefused):
    """There is nothing of that name."""


@dataclass(frozen=True, slots=True)
class Found:
    """A file: the folder that the user named, and the file's name below it, with forward slashes.

    `refused` says why it cannot be read where that is known already.
    """

    root: Path
    name: str
    refused: FileRefused | None = None

    @property
    def path(self) -> Path:
        """The file as the user would name it."""
        return self.root / self.name

    def __str__(self) -> str:
        return shown(self.path)


def shown(path: PurePath | str) -> str:
    """The path as text that any report can hold: bytes that are not UTF-8 become `\\xff`."""
    return str(path).encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def named(path: Path) -> Found:
    """A file that the user named: its folder is his, and the file itself may not be a link."""
    return Found(path.parent, path.name)


@contextmanager
def explained(one: Found, done: str = "read") -> Iterator[None]:
    try:
        yield
    except open_beneath.OutsideFolder as error:
        step = shown(str(error.filename or one.name))
        message = f"{one} is not {done}: {step!r} on its way {error.strerror}."
        raise NotPlain(message, "Put what it leads to in its place, or name that.") from error
    except (FileNotFoundError, NotADirectoryError) as error:
        raise Absent(f"{one} does not exist.", "Check its path.") from error
    except OSError as error:
        raise unreadable(one.path, error, done) from error


def unreadable(path: Path, error: OSError, done: str = "read") -> FileRefused:
    reason = error.strerror or str(error)
    return FileRefused(f"{shown(path)} cannot be {done}: {reason}.", "Check its path and its permissions.")
