"""dq erasure"""

from __future__ import annotations

from pathlib import Path

import typer

from dq.cli import output
from dq.cli.context import PATHS
from dq.contracts.outcome import pluralize
from dq.operations.erasure import (
    FindErasureOutcome,
    PlannedColumn,
    bytes_by_means,
    find_erasure,
    plan_erasure,
)

app = typer.Typer(no_args_is_help=True)
_MOST_GAPS = 20
KEYS = typer.Option(
    ..., "--keys", help="File of keys: one a line, or a CSV file with a column named like the identity."
)
IDENTITY = typer.Option(..., "--identity", help="Identity that the keys are, e.g. customer.email.")
ALSO = typer.Option(None, "--also", help="Another folder to search, e.g. of quarantined rows. Repeatable.")


@app.callback()
def _group() -> None:
    """Find the rows of people in every physical file of a registry's tables."""


@app.command()
def find(
    paths: list[Path] = PATHS,
    keys: Path = KEYS,
    identity: str = IDENTITY,
    out: Path = typer.Option(..., "--out", help="New folder for the rows; only this user can read it."),
    also: list[str] = ALSO,
    format: output.Format = output.FORMAT,
) -> None:
    """Find the rows of people, for requests to access or erase their data.

    Searches every file below the folders of the tables that have the identity: current files, old snapshots,
    orphans, staged and hidden files, and logs. Parquet is skipped where bounds, dictionaries or Bloom filters
    prove that a key is not there. Keys are not printed; results name them by their position, from 0.

    Exit codes: 0 everything was searched, 2 unusable keys or identity, 3 something could not be searched.

    Example: dq erasure find registry --keys keys.csv --identity customer.email --out hits
    """
    outcome = find_erasure(paths or ["."], keys=keys, identity=identity, out=out, also=also or ())
    if format is output.Format.JSON:
        output.as_json(outcome.as_dict())
    else:
        _describe(outcome)
    raise typer.Exit(outcome.exit_code)


def _describe(outcome: FindErasureOutcome) -> None:
    by_role: dict[tuple[str, str], tuple[int, int]] = {}
    for result in outcome.search.files:
        if result.hits:
            files, rows = by_role.get((result.file.table, result.file.role), (0, 0))
            count = sum(hit.rows for hit in result.hits)
            by_role[result.file.table, result.file.role] = files + 1, rows + count
    for (table, role), (files, rows) in sorted(by_role.items()):
        output.line(f"{table}  {role}: {pluralize(rows, 'row')} in {pluralize(files, 'file')}")
    for table, path in sorted(outcome.written.items()):
        output.line(f"{table}  rows written to {path}")
    for means, total in bytes_by_means(outcome.search).items():
        output.line(f"  {means}: {pluralize(total['files'], 'file')}, {total['bytes_read']:,} bytes read")
    for gap in outcome.search.gaps[:_MOST_GAPS]:
        output.line(f"  {output.mark(False)} not searched: {gap.table}: {gap.what}: {gap.why}")
    if len(outcome.search.gaps) > _MOST_GAPS:
        output.line(f"  and {len(outcome.search.gaps) - _MOST_GAPS} others, see summary.json")
    output.notes(outcome.findings)
    output.line(
        f"keys: {outcome.search.keys}, rows: {outcome.rows}, not searched: {len(outcome.search.gaps)}"
    )


@app.command()
def plan(
    paths: list[Path] = PATHS,
    identity: str = IDENTITY,
    format: output.Format = output.FORMAT,
) -> None:
    """Show which columns would profit from Bloom filters, with the settings of their writers.

    Reads the footers of Parquet files, and no rows.

    Exit codes: 0 done, 2 unknown identity, 3 something could not be read.

    Example: dq erasure plan registry --identity customer.email
    """
    outcome = plan_erasure(paths or ["."], identity=identity)
    if format is output.Format.JSON:
        output.as_json(outcome.as_dict())
    else:
        for column in outcome.columns:
            _describe_column(column)
        for gap in outcome.gaps[:_MOST_GAPS]:
            output.line(f"  {output.mark(False)} not read: {gap.table}: {gap.what}: {gap.why}")
        output.notes(outcome.findings)
    raise typer.Exit(outcome.exit_code)


def _describe_column(column: PlannedColumn) -> None:
    output.line(output.styled(f"{column.table} {column.column}", bold=True))
    output.line(
        f"  {pluralize(column.files, 'Parquet file')}, {column.bytes:,} bytes: {column.with_bloom:,} with a "
        f"Bloom filter, {column.with_dictionary:,} with a dictionary of all values"
    )
    for setting in column.settings:
        output.line(f"  set {setting}")
    if column.reason:
        output.line(f"  no filter needed or possible: {column.reason}")
