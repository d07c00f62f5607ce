"""Runtime context of an operation: settings, clock, registries, state folder, store and messages."""

from __future__ import annotations

import os
import re
import stat
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from dq.contracts.access import files
from dq.contracts.access.access_policy import AccessPolicy, build_access_policy
from dq.contracts.access.files import POLICY_FILE, FileRejected, printable_path, read_own
from dq.contracts.outcome import StoreError, UsageError, ValueProblem, parse_elapsed
from dq.operations.runtime import settings
from dq.operations.runtime.messages import CONFIG, MESSAGES, Messages
from dq.operations.runtime.settings import Settings

if TYPE_CHECKING:
    from dq.contracts.access.data_location import DataLocation
    from dq.dataquality.delivery.heartbeat import Uptime
    from dq.store.engine import Store


# The state folder `.dq` below the working folder, which only this user may have created.
#
# Its content is trusted: alerts to be sent, receipts, the catalog. The working folder is often a checkout of
# an untrusted branch, so a state folder that came with the checkout is refused.

FOLDER = ".dq"
STORE = "store.db"

_REMOVE_HINT = "If it came with a checkout, remove it: its content is not trusted."
_STORE_URL_HINT = "To use another store, set DQ_STORE_URL."
_GROUP_AND_OTHERS = stat.S_IRWXG | stat.S_IRWXO


def prepare_state_folder(base: Path, tracked: Callable[[Path], bool]) -> Path:
    """Return the state folder below `base`, created if missing, accessible to this user only.

    `tracked` tells if Git has a folder in its index. Read access of other users is removed. Raises StoreError
    for a folder that is a link, belongs to another user or is tracked by Git, and for a link inside of it.
    """
    path = base / FOLDER
    with _explain_errors(path):
        try:
            os.mkdir(path, 0o700)
        except FileExistsError:
            with files.open_folder(base, [FOLDER]) as folder:
                _check_folder(path, folder)
            if _has_other_case(base) or tracked(path):
                raise StoreError(
                    f"The state folder {printable_path(path)} is tracked by Git, so that any "
                    "branch could change it.",
                    f"If it is yours: git rm -r --cached {FOLDER}. {_REMOVE_HINT} {_STORE_URL_HINT}",
                ) from None
        else:
            with files.open_folder(base, [FOLDER]) as folder:
                _write_gitignore(folder)
    return path


def _check_folder(path: Path, folder: files.Folder) -> None:
    """Raise StoreError for a folder that another user could have filled, and remove access of others."""
    status = os.stat(folder)
    if hasattr(os, "geteuid"):
        user_id = os.geteuid()
        # Root has access anyway, and owns the folders that containers mount.
        if status.st_uid not in (user_id, 0) or (status.st_uid != user_id and status.st_mode & stat.S_IWOTH):
            raise StoreError(
                f"The state folder {printable_path(path)} is owned by another user or world-writable.",
                f"{_REMOVE_HINT} {_STORE_URL_HINT}",
            )
        if status.st_uid == user_id and status.st_mode & _GROUP_AND_OTHERS:
            os.chmod(folder, stat.S_IMODE(status.st_mode) & ~_GROUP_AND_OTHERS)
    with os.scandir(folder) as entries:
        for entry in entries:
            # Other processes create and delete files of the database.
            with suppress(FileNotFoundError):
                _check_entry(path, folder, entry.name)


def _check_entry(path: Path, folder: files.Folder, name: str) -> None:
    mode = files.stat_entry(folder, name).st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise StoreError(
            f"{printable_path(path / name)} is a link or another file type that dq never creates.",
            f"{_REMOVE_HINT} {_STORE_URL_HINT}",
        )
    # Older versions of dq left files readable to all. If chmod is not permitted, the folder's mode protects
    # them.
    if stat.S_ISREG(mode) and mode & _GROUP_AND_OTHERS:
        with suppress(PermissionError):
            _close_to_others(folder, name)


