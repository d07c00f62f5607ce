"""Registering N contracts, again when nothing changed, and a plan of the twenty that Git says have changed.

Seconds, calls and writes; `--catalog local|glue`. Beside it, a plain client makes the same tables and nothing
else: for local, SQLAlchemy with a row and a transaction for each, and for Glue, boto3.

Glue is moto's server in a process of its own, at moto's pace and without the pauses that are for AWS.
"""

from __future__ import annotations

import json
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
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from _report import arguments, finish
from sqlalchemy import Engine, create_engine, event
from sqlalchemy import text as sql

from dq.contracts.access.access_policy import build_access_policy
from dq.contracts.access.data_location import resolve
from dq.operations.registry_files import load
from dq.registry.catalog import ActionKind, Catalog, CatalogPlan, CatalogSettings
from dq.registry.catalogs import open_catalog
from dq.registry.plan import CompleteRegistry, apply, propose
from dq.registry.table import TableColumn, TableSpec, marked
from dq.registry.table import specs as of_contract
from dq.store.engine import Store, open_store

_WRITES = ("INSERT", "UPDATE", "DELETE")


def desired_specs(count: int, columns: int = 40) -> list[TableSpec]:
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
    from dq.registry.aws.client import Rate, connect
    from dq.registry.aws.glue import Glue

    quick = Rate(100_000, 100_000)
    connection = connect(rates={"read": quick, "write": quick})

    def note(event_name: str, **_: Any) -> None:
        calls[event_name.split(".")[-1]] += 1

    connection.client.meta.events.register("before-send.glue.*", note)
    return Glue(connection)


