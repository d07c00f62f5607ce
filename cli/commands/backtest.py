"""dq backtest"""

from __future__ import annotations

from pathlib import Path

import typer

from dq.cli import backtest_output, output
from dq.cli.backtest_output import as_markdown, findings, in_repository
from dq.contracts.access.files import read
from dq.dataquality.backtest import LAST
from dq.operations.backtest import BacktestOutcome, BacktestRequest, UntestedPast, run
from dq.operations.runtime.context import runtime_context
from dq.validators.lint import LintResult, PathBase, ReportFormat
from dq.validators.reports import load_report as report_of
from dq.validators.reports import names


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
    context = runtime_context(None, places)
    outcome = run(context, BacktestRequest(tuple(places), last, base, object, tuple(rule), server, parallel))
    for past in outcome.results:
        if isinstance(past, UntestedPast):
            output.problem(past.error, f"{past.contract}/{past.object}: ")
    _show(form, outcome, context.folder, base)
    raise typer.Exit(outcome.exit_code)


def _show(form: ReportFormat, outcome: BacktestOutcome, folder: Path, base: str | None) -> None:
    if form.id == "json":
        output.as_json(outcome.as_list())
    elif form.id == "markdown":
        output.block(as_markdown(outcome.tested, folder))
    elif form.id != "text":
        shown_findings = [*outcome.findings, *findings(outcome.tested)]
        if form.path_base is PathBase.REPOSITORY:
            shown_findings = [in_repository(finding, folder) for finding in shown_findings]
        contracts = {contract.file: read(Path(contract.file)) for (contract, _), _ in outcome.tested}
        output.report(form, LintResult(tuple(shown_findings), tuple(contracts), contracts))
    else:
        if base and not outcome.tested and not outcome.findings:
            output.line(f"No rules added or changed since {base}.")
        for past in outcome.results:
            if not isinstance(past, UntestedPast):
                backtest_output.describe_backtest(past)
