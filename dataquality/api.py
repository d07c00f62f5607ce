"""What a pipeline calls: `dq.check("orders.odcs.yaml", frame)`, `dq.split(…)`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from dq.contracts.model import Contract
from dq.contracts.yaml.load import read
from dq.dataquality import object_check, quarantine
from dq.dataquality.clauses.foreign_key import Neighbours
from dq.dataquality.report import Report
from dq.dataquality.request import Request
from dq.dataquality.spark.dataset import Dataset

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def check(
    contract: Contract | Path | str,
    data: DataFrame | Dataset,
    object: str | None = None,
    *,
    partitions: Sequence[Mapping[str, str]] | None = None,
    others: Mapping[str, DataFrame | Dataset] | None = None,
    registry: Sequence[Contract | Path | str] = (),
    spark: SparkSession | None = None,
    now: datetime | None = None,
    verify_statistics: float = 0.0,
) -> Report:
    """Every clause of one object of the contract, tested on its data, as `dq check` does.

    `contract` is the path of its file, its YAML as a text, or one already read; `object` may be left out
    when it has one object. `registry` are the contracts that its relationships lead into; their objects are
    called `crm/customers` in `others`. The other arguments are those of `dataquality.request.Request`.

    Raises BrokenContract with every finding for a contract that has errors. What is wrong with the data is
    in the report: call its `raise_for_status()` before you publish.
    """
    known = read(contract)
    beside = Neighbours.of([known, *map(read, registry)])
    return object_check.check(
        Request(
            known,
            data,
            object,
            spark=spark,
            partitions=partitions,
            now=now,
            others=others,
            neighbours=beside,
            verify_statistics=verify_statistics,
        )
    )


def split(
    contract: Contract | Path | str,
    data: DataFrame | Dataset,
    object: str | None = None,
    *,
    others: Mapping[str, DataFrame | Dataset] | None = None,
    registry: Sequence[Contract | Path | str] = (),
    spark: SparkSession | None = None,
    report: Report | None = None,
    now: datetime | None = None,
) -> tuple[DataFrame, DataFrame]:
    """The good rows as they are, and the bad ones with `_dq_rules`, the clauses that each of them breaks.

    `report` is that of `check` on the same data; without it the data is checked, as of `now`. See
    `dataquality.quarantine.split`, and `check` for what is raised for a contract that has errors.
    """
    known = read(contract)
    beside = Neighbours.of([known, *map(read, registry)])
    return quarantine.split(
        known, data, object, others=others, spark=spark, report=report, now=now, neighbours=beside
    )
