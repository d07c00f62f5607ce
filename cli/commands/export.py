"""dq export"""

from __future__ import annotations

from pathlib import Path

import typer

from dq.cli.loading.contracts import load, only
from dq.cli.terminal import output
from dq.contracts.access.files import create
from dq.contracts.shared.errors import UsageError
from dq.contracts.shared.spelling import nearest
from dq.registry.exporting import kinds


def command(
    kind: str = typer.Argument(help="sql, jsonschema, avro, dbt or html."),
    contract: Path = typer.Argument(help="The contract's file."),
    object: str = typer.Option(None, "--object", help="Only this object."),
    file: Path = typer.Option(None, "--output", "-o", help="Where to write it; the terminal by default."),
) -> None:
    """Write the schema of a contract in the words of others.

    What that form cannot say is told, each with what is written instead. Nothing is overwritten.

    Exit codes: 0 written, 2 a mistake, 3 the contract cannot be read.

    Example: dq export avro registry/orders.odcs.yaml --output orders.avsc
    """
    shelf = kinds.load()
    if kind not in shelf:
        hint = nearest(kind, shelf)
        mend = f"Did you mean {hint}?" if hint else f"It knows {', '.join(shelf)}."
        raise UsageError(f"dq export knows no {kind!r}.", mend)
    known = only(load([contract]))
    wanted = [one for one in known.objects if object in (None, one.name, one.id)]
    if not wanted:
        names = ", ".join(one.name for one in known.objects)
        raise UsageError(f"{contract} has no object {object!r}.", f"It has {names}." if names else "")
    made = shelf[kind].write(known, wanted)
    if file is None:
        output.block(made.text.rstrip("\n"))
    else:
        try:
            create(file, made.text.encode())
        except FileExistsError as error:
            raise UsageError(f"{file} is there already.", "Name another --output, or remove it.") from error
        output.line(f"Wrote {file}.")
    for one in made.lost:
        output.note(f"{one}.")
