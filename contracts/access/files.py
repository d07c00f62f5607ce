"""Safe access to untrusted files: open, read and write below a folder that the user named."""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path, PurePath

from dq.contracts.outcome import Finding, Location, ReadError, UsageError, error_finding

# Opens paths below a folder component by component, so that no link is followed.
#
# Where the system can open relative to an open folder (POSIX), the checked file is the opened file, even if a
# folder is replaced by a link meanwhile. Elsewhere (Windows) real paths are compared instead, which leaves a
# short race: it is assumed that no one else writes into a checkout there.

# Flags that Windows does not have are 0 there.
_FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0)
_NOFOLLOW = getattr(os, "O_NOFOLLOW", 0)

NO_WAIT = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0) | getattr(os, "O_BINARY", 0)
"""Flags for every open call: do not wait for a FIFO without a writer or for a terminal."""

Folder = int | str
"""An open folder (POSIX), or its real path."""


class OutsideFolder(OSError):
    """The path leaves the folder: by a link, by `..`, or by a name of another drive."""


def split_name(name: str) -> tuple[str, ...]:
    """Return the components of a name with forward slashes. Raises OutsideFolder if it leaves the folder."""
    components = tuple(part for part in name.split("/") if part not in ("", "."))
    if name.startswith("/") or ".." in components or not components or "\0" in name:
        raise OutsideFolder(errno.EINVAL, "is not a name inside the folder", name)
    if os.name == "nt" and any(":" in part or "\\" in part for part in components):
        raise OutsideFolder(errno.EINVAL, "is not a name inside the folder", name)
    return components


@contextmanager
def open_folder(root: Path, components: Sequence[str] = (), *, make: bool = False) -> Iterator[Folder]:
    """Open the folder at this path below the root for the block. `make`: create missing folders.

    The root itself may be reached through links. Raises OSError; OutsideFolder if a component below the root
    is a link.
    """
    if not _can_open_relative():
        yield _real_folder(root, components, make)
        return
    descriptor = os.open(root, _FOLDER)
    try:
        for name in components:
            inner = _open_component(descriptor, name, make)
            os.close(descriptor)
            descriptor = inner
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def open_subfolder(outer: Folder, name: str) -> Iterator[Folder]:
    """Open a direct subfolder of an open folder for the block."""
    if isinstance(outer, str):
        yield _real_folder(Path(outer), [name], False)
        return
    descriptor = _open_component(outer, name, False)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _relative_names(folder: Folder, *names: str) -> tuple[int | None, list[str]]:
    """Return the descriptor for `dir_fd`, or None if the folder is a path, and the names or paths."""
    if isinstance(folder, str):
        return None, [os.path.join(folder, name) for name in names]
    return folder, list(names)


def stat_entry(folder: Folder, name: str) -> os.stat_result:
    """Return the status of an entry; links are not followed."""
    descriptor, (path,) = _relative_names(folder, name)
    return os.stat(path, dir_fd=descriptor, follow_symlinks=False)


def open_file(folder: Folder, name: str, flags: int = os.O_RDONLY, mode: int = 0o666) -> int:
    """Open a file directly in an open folder, without following a link and without blocking.

    The caller must check the result with `os.fstat`: the name may refer to another file by now.
    """
    flags |= _NOFOLLOW | NO_WAIT
    try:
        if isinstance(folder, str):
            return _open_checked(folder, name, flags, mode)
        return os.open(name, flags, mode, dir_fd=folder)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EMLINK):
            raise OutsideFolder(error.errno, "is a link", name) from error
        raise


def move(folder: Folder, old: str, new: str) -> None:
    """Rename a file in an open folder, replacing any file of the new name."""
    descriptor, (source, target) = _relative_names(folder, old, new)
    os.replace(source, target, src_dir_fd=descriptor, dst_dir_fd=descriptor)


