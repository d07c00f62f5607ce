"""JSON: objects, one on each line or all in one array, and what their values could be."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from itertools import islice

from dq.contracts.outcome import Unreadable
from dq.lake.storage import reading
from dq.registry.importing import FoundColumn, FoundTable, ImportKind, ValueGuess
from dq.registry.importing.sources import folder

MOST_ROWS = 10_000
"""So many objects are read of each file."""

_MOST_BYTES = 256 << 20


def read(source: str) -> list[FoundTable]:
    """One table; a key that some objects lack is NULL there."""
    lake = folder(source, (".json", ".jsonl", ".ndjson"))
    whole = ValueGuess()
    for one in lake.sample():
        with reading(one.path) as file:
            text = io.TextIOWrapper(file, encoding="utf-8-sig")
            try:
                for number, row in enumerate(islice(_objects(text), MOST_ROWS), 1):
                    if not isinstance(row, dict):
                        raise Unreadable(f"{one.path}: value {number} is no object.", "Write objects.")
                    whole.add_fields(row)
            except (ValueError, RecursionError) as error:
                reason = "it is nested too deep" if isinstance(error, RecursionError) else str(error)[:200]
                raise Unreadable(f"{one.path} is no JSON: {reason}.", "Write one object per line.") from error
    columns = []
    for name, guess in whole.fields.items():
        kind, evidence = guess.made()
        columns.append(FoundColumn(name, kind, evidence=evidence, unseen=frozenset(guess.unseen())))
    return [FoundTable(lake.name, tuple(columns), lake.partitions(), lake.place, "json")]


def _objects(text: io.TextIOWrapper) -> Iterator[object]:
    first = text.read(1)
    while first and first.isspace():
        first = text.read(1)
    if first == "[":
        yield from json.loads(first + text.read(_MOST_BYTES))
        return
    rest = first + text.readline()
    while rest:
        if rest.strip():
            yield json.loads(rest)
        rest = text.readline()


KIND = ImportKind("json", "a file of objects, by line or in one array, or the folder of a table", read)
