"""dq doctor"""

from __future__ import annotations

import typer

from dq.cli import output
from dq.cli.context import ACCOUNT, ROLE
from dq.operations.doctor import doctor


def command(
    catalog: str = typer.Option(
        None, "--catalog", help="Also check this catalog: local, hive, glue or iceberg."
    ),
    role_arn: str = ROLE,
    catalog_id: str = ACCOUNT,
    format: output.Format = output.FORMAT,
) -> None:
    """Check installation and configuration, and show how to fix problems.

    Checks the extras, Java, the state store, undelivered alerts, channels, the lake roots and, with
    --catalog, a catalog. Sends, upgrades and changes nothing. Every check is listed, including those that
    timed out.

    Exit codes: 0 everything needed works, 3 something is broken.

    Example: dq doctor --catalog glue
    """
    outcome = doctor(catalog, role_arn=role_arn, catalog_id=catalog_id)
    if format is output.Format.JSON:
        output.as_json(outcome.as_list())
    else:
        for look in outcome.looks:
            sign = output.styled("–", fg="yellow") if look.good is None else output.mark(look.good)
            output.line(f"  {sign} {look.what:<16} {look.seen}")
            if look.mend:
                output.line(f"      {look.mend}")
    raise typer.Exit(outcome.exit_code)
