"""JSON: objects, one per line or all in one array, with types inferred from their values."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

from dq.contracts.layout import Layout
from dq.contracts.outcome import ReadError, pluralize
from dq.lake.storage import open_bytes
from dq.registry.importing import ImportedColumn, ImportedTable, ImportKind, JsonTypeInference
from dq.registry.importing.sources import LakeFolder, list_folder

MAX_ROWS = 10_000
"""Maximum number of objects read per file."""

_MAX_BYTES = 256 << 20
_ENDINGS = (".json", ".jsonl", ".ndjson")


def read(source: str, layout: Layout | None = None) -> list[ImportedTable]:
    """Read one table; a key that an object lacks is NULL."""
    return [read_files(list_folder(source, _ENDINGS, layout))]


def read_files(lake: LakeFolder) -> ImportedTable:
    """Read the table of listed files. Raises as `read`."""
    inference = JsonTypeInference()
    row_counts = []
    for lake_file in lake.sample():
        with open_bytes(lake_file.path) as file:
            text = io.TextIOWrapper(file, encoding="utf-8-sig")
            row_counts.append(0)
            try:
                for number, row in enumerate(islice(_objects(text), MAX_ROWS), 1):
                    if not isinstance(row, dict):
                        raise ReadError(
                            f"{lake_file.path}: value {number} is not an object.", "Write objects."
                        )
                    inference.add_fields(row)
                    row_counts[-1] = number
            except (ValueError, RecursionError) as error:
                reason = "nested too deeply" if isinstance(error, RecursionError) else str(error)[:200]
                raise ReadError(
                    f"{lake_file.path} is not valid JSON: {reason}.", "Write one object per line."
                ) from error
    columns = [
        ImportedColumn.from_values(name, guess.read_values()) for name, guess in inference.fields.items()
    ]
    if max(row_counts) < MAX_ROWS:
        rows = f"the {pluralize(sum(row_counts), 'row')} of"
    else:
        rows = f"the first {MAX_ROWS:,} rows of" + (" each of" if len(row_counts) > 1 else "")
    return replace(lake.table(columns, "json"), absence=f"not in {rows} {lake.sampled_files}")


def _objects(text: io.TextIOWrapper) -> Iterator[object]:
    first = text.read(1)
    while first and first.isspace():
        first = text.read(1)
    if first == "[":
        yield from json.loads(first + text.read(_MAX_BYTES))
        return
    line = first + text.readline()
    while line:
        if line.strip():
            yield json.loads(line)
        line = text.readline()


KIND = ImportKind(
    "json",
    "a file of objects, one per line or in one array, or the folder of a table",
    read,
    _ENDINGS,
    takes_layout=True,
    read_files=read_files,
)
