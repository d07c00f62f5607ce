"""dq backtest"""

from __future__ import annotations

from pathlib import Path

import typer

from dq.cli import backtest_output, deliveries_output, output
from dq.cli.backtest_output import as_markdown, findings, in_repository
from dq.contracts.access.files import read
from dq.contracts.outcome import UsageError
from dq.dataquality.backtest import LAST
from dq.operations.backtest import BacktestOutcome, BacktestRequest, UntestedPast, run
from dq.operations.deliveries import BacktestDeliveriesOutcome, BacktestDeliveriesRequest, run_backtest
from dq.operations.runtime.context import runtime_context
from dq.validators.lint import LintResult, PathBase, ReportFormat
from dq.validators.reports import load_report as report_of
from dq.validators.reports import names


def command(
    paths: list[Path] = typer.Argument(None, help="Contract files or folders (default: the working folder)."),
    last: int = typer.Option(
        LAST, "--last", min=1, help="Number of newest partitions, or deliveries, to test."
    ),
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
    deliveries: bool = typer.Option(
        False, "--deliveries", help="Test delivery terms on past deliveries instead of rules."
    ),
    format: str = typer.Option("text", "--format", help=f"Output format: {', '.join(names())}."),
) -> None:
    """Run rules against past partitions and show which would have failed.

    Run it before a new rule is merged: how often would it have failed in the last 90 days? Each verdict
    is that of 'dq check --partition'; nothing is stored and no alert is sent. Rules that compare with
    earlier runs use the partitions before. Rules about the whole table are listed and not
    tested. With --base, only rules that the branch adds or changes are tested; without any, Spark is not
    started.

    With --deliveries, tests the delivery terms instead: which deliveries would have been on time, late or
    missing, and how much of the error budget each month would have used. Drafts are tested, too. Needs no
    Spark.

    Exit codes: 0 no rule would have failed, 1 an error-level rule would have failed (with --deliveries: an
    objective would have been missed), 2 invalid options,
    or Spark or Java is missing, 3 something could not be tested, or the base could not be read.

    Example: dq backtest registry --base origin/main --last 90 --format github
    """
    form = report_of(format)
    places = paths or [Path()]
    context = runtime_context(None, places)
    if deliveries:
        for name, value in (("--base", base), ("--rule", rule), ("--parallel", parallel)):
            if value:
                raise UsageError(f"{name} cannot be used with --deliveries.", "Remove one of the two.")
        request = BacktestDeliveriesRequest(tuple(places), last, object, server)
        _show_deliveries(form, run_backtest(context, request), context.folder)
        return
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


def _show_deliveries(form: ReportFormat, outcome: BacktestDeliveriesOutcome, folder: Path) -> None:
    for result in outcome.results:
        if result.error is not None:
            output.problem(result.error, f"{result.slo.contract.id}/{result.slo.object.name}: ")
    if form.id == "json":
        output.as_json(outcome.as_list())
    elif form.id == "text":
        for finding in outcome.findings:
            output.note(str(finding))
        deliveries_output.describe_results(outcome.results)
    else:
        shown = [*outcome.findings, *outcome.missed_objectives()]
        if form.path_base is PathBase.REPOSITORY:
            shown = [in_repository(finding, folder) for finding in shown]
        texts = {result.slo.contract.file: read(Path(result.slo.contract.file)) for result in outcome.results}
        output.report(form, LintResult(tuple(shown), tuple(texts), texts))
    raise typer.Exit(outcome.exit_code)
