"""Opening the store, its transactions, and what it says when it cannot be opened."""

from __future__ import annotations

import re
import sqlite3
import subprocess
import sys
import threading
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from fakes import children, postgres
from sqlalchemy import Column, Integer, MetaData, Table, inspect, text
from sqlalchemy.exc import IntegrityError, StatementError

from dq.contracts.outcome import StoreError, UsageError
from dq.store import engine, open_store
from dq.store.schema import TABLE_MODULES, Json, UtcDateTime, complete_metadata

ROOT = Path(__file__).parents[2]
PACKAGES = ("alerts", "cli", "contracts", "dataquality", "operations", "portal", "registry", "validators")


def test_a_new_store_has_the_newest_schema(url):
    store = open_store(url)

    with store.read() as tx:
        assert engine.current_version(tx) == engine.head()
    store.close()


def test_every_module_that_declares_tables_is_listed():
    declaring = {
        "dq." + ".".join(file.relative_to(ROOT).with_suffix("").parts)
        for package in PACKAGES
        for file in (ROOT / package).rglob("*.py")
        if re.search(r"^from dq\.store\.schema import .*\bmetadata\b", file.read_text(), re.MULTILINE)
    }
    assert declaring == set(TABLE_MODULES)


def test_a_store_has_all_tables_whatever_was_imported_before(url):
    script = f"from dq.store import open_store; open_store({url!r})"
    assert children.start(script).end() == (0, "")

    store = open_store(url)
    with store.read() as tx:
        assert set(inspect(tx).get_table_names()) == {*complete_metadata().tables, "alembic_version"}
    store.close()


def test_making_or_opening_a_store_does_not_import_alembic(tmp_path):
    url = f"sqlite:///{tmp_path / 'dq.db'}"
    script = (
        f"import sys; from dq.store import open_store; open_store({url!r}); print('alembic' in sys.modules)"
    )

    printed = [
        subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    ]

    assert printed == ["False\n", "False\n"]


def test_folders_that_are_missing_are_made(tmp_path):
    path = tmp_path / "a" / "100% new" / "dq.db"

    open_store(f"sqlite:///{path}").close()

    assert path.exists()


def test_many_processes_can_make_the_store_at_once(url):
    script = f"from dq.store import open_store; open_store({url!r})"

    running = [children.start(script) for _ in range(6)]

    assert [process.end() for process in running] == [(0, "")] * 6


def test_a_store_of_a_newer_dq_is_left_alone(url):
    store = open_store(url)
    with store.write() as tx:
        tx.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    store.close()

    with pytest.raises(StoreError, match=r"has schema 9999, but this dq supports up to \d{4}\. Upgrade dq"):
        open_store(url)


@pytest.mark.parametrize("schema", ["0001", "0033", "0034", "0040"])
def test_a_store_of_a_version_before_the_first_release_is_left_alone(url, schema):
    store = open_store(url)
    with store.write() as tx:
        tx.execute(text("UPDATE alembic_version SET version_num = :schema"), {"schema": schema})
    store.close()

    with pytest.raises(StoreError, match=rf"has schema {schema} of a dq that was never released\. Name a"):
        open_store(url)


def test_what_a_block_wrote_is_gone_when_the_block_fails(url):
    store = open_store(url)
    table = Table("kept", MetaData(), Column("id", Integer, primary_key=True))

    def fail() -> None:
        with store.write() as tx:
            table.create(tx)
            tx.execute(table.insert().values(id=1))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()

    with store.read() as tx:
        assert not inspect(tx).has_table("kept")
    store.close()


def test_writers_take_turns_so_that_none_loses_what_another_counted(url):
    store = open_store(url)
    table = Table("counter", MetaData(), Column("n", Integer))
    with store.write() as tx:
        table.create(tx)
        tx.execute(table.insert().values(n=0))

    def count() -> None:
        for _ in range(10):
            with store.write() as tx:
                n = tx.execute(table.select()).scalar_one()
                tx.execute(table.update().values(n=n + 1))

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    with store.read() as tx:
        assert tx.execute(table.select()).scalar_one() == 40
    store.close()


def test_a_reader_sees_one_state_while_another_writes(url):
    store = open_store(url)
    table = Table("counter", MetaData(), Column("n", Integer))
    with store.write() as tx:
        table.create(tx)
        tx.execute(table.insert().values(n=1))

    with store.read() as reader:
        before = reader.execute(table.select()).scalar_one()
        with store.write() as writer:
            writer.execute(table.update().values(n=2))
        after = reader.execute(table.select()).scalar_one()

    assert (before, after) == (1, 1)
    store.close()


def test_a_broken_constraint_is_not_taken_for_a_broken_database(url):
    store = open_store(url)
    pause = complete_metadata().tables["channel_pause"]

    with pytest.raises(IntegrityError), store.write() as tx:
        tx.execute(pause.insert().values(channel=None, target="", until=datetime.now(UTC)))
    store.close()


def test_sqlite_keeps_its_promises_to_many_processes(tmp_path):
    store = open_store(f"sqlite:///{tmp_path / 'dq.db'}")

    with store.read() as tx:
        pragmas = [
            tx.exec_driver_sql(f"PRAGMA {name}").scalar_one()
            for name in ("journal_mode", "synchronous", "foreign_keys", "busy_timeout")
        ]

    assert pragmas == ["wal", 2, 1, 30_000]
    store.close()


INSTANTS = [
    datetime(2026, 5, 1, 8, tzinfo=UTC),
    datetime(2026, 11, 1, 1, 30, fold=0, tzinfo=ZoneInfo("America/New_York")),
    datetime(2026, 11, 1, 1, 30, fold=1, tzinfo=ZoneInfo("America/New_York")),
    datetime(2026, 5, 1, 8, 0, 0, 1, tzinfo=timezone(timedelta(hours=12, minutes=45))),
    datetime(1, 1, 2, tzinfo=UTC),
    datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
]


