"""What operations call: events for what they do where the operator asks, and the thread that sends them."""

from __future__ import annotations

import importlib.util
import posixpath
import queue
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dq.contracts.access.access_policy import is_remote
from dq.contracts.access.data_location import resolve, server_beside, server_of
from dq.contracts.access.discovery import discover
from dq.contracts.access.files import FileRefused, read
from dq.contracts.lineage import declared, inputs
from dq.contracts.model import Contract, SchemaObject
from dq.contracts.shared.install import install_command
from dq.contracts.shared.outcome import DqError, Unreadable
from dq.contracts.yaml.parse import parse
from dq.dataquality.report import Report
from dq.operations.check import Partition, Setup, name_of
from dq.operations.runtime.context import World

if TYPE_CHECKING:
    from dq.operations.openlineage_events import CheckedScope, DatasetName, LineageSubject


# Sends events beside the work: a thread of its own, which is waited for at the end, and not for long.
#
# Whoever takes the events may be down, slow or hostile: that costs one line on stderr, and changes nothing.

# What waits beyond this is thrown away: a backend that is slow for hours must not fill the memory.
_MOST_WAITING = 10_000


class EventSender:
    """Events in the order in which they were given. `emit` hands one over, and raises whatever it likes."""

    def __init__(self, emit: Callable[[Any], object]) -> None:
        self._emit = emit
        self._waiting: queue.Queue[Any] = queue.Queue(_MOST_WAITING)
        self._given = self._sent = 0
        self._reason = ""
        self._lock = threading.Lock()
        self._idle = threading.Event()
        self._idle.set()
        self._thread: threading.Thread | None = None

    def send(self, event: Any) -> None:
        """Takes the event, and never waits."""
        with self._lock:
            self._given += 1
            try:
                self._waiting.put_nowait(event)
            except queue.Full:
                return
            self._idle.clear()
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="lineage", daemon=True)
                self._thread.start()

    def close(self, seconds: float) -> str | None:
        """Waits at most so long for what is left, and tells what was not sent and why; None: all was."""
        begun = time.monotonic()
        over = not self._idle.wait(seconds)
        with self._lock:
            missing = self._given - self._sent
            if not missing:
                return None
            waited = f"no answer within {time.monotonic() - begun:.0f} s"
            return f"{missing} of {self._given} events were not sent: {waited if over else self._reason}"

    def _run(self) -> None:
        while True:
            event = self._waiting.get()
            reason = self._try(event)
            with self._lock:
                if reason is None:
                    self._sent += 1
                else:
                    self._reason = reason
                if self._waiting.empty():
                    self._idle.set()

    def _try(self, event: Any) -> str | None:
        try:
            self._emit(event)
        # The one guard around code that is not ours: no error of it may become one of the check. Its words
        # may quote the address, and a key in it.
        except Exception as error:  # noqa: BLE001
            status = getattr(getattr(error, "response", None), "status_code", None)
            return f"HTTP {status}" if status else _said(error)
        return None


def _said(error: Exception) -> str:
    reason = getattr(error, "strerror", None)
    return f"{type(error).__name__}: {reason}" if reason else type(error).__name__


# The contracts that others are made from, found in their registry without reading all of it.


def beside(registries: Sequence[Path], contracts: Sequence[Contract]) -> list[Contract]:
    """The contracts, and all of their registries in which a declared input can be.

    An input's name begins with the id of its contract or with the name of its object, which stands in that
    contract's text; or it is the path of its file. So the other files need no parsing. What cannot be read
    is left out.
    """
    known = {one.key: one for one in contracts}
    texts = {text for one in contracts for text in declared(one)}
    files = {posixpath.basename(text.rpartition("#")[0]) for text in texts if "#" in text}
    words = {re.split("[/.@]", text.strip())[0].encode() for text in texts if "#" not in text} - {b""}
    if not texts:
        return list(known.values())
    with suppress(Unreadable):
        for file in discover(registries).contracts:
            with suppress(FileRefused):
                content = read(file)
                if file.path.name not in files and not any(word in content for word in words):
                    continue
                parsed = parse(content, str(file))
                broken = any(one.severity.blocks for one in parsed.findings)
                if parsed.contract is not None and not broken:
                    known.setdefault(parsed.contract.key, parsed.contract)
    return list(known.values())


# What commands call: events for what they do where the operator asks for them, and nothing else.

SECONDS = 5.0
"""How long the end of a command waits for events that are not sent yet."""

Check = Callable[[Setup, Contract, SchemaObject, Partition | None], Report]
Ended = Callable[[Report | None], None]
"""Gets the report of a run; None where it was judged before."""