def hard_link(folder: Folder, old: str, new: str) -> None:
    """Create a hard link in an open folder. Raises FileExistsError if the name exists."""
    descriptor, (source, target) = _relative_names(folder, old, new)
    # Windows can only follow links.
    os.link(source, target, src_dir_fd=descriptor, dst_dir_fd=descriptor, follow_symlinks=descriptor is None)


def remove(folder: Folder, name: str) -> None:
    """Delete a file in an open folder."""
    descriptor, (path,) = _relative_names(folder, name)
    os.unlink(path, dir_fd=descriptor)


def _can_open_relative() -> bool:
    return os.open in os.supports_dir_fd and bool(_NOFOLLOW)


def _open_component(outer: int, name: str, make: bool) -> int:
    if make:
        with suppress(FileExistsError):
            os.mkdir(name, dir_fd=outer)
    try:
        return os.open(name, _FOLDER | _NOFOLLOW, dir_fd=outer)
    except OSError as error:
        # A link raises ELOOP or ENOTDIR, depending on the system.
        if error.errno in (errno.ELOOP, errno.EMLINK, errno.ENOTDIR) and _is_link(outer, name):
            raise OutsideFolder(errno.ELOOP, "is a link", name) from error
        raise


def _is_link(folder: Folder, name: str) -> bool:
    try:
        return stat.S_ISLNK(stat_entry(folder, name).st_mode)
    except OSError:
        return False


def _real_folder(root: Path, components: Sequence[str], make: bool) -> str:
    current = os.path.realpath(root)
    for name in components:
        inner = os.path.join(current, name)
        if make:
            os.makedirs(inner, exist_ok=True)
        # `islink` does not detect junctions, but real paths resolve them.
        if not _is_real_path(inner):
            raise OutsideFolder(errno.ELOOP, "is a link", name)
        current = inner
    if not os.path.isdir(current):
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), current)
    return current


def _is_real_path(path: str) -> bool:
    return os.path.normcase(os.path.realpath(path)) == os.path.normcase(path)


def _open_checked(folder: str, name: str, flags: int, mode: int) -> int:
    path = os.path.join(folder, name)
    if os.path.lexists(path) and not _is_real_path(path):
        raise OutsideFolder(errno.ELOOP, "is a link", name)
    descriptor = os.open(path, flags, mode)
    if not os.path.samestat(os.fstat(descriptor), os.lstat(path)):
        os.close(descriptor)
        raise OutsideFolder(errno.ELOOP, "was replaced while it was being opened", name)
    return descriptor


# References to files, and errors for files that are not read.

NOT_REGULAR, TOO_LARGE, UNREADABLE = "not-a-plain-file", "file-too-large", "file-unreadable"


class FileRejected(ReadError):
    """A file that is not read; `rule` is the id of the finding about it."""

    rule = UNREADABLE

    def finding(self, file: str) -> Finding:
        """Return the error as a finding about the file."""
        return error_finding(self.rule, self.message, self.hint, Location(file))


class NotARegularFile(FileRejected):
    """A link, a device, a FIFO, a socket or a folder instead of a file."""

    rule = NOT_REGULAR


class TooLarge(FileRejected):
    """More bytes than the limit."""

    rule = TOO_LARGE


class FileMissing(FileRejected):
    """The file does not exist."""


@dataclass(frozen=True, slots=True)
class FileRef:
    """A file: the folder that the user named, and the file's name below it, with forward slashes.

    `rejection` is the reason why it cannot be read, or None if it is not known to be unreadable.
    """

    root: Path
    name: str
    rejection: FileRejected | None = None

    @property
    def path(self) -> Path:
        """Path of the file as the user would name it."""
        return self.root / self.name

    def __str__(self) -> str:
        return printable_path(self.path)


def printable_path(path: PurePath | str) -> str:
    """Return the path as printable text: bytes that are not UTF-8 become `\\xff`."""
    return str(path).encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def is_json(file: str) -> bool:
    """Return True if the file is JSON by its name. JSON is YAML too, but not vice versa."""
    return file.lower().endswith(".json")


