"""Back-tests of many objects, and which rules of a branch are new."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from dq.contracts.model import Contract, Property, SchemaObject
from dq.contracts.outcome import DqError, Unreadable
from dq.dataquality.backtest import Backtest, FoundPartition, Outcome, backtest
from dq.dataquality.checks import built_in
from dq.dataquality.clauses.clause import Clause, KindTerms
from dq.dataquality.clauses.coverage import JsonObject, selected, testable
from dq.dataquality.clauses.foreign_key import Neighbours
from dq.dataquality.clauses.kind import clauses_of
from dq.dataquality.request import Request
from dq.operations.check import Pair, others
from dq.operations.data_places import located_data
from dq.operations.runtime.context import World
from dq.operations.runtime.spark import label as labelled
from dq.operations.runtime.spark import together
from dq.validators.git.base import Base, open_base, registry_root

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


# What the rules of contracts would have said of the partitions that are there, for people and machines.


@dataclass(frozen=True, slots=True)
class UntestedPast:
    """An object of which no partition could be tested, and why."""

    contract: str
    object: str
    error: DqError

    @property
    def exit_code(self) -> int:
        """Nobody knows what the rules would have said, whatever the reason."""
        return Unreadable.exit_code

    def as_dict(self) -> JsonObject:
        """As JSON values."""
        return {"contract": self.contract, "object": self.object, "error": str(self.error)}


@dataclass(frozen=True, slots=True)
class PastRequest:
    """Which history is looked at, and by which rules; nothing of it is kept."""

    world: World
    spark: SparkSession
    neighbours: Neighbours
    last: int
    threads: int
    server: str | None = None
    rules: tuple[str, ...] = ()


def test(history: PastRequest, pair: Pair) -> Backtest | UntestedPast:
    """The back-test of one object. What keeps it from being tested is a value: it stops no other."""
    contract, one = pair
    world, what = history.world, f"dq backtest {contract.id}/{one.name}"
    labelled(history.spark, what, what)
    try:
        request = Request(
            contract,
            located_data(world, contract, one, history.server),
            one.name,
            spark=history.spark,
            now=world.now(),
            others=others(world, contract, one, history.server, history.neighbours),
            rules=history.rules,
            limit_seconds=world.settings.rule_seconds,
            neighbours=history.neighbours,
        )
        with world.messages.step(f"{contract.id}/{one.name}"):
            return backtest(request, history.last, partial(_side_by_side, history))
    except DqError as error:
        return UntestedPast(contract.id, one.name, error)


def _side_by_side(
    history: PastRequest, work: Callable[[FoundPartition], Outcome], chosen: Sequence[FoundPartition]
) -> list[Outcome]:
    outcomes = together(lambda: history.spark, chosen, work, history.threads)
    for one in outcomes:
        # What cannot be tested is an outcome; anything else is a bug.
        if isinstance(one, Exception) and not isinstance(one, DqError):
            raise one
    return outcomes  # type: ignore[return-value]


# The clauses that a branch brings or changes: its contracts have them, and those of the base do not.

Words = Sequence[str]


def new_rules(
    paths: Sequence[Path], ref: str, pairs: Sequence[Pair], words: Words, neighbours: Neighbours
) -> list[tuple[Pair, tuple[str, ...]]]:
    """The objects with a clause that is not the same at the base, each with the paths of these clauses.

    The base is where the branch left `ref`; `words` limit the clauses as `--rule` does. A rule that only
    moved, or has another id or line, is the same. Raises Unreadable for a base that cannot be read.
    """
    then = _then(paths, ref)
    found = []
    for contract, one in pairs:
        before = then(contract)
        if before is contract:
            continue
        mine = testable(selected(one, clauses_of(contract, one, built_in(), neighbours), words))
        new = tuple(each.path for each in _unlike(mine, list(_earlier(before, one, neighbours))))
        if new:
            found.append(((contract, one), new))
    return found


def _then(paths: Sequence[Path], ref: str) -> Callable[[Contract], Contract | None]:
    """What a contract was at the base: itself where nothing touched it, None where it is new."""
    bases: dict[Path, Base] = {}
    for path in paths:
        root = registry_root(path, ref)
        bases.setdefault(root.folder, open_base(root.folder, ref, root.tip))
    changes = [one.changed() for one in bases.values()]
    touched = {
        os.path.normpath(one.root / file)
        for one, changed in zip(bases.values(), changes, strict=True)
        for file in changed.contents
    }
    before = [one for changed in changes for one in changed.before]

    def then(contract: Contract) -> Contract | None:
        if os.path.normpath(Path(contract.file).absolute()) not in touched:
            return contract
        same = [one for one in before if one.id == contract.id]
        return next((one for one in same if one.key == contract.key), same[-1] if same else None)

    return then


def _earlier(before: Contract | None, one: SchemaObject, neighbours: Neighbours) -> Iterator[Clause]:
    known = before.object(one.name) if before is not None else None
    if before is not None and known is not None:
        yield from clauses_of(before, known, built_in(), neighbours)


def _unlike(clauses: Iterable[Clause], earlier: Sequence[Clause]) -> Iterator[Clause]:
    known = [_content(one) for one in earlier]
    return (one for one in clauses if _content(one) not in known)


def _content(one: Clause) -> tuple[object, ...]:
    """What a clause says, wherever it stands."""
    asked = one.ask.value if isinstance(one.ask, KindTerms) else one.ask
    return one.check, one.property, one.severity, one.allowed, _said(asked), one.extent, one.limit


def _said(asked: object) -> object:
    """What is asked; of whole properties, which a clause about all names holds, only their names."""
    if isinstance(asked, Property):
        below = (*asked.properties, *([asked.items] if asked.items else []))
        return asked.column.lower(), _said((*below, *([asked.map.value] if asked.map else [])))
    return tuple(map(_said, asked)) if isinstance(asked, tuple) else asked
