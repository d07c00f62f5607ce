"""Opens the store, upgrades its schema, hands out transactions, and explains complaints of databases."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

import sqlalchemy as sa
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import ArgumentError, DBAPIError
from sqlalchemy.pool import ConnectionPoolEntry

from dq.contracts.install import install_command, upgrade_command
from dq.contracts.outcome import MissingTool, StoreError, UsageError
from dq.store import schema

# What a database's complaint means to the user: one table per database, and no password in any text.

_DEFAULT_MEND = "Check DQ_STORE_URL, and that the database answers."

# By name of SQLite's result code (sqlite.org/rescode.html), longest match first.
_SQLITE: tuple[tuple[str, str, str], ...] = (
    ("SQLITE_CANTOPEN", "cannot be opened", "Make its folder writable, or choose another in DQ_STORE_URL."),
    ("SQLITE_READONLY", "is read-only", "Make the file and its folder writable."),
    ("SQLITE_PERM", "may not be accessed", "Make the file and its folder writable."),
    (
        "SQLITE_NOTADB",
        "is not a SQLite database",
        "Name another file in DQ_STORE_URL.",
    ),
    ("SQLITE_CORRUPT", "is damaged", "Restore it from a backup, or move it away to start anew."),
    ("SQLITE_FULL", "has no room left on its disk", "Free some space."),
    ("SQLITE_IOERR", "cannot be read or written", "Keep it on a local disk, not on a network share."),
    ("SQLITE_BUSY", "is locked by another process", "Find who holds it; many writers want PostgreSQL."),
    ("SQLITE_LOCKED", "is locked by this process", "Close the other transaction first."),
)

# By SQLSTATE (postgresql.org/docs/current/errcodes-appendix.html), a class of two letters or a code of five.
_POSTGRES: tuple[tuple[str, str, str], ...] = (
    ("28", "refused the user or the password", "Check the user and the password in DQ_STORE_URL."),
    ("3D000", "does not exist", "Create it: createdb NAME."),
    ("55P03", "is locked by another process", "Find who holds it in pg_stat_activity."),
    ("25P03", "ended a transaction that stood idle for too long", "Run the command again."),
    ("42501", "denied a permission", "Grant the user CREATE and USAGE on the schema."),
    ("25006", "is read-only", "Name the primary in DQ_STORE_URL, not a replica."),
    ("53", "is out of room or connections", "Free some, or raise max_connections."),
    ("57", "is shutting down or starting", "Try again when it is up."),
)
_UNREACHABLE = ("cannot be reached", "Check the host and the port in DQ_STORE_URL, and that it is running.")


def place(url: sa.URL) -> str:
    """The store's name in messages: its file, or host, port and database; never the user or the password."""
    if url.get_backend_name() == "sqlite":
        return f"The store {url.database}"
    port = f":{url.port}" if url.port else ""
    return f"The store {url.database or 'of the user'} on {url.host or 'the local socket'}{port}"


def address(url: sa.URL) -> str:
    """The store's URL as it may be shown: without the password, and without its query, which may hold one."""
    return url.set(query={}).render_as_string(hide_password=True)


def explain(error: DBAPIError, url: sa.URL) -> StoreError:
    """The StoreError to raise from `error`: the database's own words are left out, they may quote the URL."""
    what, mend = _look_up(error)
    return StoreError(f"{place(url)} {what}.", mend)


def is_failure_of_the_world(error: DBAPIError) -> bool:
    """Whether the database, and not our SQL or a broken constraint, is to blame."""
    if error.connection_invalidated:
        return True
    code = code_of(error)
    return code is None or _meaning(code) is not None


def code_of(error: DBAPIError) -> str | None:
    """SQLite's result name or PostgreSQL's SQLSTATE; None when the server never answered."""
    name = getattr(error.orig, "sqlite_errorname", None)
    return name if name is not None else getattr(error.orig, "sqlstate", None)