def file_ref(path: Path) -> FileRef:
    """Return a file that the user named: its folder is trusted, and the file itself may not be a link."""
    return FileRef(path.parent, path.name)


@contextmanager
def translate_errors(file: FileRef, action: str = "read") -> Iterator[None]:
    try:
        yield
    except OutsideFolder as error:
        step = printable_path(str(error.filename or file.name))
        message = f"{file} is not {action}: {step!r} in its path {error.strerror}."
        raise NotARegularFile(message, "Replace it with its target, or pass the target.") from error
    except (FileNotFoundError, NotADirectoryError) as error:
        raise FileMissing(f"{file} does not exist.", "Check its path.") from error
    except OSError as error:
        raise file_error(file.path, error, action) from error


def file_error(path: Path, error: OSError, action: str = "read") -> FileRejected:
    reason = error.strerror or str(error)
    return FileRejected(
        f"{printable_path(path)} cannot be {action}: {reason}.", "Check its path and its permissions."
    )


# Safe reads and writes below a folder that the user named.
#
# The author of a pull request controls its content: links, FIFOs, files of gigabytes. The folder that the
# user named is trusted, and may be reached through links; below it no link is followed, only regular files
# are opened, and at most the limit is read.

POLICY_FILE = "dq-policy.yaml"  # marks the root of a registry

MAX_BYTES = 5_000_000
"""No contract that a person maintains is larger."""


def list_files(folder: Path, suffixes: tuple[str, ...]) -> list[FileRef]:
    """Return the files directly in a folder with these suffixes, sorted. Raises ReadError if it is not a
    folder.
    """
    try:
        with open_folder(folder) as open_root, os.scandir(open_root) as entries:
            names = sorted(entry.name for entry in entries if entry.name.endswith(suffixes))
    except OSError as error:
        raise file_error(folder, error) from error
    return [FileRef(folder, name) for name in names]


def read(file: FileRef | PurePath | str, *, root: Path | None = None, limit: int = MAX_BYTES) -> bytes:
    """Return the bytes of a regular file of at most `limit` bytes.

    `file` is a result of `find`, a file that the user named, or with `root` a name below that folder, with
    forward slashes. Raises FileMissing, NotARegularFile, TooLarge, or FileRejected for other errors.
    """
    ref = _as_ref(file, root)
    if ref.rejection is not None:
        raise ref.rejection
    with translate_errors(ref), _open_parent(ref) as (folder, name):
        return _read_entry(ref, folder, name, limit)


def read_each(files: Iterable[FileRef]) -> Iterator[bytes | FileRejected]:
    """Yield the bytes of each file, or why it cannot be read, as `read`.

    A folder with several consecutive files is opened only once.
    """
    for ref, folder in _with_folders(files):
        yield _read_or_rejection(ref, folder)


def file_stamps(files: Iterable[FileRef]) -> Iterator[str]:
    """Yield for each file what the system changes whenever it is written: a file with the same stamp has the
    same content.

    The stamp is "" if that is not certain: for a file that cannot be opened, one that was changed in the last
    three seconds, since the clock of a file system may be so coarse, and on Windows.
    """
    since = time.time_ns() - _COARSEST_CLOCK
    for ref, folder in _with_folders(files):
        yield "" if folder is None or os.name == "nt" else _stamp(folder, ref, since)


_COARSEST_CLOCK = 3_000_000_000


def _stamp(folder: Folder, ref: FileRef, since: int) -> str:
    with suppress(OSError):
        status = stat_entry(folder, ref.name.rpartition("/")[2])
        # Whoever restores the time of the content changes that of the entry.
        if stat.S_ISREG(status.st_mode) and max(status.st_mtime_ns, status.st_ctime_ns) < since:
            return (
                f"{status.st_dev} {status.st_ino} {status.st_size} {status.st_mtime_ns} {status.st_ctime_ns}"
            )
    return ""


