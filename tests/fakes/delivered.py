"""A table of orders by day, and partitions of it that are written, published and audited."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from fakes.desk import Desk

FILE = "orders.odcs.yaml"
SERVER = "type: local, path: FOLDER/lake, format: parquet"
KEY = "      - {name: day, logicalType: date, physicalType: date, partitioned: true, partitionKeyPosition: 1}"
_CONTRACT = """\
apiVersion: v3.2.0
kind: DataContract
id: orders
version: 1.0.0
status: active
servers:
  - {server: lake, SERVER}
schema:
  - name: orders
    properties:
      - {name: id, logicalType: integer, physicalType: bigint, required: true}
KEY
"""


def contract(
    desk: Desk, *, server: str = SERVER, key: str = KEY, more: str = "", replaced: tuple[str, str] = ("", "")
) -> None:
    """Write the contract into the desk's folder, with its table in `lake` unless `server` says otherwise.

    `more` follows the properties; `replaced` is a text of the contract, and what stands there instead.
    """
    text = _CONTRACT.replace("SERVER", server).replace("FOLDER", str(desk.folder)).replace("KEY", key)
    assert replaced[0] in text
    desk.write(FILE, (text.replace(*replaced) if replaced[0] else text) + more)


def write(folder: Path, ids: Iterable[int], **columns: list[object]) -> None:
    """Write a Parquet file with these ids, and other columns, in the place of the one that is there."""
    folder.mkdir(parents=True, exist_ok=True)
    table = pa.table({"id": pa.array(list(ids), pa.int64()), **columns})
    pq.write_table(table, folder / "part-0.parquet")


def register(desk: Desk, *options: str) -> None:
    ran = desk.dq("register", FILE, "--apply", *options)
    assert ran.code == 0, ran.all


def publish(desk: Desk, partition: str, *options: str) -> None:
    ran = desk.dq("publish", FILE, "--partition", partition, *options)
    assert ran.code == 0, ran.all


def forget_partition(desk: Desk, partition: str) -> None:
    """Take a partition out of the local catalog, behind the back of dq."""
    with closing(sqlite3.connect(desk.folder / ".dq" / "store.db")) as store, store:
        statement = "DELETE FROM catalog_partition WHERE partition_path = ?"
        assert store.execute(statement, (partition,)).rowcount == 1
