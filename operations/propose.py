"""`dq.propose` and `dq.propose_contract`: rule suggestions derived from data, added to a contract."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from dq.contracts.access import files
from dq.contracts.access.files import read_own
from dq.contracts.extension import VENDOR
from dq.contracts.model import Contract, SchemaObject
from dq.contracts.outcome import UsageError
from dq.contracts.slo import read_slos
from dq.contracts.yaml.insertion import Addition, can_insert, insert
from dq.contracts.yaml.parse import parse_valid, read
from dq.dataquality.clauses.coverage import JsonObject
from dq.dataquality.propose import LAST, Proposed
from dq.dataquality.propose import propose as learn_rules
from dq.dataquality.request import Request, as_spark, find_object
from dq.operations.check import formats, select_objects
from dq.operations.data_places import located_data
from dq.operations.frames import Frame
from dq.operations.registry_files import load, single_contract
from dq.operations.runtime.context import RuntimeContext, call_context
from dq.operations.runtime.spark import label, session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


_DEFAULTS = "the default terms of a schedule without delivery terms"


def propose(
    contract: Path | str,
    data: Frame,
    object: str | None = None,
    *,
    last: int = LAST,
    spark: SparkSession | None = None,
    now: datetime | None = None,
) -> tuple[str, Proposed]:
    """Return the contract's text with suggested rules, and the suggestions, as `dq propose` does.

    `text, proposed = dq.propose("orders.odcs.yaml", frame)`. `contract` is the path of its file or its YAML
    as text; no file is changed. Rules are learnt from the `last` partitions, or from all rows without
    partitions; without `now`, an aware instant, no rule about future values is suggested. `proposed` has each
    rule with its evidence, and what was dropped and why. Values of sensitive columns are in neither.

    Raises BrokenContract with all findings for a contract with errors, UsageError for a text that cannot be
    extended, and ReadError for data that cannot be read.
    """
    parsed_contract = read(contract)
    content = (
        contract.encode() if isinstance(contract, str) and "\n" in contract else read_own(Path(contract))
    )
    request = Request(
        parsed_contract,
        as_spark(data, find_object(parsed_contract, object), spark),
        object,
        spark=spark,
        now=now,
    )
    new_content, proposed = learn_rules(request, content, last)
    return new_content.decode("utf-8-sig"), proposed


@dataclass(frozen=True, slots=True)
class ProposeRequest:
    """Arguments of a proposal; see `propose_contract` for the fields."""

    contract: Path
    output: Path | None = None
    last: int = LAST
    object: str | None = None
    server: str | None = None


@dataclass(frozen=True, slots=True)
class ProposeOutcome:
    """Contract's text with the suggested rules, and the rules of each object with their evidence.

    `is_changed`: at least one rule was added.
    """

    text: str
    proposals: tuple[Proposed, ...]
    is_changed: bool
    notes: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        """Exit code of `dq propose`: 0 written, or nothing to propose."""
        return 0

    def as_list(self) -> list[JsonObject]:
        """Return the output of `dq propose --format json` as JSON values."""
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
    """Add suggested rules to a contract, derived from its data, as `dq propose` does.

    `dq.propose` takes a frame; here the data is read from the contract's location, on its `server`, for all
    objects or for one. `contract` is the path of its file. The text is written to `output`, a new file or the
    contract itself; without it no file is changed. Rules are learnt from the `last` partitions, or from all
    rows without partitions. `folder` replaces the working folder, `now` is an aware instant.

    Raises UsageError for an `output` that exists and for invalid arguments, ReadError for a contract with
    errors or data that cannot be read, and MissingTool without Spark or Java.
    """
    context, [path] = call_context(contract, folder, now)
    file = None if output is None else Path(output) if folder is None else Path(folder) / output
    outcome = run(context, ProposeRequest(path, file, last, object, server))
    return replace(outcome, notes=tuple(context.messages.notes))


def run(context: RuntimeContext, request: ProposeRequest) -> ProposeOutcome:
    """Run the operation. Raises as `propose_contract`."""
    path, file = request.contract, request.output
    loaded = load([path], context.note)
    contract = single_contract(loaded)
    in_place = file is not None and file.exists() and file.samefile(path)
    if file is not None and os.path.lexists(file) and not in_place:
        raise UsageError(f"{file} already exists.", "Choose another --output, or the contract itself.")
    pairs = select_objects(loaded, request.object)
    spark = session(context, formats=formats(context, pairs, request.server))
    before, data, proposals = _with_rules(
        context, spark, request, contract, [schema_object for _, schema_object in pairs]
    )
    if file is not None and not in_place:
        files.write(file, data)
    elif file is not None and data != before:
        files.replace(files.file_ref(path), before, data)
    return ProposeOutcome(data.decode("utf-8-sig"), tuple(proposals), data != before)


def _with_rules(
    context: RuntimeContext,
    spark: SparkSession,
    request: ProposeRequest,
    contract: Contract,
    schema_objects: Iterable[SchemaObject],
) -> tuple[bytes, bytes, list[Proposed]]:
    """Return the bytes of the contract's file, those with suggested rules, and the suggestions.

    Raises as `propose`, and UsageError if the location of an object is ambiguous.
    """
    before = data = read_own(request.contract)
    proposals = []
    for name in [schema_object.name for schema_object in schema_objects]:
        title = f"dq propose {contract.id}/{name}"
        label(spark, title, title)
        # Rules added for one object change the positions of the next, so the text is parsed again.
        current = parse_valid(data, contract.file)
        dataset = located_data(context, current, current.object(name) or current.objects[0], request.server)
        learning_request = Request(
            current,
            dataset,
            name,
            spark=spark,
            now=context.now(),
            limit_seconds=context.settings.rule_seconds,
        )
        with context.messages.step(f"{contract.id}/{name}"):
            data, proposed = learn_rules(learning_request, data, request.last)
        data = _with_delivery_terms(context, data, current, name)
        proposals.append(proposed)
    return before, data, proposals


def _with_delivery_terms(context: RuntimeContext, data: bytes, contract: Contract, name: str) -> bytes:
    """Return the file with the terms by which schedules of an object without delivery terms are watched."""
    additions = []
    for slo in read_slos(contract)[0]:
        number = contract.sla_properties.index(slo.sla)
        terms = {
            "timezone": slo.schedule.timezone,
            "grace": slo.delivery.grace,
            "expect": slo.delivery.expect,
        }
        if not slo.is_implied or slo.object.name != name:
            continue
        if contract.odcs >= (3, 2, 0):
            item = {"property": "delivery", "vendor": VENDOR, "value": terms}
            additions.append(Addition(("slaProperties", number, "customProperties"), "", item, _DEFAULTS))
        elif slo.sla.id is not None:
            item = {"property": f"delivery:{slo.sla.id}", "value": terms}
            additions.append(Addition(("customProperties",), "", item, _DEFAULTS))
    reachable = can_insert(data, [addition.path for addition in additions])
    inserted = [addition for addition, is_reachable in zip(additions, reachable, strict=True) if is_reachable]
    for _ in inserted:
        context.note(f"{name}: wrote the default delivery terms of its schedule.")
    return insert(data, contract.file, inserted)
