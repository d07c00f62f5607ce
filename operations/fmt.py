"""`dq.fmt`: contracts in their canonical form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dq.contracts.access.discovery import find
from dq.contracts.access.files import FileRefused, Found, read, replace
from dq.contracts.outcome import Unreadable
from dq.contracts.yaml.formatting import Formatted, formatted


@dataclass(frozen=True, slots=True)
class FmtFile:
    """One file. `before` and `after` are None where it stays as it is.

    `reasons` say why it cannot be formatted, and `error` why it could not be written.
    """

    path: str
    before: bytes | None = None
    after: bytes | None = None
    reasons: tuple[str, ...] = ()
    error: FileRefused | None = None


@dataclass(frozen=True, slots=True)
class FmtOutcome:
    """What became of each file, in order; nothing was written with `check`."""

    files: tuple[FmtFile, ...]
    check: bool

    @property
    def changed(self) -> tuple[FmtFile, ...]:
        """Those that were written, or would be."""
        return tuple(file for file in self.files if file.after is not None)

    @property
    def refused(self) -> tuple[FmtFile, ...]:
        """Those that cannot be formatted."""
        return tuple(file for file in self.files if file.reasons)

    @property
    def unwritten(self) -> tuple[FmtFile, ...]:
        """Those that could not be written."""
        return tuple(file for file in self.files if file.error is not None)

    @property
    def exit_code(self) -> int:
        """As `dq fmt` ends: 3 a file could not be written, 1 one cannot be formatted, or would change."""
        if self.unwritten:
            return Unreadable.exit_code
        return 1 if self.refused or (self.check and self.changed) else 0


def fmt(paths: Path | str | Sequence[Path | str] = ".", *, check: bool = False) -> FmtOutcome:
    """Write contracts in their canonical form, as `dq fmt` does; with `check` nothing is written.

    `paths` are files and folders. Values and comments stay as they are; a file that is no YAML is left alone.

    Raises Unreadable for a path that does not exist or holds no contract.
    """
    listed = [paths] if isinstance(paths, Path | str) else paths
    return FmtOutcome(tuple(_formatted(file, check) for file in find(map(Path, listed))), check)


def _formatted(file: Found, check: bool) -> FmtFile:
    try:
        before = read(file)
    except FileRefused as error:
        return FmtFile(str(file), reasons=(str(error.finding(str(file))),))
    made = formatted(before, str(file))
    if not isinstance(made, Formatted):
        return FmtFile(str(file), reasons=tuple(map(str, made)))
    if made.why_not:
        return FmtFile(str(file), reasons=(f"{file}: left as it is: {made.why_not}",))
    if made.data == before:
        return FmtFile(str(file))
    try:
        if not check:
            replace(file, before, made.data)
    except FileRefused as error:
        return FmtFile(str(file), error=error)
    return FmtFile(str(file), before, made.data)
