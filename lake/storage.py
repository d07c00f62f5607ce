"""Local and remote files of a lake: listing, bounded reading and timing."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NoReturn, Protocol, TypeVar

from dq.contracts.access.access_policy import FAMILIES, AccessPolicy, is_remote
from dq.contracts.access.files import NO_WAIT
from dq.contracts.install import install_command
from dq.contracts.outcome import DqError, MissingTool, ReadError, suggestion

if TYPE_CHECKING:
    from pyarrow.fs import FileInfo, FileSystem


# Single entry point for file systems behind a URI; they are opened by scheme and host only.
#
# pyarrow reads connection settings, including endpoint and credentials, from a URI's query, and file names in
# a lake may contain a `?`. Callers pass locations that an `AccessPolicy` allows or that Spark has listed.

# Azure puts the container where other schemes have user and password.
_URI = re.compile(
    r"([A-Za-z][A-Za-z0-9+.\-]+)://((?:[A-Za-z0-9$._\-]+@)?[A-Za-z0-9._\-]*(?::[0-9]+)?)(/.*)?", re.DOTALL
)
_WITH_CONTAINER = frozenset({"abfs", "abfss"})
MAX_REQUESTS = 32
"""Maximum number of concurrent requests to a storage."""


def hint_for(error: Exception, otherwise: str) -> str:
    """Return a hint for an access error; HDFS needs more than pyarrow, whose errors do not say what."""
    # Later attempts in a process raise another error, which also names libjvm or libhdfs.
    if not re.search("lib(jvm|hdfs)", str(error)):
        return otherwise
    return (
        "HDFS needs a JVM and Hadoop's native client: on a cluster node, export JAVA_HOME, "
        "HADOOP_HOME and CLASSPATH=$(hadoop classpath --glob)."
    )


def split(uri: str) -> tuple[str, str]:
    """Split a URI into scheme and host, as `file_system` takes them, and the unescaped path.

    Raises ValueError if it is not a file system address or contains a user.
    """
    match = _URI.fullmatch(uri)
    if match is None or ("@" in match[2] and match[1].lower() not in _WITH_CONTAINER):
        raise ValueError("not a file system URI")
    scheme = match[1].lower()
    # pyarrow knows only one scheme for S3.
    return f"{FAMILIES.get(scheme, scheme)}://{match[2]}", match[3] or ""


def load() -> None:
    """Import pyarrow's file systems if installed, so that the import does not count in a storage's response
    time.
    """
    with suppress(ImportError):
        import pyarrow.fs  # noqa: F401  # warms the import cache


def file_system(root: str, seconds: float | None = None) -> tuple[FileSystem, str]:
    """Return the file system of a scheme and host, and the prefix of each path in it.

    Uses the credentials of the environment.

    Args:
        seconds: Timeout of an S3 request, divided among two attempts.

    Raises:
        MissingTool: pyarrow is not installed.
        ValueError: The scheme is unknown.
        OSError: The file system cannot be reached.
    """
    try:
        from pyarrow import fs, io_thread_count, set_io_thread_count
    except ImportError as error:
        raise MissingTool(f"{root} needs pyarrow, which is not installed.", install_command("s3")) from error
    # pyarrow's default of eight IO threads limits concurrent requests to eight. The S3 client takes its
    # number of connections from it when it is created.
    set_io_thread_count(max(io_thread_count(), MAX_REQUESTS))
    system, prefix = fs.FileSystem.from_uri(f"{root}/")
    if seconds is not None and isinstance(system, fs.S3FileSystem):
        # The default client waits for minutes, even when the process exits.
        make, (options,) = system.__reduce__()
        retries = fs.AwsStandardS3RetryStrategy(max_attempts=2)
        half = seconds / 2
        system = make(
            {**options, "connect_timeout": half, "request_timeout": half, "retry_strategy": retries}
        )
    return system, prefix.rstrip("/")


# Access to single paths of a lake. Times are those of the storage's own clock.

MOST_READ = 128 * 1024 * 1024
"""Limit in bytes; a larger file is not a table log, or cannot be read at every tick."""


@dataclass(frozen=True, slots=True)
class FileStat:
    """A file: its name in its folder, its size in bytes, and its modification time in UTC.

    `mark` (inode and ctime, which programs cannot set) distinguishes a local file from a replacement with the
    same modification time. Empty for storages without it.
    """

    name: str
    size: int
    modified_at: datetime
    mark: str = field(default="", compare=False)

    @property
    def identity(self) -> str:
        """Text that changes if the file is replaced or rewritten, even if its modification time is reset."""
        return "\n".join((self.name, str(self.size), self.modified_at.isoformat(), self.mark))


class Files(Protocol):
    """Access to a storage. Every method raises ReadError if the storage does not answer."""

    def stat(self, path: str) -> FileStat | None:
        """Return the file at a path, or None if there is none."""
        ...

    def inside(self, path: str) -> list[FileStat]:
        """Return the files directly in a folder; empty if it does not exist."""
        ...

    def below(self, path: str) -> list[FileStat]:
        """Return the files in a folder and its subfolders, except hidden ones; empty if it does not exist."""
        ...

    def read(self, path: str) -> bytes:
        """Return the content of a table log file of at most `MOST_READ` bytes."""
        ...

    def folders(self, path: str) -> list[str]:
        """Return the names of the folders directly in a folder; empty if it does not exist."""
        ...

    def entries(self, path: str) -> tuple[list[FileStat], list[str]]:
        """Return what `inside` and `folders` return, in object storages from one listing."""
        ...

    def with_files(self, path: str) -> list[str]:
        """Return the names of the folders directly in a folder that contain a file themselves."""
        ...

    def holds(self, path: str) -> bool:
        """Return whether a folder or bucket exists; a dangling link raises."""
        ...

    def root(self, path: str) -> str:
        """Return the lake root or bucket of a path, which exists even if the path does not."""
        ...

    def root_exists(self, path: str) -> bool:
        """Return whether the lake root or bucket of a path exists."""
        ...

    def nothing(self, path: str) -> bool:
        """Return True if a folder is empty or does not exist; False if it must be listed to know."""
        ...

    def address(self, path: str) -> str:
        """Return the path as usable in this process; a relative one is resolved against the reach's
        folder.
        """
        ...


@dataclass(frozen=True, slots=True)
class LocalFiles:
    """Local files. Links must not lead out of `reach` (if set) or out of the folder `within` (if set)."""

    reach: AccessPolicy | None = None
    within: str = ""

    def stat(self, path: str) -> FileStat | None:
        self._stay(path)
        try:
            info = os.stat(self._local(path))  # noqa: PTH116
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise _unreadable(path, error) from error
        return _file_stat(Path(path).name, info)

    def inside(self, path: str) -> list[FileStat]:
        self._stay(path)
        try:
            with os.scandir(self._local(path)) as entries:
                files = [self._entry(entry) for entry in entries if entry.is_file()]
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            raise _unreadable(path, error) from error
        return [file for file in files if file is not None]

    def below(self, path: str) -> list[FileStat]:
        # Links are followed, as in a single folder, but each folder is listed once.
        stats, folders, visited = list[FileStat](), [path], set[str]()
        while folders:
            folder = folders.pop()
            real = os.path.realpath(self._local(folder))
            if real not in visited:
                visited.add(real)
                stats += self.inside(folder)
                folders += [f"{folder}/{name}" for name in self.folders(folder) if is_data_name(name)]
        return stats

    def _entry(self, entry: os.DirEntry[str]) -> FileStat | None:
        if entry.is_symlink():
            return self.stat(entry.path)
        try:
            info = entry.stat()
        except FileNotFoundError:
            return None
        return _file_stat(entry.name, info)

    def read(self, path: str) -> bytes:
        self._stay(path)
        try:
            with os.fdopen(os.open(self._local(path), os.O_RDONLY | NO_WAIT), "rb") as file:
                if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                    raise ReadError(f"{path} is not a file.", "A table's log consists of files: check it.")
                return _require_limit(path, file.read(MOST_READ + 1))
        except OSError as error:
            raise _unreadable(path, error) from error

    def folders(self, path: str) -> list[str]:
        self._stay(path)
        try:
            return [folder.name for folder in Path(self._local(path)).iterdir() if folder.is_dir()]
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            raise _unreadable(path, error) from error

    def entries(self, path: str) -> tuple[list[FileStat], list[str]]:
        return self.inside(path), self.folders(path)

    def with_files(self, path: str) -> list[str]:
        return [name for name in self.folders(path) if self.inside(f"{path}/{name}")]

    def holds(self, path: str) -> bool:
        self._stay(path)
        folder = Path(self._local(path))
        try:
            # A folder that cannot be listed proves nothing, so read its first entry.
            with os.scandir(folder) as entries:
                next(entries, None)
        except FileNotFoundError as error:
            if folder.is_symlink():
                raise _unreadable(path, error) from error
            return False
        except OSError as error:
            raise _unreadable(path, error) from error
        return True

    def root(self, path: str) -> str:
        real = Path(os.path.realpath(self._local(path)))
        roots = [
            folder for folder in (self.reach.folders if self.reach else ()) if real.is_relative_to(folder)
        ]
        return str(max(roots, key=lambda folder: len(folder.parts), default=real.parent))

    def root_exists(self, path: str) -> bool:
        return self.holds(self.root(path))

    def nothing(self, path: str) -> bool:
        # A link is not followed; it counts as something that must be listed.
        try:
            os.lstat(self._local(path))
        except (FileNotFoundError, NotADirectoryError):
            return True
        except OSError as error:
            raise _unreadable(path, error) from error
        return False

    def address(self, path: str) -> str:
        return self._local(path)

    def _local(self, path: str) -> str:
        """Return the local path; relative paths are resolved against the reach's folder, if there is one."""
        plain = path.removeprefix("file://")
        # called for each file
        return os.path.join(self.reach.folder, plain) if self.reach else plain  # noqa: PTH118

    def _stay(self, path: str) -> None:
        if self.within:
            require_inside(self.within, path)
        linked = self.reach.link_problem(path) if self.reach else None
        if linked is not None:
            raise ReadError(f"{path} {linked.message}.", linked.hint)


