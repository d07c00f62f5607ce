"""What a database's complaint means to the user: one table per database, and no password in any text."""

from __future__ import annotations

from sqlalchemy import URL
from sqlalchemy.exc import DBAPIError

from dq.contracts.shared.outcome import StoreError

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


def place(url: URL) -> str:
    """The store's name in messages: its file, or host, port and database; never the user or the password."""
    if url.get_backend_name() == "sqlite":
        return f"The store {url.database}"
    port = f":{url.port}" if url.port else ""
    return f"The store {url.database or 'of the user'} on {url.host or 'the local socket'}{port}"


def address(url: URL) -> str:
    """The store's URL as it may be shown: without the password, and without its query, which may hold one."""
    return url.set(query={}).render_as_string(hide_password=True)


def explain(error: DBAPIError, url: URL) -> StoreError:
    """The StoreError to raise from `error`: the database's own words are left out, they may quote the URL."""
    what, mend = _look_up(error)
    return StoreError(f"{place(url)} {what}.", mend)


def is_failure_of_the_world(error: DBAPIError) -> bool:
    """Whether the database, and not our SQL or a broken constraint, is to blame."""
    if error.connection_invalidated:
        return True
    code = code_of(error)
    if isinstance(code, str) and code.startswith("SQLITE_"):
        return any(code.startswith(name) for name, _, _ in _SQLITE)
    return code is None or any(code.startswith(state) for state, _, _ in _POSTGRES)


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
                return next((what, mend) for prefix, what, mend in _POSTGRES if prefix == state)
        return _UNREACHABLE
    table = _SQLITE if code.startswith("SQLITE_") else _POSTGRES
    for prefix, what, mend in table:
        if code.startswith(prefix):
            return what, mend
    return f"answered with error {code}", _DEFAULT_MEND
