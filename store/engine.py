"""The state store: opening, schema upgrades, transactions and explanations of database errors."""

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

# Database errors in the user's terms: one table per database. No text contains a password.

_DEFAULT_HINT = "Check DQ_STORE_URL, and that the database answers."

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
    ("SQLITE_CORRUPT", "is damaged", "Restore it from a backup, or move it away to start with a new one."),
    ("SQLITE_FULL", "is on a full disk", "Free some space."),
    ("SQLITE_IOERR", "cannot be read or written", "Keep it on a local disk, not on a network share."),
    (
        "SQLITE_BUSY",
        "is locked by another process",
        "Find the process that holds it; use PostgreSQL for many writers.",
    ),
    ("SQLITE_LOCKED", "is locked by this process", "Close the other transaction first."),
)

# By SQLSTATE (postgresql.org/docs/current/errcodes-appendix.html), a class of two letters or a code of five.
_POSTGRES: tuple[tuple[str, str, str], ...] = (
    ("28", "rejected the user or the password", "Check the user and the password in DQ_STORE_URL."),
    ("3D000", "does not exist", "Create it: createdb NAME."),
    ("55P03", "is locked by another process", "Find the session that holds the lock in pg_stat_activity."),
    ("25P03", "ended a transaction that was idle for too long", "Run the command again."),
    ("42501", "denied a permission", "Grant the user CREATE and USAGE on the schema."),
    ("25006", "is read-only", "Name the primary in DQ_STORE_URL, not a replica."),
    ("53", "is out of space or connections", "Free some, or raise max_connections."),
    ("57", "is shutting down or starting", "Try again when it is up."),
)
_UNREACHABLE = ("cannot be reached", "Check the host and the port in DQ_STORE_URL, and that it is running.")


def store_name(url: sa.URL) -> str:
    """Return the store's name for messages: its file, or host, port and database; never user or password."""
    if url.get_backend_name() == "sqlite":
        return f"The store {url.database}"
    port = f":{url.port}" if url.port else ""
    return f"The store {url.database or 'of the user'} on {url.host or 'the local socket'}{port}"


def redacted_url(url: sa.URL) -> str:
    """Return the store's URL without its password and without its query, which may contain one."""
    return url.set(query={}).render_as_string(hide_password=True)


def explain(error: DBAPIError, url: sa.URL) -> StoreError:
    """Return the StoreError to raise from `error`, without the database's message, which may quote the
    URL.
    """
    problem, hint = _problem_and_hint(error)
    return StoreError(f"{store_name(url)} {problem}.", hint)


def is_environment_error(error: DBAPIError) -> bool:
    """True if the database environment failed, not our SQL or a constraint."""
    if error.connection_invalidated:
        return True
    code = error_code(error)
    return code is None or _explanation(code) is not None


def error_code(error: DBAPIError) -> str | None:
    """Return SQLite's result name or PostgreSQL's SQLSTATE, or None if the server never answered."""
    name = getattr(error.orig, "sqlite_errorname", None)
    return name if name is not None else getattr(error.orig, "sqlstate", None)


def _problem_and_hint(error: DBAPIError) -> tuple[str, str]:
    code = error_code(error)
    if code is None:
        # libpq gives no SQLSTATE for errors before the session is established, only the server's message.
        message = str(error.orig)
        for libpq_text, sqlstate in (
            ("password authentication failed", "28"),
            ("no password supplied", "28"),
            ("does not exist", "3D000"),
        ):
            if libpq_text in message:
                return _explanation(sqlstate) or _UNREACHABLE
        return _UNREACHABLE
    return _explanation(code) or (f"answered with error {code}", _DEFAULT_HINT)


def _explanation(code: str) -> tuple[str, str] | None:
    """Return the problem and hint for a result name or SQLSTATE, or None if it is not listed."""
    table = _SQLITE if code.startswith("SQLITE_") else _POSTGRES
    return next(((problem, hint) for prefix, problem, hint in table if code.startswith(prefix)), None)


# Schema versions: the database's own, the newest, creation of a new schema and upgrades of an older one.

