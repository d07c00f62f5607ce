"""`dq.backtest_contracts`: rules of contracts on past partitions, and which rules of a branch are new."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from dq.contracts.model import Contract, Property, SchemaObject
from dq.contracts.outcome import DqError, Finding, Unreadable
from dq.dataquality.backtest import LAST, Backtest, FoundPartition, Outcome, backtest
from dq.dataquality.checks import built_in
from dq.dataquality.clauses.clause import Clause, KindTerms
from dq.dataquality.clauses.coverage import JsonObject, selected, testable
from dq.dataquality.clauses.foreign_key import Neighbours
from dq.dataquality.clauses.kind import clauses_of
from dq.dataquality.request import Request
from dq.operations.check import Pair, formats, objects, others, with_rules
from dq.operations.data_places import located_data
from dq.operations.registry_files import load
from dq.operations.runtime.context import World, called, processors
from dq.operations.runtime.spark import at_once, session, together
from dq.operations.runtime.spark import label as labelled
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


Tested = tuple[Pair, Backtest | UntestedPast]
"""An object with its contract, and its back-test."""


@dataclass(frozen=True, slots=True)
class BacktestRequest:
    """Which rules are tested on which history; `backtest_contracts` says what each field means."""

    paths: tuple[Path, ...]
    last: int = LAST
    base: str | None = None
    object: str | None = None
    rules: tuple[str, ...] = ()
    server: str | None = None
    parallel: int | None = None


@dataclass(frozen=True, slots=True)
class BacktestOutcome:
    """Back-tests of the objects, in the order of their contracts; `findings` are contracts with errors.

    With a base, objects without a new or changed rule are left out.
    """

    tested: tuple[Tested, ...]
    findings: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def results(self) -> tuple[Backtest | UntestedPast, ...]:
        """The back-tests without their contracts."""
        return tuple(past for _, past in self.tested)

    @property
    def exit_code(self) -> int:
        """As `dq backtest` ends: 3 something could not be tested, 1 an error-level rule would have failed."""
        codes = {past.exit_code for past in self.results}
        codes |= {Unreadable.exit_code} if self.findings else set()
        return next((code for code in (3, 1) if code in codes), 0)

    def as_list(self) -> list[JsonObject]:
        """What `dq backtest --format json` prints."""
        unread: list[JsonObject] = [
            {"contract": None, "object": None, "error": str(finding)} for finding in self.findings
        ]
        return [*unread, *({"error": None, **past.as_dict()} for past in self.results)]


def backtest_contracts(
    paths: Path | str | Sequence[Path | str] = ".",
    *,
    last: int = LAST,
    base: str | None = None,
    object: str | None = None,
    rules: Sequence[str] = (),
    server: str | None = None,
    parallel: int | None = None,
    folder: Path | str | None = None,
    now: datetime | None = None,
) -> BacktestOutcome:
    """Test the rules of contracts on the `last` partitions of their data, as `dq backtest` does.

    `dq.backtest` tests one object. `paths` are contract files and folders. `base` is a Git reference: only
    rules that are new or changed against it are tested. `object` and `rules` choose objects and clauses,
    `server` where a contract has several. `parallel` partitions are tested at once. `folder`
    stands for the working folder, `now` is an aware instant. Nothing is stored, and no alert is sent.

    Raises UsageError for what does not fit, Unreadable for a path or a base that cannot be read, and
    MissingTool without Spark or Java. An object that could not be tested is an `UntestedPast` of the outcome.
    """
    world, places = called(paths, folder, now)
    request = BacktestRequest(places, last, base, object, tuple(rules), server, parallel)
    return replace(run(world, request), notes=tuple(world.messages.notes))


def run(world: World, request: BacktestRequest) -> BacktestOutcome:
    """The operation itself. Raises as `backtest_contracts`."""
    loaded = load(request.paths, world.note)
    for finding in loaded.findings:
        world.messages.finding(finding)
    neighbours, rules = Neighbours.of(loaded.contracts), request.rules
    pairs = with_rules(objects(loaded, request.object), rules, neighbours)
    chosen = [(pair, rules) for pair in pairs]
    if request.base:
        chosen = new_rules(request.paths, request.base, pairs, rules, neighbours)
    tested: list[Tested] = []
    if chosen:
        threads = request.parallel or at_once(processors())
        spark = session(world, formats=formats(world, [pair for pair, _ in chosen], request.server))
        history = PastRequest(world, spark, neighbours, request.last, threads, request.server)
        tested = [(pair, test(replace(history, rules=paths), pair)) for pair, paths in chosen]
    return BacktestOutcome(tuple(tested), tuple(loaded.findings))


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
