"""dq store"""

from __future__ import annotations

from pathlib import Path

import typer

from dq.alerts.incident_store import forget
from dq.cli.terminal import output
from dq.contracts.shared.outcome import UsageError
from dq.contracts.slo import HISTORY_KEPT
from dq.dataquality.delivery import retention
from dq.dataquality.delivery import retention as parquet
from dq.dataquality.delivery import retention as soundness
from dq.operations.runtime.context import elapsed, here
from dq.registry.publish import forget_publications, placed_deliveries
from dq.store import engine
from dq.store.engine import found_version

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
    world = here()
    before = found_version(world.store_url())
    world.store().close()
    after = engine.head()
    if format is output.Format.JSON:
        output.as_json({"before": before, "after": after})
    else:
        was = f"was {before}" if before else "was new"
        output.line(f"schema {after}{'' if before == after else f', {was}'}")


@app.command()
def check(format: output.Format = output.FORMAT) -> None:
    """Look whether the stored history of deliveries agrees with itself, and with its database.

    Exit codes: 0 it does, 1 it does not, 3 it cannot be read.

    Example: dq store check
    """
    with here().store().read() as tx:
        found = list(soundness.integrity_faults(tx))
    if format is output.Format.JSON:
        output.as_json({"faults": found})
    else:
        for one in found:
            output.line(f"  {output.mark(False)} {one}")
        output.line(f"faults: {len(found)}")
    raise typer.Exit(1 if found else 0)


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
    length = elapsed(keep)
    if length < HISTORY_KEPT:
        raise UsageError(
            f"{keep} is less than {HISTORY_KEPT.days} days: budgets and trends are counted from them.",
            f"Write --keep {HISTORY_KEPT.days}d or more.",
        )
    world = here(as_of)
    before = world.now() - length
    store = world.store()
    done, alerts = retention.prune(store, before, placed_deliveries()), forget(store, before)
    published = forget_publications(store, before)
    if format is output.Format.JSON:
        output.as_json(
            {
                "before": before.isoformat(),
                "cycles": done.cycles,
                "receipts": done.receipts,
                "excuses": done.excuses,
                "incidents": alerts.incidents,
                "messages": alerts.messages,
                "silences": alerts.silences,
                "publications": published.publications,
                "notices": published.notices,
            }
        )
    else:
        output.line(
            f"removed from before {before:%Y-%m-%d}: {done.cycles} deliveries, {done.receipts} receipts, "
            f"{done.excuses} excuses, {alerts.incidents} incidents, {alerts.messages} messages, "
            f"{alerts.silences} silences, {published.publications} publications, {published.notices} notices"
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
    with here().store().read() as tx:
        rows = parquet.export(tx, folder)
    if format is output.Format.JSON:
        output.as_json({"folder": str(folder), "rows": rows})
    else:
        for table, number in rows.items():
            output.line(f"  {folder / table}.parquet: {number} rows")
