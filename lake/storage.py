"""Files of a lake, local and remote: named by partitions, listed, read up to a limit, and timed."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NoReturn, Protocol, TypeVar

from dq.contracts.access.access_policy import FAMILIES, Reach, is_remote
from dq.contracts.access.files import NO_WAIT
from dq.contracts.install import install_command
from dq.contracts.outcome import DqError, MissingTool, Unreadable

if TYPE_CHECKING:
    from pyarrow.fs import FileInfo, FileSystem


# The one door to file systems behind a URI: opened by scheme and host alone.
#
# pyarrow takes settings of the connection from a query, another endpoint and credentials among them, and a
# name in a lake may hold a `?`. Whoever comes here has a place that a `Reach` vouched for, or one that Spark
# has listed.

# The container of Azure stands where other schemes could have a user and a password.
_URI = re.compile(
    r"([A-Za-z][A-Za-z0-9+.\-]+)://((?:[A-Za-z0-9$._\-]+@)?[A-Za-z0-9._\-]*(?::[0-9]+)?)(/.*)?", re.DOTALL
)
_WITH_CONTAINER = frozenset({"abfs", "abfss"})
AT_ONCE = 32
"""How many questions to a storage wait for their answers at once."""


def mend_of(error: Exception, otherwise: str) -> str:
    """How to come to what could not be reached: HDFS needs more than pyarrow, which does not say what."""
    # The second attempt in a process only says that there was one before.
    if not re.search("lib(jvm|hdfs)", str(error)):
        return otherwise
    return (
        "HDFS needs a JVM and Hadoop's native client: on a machine of the cluster, export JAVA_HOME, "
        "HADOOP_HOME and CLASSPATH=$(hadoop classpath --glob)."
    )


def split(uri: str) -> tuple[str, str]:
    """The scheme with the host, as `opened` takes it, and the path as it is written, without any escape.

    Raises ValueError for what is no address of a file system, and for one with a user.
    """
    match = _URI.fullmatch(uri)
    if match is None or ("@" in match[2] and match[1].lower() not in _WITH_CONTAINER):
        raise ValueError("it is no address of a file system")
    scheme = match[1].lower()
    # pyarrow knows one name of S3 alone.
    return f"{FAMILIES.get(scheme, scheme)}://{match[2]}", match[3] or ""


def load() -> None:
    """Loads what opens file systems, where it is installed: a cold disk is not to be timed with a storage."""
    with suppress(ImportError):
        import pyarrow.fs  # noqa: F401  # for who asks next


def file_system(root: str, seconds: float | None = None) -> tuple[FileSystem, str]:
    """The file system of a scheme and a host, with the credentials of the environment, and what comes before
    each path in it. With `seconds`, S3 has so long for an answer, in two attempts.

    Raises MissingTool without pyarrow, ValueError for a scheme that it does not know, OSError when the file
    system cannot be reached.
    """
    try:
        from pyarrow import fs, io_thread_count, set_io_thread_count
    except ImportError as error:
        raise MissingTool(f"{root} needs pyarrow, which is not installed.", install_command("s3")) from error
    # Its own eight threads would let no more than eight questions out, however many ask; S3's client takes as
    # many connections, when it is made.
    set_io_thread_count(max(io_thread_count(), AT_ONCE))
    system, before = fs.FileSystem.from_uri(f"{root}/")
    if seconds is not None and isinstance(system, fs.S3FileSystem):
        # Its own client waits for minutes, also when the process wants to end.
        make, (terms,) = system.__reduce__()
        twice = fs.AwsStandardS3RetryStrategy(max_attempts=2)
        half = seconds / 2
        system = make({**terms, "connect_timeout": half, "request_timeout": half, "retry_strategy": twice})
    return system, before.rstrip("/")


# Looking at single paths of a lake: does this file exist, and since when, by the storage's own clock.

MOST_READ = 128 * 1024 * 1024
"""A larger file is no log of a table, or none that can be read at every tick."""


@dataclass(frozen=True, slots=True)
class Seen:
    """A file: its name inside its folder, its size in bytes, and its modification time in UTC.

    `mark` tells a local file from one that took its place with the same time: the number of the file and the
    time of its last change in any way, which no program can set. Empty where a storage has none.
    """

    name: str
    size: int
    modified_at: datetime
    mark: str = field(default="", compare=False)

    @property
    def identity(self) -> str:
        """Text that changes when the file is replaced or written anew, even if its time is set back."""
        return "\n".join((self.name, str(self.size), self.modified_at.isoformat(), self.mark))


class Files(Protocol):
    """Questions to a storage. Each raises Unreadable when it cannot answer."""

    def stat(self, path: str) -> Seen | None:
        """The file at a path, or None when there is none."""
        ...

    def inside(self, path: str) -> list[Seen]:
        """The files directly inside a folder; empty when there is no such folder."""
        ...

    def read(self, path: str) -> bytes:
        """The content of a file of a table's log, of at most `MOST_READ` bytes."""
        ...

    def folders(self, path: str) -> list[str]:
        """The names of the folders directly inside a folder; empty when there is no such folder."""
        ...

    def holds(self, path: str) -> bool:
        """Whether a folder or bucket is there; a link that leads nowhere raises."""
        ...

    def root(self, path: str) -> str:
        """What must be there before anything below it was written: the lake root, or the bucket."""
        ...

    def nothing(self, path: str) -> bool:
        """Whether there is nothing in a folder, or no such folder; False where a closer look is needed."""
        ...

    def address(self, path: str) -> str:
        """The path as any reader of this process finds it; a relative one is below the reach's folder."""
        ...


