"""dq demo"""

from __future__ import annotations

import time
from contextlib import chdir, closing
from datetime import datetime
from pathlib import Path

import typer

from dq.alerts.drain import DrainResult
from dq.cli import check_output, output, plan_output
from dq.cli.commands import portal, status, watch
from dq.cli.context import alerts_are_results, note, undelivered
from dq.contracts.escaping import shell
from dq.contracts.outcome import MissingTool, UsageError
from dq.dataquality.delivery.tick import TickResult
from dq.dataquality.report import Report
from dq.operations import demo, demo_aws
from dq.operations.demo import (
    FIRST,
    SITE,
    DemoChapter,
    DemoDelivery,
    DemoExpectation,
    DemoHistory,
    DemoStep,
    SourceRows,
)
from dq.operations.demo_aws import AwsChapter, AwsDemoStep, DemoCommand, DemoMoment, DemoNote
from dq.operations.demo_servers import SlackMessage
from dq.operations.incidents import AckOutcome
from dq.operations.portal import PortalOutcome
from dq.operations.register import RegisterOutcome
from dq.operations.runtime.context import format_instant, runtime_context
from dq.operations.status import PromisesStanding
from dq.validators.lint import LintResult
from dq.validators.reports import load_reports

_TITLES = {
    DemoChapter.PROPOSALS: "1. Validate: a pull request proposes a contract",
    DemoChapter.REGISTRY: "2. Validate: the existing registry",
    DemoChapter.REGISTER: "3. Register: update the catalog",
    DemoChapter.WINTER: "4. Unusual numbers: the winter before",
    DemoChapter.DELIVERIES: f"5. Ten days around {FIRST:%-d %B} 2013: deliver, watch, check",
    DemoChapter.STATUS: "6. SLO status",
    DemoChapter.PORTAL: "7. The portal: status pages for consumers",
}
_AWS_TITLES = {
    AwsChapter.ACCOUNT: "1. An AWS account: moto on this machine",
    AwsChapter.MERGE: "2. Merge: a contract, and a consumer's subscription",
    AwsChapter.REGISTER: "3. Register: the table in Glue, and a schedule for each breach",
    AwsChapter.BREACH: "4. Nothing arrives: EventBridge starts the function, and Slack is notified",
    AwsChapter.DELIVERY: "5. The late delivery: S3's events start the function",
    AwsChapter.CONSUMER: "6. The consumer's queue, subscribed to the topic of the domain",
    AwsChapter.STATUS: "7. SLO status",
}


def command(
    folder: Path = typer.Option(
        Path("dq-demo"), "--folder", help="Working folder of the demo; replaced on every run."
    ),
    tables: Path = typer.Option(
        None, "--tables", help="Only write the sample tables to this folder, as Parquet; needs no Spark."
    ),
    aws: bool = typer.Option(
        False, "--aws", help="Run the loop on AWS instead, against moto's server; needs the extra demo-aws."
    ),
) -> None:
    """Run the end-to-end demo on real data.

    Checks the flights of New York in the winter of 2013, until half of them are cancelled, and delivers
    flights and weather day by day as in November 2013: one day late, one missing and delivered afterwards,
    and the defects of the real data. Needs Java 17 and the extras spark and demo;
    no network and no account. Takes about two minutes.

    With --aws: merge, register, schedule, Lambda, Slack, late delivery and the consumer's queue, in half a
    minute. AWS and Slack are servers on this machine; your AWS settings and credentials are not used.

    Example: dq demo
    """
    if aws and tables is not None:
        raise UsageError("--aws and --tables exclude each other.", "Pass one of them.")
    if aws:
        _play_aws(folder)
        return
    if tables is not None:
        for table in demo.write_tables(tables, note):
            count = f"{table.files} {'file' if table.files == 1 else 'files'}"
            output.line(f"Wrote {table.path}: {count}, {table.rows:,} rows.")
        return
    alerts_are_results()
    context = demo.prepare(runtime_context(), folder)
    progress = portal.Progress()
    # In this folder, so that relative paths of the contracts also work for the commands printed at the end.
    with chdir(context.folder):
        for step in demo.play(context, progress):
            progress.close()
            _show(step, folder)
    _print_next_commands(folder, demo.end())


