"""Registering N contracts, and again when nothing changed: seconds, calls and writes. `--catalog local|glue`.

Glue is moto's server in a process of its own, at moto's pace and without the pauses that are for AWS.
"""

from __future__ import annotations

import argparse
import os
import resource
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import event

from dq.registry.apply import apply, propose
from dq.registry.catalog import Catalog, CatalogSettings
from dq.registry.catalogs import open_catalog
from dq.registry.orphans import WholeRegistry
from dq.registry.table import TableColumn, TableSpec, marked
from dq.store.engine import Store, open_store

_WRITES = ("INSERT", "UPDATE", "DELETE")


def wanted(count: int, columns: int = 40) -> list[TableSpec]:
    """Tables in ten databases."""
    fields = tuple(
        TableColumn(f"c{at}", "decimal(18,2)" if at % 2 else "string", f"Column {at}.")
        for at in range(columns)
    )
    keys = (TableColumn("day", "date"),)
    return [
        marked(
            TableSpec(f"domain_{at % 10}", f"t{at}", f"s3://lake/{at}", "parquet", fields, keys),
            {"dq.contract-id": f"c{at}", "dq.contract-version": "1.0.0"},
        )
        for at in range(count)
    ]


@contextmanager
def moto() -> Iterator[None]:
    """moto's server; boto3 finds it, and no account."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    code = f"from moto.server import main; main(['-p', '{port}'])"
    server = subprocess.Popen(
        [sys.executable, "-c", code], stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL
    )
    os.environ |= {
        "AWS_ENDPOINT_URL": url,
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_DEFAULT_REGION": "eu-central-1",
    }
    try:
        for _ in range(300):
            try:
                urllib.request.urlopen(f"{url}/moto-api/data.json", timeout=5).close()
                break
            except urllib.error.URLError:
                time.sleep(0.1)
        yield
    finally:
        server.terminate()
        server.wait()


def opened(name: str, store: Store, calls: Counter[str]) -> Catalog:
    """The catalog, noting what is sent."""
    if name == "local":
        return open_catalog("local", CatalogSettings(store=store))
    from dq.registry.glue.client import connect
    from dq.registry.glue.rates import Rate
    from dq.registry.glue.tables import Glue

    quick = Rate(100_000, 100_000)
    connection = connect(rates={"read": quick, "write": quick})

    def note(event_name: str, **_: Any) -> None:
        calls[event_name.split(".")[-1]] += 1

    connection.client.meta.events.register("before-send.glue.*", note)
    return Glue(connection)


def measure(name: str, count: int, folder: str) -> None:
    store = open_store(f"sqlite:///{Path(folder) / 'state.db'}")
    calls: Counter[str] = Counter()
    written: Counter[str] = Counter()

    def note(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        word = statement.split()[0]
        if word in _WRITES:
            written[word] += 1

    event.listen(store.engine, "before_cursor_execute", note)
    catalog = opened(name, store, calls)
    specs = wanted(count)
    given = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    for title in ("first", "again"):
        calls.clear()
        written.clear()
        start = time.perf_counter()
        plan = propose(catalog, catalog.id, specs, store, whole=WholeRegistry(""))
        apply(catalog, catalog.id, plan, store)
        seconds = time.perf_counter() - start
        kinds = dict(Counter(str(action.kind) for action in plan.actions))
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        print(
            f"{name} {title}: {kinds}, {seconds:.1f} s, calls {dict(calls)}, "
            f"writes to the store {sum(written.values())}, {peak} MiB at most, {given} MiB of them given"
        )
    store.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--catalog", default="local", choices=("local", "glue"))
    parser.add_argument("--contracts", type=int, default=2_000)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if given.catalog == "glue":
            with moto():
                measure("glue", given.contracts, folder)
        else:
            measure("local", given.contracts, folder)


if __name__ == "__main__":
    main()