def _close_to_others(folder: files.Folder, name: str) -> None:
    file = files.open_file(folder, name)
    try:
        if hasattr(os, "fchmod"):
            os.fchmod(file, stat.S_IMODE(os.fstat(file).st_mode) & ~_GROUP_AND_OTHERS)
    finally:
        os.close(file)


def _has_other_case(base: Path) -> bool:
    """True if a case-insensitive file system returned a `.DQ`, which Git may track under that name."""
    return os.path.lexists(base / FOLDER.upper()) and FOLDER not in os.listdir(base)


def _write_gitignore(folder: files.Folder) -> None:
    with suppress(FileExistsError):
        file = files.open_file(folder, ".gitignore", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            os.write(file, b"*\n")
        finally:
            os.close(file)


@contextmanager
def _explain_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except files.OutsideFolder as error:
        raise StoreError(
            f"The state folder {printable_path(path)} is a link.", f"{_REMOVE_HINT} {_STORE_URL_HINT}"
        ) from error
    except OSError as error:
        raise StoreError(
            f"The state folder {printable_path(path)} cannot be used: {error.strerror}.",
            f"Make {printable_path(path.parent)} writable. {_STORE_URL_HINT}",
        ) from error


# Mount points of this machine as listed by the kernel, without access to the mounts themselves.

_MOUNTINFO = Path("/proc/self/mountinfo")
_OCTAL = re.compile(rb"\\([0-3][0-7]{2})")


def mount_points() -> set[str]:
    """Return the mount points below `/`, or an empty set if the system has no such list."""
    try:
        lines = _MOUNTINFO.read_bytes().splitlines()
    except OSError:
        return set()
    # Spaces, tabs, line ends and backslashes are escaped as octal numbers.
    names = (_OCTAL.sub(lambda match: bytes([int(match[1], 8)]), line.split()[4]) for line in lines)
    return {os.fsdecode(name) for name in names} - {"/"}


# Linux generates a new boot id at each start; see random(4).
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")

# Outside of these years, arithmetic on instants may overflow.
_FIRST_YEAR, _LAST_YEAR = 1900, 9000


@dataclass(frozen=True, slots=True)
class RuntimeContext:
    """Environment of a command: variables, working folder, clock, settings, registries and messages.

    `as_of` replaces the clock for replays; None means the real time. `registries` are the roots of the
    registries whose contracts the command reads. `is_elsewhere`: `folder` is not the process's working
    folder.
    """

    environment: Mapping[str, str] = field(repr=False)  # it holds secrets
    folder: Path
    as_of: datetime | None = None
    settings: Settings = field(default_factory=Settings)
    registries: tuple[Path, ...] = ()
    is_elsewhere: bool = False
    messages: Messages = field(default_factory=Messages, compare=False, repr=False)

    def resolve_path(self, path: str) -> str:
        """Return a path or URI for Spark, which resolves relative paths in the process's working folder."""
        return str(self.folder / path) if self.is_elsewhere and "://" not in path else path

    def note(self, text: str) -> None:
        """Add a note for the caller; see `Messages`."""
        self.messages.note(text)

    def now(self) -> datetime:
        """Return the current time in UTC, or `as_of`."""
        return (self.as_of or datetime.now(UTC)).astimezone(UTC)

    def uptime(self) -> Uptime | None:
        """Return the uptime of this machine, or None if the system does not provide it."""
        from dq.dataquality.delivery.heartbeat import Uptime

        try:
            start = _BOOT_ID.read_text("ascii").strip()
            return Uptime(start, timedelta(seconds=time.clock_gettime(time.CLOCK_BOOTTIME)))
        except (OSError, AttributeError, ValueError):
            return None

    def store_url(self) -> str:
        """Return the setting `store_url`, or the URL of an SQLite file under the working folder."""
        file = self.folder / FOLDER / STORE
        return self.settings.store_url or f"sqlite:///{file}"

    def state(self) -> Path:
        """Return the folder `.dq` below the working folder. Raises StoreError if it is not trusted."""
        return prepare_state_folder(self.folder, _tracked)

    def cache_folder(self) -> Path | None:
        """Return the folder for results that can be computed again, in the user's cache; None without one.

        It may not exist. A relative XDG_CACHE_HOME is ignored, as its specification demands.
        """
        cache = self.environment.get("XDG_CACHE_HOME", "")
        if os.path.isabs(cache):
            return Path(cache, "dq")
        home = self.environment.get("LOCALAPPDATA" if os.name == "nt" else "HOME", "")
        if not os.path.isabs(home):
            return None
        return Path(home, "dq", "cache") if os.name == "nt" else Path(home, ".cache", "dq")

    @property
    def reach(self) -> AccessPolicy:
        """Locations, hosts and variables that contracts may name. Computed per access, since links may
        change.
        """
        return self.reach_by(lambda paths: [*map(os.path.realpath, paths)])

    def reach_by(self, resolve: Callable[[Sequence[Path]], Sequence[str]]) -> AccessPolicy:
        """Return the same as `reach`, with links in the lake roots followed by `resolve`."""
        settings = self.settings
        return build_access_policy(
            self.folder,
            settings.lake_roots,
            registries=self.registries,
            hosts=settings.hosts,
            names=settings.vars,
            environment=self.environment,
            resolve=resolve,
        )

    def has_store(self) -> bool:
        """Return True unless the state store is a SQLite file that does not exist yet."""
        return bool(self.settings.store_url) or (self.folder / FOLDER / STORE).exists()

    def store(self) -> Store:
        """Open the state store; a missing SQLite file is created."""
        from dq.store.engine import open_store

        if not self.settings.store_url:
            self.state()
        return open_store(self.store_url())


def _tracked(folder: Path) -> bool:
    if not any(os.path.lexists(above / ".git") for above in folder.absolute().parents):
        return False
    # Imported here: outside of a repository, Git is not needed.
    from dq.validators.git.repository import is_tracked

    return is_tracked(folder)


def catalog_location(context: RuntimeContext, place: DataLocation, catalog: str) -> DataLocation:
    """Return the place with an absolute path for catalogs other than `local`, which are read from
    anywhere.
    """
    if catalog == "local" or place.type != "local" or not place.path or "://" in place.path:
        return place
    return replace(place, path=str(context.folder / place.path))


def processors() -> int:
    """Return the number of processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def registry_root(path: Path) -> Path:
    """Return the nearest folder around a path with a policy or a Git repository, or the path's own folder."""
    # The path itself is not resolved if it is a link to a file: the registry is around its name.
    start = Path(os.path.realpath(path if path.is_dir() else path.parent))
    return next((folder for folder in (start, *start.parents) if is_root(folder)), start)


def is_root(folder: Path) -> bool:
    """True if the folder is a registry root, i.e. contains the policy or a Git repository."""
    # A policy that is a link also marks a root, and is refused when it is read.
    return any(os.path.lexists(folder / name) for name in (POLICY_FILE, ".git"))


def outermost_root(folder: Path) -> Path | None:
    """Return the outermost registry root around a resolved folder, or None if there is none."""
    return next((candidate for candidate in reversed((folder, *folder.parents)) if is_root(candidate)), None)


def runtime_context(
    as_of: str | None = None,
    paths: Sequence[Path] = (),
    working_folder: Path | None = None,
    messages: Messages | None = None,
) -> RuntimeContext:
    """Return the context of this process, for a command that reads the contracts at `paths`.

    `working_folder` replaces the working folder of the process. `messages` receives messages of operations.

    Raises UsageError for an `as_of` that is not an instant with a zone, for invalid settings, and for a
    `dq.toml` inside of a registry, where a pull request could change it.
    """
    environment, folder = (
        dict(os.environ),
        Path.cwd() if working_folder is None else working_folder.absolute(),
    )
    loaded_settings = settings.read(environment, folder, CONFIG.get())
    registries = tuple(dict.fromkeys(registry_root(path) for path in paths))
    for root in registries:
        if loaded_settings.file is not None and loaded_settings.file.resolve().is_relative_to(root):
            raise UsageError(
                f"{loaded_settings.file} is in the registry {root}, where a pull request could change it.",
                "Move it elsewhere, and set DQ_CONFIG or --config.",
            )
    as_of_instant = parse_instant(as_of) if as_of else None
    return RuntimeContext(
        environment,
        folder,
        as_of_instant,
        loaded_settings,
        registries,
        working_folder is not None,
        messages or MESSAGES.get()(),
    )


def call_context(
    paths: Path | str | Sequence[Path | str] | None,
    folder: Path | str | None = None,
    now: datetime | None = None,
) -> tuple[RuntimeContext, tuple[Path, ...]]:
    """Return the context of a call from Python, and its contract paths relative to `folder`.

    `paths` is None for a call that reads no contract.

    Raises as `runtime_context`, and UsageError for an empty list of paths and for a `now` without zone.
    """
    as_of = to_utc("now", now)
    working = Path(folder) if folder is not None else None
    raw_paths = () if paths is None else [paths] if isinstance(paths, Path | str) else paths
    listed = [Path(path) for path in raw_paths]
    if not listed and paths is not None:
        raise UsageError("no contract given.", "Pass one or more files or folders.")
    places = tuple(listed if working is None else [working / path for path in listed])
    context = runtime_context(None, places, working)
    return replace(context, as_of=as_of), places


def to_utc(name: str, moment: datetime | None) -> datetime | None:
    """Return the instant in UTC, or None for None. Raises UsageError, with its `name`, if it has no zone."""
    if moment is None:
        return None
    if moment.tzinfo is None:
        raise UsageError(f"{name}={moment!r} has no time zone.", "Pass an aware datetime.")
    # Airflow's datetime subclass (pendulum) loses its zone in some operations.
    return datetime.fromisoformat(moment.isoformat()).astimezone(UTC)


def user() -> str:
    """Return the operating system's user name of this process, or "" if there is none."""
    import getpass

    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):
        return ""