class ArrowFiles:
    """Files of S3, HDFS and other file systems of pyarrow, each opened once per scheme and authority."""

    def __init__(self, seconds: float | None = None) -> None:
        self._seconds = seconds
        self._opened: dict[str, tuple[FileSystem, str]] = {}

    def stat(self, path: str) -> FileStat | None:
        try:
            files = self._infos(path, folder=False)
        except ReadError as error:
            if not _is_denied(error):
                raise
            folder, _, name = path.rpartition("/")
            files = [file for file in self.inside(folder) if file.name == name]
        return files[0] if files else None

    def inside(self, path: str) -> list[FileStat]:
        return self._infos(path, folder=True)

    def below(self, path: str) -> list[FileStat]:
        # Object storages list a thousand files of all folders in each response.
        root = self.opened(path)[1].strip("/")
        infos = self._get_info(path, folder=True, recursive=True)
        in_data_folders = [
            info
            for info in infos
            if all(map(is_data_name, info.path.strip("/").removeprefix(root).strip("/").split("/")[:-1]))
        ]
        return _file_stats(in_data_folders)

    def infos_below(self, path: str) -> list[FileInfo]:
        """Return every file in a folder and its subfolders; empty if it does not exist."""
        from pyarrow import fs

        infos = self._get_info(path, folder=True, recursive=True)
        return [info for info in infos if info.type == fs.FileType.File]

    def read(self, path: str) -> bytes:
        try:
            system, file_path = self.opened(path)
            with system.open_input_file(file_path) as file:
                return _require_limit(path, file.read(MOST_READ + 1))
        except (OSError, ValueError, NotImplementedError) as error:
            raise _unreadable(path, error) from error

    def folders(self, path: str) -> list[str]:
        return self.entries(path)[1]

    def entries(self, path: str) -> tuple[list[FileStat], list[str]]:
        from pyarrow import fs

        infos = self._get_info(path, folder=True)
        folders = [info.base_name for info in infos if info.type == fs.FileType.Directory]
        return _file_stats(infos), folders

    def with_files(self, path: str) -> list[str]:
        from pyarrow import fs

        # Object storages list a thousand files of all folders in each response.
        root = self.opened(path)[1].strip("/")
        infos = self._get_info(path, folder=True, recursive=True)
        paths = [
            info.path.strip("/").removeprefix(root).strip("/")
            for info in infos
            if info.type == fs.FileType.File
        ]
        return list(dict.fromkeys(path.partition("/")[0] for path in paths if path.count("/") == 1))

    def holds(self, path: str) -> bool:
        from pyarrow import fs

        try:
            return bool(self._get_info(path, folder=False)[0].type != fs.FileType.NotFound)
        except ReadError as error:
            if not _is_denied(error):
                raise
            return self.is_folder(path)

    def is_folder(self, path: str) -> bool:
        """Return whether a folder or bucket can be listed. Raises ReadError on other failures."""
        from pyarrow import fs

        try:
            system, file_path = self.opened(path)
            system.get_file_info(fs.FileSelector(file_path))
        except (FileNotFoundError, NotADirectoryError):
            return False
        except (OSError, ValueError, NotImplementedError) as error:
            raise _unreadable(path, error) from error
        return True

    def root(self, path: str) -> str:
        return split(path)[0]

    def root_exists(self, path: str) -> bool:
        try:
            return self.holds(self.root(path))
        except ReadError as error:
            if not _is_denied(error):
                raise
            # Only an existing bucket answers a listing.
            self.is_folder(path)
            return True

    def address(self, path: str) -> str:
        return path

    def nothing(self, path: str) -> bool:
        return not self._get_info(path, folder=True)

    def _infos(self, uri: str, *, folder: bool) -> list[FileStat]:
        return _file_stats(self._get_info(uri, folder=folder))

    def _get_info(self, uri: str, *, folder: bool, recursive: bool = False) -> list[FileInfo]:
        try:
            system, file_path = self.opened(uri)
            from pyarrow import fs

            selector = (
                fs.FileSelector(file_path, allow_not_found=True, recursive=recursive)
                if folder
                else [file_path]
            )
            infos: list[FileInfo] = system.get_file_info(selector)
            return infos
        except (OSError, ValueError, NotImplementedError) as error:
            # Arrow's own errors are subclasses of these.
            raise _unreadable(uri, error) from error

    def connect(self, uri: str) -> None:
        """Open the file system of a URI in advance; errors are ignored and raised again by the first
        request.
        """
        with suppress(OSError, ValueError, NotImplementedError, DqError):
            self.opened(uri)

    def is_connected(self, uri: str) -> bool:
        """Return whether the file system of a URI is open."""
        return split(uri)[0] in self._opened

    def opened(self, uri: str) -> tuple[FileSystem, str]:
        """Return the file system of a URI, opened once, and the path in it; raises as `file_system` does."""
        root, path = split(uri)
        if root not in self._opened:
            self._opened[root] = file_system(root, self._seconds)
        system, prefix = self._opened[root]
        return system, prefix + path


