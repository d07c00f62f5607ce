"""Where an operation runs: settings, clock, registries, state folder, store, and who hears its notes."""

from __future__ import annotations

import os
import re
import stat
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from dq.contracts.access import files
from dq.contracts.access.access_policy import Reach, reach
from dq.contracts.access.files import POLICY_FILE, FileRefused, read_own, shown
from dq.contracts.outcome import StoreError, TextFault, UsageError, parse_elapsed
from dq.operations.runtime import settings
from dq.operations.runtime.settings import Settings

if TYPE_CHECKING:
    from dq.contracts.access.data_location import DataPlace
    from dq.dataquality.delivery.heartbeat import Uptime
    from dq.store.engine import Store


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


# Linux makes a new one with each start; see random(4).
_START = Path("/proc/sys/kernel/random/boot_id")

# Beyond these, what is some days or years away from an instant may be none.
_FIRST_YEAR, _LAST_YEAR = 1900, 9000

CONFIG: ContextVar[str | None] = ContextVar("CONFIG", default=None)
"""The file of the global option `--config`, for the time of one command line."""


class Messages:
    """What an operation says while it works, besides its outcome: notes, alerts, and what is going on.

    It keeps notes and alerts, in their order. A command line shows them as they come, by a subclass.
    """

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.alerts: list[str] = []

    def note(self, text: str) -> None:
        """Something that the caller should know, and that is neither a finding nor an error."""
        self.notes.append(text)

    def finding(self, finding: object) -> None:
        """Something wrong with a contract, which the outcome has too."""

    def alert(self, text: str) -> None:
        """A block of the console's channel. Raises OSError where it could not be shown."""
        self.alerts.append(text)

    def step(self, what: str) -> AbstractContextManager[None]:  # noqa: ARG002
        """Until the end of the block, this is what takes the time."""
        return nullcontext()

    def progress(self, total: int) -> Progress:  # noqa: ARG002
        """For so many pieces of work that threads do side by side."""
        return Progress()

    def program_output(self) -> AbstractContextManager[None]:
        """Until the end of the block, a program is started that may write what it likes for all its life."""
        return nullcontext()


MESSAGES: ContextVar[Callable[[], Messages]] = ContextVar("MESSAGES", default=Messages)
"""What makes the messages of each call: a command line puts its terminal in, for the time of one command."""


class Progress:
    """How far many pieces of work are; told by the threads that do them. This one shows it nowhere."""

    __slots__ = ()

    def step(self, what: str) -> AbstractContextManager[None]:  # noqa: ARG002
        """One piece, from its beginning to its end, however it ends."""
        return nullcontext()

    def close(self) -> None:
        """No more pieces follow."""


@dataclass(frozen=True, slots=True)
class World:
    """The outside, as one value that commands hand down piece by piece.

    `as_of` replaces the clock for replays; None means the real time. `registries` are the roots of the
    registries whose contracts the command reads. `is_elsewhere`: `folder` only stands for the working folder.
    """

    environment: Mapping[str, str] = field(repr=False)  # it holds secrets
    folder: Path
    as_of: datetime | None = None
    settings: Settings = field(default_factory=Settings)
    registries: tuple[Path, ...] = ()
    is_elsewhere: bool = False
    messages: Messages = field(default_factory=Messages, compare=False, repr=False)

    def below(self, path: str) -> str:
        """A path or URI for Spark, which knows of no other working folder than the process's."""
        return str(self.folder / path) if self.is_elsewhere and "://" not in path else path

    def note(self, text: str) -> None:
        """Tell the caller something beside the outcome; see `Messages`."""
        self.messages.note(text)

    def now(self) -> datetime:
        """The time in UTC."""
        return (self.as_of or datetime.now(UTC)).astimezone(UTC)

    def uptime(self) -> Uptime | None:
        """How long this machine has been running; None where its system does not tell."""
        from dq.dataquality.delivery.heartbeat import Uptime

        try:
            start = _START.read_text("ascii").strip()
            return Uptime(start, timedelta(seconds=time.clock_gettime(time.CLOCK_BOOTTIME)))
        except (OSError, AttributeError, ValueError):
            return None

    def store_url(self) -> str:
        """The setting `store_url`, else an SQLite file under the working folder."""
        own = self.folder / FOLDER / STORE
        return self.settings.store_url or f"sqlite:///{own}"

    def state(self) -> Path:
        """The folder `.dq` below the working folder. Raises StoreError where a stranger may have made it."""
        return ready(self.folder, _tracked)

    @property
    def reach(self) -> Reach:
        """What contracts may name; made anew by each call, since links may have changed."""
        return self.reach_by(lambda paths: [*map(os.path.realpath, paths)])

    def reach_by(self, resolve: Callable[[Sequence[Path]], Sequence[str]]) -> Reach:
        """The same, where links in the lake roots are followed so."""
        given = self.settings
        return reach(
            self.folder,
            given.lake_roots,
            registries=self.registries,
            hosts=given.hosts,
            names=given.vars,
            environment=self.environment,
            resolve=resolve,
        )

    def store(self) -> Store:
        """The opened state store; created when it is a new SQLite file."""
        from dq.store.engine import open_store

        if not self.settings.store_url:
            self.state()
        return open_store(self.store_url())


def _tracked(folder: Path) -> bool:
    if not any(os.path.lexists(above / ".git") for above in folder.absolute().parents):
        return False
    # Imported here: whoever works outside of a repository needs no Git.
    from dq.validators.git.repository import tracked

    return tracked(folder)