# Not a path: with spark-submit's --py-files, dq is imported from inside its wheel.
MIGRATIONS = files("dq.store.migrations")
# Alembic keeps the running migration in process globals: concurrent migrations of two stores would mix.
_MIGRATING = threading.Lock()
# Same definition as Alembic's. Importing Alembic takes longer than creating all tables.
_VERSION = sa.Table(
    "alembic_version",
    sa.MetaData(),
    sa.Column("version_num", sa.String(32), nullable=False),
    sa.PrimaryKeyConstraint("version_num", name="alembic_version_pkc"),
)


@cache
def head() -> str:
    """Return the newest schema version this dq knows."""
    return _known_versions()[-1]


def _known_versions() -> list[str]:
    """Return all schema versions in order, from the file names: '0041_first_release.py' is '0041'."""
    names = (file.name for file in (MIGRATIONS / "versions").iterdir())
    return sorted(name[:4] for name in names if re.fullmatch(r"\d{4}_\w+\.py", name))


@contextmanager
def _local_folder(directory: Traversable) -> Iterator[Path]:
    """Yield a folder that Alembic can read: `directory` itself, or a copy if it is inside an archive."""
    if isinstance(directory, Path):
        yield directory
        return
    with TemporaryDirectory(prefix="dq-") as copy:
        _copy_folder(directory, Path(copy))
        yield Path(copy)


def _copy_folder(source: Traversable, target: Path) -> None:
    for entry in source.iterdir():
        if entry.is_dir():
            (target / entry.name).mkdir()
            _copy_folder(entry, target / entry.name)
        else:
            (target / entry.name).write_bytes(entry.read_bytes())


def read_version(connection: sa.Connection) -> str | None:
    """Return the schema version of the database in one SELECT. Fails if the database has no store."""
    return connection.execute(sa.text("SELECT version_num FROM alembic_version")).scalar_one_or_none()


def current_version(connection: sa.Connection) -> str | None:
    """Return the schema version of the database, or None if it has no store."""
    return read_version(connection) if sa.inspect(connection).has_table("alembic_version") else None


def is_older(version: str | None) -> bool:
    """True if a database of this version needs a migration."""
    return version is None or version < head()


def is_unreleased(version: str | None) -> bool:
    """True if a development version before the first release wrote it; such a store cannot be migrated."""
    return version is not None and version < _known_versions()[0]


def is_newer(version: str | None) -> bool:
    """True if a newer dq wrote it."""
    return version is not None and version > head()


def upgrade(connection: sa.Connection) -> None:
    """Upgrade the schema to head inside the open transaction.

    A new database gets the declared tables, an older one the missing migrations.
    """
    if current_version(connection) is None:
        # No checkfirst: existing tables of the same name are not dq's and must be an error.
        schema.complete_metadata().create_all(connection, checkfirst=False)
        _VERSION.create(connection, checkfirst=False)
        connection.execute(_VERSION.insert().values(version_num=head()))
    else:
        migrate(connection)


def migrate(connection: sa.Connection) -> None:
    """Run the missing migrations inside the open transaction."""
    # Imported here because it is slow to import and rarely needed.
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.attributes["connection"] = connection
    with _local_folder(MIGRATIONS) as folder:
        # The option is interpolated by configparser: percent signs must be doubled.
        config.set_main_option("script_location", str(folder).replace("%", "%%"))
        with _MIGRATING:
            command.upgrade(config, "head")


# Opening of the store, with schema upgrade, and transactions.

LOCK_SECONDS = 30
"""Time a writer waits for another writer's lock."""

# Arbitrary key of the advisory lock ("dq", "st"); must not be used by other programs in the same database.
_WRITE_LOCK = 0x64710000_7374

_FORMS = "Write sqlite:///path/to/file.db or postgresql+psycopg://user@host/database."


@dataclass(frozen=True, slots=True)
class Store:
    """The state database. Thread-safe; every transaction has its own connection.

    There is one writer at a time, on SQLite and on PostgreSQL alike, so deadlocks cannot happen and reads in
    a write transaction stay valid until it ends. Keep write transactions short: no network calls inside.
    """

    engine: sa.Engine

    @contextmanager
    def write(self) -> Iterator[sa.Connection]:
        """Open a transaction that is committed at the end of the block and rolled back if the block raises.

        Waits up to LOCK_SECONDS for other writers. Raises StoreError if the database fails.
        """
        with _explain_errors(self.engine.url), _connect(self.engine) as connection:
            connection.execution_options(dq_write=True)
            with connection.begin():
                yield connection

    @contextmanager
    def read(self) -> Iterator[sa.Connection]:
        """Open a snapshot: all reads of the block see one state. Raises StoreError if the database fails."""
        with _explain_errors(self.engine.url), _connect(self.engine) as connection, connection.begin():
            yield connection

    def close(self) -> None:
        """Close all connections. The store remains usable and opens new ones on demand."""
        self.engine.dispose()