@dataclass(frozen=True, slots=True)
class LocalFiles:
    """Files of this machine, by path; none to which a link leads out of the reach, if one is given, or out
    of the folder `within`."""

    reach: Reach | None = None
    within: str = ""

    def stat(self, path: str) -> Seen | None:
        self._stay(path)
        try:
            found = os.stat(self._local(path))  # noqa: PTH116
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise _unreadable(path, error) from error
        return _seen(Path(path).name, found)

    def inside(self, path: str) -> list[Seen]:
        self._stay(path)
        try:
            with os.scandir(self._local(path)) as entries:
                found = [self._entry(one) for one in entries if one.is_file()]
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            raise _unreadable(path, error) from error
        return [one for one in found if one is not None]

    def _entry(self, entry: os.DirEntry[str]) -> Seen | None:
        if entry.is_symlink():
            return self.stat(entry.path)
        try:
            found = entry.stat()
        except FileNotFoundError:
            return None
        return _seen(entry.name, found)

    def read(self, path: str) -> bytes:
        self._stay(path)
        try:
            with os.fdopen(os.open(self._local(path), os.O_RDONLY | NO_WAIT), "rb") as file:
                if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                    raise Unreadable(f"{path} is no file.", "A table's log is made of files: look at it.")
                return _whole(path, file.read(MOST_READ + 1))
        except OSError as error:
            raise _unreadable(path, error) from error

    def folders(self, path: str) -> list[str]:
        self._stay(path)
        try:
            return [one.name for one in Path(self._local(path)).iterdir() if one.is_dir()]
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            raise _unreadable(path, error) from error

    def holds(self, path: str) -> bool:
        self._stay(path)
        place = Path(self._local(path))
        try:
            # What nobody may list is no proof of anything; nothing more of it is read.
            with os.scandir(place) as inside:
                next(inside, None)
        except FileNotFoundError as error:
            if place.is_symlink():
                raise _unreadable(path, error) from error
            return False
        except OSError as error:
            raise _unreadable(path, error) from error
        return True

    def root(self, path: str) -> str:
        real = Path(os.path.realpath(self._local(path)))
        roots = [one for one in (self.reach.folders if self.reach else ()) if real.is_relative_to(one)]
        return str(max(roots, key=lambda one: len(one.parts), default=real.parent))

    def nothing(self, path: str) -> bool:
        # Of what lies beyond a link no more is said than that there is something to be looked at.
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
        """The path from the folder of the reach, of which relative places are; else from the working one."""
        plain = path.removeprefix("file://")
        return os.path.join(self.reach.folder, plain) if self.reach else plain  # noqa: PTH118  # asked of each file

    def _stay(self, path: str) -> None:
        if self.within:
            require_inside(self.within, path)
        linked = self.reach.leads_out(path) if self.reach else None
        if linked is not None:
            raise Unreadable(f"{path} {linked.message}.", linked.mend)


