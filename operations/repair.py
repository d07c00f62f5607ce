"""`dq.repair`: the partitions of the lake compared with those of a catalog, and the missing ones added."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from dq.contracts.access.data_location import other_servers, resolve
from dq.contracts.access.data_location import server_of as chosen_server
from dq.contracts.model import Contract, SchemaObject
from dq.contracts.outcome import DqError, Finding, UsageError
from dq.contracts.slo import NOT_IN_FORCE
from dq.lake.storage import PlacedPartition, Storages, files_for
from dq.operations.data_places import placements
from dq.operations.key_ownership import settled
from dq.operations.register import ServerOf, server_choice
from dq.operations.registry_files import each, load
from dq.operations.runtime.context import World, called, located, registry_root
from dq.operations.runtime.spark import opened
from dq.registry import publish
from dq.registry.catalog import Catalog, Partition, no_table
from dq.registry.publications import partition_values, publication
from dq.registry.publish_audit import RepairPlan, repair_plan, with_published
from dq.registry.table import OPEN_FORMATS, TableSpec, specs
from dq.store.engine import Store

_AT_A_TIME = 32


@dataclass(frozen=True, slots=True)
class RepairedTable:
    """What differs between a table's folders and the catalog's partitions, and what could not be added."""

    spec: TableSpec
    plan: RepairPlan
    errors: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, object]:
        """As JSON values."""
        plan = self.plan
        return {
            "table": ".".join(self.spec.key),
            "missing": [partition.location for partition in plan.missing],
            "gone": [partition.location for partition in plan.gone],
            "moved": [{"folder": partition.location, "catalog": place} for partition, place in plan.moved],
            "strange": [{"folder": strange.folder, "reason": strange.reason} for strange in plan.strange],
            "errors": list(self.errors),
        }


@dataclass(frozen=True, slots=True)
class RepairOutcome:
    """The tables of a registry whose partitions their own writers do not keep, and what was left out."""

    tables: tuple[RepairedTable, ...]
    findings: tuple[Finding, ...] = ()
    applied: bool = False
    notes: tuple[str, ...] = ()

    @property
    def pending(self) -> bool:
        """Whether something is missing that was not added, gone, or elsewhere."""
        return any(
            table.plan.gone or table.plan.moved or (table.plan.missing and not self.applied)
            for table in self.tables
        )

    @property
    def exit_code(self) -> int:
        """0, or 3 where something could not be read or a partition could not be added."""
        return 3 if self.findings or any(table.errors for table in self.tables) else 0

    def as_dict(self) -> list[dict[str, object]]:
        """What `dq repair --format json` prints."""
        return [table.as_dict() for table in self.tables]


def repair(
    paths: Path | str | Sequence[Path | str] = ".",
    *,
    apply: bool = False,
    catalog: str = "local",
    role_arn: str = "",
    catalog_id: str = "",
    server: str | None = None,
    environment: str | None = None,
    folder: Path | str | None = None,
) -> RepairOutcome:
    """Compare the partitions of the lake with those of the catalog; with `apply`, add what is missing.

    As `dq repair` does. `catalog` is `local`, `hive`, `glue` or `iceberg`; `role_arn` and `catalog_id` name
    another account's in AWS. `server` or `environment` choose among the servers of a contract. `folder`
    stands for the working folder, where settings and store are, and from which relative paths lead.

    Raises UsageError for what does not fit, MissingTool where the catalog's packages are not installed, and
    Unreadable for a path without contracts. What could not be read of a table is a finding.
    """
    world, places = called(paths, folder)
    with closing(world.store()) as store:
        target = opened(world, store, catalog, role_arn, catalog_id)
        server_of = server_choice(registry_root(places[0]), server, environment)
        outcome = run(Repairs(world, store, target, catalog, server_of, apply), places)
    return replace(outcome, notes=tuple(world.messages.notes))


def run(repairs: Repairs, paths: Sequence[Path]) -> RepairOutcome:
    """The operation itself. Raises as `repair`."""
    world = repairs.world
    loaded = settled(world, repairs.store, load(paths, world.note))
    in_force = [contract for contract in loaded.contracts if contract.status not in NOT_IN_FORCE]
    found, refused = each(in_force, lambda contract: contract, repairs.of)
    tables = tuple(table for several in found for table in several)
    return RepairOutcome(tables, (*loaded.findings, *refused), repairs.apply_it)


@dataclass(frozen=True, slots=True)
class Repairs:
    """Where partitions are compared, and whether missing ones are added."""

    world: World
    store: Store
    target: Catalog
    catalog: str
    server_of: ServerOf
    apply_it: bool

    def of(self, contract: Contract) -> list[RepairedTable]:
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
    ) -> RepairedTable:
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
        return RepairedTable(spec, plan, tuple(errors))

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
