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
    contract: Path = typer.Argument(help="The contract's file."),
    object: str = typer.Option(None, "--object", help="Only this object."),
    to: str = typer.Option(
        None, "--to", help="Which one, where there are several: a version of odcs, such as v3.0.2."
    ),
    file: Path = typer.Option(None, "--output", "-o", help="Where to write it; the terminal by default."),
) -> None:
    """Write the schema of a contract in the words of others.

    What that form cannot say is told, each with what is written instead. Nothing is overwritten.

    Exit codes: 0 written, 2 a mistake, 3 the contract cannot be read.

    Example: dq export avro registry/orders.odcs.yaml --output orders.avsc
    """
    outcome = run(kind, contract, object, to, note)
    if file is None:
        output.block(outcome.text.rstrip("\n"))
    else:
        try:
            create(file, outcome.text.encode())
        except FileExistsError as error:
            raise UsageError(f"{file} is there already.", "Name another --output, or remove it.") from error
        output.line(f"Wrote {file}.")
    for one in outcome.lost:
        output.note(f"{one}.")
