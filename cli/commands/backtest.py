"""dq backtest"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import typer

from dq.cli import backtest_output, output
from dq.cli.backtest_output import as_markdown, findings, in_repository
from dq.contracts.access.files import read
from dq.contracts.outcome import Finding, Unreadable
from dq.dataquality.backtest import LAST, Backtest
from dq.dataquality.clauses.foreign_key import Neighbours
from dq.operations import backtest
from dq.operations.backtest import PastRequest, UntestedPast, new_rules
from dq.operations.check import Pair, formats, objects, with_rules
from dq.operations.registry_files import load
from dq.operations.runtime.context import here, processors
from dq.operations.runtime.spark import at_once, session
from dq.validators.lint import From, Linted, ReportFormat
from dq.validators.reports import names
from dq.validators.reports import report as report_of

Tested = list[tuple[Pair, Backtest | UntestedPast]]


def command(
    paths: list[Path] = typer.Argument(None, help="Contract files or folders (default: the working folder)."),
    last: int = typer.Option(LAST, "--last", min=1, help="Number of newest partitions to test."),
    base: str = typer.Option(None, "--base", help="Only rules added or changed since this Git reference."),
    object: str = typer.Option(None, "--object", help="Only this object."),
    rule: list[str] = typer.Option(
        [], "--rule", help="Only clauses of this check or path, or the quality rule with this id or name."
    ),
    server: str = typer.Option(None, "--server", help="Server to use if the contract has more than one."),
    parallel: int = typer.Option(
        None,
        "--parallel",
        min=1,
        help="Number of objects to test in parallel (default: CPU count).",
    ),
    format: str = typer.Option("text", "--format", help=f"Output format: {', '.join(names())}."),
) -> None:
    """Run rules against past partitions and show which would have failed.

    Run it before a new rule is merged: how often would it have failed in the last 90 days? Each verdict
    is that of 'dq check --partition'; nothing is stored and no alert is sent. Rules that compare with
    earlier runs compare with the partitions before. Rules about the whole table are listed and not
    tested. With --base, only rules that the branch adds or changes are tested; without any, Spark is not
    started.

    Exit codes: 0 no rule would have failed, 1 an error-level rule would have failed, 2 invalid options,
    or Spark or Java is missing, 3 something could not be tested, or the base could not be read.

    Example: dq backtest registry --base origin/main --last 90 --format github
    """
    form = report_of(format)
    places = paths or [Path()]
    world = here(None, places)
    loaded = load(places, world.note)
    output.notes(loaded.findings)
    neighbours = Neighbours.of(loaded.contracts)
    pairs = with_rules(objects(loaded, object), rule, neighbours)
    asked = [(pair, tuple(rule)) for pair in pairs]
    if base:
        asked = new_rules(places, base, pairs, rule, neighbours)
    done: Tested = []
    if asked:
        threads = parallel or at_once(processors())
        spark = session(world, formats=formats(world, [pair for pair, _ in asked], server))
        history = PastRequest(world, spark, neighbours, last, threads, server)
        done = [(pair, backtest.test(replace(history, rules=words), pair)) for pair, words in asked]
    for _, one in done:
        if isinstance(one, UntestedPast):
            output.problem(one.error, f"{one.contract}/{one.object}: ")
    _show(form, done, loaded.findings, world.folder, base)
    codes = [one.exit_code for _, one in done] + [Unreadable.exit_code if loaded.findings else 0]
    raise typer.Exit(next((code for code in (3, 1) if code in codes), 0))


def _show(form: ReportFormat, done: Tested, broken: list[Finding], folder: Path, base: str | None) -> None:
    if form.id == "json":
        unread = [{"contract": None, "object": None, "error": str(finding)} for finding in broken]
        output.as_json([*unread, *({"error": None, **one.as_dict()} for _, one in done)])
    elif form.id == "markdown":
        output.block(as_markdown(done, folder))
    elif form.id != "text":
        found = [*broken, *findings(done)]
        if form.files is From.REPOSITORY:
            found = [in_repository(one, folder) for one in found]
        contracts = {contract.file: read(Path(contract.file)) for (contract, _), _ in done}
        output.report(form, Linted(tuple(found), tuple(contracts), contracts))
    else:
        if base and not done and not broken:
            output.line(f"No rule is new or changed against {base}.")
        for _, one in done:
            if not isinstance(one, UntestedPast):
                backtest_output.describe_backtest(one)
