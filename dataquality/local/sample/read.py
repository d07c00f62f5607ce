"""A sample file as rows of the contract's types, with their lines and the values that are none of a type."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from dq.contracts.access import files
from dq.contracts.columns import row_type
from dq.contracts.model import SchemaObject
from dq.contracts.shared.errors import Unreadable, UsageError
from dq.contracts.types import DataType
from dq.dataquality.local.offline.rows import Rows, of_arrow
from dq.dataquality.local.sample import csv
from dq.dataquality.local.sample.texts import NoValue, of_json, of_text
from dq.dataquality.model.column import field

# A pull request holds samples; whole tables are for Spark.
MAX_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class Unread:
    """A value that is none of its column's type: NULL in the rows, and left out where it would count."""

    row: int
    column: str
    text: str


@dataclass(frozen=True, slots=True)
class Sample:
    """The rows of a file. `places` are their lines, or in a Parquet file their numbers, from 1."""

    file: str
    rows: Rows
    places: tuple[int, ...]
    place: str
    unread: tuple[Unread, ...]


def read(path: Path, one: SchemaObject, delimiter: str = ",", encoding: str = "utf-8") -> Sample:
    """The sample, by the ending of its file.

    In CSV the first line names the columns; in JSON lines a name that a line lacks is NULL. A column that
    the contract does not name is text. Raises UsageError for another ending or a file that is no sample by
    its size, and Unreadable for a file that is not what its ending says.
    """
    if path.suffix.lower() not in ENDINGS:
        raise UsageError(
            f"{path} is no file that can be read as a sample.", f"Its name must end in {', '.join(ENDINGS)}."
        )
    try:
        data = files.read(path, limit=MAX_BYTES)
    except files.TooLarge as error:
        raise UsageError(
            f"{path} has more than {MAX_BYTES >> 20} MiB.", "Take a smaller sample, or 'dq check'."
        ) from error
    try:
        return ENDINGS[path.suffix.lower()](files.shown(path), data, one, delimiter, encoding)
    except (UnicodeDecodeError, LookupError) as error:
        raise Unreadable(f"{path} is not text in {encoding}.", "Write it in UTF-8.") from error


def _csv(path: str, data: bytes, one: SchemaObject, delimiter: str, encoding: str) -> Sample:
    # A byte order mark is no part of the first column's name.
    text = data.decode(encoding).removeprefix("\ufeff")
    lines = list(csv.rows(text, path, delimiter))
    if not lines:
        raise Unreadable(f"{path} is empty.", "Write the names of the columns into its first line.")
    (_, header), *body = lines
    names = [name or "" for name in header]
    twice = next((name for at, name in enumerate(names) if name in names[:at]), None)
    if twice is not None:
        raise Unreadable(f"{path}:1: two columns have the name {twice!r}.", "Give each its own name.")
    for line, cells in body:
        if len(cells) != len(names):
            raise Unreadable(
                f"{path}:{line}: {len(cells)} values for {len(names)} columns.",
                "Correct the line; a value that holds a delimiter is put in quotes.",
            )
    types = _types(names, one)
    return _typed(path, names, types, body, lambda kind, cell: of_text(kind, str(cell)))


def _json(path: str, data: bytes, one: SchemaObject, _delimiter: str, encoding: str) -> Sample:
    objects: list[tuple[int, dict[str, object]]] = []
    for number, line in enumerate(data.decode(encoding).removeprefix("\ufeff").split("\n"), 1):
        if not line.strip():
            continue
        try:
            made = json.loads(line, parse_float=Decimal)
        except (ValueError, RecursionError) as error:
            raise Unreadable(f"{path}:{number}: not JSON: {error}.", "Write one object per line.") from error
        if not isinstance(made, dict):
            raise Unreadable(f"{path}:{number}: not an object.", "Write one object per line.")
        objects.append((number, made))
    more = dict.fromkeys(name for _, made in objects for name in made)
    own = [prop.column for prop in one.properties]
    names = list(dict.fromkeys([*own, *more]))
    types = _types(names, one)
    body = [(number, [made.get(name) for name in names]) for number, made in objects]
    known = set(own)
    shown = [
        (number, [value if name in known else _text(value) for name, value in zip(names, row, strict=True)])
        for number, row in body
    ]
    return _typed(path, names, types, shown, of_json)


def _text(value: object) -> str | None:
    return None if value is None else value if isinstance(value, str) else json.dumps(value, default=str)


def _parquet(path: str, data: bytes, one: SchemaObject, _delimiter: str, _encoding: str) -> Sample:
    import pyarrow as pa
    from pyarrow import parquet

    try:
        table = parquet.ParquetFile(pa.BufferReader(data)).read()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError) as error:
        raise Unreadable(f"{path} is not a Parquet file.", "Write it again.") from error
    rows = of_arrow(table, row_type(one))
    return Sample(path, rows, tuple(range(1, len(rows.cells) + 1)), "row", ())


ENDINGS: dict[str, Callable[[str, bytes, SchemaObject, str, str], Sample]] = {
    ".csv": _csv,
    ".jsonl": _json,
    ".ndjson": _json,
    ".json": _json,
    ".parquet": _parquet,
}


def _types(names: Sequence[str], one: SchemaObject) -> list[DataType]:
    promised = row_type(one)
    return [_carried(field(promised, name) or DataType("string")) for name in names]


def _carried(kind: DataType) -> DataType:
    """Texts of bounded length are texts whose length a check counts."""
    return DataType("string") if kind.name in ("varchar", "char", "variant", "interval") else kind


def _typed(
    path: str,
    names: Sequence[str],
    types: Sequence[DataType],
    body: Sequence[tuple[int, Sequence[object]]],
    value: Callable[[DataType, object], object],
) -> Sample:
    unread: list[Unread] = []
    cells = []
    for at, (_, row) in enumerate(body):
        made: dict[str, object] = {}
        for name, kind, given in zip(names, types, row, strict=True):
            try:
                made[name] = None if given is None else value(kind, given)
            except NoValue:
                made[name] = None
                unread.append(Unread(at, name, _text(given) or ""))
        cells.append(made)
    rows = Rows(DataType("struct", (), tuple(types), tuple(names)), tuple(cells))
    return Sample(path, rows, tuple(line for line, _ in body), "line", tuple(unread))
