"""Opens the store, brings its schema up to date, and hands out transactions."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import ArgumentError, DBAPIError
from sqlalchemy.pool import ConnectionPoolEntry

from dq.contracts.shared.install import install_command, upgrade_command
from dq.contracts.shared.outcome import MissingTool, StoreError, UsageError
from dq.store import version
from dq.store.errors import code_of, explain, is_failure_of_the_world, place

LOCK_SECONDS = 30
"""How long a writer waits for the one before it."""

# Any number does, as long as no other program in the same database takes it too: "dq" and "st".
_WRITE_LOCK = 0x64710000_7374

_FORMS = "Write sqlite:///path/to/file.db or postgresql+psycopg://user@host/database."


@dataclass(frozen=True, slots=True)
class Store:
    """The state database. Thread-safe; every transaction has its own connection.

    There is one writer at a time, on SQLite and on PostgreSQL alike. So nobody can deadlock, and who
    reads in a write transaction decides on what is true. Keep write transactions short: no network inside.
    """

    engine: Engine

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """A transaction that is committed at the end of the block, and rolled back if the block raises.

        Waits up to LOCK_SECONDS for other writers. Raises StoreError when the database fails.
        """
        with _explained(self.engine.url), _connected(self.engine) as connection:
            connection.execution_options(dq_write=True)
            with connection.begin():
                yield connection

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A snapshot: all reads of the block see one state. Raises StoreError when the database fails."""
        with _explained(self.engine.url), _connected(self.engine) as connection, connection.begin():
            yield connection

    def close(self) -> None:
        """Give all connections back; the store can still be used, it then opens new ones."""
        self.engine.dispose()


def open_store(url: str) -> Store:
    """The store at `url`, with its schema at the version of this dq; missing folders and tables are made.

    `url` is `sqlite:///path` (relative) or `sqlite:////path` (absolute), or `postgresql+psycopg://…`.
    Raises UsageError for another form, MissingTool without psycopg, StoreError when the database cannot be
    used or was written by a newer dq or an unreleased one. No message holds the password.
    """
    store = _unopened(url)
    try:
        if _is_older(store):
            # Under the write lock, because many processes may get here at once: the second finds it done.
            with store.write() as connection:
                if version.is_older(version.current(connection)):
                    version.upgrade(connection)
    except BaseException:
        store.close()
        raise
    return store


def open_as_it_is(url: str) -> Store:
    """The store at `url` for reading alone: nothing is made and no schema is changed.

    Raises StoreError where there is none or its schema is not that of this dq, and else as `open_store`.
    """
    found = found_version(url)
    if found is None:
        raise StoreError(
            f"{place(parse(url))} does not exist.", "'dq watch' makes it; DQ_STORE_URL names another."
        )
    store = _unopened(url)
    try:
        if _is_older(store):
            raise StoreError(
                f"{place(store.engine.url)} has schema {found}, and this dq wants {version.head()}.",
                "Let the watcher's machine upgrade it: dq store upgrade",
            )
    except BaseException:
        store.close()
        raise
    return store


def found_version(url: str) -> str | None:
    """The schema of the store at `url` as it is; None where there is none. Nothing is made or changed.

    Raises as `open_store`.
    """
    parsed = parse(url)
    if parsed.get_backend_name() == "sqlite" and not Path(str(parsed.database)).exists():
        return None
    store = _unopened(url)
    try:
        with store.read() as connection:
            return version.current(connection)
    finally:
        store.close()


def _unopened(url: str) -> Store:
    parsed = parse(url)
    return Store(_sqlite(parsed) if parsed.get_backend_name() == "sqlite" else _postgres(parsed))


def _is_older(store: Store) -> bool:
    with store.read() as connection:
        try:
            found = version.read(connection)
        except DBAPIError as error:
            # No table of versions yet, which is a new database; anything else fails again under the lock.
            if is_failure_of_the_world(error):
                raise
            return True
    if version.is_newer(found):
        raise StoreError(
            f"{place(store.engine.url)} has schema {found}, and this dq knows up to {version.head()}.",
            f"Upgrade dq on this machine: {upgrade_command()}",
        )
    if version.is_unreleased(found):
        raise StoreError(
            f"{place(store.engine.url)} has schema {found} of a dq that was never released.",
            "Name a new file or database in DQ_STORE_URL, or move this one away: dq makes a new one, "
            "in which incidents, deliveries and counts start afresh.",
        )
    return version.is_older(found)


