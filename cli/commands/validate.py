"""dq validate"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import typer

from dq.cli import show
from dq.cli.gate import judge
from dq.cli.world import here
from dq.contracts.errors import UsageError
from dq.contracts.form import nearest
from dq.validators.report import Screen, reports_of


def command(
    paths: list[Path] = typer.Argument(
        None, help="Contract files or folders; the working folder by default."
    ),
    format: str = typer.Option("text", "--format", help="How to report: text or json."),
    policy: Path = typer.Option(None, "--policy", help="Another policy than the registry's dq-policy.yaml."),
) -> None:
    """Find every mistake in contracts that can be seen without their data.

    Needs no Java and no network. All findings come at once, each with its line, its reason and its mend;
    'dq explain RULE' tells more about one.

    Exit codes: 0 nothing that blocks, 1 errors were found, 2 the policy cannot be understood, 3 a path
    cannot be read.

    Example: dq validate registry
    """
    formats = reports_of()
    if format not in formats:
        hint = nearest(format, formats)
        raise UsageError(
            f"there is no report format {format!r}.",
            f"Did you mean {hint!r}?" if hint else f"Choose one of {', '.join(formats)}.",
        )
    linted = judge(here(), paths or [Path()], policy)
    screen = Screen(color=sys.stdout.isatty(), width=shutil.get_terminal_size((100, 24)).columns)
    show.line(formats[format].render(linted, screen).rstrip("\n"))
    raise typer.Exit(1 if any(finding.severity.blocks for finding in linted.findings) else 0)
