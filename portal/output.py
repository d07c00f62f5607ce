"""The site on disk: its folder, what this build and the last one wrote, and the worker processes."""

from __future__ import annotations

import copyreg
import json
import os
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from hashlib import sha256
from multiprocessing import get_context, parent_process
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Any, TypeVar

from dq.contracts.access import files
from dq.contracts.access.files import shown
from dq.contracts.outcome import Finding, Unreadable, UsageError
from dq.contracts.subscriptions import Subscription
from dq.portal import contracts, product
from dq.portal.contracts import Card, Problem
from dq.portal.lists import NotedChange
from dq.portal.product import Summary
from dq.store.engine import Store

# The folder of a site: files are put there all or nothing, no link is followed, and foreign files stay.

OWN = ".dq-portal"
"""What makes a folder a portal's own: it holds the lock, and what the last build has written."""
_LOCK = "lock"
_NEW_FILE = "new-"
_MOST_KEPT = 1 << 31
_AS_OF = re.compile(rb'<p id="as-of">.*?</p>')
# Pages of what may be removed one day; all others are written by every build.
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

    def put(self, path: str, data: bytes, *, keep_as_of: bool = False) -> None:
        """Put a file there, unless it holds these bytes already.

        `keep_as_of`: a page stays if only the line with the time it is as of would differ.

        Raises OutsideFolder where a link lies, and OSError with the name of the file where it cannot be put.
        """
        self.paths.add(path)
        *below, name = files.parts(path)
        try:
            try:
                self._put(below, name, data, keep_as_of, make=False)
            except FileNotFoundError:
                self._put(below, name, data, keep_as_of, make=True)
        except files.OutsideFolder:
            raise
        except OSError as error:
            # The system names the file beside, which is written first, or none.
            raise OSError(error.errno, error.strerror, str(self.root / path)) from error

    def _put(self, below: list[str], name: str, data: bytes, keep_as_of: bool, *, make: bool) -> None:
        with files.open_folder(self.root, below, make=make) as folder:
            if _holds(folder, name, data, keep_as_of):
                self.same += 1
            else:
                self._place(folder, name, data)
                self.written += 1

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

    def kept(self, name: str) -> bytes:
        """What an earlier build kept under this name; empty if it is missing or damaged."""
        with suppress(OSError), files.open_folder(self.root, [OWN]) as folder:
            digest, _, data = _read(folder, name).partition(b"\n")
            return data if digest == _digest(data) else b""
        return b""

    def keep(self, name: str, text: str) -> None:
        """Keep a text for the next build, below its hash."""
        data = text.encode()
        with files.open_folder(self.root, [OWN], make=True) as folder:
            self._place(folder, name, _digest(data) + b"\n" + data)

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


def _holds(folder: files.Folder, name: str, data: bytes, keep_as_of: bool) -> bool:
    try:
        if files.look(folder, name).st_size != len(data):
            return False
        present = _read(folder, name)
    except OSError:
        return False
    return present == data or (keep_as_of and _AS_OF.sub(b"", present, 1) == _AS_OF.sub(b"", data, 1))


def _read(folder: files.Folder, name: str) -> bytes:
    with open(files.open_file(folder, name), "rb") as file:
        return file.read(_MOST_KEPT)


def _digest(data: bytes) -> bytes:
    return sha256(data).hexdigest().encode()


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


# What a build is asked for, what it says it has done, and what the last one knew.

# What a build is asked for, and what it says it has done.


@dataclass(frozen=True, slots=True)
class WaiverEnd:
    """A waiver that ends soon; `expires` is a date, as text."""

    what: str
    expires: str
    by: str
    reason: str


@dataclass(frozen=True, slots=True)
class PortalRequest:
    """The contracts at `paths` and what `store` knows of them, as of `now`, as a site in the folder `out`.

    `tick` is how often the watcher is meant to run. `settle` gives the findings against files, by name, whose
    key another file holds. `waivers` are those that end soon, None where they are not known. `workers` is how
    many processes may write; `as_of` is `now` where it is a past instant. `progress` hears how much of how
    much is done.
    """

    out: Path
    paths: tuple[Path, ...]
    store: Store
    store_url: str
    now: datetime
    tick: timedelta
    settle: Callable[[Mapping[str, str]], Sequence[Finding]]
    subscriptions: Sequence[Subscription] = ()
    waivers: Sequence[WaiverEnd] | None = ()
    workers: int = 1
    as_of: datetime | None = None
    progress: Callable[[str, int, int], None] = lambda _what, _done, _all: None


@dataclass(frozen=True, slots=True)
class PortalSummary:
    """What a build did: how many products there are, how many pages were made anew, and what of the site's
    files was written, left as it was and removed. `problems` are why contracts could not be read, and
    `unjudged` why Git cannot tell what versions broke, with mends."""

    out: Path
    products: int
    rendered: int
    written: int
    same: int
    removed: int
    stale: bool
    states: Mapping[str, int] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()
    unjudged: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, object]:
        """As JSON values."""
        return {
            **{name: getattr(self, name) for name in self.__slots__},
            "out": str(self.out),
            "states": dict(self.states),
            "problems": [asdict(one) for one in self.problems],
            "unjudged": list(self.unjudged),
        }


