"""dq store"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import typer

from dq.cli import output
from dq.cli.context import at
from dq.operations.store import check_store, export_store, prune_store, upgrade_store

app = typer.Typer(no_args_is_help=True)


@app.callback()
def _group() -> None:
    """Keep the state in order: its schema, its soundness, its size, a copy for others."""


@app.command()
def upgrade(format: output.Format = output.FORMAT) -> None:
    """Bring the schema of the state store to that of this dq, in one transaction.

    Every command does so when it opens the store; this one says what it did.

    Exit codes: 0 it has the schema of this dq, 3 it cannot be used, or is a newer dq's.

    Example: dq store upgrade
    """
    outcome = upgrade_store()
    if format is output.Format.JSON:
        output.as_json(asdict(outcome))
    else:
        was = f"was {outcome.before}" if outcome.before else "was new"
        output.line(f"schema {outcome.after}{'' if outcome.before == outcome.after else f', {was}'}")


@app.command()
def check(format: output.Format = output.FORMAT) -> None:
    """Look whether the stored history of deliveries agrees with itself, and with its database.

    Exit codes: 0 it does, 1 it does not, 3 it cannot be read.

    Example: dq store check
    """
    faults = check_store()
    if format is output.Format.JSON:
        output.as_json({"faults": faults})
    else:
        for fault in faults:
            output.line(f"  {output.mark(False)} {fault}")
        output.line(f"faults: {len(faults)}")
    raise typer.Exit(1 if faults else 0)


@app.command()
def prune(
    keep: str = typer.Option(
        "400d", "--keep", help="How long deliveries and incidents are kept; 400d at least."
    ),
    as_of: str = output.AS_OF,
    format: output.Format = output.FORMAT,
) -> None:
    """Remove deliveries that are older than a time, and keep how many of each month ended how.

    Incidents that ended longer ago go with all that was said of them, and silences that were over by then.
    Deliveries that can still change stay, and so do open incidents and those with a message that waits to be
    sent. What was published goes too; published anew, it would be news. Nothing else removes history.

    Exit codes: 0 done.

    Example: dq store prune --keep 400d
    """
    done = prune_store(keep, now=at(as_of))
    if format is output.Format.JSON:
        output.as_json({**asdict(done), "before": done.before.isoformat()})
    else:
        output.line(
            f"removed from before {done.before:%Y-%m-%d}: {done.cycles} deliveries, "
            f"{done.receipts} receipts, {done.excuses} excuses, {done.incidents} incidents, "
            f"{done.messages} messages, {done.silences} silences, "
            f"{done.publications} publications, {done.notices} notices"
        )


@app.command("export")
def exported(
    folder: Path = typer.Argument(help="The folder for the files; made where there is none."),
    format: output.Format = output.FORMAT,
) -> None:
    """Write the history of deliveries as Parquet, one file for each table, for other tools.

    Exit codes: 0 written, 2 pyarrow is not installed, 3 the folder cannot be written to.

    Example: dq store export history
    """
    rows = export_store(folder)
    if format is output.Format.JSON:
        output.as_json({"folder": str(folder), "rows": rows})
    else:
        for table, number in rows.items():
            output.line(f"  {folder / table}.parquet: {number} rows")
