"""dq export"""

from __future__ import annotations

from pathlib import Path

import typer

from dq.cli import output
from dq.cli.context import note
from dq.contracts.access.files import create
from dq.contracts.outcome import UsageError
from dq.operations.export import run


def command(
    kind: str = typer.Argument(help="odcs, sql, jsonschema, avro, dbt, pandera or html."),
    contract: Path = typer.Argument(help="Contract file."),
    object: str = typer.Option(None, "--object", help="Only this object."),
    to: str = typer.Option(None, "--to", help="Target version for odcs, e.g. v3.0.2."),
    file: Path = typer.Option(None, "--output", "-o", help="Output file (default: stdout)."),
) -> None:
    """Export a contract's schema to SQL, JSON Schema, Avro, dbt, pandera, HTML or another ODCS version.

    Lists what the format cannot express and what is written instead. Never overwrites a file.

    Exit codes: 0 written, 2 invalid options, 3 the contract could not be read.

    Example: dq export avro registry/orders.odcs.yaml --output orders.avsc
    """
    outcome = run(kind, contract, object, to, note)
    if file is None:
        output.block(outcome.text.rstrip("\n"))
    else:
        try:
            create(file, outcome.text.encode())
        except FileExistsError as error:
            raise UsageError(
                f"{file} already exists.", "Choose another --output, or remove the file."
            ) from error
        output.line(f"Wrote {file}.")
    for loss in outcome.losses:
        output.note(f"{loss}.")