def _show(step: DemoStep, folder: Path) -> None:
    """Print one step of the demo in this folder."""
    match step:
        case DemoChapter():
            output.line()
            output.line(output.styled(_TITLES[step], bold=True))
        case LintResult():
            output.block(load_reports()["text"].render(step, output.screen()).rstrip("\n"))
        case RegisterOutcome():
            plan_output.describe(step.plan, step.results, applied=True)
        case SourceRows():
            output.line("  " + ", ".join(f"{count:,} {name}" for name, count in step.rows.items()))
        case DemoDelivery(event, rows):
            word = f"  ← {event.word}" if event.word else ""
            what = f"{event.object} {event.day or ''}"
            output.line(f"{event.at:%a %d %b %H:%M}  {what} delivered, {rows:,} rows{word}")
        case DemoHistory(name, days):
            count = f"{name} of {len(days)} days, {days[0]} to {days[-1]}"
            output.line(f"  {count}: delivered and checked, nothing unusual")
        case AckOutcome():
            output.line(f"Answered by {step.by}: dq incidents ack {step.incidents[0].key.contract} --real")
        case DemoExpectation(contract, day):
            output.line(f"{contract}: {day} added to 'expected' of the rule; checked again")
        case Report():
            check_output.describe_report(step, quiet=True)
        case TickResult():
            watch.describe(step, quiet=True)
        case DrainResult():
            undelivered(step)
        case PromisesStanding():
            status.show(step, output.PageFormat.TEXT)
        case PortalOutcome():
            portal.show_problems(step)
            output.line(f"  {step.summary.products} products: open {folder / SITE / 'index.html'}")
        case MissingTool():
            output.problem(step)


def _print_next_commands(folder: Path, as_of: datetime) -> None:
    output.line()
    output.line(output.styled(f"Everything is in {folder}. Next steps:", bold=True))
    for command_line in (
        shell(("cd", str(folder))),
        "dq validate registry",
        f"dq status registry --as-of {format_instant(as_of)}",
        "dq check registry/weather.odcs.yaml --partition obs_date=2013-11-03",
        "dq register registry",
        f"dq portal serve {SITE}",
        "dq explain decimal-without-precision",
    ):
        output.line(f"  {command_line}")


def _play_aws(folder: Path) -> None:
    started = time.monotonic()
    moments: list[DemoMoment] = []
    # Closed at once on Ctrl-C, so that its servers end.
    with closing(demo_aws.play(demo_aws.prepare(runtime_context(), folder))) as steps:
        for step in steps:
            _show_aws(step)
            if isinstance(step, DemoMoment):
                moments.append(step)
    seconds = time.monotonic() - started
    output.line()
    output.line(output.styled(f"Played in {seconds:.0f} seconds. Times in UTC:", bold=True))
    for moment in moments:
        output.line(f"  {moment.at:%H:%M:%S}  {moment.text}")
    output.line()
    output.line(output.styled(f"Everything is in {folder}; its servers have ended. Next steps:", bold=True))
    for line in (
        shell(("cd", str(folder))),
        "dq --config dq.toml status registry",
        "dq incidents list --all",
        "dq --config dq.toml register registry --emit-landing-zone --watcher",
    ):
        output.line(f"  {line}")
    output.line("The last one prints the stack for your account, where the store is PostgreSQL:")
    output.line("docs/how-to/aws.md sets it up.")


def _show_aws(step: AwsDemoStep) -> None:
    """Print one step of the demo on AWS."""
    match step:
        case AwsChapter():
            output.line()
            output.line(output.styled(_AWS_TITLES[step], bold=True))
        case DemoCommand():
            output.line(output.styled(f"$ {step.line}", fg="cyan"))
            if step.output:
                output.block(step.output)
        case DemoNote():
            output.line(f"# {step.text}")
        case SlackMessage():
            what = {"chat.update": "message changed", "chat.postMessage": "message"}[step.method]
            output.line(f"Slack {step.channel}: {'reply in the thread' if step.is_reply else what}")
            output.block("\n".join(f"    {line}" for line in step.lines))