def _with_folders(files: Iterable[FileRef]) -> Iterator[tuple[FileRef, Folder | None]]:
    """Yield each file with its open folder, or None if that cannot be opened."""
    for parent, siblings in groupby(files, key=_parent):
        with ExitStack() as stack:
            folder = None
            if parent is not None:
                with suppress(OSError):
                    folder = stack.enter_context(open_folder(*parent))
            for ref in siblings:
                yield ref, folder


def _parent(ref: FileRef) -> tuple[Path, tuple[str, ...]] | None:
    """Return the folder of a file as a root and the components below it, or None for a rejected file."""
    with suppress(OSError):
        return None if ref.rejection is not None else (ref.root, split_name(ref.name)[:-1])
    return None


def _read_or_rejection(ref: FileRef, folder: Folder | None) -> bytes | FileRejected:
    """Read a file of an open folder. If that fails, it is read by its path, which tells the reason."""
    try:
        if folder is not None:
            with suppress(OSError):
                return _read_entry(ref, folder, split_name(ref.name)[-1], MAX_BYTES)
        return read(ref)
    except FileRejected as rejection:
        return rejection


def _read_entry(ref: FileRef, folder: Folder, name: str, limit: int) -> bytes:
    _require_regular_file(ref, stat_entry(folder, name))
    return _read_limited(ref, open_file(folder, name), limit)


def read_prefix(folder: Folder, name: str, limit: int) -> bytes:
    """Return the first `limit` bytes of a regular file in an open folder, else b"". Raises OSError."""
    descriptor = open_file(folder, name)
    try:
        status = os.fstat(descriptor)
        data = bytearray()
        while stat.S_ISREG(status.st_mode) and len(data) < limit:
            # Up to the stated size, and a byte more: the file may have grown since.
            expected = max(status.st_size - len(data), 0) + 1
            chunk = os.read(descriptor, min(limit - len(data), expected))
            if not chunk:
                break
            data += chunk
        return bytes(data)
    finally:
        os.close(descriptor)


def read_own(path: Path) -> bytes:
    """Return the bytes of a trusted file: as `read` with its default limit, but links are followed."""
    ref = file_ref(path)
    with translate_errors(ref):
        return _read_limited(ref, os.open(path, os.O_RDONLY | NO_WAIT), MAX_BYTES)


def exists(name: str, root: Path) -> bool:
    """Return True if the name exists below the root; a link counts, even a broken one."""
    ref = FileRef(root, name)
    try:
        with translate_errors(ref), _open_parent(ref) as (folder, last):
            stat_entry(folder, last)
    except FileMissing:
        return False
    return True


def replace(file: FileRef, expected: bytes, data: bytes) -> None:
    """Atomically replace the content of a file, keeping its permissions.

    Raises FileRejected if the content is no longer `expected`, or the file cannot be written.
    """
    with translate_errors(file, "written"), _open_parent(file) as (folder, name):
        status = stat_entry(folder, name)
        _require_regular_file(file, status)
        if _read_limited(file, open_file(folder, name), max(status.st_size, len(expected))) != expected:
            raise FileRejected(f"{file} was changed by another process meanwhile.", "Run the command again.")
        _replace_atomically(folder, name, data, stat.S_IMODE(status.st_mode))


def create(path: Path, data: bytes) -> None:
    """Atomically create a new file. Raises FileExistsError if the name exists, even as a link."""
    with open_folder(path.parent) as folder:
        temporary_name = f".dq-{os.urandom(8).hex()}"
        try:
            _write(open_file(folder, temporary_name, _CREATE_NEW), data)
            _publish_name(folder, temporary_name, path.name)
        finally:
            with suppress(OSError):
                remove(folder, temporary_name)


