"""dq store copy: every row of every table arrives, on either database, or nothing is written."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest
from fakes.command import BEGIN, MISSED, Place, contract
from fakes.postgres import new_database
from sqlalchemy import BigInteger, Boolean, Column, Float, Integer, LargeBinary, String, Table, text
from sqlalchemy.engine import Connection

from dq.contracts.outcome import DqError, StoreError
from dq.dataquality.delivery.tables import past_tick
from dq.store import engine, open_store
from dq.store.copying import copy_store
from dq.store.schema import UtcDateTime, complete_metadata

ROWS = 4


@pytest.fixture(params=["sqlite", "postgres"])
def target(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A database without tables, of each kind; a folder that does not exist yet."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'new' / 'copy.db'}"
        return
    with new_database() as address:
        yield address


def value(table: Table, column: Column[object], number: int) -> object:
    """A value of the column's type, different in each row; None where a row may have none."""
    if column.foreign_keys:
        [key] = column.foreign_keys
        return value(key.column.table, key.column, number)
    if column.nullable and number % 2:
        return None
    kind = column.type
    if isinstance(kind, UtcDateTime):
        return datetime.fromtimestamp(1_700_000_000 + number, UTC).replace(microsecond=number)
    if isinstance(kind, Boolean):
        return bool(number % 3)
    if isinstance(kind, BigInteger):
        return 2**62 + number
    if isinstance(kind, Integer):
        return number + 7
    if isinstance(kind, Float):
        return number / 3
    if isinstance(kind, LargeBinary):
        return bytes([number % 256, 0])
    if isinstance(kind, String):
        return f"é{number}"
    return [["b", number], ["a", None]]


def fill(url: str) -> None:
    with closing(open_store(url)) as store, store.write() as tx:
        for table in complete_metadata().sorted_tables:
            tx.execute(
                table.insert(),
                [{column.key: value(table, column, number) for column in table.c} for number in range(ROWS)],
            )


def rows(tx: Connection) -> dict[str, list[tuple[object, ...]]]:
    return {
        table.name: sorted((tuple(row) for row in tx.execute(table.select())), key=repr)
        for table in complete_metadata().sorted_tables
    }


def content(url: str) -> dict[str, list[tuple[object, ...]]]:
    with closing(engine.open_without_migrating(url)) as store, store.read() as tx:
        return rows(tx)


def test_every_row_of_every_table_is_copied(url: str, target: str) -> None:
    fill(url)
    before = content(url)

    copied = copy_store(url, target)

    assert copied == dict.fromkeys((table.name for table in complete_metadata().sorted_tables), ROWS)
    assert content(target) == before == content(url)
    with closing(open_store(target)) as store, store.write() as tx:
        number = tx.execute(
            past_tick.insert().values(name="watch", at=datetime.now(UTC))
        ).inserted_primary_key
    assert number is not None
    # Numbers of new rows follow those of the copied rows.
    assert tuple(number) == (ROWS - 1 + 7 + 1,)


def test_more_rows_than_are_read_at_once_are_copied(url: str, target: str) -> None:
    ticks = [{"name": "watch", "at": datetime.fromtimestamp(number, UTC)} for number in range(2500)]
    with closing(open_store(url)) as store, store.write() as tx:
        tx.execute(past_tick.insert(), ticks)

    assert copy_store(url, target)["past_tick"] == 2500

    assert content(target) == content(url)


def test_an_empty_store_is_copied_and_numbers_begin_at_one(url: str, target: str) -> None:
    open_store(url).close()

    assert set(copy_store(url, target).values()) == {0}

    with closing(open_store(target)) as store, store.write() as tx:
        number = tx.execute(
            past_tick.insert().values(name="watch", at=datetime.now(UTC))
        ).inserted_primary_key
    assert number is not None
    assert tuple(number) == (1,)


def test_a_target_with_rows_is_refused(url: str, target: str) -> None:
    fill(url)
    copy_store(url, target)
    before = content(target)

    with pytest.raises(StoreError, match=r"^The store .* is not empty: its table \w+ has rows\."):
        copy_store(url, target)

    assert content(target) == before


def test_a_target_of_another_schema_is_refused(url: str, target: str) -> None:
    open_store(url).close()
    with closing(open_store(target)) as store, store.write() as tx:
        tx.execute(text("UPDATE alembic_version SET version_num = '9999'"))

    with pytest.raises(StoreError, match=r"has schema 9999, but this dq requires"):
        copy_store(url, target)


def test_a_source_of_a_newer_dq_is_refused_and_nothing_is_created(url: str, target: str) -> None:
    with closing(open_store(url)) as store, store.write() as tx:
        tx.execute(text("UPDATE alembic_version SET version_num = '9999'"))

    with pytest.raises(StoreError, match=r"has schema 9999, but this dq supports up to"):
        copy_store(url, target)

    assert engine.stored_version(target) is None


def test_a_source_that_does_not_exist_is_refused_and_not_created(tmp_path: Path, target: str) -> None:
    with pytest.raises(StoreError, match=r"missing\.db does not exist\."):
        copy_store(f"sqlite:///{tmp_path}/missing.db", target)

    assert not (tmp_path / "missing.db").exists()
    assert engine.stored_version(target) is None


def test_a_row_that_the_target_rejects_leaves_it_empty(tmp_path: Path) -> None:
    source = f"sqlite:///{tmp_path}/dq.db"
    with closing(open_store(source)) as store, store.write() as tx:
        tx.execute(past_tick.insert().values(name="longer than 16 characters", at=datetime.now(UTC)))

    with new_database() as target:
        with pytest.raises(StoreError, match=r"rejects a row of the table past_tick; nothing was copied"):
            copy_store(source, target)
        assert engine.stored_version(target) is None


def test_the_password_is_in_no_message(tmp_path: Path) -> None:
    open_store(f"sqlite:///{tmp_path}/dq.db").close()
    with pytest.raises(DqError) as caught:
        copy_store(f"sqlite:///{tmp_path}/dq.db", "postgresql://dq:hunt3rsw0rd@127.0.0.1:1/dq")

    assert "hunt3rsw0rd" not in f"{caught.value.message} {caught.value.hint}"


def test_the_command_moves_a_watcher_to_postgresql(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = Place(tmp_path)
    place.put("registry/orders.odcs.yaml", contract("orders"))
    for at in (BEGIN, MISSED):
        place.dq("watch", "registry", "--as-of", at, "--channel", "console")
    before = place.dq("status", "registry", "--as-of", MISSED, "--format", "json").json

    with new_database() as target:
        ran = place.dq("store", "copy", "sqlite:///.dq/store.db", target)
        assert ran.code == 0, ran.all
        assert "  incident: 1 row\n" in ran.out
        assert ran.out.splitlines()[-1].startswith("copied: ")

        monkeypatch.setenv("DQ_STORE_URL", target)
        assert place.dq("status", "registry", "--as-of", MISSED, "--format", "json").json == before
        # The delivery was reported from the old store.
        assert place.dq("watch", "registry", "--as-of", MISSED, "--channel", "console").code == 0
        assert place.dq("store", "copy", "sqlite:///.dq/store.db", target).code == 3