class ArrowFiles:
    """Files of S3, HDFS and what else pyarrow reads; opened once for each scheme and authority."""

    def __init__(self, seconds: float | None = None) -> None:
        self._seconds = seconds
        self._opened: dict[str, tuple[FileSystem, str]] = {}

    def stat(self, path: str) -> Seen | None:
        found = self._infos(path, folder=False)
        return found[0] if found else None

    def inside(self, path: str) -> list[Seen]:
        return self._infos(path, folder=True)

    def read(self, path: str) -> bytes:
        try:
            system, inside = self.opened(path)
            with system.open_input_file(inside) as file:
                return _whole(path, file.read(MOST_READ + 1))
        except (OSError, ValueError, NotImplementedError) as error:
            raise _unreadable(path, error) from error

    def folders(self, path: str) -> list[str]:
        from pyarrow import fs

        found = self._asked(path, folder=True)
        return [info.base_name for info in found if info.type == fs.FileType.Directory]

    def holds(self, path: str) -> bool:
        from pyarrow import fs

        return bool(self._asked(path, folder=False)[0].type != fs.FileType.NotFound)

    def root(self, path: str) -> str:
        return split(path)[0]

    def address(self, path: str) -> str:
        return path

    def nothing(self, path: str) -> bool:
        return not self._asked(path, folder=True)

    def _infos(self, uri: str, *, folder: bool) -> list[Seen]:
        from pyarrow import fs

        return [
            Seen(info.base_name, info.size or 0, info.mtime.astimezone(UTC))
            for info in self._asked(uri, folder=folder)
            if info.type == fs.FileType.File
        ]

    def _asked(self, uri: str, *, folder: bool) -> list[FileInfo]:
        try:
            system, inside = self.opened(uri)
            from pyarrow import fs

            asked = fs.FileSelector(inside, allow_not_found=True) if folder else [inside]
            found: list[FileInfo] = system.get_file_info(asked)
            return found
        except (OSError, ValueError, NotImplementedError) as error:
            # What Arrow raises of its own is one of these too.
            raise _unreadable(uri, error) from error

    def connect(self, uri: str) -> None:
        """Open the file system of a URI, if that works; whoever asks for a file of it is told why not."""
        with suppress(OSError, ValueError, NotImplementedError, DqError):
            self.opened(uri)

    def is_connected(self, uri: str) -> bool:
        """Return whether the file system of a URI is open."""
        return split(uri)[0] in self._opened

    def opened(self, uri: str) -> tuple[FileSystem, str]:
        """The file system of a URI, opened once, and the path in it; raises what `file_system` raises."""
        root, path = split(uri)
        if root not in self._opened:
            self._opened[root] = file_system(root, self._seconds)
        system, before = self._opened[root]
        return system, before + path


@dataclass(frozen=True, slots=True)
class SilentFiles:
    """Files of a storage that does not answer: every question raises Unreadable with the problem."""

    problem: str

    def _silent(self, path: str) -> NoReturn:
        raise Unreadable(f"{self.problem}.", f"Look at this storage, and at the way to it: {path}.")

    stat = inside = read = folders = holds = root = nothing = address = _silent


class Storages:
    """What reads the paths of one run, so that each storage is opened once."""

    def __init__(self, reach: Reach | None = None, seconds: float | None = None) -> None:
        self._local, self._remote = LocalFiles(reach), ArrowFiles(seconds)

    def of(self, path: str) -> Files:
        """This machine's own calls for local paths, pyarrow for the rest."""
        return self._remote if is_remote(path) else self._local


def _seen(name: str, found: os.stat_result) -> Seen:
    mark = f"{found.st_ino} {found.st_ctime_ns}"
    return Seen(name, found.st_size, datetime.fromtimestamp(found.st_mtime, UTC), mark)


def files_for(path: str, reach: Reach | None = None) -> Files:
    """What reads a path, for who has only one."""
    return Storages(reach).of(path)


def files_within(folder: str, log: str) -> Files:
    """Return what reads the files of one table, and on this machine none outside of its folder.

    Raises Unreadable where the folder, or the one of its log in it, is not there.
    """
    files = ArrowFiles() if is_remote(folder) else LocalFiles(within=folder)
    if not files.holds(f"{folder}/{log}"):
        what = f"{folder}/{log} cannot be read: there is no such file or folder."
        raise Unreadable(what, "Check the place, and its rights.")
    return files


def require_inside(root: str, path: str) -> None:
    """Raise Unreadable where a link leads from below a local folder to a place outside of it.

    Whoever writes the folder could show any file of this machine by it. The folder itself may be a link.
    """
    if not is_remote(path) and not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(root)):
        raise _leads_elsewhere(path)


def _leads_elsewhere(path: str) -> Unreadable:
    mend = "Put the files themselves into the folder."
    return Unreadable(f"{path} is a link that leads elsewhere, or lies behind one.", mend)