def _is_denied(error: ReadError) -> bool:
    """Return whether S3 denies the request.

    Without permission to list the whole bucket, S3 denies HEAD requests for the bucket and for missing
    objects, but it answers listings of the permitted folders. Source: S3 API, HeadBucket and HeadObject.
    """
    return "ACCESS_DENIED" in str(error.__cause__)


def _file_stats(infos: Iterable[FileInfo]) -> list[FileStat]:
    from pyarrow import fs

    return [
        FileStat(info.base_name, info.size or 0, info.mtime.astimezone(UTC))
        for info in infos
        if info.type == fs.FileType.File
    ]


@dataclass(frozen=True, slots=True)
class UnreachableFiles:
    """Files of an unreachable storage: every method raises ReadError with the problem."""

    problem: str

    def _raise_unreadable(self, path: str) -> NoReturn:
        raise ReadError(f"{self.problem}.", f"Check this storage and the connection to it: {path}.")

    stat = inside = below = read = folders = entries = with_files = _raise_unreadable
    holds = root = root_exists = nothing = address = _raise_unreadable


class Storages:
    """File access of one run, so that each storage is opened once."""

    def __init__(self, reach: AccessPolicy | None = None, seconds: float | None = None) -> None:
        self._local, self._remote = LocalFiles(reach), ArrowFiles(seconds)

    def of(self, path: str) -> Files:
        """Return local file access for local paths, and pyarrow's for other ones."""
        return self._remote if is_remote(path) else self._local


