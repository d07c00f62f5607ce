"""A new SQLite store is migrated once in the run of the tests: what Alembic said then is said to all others.

Commands that begin in an empty folder make a store each, and a fifth of their time went there. A store in
which anything stands already, other databases and processes of their own are migrated by Alembic itself.
"""

from __future__ import annotations

from typing import Any

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, event

_SAID: dict[tuple[str | None, str], list[tuple[str, Any]]] = {}
_ANYTHING = "SELECT 1 FROM sqlite_master"
_upgrade = command.upgrade


def share() -> None:
    """From here on, in this process."""
    command.upgrade = _shared  # type: ignore[assignment]


def forget() -> None:
    """The next store is migrated by Alembic itself."""
    _SAID.clear()


def _shared(config: Config, revision: str) -> None:
    connection: Connection = config.attributes["connection"]
    if (
        connection.dialect.name != "sqlite"
        or connection.exec_driver_sql("SELECT 1 FROM sqlite_master").first()
    ):
        _upgrade(config, revision)
        return
    key = config.get_main_option("script_location"), revision
    if key not in _SAID:
        said: list[tuple[str, Any]] = []

        def hear(_: Any, __: Any, statement: str, parameters: Any, *___: Any) -> None:
            if not statement.lstrip().startswith(("SELECT", "PRAGMA")):
                said.append((statement, parameters))

        event.listen(connection, "before_cursor_execute", hear)
        try:
            _upgrade(config, revision)
        finally:
            event.remove(connection, "before_cursor_execute", hear)
        _SAID[key] = said
        return
    for statement, parameters in _SAID[key]:
        connection.exec_driver_sql(statement, parameters)
