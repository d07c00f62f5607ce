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

Asked = dict[str, Any]


def _file(asked: Asked) -> str:
    """The target where it is the name of a file, else a file of that number in the folder."""
    target = str(asked["target"])
    return target if target.endswith(".parquet") else f"{target}/part-{asked['number']}.parquet"


def duckdb(rows: pa.Table, asked: Asked) -> None:
    import duckdb

    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.register("source", rows)
        place = _file(asked).replace("'", "''")
        connection.execute(
            f"COPY (SELECT * FROM source) TO '{place}' (FORMAT parquet, ROW_GROUP_SIZE {asked['size']})"
        )


def fastparquet(rows: pa.Table, asked: Asked) -> None:
    import fastparquet
    import pandas as pd

    types = {pa.int32(): pd.Int32Dtype(), pa.int64(): pd.Int64Dtype(), pa.bool_(): pd.BooleanDtype()}
    frame = rows.to_pandas(types_mapper=types.get)
    for name in rows.column_names:
        if rows.schema.field(name).type == pa.string():
            frame[name] = pd.Series(rows[name].to_pylist(), dtype=object)
    texts = {name: "utf8" for name in rows.column_names if rows.schema.field(name).type == pa.string()}
    fastparquet.write(
        _file(asked), frame, row_group_offsets=asked["size"], object_encoding=texts or "infer", stats=True
    )


def arro3(rows: pa.Table, asked: Asked) -> None:
    from arro3.io import write_parquet

    write_parquet(rows, _file(asked))


def deltalake(rows: pa.Table, asked: Asked) -> None:
    import deltalake

    deltalake.write_deltalake(asked["target"], rows, mode="append")


def pyiceberg(rows: pa.Table, asked: Asked) -> None:
    from pyiceberg.catalog.sql import SqlCatalog

    home = Path(asked["target"])
    catalog = SqlCatalog(
        "c", uri=f"sqlite:///{home.parent}/{home.name}.db", warehouse=f"file://{home.parent}"
    )
    if asked["number"] == 0:
        catalog.create_namespace("n")
        catalog.create_table("n.t", schema=rows.schema, location=f"file://{home}")
    table = catalog.load_table("n.t")
    table.append(rows)
    if asked["last"]:
        # As a catalog of folders names its versions, which Spark reads by path.
        newest = Path(catalog.load_table("n.t").metadata_location.removeprefix("file://"))
        (home / "metadata" / "v1.metadata.json").write_bytes(newest.read_bytes())
        (home / "metadata" / "version-hint.text").write_text("1")


WRITERS: dict[str, Callable[[pa.Table, Asked], None]] = {
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
        asked = json.loads(line)
        try:
            with pa.memory_map(asked["source"]) as source:
                rows = pa.ipc.open_file(source).read_all()
                WRITERS[asked["writer"]](rows, asked)
            said = None
        except Exception as error:  # noqa: BLE001  # foreign libraries raise anything; it is an answer
            said = f"{type(error).__name__}: {str(error).splitlines()[0][:200] if str(error) else ''}"
        answers.write(json.dumps(said) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
