"""Rules proposed for the objects of one contract, and what is said of them beside its text."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from dq.cli.loading.placements import located_data
from dq.cli.terminal import output
from dq.cli.world.environment import World
from dq.cli.world.spark import label
from dq.contracts.access.files import read_own
from dq.contracts.model import Contract, SchemaObject
from dq.contracts.shared.counts import counted
from dq.contracts.yaml.load import parsed, read
from dq.contracts.yaml.writing import commented
from dq.dataquality.api import Frame
from dq.dataquality.frames import as_spark
from dq.dataquality.proposal.propose import LAST, Proposed
from dq.dataquality.proposal.propose import propose as learn_rules
from dq.dataquality.request import Request, pick

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class PastRows:
    """Which history is learnt from."""

    world: World
    spark: SparkSession
    last: int
    server: str | None = None


def propose(
    contract: Path | str,
    data: Frame,
    object: str | None = None,
    *,
    last: int = LAST,
    spark: SparkSession | None = None,
    now: datetime | None = None,
) -> tuple[str, Proposed]:
    """The contract's text with the rules that its data has kept, and what they are, as `dq propose` does.

    `text, proposed = dq.propose("orders.odcs.yaml", frame)`. `contract` is the path of its file or its YAML
    as a text; no file is changed. Learnt is from the `last` partitions, or from all rows where there are
    none; without `now`, an aware time, nothing is proposed about the future. `proposed` has each rule with
    its evidence, and what was left out, and why. No value of a sensitive column is in either.

    Raises BrokenContract with every finding for a contract that has errors, UsageError for a text that
    cannot be added to, and Unreadable for data that cannot be read.
    """
    known = read(contract)
    written = (
        contract.encode() if isinstance(contract, str) and "\n" in contract else read_own(Path(contract))
    )
    request = Request(known, as_spark(data, pick(known, object), spark), object, spark=spark, now=now)
    made, proposed = learn_rules(request, written, last)
    return made.decode("utf-8-sig"), proposed


def with_rules(
    wanted: PastRows, file: Path, contract: Contract, chosen: Iterable[SchemaObject]
) -> tuple[bytes, bytes, list[Proposed]]:
    """The bytes of the contract's file, those with the rules of the chosen objects, and what they are.

    Raises what `propose` does, and UsageError where the place of an object is not clear.
    """
    before = data = read_own(file)
    made = []
    for name in [one.name for one in chosen]:
        what = f"dq propose {contract.id}/{name}"
        label(wanted.spark, what, what)
        # What was written for one object moves the places of the next.
        now = parsed(data, contract.file)
        dataset = located_data(wanted.world, now, now.object(name) or now.objects[0], wanted.server)
        request = Request(
            now,
            dataset,
            name,
            spark=wanted.spark,
            now=wanted.world.now(),
            limit_seconds=wanted.world.settings.rule_seconds,
        )
        with output.step(f"{contract.id}/{name}"):
            data, one = learn_rules(request, data, wanted.last)
        made.append(one)
    return before, data, made


def describe(one: Proposed) -> None:
    """On stderr, for a reader: from what was learnt, what is proposed, and what is not promised, and why."""
    head = output.styled(f"{one.contract}/{one.object}", bold=True)
    rows = counted(one.rows, "row")
    if one.partitions:
        seen = f"{one.partitions:,} of {counted(one.present, 'partition')}, {rows}"
    else:
        seen = f"one snapshot of {rows}, which shows nothing of how it changes"
    output.note(f"{head}: learnt from {seen}.")
    output.note(f"  {counted(len(one.proposals), 'rule')} proposed, each tested on the same data.")
    if one.empty:
        output.note(f"  Without any value, so that nothing is promised: {_names(one.empty)}.")
    if one.unreadable:
        output.note(f"  Not read by Spark, so that nothing is proposed: {_names(one.unreadable)}.")
    if one.hidden:
        output.note(
            f"  Sensitive by classification, name or form, so that no value is shown: {_names(one.hidden)}."
        )
    for out in one.dropped:
        where = commented(out.proposal.column or one.object)
        output.note(f"  Left out: {where}: {out.proposal.says}: {commented(out.reason)}")


def _names(names: tuple[str, ...]) -> str:
    return ", ".join(commented(name) for name in names)