# Sources that a person names: all files below a place, streamed, or read whole up to a limit.


def files_below(place: str) -> list[str]:
    """Return every file below a folder or URI, or the one file that it names.

    Raises Unreadable where the place does not answer, or a link leads out of it.
    """
    try:
        return list(_remote_below(place) if is_remote(place) else _local_below(place))
    except (OSError, ValueError) as error:
        raise _unreadable(place, error) from error


def _local_below(place: str) -> Iterator[str]:
    if Path(place).is_file():
        yield place
        return
    if not Path(place).is_dir():
        reason = "it is a pipe or a device" if Path(place).exists() else "there is no such file or folder"
        raise FileNotFoundError(2, reason)
    for folder, folders, names in os.walk(place, onerror=_raise):
        for name in folders:
            # It is not walked into, and may hold half of the table.
            if Path(folder, name).is_symlink():
                raise _leads_elsewhere(f"{folder}/{name}")
        for name in names:
            if Path(folder, name).is_symlink():
                require_inside(place, f"{folder}/{name}")
        # A pipe of such a name would never end.
        yield from (f"{folder}/{name}" for name in names if Path(folder, name).is_file())


def _raise(error: OSError) -> None:
    # A folder that cannot be listed may hold half of the table.
    raise error


def _remote_below(place: str) -> Iterator[str]:
    from pyarrow.fs import FileSelector, FileType

    system, path = ArrowFiles().opened(place.rstrip("/"))
    if system.get_file_info(path).type is FileType.File:
        yield place
        return
    for info in system.get_file_info(FileSelector(path, recursive=True)):
        inner = info.path.removeprefix(path).removeprefix(path.lstrip("/"))
        if info.type is FileType.File:
            yield f"{place.rstrip('/')}/{inner.strip('/')}"


def exists(path: str, root: str) -> bool:
    """Return whether a file is there.

    Raises Unreadable for a link that leads out of `root`, or where an object store does not answer.
    """
    files = ArrowFiles() if is_remote(path) else LocalFiles(within=root)
    return files.stat(path) is not None


@contextmanager
def reading(path: str) -> Iterator[BinaryIO]:
    """Open a file's bytes. Raises Unreadable when it cannot be read."""
    try:
        if is_remote(path):
            system, inside = ArrowFiles().opened(path)
            with system.open_input_file(inside) as file:
                yield file
        else:
            with os.fdopen(os.open(path, os.O_RDONLY | NO_WAIT), "rb") as file:
                # Nothing may ever come out of a pipe, and of a device nothing may end.
                if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                    raise Unreadable(
                        f"{path} is a pipe or a device.", "Write what it gives into a file, and name that."
                    )
                yield file
    except OSError as error:
        raise _unreadable(path, error) from error


def content(path: str, most: int) -> bytes:
    """Return all bytes of a file. Raises Unreadable for more than `most`: half of it would say less."""
    with reading(path) as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise Unreadable(f"{path} has more than {most >> 20} MB.", "Name a file with less in it.")
    return data


def _whole(path: str, content: bytes) -> bytes:
    if len(content) > MOST_READ:
        raise Unreadable(f"{path} has more than {MOST_READ >> 20} MiB.", "Look at this file.")
    return content


def _unreadable(path: str, error: Exception) -> Unreadable:
    reason = getattr(error, "strerror", None) or next(iter(str(error).splitlines()), type(error).__name__)
    mend = mend_of(error, "Check the path and the rights of this process.")
    return Unreadable(f"{path} cannot be read: {reason}.", mend)


# Files that tell since when a question to their storage has been waiting for its answer.

R = TypeVar("R")


