"""The site's output folder, the state of the last build, and the worker processes."""

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
from dq.contracts.access.files import printable_path
from dq.contracts.outcome import Finding, ReadError, UsageError
from dq.portal import contracts, product
from dq.portal.contracts import ContractCard, Problem
from dq.portal.lists import NotedChange
from dq.portal.product import ConsumerFacts, ProductSummary
from dq.store.engine import Store

# The output folder: files are written atomically, links are not followed, and other files are left alone.

OWN = ".dq-portal"
"""Folder that marks a portal; it holds the lock and the state of the last build."""
_LOCK = "lock"
_NEW_FILE = "new-"
_MAX_BYTES = 1 << 31
_AS_OF_LINE = re.compile(rb'<p id="as-of">.*?</p>')
# Pages that may become obsolete; all others are written by every build.
_PAGES = re.compile(
    r"products/[^/]+/(index\.html|status\.json|badge\.svg|incidents\.xml)"
    r"|(incidents|lists(/pages)?|domains(/pages)?)/[^/]+\.html"
    r"|search/[fw]-[^/]+\.js"
)


@dataclass(slots=True)
class Site:
    """Output folder locked by this process. `files_written`, `same` and `removed` count files."""

    root: Path
    files_written: int = 0
    same: int = 0
    removed: int = 0
    paths: set[str] = field(default_factory=set)

    def put(self, path: str, data: bytes, *, keep_as_of: bool = False) -> None:
        """Write a file, unless it has this content already.

        `keep_as_of`: also leave a page alone if only its "as of" line would differ.

        Raises OutsideFolder if a link is in the way, and OSError with the file's name if it cannot be
        written.
        """
        self.paths.add(path)
        *below, name = files.split_name(path)
        try:
            try:
                self._put(below, name, data, keep_as_of, make=False)
            except FileNotFoundError:
                self._put(below, name, data, keep_as_of, make=True)
        except files.OutsideFolder:
            raise
        except OSError as error:
            # The original error names the temporary file, or none.
            raise OSError(error.errno, error.strerror, str(self.root / path)) from error

    def _put(self, below: list[str], name: str, data: bytes, keep_as_of: bool, *, make: bool) -> None:
        with files.open_folder(self.root, below, make=make) as folder:
            if _holds(folder, name, data, keep_as_of):
                self.same += 1
            else:
                self._place(folder, name, data)
                self.files_written += 1

    def keep(self, paths: Iterable[str]) -> None:
        """Leave files of the last build as they are."""
        listed = list(paths)
        self.paths.update(listed)
        self.same += len(listed)

    def has(self, path: str) -> bool:
        """Return True if the site has this file."""
        return os.path.isfile(f"{self.root}/{path}")

    def pages(self) -> list[str]:
        """Return the files at the paths of portal pages, for a build without the state of the last one.

        Links are not followed.
        """
        return [
            path
            for folder, _, names in os.walk(self.root)
            for name in names
            if _PAGES.fullmatch(path := os.path.relpath(os.path.join(folder, name), self.root))
        ]

    def clear(self, before: Iterable[str]) -> None:
        """Remove files of an earlier build that this one did not write, and folders left empty."""
        for path in sorted(set(before) - self.paths):
            try:
                *below, name = files.split_name(path)
                with files.open_folder(self.root, below) as folder:
                    files.remove(folder, name)
            except OSError:
                continue
            self.removed += 1
            for depth in range(len(below), 0, -1):
                with suppress(OSError):
                    self.root.joinpath(*below[:depth]).rmdir()

    def read_cached(self, name: str) -> bytes:
        """Return the cache of an earlier build with this name, or b"" if it is missing or damaged."""
        with suppress(OSError), files.open_folder(self.root, [OWN]) as folder:
            digest, _, data = _read(folder, name).partition(b"\n")
            return data if digest == _digest(data) else b""
        return b""

    def write_cached(self, name: str, content: str) -> None:
        """Write a cache for the next build, with its hash in the first line."""
        data = content.encode()
        with files.open_folder(self.root, [OWN], make=True) as folder:
            self._place(folder, name, _digest(data) + b"\n" + data)

    def _place(self, folder: files.Folder, name: str, data: bytes) -> None:
        # Written next to the lock, so that the partial file of a killed build is never published.
        temp_name = f"{_NEW_FILE}{os.getpid()}"
        with files.open_folder(self.root, [OWN]) as own:
            file = files.open_file(own, temp_name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
            with open(file, "wb") as new:
                new.write(data)
            os.replace(temp_name, name, src_dir_fd=_number(own), dst_dir_fd=_number(folder))


@contextmanager
def open_site(root: Path) -> Iterator[Site]:
    """Lock the output folder for one build; it is created if missing.

    Raises UsageError if the folder has other content, and ReadError while another build holds the lock.
    """
    if root.exists() and not root.is_dir():
        raise UsageError(f"{printable_path(root)} is not a folder.", "Choose another folder for the portal.")
    root.mkdir(parents=True, exist_ok=True)
    names = os.listdir(root)
    if names and (OWN not in names or os.path.islink(root / OWN)):
        raise UsageError(
            f"{printable_path(root)} is not a portal and contains other files; nothing was written.",
            "Choose a new or an empty folder.",
        )
    with files.open_folder(root, [OWN], make=True) as folder:
        lock = files.open_file(folder, _LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    # Imported here: Windows does not have it.
    import fcntl

    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ReadError(
                f"Another build is writing to {printable_path(root)}.",
                "Run the command again when it has finished.",
            ) from None
        with files.open_folder(root, [OWN]) as folder:
            _remove_leftovers(folder)
        yield Site(root)
    finally:
        os.close(lock)


def _holds(folder: files.Folder, name: str, data: bytes, keep_as_of: bool) -> bool:
    try:
        if files.stat_entry(folder, name).st_size != len(data):
            return False
        present = _read(folder, name)
    except OSError:
        return False
    return present == data or (
        keep_as_of and _AS_OF_LINE.sub(b"", present, 1) == _AS_OF_LINE.sub(b"", data, 1)
    )


def _read(folder: files.Folder, name: str) -> bytes:
    with open(files.open_file(folder, name), "rb") as file:
        return file.read(_MAX_BYTES)


def _digest(data: bytes) -> bytes:
    return sha256(data).hexdigest().encode()


def _number(folder: files.Folder) -> int:
    """Return the descriptor of an open folder. Raises UsageError on systems without folder descriptors."""
    if isinstance(folder, str):
        raise UsageError("The portal cannot be built on this system.", "Build it on Linux or macOS.")
    return folder


def _remove_leftovers(folder: files.Folder) -> None:
    """Remove temporary files of killed builds."""
    for name in os.listdir(folder):
        if name.startswith(_NEW_FILE):
            with suppress(OSError):
                files.remove(folder, name)


# Request and result of a build.


@dataclass(frozen=True, slots=True)
class WaiverEnd:
    """A waiver that ends soon; `expires` is an ISO date."""

    what: str
    expires: str
    by: str
    reason: str


@dataclass(frozen=True, slots=True)
class PortalRequest:
    """Build a site in the folder `out` for the contracts at `paths`, with the data of `store` as of `now`.

    `tick` is the intended interval of the watcher. `settle` returns findings for files whose key another file
    owns. `waivers` are those that end soon, or None if unknown. `workers` is the maximum number of processes.
    `as_of` equals `now` if it is a past instant, else None. `registry_url` is the page of the registry's
    folder on GitHub or GitLab, "" if unknown. `accepted_alarms` are the accepted false alarms a day of
    unusual numbers, 0 without a limit. `progress` is called with (what, done, total).
    """

    out: Path
    paths: tuple[Path, ...]
    store: Store
    store_url: str
    now: datetime
    tick: timedelta
    settle: Callable[[Mapping[str, str]], Sequence[Finding]]
    consumers: Sequence[ConsumerFacts] = ()
    waivers: Sequence[WaiverEnd] | None = ()
    workers: int = 1
    as_of: datetime | None = None
    registry_url: str = ""
    accepted_alarms: float = 0.0
    progress: Callable[[str, int, int], None] = lambda _what, _done, _all: None


@dataclass(frozen=True, slots=True)
class PortalSummary:
    """Result of a build: number of products, of rendered products, and of files written, unchanged and
    removed.

    `problems` are the reasons why contracts could not be read, and `unjudged` why versions could not be
    evaluated.
    """

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
            "problems": [asdict(problem) for problem in self.problems],
            "unjudged": list(self.unjudged),
        }


# The state of the last build: cards and summaries of all products, its files, and contract changes.
#
# It is stored as JSON Lines next to the site's lock. A state that is damaged, or was written by another
# version of dq, is ignored: then every page is rendered, and other files at the paths of pages are removed.

_NAME, _STATE_VERSION = "state.jsonl", 9
_MAX_CHANGES = 200
# Fields of the state that its first line holds unchanged.
_HEAD_FIELDS = ("made_by", "built", "marks", "files", "readable_versions")


@dataclass(slots=True)
class CachedContract:
    """One contract of the last build; `inputs` is the hash of the inputs of its page other than the store.

    `stamp` is that of its file before it was read. `line` is its line in the file of the state, "" before it
    is written.
    """

    card: ContractCard
    summary: ProductSummary
    inputs: str
    stamp: str
    line: str = ""


@dataclass(slots=True)
class SiteState:
    """State of a build: `made_by` is the hash of templates and code, `marks` are the store's watermarks."""

    made_by: str = ""
    built: str = ""
    marks: dict[str, Any] = field(default_factory=dict)
    contracts: dict[str, CachedContract] = field(default_factory=dict)
    files: list[str] = field(default_factory=list)
    changes: list[NotedChange] = field(default_factory=list)
    readable_versions: dict[str, list[str]] = field(default_factory=dict)
    """Version and digest of each contract when it was last readable, by its key."""


def load(site: Site) -> SiteState:
    """Return the state of the last build; without one, all files at the paths of pages count as its files."""
    try:
        state = _read_state(site.read_cached(_NAME).decode().splitlines())
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError):
        state = None
    return state or SiteState(files=site.pages())


