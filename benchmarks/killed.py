"""SIGKILL between every two calls of an apply of 30 tables; the next run ends as an undisturbed one.

`--catalog local|glue|iceberg|hive`, by default local and glue. Calls are those on the wire (hive: statements
to Spark; local: commits). A write is killed when it is done and not yet answered, a read before it is asked.
Wanted: the same tables, the same memory, each table logged as done once, and a third run that writes nothing.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from _report import arguments, finish
from fakes import glue, iceberg
from fakes.registrar import COUNT, LAKE_VARIABLE, Nursery, nursery, register

from dq.operations.runtime.spark import iceberg_properties
from dq.registry.catalog import Catalog, CatalogSettings
from dq.registry.catalogs import open_catalog
from dq.registry.plan import latest, load_applied_state
from dq.store.engine import Store, open_store

Moment = tuple[int, str]
_QUICK = 5
_CATALOGS = ("local", "glue", "iceberg", "hive")


@dataclass(frozen=True, slots=True)
class Target:
    """A catalog that children can be killed at. `kill` runs one from a store until that moment."""

    name: str
    opened: Callable[[Store], Catalog]
    reset: Callable[[], None]
    moments: Callable[[Store], list[Moment]]
    kill: Callable[[Nursery, str, Moment], int]
    writes: Callable[[Callable[[], None]], int]


def end_of(store: Store, catalog: Catalog) -> tuple[Any, ...]:
    """The end of a registration: tables of the catalog, applied state and log."""
    tables = [table.spec for table in catalog.tables("air_flights")]
    log = Counter(line.key for line in latest(store, catalog.id, 1_000) if line.ending == "done")
    return tables, load_applied_state(store, catalog.id), log


def measure(target: Target, folder: Path, *, quick: bool) -> dict[str, float]:
    """Kills at each moment, or with `quick` at a few of them, and compares the ends."""
    template = folder / "template.db"
    open_store(f"sqlite:///{template}").close()

    def fresh(name: str) -> str:
        shutil.copy(template, folder / name)
        return f"sqlite:///{folder / name}"

    target.reset()
    store = open_store(fresh("undisturbed.db"))
    moments = target.moments(store)
    expected = end_of(store, target.opened(store))
    store.close()
    assert len(expected[0]) == len(expected[1]) == COUNT
    chosen = moments[:: max(1, len(moments) // _QUICK)] if quick else moments
    wrong, start = [], time.perf_counter()
    with nursery(target.name) as children:
        for moment in chosen:
            target.reset()
            url = fresh("killed.db")
            ended = target.kill(children, url, moment)
            store = open_store(url)
            catalog = target.opened(store)
            register(catalog, store)
            same = end_of(store, catalog) == expected
            repeated = target.writes(lambda catalog=catalog, store=store: register(catalog, store))
            store.close()
            if ended != signal.SIGKILL or not same or repeated:
                wrong.append((moment, ended, same, repeated))
    seconds = time.perf_counter() - start
    for problem in wrong[:10]:
        print(f"  wrong: {problem}")
    figures = {"moments": len(moments), "kills": len(chosen), "other ends": len(wrong), "seconds": seconds}
    return {f"{target.name}: {name}": float(number) for name, number in figures.items()}


def over_the_wire(name: str, proxy: Any) -> Target:
    """A catalog behind a proxy that sees each call, and kills."""
    os.environ.update(proxy.environment)
    settings = CatalogSettings(iceberg=iceberg_properties(os.environ))
    opened = open_catalog(name, settings)

    def moments(store: Store) -> list[Moment]:
        proxy.calls.clear()
        register(opened, store)
        return [(at, "after" if call.writes else "before") for at, call in enumerate(proxy.calls[:-1], 1)]

    def kill(children: Nursery, url: str, moment: Moment) -> int:
        def aim(child: int) -> None:
            proxy.calls.clear()
            proxy.victim, proxy.kill_at = child, moment

        ended = children.run(url, ready=aim)
        proxy.kill_at = None
        return ended

    def writes(run: Callable[[], None]) -> int:
        with proxy.counted() as statements:
            run()
        return len(statements)

    return Target(name, lambda _: opened, proxy.reset, moments, kill, writes)


def by_commit() -> Target:
    def opened(store: Store) -> Catalog:
        return open_catalog("local", CatalogSettings(store=store))

    def moments(store: Store) -> list[Moment]:
        register(opened(store), store)
        # Of each table: what is about to be done, the table, the memory of it, how it ended.
        return [(at, "before") for at in range(1, 4 * COUNT + 1)]

    def writes(run: Callable[[], None]) -> int:
        run()
        return 0

    def kill(children: Nursery, url: str, moment: Moment) -> int:
        return children.run(url, moment[0])

    return Target("local", opened, lambda: None, moments, kill, writes)


@contextmanager
def by_statement(folder: Path) -> Iterator[Target]:
    """Spark on a metastore of its own; children borrow its JVM, for each statement is one call to it."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[1]").enableHiveSupport()
    for name, value in {
        "spark.ui.enabled": "false",
        "spark.sql.warehouse.dir": f"{folder}/warehouse",
        "spark.hadoop.javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={folder}/db;create=true",
        "spark.driver.extraJavaOptions": f"-Dderby.system.home={folder}",
    }.items():
        builder = builder.config(name, value)
    spark: Any = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    gateway = spark.sparkContext._gateway
    os.environ["PYSPARK_GATEWAY_PORT"] = str(gateway.gateway_parameters.port)
    os.environ["PYSPARK_GATEWAY_SECRET"] = str(gateway.gateway_parameters.auth_token)
    statements: list[str] = []

    class Spy:
        def __getattr__(self, name: str) -> object:
            return getattr(spark, name)

        def sql(self, statement: str) -> object:
            statements.append(statement)
            return spark.sql(statement)

    opened = open_catalog("hive", CatalogSettings(session=Spy))

    def moments(store: Store) -> list[Moment]:
        statements.clear()
        register(opened, store)
        return [(at, "before") for at in range(1, len(statements) + 1)]

    def writes(run: Callable[[], None]) -> int:
        statements.clear()
        run()
        return len(statements)

    def kill(children: Nursery, url: str, moment: Moment) -> int:
        return children.run(url, moment[0])

    def reset() -> None:
        spark.sql("DROP DATABASE IF EXISTS air_flights CASCADE")

    yield Target("hive", lambda _: opened, reset, moments, kill, writes)
    spark.stop()


def main() -> int:
    args = arguments(
        __doc__ or "",
        catalog={"action": "append", "choices": _CATALOGS, "help": "may be repeated; local and glue if none"},
    )
    metrics: dict[str, float] = {}
    for name in args.catalog or _CATALOGS[:2]:
        with tempfile.TemporaryDirectory() as text:
            folder = Path(text)
            os.environ.pop(LAKE_VARIABLE, None)
            if name in ("hive", "iceberg"):
                os.environ[LAKE_VARIABLE] = f"{folder}/lake"
            if name == "local":
                metrics |= measure(by_commit(), folder, quick=args.quick)
            elif name == "hive":
                with by_statement(folder) as target:
                    metrics |= measure(target, folder, quick=args.quick)
            else:
                with glue.serving() if name == "glue" else iceberg.serving(folder) as proxy:
                    metrics |= measure(over_the_wire(name, proxy), folder, quick=args.quick)
    goals = {name: ("<", 1.0) for name in metrics if name.endswith("other ends")}
    goals |= {name: (">", 0.0) for name in metrics if name.endswith("kills")}
    return finish(metrics, goals, args)


if __name__ == "__main__":
    sys.exit(main())
