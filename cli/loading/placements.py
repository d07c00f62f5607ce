"""Folders of partitions that were published where they were staged, not where Hive would put them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import replace

from sqlalchemy import Connection, select

from dq.cli.world import state
from dq.cli.world.environment import World
from dq.contracts.access.data_location import other_servers
from dq.contracts.model import Contract, SchemaObject
from dq.dataquality.delivery.cycle import Watched, label, partition_of
from dq.dataquality.delivery.tables import receipt
from dq.dataquality.spark.readers.open import FILES, Dataset, locate
from dq.lake.paths import PlacedPartition
from dq.registry.tables import publication
from dq.store.engine import Store

Placements = Mapping[tuple[str, str], tuple[PlacedPartition, ...]]
"""The placed partitions of each object, by the contract's key and the object's name."""


def located_data(
    world: World, contract: Contract, one: SchemaObject, server: str | None, store: Store | None = None
) -> Dataset:
    """The object's data with all its partitions, wherever they were published; see `locate`.

    Without a `store`, that of the world is asked, if there is one.
    """
    dataset = locate(contract, one, server, world.reach)
    # A catalog's table and a table with a log know where their files are.
    if dataset.path is None or dataset.format not in FILES or not dataset.partitions:
        return dataset
    if store is None:
        if not world.settings.store_url and not (world.folder / state.FOLDER / state.STORE).exists():
            return dataset
        with closing(world.store()) as store:
            return located_data(world, contract, one, server, store)
    with store.read() as tx:
        placed = placements(tx, {contract.key: other_servers(contract, server)}, one.name)
    return replace(dataset, placed=placed.get((contract.key, one.name), ()))


def placements(
    tx: Connection, elsewhere: Mapping[str, Collection[str]], object: str | None = None
) -> Placements:
    """Where the newest revision of each delivery lies, of those that lie in a folder of their own.

    `elsewhere` has for each contract, by its key, the servers that are left out.
    """
    asked = (
        select(
            receipt.c.contract, receipt.c.object, receipt.c.partition, receipt.c.server, publication.c.folder
        )
        .join(publication, publication.c.id == receipt.c.id)
        .where(receipt.c.partition != "")
        .order_by(publication.c.published_at, publication.c.revision)
    )
    if len(elsewhere) == 1:
        asked = asked.where(receipt.c.contract == next(iter(elsewhere)))
    if object is not None:
        asked = asked.where(receipt.c.object == object)
    folders: dict[tuple[str, str], dict[str, str | None]] = defaultdict(dict)
    for row in tx.execute(asked):
        if row.contract in elsewhere and row.server not in elsewhere[row.contract]:
            folders[row.contract, row.object][row.partition] = row.folder
    return {
        key: tuple(
            PlacedPartition(partition_of(name), folder)
            for name, folder in sorted(by_label.items())
            if folder is not None
        )
        for key, by_label in folders.items()
    }


def with_folders(store: Store, watching: Sequence[Watched]) -> list[Watched]:
    """What is watched, with the folders of partitions that were published beside their table."""
    with store.read() as tx:
        placed = placements(tx, {one.slo.key[0]: one.place.elsewhere for one in watching})
    return [
        replace(one, place=replace(one.place, folders=_folders(placed.get(one.slo.key[:2], ()))))
        for one in watching
    ]


def _folders(placed: Sequence[PlacedPartition]) -> frozenset[tuple[str, str]]:
    return frozenset((label(each.values), each.folder) for each in placed)


def placed_objects(tx: Connection) -> set[tuple[str, str]]:
    """The objects, by contract key and name, of which a partition was published in a folder of its own."""
    asked = (
        select(receipt.c.contract, receipt.c.object)
        .join(publication, publication.c.id == receipt.c.id)
        .where(publication.c.folder.is_not(None))
        .distinct()
    )
    return {(row.contract, row.object) for row in tx.execute(asked)}
