"""Arguments and options that several commands have."""

from __future__ import annotations

import typer

PATHS = typer.Argument(None, help="Contract files or folders; the working folder by default.")
CATALOG: str = typer.Option(
    "local", "--catalog", help="Which catalog: local (in the state store), hive, glue or iceberg."
)
ROLE: str = typer.Option("", "--role-arn", help="In AWS: the role to take on, as of another account.")
ACCOUNT: str = typer.Option(
    "", "--catalog-id", help="In AWS: the account whose catalog it is, where it is not one's own."
)
CHANNEL = typer.Option(
    "contract",
    "--channel",
    help="Who is told: contract (its support channels), console, or one such as slack:#sales-data.",
)
QUARANTINE = typer.Option(
    None, "--quarantine", help="Write the rows that break a clause to this path, as Parquet, masked."
)
UNMASKED = typer.Option(
    False, "--quarantine-unmasked", help="With classified columns, and those that the contract does not name."
)
