"""dq check"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from dq.cli.context import alerts_are_results, undelivered
from dq.cli.options import CHANNEL, QUARANTINE, UNMASKED
from dq.cli.shown import check
from dq.cli.shown import check as oors
from dq.cli.terminal import output
from dq.contracts.shared.outcome import Unreadable, UsageError
from dq.dataquality.answers.sources import ALL, NONE
from dq.dataquality.clauses.foreign_key import Neighbours
from dq.dataquality.report import Report
from dq.dataquality.results import results_table as results
from dq.operations import alerting
from dq.operations.check import (
    Failed,
    Setup,
    T,
    Task,
    Work,
    asked,
    foresee,
    formats,
    name_of,
    objects,
    refused,
    run,
    run_all,
    tasks,
    with_places,
    with_rules,
)
from dq.operations.key_ownership import settled
from dq.operations.openlineage import recording
from dq.operations.registry_files import Loaded, load
from dq.operations.runtime.context import here, processors
from dq.operations.runtime.spark import at_need, at_once, session, together

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


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
    world = here(as_of, paths or [Path()])
    what = asked(partition, cycle, since, everything)
    store = world.store()
    loaded = settled(world, store, load(paths or [Path()], world.note))
    unheard = alerting.refused(loaded.contracts, channel, world.settings)
    output.notes([*loaded.findings, *unheard])
    neighbours = Neighbours.of(loaded.contracts)
    pairs = with_rules(objects(loaded, object), rule, neighbours)
    todo = with_places(world, tasks(store, pairs, what, server), server)
    read = formats(world, pairs, server)
    tell = alerting.teller(world, loaded.contracts, channel, server)
    # Without a metastore, Spark would forget a table's name with the end of this process.
    hive = bool(results_table) and not results.is_path(results.place(results_table))
    threads = parallel or at_once(processors())
    if dry_run:
        given = Setup(
            world, store, at_need(world, formats=read), tell, server, tuple(rule), neighbours=neighbours
        )
        raise typer.Exit(_foresee(given, todo, threads, loaded, format))
    if any(task.scopes for task in todo):
        spark = at_need(world, hive=hive, formats=read)
        if results_table:
            # What cannot be appended in the end is said before anything is done.
            spark()
        apart = (quarantine, quarantine_unmasked)
        levers = NONE if scan else ALL
        given = Setup(
            world,
            store,
            spark,
            tell,
            server,
            tuple(rule),
            *apart,
            levers=levers,
            neighbours=neighbours,
            verify_statistics=verify_statistics,
        )
        with recording(world, loaded.contracts, server) as events:
            done, bugs = _each(given, todo, events.around(run) if events else run, threads)
    else:
        done, bugs = [failed for task in todo for failed in refused(task)], []
    check.reports(
        done, loaded.findings, format, oors.source("dq check", loaded.contracts, server, world.now())
    )
    unsent = undelivered(alerting.send(world, store, channel))
    if results_table:
        _append(session(world, hive=hive), done, loaded, world.now(), results_table)
    _raise(bugs)
    codes = [unsent, *map(_code, done), Unreadable.exit_code if loaded.findings or unheard else 0]
    raise typer.Exit(_worst(codes))


def _worst(codes: Sequence[int]) -> int:
    return next((code for code in (4, 2, 3, 1) if code in codes), 0)


def _code(one: Report | Failed) -> int:
    # Whoever publishes what the quarantine left over must learn that there is none.
    unwritten = isinstance(one, Report) and one.quarantine is not None and one.quarantine.problem
    return Unreadable.exit_code if unwritten else one.exit_code


def _foresee(
    given: Setup, todo: Sequence[Task], threads: int, loaded: Loaded, form: output.ResultFormat
) -> int:
    seen, bugs = _each(given, todo, foresee, threads)
    check.outlines(seen, loaded.findings, form)
    _raise(bugs)
    return _worst(
        [
            Unreadable.exit_code if loaded.findings else 0,
            *(one.exit_code for one in seen if isinstance(one, Failed)),
        ]
    )


def _each(
    given: Setup, todo: Sequence[Task], work: Work[T], threads: int
) -> tuple[list[T | Failed], list[Exception]]:
    """What the work gave for all scopes, in the order of the contracts, and what it may not raise: bugs."""
    progress = given.world.messages.progress(sum(len(task.scopes) for task in todo))
    answers = together(
        lambda: given.spark.begun, todo, lambda task: run_all(given, task, work, progress), threads
    )
    progress.close()
    done = [one for answer in answers if not isinstance(answer, Exception) for one in answer]
    return done, [answer for answer in answers if isinstance(answer, Exception)]


def _append(
    spark: SparkSession, done: Sequence[Report | Failed], loaded: Loaded, now: datetime, target: str
) -> None:
    """All results as rows of one write; what could not be tested has a row too."""
    rows = [results.broken(finding, now) for finding in loaded.findings]
    for one in done:
        if isinstance(one, Report):
            rows += results.lines(one, now)
        else:
            scope = name_of(one.scope)
            rows.append(results.untested(one.contract, one.object.name, scope, now, str(one.error)))
    if rows:
        with output.step(f"appending {len(rows)} results to {target}"):
            results.append(spark, rows, target)


def _raise(bugs: Sequence[Exception]) -> None:
    if bugs:
        raise bugs[0] if len(bugs) == 1 else ExceptionGroup("bugs in the runs of several objects", bugs)
