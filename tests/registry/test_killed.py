"""A run that is killed anywhere: the next one ends as one that nobody disturbed."""

from __future__ import annotations

import shutil
import signal
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from fakes.glue import GlueShim
from fakes.iceberg import RestProxy
from fakes.registrar import COUNT, LAKE_VARIABLE, nursery, register

from dq.registry.aws.glue import Glue
from dq.registry.catalog import Catalog, CatalogSettings
from dq.registry.catalogs import open_catalog
from dq.registry.plan import latest, load_applied_state
from dq.registry.table import Key, TableSpec
from dq.store.engine import Store, open_store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

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
    expected, known = in_glue(glue_catalog), load_applied_state(store, glue_catalog.id)
    assert done(store, glue_catalog.id) == Counter(spec.key for spec in known.values())
    store.close()
    every_table_once = Counter(spec.key for spec in known.values())
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
            assert load_applied_state(store, glue_catalog.id) == known, moment
            assert done(store, glue_catalog.id) == every_table_once, moment
            with glue.counted() as writes:
                register(glue_catalog, store)
            assert writes == [], moment
            store.close()


def _aim(shim: GlueShim | RestProxy, child: int, moment: tuple[int, str]) -> None:
    # Who opened the catalog for the child may have asked already.
    shim.calls.clear()
    shim.victim, shim.kill_at = child, moment


def test_a_kill_before_any_commit_to_the_local_catalog_is_mended_by_the_next_run(tmp_path: Path) -> None:
    undisturbed = _registered(empty(tmp_path, "undisturbed.db"))
    assert [len(part) for part in undisturbed] == [COUNT, COUNT, COUNT]

    with nursery("local") as children:
        assert children.run(empty(tmp_path, "alive.db")) == 0
        # Of each table: what is about to be done, the table, the memory of it, how it ended. What reads
        # commits nothing.
        commits = 4 * COUNT
        # Every thirteenth is as often one as the other.
        for commit in range(1, commits + 1, 13):
            url = empty(tmp_path, "killed.db")

            assert children.run(url, commit) == signal.SIGKILL, commit
            assert _registered(url) == undisturbed, commit
        assert children.run(empty(tmp_path, "alive.db"), commits + 1) == 0


@pytest.mark.spark
@pytest.mark.slow
def test_a_kill_between_two_calls_to_an_iceberg_catalog_is_mended_by_the_next_run(
    iceberg_server: RestProxy, iceberg_catalog: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, text in (iceberg_server.environment | {LAKE_VARIABLE: f"{tmp_path}/lake"}).items():
        monkeypatch.setenv(name, text)
    iceberg_server.reset()
    store = open_store(empty(tmp_path, "undisturbed.db"))
    register(iceberg_catalog, store)
    calls = iceberg_server.calls[:-1]
    moments = [(at, "after" if call.writes else "before") for at, call in enumerate(calls, 1)]
    undisturbed = _ended(store, iceberg_catalog)
    store.close()
    assert [len(part) for part in undisturbed] == [COUNT, COUNT, COUNT]

    # `benchmarks/killed.py` takes them all; here, the first ones and then every 30th.
    with nursery("iceberg") as children:
        for moment in [*moments[:3], *moments[3::30]]:
            iceberg_server.reset()
            url = empty(tmp_path, "killed.db")
            ended = children.run(url, ready=lambda child, moment=moment: _aim(iceberg_server, child, moment))
            iceberg_server.kill_at = None
            store = open_store(url)
            register(iceberg_catalog, store)

            assert ended == signal.SIGKILL, moment
            assert _ended(store, iceberg_catalog) == undisturbed, moment
            with iceberg_server.counted() as writes:
                register(iceberg_catalog, store)
            assert writes == [], moment
            store.close()


@pytest.mark.spark
@pytest.mark.slow
def test_a_kill_before_a_statement_to_hive_is_mended_by_the_next_run(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gateway = spark.sparkContext._gateway.gateway_parameters  # type: ignore[union-attr]
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", str(gateway.port))
    monkeypatch.setenv("PYSPARK_GATEWAY_SECRET", gateway.auth_token)
    monkeypatch.setenv(LAKE_VARIABLE, f"{tmp_path}/lake")
    catalog = open_catalog("hive", CatalogSettings(session=lambda: spark))
    store = open_store(empty(tmp_path, "undisturbed.db"))
    register(catalog, store)
    undisturbed = _ended(store, catalog)
    store.close()
    assert [len(part) for part in undisturbed] == [COUNT, COUNT, COUNT]

    # Two for each table, and all tables alike; `benchmarks/killed.py` takes all sixty.
    with nursery("hive") as children:
        for statement in (2, 31):
            spark.sql("DROP DATABASE air_flights CASCADE")
            url = empty(tmp_path, "killed.db")
            assert children.run(url, statement) == signal.SIGKILL
            store = open_store(url)
            register(catalog, store)

            assert _ended(store, catalog) == undisturbed, statement
            store.close()
    spark.sql("DROP DATABASE air_flights CASCADE")


def _ended(store: Store, catalog: Catalog) -> tuple[list[TableSpec], dict[Key, TableSpec], Counter[Key]]:
    tables = [table.spec for table in catalog.tables("air_flights")]
    return tables, load_applied_state(store, catalog.id), done(store, catalog.id)


def done(store: Store, catalog: str) -> Counter[Key]:
    """How often the log says of each table that it was made."""
    lines = latest(store, catalog, 1_000)
    assert {line.ending for line in lines} <= {"done", "failed"}
    return Counter(line.key for line in lines if line.ending == "done")


def _registered(url: str) -> tuple[list[tuple[TableSpec, str]], dict[Any, TableSpec], Counter[Key]]:
    store = open_store(url)
    catalog = open_catalog("local", CatalogSettings(store=store))
    register(catalog, store)
    tables = [(table.spec, table.version) for table in catalog.tables("air_flights")]
    known, lines = load_applied_state(store, "local"), done(store, "local")
    store.close()
    return tables, known, lines