@pytest.fixture
def instants(url):
    table = Table("instants", MetaData(), Column("at", UtcDateTime), Column("what", Json))
    store = open_store(url)
    with store.write() as tx:
        table.create(tx)
    yield store, table
    store.close()


@pytest.mark.parametrize("instant", INSTANTS, ids=str)
def test_an_instant_comes_back_in_utc(instants, instant):
    store, table = instants

    with store.write() as tx:
        tx.execute(table.insert().values(at=instant))
        found = tx.execute(table.select()).one().at

    assert (found, found.tzinfo) == (instant.astimezone(UTC), UTC)


def test_instants_sort_in_the_order_of_time(instants):
    store, table = instants

    with store.write() as tx:
        tx.execute(table.insert(), [{"at": instant} for instant in INSTANTS])
        found = list(tx.execute(table.select().order_by(table.c.at)).scalars())

    assert found == sorted(instant.astimezone(UTC) for instant in INSTANTS)


def test_an_instant_without_a_zone_is_refused(instants):
    store, table = instants

    with pytest.raises(StatementError, match="has no zone"), store.write() as tx:
        tx.execute(table.insert().values(at=datetime(2026, 5, 1)))  # noqa: DTZ001  # the fault that is tested


def test_nothing_at_all_stays_null(instants):
    store, table = instants

    with store.write() as tx:
        tx.execute(table.insert().values(at=None, what=None))
        nulls = tx.execute(text("SELECT count(*) FROM instants WHERE at IS NULL AND what IS NULL"))

        assert nulls.scalar_one() == 1
        assert tuple(tx.execute(table.select()).one()) == (None, None)


def test_a_file_that_is_no_database_is_named(tmp_path):
    path = tmp_path / "orders.csv"
    path.write_text("id,price\n" * 1000)

    with pytest.raises(StoreError, match=r"orders.csv is not a SQLite database. Name another file"):
        open_store(f"sqlite:///{path}")


def test_a_damaged_file_is_named(tmp_path):
    path = tmp_path / "dq.db"
    open_store(f"sqlite:///{path}").close()
    pages = bytearray(path.read_bytes())
    pages[100:4096] = b"\xff" * 3996
    path.write_bytes(pages)

    with pytest.raises(StoreError, match=r"dq.db is damaged. Restore it from a backup"):
        open_store(f"sqlite:///{path}")


def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").touch()

    with pytest.raises(StoreError, match=r"folder .*file/deeper cannot be created: Not a directory"):
        open_store(f"sqlite:///{tmp_path / 'file' / 'deeper' / 'dq.db'}")


def test_a_path_that_is_a_folder_is_named(tmp_path):
    with pytest.raises(StoreError, match="cannot be opened"):
        open_store(f"sqlite:///{tmp_path}")


def test_a_store_that_is_locked_for_too_long_is_named(tmp_path):
    path = tmp_path / "dq.db"
    store = open_store(f"sqlite:///{path}?timeout=0")
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")

    with pytest.raises(StoreError, match="is locked by another process"), store.write():
        pytest.fail("the lock was not there")
    holder.close()
    store.close()


@pytest.mark.parametrize(
    ("url", "says"),
    [
        pytest.param("mysql://u:hunter2@host/db", "does not support 'mysql'", id="another database"),
        pytest.param("sqlite://", "has no file name", id="SQLite in memory"),
        pytest.param("hunter2", "URL is invalid", id="no URL"),
        pytest.param("postgresql://u@host:hunter2/db", "URL is invalid", id="a password for a port"),
        pytest.param("postgresql://u:hun@ter2@host/db", "Write %40", id="an at sign in the password"),
    ],
)
def test_a_url_that_cannot_be_used_is_refused_without_quoting_it(url, says):
    with pytest.raises(UsageError, match=says) as caught:
        open_store(url)

    assert "ter2" not in f"{caught.value} {caught.value.__cause__} {caught.value!r}"


def test_a_server_that_does_not_answer_is_named_without_the_password():
    with pytest.raises(StoreError) as caught:
        open_store("postgresql+psycopg://u:hunter2@127.0.0.1:1/db")

    assert str(caught.value) == (
        "The store db on 127.0.0.1:1 cannot be reached. "
        "Check the host and the port in DQ_STORE_URL, and that it is running."
    )


def test_a_wrong_password_is_named_without_quoting_it():
    with (
        postgres.new_database() as url,
        pytest.raises(StoreError, match="rejected the user or the password") as caught,
    ):
        open_store(url.replace(postgres.PASSWORD, "hunter2"))

    assert "hunter2" not in f"{caught.value} {caught.value.__cause__}"


def test_a_database_that_is_not_there_is_named():
    with (
        postgres.new_database() as url,
        pytest.raises(StoreError, match=r"The store nowhere on 127.0.0.1:\d+ does not exist. Create it"),
    ):
        open_store(url.rpartition("/")[0] + "/nowhere")


def test_without_psycopg_the_store_says_how_to_get_it():
    script = (
        "import sys; sys.modules['psycopg'] = None\n"
        "from dq.contracts.outcome import MissingTool\n"
        "from dq.store import open_store\n"
        "try: open_store('postgresql://u:hunter2@host/db')\n"
        "except MissingTool as error: print(error)"
    )

    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    assert re.fullmatch(
        r"PostgreSQL needs psycopg, which is not installed. pip install .*\[postgres\].*", said.stdout.strip()
    )
