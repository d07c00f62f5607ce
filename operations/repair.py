"""`dq.repair`: compare the partitions of the lake with those of a catalog, and add missing ones."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from dq.contracts.access.data_location import other_servers, resolve
from dq.contracts.access.data_location import select_server as chosen_server
from dq.contracts.layout import PlacedPartition, partition_folder
from dq.contracts.model import Contract, SchemaObject
from dq.contracts.outcome import DqError, Finding, UsageError
from dq.contracts.slo import NOT_IN_FORCE
from dq.lake.storage import Files, Storages, files_for
from dq.operations.data_places import placements
from dq.operations.key_ownership import resolve_key_owners
from dq.operations.register import ServerOf, server_choice
from dq.operations.registry_files import load, run_per_contract
from dq.operations.runtime.context import RuntimeContext, call_context, catalog_location, registry_root
from dq.operations.runtime.spark import open_named_catalog
from dq.registry import publish
from dq.registry.catalog import Catalog, Partition, no_table
from dq.registry.publications import build_publication, partition_values
from dq.registry.publish_audit import RepairPlan, repair_plan, with_published
from dq.registry.table import OPEN_FORMATS, TableSpec, specs
from dq.store.engine import Store

_CONCURRENCY = 32


@dataclass(frozen=True, slots=True)
class RepairedTable:
    """Differences between a table's folders and the catalog's partitions, and errors of adding.

    `added` counts the missing partitions that the catalog has now. None if none were to be added, or if the
    catalog failed on the way.
    """

    spec: TableSpec
    plan: RepairPlan
    errors: tuple[str, ...] = ()
    added: int | None = None

    def as_dict(self) -> dict[str, object]:
        """As JSON values."""
        plan = self.plan
        return {
            "table": ".".join(self.spec.key),
            "missing": [partition.location for partition in plan.missing],
            "dangling": [partition.location for partition in plan.dangling],
            "moved": [{"folder": partition.location, "catalog": place} for partition, place in plan.moved],
            "unrecognized": [
                {"folder": folder.folder, "reason": folder.reason} for folder in plan.unrecognized
            ],
            "errors": list(self.errors),
        }


@dataclass(frozen=True, slots=True)
class RepairOutcome:
    """Compared tables of a registry, and findings for those left out."""

    tables: tuple[RepairedTable, ...]
    findings: tuple[Finding, ...] = ()
    applied: bool = False
    notes: tuple[str, ...] = ()

    @property
    def pending(self) -> bool:
        """True if a partition is missing and not added, removed from the lake, or at another location."""
        return any(
            table.plan.dangling or table.plan.moved or (table.plan.missing and not self.applied)
            for table in self.tables
        )

    @property
    def exit_code(self) -> int:
        """Exit code: 0, or 3 if something could not be read or a partition could not be added."""
        return 3 if self.findings or any(table.errors for table in self.tables) else 0

    def as_dict(self) -> list[dict[str, object]]:
        """Return the output of `dq repair --format json` as JSON values."""
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

    As `dq repair` does. `catalog` is `local`, `hive`, `glue` or `iceberg`; `role_arn` and `catalog_id` are
    for another account in AWS. `server` or `environment` select the server of a contract. `folder` replaces
    the working folder, which has settings and store, and is the base of relative paths.

    Raises UsageError for invalid arguments, MissingTool if the catalog's packages are not installed, and
    ReadError for a path without contracts. Read errors of a table are findings.
    """
    context, places = call_context(paths, folder)
    with closing(context.store()) as store:
        target = open_named_catalog(context, store, catalog, role_arn, catalog_id)
        server_of = server_choice(registry_root(places[0]), server, environment)
        outcome = run(RepairContext(context, store, target, catalog, server_of, apply), places)
    return replace(outcome, notes=tuple(context.messages.notes))


def run(repairs: RepairContext, paths: Sequence[Path]) -> RepairOutcome:
    """Run the operation. Raises as `repair`."""
    context = repairs.context
    loaded = resolve_key_owners(context, repairs.store, load(paths, context.note))
    in_force = [contract for contract in loaded.contracts if contract.status not in NOT_IN_FORCE]
    by_contract, refused = run_per_contract(in_force, lambda contract: contract, repairs.compare)
    tables = tuple(table for several in by_contract for table in several)
    return RepairOutcome(tables, (*loaded.findings, *refused), repairs.apply_it)