def _file_stat(name: str, info: os.stat_result) -> FileStat:
    mark = f"{info.st_ino} {info.st_ctime_ns}"
    return FileStat(name, info.st_size, datetime.fromtimestamp(info.st_mtime, UTC), mark)


def files_for(path: str, reach: AccessPolicy | None = None) -> Files:
    """Return file access for a single path."""
    return Storages(reach).of(path)


def files_within(folder: str, log: str) -> Files:
    """Return access to the files of one table; locally, files outside its folder are rejected.

    Raises ReadError if the folder or its log folder does not exist.
    """
    files = ArrowFiles() if is_remote(folder) else LocalFiles(within=folder)
    if not files.holds(f"{folder}/{log}"):
        what = f"{folder}/{log} cannot be read: no such file or folder."
        raise ReadError(what, "Check the path and its permissions.")
    return files


def require_inside(root: str, path: str) -> None:
    """Raise ReadError if a link in a local folder leads outside of it.

    Otherwise a writer of the folder could expose any file of this machine. The folder itself may be a link.
    """
    if not is_remote(path) and not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(root)):
        raise _leads_elsewhere(path)


def _leads_elsewhere(path: str) -> ReadError:
    hint = "Put the files themselves into the folder."
    return ReadError(f"{path} is a link that leads outside the folder, or is below one.", hint)


