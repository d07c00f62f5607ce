"""dq doctor"""

from __future__ import annotations

from pathlib import Path

import typer

from dq.cli import output
from dq.cli.context import ACCOUNT, ROLE
from dq.operations.doctor import doctor


def command(
    catalog: str = typer.Option(
        None, "--catalog", help="Also check this catalog: local, hive, glue or iceberg."
    ),
    everything: bool = typer.Option(
        False, "--all", help="Also list unused extras and channels, with how to enable them."
    ),
    aws: bool = typer.Option(
        False, "--aws", help="Also check the parts of the registry's landing zone in the AWS account."
    ),
    templates: list[Path] = typer.Option(
        None, "--template", help="Check the parts of this emitted template instead; repeatable."
    ),
    role_arn: str = ROLE,
    catalog_id: str = ACCOUNT,
    format: output.Format = output.FORMAT,
) -> None:
    """Check installation and configuration, and show how to fix problems.

    Checks the extras, Java, the state store, undelivered alerts, channels, the lake roots and, with
    --catalog, a catalog. Sends, upgrades and changes nothing. Every check is listed, including those that
    timed out; extras and channels that are not used are summarized.

    With --aws, checks that each part of the landing zone (dq register --emit-landing-zone) is in the account
    of the current credentials, and of its watcher if that is deployed: roles with their permissions,
    functions, queues and failed starts in them, alarms and their topics, schedules, data lake administrators.
    --template checks a template that was emitted, e.g. by dq link --emit-stack.

    Exit codes: 0 everything needed works, 3 something is broken.

    Example: dq doctor --catalog glue
    """
    outcome = doctor(catalog, role_arn=role_arn, catalog_id=catalog_id, aws=aws, templates=templates or ())
    if format is output.Format.JSON:
        output.as_json(outcome.as_list())
    else:
        unused = [look.name for look in outcome.looks if look.unused and not everything]
        for look in outcome.looks:
            if look.name in unused:
                continue
            sign = output.styled("–", fg="yellow") if look.ok is None else output.mark(look.ok)
            output.line(f"  {sign} {look.name:<16} {look.detail}")
            if look.hint:
                output.line(f"      {look.hint}")
        if unused:
            output.line(f"  {output.styled('–', fg='yellow')} {'not used':<16} {', '.join(unused)}")
            output.line("      All of them are optional. List how to enable them with 'dq doctor --all'.")
    raise typer.Exit(outcome.exit_code)