@dataclass(frozen=True, slots=True)
class RepairContext:
    """Inputs of a repair; `apply_it`: add missing partitions."""

    context: RuntimeContext
    store: Store
    target: Catalog
    catalog: str
    server_of: ServerOf
    apply_it: bool

    def compare(self, contract: Contract) -> list[RepairedTable]:
        """Compare the partitions of each table of a contract, except for open table formats."""
        server, reach = chosen_server(contract, self.server_of(contract)).server, self.context.reach
        table_specs = specs(
            contract,
            lambda schema_object: catalog_location(
                self.context, resolve(contract, schema_object, server, reach), self.catalog
            ),
        )
        with self.store.read() as tx:
            by_object = placements(tx, {contract.key: other_servers(contract, server)})
        return [
            self._table(
                spec,
                _partitions(spec, by_object.get((contract.key, schema_object.name), ())),
                partial(self._with_published_locations, contract, schema_object, spec, server),
            )
            for spec, schema_object in zip(table_specs, contract.objects, strict=True)
            if spec.partitions and spec.location and spec.format not in OPEN_FORMATS
        ]

    def _with_published_locations(
        self,
        contract: Contract,
        schema_object: SchemaObject,
        spec: TableSpec,
        server: str,
        missing: Sequence[Partition],
    ) -> tuple[Partition, ...]:
        """Return the partitions, each at the location of its newest publication, which may be outside of the
        table.
        """
        with self.store.read() as tx:
            folders = publish.published_folders(tx) if missing else {}
        if not folders:
            return tuple(missing)

        def delivery(partition: Partition) -> str:
            publication = build_publication(
                contract,
                schema_object,
                spec,
                server=server,
                catalog=self.target.id,
                partition=dict(partition.values),
            )
            return publication.delivery

        return tuple(
            replace(partition, location=folders.get(delivery(partition), partition.location))
            for partition in missing
        )

    def _table(
        self,
        spec: TableSpec,
        published: Sequence[Partition],
        relocate: Callable[[Sequence[Partition]], tuple[Partition, ...]],
    ) -> RepairedTable:
        if self.target.read(*spec.key) is None:
            raise no_table(*spec.key)
        files, catalog_partitions = (
            files_for(spec.location, self.context.reach),
            self.target.partitions(*spec.key),
        )
        with ThreadPoolExecutor(_CONCURRENCY) as pool:
            plan = repair_plan(
                spec,
                catalog_partitions,
                lambda folders: pool.map(files.folders, folders),
                partial(_with_files, pool, files),
            )
            plan = replace(plan, missing=relocate(plan.missing))
            storages, folders = Storages(self.context.reach), [partition.location for partition in published]
            answers = pool.map(lambda folder: bool(storages.of(folder).inside(folder)), folders)
            filled = {folder for folder, has_file in zip(folders, answers, strict=True) if has_file}
        plan = with_published(plan, catalog_partitions, published, filled.__contains__)
        if not self.apply_it:
            return RepairedTable(spec, plan)
        try:
            results = self.target.add_partitions(*spec.key, plan.missing) if plan.missing else []
        except DqError as error:
            return RepairedTable(spec, plan, (str(error),))
        errors = tuple(
            f"{partition_folder(partition.values)}: {result}"
            for partition, result in zip(plan.missing, results, strict=True)
            if isinstance(result, DqError)
        )
        return RepairedTable(spec, plan, errors, len(results) - len(errors))


def _with_files(
    pool: ThreadPoolExecutor, files: Files, folders: Sequence[str], siblings: Collection[str]
) -> set[str]:
    """Return the folders that contain a file.

    Where most folders of a parent are asked for, one listing of the parent answers all of them.
    """
    by_parent: dict[str, list[str]] = defaultdict(list)
    for folder in folders:
        by_parent[folder.rpartition("/")[0]].append(folder)
    counts = Counter(folder.rpartition("/")[0] for folder in siblings)

    def answer(parent: str, folders: Sequence[str]) -> list[str]:
        if len(folders) * 2 > counts[parent]:
            filled = {f"{parent}/{name}" for name in files.with_files(parent)}
            return [folder for folder in folders if folder in filled]
        return [folder for folder in folders if files.inside(folder)]

    return {folder for filled in pool.map(answer, by_parent, by_parent.values()) for folder in filled}


def _partitions(spec: TableSpec, published: Sequence[PlacedPartition]) -> list[Partition]:
    """Return the published partitions that match the table's current partition keys."""
    partitions = []
    for partition in published:
        with suppress(UsageError):
            partitions.append(Partition(partition_values(spec, dict(partition.values)), partition.folder))
    return partitions