def _read_state(lines: list[str]) -> SiteState | None:
    head = json.loads(lines[0])
    if head["form"] != _STATE_VERSION:
        return None
    state = SiteState(
        **{name: head[name] for name in _HEAD_FIELDS},
        changes=[NotedChange(**change) for change in head["changes"]],
    )
    for line in lines[1:]:
        row = json.loads(line)
        cached = CachedContract(
            contracts.load_card(row[0]), product.load_summary(row[1]), row[2], row[3], line
        )
        state.contracts[cached.card.file] = cached
    return state


def save(site: Site, state: SiteState) -> None:
    """Keep the state for the next build."""
    site.write_cached(_NAME, "\n".join(_lines(state)))


def _lines(state: SiteState) -> Iterator[str]:
    yield json.dumps(
        {
            "form": _STATE_VERSION,
            **{name: getattr(state, name) for name in _HEAD_FIELDS},
            "changes": [asdict(change) for change in state.changes[:_MAX_CHANGES]],
        }
    )
    for cached in state.contracts.values():
        yield cached.line or json.dumps(
            [cached.card.as_json(), cached.summary.as_json(), cached.inputs, cached.stamp]
        )


_INPUTS_NAME = "inputs.json"


def take_inputs(site: Site) -> dict[str, str]:
    """Return the hashes of the inputs of the pages over many products, by path, and forget them.

    If this build is killed, the next one has none and renders all of them.
    """
    try:
        inputs = json.loads(site.read_cached(_INPUTS_NAME))
    except ValueError:
        return {}
    site.write_cached(_INPUTS_NAME, "{}")
    return inputs if isinstance(inputs, dict) else {}


