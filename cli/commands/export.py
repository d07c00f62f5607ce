"""dq export"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import typer

from dq.cli.context import note
from dq.cli.terminal import output
from dq.contracts.access.files import create
from dq.contracts.escaping import comment
from dq.contracts.model import Contract
from dq.contracts.shared.outcome import UsageError
from dq.contracts.shared.wording import nearest
from dq.operations.registry_files import load, only
from dq.registry.exporting import kinds
from dq.registry.exporting.export import Exported, ExportKind, Write, unsaid


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
    shelf = kinds.load()
    if kind not in shelf:
        hint = nearest(kind, shelf)
        mend = f"Did you mean {hint}?" if hint else f"It knows {', '.join(shelf)}."
        raise UsageError(f"dq export knows no {kind!r}.", mend)
    known = only(load([contract], note))
    wanted = [one for one in known.objects if object in (None, one.name, one.id)]
    if not wanted:
        names = ", ".join(one.name for one in known.objects)
        raise UsageError(f"{contract} has no object {object!r}.", f"It has {names}." if names else "")
    made = _write(shelf[kind], to)(known, wanted)
    says = shelf[kind].says
    if says is not None:
        made = replace(made, lost=(*made.lost, *unsaid(known, wanted, says)))
    text = _headed(shelf[kind], made, known)
    if file is None:
        output.block(text.rstrip("\n"))
    else:
        try:
            create(file, text.encode())
        except FileExistsError as error:
            raise UsageError(f"{file} is there already.", "Name another --output, or remove it.") from error
        output.line(f"Wrote {file}.")
    for one in made.lost:
        output.note(f"{one}.")


def _write(kind: ExportKind, to: str | None) -> Write:
    if to is None:
        return kind.write
    if to in kind.others:
        return kind.others[to]
    if not kind.others:
        raise UsageError(f"{kind.id} has one form only.", "Leave --to out.")
    hint = nearest(to, kind.others)
    mend = f"Did you mean {hint}?" if hint else f"It knows {', '.join(kind.others)}."
    raise UsageError(f"dq export {kind.id} knows no {to!r}.", mend)


def _headed(kind: ExportKind, made: Exported, contract: Contract) -> str:
    """The text below what it was made from, and what it does not say, where the form has comments."""
    if not kind.comment:
        return made.text
    head = [f"Made by 'dq export' from {contract.id} {contract.version}", *made.lost]
    return "".join(f"{kind.comment} {comment(line)}.\n" for line in head) + made.text
