"""dq repair"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import typer

from dq.cli.context import here
from dq.cli.options import ACCOUNT, CATALOG, PATHS, ROLE
from dq.cli.terminal import output
from dq.contracts.access.data_location import other_servers, resolve
from dq.contracts.access.data_location import server_of as chosen_server
from dq.contracts.model import Contract, SchemaObject
from dq.contracts.shared.outcome import DqError, UsageError
from dq.contracts.slo import NOT_IN_FORCE
from dq.lake.paths import PlacedPartition, partition_folder
from dq.lake.storage import Storages, files_for
from dq.operations.catalog_tables import ServerOf, server_choice
from dq.operations.data_places import placements
from dq.operations.key_ownership import settled
from dq.operations.registry_files import each, load
from dq.operations.runtime.context import World, located, registry_root
from dq.operations.runtime.spark import opened
from dq.registry.catalog import Catalog, Partition, no_table
from dq.registry.publishing import publish
from dq.registry.publishing.publication import partition_values, publication
from dq.registry.publishing.repair import RepairPlan, repair_plan, with_published
from dq.registry.table import OPEN_FORMATS, TableSpec, fold_location
from dq.registry.table_specs import specs
from dq.store.engine import Store

_AT_A_TIME = 32

Repaired = tuple[TableSpec, RepairPlan, list[str]]


def command(
    paths: list[Path] = PATHS,
    apply_it: bool = typer.Option(False, "--apply", help="Add the missing partitions to the catalog."),
    check: bool = typer.Option(False, "--check", help="Exit with 1 when a partition is missing or gone."),
    catalog: str = CATALOG,
    role_arn: str = ROLE,
    catalog_id: str = ACCOUNT,
    server: str = typer.Option(None, "--server", help="The server, where a contract has several."),
    environment: str = typer.Option(
        None, "--env", help="The server of this environment, such as prod, of each contract."
    ),
    format: output.Format = output.FORMAT,
) -> None:
    """Compare the partitions of the lake with those of the catalog; with --apply, add what is missing.

    A partition is a folder such as flight_date=2026-11-20 that holds files and fits the contract's keys.
    One that 'dq publish --audit' left where it was staged is compared with that folder. One of the catalog
    whose folder is gone is only told, and so is one that the catalog has elsewhere.
    Tables of Iceberg, Delta and Hudi keep their partitions themselves, and are left out.

    Exit codes: 0 done or nothing to do, 1 something is missing or gone (--check), 3 a contract, the catalog
    or the lake could not be read, or a partition could not be added.

    Example: dq repair registry --apply
    """
    world = here(paths=paths or [Path()])
    store = world.store()
    loaded = settled(world, store, load(paths or [Path()], world.note))
    target = opened(world, store, catalog, role_arn, catalog_id)
    in_force = [one for one in loaded.contracts if one.status not in NOT_IN_FORCE]
    server_of = server_choice(registry_root((paths or [Path()])[0]), server, environment)
    repairs = _Repairs(world, store, target, catalog, server_of, apply_it)
    found, refused = each(in_force, lambda one: one, repairs.of)
    findings = [*loaded.findings, *refused]
    output.notes(findings)
    tables = [one for several in found for one in several]
    if format is output.Format.JSON:
        output.as_json([_as_dict(*one) for one in tables])
    else:
        for one in tables:
            _print(*one, applied=apply_it)
    if findings or any(errors for _, _, errors in tables):
        raise typer.Exit(3)
    pending = any(plan.gone or plan.moved or (plan.missing and not apply_it) for _, plan, _ in tables)
    raise typer.Exit(1 if check and pending else 0)


@dataclass(frozen=True, slots=True)
class _Repairs:
    world: World
    store: Store
    target: Catalog
    catalog: str
    server_of: ServerOf
    apply_it: bool

    def of(self, contract: Contract) -> list[Repaired]:
        """The partitions of each table of a contract that its own writer does not keep."""
        server, reach = chosen_server(contract, self.server_of(contract)).server, self.world.reach
        made = specs(
            contract, lambda one: located(self.world, resolve(contract, one, server, reach), self.catalog)
        )
        with self.store.read() as tx:
            placed = placements(tx, {contract.key: other_servers(contract, server)})
        return [
            self._table(
                spec,
                _partitions(spec, placed.get((contract.key, one.name), ())),
                partial(self._as_published, contract, one, spec, server),
            )
            for spec, one in zip(made, contract.objects, strict=True)
            if spec.partitions and spec.location and spec.format not in OPEN_FORMATS
        ]

    def _as_published(
        self, contract: Contract, one: SchemaObject, spec: TableSpec, server: str, missing: Partition
    ) -> Partition:
        """Where it was published last: what was audited beside the table has older files in it."""
        partition = dict(missing.values)
        made = publication(contract, one, spec, server=server, catalog=self.target.id, partition=partition)
        with self.store.read() as tx:
            newest = publish.newest_revision(tx, made.delivery)
        return replace(missing, location=newest.folder) if newest and newest.folder else missing

    def _table(
        self, spec: TableSpec, placed: Sequence[Partition], as_published: Callable[[Partition], Partition]
    ) -> Repaired:
        if self.target.read(*spec.key) is None:
            raise no_table(*spec.key)
        files, known = files_for(spec.location, self.world.reach), self.target.partitions(*spec.key)
        plan = repair_plan(spec, known, files.folders, lambda folder: bool(files.inside(folder)))
        plan = replace(plan, missing=tuple(map(as_published, plan.missing)))
        plan = with_published(plan, known, placed, self._with_files(placed).__contains__)
        errors = []
        for one in plan.missing if self.apply_it else ():
            try:
                self.target.add_partition(*spec.key, one.values, one.location)
            except DqError as error:
                errors.append(str(error))
        return spec, plan, errors

    def _with_files(self, placed: Sequence[Partition]) -> set[str]:
        """Those of the folders that hold a file; each is a question to its storage."""
        storages, folders = Storages(self.world.reach), [one.location for one in placed]
        with ThreadPoolExecutor(_AT_A_TIME) as pool:
            found = pool.map(lambda folder: bool(storages.of(folder).inside(folder)), folders)
            return {folder for folder, held in zip(folders, found, strict=True) if held}


def _partitions(spec: TableSpec, placed: Sequence[PlacedPartition]) -> list[Partition]:
    """The placed partitions that fit the table's keys; those of before are of other keys."""
    found = []
    for one in placed:
        with suppress(UsageError):
            found.append(Partition(partition_values(spec, dict(one.values)), one.folder))
    return found


def _print(spec: TableSpec, plan: RepairPlan, errors: list[str], *, applied: bool) -> None:
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


def _as_dict(spec: TableSpec, plan: RepairPlan, errors: list[str]) -> dict[str, object]:
    return {
        "table": ".".join(spec.key),
        "missing": [one.location for one in plan.missing],
        "gone": [one.location for one in plan.gone],
        "moved": [{"folder": one.location, "catalog": place} for one, place in plan.moved],
        "strange": [{"folder": one.folder, "reason": one.reason} for one in plan.strange],
        "errors": errors,
    }
