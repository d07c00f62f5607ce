"""dq store"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import typer

from dq.cli import output
from dq.cli.context import instant_or_none
from dq.contracts.outcome import pluralize
from dq.operations.store import check_store, copy_store, export_store, prune_store, upgrade_store

app = typer.Typer(no_args_is_help=True)


@app.callback()
def _group() -> None:
    """Maintain the state store: schema, integrity, retention, export, copy."""


@app.command()
def upgrade(format: output.Format = output.FORMAT) -> None:
    """Upgrade the schema of the state store to this version of dq, in one transaction.

    Every command does this when it opens the store; this command reports it.

    Exit codes: 0 up to date, 3 the store cannot be used, or belongs to a newer dq.

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
    """Verify the integrity of the stored delivery history.

    Exit codes: 0 consistent, 1 inconsistent, 3 the store could not be read.

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
        "400d", "--keep", help="Age from which deliveries and incidents are deleted; at least 400d."
    ),
    as_of: str = output.AS_OF,
    format: output.Format = output.FORMAT,
) -> None:
    """Delete deliveries older than a given age, keeping monthly counts by outcome.

    Also deletes incidents resolved before that time with their notifications, expired silences, and
    publications; a partition published again after that counts as new. Keeps deliveries that can still
    change, open incidents, and incidents with undelivered alerts. Nothing else deletes history.

    Exit codes: 0 done.

    Example: dq store prune --keep 400d
    """
    done = prune_store(keep, now=instant_or_none(as_of))
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
    folder: Path = typer.Argument(help="Output folder; created if missing."),
    format: output.Format = output.FORMAT,
) -> None:
    """Export the delivery history as Parquet, one file per table.

    Exit codes: 0 written, 2 pyarrow is not installed, 3 the folder is not writable.

    Example: dq store export history
    """
    rows = export_store(folder)
    if format is output.Format.JSON:
        output.as_json({"folder": str(folder), "rows": rows})
    else:
        for table, number in rows.items():
            output.line(f"  {folder / table}.parquet: {number} rows")


@app.command("copy")
def copied(
    from_url: str = typer.Argument(metavar="FROM_URL", help="URL of the existing store."),
    to_url: str = typer.Argument(metavar="TO_URL", help="URL of the new store, which must be empty."),
    format: output.Format = output.FORMAT,
) -> None:
    """Copy the state store to another database, e.g. from SQLite to PostgreSQL.

    Copies all rows in one transaction and does not change the old store. Stop the watchers first: what they
    write during the copy is only in the old store. URLs are those of DQ_STORE_URL; leave passwords out of
    them, e.g. with PGPASSWORD, since other users can read the command line.

    Exit codes: 0 copied, 2 invalid URL or psycopg is not installed, 3 a store cannot be used, the target is
    not empty, or a schema version is not this dq's.

    Example: dq store copy sqlite:///.dq/store.db postgresql://dq@db.example.com/dq
    """
    rows = copy_store(from_url, to_url)
    if format is output.Format.JSON:
        output.as_json({"rows": rows})
        return
    for table, number in rows.items():
        if number:
            output.line(f"  {table}: {pluralize(number, 'row')}")
    output.line(f"copied: {pluralize(sum(rows.values()), 'row')}")
