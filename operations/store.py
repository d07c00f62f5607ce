"""Maintenance of the state store: schema upgrade, integrity check, retention, export, and copy."""

from __future__ import annotations

from contextlib import closing
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path

from dq.alerts.incident_store import prune
from dq.contracts.outcome import UsageError
from dq.contracts.slo import CYCLE_RETENTION
from dq.dataquality.delivery import retention
from dq.operations.runtime.context import call_context, parse_duration
from dq.registry.publish import forget_publications
from dq.registry.tables import staged_deliveries
from dq.store import copying, engine


@dataclass(frozen=True, slots=True)
class StoreUpgradeOutcome:
    """Schema version of the store before the upgrade, None if there was no store, and after."""

    before: str | None
    after: str


def upgrade_store(*, folder: Path | str | None = None) -> StoreUpgradeOutcome:
    """Bring the schema of the state store to that of this dq, in one transaction, as `dq store upgrade` does.

    `folder` replaces the working folder. Raises StoreError for a store that cannot be read or was written by
    a newer dq.
    """
    context, _ = call_context(None, folder)
    before = engine.stored_version(context.store_url())
    context.store().close()
    return StoreUpgradeOutcome(before, engine.head())


def check_store(*, folder: Path | str | None = None) -> list[str]:
    """Check the integrity of the stored delivery history, as `dq store check` does.

    Returns a sentence for each fault. `folder` replaces the working folder. Raises StoreError if the store
    cannot be read.
    """
    context, _ = call_context(None, folder)
    with closing(context.store()) as store, store.read() as tx:
        return list(retention.integrity_faults(tx))


@dataclass(frozen=True, slots=True)
class StorePruneOutcome:
    """Numbers of removed rows from before an instant in UTC."""

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

    `keep` is a duration of at least 400d. Records that can still change are kept. `folder` replaces the
    working folder; `now` is an aware instant.

    Raises UsageError for an invalid or shorter duration, and StoreError if the store cannot be read.
    """
    length = parse_duration(keep)
    if length < CYCLE_RETENTION:
        raise UsageError(
            f"{keep} is less than {CYCLE_RETENTION.days} days, which error budgets and trends need.",
            f"Use --keep {CYCLE_RETENTION.days}d or more.",
        )
    context, _ = call_context(None, folder, now)
    before = context.now() - length
    with closing(context.store()) as store:
        deliveries = retention.prune(store, before, staged_deliveries())
        alerts, publications = prune(store, before), forget_publications(store, before)
    return StorePruneOutcome(before, **asdict(deliveries), **asdict(alerts), **asdict(publications))


def export_store(to: Path | str, *, folder: Path | str | None = None) -> dict[str, int]:
    """Write the history of deliveries as Parquet, one file for each table, as `dq store export` does.

    `to` is the folder for the files, created if missing. Returns the number of rows of each table. `folder`
    replaces the working folder.

    Raises MissingTool without pyarrow, ReadError if the folder cannot be written, and StoreError if the
    store cannot be read.
    """
    context, _ = call_context(None, folder)
    with closing(context.store()) as store, store.read() as tx:
        return retention.export(tx, Path(to))


def copy_store(from_url: str, to_url: str) -> dict[str, int]:
    """Copy the state store to another database, e.g. from SQLite to PostgreSQL, as `dq store copy` does.

    Relative files are below the process's working folder, as in DQ_STORE_URL. Everything is copied in one
    transaction, and the source is not changed. Returns the number of rows of each table.

    Raises UsageError for an invalid URL, MissingTool without psycopg, and StoreError if the source does not
    exist, if the target is not empty, or if either has another schema version than this dq's.
    """
    return copying.copy_store(from_url, to_url)
