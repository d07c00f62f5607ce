"""dq check"""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import typer

from dq.cli import check_output, output
from dq.cli.context import CHANNEL, CLEAN, KEEP, QUARANTINE, UNMASKED, alerts_are_results
from dq.contracts.outcome import UsageError
from dq.dataquality.deduplication import Precedence
from dq.operations.check import parse_partition, select_rows
from dq.operations.check_contracts import CheckRequest, finish, run_checks
from dq.operations.runtime.context import parse_instant, runtime_context


def command(
    paths: list[Path] = typer.Argument(None, help="Contract files or folders (default: the working folder)."),
    partition: list[str] = typer.Option(
        [], "--partition", help="Only this partition, e.g. day=2026-11-20/region=eu."
    ),
    cycle: list[str] = typer.Option(
        [], "--cycle", help="Only the delivery due at this time, e.g. 2026-11-20T06:00:00Z."
    ),
    since: str = typer.Option(
        None, "--since", help="Everything delivered since this time, checked before or not."
    ),
    everything: bool = typer.Option(False, "--all", help="The whole table."),
    object: str = typer.Option(None, "--object", help="Only this object."),
    rule: list[str] = typer.Option(
        [], "--rule", help="Only clauses of this check or path, or the quality rule with this id or name."
    ),
    server: str = typer.Option(None, "--server", help="Server to use if the contract has more than one."),
    parallel: int = typer.Option(
        None, "--parallel", min=1, help="Number of objects to check in parallel (default: CPU count)."
    ),
    results_table: str = typer.Option(
        None,
        "--results-table",
        help="Append results to this Spark table or folder of Parquet files.",
    ),
    dry_run: bool = typer.Option(False, "--dry-run", help="Show what would be read; read only the schema."),
    scan: bool = typer.Option(
        False,
        "--scan",
        help="Scan all rows with Spark: no statistics, no cache, no Python tasks.",
    ),
    verify_statistics: float = typer.Option(
        0.0,
        "--verify-statistics",
        min=0,
        max=1,
        metavar="SHARE",
        help="Verify this share of the answers from statistics on the rows, from 0 to 1.",
    ),
    channel: str = CHANNEL,
    quarantine: str = QUARANTINE,
    quarantine_unmasked: bool = UNMASKED,
    keep: str = KEEP,
    clean: str = CLEAN,
    as_of: str = output.AS_OF,
    format: output.ResultFormat = output.RESULT_FORMAT,
) -> None:
    """Check data against its contracts.

    By default, checks every delivered partition that was not checked before, and the whole table if
    deliveries are not tracked. Results are stored; a failed check opens an incident, and a later run that
    passes resolves it. A run with --rule resolves only what it tested. Objects are checked in parallel in
    one Spark application; one that cannot be checked does not stop the others. Small Parquet tables are
    checked without Spark and Java.

    Exit codes: 0 passed, 1 an error-level check failed, 2 invalid options, or Spark or Java is needed and
    missing, 3 something could not be measured, statistics were wrong, or rows could not be written, 4
    an alert could not be delivered.

    Example: dq check flights.odcs.yaml --partition flight_date=2013-11-03
    """
    if dry_run and format is output.ResultFormat.OORS:
        raise UsageError(
            "--dry-run has no results to write as oors.", "Use --format json, or remove --dry-run."
        )
    if format is output.ResultFormat.TEXT:
        alerts_are_results()
    places = paths or [Path()]
    context = runtime_context(as_of, places)
    rows = select_rows(
        [parse_partition(text) for text in partition],
        [parse_instant(text) for text in cycle],
        parse_instant(since) if since else None,
        everything,
    )
    request = CheckRequest(
        tuple(places),
        rows,
        object,
        tuple(rule),
        server,
        parallel,
        results_table,
        dry_run,
        scan,
        verify_statistics,
        channel,
        quarantine,
        quarantine_unmasked,
        None if keep is None else Precedence.parse(keep),
        clean,
    )
    with closing(context.store()) as store:
        outcome = run_checks(context, store, request)
        if dry_run:
            check_output.print_outlines(outcome.results, outcome.findings, format)
        elif outcome.results or not outcome.bugs:
            source = check_output.new_source("dq check", outcome.contracts, server, outcome.at)
            check_output.print_reports(outcome.results, outcome.findings, format, source)
        outcome = finish(context, store, request, outcome)
    outcome.raise_bugs()
    raise typer.Exit(outcome.exit_code)
