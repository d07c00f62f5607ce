"""The folder of a site: files are put there all or nothing, no link is followed, and foreign files stay."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from dq.contracts.access import files
from dq.contracts.access.files import shown
from dq.contracts.shared.outcome import Unreadable, UsageError

OWN = ".dq-portal"
"""What makes a folder a portal's own: it holds the lock, and what the last build has written."""
_LOCK, _PLANNED = "lock", "planned"
_NEW_FILE = "new-"
_MOST_KEPT = 1 << 31
# The pages of what may be gone one day; all others are written by every build.
_PAGES = re.compile(
    r"products/[^/]+/(index\.html|status\.json|badge\.svg|incidents\.xml)"
    r"|(incidents|lists(/pages)?|domains(/pages)?)/[^/]+\.html"
    r"|search/[fw]-[^/]+\.js"
)


@dataclass(slots=True)
class Site:
    """A folder that this process alone writes to. `written` and `same` count files."""

    root: Path
    written: int = 0
    same: int = 0
    removed: int = 0
    paths: set[str] = field(default_factory=set)

    def put(self, path: str, data: bytes) -> None:
        """Puts a file there, unless it holds these bytes already.

        Raises OutsideFolder where a link lies, and OSError with the name of the file where it cannot be put.
        """
        self.paths.add(path)
        *below, name = files.parts(path)
        try:
            try:
                self._put(below, name, data, make=False)
            except FileNotFoundError:
                self._put(below, name, data, make=True)
        except files.OutsideFolder:
            raise
        except OSError as error:
            # The system names the file beside, which is written first, or none.
            raise OSError(error.errno, error.strerror, str(self.root / path)) from error

    def _put(self, below: list[str], name: str, data: bytes, *, make: bool) -> None:
        with files.open_folder(self.root, below, make=make) as folder:
            if _holds(folder, name, data):
                self.same += 1
            else:
                self._place(folder, name, data)
                self.written += 1

    def keep(self, paths: Iterable[str]) -> None:
        """Says of files that they are as they should be."""
        self.paths.update(paths)

    def has(self, path: str) -> bool:
        """Whether there is a file of this name."""
        return os.path.isfile(f"{self.root}/{path}")

    def pages(self) -> list[str]:
        """The files that lie where a portal's pages do, for a build that does not know what the last one
        wrote. No link is followed."""
        return [
            path
            for folder, _, names in os.walk(self.root)
            for name in names
            if _PAGES.fullmatch(path := os.path.relpath(os.path.join(folder, name), self.root))
        ]

    def clear(self, before: Iterable[str]) -> None:
        """Removes what an earlier build put there and this one did not; folders that are empty then, too."""
        for path in sorted(set(before) - self.paths):
            try:
                *below, name = files.parts(path)
                with files.open_folder(self.root, below) as folder:
                    files.remove(folder, name)
            except OSError:
                continue
            self.removed += 1
            for depth in range(len(below), 0, -1):
                with suppress(OSError):
                    self.root.joinpath(*below[:depth]).rmdir()

    def plan(self, paths: Iterable[str]) -> None:
        """Notes what is about to be written, so that the next build knows, should this one be killed."""
        self._own(_PLANNED, "\n".join(sorted(paths)).encode())

    def planned(self) -> list[str]:
        """What a build that did not end was about to write."""
        return self.kept(_PLANNED).decode("utf-8", "replace").splitlines()

    def kept(self, name: str) -> bytes:
        """What an earlier build has kept under a name; nothing where there is none."""
        with suppress(OSError), files.open_folder(self.root, [OWN]) as folder:
            return _read(folder, name)
        return b""

    def keep_for_later(self, name: str, data: bytes) -> None:
        """Keeps something for the next build while this one goes on."""
        self._own(name, data)

    def keep_for_next(self, name: str, data: bytes) -> None:
        """Keeps something for the next build, and forgets what was planned: this build has ended."""
        self._own(name, data)
        with suppress(OSError), files.open_folder(self.root, [OWN]) as folder:
            files.remove(folder, _PLANNED)

    def _own(self, name: str, data: bytes) -> None:
        with files.open_folder(self.root, [OWN], make=True) as folder:
            self._place(folder, name, data)

    def _place(self, folder: files.Folder, name: str, data: bytes) -> None:
        # Written beside the lock, so that nobody publishes what a killed build has left of a file.
        beside = f"{_NEW_FILE}{os.getpid()}"
        with files.open_folder(self.root, [OWN], make=True) as own:
            file = files.open_file(own, beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
            with open(file, "wb") as new:
                new.write(data)
            os.replace(beside, name, src_dir_fd=_number(own), dst_dir_fd=_number(folder))


@contextmanager
def opened(root: Path) -> Iterator[Site]:
    """The site at a folder, for one build at a time; the folder is made where there is none.

    Raises UsageError for a folder that holds anything and is no portal's, and Unreadable while another build
    writes there.
    """
    if root.exists() and not root.is_dir():
        raise UsageError(f"{shown(root)} is no folder.", "Choose another one for the portal.")
    root.mkdir(parents=True, exist_ok=True)
    names = os.listdir(root)
    if names and (OWN not in names or os.path.islink(root / OWN)):
        raise UsageError(
            f"{shown(root)} holds other files and is no portal's, so that nothing is written there.",
            "Choose a new or an empty folder.",
        )
    with files.open_folder(root, [OWN], make=True) as folder:
        held = files.open_file(folder, _LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    # Windows has none; a portal is built elsewhere.
    import fcntl

    try:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Unreadable(
                f"Another build is writing to {shown(root)}.", "Run the command again when it has ended."
            ) from None
        with files.open_folder(root, [OWN]) as folder:
            _remove_leftovers(folder)
        yield Site(root)
    finally:
        os.close(held)


def _holds(folder: files.Folder, name: str, data: bytes) -> bool:
    try:
        return files.look(folder, name).st_size == len(data) and _read(folder, name) == data
    except OSError:
        return False


def _read(folder: files.Folder, name: str) -> bytes:
    with open(files.open_file(folder, name), "rb") as file:
        return file.read(_MOST_KEPT)


def _number(folder: files.Folder) -> int:
    """The descriptor of an open folder: the portal is written where folders have one."""
    if isinstance(folder, str):
        raise UsageError("The portal cannot be written on this system.", "Build it on Linux or macOS.")
    return folder


def _remove_leftovers(folder: files.Folder) -> None:
    """What builds left that were killed while they wrote a file."""
    for name in os.listdir(folder):
        if name.startswith(_NEW_FILE):
            with suppress(OSError):
                files.remove(folder, name)