@dataclass(slots=True)
class TimedFiles:
    """The same files, with what the clock said: `asked_at` when the question began that is open, and
    `answered_at` when the last one was answered. `failed_since` is when one began that failed after more than
    half of `seconds`: a storage's own client has given up waiting.
    """

    files: Files
    clock: Callable[[], float]
    seconds: float
    asked_at: float | None = None
    answered_at: float | None = None
    failed_since: float | None = None

    def stat(self, path: str) -> Seen | None:
        return self._asked(self.files.stat, path)

    def inside(self, path: str) -> list[Seen]:
        return self._asked(self.files.inside, path)

    def read(self, path: str) -> bytes:
        return self._asked(self.files.read, path)

    def folders(self, path: str) -> list[str]:
        return self._asked(self.files.folders, path)

    def holds(self, path: str) -> bool:
        return self._asked(self.files.holds, path)

    def root(self, path: str) -> str:
        return self._asked(self.files.root, path)

    def nothing(self, path: str) -> bool:
        return self._asked(self.files.nothing, path)

    def address(self, path: str) -> str:
        return self.files.address(path)

    def timed(self, question: Callable[[], R]) -> R:
        """What a question of one's own gave, that is no longer than one to these files."""
        return self._asked(lambda _: question(), "")

    def _asked(self, question: Callable[[str], R], path: str) -> R:
        self.asked_at = asked = self.clock()
        try:
            answer = question(path)
        except BaseException:
            if self.clock() - asked > self.seconds / 2:
                self.failed_since = asked
            else:
                self.answered_at = self.clock()
            raise
        else:
            self.answered_at = self.clock()
            return answer
        finally:
            self.asked_at = None


# Names of a table's files and folders that hold rows: Spark's rule, for every reader of a lake.
#
# Source: HadoopFSUtils.shouldFilterOutPathName and PartitioningAwareFileIndex.isDataPath of Spark 3.5
# and 4.0. Hive and Trino pass over the same names that begin with `_` or a dot.


def is_data_name(name: str) -> bool:
    """Return whether a reader takes rows from a file of this name, or enters such a folder.

    Names that begin with a dot are hidden, and so are those that begin with `_`, unless they hold a `=`
    (`_hour=7`). `._COPYING_` ends the name of an upload by Hadoop that has not finished.
    """
    hidden = name.startswith(".") or (name.startswith("_") and "=" not in name)
    return not hidden and not is_unfinished(name)


def is_unfinished(name: str) -> bool:
    """Return whether a file of this name is an upload by Hadoop that has not finished."""
    return name.endswith("._COPYING_")


def is_data_path(path: str) -> bool:
    """Return whether a reader of a table takes rows at this path, which is relative to its folder."""
    return all(is_data_name(step) for step in path.split("/"))


# Folders of partitions as Hive and Spark name them.
#
# Source: org.apache.hadoop.hive.common.FileUtils, and Spark's ExternalCatalogUtils.escapePathName.

_UNSAFE = re.compile("[\x00-\x1f\"#%'*/:=?\\\\\x7f{\\[\\]^]")
_ESCAPE = re.compile("%([0-9A-Fa-f]{2})")
_EMPTY = "__HIVE_DEFAULT_PARTITION__"


def partition_folder(values: Iterable[tuple[str, str]]) -> str:
    """The folder of a partition below its table: `flight_date=2026-11-20/hour=3`.

    No name or value leads anywhere else: what a path would take for a sign of its own is escaped.
    """
    return "/".join(f"{_escaped(key)}={_escaped(value) or _EMPTY}" for key, value in values)


def unescaped(text: str) -> str:
    """The key or value that a part of a folder's name stands for.

    Every escape is one character, also where it is a byte of UTF-8: a writer that escapes `ü` as `%C3%BC`
    names the value `Ã¼` to Hive and Spark.
    """
    return _ESCAPE.sub(lambda match: chr(int(match[1], 16)), text)


def _escaped(text: str) -> str:
    return _UNSAFE.sub(lambda match: f"%{ord(match[0]):02X}", text)


@dataclass(frozen=True, slots=True)
class PlacedPartition:
    """A partition whose files lie in a folder of their own, not where Hive would put them."""

    values: tuple[tuple[str, str], ...]
    folder: str

    def root(self, keys: Sequence[str]) -> str | None:
        """The folder above, where this one is named as its partition by the table's keys; else None."""
        order = {key.lower(): number for number, key in enumerate(keys)}
        if {key.lower() for key, _ in self.values} != order.keys():
            return None
        below = f"/{partition_folder(sorted(self.values, key=lambda pair: order[pair[0].lower()]))}"
        folder = self.folder.rstrip("/")
        return folder.removesuffix(below) if folder.endswith(below) else None

    def is_named_in(self, folders: Mapping[str, str]) -> bool:
        """Whether a file's folders, as `named_folders` has them, are those of this partition."""
        return {key.lower(): value for key, value in self.values}.items() <= folders.items()


def named_folders(path: str) -> dict[str, str]:
    """The values that the names of a file's folders say, by their columns in lower case."""
    segments = [segment.partition("=") for segment in path.split("/")[:-1]]
    return {unescaped(name).lower(): unescaped(text) for name, equals, text in segments if equals}
