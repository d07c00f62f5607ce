"""`dq.propose` and `dq.propose_contract`: rules that data has kept so far, added to a contract."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from dq.contracts.access import files
from dq.contracts.access.files import read_own
from dq.contracts.model import Contract, SchemaObject
from dq.contracts.outcome import UsageError
from dq.contracts.yaml.parse import parsed, read
from dq.dataquality.clauses.coverage import JsonObject
from dq.dataquality.propose import LAST, Proposed
from dq.dataquality.propose import propose as learn_rules
from dq.dataquality.request import Request, as_spark, pick
from dq.operations.check import formats, objects
from dq.operations.data_places import located_data
from dq.operations.frames import Frame
from dq.operations.registry_files import load, only
from dq.operations.runtime.context import World, called
from dq.operations.runtime.spark import label, session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


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


@dataclass(frozen=True, slots=True)
class ProposeRequest:
    """Which contract rules are proposed for; `propose_contract` says what each field means."""

    contract: Path
    output: Path | None = None
    last: int = LAST
    object: str | None = None
    server: str | None = None


@dataclass(frozen=True, slots=True)
class ProposeOutcome:
    """The contract's text with the proposed rules, and for each object the rules and their evidence.

    `is_changed`: at least one rule was added.
    """

    text: str
    proposals: tuple[Proposed, ...]
    is_changed: bool
    notes: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        """As `dq propose` ends: 0 written, or nothing to propose."""
        return 0

    def as_list(self) -> list[JsonObject]:
        """What `dq propose --format json` prints."""
        return [proposed.as_dict() for proposed in self.proposals]


def propose_contract(
    contract: Path | str,
    object: str | None = None,
    *,
    output: Path | str | None = None,
    last: int = LAST,
    server: str | None = None,
    folder: Path | str | None = None,
    now: datetime | None = None,
) -> ProposeOutcome:
    """Add to a contract the rules that its data has kept so far, as `dq propose` does.

    `dq.propose` takes a frame; here the data is read where the contract says, on its `server`, of each of its
    objects or of one. `contract` is the path of its file. The text is written to `output`, a new file or the
    contract itself; without it no file is changed. Rules are learnt from the `last` partitions, or from all
    rows where there are none. `folder` stands for the working folder, `now` is an aware instant.

    Raises UsageError for an `output` that exists and for what does not fit, Unreadable for a contract with
    errors or data that cannot be read, and MissingTool without Spark or Java.
    """
    world, [path] = called(contract, folder, now)
    file = None if output is None else Path(output) if folder is None else Path(folder) / output
    outcome = run(world, ProposeRequest(path, file, last, object, server))
    return replace(outcome, notes=tuple(world.messages.notes))


def run(world: World, request: ProposeRequest) -> ProposeOutcome:
    """The operation itself. Raises as `propose_contract`."""
    path, file = request.contract, request.output
    loaded = load([path], world.note)
    contract = only(loaded)
    in_place = file is not None and file.exists() and file.samefile(path)
    if file is not None and os.path.lexists(file) and not in_place:
        raise UsageError(f"{file} is there already.", "Name another --output, or the contract itself.")
    pairs = objects(loaded, request.object)
    spark = session(world, formats=formats(world, pairs, request.server))
    before, data, proposals = _with_rules(
        world, spark, request, contract, [schema_object for _, schema_object in pairs]
    )
    if file is not None and not in_place:
        files.write(file, data)
    elif file is not None and data != before:
        files.replace(files.named(path), before, data)
    return ProposeOutcome(data.decode("utf-8-sig"), tuple(proposals), data != before)


def _with_rules(
    world: World,
    spark: SparkSession,
    request: ProposeRequest,
    contract: Contract,
    chosen: Iterable[SchemaObject],
) -> tuple[bytes, bytes, list[Proposed]]:
    """The bytes of the contract's file, those with the rules of the chosen objects, and the proposals.

    Raises what `propose` does, and UsageError where the place of an object is not clear.
    """
    before = data = read_own(request.contract)
    proposals = []
    for name in [schema_object.name for schema_object in chosen]:
        title = f"dq propose {contract.id}/{name}"
        label(spark, title, title)
        # What was written for one object moves the places of the next.
        now = parsed(data, contract.file)
        dataset = located_data(world, now, now.object(name) or now.objects[0], request.server)
        learnt_from = Request(
            now,
            dataset,
            name,
            spark=spark,
            now=world.now(),
            limit_seconds=world.settings.rule_seconds,
        )
        with world.messages.step(f"{contract.id}/{name}"):
            data, proposed = learn_rules(learnt_from, data, request.last)
        proposals.append(proposed)
    return before, data, proposals