@dataclass(frozen=True, slots=True)
class Recording:
    """Where events go, and what is known of the contracts that they are about."""

    world: World
    sender: EventSender
    contracts: Mapping[str, Contract]
    made_from: Mapping[tuple[str, str], Iterable[tuple[str, str]]]
    server: str | None = None

    def around(self, check: Check) -> Check:
        """The same check, which tells of its start and its end."""

        def told(given: Setup, contract: Contract, one: SchemaObject, scope: Partition | None) -> Report:
            from dq.operations.openlineage_events import CheckedScope

            subject = self.subject(contract, one)
            with self._telling(CheckedScope(subject, name_of(scope)) if subject else None) as ended:
                report = check(given, contract, one, scope)
                ended(report)
            return report

        return told

    @contextmanager
    def audited(
        self, contract: Contract, one: SchemaObject, scope: Partition | None, staged: str
    ) -> Iterator[Ended]:
        """Tells of the start and the end of an audit; who audits hands over what was found.

        Its input is what is staged, so that no graph takes its faults for those of the table.
        """
        from dq.operations.openlineage_events import CheckedScope, LineageSubject

        called = self._staged(contract, one, staged)
        subject = LineageSubject(contract, one, called) if called else None
        run = CheckedScope(subject, name_of(scope or None), "audit", staged) if subject else None
        with self._telling(run) as ended:
            yield ended

    @contextmanager
    def _telling(self, run: CheckedScope | None) -> Iterator[Ended]:
        if run is None:
            yield lambda _: None
            return
        self.sender.send(run.started(self.world.now()))
        try:
            yield lambda report: self.sender.send(run.judged(report, self.world.now()))
        except DqError as error:
            self.sender.send(run.failed(self.world.now(), error.what))
            raise
        except BaseException as error:
            self.sender.send(run.failed(self.world.now(), type(error).__name__))
            raise

    def published(
        self, contract: Contract, one: SchemaObject, id: str, rows: int | None, staged: str | None = None
    ) -> None:
        """Tells of a delivery; `id` is its event's, a UUID. It was made from what was `staged`, if it was."""
        from dq.operations import openlineage_events

        subject = self.subject(contract, one)
        if subject is not None and staged is not None:
            before = self._staged(contract, one, staged)[:1]
            subject = replace(subject, made_from=[*before, *subject.made_from])
        if subject is not None:
            for event in openlineage_events.published(subject, id, self.world.now(), rows):
                self.sender.send(event)

    def subject(self, contract: Contract, one: SchemaObject) -> LineageSubject | None:
        """What events call an object; None where its data has no name, so that nothing can be told."""
        from dq.operations.openlineage_events import LineageSubject

        called = self._called(contract, one, self.server)
        return LineageSubject(contract, one, called, self._inputs(contract, one)) if called else None

    def _inputs(self, contract: Contract, one: SchemaObject) -> Sequence[DatasetName]:
        found = []
        for key, name in sorted(self.made_from.get((contract.key, one.name), ())):
            other = self.contracts[key]
            made = other.object(name)
            with suppress(DqError):
                # Of a contract with another set of servers, the one that belongs to ours.
                server = self.server if other is contract else server_beside(contract, self.server, other)
                found += self._called(other, made, server)[:1] if made is not None else []
        return found

    def _staged(self, contract: Contract, one: SchemaObject, staged: str) -> list[DatasetName]:
        """What is staged: a folder by its own place, a branch of Iceberg as Spark calls it."""
        try:
            branch = resolve(contract, one, self.server, self.world.reach).format == "iceberg"
        except DqError:
            return []
        if branch:
            from dq.operations.openlineage_events import DatasetName

            table = self._called(contract, one, self.server)
            return [DatasetName(each.namespace, f"{each.name}.branch_{staged}") for each in table]
        from dq.operations.openlineage_events import of_files

        folder = of_files(staged if is_remote(staged) else str(self.world.folder / staged))
        return [folder] if folder else []

    def _called(self, contract: Contract, one: SchemaObject, server: str | None) -> list[DatasetName]:
        from dq.operations.openlineage_events import names

        try:
            place = resolve(contract, one, server, self.world.reach)
            return names(place, server_of(contract, server), one, self.world.environment)
        except DqError:
            return []


@contextmanager
def recording(
    world: World, contracts: Sequence[Contract], server: str | None = None
) -> Iterator[Recording | None]:
    """Where events go until the end of the block; None where the setting `lineage` names no place.

    At its end, what is left is waited for at most SECONDS; what was not sent is said in one line. Raises
    UsageError for a setting that cannot be understood.
    """
    target = world.settings.lineage
    if not target:
        yield None
        return
    if importlib.util.find_spec("openlineage") is None:
        world.note(f"lineage: no event is sent, OpenLineage is not installed. {install_command('lineage')}")
        yield None
        return
    from dq.operations.openlineage_events import transport

    sender = EventSender(transport(target, world.environment).emit)
    try:
        known = beside(world.registries, contracts)
        yield Recording(world, sender, {one.key: one for one in known}, inputs(known), server)
    finally:
        missing = sender.close(SECONDS)
        if missing is not None:
            world.note(f"lineage: {missing}. What was done is not affected.")
