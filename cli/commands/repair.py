"""dq repair"""

from __future__ import annotations

from pathlib import Path

import typer

from dq.cli import output
from dq.cli.context import ACCOUNT, CATALOG, PATHS, ROLE
from dq.contracts.layout import partition_folder
from dq.operations.register import server_choice
from dq.operations.repair import RepairContext, RepairedTable, run
from dq.operations.runtime.context import registry_root, runtime_context
from dq.operations.runtime.spark import open_named_catalog
from dq.registry.table import fold_location


def command(
    paths: list[Path] = PATHS,
    apply_it: bool = typer.Option(False, "--apply", help="Add the missing partitions to the catalog."),
    check: bool = typer.Option(
        False, "--check", help="Exit with 1 if a partition is missing on either side."
    ),
    catalog: str = CATALOG,
    role_arn: str = ROLE,
    catalog_id: str = ACCOUNT,
    server: str = typer.Option(None, "--server", help="Server to use if the contract has more than one."),
    environment: str = typer.Option(
        None, "--env", help="Use each contract's server of this environment, e.g. prod."
    ),
    format: output.Format = output.FORMAT,
) -> None:
    """Find lake partitions missing from the catalog; --apply to add them.

    A partition is a folder, e.g. flight_date=2026-11-20, that contains files and matches the contract's
    partition keys. A partition staged by 'dq publish --audit' is compared with its staging folder.
    Catalog partitions whose folder is missing or elsewhere are only reported. Iceberg, Delta and Hudi
    tables track their own partitions and are skipped.

    Exit codes: 0 done or nothing to do, 1 partitions are missing (--check), 3 a contract, the catalog or
    the lake could not be read, or a partition could not be added.

    Example: dq repair registry --apply
    """
    places = paths or [Path()]
    context = runtime_context(paths=places)
    store = context.store()
    target = open_named_catalog(context, store, catalog, role_arn, catalog_id)
    server_of = server_choice(registry_root(places[0]), server, environment)
    outcome = run(RepairContext(context, store, target, catalog, server_of, apply_it), places)
    output.notes(outcome.findings)
    if format is output.Format.JSON:
        output.as_json(outcome.as_dict())
    else:
        for table in outcome.tables:
            _print(table)
    raise typer.Exit(outcome.exit_code or int(check and outcome.pending))


def _print(table: RepairedTable) -> None:
    spec, plan, errors, added = table.spec, table.plan, table.errors, table.added
    missing = f"{len(plan.missing)} missing"
    if added is not None:
        missing = f"{added} of {len(plan.missing)} added" if errors else f"{added} added"
    output.line(f"{'.'.join(spec.key)}: {missing}, {len(plan.dangling)} gone, {len(plan.moved)} elsewhere")
    below = f"{fold_location(spec.location)}/"
    for partition in plan.missing:
        elsewhere = not fold_location(partition.location).startswith(below)
        note = f", published at {partition.location}" if elsewhere else ""
        output.line(f"  + {partition_folder(partition.values)}{note}")
    for partition in plan.dangling:
        output.line(f"  - {partition_folder(partition.values)}: {partition.location} does not exist")
    for partition, place in plan.moved:
        output.line(
            f"  ! {partition_folder(partition.values)}: {partition.location}, but the catalog has {place}"
        )
    for unrecognized in plan.unrecognized:
        output.line(f"    {unrecognized.folder} is not a partition: {unrecognized.reason}")
    for error in errors:
        output.line(f"  {output.mark(False)} {error}")
