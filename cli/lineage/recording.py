"""What commands call: events for what they do where the operator asks for them, and nothing else."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dq.cli.checking.run import Setup
from dq.cli.checking.selection import Partition, name_of
from dq.cli.lineage.naming import DatasetName, names
from dq.cli.lineage.neighbours import beside
from dq.cli.lineage.sending import EventSender
from dq.cli.terminal import output
from dq.cli.world.environment import World
from dq.contracts.access.data_location import resolve, server_beside, server_of
from dq.contracts.lineage.inputs import inputs
from dq.contracts.model import Contract, SchemaObject
from dq.contracts.shared.errors import DqError
from dq.contracts.shared.install import install_command
from dq.dataquality import Report

if TYPE_CHECKING:
    from dq.cli.lineage.events import LineageSubject

SECONDS = 5.0
"""How long the end of a command waits for events that are not sent yet."""

Check = Callable[[Setup, Contract, SchemaObject, Partition | None], Report]


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
            from dq.cli.lineage.events import CheckedScope

            subject = self.subject(contract, one)
            if subject is None:
                return check(given, contract, one, scope)
            run = CheckedScope(subject, name_of(scope))
            self.sender.send(run.started(self.world.now()))
            try:
                report = check(given, contract, one, scope)
            except DqError as error:
                self.sender.send(run.failed(self.world.now(), error.what))
                raise
            except BaseException as error:
                self.sender.send(run.failed(self.world.now(), type(error).__name__))
                raise
            self.sender.send(run.judged(report, self.world.now()))
            return report

        return told

    def published(self, contract: Contract, one: SchemaObject, id: str, rows: int | None) -> None:
        """Tells of a delivery; `id` is its event's, a UUID."""
        from dq.cli.lineage import events

        subject = self.subject(contract, one)
        if subject is not None:
            for event in events.published(subject, id, self.world.now(), rows):
                self.sender.send(event)

    def subject(self, contract: Contract, one: SchemaObject) -> LineageSubject | None:
        """What events call an object; None where its data has no name, so that nothing can be told."""
        from dq.cli.lineage.events import LineageSubject

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

    def _called(self, contract: Contract, one: SchemaObject, server: str | None) -> list[DatasetName]:
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
        output.note(
            f"dq: lineage: no event is sent, OpenLineage is not installed. {install_command('lineage')}"
        )
        yield None
        return
    from dq.cli.lineage.transport import transport

    sender = EventSender(transport(target, world.environment).emit)
    try:
        known = beside(world.registries, contracts)
        yield Recording(world, sender, {one.key: one for one in known}, inputs(known), server)
    finally:
        missing = sender.close(SECONDS)
        if missing is not None:
            output.note(f"dq: lineage: {missing}. What was done is not affected.")
