"""Writes tables with libraries that are not in dq's environment; it runs in one of its own, and knows no dq.

A line of JSON on stdin asks for one file, `{"writer", "source", "target", "number", "size", "last"}`; a line
on stdout answers with `null`, or with the reason why it could not be written.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

Order = dict[str, Any]


def _file(order: Order) -> str:
    """The target where it is the name of a file, else a file of that number in the folder."""
    target = str(order["target"])
    return target if target.endswith(".parquet") else f"{target}/part-{order['number']}.parquet"


def duckdb(rows: pa.Table, order: Order) -> None:
    import duckdb

    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.register("source", rows)
        place = _file(order).replace("'", "''")
        connection.execute(
            f"COPY (SELECT * FROM source) TO '{place}' (FORMAT parquet, ROW_GROUP_SIZE {order['size']})"
        )


def fastparquet(rows: pa.Table, order: Order) -> None:
    import fastparquet
    import pandas as pd

    types = {pa.int32(): pd.Int32Dtype(), pa.int64(): pd.Int64Dtype(), pa.bool_(): pd.BooleanDtype()}
    frame = rows.to_pandas(types_mapper=types.get)
    for name in rows.column_names:
        if rows.schema.field(name).type == pa.string():
            frame[name] = pd.Series(rows[name].to_pylist(), dtype=object)
    texts = {name: "utf8" for name in rows.column_names if rows.schema.field(name).type == pa.string()}
    fastparquet.write(
        _file(order), frame, row_group_offsets=order["size"], object_encoding=texts or "infer", stats=True
    )


def arro3(rows: pa.Table, order: Order) -> None:
    from arro3.io import write_parquet

    write_parquet(rows, _file(order))


def deltalake(rows: pa.Table, order: Order) -> None:
    import deltalake

    deltalake.write_deltalake(order["target"], rows, mode="append")


def pyiceberg(rows: pa.Table, order: Order) -> None:
    from pyiceberg.catalog.sql import SqlCatalog

    home = Path(order["target"])
    catalog = SqlCatalog(
        "c", uri=f"sqlite:///{home.parent}/{home.name}.db", warehouse=f"file://{home.parent}"
    )
    if order["number"] == 0:
        catalog.create_namespace("n")
        catalog.create_table("n.t", schema=rows.schema, location=f"file://{home}")
    table = catalog.load_table("n.t")
    table.append(rows)
    if order["last"]:
        # As a catalog of folders names its versions, which Spark reads by path.
        newest = Path(catalog.load_table("n.t").metadata_location.removeprefix("file://"))
        (home / "metadata" / "v1.metadata.json").write_bytes(newest.read_bytes())
        (home / "metadata" / "version-hint.text").write_text("1")


WRITERS: dict[str, Callable[[pa.Table, Order], None]] = {
    "arro3": arro3,
    "duckdb": duckdb,
    "fastparquet": fastparquet,
    "deltalake": deltalake,
    "pyiceberg": pyiceberg,
}


def main() -> None:
    answers = sys.stdout
    # What a library prints is no answer.
    sys.stdout = sys.stderr
    for line in sys.stdin:
        order = json.loads(line)
        try:
            with pa.memory_map(order["source"]) as source:
                rows = pa.ipc.open_file(source).read_all()
                WRITERS[order["writer"]](rows, order)
            problem = None
        except Exception as error:  # noqa: BLE001  # foreign libraries raise anything; it is an answer
            problem = f"{type(error).__name__}: {str(error).splitlines()[0][:200] if str(error) else ''}"
        answers.write(json.dumps(problem) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
