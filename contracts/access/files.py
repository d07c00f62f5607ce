"""The door for files of strangers: reads and writes below a folder that was named.

Whoever opens a pull request chooses what lies in it: links, FIFOs, files of gigabytes. What the user named is
trusted, and may be reached through links; below it no link is followed, nothing but a plain file is opened,
and no more of it is read than the limit.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePath

from dq.contracts.access import open_beneath
from dq.contracts.access.file_refusal import (
    UNREADABLE,
    Absent,
    FileRefused,
    Found,
    NotPlain,
    TooLarge,
    explained,
    named,
    shown,
    unreadable,
)

POLICY_FILE = "dq-policy.yaml"  # where one lies, a registry begins

MAX_BYTES = 5_000_000
"""No contract that a person maintains is larger."""


def listed(folder: Path, endings: tuple[str, ...]) -> list[Found]:
    """The files directly inside a folder that end so, in order. Raises Unreadable for what is no folder."""
    try:
        with open_beneath.folder(folder) as held, os.scandir(held) as entries:
            names = sorted(one.name for one in entries if one.name.endswith(endings))
    except OSError as error:
        raise unreadable(folder, error) from error
    return [Found(folder, name) for name in names]


def read(file: Found | PurePath | str, *, root: Path | None = None, limit: int = MAX_BYTES) -> bytes:
    """The bytes of a plain file, of which there are at most `limit`.

    `file` is what `find` found, a file that the user named, or with `root` a name below that folder, with
    forward slashes. Raises Absent, NotPlain, TooLarge, or FileRefused for what the system does not give.
    """
    one = _found(file, root)
    if one.refused is not None:
        raise one.refused
    with explained(one), _parent(one) as (folder, name):
        _expect_plain(one, open_beneath.look(folder, name))
        return _bytes(one, open_beneath.open_file(folder, name), limit)


def looked_at(folder: open_beneath.Folder, name: str, limit: int) -> bytes:
    """The first `limit` bytes of a plain file in an open folder; of what is none, nothing. Raises OSError."""
    held = open_beneath.open_file(folder, name)
    try:
        seen = os.fstat(held)
        data = bytearray()
        while stat.S_ISREG(seen.st_mode) and len(data) < limit:
            more = os.read(held, min(limit - len(data), max(seen.st_size - len(data), 0) + 1))
            if not more:
                break
            data += more
        return bytes(data)
    finally:
        os.close(held)


def read_own(path: Path) -> bytes:
    """The bytes of a file that is the caller's own, so that it may be a link; else as `read`."""
    one = named(path)
    with explained(one):
        return _bytes(one, os.open(path, os.O_RDONLY | open_beneath.NO_WAIT), MAX_BYTES)


def exists(name: str, root: Path) -> bool:
    """Whether there is anything of this name below the root; a link counts, wherever it leads."""
    one = Found(root, name)
    try:
        with explained(one), _parent(one) as (folder, last):
            open_beneath.look(folder, last)
    except Absent:
        return False
    return True


def replace(file: Found, before: bytes, after: bytes) -> None:
    """Puts other bytes in place of a file's, with its permissions, all or nothing.

    Written beside the file, in the folder that it was read from. Raises FileRefused where the file does not
    hold `before` any more, or cannot be written.
    """
    with explained(file, "written"), _parent(file) as (folder, name):
        was = open_beneath.look(folder, name)
        _expect_plain(file, was)
        if _bytes(file, open_beneath.open_file(folder, name), max(was.st_size, len(before))) != before:
            raise FileRefused(f"{file} was changed by somebody else meanwhile.", "Run the command again.")
        _exchange(folder, name, after, stat.S_IMODE(was.st_mode))


def create(path: Path, data: bytes) -> None:
    """Writes a new file, all or nothing. Raises FileExistsError where anything has its name, a link too."""
    with open_beneath.folder(path.parent) as folder:
        beside = f".dq-{os.urandom(8).hex()}"
        try:
            _write(open_beneath.open_file(folder, beside, _NEW), data)
            _give_name(folder, beside, path.name)
        finally:
            with suppress(OSError):
                open_beneath.remove(folder, beside)


def _give_name(folder: open_beneath.Folder, beside: str, name: str) -> None:
    """Gives a file a second name, which nothing has."""
    try:
        open_beneath.link(folder, beside, name)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        # Some file systems have no second names: the name is taken first, then filled at once.
        os.close(open_beneath.open_file(folder, name, _NEW))
        open_beneath.move(folder, beside, name)


_NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK)


def write(path: Path, data: bytes) -> None:
    """Writes a file that the user named, in place of what it held; folders that lack are made.

    A relative path leads through no link below the working folder: that may be a stranger's checkout.
    Raises FileRefused for a link and for what cannot be written.
    """
    one = named(path)
    steps = path.parent.parts
    inside = not path.is_absolute() and ".." not in steps
    with explained(one, "written"):
        if not inside:
            path.parent.mkdir(parents=True, exist_ok=True)
        root, below = (Path(), steps) if inside else (path.parent, ())
        with open_beneath.folder(root, below, make=inside) as folder:
            held = open_beneath.open_file(folder, path.name, os.O_WRONLY | os.O_CREAT)
            if stat.S_ISREG(os.fstat(held).st_mode):
                os.ftruncate(held, 0)
            _write(held, data)


def publish(path: Path, data: bytes) -> None:
    """Puts a file for other programs in place of what had its name, all at once, so that none reads a half.

    Anybody may read it (0644). The folder must exist. Raises FileRefused for what cannot be written.
    """
    one = named(path)
    with explained(one, "written"), open_beneath.folder(path.parent) as folder:
        _exchange(folder, path.name, data, 0o644)


_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL


def _exchange(folder: open_beneath.Folder, name: str, data: bytes, mode: int) -> None:
    """Puts a file in place of what has the name, all at once; nothing is left beside where that fails."""
    beside = f".dq-{os.urandom(8).hex()}"
    try:
        _write(open_beneath.open_file(folder, beside, _NEW, 0o600), data, mode)
        open_beneath.move(folder, beside, name)
    except OSError:
        with suppress(OSError):
            open_beneath.remove(folder, beside)
        raise


def _found(file: Found | PurePath | str, root: Path | None) -> Found:
    if isinstance(file, Found):
        return file
    return named(Path(file)) if root is None else Found(root, PurePath(file).as_posix())


@contextmanager
def _parent(one: Found) -> Iterator[tuple[open_beneath.Folder, str]]:
    """The open folder that a file lies in, and its name there."""
    *below, name = open_beneath.parts(one.name)
    with open_beneath.folder(one.root, below) as folder:
        yield folder, name


def _bytes(one: Found, held: int, limit: int) -> bytes:
    try:
        seen = os.fstat(held)
        # Asked again: what was looked at may have been exchanged before it was opened.
        _expect_plain(one, seen)
        if seen.st_size > limit:
            raise _too_large(one, limit)
        # The size is only a hint: a file of /proc has none, and another one may grow.
        data = bytearray()
        while more := os.read(held, min(limit + 1 - len(data), max(seen.st_size - len(data), 0) + 65_536)):
            data += more
            if len(data) > limit:
                raise _too_large(one, limit)
        return bytes(data)
    finally:
        os.close(held)


def _write(held: int, data: bytes, mode: int | None = None) -> None:
    with open(held, "wb") as file:
        file.write(data)
        file.flush()
        if mode is not None and hasattr(os, "fchmod"):
            os.fchmod(held, mode)


# What something is that is no plain file -> how to say it, and what to do.
_KINDS: tuple[tuple[Callable[[int], bool], str, str], ...] = (
    (stat.S_ISLNK, "a link", "Put the file itself there, or name the file that it leads to."),
    (stat.S_ISDIR, "a folder", "Give the folder another name, or name the file that is meant."),
    (stat.S_ISFIFO, "a pipe", "Write what it gives into a file, and name that."),
    (stat.S_ISSOCK, "a socket", "Remove it."),
    (stat.S_ISCHR, "a device", "Remove it."),
    (stat.S_ISBLK, "a device", "Remove it."),
)


def _expect_plain(one: Found, seen: os.stat_result) -> None:
    if stat.S_ISREG(seen.st_mode):
        return
    what, mend = next(
        ((what, mend) for test, what, mend in _KINDS if test(seen.st_mode)), ("no plain file", "Remove it.")
    )
    raise NotPlain(f"{one} is {what} and not a file, so it is not read.", mend)


def _too_large(one: Found, limit: int) -> TooLarge:
    return TooLarge(f"{one} has more than {limit:,} bytes.", "Split it into one contract per data product.")