def located(world: World, place: DataPlace, catalog: str) -> DataPlace:
    """The place as a catalog can keep it: all but our own want whole paths, being read from anywhere."""
    if catalog == "local" or place.type != "local" or not place.path or "://" in place.path:
        return place
    return replace(place, path=str(world.folder / place.path))


def processors() -> int:
    """How many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def registry_root(path: Path) -> Path:
    """The folder that holds the policy or the Git repository around a path; else the path's own folder."""
    # Not where a link leads that somebody put there: the registry is around the name.
    start = Path(os.path.realpath(path if path.is_dir() else path.parent))
    return next((folder for folder in (start, *start.parents) if is_root(folder)), start)


def is_root(folder: Path) -> bool:
    """Whether a registry begins here: the folder holds the policy or a Git repository."""
    # A policy that is a link ends the search too, and is refused when it is read.
    return any(os.path.lexists(folder / name) for name in (POLICY_FILE, ".git"))


def outermost_root(folder: Path) -> Path | None:
    """The folder nearest to `/` around a resolved folder where a registry begins, if any does."""
    return next((one for one in reversed((folder, *folder.parents)) if is_root(one)), None)


def here(
    as_of: str | None = None,
    paths: Sequence[Path] = (),
    working: Path | None = None,
    messages: Messages | None = None,
) -> World:
    """The world of this process, for a command that reads the contracts at `paths`.

    `working` stands for the working folder, for whoever cannot change that of the process. `messages` gets
    what operations say besides their outcomes.

    Raises UsageError for an `as_of` that is no instant with a zone, for settings that cannot be understood,
    and for a `dq.toml` inside of a registry: whoever proposes a contract could change it.
    """
    environment, folder = dict(os.environ), Path.cwd() if working is None else working.absolute()
    chosen = settings.read(environment, folder, CONFIG.get())
    registries = tuple(dict.fromkeys(registry_root(path) for path in paths))
    for root in registries:
        if chosen.file is not None and chosen.file.resolve().is_relative_to(root):
            raise UsageError(
                f"{chosen.file} lies in the registry {root}, where a pull request could change it.",
                "Put it elsewhere, and name it with DQ_CONFIG or --config.",
            )
    at = instant(as_of) if as_of else None
    return World(
        environment, folder, at, chosen, registries, working is not None, messages or MESSAGES.get()()
    )


def called(
    paths: Path | str | Sequence[Path | str] | None,
    folder: Path | str | None = None,
    now: datetime | None = None,
) -> tuple[World, tuple[Path, ...]]:
    """The context of a call from Python about the contracts at `paths`, and these below the `folder`.

    `paths` is None for a call that reads no contract.

    Raises as `here`, and UsageError for no path at all and for a `now` without zone.
    """
    as_of = aware("now", now)
    working = Path(folder) if folder is not None else None
    given = () if paths is None else [paths] if isinstance(paths, Path | str) else paths
    listed = [Path(path) for path in given]
    if not listed and paths is not None:
        raise UsageError("no contract was given.", "Give a file, a folder, or several.")
    places = tuple(listed if working is None else [working / path for path in listed])
    world = here(None, places, working)
    return replace(world, as_of=as_of), places


def aware(name: str, moment: datetime | None) -> datetime | None:
    """The instant in UTC; None stays None. Raises UsageError, with its `name`, for one without a zone."""
    if moment is None:
        return None
    if moment.tzinfo is None:
        raise UsageError(f"{name}={moment!r} has no zone.", "Give an aware datetime.")
    # Airflow's own kind of datetime loses its zone in some of what is done to it.
    return datetime.fromisoformat(moment.isoformat()).astimezone(UTC)


def user() -> str:
    """Who runs this process, by the name of the operating system; empty where it has none."""
    import getpass

    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):
        return ""


def secret_in(file: Path, variable: str) -> str:
    """The secret in a file that a variable names. Raises UsageError where it cannot be read."""
    try:
        return read_own(file).decode().strip()
    except (FileRefused, UnicodeDecodeError) as error:
        reason = error.message if isinstance(error, FileRefused) else f"{file} is not UTF-8."
        raise UsageError(f"{variable}: {reason}", "Mend the path.") from error


def hand_down(name: str, value: str) -> None:
    """Sets a variable for the processes that this one starts."""
    os.environ[name] = value


def instant(text: str) -> datetime:
    """An ISO 8601 instant with an offset or Z, in UTC."""
    try:
        made = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(f"{text!r} is not an instant.", "Write it like 2026-05-01T06:00:00Z.") from None
    if made.tzinfo is None:
        raise UsageError(f"{text!r} has no zone.", f"Write {text}Z for UTC, or add an offset such as +02:00.")
    if not _FIRST_YEAR <= made.year <= _LAST_YEAR:
        raise UsageError(f"{text!r} is too far away.", f"Write a year from {_FIRST_YEAR} to {_LAST_YEAR}.")
    return made.astimezone(UTC)


def written_instant(at: datetime) -> str:
    """Return the instant as `instant` reads it, in UTC and to the second, e.g. 2026-05-01T06:00:00Z."""
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def elapsed(text: str, option: str = "") -> timedelta:
    """A length of time such as 15m or 30d. Raises UsageError for what is none, beginning with the option."""
    length = parse_elapsed(text)
    if isinstance(length, TextFault):
        raise UsageError(f"{option}: {length.message}" if option else length.message, length.mend)
    return length


def pace(text: str, option: str) -> timedelta:
    """How far runs lie apart. Raises UsageError for what is no length of time, or nothing."""
    length = elapsed(text, option)
    if not length:
        raise UsageError(f"{option}: it must be longer than nothing.", "Write it like 15m.")
    return length
