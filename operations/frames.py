"""`dq.check`, `dq.split`, `dq.gate` and `dq.backtest`: on DataFrames, or on data at the contract's
location.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from dq.contracts.model import Contract, SchemaObject
from dq.contracts.outcome import UsageError
from dq.contracts.yaml.parse import TEXT, read
from dq.dataquality import quarantine
from dq.dataquality.backtest import LAST, Backtest
from dq.dataquality.backtest import backtest as run
from dq.dataquality.check import check as run_check
from dq.dataquality.clauses.foreign_key import ContractSet
from dq.dataquality.deduplication import Precedence
from dq.dataquality.quarantine import GatedRows
from dq.dataquality.report import Report
from dq.dataquality.request import Request, as_arrow, as_spark, find_object, needs_session
from dq.dataquality.spark.dataset import Dataset
from dq.operations.check import referenced_data as located_others
from dq.operations.data_places import located_data
from dq.operations.runtime.context import RuntimeContext, runtime_context
from dq.operations.runtime.spark import lazy_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


ContractSource = Contract | Path | str
Frame = object
"""A DataFrame of Spark, pandas or polars, an Arrow table, or a Dataset."""


def check(
    contract: ContractSource,
    data: Frame = ...,
    object: str | None = None,
    *,
    partitions: Sequence[Mapping[str, str]] | None = None,
    other_objects: Mapping[str, Frame] | None = None,
    registry: Sequence[ContractSource] = (),
    server: str | None = None,
    spark: SparkSession | None = None,
    folder: Path | str | None = None,
    now: datetime | None = None,
    verify_statistics: float = 0.0,
) -> Report:
    """Evaluate every clause of one object of the contract on its data, as `dq check` does.

    `contract` is the path of its file, its YAML as text, or a loaded contract; `object` is optional if it has
    only one. `data` is a DataFrame of Spark, pandas or polars, or an Arrow table; without it, the data is
    read from the contract's location on its `server`, if the settings of `folder`, which replaces the working
    folder, allow it. `partitions` limit the check; their values are texts as in the path. `registry` has the
    contracts that relationships refer to. `other_objects` has the data of referenced objects, named e.g.
    `crm/customers`; without `data` they are located automatically. `spark` is the session, by default the
    active one. Without `data`, a session is started if needed; small Parquet tables need none. Without a
    session, frames of other libraries of up to 500,000 rows are checked in this process, without Java. `now`
    is an aware instant, needed for ages and windows; without `data` it defaults to the current time.

    NULL only violates clauses about NULL, e.g. `required`. Nothing is stored or sent, and rules that compare
    with earlier runs are skipped. `verify_statistics`, from 0 to 1, is the share of answers from statistics
    that is verified by counting rows.

    Raises BrokenContract with all findings for a contract with errors, UsageError for invalid arguments and
    for clauses that need Spark if there is no session (queries, relationships), ReadError if the data cannot
    be opened, and MissingTool without Spark or Java. Problems of the data are
    in the report: call its `raise_for_status()` before publishing.
    """
    parsed = read(contract)
    if data is not ...:
        if server is not None:
            raise UsageError(f"server={server!r} and data exclude each other.", "Pass one of them.")
        if not other_objects and needs_session(data, spark):
            return _check_in_memory(parsed, data, object, registry, now, partitions, verify_statistics)
        request = _frame_request(parsed, data, object, other_objects, registry, spark, now)
    else:
        request = _located_request(parsed, find_object(parsed, object), registry, server, spark, folder)
        frames = _other_frames(parsed, other_objects, request.neighbours, spark)
        request = replace(
            request, other_objects={**(request.other_objects or {}), **frames}, now=now or datetime.now(UTC)
        )
    return run_check(replace(request, partitions=partitions, verify_statistics=verify_statistics))


def split(
    contract: ContractSource,
    data: Frame,
    object: str | None = None,
    *,
    other_objects: Mapping[str, Frame] | None = None,
    registry: Sequence[ContractSource] = (),
    spark: SparkSession | None = None,
    report: Report | None = None,
    now: datetime | None = None,
    keep: str | None = None,
) -> tuple[DataFrame, DataFrame]:
    """Split the data into good rows, and bad rows with `_dq_rules`, the clauses that each of them violates.

    `report` is that of `dq.check` on the same data; without it the data is checked, as of `now`. `keep` is
    the row of a repeated key that is good, see `dq.gate`. See `dataquality.quarantine.split`, and `dq.check`
    for the errors raised.
    """
    precedence = None if keep is None else Precedence.parse(keep)
    request = _frame_request(contract, data, object, other_objects, registry, spark, now)
    return quarantine.split(request, report, precedence)


def gate(
    data: Frame,
    contract: ContractSource,
    object: str | None = None,
    *,
    other_objects: Mapping[str, Frame] | None = None,
    registry: Sequence[ContractSource] = (),
    spark: SparkSession | None = None,
    now: datetime | None = None,
    keep: str | None = None,
) -> GatedRows:
    """Check the data before it is written: `good, bad, report = dq.gate(frame, "orders.odcs.yaml")`.

    The report is that of `dq.check`, computed immediately. A row is bad if it violates a failed clause of
    severity error or critical by itself: an invalid value, a missing required value, or a key without a
    matching row in the other object. All rows of a duplicate key are bad, since it is unknown which is right,
    unless `keep` is set: with `newest by updated_at`, the row with the largest `updated_at` is good and the
    others of its key are bad, with `first by created_at` the one with the smallest. NULL is older than every
    value; ties are decided by the partition columns, then by the others in their order. With several keys, a
    row is good if it is the one to keep for each of them. Violations within a tolerated bound or of a mere
    warning are good. Failures that cannot be attributed to rows (too few rows, missing or undeclared columns,
    SQL rules) are evaluated on all data and leave the rows as they are.

    `report.raise_for_status()` raises for all failures, `raise_for_status()` of the result only for those not
    attributed to rows. `good` and `bad` are lazy and recomputed from `data` at each use: persist data that is
    expensive or not deterministic. `report.passes` counts the passes over the data so far; each use adds one,
    and each failed key one that groups by it. Nothing is written or masked, and no Spark setting is changed.

    Arguments and errors are as for `dq.check`. Raises ReadError if a clause could not be measured, because
    it is then unknown which rows are good, and UsageError if `keep` names no column of the contract or one
    without an order, or if no key is declared.
    """
    precedence = None if keep is None else Precedence.parse(keep)
    request = _frame_request(contract, data, object, other_objects, registry, spark, now)
    return quarantine.gate(request, precedence=precedence)


def backtest(
    contract: ContractSource,
    data: Frame = ...,
    object: str | None = None,
    *,
    last: int = LAST,
    rules: Sequence[str] = (),
    registry: Sequence[ContractSource] = (),
    server: str | None = None,
    spark: SparkSession | None = None,
    folder: Path | str | None = None,
    now: datetime | None = None,
) -> Backtest:
    """Evaluate each rule of an object on the last partitions of its data, as `dq backtest` does.

    `rules` are checks, clause paths, or ids or names of quality rules; by default all. Each rule of the
    result has `of(Status.FAIL)`, its failed partitions oldest first, and `counts`; a NULL partition value
    comes first, as `__HIVE_DEFAULT_PARTITION__`. `as_dict()` is the JSON output. The other arguments are
    those of `dq.check`. Nothing is stored or sent.

    Raises what `dq.check` raises, and UsageError for a table without partitions.
    """
    parsed = read(contract)
    schema_object = find_object(parsed, object)
    if data is ...:
        request = _located_request(parsed, schema_object, registry, server, spark, folder)
        request = replace(request, spark=request.session(), start_session=None)
    else:
        request = _frame_request(parsed, data, schema_object.name, None, registry, spark, now)
    return run(replace(request, rules=tuple(rules), now=now or datetime.now(UTC)), last)


def _frame_request(
    contract: ContractSource,
    data: Frame,
    object: str | None,
    other_objects: Mapping[str, Frame] | None,
    registry: Sequence[ContractSource],
    spark: SparkSession | None,
    now: datetime | None,
) -> Request:
    """Return the request for one object on a frame; see `dq.check` for the arguments.

    A frame of pandas or polars is checked on the given or active Spark session (see `request.as_spark` for
    its types); a streaming DataFrame is rejected.
    """
    parsed = read(contract)
    neighbours = ContractSet.from_contracts([parsed, *map(read, registry)])
    return Request(
        parsed,
        as_spark(data, find_object(parsed, object), spark),
        object,
        spark=spark,
        other_objects=_other_frames(parsed, other_objects, neighbours, spark),
        now=now,
        neighbours=neighbours,
    )


def _check_in_memory(
    contract: Contract,
    data: Frame,
    object: str | None,
    registry: Sequence[ContractSource],
    now: datetime | None,
    partitions: Sequence[Mapping[str, str]] | None,
    verify_statistics: float,
) -> Report:
    """Check a frame of another library without Spark. Raises UsageError if a clause needs Spark."""
    from dq.dataquality.sample import check_frame

    table = as_arrow(data, find_object(contract, object))
    request = Request(
        contract,
        table,
        object,
        partitions=partitions,
        now=now,
        neighbours=ContractSet.from_contracts([contract, *map(read, registry)]),
        verify_statistics=verify_statistics,
    )
    return check_frame(request, table)


def _other_frames(
    contract: Contract,
    frames: Mapping[str, Frame] | None,
    neighbours: ContractSet,
    spark: SparkSession | None,
) -> dict[str, DataFrame | Dataset]:
    """Return the frames of other objects, each with the types of its own contract."""
    converted = {}
    for name, data in (frames or {}).items():
        schema_object = contract.object(name) or neighbours.object(name) or contract.objects[0]
        converted[name] = as_spark(data, schema_object, spark)
    return converted


def _located_request(
    contract: Contract,
    schema_object: SchemaObject,
    registry: Sequence[ContractSource],
    server: str | None,
    spark: SparkSession | None,
    folder: Path | str | None,
) -> Request:
    """Return the request for an object at its contract's location, with a lazy session for its format."""
    neighbours = ContractSet.from_contracts([contract, *map(read, registry)])
    context = _context(contract, folder)
    data = _with_absolute_path(context, located_data(context, contract, schema_object, server))
    referenced = located_others(context, contract, schema_object, server, neighbours)
    other_data = {name: _with_absolute_path(context, dataset) for name, dataset in referenced.items()}
    request = Request(
        contract, data, schema_object.name, spark=spark, other_objects=other_data, neighbours=neighbours
    )
    if spark is not None:
        return request
    lazy = lazy_session(context, formats={dataset.format or "" for dataset in (data, *other_data.values())})
    return replace(request, spark=lazy.current, start_session=lazy)


def _with_absolute_path(context: RuntimeContext, data: Dataset) -> Dataset:
    """Return the data with an absolute path, since Spark resolves paths in the process's working folder."""
    local = data.path is not None and "://" not in data.path
    return replace(data, path=str(context.folder / str(data.path))) if local else data


def _context(contract: Contract, folder: Path | str | None) -> RuntimeContext:
    paths = [] if contract.file == TEXT else [Path(contract.file)]
    return runtime_context(None, paths, Path(folder) if folder is not None else None)
