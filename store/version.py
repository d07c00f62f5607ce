"""The schema version of a database, the newest one, creation of a new schema and upgrades of an older one."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from tempfile import TemporaryDirectory

from sqlalchemy import Column, Connection, MetaData, PrimaryKeyConstraint, String, Table, inspect, text

from dq.store import schema

# Not a path: spark-submit's --py-files puts dq on the search path as it is, in its wheel.
MIGRATIONS = files("dq.store.migrations")
# Alembic keeps the migration that runs in globals of the process: two at once, of two stores, would mix.
_MIGRATING = threading.Lock()
# As Alembic makes it. Importing Alembic takes longer than creating all tables.
_VERSION = Table(
    "alembic_version",
    MetaData(),
    Column("version_num", String(32), nullable=False),
    PrimaryKeyConstraint("version_num", name="alembic_version_pkc"),
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


def read(connection: Connection) -> str | None:
    """The version of the database, in one SELECT; fails where no store was ever made."""
    return connection.execute(text("SELECT version_num FROM alembic_version")).scalar_one_or_none()


def current(connection: Connection) -> str | None:
    """The version of the database; None where no store was ever made."""
    return read(connection) if inspect(connection).has_table("alembic_version") else None


def is_older(found: str | None) -> bool:
    """Whether a database of version `found` needs a migration."""
    return found is None or found < head()


def is_unreleased(found: str | None) -> bool:
    """Whether a development version has written it, before the first release: no migration starts there."""
    return found is not None and found < _known()[0]


def is_newer(found: str | None) -> bool:
    """Whether a later dq has written it."""
    return found is not None and found > head()


def upgrade(connection: Connection) -> None:
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


def migrate(connection: Connection) -> None:
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
