"""A real PostgreSQL on the loopback for the tests, started once per run and thrown away after it."""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from fakes.ports import free_port

from dq.store import open_store

if TYPE_CHECKING:
    import psycopg

PASSWORD = "the-secret-of-the-tests"
_names = count(1)


@contextmanager
def new_database() -> Iterator[str]:
    """The URL of an empty database, dropped after use; skips without PostgreSQL, and fails in CI."""
    port, name = _port(), f"dq_{next(_names)}"
    with _administrator(port) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    yield _url(port, name)
    # Anew: a restart of the server has ended every connection.
    with _administrator(port) as connection:
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


@dataclass(frozen=True)
class _Free:
    """A database that waits for the next test, as its first test found it, and who looks after it."""

    name: str
    shape: list[tuple[str, ...]]
    connection: psycopg.Connection


_free: list[_Free] = []


@contextmanager
def new_store() -> Iterator[str]:
    """The URL of a store in which nothing stands yet; else as `new_database`, in a tenth of its time.

    After use everybody is sent away and what was written is taken out: the next test gets its tables.
    """
    port = _port()
    import psycopg

    free = _free.pop() if _free else _made(port)
    yield _url(port, free.name)
    try:
        found = _shape(free.connection)
    except psycopg.OperationalError:
        # A restart of the server has ended it.
        free = replace(free, connection=_administrator(port, free.name))
        found = _shape(free.connection)
    # A test that took a table away, or said that it is of another version, leaves none to others.
    if found == free.shape:
        _empty(free.connection, found)
        _free.append(free)


def _made(port: int) -> _Free:
    name = f"dq_{next(_names)}"
    with _administrator(port) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    open_store(_url(port, name)).close()
    kept = _administrator(port, name)
    return _Free(name, _shape(kept), kept)


def _shape(connection: psycopg.Connection) -> list[tuple[str, ...]]:
    return connection.execute(
        "SELECT version_num, '' FROM alembic_version UNION ALL (SELECT relname, attname FROM pg_attribute"
        " JOIN pg_class ON pg_class.oid = attrelid WHERE relnamespace = 'public'::regnamespace"
        " AND relkind = 'r' AND attnum > 0 AND NOT attisdropped AND relname <> 'alembic_version'"
        " ORDER BY attrelid, attnum)"
    ).fetchall()


def _empty(connection: psycopg.Connection, shape: list[tuple[str, ...]]) -> None:
    connection.execute(
        "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity"
        " WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )
    tables = sorted({table for table, column in shape if column})
    written = connection.execute(
        " UNION ALL ".join(f"SELECT EXISTS (SELECT FROM {table})" for table in tables)  # noqa: S608  # our own names
    )
    full = [table for table, (has_rows,) in zip(tables, written, strict=True) if has_rows]
    if full:
        # TRUNCATE makes new files for each table, in ten times the time. A replica checks no keys.
        deletes = "; ".join(f"DELETE FROM {table}" for table in full)  # noqa: S608  # our own names
        connection.execute(
            f"SET session_replication_role = replica; {deletes}; RESET session_replication_role"
        )
    # Also where all was rolled back or deleted.
    connection.execute(
        "SELECT setval(format('%I', sequencename)::regclass, 1, false)"
        " FROM pg_sequences WHERE last_value IS NOT NULL"
    )


def _administrator(port: int, name: str = "postgres") -> psycopg.Connection:
    import psycopg

    address = f"host=127.0.0.1 port={port} user=dq password={PASSWORD} dbname={name}"
    return psycopg.connect(address, autocommit=True)


def _url(port: int, name: str) -> str:
    return f"postgresql+psycopg://dq:{PASSWORD}@127.0.0.1:{port}/{name}"


def _port() -> int:
    """Where the server of this run listens; it is started by the first who asks."""
    binaries = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if not binaries:
        reason = "PostgreSQL is not installed: apt-get install postgresql"
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(reason)
    return _start(binaries[-1].parent)


def restart() -> None:
    """Restarts the server of this run, as an administrator would who does not wait for anybody."""
    _restarts[0]()


_restarts: list[Callable[[], None]] = []


@cache
def _start(binaries: Path) -> int:
    folder = Path(tempfile.mkdtemp(prefix="dq-postgres-"))
    # PostgreSQL does not run as root.
    user = "nobody" if os.geteuid() == 0 else None
    (folder / "password").write_text(PASSWORD)
    if user:
        for path in (folder, folder / "password"):
            shutil.chown(path, user)
    data = str(folder / "data")
    # Not by SCRAM: its thousands of rounds are most of what a connection takes, and thousands are made.
    initdb = ["-D", data, "-U", "dq", "--auth=md5", f"--pwfile={folder / 'password'}", "-E", "UTF8"]
    _run([str(binaries / "initdb"), *initdb, "--no-sync"], folder, user)
    port = free_port()
    options = f"-p {port} -k {folder} -c listen_addresses=127.0.0.1 -c fsync=off -c max_connections=120"
    # A database is made for each test: their log alone would grow to a gigabyte.
    options += " -c wal_level=minimal -c max_wal_senders=0 -c max_wal_size=64MB"
    control = [str(binaries / "pg_ctl"), "-D", data]
    _run([*control, "-w", "-l", str(folder / "log"), "-o", options, "start"], folder, user)

    # Not waited for in vain: the same port, the same settings.
    again = [*control, "-w", "-l", str(folder / "log"), "-o", options, "-m", "fast", "restart"]
    _restarts[:] = [lambda: _run(again, folder, user)]

    def stop() -> None:
        _run([*control, "-m", "immediate", "stop"], folder, user)
        shutil.rmtree(folder, ignore_errors=True)

    atexit.register(stop)
    return port


def _run(command: list[str], folder: Path, user: str | None) -> None:
    # Not captured through a pipe: the server that pg_ctl starts would keep it open.
    with (folder / "output").open("a") as output:
        subprocess.run(command, cwd=folder, check=True, stdout=output, stderr=output, user=user)
