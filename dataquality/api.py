"""What a pipeline calls on its frames: `dq.gate(frame, "orders.odcs.yaml")`, `dq.split(…)`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from dq.contracts.model import Contract
from dq.contracts.yaml.parse import read
from dq.dataquality import quarantine
from dq.dataquality.clauses.foreign_key import Neighbours
from dq.dataquality.quarantine import GatedRows
from dq.dataquality.report import Report
from dq.dataquality.request import Request, as_spark, pick
from dq.dataquality.spark.readers.open import Dataset

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Frame = object
"""A DataFrame of Spark, pandas or polars, an Arrow table, or a Dataset."""


def split(
    contract: Contract | Path | str,
    data: Frame,
    object: str | None = None,
    *,
    others: Mapping[str, Frame] | None = None,
    registry: Sequence[Contract | Path | str] = (),
    spark: SparkSession | None = None,
    report: Report | None = None,
    now: datetime | None = None,
) -> tuple[DataFrame, DataFrame]:
    """The good rows as they are, and the bad ones with `_dq_rules`, the clauses that each of them breaks.

    `report` is that of `dq.check` on the same data; without it the data is checked, as of `now`. See
    `dataquality.quarantine.split`, and `dq.check` for what is raised for a contract that has errors.
    """
    return quarantine.split(request(contract, data, object, others, registry, spark, now), report)


def gate(
    data: Frame,
    contract: Contract | Path | str,
    object: str | None = None,
    *,
    others: Mapping[str, Frame] | None = None,
    registry: Sequence[Contract | Path | str] = (),
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
    return quarantine.gate(request(contract, data, object, others, registry, spark, now))


def request(
    contract: Contract | Path | str,
    data: Frame,
    object: str | None,
    others: Mapping[str, Frame] | None,
    registry: Sequence[Contract | Path | str],
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
        others=other_frames(known, others, beside, spark),
        now=now,
        neighbours=beside,
    )


def other_frames(
    contract: Contract, given: Mapping[str, Frame] | None, beside: Neighbours, spark: SparkSession | None
) -> dict[str, DataFrame | Dataset]:
    """The frames of other objects, each with the types that its own contract promises."""
    made = {}
    for name, data in (given or {}).items():
        one = contract.object(name) or beside.object(name) or contract.objects[0]
        made[name] = as_spark(data, one, spark)
    return made
