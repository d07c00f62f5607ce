"""Which schema a database has, which one this dq wants, and the way from one to the other."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from sqlalchemy import Connection, inspect, text

MIGRATIONS = Path(__file__).parent / "migrations"


@cache
def head() -> str:
    """The newest schema this dq knows, read off the files' names: '0001_alerts.py' is version '0001'."""
    return max(path.name[:4] for path in (MIGRATIONS / "versions").glob("[0-9][0-9][0-9][0-9]_*.py"))


def read(connection: Connection) -> str | None:
    """The version of the database, in one SELECT; fails where no store was ever made."""
    return connection.execute(text("SELECT version_num FROM alembic_version")).scalar_one_or_none()


def current(connection: Connection) -> str | None:
    """The version of the database; None where no store was ever made."""
    return read(connection) if inspect(connection).has_table("alembic_version") else None


def is_older(found: str | None) -> bool:
    """Whether a database of version `found` needs a migration."""
    return found is None or found < head()


def is_newer(found: str | None) -> bool:
    """Whether a later dq has written it."""
    return found is not None and found > head()


def upgrade(connection: Connection) -> None:
    """Bring the schema to head inside the open transaction: all of it or nothing."""
    # Slow to import, and hardly ever needed.
    from alembic import command
    from alembic.config import Config

    config = Config()
    # The option is a template in which a percent sign must be doubled.
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, "head")
