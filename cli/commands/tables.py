"""dq tables"""

from __future__ import annotations

from pathlib import Path

import typer

from dq.cli import output
from dq.cli.context import PATHS
from dq.contracts.outcome import Finding, counted
from dq.operations.runtime.context import here


def command(
    paths: list[Path] = PATHS,
    server: str = typer.Option(None, "--server", help="The server, where a contract has several."),
    format: output.Format = output.FORMAT,
) -> None:
    """Look at the metadata of every table: files, rows, NULLs, newest file, columns and types.

    Without Spark, and without a read of any row: rows, NULLs and columns come from the footers of Parquet
    files, and from the logs of Delta and Iceberg. Of other formats, and where no file is, the files are only
    listed: how many they are and when the newest was written. What was seen is kept in the store, so that a
    table whose files and contract are the same costs a listing. What is not certain is unknown, and never
    fine.

    Exit codes: 0 no column or type that was seen is other than promised, 1 some are, 3 something is unknown.

    Example: dq tables registry --format json
    """
    from dq.operations.tables import TableCounts, looks, require_pyarrow

    require_pyarrow()
    places = paths or [Path()]
    world = here(None, places)
    counts, told = TableCounts(), []
    for look in looks(world, world.store(), places, server):
        counts.add(look)
        if isinstance(look, Finding):
            output.note(str(look))
        elif format is output.Format.JSON:
            told.append(look.as_dict())
        else:
            facts = look.table.facts
            for text in (facts.problem,) if facts.problem else facts.broken:
                output.line(f"{look.state}: {look.table.contract}/{look.table.object}: {text}")
    if format is output.Format.JSON:
        output.as_json(told)
    else:
        states = counts.states
        output.line(
            f"{counted(states.total() - states['refused'], 'table')}: {states['kept']:,} as promised,"
            f" {states['broken']:,} broken, {states['listed']:,} only listed,"
            f" {states['unknown']:,} unknown;"
            f" rows by metadata: {counts.rows:,}, in files: {counts.files:,};"
            f" looked at anew: {counts.changed:,}."
        )
    raise typer.Exit(counts.exit_code)
