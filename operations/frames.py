"""Checks, gates and back-tests from Python, of frames or of the data where the contract says it is."""

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
from dq.dataquality.clauses.foreign_key import Neighbours
from dq.dataquality.quarantine import GatedRows
from dq.dataquality.report import Report
from dq.dataquality.request import Request, as_spark, pick
from dq.dataquality.spark.dataset import Dataset
from dq.operations.check import others as located_others
from dq.operations.data_places import located_data
from dq.operations.runtime.context import World, here
from dq.operations.runtime.spark import at_need

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


Asked = Contract | Path | str
Frame = object
"""A DataFrame of Spark, pandas or polars, an Arrow table, or a Dataset."""


def check(
    contract: Asked,
    data: Frame = ...,
    object: str | None = None,
    *,
    partitions: Sequence[Mapping[str, str]] | None = None,
    others: Mapping[str, Frame] | None = None,
    registry: Sequence[Asked] = (),
    server: str | None = None,
    spark: SparkSession | None = None,
    folder: Path | str | None = None,
    now: datetime | None = None,
    verify_statistics: float = 0.0,
) -> Report:
    """Every clause of one object of the contract, tested on its data, as `dq check` does.

    `contract` is the path of its file, its YAML as a text, or one already read; `object` may be left out
    when it has one object. `data` is a DataFrame of Spark, pandas or polars, or an Arrow table; left out, it
    is read where the contract says, on its `server`, as far as the settings of `folder`, which stands for the
    working folder, allow that place. `partitions` are texts as they stand in the path, and only these are
    read. `registry` are the contracts that its relationships lead into; their objects are called
    `crm/customers` in `others`, which are found by themselves where `data` is. `spark` is the session; the
    active one counts. For data that is not handed in one is started, but for small Parquet tables, which need
    none. `now` is an aware instant, needed
    for ages and windows: by default the present one where `data` is left out.

    What is NULL breaks only what says so, `required` for instance. Nothing is kept, nobody is told, and rules
    that compare with earlier runs are skipped. `verify_statistics`, from 0 to 1, is the share of what
    statistics prove that is counted from the rows all the same.

    Raises BrokenContract with every finding for a contract that has errors, UsageError for what does not fit,
    Unreadable where the data cannot be opened, and MissingTool without Spark or Java. What is wrong with the
    data is in the report: call its `raise_for_status()` before you publish.
    """
    known = read(contract)
    if data is not ...:
        if server is not None:
            raise UsageError(f"server={server!r} and data exclude each other.", "Give one of them.")
        request = _of_frame(known, data, object, others, registry, spark, now)
    else:
        request = _placed(known, pick(known, object), registry, server, spark, folder)
        given = _other_frames(known, others, request.neighbours, spark)
        request = replace(request, others={**(request.others or {}), **given}, now=now or datetime.now(UTC))
    return run_check(replace(request, partitions=partitions, verify_statistics=verify_statistics))


def split(
    contract: Asked,
    data: Frame,
    object: str | None = None,
    *,
    others: Mapping[str, Frame] | None = None,
    registry: Sequence[Asked] = (),
    spark: SparkSession | None = None,
    report: Report | None = None,
    now: datetime | None = None,
) -> tuple[DataFrame, DataFrame]:
    """The good rows as they are, and the bad ones with `_dq_rules`, the clauses that each of them breaks.

    `report` is that of `dq.check` on the same data; without it the data is checked, as of `now`. See
    `dataquality.quarantine.split`, and `dq.check` for what is raised for a contract that has errors.
    """
    return quarantine.split(_of_frame(contract, data, object, others, registry, spark, now), report)


def gate(
    data: Frame,
    contract: Asked,
    object: str | None = None,
    *,
    others: Mapping[str, Frame] | None = None,
    registry: Sequence[Asked] = (),
    spark: SparkSession | None = None,
    now: datetime | None = None,
) -> GatedRows:
    """Checks the data before it is written: `good, bad, report = dq.gate(frame, "orders.odcs.yaml")`.

    The report is that of `dq.check`, and is made at once. A row is bad that breaks a failed clause of the
    severity error or critical by itself: a value that is not allowed, NULL where one is required, a key
    that no row of the other object has. Of a repeated key all rows are bad, for nobody knows which of them
    is right. NULL breaks nothing else. What a bound tolerates or only a warning stands on is good. What no
    row can be blamed for (too few rows, a column that is missing or not allowed, a rule in SQL) is judged on
    all that was handed in, and leaves the rows as they are.

    `report.raise_for_status()` raises for all that is broken, `raise_for_status()` of the answer only for
    what no row can be blamed for. `good` and `bad` are computed when they are used, each from `data` anew:
    persist what is dear, or not the same twice. `report.passes` counts the passes over the data until then;
    each use is one more, and for each broken key one more that groups by it. Nothing is written or masked,
    and no setting of Spark changed.

    Arguments, and what is raised for a contract that has errors, are as `dq.check` has them. Raises
    Unreadable where a clause could not be measured: then nobody knows which rows are good.
    """
    return quarantine.gate(_of_frame(contract, data, object, others, registry, spark, now))


