"""A store of the time when a contract had one name for all its majors."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, Table, create_engine, insert, select

from dq.alerts.tables import incident
from dq.dataquality.tables import check_run, cycle, receipt, watermark
from dq.store import open_store, version

TABLES = (cycle, watermark, receipt, check_run, incident)


def filled(tx: Connection, contract: str, version: str, day: int) -> None:
    """A row of the contract in every table that says a version, each on a day."""
    at = datetime(2026, 5, day, 6, tzinfo=UTC)
    what = {"contract": contract, "object": "o", "contract_version": version}
    due = {"due_at": at, "breach_at": at, "nominal": at.isoformat(), "note": "", "tzdata": "2026a"}
    stands = {"partitions": [], "status": "missing", "reason": "", "told": True}
    tx.execute(insert(cycle).values(**what, slo="s", **due, **stands))
    tx.execute(insert(receipt).values(**what, id=contract + version, partition="", delivered_at=at))
    tx.execute(insert(check_run).values(**what, scope="table", at=at, jobs=1))


def once(tx: Connection, contract: str) -> None:
    """What a contract has one row of, whatever its versions."""
    at = datetime(2026, 5, 10, 6, tzinfo=UTC)
    tx.execute(insert(watermark).values(contract=contract, object="o", slo="s", through=at))
    what = {"id": contract, "contract": contract, "object": "o", "group_id": "s"}
    stands = {"severity": "error", "title": "t", "state": "open", "revision": 1, "breaches": 1}
    tx.execute(insert(incident).values(**what, **stands, opened_at=at))


@pytest.fixture
def older(url: str) -> str:
    """A store with the schema before products, and what three contracts left in it."""
    engine = create_engine(url)
    config = Config()
    config.set_main_option("script_location", str(version.MIGRATIONS))
    with engine.begin() as tx:
        config.attributes["connection"] = tx
        command.upgrade(config, "0004")
        filled(tx, "first", "1.4.0", 1)
        filled(tx, "second", "1.9.0", 1)
        filled(tx, "second", "2.0.0", 2)
        filled(tx, "early", "0.3.0", 1)
        for contract in ("first", "second", "early"):
            once(tx, contract)
    engine.dispose()
    return url


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_all_that_stood_under_an_id_goes_to_the_major_that_was_seen_last(older: str, table: Table) -> None:
    store = open_store(older)

    with store.read() as tx:
        found = set(tx.execute(select(table.c.contract)).scalars())

    assert found == {"first", "second@2", "early@0"}
    store.close()
