"""No upgrade loses a row, whichever release it begins at, and a backup of before comes back whole."""

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
from fakes import golden, next_release
from fakes.postgres import new_database
from sqlalchemy import (
    JSON,
    Boolean,
    Column,
    Connection,
    DateTime,
    Float,
    Integer,
    LargeBinary,
    MetaData,
    Numeric,
    Table,
    create_engine,
    func,
    insert,
    select,
)
from sqlalchemy.engine import make_url
from sqlalchemy.schema import CreateIndex, CreateTable

from dq.contracts.outcome import StoreError
from dq.store import engine as version
from dq.store import open_store
from dq.store.schema import complete_metadata

ROWS = 3
Values = dict[str, list[dict[str, object]]]
FIRST = version._known_versions()[0]
GOLDEN = Path(__file__).parent / "golden"


def first_release(dialect: str) -> Path:
    """The statements that make the schema of the first release; they stay as they are once it is out."""
    return GOLDEN / f"first_release.{dialect}.sql"


@pytest.mark.skipif(version.head() != FIRST, reason="the first release's schema has been migrated since")
@pytest.mark.parametrize("dialect", ["sqlite", "postgresql"])
def test_the_declared_tables_are_the_first_release(dialect: str) -> None:
    elements: list[CreateTable | CreateIndex] = []
    for table in complete_metadata().sorted_tables:
        indexes = sorted(table.indexes, key=lambda index: str(index.name))
        elements += [CreateTable(table), *(CreateIndex(index) for index in indexes)]
    statements = [str(each.compile(dialect=make_url(f"{dialect}://").get_dialect()())) for each in elements]
    lines = ";\n\n".join(statement.strip() for statement in statements).splitlines()

    golden.compare(first_release(dialect), "\n".join(line.rstrip() for line in lines) + "\n")


def test_the_first_release_is_migrated_to_what_is_declared(url: str) -> None:
    from alembic.autogenerate import compare_metadata
    from alembic.migration import MigrationContext

    engine = create_engine(url)
    with engine.begin() as tx:
        make(tx, FIRST)
        version.upgrade(tx)
        context = MigrationContext.configure(tx)
        assert version.current_version(tx) == version.head()
        assert compare_metadata(context, complete_metadata()) == []
    engine.dispose()


def make(tx: Connection, schema: str) -> None:
    """The tables as the release with that schema left them."""
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.attributes["connection"] = tx
    for statement in first_release(tx.dialect.name).read_text().split(";\n\n"):
        tx.exec_driver_sql(statement)
    config.set_main_option("script_location", str(version.MIGRATIONS))
    command.stamp(config, FIRST)
    command.upgrade(config, schema)


def value(table: Table, column: Column[object], number: int) -> object:
    """A value of the column's type, another one in each row."""
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
    if isinstance(kind, LargeBinary):
        return bytes([number])
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


@pytest.mark.parametrize("begin", version._known_versions())
def test_no_upgrade_loses_a_row(url: str, begin: str, tmp_path: Path) -> None:
    engine = create_engine(url)
    with engine.begin() as tx:
        make(tx, begin)
    with engine.begin() as tx:
        before = fill(tx)

    upgrade(url, tmp_path, begin)

    with engine.begin() as tx:
        assert version.current_version(tx) == next_release.SCHEMA
        after = counts(tx)
        assert {name: number for name, number in after.items() if number or name in before} == before
    engine.dispose()


@pytest.fixture
def other(url: str, tmp_path: Path) -> Iterator[str]:
    """Another place of the same kind, empty."""
    if url.startswith("sqlite"):
        yield f"sqlite:///{tmp_path}/other.db"
    else:
        with new_database() as made:
            yield made


def test_a_backup_of_the_schema_before_is_restored_and_upgraded(url: str, other: str, tmp_path: Path) -> None:
    open_store(url).close()
    engine = create_engine(url)
    with engine.begin() as tx:
        fill(tx)
        before = values(tx)
    engine.dispose()

    copy(url, other, tmp_path)
    after = [upgraded(each, before, tmp_path) for each in (url, other)]

    assert before.keys() == complete_metadata().tables.keys()
    assert all(len(rows) == ROWS for rows in before.values())
    assert after == [before, before]


def test_verdicts_and_sources_of_results_get_their_new_words(url: str) -> None:
    engine = create_engine(url)
    with engine.begin() as tx:
        make(tx, "0047")
        old = MetaData()
        old.reflect(tx)
        runs, results = old.tables["check_run"], old.tables["check_result"]
        words = ("kept", "broken", "could not tell", None)
        for number, word in enumerate(words, 1):
            run = {each.name: value(runs, each, number) for each in runs.columns}
            tx.execute(insert(runs), [{**run, "id": number, "verdict": word}])
            result = {each.name: value(results, each, number) for each in results.columns}
            source = "kept" if number == 1 else "scan"
            tx.execute(insert(results), [{**result, "run_id": number, "answered_by": source}])
        version.upgrade(tx)
        verdicts = tx.scalars(select(runs.c.verdict).order_by(runs.c.id)).all()
        sources = tx.scalars(select(results.c.answered_by).order_by(results.c.run_id)).all()
    engine.dispose()

    assert verdicts == ["passed", "failed", "unknown", None]
    assert sources == ["cache", "scan", "scan", "scan"]


def test_the_ends_of_recovered_subjects_get_their_new_word(url: str) -> None:
    engine = create_engine(url)
    with engine.begin() as tx:
        make(tx, "0048")
        old = MetaData()
        old.reflect(tx)
        incidents, subjects = old.tables["incident"], old.tables["incident_subject"]
        incident = {column.name: value(incidents, column, 1) for column in incidents.columns}
        tx.execute(insert(incidents), [incident])
        for number, word in enumerate(("kept", "given_up", None), 1):
            row = {column.name: value(subjects, column, number) for column in subjects.columns}
            tx.execute(insert(subjects), [{**row, "incident_id": incident["id"], "ended": word}])
        version.upgrade(tx)
        ends = tx.scalars(select(subjects.c.ended).order_by(subjects.c.subject)).all()
    engine.dispose()

    assert sorted(ends, key=str) == [None, "given_up", "recovered"]


def test_this_dq_leaves_what_the_next_one_has_upgraded(url: str, tmp_path: Path) -> None:
    open_store(url).close()
    upgrade(url, tmp_path, version.head())

    with pytest.raises(StoreError, match=rf"has schema {next_release.SCHEMA}, but this dq supports up to"):
        open_store(url)


def upgrade(url: str, folder: Path, begin: str) -> None:
    """By the next release's own command."""
    ran = next_release.install().run(folder, "store", "upgrade", DQ_STORE_URL=url)
    assert (ran.stdout, ran.returncode) == (f"schema {next_release.SCHEMA}, was {begin}\n", 0), ran.stderr


def upgraded(url: str, before: Values, folder: Path) -> Values:
    """What an upgraded state holds of what was there before."""
    upgrade(url, folder, version.head())
    engine = create_engine(url)
    with engine.begin() as tx:
        after = values(tx, before)
    engine.dispose()
    return after


def values(tx: Connection, of: Values | None = None) -> Values:
    """Each value of each row of every table, or of those tables and columns."""
    found = MetaData()
    found.reflect(tx)
    names = of.keys() if of is not None else found.tables.keys() - {"alembic_version"}
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