def backtest(
    contract: Asked,
    data: Frame = ...,
    object: str | None = None,
    *,
    last: int = LAST,
    rules: Sequence[str] = (),
    registry: Sequence[Asked] = (),
    server: str | None = None,
    spark: SparkSession | None = None,
    folder: Path | str | None = None,
    now: datetime | None = None,
) -> Backtest:
    """In which of the last partitions each rule of an object would have failed, as `dq backtest` says it.

    `rules` are checks, clause paths, or ids or names of quality rules; none stand for all. Each rule of the
    answer has `of(Status.FAIL)`, its partitions oldest first, and `counts`; a partition whose value is NULL
    is the first, as `__HIVE_DEFAULT_PARTITION__`. `as_dict()` is what `--format json` prints. The other
    arguments are those of `dq.check`. Nothing is kept, and nobody is told.

    Raises what `dq.check` raises, and UsageError for a table without partitions.
    """
    known = read(contract)
    one = pick(known, object)
    if data is ...:
        request = _placed(known, one, registry, server, spark, folder)
        request = replace(request, spark=request.session(), begin=None)
    else:
        request = _of_frame(known, data, one.name, None, registry, spark, now)
    return run(replace(request, rules=tuple(rules), now=now or datetime.now(UTC)), last)


def _of_frame(
    contract: Asked,
    data: Frame,
    object: str | None,
    others: Mapping[str, Frame] | None,
    registry: Sequence[Asked],
    spark: SparkSession | None,
    now: datetime | None,
) -> Request:
    """One object of a contract on a frame; `dq.check` says what the arguments are.

    A frame of pandas or polars is tested on the Spark session that is given or active (`request.as_spark`
    says how its types are read); a streaming one is refused.
    """
    known = read(contract)
    beside = Neighbours.of([known, *map(read, registry)])
    return Request(
        known,
        as_spark(data, pick(known, object), spark),
        object,
        spark=spark,
        others=_other_frames(known, others, beside, spark),
        now=now,
        neighbours=beside,
    )


def _other_frames(
    contract: Contract, given: Mapping[str, Frame] | None, beside: Neighbours, spark: SparkSession | None
) -> dict[str, DataFrame | Dataset]:
    """The frames of other objects, each with the types that its own contract promises."""
    made = {}
    for name, data in (given or {}).items():
        one = contract.object(name) or beside.object(name) or contract.objects[0]
        made[name] = as_spark(data, one, spark)
    return made


def _placed(
    known: Contract,
    one: SchemaObject,
    registry: Sequence[Asked],
    server: str | None,
    spark: SparkSession | None,
    folder: Path | str | None,
) -> Request:
    """The object where its contract says that it is, and a session that reads its format, at need."""
    beside = Neighbours.of([known, *map(read, registry)])
    world = _world(known, folder)
    data = _below(world, located_data(world, known, one, server))
    found = located_others(world, known, one, server, beside)
    around = {name: _below(world, each) for name, each in found.items()}
    request = Request(known, data, one.name, spark=spark, others=around, neighbours=beside)
    if spark is not None:
        return request
    needed = at_need(world, formats={each.format or "" for each in (data, *around.values())})
    return replace(request, spark=needed.begun, begin=needed)


def _below(world: World, data: Dataset) -> Dataset:
    """The data with its whole path: Spark knows of no other working folder than the process's."""
    local = data.path is not None and "://" not in data.path
    return replace(data, path=str(world.folder / str(data.path))) if local else data


def _world(known: Contract, folder: Path | str | None) -> World:
    paths = [] if known.file == TEXT else [Path(known.file)]
    return here(None, paths, Path(folder) if folder is not None else None)
