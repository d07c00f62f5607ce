"""A process that registers tables and may be killed anywhere; a nursery makes one after the other quickly."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from fakes.flights import flights
from sqlalchemy import event

from dq.operations.runtime.spark import iceberg_properties
from dq.registry.catalog import Catalog, CatalogSettings
from dq.registry.catalogs import open_catalog
from dq.registry.plan import CompleteRegistry, RegisterRun, apply, propose
from dq.registry.table import TableSpec, marked
from dq.store.engine import Store, open_store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COUNT = 30
LAKE = "s3://lake/air"
# Names the folder in the place of S3, for catalogs that write there.
LAKE_VARIABLE = "DQ_TESTS_LAKE"


def wanted(format: str = "parquet", lake: str = LAKE) -> list[TableSpec]:
    """Thirty tables of one database."""
    plain = flights(lake, format=format)
    facts = {"dq.contract-id": "air-flights", "dq.contract-version": "1.0.0"}
    return [
        marked(replace(plain, name=f"t{at:02}", location=f"{lake}/{at}", parameters=()), facts)
        for at in range(COUNT)
    ]


def register(catalog: Catalog, store: Store) -> None:
    """Plans and applies all of them."""
    format = "iceberg" if "parquet" not in catalog.formats else "parquet"
    lake = os.environ.get(LAKE_VARIABLE)
    made = propose(catalog, wanted(format, lake or LAKE), store, complete=CompleteRegistry(""))
    run = RegisterRun(str(uuid.uuid4()), datetime.now(UTC), "")
    apply(catalog, made, store, run=run)


@dataclass(frozen=True, slots=True)
class Nursery:
    """Makes processes that have everything loaded; each stands still until it is told to go on."""

    process: subprocess.Popen[str]

    def run(self, url: str, commit: int = 0, ready: Callable[[int], None] = lambda pid: None) -> int:
        """Registers from a process of its own, and gives how it ended: the number of its signal, or 0.

        `commit`: it kills itself before that commit to the store; with hive, before that statement to Spark.
        `ready` gets its id before it goes on.
        """
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{url} {commit}\n")
        self.process.stdin.flush()
        child = int(self.process.stdout.readline())
        ready(child)
        os.kill(child, signal.SIGCONT)
        return int(self.process.stdout.readline())


@contextmanager
def nursery(*words: str, module: str = "fakes.registrar") -> Iterator[Nursery]:
    """A nursery in the environment of now; `words` are what its module is told, as the name of a catalog."""
    paths = os.pathsep.join([str(Path(__file__).parents[1])])
    process = subprocess.Popen(
        [sys.executable, "-m", module, *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": paths},
    )
    try:
        yield Nursery(process)
    finally:
        process.communicate()


def _opened(name: str, store: Store | None) -> Catalog:
    if name == "hive":
        return open_catalog(name, CatalogSettings(session=_borrowed))
    return open_catalog(name, CatalogSettings(store=store, iceberg=iceberg_properties(os.environ)))


def _borrowed() -> SparkSession:
    """The session of the JVM that the environment names: one for all children, none of which owns it."""
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway
    from pyspark.sql import SparkSession

    gateway = launch_gateway()
    jvm: Any = gateway.jvm
    scala = jvm.org.apache.spark.SparkContext.getOrCreate()
    java = jvm.org.apache.spark.api.java.JavaSparkContext(scala)
    context = SparkContext(gateway=gateway, jsc=java, conf=SparkConf(_jconf=java.getConf()))
    return SparkSession(context, jvm.org.apache.spark.sql.SparkSession.active())


def _doomed_by_statement(catalog: Any, at: int) -> Catalog:
    """Kills this process before that statement to Spark, or in front of the end of the last."""
    seen = 0

    class Spy:
        def __getattr__(self, name: str) -> object:
            return getattr(catalog.spark, name)

        def sql(self, statement: str) -> object:
            nonlocal seen
            seen += 1
            if seen == at:
                os.kill(os.getpid(), signal.SIGKILL)
            return catalog.spark.sql(statement)

    return cast("Catalog", replace(catalog, spark=Spy()))


def _serve(name: str) -> None:
    # A client over HTTP is the same for all; a store and a connection to a JVM are not.
    catalog = _opened(name, None) if name in ("glue", "iceberg") else None
    if name == "hive":
        import pyspark.sql  # noqa: F401  # a second, once for all children

    def work(url: str, commit: int) -> None:
        store = open_store(url)
        opened = catalog or _opened(name, store)
        if name == "hive":
            opened = _doomed_by_statement(opened, commit)
        else:
            doomed(store, commit)
        register(opened, store)

    serve(work)


def serve(work: Callable[[str, int], None]) -> None:
    """What a nursery's module does: a child for each line, with the URL and the number that stand there."""
    for line in sys.stdin:
        url, number = line.split()
        child = os.fork()
        if not child:
            os.kill(os.getpid(), signal.SIGSTOP)
            work(url, int(number))
            os._exit(0)
        os.waitpid(child, os.WUNTRACED)
        _say(child)
        _, status = os.waitpid(child, 0)
        _say(os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status))


def _say(number: int) -> None:
    sys.stdout.write(f"{number}\n")
    sys.stdout.flush()


def doomed(store: Store, at: int) -> None:
    """Kills this process before that commit; 0 lets it live."""
    seen = 0

    def note(connection: object) -> None:
        nonlocal seen
        seen += 1
        if seen == at:
            os.kill(os.getpid(), signal.SIGKILL)

    event.listen(store.engine, "commit", note)


if __name__ == "__main__":
    _serve(sys.argv[1])
