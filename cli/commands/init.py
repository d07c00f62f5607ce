"""dq init"""

from __future__ import annotations

from pathlib import Path

import typer

from dq.cli import output
from dq.contracts.escaping import shell_word
from dq.operations.authoring import init
from dq.operations.project_files import CONTRACTS, Ci


def command(
    folder: Path = typer.Argument(Path(), help="Registry folder."),
    id: str = typer.Option(
        "orders", "--id", prompt="Id of the contract (small letters)", help="Contract id."
    ),
    domain: str = typer.Option("sales", "--domain", prompt="Domain", help="Owning domain."),
    owner: str = typer.Option("you@example.com", "--owner", prompt="Owner", help="Owner."),
    channel: str = typer.Option(
        "#data-alerts", "--channel", prompt="Slack channel", help="Slack channel for alerts."
    ),
    schedule: str = typer.Option(
        "0 6 * * *", "--schedule", prompt="Due at (cron)", help="Cron schedule of the delivery."
    ),
    tz: str = typer.Option("UTC", "--tz", prompt="Time zone of the cron", help="IANA time zone."),
    location: str = typer.Option("lake/{object}", "--location", help="Folder or s3:// prefix of the data."),
    git: bool = typer.Option(False, "--git", help="Create a Git repository and commit the files."),
    ci: Ci = typer.Option(
        None, "--ci", help="Also write pipelines: validate in pull requests, register on merge."
    ),
    airflow: bool = typer.Option(
        False, "--airflow", help="Also write a DAG: wait for each delivery, check it."
    ),
) -> None:
    """Create a first contract that validates, and a policy file. Never overwrites a file.

    Prompts for values that are not given as options. With --ci or --airflow, the folder is a whole project,
    and contract and policy are in its folder contracts; existing files are kept.

    Example: dq init registry --id orders --domain sales --owner ana@example.com
    """
    outcome = init(
        folder,
        id=id,
        domain=domain,
        owner=owner,
        channel=channel,
        schedule=schedule,
        timezone=tz,
        location=location,
        git=git,
        ci=ci,
        airflow=airflow,
    )
    for file in outcome.files:
        output.line(f"Wrote {file}.")
    for file in outcome.existing:
        output.line(f"Kept {file}, which exists.")
    if outcome.problem is not None:
        raise outcome.problem
    if outcome.branch is not None:
        output.line(f"Committed the files to branch {outcome.branch}.")
    output.line()
    registry = folder / CONTRACTS if ci is not None or airflow else folder
    output.line("Next: edit the columns, then run")
    output.line(f"  dq validate {shell_word(str(registry))}")