def open_store(url: str) -> Store:
    """Open the store at `url`, create missing folders and tables, and upgrade its schema to this dq's
    version.

    `url` is `sqlite:///path` (relative) or `sqlite:////path` (absolute), or `postgresql+psycopg://…`.
    Raises UsageError for another form, MissingTool without psycopg, StoreError if the database cannot be
    used or was written by a newer or an unreleased dq. No message contains the password.
    """
    with _closed_on_failure(connect_store(url)) as store:
        if _needs_migration(store):
            # Checked again under the write lock: another process may have upgraded it meanwhile.
            with store.write() as connection:
                if is_older(current_version(connection)):
                    upgrade(connection)
    return store


@contextmanager
def temporary_store() -> Iterator[Store]:
    """Open an empty store that is removed afterwards."""
    with TemporaryDirectory(prefix="dq-") as folder:
        store = open_store(f"sqlite:///{folder}/store.db")
        try:
            yield store
        finally:
            store.close()


def open_without_migrating(url: str) -> Store:
    """Open the store at `url` without creating or upgrading it.

    Raises StoreError if there is no store or its schema is not this dq's; otherwise as `open_store`.
    """
    version = stored_version(url)
    if version is None:
        raise StoreError(
            f"{store_name(parse_url(url))} does not exist.",
            "Run 'dq watch' to create it, or set DQ_STORE_URL.",
        )
    with _closed_on_failure(connect_store(url)) as store:
        if _needs_migration(store):
            raise StoreError(
                f"{store_name(store.engine.url)} has schema {version}, but this dq requires {head()}.",
                "Upgrade it on the watcher's machine: dq store upgrade",
            )
    return store


@contextmanager
def _closed_on_failure(store: Store) -> Iterator[Store]:
    try:
        yield store
    except BaseException:
        store.close()
        raise


def stored_version(url: str) -> str | None:
    """Return the schema version of the store at `url`, or None if there is none. Read-only.

    Raises as `open_store`.
    """
    parsed = parse_url(url)
    if parsed.get_backend_name() == "sqlite" and not Path(str(parsed.database)).exists():
        return None
    store = connect_store(url)
    try:
        with store.read() as connection:
            return current_version(connection)
    finally:
        store.close()


def connect_store(url: str) -> Store:
    """Return the store at `url` without creating, upgrading or checking its tables.

    Raises UsageError and MissingTool as `open_store`.
    """
    parsed = parse_url(url)
    return Store(
        _sqlite_engine(parsed) if parsed.get_backend_name() == "sqlite" else _postgres_engine(parsed)
    )


def _needs_migration(store: Store) -> bool:
    """Return whether the schema is new or older than this dq's. Raises StoreError if it is newer."""
    with store.read() as connection:
        try:
            version = read_version(connection)
        except DBAPIError as error:
            # A new database has no version table; any other failure recurs under the lock.
            if is_environment_error(error):
                raise
            return True
    if is_newer(version):
        raise StoreError(
            f"{store_name(store.engine.url)} has schema {version}, but this dq supports up to {head()}.",
            f"Upgrade dq on this machine: {upgrade_command()}",
        )
    if is_unreleased(version):
        raise StoreError(
            f"{store_name(store.engine.url)} has schema {version} of a dq that was never released.",
            "Name a new file or database in DQ_STORE_URL, or move this one away: dq creates a new one, "
            "without the incidents, deliveries and counts of this one.",
        )
    return is_older(version)