def _look_up(error: DBAPIError) -> tuple[str, str]:
    code = code_of(error)
    if code is None:
        # libpq gives no SQLSTATE for what happens before the session stands, only the server's words.
        words = str(error.orig)
        for words_of_libpq, state in (
            ("password authentication failed", "28"),
            ("no password supplied", "28"),
            ("does not exist", "3D000"),
        ):
            if words_of_libpq in words:
                return _meaning(state) or _UNREACHABLE
        return _UNREACHABLE
    return _meaning(code) or (f"answered with error {code}", _DEFAULT_MEND)


def _meaning(code: str) -> tuple[str, str] | None:
    """What a result name or SQLSTATE says of the store, and how to mend it; None for one not listed."""
    table = _SQLITE if code.startswith("SQLITE_") else _POSTGRES
    return next(((what, mend) for prefix, what, mend in table if code.startswith(prefix)), None)


# The schema version of a database, the newest one, creation of a new schema and upgrades of an older one.

# Not a path: spark-submit's --py-files puts dq on the search path as it is, in its wheel.
MIGRATIONS = files("dq.store.migrations")
# Alembic keeps the migration that runs in globals of the process: two at once, of two stores, would mix.
_MIGRATING = threading.Lock()
# As Alembic makes it. Importing Alembic takes longer than creating all tables.
_VERSION = sa.Table(
    "alembic_version",
    sa.MetaData(),
    sa.Column("version_num", sa.String(32), nullable=False),
    sa.PrimaryKeyConstraint("version_num", name="alembic_version_pkc"),
)


@cache
def head() -> str:
    """The newest schema this dq knows."""
    return _known()[-1]


def _known() -> list[str]:
    """All schemas in order, read off the files' names: '0041_first_release.py' is version '0041'."""
    names = (file.name for file in (MIGRATIONS / "versions").iterdir())
    return sorted(name[:4] for name in names if re.fullmatch(r"\d{4}_\w+\.py", name))


@contextmanager
def _folder(place: Traversable) -> Iterator[Path]:
    """A folder that Alembic can read: the place itself, or a copy of it where it lies in an archive."""
    if isinstance(place, Path):
        yield place
        return
    with TemporaryDirectory(prefix="dq-") as copy:
        _copied(place, Path(copy))
        yield Path(copy)


def _copied(place: Traversable, to: Path) -> None:
    for one in place.iterdir():
        if one.is_dir():
            (to / one.name).mkdir()
            _copied(one, to / one.name)
        else:
            (to / one.name).write_bytes(one.read_bytes())


def read(connection: sa.Connection) -> str | None:
    """The version of the database, in one SELECT; fails where no store was ever made."""
    return connection.execute(sa.text("SELECT version_num FROM alembic_version")).scalar_one_or_none()


def current(connection: sa.Connection) -> str | None:
    """The version of the database; None where no store was ever made."""
    return read(connection) if sa.inspect(connection).has_table("alembic_version") else None


def is_older(found: str | None) -> bool:
    """Whether a database of version `found` needs a migration."""
    return found is None or found < head()


def is_unreleased(found: str | None) -> bool:
    """Whether a development version has written it, before the first release: no migration starts there."""
    return found is not None and found < _known()[0]


def is_newer(found: str | None) -> bool:
    """Whether a later dq has written it."""
    return found is not None and found > head()


def upgrade(connection: sa.Connection) -> None:
    """Bring the schema to head inside the open transaction: all of it or nothing.

    A new database gets the tables as they are declared, an older one the migrations that it lacks.
    """
    if current(connection) is None:
        # Tables of the same name that are not ours must not be taken for ours.
        schema.declared().create_all(connection, checkfirst=False)
        _VERSION.create(connection, checkfirst=False)
        connection.execute(_VERSION.insert().values(version_num=head()))
    else:
        migrate(connection)


def migrate(connection: sa.Connection) -> None:
    """Run the migrations that the database lacks, inside the open transaction."""
    # Slow to import, and hardly ever needed.
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.attributes["connection"] = connection
    with _folder(MIGRATIONS) as folder:
        # The option is a template in which a percent sign must be doubled.
        config.set_main_option("script_location", str(folder).replace("%", "%%"))
        with _MIGRATING:
            command.upgrade(config, "head")


