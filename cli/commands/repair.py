"""dq repair"""

from __future__ import annotations

from pathlib import Path

import typer

from dq.cli import output
from dq.cli.context import ACCOUNT, CATALOG, PATHS, ROLE
from dq.lake.storage import partition_folder
from dq.operations.register import server_choice
from dq.operations.repair import RepairedTable, Repairs, run
from dq.operations.runtime.context import here, registry_root
from dq.operations.runtime.spark import opened
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
    world = here(paths=places)
    store = world.store()
    target = opened(world, store, catalog, role_arn, catalog_id)
    server_of = server_choice(registry_root(places[0]), server, environment)
    outcome = run(Repairs(world, store, target, catalog, server_of, apply_it), places)
    output.notes(outcome.findings)
    if format is output.Format.JSON:
        output.as_json(outcome.as_dict())
    else:
        for table in outcome.tables:
            _print(table, applied=apply_it)
    raise typer.Exit(outcome.exit_code or int(check and outcome.pending))


def _print(table: RepairedTable, *, applied: bool) -> None:
    spec, plan, errors = table.spec, table.plan, table.errors
    did = "added" if applied and not errors else "missing"
    output.line(
        f"{'.'.join(spec.key)}: {len(plan.missing)} {did}, {len(plan.gone)} gone, {len(plan.moved)} elsewhere"
    )
    below = f"{fold_location(spec.location)}/"
    for one in plan.missing:
        elsewhere = not fold_location(one.location).startswith(below)
        where = f", at {one.location}, where it was published" if elsewhere else ""
        output.line(f"  + {partition_folder(one.values)}{where}")
    for one in plan.gone:
        output.line(f"  - {partition_folder(one.values)}: {one.location} is not there")
    for one, place in plan.moved:
        output.line(f"  ! {partition_folder(one.values)}: {one.location}, and the catalog says {place}")
    for strange in plan.strange:
        output.line(f"    {strange.folder} is no partition: {strange.reason}")
    for error in errors:
        output.line(f"  {output.mark(False)} {error}")
