"""The door for files of strangers: opens, reads and writes below a folder that was named."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path, PurePath

from dq.contracts.outcome import Finding, Location, Unreadable, mistake

# Opening what lies below a folder, one component after another, so that no link on the way is followed.
#
# Where the system opens relative to an open folder (POSIX), what is checked is what is opened, also when
# somebody exchanges a folder for a link meanwhile. Elsewhere (Windows) real paths are compared instead,
# which leaves such an exchange a moment: nobody else writes into a checkout there.

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
def open_folder(root: Path, below: Sequence[str] = (), *, make: bool = False) -> Iterator[Folder]:
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


def _named_in(at: Folder, *names: str) -> tuple[int | None, list[str]]:
    """The descriptor that names in a folder are relative to, where it is open, and the names."""
    if isinstance(at, str):
        return None, [os.path.join(at, name) for name in names]
    return at, list(names)


def look(at: Folder, name: str) -> os.stat_result:
    """What stands there; a link is not followed."""
    held, (path,) = _named_in(at, name)
    return os.stat(path, dir_fd=held, follow_symlinks=False)


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
    held, (source, target) = _named_in(at, old, new)
    os.replace(source, target, src_dir_fd=held, dst_dir_fd=held)


def link(at: Folder, old: str, new: str) -> None:
    """Gives a file in an open folder a second name there. Raises FileExistsError where anything has it."""
    held, (source, target) = _named_in(at, old, new)
    # Windows has no other way than to follow.
    os.link(source, target, src_dir_fd=held, dst_dir_fd=held, follow_symlinks=held is None)


def remove(at: Folder, name: str) -> None:
    """Takes a file out of an open folder."""
    held, (path,) = _named_in(at, name)
    os.unlink(path, dir_fd=held)


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


# A file that was found or named, why the door for files refuses one, and how both are said.

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
    except OutsideFolder as error:
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


# The door for files of strangers: reads and writes below a folder that was named.
#
# Whoever opens a pull request chooses what lies in it: links, FIFOs, files of gigabytes. What the user
# named is trusted, and may be reached through links; below it no link is followed, nothing but a plain file
# is opened, and no more of it is read than the limit.

POLICY_FILE = "dq-policy.yaml"  # where one lies, a registry begins

MAX_BYTES = 5_000_000
"""No contract that a person maintains is larger."""


def listed(folder: Path, endings: tuple[str, ...]) -> list[Found]:
    """The files directly inside a folder that end so, in order. Raises Unreadable for what is no folder."""
    try:
        with open_folder(folder) as held, os.scandir(held) as entries:
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
        _expect_plain(one, look(folder, name))
        return _bytes(one, open_file(folder, name), limit)


def looked_at(folder: Folder, name: str, limit: int) -> bytes:
    """The first `limit` bytes of a plain file in an open folder; of what is none, nothing. Raises OSError."""
    held = open_file(folder, name)
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
        return _bytes(one, os.open(path, os.O_RDONLY | NO_WAIT), MAX_BYTES)


def exists(name: str, root: Path) -> bool:
    """Whether there is anything of this name below the root; a link counts, wherever it leads."""
    one = Found(root, name)
    try:
        with explained(one), _parent(one) as (folder, last):
            look(folder, last)
    except Absent:
        return False
    return True


def replace(file: Found, before: bytes, after: bytes) -> None:
    """Puts other bytes in place of a file's, with its permissions, all or nothing.

    Written beside the file, in the folder that it was read from. Raises FileRefused where the file does not
    hold `before` any more, or cannot be written.
    """
    with explained(file, "written"), _parent(file) as (folder, name):
        was = look(folder, name)
        _expect_plain(file, was)
        if _bytes(file, open_file(folder, name), max(was.st_size, len(before))) != before:
            raise FileRefused(f"{file} was changed by somebody else meanwhile.", "Run the command again.")
        _exchange(folder, name, after, stat.S_IMODE(was.st_mode))


def create(path: Path, data: bytes) -> None:
    """Writes a new file, all or nothing. Raises FileExistsError where anything has its name, a link too."""
    with open_folder(path.parent) as folder:
        beside = f".dq-{os.urandom(8).hex()}"
        try:
            _write(open_file(folder, beside, _NEW), data)
            _give_name(folder, beside, path.name)
        finally:
            with suppress(OSError):
                remove(folder, beside)


def _give_name(folder: Folder, beside: str, name: str) -> None:
    """Gives a file a second name, which nothing has."""
    try:
        link(folder, beside, name)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        # Some file systems have no second names: the name is taken first, then filled at once.
        os.close(open_file(folder, name, _NEW))
        move(folder, beside, name)


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
        with open_folder(root, below, make=inside) as folder:
            held = open_file(folder, path.name, os.O_WRONLY | os.O_CREAT)
            if stat.S_ISREG(os.fstat(held).st_mode):
                os.ftruncate(held, 0)
            _write(held, data)


def publish(path: Path, data: bytes) -> None:
    """Puts a file for other programs in place of what had its name, all at once, so that none reads a half.

    Anybody may read it (0644). The folder must exist. Raises FileRefused for what cannot be written.
    """
    one = named(path)
    with explained(one, "written"), open_folder(path.parent) as folder:
        _exchange(folder, path.name, data, 0o644)


_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL


def _exchange(folder: Folder, name: str, data: bytes, mode: int) -> None:
    """Puts a file in place of what has the name, all at once; nothing is left beside where that fails."""
    beside = f".dq-{os.urandom(8).hex()}"
    try:
        _write(open_file(folder, beside, _NEW, 0o600), data, mode)
        move(folder, beside, name)
    except OSError:
        with suppress(OSError):
            remove(folder, beside)
        raise


def _found(file: Found | PurePath | str, root: Path | None) -> Found:
    if isinstance(file, Found):
        return file
    return named(Path(file)) if root is None else Found(root, PurePath(file).as_posix())


@contextmanager
def _parent(one: Found) -> Iterator[tuple[Folder, str]]:
    """The open folder that a file lies in, and its name there."""
    *below, name = parts(one.name)
    with open_folder(one.root, below) as folder:
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
