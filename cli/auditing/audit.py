"""The audit of what is staged, by the contract; what keeps it is made ready to be published, or is already.

A retry ends as a run that nobody disturbed: what an earlier run has published is known again by the catalog's
place, or by the history of `main`, and is not judged a second time.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from dq.cli.auditing.staging import Staging, staged_data
from dq.cli.checking.run import earlier, others
from dq.cli.publishing.delivering import CatalogChoice, PublishRequest, delivery_of, table_spec
from dq.cli.world.catalogs import opened
from dq.cli.world.environment import World, located
from dq.cli.world.spark import label, session
from dq.contracts.access.data_location import resolve
from dq.contracts.model import Contract, SchemaObject
from dq.contracts.shared.errors import DqError, UsageError
from dq.dataquality import Report, Request
from dq.dataquality import check as measure
from dq.dataquality.clauses.foreign_key import Neighbours
from dq.dataquality.shortcuts.levers import ALL, NONE
from dq.dataquality.spark.readers.dataset import Dataset, locate
from dq.registry.catalog import Catalog
from dq.registry.publishing import journal
from dq.registry.publishing.audit import delta_table
from dq.registry.publishing.audit.iceberg_branch import IcebergTable, StagedSnapshot, of_partition
from dq.registry.publishing.audit.staged_folder import staged_folder
from dq.registry.publishing.partition import partition_values

FOLDERS = ("parquet", "orc", "avro", "csv", "json")


@dataclass(frozen=True, slots=True)
class Audited:
    """What was found, None where an earlier run had published it; and how it is to be published."""

    report: Report | None
    request: PublishRequest

    @property
    def exit_code(self) -> int:
        """0 where it may be published: it keeps the contract, or is published already."""
        return self.report.exit_code if self.report is not None else 0


def audit(
    world: World,
    contract: Contract,
    one: SchemaObject,
    given: PublishRequest,
    choice: CatalogChoice,
    staged: str,
) -> Audited:
    """Checks what is staged: `staged` is a folder with the partition below it, or a branch of Iceberg.

    A branch that keeps the contract is made `main` here, in one commit. Of a folder nothing is published yet.
    Raises UsageError for what cannot be staged so, and DqError for what is not there or changes meanwhile.
    """
    place = resolve(contract, one, given.server, world.reach)
    if place.format == "iceberg":
        return _branch(world, contract, one, given, choice, staged)
    if place.format == "delta":
        raise delta_table.refused(f"{contract.id} {one.name}")
    if place.format in FOLDERS:
        return _folder(world, contract, one, given, choice, staged)
    raise UsageError(
        f"A table of {place.format} cannot be staged.", f"dq stages {', '.join(FOLDERS)}, iceberg."
    )


def _folder(
    world: World,
    contract: Contract,
    one: SchemaObject,
    given: PublishRequest,
    choice: CatalogChoice,
    root: str,
) -> Audited:
    vouched = world.reach.vouch(root)
    if not isinstance(vouched, str):
        raise UsageError(f"--audit {root} {vouched.message}.", vouched.mend)
    linked = world.reach.contents(vouched)
    if linked is not None:
        raise UsageError(f"--audit {root} {linked.message}.", linked.mend)
    absolute = vouched if "://" in vouched else str(world.folder / vouched)
    spec = table_spec(world, contract, one, given.server, choice.name)
    # Readers look below the table's folder, wherever the catalog has it.
    own = located(world, resolve(contract, one, given.server, world.reach), "").path or spec.location
    folder = staged_folder(absolute, partition_values(spec, given.partition), own)
    request = replace(given, folder=folder.folder, redelivery=True, run=given.run or folder.run)
    catalog = opened(world, world.store(), choice.name, choice.role_arn, choice.catalog_id)
    before = folder.files()
    if folder.published(catalog, spec.database, spec.name):
        return Audited(None, request)
    _refuse_older(world, contract, one, request, choice, catalog)
    place = resolve(contract, one, given.server, world.reach)
    spark = session(world, formats={place.format}, hive=choice.name == "hive")
    dataset = locate(contract, one, given.server, world.reach)
    staging = Staging(dataset, place.format, folder, spec, catalog)
    report = _checked(
        world, contract, one, given, staged_data(spark, contract, one, staging), dict(folder.values)
    )
    folder.require_unchanged(before)
    return Audited(report, request)


def _refuse_older(
    world: World,
    contract: Contract,
    one: SchemaObject,
    request: PublishRequest,
    choice: CatalogChoice,
    catalog: Catalog,
) -> None:
    """A late retry of an older run must not take the partition back to what that one had staged."""
    delivery = delivery_of(world, contract, one, request, choice.name, catalog.id).delivery
    with world.store().read() as tx:
        known = journal.knows_run(tx, delivery, request.run)
    if known:
        raise DqError(
            f"{request.folder} was published before, and something else has been since.",
            "To go back to it, write it anew into a folder of its own, and publish that.",
        )


def _branch(
    world: World,
    contract: Contract,
    one: SchemaObject,
    given: PublishRequest,
    choice: CatalogChoice,
    branch: str,
) -> Audited:
    dataset = locate(contract, one, given.server, world.reach)
    spark = session(world, formats={"iceberg"}, hive=choice.name == "hive")
    table = IcebergTable(spark, dataset.table or "", dataset.path or "")
    staged = table.staged(branch)
    spec = table_spec(world, contract, one, given.server, choice.name)
    request = replace(
        given, folder=spec.location or table.place(), redelivery=True, run=given.run or staged.run
    )
    if staged.published:
        return Audited(None, request)
    catalog = opened(world, world.store(), choice.name, choice.role_arn, choice.catalog_id)
    # What is wrong with the delivery is found before main moves.
    delivery_of(world, contract, one, request, choice.name, catalog.id)
    values = dict(partition_values(spec, given.partition)) if given.partition else {}
    if values:
        _refuse_more(staged, values)
    report = _checked(world, contract, one, given, table.frame(staged.id), values)
    if report.exit_code == 0:
        table.forward(staged)
    return Audited(report, request)


def _refuse_more(staged: StagedSnapshot, values: dict[str, str]) -> None:
    """Else rows of other partitions would be published that nobody looked at."""
    changed = staged.table.changed(staged.id)
    if not of_partition(changed, values):
        shown = sorted("/".join(f"{key}={value}" for key, value in pairs) or "all of it" for pairs in changed)
        raise DqError(
            f"The branch {staged.branch} changes {', '.join(shown[:5])}, and not only that partition.",
            "Write each partition to a branch of its own.",
        )


def _checked(
    world: World,
    contract: Contract,
    one: SchemaObject,
    given: PublishRequest,
    data: object,
    partition: dict[str, str],
) -> Report:
    spark = session(world)
    what = f"dq publish --audit {contract.id}/{one.name}"
    label(spark, what, what)
    neighbours = Neighbours.of([contract])
    return measure(
        Request(
            contract,
            data,  # type: ignore[arg-type]  # a frame of Spark, or a Dataset
            one.name,
            spark=spark,
            partitions=[partition] if partition else None,
            now=world.now(),
            others=others(world, contract, one, given.server, neighbours),
            history=earlier(world.store(), contract, one),
            levers=ALL if isinstance(data, Dataset) else NONE,
            limit_seconds=world.settings.rule_seconds,
            neighbours=neighbours,
        )
    )