# What the last build knew: the cards and rows of all products, its files, and what changed of contracts.
#
# It is one JSON value a line, next to the site's lock. A state that is damaged, or that another dq wrote,
# counts as none: then every page is rendered, and files that look like pages and were not are removed.

_NAME, _FORM = "state.jsonl", 5
_CHANGES = 200
# Fields of the state that its first line holds as they are.
_HEAD = ("made_by", "built", "marks", "files", "seen")


@dataclass(slots=True)
class KeptContract:
    """One contract of the last build; `inputs` is the hash of all that its page was made from next to the
    store."""

    card: Card
    summary: Summary
    inputs: str


@dataclass(slots=True)
class SiteState:
    """`made_by` is the hash of what pages were made with, `marks` are where the store's tables ended."""

    made_by: str = ""
    built: str = ""
    marks: dict[str, Any] = field(default_factory=dict)
    contracts: dict[str, KeptContract] = field(default_factory=dict)
    files: list[str] = field(default_factory=list)
    changes: list[NotedChange] = field(default_factory=list)
    seen: dict[str, list[str]] = field(default_factory=dict)
    """The version and the digest of each contract as it could last be read, by its key."""


def load(site: Site) -> SiteState:
    """The state of the last build; if there is none, all files that look like pages count as its files."""
    try:
        found = _read_state(site.kept(_NAME).decode().splitlines())
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError):
        found = None
    return found or SiteState(files=site.pages())


def _read_state(lines: list[str]) -> SiteState | None:
    head = json.loads(lines[0])
    if head["form"] != _FORM:
        return None
    found = SiteState(
        **{name: head[name] for name in _HEAD}, changes=[NotedChange(**one) for one in head["changes"]]
    )
    for line in lines[1:]:
        row = json.loads(line)
        kept = KeptContract(contracts.loaded_card(row[0]), product.loaded_row(row[1]), row[2])
        found.contracts[kept.card.file] = kept
    return found


def save(site: Site, state: SiteState) -> None:
    """Keep the state for the next build."""
    site.keep(_NAME, "\n".join(_lines(state)))


def _lines(state: SiteState) -> Iterator[str]:
    yield json.dumps(
        {
            "form": _FORM,
            **{name: getattr(state, name) for name in _HEAD},
            "changes": [asdict(one) for one in state.changes[:_CHANGES]],
        }
    )
    for one in state.contracts.values():
        yield json.dumps([one.card.dumped(), one.summary.dumped(), one.inputs])


def changed(before: SiteState, cards: Sequence[Card], at: str) -> list[NotedChange]:
    """What changed of contracts since the last build, then what was noted before; newest first.

    The first build of all notes nothing: everything would be new.
    """
    if not before.seen:
        return before.changes
    new = [
        NotedChange(at, one.key, one.title, one.slug, before.seen.get(one.key, [""])[0], one.version)
        for one in cards
        if one.readable and before.seen.get(one.key, ["", ""])[1] != one.digest
    ]
    return [*new, *before.changes][:_CHANGES]


def seen(before: SiteState, cards: Sequence[Card]) -> dict[str, list[str]]:
    """How each contract could last be read."""
    return {**before.seen, **{one.key: [one.version, one.digest] for one in cards if one.readable}}


# The processes that share the work of a build; none but this one where there is little.

T = TypeVar("T")
R = TypeVar("R")

_WORTH_IT = 4
"""Fewer pieces are done sooner than processes start."""


def _frozen(held: dict[Any, Any]) -> MappingProxyType[Any, Any]:
    return MappingProxyType(held)


# What is frozen in facts, such as the subjects of an incident, goes to other processes as well.
copyreg.pickle(MappingProxyType, lambda held: (_frozen, (dict(held),)))


def _end_with_parent() -> None:
    """Ends this process with the one that started it, also where that was killed: its lock is free then, and
    another build may be writing."""
    parent = parent_process()
    if parent is not None:
        threading.Thread(target=_wait_and_end, args=(parent,), daemon=True).start()


def _wait_and_end(parent: BaseProcess) -> None:
    parent.join()
    os._exit(1)


class Crew:
    """So many processes, which start when there is enough to do for them."""

    def __init__(self, workers: int) -> None:
        self._workers = workers
        self._pool: ProcessPoolExecutor | None = None

    def __enter__(self) -> Crew:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=kind is None, cancel_futures=True)

    def each(self, work: Callable[[T], R], pieces: Sequence[T]) -> Iterator[R]:
        """What `work` gives for each piece, in order. Both must be picklable.

        Raises Unreadable where one of the processes is killed.
        """
        if self._workers < 2 or (self._pool is None and len(pieces) < _WORTH_IT):
            yield from map(work, pieces)
            return
        if self._pool is None:
            # A process that is forked beside a database driver's threads may hang; a new one cannot.
            context = get_context("spawn")
            self._pool = ProcessPoolExecutor(self._workers, mp_context=context, initializer=_end_with_parent)
        started = [self._pool.submit(work, piece) for piece in pieces]
        try:
            for number, one in enumerate(started):
                yield one.result()
                # What was given is not held: there may be a hundred thousand of them.
                started[number] = one.__class__()
        except BrokenProcessPool:
            raise Unreadable(
                "A process that helps to build the portal was ended from outside.",
                "The system may have lacked memory. Build with one process: taskset -c 0 dq portal build …",
            ) from None