def parse(url: str) -> URL:
    """The URL's parts. Raises UsageError, which quotes nothing of it, where a part could be another one."""
    try:
        parsed = make_url(url)
        url.encode()
    except (ArgumentError, ValueError):
        # Not chained: the text of the cause may hold the password.
        raise UsageError("The store's URL cannot be understood.", _FORMS) from None
    named = parsed.username is not None or parsed.password is not None
    # With another '@' than the one before the host, a part of the password is taken for host or database.
    if parsed.drivername != "sqlite" and url.count("@") != named:
        raise UsageError(
            "The store's URL has an '@' too many.",
            "Write %40 for an '@' in the user or the password, %2F for '/'.",
        )
    if parsed.drivername == "postgresql":
        parsed = parsed.set(drivername="postgresql+psycopg")
    if parsed.drivername not in ("sqlite", "postgresql+psycopg"):
        raise UsageError(f"The store cannot be kept in {parsed.drivername!r}.", _FORMS)
    if parsed.drivername == "sqlite" and (
        parsed.database in (None, "", ":memory:") or named or parsed.host or parsed.port
    ):
        raise UsageError("The store's URL names no file.", _FORMS)
    try:
        parsed.get_dialect()().create_connect_args(parsed)
    except (ArgumentError, ValueError, TypeError):
        raise UsageError("The store's URL has settings that cannot be understood.", _FORMS) from None
    return parsed


def _sqlite(url: URL) -> Engine:
    folder = Path(str(url.database)).parent
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(
            f"The store's folder {folder} cannot be made: {error.strerror}.",
            "Make its parent writable, or choose another in DQ_STORE_URL.",
        ) from error
    _make_private(str(url.database))
    # isolation_level None keeps the driver from starting transactions of its own, which it does too late.
    waits = {} if "timeout" in url.query else {"timeout": LOCK_SECONDS}
    engine = create_engine(url, connect_args={"isolation_level": None, **waits})

    @event.listens_for(engine, "connect")
    def prepare(connection: DBAPIConnection, _: ConnectionPoolEntry) -> None:
        cursor = connection.cursor()
        cursor.execute("PRAGMA foreign_keys = ON")
        # WAL lets readers read while one writes. `synchronous` stays FULL: a commit survives a power cut.
        try:
            cursor.execute("PRAGMA journal_mode = WAL")
        except engine.dialect.loaded_dbapi.OperationalError as error:
            # SQLite does not wait for this lock. Whoever holds it is switching to WAL or will do it later.
            if getattr(error, "sqlite_errorname", "") != "SQLITE_BUSY":
                raise
        cursor.close()

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        # A transaction that starts by reading cannot become a writer once another has written.
        writes = connection.get_execution_options().get("dq_write", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine


def _make_private(file: str) -> None:
    """A new database is for this user only; SQLite gives its other files the permissions of the first."""
    # A name that is a URI is SQLite's to read. What cannot be made here, SQLite explains better.
    if not file.startswith("file:"):
        with suppress(OSError):
            os.close(os.open(file, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))


def _postgres(url: URL) -> Engine:
    if find_spec("psycopg") is None:
        raise MissingTool("PostgreSQL needs psycopg, which is not installed.", install_command("postgres"))
    engine = create_engine(url, pool_pre_ping=True, connect_args={"connect_timeout": 10})

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        if not connection.get_execution_options().get("dq_write", False):
            connection.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            return
        # A writer that hangs must not hold up all others for ever.
        connection.exec_driver_sql(f"SET LOCAL lock_timeout = '{LOCK_SECONDS}s'")
        connection.exec_driver_sql("SET LOCAL idle_in_transaction_session_timeout = '120s'")
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_WRITE_LOCK})")

    return engine


def _connected(engine: Engine) -> Connection:
    try:
        return engine.connect()
    except (TypeError, ValueError):
        # What the driver says of a setting that it does not take, it says with the setting.
        raise UsageError(f"{place(engine.url)}: a setting in its URL is not understood.", _FORMS) from None


@contextmanager
def _explained(url: URL) -> Iterator[None]:
    try:
        yield
    except DBAPIError as error:
        if not is_failure_of_the_world(error):
            raise
        # What libpq says before a session stands may quote the URL, and would be shown with its cause.
        raise explain(error, url) from (error if code_of(error) else None)
