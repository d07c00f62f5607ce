"""Rules proposed for the objects of one contract, and what is said of them beside its text."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from dq.contracts.access.files import read_own
from dq.contracts.model import Contract, SchemaObject
from dq.contracts.yaml.parse import parsed, read
from dq.dataquality.propose import LAST, Proposed
from dq.dataquality.propose import propose as learn_rules
from dq.dataquality.request import Request, as_spark, pick
from dq.operations.data_places import located_data
from dq.operations.frames import Frame
from dq.operations.runtime.context import World
from dq.operations.runtime.spark import label

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
        with wanted.world.messages.step(f"{contract.id}/{name}"):
            data, one = learn_rules(request, data, wanted.last)
        made.append(one)
    return before, data, made
