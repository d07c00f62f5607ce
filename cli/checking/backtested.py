"""What the rules of contracts would have said of the partitions that are there, for people and machines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from dq.cli.checking.run import others
from dq.cli.checking.selection import Pair
from dq.cli.loading.placements import located_data
from dq.cli.world.concurrency import together
from dq.cli.world.environment import World
from dq.cli.world.spark import label as labelled
from dq.contracts.shared.outcome import DqError, Unreadable
from dq.dataquality.backtest.partitions import FoundPartition
from dq.dataquality.backtest.report import Backtest
from dq.dataquality.backtest.run import Outcome, backtest
from dq.dataquality.clauses.coverage import JsonObject
from dq.dataquality.clauses.foreign_key import Neighbours
from dq.dataquality.request import Request

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


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
