"""The cells of a CSV file (RFC 4180) with the line on which each row begins."""

from __future__ import annotations

import re
from collections.abc import Iterator

from dq.contracts.shared.errors import Unreadable

Cell = str | None
"""None is NULL: nothing between two delimiters. Nothing between quotes is the empty text."""


def rows(text: str, file: str, delimiter: str = ",") -> Iterator[tuple[int, list[Cell]]]:
    """Every row that is not blank, with its line from 1. Raises Unreadable for quotes that do not close."""
    sign = re.escape(delimiter)
    cell = re.compile(rf'(?:"((?:[^"]|"")*)"|([^{sign}\r\n]*))({sign}|\r\n|\n|\r|\Z)')
    at, line, begun = 0, 1, 1
    row: list[Cell] = []
    while at < len(text) or row:
        match = cell.match(text, at)
        if match is None or (match[2] is not None and match[2].startswith('"')):
            raise Unreadable(
                f"{file}:{line}: the quotes of a value are not closed, or something follows them.",
                'Close them; a quote inside of a value is written twice: "".',
            )
        quoted, bare, end = match.groups()
        row.append(quoted.replace('""', '"') if quoted is not None else bare or None)
        line += len(re.findall(r"\r\n|\n|\r", match.group()))
        at = match.end()
        if end != delimiter:
            if row != [None] or quoted is not None:
                yield begun, row
            row, begun = [], line
            if at >= len(text):
                return
