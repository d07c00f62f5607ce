"""Publishing: what an unchanged delivery costs, a thousand publishes in a row, and fifty processes at once.

Seconds, on the local catalog and a file of notices. Beside it, a plain client of SQLAlchemy keeps as many
deliveries in a table of its own, each in two transactions, before and after it appends the line.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import sys
import tempfile
import time
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

from _cost import cpu_seconds
from _report import arguments, finish
from sqlalchemy import create_engine, event
from sqlalchemy import text as sql

from dq.contracts.access.access_policy import build_access_policy
from dq.contracts.access.data_location import resolve
from dq.contracts.model import Contract
from dq.contracts.yaml.parse import read
from dq.operations.publish import RECEIPTS
from dq.registry.catalog import CatalogSettings
from dq.registry.catalogs import open_catalog
from dq.registry.plan import apply, propose
from dq.registry.publications import JsonLines, build_publication, send_notices
from dq.registry.publish import publish
from dq.registry.table import TableSpec, specs
from dq.store.engine import Store, open_store

CONTRACT = """\
apiVersion: v3.2.0
kind: DataContract
id: orders
version: 1.0.0
servers: [{server: lake, type: local, path: LAKE, format: parquet}]
schema:
  - name: orders
    properties:
      - {name: part, logicalType: integer, physicalType: int, partitioned: true, partitionKeyPosition: 1}
      - {name: id, logicalType: integer}
"""
PUBLISHERS = 50


def table(lake: Path) -> tuple[Contract, TableSpec]:
    """The contract of one table below the folder, and its specification."""
    contract = read(CONTRACT.replace("LAKE", str(lake)))
    allowed = build_access_policy(lake, (str(lake),), registries=(), hosts=(), names=(), environment={})
    return contract, specs(contract, lambda schema_object: resolve(contract, schema_object, None, allowed))[0]


def deliver(store: Store, lake: Path, part: int, rows: int = 1) -> None:
    """Publishes a part, as the command does."""
    contract, spec = table(lake)
    catalog = open_catalog("local", CatalogSettings(store=store))
    publication = build_publication(
        contract,
        contract.objects[0],
        spec,
        server="lake",
        catalog=catalog.id,
        partition={"part": str(part)},
        rows=rows,
    )
    file = lake / "events.jsonl"
    place, now = f"file:{file}", datetime.now(UTC)
    done = publish(publication, catalog=catalog, store=store, now=now, receipts=RECEIPTS, targets=[place])
    send_notices(store, {place: JsonLines(file)}, lambda: datetime.now(UTC), event_id=done.event.id)


def publish_plainly(folder: Path, count: int) -> None:
    """Keeps and tells so many deliveries, with nothing in mind but that none is lost."""
    engine = create_engine(f"sqlite:///{folder}/plain.db")
    with engine.begin() as connection:
        connection.execute(sql("CREATE TABLE delivery (part TEXT PRIMARY KEY, event TEXT, told INTEGER)"))
    for part in range(count):
        line = json.dumps(
            {"id": f"orders-{part}", "table": "orders", "partition": {"part": str(part)}, "rows": 1}
        )
        values = {"part": str(part), "event": line}
        with engine.begin() as connection:
            connection.execute(sql("SELECT event FROM delivery WHERE part = :part"), values).all()
            connection.execute(sql("INSERT INTO delivery VALUES (:part, :event, 0)"), values)
        with (folder / "plain.jsonl").open("a") as file:
            file.write(line + "\n")
        with engine.begin() as connection:
            connection.execute(sql("UPDATE delivery SET told = 1 WHERE part = :part"), values)
    engine.dispose()


def prepared(url: str, lake: Path, parts: int) -> Store:
    """A store with the table registered, and a folder for each part."""
    for part in range(parts):
        (lake / f"part={part}").mkdir(parents=True)
    store = open_store(url)
    catalog = open_catalog("local", CatalogSettings(store=store))
    apply(catalog, propose(catalog, [table(lake)[1]], store), store)
    return store


def one_of_many(url: str, lake: Path, part: int, rows: int) -> None:
    """Publish, as each of the fifty does."""
    while not (lake / "go").exists():
        time.sleep(0.02)
    deliver(open_store(url), lake, part, rows)


def at_once(url: str, lake: Path, parts: int) -> tuple[float, int]:
    """Seconds until fifty processes have published, and how many of their events are missing or doubled.

    With one part each of them has another number of rows, which is a revision for each.
    """
    store = prepared(url, lake, parts)
    spawned = multiprocessing.get_context("fork")
    store.close()
    processes = [
        spawned.Process(target=one_of_many, args=(url, lake, number % parts, number))
        for number in range(PUBLISHERS)
    ]
    for process in processes:
        process.start()
    start = time.perf_counter()
    (lake / "go").touch()
    for process in processes:
        process.join()
    seconds = time.perf_counter() - start
    lines = (lake / "events.jsonl").read_text().splitlines()
    notices = Counter(json.loads(line)["id"] for line in lines)
    doubled = sum(count - 1 for count in notices.values())
    failed = sum(process.exitcode != 0 for process in processes)
    return seconds, PUBLISHERS - len(notices) + doubled + failed


def main() -> int:
    args = arguments(__doc__ or "", count="how many deliveries in a row; 1,000 by default, 100 when quick")
    count = args.count or (100 if args.quick else 1_000)
    with tempfile.TemporaryDirectory(prefix="dq-publish-") as name:
        folder = Path(name)
        os.chdir(folder)
        url, lake = f"sqlite:///{folder}/row.db", folder / "row"
        store = prepared(url, lake, count)
        start, start_cpu = time.perf_counter(), time.process_time()
        for part in range(count):
            deliver(store, lake, part)
        row, row_cpu = time.perf_counter() - start, time.process_time() - start_cpu
        writes = 0

        def note(_connection: object, _cursor: object, statement: str, *_: object) -> None:
            nonlocal writes
            writes += statement.lstrip().upper().startswith(("INSERT", "UPDATE", "DELETE"))

        event.listen(store.engine, "before_cursor_execute", note)
        start, start_cpu = time.perf_counter(), time.process_time()
        for part in range(count):
            deliver(store, lake, part)
        unchanged, unchanged_cpu = time.perf_counter() - start, time.process_time() - start_cpu
        plain_cpu = cpu_seconds(lambda: publish_plainly(folder, count))
        store.close()
        same, wrong_of_same = at_once(f"sqlite:///{folder}/same.db", folder / "same", 1)
        separate, wrong_of_apart = at_once(f"sqlite:///{folder}/apart.db", folder / "apart", PUBLISHERS)
    metrics = {
        "deliveries in a row": float(count),
        "publishes a minute": 60 * count / row,
        "ms of a publish": 1_000 * row / count,
        "ms of an unchanged publish": 1_000 * unchanged / count,
        "CPU ms of a publish": 1_000 * row_cpu / count,
        "CPU ms of the plain client": 1_000 * plain_cpu / count,
        "CPU of a publish / plain client": row_cpu / plain_cpu,
        "CPU of an unchanged publish / plain client": unchanged_cpu / plain_cpu,
        "writes of unchanged publishes": float(writes),
        "s of 50 processes, one partition": same,
        "s of 50 processes, a partition each": separate,
        "events lost or doubled": float(wrong_of_same + wrong_of_apart),
    }
    goals = {
        "CPU of a publish / plain client": ("<", 7.5),
        "writes of unchanged publishes": ("<", 1.0),
        "events lost or doubled": ("<", 1.0),
    }
    return finish(metrics, goals, args)


if __name__ == "__main__":
    sys.exit(main())
