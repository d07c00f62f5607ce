"""CSV: column names from the header, types inferred from the values."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING

from dq.contracts.layout import Layout
from dq.contracts.outcome import ReadError
from dq.lake.storage import open_bytes
from dq.registry.importing import ImportedColumn, ImportedTable, ImportKind, TextTypeInference
from dq.registry.importing.sources import LakeFolder, list_folder

if TYPE_CHECKING:
    import _csv

MAX_ROWS = 10_000
"""Maximum number of rows read per file."""

_ENDINGS = (".csv", ".tsv")
_DELIMITERS = (",", ";", "\t", "|")


def read(source: str, layout: Layout | None = None) -> list[ImportedTable]:
    """Read one table. The delimiter is the most frequent candidate in the first line.

    Raises ReadError for files with other columns than the first one, and for files that are not UTF-8.
    """
    return [read_files(list_folder(source, _ENDINGS, layout))]


def read_files(lake: LakeFolder) -> ImportedTable:
    """Read the table of listed files. Raises as `read`."""
    guesses: dict[str, TextTypeInference] = {}
    delimiter = ""
    for lake_file in lake.sample():
        with open_bytes(lake_file.path) as file:
            text = io.TextIOWrapper(file, encoding="utf-8-sig", newline="")
            try:
                delimiter = _read_sample(lake_file.path, text, delimiter, guesses)
            except UnicodeDecodeError as error:
                raise ReadError(f"{lake_file.path} is not UTF-8.", "Write it in UTF-8.") from error
            except csv.Error as error:
                raise ReadError(f"{lake_file.path} is not valid CSV: {error}.", "Fix the file.") from error
    null = _null_word(guesses.values())
    columns = [ImportedColumn.from_values(name, guess.read_values(null)) for name, guess in guesses.items()]
    reader = (("delimiter", "" if delimiter == "," else delimiter), ("nullText", null))
    reader_options = tuple((name, value) for name, value in reader if value)
    absence = f"not in the header of {lake.sampled_files}"
    return replace(lake.table(columns, "csv"), reader=reader_options, absence=absence)


def _null_word(guesses: Iterable[TextTypeInference]) -> str:
    """Return the word that means null in typed columns, or ""."""
    counts: Counter[str] = Counter()
    for guess in guesses:
        if guess.has_narrower_type:
            counts += guess.nulls
    return max(counts, key=lambda word: (counts[word], word), default="")


def _read_sample(
    path: str, text: io.TextIOWrapper, delimiter: str, guesses: dict[str, TextTypeInference]
) -> str:
    head = text.readline(1 << 20)
    used = delimiter or max(_DELIMITERS, key=head.count)
    text.seek(0)
    rows = csv.reader(text, delimiter=used, strict=True)
    names = next(rows, [])
    if not names or len(set(names)) < len(names) or not all(name.strip() for name in names):
        raise ReadError(
            f"{path}: its header line is empty or has duplicate or blank names.", "Add a valid header line."
        )
    if not guesses and not any(TextTypeInference.is_only_text(name) for name in names):
        raise ReadError(
            f"{path}: its first line looks like data, not a header: {', '.join(names)[:100]}.",
            "Add a header line to the files.",
        )
    if not guesses:
        guesses.update({name: TextTypeInference() for name in names})
    elif list(guesses) != names:
        raise ReadError(f"{path} has other columns than the files before.", "Import one table at a time.")
    for row in _complete_rows(path, rows, len(names)):
        for guess, value in zip(guesses.values(), row, strict=True):
            guess.add(value)
    return used


def _complete_rows(path: str, rows: _csv.Reader, width: int) -> Iterator[list[str]]:
    for row in islice(rows, MAX_ROWS):
        if row and len(row) != width:
            raise ReadError(
                f"{path}:{rows.line_num}: {len(row)} values for {width} columns.",
                "Fix the line; quote values that contain the delimiter.",
            )
        if row:
            yield row


KIND = ImportKind(
    "csv",
    "a file with a header line, or the folder of a table",
    read,
    _ENDINGS,
    takes_layout=True,
    read_files=read_files,
)
