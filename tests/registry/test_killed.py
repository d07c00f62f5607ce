"""A run that is killed anywhere: the next one ends as one that nobody disturbed."""

from __future__ import annotations

import shutil
import signal
from pathlib import Path
from typing import Any

from fakes.glue import GlueShim
from fakes.registrar import COUNT, nursery, register

from dq.registry.catalog import CatalogSettings
from dq.registry.catalogs import open_catalog
from dq.registry.glue.tables import Glue
from dq.registry.memory import recall
from dq.registry.table import TableSpec
from dq.store.engine import open_store

_MOMENTS = {"CreateTime", "UpdateTime", "VersionId"}


def empty(folder: Path, name: str) -> str:
    """The URL of a new store; its tables are made once and copied."""
    template = folder / "template.db"
    if not template.exists():
        open_store(f"sqlite:///{template}").close()
    shutil.copy(template, folder / name)
    return f"sqlite:///{folder / name}"


def in_glue(catalog: Glue) -> list[dict[str, Any]]:
    found = catalog.connection.client.get_tables(DatabaseName="air_flights", MaxResults=100)["TableList"]
    return [{key: value for key, value in table.items() if key not in _MOMENTS} for table in found]


def test_a_kill_between_any_two_calls_to_glue_is_mended_by_the_next_run(
    glue: GlueShim, glue_catalog: Glue, tmp_path: Path
) -> None:
    store = open_store(empty(tmp_path, "undisturbed.db"))
    register(glue_catalog, store)
    expected, known = in_glue(glue_catalog), recall(store, glue_catalog.id)
    store.close()
    # A write is killed when it is done and not yet answered, a read before it is asked.
    moments = [(at, "after" if call.writes else "before") for at, call in enumerate(glue.calls[:-1], 1)]
    assert len(expected) == len(known) == COUNT
    assert len(moments) == 2 * COUNT + 3

    # All around the database and the first tables; then the tables are alike, and every seventh is as often
    # one of a table's two calls as the other.
    with nursery("glue") as children:
        for moment in [*moments[:9], *moments[9:-1:7], moments[-1]]:
            glue.reset()
            url = empty(tmp_path, "killed.db")
            ended = children.run(url, ready=lambda child, moment=moment: _aim(glue, child, moment))
            glue.kill_at = None
            store = open_store(url)
            register(glue_catalog, store)

            assert ended == signal.SIGKILL, moment
            assert in_glue(glue_catalog) == expected, moment
            assert recall(store, glue_catalog.id) == known, moment
            with glue.counted() as writes:
                register(glue_catalog, store)
            assert writes == [], moment
            store.close()


def _aim(shim: GlueShim, child: int, moment: tuple[int, str]) -> None:
    shim.victim, shim.kill_at = child, moment


def test_a_kill_before_any_commit_to_the_local_catalog_is_mended_by_the_next_run(tmp_path: Path) -> None:
    expected, known = _registered(empty(tmp_path, "undisturbed.db"))
    assert len(expected) == len(known) == COUNT

    with nursery("local") as children:
        assert children.run(empty(tmp_path, "alive.db")) == 0
        # One for each table, and one for the memory of it; what reads commits nothing.
        commits = 2 * COUNT
        # Every seventh is as often one as the other.
        for commit in range(1, commits + 1, 7):
            url = empty(tmp_path, "killed.db")

            assert children.run(url, commit) == signal.SIGKILL, commit
            assert _registered(url) == (expected, known), commit
        assert children.run(empty(tmp_path, "alive.db"), commits + 1) == 0


def _registered(url: str) -> tuple[list[tuple[TableSpec, str]], dict[Any, TableSpec]]:
    store = open_store(url)
    catalog = open_catalog("local", CatalogSettings(store=store))
    register(catalog, store)
    tables = [(table.spec, table.version) for table in catalog.tables("air_flights")]
    known = recall(store, "local")
    store.close()
    return tables, known