def read_secret(file: Path, variable: str) -> str:
    """Return the secret in a file that a variable names. Raises UsageError if it cannot be read."""
    try:
        return read_own(file).decode().strip()
    except (FileRejected, UnicodeDecodeError) as error:
        reason = error.message if isinstance(error, FileRejected) else f"{file} is not UTF-8."
        raise UsageError(f"{variable}: {reason}", "Fix the path.") from error


def export_env(name: str, value: str) -> None:
    """Set an environment variable for child processes."""
    os.environ[name] = value


def parse_instant(text: str) -> datetime:
    """Parse an ISO 8601 instant with an offset or Z; return it in UTC. Raises UsageError if invalid."""
    try:
        parsed = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(f"invalid time {text!r}.", "Use e.g. 2026-05-01T06:00:00Z.") from None
    if parsed.tzinfo is None:
        raise UsageError(
            f"{text!r} has no time zone.", f"Use {text}Z for UTC, or add an offset, e.g. +02:00."
        )
    if not _FIRST_YEAR <= parsed.year <= _LAST_YEAR:
        raise UsageError(f"{text!r} is out of range.", f"Use a year from {_FIRST_YEAR} to {_LAST_YEAR}.")
    return parsed.astimezone(UTC)


def format_instant(moment: datetime) -> str:
    """Return the instant as `parse_instant` reads it, in UTC and to the second, e.g. 2026-05-01T06:00:00Z."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def parse_duration(text: str, option: str = "") -> timedelta:
    """Parse a duration, e.g. 15m or 30d. Raises UsageError if invalid; its message begins with the option."""
    length = parse_elapsed(text)
    if isinstance(length, ValueProblem):
        raise UsageError(f"{option}: {length.message}" if option else length.message, length.hint)
    return length


def parse_interval(text: str, option: str) -> timedelta:
    """Parse an interval between runs. Raises UsageError if it is invalid or zero."""
    length = parse_duration(text, option)
    if not length:
        raise UsageError(f"{option} must be greater than zero.", "Use e.g. 15m.")
    return length
