"""A real PostgreSQL on the loopback for the tests, started once per run and thrown away after it."""

from __future__ import annotations

import atexit
import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from itertools import count
from pathlib import Path

import pytest

PASSWORD = "the-secret-of-the-tests"
_names = count(1)


@contextmanager
def new_database() -> Iterator[str]:
    """The URL of an empty database, dropped after use; skips without PostgreSQL, and fails in CI."""
    binaries = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if not binaries:
        reason = "PostgreSQL is not installed: apt-get install postgresql"
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(reason)
    port = _start(binaries[-1].parent)
    import psycopg

    name = f"dq_{next(_names)}"
    address = f"host=127.0.0.1 port={port} user=dq password={PASSWORD} dbname=postgres"
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    yield f"postgresql+psycopg://dq:{PASSWORD}@127.0.0.1:{port}/{name}"
    # Anew: a restart of the server has ended every connection.
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


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
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    data = str(folder / "data")
    initdb = ["-D", data, "-U", "dq", "--auth=scram-sha-256", f"--pwfile={folder / 'password'}", "-E", "UTF8"]
    _run([str(binaries / "initdb"), *initdb, "--no-sync"], folder, user)
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