# Locations named by the user: list all files below one, stream a file, or read it up to a limit.


def files_below(location: str) -> list[str]:
    """Return every file below a folder or URI, or the one file that it names.

    Raises ReadError if the location does not answer, or a link leads out of it.
    """
    try:
        return list(_remote_below(location) if is_remote(location) else _local_below(location))
    except (OSError, ValueError) as error:
        raise _unreadable(location, error) from error


def _local_below(location: str) -> Iterator[str]:
    if Path(location).is_file():
        yield location
        return
    if not Path(location).is_dir():
        reason = "it is a pipe or a device" if Path(location).exists() else "no such file or folder"
        raise FileNotFoundError(2, reason)
    for folder, folders, names in os.walk(location, onerror=_raise):
        for name in folders:
            # os.walk does not follow the link, behind which data may be missing.
            if Path(folder, name).is_symlink():
                raise _leads_elsewhere(f"{folder}/{name}")
        for name in names:
            if Path(folder, name).is_symlink():
                require_inside(location, f"{folder}/{name}")
        # Skip pipes, reading which would block.
        yield from (f"{folder}/{name}" for name in names if Path(folder, name).is_file())


def _raise(error: OSError) -> None:
    # By default os.walk skips a folder that cannot be listed, which would hide data.
    raise error


def _remote_below(location: str) -> Iterator[str]:
    from pyarrow.fs import FileSelector, FileType

    system, path = ArrowFiles().opened(location.rstrip("/"))
    if system.get_file_info(path).type is FileType.File:
        yield location
        return
    for info in system.get_file_info(FileSelector(path, recursive=True)):
        inner = info.path.removeprefix(path).removeprefix(path.lstrip("/"))
        if info.type is FileType.File:
            yield f"{location.rstrip('/')}/{inner.strip('/')}"


MAX_FILES = 5_000_000
"""Limit of `folder_tree` in files and folders: more do not fit into memory."""
MAX_NESTING = 64
"""Limit of `folder_tree` in nested folders."""


@dataclass(slots=True)
class Folder:
    """A folder with everything below it. `problem` is why it, or a part of it, cannot be listed, or ""."""

    files: list[FileStat] = field(default_factory=list)
    folders: dict[str, Folder] = field(default_factory=dict)
    problem: str = ""
    links: list[str] = field(default_factory=list)


