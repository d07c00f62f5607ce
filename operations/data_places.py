"""Where the data of contracts lies, for the watcher and for checks."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path

from sqlalchemy import Connection, select

from dq.contracts.access.access_policy import Reach, is_remote
from dq.contracts.access.data_location import other_servers
from dq.contracts.model import Contract, SchemaObject
from dq.contracts.outcome import DqError, Finding
from dq.contracts.slo import Slo
from dq.dataquality.delivery.cycle import Watched, label, partition_of
from dq.dataquality.delivery.notify import root_of
from dq.dataquality.delivery.probe_pool import Lookout, Silence
from dq.dataquality.delivery.tables import receipt
from dq.dataquality.spark.dataset import FILES, Dataset, locate
from dq.lake.storage import Files, PlacedPartition, SilentFiles
from dq.operations.registry_files import each, refusal, watched
from dq.operations.runtime import context
from dq.operations.runtime.context import World, mount_points
from dq.registry.tables import publication
from dq.store.engine import Store

# Folders of partitions that were published where they were staged, not where Hive would put them.

Placements = Mapping[tuple[str, str], tuple[PlacedPartition, ...]]
"""The placed partitions of each object, by the contract's key and the object's name."""


def located_data(
    world: World, contract: Contract, one: SchemaObject, server: str | None, store: Store | None = None
) -> Dataset:
    """The object's data with all its partitions, wherever they were published; see `locate`.

    Without a `store`, that of the world is asked, if there is one.
    """
    dataset = locate(contract, one, server, world.reach)
    if dataset.path is not None:
        dataset = replace(dataset, path=world.below(dataset.path))
    # A catalog's table and a table with a log know where their files are.
    if dataset.path is None or dataset.format not in FILES or not dataset.partitions:
        return dataset
    if store is None:
        if not world.settings.store_url and not (world.folder / context.FOLDER / context.STORE).exists():
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


# Finds out where the data of promises lies, and waits no longer for a folder that does not answer.
#
# To follow the links on the way to a folder of a mount that hangs never ends.


def resolved(lookout: Lookout, folders: Sequence[Path]) -> list[str]:
    """The folders with every link followed; one that does not answer as it is written."""
    written = [os.path.normpath(folder) for folder in folders]
    answers = lookout.bounded([(one, partial(os.path.realpath, one)) for one in written])
    return [
        one if isinstance(answer, Silence) else answer for one, answer in zip(written, answers, strict=True)
    ]


def placed(
    promises: Sequence[Slo],
    server: str | None,
    reach: Reach,
    files_of: Callable[[str], Files],
    lookout: Lookout,
) -> tuple[list[Watched], list[Finding]]:
    """Every SLO with the place of its data, and why the others have none.

    Where the folder does not answer, nobody knows whether the place may be used, and its files are silent.
    """
    unseen = replace(reach, unseen=True)
    written, refused = each(
        promises, lambda slo: slo.contract, lambda slo: watched(slo, server, unseen, files_of)
    )
    local = [number for number, one in enumerate(written) if not is_remote(one.place.path)]
    mounts = mount_points()
    questions = [
        (reach.above(one.place.path, mounts), partial(_seen, one.slo, server, reach, files_of))
        for one in (written[number] for number in local)
    ]
    found: dict[int, Watched | DqError] = dict(enumerate(written))
    for number, (root, _), answer in zip(local, questions, lookout.bounded(questions), strict=True):
        if isinstance(answer, Silence):
            found[number] = replace(written[number], files=SilentFiles(answer.problem), root=root)
        else:
            found[number] = answer
    wrong = [
        refusal(written[number].slo.contract, one)
        for number, one in found.items()
        if isinstance(one, DqError)
    ]
    ready = [one for one in found.values() if isinstance(one, Watched)]
    return ready, list(dict.fromkeys([*refused, *wrong]))


def _seen(slo: Slo, server: str | None, reach: Reach, files_of: Callable[[str], Files]) -> Watched | DqError:
    try:
        one = watched(slo, server, reach, files_of)
        return replace(one, root=root_of(one))
    except DqError as error:
        return error
