"""Data locations of contracts, for the watcher and for checks."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path

from sqlalchemy import Connection, select

from dq.contracts.access.access_policy import AccessPolicy, is_remote
from dq.contracts.access.data_location import other_servers
from dq.contracts.layout import PlacedPartition
from dq.contracts.model import Contract, SchemaObject
from dq.contracts.outcome import DqError, Finding, Severity, StoreError
from dq.contracts.slo import NOT_WATCHED, Slo
from dq.dataquality.delivery.cycle import WatchTarget, label, partition_from_label
from dq.dataquality.delivery.notify import storage_root
from dq.dataquality.delivery.probe_pool import ProbePool, ProbeTimeout
from dq.dataquality.delivery.tables import receipt
from dq.dataquality.spark.dataset import FILE_FORMATS, Dataset, locate
from dq.lake.storage import Files, UnreachableFiles
from dq.operations.registry_files import refusal, watch_target
from dq.operations.runtime.context import RuntimeContext, mount_points
from dq.registry.tables import publication_revision
from dq.store.engine import Store

# Folders of partitions that were published where they were staged, not in Hive layout.

Placements = Mapping[tuple[str, str], tuple[PlacedPartition, ...]]
"""The placed partitions of each object, by the contract's key and the object's name."""


def located_data(
    ctx: RuntimeContext,
    contract: Contract,
    schema_object: SchemaObject,
    server: str | None,
    store: Store | None = None,
) -> Dataset:
    """Return the object's data with all its partitions, wherever they were published; see `locate`.

    Without `store`, the store of the context is used, if it exists.
    """
    dataset = locate(contract, schema_object, server, ctx.reach)
    if dataset.path is not None:
        dataset = replace(dataset, path=ctx.resolve_path(dataset.path))
    # Catalog tables and tables with a log know where their files are.
    if dataset.path is None or dataset.format not in FILE_FORMATS or not dataset.partitions:
        return dataset
    if store is None:
        if not ctx.has_store():
            return dataset
        with closing(ctx.store()) as store:
            return located_data(ctx, contract, schema_object, server, store)
    with store.read() as tx:
        by_object = placements(tx, {contract.key: other_servers(contract, server)}, schema_object.name)
    return replace(dataset, external_partitions=by_object.get((contract.key, schema_object.name), ()))


def placements(
    tx: Connection, excluded_servers: Mapping[str, Collection[str]], object: str | None = None
) -> Placements:
    """Return the folders of the newest revisions that were published in a folder of their own.

    `excluded_servers` has the ignored servers of each contract, by its key.
    """
    query = (
        select(
            receipt.c.contract,
            receipt.c.object,
            receipt.c.partition,
            receipt.c.server,
            publication_revision.c.folder,
        )
        .join(publication_revision, publication_revision.c.id == receipt.c.id)
        .where(receipt.c.partition != "")
        .order_by(publication_revision.c.published_at, publication_revision.c.revision)
    )
    if len(excluded_servers) == 1:
        query = query.where(receipt.c.contract == next(iter(excluded_servers)))
    if object is not None:
        query = query.where(receipt.c.object == object)
    folders: dict[tuple[str, str], dict[str, str | None]] = defaultdict(dict)
    for row in tx.execute(query):
        if row.contract in excluded_servers and row.server not in excluded_servers[row.contract]:
            folders[row.contract, row.object][row.partition] = row.folder
    return {
        key: tuple(
            PlacedPartition(partition_from_label(name), folder)
            for name, folder in sorted(by_label.items())
            if folder is not None
        )
        for key, by_label in folders.items()
    }


def with_folders(store: Store, targets: Sequence[WatchTarget]) -> list[WatchTarget]:
    """Return the targets with the folders of partitions that were published outside of their table."""
    contracts: dict[frozenset[str], dict[str, frozenset[str]]] = {}
    for target in targets:
        contracts.setdefault(_own_servers(target), {})[target.slo.key[0]] = target.place.other_servers
    with store.read() as tx:
        by_servers = {servers: placements(tx, excluded) for servers, excluded in contracts.items()}
    located = []
    for target in targets:
        partitions = by_servers[_own_servers(target)].get(target.slo.key[:2], ())
        located.append(replace(target, place=replace(target.place, folders=_folders(partitions))))
    return located


def _own_servers(target: WatchTarget) -> frozenset[str]:
    """Return the ignored servers of an SLO that names its own; all other SLOs of a contract have the same."""
    return target.place.other_servers if target.slo.server else frozenset()


def _folders(partitions: Sequence[PlacedPartition]) -> frozenset[tuple[str, str]]:
    return frozenset((label(partition.values), partition.folder) for partition in partitions)


def placed_objects(tx: Connection) -> set[tuple[str, str]]:
    """Return the objects, by contract key and name, with a partition in a folder of its own."""
    query = (
        select(receipt.c.contract, receipt.c.object)
        .join(publication_revision, publication_revision.c.id == receipt.c.id)
        .where(publication_revision.c.folder.is_not(None))
        .distinct()
    )
    return {(row.contract, row.object) for row in tx.execute(query)}


# Resolves data locations of SLOs with a timeout per folder: resolving links on a hung mount never returns.


def resolve_links(probe_pool: ProbePool, folders: Sequence[Path]) -> list[str]:
    """Return the folders with links resolved; one that does not answer is returned unresolved."""
    paths = [os.path.normpath(folder) for folder in folders]
    answers = probe_pool.run_local([(path, partial(os.path.realpath, path)) for path in paths])
    return [
        path if isinstance(answer, ProbeTimeout) else answer
        for path, answer in zip(paths, answers, strict=True)
    ]


def resolve_locations(
    promises: Sequence[Slo],
    server: str | None,
    reach: AccessPolicy,
    files_of: Callable[[str], Files],
    probe_pool: ProbePool,
) -> tuple[list[WatchTarget], list[Finding]]:
    """Return every SLO with its data location, and findings for those without.

    If a folder does not answer, it is unknown whether it is allowed, and reading its files times out.
    """
    unresolved = replace(reach, offline=True)
    targets: list[WatchTarget] = []
    refused: list[Finding] = []
    for slo in promises:
        try:
            targets.append(watch_target(slo, server, unresolved, files_of))
        except StoreError:
            raise
        except DqError as error:
            refused.append(_refusal(slo, error))
    local = [number for number, target in enumerate(targets) if not is_remote(target.place.path)]
    mounts = mount_points()
    questions = [
        (
            reach.nearest_root(target.place.path, mounts),
            partial(_resolve_target, target.slo, server, reach, files_of),
        )
        for target in (targets[number] for number in local)
    ]
    results: dict[int, WatchTarget | DqError] = dict(enumerate(targets))
    for number, (root, _), answer in zip(local, questions, probe_pool.run_local(questions), strict=True):
        if isinstance(answer, ProbeTimeout):
            results[number] = replace(targets[number], files=UnreachableFiles(answer.problem), root=root)
        else:
            results[number] = answer
    problems = [
        _refusal(targets[number].slo, error)
        for number, error in results.items()
        if isinstance(error, DqError)
    ]
    ready = [target for target in results.values() if isinstance(target, WatchTarget)]
    return ready, list(dict.fromkeys([*refused, *problems]))


def _refusal(slo: Slo, error: DqError) -> Finding:
    finding = refusal(slo.contract, error)
    if not slo.is_implied:
        return finding
    # The contract does not ask for a watch in dq's own terms, so it is not in error.
    message = f"{slo.id} is not watched: {finding.message}"
    return replace(finding, rule=NOT_WATCHED, severity=Severity.WARNING, message=message)


def _resolve_target(
    slo: Slo, server: str | None, reach: AccessPolicy, files_of: Callable[[str], Files]
) -> WatchTarget | DqError:
    try:
        target = watch_target(slo, server, reach, files_of)
        return replace(target, root=storage_root(target))
    except DqError as error:
        return error