def folder_tree(location: str, is_listed: Callable[[str], bool]) -> Folder:
    """List a folder and everything below it; a folder that cannot be listed has its problem.

    Only folders whose names are `is_listed` are entered. Links are not followed: what is behind one may be
    listed twice, or lie elsewhere. An object storage answers with a thousand files of all folders at a time.

    Raises ReadError if the location itself cannot be listed, or has too many files.
    """
    if is_remote(location):
        return _remote_tree(location, is_listed)
    if not Path(location).is_dir():
        raise ReadError(
            f"{location} is not a folder.",
            suggestion(Path(location).name, _sibling_names(location), "Check the path."),
        )
    top = Folder()
    pending, count = [(top, location, 0)], 0
    while pending:
        folder, path, depth = pending.pop()
        try:
            entries = _scan(path)
        except OSError as error:
            if folder is top:
                raise _unreadable(location, error) from error
            folder.problem = _unreadable(path, error).message
            continue
        count += len(entries)
        _require_count(location, count)
        for entry in entries:
            if not entry.is_dir(follow_symlinks=False):
                _add_local_file(folder, entry, is_listed)
            elif is_listed(entry.name):
                inner = folder.folders[entry.name] = Folder()
                if depth < MAX_NESTING:
                    pending.append((inner, entry.path, depth + 1))
                else:
                    inner.problem = f"{entry.path} is nested more than {MAX_NESTING} folders deep."
    return top


def _sibling_names(location: str) -> list[str]:
    """Return the names of the folders next to a location; empty if they cannot be listed."""
    try:
        return [entry.name for entry in _scan(str(Path(location).parent)) if entry.is_dir()]
    except OSError:
        return []


def _scan(path: str) -> list[os.DirEntry[str]]:
    with os.scandir(path) as entries:
        return sorted(entries, key=lambda entry: entry.name)


def _add_local_file(folder: Folder, entry: os.DirEntry[str], is_listed: Callable[[str], bool]) -> None:
    try:
        if entry.is_file(follow_symlinks=False):
            folder.files.append(_file_stat(entry.name, entry.stat(follow_symlinks=False)))
        elif entry.is_symlink() and (is_data_name(entry.name) or is_listed(entry.name)):
            folder.links.append(entry.name)
            folder.problem = folder.problem or f"{entry.path} is a link, which is not followed."
    except FileNotFoundError:
        return  # removed since it was listed


def _remote_tree(location: str, is_listed: Callable[[str], bool]) -> Folder:
    top, files = Folder(), ArrowFiles()
    if not files.is_folder(location):
        raise ReadError(f"{location} is not a folder.", "Check the bucket and the prefix.")
    root = files.opened(location)[1].strip("/")
    infos = files.infos_below(location)
    _require_count(location, len(infos))
    for info in infos:
        names = info.path.strip("/").removeprefix(root).strip("/").split("/")[:-1]
        if not all(map(is_listed, names)):
            continue
        folder = top
        for name in names[:MAX_NESTING]:
            folder = folder.folders.setdefault(name, Folder())
        if len(names) > MAX_NESTING:
            folder.problem = f"{info.path} is nested more than {MAX_NESTING} folders deep."
        else:
            folder.files += _file_stats([info])
    return top


def _require_count(location: str, count: int) -> None:
    if count > MAX_FILES:
        raise ReadError(f"{location} has more than {MAX_FILES:,} files.", "Pass the folders below it.")


def exists(path: str, root: str) -> bool:
    """Return whether a file exists.

    Raises ReadError for a link that leads out of `root`, or if an object store does not answer.
    """
    files = ArrowFiles() if is_remote(path) else LocalFiles(within=root)
    return files.stat(path) is not None


@contextmanager
def open_bytes(path: str) -> Iterator[BinaryIO]:
    """Open a file for reading bytes. Raises ReadError if it cannot be read."""
    try:
        if is_remote(path):
            system, file_path = ArrowFiles().opened(path)
            with system.open_input_file(file_path) as file:
                yield file
        else:
            with os.fdopen(os.open(path, os.O_RDONLY | NO_WAIT), "rb") as file:
                # A pipe may block forever, and a device may never end.
                if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                    raise ReadError(
                        f"{path} is a pipe or a device.", "Write its content to a file, and pass that file."
                    )
                yield file
    except OSError as error:
        raise _unreadable(path, error) from error


