"""dq tables"""

from __future__ import annotations

from pathlib import Path

import typer

from dq.cli import output
from dq.cli.context import PATHS
from dq.contracts.outcome import Finding, pluralize
from dq.operations.runtime.context import runtime_context

# Names of files outside of a layout in a line.
_EXAMPLES = 3


def command(
    paths: list[Path] = PATHS,
    server: str = typer.Option(None, "--server", help="Server to use if the contract has more than one."),
    format: output.Format = output.FORMAT,
) -> None:
    """Inspect table metadata: files, rows, NULLs, newest file, columns and types.

    Reads no rows and needs no Spark: rows, NULLs and columns come from Parquet footers and from Delta and
    Iceberg logs. For other formats, files are listed: their number and the newest write. Results are
    cached in the store, so that an unchanged table costs one listing. What is uncertain is reported as
    unknown.

    Exit codes: 0 all known columns and types match the contracts, 1 some differ, 3 something is unknown.

    Example: dq tables registry --format json
    """
    from dq.operations.tables import TableCounts, inspect_tables, require_pyarrow

    require_pyarrow()
    places = paths or [Path()]
    context = runtime_context(None, places)
    counts, rows = TableCounts(), []
    for look in inspect_tables(context, context.store(), places, server):
        counts.add(look)
        if isinstance(look, Finding):
            output.note(str(look))
        elif format is output.Format.JSON:
            rows.append(look.as_dict())
        else:
            facts = look.table.facts
            for text in (facts.problem,) if facts.problem else facts.broken:
                output.line(f"{look.state}: {look.table.contract}/{look.table.object}: {text}")
            if facts.outside:
                output.line(
                    f"left out: {look.table.contract}/{look.table.object}: not in the layout"
                    f" {look.table.place.layout}: {', '.join(facts.outside[:_EXAMPLES])}"
                    f"{' and more' if len(facts.outside) > _EXAMPLES else ''}"
                )
    if format is output.Format.JSON:
        output.as_json(rows)
    else:
        states = counts.states
        output.line(
            f"{pluralize(states.total() - states['refused'], 'table')}: {states['matching']:,} matching,"
            f" {states['mismatching']:,} mismatching, {states['listed']:,} only listed,"
            f" {states['unknown']:,} unknown;"
            f" rows by metadata: {counts.rows:,}, in files: {counts.files:,};"
            f" read again: {counts.changed:,}."
        )
    raise typer.Exit(counts.exit_code)
