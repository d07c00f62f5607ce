"""dq doctor"""

from __future__ import annotations

import typer

from dq.cli import output
from dq.cli.context import ACCOUNT, ROLE
from dq.operations.doctor import doctor


def command(
    catalog: str = typer.Option(
        None, "--catalog", help="Also ask this catalog: local, hive, glue or iceberg."
    ),
    role_arn: str = ROLE,
    catalog_id: str = ACCOUNT,
    format: output.Format = output.FORMAT,
) -> None:
    """Say what is installed, what is missing or broken, and the exact command that mends it.

    Looks at the extras, Java, the state store, alerts that wait, channels, the lake roots and, with
    --catalog, a catalog. Nothing is sent, upgraded or changed. Every row appears, also where one cannot be
    answered in time.

    Exit codes: 0 nothing that is needed is missing, 3 something is broken.

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