def parse_url(url: str) -> sa.URL:
    """Parse a store URL. Raises UsageError, without quoting the URL, if it is invalid or ambiguous."""
    try:
        parsed = sa.make_url(url)
        url.encode()
    except (ArgumentError, ValueError):
        # Not chained: the text of the cause may hold the password.
        raise UsageError("The store URL is invalid.", _FORMS) from None
    has_credentials = parsed.username is not None or parsed.password is not None
    # With an additional '@', part of the password would be parsed as host or database.
    if parsed.drivername != "sqlite" and url.count("@") != has_credentials:
        raise UsageError(
            "The store URL has too many '@'.",
            "Write %40 for an '@' in the user or the password, %2F for '/'.",
        )
    if parsed.drivername == "postgresql":
        parsed = parsed.set(drivername="postgresql+psycopg")
    if parsed.drivername not in ("sqlite", "postgresql+psycopg"):
        raise UsageError(f"The store does not support {parsed.drivername!r}.", _FORMS)
    if parsed.drivername == "sqlite" and (
        parsed.database in (None, "", ":memory:") or has_credentials or parsed.host or parsed.port
    ):
        raise UsageError("The store URL has no file name.", _FORMS)
    try:
        parsed.get_dialect()().create_connect_args(parsed)
    except (ArgumentError, ValueError, TypeError):
        raise UsageError("The store URL has invalid settings.", _FORMS) from None
    return parsed


def _sqlite_engine(url: sa.URL) -> sa.Engine:
    folder = Path(str(url.database)).parent
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(
            f"The store's folder {folder} cannot be created: {error.strerror}.",
            "Make its parent writable, or choose another in DQ_STORE_URL.",
        ) from error
    _make_private(str(url.database))
    # isolation_level None keeps the driver from starting transactions itself, which it does too late.
    timeout_args = {} if "timeout" in url.query else {"timeout": LOCK_SECONDS}
    engine = sa.create_engine(url, connect_args={"isolation_level": None, **timeout_args})

    @sa.event.listens_for(engine, "connect")
    def prepare(connection: DBAPIConnection, _: ConnectionPoolEntry) -> None:
        cursor = connection.cursor()
        cursor.execute("PRAGMA foreign_keys = ON")
        # WAL allows reads during a write. `synchronous` stays FULL, so that commits survive a power failure.
        try:
            cursor.execute("PRAGMA journal_mode = WAL")
        except engine.dialect.loaded_dbapi.OperationalError as error:
            # SQLite does not wait for this lock. The process that holds it switches to WAL itself.
            if getattr(error, "sqlite_errorname", "") != "SQLITE_BUSY":
                raise
        cursor.close()

    @sa.event.listens_for(engine, "begin")
    def begin(connection: sa.Connection) -> None:
        # A transaction that starts with a read cannot write after another transaction has written.
        is_write = connection.get_execution_options().get("dq_write", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if is_write else "BEGIN")

    return engine


def _make_private(file: str) -> None:
    """Create a new database file readable by this user only; SQLite copies its permissions to the WAL
    files.
    """
    # SQLite resolves URI names itself, and gives the better error if the file cannot be created.
    if not file.startswith("file:"):
        with suppress(OSError):
            os.close(os.open(file, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))


def _postgres_engine(url: sa.URL) -> sa.Engine:
    if find_spec("psycopg") is None:
        raise MissingTool("PostgreSQL needs psycopg, which is not installed.", install_command("postgres"))
    engine = sa.create_engine(url, pool_pre_ping=True, connect_args={"connect_timeout": 10})

    @sa.event.listens_for(engine, "begin")
    def begin(connection: sa.Connection) -> None:
        if not connection.get_execution_options().get("dq_write", False):
            connection.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            return
        # A hanging writer must not block all others forever.
        connection.exec_driver_sql(f"SET LOCAL lock_timeout = '{LOCK_SECONDS}s'")
        connection.exec_driver_sql("SET LOCAL idle_in_transaction_session_timeout = '120s'")
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_WRITE_LOCK})")

    return engine


def _connect(engine: sa.Engine) -> sa.Connection:
    try:
        return engine.connect()
    except (TypeError, ValueError):
        # Not chained: the driver's message quotes the invalid setting, which may be a secret.
        raise UsageError(f"{store_name(engine.url)}: invalid setting in its URL.", _FORMS) from None


@contextmanager
def _explain_errors(url: sa.URL) -> Iterator[None]:
    try:
        yield
    except DBAPIError as error:
        if not is_environment_error(error):
            raise
        # Not chained before a session is established: libpq's message may quote the URL.
        raise explain(error, url) from (error if error_code(error) else None)