# Opens the store, brings its schema up to date, and hands out transactions.

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

    engine: sa.Engine

    @contextmanager
    def write(self) -> Iterator[sa.Connection]:
        """A transaction that is committed at the end of the block, and rolled back if the block raises.

        Waits up to LOCK_SECONDS for other writers. Raises StoreError when the database fails.
        """
        with _explained(self.engine.url), _connected(self.engine) as connection:
            connection.execution_options(dq_write=True)
            with connection.begin():
                yield connection

    @contextmanager
    def read(self) -> Iterator[sa.Connection]:
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
    with _closed_on_failure(_unopened(url)) as store:
        if _is_older(store):
            # Under the write lock, because many processes may get here at once: the second finds it done.
            with store.write() as connection:
                if is_older(current(connection)):
                    upgrade(connection)
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
    with _closed_on_failure(_unopened(url)) as store:
        if _is_older(store):
            raise StoreError(
                f"{place(store.engine.url)} has schema {found}, and this dq wants {head()}.",
                "Let the watcher's machine upgrade it: dq store upgrade",
            )
    return store


@contextmanager
def _closed_on_failure(store: Store) -> Iterator[Store]:
    try:
        yield store
    except BaseException:
        store.close()
        raise


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
            return current(connection)
    finally:
        store.close()


def _unopened(url: str) -> Store:
    parsed = parse(url)
    return Store(_sqlite(parsed) if parsed.get_backend_name() == "sqlite" else _postgres(parsed))


def _is_older(store: Store) -> bool:
    with store.read() as connection:
        try:
            found = read(connection)
        except DBAPIError as error:
            # No table of versions yet, which is a new database; anything else fails again under the lock.
            if is_failure_of_the_world(error):
                raise
            return True
    if is_newer(found):
        raise StoreError(
            f"{place(store.engine.url)} has schema {found}, and this dq knows up to {head()}.",
            f"Upgrade dq on this machine: {upgrade_command()}",
        )
    if is_unreleased(found):
        raise StoreError(
            f"{place(store.engine.url)} has schema {found} of a dq that was never released.",
            "Name a new file or database in DQ_STORE_URL, or move this one away: dq makes a new one, "
            "in which incidents, deliveries and counts start afresh.",
        )
    return is_older(found)


def parse(url: str) -> sa.URL:
    """The URL's parts. Raises UsageError, which quotes nothing of it, where a part could be another one."""
    try:
        parsed = sa.make_url(url)
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


def _sqlite(url: sa.URL) -> sa.Engine:
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
    engine = sa.create_engine(url, connect_args={"isolation_level": None, **waits})

    @sa.event.listens_for(engine, "connect")
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

    @sa.event.listens_for(engine, "begin")
    def begin(connection: sa.Connection) -> None:
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


def _postgres(url: sa.URL) -> sa.Engine:
    if find_spec("psycopg") is None:
        raise MissingTool("PostgreSQL needs psycopg, which is not installed.", install_command("postgres"))
    engine = sa.create_engine(url, pool_pre_ping=True, connect_args={"connect_timeout": 10})

    @sa.event.listens_for(engine, "begin")
    def begin(connection: sa.Connection) -> None:
        if not connection.get_execution_options().get("dq_write", False):
            connection.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            return
        # A writer that hangs must not hold up all others for ever.
        connection.exec_driver_sql(f"SET LOCAL lock_timeout = '{LOCK_SECONDS}s'")
        connection.exec_driver_sql("SET LOCAL idle_in_transaction_session_timeout = '120s'")
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_WRITE_LOCK})")

    return engine


def _connected(engine: sa.Engine) -> sa.Connection:
    try:
        return engine.connect()
    except (TypeError, ValueError):
        # What the driver says of a setting that it does not take, it says with the setting.
        raise UsageError(f"{place(engine.url)}: a setting in its URL is not understood.", _FORMS) from None


@contextmanager
def _explained(url: sa.URL) -> Iterator[None]:
    try:
        yield
    except DBAPIError as error:
        if not is_failure_of_the_world(error):
            raise
        # What libpq says before a session stands may quote the URL, and would be shown with its cause.
        raise explain(error, url) from (error if code_of(error) else None)
