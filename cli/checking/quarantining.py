"""Bad rows of a check, written apart."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from dq.contracts.shared.outcome import DqError
from dq.dataquality import Report, Request
from dq.dataquality.quarantine import Run, write
from dq.dataquality.report import Quarantined

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def set_apart(
    request: Request,
    report: Report,
    path: str,
    run: Run,
    begin: Callable[[], SparkSession],
    *,
    unmasked: bool,
) -> Report:
    """The report with what was written of its bad rows, or why that could not be done."""
    try:
        written = write(
            request.contract,
            request.data,
            report,
            path,
            run,
            # Of what nothing breaks, nothing is read.
            spark=begin() if report.failed else None,
            others=request.others,
            unmasked=unmasked,
            neighbours=request.neighbours,
        )
    except DqError as error:
        written = Quarantined(0, None, f"{error.message} {error.mend}")
    return replace(report, quarantine=written)
