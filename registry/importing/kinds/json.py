"""JSON: objects, one per line or all in one array, with types inferred from their values."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from itertools import islice

from dq.contracts.layout import Layout
from dq.contracts.outcome import ReadError
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
    for lake_file in lake.sample():
        with open_bytes(lake_file.path) as file:
            text = io.TextIOWrapper(file, encoding="utf-8-sig")
            try:
                for number, row in enumerate(islice(_objects(text), MAX_ROWS), 1):
                    if not isinstance(row, dict):
                        raise ReadError(
                            f"{lake_file.path}: value {number} is not an object.", "Write objects."
                        )
                    inference.add_fields(row)
            except (ValueError, RecursionError) as error:
                reason = "nested too deeply" if isinstance(error, RecursionError) else str(error)[:200]
                raise ReadError(
                    f"{lake_file.path} is not valid JSON: {reason}.", "Write one object per line."
                ) from error
    columns = []
    for name, guess in inference.fields.items():
        kind, evidence = guess.infer()
        columns.append(
            ImportedColumn(name, kind, evidence=evidence, empty_paths=frozenset(guess.empty_paths()))
        )
    return lake.table(columns, "json")


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
