"""dq tables"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import typer

from dq.cli.context import here
from dq.cli.options import PATHS
from dq.cli.terminal import output
from dq.contracts.shared.install import needing
from dq.contracts.shared.outcome import Finding, Unreadable
from dq.contracts.shared.wording import counted


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
    with needing("Footers are read with pyarrow", "s3"):
        import pyarrow  # noqa: F401  # before any table is looked at
    from dq.operations.tables import looks

    places = paths or [Path()]
    world = here(None, places)
    states: Counter[str] = Counter()
    rows = files = changed = 0
    told = []
    for one in looks(world, world.store(), places, server):
        if isinstance(one, Finding):
            states["refused"] += 1
            output.note(str(one))
            continue
        states[one.state] += 1
        changed += one.changed
        if one.table.facts.rows is not None:
            files += one.table.facts.files
            rows += one.table.facts.rows
        if format is output.Format.JSON:
            told.append(one.as_dict())
            continue
        said = one.table.facts.problem
        for text in (said,) if said else one.table.facts.broken:
            output.line(f"{one.state}: {one.table.contract}/{one.table.object}: {text}")
    if format is output.Format.JSON:
        output.as_json(told)
    else:
        tables = states.total() - states["refused"]
        output.line(
            f"{counted(tables, 'table')}: {states['kept']:,} as promised, {states['broken']:,} broken,"
            f" {states['listed']:,} only listed, {states['unknown']:,} unknown;"
            f" rows by metadata: {rows:,}, in files: {files:,}; looked at anew: {changed:,}."
        )
    unknown = states["unknown"] or states["refused"]
    raise typer.Exit(Unreadable.exit_code if unknown else 1 if states["broken"] else 0)