def read_limited(path: str, max_bytes: int) -> bytes:
    """Return all bytes of a file. Raises ReadError for more than `max_bytes`."""
    with open_bytes(path) as file:
        data = file.read(max_bytes + 1)
    if len(data) > max_bytes:
        raise ReadError(f"{path} has more than {max_bytes >> 20} MB.", "Pass a smaller file.")
    return data


def _require_limit(path: str, content: bytes) -> bytes:
    if len(content) > MOST_READ:
        raise ReadError(f"{path} has more than {MOST_READ >> 20} MiB.", "Check this file.")
    return content


def _unreadable(path: str, error: Exception) -> ReadError:
    reason = getattr(error, "strerror", None) or next(iter(str(error).splitlines()), type(error).__name__)
    hint = hint_for(error, "Check the path and the permissions of this process.")
    return ReadError(f"{path} cannot be read: {reason}.", hint)


# File access that records the response times of a storage.

R = TypeVar("R")


@dataclass(slots=True)
class TimedFiles:
    """File access that records response times, as readings of `clock`.

    `pending_since` is the start of the pending request, `answered_at` the end of the last answered one.
    `failed_since` is the start of a request that failed after more than half of `seconds`, i.e. that timed
    out in the storage's client.
    """

    files: Files
    clock: Callable[[], float]
    seconds: float
    pending_since: float | None = None
    answered_at: float | None = None
    failed_since: float | None = None

    def stat(self, path: str) -> FileStat | None:
        return self._timed_call(self.files.stat, path)

    def inside(self, path: str) -> list[FileStat]:
        return self._timed_call(self.files.inside, path)

    def below(self, path: str) -> list[FileStat]:
        # Many requests: only the limit of the whole task applies, and that of the storage's client to each.
        stats = self.files.below(path)
        self.answered_at = self.clock()
        return stats

    def read(self, path: str) -> bytes:
        return self._timed_call(self.files.read, path)

    def folders(self, path: str) -> list[str]:
        return self._timed_call(self.files.folders, path)

    def entries(self, path: str) -> tuple[list[FileStat], list[str]]:
        return self._timed_call(self.files.entries, path)

    def with_files(self, path: str) -> list[str]:
        return self._timed_call(self.files.with_files, path)

    def holds(self, path: str) -> bool:
        return self._timed_call(self.files.holds, path)

    def root(self, path: str) -> str:
        return self._timed_call(self.files.root, path)

    def root_exists(self, path: str) -> bool:
        return self._timed_call(self.files.root_exists, path)

    def nothing(self, path: str) -> bool:
        return self._timed_call(self.files.nothing, path)

    def address(self, path: str) -> str:
        return self.files.address(path)

    def timed(self, question: Callable[[], R]) -> R:
        """Return the result of a custom request, timed like the others; it must not take longer than
        those.
        """
        return self._timed_call(lambda _: question(), "")

    def _timed_call(self, question: Callable[[str], R], path: str) -> R:
        self.pending_since = started_at = self.clock()
        try:
            answer = question(path)
        except BaseException:
            if self.clock() - started_at > self.seconds / 2:
                self.failed_since = started_at
            else:
                self.answered_at = self.clock()
            raise
        else:
            self.answered_at = self.clock()
            return answer
        finally:
            self.pending_since = None


# Names of a table's data files and folders, by Spark's rule, for every reader of a lake.
#
# Source: HadoopFSUtils.shouldFilterOutPathName and PartitioningAwareFileIndex.isDataPath of Spark 3.5
# and 4.0. Hive and Trino skip the same names that begin with `_` or a dot.


def is_data_name(name: str) -> bool:
    """Return whether a reader takes rows from a file, or enters a folder, of this name.

    Names that begin with a dot are hidden, as are those that begin with `_`, unless they contain a `=`
    (`_hour=7`). Names that end with `._COPYING_` are unfinished uploads by Hadoop.
    """
    hidden = name.startswith(".") or (name.startswith("_") and "=" not in name)
    return not hidden and not is_unfinished(name)


def is_unfinished(name: str) -> bool:
    """Return whether a file of this name is an unfinished upload by Hadoop."""
    return name.endswith("._COPYING_")


def is_data_path(path: str) -> bool:
    """Return whether a reader takes rows at this path, which is relative to the table's folder."""
    return all(is_data_name(step) for step in path.split("/"))
