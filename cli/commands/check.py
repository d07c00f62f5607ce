"""dq check"""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import typer

from dq.cli import check_output, output
from dq.cli.context import CHANNEL, QUARANTINE, UNMASKED, alerts_are_results
from dq.contracts.outcome import UsageError
from dq.operations.check import asked, partition_of
from dq.operations.check_contracts import CheckRequest, finish, run_checks
from dq.operations.runtime.context import here, instant


def command(
    paths: list[Path] = typer.Argument(
        None, help="Contract files or folders; by default the working folder."
    ),
    partition: list[str] = typer.Option(
        [], "--partition", help="Only this one, such as day=2026-11-20/region=eu."
    ),
    cycle: list[str] = typer.Option(
        [], "--cycle", help="The delivery that was due at this instant, such as 2026-11-20T06:00:00Z."
    ),
    since: str = typer.Option(
        None, "--since", help="What was delivered since this instant, tested before or not."
    ),
    everything: bool = typer.Option(False, "--all", help="The whole table."),
    object: str = typer.Option(None, "--object", help="Only this object."),
    rule: list[str] = typer.Option(
        [], "--rule", help="Only the clauses of this check, path, or id or name of a quality rule."
    ),
    server: str = typer.Option(None, "--server", help="The server, where a contract has several."),
    parallel: int = typer.Option(
        None, "--parallel", min=1, help="How many objects are tested at once; by default by the processors."
    ),
    results_table: str = typer.Option(
        None,
        "--results-table",
        help="Append the results to this table of Spark, or to this folder of Parquet.",
    ),
    dry_run: bool = typer.Option(
        False, "--dry-run", help="Show what would be read, and read only the schema."
    ),
    scan: bool = typer.Option(
        False,
        "--scan",
        help="Read everything with Spark: no proof by statistics, no kept answers, no Python tasks.",
    ),
    verify_statistics: float = typer.Option(
        0.0,
        "--verify-statistics",
        min=0,
        max=1,
        metavar="SHARE",
        help="Count this share of what statistics prove from the rows all the same, from 0 to 1.",
    ),
    channel: str = CHANNEL,
    quarantine: str = QUARANTINE,
    quarantine_unmasked: bool = UNMASKED,
    as_of: str = output.AS_OF,
    format: output.ResultFormat = output.RESULT_FORMAT,
) -> None:
    """Test the data against its contracts, on Spark where that is needed.

    By default each partition that was delivered and not tested yet, and the whole table where nobody knows
    what was delivered when. Results are kept in the store; a broken promise opens an incident, and a later
    run that finds it kept resolves it. A run with --rule resolves nothing that it did not ask for.
    Several objects are tested at once, in one Spark application; one that cannot be tested stops no other.
    It is begun for the first table that needs it: small Parquet tables are read without Spark and Java.

    Exit codes: 0 kept, 1 an error-level check failed, 2 the options cannot be understood, or Spark or Java is
    needed and missing, 3 something could not be measured, statistics were found wrong, or bad rows not be
    written apart, 4 an alert could not be delivered.

    Example: dq check flights.odcs.yaml --partition flight_date=2013-11-03
    """
    if dry_run and format is output.ResultFormat.OORS:
        raise UsageError("A dry run has no results for OORS.", "Write --format json, or leave --dry-run out.")
    if format is output.ResultFormat.TEXT:
        alerts_are_results()
    places = paths or [Path()]
    world = here(as_of, places)
    rows = asked(
        [partition_of(text) for text in partition],
        [instant(text) for text in cycle],
        instant(since) if since else None,
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
    )
    with closing(world.store()) as store:
        outcome = run_checks(world, store, request)
        if dry_run:
            check_output.outlines(outcome.results, outcome.findings, format)
        else:
            source = check_output.source("dq check", outcome.contracts, server, outcome.at)
            check_output.reports(outcome.results, outcome.findings, format, source)
        outcome = finish(world, store, request, outcome)
    outcome.raise_bugs()
    raise typer.Exit(outcome.exit_code)
