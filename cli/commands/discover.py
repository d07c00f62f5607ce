"""dq discover"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import typer

from dq.cli import output
from dq.cli.context import ACCOUNT, ROLE
from dq.contracts.outcome import format_bytes, pluralize
from dq.operations.discover import DiscoverOutcome, DiscoverRequest, run
from dq.operations.discover_branches import BranchBy, DraftBranch
from dq.operations.discovered_table import DiscoveredTable
from dq.operations.runtime.context import runtime_context
from dq.registry.table_coverage import Coverage
from dq.validators.git.repository import BranchState

# Differences of a table that text output shows.
_EXAMPLES = 3


def command(
    sources: list[str] = typer.Argument(
        metavar="SOURCE...",
        help="Folders or URIs of lakes, or catalogs: glue://DATABASE, hive://, iceberg://.",
    ),
    registry: Path = typer.Option(Path(), "--registry", help="Folder or file with the contracts."),
    reads: str = typer.Option(
        "", "--reads", help="Parquet or CSV file of reads: table or path, reader and optionally count."
    ),
    limit: int = typer.Option(
        50, "--limit", min=0, help="Tables without a contract to show as text, and to open branches for."
    ),
    open_branches: bool = typer.Option(
        False, "--open", help="Commit contracts in draft on branches of the registry, and push them."
    ),
    by: BranchBy = typer.Option(
        BranchBy.TABLE, "--by", help="One branch for each table, or for each domain."
    ),
    role_arn: str = ROLE,
    catalog_id: str = ACCOUNT,
    format: output.Format = output.FORMAT,
) -> None:
    """List every table of lakes and catalogs: size, newest write, contract or none, drift, likely copies.

    A folder is a table if it has the log of Delta, Iceberg or Hudi, folders of partitions (column=value or
    dates), or data files. Needs no Spark, except for hive://. What was read of a folder is cached in the
    store, so that unchanged files are not opened again. Without --open, nothing is written to the registry.

    Tables without a contract come first: the most read, then the largest. One that cannot be read is listed
    with the reason.

    With --open, the first tables without a contract get one in draft: imported, with the rules of dq propose,
    on a branch discover/NAME, which is pushed if there is a remote. Likely copies are left out. A later run
    updates branches that only dq has changed. Needs Spark.

    The counts are stored for dq portal and dq metrics. Domains with less coverage than dq-policy.yaml
    requires are listed.

    Exit codes: 0 all tables match their contracts, 1 some differ or a domain has less coverage than required,
    3 something cannot be read.

    Example: dq discover s3://lake glue://sales --registry registry --reads reads.parquet
    """
    context = runtime_context(None, [registry])
    outcome = run(
        context,
        DiscoverRequest(tuple(sources), registry, reads, role_arn, catalog_id, open_branches, by, limit),
    )
    if format is output.Format.JSON:
        output.as_json(outcome.as_dict())
    else:
        _show(outcome, limit, with_reads=bool(reads))
    raise typer.Exit(outcome.exit_code)


def _show(outcome: DiscoverOutcome, limit: int, *, with_reads: bool) -> None:
    open_tables = [table for table in outcome.tables if table.contracted is None]
    if open_tables and limit:
        _heading(f"Without a contract ({len(open_tables):,})")
        output.table(_header(with_reads), [_row(table, with_reads) for table in open_tables[:limit]])
        if len(open_tables) > limit:
            output.line(f"  … and {len(open_tables) - limit:,} more; --limit or --format json shows them.")
    _details("Drift", [(table.title, table.drift) for table in outcome.tables if table.drift])
    _details(
        "Likely copies",
        [
            (table.title, (f"of {table.copy.of}: {table.copy.evidence}",))
            for table in outcome.tables
            if table.copy
        ],
    )
    problems = [(table.title, (table.problem,)) for table in outcome.tables if table.problem]
    _details("Cannot be read", problems)
    _coverage("domain", outcome.domains)
    _coverage("owner", outcome.owners)
    _details(
        "Below the policy's coverage",
        [
            (
                shortfall.coverage.name or "(unknown)",
                (
                    f"{shortfall.coverage.covered:,} of {pluralize(shortfall.coverage.tables, 'table')} with"
                    f" a contract in force, {float(100 * shortfall.minimum):g}% required:"
                    f" {shortfall.missing:,} missing",
                ),
            )
            for shortfall in outcome.shortfalls
        ],
    )
    _branches(outcome.branches)
    for error in outcome.errors:
        output.note(f"dq: {error}")
    output.notes(outcome.findings)
    total = outcome.total
    share = f" ({total.covered / total.tables:.0%})" if total.tables else ""
    output.line(
        f"{pluralize(total.tables, 'table')}, {format_bytes(total.bytes)}: {total.covered:,} with a contract"
        f" in force{share}, {total.drafts:,} with a draft, {len(open_tables):,} without;"
        f" {sum(bool(table.drift) for table in outcome.tables):,} with drift,"
        f" {sum(table.copy is not None for table in outcome.tables):,} likely copies,"
        f" {len(problems):,} that cannot be read."
    )


def _heading(text: str) -> None:
    output.line(output.styled(text, bold=True))


def _header(with_reads: bool) -> list[str]:
    return [
        *(["reads", "readers"] if with_reads else []),
        "size",
        "files",
        "newest",
        "format",
        "layout",
        "table",
    ]


def _row(table: DiscoveredTable, with_reads: bool) -> list[str]:
    reads = table.reads
    counts = [f"{reads.count:,}", f"{len(reads.readers):,}"] if reads else ["", ""]
    return [
        *(counts if with_reads else []),
        format_bytes(table.bytes),
        f"{table.files:,}",
        f"{table.newest:%Y-%m-%d %H:%M}Z" if table.newest else "",
        table.format,
        table.layout,
        table.title,
    ]


def _details(title: str, entries: Sequence[tuple[str, Sequence[str]]]) -> None:
    if not entries:
        return
    _heading(f"{title} ({len(entries):,})")
    for name, lines in entries:
        remaining = f" and {len(lines) - _EXAMPLES} more" if len(lines) > _EXAMPLES else ""
        output.line(f"  {name}: {'; '.join(lines[:_EXAMPLES])}{remaining}")


def _branches(branches: Sequence[DraftBranch]) -> None:
    if not branches:
        return
    _heading(f"Branches ({len(branches):,})")
    for draft in branches:
        branch = draft.branch
        reason = f": {branch.reason}" if branch.state is BranchState.SKIPPED else ""
        reason = reason or (f", not pushed: {branch.reason}" if branch.reason else "")
        output.line(f"  {branch.state} {branch.name} ({', '.join(draft.files)}){reason}")


def _coverage(word: str, rows: Sequence[Coverage]) -> None:
    if not rows:
        return
    output.table(
        [word, "tables", "contract", "draft", "share", "size"],
        [
            [
                row.name or "(unknown)",
                f"{row.tables:,}",
                f"{row.covered:,}",
                f"{row.drafts:,}",
                f"{row.covered / row.tables:.0%}",
                format_bytes(row.bytes),
            ]
            for row in rows
        ],
    )
