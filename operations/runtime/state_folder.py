"""The folder `.dq` below the working folder, which nobody else may prepare, and mounts."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from dq.contracts.access import files
from dq.contracts.access.files import shown
from dq.contracts.shared.outcome import StoreError

# The door for our own state: the folder `.dq` below the working folder, which nobody else may prepare.
#
# What lies there is believed: alerts that wait to be sent, receipts, the catalog. The working folder is
# often a
# checkout of a branch that a stranger proposes, so that a folder that came with it is refused.

FOLDER = ".dq"
STORE = "store.db"

_OURS = "If it came with a checkout, remove it: nobody knows what it holds."
_ELSEWHERE = "A store elsewhere is named by DQ_STORE_URL."
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


def ready(base: Path, tracked: Callable[[Path], bool]) -> Path:
    """The state folder below `base`, made where there is none, for this user only.

    `tracked` says whether Git has a folder in its index. Files that others may read are closed to them.
    Raises StoreError for a folder that is a link, belongs to somebody else or is tracked by Git, and for a
    link inside of it.
    """
    path = base / FOLDER
    with _explained(path):
        try:
            os.mkdir(path, 0o700)
        except FileExistsError:
            with files.open_folder(base, [FOLDER]) as held:
                _vet(path, held)
            if _spelt_otherwise(base) or tracked(path):
                raise StoreError(
                    f"The state folder {shown(path)} is tracked by Git, so that any branch could change it.",
                    f"If it is yours: git rm -r --cached {FOLDER}. {_OURS} {_ELSEWHERE}",
                ) from None
        else:
            with files.open_folder(base, [FOLDER]) as held:
                _ignored_by_git(held)
    return path


def _vet(path: Path, held: files.Folder) -> None:
    """Refuses a folder that somebody else could have filled, and closes it to others."""
    seen = os.stat(held)
    if hasattr(os, "geteuid"):
        me = os.geteuid()
        # Root could do as it likes anyway, and owns the folders that containers mount.
        if seen.st_uid not in (me, 0) or (seen.st_uid != me and seen.st_mode & stat.S_IWOTH):
            raise StoreError(
                f"The state folder {shown(path)} belongs to somebody else, or all may write to it.",
                f"{_OURS} {_ELSEWHERE}",
            )
        if seen.st_uid == me and seen.st_mode & _OTHERS:
            os.chmod(held, stat.S_IMODE(seen.st_mode) & ~_OTHERS)
    with os.scandir(held) as entries:
        for entry in entries:
            # The database's files come and go while other processes work with it.
            with suppress(FileNotFoundError):
                _vet_inner(path, held, entry.name)


def _vet_inner(path: Path, held: files.Folder, name: str) -> None:
    mode = files.look(held, name).st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise StoreError(
            f"{shown(path / name)} is a link, or another thing that dq never puts there.",
            f"{_OURS} {_ELSEWHERE}",
        )
    # An older dq left its files open to all. Where that is not ours to change, the folder is closed.
    if stat.S_ISREG(mode) and mode & _OTHERS:
        with suppress(PermissionError):
            _close_to_others(held, name)


def _close_to_others(held: files.Folder, name: str) -> None:
    file = files.open_file(held, name)
    try:
        if hasattr(os, "fchmod"):
            os.fchmod(file, stat.S_IMODE(os.fstat(file).st_mode) & ~_OTHERS)
    finally:
        os.close(file)


def _spelt_otherwise(base: Path) -> bool:
    """Whether a file system without regard to case gave us a `.DQ`, which Git knows by that name."""
    return os.path.lexists(base / FOLDER.upper()) and FOLDER not in os.listdir(base)


def _ignored_by_git(held: files.Folder) -> None:
    with suppress(FileExistsError):
        file = files.open_file(held, ".gitignore", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            os.write(file, b"*\n")
        finally:
            os.close(file)


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    try:
        yield
    except files.OutsideFolder as error:
        raise StoreError(f"The state folder {shown(path)} is a link.", f"{_OURS} {_ELSEWHERE}") from error
    except OSError as error:
        raise StoreError(
            f"The state folder {shown(path)} cannot be used: {error.strerror}.",
            f"Make {shown(path.parent)} writable. {_ELSEWHERE}",
        ) from error


# Where something is mounted on this machine, as the kernel says; none of it is asked for that.

_LIST = Path("/proc/self/mountinfo")
_OCTAL = re.compile(rb"\\([0-3][0-7]{2})")


def mount_points() -> set[str]:
    """The folders below `/` that are mounts; empty where the system has no such list."""
    try:
        lines = _LIST.read_bytes().splitlines()
    except OSError:
        return set()
    # A space, a tab, a line's end and a backslash stand there by their octal numbers.
    names = (_OCTAL.sub(lambda found: bytes([int(found[1], 8)]), line.split()[4]) for line in lines)
    return {os.fsdecode(name) for name in names} - {"/"}
