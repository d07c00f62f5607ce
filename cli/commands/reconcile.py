"""dq reconcile"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import typer

from dq.cli import output
from dq.contracts.outcome import UsageError, one_line, pluralize
from dq.dataquality.reconcile.outcome import Decision, Kind
from dq.operations.check import parse_partition
from dq.operations.reconcile import ReconcileOutcome, parse_pairs, reconcile, reconcile_servers

if TYPE_CHECKING:
    from dq.dataquality.reconcile.outcome import Difference, Reconciliation

# Limits of the text output; JSON has everything.
_MAX_PARTITIONS, _MAX_COLUMNS, _MAX_DIFFERENCES, _MAX_VALUES = 20, 20, 8, 4


def command(
    left: str = typer.Argument(..., help="Contract (FILE or FILE#OBJECT) or data (PATH or FORMAT:PATH)."),
    right: str = typer.Argument(None, help="The other side (default: another server of the same contract)."),
    object: str = typer.Option(None, "--object", help="Object of the contracts, if they have several."),
    left_server: str = typer.Option(None, "--left-server", help="Server of the left contract."),
    right_server: str = typer.Option(None, "--right-server", help="Server of the right contract."),
    all_servers: bool = typer.Option(
        False, "--all-servers", help="Compare the contract's first (or --left-server) with all other servers."
    ),
    key: list[str] = typer.Option(
        [], "--key", help="Column that identifies a row; repeatable (default: the contract's primary key)."
    ),
    columns: list[str] = typer.Option([], "--columns", help="Compare only this column; repeatable."),
    ignore: list[str] = typer.Option([], "--ignore", help="Leave out this column; repeatable."),
    rename: list[str] = typer.Option(
        [], "--rename", metavar="LEFT=RIGHT", help="The column's name on the left and on the right."
    ),
    tolerance: list[str] = typer.Option(
        [], "--tolerance", metavar="COLUMN=NUMBER", help="Largest difference at which numbers count as equal."
    ),
    partition: list[str] = typer.Option(
        [], "--partition", help="Only this partition, e.g. day=2026-11-20/region=eu."
    ),
    since: str = typer.Option(
        None, "--since", help="Only partitions from this value of the first partition column on."
    ),
    summary: bool = typer.Option(
        False, "--summary", help="Report only which partitions differ, not which rows; reads less."
    ),
    write: str = typer.Option(
        None, "--write", metavar="DIR", help="Write the rows that differ to this folder as Parquet, masked."
    ),
    unmasked: bool = typer.Option(
        False, "--unmasked", help="Show and write classified and undeclared columns, too."
    ),
    format: output.Format = output.FORMAT,
) -> None:
    """Compare two sides that should agree, row by row.

    The sides are the data of two contracts, two servers of one contract, or two paths. Without a key, whole
    rows are compared, with their number. The cheapest proof comes first: the same files, partitions on one
    side only, one pass over each side that sums hashes, and then only rows of groups whose sums differ.

    NULL equals only NULL, 1 equals 1.00, and texts are equal byte by byte; the types of both sides and how
    they are compared are in the result.

    Exit codes: 0 the sides agree, 1 they differ, 2 invalid options, or Spark or Java is missing, 3 a side
    could not be read.

    Example: dq reconcile orders.odcs.yaml --left-server emr --right-server serverless --key order_id
    """
    options: dict[str, Any] = {
        "object": object,
        "key": key,
        "columns": columns,
        "ignore": ignore,
        "rename": parse_pairs("--rename", rename),
        "tolerance": parse_pairs("--tolerance", tolerance),
        "partitions": [parse_partition(text) for text in partition],
        "since": since,
        "details": not summary,
        "write_to": write,
        "unmasked": unmasked,
    }
    if summary and write is not None:
        raise UsageError("--summary compares no rows to write.", "Remove --summary or --write.")
    if all_servers:
        if right is not None or right_server is not None:
            raise UsageError("--all-servers takes one contract.", "Remove the other side.")
        outcome = reconcile_servers(left, server=left_server, **options)
    else:
        result = reconcile(left, right, left_server=left_server, right_server=right_server, **options)
        outcome = ReconcileOutcome((result,))
    if format is output.Format.JSON:
        output.as_json(outcome.as_list())
    else:
        for result in outcome.results:
            for text in _lines(result):
                output.line(text)
        for text in outcome.errors:
            output.note(text)
    raise typer.Exit(outcome.exit_code)


def _lines(result: Reconciliation) -> Iterator[str]:
    """Yield the text output of a comparison."""
    verdict = "agree" if result.agrees else "differ"
    yield output.styled(f"{result.left} and {result.right} {verdict}.", bold=True)
    decided = [f"{number:,} by {decision}" for decision, number in result.decisions.items() if number]
    if not any(partition.left_rows or partition.right_rows for partition in result.partitions) and not any(
        partition.decision is Decision.SAME_FILES for partition in result.partitions
    ):
        yield "Both sides have no rows."
    elif len(result.partitions) > 1 or any(partition.partition for partition in result.partitions):
        yield f"{pluralize(len(result.partitions), 'partition')}: {', '.join(decided)}."
    else:
        yield f"Decided by {', '.join(partition.decision for partition in result.partitions)}."
    for uncompared in result.uncompared:
        yield f"  column {uncompared.name} {uncompared.reason}"
    if result.agrees:
        return
    if result.is_detailed:
        yield f"Rows: {', '.join(f'{number:,} {kind}' for kind, number in result.counts.items())}."
    differing = [partition for partition in result.partitions if not partition.agrees]
    for partition in differing[:_MAX_PARTITIONS]:
        if partition.partition or partition.reason:
            yield f"  {partition or 'the whole table'}: {_partition(partition)}"
    if len(differing) > _MAX_PARTITIONS:
        yield f"  and {len(differing) - _MAX_PARTITIONS:,} more partitions"
    changed = [column for column in result.columns if column.differing]
    for column in sorted(changed, key=lambda column: -column.differing)[:_MAX_COLUMNS]:
        patterns = ", ".join(f"{rows:,} {pattern}" for pattern, rows in column.patterns.items())
        types = (
            column.left_type
            if column.left_type == column.right_type
            else f"{column.left_type} and {column.right_type}, compared as {column.compared_as}"
        )
        yield (
            f"  {column.name} ({types}) differs in {pluralize(column.differing, 'row')}"
            f"{f': {patterns}' if patterns else ''}"
        )
    if len(changed) > _MAX_COLUMNS:
        yield f"  and {len(changed) - _MAX_COLUMNS:,} more columns"
    for first, second, rows in result.swapped:
        yield f"  {first} and {second} are swapped in {pluralize(rows, 'row')}"
    for difference in result.differences[:_MAX_DIFFERENCES]:
        yield f"  {_difference(difference)}"
    yield from result.notes
    if result.written is not None:
        yield f"The rows that differ are in {result.written}."


def _partition(partition: Any) -> str:
    if partition.reason:
        return str(partition.reason)
    differences = partition.differences
    counts = ", ".join(f"{differences[kind]:,} {kind}" for kind in Kind if differences.get(kind))
    return f"{counts} (rows: {partition.left_rows:,} on the left, {partition.right_rows:,} on the right)"


def _difference(difference: Difference) -> str:
    place = ", ".join(f"{name}={_value(value)}" for name, value in difference.key.items())
    if difference.kind == "changed" and difference.left is not None and difference.right is not None:
        values = ", ".join(
            f"{name} {_value(value)} -> {_value(difference.right.get(name))}"
            for name, value in list(difference.left.items())[:_MAX_VALUES]
        )
        omitted = len(difference.left) - _MAX_VALUES
        return f"changed  {place}: {values}{f' and {omitted} more' if omitted > 0 else ''}"
    if difference.kind == "repeated":
        rows = f"{difference.left_rows:,} on the left, {difference.right_rows:,} on the right"
        return f"repeated  {place}: {rows}"
    where = "missing on the right" if difference.kind == "missing" else "only on the right"
    return f"{where}  {place or _row(difference.left or difference.right or {})}"


def _row(values: Mapping[str, Any]) -> str:
    shown = ", ".join(f"{name}={_value(value)}" for name, value in list(values.items())[:_MAX_VALUES])
    return f"{shown}, …" if len(values) > _MAX_VALUES else shown


def _value(value: Any) -> str:
    return "NULL" if value is None else one_line(repr(value) if isinstance(value, str) else str(value))