def private_folder(path: Path) -> Path:
    """Create a folder that only this user can enter, or use an empty one. Raises UsageError for others."""
    try:
        path.mkdir(0o700, parents=True, exist_ok=True)
        path.chmod(0o700)
        is_empty = next(path.iterdir(), None) is None
    except OSError as error:
        raise UsageError(f"{path} cannot be used: {error.strerror}.", "Pass another folder.") from error
    if not is_empty:
        raise UsageError(f"{path} is not empty.", "Pass a new folder.")
    return path


def create_private(path: Path, data: bytes) -> None:
    """Create a new file that only this user can read. Raises FileExistsError if the name exists."""
    with open_folder(path.parent) as folder:
        _write(open_file(folder, path.name, _CREATE_NEW, 0o600), data)


def _publish_name(folder: Folder, temporary_name: str, name: str) -> None:
    """Give the temporary file its final name, which must not exist."""
    try:
        hard_link(folder, temporary_name, name)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        # Some file systems do not support hard links: reserve the name first, then replace it.
        os.close(open_file(folder, name, _CREATE_NEW))
        move(folder, temporary_name, name)


_NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK)


def write(path: Path, data: bytes) -> None:
    """Overwrite a file that the user named; missing folders are created.

    A relative path may not contain links below the working folder, which may be an untrusted checkout.
    Raises FileRejected for a link, or if the file cannot be written.
    """
    ref = file_ref(path)
    parents = path.parent.parts
    is_relative = not path.is_absolute() and ".." not in parents
    with translate_errors(ref, "written"):
        if not is_relative:
            path.parent.mkdir(parents=True, exist_ok=True)
        # Each of the `components` is opened without following links; `root` may be or contain a link.
        root, components = (Path(), parents) if is_relative else (path.parent, ())
        with open_folder(root, components, make=is_relative) as folder:
            descriptor = open_file(folder, path.name, os.O_WRONLY | os.O_CREAT)
            # Pipes and devices cannot be truncated.
            if stat.S_ISREG(os.fstat(descriptor).st_mode):
                os.ftruncate(descriptor, 0)
            _write(descriptor, data)


def publish(path: Path, data: bytes) -> None:
    """Atomically replace a file that other programs read, with mode 0644.

    The folder must exist. Raises FileRejected if the file cannot be written.
    """
    ref = file_ref(path)
    with translate_errors(ref, "written"), open_folder(path.parent) as folder:
        _replace_atomically(folder, path.name, data, 0o644)


# A folder that only this user can access, for what dq wrote itself and reads again.


@contextmanager
def open_private(path: Path) -> Iterator[Folder]:
    """Open a folder for the block that belongs to this user, without access of others; created if missing.

    Raises OSError: OutsideFolder for a link, PermissionError for a folder of another user or open to others.
    """
    if not os.path.lexists(path):
        existing = next(folder for folder in path.absolute().parents if folder.exists())
        # With `sudo`, the home folder may be that of another user, who could not use what root creates there.
        if hasattr(os, "geteuid") and os.geteuid() == 0 and existing.stat().st_uid != 0:
            raise PermissionError(errno.EPERM, "belongs to another user", str(existing))
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with suppress(FileExistsError):
            os.mkdir(path, 0o700)
    with open_folder(path.parent, [path.name]) as folder:
        _require_private(os.stat(folder), str(path), stat.S_IRWXG | stat.S_IRWXO)
        yield folder


def read_private(folder: Folder, name: str, limit: int) -> bytes:
    """Return the bytes of a regular file of this user in a folder of `open_private`.

    Raises OSError: PermissionError if another user owns it or can write it; FileRejected for other files and
    for more than `limit` bytes.
    """
    descriptor = open_file(folder, name)
    try:
        _require_private(os.fstat(descriptor), name, stat.S_IWGRP | stat.S_IWOTH)
    except OSError:
        os.close(descriptor)
        raise
    return _read_limited(FileRef(Path(), name), descriptor, limit)


