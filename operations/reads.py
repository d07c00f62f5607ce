"""Reads of tables by their readers, from a file such as an extract of CloudTrail or of query logs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from dq.contracts.install import require_extras
from dq.contracts.outcome import UsageError
from dq.lake.storage import open_bytes

_PLACES = ("table", "path")
_COLUMNS = (*_PLACES, "reader", "count")


@dataclass(slots=True)
class TableReads:
    """Reads of a table, and who read it."""

    count: int = 0
    readers: set[str] = field(default_factory=set)


def count_reads(file: str, find: Callable[[str], str | None]) -> tuple[dict[str, TableReads], int]:
    """Return the reads by table, and the number of reads of other places.

    The file is Parquet or CSV with the columns `table` or `path`, `reader` and optionally `count` (default:
    one read a row). `find` returns the key of the table with a name or a path, or None.

    Raises UsageError for other columns, ReadError for a file that cannot be read.
    """
    reads: dict[str, TableReads] = {}
    unmatched = 0
    keys: dict[str, str | None] = {}
    for row in _rows(file):
        place = next((str(row[name]) for name in _PLACES if row.get(name) is not None), "")
        count: int = row["count"]
        if place not in keys:
            keys[place] = find(place)
        key = keys[place]
        if key is None:
            unmatched += count
            continue
        table = reads.setdefault(key, TableReads())
        table.count += count
        if row.get("reader") is not None:
            table.readers.add(str(row["reader"]))
    return reads, unmatched


def _rows(file: str) -> Iterator[dict[str, Any]]:
    with require_extras("Reading this file needs pyarrow", "s3"):
        import pyarrow as pa
        from pyarrow import csv, parquet
    with open_bytes(file) as opened:
        try:
            if file.lower().endswith((".csv", ".tsv")):
                reader = csv.open_csv(opened)
                names, batches = reader.schema.names, iter(reader)
            else:
                parquet_file = parquet.ParquetFile(opened)
                names = parquet_file.schema_arrow.names
                selected = [name for name in _COLUMNS if name in names]
                batches = parquet_file.iter_batches(columns=selected)
            if not set(_PLACES) & set(names) or "reader" not in names:
                raise UsageError(
                    f"{file} has the columns {', '.join(names)[:200]}.",
                    "Write the columns table or path, reader and optionally count.",
                )
            for row in (row for batch in batches for row in batch.to_pylist()):
                yield {**row, "count": 1 if row.get("count") is None else int(row["count"])}
        except (pa.ArrowException, ValueError, OverflowError) as error:
            raise UsageError(
                f"{file} cannot be read: {error}.", "Write Parquet, or CSV with a header."
            ) from error