def save_inputs(site: Site, inputs: Mapping[str, str]) -> None:
    """Keep the hashes for the next build, after all of its pages and its state were written."""
    site.write_cached(_INPUTS_NAME, json.dumps(inputs))


def update_changes(before: SiteState, cards: Sequence[ContractCard], noticed_at: str) -> list[NotedChange]:
    """Return the contract changes since the last build, followed by earlier ones; newest first.

    The first build reports no changes, since every contract would be new.
    """
    if not before.readable_versions:
        return before.changes
    new = [
        NotedChange(
            noticed_at,
            card.key,
            card.title,
            card.slug,
            before.readable_versions.get(card.key, [""])[0],
            card.version,
        )
        for card in cards
        if card.readable and before.readable_versions.get(card.key, ["", ""])[1] != card.digest
    ]
    return [*new, *before.changes][:_MAX_CHANGES]


def seen_versions(before: SiteState, cards: Sequence[ContractCard]) -> dict[str, list[str]]:
    """Return version and digest of each contract when it was last readable."""
    return {
        **before.readable_versions,
        **{card.key: [card.version, card.digest] for card in cards if card.readable},
    }


# Worker processes; small builds use none.

T = TypeVar("T")
R = TypeVar("R")

_MIN_PIECES = 4
"""Below this number of pieces, starting processes takes longer than the work."""


def _frozen_mapping(mapping: dict[Any, Any]) -> MappingProxyType[Any, Any]:
    return MappingProxyType(mapping)


# Read-only mappings, such as the subjects of an incident, are sent to worker processes.
copyreg.pickle(MappingProxyType, lambda proxy: (_frozen_mapping, (dict(proxy),)))


def _end_with_parent() -> None:
    """End this process when its parent ends, even if it was killed: another build may hold the lock by
    then.
    """
    parent = parent_process()
    if parent is not None:
        threading.Thread(target=_wait_and_end, args=(parent,), daemon=True).start()


def _wait_and_end(parent: BaseProcess) -> None:
    parent.join()
    os._exit(1)


class WorkerPool:
    """A pool of worker processes, started when there is enough work."""

    def __init__(self, workers: int) -> None:
        self._workers = workers
        self._pool: ProcessPoolExecutor | None = None

    def __enter__(self) -> WorkerPool:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=kind is None, cancel_futures=True)

    def run(self, work: Callable[[T], R], pieces: Sequence[T]) -> Iterator[R]:
        """Yield the result of `work` for each piece, in order. Both must be picklable.

        Raises ReadError if a worker process is killed.
        """
        if self._workers < 2 or (self._pool is None and len(pieces) < _MIN_PIECES):
            yield from map(work, pieces)
            return
        if self._pool is None:
            # A process forked while threads of a database driver run may hang; a spawned one does not.
            context = get_context("spawn")
            self._pool = ProcessPoolExecutor(self._workers, mp_context=context, initializer=_end_with_parent)
        started = [self._pool.submit(work, piece) for piece in pieces]
        try:
            for number, future in enumerate(started):
                yield future.result()
                # Release the result: there may be a hundred thousand of them.
                started[number] = future.__class__()
        except BrokenProcessPool:
            raise ReadError(
                "A worker process of the portal build was killed.",
                "The system may be out of memory. Build with one process: taskset -c 0 dq portal build …",
            ) from None