def write_private(folder: Folder, name: str, data: bytes, total: int) -> None:
    """Atomically replace a file in a folder of `open_private`, then delete the oldest files above `total`
    bytes. Raises OSError.
    """
    _replace_atomically(folder, name, data, 0o600)
    with os.scandir(folder) as entries:
        names = [entry.name for entry in entries if entry.name != name]
    size = len(data)
    for status, other in sorted(
        ((stat_entry(folder, other), other) for other in names),
        key=lambda pair: pair[0].st_mtime_ns,
        reverse=True,
    ):
        size += status.st_size
        if size > total and stat.S_ISREG(status.st_mode):
            remove(folder, other)


def _require_private(status: os.stat_result, name: str, forbidden: int) -> None:
    # Windows has neither owners nor modes here: its caches are in the user's profile.
    if hasattr(os, "geteuid") and (status.st_uid != os.geteuid() or status.st_mode & forbidden):
        raise PermissionError(errno.EPERM, "belongs to another user or is open to others", name)


_CREATE_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL


def _replace_atomically(folder: Folder, name: str, data: bytes, mode: int) -> None:
    """Atomically replace a file; the temporary file is deleted on failure."""
    temporary_name = f".dq-{os.urandom(8).hex()}"
    try:
        _write(open_file(folder, temporary_name, _CREATE_NEW, 0o600), data, mode)
        move(folder, temporary_name, name)
    except OSError:
        with suppress(OSError):
            remove(folder, temporary_name)
        raise


def _as_ref(file: FileRef | PurePath | str, root: Path | None) -> FileRef:
    if isinstance(file, FileRef):
        return file
    return file_ref(Path(file)) if root is None else FileRef(root, PurePath(file).as_posix())


@contextmanager
def _open_parent(ref: FileRef) -> Iterator[tuple[Folder, str]]:
    """Open the folder of a file, and return it with the file's name there."""
    *components, name = split_name(ref.name)
    with open_folder(ref.root, components) as folder:
        yield folder, name


def _read_limited(ref: FileRef, descriptor: int, limit: int) -> bytes:
    try:
        status = os.fstat(descriptor)
        # Checked again, because the file may have been replaced before it was opened.
        _require_regular_file(ref, status)
        if status.st_size > limit:
            raise _too_large(ref, limit)
        # The size is only a hint: files in /proc have none, and others may grow.
        data = bytearray()
        while chunk := os.read(
            descriptor, min(limit + 1 - len(data), max(status.st_size - len(data), 0) + 65_536)
        ):
            data += chunk
            if len(data) > limit:
                raise _too_large(ref, limit)
        return bytes(data)
    finally:
        os.close(descriptor)


def _write(descriptor: int, data: bytes, mode: int | None = None) -> None:
    with open(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        if mode is not None and hasattr(os, "fchmod"):
            os.fchmod(descriptor, mode)


# Test for a kind of file that is not regular -> its name, and a hint.
_KINDS: tuple[tuple[Callable[[int], bool], str, str], ...] = (
    (stat.S_ISLNK, "a link", "Replace it with the file itself, or pass the file it points to."),
    (stat.S_ISDIR, "a folder", "Rename the folder, or pass the intended file."),
    (stat.S_ISFIFO, "a pipe", "Write its output to a file, and pass that."),
    (stat.S_ISSOCK, "a socket", "Remove it."),
    (stat.S_ISCHR, "a device", "Remove it."),
    (stat.S_ISBLK, "a device", "Remove it."),
)


def _require_regular_file(ref: FileRef, status: os.stat_result) -> None:
    if stat.S_ISREG(status.st_mode):
        return
    kind, hint = next(
        ((kind, hint) for test, kind, hint in _KINDS if test(status.st_mode)),
        ("not a regular file", "Remove it."),
    )
    raise NotARegularFile(f"{ref} is {kind}, not a file, and is not read.", hint)


def _too_large(ref: FileRef, limit: int) -> TooLarge:
    return TooLarge(f"{ref} has more than {limit:,} bytes.", "Split it into one contract per data product.")
