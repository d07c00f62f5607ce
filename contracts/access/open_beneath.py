"""Opening what lies below a folder, one component after another, so that no link on the way is followed.

Where the system opens relative to an open folder (POSIX), what is checked is what is opened, also when
somebody exchanges a folder for a link meanwhile. Elsewhere (Windows) real paths are compared instead, which
leaves such an exchange a moment: nobody else writes into a checkout there.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

# What Windows does not have is nothing to ask for there.
_FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0)
_NOFOLLOW = getattr(os, "O_NOFOLLOW", 0)

NO_WAIT = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0) | getattr(os, "O_BINARY", 0)
"""For every file that is opened: a FIFO without a writer, or a terminal, must not be waited for."""

Folder = int | str
"""An open folder (POSIX), or the real path of one."""


class OutsideFolder(OSError):
    """The way leaves the folder: by a link, by `..`, or by a name that stands for another disk."""


def parts(name: str) -> tuple[str, ...]:
    """The components of a name with forward slashes. Raises OutsideFolder for one that leads elsewhere."""
    found = tuple(part for part in name.split("/") if part not in ("", "."))
    if name.startswith("/") or ".." in found or not found or "\0" in name:
        raise OutsideFolder(errno.EINVAL, "is no name below the folder", name)
    if os.name == "nt" and any(":" in part or "\\" in part for part in found):
        raise OutsideFolder(errno.EINVAL, "is no name below the folder", name)
    return found


@contextmanager
def folder(root: Path, below: Sequence[str] = (), *, make: bool = False) -> Iterator[Folder]:
    """The folder at this way below the root, open for the block. `make`: what lacks on the way is made.

    The root itself may be reached through links. Raises OSError, of which OutsideFolder says that a component
    below the root is a link.
    """
    if not _can_open_beside():
        yield _real(root, below, make)
        return
    held = os.open(root, _FOLDER)
    try:
        for name in below:
            inner = _inner(held, name, make)
            os.close(held)
            held = inner
        yield held
    finally:
        os.close(held)


@contextmanager
def inside(outer: Folder, name: str) -> Iterator[Folder]:
    """A folder directly inside of an open one, open for the block."""
    if isinstance(outer, str):
        yield _real(Path(outer), [name], False)
        return
    held = _inner(outer, name, False)
    try:
        yield held
    finally:
        os.close(held)


def look(at: Folder, name: str) -> os.stat_result:
    """What stands there; a link is not followed."""
    if isinstance(at, str):
        return os.lstat(os.path.join(at, name))
    return os.stat(name, dir_fd=at, follow_symlinks=False)


def open_file(at: Folder, name: str, flags: int = os.O_RDONLY, mode: int = 0o666) -> int:
    """The file directly inside of an open folder, not through a link and without waiting for anybody.

    Whoever calls asks `os.fstat` what it got: the name may stand for another file by now.
    """
    flags |= _NOFOLLOW | NO_WAIT
    try:
        if isinstance(at, str):
            return _opened(at, name, flags, mode)
        return os.open(name, flags, mode, dir_fd=at)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EMLINK):
            raise OutsideFolder(error.errno, "is a link", name) from error
        raise


def move(at: Folder, old: str, new: str) -> None:
    """Gives a file in an open folder another name there, in place of whatever has that name."""
    if isinstance(at, str):
        os.replace(os.path.join(at, old), os.path.join(at, new))
    else:
        os.replace(old, new, src_dir_fd=at, dst_dir_fd=at)


def link(at: Folder, old: str, new: str) -> None:
    """Gives a file in an open folder a second name there. Raises FileExistsError where anything has it."""
    if isinstance(at, str):
        os.link(os.path.join(at, old), os.path.join(at, new))
    else:
        os.link(old, new, src_dir_fd=at, dst_dir_fd=at, follow_symlinks=False)


def remove(at: Folder, name: str) -> None:
    """Takes a file out of an open folder."""
    if isinstance(at, str):
        os.unlink(os.path.join(at, name))
    else:
        os.unlink(name, dir_fd=at)


def _can_open_beside() -> bool:
    return os.open in os.supports_dir_fd and bool(_NOFOLLOW)


def _inner(outer: int, name: str, make: bool) -> int:
    if make:
        with suppress(FileExistsError):
            os.mkdir(name, dir_fd=outer)
    try:
        return os.open(name, _FOLDER | _NOFOLLOW, dir_fd=outer)
    except OSError as error:
        # A link gives ELOOP or ENOTDIR, by the system.
        if error.errno in (errno.ELOOP, errno.EMLINK, errno.ENOTDIR) and _is_link(outer, name):
            raise OutsideFolder(errno.ELOOP, "is a link", name) from error
        raise


def _is_link(at: Folder, name: str) -> bool:
    try:
        return stat.S_ISLNK(look(at, name).st_mode)
    except OSError:
        return False


def _real(root: Path, below: Sequence[str], make: bool) -> str:
    here = os.path.realpath(root)
    for name in below:
        inner = os.path.join(here, name)
        if make:
            os.makedirs(inner, exist_ok=True)
        # Junctions are no links to `islink`; a real path knows them.
        if not _leads_to_itself(inner):
            raise OutsideFolder(errno.ELOOP, "is a link", name)
        here = inner
    if not os.path.isdir(here):
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), here)
    return here


def _leads_to_itself(path: str) -> bool:
    return os.path.normcase(os.path.realpath(path)) == os.path.normcase(path)


def _opened(at: str, name: str, flags: int, mode: int) -> int:
    path = os.path.join(at, name)
    if os.path.lexists(path) and not _leads_to_itself(path):
        raise OutsideFolder(errno.ELOOP, "is a link", name)
    held = os.open(path, flags, mode)
    if not os.path.samestat(os.fstat(held), os.lstat(path)):
        os.close(held)
        raise OutsideFolder(errno.ELOOP, "was exchanged while it was opened", name)
    return held
