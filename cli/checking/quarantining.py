"""The options of `dq check` that write bad rows apart, and what they do."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import typer

from dq.cli.world.environment import World
from dq.contracts.model import Contract, SchemaObject
from dq.contracts.shared.errors import DqError
from dq.dataquality import Report
from dq.dataquality.clauses.foreign_key import Neighbours
from dq.dataquality.delivery.sources.probe import label
from dq.dataquality.quarantine import Run, write
from dq.dataquality.report import Quarantined
from dq.dataquality.results import check_runs
from dq.dataquality.spark.readers.dataset import Dataset, locate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUARANTINE = typer.Option(
    None, "--quarantine", help="Write the rows that break a clause to this path, as Parquet, masked."
)
UNMASKED = typer.Option(
    False, "--quarantine-unmasked", help="With classified columns, and those that the contract does not name."
)


def set_apart(
    world: World,
    begin: Callable[[], SparkSession],
    contract: Contract,
    one: SchemaObject,
    partition: Mapping[str, str] | None,
    server: str | None,
    others: Mapping[str, Dataset],
    report: Report,
    path: str,
    unmasked: bool,
    neighbours: Neighbours,
) -> Report:
    """The report with what was written of its bad rows, or why that could not be done."""
    now = world.now()
    scope = label(tuple(partition.items())) if partition else check_runs.TABLE
    try:
        written = write(
            contract,
            locate(contract, one, server, world.reach),
            report,
            path,
            Run(f"{now:%Y-%m-%dT%H%M%SZ}", scope, now),
            # Of what nothing breaks, nothing is read.
            spark=begin() if report.failed else None,
            others=others,
            unmasked=unmasked,
            neighbours=neighbours,
        )
    except DqError as error:
        written = Quarantined(0, None, f"{error.message} {error.mend}")
    return replace(report, quarantine=written)
