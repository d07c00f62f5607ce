"""CSV: the names of the first line, and what the values below it could be."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING

from dq.contracts.outcome import Unreadable
from dq.lake.storage import reading
from dq.registry.importing import FoundColumn, FoundTable, ImportKind, TextGuess
from dq.registry.importing.sources import folder

if TYPE_CHECKING:
    import _csv

MOST_ROWS = 10_000
"""So many rows are read of each file."""

_DELIMITERS = (",", ";", "\t", "|")


def read(source: str) -> list[FoundTable]:
    """One table. The delimiter is the one that the first line has most of.

    Raises Unreadable for files that name other columns than the first one, and for what is no UTF-8.
    """
    lake = folder(source, (".csv", ".tsv"))
    guesses: dict[str, TextGuess] = {}
    delimiter = ""
    for one in lake.sample():
        with reading(one.path) as file:
            text = io.TextIOWrapper(file, encoding="utf-8-sig", newline="")
            try:
                delimiter = _take(one.path, text, delimiter, guesses)
            except UnicodeDecodeError as error:
                raise Unreadable(f"{one.path} is not UTF-8.", "Write it in UTF-8.") from error
            except csv.Error as error:
                raise Unreadable(f"{one.path} is no CSV: {error}.", "Mend the file.") from error
    null = _null(guesses.values())
    made = {name: guess.made(null) for name, guess in guesses.items()}
    columns = tuple(FoundColumn(name, kind, evidence=why) for name, (kind, why) in made.items())
    reader = (("delimiter", "" if delimiter == "," else delimiter), ("nullText", null))
    said = tuple((name, value) for name, value in reader if value)
    return [FoundTable(lake.name, columns, lake.partitions(), lake.place, "csv", reader=said)]


def _null(guesses: Iterable[TextGuess]) -> str:
    """The word that stands for no value among numbers, dates and the like; "" where none does."""
    found: Counter[str] = Counter()
    for one in guesses:
        if one.is_more:
            found += one.nulls
    return max(found, key=lambda word: (found[word], word), default="")


def _take(path: str, text: io.TextIOWrapper, delimiter: str, guesses: dict[str, TextGuess]) -> str:
    head = text.readline(1 << 20)
    used = delimiter or max(_DELIMITERS, key=head.count)
    text.seek(0)
    rows = csv.reader(text, delimiter=used, strict=True)
    names = next(rows, [])
    if not names or len(set(names)) < len(names) or not all(name.strip() for name in names):
        raise Unreadable(
            f"{path}: its first line does not name each column once.", "Give the files a line of names."
        )
    if not guesses and not any(TextGuess.is_word(name) for name in names):
        raise Unreadable(
            f"{path}: its first line reads like values: {', '.join(names)[:100]}.",
            "Give the files a line of names.",
        )
    if not guesses:
        guesses.update({name: TextGuess() for name in names})
    elif list(guesses) != names:
        raise Unreadable(f"{path} names other columns than the files before.", "Import one table at a time.")
    for row in _whole(path, rows, len(names)):
        for guess, value in zip(guesses.values(), row, strict=True):
            guess.add(value)
    return used


def _whole(path: str, rows: _csv.Reader, width: int) -> Iterator[list[str]]:
    for row in islice(rows, MOST_ROWS):
        if row and len(row) != width:
            raise Unreadable(
                f"{path}:{rows.line_num}: {len(row)} values for {width} columns.",
                "Correct it; a value that holds a delimiter is put in quotes.",
            )
        if row:
            yield row


KIND = ImportKind("csv", "a file with a line of names, or the folder of a table", read)
