"""The state store in order: its schema, whether it is sound, how much is kept, and a copy for other tools."""

from __future__ import annotations

from contextlib import closing
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path

from dq.alerts.incident_store import forget
from dq.contracts.outcome import UsageError
from dq.contracts.slo import HISTORY_KEPT
from dq.dataquality.delivery import retention
from dq.operations.runtime.context import called, elapsed
from dq.registry.publish import forget_publications, placed_deliveries
from dq.store import engine


@dataclass(frozen=True, slots=True)
class StoreUpgradeOutcome:
    """The schema of the store before, None where there was none, and after."""

    before: str | None
    after: str


def upgrade_store(*, folder: Path | str | None = None) -> StoreUpgradeOutcome:
    """Bring the schema of the state store to that of this dq, in one transaction, as `dq store upgrade` does.

    `folder` stands for the working folder. Raises StoreError for a store that does not answer or is a newer
    dq's.
    """
    world, _ = called(None, folder)
    before = engine.found_version(world.store_url())
    world.store().close()
    return StoreUpgradeOutcome(before, engine.head())


def check_store(*, folder: Path | str | None = None) -> list[str]:
    """In what the stored history of deliveries contradicts itself or its database, as `dq store check` says.

    A sentence for each fault. `folder` stands for the working folder. Raises StoreError for a store that does
    not answer.
    """
    world, _ = called(None, folder)
    with closing(world.store()) as store, store.read() as tx:
        return list(retention.integrity_faults(tx))


@dataclass(frozen=True, slots=True)
class StorePruneOutcome:
    """How much was removed from before an instant, which is in UTC."""

    before: datetime
    cycles: int
    receipts: int
    excuses: int
    incidents: int
    messages: int
    silences: int
    publications: int
    notices: int


def prune_store(
    keep: str = "400d", *, folder: Path | str | None = None, now: datetime | None = None
) -> StorePruneOutcome:
    """Remove deliveries, incidents and publications that are older than a time, as `dq store prune` does.

    `keep` is a length of at least 400d. What can still change stays. `folder` stands for the working folder;
    `now` is an aware instant.

    Raises UsageError for another length, and StoreError for a store that does not answer.
    """
    length = elapsed(keep)
    if length < HISTORY_KEPT:
        raise UsageError(
            f"{keep} is less than {HISTORY_KEPT.days} days: budgets and trends are counted from them.",
            f"Write --keep {HISTORY_KEPT.days}d or more.",
        )
    world, _ = called(None, folder, now)
    before = world.now() - length
    with closing(world.store()) as store:
        deliveries = retention.prune(store, before, placed_deliveries())
        alerts, publications = forget(store, before), forget_publications(store, before)
    return StorePruneOutcome(before, **asdict(deliveries), **asdict(alerts), **asdict(publications))


def export_store(to: Path | str, *, folder: Path | str | None = None) -> dict[str, int]:
    """Write the history of deliveries as Parquet, one file for each table, as `dq store export` does.

    `to` is the folder for the files, made where there is none; gives how many rows each table has. `folder`
    stands for the working folder.

    Raises MissingTool without pyarrow, Unreadable where nothing can be written there, and StoreError for a
    store that does not answer.
    """
    world, _ = called(None, folder)
    with closing(world.store()) as store, store.read() as tx:
        return retention.export(tx, Path(to))
