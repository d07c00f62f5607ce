"""What a check is about: which objects, and which of their rows, by options that exclude each other."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime

from sqlalchemy import Connection

from dq.cli.loading.contracts import Loaded
from dq.cli.world.environment import World, instant, written_instant
from dq.contracts import slo as promise
from dq.contracts.access.data_location import other_servers
from dq.contracts.model import Contract, SchemaObject
from dq.contracts.shared.outcome import DqError, Unreadable, UsageError
from dq.contracts.shared.wording import suggestion
from dq.dataquality.checks import built_in
from dq.dataquality.clauses.foreign_key import Neighbours
from dq.dataquality.clauses.kind import clauses_of
from dq.dataquality.clauses.preparation import refuse_unknown, selected, testable
from dq.dataquality.delivery import cycle_store
from dq.dataquality.delivery.cycle import Kept, label
from dq.dataquality.delivery.receipts import receipts
from dq.dataquality.results import check_runs
from dq.dataquality.spark.readers.open import locate
from dq.store.engine import Store

Partition = Mapping[str, str]
Pair = tuple[Contract, SchemaObject]
# So many due instants are shown to somebody who named one that is not known.
_SHOWN = 3


@dataclass(frozen=True, slots=True)
class AskedRows:
    """Which rows were asked for; at most one of these is given, and none stands for what is new."""

    partitions: tuple[Partition, ...] = ()
    cycles: tuple[datetime, ...] = ()
    since: datetime | None = None
    everything: bool = False


@dataclass(frozen=True, slots=True)
class Task:
    """One object and its scopes, each with a run of its own (None: the whole table).

    `refused` is what was asked for and cannot be tested, with the reason.
    """

    contract: Contract
    object: SchemaObject
    scopes: tuple[Partition | None, ...]
    refused: tuple[DqError, ...] = ()

    def __str__(self) -> str:
        return f"{self.contract.id}/{self.object.name}"


def asked(partitions: Sequence[str], cycles: Sequence[str], since: str | None, everything: bool) -> AskedRows:
    """The options as one value. Raises UsageError where they exclude each other or cannot be read."""
    given = {"--partition": partitions, "--cycle": cycles, "--since": since, "--all": everything}
    names = [name for name, value in given.items() if value]
    if len(names) > 1:
        raise UsageError(f"{' and '.join(names)} exclude each other.", f"Give one of {', '.join(given)}.")
    return AskedRows(
        tuple(_partition(text) for text in dict.fromkeys(partitions)),
        tuple(instant(text) for text in dict.fromkeys(cycles)),
        instant(since) if since else None,
        everything,
    )


def objects(loaded: Loaded, name: str | None) -> list[Pair]:
    """The objects of all contracts, or those of this name or id. Raises UsageError when there is none."""
    pairs = [(contract, one) for contract in loaded.contracts for one in contract.objects]
    if name is None:
        return pairs
    found = [(contract, one) for contract, one in pairs if name in (one.name, one.id)]
    if not found:
        mend = suggestion(name, [one.name for _, one in pairs], "Check --object.")
        raise UsageError(f"no contract here has an object {name!r}.", mend)
    return found


def with_rules(pairs: Sequence[Pair], words: Sequence[str], neighbours: Neighbours) -> list[Pair]:
    """The objects that have a clause of these names. Raises UsageError for a name that none of them has."""
    if not words:
        return list(pairs)
    found = [(contract, one, clauses_of(contract, one, built_in(), neighbours)) for contract, one in pairs]
    refuse_unknown(found, words)
    return [(contract, one) for contract, one, clauses in found if testable(selected(one, clauses, words))]


def tasks(store: Store, pairs: Sequence[Pair], what: AskedRows, server: str | None = None) -> list[Task]:
    """What to test of each object, in the order of the contracts.

    By default each partition that was delivered and has no run of all clauses, and the whole table where
    nobody knows what was delivered when. What was published on another server than this one was not
    delivered here. Raises UsageError for a cycle that no object has.
    """
    with store.read() as tx:
        if what.cycles:
            return _of_cycles(tx, pairs, what.cycles)
        return [Task(contract, one, _scopes(tx, contract, one, what, server)) for contract, one in pairs]


def with_places(world: World, todo: Sequence[Task], server: str | None) -> list[Task]:
    """The tasks; one without anything to test says all the same when its data could not be found."""
    return [task if task.scopes or task.refused else _placed(world, task, server) for task in todo]


def _placed(world: World, task: Task, server: str | None) -> Task:
    try:
        locate(task.contract, task.object, server, world.reach)
    except DqError as error:
        return replace(task, refused=(error,))
    return task


Scopes = tuple[Partition | None, ...]


def _scopes(
    tx: Connection, contract: Contract, one: SchemaObject, what: AskedRows, server: str | None
) -> Scopes:
    if what.partitions:
        return what.partitions
    elsewhere = other_servers(contract, server)
    if what.everything or not _delivered_by_promise(tx, contract, one, elsewhere):
        return (None,)
    if what.since is not None:
        return _once(cycle_store.delivered_since(tx, contract.key, one.name, what.since, elsewhere))
    if not one.partition_keys():
        return (None,)
    tested = check_runs.checked(tx, contract.key, one.name)
    arrived = [
        kept for kept in cycle_store.all_cycles(tx, (contract.key, one.name)) if kept.delivered_at is not None
    ]
    # A delivery without a partition is new each time, and what was tested of it says nothing.
    return tuple(scope for scope in _named(arrived) if scope is None or name_of(scope) not in tested)


def _delivered_by_promise(
    tx: Connection, contract: Contract, one: SchemaObject, elsewhere: Collection[str]
) -> bool:
    """Whether it is known when the object is delivered: it has a promise that is watched, or receipts."""
    ready, _ = promise.read(contract)
    return any(slo.object is one for slo in ready) or bool(receipts(tx, contract.key, one.name, elsewhere))


def _of_cycles(tx: Connection, pairs: Sequence[Pair], wanted: Sequence[datetime]) -> list[Task]:
    made: list[Task] = []
    known: dict[datetime, None] = {}
    for contract, one in pairs:
        cycles = cycle_store.all_cycles(tx, (contract.key, one.name))
        known |= {kept.cycle.due_at: None for kept in cycles}
        mine = [kept for due in wanted for kept in cycles if kept.cycle.due_at == due]
        here = [kept for kept in mine if kept.delivered_at is not None]
        refused = tuple(_undelivered(kept) for kept in mine if kept.delivered_at is None)
        made.append(Task(contract, one, _named(here), refused))
    for due in wanted:
        if due not in known:
            raise UsageError(
                f"no delivery of these objects is known that was due {written_instant(due)}.",
                _near(due, known),
            )
    return made


def _undelivered(kept: Kept) -> DqError:
    due = written_instant(kept.cycle.due_at)
    message = f"the delivery due {due} is {kept.status}: it has no data to check."
    return Unreadable(message, "Name what there is with --partition, or run 'dq watch' first.")


def _near(due: datetime, known: Iterable[datetime]) -> str:
    near = sorted(known, key=lambda one: abs(one - due))[:_SHOWN]
    if not near:
        return "The ledger is empty; run 'dq watch' first, or name a --partition."
    return f"Known are {', '.join(written_instant(one) for one in sorted(near))}, among others."


def _named(cycles: Iterable[Kept]) -> Scopes:
    return _once(part for kept in cycles for part in kept.cycle.partitions or ((),))


def _once(partitions: Iterable[Sequence[tuple[str, str]]]) -> Scopes:
    """Each partition once, in this order; one without columns stands for the whole table."""
    return tuple(
        dict(pairs) or None for pairs in {label(tuple(one)): tuple(one) for one in partitions}.values()
    )


def name_of(scope: Partition | None) -> str:
    """A scope as history knows it."""
    return label(tuple(scope.items())) if scope else check_runs.TABLE


def _partition(text: str) -> Partition:
    pairs: dict[str, str] = {}
    for part in text.split("/"):
        key, equals, value = part.partition("=")
        if not equals or not key:
            raise UsageError(f"--partition {text!r} is not of the form key=value.", "Write day=2026-11-20.")
        if key.lower() in map(str.lower, pairs):
            raise UsageError(f"--partition {text!r} names {key!r} twice.", "Give each partition an option.")
        pairs[key] = value
    return pairs


def formats(world: World, pairs: Sequence[Pair], server: str | None) -> set[str]:
    """The formats of all data that will be read: a session has the jars that it was started with."""
    found = set()
    for contract in {id(contract): contract for contract, _ in pairs}.values():
        for one in contract.objects:
            # What cannot be located is said where it is tested.
            with suppress(DqError):
                found.add(locate(contract, one, server, world.reach).format or "")
    return found