def measure(name: str, count: int, folder: Path) -> dict[str, float]:
    """Figures of a first run, one without changes, and a plan of a few changes."""
    store = open_store(f"sqlite:///{folder / 'state.db'}")
    calls: Counter[str] = Counter()
    written: Counter[str] = Counter()

    def note(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        word = statement.split()[0]
        if word in _WRITES:
            written[word] += 1

    event.listen(store.engine, "before_cursor_execute", note)
    catalog = opened(name, store, calls)
    specs = desired_specs(count)
    before = _peak_megabytes()
    metrics = {"tables": float(count)}
    for title in ("first", "again"):
        calls.clear()
        written.clear()
        start, start_cpu = time.perf_counter(), time.process_time()
        plan = propose(catalog, specs, store, complete=CompleteRegistry(""))
        apply(catalog, plan, store)
        metrics |= {
            f"{title}, s": time.perf_counter() - start,
            f"{title}, CPU s": time.process_time() - start_cpu,
            f"{title}: changes": _changes(plan),
            f"{title}: calls": float(calls.total()),
            f"{title}: writes to the store": float(written.total()),
        }
        print(f"{name} {title}: {dict(Counter(str(action.kind) for action in plan.actions))}, {dict(calls)}")
    metrics["peak MB beyond the tables' own"] = _peak_megabytes() - before
    metrics |= _changed(catalog, store, specs, folder / "registry", calls)
    store.close()
    plain = (
        _plain_glue(specs)
        if name == "glue"
        else _plain_rows(create_engine(f"sqlite:///{folder}/plain.db"), specs)
    )
    metrics["plain client, CPU s"] = plain
    for title in ("first", "again"):
        metrics[f"{title} / plain client"] = metrics[f"{title}, CPU s"] / plain
    return metrics


def _changes(plan: CatalogPlan) -> float:
    return float(sum(action.kind is not ActionKind.NOOP for action in plan.actions))


def _peak_megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _plain_rows(engine: Engine, specs: list[TableSpec]) -> float:
    """Processor seconds in which SQLAlchemy writes each table as a row, in a transaction of its own."""
    with engine.begin() as connection:
        connection.execute(sql("CREATE TABLE tables (name TEXT PRIMARY KEY, columns TEXT)"))
    start = time.process_time()
    for spec in specs:
        columns = json.dumps([(column.name, column.type, column.comment) for column in spec.columns])
        with engine.begin() as connection:
            connection.execute(
                sql("INSERT INTO tables VALUES (:name, :columns)"), {"name": spec.name, "columns": columns}
            )
    seconds = time.process_time() - start
    engine.dispose()
    return seconds


def _plain_glue(specs: list[TableSpec]) -> float:
    """Processor seconds in which boto3 makes each table, in a database of its own."""
    import boto3

    client = boto3.client("glue")
    client.create_database(DatabaseInput={"Name": "plain"})
    start = time.process_time()
    for spec in specs:
        columns = [
            {"Name": column.name, "Type": column.type, "Comment": column.comment} for column in spec.columns
        ]
        client.create_table(
            DatabaseName="plain",
            TableInput={
                "Name": spec.name,
                "StorageDescriptor": {"Columns": columns, "Location": spec.location},
                "PartitionKeys": [{"Name": key.name, "Type": key.type} for key in spec.partitions],
            },
        )
    return time.process_time() - start


def _changed(
    catalog: Catalog, store: Store, specs: list[TableSpec], folder: Path, calls: Counter[str]
) -> dict[str, float]:
    """A plan for the contracts that changed by Git, as `dq register FILES` makes it."""
    folder.mkdir()
    for at in range(len(specs)):
        (folder / f"c{at}.odcs.yaml").write_text(_contract(at, "1.0.0"))
    _git(folder, "init", "--quiet")
    _git(folder, "add", ".")
    _git(folder, "-c", "user.name=x", "-c", "user.email=x@example.com", "commit", "--quiet", "-m", "All.")
    for at in range(_CHANGED):
        (folder / f"c{at}.odcs.yaml").write_text(_contract(at, "1.1.0"))
    calls.clear()
    start = time.perf_counter()
    names = _git(folder, "diff", "--name-only", "HEAD").splitlines()
    loaded = load([folder / name for name in names], lambda _: None)
    reached = build_access_policy(folder, ("s3://lake",))
    changed_specs = [
        spec
        for contract in loaded.contracts
        for spec in of_contract(
            contract, lambda schema_object, of=contract: resolve(of, schema_object, None, reached)
        )
    ]
    plan = propose(catalog, changed_specs, store)
    return {
        "plan of twenty changed, s": time.perf_counter() - start,
        "plan of twenty changed: changes too many or too few": abs(_changes(plan) - _CHANGED),
        "plan of twenty changed: calls": float(calls.total()),
    }


_CHANGED = 20
_CONTRACT = """\
apiVersion: v3.2.0
kind: DataContract
id: c{at}
version: {version}
status: active
servers:
  - {{server: lake, type: s3, location: "s3://lake/{at}", format: parquet}}
domain: domain
dataProduct: "{tenth}"
schema:
  - name: t{at}
    properties:
{columns}
      - {{name: day, logicalType: date, partitioned: true, partitionKeyPosition: 1}}
"""


def _contract(at: int, version: str) -> str:
    """The contract of the table with this number; the description of a column tells its versions apart."""
    columns = "\n".join(
        f"      - {{name: c{column}, logicalType: {'number' if column % 2 else 'string'}, "
        f"physicalType: '{'decimal(18,2)' if column % 2 else 'string'}', "
        f"description: Column {column} of {version}.}}"
        for column in range(40)
    )
    return _CONTRACT.format(at=at, version=version, tenth=at % 10, columns=columns)


def _git(folder: Path, *words: str) -> str:
    return subprocess.run(
        ["git", "-C", str(folder), *words], check=True, capture_output=True, text=True
    ).stdout


def main() -> int:
    args = arguments(
        __doc__ or "",
        catalog={"default": "local", "choices": ("local", "glue"), "help": "local, or Glue on moto's server"},
        contracts="how many, by default 2,000",
    )
    count = args.contracts or (300 if args.quick else 2_000)
    with tempfile.TemporaryDirectory() as folder, moto() if args.catalog == "glue" else nullcontext():
        metrics = measure(args.catalog, count, Path(folder))
    goals = {
        "first / plain client": ("<", 4.5),
        "again / plain client": ("<", 1.2),
        "again: changes": ("<", 1.0),
        "again: writes to the store": ("<", 1.0),
        "plan of twenty changed: changes too many or too few": ("<", 1.0),
    }
    return finish(metrics, goals, args)


if __name__ == "__main__":
    sys.exit(main())
