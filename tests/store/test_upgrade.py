"""No upgrade loses a row, whichever schema it begins at, and a backup of before comes back whole."""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
import subprocess
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from fakes.postgres import new_database
from sqlalchemy import (
    JSON,
    Boolean,
    Column,
    Connection,
    DateTime,
    Float,
    Integer,
    MetaData,
    Numeric,
    Table,
    create_engine,
    func,
    insert,
    select,
)
from sqlalchemy.engine import make_url

from dq.store import open_store, version

BEGINS = [name for name in version._known() if name < version.head()]
ROWS = 3
Values = dict[str, list[dict[str, object]]]
# Tables that a later schema has no more, and the one that holds what they held.
GONE = {"publish_step": ("0028", "publication")}
# What is known again after one tick: how long a channel pauses, and which contracts need no second look.
MADE_ANEW = {"channel_pause", "resting_contract", "resting_part"}
# Texts that migrations read.
KNOWN = {"publish_step.step": ["begun", "notify", "notify"]}


def migrate(tx: Connection, to: str) -> None:
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.attributes["connection"] = tx
    config.set_main_option("script_location", str(version.MIGRATIONS))
    command.upgrade(config, to)


def value(table: Table, column: Column[object], number: int) -> object:
    """A value of the column's type, another one in each row."""
    known = KNOWN.get(f"{table.name}.{column.name}")
    if known is not None:
        return known[number]
    kind = column.type
    if column.foreign_keys:
        [key] = column.foreign_keys
        return value(key.column.table, key.column, number)
    if isinstance(kind, Boolean):
        return bool(number % 2)
    if isinstance(kind, Integer | Numeric | Float):
        return number + 1
    if isinstance(kind, DateTime):
        return datetime(2026, 5, 1) + timedelta(days=number)  # noqa: DTZ001  # as the columns are
    if isinstance(kind, JSON):
        return []
    return f"{number}"


def fill(tx: Connection) -> dict[str, int]:
    """Rows in every table; how many each has."""
    found = MetaData()
    found.reflect(tx)
    for table in found.sorted_tables:
        if table.name != "alembic_version":
            rows = [{one.name: value(table, one, number) for one in table.columns} for number in range(ROWS)]
            tx.execute(insert(table), rows)
    return counts(tx)


def counts(tx: Connection) -> dict[str, int]:
    found = MetaData()
    found.reflect(tx)
    return {
        name: tx.execute(select(func.count()).select_from(table)).scalar_one()
        for name, table in found.tables.items()
    }


@pytest.mark.parametrize("begin", BEGINS)
def test_no_upgrade_loses_a_row(url: str, begin: str) -> None:
    engine = create_engine(url)
    with engine.begin() as tx:
        migrate(tx, begin)
    with engine.begin() as tx:
        before = fill(tx)
    engine.dispose()

    store = open_store(url)
    with store.read() as tx:
        assert version.current(tx) == version.head()
        after = counts(tx)
    store.close()

    kept = {name: number for name, number in before.items() if name not in MADE_ANEW | GONE.keys()}
    assert {name: after.get(name) for name in kept} == kept
    for name in before.keys() & GONE.keys():
        # Two of its three rows say that an event was told.
        assert after[GONE[name][1]] == ROWS - 1


@pytest.fixture
def other(url: str, tmp_path: Path) -> Iterator[str]:
    """Another place of the same kind, empty."""
    if url.startswith("sqlite"):
        yield f"sqlite:///{tmp_path}/other.db"
    else:
        with new_database() as made:
            yield made


def test_a_backup_of_the_schema_before_is_restored_and_upgraded(url: str, other: str, tmp_path: Path) -> None:
    engine = create_engine(url)
    with engine.begin() as tx:
        migrate(tx, BEGINS[-1])
    with engine.begin() as tx:
        fill(tx)
        before = values(tx)
    engine.dispose()

    copy(url, other, tmp_path)
    after = [upgraded(each, before) for each in (url, other)]

    assert all(len(rows) == ROWS for rows in before.values())
    assert after == [before, before]


def upgraded(url: str, before: Values) -> Values:
    """What an upgraded state holds of what was there before."""
    store = open_store(url)
    with store.read() as tx:
        assert version.current(tx) == version.head()
        after = values(tx, before)
    store.close()
    return after


def values(tx: Connection, of: Values | None = None) -> Values:
    """Each value of each row of every table that is not made anew, or of those tables and columns."""
    found = MetaData()
    found.reflect(tx)
    names = of.keys() if of is not None else found.tables.keys() - MADE_ANEW - {"alembic_version"}
    made = {}
    for name in names:
        columns = of[name][0].keys() if of is not None else found.tables[name].columns.keys()
        rows = tx.execute(select(*(found.tables[name].columns[column] for column in columns))).mappings()
        made[name] = sorted((dict(row) for row in rows), key=lambda row: str(list(row.values())))
    return made


def copy(url: str, other: str, folder: Path) -> None:
    """A backup and its restore, by the commands of the page `operate.md`."""
    if url.startswith("sqlite"):
        sqlite3.connect(make_url(url).database or "").execute(f"VACUUM INTO '{folder}/backup.db'")
        shutil.copy(folder / "backup.db", make_url(other).database or "")
        return
    [binaries] = sorted(Path("/usr/lib/postgresql").glob("*/bin"))[-1:]
    plain, password = re.sub(r"\+psycopg", "", url), make_url(url).password or ""
    environment = {**os.environ, "PGPASSWORD": password}
    dump = ["--format=custom", f"--file={folder}/dq.dump", plain]
    subprocess.run([binaries / "pg_dump", *dump], check=True, env=environment)
    into = ["--no-owner", f"--dbname={re.sub(r'[+]psycopg', '', other)}", f"{folder}/dq.dump"]
    subprocess.run([binaries / "pg_restore", *into], check=True, env=environment)
